//! Boxes of one array that several consumers want, as boxes without overlap.
//!
//! Section V.B merges ranges (DR4) by their start positions; this is the same in any number of dimensions: a sweep along
//! the first dimension, at each step of which those that are open are swept along the next one. Neighbours that the same
//! consumers want are one cell again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use sieva_types::{Bx, Error, ErrorKind, Result};

/// A box, and who wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The number of the consumer; it may want several.
    pub who: u32,
    /// What it wants.
    pub region: Bx,
}

/// A box that is wanted by some consumers as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Where.
    pub region: Bx,
    /// Who wants it, in order, each once; cells of the same consumers share the list.
    pub who: Arc<[u32]>,
}

/// How much may come of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most cells before neighbours are united: memory is at most in proportion to it, time also to the boxes that are
    /// open at once.
    pub pieces: usize,
    /// The most numbers of consumers in lists that differ.
    pub names: usize,
}

impl Default for Limits {
    /// At most some seconds, and less than a gigabyte.
    fn default() -> Self {
        Self { pieces: 1 << 22, names: 1 << 24 }
    }
}

/// The boxes of one array as cells without overlap: together they are the union, and each is wanted by the same consumers
/// everywhere. Cells come in the order of their starts. Empty boxes want nothing.
///
/// Ranges of one dimension take `n log n` steps and those of writing the lists down.
///
/// # Errors
/// `dimension-mismatch` for boxes of different ranks, `invalid-value` for one that ends beyond 2^64; `memory-limit` for more
/// than the limits.
///
/// ```
/// use sieva_reduce::merge::boxes::{Limits, Wanted, disjoint};
/// use sieva_types::Bx;
///
/// // Positions 0 to 9 of one consumer, and 5 to 14 of another one.
/// let want = |who, start| Wanted { who, region: Bx::new(vec![start], vec![10]) };
/// let cells = disjoint(&[want(1, 0), want(2, 5)], Limits::default())?;
/// let found: Vec<_> = cells.iter().map(|c| (c.region.start[0], c.region.end(0), c.who.to_vec())).collect();
/// assert_eq!(found, [(0, 5, vec![1]), (5, 10, vec![1, 2]), (10, 15, vec![2])]);
/// # Ok::<(), sieva_types::Error>(())
/// ```
pub fn disjoint(wanted: &[Wanted], limits: Limits) -> Result<Vec<Cell>> {
    let rank = wanted.first().map_or(0, |w| w.region.rank());
    for w in wanted {
        check(w, rank)?;
    }
    let mut sweep =
        Sweep { wanted, rank, limits, pieces: 0, names: 0, lists: Vec::new(), known: HashMap::new() };
    let all: Vec<u32> =
        (0..count(wanted.len())?).filter(|&i| !wanted[i as usize].region.is_empty()).collect();
    if all.is_empty() {
        return Ok(Vec::new());
    }
    let mut pieces = sweep.along(0, &all)?;
    pieces.iter_mut().for_each(|p| p.sides.reverse());
    pieces.sort_unstable_by(|a, b| a.sides.iter().map(|s| s.0).cmp(b.sides.iter().map(|s| s.0)));
    let cell = |piece: Piece| {
        let (start, shape) = piece.sides.iter().map(|(a, b)| (*a, b - a)).unzip();
        Cell { region: Bx::new(start, shape), who: sweep.lists[piece.list as usize].clone() }
    };
    Ok(pieces.into_iter().map(cell).collect())
}

fn check(wanted: &Wanted, rank: usize) -> Result<()> {
    let Bx { start, shape } = &wanted.region;
    if start.len() != rank || shape.len() != rank {
        let message =
            format!("boxes of {rank} and of {} dimensions of one array", start.len().max(shape.len()));
        return Err(Error::new(ErrorKind::DimensionMismatch, message));
    }
    if start.iter().zip(shape).any(|(a, n)| a.checked_add(*n).is_none()) {
        let message = format!("a box that ends beyond 2^64: it starts at {start:?} and is {shape:?}");
        return Err(Error::new(ErrorKind::InvalidValue, message));
    }
    Ok(())
}

fn count(n: usize) -> Result<u32> {
    u32::try_from(n).map_err(|_| limit(n, "boxes", u32::MAX as usize))
}

fn limit(n: usize, what: &str, most: usize) -> Error {
    let message = format!("{n} {what} of boxes that overlap, at most {most} are made");
    Error::new(ErrorKind::MemoryLimit, message)
        .hint("share the variable whole, or the boxes of fewer consumers at once")
}

/// A part of a cell: its sides along the dimensions from the last one to that of the sweep, and the number of its list.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Piece {
    sides: Vec<(u64, u64)>,
    list: u32,
}

struct Sweep<'a> {
    wanted: &'a [Wanted],
    rank: usize,
    limits: Limits,
    pieces: usize,
    names: usize,
    lists: Vec<Arc<[u32]>>,
    known: HashMap<Arc<[u32]>, u32>,
}

impl Sweep<'_> {
    /// The parts of these boxes along dimension `d` and those behind it.
    fn along(&mut self, d: usize, boxes: &[u32]) -> Result<Vec<Piece>> {
        if d == self.rank {
            return Ok(vec![Piece { sides: Vec::with_capacity(self.rank), list: self.list(boxes)? }]);
        }
        let mut turns: Vec<(u64, u32)> = Vec::with_capacity(2 * boxes.len());
        for &i in boxes {
            let region = &self.wanted[i as usize].region;
            turns.extend([(region.start[d], i), (region.end(d), i)]);
        }
        turns.sort_unstable();
        let mut open = BTreeSet::new();
        let mut out: Vec<Piece> = Vec::new();
        // Pieces that end where the next ones begin, without their side along this dimension.
        let mut before: HashMap<Piece, usize> = HashMap::new();
        let mut rest = turns.as_slice();
        while let Some(&(here, _)) = rest.first() {
            let n = rest.iter().take_while(|(at, _)| *at == here).count();
            // No box is empty: each comes once where it begins, and later once where it ends.
            for (_, i) in &rest[..n] {
                if !open.insert(*i) {
                    open.remove(i);
                }
            }
            rest = &rest[n..];
            let Some(&(next, _)) = rest.first() else { break };
            let active: Vec<u32> = open.iter().copied().collect();
            let below = if active.is_empty() { Vec::new() } else { self.along(d + 1, &active)? };
            before = unite(below, (here, next), &before, &mut out);
        }
        Ok(out)
    }

    /// The number of the list of who wants these boxes.
    fn list(&mut self, boxes: &[u32]) -> Result<u32> {
        self.pieces += 1;
        if self.pieces > self.limits.pieces {
            return Err(limit(self.pieces, "parts", self.limits.pieces));
        }
        let mut who: Vec<u32> = boxes.iter().map(|&i| self.wanted[i as usize].who).collect();
        who.sort_unstable();
        who.dedup();
        if let Some(&known) = self.known.get(who.as_slice()) {
            return Ok(known);
        }
        self.names += who.len();
        if self.names > self.limits.names {
            return Err(limit(self.names, "names of consumers", self.limits.names));
        }
        let number = count(self.lists.len())?;
        let who: Arc<[u32]> = who.into();
        self.lists.push(who.clone());
        self.known.insert(who, number);
        Ok(number)
    }
}

/// Adds the pieces of one step to `out`: those that were there a step before go on. Gives those of this step.
fn unite(
    below: Vec<Piece>,
    (here, next): (u64, u64),
    before: &HashMap<Piece, usize>,
    out: &mut Vec<Piece>,
) -> HashMap<Piece, usize> {
    let mut now = HashMap::with_capacity(below.len());
    for piece in below {
        let place = match before.get(&piece) {
            Some(&place) => {
                if let Some(side) = out[place].sides.last_mut() {
                    side.1 = next;
                }
                place
            }
            None => {
                let mut whole = piece.clone();
                whole.sides.push((here, next));
                out.push(whole);
                out.len() - 1
            }
        };
        now.insert(piece, place);
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn want(who: u32, start: &[u64], shape: &[u64]) -> Wanted {
        Wanted { who, region: Bx::new(start.to_vec(), shape.to_vec()) }
    }

    #[test]
    fn ranks_of_nothing_and_boxes_of_nothing() {
        assert_eq!(disjoint(&[], Limits::default()).unwrap(), []);
        let single =
            disjoint(&[want(3, &[], &[]), want(1, &[], &[]), want(3, &[], &[])], Limits::default()).unwrap();
        assert_eq!(single, [Cell { region: Bx::whole(&[]), who: [1, 3].into() }]);
        let empty = [want(0, &[5, 5], &[0, 9]), want(1, &[0, u64::MAX], &[2, 0])];
        assert_eq!(disjoint(&empty, Limits::default()).unwrap(), []);
    }

    #[test]
    fn what_is_equal_is_one_cell_and_neighbours_of_one_consumer_are_united() {
        let cells =
            disjoint(&[want(0, &[0, 0], &[4, 4]), want(1, &[0, 0], &[4, 4])], Limits::default()).unwrap();
        assert_eq!(cells, [Cell { region: Bx::whole(&[4, 4]), who: [0, 1].into() }]);
        let quarters = [want(0, &[0, 0], &[2, 2]), want(0, &[0, 2], &[2, 2]), want(0, &[2, 0], &[2, 4])];
        assert_eq!(
            disjoint(&quarters, Limits::default()).unwrap(),
            [Cell { region: Bx::whole(&[4, 4]), who: [0].into() }]
        );
        // A cell beside the hole goes on although others of the same step do not.
        let cells =
            disjoint(&[want(0, &[0, 0], &[9, 1]), want(1, &[3, 5], &[1, 1])], Limits::default()).unwrap();
        assert_eq!(cells.len(), 2);
    }

    #[test]
    fn wrong_boxes_and_too_many_are_refused() {
        let e = disjoint(&[want(0, &[0], &[1]), want(0, &[0, 0], &[1, 1])], Limits::default()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::DimensionMismatch);
        let e = disjoint(&[want(0, &[u64::MAX], &[2])], Limits::default()).unwrap_err();
        assert_eq!((e.kind(), e.message().contains("beyond 2^64")), (ErrorKind::InvalidValue, true));
        let nested: Vec<Wanted> = (0..100).map(|i| want(i, &[u64::from(i)], &[1000])).collect();
        for limits in
            [Limits { pieces: 50, ..Limits::default() }, Limits { names: 1000, ..Limits::default() }]
        {
            let e = disjoint(&nested, limits).unwrap_err();
            assert_eq!((e.kind(), e.hint_text().is_some()), (ErrorKind::MemoryLimit, true));
        }
    }

    #[test]
    fn ranges_by_the_ten_thousands_are_no_more_cells_than_ends() {
        let wanted: Vec<Wanted> = (0..50_000).map(|i| want(i, &[u64::from(i) * 7], &[20])).collect();
        let cells = disjoint(&wanted, Limits::default()).unwrap();
        assert!(cells.len() < 100_000, "{}", cells.len());
        assert!(cells.windows(2).all(|w| w[0].region.end(0) <= w[1].region.start[0]));
        assert_eq!(cells.iter().map(|c| c.region.len()).sum::<u64>(), 49_999 * 7 + 20);
    }

    fn drawn() -> impl Strategy<Value = (usize, Vec<Wanted>)> {
        (0_usize..4).prop_flat_map(|rank| {
            let side = proptest::collection::vec((0_u64..6, 0_u64..5), rank);
            let one = (0_u32..5, side).prop_map(|(who, sides)| {
                let (start, shape) = sides.into_iter().unzip();
                Wanted { who, region: Bx::new(start, shape) }
            });
            (Just(rank), proptest::collection::vec(one, 0..12))
        })
    }

    /// Who wants each position of a grid that holds all boxes.
    fn grid(rank: usize, wanted: &[Wanted]) -> HashMap<Vec<u64>, Vec<u32>> {
        let mut all = HashMap::new();
        for number in 0..11_u64.pow(rank as u32) {
            let at: Vec<u64> = (0..rank).map(|d| number / 11_u64.pow(d as u32) % 11).collect();
            let one = Bx::new(at.clone(), vec![1; rank]);
            let mut who: Vec<u32> =
                wanted.iter().filter(|w| w.region.contains(&one)).map(|w| w.who).collect();
            who.sort_unstable();
            who.dedup();
            if !who.is_empty() {
                all.insert(at, who);
            }
        }
        all
    }

    proptest! {
        #[test]
        fn cells_are_the_union_each_position_once_with_all_who_want_it((rank, wanted) in drawn()) {
            let cells = disjoint(&wanted, Limits::default()).unwrap();
            let expected = grid(rank, &wanted);
            let mut seen: HashMap<Vec<u64>, Vec<u32>> = HashMap::new();
            for cell in &cells {
                prop_assert!(!cell.region.is_empty());
                for at in expected.keys().filter(|at| {
                    cell.region.contains(&Bx::new((*at).clone(), vec![1; rank]))
                }) {
                    prop_assert!(seen.insert(at.clone(), cell.who.to_vec()).is_none(), "{at:?} twice");
                }
            }
            prop_assert_eq!(&seen, &expected);
            // Nothing beyond the union.
            prop_assert_eq!(cells.iter().map(|c| c.region.len()).sum::<u64>(), expected.len() as u64);
            prop_assert!(cells.is_sorted_by(|a, b| a.region.start < b.region.start || rank == 0));
        }
    }
}
