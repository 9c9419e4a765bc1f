//! The head of a region's index: its bins, and the lengths and checksums of the blocks of its body.
//!
//! | bytes | meaning |
//! |---|---|
//! | 1 | version: 3 if bins are listed, else 1; 2 if they are listed by gaps |
//! | varint | rows |
//! | varint | rows that are NaN |
//! | varint | bins of missing values, m |
//! | varint | bins of present values, p |
//! | m, then p times | varint: its least ordinal less the first one that it could be (after the bin before it of its class, or the type's least); varint: greatest ordinal less least; varint: rows less 1 |
//! | version 2, 3 | varint: groups of listed leaves, g; g times: varint: leaves since the group before; varint: its leaves less 1 |
//! | per block, then per list | varint: bytes; 4 bytes, little-endian: the low half of the xxh3-64 of the block |
//!
//! Nothing follows. The ordinal of a value is its key less the least key of its type.

use std::ops::Range;

use sieva_types::{DType, Error, ErrorKind, Result};
use xxhash_rust::xxh3::xxh3_64;

use super::binning::Class;
use super::groups::Group;
use super::merged::Merged;
use super::ordinal::Scale;
use super::region::{Bin, RegionBitmap, StoredBlock};
use super::tree::{Block, Tree};
use super::{MAX_ROWS, lists, varint};

const VERSION: u8 = 1;
/// With lists of the rows of some bins, by gaps.
const GAPS: u8 = 2;
/// With lists of the rows of some bins.
const LISTING: u8 = 3;
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
pub(super) fn put_bins(
    rows: u64,
    leaves: &[(Class, Group)],
    merged: &Merged,
    scale: &Scale,
    head: &mut Vec<u8>,
) {
    let groups = merged.groups();
    head.push(if groups.is_empty() { VERSION } else { LISTING });
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
    if !groups.is_empty() {
        varint::put(groups.len() as u64, head);
        let mut next = 0;
        for group in groups {
            varint::put((group.start - next) as u64, head);
            varint::put(group.len() as u64 - 1, head);
            next = group.end;
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
    let version = match bytes.split_first() {
        Some((&version @ (VERSION | GAPS | LISTING), rest)) => {
            *bytes = rest;
            version
        }
        _ => return Err(corrupt("unknown version")),
    };
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
    let groups = if version == VERSION { Vec::new() } else { parse_groups(bytes, counts.len())? };
    let merged = Merged::new(counts.len(), groups);
    let tree = Tree::new(merged.counts(|leaf| counts[leaf]).into_iter());
    let most = tree.blocks.iter().map(|block| longest(block, &tree));
    let most: Vec<u64> = most.chain(merged.listed().map(|leaf| lists::longest(rows, counts[leaf]))).collect();
    let blocks = parse_blocks(bytes, body_len, &most)?;
    let by_gaps = version == GAPS;
    Ok(RegionBitmap { rows, nan, missing: missing as usize, bins, merged, tree, blocks, by_gaps })
}

/// The groups of listed leaves: they lie apart or side by side, each of at least one leaf.
fn parse_groups(bytes: &mut &[u8], leaves: usize) -> Result<Vec<Range<usize>>> {
    let mut number = || varint::take(bytes).ok_or_else(|| corrupt("the head is cut off"));
    let count = number()?;
    if count == 0 || count > leaves as u64 {
        return Err(corrupt("impossible number of lists"));
    }
    let mut groups = Vec::with_capacity(count as usize);
    let mut next = 0_u64;
    for _ in 0..count {
        let (skipped, more) = (number()?, number()?);
        let start = next.checked_add(skipped);
        let end = start.and_then(|start| start.checked_add(more)?.checked_add(1));
        let (Some(start), Some(end)) = (start, end.filter(|&end| end <= leaves as u64)) else {
            return Err(corrupt("a list of no bin"));
        };
        groups.push(start as usize..end as usize);
        next = end;
    }
    Ok(groups)
}

/// The entries of blocks of at most so many bytes.
fn parse_blocks(bytes: &mut &[u8], body_len: u64, most: &[u64]) -> Result<Vec<StoredBlock>> {
    let mut blocks = Vec::with_capacity(most.len());
    let mut start = 0;
    for &most in most {
        let length = varint::take(bytes).ok_or_else(|| corrupt("the head is cut off"))?;
        let (sum, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| corrupt("the head is cut off"))?;
        *bytes = rest;
        if length > most || length > body_len - start {
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
