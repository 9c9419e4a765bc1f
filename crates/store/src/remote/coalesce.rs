//! Ranges put together into requests.

use std::ops::Range;

/// Bytes between two wanted ranges that are fetched rather than paid for by a request of their own. At 60 ms and
/// 100 Mbit/s a request costs as much as 750 KB, but up to 16 go at once: an eighth of that is a fair bargain.
pub(crate) const GAP: u64 = 96 << 10;
/// Between long ranges a gap may be this part of them, for what it costs is little beside them.
const GAP_SHARE: u64 = 16;
/// The longest request of bytes that somebody waits for: longer ones are split, so that parts come in parallel.
pub(crate) const LONGEST: u64 = 8 << 20;
/// The longest request of bytes that are only announced.
const LONGEST_AHEAD: u64 = 32 << 20;
/// Requests that announced bytes make at least, where they are long.
const SIDE_BY_SIDE: u64 = 2;
/// Where requests are cut into segments, each of which is there as soon as its last byte is: multiples of this.
pub(crate) const SEGMENT: u64 = 1 << 20;

/// Requests for the `missing` ranges (in order, apart): near ones together unless what lies between is `present`,
/// those longer than `longest` split evenly.
pub(crate) fn requests(
    missing: &[Range<u64>],
    longest: u64,
    present: impl Fn(&Range<u64>) -> bool,
) -> Vec<Range<u64>> {
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in missing.iter().filter(|r| r.start < r.end) {
        if let Some(last) = merged.last_mut() {
            let wanted = (last.end - last.start).saturating_add(range.end - range.start);
            let near = range.start.saturating_sub(last.end) <= GAP.max(wanted / GAP_SHARE);
            if near && (range.start <= last.end || !present(&(last.end..range.start))) {
                last.end = last.end.max(range.end);
                continue;
            }
        }
        merged.push(range.clone());
    }
    merged.into_iter().flat_map(|range| split(range, longest)).collect()
}

/// The longest request for announced ranges. Whoever reads them takes the first while the others are coming, so that few
/// long ones do; but one alone has only what one connection gives.
pub(crate) fn longest_ahead(ranges: &[Range<u64>]) -> u64 {
    let total: u64 = ranges.iter().map(|r| r.end.saturating_sub(r.start)).sum();
    (total / SIDE_BY_SIDE).clamp(LONGEST, LONGEST_AHEAD)
}

/// The segments of a range, cut at multiples of `SEGMENT`.
pub(crate) fn segments(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let (first, last) = (range.start / SEGMENT, range.end.div_ceil(SEGMENT));
    (first..last).map(move |n| {
        let start = n * SEGMENT;
        start.max(range.start)..start.saturating_add(SEGMENT).min(range.end)
    })
}

fn split(range: Range<u64>, longest: u64) -> impl Iterator<Item = Range<u64>> {
    let len = range.end - range.start;
    let parts = len.div_ceil(longest).max(1);
    let step = len.div_ceil(parts).max(1);
    (0..parts).map(move |i| range.start + i * step..(range.start + (i + 1) * step).min(range.end))
}

/// Ranges cut to `len`, sorted, and made disjoint.
pub(crate) fn disjoint(ranges: &[Range<u64>], len: u64) -> Vec<Range<u64>> {
    let cut = |r: &Range<u64>| r.start.min(len)..r.end.min(len);
    let mut sorted: Vec<_> = ranges.iter().map(cut).filter(|r| r.start < r.end).collect();
    sorted.sort_unstable_by_key(|r| r.start);
    let mut out: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match out.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

/// How far a short read reaches ahead. Parsers of metadata make many little reads: a first block of
/// [`ReadAhead::FIRST`] answers most of them; where reads stay near each other blocks grow fourfold, to what a request
/// costs in bytes; where they jump, blocks are small again, for what lies between two far places is not wanted.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    block: u64,
    end: u64,
}

impl ReadAhead {
    pub(crate) const FIRST: u64 = 64 << 10;
    const MOST: u64 = 1 << 20;

    /// After a first block, which ends at `end`.
    pub(crate) fn after(end: u64) -> Self {
        Self { block: Self::FIRST, end }
    }

    /// The range to fetch for a read of `missing`, of an object of `len` bytes.
    pub(crate) fn reach(&mut self, missing: &Range<u64>, len: u64) -> Range<u64> {
        if missing.end - missing.start >= Self::FIRST {
            return missing.clone();
        }
        let near = missing.start.abs_diff(self.end) <= 2 * self.block;
        self.block = if near { (self.block * 4).min(Self::MOST) } else { Self::FIRST };
        let start = missing.start / Self::FIRST * Self::FIRST;
        let end = missing.end.max(start.saturating_add(self.block)).min(len);
        self.end = end;
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_go_together_unless_something_is_there() {
        let r = [0..10, 20..30, 30 + GAP..40 + GAP, 50 + 2 * GAP..51 + 2 * GAP];
        assert_eq!(requests(&r, LONGEST, |_| false), [0..40 + GAP, 50 + 2 * GAP..51 + 2 * GAP]);
        let long = [0..16 * GAP, 18 * GAP..34 * GAP, 37 * GAP..38 * GAP];
        assert_eq!(requests(&long, LONGEST, |_| false), [0..34 * GAP, 37 * GAP..38 * GAP]);
        assert_eq!(requests(&r[..2], LONGEST, |gap| *gap == (10..20)), [0..10, 20..30]);
    }

    #[test]
    fn long_ranges_are_split_without_loss() {
        let whole = 5..5 + 3 * LONGEST + 1;
        let parts = requests(std::slice::from_ref(&whole), LONGEST, |_| false);
        assert_eq!(parts.len(), 4);
        assert!(parts.windows(2).all(|w| w[0].end == w[1].start));
        assert!(parts.iter().all(|p| p.end - p.start <= LONGEST));
        assert_eq!((parts[0].start, parts[3].end), (whole.start, whole.end));
        let segments: Vec<_> = segments(whole.clone()).collect();
        assert_eq!((segments[0].clone(), segments[1].clone()), (5..SEGMENT, SEGMENT..2 * SEGMENT));
        assert!(segments.windows(2).all(|w| w[0].end == w[1].start));
        assert_eq!((segments.len(), segments[24].end), (25, whole.end));
    }

    #[test]
    fn announced_ranges_come_in_few_requests_but_not_in_one() {
        let of = |bytes: u64| longest_ahead(&[3..3 + bytes / 2, bytes..bytes + bytes / 2]);
        assert_eq!([of(1 << 20), of(24 << 20), of(1 << 30)], [LONGEST, 12 << 20, LONGEST_AHEAD]);
    }

    #[test]
    fn hostile_ranges_are_cut_to_the_object() {
        let ranges = [u64::MAX - 1..u64::MAX, 90..u64::MAX, Range { start: 8, end: 3 }, 0..5, 3..7];
        assert_eq!(disjoint(&ranges, 100), [0..7, 90..100]);
    }

    #[test]
    fn blocks_grow_where_reads_are_near() {
        let mut ahead = ReadAhead::after(65536);
        let len = 1 << 30;
        assert_eq!(ahead.reach(&(65536..65540), len), 65536..65536 + (256 << 10));
        let next = 65536 + (256 << 10);
        assert_eq!(ahead.reach(&(next..next + 4), len), next..next + (1 << 20));
        let far = 500 << 20;
        assert_eq!(ahead.reach(&(far + 7..far + 9), len), far..far + 65536);
        assert_eq!(ahead.reach(&(far + 100_000..far + 300_000), len), far + 100_000..far + 300_000);
    }
}
