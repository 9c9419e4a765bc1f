//! Attributes, types and limits that Python code gives, as values of ours.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use sieva::{Attr, AttrValue, BlockBounds, Bx, DType, Error, ErrorKind, keys};

/// The type that numpy, or a description, calls so.
pub fn dtype_named(name: &str) -> Option<DType> {
    use DType::{Bool, F16, F32, F64, I8, I16, I32, I64, Str, U8, U16, U32, U64};
    [Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, F32, F64, Str].into_iter().find(|d| d.name() == name)
}

/// Attributes of a dict: texts, lists of texts, numbers, and numpy arrays and scalars of them.
pub fn attributes(attrs: &Bound<'_, PyDict>) -> PyResult<Vec<Attr>> {
    attrs.iter().map(|(name, value)| Ok((name.extract()?, attribute(&value)?))).collect()
}

fn attribute(value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    if let Ok(text) = value.extract::<String>() {
        return Ok(AttrValue::Text(text));
    }
    if let Ok(texts) = value.extract::<Vec<String>>() {
        return Ok(AttrValue::Texts(texts));
    }
    let array = value.py().import("numpy")?.call_method1("asarray", (value,))?;
    let name: String = array.getattr("dtype")?.getattr("name")?.extract()?;
    let list = |kind: &str| {
        array.call_method1("astype", (kind,))?.call_method1("reshape", (-1,))?.call_method0("tolist")
    };
    Ok(match dtype_named(&name) {
        Some(dtype) if dtype.is_float() => AttrValue::Floats(dtype, list("float64")?.extract()?),
        Some(DType::Str) | None => AttrValue::Other(value.str()?.to_string()),
        Some(dtype) => AttrValue::Ints(dtype, whole_numbers(&list("object")?)?),
    })
}

fn whole_numbers(list: &Bound<'_, PyAny>) -> PyResult<Vec<i128>> {
    list.try_iter()?.map(|item| whole(&item?)).collect()
}

/// An integer of any type that an array may have.
fn whole(value: &Bound<'_, PyAny>) -> PyResult<i128> {
    match value.extract::<i64>() {
        Ok(v) => Ok(v.into()),
        Err(_) => value.extract::<u64>().map(i128::from),
    }
}

/// The limits of blocks that a reader gives as a list of `(start, shape, low, high)`, as keys of `dtype`.
pub fn limits_keys(found: &Bound<'_, PyAny>, dtype: DType) -> PyResult<BlockBounds> {
    if found.is_none() {
        return Ok(BlockBounds::new());
    }
    let block = |item: PyResult<Bound<'_, PyAny>>| {
        let (start, shape, low, high): (Vec<u64>, Vec<u64>, Bound<'_, PyAny>, Bound<'_, PyAny>) =
            item?.extract()?;
        if start.len() != shape.len() {
            let message = format!("a block needs as many starts as lengths, got {start:?} and {shape:?}");
            return Err(crate::errors::to_python(Error::new(ErrorKind::InvalidValue, message)));
        }
        let known = !(low.is_none() || high.is_none());
        let keys = if known { keys_of(&low, &high, dtype)? } else { None };
        Ok((Bx::new(start, shape), keys))
    };
    found.try_iter()?.map(block).collect()
}

/// The keys that values from `low` to `high` lie within. Both zeros are one value, and no bound is drawn nearer by
/// rounding to the type.
fn keys_of(low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Option<(i128, i128)>> {
    if dtype.is_integer() || dtype == DType::Bool {
        return Ok(Some((whole(low)?, whole(high)?)));
    }
    let (low, high): (f64, f64) = (low.extract()?, high.extract()?);
    if !dtype.is_float() || low.is_nan() || high.is_nan() {
        return Ok(None);
    }
    let low = if low == 0.0 { -0.0 } else { low };
    let high = if high == 0.0 { 0.0 } else { high };
    if dtype == DType::F64 {
        return Ok(Some((keys::f64_key(low), keys::f64_key(high))));
    }
    let (near_low, near_high) = (low as f32, high as f32);
    let low_key = keys::f32_key(near_low) - i128::from(f64::from(near_low) > low);
    let high_key = keys::f32_key(near_high) + i128::from(f64::from(near_high) < high);
    Ok(Some((low_key, high_key)))
}
