//! A node's bits from the leaves of its rows, and the rows parted by them, both sides in order.

/// The number of a leaf in the fewest bytes.
pub(super) trait Code: Copy + Ord + Default + Send + Sync + 'static {
    /// The number, which fits.
    fn new(leaf: u16) -> Self;
    /// Handles the leading rows that fill whole registers, as [`portable`] would; returns what it did.
    fn wide(codes: &mut [Self], split: Self, right: &mut [Self], words: &mut [u64]) -> Done;
}

/// Rows handled, and how many of them went left and right.
#[derive(Clone, Copy, Default)]
pub(super) struct Done {
    rows: usize,
    left: usize,
    right: usize,
}

/// Bit i of `words` says whether code i is at least `split`; those below come first in `codes` then, the
/// others after them. `scratch` is at least as long as `codes`; `words` has a word per 64 codes.
pub(super) fn partition<C: Code>(codes: &mut [C], split: C, scratch: &mut [C], words: &mut [u64]) {
    let done = C::wide(codes, split, scratch, words);
    let done = portable(codes, split, scratch, words, done);
    codes[done.left..].copy_from_slice(&scratch[..done.right]);
}

/// Writes each code to both sides and advances one of them: no branch to foretell.
fn portable<C: Code>(codes: &mut [C], split: C, right: &mut [C], words: &mut [u64], mut done: Done) -> Done {
    let mut from = done.rows;
    for word in &mut words[done.rows / 64..] {
        let mut bits = 0;
        let end = codes.len().min(from + 64);
        for i in from..end {
            let code = codes[i];
            let up = code >= split;
            bits |= u64::from(up) << (i - from);
            // At most as many went left as were read, so nothing unread is overwritten.
            codes[done.left] = code;
            right[done.right] = code;
            done.left += usize::from(!up);
            done.right += usize::from(up);
        }
        *word = bits;
        from = end;
    }
    done.rows = from;
    done
}

#[cfg(not(target_arch = "x86_64"))]
impl Code for u8 {
    fn new(leaf: u16) -> Self {
        leaf as u8
    }
    fn wide(_: &mut [Self], _: Self, _: &mut [Self], _: &mut [u64]) -> Done {
        Done::default()
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Code for u16 {
    fn new(leaf: u16) -> Self {
        leaf
    }
    fn wide(_: &mut [Self], _: Self, _: &mut [Self], _: &mut [u64]) -> Done {
        Done::default()
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Code, Done};

    macro_rules! compress {
        ($name:ident, $t:ty, $lanes:expr, $load:ident, $store:ident, $set:ident, $ge:ident, $compress:ident) => {
            /// A comparison is the node's bits; compressing instructions pack either side.
            #[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
            fn $name(codes: &mut [$t], split: $t, right: &mut [$t], words: &mut [u64]) -> Done {
                let mut done = Done::default();
                let whole = codes.len().min(right.len()) / 64 * 64;
                let limit = $set(split as _);
                for word in &mut words[..whole / 64] {
                    let mut bits = 0_u64;
                    for group in 0..64 / $lanes {
                        let at = done.rows + group * $lanes;
                        // SAFETY: `at + lanes <= whole`, within `codes`.
                        let v = unsafe { $load(codes.as_ptr().add(at).cast()) };
                        let up = $ge(v, limit);
                        // SAFETY: `left <= at`, so a whole register from there on ends at or before the end of
                        // what was just read; `right <= at` likewise, and `right` holds `whole` codes.
                        unsafe {
                            $store(codes.as_mut_ptr().add(done.left).cast(), $compress(!up, v));
                            $store(right.as_mut_ptr().add(done.right).cast(), $compress(up, v));
                        }
                        let ones = up.count_ones() as usize;
                        done.left += $lanes - ones;
                        done.right += ones;
                        bits |= u64::from(up) << (group * $lanes);
                    }
                    *word = bits;
                    done.rows += 64;
                }
                done
            }

            impl Code for $t {
                fn new(leaf: u16) -> Self {
                    leaf as $t
                }
                fn wide(codes: &mut [Self], split: Self, right: &mut [Self], words: &mut [u64]) -> Done {
                    if is_x86_feature_detected!("avx512f")
                        && is_x86_feature_detected!("avx512bw")
                        && is_x86_feature_detected!("avx512vbmi2")
                        && is_x86_feature_detected!("popcnt")
                    {
                        // SAFETY: the features were just detected.
                        unsafe { $name(codes, split, right, words) }
                    } else {
                        Done::default()
                    }
                }
            }
        };
    }

    compress!(
        bytes,
        u8,
        64,
        _mm512_loadu_epi8,
        _mm512_storeu_epi8,
        _mm512_set1_epi8,
        _mm512_cmpge_epu8_mask,
        _mm512_maskz_compress_epi8
    );
    compress!(
        pairs,
        u16,
        32,
        _mm512_loadu_epi16,
        _mm512_storeu_epi16,
        _mm512_set1_epi16,
        _mm512_cmpge_epu16_mask,
        _mm512_maskz_compress_epi16
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check<C: Code + std::fmt::Debug>(codes: &[u16], split: u16) {
        let codes: Vec<C> = codes.iter().map(|&c| C::new(c)).collect();
        let split = C::new(split);
        let sorted: Vec<C> = {
            let (left, right): (Vec<C>, Vec<C>) = codes.iter().partition(|&&c| c < split);
            [left, right].concat()
        };
        let mut words = vec![u64::MAX; codes.len().div_ceil(64)];
        let mut parted = codes.clone();
        let mut scratch = codes.clone();
        partition(&mut parted, split, &mut scratch, &mut words);
        assert_eq!(parted, sorted);
        let mut plain = codes.clone();
        let mut plain_words = words.clone();
        let done = portable(&mut plain, split, &mut scratch, &mut plain_words, Done::default());
        plain[done.left..].copy_from_slice(&scratch[..done.right]);
        assert_eq!((plain, plain_words), (parted, words.clone()));
        for i in 0..words.len() * 64 {
            assert_eq!(words[i / 64] >> (i % 64) & 1 == 1, codes.get(i).is_some_and(|&c| c >= split));
        }
    }

    proptest! {
        #[test]
        fn order_is_kept(codes in proptest::collection::vec(0..256_u16, 0..400), split in 1..256_u16) {
            check::<u8>(&codes, split);
            check::<u16>(&codes, split);
            check::<u16>(&codes.iter().map(|c| c * 256).collect::<Vec<_>>(), split * 255);
        }
    }
}
