//! The head of a region's index: its bins, and the lengths and checksums of the blocks of its body.
//!
//! | bytes | meaning |
//! |---|---|
//! | 1 | version: 1 |
//! | varint | rows |
//! | varint | rows that are NaN |
//! | varint | bins of missing values, m |
//! | varint | bins of present values, p |
//! | m, then p times | varint: its least ordinal less the first one that it could be (after the bin before it of its class, or the type's least); varint: greatest ordinal less least; varint: rows less 1 |
//! | per block | varint: bytes; 4 bytes, little-endian: the low half of the xxh3-64 of the block |
//!
//! Nothing follows. The ordinal of a value is its key less the least key of its type.

use sieva_types::{DType, Error, ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::binning::Class;
use super::groups::Group;
use super::ordinal::Scale;
use super::region::{Bin, RegionBitmap, StoredBlock};
use super::tree::{Block, Tree};
use super::{MAX_ROWS, varint};

const VERSION: u8 = 1;
/// Bins that a head may have; the builder makes far fewer.
const MAX_BINS: u64 = 1 << 16;

/// The checksum of a block.
pub(super) fn checksum(block: &[u8]) -> u32 {
    xxh3_64(block) as u32
}

pub(super) fn corrupt(what: &str) -> Error {
    Error::new(ErrorKind::CorruptIndex, format!("bitmap index: {what}"))
}

/// Appends rows and bins.
pub(super) fn put_bins(rows: u64, leaves: &[(Class, Group)], scale: &Scale, head: &mut Vec<u8>) {
    head.push(VERSION);
    let of = |class| leaves.iter().filter(move |leaf| leaf.0 == class).map(|leaf| leaf.1);
    varint::put(rows, head);
    varint::put(of(Class::Nan).map(|g| g.count).sum(), head);
    varint::put(of(Class::Missing).count() as u64, head);
    varint::put(of(Class::Present).count() as u64, head);
    for class in [Class::Missing, Class::Present] {
        let mut first = scale.first;
        for group in of(class) {
            varint::put(group.low - first, head);
            varint::put(group.high - group.low, head);
            varint::put(group.count - 1, head);
            first = group.high.wrapping_add(1);
        }
    }
}

/// Appends the entry of a block.
pub(super) fn put_block(block: &[u8], head: &mut Vec<u8>) {
    varint::put(block.len() as u64, head);
    head.extend_from_slice(&checksum(block).to_le_bytes());
}

pub(super) fn parse(mut head: &[u8], body_len: u64, dtype: DType) -> Result<RegionBitmap> {
    let scale = Scale::of(dtype).ok_or_else(|| corrupt("texts have none"))?;
    let bytes = &mut head;
    let number = |bytes: &mut &[u8]| varint::take(bytes).ok_or_else(|| corrupt("the head is cut off"));
    match bytes.split_first() {
        Some((&VERSION, rest)) => *bytes = rest,
        _ => return Err(corrupt("unknown version")),
    }
    let (rows, nan) = (number(bytes)?, number(bytes)?);
    let (missing, present) = (number(bytes)?, number(bytes)?);
    if rows > MAX_ROWS || nan > rows || (nan > 0 && !scale.is_float()) {
        return Err(corrupt("impossible number of rows"));
    }
    // A bin takes three bytes at least, so its memory is bounded by that of the head.
    if missing > MAX_BINS || present > MAX_BINS || (missing + present) * 3 > bytes.len() as u64 {
        return Err(corrupt("impossible number of bins"));
    }
    let mut bins = Vec::with_capacity((missing + present) as usize);
    let mut sum = nan;
    for (count, is_missing) in [(missing, true), (present, false)] {
        let mut first = Some(scale.first);
        for _ in 0..count {
            let (skipped, width, more) = (number(bytes)?, number(bytes)?, number(bytes)?);
            let low = first.and_then(|first| first.checked_add(skipped));
            let ends = low.and_then(|low| Some((low, low.checked_add(width)?)));
            let (low, high) =
                ends.filter(|e| e.1 <= scale.last).ok_or_else(|| corrupt("a bin outside of its type"))?;
            first = high.checked_add(1);
            let count = more
                .checked_add(1)
                .filter(|&n| n <= rows)
                .ok_or_else(|| corrupt("a bin of too many rows"))?;
            sum += count; // at most 2^17 bins of at most 2^31 rows
            bins.push(Bin { low: scale.key(low), high: scale.key(high), count, missing: is_missing });
        }
    }
    if sum != rows {
        return Err(corrupt("bins do not add up to the rows"));
    }
    let leading = (nan > 0).then_some(nan);
    let counts: Vec<u64> = leading.into_iter().chain(bins.iter().map(|b| b.count)).collect();
    let tree = Tree::new(counts.iter().copied());
    let blocks = parse_blocks(bytes, body_len, &tree)?;
    Ok(RegionBitmap { rows, nan, missing: missing as usize, bins, tree, blocks })
}

fn parse_blocks(bytes: &mut &[u8], body_len: u64, tree: &Tree) -> Result<Vec<StoredBlock>> {
    let mut blocks = Vec::with_capacity(tree.blocks.len());
    let mut start = 0;
    for plan in &tree.blocks {
        let length = varint::take(bytes).ok_or_else(|| corrupt("the head is cut off"))?;
        let (sum, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| corrupt("the head is cut off"))?;
        *bytes = rest;
        if length > longest(plan, tree) || length > body_len - start {
            return Err(corrupt("a block is longer than it can be"));
        }
        blocks.push(StoredBlock { start, end: start + length, checksum: u32::from_le_bytes(*sum) });
        start += length;
    }
    if start != body_len || !bytes.is_empty() {
        return Err(corrupt("blocks do not fill the body"));
    }
    Ok(blocks)
}

/// Bytes that a block takes at most: all its vectors plain.
fn longest(block: &Block, tree: &Tree) -> u64 {
    tree.nodes[block.first..block.first + block.nodes].iter().map(|n| n.rows.div_ceil(8) + 1).sum()
}
