//! What is known of an array of many files: what is known of each piece, found when it is first asked for.

use std::sync::{Arc, OnceLock};

use sieva_types::{Error, ErrorKind, KeySet, Result};

use crate::stats::{RegionStats, Verdict};
use crate::store::ArrayHeader;
use crate::{ArrayIndex, RegionGrid};

/// Finds what is known of a piece.
pub type PieceLoader = Arc<dyn Fn(usize) -> Option<Arc<ArrayIndex>> + Send + Sync>;

/// How an array is put together, and what may be known of its pieces.
#[derive(Clone)]
pub struct PieceTable {
    /// The dimension along which pieces follow one another.
    pub axis: usize,
    /// Where each piece begins along it, and at the end its length.
    pub starts: Vec<u64>,
    /// Whether the pieces lack that dimension.
    pub is_new: bool,
    /// Pieces that have augmentations of their own, as far as is known without looking into them.
    pub stored: Vec<bool>,
    /// Statistics of whole pieces that are known without opening them; may be empty.
    pub known: Vec<Option<RegionStats>>,
    /// Finds the rest.
    pub load: PieceLoader,
}

/// The pieces of an array, and the regions that each has in the whole.
pub(crate) struct Pieces {
    table: PieceTable,
    /// The grid coordinate along the axis at which each piece begins.
    first: Vec<u64>,
    loaded: Vec<OnceLock<Option<Arc<ArrayIndex>>>>,
    has_bitmaps: OnceLock<bool>,
}

impl std::fmt::Debug for Pieces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").field("pieces", &self.loaded.len()).finish_non_exhaustive()
    }
}

impl Pieces {
    /// The pieces of an array, and its grid of regions.
    pub(crate) fn new(header: &ArrayHeader, table: PieceTable) -> Result<(Self, RegionGrid)> {
        let pieces = table.starts.len().saturating_sub(1);
        if table.stored.len() != pieces || !(table.known.is_empty() || table.known.len() == pieces) {
            let message = format!("'{}': {pieces} pieces, {} described", header.path, table.stored.len());
            return Err(Error::new(ErrorKind::Internal, message));
        }
        let grid = RegionGrid::of_pieces(&header.shape, &header.region, table.axis, &table.starts)?;
        let region = header.region[table.axis];
        let mut first = Vec::with_capacity(pieces);
        let mut at = 0;
        for piece in table.starts.windows(2) {
            first.push(at);
            at += (piece[1] - piece[0]).div_ceil(region);
        }
        let loaded = (0..pieces).map(|_| OnceLock::new()).collect();
        Ok((Self { table, first, loaded, has_bitmaps: OnceLock::new() }, grid))
    }

    /// The piece of a region, and the region's grid coordinates in it.
    fn locate(&self, grid: &RegionGrid, region: usize) -> (usize, Vec<u64>) {
        let mut coords = grid.coords(region);
        let at = coords[self.table.axis];
        // Of pieces that begin at one place all but the last are empty.
        let piece = self.first.partition_point(|&f| f <= at) - 1;
        if self.table.is_new {
            coords.remove(self.table.axis);
        } else {
            coords[self.table.axis] = at - self.first[piece];
        }
        (piece, coords)
    }

    fn piece(&self, piece: usize) -> Option<&Arc<ArrayIndex>> {
        self.loaded[piece].get_or_init(|| (self.table.load)(piece)).as_ref()
    }

    /// What is known of the piece that a region belongs to, and the region's number in it.
    pub(crate) fn find(&self, grid: &RegionGrid, region: usize) -> Option<(&Arc<ArrayIndex>, usize)> {
        let (piece, coords) = self.locate(grid, region);
        let index = self.piece(piece)?;
        index.grid().number(&coords).map(|number| (index, number))
    }

    /// Decides by what is known of the whole piece, where that is enough: then no file is opened.
    pub(crate) fn excludes(&self, grid: &RegionGrid, region: usize, set: &KeySet, missing: &KeySet) -> bool {
        let (piece, _) = self.locate(grid, region);
        let known = self.table.known.get(piece).and_then(Option::as_ref);
        known.is_some_and(|s| matches!(s.decide(set, missing), Verdict::None))
    }

    /// Whether any piece has augmentations of its own, or is known as a whole.
    pub(crate) fn any(&self) -> bool {
        self.table.stored.contains(&true) || self.table.known.iter().any(Option::is_some)
    }

    /// Whether pieces have bitmaps: they are built for all alike, so that one tells.
    pub(crate) fn has_bitmaps(&self) -> bool {
        *self.has_bitmaps.get_or_init(|| {
            let stored = (0..self.loaded.len()).filter(|&p| self.table.stored[p]);
            stored.take(4).any(|p| self.piece(p).is_some_and(|i| i.has_bitmaps()))
        })
    }

    /// What was found damaged in the pieces that were looked into.
    pub(crate) fn damage(&self) -> Vec<String> {
        let seen = self.loaded.iter().filter_map(|l| l.get().and_then(Option::as_ref));
        seen.flat_map(|index| index.damage()).take(16).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use sieva_types::{DType, keys};

    use super::*;
    use crate::{Elements, Want};

    fn header(shape: &[u64], region: &[u64]) -> ArrayHeader {
        ArrayHeader {
            path: "a".into(),
            dtype: DType::F64,
            shape: shape.to_vec(),
            region: region.to_vec(),
            missing: KeySet::EMPTY,
        }
    }

    fn piece(values: &[f64], region: u64) -> ArrayIndex {
        let index = ArrayIndex::new(header(&[values.len() as u64], &[region])).unwrap();
        for r in 0..index.grid().len() {
            let bx = index.grid().bx(r);
            let part = &values[bx.start[0] as usize..bx.end(0) as usize];
            index.learn(r, Want::Zone, Elements::F64(part));
        }
        index
    }

    #[test]
    fn regions_are_those_of_their_pieces_which_are_loaded_when_asked() {
        let loads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&loads);
        let load: PieceLoader = Arc::new(move |p| {
            counted.fetch_add(1, Relaxed);
            let first = 10.0 * p as f64;
            (p != 1).then(|| Arc::new(piece(&[first, first + 1.0, first + 2.0], 2)))
        });
        let zone = RegionStats::zone(Elements::F64(&[0.0, 1.0, 2.0]), &KeySet::EMPTY);
        let table = PieceTable {
            axis: 0,
            starts: vec![0, 3, 6, 9],
            is_new: false,
            stored: vec![true, false, true],
            known: vec![Some(zone), None, None],
            load,
        };
        let index = ArrayIndex::of_pieces(header(&[9], &[2]), table).unwrap();
        assert_eq!((index.grid().len(), index.unknown(), index.learnt()), (6, 0, 0));
        let above = KeySet::interval(keys::f64_key(22.0), keys::f64_key(99.0));
        let verdict = |r| match index.verdict(r, &above) {
            Verdict::None => 'n',
            Verdict::Some => 's',
            Verdict::All => 'a',
        };
        assert_eq!((verdict(0), verdict(1), loads.load(Relaxed)), ('n', 'n', 0));
        assert_eq!([2, 3, 4, 5].map(verdict), ['s', 's', 'n', 'a']);
        assert_eq!((index.count_bounds(5, &above), index.want(2)), ((1, 1), Want::Nothing));
        assert_eq!(loads.load(Relaxed), 2);
    }

    #[test]
    fn a_new_dimension_has_a_piece_at_each_position() {
        let load: PieceLoader = Arc::new(|p| Some(Arc::new(piece(&[p as f64, p as f64 + 0.5], 1))));
        let table = PieceTable {
            axis: 0,
            starts: vec![0, 1, 2],
            is_new: true,
            stored: vec![true; 2],
            known: Vec::new(),
            load,
        };
        let index = ArrayIndex::of_pieces(header(&[2, 2], &[1, 1]), table).unwrap();
        let from_one = KeySet::interval(keys::f64_key(1.0), keys::f64_key(1.4));
        let counts: Vec<_> = (0..4).map(|r| index.count_bounds(r, &from_one)).collect();
        assert_eq!(counts, [(0, 0), (0, 0), (1, 1), (0, 0)]);
    }
}
