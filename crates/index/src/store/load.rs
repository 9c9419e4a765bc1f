//! Loading the records of an array from all segments of a store.

use std::sync::Arc;

use sieva_store::Counters;
use sieva_types::Result;

use super::heads::HeadBlocks;
use super::records::{BitmapAt, StatsAt};
use super::segment::{Block, Kind, Segment};
use super::{ArrayHeader, ArrayRecords};

/// Loads what `segments`, oldest first, know of the array at `path`; `None` if that is nothing. Damage is added
/// to `damage`. Without `payloads` only tables are read: there is no [`ArrayRecords::stats`] then.
pub(super) fn load(
    segments: &[Arc<Segment>],
    path: &str,
    damage: &[String],
    payloads: bool,
) -> Option<ArrayRecords> {
    let header = header_of(segments, path)?.clone();
    let mut records = ArrayRecords {
        header,
        stats: Vec::new(),
        payloads: Vec::new(),
        bitmaps: Vec::new(),
        heads: HeadBlocks::new(),
        counters: Counters::default(),
        damage: damage.to_vec(),
    };
    for segment in segments {
        if let Some((array, header)) = segment.array(path)
            && *header == records.header
        {
            segment.announce(array);
        }
    }
    for segment in segments {
        match segment.array(path) {
            Some((array, header)) if *header == records.header => records.add(segment, array, payloads),
            // What was built with other regions gave way to what was built after it.
            Some((_, header)) if header.differs_in_regions(&records.header) => {}
            Some(_) => {
                let what = format!("segment '{}': '{path}' was another array then", segment.name());
                records.damage.push(what);
            }
            None => {}
        }
    }
    records.stats = merged_stats(records.stats);
    records.bitmaps = merged_bitmaps(records.bitmaps);
    Some(records)
}

/// The header that counts of the array at `path`: that of the newest segment that a build made, else of the newest. What a
/// scan leaves of an array whose regions were built anew meanwhile hides nothing.
pub(super) fn header_of<'s>(segments: &'s [Arc<Segment>], path: &str) -> Option<&'s ArrayHeader> {
    let of_builds = segments.iter().rev().filter(|segment| segment.durable());
    of_builds.chain(segments.iter().rev()).find_map(|segment| segment.array(path)).map(|(_, header)| header)
}

/// The names of segments that nothing is taken from: all that they have was built anew with other regions.
pub(super) fn superseded(segments: &[Arc<Segment>]) -> Vec<String> {
    let gave_way = |header: &ArrayHeader| {
        header_of(segments, &header.path).is_some_and(|counts| header.differs_in_regions(counts))
    };
    let all = segments.iter().filter(|s| s.arrays().next().is_some() && s.arrays().all(gave_way));
    all.map(|segment| segment.name().to_owned()).collect()
}

impl ArrayRecords {
    /// Adds the records of a segment; blocks that are damaged are told instead.
    fn add(&mut self, segment: &Arc<Segment>, array: u32, payloads: bool) {
        for block in segment.blocks(array, Kind::Stats) {
            if let Err(e) = self.add_stats(segment, block, payloads) {
                self.damage.push(e.message().to_owned());
            }
        }
        for block in segment.blocks(array, Kind::Heads) {
            if let Err(e) = self.add_bitmaps(segment, block) {
                self.damage.push(e.message().to_owned());
            }
        }
    }

    fn add_stats(&mut self, segment: &Segment, block: &Block, payloads: bool) -> Result<()> {
        let entries = segment.stats_table(block, &self.counters)?;
        let payload = if payloads { segment.payload(block, &self.counters)? } else { Vec::new() };
        let (number, mut start) = (self.payloads.len() as u32, 0);
        self.payloads.push(payload);
        self.stats.extend(entries.iter().map(|entry| {
            let at = StatsAt {
                region: entry.region,
                content: entry.content,
                block: number,
                start,
                len: entry.len,
            };
            start += entry.len;
            at
        }));
        Ok(())
    }

    fn add_bitmaps(&mut self, segment: &Arc<Segment>, block: &Block) -> Result<()> {
        let entries = segment.head_table(block, &self.counters)?;
        let (number, mut start) = (self.heads.push(segment, block) as u32, 0);
        self.bitmaps.extend(entries.iter().map(|entry| {
            let (region, body, body_len, len) = (entry.region, entry.body, entry.body_len, entry.len);
            let at = BitmapAt { region, block: number, start, len, body, body_len };
            start += len;
            at
        }));
        Ok(())
    }
}

/// One record for each region: the last one's fields where it has them. Sorting is stable, so that records of one
/// region stay in the order of segments.
fn merged_stats(mut all: Vec<StatsAt>) -> Vec<StatsAt> {
    all.sort_by_key(|at| at.region);
    all.dedup_by(|later, kept| {
        let same = later.region == kept.region;
        if same {
            kept.content = later.content.or(kept.content);
            if later.len > 0 {
                (kept.block, kept.start, kept.len) = (later.block, later.start, later.len);
            }
        }
        same
    });
    all
}

fn merged_bitmaps(mut all: Vec<BitmapAt>) -> Vec<BitmapAt> {
    all.sort_by_key(|at| at.region);
    all.dedup_by(|later, kept| {
        let same = later.region == kept.region;
        if same {
            *kept = later.clone();
        }
        same
    });
    all
}
