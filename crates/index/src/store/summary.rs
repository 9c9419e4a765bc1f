//! What a store has of each array, for people and for plans of maintenance.

use std::sync::Arc;

use super::load::load;
use super::segment::Segment;
use super::{ArrayHeader, ArrayRecords};

/// What a store has of an array. Counts and bytes are of records that count; what they replaced is left out.
#[derive(Clone, Debug, PartialEq)]
pub struct ArraySummary {
    /// The array.
    pub header: ArrayHeader,
    /// Number of its regions.
    pub regions: u64,
    /// Number of regions that have statistics.
    pub with_stats: u64,
    /// Number of regions that have a bitmap.
    pub with_bitmap: u64,
    /// Bytes of the statistics.
    pub stats_bytes: u64,
    /// Bytes of the heads of bitmaps.
    pub head_bytes: u64,
    /// Bytes of the bodies of bitmaps.
    pub body_bytes: u64,
    /// Names of the segments that have records of it.
    pub segments: Vec<String>,
}

impl ArraySummary {
    /// The path of the array.
    pub fn path(&self) -> &str {
        &self.header.path
    }

    fn of(records: &ArrayRecords, segments: &[Arc<Segment>]) -> Self {
        let header = records.header.clone();
        let of_array = segments.iter().filter(|s| s.array(&header.path).is_some_and(|(_, h)| *h == header));
        let with_stats = records.stats.iter().filter(|at| at.len > 0);
        Self {
            regions: header.regions().unwrap_or(0),
            with_stats: with_stats.count() as u64,
            with_bitmap: records.bitmaps.len() as u64,
            stats_bytes: records.stats.iter().map(|at| u64::from(at.len)).sum(),
            head_bytes: records.bitmaps.iter().map(|at| u64::from(at.len)).sum(),
            // Hostile bodies may overlap, and so have more bytes together than the file.
            body_bytes: records.bitmaps.iter().fold(0, |sum, at| sum.saturating_add(at.body_len)),
            segments: of_array.map(|s| s.name().to_owned()).collect(),
            header,
        }
    }
}

/// Summaries of all arrays, in the order in which they first got records. Reads tables, no statistics.
pub(super) fn summaries(segments: &[Arc<Segment>]) -> Vec<ArraySummary> {
    let mut paths: Vec<&str> = Vec::new();
    for header in segments.iter().flat_map(|segment| segment.arrays()) {
        if !paths.contains(&header.path.as_str()) {
            paths.push(&header.path);
        }
    }
    let records = paths.iter().filter_map(|path| load(segments, path, &[], false));
    records.map(|records| ArraySummary::of(&records, segments)).collect()
}
