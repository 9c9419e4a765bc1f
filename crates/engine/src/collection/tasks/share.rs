//! Objects shared out by the bytes to read.

use std::ops::Range;

/// At most `n` ranges of consecutive objects, which together have each once. `weights` are the bytes of the objects of each
/// source; sources that are no larger than a part are not cut.
pub(super) fn cuts(weights: &[Vec<u64>], n: usize) -> Vec<Range<u64>> {
    let all: u128 = weights.iter().flatten().map(|&w| weight(w)).sum();
    let part = all.div_ceil(n.max(1) as u128).max(1);
    let (mut ends, mut bytes, mut number, mut k) = (Vec::new(), 0_u128, 0_u64, 1_u128);
    for source in weights {
        let own: u128 = source.iter().map(|&w| weight(w)).sum();
        if own <= part {
            // The end of a part is that of the source which is nearer.
            while k * part < bytes + own {
                let is_before = k * part - bytes <= bytes + own - k * part;
                ends.push(if is_before { number } else { number + source.len() as u64 });
                k += 1;
            }
        } else {
            let mut at = bytes;
            for (i, &w) in source.iter().enumerate() {
                while k * part < at + weight(w) {
                    let is_before = k * part - at <= at + weight(w) - k * part;
                    ends.push(number + i as u64 + u64::from(!is_before));
                    k += 1;
                }
                at += weight(w);
            }
        }
        bytes += own;
        number += source.len() as u64;
    }
    ends.push(number);
    let mut from = 0;
    let ranges = ends.into_iter().map(|end| std::mem::replace(&mut from, end)..end);
    ranges.filter(|r| !r.is_empty()).collect()
}

/// An object without bytes takes time all the same.
fn weight(bytes: u64) -> u128 {
    u128::from(bytes.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look drawn, the same in each run.
    fn drawn(seed: &mut u64) -> u64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *seed >> 33
    }

    #[test]
    fn each_object_is_in_one_part_and_small_sources_stay_whole() {
        let mut seed = 7;
        for _ in 0..500 {
            let sources = drawn(&mut seed) as usize % 12;
            let weights: Vec<Vec<u64>> = (0..sources)
                .map(|_| (0..drawn(&mut seed) % 9).map(|_| drawn(&mut seed) % 1000).collect())
                .collect();
            let n = 1 + drawn(&mut seed) as usize % 10;
            let parts = cuts(&weights, n);
            assert!(parts.len() <= n, "{parts:?} of {n}");
            let mut next = 0;
            for part in &parts {
                assert!(part.start == next && part.end > next, "{parts:?}");
                next = part.end;
            }
            let flat: Vec<u128> = weights.iter().flatten().map(|&w| weight(w)).collect();
            assert_eq!(next, flat.len() as u64);
            let share = flat.iter().sum::<u128>().div_ceil(n as u128).max(1);
            let mut before = 0;
            for source in &weights {
                let (own, end) =
                    (source.iter().map(|&w| weight(w)).sum::<u128>(), before + source.len() as u64);
                let is_cut = parts.iter().any(|p| before < p.end && p.end < end);
                assert!(!is_cut || own > share, "{weights:?} in {n}: {parts:?}");
                before = end;
            }
            for part in &parts {
                let bytes: u128 = flat[part.start as usize..part.end as usize].iter().sum();
                let largest = flat.iter().copied().max().unwrap_or(0);
                assert!(bytes <= 2 * share + largest, "{bytes} of {share}");
            }
        }
    }

    #[test]
    fn equal_sources_are_shared_out_equally() {
        let weights = vec![vec![10; 5]; 8];
        assert_eq!(cuts(&weights, 4), [0..10, 10..20, 20..30, 30..40]);
        assert_eq!(cuts(&[vec![1; 9]], 3), [0..3, 3..6, 6..9]);
        assert_eq!(cuts(&[vec![0; 3]], 8), [0..1, 1..2, 2..3]);
        assert_eq!(cuts(&[], 3), []);
    }
}
