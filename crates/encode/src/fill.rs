//! Fill values of integers: what stands where there is no value, and must not be a value.

use sieva::{DType, Data, Mask, Number, Result, ResultColumns};

/// ResultColumns that are looked at together.
const ROWS: u64 = 1 << 18;

/// An integer of type `dtype` that no value of the column is equal to: netCDF's default where that is free. Reads the
/// column, once. Where every candidate is taken it is the default, which is then refused when it is met.
///
/// Readers that decode to float64 compare with it as float64, so that numbers of 64 bits have to differ there.
///
/// # Errors
/// Reading errors.
pub(crate) fn free(rows: &ResultColumns, index: usize, dtype: DType) -> Result<Option<Number>> {
    let Some(default) = default_of(dtype) else { return Ok(None) };
    let mut free = candidates(dtype, default);
    let mut at = 0;
    while at < rows.len() && !free.is_empty() {
        let end = rows.len().min(at + ROWS);
        let column = rows.read(index, at..end, rows.query().threads())?;
        let valid = column.valid.as_ref();
        match &column.data {
            Data::I8(v) => keep_free(v, valid, &mut free, i128::from),
            Data::I16(v) => keep_free(v, valid, &mut free, i128::from),
            Data::I32(v) => keep_free(v, valid, &mut free, i128::from),
            Data::I64(v) => keep_free(v, valid, &mut free, |v| v as f64 as i128),
            Data::U8(v) => keep_free(v, valid, &mut free, i128::from),
            Data::U16(v) => keep_free(v, valid, &mut free, i128::from),
            Data::U32(v) => keep_free(v, valid, &mut free, i128::from),
            Data::U64(v) => keep_free(v, valid, &mut free, |v| v as f64 as i128),
            _ => {}
        }
        at = end;
    }
    Ok(Some(Number::Int(free.first().copied().unwrap_or(default))))
}

/// Takes the candidates away that are among the values; there are few, and mostly the first is free.
fn keep_free<T: Copy>(values: &[T], valid: Option<&Mask>, free: &mut Vec<i128>, number: impl Fn(T) -> i128) {
    // As float64 where values are compared as such.
    let rounded = |&f: &i128| if size_of::<T>() == 8 { f as f64 as i128 } else { f };
    let (Some(low), Some(high)) = (free.iter().map(rounded).min(), free.iter().map(rounded).max()) else {
        return;
    };
    let mut met: Vec<i128> = Vec::new();
    for (i, &value) in values.iter().enumerate() {
        let value = number(value);
        if (low..=high).contains(&value) && valid.is_none_or(|v| v.get(i)) && !met.contains(&value) {
            let before = free.len();
            free.retain(|f| rounded(f) != value);
            if free.len() < before {
                met.push(value);
            }
        }
    }
}

/// Integers that may be free, the default first: of bytes all, else the extreme ones and some drawn once and for all.
fn candidates(dtype: DType, default: i128) -> Vec<i128> {
    let bits = 8 * dtype.size() as u32;
    let low = if dtype.as_unsigned() == dtype { 0 } else { -(1_i128 << (bits - 1)) };
    let high = low + (1_i128 << bits) - 1;
    let mut all = vec![default];
    if bits == 8 {
        all.extend((low..=high).rev().filter(|&i| i != default));
        return all;
    }
    all.extend([low, high]);
    // A linear congruential generator (Knuth, The Art of Computer Programming 2, 3.3.4, table 1, line 26).
    let mut drawn = 1_u64;
    for _ in 0..64 {
        drawn = drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        all.push(low + i128::from(drawn >> (64 - bits)));
    }
    all
}

/// netCDF's default fill value of an integer type (`NC_FILL_...` of the netCDF user's guide).
fn default_of(dtype: DType) -> Option<i128> {
    Some(match dtype {
        DType::I8 => -127,
        DType::U8 => 255,
        DType::I16 => -32767,
        DType::U16 => 65535,
        DType::I32 => -2_147_483_647,
        DType::U32 => 4_294_967_295,
        DType::I64 => -9_223_372_036_854_775_806,
        DType::U64 => 18_446_744_073_709_551_614,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_no_candidates() {
        let mut free = candidates(DType::U8, 255);
        assert_eq!(free.len(), 256);
        let all: Vec<u8> = (0..=255).filter(|&v| v != 77).collect();
        keep_free(&all, None, &mut free, i128::from);
        assert_eq!(free, [77]);
        // What is missing is no value.
        keep_free(&[77_u8], Some(&Mask::zeros(1)), &mut free, i128::from);
        assert_eq!(free, [77]);
        keep_free(&[77_u8], None, &mut free, i128::from);
        assert!(free.is_empty());
    }

    #[test]
    fn wide_integers_are_compared_as_readers_do() {
        let default = default_of(DType::I64).unwrap();
        let mut free = candidates(DType::I64, default);
        keep_free(&[i64::MIN, i64::MAX, 0], None, &mut free, |v| v as f64 as i128);
        assert!(!free.contains(&default) && !free.contains(&i128::from(i64::MAX)) && free.len() > 60);
    }
}
