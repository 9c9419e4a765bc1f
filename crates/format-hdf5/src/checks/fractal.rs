//! Fractal heaps (section III.G), which hold many links or attributes.

use super::{CUT_OFF, Cursor, Look};

/// What is wrong with the header of a fractal heap, if anything is.
pub(super) fn heap(look: &mut Look<'_>, address: u64) -> Option<&'static str> {
    wrong(look, address).unwrap_or(Some(CUT_OFF))
}

fn wrong(look: &mut Look<'_>, address: u64) -> Option<Option<&'static str>> {
    let len = look.len();
    let mut fields = Cursor { look, at: address };
    fields.skip(5);
    let id = fields.number(2)?;
    fields.skip(2 + 1 + 4);
    fields.length()?;
    fields.place()?;
    fields.length()?;
    fields.place()?;
    for _ in 0..8 {
        fields.length()?;
    }
    let width = fields.number(2)?;
    let (first, most) = (fields.length()?, fields.length()?);
    let bits = fields.number(2)?;
    fields.number(2)?;
    let root = fields.place()?;
    let rows = fields.number(2)?;
    let powers = [width, first, most].iter().all(|n| n.is_power_of_two());
    let is_possible = powers && first <= most && most <= u64::from(u32::MAX) && bits <= 64 && id >= 3;
    if !is_possible {
        return Some(Some("the header of a fractal heap holds numbers that mean nothing"));
    }
    let first_row = u64::from(first.ilog2()) + u64::from(width.ilog2());
    // A row is as long as all before it, and the heap's addresses have so many bits.
    let Some(rows_at_most) = bits.checked_sub(first_row).map(|rest| rest + 1) else {
        return Some(Some("the first row of a fractal heap is longer than its addresses reach"));
    };
    if rows > rows_at_most || u64::from(most.ilog2()) > bits {
        return Some(Some("a fractal heap has more rows than its addresses reach"));
    }
    let is_longer = root.is_some() && rows == 0 && first > len;
    Some(is_longer.then_some("the block of a fractal heap is longer than the file"))
}
