//! Blocks of values reduced to few whose sum is the same, exactly.
//!
//! From each value its leading bits are split off, those of a common weight, so that their sum is exact: S. M. Rump,
//! T. Ogita and S. Oishi, "Accurate floating-point summation, part I", SIAM J. Sci. Comput. 31 (2008), 189-224
//! (algorithm 3.3, ExtractVector). Twice in one pass, which leaves nothing of values within a factor of 2^27 of each
//! other; the loops vectorise.

/// Values that are split at once, and the bits that a sum of so many is longer than the largest of them.
pub const BLOCK: usize = 2048;
const BLOCK_BITS: u64 = 11;
/// Each split takes so many bits off.
const SPLIT_BITS: u64 = 40;
/// Sums are taken in so many lanes, for the compiler to keep in vector registers.
const LANES: usize = 8;

/// What a block of values is like.
#[derive(Clone, Copy, Debug)]
pub struct Survey {
    /// The greatest size.
    pub largest: f64,
    /// The least size that is not zero; infinite if there is none.
    pub least: f64,
    /// All bits that any value has set.
    pub bits: u64,
}

impl Survey {
    /// The survey of these values.
    pub fn of(values: &[f64]) -> Self {
        survey(values)
    }
}

crate::widest!(survey, survey_loop, [], (values: &[f64]) -> Survey);

#[inline(always)]
fn survey_loop(values: &[f64]) -> Survey {
    let (mut largest, mut least, mut bits) = ([0.0; LANES], [f64::INFINITY; LANES], [0; LANES]);
    let mut look = |i: usize, x: f64| {
        let size = x.abs();
        largest[i] = if size > largest[i] { size } else { largest[i] };
        let or_none = if size > 0.0 { size } else { f64::INFINITY };
        least[i] = if or_none < least[i] { or_none } else { least[i] };
        bits[i] |= x.to_bits();
    };
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (i, &x) in chunk.iter().enumerate() {
            look(i, x);
        }
    }
    rest.iter().enumerate().for_each(|(i, &x)| look(i, x));
    Survey {
        largest: largest.into_iter().fold(0.0, f64::max),
        least: least.into_iter().fold(f64::INFINITY, f64::min),
        bits: bits.into_iter().fold(0, |all, b| all | b),
    }
}

/// What to split values by: powers of two, of which no sum of a block's leading bits reaches the first, and none of what
/// is left then the second.
#[derive(Clone, Copy, Debug)]
pub struct Units([f64; 2]);

impl Units {
    /// For values of sizes up to `largest`; none if there are no such numbers.
    pub fn of(largest: f64) -> Option<Self> {
        let exponent = (largest.to_bits() >> 52) + BLOCK_BITS + 2;
        let is_usual = exponent > SPLIT_BITS + 53 && exponent < 0x7ff;
        is_usual.then(|| Self([exponent, exponent - SPLIT_BITS].map(|e| f64::from_bits(e << 52))))
    }

    /// The greater one.
    pub fn first(self) -> f64 {
        self.0[0]
    }

    /// What two splits leave of a value.
    #[inline(always)]
    pub fn rest(self, x: f64) -> f64 {
        self.0.into_iter().fold(x, |x, unit| x - ((unit + x) - unit))
    }

    /// The sums of the leading bits of `f` of the values, and whether anything is left. No more than [`BLOCK`] values.
    #[inline(always)]
    pub fn sums<T: Copy, F: Fn(T) -> f64>(self, values: &[T], f: F) -> ([f64; 2], bool) {
        split(values, self, f)
    }
}

crate::widest!(split, split_loop, [T: Copy, F: Fn(T) -> f64], (values: &[T], units: Units, f: F) -> ([f64; 2], bool));

#[inline(always)]
fn split_loop<T: Copy, F: Fn(T) -> f64>(values: &[T], units: Units, f: F) -> ([f64; 2], bool) {
    let (mut high, mut low, mut left) = ([0.0; LANES], [0.0; LANES], [0; LANES]);
    let [first, second] = units.0;
    let mut add = |i: usize, x: T| {
        let x = f(x);
        let leading = (first + x) - first;
        let x = x - leading;
        let next = (second + x) - second;
        high[i] += leading;
        low[i] += next;
        left[i] |= (x - next).to_bits();
    };
    let (chunks, rest) = values.as_chunks::<LANES>();
    for chunk in chunks {
        for (i, &x) in chunk.iter().enumerate() {
            add(i, x);
        }
    }
    rest.iter().enumerate().for_each(|(i, &x)| add(i, x));
    let left = left.into_iter().fold(0_u64, |all, bits| all | bits);
    ([high.into_iter().sum(), low.into_iter().sum()], left << 1 != 0)
}
