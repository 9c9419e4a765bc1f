//! A condition on one array over one tile: by zone map, bitmap, single elements or a scan, whichever is cheapest.

use std::sync::Arc;
use std::time::Instant;

use sieva_index::ArrayIndex;
use sieva_index::bitmap::RegionBitmap;
use sieva_index::stats::Verdict;
use sieva_types::{Bx, KeySet, Result};

use crate::cost::ReadCosts;
use crate::exec::Execution;
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::condition::{Evaluator, apply};
use crate::mask::{Mask, slice_box};

/// Requests that evaluating a bitmap takes, about: what a range cuts mostly lies together.
const BITMAP_REQUESTS: u64 = 2;
/// Rows for each byte of bitmaps that are read: a condition on a tail reads about two bits of each row.
const BITMAP_ROWS: u64 = 4;

/// How much dearer than a scan a bitmap may seem and be taken still: it reads a sixteenth of the bytes, and what
/// bytes cost was mostly learnt while they were in the page cache.
const FEWER_BYTES: f64 = 2.0;
/// Bitmaps of fewer bytes tell little of what a byte costs.
const LEARNT_FROM: u64 = 4096;

/// What bitmaps say of an array's part of a tile.
struct Found {
    /// Where the condition holds.
    sure: Mask,
    /// Where it may hold, and the data must tell.
    check: Mask,
}

/// The bitmaps of the regions that a tile touches, and what evaluating a set by them costs.
struct Bitmaps<'e> {
    index: &'e ArrayIndex,
    costs: &'e ReadCosts,
    parts: Vec<(usize, Bx, Option<Arc<RegionBitmap>>)>,
    cost: f64,
}

impl Evaluator<'_, '_> {
    /// Keeps the positions of `mask` at which the stored values of `array` belong to `set`.
    pub(in crate::exec) fn stored(
        &mut self,
        array: usize,
        raw: bool,
        set: &KeySet,
        bx: &Bx,
        mask: &mut Mask,
    ) -> Result<()> {
        match self.execution.foresee_stored(array, raw, set, bx) {
            Verdict::None => {
                *mask = Mask::zeros(mask.len());
                return Ok(());
            }
            Verdict::All => return Ok(()),
            Verdict::Some => {}
        }
        let axes = self.leaves.axes(array);
        let own = self.execution.own_box(array, bx);
        let scan = self.execution.scan_cost(array, &own);
        let Some(mut found) = self.by_bitmaps(array, raw, set, &own, scan)? else {
            let open = (mask.len() as u64 == own.len()).then_some(&*mask);
            let held = self.in_data(array, raw, set, bx, &own, open, scan)?;
            apply(mask, bx, &held, &axes);
            return Ok(());
        };
        self.did.by_bitmap += 1;
        if found.check.len() == mask.len() {
            found.check.and(mask);
        }
        if !found.check.none() {
            let mut held = self.in_data(array, raw, set, bx, &own, Some(&found.check), scan)?;
            held.and(&found.check);
            found.sure.or(&held);
        }
        apply(mask, bx, &found.sure, &axes);
        Ok(())
    }

    /// Where the data themselves satisfy the condition; only the positions `open` are of interest, if given.
    #[allow(clippy::too_many_arguments)] // a condition, a place, and what is open in it
    fn in_data(
        &mut self,
        array: usize,
        raw: bool,
        set: &KeySet,
        bx: &Bx,
        own: &Bx,
        open: Option<&Mask>,
        scan: f64,
    ) -> Result<Mask> {
        self.read = true;
        if let Some(open) = open
            && self.execution.points_pay(array, open, scan)
            && let Some(found) = self.leaves.test_points(array, raw, set, own, open)?
        {
            self.did.by_points += 1;
            return Ok(found);
        }
        self.did.by_scan += 1;
        Ok(self.leaves.test(array, raw, set, bx)?.1)
    }

    fn by_bitmaps(
        &mut self,
        array: usize,
        raw: bool,
        set: &KeySet,
        own: &Bx,
        scan: f64,
    ) -> Result<Option<Found>> {
        let Some(bitmaps) = self.execution.bitmaps(array, raw, set, own) else { return Ok(None) };
        if self.execution.options.access == crate::exec::Access::Auto && bitmaps.cost >= scan * FEWER_BYTES {
            return Ok(None);
        }
        bitmaps.evaluate(set, own, self.leaves).map(Some)
    }
}

impl Execution {
    /// Nanoseconds of reading and testing a box of an array.
    pub(crate) fn scan_cost(&self, array: usize, own: &Bx) -> f64 {
        let layout = self.readers[array].layout();
        let bytes = own.len() * layout.element_size as u64;
        let costs = self.read_costs(array);
        costs.price(bytes.div_ceil(layout.chunk_bytes.max(1)).max(1), bytes)
    }

    /// Whether the tiles that zone maps leave open of a condition on an array are read, as far as can be told before: its
    /// bitmaps are dearer, or there are none.
    pub(crate) fn scans_what_is_open(&self, array: usize, raw: bool) -> bool {
        let Some(index) = self.zones(array, raw) else { return true };
        if !index.has_bitmaps() || !self.options.access.bitmaps() {
            return self.options.access != crate::exec::Access::Bitmap;
        }
        let region = Bx::whole(&index.header().region);
        let by_bitmap = self.indexes.costs.index.price(BITMAP_REQUESTS, region.len() / BITMAP_ROWS);
        self.options.access == crate::exec::Access::Auto
            && by_bitmap >= self.scan_cost(array, &region) * FEWER_BYTES
    }

    /// Whether single reads of the open positions are cheaper than reading the whole box.
    fn points_pay(&self, array: usize, open: &Mask, scan: f64) -> bool {
        let allowed = self.options.access != crate::exec::Access::Scan && self.flat[array].is_some();
        allowed && open.count() as f64 * self.indexes.costs.direct.request.get() < scan
    }

    /// The bitmaps of the regions that a box of an array touches; `None` where none may or can be used.
    fn bitmaps(&self, array: usize, raw: bool, set: &KeySet, own: &Bx) -> Option<Bitmaps<'_>> {
        let index = self.zones(array, raw).filter(|i| i.has_bitmaps())?;
        if !self.options.access.bitmaps() || !self.bound.arrays[array].axes.is_sorted() {
            return None;
        }
        let costs = &self.indexes.costs;
        let mut cost = 0.0;
        let mut parts = Vec::with_capacity(1);
        let regions = match index.grid().only(own) {
            Some(region) => vec![region],
            None => index.grid().touched(own),
        };
        for region in regions {
            let bx = index.grid().bx(region);
            let bitmap = index.bitmap(region);
            let part = bx.intersect(own)?;
            cost += match &bitmap {
                Some(b) => {
                    let (edge, bytes) = b.outlook(set);
                    let points = if self.flat[array].is_some() {
                        edge as f64 * costs.direct.request.get()
                    } else {
                        f64::MAX
                    };
                    let check = if edge == 0 { 0.0 } else { points.min(self.scan_cost(array, &part)) };
                    costs.index.price(BITMAP_REQUESTS, bytes) + check
                }
                None => self.scan_cost(array, &part),
            };
            parts.push((region, bx, bitmap));
        }
        parts.iter().any(|(_, _, b)| b.is_some()).then_some(Bitmaps {
            index,
            costs: &costs.index,
            parts,
            cost,
        })
    }
}

impl Bitmaps<'_> {
    /// Evaluates `set` on the box `own`: what no bitmap tells is to be checked.
    fn evaluate(&self, set: &KeySet, own: &Bx, leaves: &mut Leaves<'_>) -> Result<Found> {
        if let [(region, bx, Some(bitmap))] = &self.parts[..]
            && bx == own
        {
            return Ok(self.region(*region, bx, bitmap, set, leaves));
        }
        let mut all = Found { sure: Mask::zeros(own.len() as usize), check: Mask::zeros(own.len() as usize) };
        for (region, bx, bitmap) in &self.parts {
            let Some(part) = bx.intersect(own) else { continue };
            let found = match bitmap {
                Some(bitmap) => {
                    let found = self.region(*region, bx, bitmap, set, leaves);
                    let within = Bx::new(
                        part.start.iter().zip(&bx.start).map(|(p, b)| p - b).collect(),
                        part.shape.clone(),
                    );
                    Found {
                        sure: slice_box(&found.sure, &bx.shape, &within),
                        check: slice_box(&found.check, &bx.shape, &within),
                    }
                }
                None => {
                    let n = part.len() as usize;
                    Found { sure: Mask::zeros(n), check: Mask::ones(n) }
                }
            };
            crate::exec::tile::prepare::paste(&mut all.sure, own, &part, &found.sure);
            crate::exec::tile::prepare::paste(&mut all.check, own, &part, &found.check);
        }
        Ok(all)
    }

    fn region(
        &self,
        region: usize,
        bx: &Bx,
        bitmap: &RegionBitmap,
        set: &KeySet,
        leaves: &mut Leaves<'_>,
    ) -> Found {
        let n = bx.len() as usize;
        let mut found = Found { sure: Mask::zeros(n), check: Mask::zeros(n) };
        let (sure, check) = (found.sure.words_mut(), found.check.words_mut());
        let started = Instant::now();
        let Some((requests, bytes)) =
            self.index.evaluate(region, bitmap, set, &mut leaves.bitmap, sure, check)
        else {
            // Damaged: nothing of it is believed.
            return Found { sure: Mask::zeros(n), check: Mask::ones(n) };
        };
        if bytes >= LEARNT_FROM {
            let took = started.elapsed().as_secs_f64() * 1e9;
            self.costs.byte.observe((took - requests as f64 * self.costs.request.get()) / bytes as f64);
        }
        found
    }
}
