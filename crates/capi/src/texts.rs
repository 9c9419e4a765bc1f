//! Values that are texts: their bytes one behind the other, and where each begins.

use std::ffi::c_char;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva::{Column, Data, Error, ErrorKind, Result, Texts};

use crate::boxes::{BoxArgs, checked};
use crate::given::{self, Out, check_room};
use crate::read::Reader;
use crate::selection::SelectionHandle;
use crate::source::{SourceHandle, opened};
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
    pub unsafe fn put(&self, columns: &[Column], tell: impl FnOnce(u64)) -> Result<()> {
        let parts = columns.iter().map(texts_of).collect::<Result<Vec<_>>>()?;
        let bytes: u64 = parts.iter().map(|texts| texts.as_str().len() as u64).sum();
        let count: u64 = parts.iter().map(|texts| texts.len() as u64).sum();
        tell(bytes);
        if self.bytes.is_null() && self.capacity == 0 && self.offsets.is_null() {
            return Ok(());
        }
        check_room(count + 1, u64::MAX, self.offsets.is_null(), "offsets")?;
        check_room(bytes, self.capacity, self.bytes.is_null(), "bytes")?;
        let (mut at, mut number) = (0, 0);
        // SAFETY: there is room, by the caller's promise.
        unsafe {
            self.offsets.write_unaligned(0);
            for texts in parts {
                let (place, all) = (self.bytes.cast::<u8>().wrapping_add(at), texts.as_str());
                std::ptr::copy_nonoverlapping(all.as_ptr(), place, all.len());
                for text in texts.iter() {
                    (at, number) = (at + text.len(), number + 1);
                    self.offsets.add(number).write_unaligned(at as u64);
                }
            }
        }
        Ok(())
    }
}

fn texts_of(column: &Column) -> Result<&Texts> {
    match &column.data {
        Data::Str(texts) => Ok(texts),
        _ => {
            Err(Error::new(ErrorKind::TypeMismatch, format!("{} values are not text", column.dtype().name()))
                .hint("read them with sieva_read() or sieva_read_box()"))
        }
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
        check_hits(selection, first, count)?;
        let mut reader = selection.reader_again(array)?;
        let columns = columns(&mut reader, (first, count), &Arc::default())?;
        selection.keep(array, reader);
        // SAFETY: as above.
        unsafe { TextTarget { bytes, capacity, offsets }.put(&columns, |n| needed.set(n)) }
    })
}

/// The values of hits: the number of the first, and how many.
///
/// # Errors
/// Reading errors.
pub fn columns(reader: &mut Reader, which: (u64, u64), cancel: &Arc<AtomicBool>) -> Result<Vec<Column>> {
    let mut all = Vec::new();
    reader.each(which, cancel, |column| {
        all.push(column);
        Ok(())
    })?;
    Ok(all)
}

/// That there are `count` hits from number `first` on.
///
/// # Errors
/// `invalid-value` where there are fewer.
pub fn check_hits(selection: &SelectionHandle, first: u64, count: u64) -> Result<()> {
    if selection.range(first, count)? == count {
        return Ok(());
    }
    let all = selection.len();
    Err(crate::status::invalid(format!("{count} texts from {first} on: there are {all} in all")))
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
        let source = unsafe { opened(source) }?;
        // SAFETY: as above.
        let (index, bx) = unsafe { checked(source, BoxArgs { array, rank, start, count }) }?;
        let column = source.source.read_box(index, &bx, false)?;
        // SAFETY: as above.
        unsafe { TextTarget { bytes, capacity, offsets }.put(&[column], |n| needed.set(n)) }
    })
}
