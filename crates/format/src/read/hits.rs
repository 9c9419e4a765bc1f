//! Values at the positions that a condition selected, which evaluating it has read: whoever reads there next finds them.
//!
//! Of each array the cache has a list of what is there: first and last position, and the number of an entry with all positions
//! and values. Entries are counted and dropped as decoded chunks are; what is asked for is a run of the positions of one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::BlockReader;
use super::cache::ChunkKey;

/// Stand in the place of a file's number: such keys are of no chunk.
const HITS: u32 = u32::MAX - 2;
const LIST: u32 = u32::MAX - 3;
/// Entries of an array that are known of: the last ones.
const MOST: usize = 64;
/// Of what a query may keep, what one entry may take (1/8).
const SHARE: usize = 8;
const WORD: usize = 8;
/// First position, last position, number.
const LINE: usize = 3 * WORD;

impl BlockReader {
    /// Bytes of positions (8 each) and values that are kept of one selection at most; 0 where it is of no use: nothing is kept
    /// from query to query, or chunks are, or the whole array is.
    pub fn most_hits(&self) -> usize {
        let is_used = self.cache.is_shared() && !self.layout.is_chunked() && !self.is_kept_whole();
        if is_used { self.cache.most() / SHARE } else { 0 }
    }

    /// Keeps the stored values at ascending positions of the array.
    pub fn keep_hits(&self, positions: &[u64], values: &[u8]) {
        let (Some(first), Some(last)) = (positions.first(), positions.last()) else { return };
        if positions.len() * WORD + values.len() > self.most_hits() {
            return;
        }
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let mut entry = Vec::with_capacity(positions.len() * WORD + values.len());
        positions.iter().for_each(|p| entry.extend(p.to_ne_bytes()));
        entry.extend_from_slice(values);
        self.cache.put(self.entry(number), Arc::new(entry));
        let mut list = self.list();
        list.retain(|line| self.cache.holds(self.entry(line[2])));
        list.push([*first, *last, number]);
        let known = list[list.len().saturating_sub(MOST)..].iter().flatten();
        self.cache.put((LIST, self.array as u64, 0), Arc::new(known.flat_map(|n| n.to_ne_bytes()).collect()));
    }

    /// Fills `out` with the values at ascending positions, if they are a run of what is kept.
    pub fn recall_hits(&self, positions: &[u64], out: &mut [u8]) -> bool {
        let (Some(&first), Some(&last)) = (positions.first(), positions.last()) else { return false };
        let fits = |line: &&[u64; 3]| line[0] <= first && last <= line[1];
        self.list().iter().rev().filter(fits).any(|line| {
            let size = out.len() / positions.len();
            self.cache.get(self.entry(line[2])).is_some_and(|entry| copied(&entry, positions, size, out))
        })
    }

    fn entry(&self, number: u64) -> ChunkKey {
        (HITS, self.array as u64, number)
    }

    fn list(&self) -> Vec<[u64; 3]> {
        let key = (LIST, self.array as u64, 0);
        if !self.cache.is_shared() || !self.cache.holds(key) {
            return Vec::new();
        }
        let Some(list) = self.cache.get(key) else { return Vec::new() };
        let line = |line: &[u8]| [word(line, 0), word(line, 1), word(line, 2)];
        list.chunks_exact(LINE).map(line).collect()
    }
}

/// Copies the values at `positions`, of `size` bytes each, if they are a run of the entry's.
fn copied(entry: &[u8], positions: &[u64], size: usize, out: &mut [u8]) -> bool {
    let n = entry.len() / (WORD + size);
    let (known, values) = entry.split_at(n * WORD);
    if size == 0 || values.len() != n * size {
        return false;
    }
    let (mut from, mut end) = (0, n);
    while from < end {
        let middle = from + (end - from) / 2;
        if word(known, middle) < positions[0] { from = middle + 1 } else { end = middle }
    }
    if from + positions.len() > n {
        return false;
    }
    let run = known[from * WORD..].chunks_exact(WORD).zip(positions);
    if !run.into_iter().all(|(known, p)| known == p.to_ne_bytes()) {
        return false;
    }
    out.copy_from_slice(&values[from * size..][..positions.len() * size]);
    true
}

fn word(bytes: &[u8], i: usize) -> u64 {
    let mut word = [0; WORD];
    word.copy_from_slice(&bytes[i * WORD..][..WORD]);
    u64::from_ne_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_positions_are_found() {
        let positions = [3_u64, 5, 6, 1 << 40];
        let mut entry: Vec<u8> = positions.iter().flat_map(|p| p.to_ne_bytes()).collect();
        entry.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        let ask = |at: &[u64]| {
            let mut out = vec![0; at.len() * 2];
            copied(&entry, at, 2, &mut out).then_some(out)
        };
        assert_eq!(ask(&positions), Some(vec![1, 2, 3, 4, 5, 6, 7, 8]));
        assert_eq!(ask(&[5, 6]), Some(vec![3, 4, 5, 6]));
        assert_eq!(ask(&[1 << 40]), Some(vec![7, 8]));
        assert_eq!(
            [ask(&[3, 6]), ask(&[4]), ask(&[6, 1 << 40, 2 << 40]), ask(&[9, 10])],
            [None, None, None, None]
        );
        assert!(!copied(&entry, &positions, 4, &mut [0; 16]));
    }
}
