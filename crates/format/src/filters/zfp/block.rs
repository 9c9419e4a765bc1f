//! One block of zfp: 4 values along each dimension, from a bit stream.
//!
//! Coefficients are coded in bit planes, from the highest: first the bits of those that have been seen to be nonzero,
//! then, in runs, which others are. They are in negabinary, in the order of rising frequency; a transform along each
//! dimension makes integers of them. Integers stand for floating-point values under one exponent of the block, or, in
//! the reversible mode, for their bits.
//!
//! Reference: P. Lindstrom, "Fixed-Rate Compressed Floating-Point Arrays", IEEE TVCG 20(12), 2014, sections 3 and 4;
//! bit layout and the reversible mode as of the codec's version 5.

use std::num::Wrapping;
use std::ops::{AddAssign, Shl, Shr, SubAssign};

use super::Mode;
use super::order::order;

/// Values of the largest block: four dimensions.
pub(super) const MOST: usize = 256;

/// A stream of bits, the lowest of a byte first; zeros come after its end.
pub(super) struct Bits<'a> {
    /// What has not been looked at.
    rest: &'a [u8],
    /// The next bits, the first of them lowest; how many there are.
    word: u64,
    held: u32,
    /// Bits beyond the end that are among them or were taken.
    beyond: u64,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, word: 0, held: 0, beyond: 0 }
    }

    /// Whether bits beyond the end were taken.
    pub(super) fn is_past_end(&self) -> bool {
        self.beyond > self.held.into()
    }

    /// Holds 56 bits or more.
    #[inline(always)]
    fn fill(&mut self) {
        if let Some(bytes) = self.rest.first_chunk::<8>() {
            self.word |= u64::from_le_bytes(*bytes) << self.held;
            let taken = (63 - self.held) / 8;
            self.rest = &self.rest[taken as usize..];
            self.held += 8 * taken;
        } else {
            self.fill_at_the_end();
        }
    }

    #[cold]
    fn fill_at_the_end(&mut self) {
        while self.held < 56 {
            match self.rest.split_first() {
                Some((&byte, rest)) => {
                    self.word |= u64::from(byte) << self.held;
                    self.rest = rest;
                }
                None => self.beyond = self.beyond.saturating_add(8),
            }
            self.held += 8;
        }
    }

    /// Lets go of bits that are held.
    #[inline(always)]
    fn drop(&mut self, count: u32) {
        self.word >>= count;
        self.held -= count;
    }

    pub(super) fn skip(&mut self, count: u32) {
        let mut left = count;
        while left > 0 {
            self.fill();
            let some = left.min(32);
            self.drop(some);
            left -= some;
        }
    }

    /// The next `count` bits, 64 at most, the first of them lowest.
    #[inline(always)]
    pub(super) fn take(&mut self, count: u32) -> u64 {
        let first = count.min(32);
        if self.held < first {
            self.fill();
        }
        let low = self.word & ((1 << first) - 1);
        self.drop(first);
        if count == first {
            return low;
        }
        self.fill();
        let high = self.word & ((1 << (count - first)) - 1);
        self.drop(count - first);
        low | high << first
    }

    #[inline(always)]
    fn is_set(&mut self) -> bool {
        self.take(1) == 1
    }

    /// Takes zeros up to and with the next one, `most` bits at most; how many zeros, and whether the one was found.
    #[inline(always)]
    fn zeros(&mut self, most: u32) -> (u32, bool) {
        let mut zeros = 0;
        while zeros < most {
            self.fill();
            let window = (most - zeros).min(56);
            let run = self.word.trailing_zeros().min(window);
            zeros += run;
            if run < window {
                self.drop(run + 1);
                return (zeros, true);
            }
            self.drop(run);
        }
        (zeros, false)
    }
}

/// Integers that a block is computed with.
pub(super) trait Integer: Copy + Default + AddAssign + SubAssign + Shl<usize, Output = Self> {
    const BITS: u32;
    /// Bits of the number of bit planes in the reversible mode.
    const PLANES_BITS: u32;
    /// Half, rounded down.
    fn half(self) -> Self;
    fn of_negabinary(n: u64) -> Self;
}

macro_rules! integer {
    ($signed:ty, $unsigned:ty, $planes_bits:expr) => {
        impl Integer for Wrapping<$signed> {
            const BITS: u32 = <$signed>::BITS;
            const PLANES_BITS: u32 = $planes_bits;
            fn half(self) -> Self {
                self.shr(1)
            }
            fn of_negabinary(n: u64) -> Self {
                const MASK: $unsigned = 0xaaaa_aaaa_aaaa_aaaa_u64 as $unsigned;
                Wrapping((n as $unsigned ^ MASK).wrapping_sub(MASK) as $signed)
            }
        }
    };
}
integer!(i32, u32, 5);
integer!(i64, u64, 6);

/// Decodes the integers of a block of `rank` dimensions, of which `used` bits have been taken already.
pub(super) fn integers<T: Integer>(
    bits: &mut Bits<'_>,
    mode: &Mode,
    used: u32,
    planes: u32,
    rank: usize,
    block: &mut [T],
) {
    let (mut used, mut planes) = (used, planes);
    if mode.is_reversible() {
        used += T::PLANES_BITS;
        planes = bits.take(T::PLANES_BITS) as u32 + 1;
    }
    let mut coefficients = [0; MOST];
    let coefficients = &mut coefficients[..block.len()];
    used += bit_planes(bits, mode.most_bits.saturating_sub(used), T::BITS, planes, coefficients);
    bits.skip(mode.least_bits.saturating_sub(used));
    for (&coefficient, &place) in coefficients.iter().zip(order(rank)) {
        block[usize::from(place)] = T::of_negabinary(coefficient);
    }
    for axis in (0..rank).rev() {
        match mode.is_reversible() {
            true => along(1 << (2 * axis), block, lift_reversibly),
            false => along(1 << (2 * axis), block, lift),
        }
    }
}

/// Transforms all lines of a block whose values are `step` apart.
#[inline(always)]
fn along<T: Integer>(step: usize, block: &mut [T], lift: impl Fn([T; 4]) -> [T; 4]) {
    for lines in block.chunks_exact_mut(4 * step) {
        let (front, back) = lines.split_at_mut(2 * step);
        let ((x, y), (z, w)) = (front.split_at_mut(step), back.split_at_mut(step));
        for (((x, y), z), w) in x.iter_mut().zip(y).zip(z).zip(w) {
            [*x, *y, *z, *w] = lift([*x, *y, *z, *w]);
        }
    }
}

/// Decodes bit planes from the highest on, as many as are wanted and there are bits for; how many bits were taken.
fn bit_planes(bits: &mut Bits<'_>, most: u32, width: u32, planes: u32, out: &mut [u64]) -> u32 {
    let mut left = most;
    // Coefficients that have been nonzero are the first so many.
    let mut known = 0;
    for plane in (width.saturating_sub(planes)..width).rev() {
        if left == 0 {
            break;
        }
        let value = 1 << plane;
        let here = known.min(left as usize);
        left -= here as u32;
        for part in out[..here].chunks_mut(64) {
            let mut set = bits.take(part.len() as u32);
            while set != 0 {
                part[set.trailing_zeros() as usize] |= value;
                set &= set - 1;
            }
        }
        // Are there others? Then which is the next? The last need not be told from none.
        while left > 0 && known < out.len() {
            left -= 1;
            if !bits.is_set() {
                break;
            }
            let (zeros, is_found) = bits.zeros(left.min((out.len() - 1 - known) as u32));
            left -= zeros + u32::from(is_found);
            known += zeros as usize;
            out[known] |= value;
            known += 1;
        }
    }
    most - left
}

/// The inverse of the lossy transform along one dimension.
#[inline(always)]
fn lift<T: Integer>([mut x, mut y, mut z, mut w]: [T; 4]) -> [T; 4] {
    y += w.half();
    w -= y.half();
    y += w;
    w = w << 1;
    w -= y;
    z += x;
    x = x << 1;
    x -= z;
    y += z;
    z = z << 1;
    z -= y;
    w += x;
    x = x << 1;
    x -= w;
    [x, y, z, w]
}

/// The inverse of the reversible transform: sums of differences of the third order.
#[inline(always)]
fn lift_reversibly<T: Integer>([x, mut y, mut z, mut w]: [T; 4]) -> [T; 4] {
    w += z;
    z += y;
    w += z;
    y += x;
    z += y;
    w += z;
    [x, y, z, w]
}

/// A type of values.
pub(super) trait Value: Copy {
    fn block(bits: &mut Bits<'_>, mode: &Mode, rank: usize, block: &mut [Self]);
}

macro_rules! integer_value {
    ($type:ty) => {
        impl Value for $type {
            fn block(bits: &mut Bits<'_>, mode: &Mode, rank: usize, block: &mut [Self]) {
                let mut whole = [Wrapping(0); MOST];
                let whole = &mut whole[..block.len()];
                integers::<Wrapping<$type>>(bits, mode, 0, mode.most_planes, rank, whole);
                block.iter_mut().zip(whole).for_each(|(value, n)| *value = n.0);
            }
        }
    };
}
integer_value!(i32);
integer_value!(i64);

macro_rules! float_value {
    ($type:ty, $signed:ty, $exponent_bits:expr, $bias:expr, $mantissa_bits:expr) => {
        impl Value for $type {
            fn block(bits: &mut Bits<'_>, mode: &Mode, rank: usize, block: &mut [Self]) {
                if !bits.is_set() {
                    bits.skip(mode.least_bits.saturating_sub(1));
                    return block.fill(0.0);
                }
                let mut whole = [Wrapping(0); MOST];
                let whole = &mut whole[..block.len()];
                if mode.is_reversible() && bits.is_set() {
                    integers::<Wrapping<$signed>>(bits, mode, 2, 0, rank, whole);
                    for (value, Wrapping(n)) in block.iter_mut().zip(whole) {
                        // The magnitude of negative ones is inverted.
                        let n = if *n < 0 { *n ^ <$signed>::MAX } else { *n };
                        *value = Self::from_bits(n.cast_unsigned());
                    }
                    return;
                }
                let exponent = bits.take($exponent_bits) as i32 - $bias;
                let used = 1 + u32::from(mode.is_reversible()) + $exponent_bits;
                let planes = exponent - mode.least_exponent + 2 * (rank as i32 + 1);
                let planes = mode.most_planes.min(planes.max(0) as u32);
                integers::<Wrapping<$signed>>(bits, mode, used, planes, rank, whole);
                if mode.is_reversible() && exponent == -$bias {
                    return block.fill(0.0);
                }
                // 2 to the power of so much; subnormal, or zero, where that is needed.
                let power = exponent - (<$signed>::BITS as i32 - 2);
                let scale = match power + $bias {
                    normal if normal > 0 => (normal as u64) << $mantissa_bits,
                    subnormal if subnormal > -$mantissa_bits => 1 << (subnormal + $mantissa_bits - 1),
                    _ => 0,
                };
                let scale = Self::from_bits(scale as _);
                block.iter_mut().zip(whole).for_each(|(value, n)| *value = scale * n.0 as Self);
            }
        }
    };
}
float_value!(f32, i32, 8, 127, 23);
float_value!(f64, i64, 11, 1023, 52);
