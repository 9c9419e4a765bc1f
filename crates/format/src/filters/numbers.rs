//! Stages that compute with numbers: differences, scale and offset, change of type (`delta`, `fixedscaleoffset` and
//! `astype` of numcodecs). Decoding follows numpy's arithmetic step by step, so that not a bit differs.

use sieva_types::{DType, Endian, Error, ErrorKind, Result};

/// A type of numbers with its byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberType {
    /// The type; no text.
    pub dtype: DType,
    /// The byte order.
    pub endian: Endian,
}

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Computation {
    /// Every value but the first is stored as the difference to the one before.
    Delta,
    /// Stored values are divided by a scale, then an offset is added; both as the bits of a float64.
    ScaleOffset {
        /// Bits of the scale.
        scale: u64,
        /// Bits of the offset.
        offset: u64,
    },
    /// Only the type is changed.
    AsType,
}

/// One such stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// What is computed.
    pub computation: Computation,
    /// The type behind the stage, in storage.
    pub stored: NumberType,
    /// The type before it, of the values.
    pub decoded: NumberType,
}

/// A number of any type, exactly.
#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

impl Numbers {
    /// The codec's name.
    pub fn name(&self) -> &'static str {
        match self.computation {
            Computation::Delta => "delta",
            Computation::ScaleOffset { .. } => "fixedscaleoffset",
            Computation::AsType => "astype",
        }
    }

    /// Whether both types are computed with here: float16 is not.
    pub fn is_supported(&self) -> bool {
        [self.stored, self.decoded].iter().all(|t| !matches!(t.dtype, DType::F16 | DType::Str))
    }

    /// Stored bytes of `len` decoded ones.
    pub(super) fn stored_len(&self, len: usize) -> Option<usize> {
        (len / self.decoded.dtype.size().max(1)).checked_mul(self.stored.dtype.size())
    }

    /// Decodes `input` into the start of `out` and returns the length.
    pub(super) fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let (from, to) = (self.stored.dtype.size(), self.decoded.dtype.size());
        if !self.is_supported() || from == 0 || to == 0 {
            let message = format!("{}: no computing with {}", self.name(), self.stored.dtype);
            return Err(Error::new(ErrorKind::FilterUnavailable, message));
        }
        let count = input.len() / from;
        if count * from != input.len() || count.checked_mul(to).is_none_or(|n| n > out.len()) {
            return Err(Error::corrupt(format!(
                "{}: {} bytes of {}, expected {} numbers",
                self.name(),
                input.len(),
                self.stored.dtype,
                out.len() / to
            )));
        }
        let mut sum = None;
        for (source, place) in input.chunks_exact(from).zip(out.chunks_exact_mut(to)) {
            let value = read(source, self.stored);
            let value = match self.computation {
                Computation::AsType => value,
                Computation::ScaleOffset { scale, offset } => {
                    let (scale, offset) = (f64::from_bits(scale), f64::from_bits(offset));
                    Number::Float(unscale(value, self.stored.dtype, scale, offset))
                }
                Computation::Delta => {
                    let value = convert(value, self.decoded.dtype);
                    *sum.insert(sum.map_or(value, |sum| add(sum, value, self.decoded.dtype)))
                }
            };
            write(convert(value, self.decoded.dtype), self.decoded, place);
        }
        Ok(count * to)
    }
}

/// `value / scale + offset`: in float32 for stored float32, as numpy does it with Python's numbers, else in float64.
fn unscale(value: Number, stored: DType, scale: f64, offset: f64) -> f64 {
    match (value, stored) {
        (Number::Float(v), DType::F32) => f64::from(v as f32 / scale as f32 + offset as f32),
        (Number::Float(v), _) => v / scale + offset,
        (Number::Int(v), _) => v as f64 / scale + offset,
    }
}

fn add(a: Number, b: Number, dtype: DType) -> Number {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => convert(Number::Int(a.wrapping_add(b)), dtype),
        (Number::Float(a), Number::Float(b)) if dtype == DType::F32 => {
            Number::Float(f64::from(a as f32 + b as f32))
        }
        (Number::Float(a), Number::Float(b)) => Number::Float(a + b),
        // Both have been converted to one type.
        (a, _) => a,
    }
}

/// The number in the range of `dtype`: integers wrap, fractions are cut, float32 is rounded to.
fn convert(n: Number, dtype: DType) -> Number {
    let cut = |n: Number| match n {
        Number::Int(i) => i,
        Number::Float(f) => i128::from(f as i64),
    };
    match dtype {
        DType::F64 | DType::F16 | DType::Str => Number::Float(match n {
            Number::Int(i) => i as f64,
            Number::Float(f) => f,
        }),
        DType::F32 => Number::Float(match n {
            Number::Int(i) => f64::from(i as f32),
            Number::Float(f) => f64::from(f as f32),
        }),
        DType::Bool => Number::Int(match n {
            Number::Int(i) => i128::from(i != 0),
            Number::Float(f) => i128::from(f != 0.0),
        }),
        DType::I8 => Number::Int(i128::from(cut(n) as i8)),
        DType::I16 => Number::Int(i128::from(cut(n) as i16)),
        DType::I32 => Number::Int(i128::from(cut(n) as i32)),
        DType::I64 => Number::Int(i128::from(cut(n) as i64)),
        DType::U8 => Number::Int(i128::from(cut(n) as u8)),
        DType::U16 => Number::Int(i128::from(cut(n) as u16)),
        DType::U32 => Number::Int(i128::from(cut(n) as u32)),
        DType::U64 => Number::Int(match n {
            Number::Float(f) => i128::from(f as u64),
            Number::Int(i) => i128::from(i as u64),
        }),
    }
}

/// The bytes of a number as those of a little-endian integer.
fn raw(source: &[u8], endian: Endian) -> u64 {
    let fold = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    match endian {
        Endian::Big => source.iter().fold(0, fold),
        Endian::Little => source.iter().rev().fold(0, fold),
    }
}

fn read(source: &[u8], t: NumberType) -> Number {
    let bits = raw(source, t.endian);
    match t.dtype {
        DType::F32 => Number::Float(f64::from(f32::from_bits(bits as u32))),
        DType::F64 | DType::F16 | DType::Str => Number::Float(f64::from_bits(bits)),
        DType::I8 => Number::Int(i128::from(bits as i8)),
        DType::I16 => Number::Int(i128::from(bits as i16)),
        DType::I32 => Number::Int(i128::from(bits as i32)),
        DType::I64 => Number::Int(i128::from(bits.cast_signed())),
        DType::Bool | DType::U8 | DType::U16 | DType::U32 | DType::U64 => Number::Int(i128::from(bits)),
    }
}

fn write(n: Number, t: NumberType, place: &mut [u8]) {
    let bits = match (n, t.dtype) {
        (Number::Float(f), DType::F32) => u64::from((f as f32).to_bits()),
        (Number::Float(f), _) => f.to_bits(),
        (Number::Int(i), _) => i as u64,
    };
    let len = place.len().min(8);
    match t.endian {
        Endian::Little => place[..len].copy_from_slice(&bits.to_le_bytes()[..len]),
        Endian::Big => place[..len].copy_from_slice(&bits.to_be_bytes()[8 - len..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_type(dtype: DType, endian: Endian) -> NumberType {
        NumberType { dtype, endian }
    }

    #[test]
    fn differences_are_summed_in_the_values_type_and_wrap() {
        let stage = Numbers {
            computation: Computation::Delta,
            stored: number_type(DType::I8, Endian::Little),
            decoded: number_type(DType::I16, Endian::Big),
        };
        let mut out = [0; 8];
        assert_eq!(stage.decode(&[100, 100, 0x80, 0xff], &mut out).unwrap(), 8);
        let expected: Vec<u8> = [100_i16, 200, 72, 71].iter().flat_map(|v| v.to_be_bytes()).collect();
        assert_eq!(out, expected[..]);
        assert_eq!(stage.stored_len(8), Some(4));
    }

    /// `np.uint8([0, 7]) / 10 + 1000.5` is float64 arithmetic, of a float32 it is float32 arithmetic.
    #[test]
    fn scaling_is_as_wide_as_numpys() {
        let computation =
            Computation::ScaleOffset { scale: 10.0_f64.to_bits(), offset: 1000.5_f64.to_bits() };
        let decoded = number_type(DType::F64, Endian::Little);
        let stage = Numbers { computation, stored: number_type(DType::U8, Endian::Little), decoded };
        let mut out = [0; 16];
        stage.decode(&[0, 7], &mut out).unwrap();
        assert_eq!(out[8..], (7.0_f64 / 10.0 + 1000.5).to_le_bytes());
        let stage = Numbers { computation, stored: number_type(DType::F32, Endian::Big), decoded };
        stage.decode(&7.3_f32.to_be_bytes(), &mut out[..8]).unwrap();
        assert_eq!(out[..8], f64::from(7.3_f32 / 10.0 + 1000.5).to_le_bytes());
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let stage = Numbers {
            computation: Computation::AsType,
            stored: number_type(DType::I16, Endian::Little),
            decoded: number_type(DType::F64, Endian::Little),
        };
        assert!(stage.decode(&[1, 0, 0], &mut [0; 16]).is_err());
        assert!(stage.decode(&[1, 0, 0, 0, 0, 0], &mut [0; 16]).is_err());
        let mut out = [0; 16];
        assert_eq!(stage.decode(&[1, 0, 0xff, 0xff], &mut out).unwrap(), 16);
        assert_eq!(out[8..], (-1.0_f64).to_le_bytes());
    }
}
