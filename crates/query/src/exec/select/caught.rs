//! Values at the positions that are selected, of arrays that evaluating reads for it: kept for whoever asks for them next.
//!
//! Of arrays that lie plainly the session has no chunks, and would read them a second time. Nothing is read for this: where a
//! tile was decided without its values, none of them are kept.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use sieva_types::{Bx, DType, Selection};

use crate::exec::Execution;
use crate::exec::select::leaf_conditions;
use crate::exec::threads::lock;
use crate::exec::tile::Tiles;
use crate::exec::tile::arrays::{Leaves, element_size};
use crate::exec::tile::prepare::Prepared;
use crate::mask::Mask;

/// Positions that are taken out of a selection at once.
const BATCH: usize = 1 << 16;

/// The values of each array at the hits of a tile.
type OfArrays = Vec<Option<Vec<u8>>>;

/// Values of the tiles that were evaluated so far.
pub(in crate::exec) struct Catch {
    /// Bound arrays, and the bytes of their elements.
    arrays: Vec<(usize, usize)>,
    /// What each position takes, and what all may.
    row: u64,
    most: u64,
    bytes: AtomicU64,
    /// Numbers of tiles with hits, and the values of each array there; `None` where they were not read.
    tiles: Mutex<Vec<(usize, OfArrays)>>,
}

impl Catch {
    /// For the arrays of which values may be kept; `None` where there are none, or tiles do not follow one another.
    pub(in crate::exec) fn new(execution: &Execution, prepared: &Prepared, tiles: &Tiles) -> Option<Self> {
        if tiles.band() != 1 {
            return None;
        }
        let mut arrays = Vec::new();
        leaf_conditions(&prepared.node, &mut |c| execution.arrays_of(c, &mut arrays));
        arrays.sort_unstable();
        arrays.dedup();
        let domain = |a: usize| &execution.bound.arrays[a].raw_domain;
        arrays.retain(|&a| {
            execution.spans_rows(a) && domain(a).dtype() != DType::Str && execution.reader(a).most_hits() > 0
        });
        let most = arrays.iter().map(|&a| execution.reader(a).most_hits()).min()? as u64;
        let arrays: Vec<(usize, usize)> = arrays.into_iter().map(|a| (a, element_size(domain(a)))).collect();
        let row = arrays.iter().map(|(_, size)| *size as u64 + 8).sum();
        Some(Self { arrays, row, most, bytes: AtomicU64::new(0), tiles: Mutex::default() })
    }

    /// Takes the values of a tile at `mask`, as far as they are at hand.
    pub(in crate::exec) fn take(&self, tile: usize, bx: &Bx, mask: &Mask, leaves: &Leaves<'_>) {
        let hits = mask.count();
        if hits == 0 || !self.has_room(hits) {
            return;
        }
        let of_array = |&(array, size): &(usize, usize)| {
            let source = leaves.held(array, bx)?.bytes();
            let mut values = Vec::with_capacity(hits as usize * size);
            mask.ones_iter().for_each(|i| values.extend_from_slice(&source[i * size..][..size]));
            Some(values)
        };
        let values: OfArrays = self.arrays.iter().map(of_array).collect();
        lock(&self.tiles).push((tile, values));
    }

    /// Whether so many hits more may be kept: if not, nothing is.
    fn has_room(&self, hits: u64) -> bool {
        let need = hits.saturating_mul(self.row);
        let had = self.bytes.fetch_add(need.min(self.most + 1), Ordering::Relaxed);
        let fits = had.saturating_add(need) <= self.most;
        if !fits {
            *lock(&self.tiles) = Vec::new();
            self.bytes.fetch_max(self.most + 1, Ordering::Relaxed);
        }
        fits
    }

    /// Keeps what is complete: the values at all positions of what was selected.
    pub(in crate::exec) fn keep(&self, execution: &Execution, selection: &Selection) {
        let mut tiles = std::mem::take(&mut *lock(&self.tiles));
        if self.bytes.load(Ordering::Relaxed) > self.most || tiles.is_empty() {
            return;
        }
        tiles.sort_unstable_by_key(|(tile, _)| *tile);
        let mut positions: Option<Vec<u64>> = None;
        for (i, &(array, size)) in self.arrays.iter().enumerate() {
            let parts: Option<Vec<&Vec<u8>>> = tiles.iter().map(|(_, values)| values[i].as_ref()).collect();
            let Some(parts) = parts else { continue };
            let n: usize = parts.iter().map(|part| part.len()).sum();
            if n as u64 != selection.len() * size as u64 {
                continue;
            }
            let positions = positions.get_or_insert_with(|| selection.batches(BATCH).flatten().collect());
            let mut values = Vec::with_capacity(n);
            parts.iter().for_each(|part| values.extend_from_slice(part));
            execution.reader(array).keep_hits(positions, &values);
        }
    }
}
