//! The positions of tiles put in C order.
//!
//! Tiles that are cut along an inner dimension interleave: those of one band are put together before their positions are
//! handed on.

use sieva_types::{Bx, Error, ErrorKind, PositionBlock, Result, Selection, SelectionBuilder};

use crate::exec::Execution;
use crate::exec::pool::{Flow, check};
use crate::exec::select::{Failure, Held, position};
use crate::mask::Mask;

/// Bytes that a run of positions may take in a selection, about.
const RUN_BYTES: u64 = 16;
/// Runs between two looks at the flag that cancels.
const RUNS: u64 = 1 << 12;

/// The selection of a query, made tile by tile.
pub(in crate::exec) struct Bands<'e> {
    execution: &'e Execution,
    builder: SelectionBuilder,
    /// Tiles of one band.
    band: usize,
    /// The tiles of the band in work that have positions, and the bytes of their masks.
    pending: Vec<(Bx, Mask)>,
    pending_bytes: u64,
    held: Held,
    /// Boxes of the band in work that are selected wholly.
    taken: Vec<Bx>,
    /// What failed first in the band in work.
    failed: Option<Failure>,
    /// The tile that comes next.
    pub(in crate::exec) next: usize,
    /// Positions found, and those of them in bands that are complete.
    found: u64,
    in_bands: u64,
    /// So many positions are enough.
    pub(in crate::exec) enough: Option<u64>,
    /// Whether what fails ends the selection and is no error yet.
    halts: bool,
    /// The number of positions before the one that failed, and what failed there.
    pub(in crate::exec) halted: Option<(u64, Error)>,
}

impl<'e> Bands<'e> {
    /// Nothing yet; `band` consecutive tiles interleave.
    pub(in crate::exec) fn new(
        execution: &'e Execution,
        builder: SelectionBuilder,
        band: usize,
        enough: Option<u64>,
    ) -> Self {
        Self {
            execution,
            builder,
            band: band.max(1),
            pending: Vec::new(),
            pending_bytes: 0,
            held: Held::default(),
            taken: Vec::new(),
            failed: None,
            next: 0,
            found: 0,
            in_bands: 0,
            enough,
            halts: false,
            halted: None,
        }
    }

    /// The same for who needs so many positions.
    pub(in crate::exec) fn until(self, enough: Option<u64>) -> Self {
        Self { enough, ..self }
    }

    /// The same for who may need the positions alone that come before the first one that fails.
    pub(in crate::exec) fn halting(self) -> Self {
        Self { halts: true, enough: Some(u64::MAX), ..self }
    }

    /// Adds the positions of a tile, which must follow those added before, with what failed in it: an error unless there
    /// are enough positions before it.
    pub(in crate::exec) fn add(
        &mut self,
        tile: usize,
        bx: Bx,
        mask: Mask,
        failure: Option<Failure>,
    ) -> Result<()> {
        self.next = tile;
        match failure {
            Some(failure) if self.enough.is_none() => return Err(failure.error),
            Some(failure) if self.failed.as_ref().is_none_or(|f| failure.at < f.at) => {
                self.failed = Some(failure);
            }
            _ => {}
        }
        if mask.none() {
            return Ok(());
        }
        let hits = mask.count();
        self.found += hits;
        self.held.add(hits, mask.len() as u64, &self.builder, &self.execution.options)?;
        self.pending_bytes += mask.len() as u64 / 8;
        self.fits(self.pending_bytes, "the tiles that lie side by side")?;
        self.pending.push((bx, mask));
        Ok(())
    }

    /// Whether blocks of positions may be added: a tile is a band by itself, and all positions are wanted.
    pub(in crate::exec) fn takes_blocks(&self) -> bool {
        self.band == 1 && self.enough.is_none()
    }

    /// Adds the positions of a tile of `n`, which must follow those added before, as a block of the row space.
    pub(in crate::exec) fn add_block(&mut self, tile: usize, n: u64, block: PositionBlock) -> Result<()> {
        self.next = tile;
        self.found += block.count();
        self.held.add(block.count(), n, &self.builder, &self.execution.options)?;
        self.builder.push_block(block)
    }

    /// Says that all tiles before `next` were added or have no positions: a band that is complete is put in order.
    pub(in crate::exec) fn go_to(&mut self, next: usize) -> Result<Flow> {
        let is_same = next / self.band == self.next / self.band;
        self.next = next;
        if is_same {
            return Ok(Flow::Continue(()));
        }
        if let Some(failure) = self.failed.take() {
            // Other tiles of the band may hold rows before it.
            let before = self.before(failure.at);
            if self.enough.is_none_or(|n| self.in_bands + before < n) {
                if !self.halts {
                    return Err(failure.error);
                }
                self.halted = Some((self.in_bands + before, failure.error));
                self.flush()?;
                return Ok(Flow::Break(()));
            }
        }
        self.taken.clear();
        self.in_bands = self.found;
        self.flush()?;
        Ok(self.flow())
    }

    /// Passes over so many tiles without positions.
    pub(in crate::exec) fn pass(&mut self, tiles: u64) -> Result<Flow> {
        self.go_to(self.next + tiles as usize)
    }

    /// Adds all positions of the next tiles, which make up the box `bx`.
    pub(in crate::exec) fn take(&mut self, tiles: u64, bx: &Bx) -> Result<Flow> {
        // Positions may come in any order, so that those of a band in work may wait.
        let whole_bands = self.next.is_multiple_of(self.band) && (tiles as usize).is_multiple_of(self.band);
        let enough = self.enough.filter(|_| whole_bands).map_or(u64::MAX, |n| n.saturating_sub(self.found));
        self.found = self.found.saturating_add(self.push_box(bx, enough)?);
        if self.enough.is_some() {
            self.taken.push(bx.clone());
        }
        self.pass(tiles)
    }

    /// The selection.
    pub(in crate::exec) fn finish(mut self) -> Result<Selection> {
        self.flush()?;
        Ok(self.builder.finish())
    }

    /// The number of selected positions of the band in work before a position of the row space.
    fn before(&self, at: u64) -> u64 {
        let shape = &self.execution.bound.rows.shape;
        let of_mask = |(bx, mask): &(Bx, Mask)| {
            mask.ones_iter().take_while(|&i| position(shape, bx, i) < at).count() as u64
        };
        let masks: u64 = self.pending.iter().map(of_mask).sum();
        masks + self.taken.iter().map(|bx| before_in_box(shape, bx, at)).sum::<u64>()
    }

    fn flow(&self) -> Flow {
        if self.enough.is_some_and(|n| self.found >= n) { Flow::Break(()) } else { Flow::Continue(()) }
    }

    fn fits(&self, bytes: u64, what: &str) -> Result<()> {
        let options = &self.execution.options;
        let (most, limit) = (options.room().bytes / 3, options.memory);
        if bytes <= most {
            return Ok(());
        }
        let message = format!("the positions of {what} take {bytes} bytes; {most} of {limit} may be used");
        Err(Error::new(ErrorKind::MemoryLimit, message)
            .hint("raise the limit with --memory (memory= in Python)"))
    }

    /// Adds the positions of a box, run by run, until there are `enough` of them; returns their number.
    fn push_box(&mut self, bx: &Bx, enough: u64) -> Result<u64> {
        let shape = &self.execution.bound.rows.shape;
        let (d, inner) = contiguous(shape, bx);
        let run = if d > 0 { bx.shape[d - 1] * inner } else { inner };
        let runs = bx.len() / run.max(1);
        if runs > 1 {
            self.fits(runs.min(enough.div_ceil(run.max(1))).saturating_mul(RUN_BYTES), "many runs of rows")?;
        }
        let mut pushed = 0;
        for r in 0..runs {
            if r.is_multiple_of(RUNS) {
                check(&self.execution.options.cancel)?;
            }
            self.builder.push_run(place(shape, bx, (d, inner), r), run)?;
            pushed += run;
            if pushed >= enough {
                break;
            }
        }
        Ok(pushed)
    }

    /// Puts the tiles of the band in work together and adds their positions in C order.
    fn flush(&mut self) -> Result<()> {
        let band = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        let shape = &self.execution.bound.rows.shape;
        if let [(bx, mask)] = &band[..] {
            return push_rows(&mut self.builder, shape, bx, mask);
        }
        let Some(bx) = band.iter().map(|(b, _)| b.clone()).reduce(|a, b| around(&a, &b)) else {
            return Ok(());
        };
        self.fits(bx.len() / 8, &format!("{} rows, which must be put in order at once,", bx.len()))?;
        let mut whole = Mask::zeros(bx.len() as usize);
        for (part, mask) in &band {
            crate::exec::tile::prepare::paste(&mut whole, &bx, part, mask);
        }
        push_rows(&mut self.builder, shape, &bx, &whole)
    }
}

/// The number of positions of a box before a position of the row space.
fn before_in_box(shape: &[u64], bx: &Bx, at: u64) -> u64 {
    let (mut rest, mut coords) = (at, vec![0; shape.len()]);
    for d in (0..shape.len()).rev() {
        coords[d] = rest % shape[d];
        rest /= shape[d];
    }
    let mut before = 0;
    for (d, &c) in coords.iter().enumerate() {
        let inner: u64 = bx.shape[d + 1..].iter().product();
        before += c.saturating_sub(bx.start[d]).min(bx.shape[d]) * inner;
        if !(bx.start[d]..bx.end(d)).contains(&c) {
            break;
        }
    }
    before
}

/// The smallest box around two.
fn around(a: &Bx, b: &Bx) -> Bx {
    let start: Vec<u64> = a.start.iter().zip(&b.start).map(|(x, y)| *x.min(y)).collect();
    let shape = (0..a.rank()).map(|d| a.end(d).max(b.end(d)) - start[d]).collect();
    Bx::new(start, shape)
}

/// The axes before those along which a box spans the whole row space, and the positions along the latter: a box is
/// contiguous along the last of the former.
fn contiguous(shape: &[u64], bx: &Bx) -> (usize, u64) {
    let mut inner = 1;
    let mut d = bx.rank();
    while d > 0 && bx.shape[d - 1] == shape[d - 1] {
        d -= 1;
        inner *= shape[d];
    }
    (d, inner)
}

/// Where a box begins that is one run of the row space.
pub(super) fn run_of(shape: &[u64], bx: &Bx) -> Option<u64> {
    let (d, inner) = contiguous(shape, bx);
    let is_run = bx.shape[..d.saturating_sub(1)].iter().all(|&n| n == 1);
    is_run.then(|| place(shape, bx, (d, inner), 0))
}

/// Where the run `r` of a box begins in the row space.
fn place(shape: &[u64], bx: &Bx, (d, inner): (usize, u64), r: u64) -> u64 {
    let (mut rest, mut at, mut stride) = (r, 0, inner);
    for axis in (0..d).rev() {
        let i = if axis + 1 == d { 0 } else { rest % bx.shape[axis] };
        if axis + 1 != d {
            rest /= bx.shape[axis];
        }
        at += (bx.start[axis] + i) * stride;
        stride *= shape[axis];
    }
    at
}

/// Adds the positions of a box in C order: one piece for each run of the box that is contiguous in the row space.
fn push_rows(builder: &mut SelectionBuilder, shape: &[u64], bx: &Bx, mask: &Mask) -> Result<()> {
    let (d, inner) = contiguous(shape, bx);
    let piece = if d > 0 { bx.shape[d - 1] * inner } else { inner };
    for p in 0..mask.len() as u64 / piece.max(1) {
        let at = place(shape, bx, (d, inner), p);
        if piece == mask.len() as u64 {
            builder.push_bits(at, mask.words(), piece)?;
        } else {
            let mut part = Mask::zeros(piece as usize);
            part.or_range(0, mask, (p * piece) as usize, piece as usize);
            if !part.none() {
                builder.push_bits(at, part.words(), piece)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_a_box_are_counted_as_they_come() {
        let (shape, bx) = ([4, 5, 6], Bx::new(vec![1, 2, 1], vec![2, 3, 4]));
        for at in 0..120 {
            let slow = (0..24).filter(|&i| position(&shape, &bx, i) < at).count() as u64;
            assert_eq!(before_in_box(&shape, &bx, at), slow, "{at}");
        }
    }

    #[test]
    fn runs_of_a_box_lie_where_its_positions_do() {
        let shape = [4, 5, 6];
        for bx in [
            Bx::new(vec![1, 2, 1], vec![2, 3, 4]),
            Bx::new(vec![1, 2, 0], vec![2, 3, 6]),
            Bx::new(vec![1, 2, 0], vec![1, 3, 6]),
            Bx::new(vec![2, 0, 0], vec![2, 5, 6]),
            Bx::whole(&shape),
        ] {
            let (d, inner) = contiguous(&shape, &bx);
            let run = if d > 0 { bx.shape[d - 1] * inner } else { inner };
            let runs = (0..bx.len() / run).map(|r| place(&shape, &bx, (d, inner), r));
            let all: Vec<u64> = runs.flat_map(|first| first..first + run).collect();
            let slow: Vec<u64> = (0..bx.len() as usize).map(|i| position(&shape, &bx, i)).collect();
            assert_eq!(all, slow);
            assert_eq!(run_of(&shape, &bx), (bx.len() == run).then(|| all[0]));
        }
    }
}
