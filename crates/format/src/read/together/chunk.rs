//! Chunks: each stored chunk that any task touches is read once, decoded once, and copied to all.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use sieva_types::{Bx, Error, Result};

use super::jobs::Bench;
use super::ranges::{self, Plain};
use super::task::Task;
use crate::read::chunks::Piece;
use crate::read::flight::{Claim, given_up};
use crate::read::{BlockReader, dot};

/// A chunk that tasks touch, and its tasks.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// Its number in the grid.
    pub(super) number: u64,
    /// Where it is stored; `None`: nowhere.
    pub(super) piece: Option<Piece>,
}

impl Wanted {
    /// The bytes that it takes in the store, where it lies in the source's one object.
    pub(super) fn stored(&self) -> Option<Range<u64>> {
        match self.piece {
            Some(Piece::In(chunk)) => Some(chunk.offset..chunk.offset.checked_add(chunk.size)?),
            _ => None,
        }
    }
}

/// Position of a chunk in the grid.
pub(super) fn coords_of(number: u64, grid: &[u64]) -> Vec<u64> {
    let (mut coords, mut rest) = (vec![0; grid.len()], number);
    for d in (0..grid.len()).rev() {
        coords[d] = rest % grid[d].max(1);
        rest /= grid[d].max(1);
    }
    coords
}

impl BlockReader {
    /// Whether a chunk's elements lie in the store as they are.
    pub(super) fn is_plain(&self, piece: Piece) -> Option<u64> {
        match piece {
            Piece::In(chunk)
                if self.layout.pipeline.filters.is_empty() && chunk.size == self.layout.chunk_bytes =>
            {
                Some(chunk.offset)
            }
            _ => None,
        }
    }
}

/// Gives a chunk to its tasks. `stored` are its bytes, where they have been read.
pub(super) fn serve(wanted: &Wanted, tasks: &[&Task<'_>], stored: Option<&[u8]>, bench: &mut Bench) {
    let tasks: Vec<&Task<'_>> = tasks.iter().copied().filter(|task| task.sink.is_wanted()).collect();
    let Some(first) = tasks.first() else { return };
    let reader = first.reader;
    let told = |task: &Task<'_>, e: Error| {
        let coords = coords_of(wanted.number, &task.reader.layout.grid());
        task.sink.fail(task.reader.locate(e.at(format!("chunk {coords:?}"))));
    };
    let place = Place::of(reader, wanted.number);
    let fill = |task: &&Task<'_>| {
        if let Some(part) = place.part(task) {
            task.fill(&part);
        }
    };
    let Some(piece) = wanted.piece else {
        return tasks.iter().for_each(fill);
    };
    if let Some(offset) = reader.is_plain(piece) {
        return serve_plain(&tasks, offset, wanted.number, &place, bench);
    }
    match decoded(&tasks, reader, piece, stored, bench) {
        Err(e) => tasks.iter().for_each(|task| told(task, e.clone())),
        Ok(None) => tasks.iter().for_each(fill),
        Ok(Some(bytes)) => {
            for task in tasks {
                let layout = &*task.reader.layout;
                if let Some(part) = place.part(task) {
                    let base = layout.base + dot(&place.within(task, &part), &layout.strides);
                    task.copy(&part, &bytes, base, &layout.strides);
                }
            }
        }
    }
}

/// Where a chunk lies in the arrays that it is one of.
struct Place<'a> {
    reader: &'a BlockReader,
    number: u64,
    /// Of that reader's array.
    bx: Bx,
}

impl<'a> Place<'a> {
    fn of(reader: &'a BlockReader, number: u64) -> Self {
        Self { reader, number, bx: reader.layout.chunk_box(&coords_of(number, &reader.layout.grid())) }
    }

    /// Its box in the array of a task.
    fn of_task(&self, task: &Task<'_>) -> Cow<'_, Bx> {
        if std::ptr::eq(self.reader, task.reader) {
            return Cow::Borrowed(&self.bx);
        }
        Cow::Owned(Place::of(task.reader, self.number).bx)
    }

    /// The part of it that a task wants.
    fn part<'t>(&self, task: &'t Task<'_>) -> Option<Cow<'t, Bx>> {
        let chunk = self.of_task(task);
        if chunk.contains(&task.bx) {
            return Some(Cow::Borrowed(&*task.bx));
        }
        chunk.intersect(&task.bx).map(Cow::Owned)
    }

    /// Where a part begins within it.
    fn within(&self, task: &Task<'_>, part: &Bx) -> Vec<u64> {
        part.start.iter().zip(&self.of_task(task).start).map(|(p, c)| p - c).collect()
    }
}

/// A chunk that is not encoded: of it, too, only what is wanted is read.
fn serve_plain(tasks: &[&Task<'_>], offset: u64, number: u64, place: &Place<'_>, bench: &mut Bench) {
    let parts: Vec<_> = tasks.iter().map(|task| place.part(task)).collect();
    let with_parts = tasks.iter().zip(&parts).filter_map(|(task, part)| Some((*task, part.as_deref()?)));
    let blocks: Vec<Plain<'_, '_>> = with_parts
        .map(|(task, part)| Plain {
            task,
            first: task.reader.place_in_store(offset, &place.within(task, part)),
            to: task.place_of(part),
            shape: &part.shape,
            chunk: Some(number),
        })
        .collect();
    let Some(reader) = tasks.first().map(|task| task.reader) else { return };
    let mut at = offset;
    let end = offset.saturating_add(reader.layout.chunk_bytes);
    while at < end {
        let next = at.saturating_add(super::REQUEST).min(end);
        ranges::read(&**reader.source.store(), &blocks, at..next, &mut bench.room);
        at = next;
    }
}

/// The decoded chunk, of the cache, of another thread or decoded now; `None` where it was never written.
fn decoded(
    tasks: &[&Task<'_>],
    reader: &BlockReader,
    piece: Piece,
    stored: Option<&[u8]>,
    bench: &mut Bench,
) -> Result<Option<Arc<Vec<u8>>>> {
    let is_wanted = || tasks.iter().any(|task| task.sink.is_wanted());
    let check = &mut || if is_wanted() { Ok(()) } else { Err(given_up()) };
    let lease = match reader.cache.claim(reader.key(piece), check)? {
        Claim::Given(bytes) => return Ok(bytes),
        Claim::Own(lease) => lease,
    };
    let ws = &mut bench.workspace;
    let decoded = match (stored, piece) {
        (Some(stored), Piece::In(chunk)) => reader.decode_stored(chunk.filter_mask, stored, ws).map(Some),
        _ => {
            let mut encoded = std::mem::take(&mut ws.encoded);
            let decoded = reader.decode_new(piece, &mut encoded, ws);
            ws.encoded = encoded;
            decoded
        }
    };
    let decoded = decoded.map(|bytes| bytes.map(Arc::new));
    lease.land(&decoded, true);
    decoded
}
