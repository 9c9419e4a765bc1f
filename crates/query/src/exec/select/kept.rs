//! What counting found, kept so that the positions need not be found again.
//!
//! Counting makes a mask of each tile. They are kept as they come, small ones as lists, until they take more than they may:
//! then they are dropped, and whoever wants the positions evaluates the condition again.

use std::sync::atomic::{AtomicU64, Ordering};

use sieva_types::{Bx, Result, Selection, SelectionBuilder};

use crate::exec::Execution;
use crate::exec::select::bands::Bands;
use crate::exec::select::caught::Catch;
use crate::exec::tile::Tiles;
use crate::exec::tile::windows::Window;
use crate::mask::Mask;

/// Bytes of what is kept of a tile, besides its positions.
const TILE_BYTES: u64 = 64;

/// The positions that were counted, tile by tile.
pub struct Found {
    tiles: Tiles,
    steps: Vec<Step>,
    /// Values there.
    caught: Option<Catch>,
}

/// Consecutive tiles.
enum Step {
    /// So many of which nothing is selected.
    None(u64),
    /// So many, of which all is selected, and their box.
    All(u64, Bx),
    /// So many, and those of them that have positions, in order.
    Open(u64, Vec<(usize, Hits)>),
}

/// The positions of one tile.
pub(in crate::exec) enum Hits {
    /// All.
    All,
    /// These, by their places in the tile.
    List(Vec<u32>),
    /// Those of a mask.
    Bits(Mask),
}

impl Hits {
    /// Those of a mask; `None` where there is none.
    pub(in crate::exec) fn of(mask: Mask, count: u64) -> Option<Self> {
        let n = mask.len() as u64;
        match count {
            0 => None,
            all if all == n => Some(Self::All),
            // A number of four bytes for each, or a bit for all.
            few if few < n / 32 && u32::try_from(n).is_ok() => {
                Some(Self::List(mask.ones_iter().map(|i| i as u32).collect()))
            }
            _ => Some(Self::Bits(mask)),
        }
    }

    fn bytes(&self) -> u64 {
        TILE_BYTES
            + match self {
                Self::All => 0,
                Self::List(places) => 4 * places.len() as u64,
                Self::Bits(mask) => 8 * mask.words().len() as u64,
            }
    }

    fn mask(&self, n: usize) -> Mask {
        match self {
            Self::All => Mask::ones(n),
            Self::List(places) => {
                let mut mask = Mask::zeros(n);
                places.iter().for_each(|&i| mask.set(i as usize));
                mask
            }
            Self::Bits(mask) => mask.clone(),
        }
    }
}

/// What may be kept, shared by the threads that count.
pub(in crate::exec) struct Keeping {
    most: u64,
    bytes: AtomicU64,
}

impl Keeping {
    /// At most `most` bytes.
    pub(in crate::exec) fn new(most: u64) -> Self {
        Self { most, bytes: AtomicU64::new(0) }
    }

    /// Whether all that was found so far is kept.
    pub(in crate::exec) fn goes_on(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) <= self.most
    }

    /// Adds the positions of a tile to `kept`, or drops what is there.
    pub(in crate::exec) fn keep(&self, kept: &mut Vec<(usize, Hits)>, tile: usize, mask: Mask, count: u64) {
        if count == 0 {
            return;
        }
        if self.goes_on()
            && let Some(hits) = Hits::of(mask, count)
        {
            self.bytes.fetch_add(hits.bytes(), Ordering::Relaxed);
            kept.push((tile, hits));
        }
        if !self.goes_on() {
            *kept = Vec::new();
        }
    }

    /// Counts what is kept of a window besides positions.
    fn step(&self, tiles: usize) {
        self.bytes.fetch_add(TILE_BYTES * (1 + tiles as u64), Ordering::Relaxed);
    }
}

impl Found {
    /// Nothing yet.
    pub(in crate::exec) fn new(tiles: Tiles) -> Self {
        Self { tiles, steps: Vec::new(), caught: None }
    }

    /// Adds a window: `hits` are the positions of those of its tiles that were tested, in any order.
    pub(in crate::exec) fn add(&mut self, window: &Window, mut hits: Vec<(usize, Hits)>, keeping: &Keeping) {
        if !keeping.goes_on() {
            self.steps = Vec::new();
            return;
        }
        let step = match window {
            Window::None(n) => Step::None(*n),
            Window::All(_, n, bx) => Step::All(*n, bx.clone()),
            Window::Open(n, candidates) => {
                let whole = candidates.iter().filter(|c| c.all).map(|c| (c.tile, Hits::All));
                let tested = hits.len();
                hits.extend(whole);
                keeping.step(hits.len() - tested);
                hits.sort_unstable_by_key(|(tile, _)| *tile);
                Step::Open(*n, hits)
            }
        };
        keeping.step(0);
        self.steps.push(step);
    }

    /// The positions as a selection.
    ///
    /// # Errors
    /// As [`crate::exec::select`]: `cancelled`, `memory-limit`.
    pub fn selection(&self, execution: &Execution) -> Result<Selection> {
        let rows = &execution.bound.rows;
        let builder = SelectionBuilder::new(rows.names.clone(), rows.shape.clone())?;
        let mut bands = Bands::new(execution, builder, self.tiles.band(), None);
        for step in &self.steps {
            execution.options.check_cancel()?;
            match step {
                Step::None(n) => drop(bands.pass(*n)?),
                Step::All(n, bx) => drop(bands.take(*n, bx)?),
                Step::Open(n, found) => {
                    let end = bands.next + *n as usize;
                    for (tile, hits) in found {
                        // Those before it have no positions.
                        let _ = bands.go_to(*tile)?;
                        let bx = self.tiles.tile(*tile);
                        let mask = hits.mask(bx.len() as usize);
                        bands.add(*tile, bx, mask, None)?;
                    }
                    let _ = bands.go_to(end)?;
                }
            }
        }
        let selection = bands.finish()?;
        if let Some(caught) = &self.caught {
            caught.keep(execution, &selection);
        }
        Ok(selection)
    }

    /// Adds the values that were read at the positions.
    pub(in crate::exec) fn with(self, caught: Option<Catch>) -> Self {
        Self { caught, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_a_tile_are_those_of_its_mask() {
        for n in [1, 63, 64, 1000] {
            for step in [1, 2, 7, 40, 900] {
                let mut mask = Mask::zeros(n);
                (0..n).step_by(step).for_each(|i| mask.set(i));
                let hits = Hits::of(mask.clone(), mask.count()).unwrap();
                assert_eq!(hits.mask(n), mask);
            }
        }
        assert!(Hits::of(Mask::zeros(9), 0).is_none());
    }

    #[test]
    fn what_does_not_fit_is_dropped() {
        let keeping = Keeping::new(4 * TILE_BYTES);
        let mut kept = Vec::new();
        for tile in 0..3 {
            keeping.keep(&mut kept, tile, Mask::ones(8), 8);
            keeping.keep(&mut kept, 100 + tile, Mask::zeros(8), 0);
        }
        assert!(keeping.goes_on() && kept.len() == 3);
        let mut half = Mask::zeros(6400);
        (0..6400).step_by(2).for_each(|i| half.set(i));
        keeping.keep(&mut kept, 3, half, 3200);
        assert!(!keeping.goes_on() && kept.is_empty());
        keeping.keep(&mut kept, 4, Mask::ones(8), 8);
        assert!(kept.is_empty());
    }
}
