//! The innermost loops: stored values against intervals, 64 answers a word.
//!
//! A plain comparison loop is bound by memory once its answers are packed without a branch. AVX-512 gives
//! the packed answer of a comparison in one instruction; elsewhere comparisons are made into bytes, which
//! compilers vectorise, and eight bytes at a time are packed by a multiplication.

use sieva_format::buffer::{Buffer, Element};
use sieva_types::keys::{f32_of_key, f64_of_key};
use sieva_types::{DType, KeySet};

/// A set of stored values in the stored type, ready to be tested.
#[derive(Clone, Debug)]
pub struct RawTest(Typed);

#[derive(Clone, Debug)]
enum Typed {
    I8(Intervals<i8>),
    I16(Intervals<i16>),
    I32(Intervals<i32>),
    I64(Intervals<i64>),
    U8(Intervals<u8>),
    U16(Intervals<u16>),
    U32(Intervals<u32>),
    U64(Intervals<u64>),
    F32(Intervals<f32>),
    F64(Intervals<f64>),
}

#[derive(Clone, Debug)]
struct Intervals<T> {
    ranges: Vec<(T, T)>,
    nan: bool,
}

impl RawTest {
    /// The test of membership in `set` for elements of `dtype` (bool as bytes, float16 as float32).
    pub fn new(dtype: DType, set: &KeySet) -> Self {
        fn convert<T>(set: &KeySet, f: impl Fn(i128) -> T) -> Intervals<T> {
            Intervals { ranges: set.ranges.iter().map(|&(a, b)| (f(a), f(b))).collect(), nan: set.nan }
        }
        Self(match dtype {
            DType::I8 => Typed::I8(convert(set, |k| k as i8)),
            DType::I16 => Typed::I16(convert(set, |k| k as i16)),
            DType::I32 => Typed::I32(convert(set, |k| k as i32)),
            DType::I64 => Typed::I64(convert(set, |k| k as i64)),
            DType::Bool | DType::U8 | DType::Str => Typed::U8(convert(set, |k| k as u8)),
            DType::U16 => Typed::U16(convert(set, |k| k as u16)),
            DType::U32 => Typed::U32(convert(set, |k| k as u32)),
            DType::U64 => Typed::U64(convert(set, |k| k as u64)),
            DType::F16 | DType::F32 => Typed::F32(convert(set, f32_of_key)),
            DType::F64 => Typed::F64(convert(set, f64_of_key)),
        })
    }

    /// Sets bit i of `out` where element i of `data` belongs to the set; `out` has a word per 64 elements,
    /// its bits past the end are cleared.
    pub fn test(&self, data: &Buffer, out: &mut [u64]) {
        match &self.0 {
            Typed::I8(t) => t.test(data.as_slice(), out),
            Typed::I16(t) => t.test(data.as_slice(), out),
            Typed::I32(t) => t.test(data.as_slice(), out),
            Typed::I64(t) => t.test(data.as_slice(), out),
            Typed::U8(t) => t.test(data.as_slice(), out),
            Typed::U16(t) => t.test(data.as_slice(), out),
            Typed::U32(t) => t.test(data.as_slice(), out),
            Typed::U64(t) => t.test(data.as_slice(), out),
            Typed::F32(t) => t.test(data.as_slice(), out),
            Typed::F64(t) => t.test(data.as_slice(), out),
        }
    }

    /// As [`RawTest::test`], of the `n` elements from `at` on.
    pub fn test_part(&self, data: &Buffer, at: usize, n: usize, out: &mut [u64]) {
        macro_rules! test {
            ($($kind:ident),*) => {
                match &self.0 {
                    $(Typed::$kind(t) => t.test(&data.as_slice()[at..at + n], out),)*
                }
            };
        }
        test!(I8, I16, I32, I64, U8, U16, U32, U64, F32, F64);
    }
}

/// More intervals than this (an IN list) are searched by bisection instead of one after the other.
const LINEAR_INTERVALS: usize = 8;

impl<T: Compare> Intervals<T> {
    fn test(&self, data: &[T], out: &mut [u64]) {
        let (blocks, tail) = data.as_chunks::<64>();
        let (words, last) = out.split_at_mut(blocks.len());
        if self.ranges.len() > LINEAR_INTERVALS {
            for (block, word) in blocks.iter().zip(words) {
                *word = self.bisect(block);
            }
        } else {
            T::words(blocks, &self.ranges, self.nan, words);
        }
        if let (Some(word), false) = (last.first_mut(), tail.is_empty()) {
            *word = self.bisect(tail);
        }
    }

    fn bisect(&self, data: &[T]) -> u64 {
        let mut word = 0;
        for (i, &x) in data.iter().enumerate() {
            let at = self.ranges.partition_point(|r| r.1 < x);
            let inside = self.ranges.get(at).is_some_and(|r| r.0 <= x) && x.is_number();
            word |= u64::from(inside || (self.nan && !x.is_number())) << i;
        }
        word
    }
}

/// An element type with its block loop.
trait Compare: Element + PartialOrd {
    #[allow(clippy::eq_op)]
    #[inline(always)]
    fn is_number(self) -> bool {
        self == self // only NaN differs from itself
    }
    fn words(blocks: &[[Self; 64]], ranges: &[(Self, Self)], nan: bool, out: &mut [u64]);
}

#[inline(always)]
fn words_portable<T: Compare>(blocks: &[[T; 64]], ranges: &[(T, T)], nan: bool, out: &mut [u64]) {
    for (block, word) in blocks.iter().zip(out) {
        let mut bytes = [0_u8; 64];
        for &(low, high) in ranges {
            for (byte, &x) in bytes.iter_mut().zip(block) {
                *byte |= u8::from((x >= low) & (x <= high));
            }
        }
        if nan {
            for (byte, &x) in bytes.iter_mut().zip(block) {
                *byte |= u8::from(!x.is_number());
            }
        }
        *word = pack(&bytes);
    }
}

/// 64 bytes of 0 or 1 to 64 bits: the multiplication gathers the low bits of eight bytes in the top byte.
#[inline(always)]
fn pack(bytes: &[u8; 64]) -> u64 {
    let mut word = 0;
    for (i, eight) in bytes.as_chunks::<8>().0.iter().enumerate() {
        word |= (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    word
}

macro_rules! portable {
    ($($t:ty),*) => {$(
        #[cfg(not(target_arch = "x86_64"))]
        impl Compare for $t {
            fn words(blocks: &[[Self; 64]], ranges: &[(Self, Self)], nan: bool, out: &mut [u64]) {
                words_portable(blocks, ranges, nan, out);
            }
        }
    )*};
}
portable!(i8, i16, i32, i64, u8, u16, u32, u64, f32, f64);

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Compare, words_portable};

    /// One element type: how many fit a 512-bit register, how to load and broadcast, and the packed tests
    /// `>=`, `<=` and (floats) unordered.
    macro_rules! avx512 {
        ($name:ident, $t:ty, $lanes:expr, $load:ident, $set:ident, $ge:expr, $le:expr, $nan:expr) => {
            #[target_feature(enable = "avx512f,avx512bw")]
            fn $name(blocks: &[[$t; 64]], ranges: &[($t, $t)], nan: bool, out: &mut [u64]) {
                for (block, word) in blocks.iter().zip(out) {
                    let mut bits = 0_u64;
                    for i in 0..64 / $lanes {
                        // SAFETY: lane group i lies within the block of 64 elements; unaligned loads are used.
                        let v = unsafe { $load(block.as_ptr().add(i * $lanes).cast()) };
                        let mut hits = 0_u64;
                        for &(low, high) in ranges {
                            hits |= u64::from($ge(v, $set(low as _))) & u64::from($le(v, $set(high as _)));
                        }
                        if nan {
                            hits |= u64::from($nan(v));
                        }
                        bits |= hits << (i * $lanes);
                    }
                    *word = bits;
                }
            }

            impl Compare for $t {
                fn words(blocks: &[[Self; 64]], ranges: &[(Self, Self)], nan: bool, out: &mut [u64]) {
                    #[target_feature(enable = "avx2")]
                    fn avx2(blocks: &[[$t; 64]], ranges: &[($t, $t)], nan: bool, out: &mut [u64]) {
                        words_portable(blocks, ranges, nan, out);
                    }
                    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw") {
                        // SAFETY: the features were just detected.
                        unsafe { $name(blocks, ranges, nan, out) }
                    } else if is_x86_feature_detected!("avx2") {
                        // SAFETY: the feature was just detected.
                        unsafe { avx2(blocks, ranges, nan, out) }
                    } else {
                        words_portable(blocks, ranges, nan, out);
                    }
                }
            }
        };
    }

    avx512!(
        words_f32,
        f32,
        16,
        _mm512_loadu_ps,
        _mm512_set1_ps,
        |a, b| _mm512_cmp_ps_mask::<_CMP_GE_OQ>(a, b),
        |a, b| _mm512_cmp_ps_mask::<_CMP_LE_OQ>(a, b),
        |a| _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(a, a)
    );
    avx512!(
        words_f64,
        f64,
        8,
        _mm512_loadu_pd,
        _mm512_set1_pd,
        |a, b| _mm512_cmp_pd_mask::<_CMP_GE_OQ>(a, b),
        |a, b| _mm512_cmp_pd_mask::<_CMP_LE_OQ>(a, b),
        |a| _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(a, a)
    );
    avx512!(
        words_i8,
        i8,
        64,
        _mm512_loadu_epi8,
        _mm512_set1_epi8,
        |a, b| _mm512_cmpge_epi8_mask(a, b),
        |a, b| _mm512_cmple_epi8_mask(a, b),
        |_| 0_u64
    );
    avx512!(
        words_u8,
        u8,
        64,
        _mm512_loadu_epi8,
        _mm512_set1_epi8,
        |a, b| _mm512_cmpge_epu8_mask(a, b),
        |a, b| _mm512_cmple_epu8_mask(a, b),
        |_| 0_u64
    );
    avx512!(
        words_i16,
        i16,
        32,
        _mm512_loadu_epi16,
        _mm512_set1_epi16,
        |a, b| _mm512_cmpge_epi16_mask(a, b),
        |a, b| _mm512_cmple_epi16_mask(a, b),
        |_| 0_u64
    );
    avx512!(
        words_u16,
        u16,
        32,
        _mm512_loadu_epi16,
        _mm512_set1_epi16,
        |a, b| _mm512_cmpge_epu16_mask(a, b),
        |a, b| _mm512_cmple_epu16_mask(a, b),
        |_| 0_u64
    );
    avx512!(
        words_i32,
        i32,
        16,
        _mm512_loadu_epi32,
        _mm512_set1_epi32,
        |a, b| _mm512_cmpge_epi32_mask(a, b),
        |a, b| _mm512_cmple_epi32_mask(a, b),
        |_| 0_u64
    );
    avx512!(
        words_u32,
        u32,
        16,
        _mm512_loadu_epi32,
        _mm512_set1_epi32,
        |a, b| _mm512_cmpge_epu32_mask(a, b),
        |a, b| _mm512_cmple_epu32_mask(a, b),
        |_| 0_u64
    );
    avx512!(
        words_i64,
        i64,
        8,
        _mm512_loadu_epi64,
        _mm512_set1_epi64,
        |a, b| _mm512_cmpge_epi64_mask(a, b),
        |a, b| _mm512_cmple_epi64_mask(a, b),
        |_| 0_u64
    );
    avx512!(
        words_u64,
        u64,
        8,
        _mm512_loadu_epi64,
        _mm512_set1_epi64,
        |a, b| _mm512_cmpge_epu64_mask(a, b),
        |a, b| _mm512_cmple_epu64_mask(a, b),
        |_| 0_u64
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn buffer<T: Element>(values: &[T]) -> Buffer {
        let mut b = Buffer::default();
        b.resize(size_of_val(values));
        b.as_mut_slice().copy_from_slice(values);
        b
    }

    fn check<T: Compare + std::fmt::Debug>(values: &[T], ranges: Vec<(T, T)>, nan: bool) {
        let intervals = Intervals { ranges, nan };
        let mut out = vec![u64::MAX; values.len().div_ceil(64)];
        intervals.test(buffer(values).as_slice(), &mut out);
        let mut portable = out.clone();
        words_portable(values.as_chunks::<64>().0, &intervals.ranges, nan, &mut portable);
        for (i, &x) in values.iter().enumerate() {
            let want = intervals.ranges.iter().any(|&(a, b)| a <= x && x <= b) || (nan && !x.is_number());
            assert_eq!(out[i / 64] >> (i % 64) & 1 == 1, want, "element {i} = {x:?} of {intervals:?}");
            assert_eq!(portable[i / 64] >> (i % 64) & 1 == 1, want, "portable, element {i} = {x:?}");
        }
    }

    proptest! {
        #[test]
        fn floats_agree_with_the_plain_loop(
            values in proptest::collection::vec(prop_oneof![any::<f32>(), Just(f32::NAN), Just(-0.0), -2.0..2.0_f32], 0..300),
            mut cuts in proptest::collection::vec(-2.0..2.0_f32, 2..30), nan in any::<bool>()) {
            cuts.sort_by(f32::total_cmp);
            let ranges: Vec<_> = cuts.chunks_exact(2).map(|c| (c[0], c[1])).collect();
            check(&values, ranges.clone(), nan);
            let wide: Vec<f64> = values.iter().map(|&v| v.into()).collect();
            check(&wide, ranges.iter().map(|&(a, b)| (a.into(), b.into())).collect(), nan);
        }

        #[test]
        fn integers_agree_with_the_plain_loop(values in proptest::collection::vec(any::<u64>(), 0..300), a: u64, b: u64) {
            macro_rules! each { ($($t:ty),*) => {$(
                let cast: Vec<$t> = values.iter().map(|&v| v as $t).collect();
                let (low, high) = ((a as $t).min(b as $t), (a as $t).max(b as $t));
                check(&cast, vec![(low, high)], false);
                check(&cast, vec![(<$t>::MIN, low), (high, <$t>::MAX)], false);
            )*}}
            each!(i8, i16, i32, i64, u8, u16, u32, u64);
        }
    }
}
