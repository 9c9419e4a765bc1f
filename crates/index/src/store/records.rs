//! The records of one array, of all segments together.

use std::ops::Range;

use sieva_store::Counters;
use sieva_types::Result;

use super::bytes::corrupt;
use super::heads::HeadBlocks;
use super::{ArrayHeader, Head};

/// Where the statistics of a region are.
#[derive(Clone, Debug)]
pub(super) struct StatsAt {
    pub(super) region: u64,
    pub(super) content: Option<u64>,
    /// Number of the payload.
    pub(super) block: u32,
    pub(super) start: u32,
    pub(super) len: u32,
}

/// Where the bitmap of a region is.
#[derive(Clone, Debug)]
pub(super) struct BitmapAt {
    pub(super) region: u64,
    /// Number of the block of heads.
    pub(super) block: u32,
    pub(super) start: u32,
    pub(super) len: u32,
    pub(super) body: u64,
    pub(super) body_len: u64,
}

/// What is known of an array: statistics in memory, heads read when asked for, bodies read in ranges.
///
/// Shared between threads. What was removed from the store meanwhile stays readable.
#[derive(Debug)]
pub struct ArrayRecords {
    pub(super) header: ArrayHeader,
    /// Ascending by region, one each.
    pub(super) stats: Vec<StatsAt>,
    pub(super) payloads: Vec<Vec<u8>>,
    /// Ascending by region, one each.
    pub(super) bitmaps: Vec<BitmapAt>,
    pub(super) heads: HeadBlocks,
    pub(super) counters: Counters,
    /// What was left out because it is damaged, one line each.
    pub damage: Vec<String>,
}

impl ArrayRecords {
    /// The array.
    pub fn header(&self) -> &ArrayHeader {
        &self.header
    }

    /// The statistics of a region.
    pub fn stats(&self, region: usize) -> Option<&[u8]> {
        let at = find(&self.stats, region as u64, |at| at.region).filter(|at| at.len > 0)?;
        let start = at.start as usize;
        self.payloads.get(at.block as usize)?.get(start..start + at.len as usize)
    }

    /// xxh3-64 of the elements of a region, when its records were made.
    pub fn content(&self, region: usize) -> Option<u64> {
        find(&self.stats, region as u64, |at| at.region)?.content
    }

    /// Whether a region has a bitmap.
    pub fn has_bitmap(&self, region: usize) -> bool {
        self.bitmap(region).is_some()
    }

    /// Whether any region has a bitmap.
    pub fn has_bitmaps(&self) -> bool {
        !self.bitmaps.is_empty()
    }

    /// The head of a region's bitmap; `None` if it has none.
    ///
    /// # Errors
    /// `corrupt-index` where it is damaged, `io-error`.
    pub fn bitmap_head(&self, region: usize) -> Result<Option<Head>> {
        let Some(at) = self.bitmap(region) else { return Ok(None) };
        let range = at.start as usize..at.start as usize + at.len as usize;
        self.heads.head(at.block as usize, range, at.body_len, &self.counters).map(Some)
    }

    /// Makes `out` the bytes `range` of the body of a region's bitmap, which are not verified here: a body
    /// carries its own checksums.
    ///
    /// # Errors
    /// `corrupt-index` where there is no such range, `io-error`.
    pub fn read_body(&self, region: usize, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let at = self.bitmap(region).filter(|at| range.start <= range.end && range.end <= at.body_len);
        let Some(at) = at else {
            return Err(corrupt(format!("region {region} has no bitmap with bytes {range:?}")));
        };
        // What is longer needs no zeros: it is overwritten.
        out.resize((range.end - range.start) as usize, 0);
        let segment = &self.heads.block(at.block as usize).segment;
        segment.read(at.body + range.start, out, &self.counters).map_err(|e| segment.place(e))
    }

    /// Bytes read so far, of directories none.
    pub fn bytes_read(&self) -> u64 {
        self.counters.snapshot().bytes_read
    }

    /// Read requests made so far.
    pub fn requests(&self) -> u64 {
        self.counters.snapshot().requests
    }

    fn bitmap(&self, region: usize) -> Option<&BitmapAt> {
        find(&self.bitmaps, region as u64, |at| at.region)
    }
}

/// The item of a region in an ascending list; at once where the list has no gaps before it.
fn find<T>(list: &[T], region: u64, of: impl Fn(&T) -> u64) -> Option<&T> {
    let guess = region.checked_sub(of(list.first()?))?;
    match list.get(usize::try_from(guess).ok()?) {
        Some(item) if of(item) == region => Some(item),
        _ => list.binary_search_by_key(&region, of).ok().map(|at| &list[at]),
    }
}
