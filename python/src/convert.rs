//! Values between Rust and Python.

use numpy::ndarray::{ArrayView, ShapeError};
use numpy::{Element, IntoPyArray, PyArrayMethods, PyReadonlyArrayDyn, ToPyArray};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use sieva::{Attr, AttrValue, Column, DType, Data, Error, ErrorKind, Mask, Number};

use crate::errors::to_python;

/// A number of things that somebody asked for.
pub fn whole(given: &Bound<'_, PyAny>) -> PyResult<usize> {
    given.extract().map_err(|_| {
        let shown = given.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string());
        let message = format!("a whole number, not negative, was expected, got {shown}");
        to_python(Error::new(ErrorKind::InvalidValue, message))
    })
}

/// Positions: whole numbers of any type, as numpy takes them.
pub fn positions<'py>(given: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArrayDyn<'py, u64>> {
    if let Ok(array) = given.extract() {
        return Ok(array);
    }
    let invalid = |what: String| to_python(Error::new(ErrorKind::InvalidValue, what));
    let array = given.py().import("numpy")?.call_method1("asarray", (given,))?;
    let (kind, size) = (array.getattr("dtype")?.getattr("kind")?, array.getattr("size")?.extract::<usize>()?);
    match kind.extract::<String>()?.as_str() {
        _ if size == 0 => {}
        "u" => {}
        "i" if array.call_method0("min")?.extract::<i64>()? >= 0 => {}
        "i" => {
            let least = array.call_method0("min")?;
            return Err(invalid(format!("the position {least}: positions are counted from 0")));
        }
        _ => {
            let dtype = array.getattr("dtype")?;
            return Err(invalid(format!("positions are whole numbers, got an array of {dtype}")));
        }
    }
    array.call_method1("astype", ("u8",))?.extract()
}

/// Bytes up to which values are copied into memory of numpy: that costs less than an object that keeps ours alive.
const COPIED: usize = 16 << 10;

/// A column as a numpy array of shape `(n,)`. Missing values are NaN: floats keep their type, integers and
/// bools that have missing values become float64. Text is an object array, missing ones `None`.
pub fn column<'py>(py: Python<'py>, column: Column) -> PyResult<Bound<'py, PyAny>> {
    let n = column.len() as u64;
    shaped(py, column, &[n])
}

/// The same as an array of this shape.
pub fn shaped<'py>(py: Python<'py>, column: Column, shape: &[u64]) -> PyResult<Bound<'py, PyAny>> {
    let Column { data, valid } = column;
    match (data, valid) {
        (Data::Str(v), valid) => {
            let missing = |i: usize| valid.as_ref().is_some_and(|v| !v.get(i));
            let texts = v.iter().enumerate().map(|(i, text)| (!missing(i)).then_some(text));
            let numpy = py.import("numpy")?;
            let out = numpy.call_method1("empty", (v.len(), "object"))?;
            out.set_item(pyo3::types::PySlice::full(py), PyList::new(py, texts)?)?;
            out.call_method1("reshape", (PyTuple::new(py, shape)?,))
        }
        (Data::Bool(v), None) => array(py, v, shape),
        (Data::F32(mut v), valid) => {
            blank(&mut v, valid, f32::NAN);
            array(py, v, shape)
        }
        (Data::F64(mut v), valid) => {
            blank(&mut v, valid, f64::NAN);
            array(py, v, shape)
        }
        (data, Some(valid)) => {
            let mut wide = as_f64(&data);
            blank(&mut wide, Some(valid), f64::NAN);
            array(py, wide, shape)
        }
        (data, None) => integers(py, data, shape),
    }
}

/// Numbers in their own type, and for each whether it is missing, as arrays of this shape.
pub fn masked<'py>(
    py: Python<'py>,
    column: Column,
    shape: &[u64],
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let mut missing = vec![false; column.len()];
    let Column { data, valid } = column;
    valid.iter().flat_map(Mask::zeros_iter).for_each(|i| missing[i] = true);
    let values = shaped(py, Column { data, valid: None }, shape)?;
    Ok((values, array(py, missing, shape)?))
}

/// Values as an array: few of them copied, many handed over.
fn array<'py, T: Element>(py: Python<'py>, values: Vec<T>, shape: &[u64]) -> PyResult<Bound<'py, PyAny>> {
    let shape: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
    if size_of_val(values.as_slice()) > COPIED {
        return Ok(values.into_pyarray(py).reshape(shape)?.into_any());
    }
    let disagree = |e: ShapeError| PyRuntimeError::new_err(e.to_string());
    let values = ArrayView::from_shape(shape, &values).map_err(disagree)?;
    Ok(values.to_pyarray(py).into_any())
}

/// float16, which is read as float32, in its own width again (exactly).
pub fn stored_width<'py>(
    values: Bound<'py, PyAny>,
    info: Option<&sieva::ArrayInfo>,
    raw: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let is_half = |i: &sieva::ArrayInfo| i.dtype == DType::F16 && (raw || i.decoding.packing.is_none());
    if info.is_some_and(is_half) { values.call_method1("astype", ("float16",)) } else { Ok(values) }
}

/// The values of a box in their shape, of every so manieth element along each dimension. Their type is decided by those that
/// are given: integers among which none is missing stay integers.
pub fn stepped<'py>(
    py: Python<'py>,
    values: Column,
    shape: &[u64],
    steps: &[u64],
    info: Option<&sieva::ArrayInfo>,
    raw: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let values = if steps.iter().all(|&s| s <= 1) { values } else { every(&values, shape, steps) };
    let extent = shape.iter().zip(steps).map(|(n, &s)| n.div_ceil(s.max(1)));
    let extent = PyTuple::new(py, extent.collect::<Vec<_>>())?;
    stored_width(column(py, values)?, info, raw)?.call_method1("reshape", (extent,))
}

/// Every so manieth element of a box along each dimension.
fn every(values: &Column, shape: &[u64], steps: &[u64]) -> Column {
    let mut places = vec![0];
    for (&n, &step) in shape.iter().zip(steps) {
        let along = (0..n as usize).step_by(step.max(1) as usize);
        places = places.iter().flat_map(|p| along.clone().map(move |i| p * n as usize + i)).collect();
    }
    let Column { data, valid } = values.take(&places);
    Column { data, valid: valid.filter(|v| v.zeros_iter().next().is_some()) }
}

fn blank<T: Copy>(values: &mut [T], valid: Option<Mask>, nan: T) {
    valid.iter().flat_map(Mask::zeros_iter).for_each(|i| values[i] = nan);
}

fn as_f64(data: &Data) -> Vec<f64> {
    match data {
        Data::Bool(v) => v.iter().map(|&b| f64::from(u8::from(b))).collect(),
        Data::I8(v) => v.iter().map(|&x| x.into()).collect(),
        Data::I16(v) => v.iter().map(|&x| x.into()).collect(),
        Data::I32(v) => v.iter().map(|&x| x.into()).collect(),
        Data::I64(v) => v.iter().map(|&x| x as f64).collect(),
        Data::U8(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U16(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U32(v) => v.iter().map(|&x| x.into()).collect(),
        Data::U64(v) => v.iter().map(|&x| x as f64).collect(),
        Data::F32(v) => v.iter().map(|&x| x.into()).collect(),
        Data::F64(v) => v.clone(),
        Data::Str(v) => vec![f64::NAN; v.len()],
    }
}

fn integers<'py>(py: Python<'py>, data: Data, shape: &[u64]) -> PyResult<Bound<'py, PyAny>> {
    match data {
        Data::I8(v) => array(py, v, shape),
        Data::I16(v) => array(py, v, shape),
        Data::I32(v) => array(py, v, shape),
        Data::I64(v) => array(py, v, shape),
        Data::U8(v) => array(py, v, shape),
        Data::U16(v) => array(py, v, shape),
        Data::U32(v) => array(py, v, shape),
        Data::U64(v) => array(py, v, shape),
        other => array(py, as_f64(&other), shape),
    }
}

/// `n * rank` values as an array of shape `(n, rank)`.
pub fn matrix(py: Python<'_>, values: Vec<i64>, n: usize, rank: usize) -> PyResult<Bound<'_, PyAny>> {
    Ok(values.into_pyarray(py).reshape([n, rank])?.into_any())
}

/// Attributes as a dict: text, lists of text, numpy scalars' plain values, or numpy arrays.
pub fn attributes<'py>(py: Python<'py>, attrs: &[Attr]) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, value) in attrs {
        out.set_item(name, attribute(py, value)?)?;
    }
    Ok(out)
}

/// Numbers as Python has them.
pub fn numbers<'py>(py: Python<'py>, numbers: &[Number]) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let each = numbers.iter().map(|number| match number {
        Number::Int(i) => Ok(i.into_pyobject(py)?.into_any()),
        Number::Float(f) => Ok(f.into_pyobject(py)?.into_any()),
    });
    each.collect()
}

fn attribute<'py>(py: Python<'py>, value: &AttrValue) -> PyResult<Bound<'py, PyAny>> {
    let typed = |list: Bound<'py, PyAny>, dtype: DType, n: usize| {
        let array = py.import("numpy")?.call_method1("array", (list, dtype.name()))?;
        // One number is a scalar of its type, as netCDF libraries give it.
        if n == 1 { array.get_item(0) } else { Ok(array) }
    };
    Ok(match value {
        AttrValue::Text(s) | AttrValue::Other(s) => s.into_pyobject(py)?.into_any(),
        AttrValue::Texts(v) => PyList::new(py, v)?.into_any(),
        AttrValue::Ints(dtype, v) => typed(PyList::new(py, v)?.into_any(), *dtype, v.len())?,
        AttrValue::Floats(dtype, v) => typed(PyList::new(py, v)?.into_any(), *dtype, v.len())?,
    })
}
