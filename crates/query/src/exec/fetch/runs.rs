//! Sorted positions of an array that lies plainly, read run by run.

use sieva_format::read::{BlockReader, Wants, Workspace};
use sieva_types::{Buffer, Result};

/// Bytes that one range may span.
pub const MAX_SPAN_BYTES: u64 = 1 << 20;

/// Reads the elements at sorted positions of a reader made by [`BlockReader::flat`] into `out`. Positions less
/// than `gap` bytes apart share a request. Returns the number of requests and their bytes.
pub fn read_runs(
    flat: &BlockReader,
    positions: &[u64],
    size: usize,
    gap: u64,
    ws: &mut Workspace,
    out: &mut [u8],
) -> Result<(u64, u64)> {
    let (mut at, mut requests, mut bytes) = (0, 0, 0);
    let mut block = Buffer::default();
    if flat.is_remote() {
        let mut wants = Wants::default();
        for run in runs_of(positions, size as u64, gap) {
            flat.wants_run(run[0], run[run.len() - 1] - run[0] + 1, &mut wants);
        }
        flat.will_need(&wants);
    }
    for run in runs_of(positions, size as u64, gap) {
        let (first, n) = (run[0], (run[run.len() - 1] - run[0] + 1) as usize);
        flat.read_run(first, n, &mut block, ws)?;
        let target = &mut out[at..at + run.len() * size];
        if n == run.len() && run.is_sorted_by(|a, b| a < b) {
            target.copy_from_slice(block.bytes());
        } else {
            pick(block.bytes(), run, first, size, target);
        }
        at += run.len() * size;
        requests += 1;
        bytes += (n * size) as u64;
    }
    Ok((requests, bytes))
}

/// Sorted positions cut where a gap is larger than `gap` bytes or a span is long.
fn runs_of(mut rest: &[u64], size: u64, gap: u64) -> impl Iterator<Item = &[u64]> {
    std::iter::from_fn(move || {
        let first = *rest.first()?;
        // Neighbours have no gap; a position may be there more than once.
        let ends = |i: &usize| {
            let between = (rest[*i] - rest[*i - 1]).saturating_sub(1);
            between * size > gap || (rest[*i] - first) * size > MAX_SPAN_BYTES
        };
        let n = (1..rest.len()).find(ends).unwrap_or(rest.len());
        let (run, left) = rest.split_at(n);
        rest = left;
        Some(run)
    })
}

/// Copies the elements at the positions of `run` from a block that begins at position `first`.
fn pick(block: &[u8], run: &[u64], first: u64, size: usize, out: &mut [u8]) {
    fn by<const N: usize>(block: &[u8], run: &[u64], first: u64, out: &mut [u8]) {
        let block = block.as_chunks::<N>().0;
        for (slot, &p) in out.as_chunks_mut::<N>().0.iter_mut().zip(run) {
            *slot = block[(p - first) as usize];
        }
    }
    match size {
        1 => by::<1>(block, run, first, out),
        2 => by::<2>(block, run, first, out),
        4 => by::<4>(block, run, first, out),
        _ => by::<8>(block, run, first, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_gaps_and_long_spans_split_runs() {
        let positions = [5, 10, 11 + 1024, 13 + 2 * 1024];
        let runs: Vec<&[u64]> = runs_of(&positions, 4, 4096).collect();
        assert_eq!(runs, [&positions[..3], &positions[3..]]);
        let dense: Vec<u64> = (0..3 * MAX_SPAN_BYTES / 4).collect();
        assert_eq!(runs_of(&dense, 4, 0).map(<[u64]>::len).sum::<usize>(), dense.len());
        assert_eq!(runs_of(&dense, 4, 0).count(), 3);
        assert_eq!(runs_of(&[], 4, 0).count(), 0);
        let repeated = [7, 7, 7, 8, 9000, 9000];
        let runs: Vec<&[u64]> = runs_of(&repeated, 4, 64).collect();
        assert_eq!(runs, [&repeated[..4], &repeated[4..]]);
    }
}
