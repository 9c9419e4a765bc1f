//! Values of files that are packed, marked missing, or dated differently from one another: as float64.

use sieva_types::{Buffer, DType};

use crate::cf::TimeUnits;
use crate::decoding::{Decoding, Number};

/// How stored values of one file become float64 values of the whole, missing ones NaN.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpack {
    /// The file's own packing and missing values.
    pub decoding: Decoding,
    /// Whether values outside of the file's valid range are missing.
    pub valid_range: bool,
    /// The file's time units and those of the whole.
    pub times: Option<(TimeUnits, TimeUnits)>,
}

impl Unpack {
    /// Writes the values of `stored`, elements of `delivered` type, to `out` as float64 in native byte order.
    pub fn apply(&self, delivered: DType, stored: &Buffer, out: &mut [u8]) {
        // The bits are the same; the attribute says whether the sign counts.
        let dtype = if delivered.is_integer() { self.decoding.stored } else { delivered };
        macro_rules! each {
            ($t:ty, $exact:expr) => {
                for (value, slot) in stored.as_slice::<$t>().iter().zip(out.chunks_exact_mut(8)) {
                    slot.copy_from_slice(&self.value(*value as f64, $exact(*value)).to_ne_bytes());
                }
            };
        }
        let float = |v: f64| Number::Float(v);
        match dtype {
            DType::I8 => each!(i8, |v| Number::Int(i128::from(v))),
            DType::I16 => each!(i16, |v| Number::Int(i128::from(v))),
            DType::I32 => each!(i32, |v| Number::Int(i128::from(v))),
            DType::I64 => each!(i64, |v| Number::Int(i128::from(v))),
            DType::U8 | DType::Bool => each!(u8, |v| Number::Int(i128::from(v))),
            DType::U16 => each!(u16, |v| Number::Int(i128::from(v))),
            DType::U32 => each!(u32, |v| Number::Int(i128::from(v))),
            DType::U64 => each!(u64, |v| Number::Int(i128::from(v))),
            DType::F16 | DType::F32 => each!(f32, |v| float(f64::from(v))),
            DType::F64 => each!(f64, float),
            DType::Str => {}
        }
    }

    fn value(&self, value: f64, exact: Number) -> f64 {
        if self.decoding.missing.contains(&exact) || (self.valid_range && !self.is_valid(exact)) {
            return f64::NAN;
        }
        let value = self.decoding.packing.map_or(value, |(scale, offset)| value * scale + offset);
        match &self.times {
            Some((own, whole)) => own.to_datetime(value).map_or(f64::NAN, |date| whole.to_number(&date)),
            None => value,
        }
    }

    fn is_valid(&self, value: Number) -> bool {
        let above = self.decoding.valid.0.is_none_or(|low| at_most(low, value));
        above && self.decoding.valid.1.is_none_or(|high| at_most(value, high))
    }
}

/// Whether `a <= b`; both are of one stored type, so integers or floats.
fn at_most(a: Number, b: Number) -> bool {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => a <= b,
        (Number::Float(a), Number::Float(b)) => a <= b,
        (Number::Int(a), Number::Float(b)) => a as f64 <= b,
        (Number::Float(a), Number::Int(b)) => a <= b as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cf::Calendar;

    fn run(unpack: &Unpack, stored: &[i16]) -> Vec<f64> {
        let mut buffer = Buffer::default();
        buffer.resize(stored.len() * 2);
        buffer.as_mut_slice::<i16>().copy_from_slice(stored);
        let mut out = vec![0; stored.len() * 8];
        unpack.apply(DType::I16, &buffer, &mut out);
        out.chunks_exact(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap())).collect()
    }

    #[test]
    fn packed_unsigned_and_missing_values() {
        let decoding = Decoding {
            stored: DType::U16,
            packing: Some((0.5, 10.0)),
            missing: vec![Number::Int(65535)],
            valid: (None, Some(Number::Int(65000))),
        };
        let mut unpack = Unpack { decoding, valid_range: false, times: None };
        let got = run(&unpack, &[2, -1, -2]);
        assert_eq!((got[0], got[1].is_nan(), got[2]), (11.0, true, 65534.0 * 0.5 + 10.0));
        unpack.valid_range = true;
        assert!(run(&unpack, &[-2])[0].is_nan());
    }

    #[test]
    fn times_are_counted_from_the_date_of_the_whole() {
        let units = |text: &str| TimeUnits::parse(text, Calendar::Standard).unwrap();
        let unpack = Unpack {
            decoding: Decoding::none(DType::I16),
            valid_range: false,
            times: Some((units("hours since 2001-01-01"), units("days since 2000-01-01"))),
        };
        assert_eq!(run(&unpack, &[0, 36]), [366.0, 367.5]);
    }
}
