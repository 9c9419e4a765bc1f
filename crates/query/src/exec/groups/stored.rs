//! Stored elements as they are taken in: decoded a block at a time, with what is missing told apart.

use sieva_format::buffer::{Buffer, Element};
use sieva_types::{DType, KeySet};

use crate::aggregate::Piece;
use crate::mask::Bits;
use crate::raw::{RawTest, StoredDomain};

/// Stored elements, a block of which is decoded at a time.
pub(super) struct Decoder<'b> {
    buffer: &'b Buffer,
    domain: &'b StoredDomain,
    /// The test of what is missing; `None`: nothing, but a NaN.
    missing: Option<RawTest>,
    floats: Vec<f64>,
    signed: Vec<i64>,
    unsigned: Vec<u64>,
    bools: Vec<bool>,
    /// A bit for each of them, set where it is there.
    present: Vec<u64>,
}

impl<'b> Decoder<'b> {
    pub(super) fn new(buffer: &'b Buffer, domain: &'b StoredDomain) -> Self {
        let only_nan = KeySet { ranges: Vec::new(), nan: true };
        let missing = domain.missing();
        let tested = !missing.is_empty() && *missing != only_nan;
        Self {
            buffer,
            domain,
            missing: tested.then(|| RawTest::new(domain.dtype(), missing)),
            floats: Vec::new(),
            signed: Vec::new(),
            unsigned: Vec::new(),
            bools: Vec::new(),
            present: Vec::new(),
        }
    }

    /// Whether elements are taken as they lie.
    fn is_plain(&self) -> bool {
        let is_float = matches!(self.domain.dtype(), DType::F16 | DType::F32 | DType::F64);
        is_float && self.missing.is_none() && self.domain.packing().is_none()
    }

    /// `n` elements from `at` on.
    pub(super) fn piece(&mut self, at: usize, n: usize) -> Piece<'_> {
        let dtype = self.domain.dtype();
        if self.is_plain() {
            return match dtype {
                DType::F64 => Piece::F64(&self.buffer.as_slice()[at..at + n]),
                _ => Piece::F32(&self.buffer.as_slice()[at..at + n]),
            };
        }
        let has_missing = self.test(at, n);
        if let Some((scale, offset)) = self.domain.packing() {
            self.decode_floats(at, n, |x| x * scale + offset);
            return self.as_floats(has_missing);
        }
        if matches!(dtype, DType::F16 | DType::F32 | DType::F64) {
            self.decode_floats(at, n, |x| x);
            return self.as_floats(has_missing);
        }
        self.decode_integers(at, n);
        let present = has_missing.then_some(Bits::new(&self.present));
        match dtype {
            DType::Bool => Piece::Bool(&self.bools, present),
            DType::U64 => Piece::U64(&self.unsigned, present),
            _ => Piece::I64(&self.signed, present),
        }
    }

    /// Which of some elements are there; returns whether any is not.
    fn test(&mut self, at: usize, n: usize) -> bool {
        let Some(test) = &self.missing else { return false };
        self.present.clear();
        self.present.resize(n.div_ceil(64), 0);
        test.test_part(self.buffer, at, n, &mut self.present);
        let has_missing = self.present.iter().any(|&word| word != 0);
        self.present.iter_mut().for_each(|word| *word = !*word);
        has_missing
    }

    /// What was decoded, with NaN for what is missing.
    fn as_floats(&mut self, has_missing: bool) -> Piece<'_> {
        if has_missing {
            for (values, &present) in self.floats.chunks_mut(64).zip(&self.present) {
                for (i, x) in values.iter_mut().enumerate() {
                    *x = if present >> i & 1 == 1 { *x } else { f64::NAN };
                }
            }
        }
        Piece::F64(&self.floats)
    }

    fn decode_floats(&mut self, at: usize, n: usize, f: impl Fn(f64) -> f64) {
        let (buffer, out) = (self.buffer, &mut self.floats);
        out.clear();
        macro_rules! each {
            ($t:ty) => {
                out.extend(slice::<$t>(buffer, at, n).iter().map(|&x| f(x as f64)))
            };
        }
        match self.domain.dtype() {
            DType::I8 => each!(i8),
            DType::I16 => each!(i16),
            DType::I32 => each!(i32),
            DType::I64 => each!(i64),
            DType::U8 | DType::Bool | DType::Str => each!(u8),
            DType::U16 => each!(u16),
            DType::U32 => each!(u32),
            DType::U64 => each!(u64),
            DType::F16 | DType::F32 => each!(f32),
            DType::F64 => each!(f64),
        }
    }

    fn decode_integers(&mut self, at: usize, n: usize) {
        let (buffer, out) = (self.buffer, &mut self.signed);
        out.clear();
        macro_rules! each {
            ($t:ty) => {
                out.extend(slice::<$t>(buffer, at, n).iter().map(|&x| i64::from(x)))
            };
        }
        match self.domain.dtype() {
            DType::Bool => {
                self.bools.clear();
                self.bools.extend(slice::<u8>(buffer, at, n).iter().map(|&b| b != 0));
            }
            DType::U64 => {
                self.unsigned.clear();
                self.unsigned.extend_from_slice(slice::<u64>(buffer, at, n));
            }
            DType::I8 => each!(i8),
            DType::I16 => each!(i16),
            DType::I32 => each!(i32),
            DType::I64 => each!(i64),
            DType::U16 => each!(u16),
            DType::U32 => each!(u32),
            _ => each!(u8),
        }
    }
}

fn slice<T: Element>(buffer: &Buffer, at: usize, n: usize) -> &[T] {
    &buffer.as_slice::<T>()[at..at + n]
}
