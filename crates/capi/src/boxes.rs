//! Boxes of an array (hyperslabs), whatever their values.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sieva::{Bx, Error, ErrorKind, Result};

use crate::given::{self, Out};
use crate::region::{check_rank, checked_box};
use crate::source::{Opened, SourceHandle, opened};
use crate::status::{guarded, invalid};
use crate::target::Target;

/// Elements that are decoded at once, about: besides the caller's memory, only they take any.
const PIECE: u64 = 1 << 22;

/// A box as the caller gives it.
pub struct BoxArgs {
    /// Its array's name.
    pub array: *const c_char,
    /// Numbers in `start` and `count`.
    pub rank: u32,
    /// First position along each dimension; NULL: 0.
    pub start: *const u64,
    /// Extent along each dimension; NULL: to the end.
    pub count: *const u64,
}

/// The array, and the box within it.
///
/// # Errors
/// `unknown-array`, `dimension-mismatch`, `invalid-value`.
///
/// # Safety
/// The name must end with a NUL, `start` and `count` have `rank` numbers; each may be NULL.
pub unsafe fn checked(source: &Opened, args: BoxArgs) -> Result<(usize, Bx)> {
    // SAFETY: the caller's promise.
    let index = unsafe { source.array(args.array) }?;
    let info = &source.source.schema().arrays[index];
    check_rank(args.rank, info.shape.len(), &info.path)?;
    let rank = u64::from(args.rank);
    let start = if args.start.is_null() {
        vec![0; info.shape.len()]
    } else {
        // SAFETY: as above.
        unsafe { given::values(args.start, rank, "start") }?
    };
    let count = if args.count.is_null() {
        info.shape.iter().zip(&start).map(|(n, s)| n.saturating_sub(*s)).collect()
    } else {
        // SAFETY: as above.
        unsafe { given::values(args.count, rank, "count") }?
    };
    Ok((index, checked_box(&start, &count, &info.shape, &info.path)?))
}

/// The box in pieces along its first dimension, which end where chunks do.
fn pieces(bx: &Bx, chunk: Option<u64>) -> Vec<Bx> {
    if bx.rank() == 0 || bx.len() <= PIECE {
        return vec![bx.clone()];
    }
    let row: u64 = bx.shape[1..].iter().product();
    let chunk = chunk.unwrap_or(1).max(1);
    let step = (PIECE / row.max(1) / chunk).max(1).saturating_mul(chunk);
    let (mut at, end) = (bx.start[0], bx.end(0));
    let mut out = Vec::new();
    while at < end {
        let next = (at - at % chunk).saturating_add(step).min(end);
        let mut piece = bx.clone();
        (piece.start[0], piece.shape[0]) = (at, next - at);
        out.push(piece);
        at = next;
    }
    out
}

/// Reads a box into memory, piece by piece.
///
/// # Errors
/// Reading errors, `cancelled`, and those of [`Target::put`].
///
/// # Safety
/// The target's memory must be as its maker said.
pub unsafe fn read_into(
    source: &Opened,
    (index, bx, stored): (usize, &Bx, bool),
    target: &mut Target,
    cancel: &Arc<AtomicBool>,
) -> Result<()> {
    let chunk = source.source.schema().arrays[index].storage.chunk_shape.as_ref();
    for piece in pieces(bx, chunk.and_then(|c| c.first().copied())) {
        if cancel.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "reading was cancelled"));
        }
        let memory = source.source.memory();
        let column = source.source.read_box_with(index, &piece, stored, memory, cancel)?;
        // SAFETY: the caller's promise.
        unsafe { target.put(&column) }?;
    }
    Ok(())
}

/// `sieva_read_box`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_read_box(
    source: *const SourceHandle,
    array: *const c_char,
    rank: u32,
    start: *const u64,
    count: *const u64,
    stored: i32,
    r#type: i32,
    values: *mut c_void,
    capacity: u64,
    missing: *mut u8,
    read: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(read, "read")?;
        // SAFETY: the promises of sieva.h.
        let source = unsafe { opened(source) }?;
        // SAFETY: as above.
        let (index, bx) = unsafe { checked(source, BoxArgs { array, rank, start, count }) }?;
        let mut target = Target::new(r#type, values, capacity, missing)?;
        let n = bx.shape.iter().try_fold(1_u64, |n, &s| n.checked_mul(s));
        let n = n.ok_or_else(|| invalid(format!("a box of shape {:?}", bx.shape)))?;
        target.check_room(n)?;
        // SAFETY: as above.
        unsafe { read_into(source, (index, &bx, stored != 0), &mut target, &Arc::default()) }?;
        // SAFETY: as above.
        unsafe { out.set(n) };
        Ok(())
    })
}

/// `sieva_read_run`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_read_run(
    source: *const SourceHandle,
    array: *const c_char,
    first: u64,
    n: u64,
    r#type: i32,
    values: *mut c_void,
    capacity: u64,
    missing: *mut u8,
    read: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(read, "read")?;
        // SAFETY: the promises of sieva.h.
        let source = unsafe { opened(source) }?;
        // SAFETY: as above.
        let index = unsafe { source.array(array) }?;
        let mut target = Target::new(r#type, values, capacity, missing)?;
        target.check_room(n)?;
        let column = source.source.read_run(index, (first, n), &Arc::default())?;
        if let Some(column) = &column {
            // SAFETY: as above.
            unsafe { target.put(column) }?;
        }
        // SAFETY: as above.
        unsafe { out.set(if column.is_some() { n } else { 0 }) };
        Ok(())
    })
}

/// `sieva_box_parts`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_box_parts(
    source: *const SourceHandle,
    array: *const c_char,
    rank: u32,
    start: *const u64,
    count: *const u64,
    most: u64,
    parts: *mut u64,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        let source = unsafe { opened(source) }?;
        // SAFETY: as above.
        let (index, bx) = unsafe { checked(source, BoxArgs { array, rank, start, count }) }?;
        let found = source.source.parts_of_box(index, &bx, most)?;
        // SAFETY: as above.
        unsafe { out.set(found.len() as u64) };
        if parts.is_null() && capacity == 0 {
            return Ok(());
        }
        if parts.is_null() || capacity < found.len() as u64 {
            return Err(invalid(format!(
                "room for {capacity} parts at {parts:?}, {} are needed",
                found.len()
            )));
        }
        let rows = found.into_iter().flat_map(|part| {
            [u64::from(part.server), part.stripe, part.block]
                .into_iter()
                .chain(part.bx.start)
                .chain(part.bx.shape)
        });
        for (i, value) in rows.enumerate() {
            // SAFETY: the caller has room for `capacity` rows of `3 + 2 * rank` numbers each.
            unsafe { parts.add(i).write(value) };
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_box_and_end_at_chunks() {
        let bx = Bx::new(vec![3, 0], vec![1000, 1 << 14]);
        let all = pieces(&bx, Some(100));
        assert_eq!(all.first().map(|p| (p.start[0], p.shape[0])), Some((3, 197)));
        assert_eq!(all.iter().map(Bx::len).sum::<u64>(), bx.len());
        assert!(all.windows(2).all(|w| w[0].end(0) == w[1].start[0] && w[1].start[0] % 100 == 0));
        assert_eq!(pieces(&Bx::new(vec![], vec![]), None).len(), 1);
    }
}
