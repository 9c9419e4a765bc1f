//! The second pass: how many values lie in each bin of a region.
//!
//! Bin numbers are made into bytes by vector code, then counted in several tables in turn: a run of equal values
//! would otherwise wait for its own last increment.

use sieva_types::KeySet;

use super::bins::Bins;
use super::lane::{Lane, Word};
use super::zone::{LINEAR, among, bisect, padded};

/// Elements whose bin numbers are kept at a time.
const BATCH: usize = 4096;

/// Elements after which the 32-bit tables are emptied.
const BLOCK: usize = 1 << 24;

/// The bin number of values that have none.
const NOWHERE: u8 = 255;

const TABLES: usize = 8;

type Tables = [[u32; 256]; TABLES];

/// Counts per bin of the values of `data` with keys `finite.0..=finite.1`, for which `bins` were made, that are not
/// in `missing`.
pub(super) fn tally<T: Lane>(data: &[T], missing: &KeySet, finite: (i128, i128), bins: Bins) -> Vec<u64> {
    let within = KeySet::interval(finite.0, finite.1);
    let ranges = T::ranks(&missing.intersection(&within));
    let Some(&present) = T::ranks(&within).first() else { return vec![0; bins.len] };
    let mut counts = vec![0_u64; bins.len];
    for block in data.chunks(BLOCK) {
        let mut tables: Tables = [[0; 256]; TABLES];
        let mut numbers = [NOWHERE; BATCH];
        for batch in block.chunks(BATCH) {
            let numbers = &mut numbers[..batch.len()];
            number(batch, present, bins, numbers);
            drop_missing(batch, &ranges, numbers);
            count(numbers, &mut tables);
        }
        for (bin, total) in counts.iter_mut().enumerate() {
            *total += tables.iter().map(|table| u64::from(table[bin])).sum::<u64>();
        }
    }
    counts
}

#[inline(always)]
fn number_loop<T: Lane>(data: &[T], present: (T::Word, T::Word), bins: Bins, out: &mut [u8]) {
    let first = T::Word::of(bins.first as u64);
    for (out, &value) in out.iter_mut().zip(data) {
        let rank = value.rank();
        let inside = (rank >= present.0) & (rank <= present.1);
        *out = if inside { value.bin(bins.exponent).byte_from(first) } else { NOWHERE };
    }
}

/// Writes the number of each value's bin, from 0, or [`NOWHERE`] for those outside of `present`.
fn number<T: Lane>(data: &[T], present: (T::Word, T::Word), bins: Bins, out: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
        fn avx512<T: Lane>(data: &[T], present: (T::Word, T::Word), bins: Bins, out: &mut [u8]) {
            number_loop(data, present, bins, out);
        }
        #[target_feature(enable = "avx2")]
        fn avx2<T: Lane>(data: &[T], present: (T::Word, T::Word), bins: Bins, out: &mut [u8]) {
            number_loop(data, present, bins, out);
        }
        if super::has_avx512() {
            // SAFETY: the features were just detected.
            return unsafe { avx512(data, present, bins, out) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was just detected.
            return unsafe { avx2(data, present, bins, out) };
        }
    }
    number_loop(data, present, bins, out);
}

/// Takes the values in `missing`, which are seldom among the extremes of those present, out of `numbers`.
fn drop_missing<T: Lane>(data: &[T], missing: &[(T::Word, T::Word)], numbers: &mut [u8]) {
    fn sieve<T: Lane>(data: &[T], numbers: &mut [u8], missing: impl Fn(T::Word) -> bool) {
        for (number, value) in numbers.iter_mut().zip(data) {
            *number |= if missing(value.rank()) { NOWHERE } else { 0 };
        }
    }
    match missing.len() {
        0 => {}
        1 => {
            let one = padded::<_, 1>(missing);
            sieve(data, numbers, |rank| among(&one, rank));
        }
        2..=LINEAR => {
            let few = padded::<_, LINEAR>(missing);
            sieve(data, numbers, |rank| among(&few, rank));
        }
        _ => sieve(data, numbers, |rank| bisect(missing, rank)),
    }
}

fn count(numbers: &[u8], tables: &mut Tables) {
    let (words, tail) = numbers.as_chunks::<TABLES>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        for (table, counts) in tables.iter_mut().enumerate() {
            counts[(word >> (8 * table)) as usize & 255] += 1;
        }
    }
    tail.iter().for_each(|&number| tables[0][usize::from(number)] += 1);
}

#[cfg(test)]
mod tests {
    use super::super::bins::index;
    use super::*;
    use proptest::prelude::*;
    use sieva_types::DType;
    use sieva_types::keys::key_range;

    fn check<T: Lane>(data: &[T], dtype: DType) {
        let ends = key_range(dtype);
        let finite: Vec<i128> = data
            .iter()
            .map(|v| T::key(v.rank()))
            .filter(|k| !dtype.is_float() || (ends.0 < *k && *k < ends.1))
            .collect();
        let (Some(&low), Some(&high)) = (finite.iter().min(), finite.iter().max()) else { return };
        let bins = Bins::new(dtype, (low, high));
        let ranks = T::ranks(&KeySet::interval(low, high))[0];
        let (mut wide, mut plain) = (vec![0; data.len()], vec![0; data.len()]);
        number(data, ranks, bins, &mut wide);
        number_loop(data, ranks, bins, &mut plain);
        assert_eq!(wide, plain);
        for (v, &n) in data.iter().zip(&plain) {
            let key = T::key(v.rank());
            let at = index(dtype, key.clamp(low, high), bins.exponent) - bins.first;
            assert_eq!(n, if (low..=high).contains(&key) { at as u8 } else { NOWHERE });
        }
    }

    proptest! {
        #[test]
        fn vectors_agree_with_the_plain_loop_and_the_definition(
            bits in proptest::collection::vec(any::<u64>(), 0..200), narrow in 0..64_u32) {
            macro_rules! each { ($($t:ty, $d:ident, $f:expr);*) => {$(
                let data: Vec<$t> = bits.iter().map(|&v| $f(v)).collect();
                check(&data, DType::$d);
            )*}}
            each!(u8, U8, |v| v as u8; i16, I16, |v| v as i16; u32, U32, |v| (v >> narrow) as u32;
                i64, I64, |v| (v as i64) >> narrow; u64, U64, |v: u64| v >> narrow;
                f32, F32, |v| f32::from_bits(v as u32); f64, F64, f64::from_bits;
                f32, F32, |v| f32::from_bits((v >> narrow) as u32); f64, F64, |v| f64::from_bits(v >> narrow);
                f64, F64, |v| (v as f64) - 9e18; f32, F32, |v| (v as i32 as f32) * 1e-40);
        }
    }
}
