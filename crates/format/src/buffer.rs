//! Native elements from stored ones: byte order, and half precision.

pub use sieva_types::{Buffer, Element};

/// Reverses the bytes of each element of `size` bytes.
pub fn swap_bytes(bytes: &mut [u8], size: usize) {
    fn swap<const N: usize>(bytes: &mut [u8]) {
        for element in bytes.as_chunks_mut::<N>().0 {
            element.reverse();
        }
    }
    match size {
        2 => swap::<2>(bytes),
        4 => swap::<4>(bytes),
        8 => swap::<8>(bytes),
        _ => {}
    }
}

/// IEEE binary16 to binary32, exactly.
pub fn widen_f16(h: u16) -> f32 {
    let sign = u32::from(h >> 15) << 31;
    let (exponent, mantissa) = (u32::from(h >> 10) & 0x1f, u32::from(h) & 0x3ff);
    match exponent {
        0 => {
            let tiny = mantissa as f32 * f32::from_bits(0x3380_0000); // 2^-24
            f32::from_bits(tiny.to_bits() | sign)
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | (mantissa << 13)),
        _ => f32::from_bits(sign | ((exponent + 112) << 23) | (mantissa << 13)),
    }
}

/// float64 to float16, rounded to nearest, ties to even (IEEE 754, section 4.3.1).
pub fn narrow_f16(f: f64) -> u16 {
    let sign = u16::from(f.is_sign_negative()) << 15;
    let a = f.abs();
    if a.is_nan() {
        return sign | 0x7e00;
    }
    if a >= 65520.0 {
        return sign | 0x7c00;
    }
    // The spacing of float16 numbers near `a` is a power of two; in units of it the value is rounded to an integer.
    let exponent = ((a.to_bits() >> 52) as i32 - 1023).max(-14);
    let units = (a * 2.0_f64.powi(10 - exponent)).round_ties_even() as u16;
    // 1024 units are the next exponent's first; the sum carries over into it.
    let base = ((exponent + 14) as u16) << 10;
    sign | (base + units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f16_widens_exactly() {
        for (h, f) in [
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x0400, 6.103_515_6e-5),
        ] {
            assert_eq!(widen_f16(h), f);
        }
        assert!(widen_f16(0x7e00).is_nan());
        assert_eq!(widen_f16(0xfc00), f32::NEG_INFINITY);
        assert!(widen_f16(0x8000).is_sign_negative());
    }

    #[test]
    fn a_buffer_is_viewed_as_any_type() {
        let mut b = Buffer::default();
        b.resize(10);
        b.as_mut_slice::<i16>().copy_from_slice(&[1, -2, 3, -4, 5]);
        assert_eq!(b.as_slice::<i16>()[4], 5);
        assert_eq!(b.as_slice::<u64>().len(), 1);
        swap_bytes(b.bytes_mut(), 2);
        assert_eq!(b.as_slice::<i16>()[0], 256);
    }

    /// Values of numpy.float16: halves, the least subnormal, ties to even, the largest, beyond.
    #[test]
    fn float16_is_rounded_to_nearest_even() {
        let known = [
            (1.0, 0x3c00),
            (-2.5, 0xc100),
            (5.960_464_477_539_063e-8, 0x0001),
            (2.98e-8, 0x0000),
            (2049.0, 0x6800),
            (2051.0, 0x6802),
            (65504.0, 0x7bff),
            (65520.0, 0x7c00),
            (0.1, 0x2e66),
            (6.1035e-5, 0x0400),
            (1.9999, 0x4000),
        ];
        for (value, bits) in known {
            assert_eq!(narrow_f16(value), bits, "{value}");
        }
    }
}
