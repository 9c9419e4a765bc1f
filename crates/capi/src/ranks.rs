//! Parts of boxes that many processes ask for, dealt out: the plan of [`sieva::ranks`].

use sieva::Bx;
use sieva::ranks::{Asked, Plan, disjoint, pieces_of};

use crate::given::{self, Out};
use crate::source::{SourceHandle, opened};
use crate::status::{guarded, invalid};

/// Writes rows where there is room for them, after their number was told; with no room asked for, that is all.
///
/// # Safety
/// `to` must have room for `capacity` rows.
unsafe fn write_rows(
    rows: impl Iterator<Item = u64>,
    count: u64,
    (to, capacity): (*mut u64, u64),
    needed: Out<u64>,
) -> sieva::Result<()> {
    // SAFETY: the caller's promise.
    unsafe { needed.set(count) };
    if to.is_null() && capacity == 0 {
        return Ok(());
    }
    if to.is_null() || capacity < count {
        return Err(invalid(format!("room for {capacity} rows at {to:?}, {count} are needed")));
    }
    for (i, value) in rows.enumerate() {
        // SAFETY: there is room for all rows.
        unsafe { to.add(i).write(value) };
    }
    Ok(())
}

/// `sieva_deal_parts`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_deal_parts(
    source: *const SourceHandle,
    ranks: u32,
    counts: *const u64,
    numbers: *const u64,
    most: u64,
    dealt: *mut u64,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        let source = unsafe { opened(source) }?;
        // SAFETY: as above.
        let counts = unsafe { given::values(counts, u64::from(ranks), "counts") }?;
        let total = counts.iter().try_fold(0_u64, |n, count| n.checked_add(*count));
        let total = total.ok_or_else(|| invalid("counts of more than 2^64 numbers"))?;
        // SAFETY: as above.
        let numbers = unsafe { given::values(numbers, total, "numbers") }?;
        let arrays =
            source.source.schema().arrays.iter().map(|info| Asked {
                shape: info.shape.clone(),
                is_chunked: info.storage.chunk_shape.is_some(),
            });
        let arrays: Vec<Asked> = arrays.collect();
        let (mut pieces, mut rest) = (Vec::new(), numbers.as_slice());
        for (rank, count) in counts.iter().enumerate() {
            let (own, others) = rest.split_at(*count as usize);
            pieces.extend(pieces_of(&arrays, rank, own)?);
            rest = others;
        }
        let plan = Plan::of(&arrays, pieces, counts.len(), most)?;
        let rows = plan.units.iter().enumerate().flat_map(|(number, unit)| {
            let is_row = u64::from(plan.is_row(number));
            let (first, n) = plan.run(number).unwrap_or_default();
            let of = [number as u64, unit.reader as u64, unit.wave, is_row, first, n];
            plan.given[unit.pieces.clone()].iter().flat_map(move |i| [*i as u64].into_iter().chain(of))
        });
        // SAFETY: as above.
        unsafe { write_rows(rows, plan.given.len() as u64, (dealt, capacity), out) }
    })
}

/// `sieva_unite_boxes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_unite_boxes(
    rank: u32,
    n: u64,
    boxes: *const u64,
    is_row: i32,
    united: *mut u64,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(needed, "needed")?;
        let width = 2 * u64::from(rank);
        let total = width.checked_mul(n).ok_or_else(|| invalid(format!("{n} boxes of rank {rank}")))?;
        // SAFETY: the promises of sieva.h.
        let numbers = unsafe { given::values(boxes, total, "boxes") }?;
        let of = |i: u64| {
            let row = numbers.get((i * width) as usize..((i + 1) * width) as usize).unwrap_or(&[]);
            let (start, shape) = row.split_at(row.len() / 2);
            Bx::new(start.to_vec(), shape.to_vec())
        };
        let all: Vec<Bx> = (0..n).map(of).collect();
        let is_wrong = |bx: &Bx| {
            bx.is_empty() || bx.start.iter().zip(&bx.shape).any(|(s, n)| s.checked_add(*n).is_none())
        };
        if all.iter().any(is_wrong) {
            return Err(invalid("a box of nothing, or beyond 2^64"));
        }
        let found = disjoint(&all, is_row != 0);
        let rows = found.iter().flat_map(|bx| bx.start.iter().chain(&bx.shape).copied());
        // SAFETY: as above.
        unsafe { write_rows(rows, found.len() as u64, (united, capacity), out) }
    })
}
