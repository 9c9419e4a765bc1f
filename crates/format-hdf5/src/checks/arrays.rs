//! Fixed and extensible arrays (sections VII.C and VII.D): the indexes of chunks in datasets that cannot or can grow.

use super::{CUT_OFF, Cursor, Look};
use crate::scout::ChunkForm;

/// Elements that are listed although nothing is stored of them: a few seconds' work.
const MOST_ABSENT: u64 = 1 << 25;
/// Bytes of an element beside its address: the length of a filtered chunk and its mask.
const BESIDE_ADDRESS: std::ops::RangeInclusive<u64> = 5..=12;

/// What is wrong with the header of a fixed array, if anything is.
pub(super) fn fixed(look: &mut Look<'_>, address: u64, chunks: Option<ChunkForm>) -> Option<&'static str> {
    wrong_fixed(look, address, chunks).unwrap_or(Some(CUT_OFF))
}

fn wrong_fixed(look: &mut Look<'_>, address: u64, chunks: Option<ChunkForm>) -> Option<Option<&'static str>> {
    let (len, width) = (look.len(), look.sizes.address as u64);
    let mut fields = Cursor { look, at: address };
    fields.skip(5);
    let class = fields.number(1)?;
    let element = fields.number(1)?;
    let page_bits = fields.number(1)?;
    let elements = fields.length()?;
    let block = fields.place()?;
    if !is_element(class, element, width, chunks) || page_bits == 0 || page_bits > 32 {
        return Some(Some("the header of a fixed array holds numbers that mean nothing"));
    }
    let stored = elements.saturating_mul(element);
    let most = if block.is_some() { len } else { MOST_ABSENT.saturating_mul(element) };
    Some((stored > most).then_some("a fixed array has more elements than the file can hold"))
}

/// What is wrong with the header of an extensible array, if anything is.
pub(super) fn extensible(
    look: &mut Look<'_>,
    address: u64,
    chunks: Option<ChunkForm>,
) -> Option<&'static str> {
    wrong_extensible(look, address, chunks).unwrap_or(Some(CUT_OFF))
}

fn wrong_extensible(
    look: &mut Look<'_>,
    address: u64,
    chunks: Option<ChunkForm>,
) -> Option<Option<&'static str>> {
    let (len, width) = (look.len(), look.sizes.address as u64);
    let mut fields = Cursor { look, at: address };
    fields.skip(5);
    let mut byte = || fields.number(1);
    let (class, element, bits, _, least, pointers, page_bits) =
        (byte()?, byte()?, byte()?, byte()?, byte()?, byte()?, byte()?);
    for _ in 0..4 {
        fields.length()?;
    }
    let (used, _) = (fields.length()?, fields.length()?);
    let is_possible = (1..=64).contains(&bits)
        && least.is_power_of_two()
        && pointers.is_power_of_two()
        && pointers >= 2
        && page_bits <= bits
        && u64::from(least.ilog2()) <= bits
        // The super blocks that the index block stands for are some of all.
        && 2 * u64::from(pointers.ilog2()) <= 1 + bits - u64::from(least.ilog2())
        // A block of the first super block of its own is no longer than a page.
        && u64::from(least.ilog2()) + u64::from(pointers.ilog2()) <= page_bits;
    if !is_element(class, element, width, chunks) || !is_possible {
        return Some(Some("the header of an extensible array holds numbers that mean nothing"));
    }
    let most = (len / element).saturating_add(MOST_ABSENT);
    Some((used > most).then_some("an extensible array has more elements than the file can hold"))
}

/// Whether an element of this class has so many bytes: an address, and of a filtered chunk its length and mask.
fn is_element(class: u64, element: u64, width: u64, chunks: Option<ChunkForm>) -> bool {
    match (class, chunks) {
        (0, _) => element == width,
        (1, Some(chunks)) => element == width + chunks.len_width + 4,
        (1, None) => element.checked_sub(width).is_some_and(|beside| BESIDE_ADDRESS.contains(&beside)),
        // That of libhdf5's own tests, and unknown ones.
        _ => false,
    }
}
