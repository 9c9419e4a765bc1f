//! The arrays of a tile as several queries want them: read once, whoever asks first.
//!
//! Queries of different boxes want different parts of a tile. What two of them want is read as the box around both where
//! that is no more than both by themselves (the first step of HiLa: Liu et al., section IV.B, Algorithm 1), and each is
//! given its part.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sieva_types::{Buffer, Bx, Result};

/// What was asked of shelves, and what was read for it.
#[derive(Debug, Default)]
pub struct Shares {
    asked: AtomicU64,
    asked_bytes: AtomicU64,
    read: AtomicU64,
    read_bytes: AtomicU64,
}

/// The same at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shared {
    /// Boxes of arrays that queries asked for while tiles were evaluated.
    pub asked: u64,
    /// Bytes of their elements.
    pub asked_bytes: u64,
    /// Boxes that were read for them.
    pub read: u64,
    /// Bytes of their elements.
    pub read_bytes: u64,
}

impl Shares {
    /// The numbers now.
    pub fn snapshot(&self) -> Shared {
        let load = |n: &AtomicU64| n.load(Relaxed);
        Shared {
            asked: load(&self.asked),
            asked_bytes: load(&self.asked_bytes),
            read: load(&self.read),
            read_bytes: load(&self.read_bytes),
        }
    }
}

/// What one query may ask of a tile: its box of the row space, and the arrays of the schema.
pub(in crate::exec) struct Wish {
    pub(in crate::exec) bx: Bx,
    pub(in crate::exec) arrays: Arc<[usize]>,
}

/// A box of an array that is asked for.
pub(in crate::exec) struct Piece<'p> {
    /// The array in the schema.
    pub(in crate::exec) array: usize,
    /// The axes of the row space that it varies along.
    pub(in crate::exec) axes: &'p [usize],
    /// The box, of its own axes.
    pub(in crate::exec) own: &'p Bx,
    /// Bytes of an element as it is read.
    pub(in crate::exec) size: usize,
}

/// A box that was read, or a part of one.
struct Held {
    array: usize,
    bx: Bx,
    buffer: Arc<Buffer>,
    /// Whether it may serve the next tile as well: it does not vary along all axes.
    is_low: bool,
    is_used: bool,
}

/// The shelf of one worker, of which each of its queries takes.
#[derive(Clone)]
pub(in crate::exec) struct Shelf(Arc<Mutex<Inner>>);

struct Inner {
    rank: usize,
    wishes: Vec<Wish>,
    /// Whether all wishes are of one box.
    is_uniform: bool,
    held: Vec<Held>,
    spare: Vec<Buffer>,
    shares: Arc<Shares>,
}

impl Shelf {
    /// An empty one, for tiles of a row space of so many axes.
    pub(in crate::exec) fn new(rank: usize, shares: &Arc<Shares>) -> Self {
        let (wishes, held, spare) = (Vec::new(), Vec::new(), Vec::new());
        let inner = Inner { rank, wishes, is_uniform: true, held, spare, shares: Arc::clone(shares) };
        Self(Arc::new(Mutex::new(inner)))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on to a tile of which queries may ask this.
    pub(in crate::exec) fn begin(&self, wishes: Vec<Wish>) {
        let mut inner = self.lock();
        let held = std::mem::take(&mut inner.held);
        inner.spare.clear();
        for mut piece in held {
            if piece.is_low && piece.is_used {
                piece.is_used = false;
                inner.held.push(piece);
            } else if let Some(buffer) = Arc::into_inner(piece.buffer) {
                inner.spare.push(buffer);
            }
        }
        inner.is_uniform = wishes.windows(2).all(|w| w[0].bx == w[1].bx);
        inner.wishes = wishes;
    }

    /// Whether a box is there without reading.
    pub(in crate::exec) fn holds(&self, array: usize, own: &Bx) -> bool {
        self.lock().held.iter().any(|h| h.array == array && h.bx.contains(own))
    }

    /// The elements of a box, read by `read` unless they are there; and whether they were read.
    ///
    /// # Errors
    /// Those of `read` of the box itself: what is read of it for others must not fail it.
    pub(in crate::exec) fn take(
        &self,
        piece: &Piece<'_>,
        mut read: impl FnMut(&Bx, &mut Buffer) -> Result<()>,
    ) -> Result<(Arc<Buffer>, bool)> {
        let mut inner = self.lock();
        let bytes = |bx: &Bx| bx.len().saturating_mul(piece.size as u64);
        inner.shares.asked.fetch_add(1, Relaxed);
        inner.shares.asked_bytes.fetch_add(bytes(piece.own), Relaxed);
        if let Some(found) = inner.find(piece) {
            return Ok((found, false));
        }
        let wide = inner.around(piece);
        if wide != *piece.own {
            let mut buffer = inner.spare.pop().unwrap_or_default();
            // What cannot be read for all of them is read for each by itself.
            if read(&wide, &mut buffer).is_ok() {
                inner.keep(piece, wide, buffer);
            }
        }
        if let Some(found) = inner.find(piece) {
            return Ok((found, true));
        }
        let mut buffer = inner.spare.pop().unwrap_or_default();
        read(piece.own, &mut buffer)?;
        Ok((inner.keep(piece, piece.own.clone(), buffer), true))
    }
}

impl Inner {
    /// The elements of a box, if they are there.
    fn find(&mut self, piece: &Piece<'_>) -> Option<Arc<Buffer>> {
        let mut of_array = self.held.iter_mut().filter(|h| h.array == piece.array);
        if let Some(same) = of_array.find(|h| h.bx == *piece.own) {
            same.is_used = true;
            return Some(Arc::clone(&same.buffer));
        }
        let around = self.held.iter().find(|h| h.array == piece.array && h.bx.contains(piece.own))?;
        let mut part = self.spare.pop().unwrap_or_default();
        cut(&around.buffer, &around.bx, piece.own, piece.size, &mut part);
        Some(self.put(piece, piece.own.clone(), part))
    }

    /// The box that is read where one is asked for: with those of other queries that overlap with it, as far as reading them
    /// together is reading no more.
    fn around(&self, piece: &Piece<'_>) -> Bx {
        let mut bx = piece.own.clone();
        if self.is_uniform {
            return bx;
        }
        let of = |wish: &Wish| {
            let along = |v: &[u64]| piece.axes.iter().map(|&a| v[a]).collect();
            Bx::new(along(&wish.bx.start), along(&wish.bx.shape))
        };
        let wants = self.wishes.iter().filter(|w| w.arrays.contains(&piece.array));
        let mut others: Vec<Bx> = wants.map(of).filter(|other| other != piece.own).collect();
        // Each that is taken in may reach others.
        while let Some(i) = others
            .iter()
            .position(|other| bx.intersect(other).is_some_and(|i| !i.is_empty()) && saves(&bx, other))
        {
            bx = hull(&bx, &others.swap_remove(i));
        }
        bx
    }

    /// Holds a box that was read.
    fn keep(&mut self, piece: &Piece<'_>, bx: Bx, buffer: Buffer) -> Arc<Buffer> {
        self.shares.read.fetch_add(1, Relaxed);
        self.shares.read_bytes.fetch_add(bx.len().saturating_mul(piece.size as u64), Relaxed);
        self.put(piece, bx, buffer)
    }

    fn put(&mut self, piece: &Piece<'_>, bx: Bx, buffer: Buffer) -> Arc<Buffer> {
        let (buffer, is_low) = (Arc::new(buffer), bx.rank() < self.rank);
        let held = Held { array: piece.array, bx, buffer: Arc::clone(&buffer), is_low, is_used: true };
        self.held.push(held);
        buffer
    }
}

/// Whether the box around two takes no more than both.
fn saves(a: &Bx, b: &Bx) -> bool {
    hull(a, b).len() <= a.len().saturating_add(b.len())
}

/// The smallest box around two.
pub(super) fn hull(a: &Bx, b: &Bx) -> Bx {
    let start: Vec<u64> = a.start.iter().zip(&b.start).map(|(x, y)| *x.min(y)).collect();
    let shape = (0..a.rank()).map(|d| a.end(d).max(b.end(d)) - start[d]).collect();
    Bx::new(start, shape)
}

/// Copies the elements of the box `part` out of those of the box `whole`, which contains it.
fn cut(from: &Buffer, whole: &Bx, part: &Bx, size: usize, to: &mut Buffer) {
    to.resize(part.len() as usize * size);
    let rank = part.rank();
    let run = part.shape.last().map_or(1, |&n| n as usize) * size;
    let mut at: Vec<u64> = part.start.clone();
    for target in to.bytes_mut()[..part.len() as usize * size].chunks_exact_mut(run.max(1)) {
        let place = (0..rank).fold(0, |n, d| n * whole.shape[d] + at[d] - whole.start[d]) as usize * size;
        target.copy_from_slice(&from.bytes()[place..place + run]);
        for d in (0..rank.saturating_sub(1)).rev() {
            at[d] += 1;
            if at[d] < part.end(d) {
                break;
            }
            at[d] = part.start[d];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bx(start: &[u64], shape: &[u64]) -> Bx {
        Bx::new(start.to_vec(), shape.to_vec())
    }

    /// Fills a box of an array of shape (8, 10) with the positions of its elements.
    fn positions(bx: &Bx, out: &mut Buffer) -> Result<()> {
        let all: Vec<u64> = (bx.start[0]..bx.end(0))
            .flat_map(|y| (bx.start[1]..bx.end(1)).map(move |x| 10 * y + x))
            .collect();
        out.resize(8 * all.len());
        out.as_mut_slice::<u64>()[..all.len()].copy_from_slice(&all);
        Ok(())
    }

    fn wish(bx: &Bx, arrays: &[usize]) -> Wish {
        Wish { bx: bx.clone(), arrays: arrays.into() }
    }

    #[test]
    fn boxes_that_overlap_are_read_once() {
        let shares = Arc::new(Shares::default());
        let shelf = Shelf::new(2, &shares);
        let boxes =
            [bx(&[0, 0], &[4, 10]), bx(&[2, 0], &[4, 10]), bx(&[7, 3], &[1, 2]), bx(&[2, 0], &[4, 10])];
        shelf.begin(boxes.iter().map(|b| wish(b, &[3])).collect());
        let mut read = Vec::new();
        for own in &boxes {
            let piece = Piece { array: 3, axes: &[0, 1], own, size: 8 };
            let (found, _) = shelf
                .take(&piece, |bx, out| {
                    read.push(bx.clone());
                    positions(bx, out)
                })
                .unwrap();
            let mut want = Buffer::default();
            positions(own, &mut want).unwrap();
            let n = own.len() as usize;
            assert_eq!(found.as_slice::<u64>()[..n], want.as_slice::<u64>()[..n]);
            assert!(shelf.holds(3, own) && !shelf.holds(4, own));
        }
        assert_eq!(read, [bx(&[0, 0], &[6, 10]), bx(&[7, 3], &[1, 2])]);
        let did = Shared { asked: 4, asked_bytes: 8 * 122, read: 2, read_bytes: 8 * 62 };
        assert_eq!(shares.snapshot(), did);
    }

    #[test]
    fn boxes_of_which_more_would_be_read_stay_apart() {
        let shelf = Shelf::new(2, &Arc::default());
        let (a, b) = (bx(&[0, 0], &[8, 1]), bx(&[0, 0], &[1, 10]));
        shelf.begin(vec![wish(&a, &[0]), wish(&b, &[0]), wish(&bx(&[0, 0], &[8, 10]), &[1])]);
        for own in [&a, &b] {
            let piece = Piece { array: 0, axes: &[0, 1], own, size: 8 };
            let mut read = Vec::new();
            shelf
                .take(&piece, |bx, out| {
                    read.push(bx.clone());
                    positions(bx, out)
                })
                .unwrap();
            assert_eq!(read, std::slice::from_ref(own));
        }
    }

    #[test]
    fn what_fails_for_others_does_not_fail_for_one() {
        let shelf = Shelf::new(2, &Arc::default());
        let (a, b) = (bx(&[0, 0], &[4, 10]), bx(&[2, 0], &[4, 10]));
        shelf.begin(vec![wish(&a, &[0]), wish(&b, &[0])]);
        let read = |own: &Bx| {
            shelf.take(&Piece { array: 0, axes: &[0, 1], own, size: 8 }, |bx, out| {
                if bx.end(0) > 5 { Err(sieva_types::Error::corrupt("row 5")) } else { positions(bx, out) }
            })
        };
        assert_eq!(read(&a).unwrap().0.as_slice::<u64>()[39], 39);
        assert_eq!(read(&b).unwrap_err().message(), "row 5");
        assert!(!read(&a).unwrap().1);
    }

    #[test]
    fn what_varies_along_fewer_axes_serves_the_next_tile() {
        let shelf = Shelf::new(3, &Arc::default());
        let own = bx(&[1, 2], &[3, 4]);
        let mut reads = 0;
        for tile in 0..3 {
            shelf.begin(Vec::new());
            let piece = Piece { array: 0, axes: &[1, 2], own: &own, size: 8 };
            let read = shelf.take(&piece, |bx, out| {
                reads += 1;
                positions(bx, out)
            });
            assert_eq!(read.unwrap().1, tile == 0);
        }
        assert_eq!(reads, 1);
        shelf.begin(Vec::new());
        shelf.begin(Vec::new());
        assert!(!shelf.holds(0, &own));
    }
}
