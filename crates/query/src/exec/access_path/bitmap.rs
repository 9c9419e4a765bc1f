//! Bitmap indexes of regions: what they tell of a tile, and what has to be checked in the data.

use std::sync::Arc;
use std::time::Instant;

use sieva_index::ArrayIndex;
use sieva_index::bitmap::RegionBitmap;
use sieva_types::{Bx, KeySet, Result};

use super::path::{AccessPath, Answer, Offer, Question};
use crate::cost::ReadCosts;
use crate::exec::Execution;
use crate::exec::access_path::Access;
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::condition::Evaluator;
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

/// What bitmaps say of an array's part of a tile, or of a region.
pub(in crate::exec) struct Found {
    /// Where the condition holds.
    sure: Mask,
    /// Where it may hold, and the data must tell; `None`: nowhere.
    check: Option<Mask>,
}

/// What the bitmap of a region said last of an array, where several tiles have a part of it.
pub(in crate::exec) struct Evaluated {
    region: usize,
    set: KeySet,
    found: Found,
}

/// The bitmaps of the regions that a tile touches, and what evaluating a set by them costs.
struct Bitmaps<'e> {
    array: usize,
    index: &'e ArrayIndex,
    costs: &'e ReadCosts,
    parts: Vec<(usize, Bx, Option<Arc<RegionBitmap>>)>,
    cost: f64,
}

/// Bitmap indexes, as far as regions have one.
pub(super) struct BitmapPath;

impl AccessPath for BitmapPath {
    fn forced_by(&self) -> Option<Access> {
        Some(Access::Bitmap)
    }

    fn is_there(&self, execution: &Execution, array: usize) -> bool {
        execution.indexed[array].as_ref().is_some_and(|i| i.has_bitmaps())
    }

    fn offer<'e>(
        &self,
        execution: &'e Execution,
        asked: &Question<'_>,
        _: Option<&Mask>,
    ) -> Option<Offer<'e>> {
        let bitmaps = execution.bitmaps(asked.array, asked.raw, asked.set, &asked.own)?;
        let is_forced = execution.options.access == Access::Bitmap;
        let cost = if is_forced { 0.0 } else { bitmaps.cost / FEWER_BYTES };
        let evaluate = move |evaluator: &mut Evaluator<'_, 'e>, asked: &Question<'_>, _: Option<&Mask>| {
            evaluator.did.by_bitmap += 1;
            let found = bitmaps.evaluate(asked.set, &asked.own, evaluator.leaves)?;
            Ok(Answer { sure: found.sure, check: found.check })
        };
        Some(Offer { cost, evaluate: Box::new(evaluate) })
    }
}

impl Execution {
    /// Whether the tiles that zone maps leave open of a condition on an array are read, as far as can be told before: its
    /// bitmaps are dearer, or there are none.
    pub(crate) fn scans_what_is_open(&self, array: usize, raw: bool) -> bool {
        let Some(index) = self.zones(array, raw) else { return true };
        if !index.has_bitmaps() || !self.options.access.bitmaps() {
            return self.options.access != Access::Bitmap;
        }
        let region = Bx::whole(&index.header().region);
        let by_bitmap = self.indexes.costs.index.price(BITMAP_REQUESTS, region.len() / BITMAP_ROWS);
        self.options.access == Access::Auto && by_bitmap >= self.scan_cost(array, &region) * FEWER_BYTES
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
            let bitmap = if self.has_room_for_bitmap(&bx) { index.bitmap(region) } else { None };
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
            array,
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
        let (mut sure, mut check) = (Mask::zeros(own.len() as usize), Mask::zeros(own.len() as usize));
        for (region, bx, bitmap) in &self.parts {
            let Some(part) = bx.intersect(own) else { continue };
            let found = match bitmap {
                Some(bitmap) => {
                    let whole = own.contains(bx);
                    let found = match leaves.evaluated[self.array].take() {
                        Some(last) if !whole && last.region == *region && last.set == *set => last.found,
                        _ => self.region(*region, bx, bitmap, set, leaves),
                    };
                    let within = Bx::new(
                        part.start.iter().zip(&bx.start).map(|(p, b)| p - b).collect(),
                        part.shape.clone(),
                    );
                    let part = Found {
                        sure: slice_box(&found.sure, &bx.shape, &within),
                        check: found.check.as_ref().map(|check| slice_box(check, &bx.shape, &within)),
                    };
                    if !whole {
                        // The next tile may have another part of it.
                        let (region, set) = (*region, set.clone());
                        leaves.evaluated[self.array] = Some(Evaluated { region, set, found });
                    }
                    part
                }
                None => {
                    let n = part.len() as usize;
                    Found { sure: Mask::zeros(n), check: Some(Mask::ones(n)) }
                }
            };
            crate::exec::tile::prepare::paste(&mut sure, own, &part, &found.sure);
            if let Some(found) = &found.check {
                crate::exec::tile::prepare::paste(&mut check, own, &part, found);
            }
        }
        Ok(Found { sure, check: Some(check) })
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
        // Mostly the set cuts no bin.
        let check = (bitmap.edge(set) > 0).then(|| Mask::zeros(n));
        let mut found = Found { sure: Mask::zeros(n), check };
        let check = found.check.as_mut().map_or(&mut [][..], Mask::words_mut);
        let sure = found.sure.words_mut();
        let started = Instant::now();
        let Some((requests, bytes)) =
            self.index.evaluate(region, bitmap, set, &mut leaves.bitmap, sure, check)
        else {
            // Damaged: nothing of it is believed.
            return Found { sure: Mask::zeros(n), check: Some(Mask::ones(n)) };
        };
        if bytes >= LEARNT_FROM {
            let took = started.elapsed().as_secs_f64() * 1e9;
            self.costs.byte.observe((took - requests as f64 * self.costs.request.get()) / bytes as f64);
        }
        found
    }
}
