//! What scans learnt, written to the store when a source is closed.

use std::sync::atomic::Ordering::Relaxed;

use sieva_index::store::{Home, Listing, Record, SegmentWriter, Store};
use sieva_types::Result;

use super::homes::SHORT;
use super::{Loaded, profile};

/// Fewer new regions than this are not worth a file.
const ENOUGH: usize = 16;

impl Loaded {
    /// Writes what was learnt, if it is enough to help. Failing to is no error: nothing depends on it.
    fn save(&self) {
        if self.learn.share <= 0.0 {
            // Nothing is written of those who do not want it, not even costs.
            return;
        }
        if self.discarded.load(Relaxed) || self.stale.is_some() {
            // What a stale store has can be renewed by a build; this would take its place.
            return;
        }
        let learnt: usize = self.indexes.arrays().iter().map(|(_, index)| index.learnt()).sum();
        if learnt >= ENOUGH && self.write_learnt().is_err() {
            return;
        }
        profile::save(&self.write, &self.indexes.costs);
    }

    /// One segment with all that is known now of the arrays that were learnt of, in place of earlier ones.
    fn write_learnt(&self) -> Result<()> {
        let home = self.write.clone().with_patience(SHORT);
        let mut writer = SegmentWriter::create(&home)?;
        let mut stats = Vec::new();
        for (_, index) in self.indexes.arrays() {
            // Arrays that were looked at keep what scans left of them before.
            for region in 0..index.grid().len() {
                let Some(known) = index.full_stats(region) else { continue };
                stats.clear();
                known.encode(&mut stats);
                let content = index.records().and_then(|r| r.content(region));
                let record = Record { region: region as u64, content, stats: &stats, bitmap: None };
                writer.put(index.header(), &record)?;
            }
        }
        // Statistics are of the state that was opened: of no other, if it is that one still.
        self.reader.store().check_unchanged()?;
        let name = writer.finish(false)?;
        let looked: Vec<String> =
            self.indexes.arrays().iter().map(|(_, i)| i.header().path.clone()).collect();
        let replaced = self.replaced(&looked);
        let change = |listing: &Listing| {
            let mut listing = listing.clone();
            listing.segments.retain(|s| !replaced.iter().any(|r| r == s.name()));
            listing.segments.push(name.clone());
            listing
        };
        Store::publish(&home, self.fingerprint()?, &change, false)
    }

    /// The names of the segments that scans left of no other arrays than these: those that no build made.
    fn replaced(&self, arrays: &[String]) -> Vec<String> {
        let Some(store) = &self.store else { return Vec::new() };
        let all = store.arrays();
        let superseded = |name: &str| {
            let mut within = all.iter().filter(|a| a.segments.iter().any(|s| s == name));
            within.all(|a| arrays.contains(&a.header.path))
        };
        let scans = store.listing().segments.iter().filter(|s| !s.durable() && superseded(s.name()));
        scans.map(|s| s.name().to_string()).collect()
    }

    /// Where new augmentations go.
    pub(super) fn write(&self) -> &Home {
        &self.write
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        self.save();
    }
}
