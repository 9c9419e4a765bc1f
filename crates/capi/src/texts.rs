//! Values that are texts: their bytes one behind the other, and where each begins.

use std::ffi::c_char;

use sieva::{Column, Data, Error, ErrorKind, Result, Selection};

use crate::boxes::{BoxArgs, checked};
use crate::given::{self, Out, check_room};
use crate::selection::{SelectionHandle, range};
use crate::source::SourceHandle;
use crate::status::guarded;

/// The caller's memory for texts.
pub struct TextTarget {
    /// Where their bytes go.
    pub bytes: *mut c_char,
    /// Room there.
    pub capacity: u64,
    /// Where it goes where each begins.
    pub offsets: *mut u64,
}

// SAFETY: the memory is the caller's, who leaves it alone while work goes on (see `sieva_start_read_texts`).
unsafe impl Send for TextTarget {}

impl TextTarget {
    /// Writes all texts, or nothing where there is no place; `tell` gets the number of bytes that they need.
    ///
    /// # Errors
    /// `type-mismatch` where values are not text; `invalid-value` where there is too little room.
    ///
    /// # Safety
    /// `offsets` must have room for one number more than there are texts, or be NULL.
    pub unsafe fn put(&self, column: &Column, tell: impl FnOnce(u64)) -> Result<()> {
        let Data::Str(texts) = &column.data else {
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!("{} values are not text", column.dtype().name()),
            )
            .hint("read them with sieva_read() or sieva_read_box()"));
        };
        let bytes: u64 = texts.iter().map(|t| t.len() as u64).sum();
        tell(bytes);
        if self.bytes.is_null() && self.capacity == 0 && self.offsets.is_null() {
            return Ok(());
        }
        check_room(texts.len() as u64 + 1, u64::MAX, self.offsets.is_null(), "offsets")?;
        check_room(bytes, self.capacity, self.bytes.is_null(), "bytes")?;
        let mut at = 0;
        // SAFETY: there is room, by the caller's promise.
        unsafe {
            self.offsets.write_unaligned(0);
            for (i, text) in texts.iter().enumerate() {
                let place = self.bytes.cast::<u8>().wrapping_add(at);
                std::ptr::copy_nonoverlapping(text.as_ptr(), place, text.len());
                at += text.len();
                self.offsets.add(i + 1).write_unaligned(at as u64);
            }
        }
        Ok(())
    }
}

/// `sieva_read_texts`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_read_texts(
    selection: *const SelectionHandle,
    array: *const c_char,
    first: u64,
    count: u64,
    bytes: *mut c_char,
    capacity: u64,
    offsets: *mut u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let needed = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        let (selection, array) =
            unsafe { (given::handle(selection, "selection")?, given::text(array, "array")?) };
        let positions = hits(&selection.selection, first, count)?;
        let mut points = selection.points_again(array)?;
        let column = points.read(&positions)?;
        selection.keep(array, points);
        // SAFETY: as above.
        unsafe { TextTarget { bytes, capacity, offsets }.put(&column, |n| needed.set(n)) }
    })
}

/// The positions of `count` hits from number `first` on.
///
/// # Errors
/// `invalid-value` where there are fewer.
pub fn hits(selection: &Selection, first: u64, count: u64) -> Result<Vec<u64>> {
    let n = range(selection, first, count)?;
    if n < count {
        let all = selection.len();
        return Err(crate::status::invalid(format!("{count} texts from {first} on: there are {all} in all")));
    }
    Ok(selection.iter_from(first).take(n as usize).collect())
}

/// `sieva_read_box_texts`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_read_box_texts(
    source: *const SourceHandle,
    array: *const c_char,
    rank: u32,
    start: *const u64,
    count: *const u64,
    bytes: *mut c_char,
    capacity: u64,
    offsets: *mut u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let needed = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        let source = unsafe { &given::handle(source, "source")?.0 };
        // SAFETY: as above.
        let (index, bx) = unsafe { checked(source, BoxArgs { array, rank, start, count }) }?;
        let column = source.source.read_box(index, &bx, false)?;
        // SAFETY: as above.
        unsafe { TextTarget { bytes, capacity, offsets }.put(&column, |n| needed.set(n)) }
    })
}
