//! Ranges by stripes: overlaps removed, and neighbours put together (steps one and two of Liu et al., Algorithm 1).

use std::ops::Range;

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sieva_store::{Piece, Striping};
use sieva_types::{Error, ErrorKind, Result};

use super::{GAP, REQUEST_BYTES, StripeTouched, Traffic};

/// What a piece takes at most: itself, its stripe, and the one request of that; lists have twice the room when they grow.
const PIECE_BYTES: u64 =
    2 * (size_of::<Piece>() + size_of::<StripeTouched>() + size_of::<Range<u64>>()) as u64;
/// Pieces between two looks at whether they are still wanted.
const PIECES: usize = 1 << 12;

/// What it may take, and what ends it.
pub(super) struct Limits<'a> {
    pub(super) memory: u64,
    pub(super) cancel: &'a AtomicBool,
}

impl Limits<'_> {
    /// # Errors
    /// `cancelled`.
    pub(super) fn check(&self) -> Result<()> {
        match self.cancel.load(Relaxed) {
            true => Err(Error::new(ErrorKind::Cancelled, "the plan was interrupted")),
            false => Ok(()),
        }
    }
}

/// What ranges of a file, which may overlap, are of its stripes: by server, then in the order of the file.
///
/// # Errors
/// `memory-limit` where they are too many, `cancelled`.
pub(super) fn merged(
    striping: &Striping,
    ranges: &[Range<u64>],
    limits: &Limits<'_>,
) -> Result<Vec<StripeTouched>> {
    let most = usize::try_from(limits.memory / PIECE_BYTES).unwrap_or(usize::MAX);
    let (mut pieces, mut done): (Vec<Piece>, u64) = (Vec::new(), 0);
    for piece in ranges.iter().flat_map(|range| striping.pieces(range.clone())) {
        if pieces.len().is_multiple_of(PIECES) {
            limits.check()?;
        }
        if pieces.len() >= most {
            return Err(too_many(pieces.len(), done, ranges, limits.memory));
        }
        done += piece.range.end - piece.range.start;
        pieces.push(piece);
    }
    limits.check()?;
    // The key of the paper's pairs is the server; a stripe is a range of the file, so that its order is that of offsets.
    pieces.sort_unstable_by_key(|p| (p.server, p.stripe, p.range.start));
    let of_stripes = pieces.chunk_by(|a, b| (a.server, a.stripe) == (b.server, b.stripe));
    Ok(of_stripes.map(stripe).collect())
}

/// What all pieces would take, where so many were made of the first bytes.
fn too_many(pieces: usize, done: u64, ranges: &[Range<u64>], memory: u64) -> Error {
    let all: u128 = ranges.iter().map(|range| u128::from(range.end - range.start)).sum();
    let need = all * pieces as u128 / u128::from(done.max(1)) * u128::from(PIECE_BYTES);
    let message = format!(
        "the stripes that the query touches take about {need} bytes to list, the limit of a query is {memory}"
    );
    Error::new(ErrorKind::MemoryLimit, message)
        .hint("give a larger stripe_size, a narrower condition, or the query more memory")
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

    fn merged(striping: &Striping, ranges: &[Range<u64>]) -> Vec<StripeTouched> {
        let limits = Limits { memory: 1 << 30, cancel: &AtomicBool::new(false) };
        super::merged(striping, ranges, &limits).unwrap()
    }

    #[test]
    fn stripes_that_are_too_many_are_refused_and_who_gives_up_is_heard() {
        let striping = Striping::given(1, 7, 0).unwrap();
        let found = |memory, is_over| {
            let cancel = AtomicBool::new(is_over);
            super::merged(&striping, std::slice::from_ref(&(0..1 << 40)), &Limits { memory, cancel: &cancel })
                .unwrap_err()
        };
        let e = found(1 << 20, false);
        assert_eq!(e.kind(), ErrorKind::MemoryLimit);
        let need = u128::from(PIECE_BYTES) << 40;
        assert!(e.message().contains(&format!("about {need} bytes")), "{e}");
        assert_eq!(found(1 << 20, true).kind(), ErrorKind::Cancelled);
        assert_eq!(merged(&striping, std::slice::from_ref(&(0..700))).len(), 700);
    }

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
