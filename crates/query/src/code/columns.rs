//! Columns of values as code sees them, and back: little-endian bytes of the types that are stored.

use std::ops::Range;

use sieva_types::{Error, ErrorKind, Result, large};
use sieva_usercode::{Element, Slice};

use crate::mask::Mask;
use crate::values::{ValueType, Values, Vector};

/// An argument of some rows, as bytes.
pub(super) struct Argument {
    element: Element,
    data: Vec<u8>,
    valid: Vec<u8>,
    any_missing: bool,
}

impl Argument {
    pub(super) fn new(element: Element) -> Self {
        Self { element, data: Vec::new(), valid: Vec::new(), any_missing: false }
    }

    /// Takes the rows `from..to` of a vector. What is missing is zero.
    pub(super) fn fill(&mut self, vector: &Vector, from: usize, to: usize) -> Result<()> {
        let is_constant = vector.is_constant();
        let range = if is_constant { 0..1 } else { from..to };
        let (data, size) = (&mut self.data, self.element.size());
        data.clear();
        match &vector.values {
            Values::Bool(v) => bytes(data, &v[range.clone()], |x| [u8::from(x)]),
            Values::F64(v) if self.element == Element::F32 => {
                // What is stored in 32 bits, or 16, is the same there.
                bytes(data, &v[range.clone()], |x| (x as f32).to_le_bytes());
            }
            Values::F64(v) if self.element == Element::F64 => {
                bytes(data, &v[range.clone()], f64::to_le_bytes)
            }
            // An untyped NULL.
            Values::F64(_) => data.resize(range.len() * size, 0),
            Values::I64(v) => integers(data, &v[range.clone()], size),
            Values::U64(v) => bytes(data, &v[range.clone()], u64::to_le_bytes),
            Values::Str(_) => return Err(Error::new(ErrorKind::Internal, "a text as an argument of code")),
        }
        if data.len() != range.len() * size {
            return Err(Error::new(ErrorKind::Internal, "an argument of another type than was announced"));
        }
        self.valid.clear();
        if let Some(valid) = &vector.valid {
            self.valid.extend(range.clone().map(|i| u8::from(valid.get(i))));
        }
        self.any_missing = self.valid.contains(&0);
        if self.any_missing {
            let missing = data.chunks_exact_mut(size).zip(&self.valid).filter(|(_, valid)| **valid == 0);
            missing.for_each(|(value, _)| value.fill(0));
        }
        if is_constant {
            self.data = self.data.repeat(to - from);
            self.valid = self.valid.repeat(to - from);
        }
        Ok(())
    }

    pub(super) fn slice(&self) -> Slice<'_> {
        Slice { data: &self.data, valid: self.any_missing.then_some(&*self.valid) }
    }

    /// Some of the rows that were taken.
    pub(super) fn part(&self, rows: Range<usize>) -> Slice<'_> {
        let size = self.element.size();
        let valid = self.any_missing.then(|| &self.valid[rows.clone()]);
        Slice { data: &self.data[rows.start * size..rows.end * size], valid }
    }
}

/// Appends the bytes of each value.
fn bytes<T: Copy, const N: usize>(out: &mut Vec<u8>, values: &[T], of: impl Fn(T) -> [u8; N]) {
    out.resize(values.len() * N, 0);
    for (place, value) in out.chunks_exact_mut(N).zip(values) {
        place.copy_from_slice(&of(*value));
    }
}

/// Appends integers in the size in which they are stored: only what is missing does not fit.
fn integers(out: &mut Vec<u8>, values: &[i64], size: usize) {
    match size {
        1 => bytes(out, values, |x| [x as u8]),
        2 => bytes(out, values, |x| (x as u16).to_le_bytes()),
        4 => bytes(out, values, |x| (x as u32).to_le_bytes()),
        _ => bytes(out, values, i64::to_le_bytes),
    }
}

/// Values that came out, widened.
pub(super) struct Collected {
    values: Values,
    /// Rows that are there, once one is missing.
    valid: Option<Mask>,
}

impl Collected {
    /// Room for so many rows.
    pub(super) fn new(value_type: ValueType, rows: usize) -> Self {
        let values = match value_type {
            ValueType::Bool => Values::Bool(Vec::with_capacity(rows)),
            ValueType::U64 => Values::U64(large::with_room(rows)),
            ValueType::F64 => Values::F64(large::with_room(rows)),
            _ => Values::I64(large::with_room(rows)),
        };
        Self { values, valid: None }
    }

    pub(super) fn extend(&mut self, came: &sieva_usercode::Values) -> Result<()> {
        let (before, data) = (self.values.len(), &came.data);
        match (&mut self.values, came.element) {
            (Values::Bool(v), _) => v.extend(data.iter().map(|b| *b != 0)),
            (Values::F64(v), Element::F32) => widened(v, data, |b| f64::from(f32::from_le_bytes(b))),
            (Values::F64(v), Element::F64) => widened(v, data, f64::from_le_bytes),
            (Values::U64(v), Element::U64) => widened(v, data, u64::from_le_bytes),
            (Values::I64(v), Element::I8) => widened(v, data, |b| i64::from(i8::from_le_bytes(b))),
            (Values::I64(v), Element::U8) => widened(v, data, |b| i64::from(u8::from_le_bytes(b))),
            (Values::I64(v), Element::I16) => widened(v, data, |b| i64::from(i16::from_le_bytes(b))),
            (Values::I64(v), Element::U16) => widened(v, data, |b| i64::from(u16::from_le_bytes(b))),
            (Values::I64(v), Element::I32) => widened(v, data, |b| i64::from(i32::from_le_bytes(b))),
            (Values::I64(v), Element::U32) => widened(v, data, |b| i64::from(u32::from_le_bytes(b))),
            (Values::I64(v), Element::I64) => widened(v, data, i64::from_le_bytes),
            (_, other) => {
                // A module may say anything.
                let message =
                    format!("the code gives values of type {}, and gave others before", other.name());
                return Err(Error::new(ErrorKind::TypeMismatch, message));
            }
        }
        let rows = self.values.len();
        if let Some(valid) = &came.valid {
            let mask = self.valid.get_or_insert_with(|| Mask::ones(before));
            valid.iter().for_each(|v| mask.push(*v != 0));
        } else if let Some(mask) = &mut self.valid {
            (before..rows).for_each(|_| mask.push(true));
        }
        Ok(())
    }

    /// Rows at the end that have no value.
    pub(super) fn missing(&mut self, rows: usize) {
        let before = self.values.len();
        match &mut self.values {
            Values::Bool(v) => v.resize(before + rows, false),
            Values::U64(v) => v.resize(before + rows, 0),
            Values::F64(v) => v.resize(before + rows, 0.0),
            Values::I64(v) => v.resize(before + rows, 0),
            Values::Str(_) => {}
        }
        let mask = self.valid.get_or_insert_with(|| Mask::ones(before));
        (0..rows).for_each(|_| mask.push(false));
    }

    pub(super) fn finish(self) -> (Values, Option<Mask>) {
        (self.values, self.valid)
    }
}

fn widened<T, const N: usize>(out: &mut Vec<T>, data: &[u8], of: impl Fn([u8; N]) -> T) {
    let (values, _) = data.as_chunks::<N>();
    out.extend(values.iter().map(|bytes| of(*bytes)));
}
