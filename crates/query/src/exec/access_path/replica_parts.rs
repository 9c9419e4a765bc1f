//! Parts of a sorted replica that threads read at once.

use std::ops::Range;
use std::sync::Mutex;

use crate::exec::access_path::Replica;
use crate::mask::Mask;

/// Rows that a thread reads at once, at least and at most: a few chunks of a replica.
const LEAST_ROWS: u64 = 1 << 15;
const MOST_ROWS: u64 = 1 << 20;
/// Parts that the rows are cut into, where they are many.
const PARTS: u64 = 64;
/// Rows of a replica that are read at once.
pub struct Part {
    /// Which of its rows.
    pub rows: Range<u64>,
    /// How many rows of the slices come before.
    pub before: usize,
    /// How many chosen rows come before.
    pub chosen_before: usize,
    /// How many of them are chosen.
    pub chosen: usize,
}

/// Cuts slices of a replica where its chunks end, so that no chunk is read twice. Over a network a slice is read as a whole.
pub fn parts_of(replica: &Replica, slices: &[Range<u64>], kept: Option<&Mask>) -> Vec<Part> {
    let all: u64 = slices.iter().map(|s| s.end - s.start).sum();
    let most = match replica.replica.is_remote() {
        true => MOST_ROWS,
        false => (all / PARTS).next_power_of_two().clamp(LEAST_ROWS, MOST_ROWS),
    };
    let (mut parts, mut before, mut chosen_before) = (Vec::new(), 0, 0);
    for slice in slices {
        let mut at = slice.start;
        while at < slice.end {
            let end = slice.end.min((at / most + 1) * most);
            let n = (end - at) as usize;
            let chosen = kept.map_or(n, |kept| kept.count_range(before, n));
            parts.push(Part { rows: at..end, before, chosen_before, chosen });
            (at, before, chosen_before) = (end, before + n, chosen_before + chosen);
        }
    }
    parts
}

impl Part {
    /// Number of its rows.
    pub fn len(&self) -> usize {
        (self.rows.end - self.rows.start) as usize
    }

    /// Calls `with` for each row of the part that is chosen: which of its rows.
    pub fn for_each_chosen(&self, kept: Option<&Mask>, mut with: impl FnMut(usize)) {
        let n = self.len();
        match kept {
            None => (0..n).for_each(with),
            Some(kept) => {
                let mut own = Mask::zeros(n);
                own.or_range(0, kept, self.before, n);
                own.ones_iter().for_each(&mut with);
            }
        }
    }
}

/// Cuts `out` into pieces of these lengths, for threads to write one each.
pub fn shared_out<T>(out: &mut [T], lens: impl Iterator<Item = usize>) -> Vec<Mutex<&mut [T]>> {
    let mut rest = out;
    let mut next = |n| {
        let (own, others) = std::mem::take(&mut rest).split_at_mut(n);
        rest = others;
        Mutex::new(own)
    };
    lens.map(&mut next).collect()
}
