//! The tiles of a query in windows: so many at once that judging and sharing them out costs little, and never all of them,
//! as a file of few bytes may declare more tiles than any list holds.
//!
//! Blocks of tiles of which all or nothing is known to be selected (never-written chunks, zone maps, masks) are passed over
//! as a whole.

use sieva_index::stats::Verdict;
use sieva_types::Bx;

use crate::exec::Execution;
use crate::exec::access_path::zone_map::Candidate;
use crate::exec::tile::prepare::Prepared;
use crate::exec::tile::{Block, Tiles};

/// Tiles of a window, at most; blocks of more of which nothing or all is selected are windows of their own.
pub(crate) const WINDOW: u64 = 1 << 14;

/// So many are judged each by itself.
const FEW: u64 = 16;
/// Of blocks of a window that are halved again and again, one in so many generations is judged.
const JUDGED: u32 = 3;

/// Consecutive tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    /// So many of which nothing is selected.
    None(u64),
    /// Tiles from this one on, so many, that are selected wholly, and their box.
    All(usize, u64, Bx),
    /// So many, and those of them of which something may be selected.
    Open(u64, Vec<Candidate>),
}

impl Window {
    /// The number of its tiles.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::None(n) | Self::All(_, n, _) | Self::Open(n, _) => *n,
        }
    }

    /// The number of its tiles of which nothing is selected.
    pub(crate) fn skipped(&self) -> u64 {
        match self {
            Self::None(n) => *n,
            Self::All(..) => 0,
            Self::Open(n, candidates) => n - candidates.len() as u64,
        }
    }
}

/// The windows of some tiles, in order.
pub(crate) struct Windows<'t, F, W> {
    tiles: &'t Tiles,
    judge: F,
    /// Whether a block that is selected wholly is to be one window.
    is_whole: W,
    /// What is still to come, the next at the end.
    blocks: Vec<Block>,
}

impl<'t, F: FnMut(&Bx) -> Verdict, W: FnMut(&Bx) -> bool> Windows<'t, F, W> {
    /// The windows of `tiles`; `judge` tells what is known of a box without reading. A block that is selected wholly is cut
    /// on until `is_whole`.
    pub(crate) fn new(tiles: &'t Tiles, judge: F, is_whole: W) -> Self {
        Self { tiles, judge, is_whole, blocks: tiles.whole().into_iter().collect() }
    }

    /// The number of tiles that are still to come.
    pub(crate) fn left(&self) -> u64 {
        self.blocks.iter().map(Block::len).sum()
    }

    /// The tiles of a block, judged in halves until there are few, then each by itself: what is known of a block may be
    /// cheap to ask once, and dear for each of its tiles.
    fn open(&mut self, block: &Block) -> Window {
        let mut candidates = Vec::new();
        let mut parts = vec![(block.clone(), 0_u32)];
        while let Some((part, depth)) = parts.pop() {
            let is_cut = part.len() > FEW;
            let is_judged = is_cut && depth.is_multiple_of(JUDGED);
            let verdict = if is_judged { (self.judge)(&self.tiles.bx_of(&part)) } else { Verdict::Some };
            let first = self.tiles.first_of(&part);
            let tiles = first..first + part.len() as usize;
            match (verdict, part.halves()) {
                (Verdict::None, _) => {}
                (Verdict::All, _) => candidates.extend(tiles.map(|tile| Candidate { tile, all: true })),
                (Verdict::Some, Some((first, second))) if is_cut => {
                    parts.extend([(second, depth + 1), (first, depth + 1)]);
                }
                (Verdict::Some, _) => {
                    for tile in tiles {
                        match (self.judge)(&self.tiles.tile(tile)) {
                            Verdict::None => {}
                            verdict => candidates.push(Candidate { tile, all: verdict == Verdict::All }),
                        }
                    }
                }
            }
        }
        Window::Open(block.len(), candidates)
    }
}

impl<F: FnMut(&Bx) -> Verdict, W: FnMut(&Bx) -> bool> Iterator for Windows<'_, F, W> {
    type Item = Window;

    fn next(&mut self) -> Option<Window> {
        loop {
            let block = self.blocks.pop()?;
            if block.len() <= WINDOW {
                return Some(self.open(&block));
            }
            let bx = self.tiles.bx_of(&block);
            match (self.judge)(&bx) {
                Verdict::None => return Some(Window::None(block.len())),
                Verdict::All if (self.is_whole)(&bx) => {
                    return Some(Window::All(self.tiles.first_of(&block), block.len(), bx));
                }
                _ => {
                    // More than one tile, so it has halves.
                    let (first, second) = block.halves()?;
                    self.blocks.extend([second, first]);
                }
            }
        }
    }
}

impl Execution {
    /// The tiles that may hold selected positions, in windows.
    pub(crate) fn windows<'a>(
        &'a self,
        prepared: &'a Prepared,
        tiles: &'a Tiles,
    ) -> Windows<'a, impl FnMut(&Bx) -> Verdict + 'a, impl FnMut(&Bx) -> bool> {
        self.windows_where(prepared, tiles, |_| true)
    }

    /// As [`Execution::windows`], where blocks that are selected wholly are of use only as far as `is_whole`.
    pub(crate) fn windows_where<'a, W: FnMut(&Bx) -> bool>(
        &'a self,
        prepared: &'a Prepared,
        tiles: &'a Tiles,
        is_whole: W,
    ) -> Windows<'a, impl FnMut(&Bx) -> Verdict + 'a, W> {
        Windows::new(tiles, |bx| self.foresee(&prepared.node, bx), is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the tiles that may be selected, and of those that are wholly.
    fn run(tiles: &Tiles, judge: impl FnMut(&Bx) -> Verdict) -> (Vec<usize>, u64, u64) {
        let (mut open, mut at, mut whole) = (Vec::new(), 0, 0);
        for window in Windows::new(tiles, judge, |_| true) {
            match window {
                Window::None(n) => at += n,
                Window::All(first, n, bx) => {
                    assert_eq!(first as u64, at);
                    whole += bx.len();
                    at += n;
                }
                Window::Open(n, candidates) => {
                    assert!(candidates.iter().all(|c| (at..at + n).contains(&(c.tile as u64))));
                    open.extend(candidates.iter().map(|c| c.tile));
                    at += n;
                }
            }
        }
        (open, whole, at)
    }

    #[test]
    fn all_tiles_come_once_and_in_order() {
        let tiles = Tiles::new(Bx::new(vec![3, 5], vec![400, 1000]), vec![2, 3]);
        assert!(tiles.len() as u64 > 4 * WINDOW);
        let (open, whole, n) = run(&tiles, |_| Verdict::Some);
        assert_eq!((open, whole, n), ((0..tiles.len()).collect(), 0, tiles.len() as u64));
        assert!(run(&Tiles::new(Bx::whole(&[3, 0]), vec![1, 1]), |_| Verdict::Some).0.is_empty());
    }

    #[test]
    fn what_is_known_of_a_block_is_not_asked_tile_by_tile() {
        let n = 1_u64 << 60;
        let tiles = Tiles::new(Bx::whole(&[n]), vec![1 << 10]);
        assert_eq!(run(&tiles, |_| Verdict::None), (Vec::new(), 0, 1 << 50));
        assert_eq!(run(&tiles, |_| Verdict::All), (Vec::new(), n, 1 << 50));
        // One position in the midst of them is found by halving.
        let (mut asked, place) = (0, n / 3);
        let (open, _, all) = run(&tiles, |bx| {
            asked += 1;
            if (bx.start[0]..bx.end(0)).contains(&place) { Verdict::Some } else { Verdict::None }
        });
        assert_eq!((open, all), (vec![(place >> 10) as usize], 1 << 50));
        assert!(asked < 300, "{asked}");
    }

    #[test]
    fn what_is_selected_wholly_is_cut_as_far_as_is_wanted() {
        let n = 1_u64 << 50;
        let tiles = Tiles::new(Bx::whole(&[n]), vec![1 << 10]);
        let is_whole = |bx: &Bx| !(bx.start[0]..bx.end(0)).contains(&(n / 3));
        let (mut whole, mut open) = (0, Vec::new());
        for window in Windows::new(&tiles, |_| Verdict::All, is_whole) {
            match window {
                Window::None(n) => panic!("{n} tiles of nothing"),
                Window::All(_, _, bx) => whole += bx.len(),
                Window::Open(n, candidates) => {
                    assert!(candidates.iter().all(|c| c.all) && candidates.len() as u64 == n);
                    open.extend(candidates.iter().map(|c| c.tile as u64));
                }
            }
        }
        assert_eq!(whole + open.len() as u64 * (1 << 10), n);
        assert!(open.contains(&((n / 3) >> 10)) && open.len() as u64 <= 2 * WINDOW);
    }

    #[test]
    fn a_block_is_the_box_of_its_tiles() {
        let tiles = Tiles::new(Bx::new(vec![1, 3], vec![9, 20]), vec![2, 5]);
        let whole = tiles.whole().unwrap();
        assert_eq!(tiles.bx_of(&whole), Bx::new(vec![1, 3], vec![9, 20]));
        let (first, second) = whole.halves().unwrap();
        assert_eq!((tiles.bx_of(&first), tiles.first_of(&first)), (Bx::new(vec![1, 3], vec![3, 20]), 0));
        assert_eq!((tiles.bx_of(&second), tiles.first_of(&second)), (Bx::new(vec![4, 3], vec![6, 20]), 10));
    }
}
