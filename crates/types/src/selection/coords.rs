//! From linear positions to coordinates.

use super::set::PositionSet;
use super::walk::{Chunk, Runs, Walker};
use crate::{Bx, Error, ErrorKind, Result};

/// The coordinates of C-order linear `positions` in an array of `shape`: row-major, `shape.len()` numbers for each.
///
/// Divides only where it must: increasing positions of one row, or of two neighbouring rows, are counted through.
pub fn unravel(positions: &[u64], shape: &[u64]) -> Vec<i64> {
    let rank = shape.len();
    let mut out = vec![0; positions.len() * rank];
    if rank > 0 {
        let mut at = Unraveler::new(shape);
        for (to, &p) in out.chunks_exact_mut(rank).zip(positions) {
            at.write(p, to);
        }
    }
    out
}

/// The C-order linear position of coordinates in a row space, whose extent is known to fit.
///
/// # Errors
/// `invalid-value` outside of it.
pub(super) fn ravel(at: &[u64], shape: &[u64]) -> Result<u64> {
    let mut position = 0;
    for (&i, &n) in at.iter().zip(shape) {
        if i >= n {
            let message = format!("coordinates {at:?} do not lie in rows of shape {shape:?}");
            return Err(
                Error::new(ErrorKind::InvalidValue, message).hint("they count from 0 along each dimension")
            );
        }
        position = position * n + i;
    }
    Ok(position)
}

/// Tells start and length of each run of linear positions that a box is made of, in increasing order.
///
/// # Errors
/// `dimension-mismatch`, `invalid-value` for a box that does not lie in the row space; those of `run`.
pub(super) fn for_runs(bx: &Bx, shape: &[u64], mut run: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
    let rank = shape.len();
    if bx.start.len() != rank || bx.shape.len() != rank {
        let message = format!("a box of rank {} in rows of shape {shape:?}", bx.start.len());
        return Err(Error::new(ErrorKind::DimensionMismatch, message));
    }
    let lies = (0..rank).all(|d| bx.start[d].checked_add(bx.shape[d]).is_some_and(|end| end <= shape[d]));
    if !lies {
        let message = format!("a box from {:?} of shape {:?} in rows of shape {shape:?}", bx.start, bx.shape);
        return Err(Error::new(ErrorKind::InvalidValue, message).hint("boxes lie wholly in the rows"));
    }
    if bx.shape.contains(&0) {
        return Ok(());
    }
    // The last dimensions that the box covers wholly, and the one before them, make one run.
    let whole = (0..rank).rev().take_while(|&d| bx.shape[d] == shape[d]).count();
    let outer = rank.saturating_sub(whole + 1);
    let len: u64 = bx.shape[outer..].iter().product();
    let mut at = bx.start.clone();
    loop {
        run(ravel(&at, shape)?, len)?;
        let Some(d) = (0..outer).rev().find(|&d| at[d] + 1 < bx.start[d] + bx.shape[d]) else {
            return Ok(());
        };
        at[d] += 1;
        at[d + 1..outer].copy_from_slice(&bx.start[d + 1..outer]);
    }
}

/// Writes the coordinates of all positions of `set` to `out`, which has room for exactly these.
pub(super) fn fill_coords(set: &PositionSet, shape: &[u64], mut out: &mut [i64]) {
    let rank = shape.len();
    if rank == 0 {
        return;
    }
    let mut at = Unraveler::new(shape);
    let mut walker = Walker::new(set);
    while let Some(chunk) = walker.next_chunk(u64::MAX) {
        let n = match &chunk {
            Chunk::Run { len, .. } => *len as usize,
            Chunk::List { lows, .. } => lows.len(),
        };
        let (here, rest) = std::mem::take(&mut out).split_at_mut(n * rank);
        match chunk {
            Chunk::Run { start, .. } => at.write_run(start, here),
            // A position is its coordinate: nothing is looked up.
            Chunk::List { base, lows } if rank == 1 => {
                here.iter_mut().zip(lows).for_each(|(to, &low)| *to = (base + u64::from(low)) as i64);
            }
            Chunk::List { base, lows } => {
                for (to, &low) in here.chunks_exact_mut(rank).zip(lows) {
                    at.write(base + u64::from(low), to);
                }
            }
        }
        out = rest;
    }
}

/// The smallest box around all positions of `set`; `None` if there is none.
pub(super) fn bounding_box(set: &PositionSet, shape: &[u64]) -> Option<Bx> {
    let (min, max) = (set.select(0)?, set.max()?);
    let rank = shape.len();
    if rank == 0 {
        return Some(Bx::whole(shape));
    }
    let mut at = Unraveler::new(shape);
    let (mut lo, mut hi) = (vec![i64::MAX; rank], vec![0; rank]);
    let (mut a, mut b) = (vec![0; rank], vec![0; rank]);
    for (start, len) in Runs::new(set) {
        at.write(start, &mut a);
        at.write(start + len - 1, &mut b);
        let turn = (0..rank).find(|&d| a[d] != b[d]).unwrap_or(rank);
        for d in 0..rank {
            // After the first dimension along which a run moves it passes both ends of every other.
            let (from, to) = if d <= turn { (a[d], b[d]) } else { (0, shape[d] as i64 - 1) };
            lo[d] = lo[d].min(from);
            hi[d] = hi[d].max(to);
        }
        if (1..rank).all(|d| lo[d] == 0 && hi[d] + 1 == shape[d] as i64) {
            break;
        }
    }
    // In C order the ends of the first dimension are known from the start, which is why the loop may stop early.
    lo[0] = (min / at.strides[0]) as i64;
    hi[0] = (max / at.strides[0]) as i64;
    let extents = lo.iter().zip(&hi).map(|(l, h)| (h - l + 1) as u64).collect();
    Some(Bx::new(lo.into_iter().map(|l| l as u64).collect(), extents))
}

/// Turns positions into coordinates; remembers the row (along the last dimension) it is in.
struct Unraveler<'a> {
    shape: &'a [u64],
    /// Positions per step along each dimension.
    strides: Vec<u64>,
    /// The coordinates of the row's first position, the last of which is 0.
    row: Vec<i64>,
    row_start: u64,
    row_len: u64,
}

impl<'a> Unraveler<'a> {
    /// `shape` is not empty.
    fn new(shape: &'a [u64]) -> Self {
        let rank = shape.len();
        let mut strides = vec![1u64; rank];
        for d in (0..rank - 1).rev() {
            // An extent of 0 leaves no position to turn; 1 in its place keeps the division defined.
            strides[d] = strides[d + 1].saturating_mul(shape[d + 1]).max(1);
        }
        // A single dimension is one row that nothing lies beyond.
        let row_len = if rank == 1 { u64::MAX } else { shape[rank - 1].max(1) };
        Self { shape, strides, row: vec![0; rank], row_start: 0, row_len }
    }

    /// Goes to the row of `p`, and says where in it `p` is.
    #[inline]
    fn enter(&mut self, p: u64) -> u64 {
        if p >= self.row_start && p - self.row_start < self.row_len {
            return p - self.row_start;
        }
        if p >= self.row_start && (p - self.row_start) / 2 < self.row_len / 2 {
            self.next_row();
        } else {
            self.locate(p);
        }
        p - self.row_start
    }

    fn next_row(&mut self) {
        self.row_start += self.row_len;
        for d in (0..self.shape.len() - 1).rev() {
            self.row[d] += 1;
            if d == 0 || (self.row[d] as u64) < self.shape[d] {
                break;
            }
            self.row[d] = 0;
        }
    }

    fn locate(&mut self, p: u64) {
        let last = self.shape.len() - 1;
        let mut rest = p;
        for (c, stride) in self.row[..last].iter_mut().zip(&self.strides) {
            *c = (rest / stride) as i64;
            rest %= stride;
        }
        self.row_start = p - rest;
    }

    /// Writes the coordinates of `p`.
    #[inline]
    fn write(&mut self, p: u64, to: &mut [i64]) {
        let in_row = self.enter(p);
        if let Some((last, leading)) = to.split_last_mut() {
            for (c, r) in leading.iter_mut().zip(&self.row) {
                *c = *r;
            }
            *last = in_row as i64;
        }
    }

    /// Writes the coordinates of the positions from `start` on until `out` is full.
    fn write_run(&mut self, mut start: u64, mut out: &mut [i64]) {
        let rank = self.shape.len();
        while !out.is_empty() {
            let in_row = self.enter(start);
            let n = (self.row_len - in_row).min((out.len() / rank) as u64) as usize;
            let (here, rest) = std::mem::take(&mut out).split_at_mut(n * rank);
            fill_row(&self.row[..rank - 1], in_row as i64, here);
            start += n as u64;
            out = rest;
        }
    }
}

/// Writes consecutive positions of one row.
fn fill_row(leading: &[i64], first: i64, out: &mut [i64]) {
    match *leading {
        [] => count_up(out, first, |last| [last]),
        [a] => count_up(out, first, |last| [a, last]),
        [a, b] => count_up(out, first, |last| [a, b, last]),
        [a, b, c] => count_up(out, first, |last| [a, b, c, last]),
        _ => {
            for (to, last) in out.chunks_exact_mut(leading.len() + 1).zip(first..) {
                to[..leading.len()].copy_from_slice(leading);
                to[leading.len()] = last;
            }
        }
    }
}

fn count_up<const N: usize>(out: &mut [i64], first: i64, point: impl Fn(i64) -> [i64; N]) {
    for (to, last) in out.chunks_exact_mut(N).zip(first..) {
        to.copy_from_slice(&point(last));
    }
}
