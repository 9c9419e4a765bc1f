//! All that is known of one array's regions, as a query uses it.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sieva_types::{DType, Error, KeySet, Result};

use crate::bitmap::{RegionBitmap, Workspace};
use crate::pieces::{PieceTable, Pieces};
use crate::stats::{RegionStats, Verdict};
use crate::store::{ArrayHeader, ArrayRecords};
use crate::{Elements, RegionGrid, RegionLimits};

/// Regions that a share is estimated from.
const SAMPLED: usize = 32;
/// Bytes of parsed heads that are kept for each array, and what a bin of them takes, about.
const HEADS_BYTES: usize = 64 << 20;
const BIN_BYTES: usize = 96;

/// What of a region's statistics is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Nothing is missing.
    Nothing,
    /// Not even its zone map is known.
    Zone,
    /// Its histogram, while all zone maps of the array are known.
    Histogram,
}

/// Statistics and bitmaps of the regions of one array; read and added to by many threads at once.
#[derive(Debug)]
pub struct ArrayIndex {
    header: ArrayHeader,
    grid: RegionGrid,
    zones: Vec<OnceLock<RegionStats>>,
    /// With histograms: decoded when they are first asked for.
    full: Vec<OnceLock<RegionStats>>,
    /// Regions whose histogram is in the records.
    stored: Vec<bool>,
    unknown: AtomicUsize,
    learnt: AtomicUsize,
    records: Option<ArrayRecords>,
    has_bitmaps: bool,
    /// Heads that were parsed, kept up to a total of [`HEADS_BYTES`].
    heads: Vec<OnceLock<Arc<RegionBitmap>>>,
    heads_bytes: AtomicUsize,
    summary: OnceLock<RegionStats>,
    damage: Mutex<Vec<String>>,
    /// Of an array of many files; nothing of it is known but what is known of them.
    pieces: Option<Pieces>,
    /// What the file itself tells of its values.
    limits: RegionLimits,
    /// Whether scans leave what they see.
    learns: bool,
    /// Scale and offset of packed data, for sums of decoded values.
    packing: Option<(f64, f64)>,
    /// Whether its regions are of a size that was asked for.
    sized: bool,
}

impl ArrayIndex {
    /// Nothing known yet of an array.
    ///
    /// # Errors
    /// `invalid-value` where region and array do not fit; `corrupt-index` where there would be too many regions.
    pub fn new(header: ArrayHeader) -> Result<Self> {
        let grid = RegionGrid::new(&header.shape, &header.region)?;
        let n = grid.len();
        if !grid.is_bounded() {
            let (region, path) = (&header.region, &header.path);
            return Err(corrupt(format!("regions of {region:?} cut '{path}' into {n} pieces")));
        }
        Ok(Self {
            zones: (0..n).map(|_| OnceLock::new()).collect(),
            full: (0..n).map(|_| OnceLock::new()).collect(),
            stored: vec![false; n],
            unknown: n.into(),
            learnt: 0.into(),
            records: None,
            has_bitmaps: false,
            heads: Vec::new(),
            heads_bytes: 0.into(),
            summary: OnceLock::new(),
            damage: Mutex::default(),
            pieces: None,
            limits: RegionLimits::default(),
            learns: true,
            packing: None,
            sized: false,
            header,
            grid,
        })
    }

    /// An array of many files, whose regions are those of its pieces.
    ///
    /// # Errors
    /// `invalid-value` where regions or pieces do not make up the array.
    pub fn of_pieces(header: ArrayHeader, table: PieceTable) -> Result<Self> {
        let (pieces, grid) = Pieces::new(&header, table)?;
        let nothing = ArrayHeader { shape: vec![0; header.shape.len()], ..header.clone() };
        Ok(Self { header, grid, pieces: Some(pieces), ..Self::new(nothing)? })
    }

    /// What a store holds of an array. Records that are damaged are left out and told by [`ArrayIndex::damage`].
    ///
    /// # Errors
    /// `corrupt-index` where the header contradicts itself.
    pub fn load(records: ArrayRecords) -> Result<Self> {
        let mut index = Self::new(records.header().clone())?;
        for region in 0..index.grid.len() {
            let Some(bytes) = records.stats(region) else { continue };
            match RegionStats::decode_zone(bytes).and_then(|(s, full)| Ok((index.check(region, s)?, full))) {
                Ok((stats, has_histogram)) => {
                    index.put(region, stats);
                    index.stored[region] = has_histogram;
                }
                Err(e) => index.note(format!("statistics of region {region}: {e}")),
            }
        }
        records.damage.iter().for_each(|d| index.note(d.clone()));
        index.learnt.store(0, Relaxed);
        let has_bitmaps = (0..index.grid.len()).any(|region| records.has_bitmap(region));
        let heads =
            if has_bitmaps { (0..index.grid.len()).map(|_| OnceLock::new()).collect() } else { Vec::new() };
        Ok(Self { records: Some(records), has_bitmaps, heads, ..index })
    }

    /// With what the file itself tells of its values, which excludes regions and no more; `learns` is whether scans leave
    /// statistics beside it.
    #[must_use]
    pub fn with_limits(self, limits: RegionLimits, learns: bool) -> Self {
        Self { limits, learns, ..self }
    }

    /// With the scale and the offset by which its values are decoded.
    #[must_use]
    pub fn with_packing(self, packing: Option<(f64, f64)>) -> Self {
        Self { packing, ..self }
    }

    /// With whether its regions are of a size that somebody asked for, and not those that tiles have anyway.
    #[must_use]
    pub fn with_sized(self, sized: bool) -> Self {
        Self { sized, ..self }
    }

    /// Whether its regions are of a size that somebody asked for: tiles follow them.
    pub fn is_sized(&self) -> bool {
        self.sized
    }

    fn check(&self, region: usize, stats: RegionStats) -> Result<RegionStats> {
        let rows = self.grid.bx(region).len();
        if stats.rows == rows { Ok(stats) } else { Err(corrupt(format!("{} rows, not {rows}", stats.rows))) }
    }

    fn put(&self, region: usize, stats: RegionStats) {
        let known = self.stats(region).is_some();
        let slot = if stats.histogram.is_some() { &self.full[region] } else { &self.zones[region] };
        if slot.set(stats).is_ok() {
            self.learnt.fetch_add(1, Relaxed);
            if !known {
                self.unknown.fetch_sub(1, Relaxed);
            }
        }
    }

    /// Path, type, shape, regions and missing values of the array.
    pub fn header(&self) -> &ArrayHeader {
        &self.header
    }

    /// Its regions.
    pub fn grid(&self) -> &RegionGrid {
        &self.grid
    }

    /// The zone map of a region, where it is known.
    pub fn stats(&self, region: usize) -> Option<&RegionStats> {
        if let Some(pieces) = &self.pieces {
            return pieces.find(&self.grid, region).and_then(|(index, region)| index.stats(region));
        }
        self.zones[region].get().or_else(|| self.full[region].get())
    }

    /// All that is known of a region: with its histogram, if there is one.
    pub fn full_stats(&self, region: usize) -> Option<&RegionStats> {
        if let Some(pieces) = &self.pieces {
            return pieces.find(&self.grid, region).and_then(|(index, region)| index.full_stats(region));
        }
        if let Some(full) = self.full[region].get() {
            return Some(full);
        }
        if self.stored[region]
            && let Some(bytes) = self.records.as_ref().and_then(|r| r.stats(region))
        {
            match RegionStats::decode(bytes) {
                Ok(full) => return Some(self.full[region].get_or_init(|| full)),
                Err(e) => self.note(format!("statistics of region {region}: {e}")),
            }
        }
        self.zones[region].get()
    }

    /// Whether a region is known to have nothing of `set` without its own statistics: by the file that it lies in, or by
    /// what the file tells.
    fn excluded(&self, region: usize, set: &KeySet) -> bool {
        if self.limits.exclude(region, set) {
            return true;
        }
        let pieces = self.pieces.as_ref();
        pieces.is_some_and(|p| p.excludes(&self.grid, region, set, &self.header.missing))
    }

    /// Whether none, some or all of a region's values are in `set`, as far as it is known.
    pub fn verdict(&self, region: usize, set: &KeySet) -> Verdict {
        if self.excluded(region, set) {
            return Verdict::None;
        }
        self.stats(region).map_or(Verdict::Some, |s| s.decide(set, &self.header.missing))
    }

    /// Bounds of the number of a region's values that are in `set`.
    pub fn count_bounds(&self, region: usize, set: &KeySet) -> (u64, u64) {
        if self.excluded(region, set) {
            return (0, 0);
        }
        match self.full_stats(region) {
            Some(s) => s.count_bounds(set, &self.header.missing, self.header.dtype),
            None => (0, self.grid.bx(region).len()),
        }
    }

    /// What a scan of this region should leave behind.
    pub fn want(&self, region: usize) -> Want {
        if let Some(pieces) = &self.pieces {
            return pieces.find(&self.grid, region).map_or(Want::Nothing, |(index, r)| index.want(r));
        }
        if !self.learns {
            Want::Nothing
        } else if self.stats(region).is_none() {
            Want::Zone
        } else if !self.stored[region] && self.full[region].get().is_none() && self.unknown() == 0 {
            Want::Histogram
        } else {
            Want::Nothing
        }
    }

    /// Number of regions of which nothing is known.
    pub fn unknown(&self) -> usize {
        if let Some(pieces) = &self.pieces {
            return if pieces.any() { 0 } else { self.grid.len() };
        }
        self.unknown.load(Relaxed)
    }

    /// Whether anything is known of any region.
    pub fn any_known(&self) -> bool {
        self.limits.any() || self.unknown() < self.grid.len()
    }

    /// Number of regions' statistics that were added since it was loaded.
    pub fn learnt(&self) -> usize {
        self.learnt.load(Relaxed)
    }

    /// Adds what was seen of a region while its elements were at hand.
    pub fn learn(&self, region: usize, want: Want, elements: Elements<'_>) {
        if let Some(pieces) = &self.pieces {
            if let Some((index, region)) = pieces.find(&self.grid, region) {
                index.learn(region, want, elements);
            }
            return;
        }
        let missing = &self.header.missing;
        let stats = match want {
            Want::Nothing => return,
            Want::Zone => RegionStats::zone(elements, missing),
            Want::Histogram => RegionStats::full(elements, missing),
        };
        self.put(region, stats.with_sums(elements, missing, self.packing));
    }

    /// The statistics of the whole array: `None` unless those of all regions are known.
    pub fn summary(&self) -> Option<RegionStats> {
        if let Some(known) = self.summary.get() {
            return Some(known.clone());
        }
        if self.unknown() > 0 || self.grid.is_empty() {
            return None;
        }
        let mut all = self.full_stats(0)?.clone();
        for region in 1..self.grid.len() {
            all.merge(self.full_stats(region)?);
        }
        // Without histograms it may still grow.
        Some(if all.histogram.is_some() { self.summary.get_or_init(|| all).clone() } else { all })
    }

    /// The share of the values that are in `set`, estimated from some of the regions; `None` where none is known.
    pub fn share(&self, set: &KeySet) -> Option<f64> {
        let step = self.grid.len().div_ceil(SAMPLED).max(1);
        let (mut hits, mut rows) = (0.0, 0);
        for region in (0..self.grid.len()).step_by(step).filter(|&r| self.stats(r).is_some()) {
            let (low, high) = self.count_bounds(region, set);
            hits += (low + high) as f64 / 2.0;
            rows += self.grid.bx(region).len();
        }
        (rows > 0).then(|| hits / rows as f64)
    }

    /// Whether any region has a bitmap index.
    pub fn has_bitmaps(&self) -> bool {
        if let Some(pieces) = &self.pieces {
            return pieces.has_bitmaps();
        }
        self.has_bitmaps
    }

    /// What the store holds of it.
    pub fn records(&self) -> Option<&ArrayRecords> {
        self.records.as_ref()
    }

    /// The bitmap index of a region; `None` where there is none that is whole.
    pub fn bitmap(&self, region: usize) -> Option<Arc<RegionBitmap>> {
        if let Some(pieces) = &self.pieces {
            return pieces.find(&self.grid, region).and_then(|(index, region)| index.bitmap(region));
        }
        let records = self.records.as_ref().filter(|r| r.has_bitmap(region))?;
        if let Some(known) = self.heads[region].get() {
            return Some(Arc::clone(known));
        }
        match self.parse(records, region) {
            Ok(parsed) => {
                let parsed = parsed.map(Arc::new)?;
                let bytes = parsed.bins().len() * BIN_BYTES;
                if self.heads_bytes.fetch_add(bytes, Relaxed) + bytes <= HEADS_BYTES {
                    return Some(Arc::clone(self.heads[region].get_or_init(|| parsed)));
                }
                Some(parsed)
            }
            Err(e) => {
                self.note(format!("bitmap of region {region}: {e}"));
                None
            }
        }
    }

    fn parse(&self, records: &ArrayRecords, region: usize) -> Result<Option<RegionBitmap>> {
        let Some(head) = records.bitmap_head(region)? else { return Ok(None) };
        let bitmap = RegionBitmap::parse(&head, head.body_len, self.header.dtype)?;
        let rows = self.grid.bx(region).len();
        if bitmap.rows() != rows {
            return Err(corrupt(format!("{} rows, not {rows}", bitmap.rows())));
        }
        Ok(Some(bitmap))
    }

    /// Evaluates `set` on a region by its bitmap; returns the requests and bytes that it took, or `None` where it is
    /// damaged, and the data must be read. Both vectors have a bit for each element of the region and come cleared.
    pub fn evaluate(
        &self,
        region: usize,
        bitmap: &RegionBitmap,
        set: &KeySet,
        workspace: &mut Workspace,
        sure: &mut [u64],
        check: &mut [u64],
    ) -> Option<(u64, u64)> {
        if let Some(pieces) = &self.pieces {
            let (index, region) = pieces.find(&self.grid, region)?;
            return index.evaluate(region, bitmap, set, workspace, sure, check);
        }
        let records = self.records.as_ref()?;
        let (mut requests, mut bytes) = (0, 0);
        let mut fetch = |range: Range<u64>, out: &mut Vec<u8>| -> Result<()> {
            (requests, bytes) = (requests + 1, bytes + range.end - range.start);
            records.read_body(region, range, out)
        };
        match bitmap.evaluate(set, &mut fetch, workspace, sure, check) {
            Ok(()) => Some((requests, bytes)),
            Err(e) => {
                self.note(format!("bitmap of region {region}: {e}"));
                None
            }
        }
    }

    /// What was found damaged, for the people who can mend it.
    pub fn damage(&self) -> Vec<String> {
        if let Some(pieces) = &self.pieces {
            return pieces.damage();
        }
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, what: String) {
        let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        // The first ones say enough.
        if damage.len() < 16 && !damage.contains(&what) {
            damage.push(what);
        }
    }

    /// The type that the keys of its elements are those of.
    pub fn dtype(&self) -> DType {
        self.header.dtype
    }
}

fn corrupt(message: String) -> Error {
    Error::new(sieva_types::ErrorKind::CorruptIndex, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_region_shape_allocates_nothing() {
        let header = ArrayHeader {
            path: "a".into(),
            dtype: DType::F32,
            shape: vec![1 << 33],
            region: vec![1],
            missing: KeySet::EMPTY,
        };
        assert_eq!(ArrayIndex::new(header).unwrap_err().kind(), sieva_types::ErrorKind::CorruptIndex);
    }

    #[test]
    fn limits_exclude_regions_and_select_none() {
        let header = ArrayHeader {
            path: "a".into(),
            dtype: DType::I32,
            shape: vec![6],
            region: vec![3],
            missing: KeySet::EMPTY,
        };
        let grid = RegionGrid::new(&header.shape, &header.region).unwrap();
        let block = (sieva_types::Bx::new(vec![0], vec![4]), Some((5, 9)));
        let limits = RegionLimits::of_blocks(&grid, &[block]);
        let index = ArrayIndex::new(header).unwrap();
        assert!(!index.any_known());
        let index = index.with_limits(limits, false);
        let (all, none) = (KeySet::interval(0, 99), KeySet::interval(10, 99));
        assert_eq!([0, 1].map(|r| index.verdict(r, &all)), [Verdict::Some, Verdict::Some]);
        assert_eq!([0, 1].map(|r| index.verdict(r, &none)), [Verdict::None, Verdict::Some]);
        assert_eq!([0, 1].map(|r| index.count_bounds(r, &none)), [(0, 0), (0, 3)]);
        assert_eq!((index.want(0), index.any_known(), index.unknown()), (Want::Nothing, true, 2));
    }

    #[test]
    fn what_is_learnt_is_known_and_histograms_follow_zone_maps() {
        let header = ArrayHeader {
            path: "a".into(),
            dtype: DType::F64,
            shape: vec![5],
            region: vec![3],
            missing: KeySet::EMPTY,
        };
        let index = ArrayIndex::new(header).unwrap();
        let (first, second) = ([1.0, 2.0, 3.0], [10.0, f64::NAN]);
        let above = KeySet::interval(sieva_types::keys::f64_key(5.0), sieva_types::keys::f64_key(20.0));
        assert_eq!((index.want(0), index.share(&above), index.summary()), (Want::Zone, None, None));
        index.learn(0, index.want(0), Elements::F64(&first));
        assert!(
            matches!(index.verdict(0, &above), Verdict::None)
                && matches!(index.verdict(1, &above), Verdict::Some)
        );
        assert_eq!((index.want(0), index.unknown(), index.learnt()), (Want::Nothing, 1, 1));
        index.learn(1, Want::Zone, Elements::F64(&second));
        assert_eq!((index.want(1), index.count_bounds(1, &above)), (Want::Histogram, (1, 1)));
        index.learn(0, Want::Histogram, Elements::F64(&first));
        index.learn(1, Want::Histogram, Elements::F64(&second));
        assert_eq!((index.want(0), index.learnt()), (Want::Nothing, 4));
        let all = index.summary().unwrap();
        assert_eq!((all.rows, all.nan, all.histogram.map(|h| h.total())), (5, 1, Some(4)));
    }
}
