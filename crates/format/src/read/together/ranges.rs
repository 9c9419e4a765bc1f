//! Plain bytes: what several tasks want of a range of the store, each byte read once and copied to all.

use std::ops::Range;

use sieva_store::RangedRead;
use sieva_types::{Error, Result, try_resize};

use super::chunk::coords_of;
use super::pieces::{Part, shape_of_grid};
use super::task::Task;
use crate::read::direct::is_dense;
use crate::read::strided::{self, Side};
use crate::read::{BlockReader, span_bytes};

/// Parts that are held at once for a range: of a range with more, halves are read one after the other.
const MOST_PARTS: usize = 1 << 17;

/// A block of one task that lies plainly in the store.
pub(super) struct Plain<'a, 'b> {
    pub(super) task: &'b Task<'a>,
    /// Where its first element lies.
    pub(super) first: u64,
    /// Where that goes.
    pub(super) to: u64,
    pub(super) shape: &'b [u64],
    /// Of a chunk its number.
    pub(super) chunk: Option<u64>,
}

/// A part of a block, by the bytes that it spans.
#[derive(Clone, Copy)]
struct Spanned {
    from: u64,
    span: u64,
    /// Of these, those that are wanted, about.
    wanted: u64,
    block: usize,
    part: Part,
}

/// What a worker reuses.
#[derive(Default)]
pub(super) struct Room {
    parts: Vec<Spanned>,
    bytes: Vec<u8>,
}

/// Reads what the blocks want of `range`. What fails is told to those that need it alone.
pub(super) fn read(store: &dyn RangedRead, blocks: &[Plain<'_, '_>], range: Range<u64>, room: &mut Room) {
    let mut ranges = vec![range];
    while let Some(range) = ranges.pop() {
        if !collect(blocks, &range, &mut room.parts) && range.end - range.start > 1 {
            let middle = range.start + (range.end - range.start) / 2;
            ranges.extend([middle..range.end, range.start..middle]);
            continue;
        }
        room.parts.sort_unstable_by_key(|part| part.from);
        let mut rest = &room.parts[..];
        while !rest.is_empty() {
            let (n, together) = first_read(rest);
            let parts = &rest[..n];
            rest = &rest[n..];
            if !parts.iter().any(|part| blocks[part.block].task.sink.is_wanted()) {
                continue;
            }
            if let Err(e) = take(store, blocks, parts, together, &mut room.bytes) {
                one_by_one(store, blocks, parts, &e, &mut room.bytes);
            }
        }
    }
}

/// Byte ranges that [`read`] reads of `range`.
pub(super) fn wanted(blocks: &[Plain<'_, '_>], range: &Range<u64>, room: &mut Room) -> Vec<Range<u64>> {
    if !collect(blocks, range, &mut room.parts) {
        return vec![range.clone()];
    }
    room.parts.sort_unstable_by_key(|part| part.from);
    let (mut rest, mut ranges) = (&room.parts[..], Vec::new());
    while !rest.is_empty() {
        let (n, together) = first_read(rest);
        ranges.push(together);
        rest = &rest[n..];
    }
    ranges
}

/// The parts of all blocks in a range; false where they are too many.
fn collect(blocks: &[Plain<'_, '_>], range: &Range<u64>, parts: &mut Vec<Spanned>) -> bool {
    parts.clear();
    for (block, plain) in blocks.iter().enumerate() {
        if parts.len() > MOST_PARTS {
            return false;
        }
        if !plain.task.sink.is_wanted() {
            continue;
        }
        let (reader, size) = (plain.task.reader, plain.task.size());
        let strides = &reader.layout.strides;
        plain.task.pieces((plain.first, plain.to), plain.shape, strides, range, &mut |part| {
            let (from, span, wanted) = match part {
                Part::Run { from, len, .. } => (from, len, len),
                Part::Grid { from, rows, depth, .. } => {
                    let shape = shape_of_grid(plain.shape, rows, depth);
                    let span = span_bytes(&shape, &strides[depth..], size);
                    (from, span, span)
                }
                Part::Marked { from, first, end, stride, wanted } => {
                    (from, (end - first - 1) * stride + size as u64, wanted)
                }
            };
            parts.push(Spanned { from, span, wanted, block, part });
        });
    }
    parts.len() <= MOST_PARTS
}

/// How many of the first parts are read by one request, and what it reads: parts that overlap or lie side by side, and those
/// beyond a gap where the whole is dense enough.
fn first_read(parts: &[Spanned]) -> (usize, Range<u64>) {
    let mut together = parts[0].from..parts[0].from + parts[0].span;
    let mut covered = parts[0].wanted;
    let mut n = 1;
    for part in &parts[1..] {
        let end = (part.from + part.span).max(together.end);
        let new = (end - part.from.max(together.end)).min(part.wanted);
        if part.from > together.end && !is_dense(end - together.start, covered + new) {
            break;
        }
        (together.end, covered, n) = (end, covered + new, n + 1);
    }
    (n, together)
}

/// Reads a range, and copies it to all parts, which lie within.
fn take(
    store: &dyn RangedRead,
    blocks: &[Plain<'_, '_>],
    parts: &[Spanned],
    range: Range<u64>,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    let len = (range.end - range.start) as usize;
    bytes.truncate(len);
    try_resize(bytes, len)?;
    store.read_exact_at(range.start, bytes)?;
    let mut at = 0;
    while at < parts.len() {
        let block = parts[at].block;
        let same = parts[at..].iter().take_while(|part| part.block == block).count();
        let plain = &blocks[block];
        let (strides, to_strides) = (&plain.task.reader.layout.strides, &plain.task.strides);
        let mut sink = plain.task.sink.lock();
        let out = sink.bytes_mut();
        for part in &parts[at..at + same] {
            let base = (part.from - range.start) as usize;
            match part.part {
                Part::Run { to, len, .. } => {
                    let (to, len) = (to as usize, len as usize);
                    out[to..to + len].copy_from_slice(&bytes[base..base + len]);
                }
                Part::Grid { to, rows, depth, .. } => {
                    let shape = shape_of_grid(plain.shape, rows, depth);
                    let from = Side { base, strides: &strides[depth..] };
                    let to = Side { base: to as usize, strides: &to_strides[depth..] };
                    strided::copy(&shape, plain.task.size(), bytes, from, out, to);
                }
                Part::Marked { first, end, stride, .. } => {
                    if let Some(selected) = plain.task.selection {
                        selected.copy(first..end, plain.task.size(), (bytes, base, stride as usize), out);
                    }
                }
            }
        }
        at += same;
    }
    Ok(())
}

/// After an error of them together: each part by itself, so that it reaches those that need what cannot be read.
fn one_by_one(
    store: &dyn RangedRead,
    blocks: &[Plain<'_, '_>],
    parts: &[Spanned],
    e: &Error,
    bytes: &mut Vec<u8>,
) {
    for part in parts {
        let task = blocks[part.block].task;
        if !task.sink.is_wanted() {
            continue;
        }
        let alone = [*part];
        let read = match parts.len() {
            1 => Err(e.clone()),
            _ => take(store, blocks, &alone, part.from..part.from + part.span, bytes),
        };
        let Err(e) = read else { continue };
        let runs = runs_of(part, task);
        if runs.len() > 1 {
            one_by_one(store, blocks, &runs, &e, bytes);
        } else {
            let chunk = blocks[part.block].chunk.map(|n| coords_of(n, &task.reader.layout.grid()));
            let e = chunk.map_or(e.clone(), |coords| e.at(format!("chunk {coords:?}")));
            task.sink.fail(task.reader.locate(e));
        }
    }
}

/// The runs of marked positions, each as a part; none of other parts.
fn runs_of(part: &Spanned, task: &Task<'_>) -> Vec<Spanned> {
    let mut runs = Vec::new();
    if let (Part::Marked { .. }, Some(selected)) = (part.part, task.selection) {
        selected.each_run(part.part, task.size(), &mut |run| {
            if let Part::Run { from, len, .. } = run {
                runs.push(Spanned { from, span: len, wanted: len, block: part.block, part: run });
            }
        });
    }
    runs
}

impl BlockReader {
    /// Where the element `start` of data that lie plainly lies.
    pub(super) fn place_in_store(&self, offset: u64, start: &[u64]) -> u64 {
        let layout = &*self.layout;
        offset.saturating_add(layout.base).saturating_add(crate::read::dot(start, &layout.strides))
    }
}
