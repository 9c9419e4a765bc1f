//! Ranges by stripes: overlaps removed, and neighbours put together (steps one and two of Liu et al., Algorithm 1).

use std::ops::Range;

use sieva_store::{Piece, Striping};

use super::{GAP, REQUEST_BYTES, StripeTouched, Traffic};

/// What ranges of a file, which may overlap, are of its stripes: by server, then in the order of the file.
pub(super) fn merged(striping: &Striping, ranges: &[Range<u64>]) -> Vec<StripeTouched> {
    let mut pieces: Vec<Piece> = ranges.iter().flat_map(|range| striping.pieces(range.clone())).collect();
    // The key of the paper's pairs is the server; a stripe is a range of the file, so that its order is that of offsets.
    pieces.sort_unstable_by_key(|p| (p.server, p.stripe, p.range.start));
    let of_stripes = pieces.chunk_by(|a, b| (a.server, a.stripe) == (b.server, b.stripe));
    of_stripes.map(stripe).collect()
}

fn stripe(pieces: &[Piece]) -> StripeTouched {
    let mut before = Traffic::default();
    let mut requests: Vec<Range<u64>> = Vec::new();
    for piece in pieces {
        let Range { start, end } = piece.range;
        before.add(Traffic { bytes: end - start, requests: 1 });
        match requests.last_mut() {
            Some(last) if start <= last.end => join(&mut requests, end),
            Some(last) if start - last.end <= GAP && end - last.start <= REQUEST_BYTES => last.end = end,
            _ => requests.push(start..end),
        }
    }
    let requests = requests.into_iter().flat_map(cut).collect();
    StripeTouched { server: pieces[0].server, stripe: pieces[0].stripe, before, requests }
}

/// Has the last request reach to `end`: what overlaps or touches is one range, however long.
fn join(requests: &mut [Range<u64>], end: u64) {
    if let Some(last) = requests.last_mut() {
        last.end = last.end.max(end);
    }
}

/// A range as requests of the most bytes that one has.
fn cut(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let n = (range.end - range.start).div_ceil(REQUEST_BYTES);
    (0..n).map(move |i| {
        let start = range.start + i * REQUEST_BYTES;
        start..range.end.min(start.saturating_add(REQUEST_BYTES))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_read_once_and_neighbours_together() {
        let striping = Striping::given(1 << 20, 2, 0).unwrap();
        let k = |n: u64| n << 10;
        // Twice the same, one within, one over a border of stripes, one far off.
        let ranges = [k(0)..k(8), k(0)..k(8), k(4)..k(6), k(40)..k(50), k(1000)..k(1100), k(500)..k(501)];
        let found = merged(&striping, &ranges);
        let of = |stripe: &StripeTouched| {
            let ends: Vec<(u64, u64)> = stripe.requests.iter().map(|r| (r.start, r.end)).collect();
            (stripe.server, stripe.stripe, ends)
        };
        assert_eq!(of(&found[0]), (0, 0, vec![(k(0), k(50)), (k(500), k(501)), (k(1000), k(1024))]));
        assert_eq!(of(&found[1]), (1, 1, vec![(k(1024), k(1100))]));
        assert_eq!(found[0].before, Traffic { bytes: k(8 + 8 + 2 + 10 + 1 + 24), requests: 6 });
        assert_eq!(found[0].after(), Traffic { bytes: k(50 + 1 + 24), requests: 3 });
        assert_eq!(merged(&striping, &[]), []);
    }

    #[test]
    fn requests_are_bounded_and_cover_what_is_wanted_and_nothing_twice() {
        let mut state = 7_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % n
        };
        for _ in 0..50 {
            let striping = Striping::given((1 + below(40)) << 20, 1 + below(4) as u32, 0).unwrap();
            let ranges: Vec<Range<u64>> = (0..1 + below(40))
                .map(|_| (below(100 << 20), 1 + below(9 << 20)))
                .map(|(start, n)| start..start + n)
                .collect();
            let found = merged(&striping, &ranges);
            let mut all: Vec<Range<u64>> = found.iter().flat_map(|s| s.requests.clone()).collect();
            all.sort_unstable_by_key(|r| r.start);
            assert!(all.windows(2).all(|pair| pair[0].end <= pair[1].start), "nothing twice");
            assert!(all.iter().all(|r| r.start < r.end && r.end - r.start <= REQUEST_BYTES));
            for range in &ranges {
                let mut at = range.start;
                for request in all.iter().filter(|r| r.end > range.start && r.start < range.end) {
                    assert!(request.start <= at, "a byte is missing at {at}");
                    at = request.end;
                }
                assert!(at >= range.end);
            }
            for stripe in &found {
                for piece in stripe.requests.iter().flat_map(|r| striping.pieces(r.clone())) {
                    assert_eq!((piece.server, piece.stripe), (stripe.server, stripe.stripe));
                }
            }
            let before: u64 = found.iter().map(|s| s.before.bytes).sum();
            assert_eq!(before, ranges.iter().map(|r| r.end - r.start).sum::<u64>());
        }
    }
}
