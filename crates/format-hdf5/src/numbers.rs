//! Numbers that no machine computes with, as the nearest that one does.
//!
//! HDF5 describes a number by the places of its bits: integers of any precision anywhere in their bytes, floating point
//! with any sign, exponent and mantissa (HDF5 file format specification, version 3.0, IV.A.2.d). Integers of 1,
//! 2, 4 or 8 bytes become that of a machine, others the narrowest that holds their precision. Floating point becomes float64, rounded to the nearest, ties to
//! even, as numpy rounds x87's and IEEE's longer types; libhdf5's own conversion rounds ties away from zero and cuts
//! off what falls below the normal numbers.

use sieva_types::{Bx, DType, Endian, Error, Result};

use crate::slabs::{BUFFER_LIMIT, slabs};

/// Most bytes of such a number.
pub(crate) const SIZE_LIMIT: u64 = 16;

/// How the bits of a stored number are placed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OddNumber {
    /// Bytes of an item.
    pub(crate) size: usize,
    pub(crate) order: Order,
    pub(crate) form: Form,
}

/// The order of an item's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Plain(Endian),
    /// Of words of 16 bits the most significant first, their bytes the least significant first.
    Vax,
}

/// What the bits are. Bit 0 is the least significant of the item.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Form {
    Integer { offset: u32, precision: u32, signed: bool, dtype: DType },
    Float(Float),
}

/// A floating-point format.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Float {
    pub(crate) sign: u32,
    pub(crate) exponent: Field,
    pub(crate) mantissa: Field,
    pub(crate) bias: u64,
    /// Whether the bit before the point is left out, as it is always one.
    pub(crate) implied: bool,
}

/// Some bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Field {
    fn of(self, bits: u128) -> u128 {
        let mask = 1_u128.checked_shl(self.len).map_or(u128::MAX, |bit| bit - 1);
        bits >> self.start & mask
    }

    fn is_within(self, bits: u32) -> bool {
        self.start.checked_add(self.len).is_some_and(|end| end <= bits)
    }
}

impl OddNumber {
    /// Whether all bits that it names are in its bytes, and those few enough.
    pub(crate) fn is_sound(&self) -> bool {
        if self.size as u64 > SIZE_LIMIT {
            return false;
        }
        let bits = 8 * self.size as u32;
        match &self.form {
            Form::Integer { offset, precision, .. } => {
                (1..=64).contains(precision) && Field { start: *offset, len: *precision }.is_within(bits)
            }
            Form::Float(float) => {
                let fields = [float.exponent, float.mantissa, Field { start: float.sign, len: 1 }];
                (1..64).contains(&float.exponent.len)
                    && (1..128).contains(&float.mantissa.len)
                    && float.bias < 1 << 62
                    && fields.iter().all(|field| field.is_within(bits))
            }
        }
    }

    /// The type that its numbers become.
    pub(crate) fn dtype(&self) -> DType {
        match self.form {
            Form::Integer { dtype, .. } => dtype,
            Form::Float(_) => DType::F64,
        }
    }

    /// Its name for people.
    pub(crate) fn name(&self) -> String {
        match &self.form {
            Form::Integer { precision, .. } => format!("{precision}-bit integers in {} bytes", self.size),
            Form::Float(float) => {
                let len = float.exponent.len;
                format!("floating-point numbers of {} bytes with {len} bits of exponent", self.size)
            }
        }
    }

    /// Fills `out` with the numbers of box `bx`, of which `read` gives the stored items a part at a time.
    ///
    /// # Errors
    /// Those of `read`, and as [`OddNumber::convert`].
    pub(crate) fn convert_box(
        &self,
        bx: &Bx,
        out: &mut [u8],
        mut read: impl FnMut(&Bx, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut items, mut done) = (Vec::new(), 0);
        for slab in slabs(bx, BUFFER_LIMIT / self.size as u64) {
            items.resize(slab.len() as usize * self.size, 0);
            read(&slab, &mut items)?;
            let end = done + slab.len() as usize * self.dtype().size();
            self.convert(&items, &mut out[done..end])?;
            done = end;
        }
        Ok(())
    }

    /// Converts stored items, one after the other, to as many numbers of [`OddNumber::dtype`] in native byte order.
    ///
    /// # Errors
    /// `corrupt-file` for an item that is no number: a bit before the point that is written down and zero, as no
    /// processor writes it but under the least exponent.
    pub(crate) fn convert(&self, items: &[u8], out: &mut [u8]) -> Result<()> {
        let places = out.chunks_exact_mut(self.dtype().size());
        for (item, place) in items.chunks_exact(self.size).zip(places) {
            let bits = self.bits(item);
            match &self.form {
                &Form::Integer { offset, precision, signed, .. } => {
                    let raw = Field { start: offset, len: precision }.of(bits) as u64;
                    let unused = 64 - precision;
                    let value =
                        if signed { ((raw << unused) as i64 >> unused) as u64 } else { raw }.to_ne_bytes();
                    let low = if Endian::NATIVE == Endian::Little { 0 } else { 8 - place.len() };
                    place.copy_from_slice(&value[low..low + place.len()]);
                }
                Form::Float(float) => {
                    let value = float.value(bits).ok_or_else(|| {
                        Error::corrupt(format!("an item is no floating-point number: {item:02x?}"))
                    })?;
                    place.copy_from_slice(&value.to_ne_bytes());
                }
            }
        }
        Ok(())
    }

    fn bits(&self, item: &[u8]) -> u128 {
        let mut bytes = [0; SIZE_LIMIT as usize];
        let bytes_of_item = &mut bytes[..item.len()];
        bytes_of_item.copy_from_slice(item);
        match self.order {
            Order::Plain(Endian::Little) => {}
            Order::Plain(Endian::Big) => bytes_of_item.reverse(),
            Order::Vax => {
                bytes_of_item.reverse();
                bytes_of_item.chunks_exact_mut(2).for_each(|word| word.swap(0, 1));
            }
        }
        u128::from_le_bytes(bytes)
    }
}

impl Float {
    /// The float64 nearest to the number of these bits; `None` where they are none.
    fn value(&self, bits: u128) -> Option<f64> {
        let sign = if bits >> self.sign & 1 == 1 { -1.0_f64 } else { 1.0 };
        let exponent = self.exponent.of(bits) as i128;
        let mantissa = self.mantissa.of(bits);
        let fraction = self.mantissa.len - u32::from(!self.implied);
        let is_whole = self.implied || mantissa >> fraction == 1;
        if exponent != 0 && !is_whole {
            return None;
        }
        if exponent == (1 << self.exponent.len) - 1 {
            let is_infinite = mantissa & !(u128::MAX << fraction) == 0;
            return Some(if is_infinite { sign * f64::INFINITY } else { f64::NAN });
        }
        let hidden = self.implied && exponent != 0;
        let significand = if hidden { mantissa | 1 << fraction } else { mantissa };
        let power = exponent.max(1) - i128::from(self.bias) - i128::from(fraction);
        Some(sign * nearest(significand, power))
    }
}

/// The float64 nearest to `significand · 2^power`, ties to the even one.
fn nearest(significand: u128, power: i128) -> f64 {
    if significand == 0 {
        return 0.0;
    }
    let unused = significand.leading_zeros();
    let significand = significand << unused;
    // Of the leading bit.
    let exponent = power - i128::from(unused) + 127;
    if exponent > 1023 {
        return f64::INFINITY;
    }
    // Below the normal numbers there are fewer bits, of which the first is kept at 2^-1074.
    let kept = if exponent >= -1022 { 53 } else { exponent + 1075 };
    let Some(kept) = u32::try_from(kept).ok() else { return 0.0 };
    let whole = if kept == 0 { 0 } else { (significand >> (128 - kept)) as u64 };
    let rest = significand << kept;
    let half = 1_u128 << 127;
    let is_up = rest > half || rest == half && whole & 1 == 1;
    // A carry out of the mantissa raises the exponent, as it should.
    let biased = if exponent >= -1022 { (exponent + 1022) as u64 } else { 0 };
    f64::from_bits((biased << 52) + whole + u64::from(is_up))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(sign: u32, exponent: (u32, u32), mantissa: (u32, u32), bias: u64) -> Float {
        let field = |(start, len)| Field { start, len };
        Float { sign, exponent: field(exponent), mantissa: field(mantissa), bias, implied: true }
    }

    fn x87() -> Float {
        Float { implied: false, ..float(79, (64, 15), (0, 64), 16383) }
    }

    fn check_f64(format: &Float, of: impl Fn(f64) -> u128, value: f64) {
        assert_eq!(format.value(of(value)).map(f64::to_bits), Some(value.to_bits()), "{value}");
    }

    #[test]
    fn float64_described_by_its_bits_stays_itself() {
        let f64_form = float(63, (52, 11), (0, 52), 1023);
        let mut bits = 1_u64;
        for _ in 0..2000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let value = f64::from_bits(bits);
            if !value.is_nan() {
                check_f64(&f64_form, |v| v.to_bits().into(), value);
            }
        }
        for value in [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324, f64::MIN_POSITIVE, f64::MAX] {
            check_f64(&f64_form, |v| v.to_bits().into(), value);
        }
        assert!(f64_form.value(f64::NAN.to_bits().into()).unwrap().is_nan());
        let f32_form = float(31, (23, 8), (0, 23), 127);
        for value in [1.5_f32, -3.25e-39, f32::MAX, 1e-45, f32::NEG_INFINITY] {
            assert_eq!(f32_form.value(value.to_bits().into()), Some(f64::from(value)));
        }
    }

    #[test]
    fn longer_numbers_are_rounded_to_even() {
        let quad = float(127, (112, 15), (0, 112), 16383);
        let of = |exponent: i32, mantissa: u128| u128::from((exponent + 16383) as u32) << 112 | mantissa;
        let half = 1_u128 << 59;
        let next = |n: u64| f64::from_bits(1.0_f64.to_bits() + n);
        for (mantissa, expected) in [
            (half, next(0)),
            (half + 1, next(1)),
            (half - 1, next(0)),
            (3 * half, next(2)),
            (2 * half, next(1)),
            ((1 << 112) - 1, 2.0),
        ] {
            assert_eq!(quad.value(of(0, mantissa)), Some(expected), "{mantissa:x}");
        }
        // Beyond float64 on both sides, and among its least numbers.
        assert_eq!(quad.value(of(1024, 0)), Some(f64::INFINITY));
        assert_eq!(quad.value(of(1023, (1 << 112) - 1)), Some(f64::INFINITY));
        assert_eq!(quad.value(of(-1074, 0)), Some(5e-324));
        assert_eq!(quad.value(of(-1075, 0)), Some(0.0));
        assert_eq!(quad.value(of(-1075, 1)), Some(5e-324));
        assert_eq!(quad.value(of(-1074, half)), Some(5e-324));
        assert_eq!(quad.value(of(-1074, 1 << 111)), Some(1e-323));
        assert_eq!(quad.value(of(-1076, (1 << 112) - 1)), Some(0.0));
        assert_eq!(quad.value(of(-1023, (1 << 112) - 1)), Some(f64::MIN_POSITIVE));
        assert_eq!(quad.value(1 << 127).map(f64::to_bits), Some((-0.0_f64).to_bits()));
    }

    #[test]
    fn an_integer_bit_that_is_written_down() {
        let of = |exponent: u128, mantissa: u128| exponent << 64 | mantissa;
        assert_eq!(x87().value(of(16383, 3 << 62)), Some(1.5));
        assert_eq!(x87().value(of(0x7fff, 1 << 63)), Some(f64::INFINITY));
        assert!(x87().value(of(0x7fff, 3 << 62)).unwrap().is_nan());
        assert_eq!(x87().value(of(0, 1)), Some(0.0));
        for (exponent, mantissa) in [(16383, 1 << 62), (0x7fff, 0), (1, 0)] {
            assert_eq!(x87().value(of(exponent, mantissa)), None, "{exponent} {mantissa}");
        }
        // One bit of mantissa, and that written down.
        let power = Float { implied: false, ..float(7, (1, 6), (0, 1), 31) };
        assert_eq!(power.value(0b0100_0001), Some(2.0));
        assert_eq!(power.value(0b0111_1111), Some(f64::INFINITY));
    }

    #[test]
    fn integers_anywhere_in_their_bytes() {
        let form = |signed, dtype| Form::Integer { offset: 3, precision: 10, signed, dtype };
        let number = |order, form| OddNumber { size: 2, order, form };
        let mut out = [0; 4];
        let signed = number(Order::Plain(Endian::Little), form(true, DType::I16));
        signed.convert(&[0xf8, 0xff, 0x0f, 0xe0], &mut out).unwrap();
        assert_eq!(out, [(-1_i16).to_ne_bytes(), 1_i16.to_ne_bytes()].concat()[..]);
        let unsigned = number(Order::Plain(Endian::Big), form(false, DType::U16));
        unsigned.convert(&[0xff, 0xf8, 0xe0, 0x0f], &mut out).unwrap();
        assert_eq!(out, [1023_u16.to_ne_bytes(), 1_u16.to_ne_bytes()].concat()[..]);
        assert!(signed.is_sound());
        for (offset, precision) in [(7, 10), (0, 0), (0, 65), (u32::MAX, 2)] {
            let form = Form::Integer { offset, precision, signed: true, dtype: DType::I64 };
            assert!(!number(Order::Vax, form).is_sound(), "{offset} {precision}");
        }
    }

    #[test]
    fn words_of_a_vax() {
        // F_floating of 1.0: exponent 129 in bits 7 to 14 of the first word, bias 128 with a mantissa below one.
        let f = Form::Float(float(31, (23, 8), (0, 23), 129));
        let number = OddNumber { size: 4, order: Order::Vax, form: f };
        let mut out = [0; 16];
        number.convert(&[0x80, 0x40, 0, 0, 0x20, 0xc2, 0, 0], &mut out).unwrap();
        assert_eq!(out, [1.0_f64.to_ne_bytes(), (-10.0_f64).to_ne_bytes()].concat()[..]);
    }
}
