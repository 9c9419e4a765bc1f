//! Values of expressions, a column at a time: arithmetic, comparison, three-valued logic, functions and text.
//!
//! Stored types arrive widened, exactly: integers as `int64` (`uint64` as itself), floats as `float64`, bool and
//! text as they are. Missing is SQL's NULL, and NaN is missing: each operation that can yield NaN marks it so,
//! and [`Vector::new`] does it for what comes in.
//!
//! The type of a result depends on the types of the operands alone, never on their values, so that all pieces of
//! a result are of one type. A NULL that was written as such has no type and takes that of its neighbours; in
//! the functions that tell types it is `None`.

pub mod arithmetic;
mod choice;
pub mod compare;
mod equal;
mod failed;
pub mod functions;
pub mod logic;
mod math;
mod memory;
mod one_of;
mod scalar;
#[cfg(test)]
pub(crate) mod testing;
pub mod text;
mod validity;

pub use arithmetic::{arithmetic, arithmetic_type, negate, negate_type};
pub use compare::{check_comparable, compare};
pub(crate) use failed::Failed;
pub use functions::Function;
pub use logic::{and, is_null, not, or};
pub use one_of::Constants;
pub use scalar::Scalar;
pub use text::{LikePattern, like};

use crate::mask::Mask;
use sieva_types::{DType, Error, ErrorKind, Result, Texts, large};
use std::borrow::Cow;
use std::fmt;
use validity::{all_valid, mark_nan};

/// The type of a column of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueType {
    /// True or false; counts as 1 or 0 in arithmetic.
    Bool,
    /// Signed 64-bit integer, and all stored integers that fit.
    I64,
    /// Unsigned 64-bit integer.
    U64,
    /// IEEE 754 binary64, and all stored floats.
    F64,
    /// Text.
    Str,
}

impl ValueType {
    /// The type that stored elements of `dtype` are widened to.
    pub fn of(dtype: DType) -> Self {
        match dtype {
            DType::Bool => Self::Bool,
            DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U8 | DType::U16 | DType::U32 => {
                Self::I64
            }
            DType::U64 => Self::U64,
            DType::F16 | DType::F32 | DType::F64 => Self::F64,
            DType::Str => Self::Str,
        }
    }

    /// The element type of a column of these values.
    pub fn dtype(self) -> DType {
        match self {
            Self::Bool => DType::Bool,
            Self::I64 => DType::I64,
            Self::U64 => DType::U64,
            Self::F64 => DType::F64,
            Self::Str => DType::Str,
        }
    }

    /// The type that values of both can be had in, if there is one.
    ///
    /// `uint64` beside another integer is `int64`: differences and negative numbers are what mixed columns are
    /// about, and what does not fit is an error, never a wrong value.
    pub fn common(self, other: Self) -> Option<Self> {
        match (self, other) {
            (a, b) if a == b => Some(a),
            (Self::Str, _) | (_, Self::Str) => None,
            (Self::F64, _) | (_, Self::F64) => Some(Self::F64),
            _ => Some(Self::I64),
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.dtype().name())
    }
}

/// Values of one type.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Of type [`ValueType::Bool`].
    Bool(Vec<bool>),
    /// Of type [`ValueType::I64`].
    I64(Vec<i64>),
    /// Of type [`ValueType::U64`].
    U64(Vec<u64>),
    /// Of type [`ValueType::F64`].
    F64(Vec<f64>),
    /// Of type [`ValueType::Str`].
    Str(Texts),
}

/// Runs `$body` with `$v` bound to the vector inside, whatever its type.
macro_rules! with_values {
    ($values:expr, $v:ident => $body:expr) => {
        match $values {
            $crate::values::Values::Bool($v) => $body,
            $crate::values::Values::I64($v) => $body,
            $crate::values::Values::U64($v) => $body,
            $crate::values::Values::F64($v) => $body,
            $crate::values::Values::Str($v) => $body,
        }
    };
}

/// Runs `$body` with `$v` bound to the vector inside, or `$texts` with texts, and yields values of the same type.
macro_rules! map_values {
    ($values:expr, $v:ident => $body:expr, $texts:expr) => {
        match $values {
            Values::Bool($v) => Values::Bool($body),
            Values::I64($v) => Values::I64($body),
            Values::U64($v) => Values::U64($body),
            Values::F64($v) => Values::F64($body),
            Values::Str($v) => Values::Str($texts),
        }
    };
}

impl Values {
    /// How many.
    pub fn len(&self) -> usize {
        with_values!(self, v => v.len())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their type.
    pub fn value_type(&self) -> ValueType {
        match self {
            Self::Bool(_) => ValueType::Bool,
            Self::I64(_) => ValueType::I64,
            Self::U64(_) => ValueType::U64,
            Self::F64(_) => ValueType::F64,
            Self::Str(_) => ValueType::Str,
        }
    }

    /// Zeros, or what stands for them.
    pub(crate) fn zeros(value_type: ValueType, len: usize) -> Self {
        match value_type {
            ValueType::Bool => Self::Bool(vec![false; len]),
            ValueType::I64 => Self::I64(large::zeros(len)),
            ValueType::U64 => Self::U64(large::zeros(len)),
            ValueType::F64 => Self::F64(large::zeros(len)),
            ValueType::Str => Self::Str(Texts::repeated("", len)),
        }
    }
}

/// What the vectors of [`Values`] hold, texts left out.
pub(crate) trait Element: Clone + Default + PartialOrd {
    /// The values, if they are of this type.
    fn slice(values: &Values) -> Option<&[Self]>;
    /// Values of this type.
    fn wrap(values: Vec<Self>) -> Values;
}

macro_rules! element {
    ($type:ty, $variant:ident) => {
        impl Element for $type {
            fn slice(values: &Values) -> Option<&[Self]> {
                if let Values::$variant(v) = values { Some(v) } else { None }
            }

            fn wrap(values: Vec<Self>) -> Values {
                Values::$variant(values)
            }
        }
    };
}

element!(bool, Bool);
element!(i64, I64);
element!(u64, U64);
element!(f64, F64);

/// How the values of a vector relate to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// One value for each row.
    Rows,
    /// One value for all rows.
    Constant,
    /// NULL for all rows, of no type of its own.
    UntypedNull,
}

/// A column of values, some of which may be missing; or one value that stands for all rows.
///
/// A valid `float64` is never NaN. What a missing value's place holds means nothing. Of a row that failed the value
/// counts as missing until [`Vector::sound`] tells.
#[derive(Clone, Debug)]
pub struct Vector {
    /// The values.
    pub values: Values,
    /// Which of them are there; none: all are.
    pub valid: Option<Mask>,
    extent: Extent,
    /// Rows whose value cannot be represented; they are not valid.
    failed: Option<Box<Failed>>,
}

impl Vector {
    /// A column, one value for each row. NaN is missing; so is what `valid` says.
    pub fn new(values: Values, valid: Option<Mask>) -> Result<Self> {
        let (n, m) = (values.len(), valid.as_ref().map_or(values.len(), Mask::len));
        if n != m {
            return Err(Error::new(ErrorKind::Internal, format!("{n} values with {m} validity flags")));
        }
        let shape = Shape::Rows(values.len());
        Ok(Self::from_parts(values, valid, shape))
    }

    /// One value for all rows; [`Scalar::Null`] gives the untyped NULL.
    pub fn constant(value: &Scalar) -> Result<Self> {
        let values = match value {
            Scalar::Null => {
                let (values, valid) = (Values::F64(vec![0.0]), Some(Mask::zeros(1)));
                return Ok(Self { values, valid, extent: Extent::UntypedNull, failed: None });
            }
            Scalar::Bool(v) => Values::Bool(vec![*v]),
            Scalar::I64(v) => Values::I64(vec![*v]),
            Scalar::U64(v) => Values::U64(vec![*v]),
            Scalar::F64(v) => Values::F64(vec![*v]),
            Scalar::Str(v) => Values::Str(Texts::repeated(v, 1)),
            Scalar::Histogram { .. } => {
                let message = "a histogram cannot be used in an expression";
                return Err(Error::new(ErrorKind::TypeMismatch, message));
            }
        };
        Ok(Self::from_parts(values, None, Shape::Constant))
    }

    /// A result of the given shape; NaN becomes missing.
    pub(crate) fn from_parts(values: Values, mut valid: Option<Mask>, shape: Shape) -> Self {
        if let Values::F64(v) = &values {
            mark_nan(v, &mut valid);
        }
        Self { values, valid, extent: shape.extent(), failed: None }
    }

    /// Nothing but missing values of a type.
    pub(crate) fn missing(value_type: ValueType, shape: Shape) -> Self {
        let len = shape.len();
        Self {
            values: Values::zeros(value_type, len),
            valid: Some(Mask::zeros(len)),
            extent: shape.extent(),
            failed: None,
        }
    }

    /// How many values are held: one for a constant, else one for each row.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it is a column of no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Whether its one value stands for all rows.
    pub fn is_constant(&self) -> bool {
        self.extent != Extent::Rows
    }

    /// The type; none for the untyped NULL.
    pub fn value_type(&self) -> Option<ValueType> {
        (self.extent != Extent::UntypedNull).then(|| self.values.value_type())
    }

    /// Whether the value of a row is there. A row that does not exist has none.
    pub fn is_valid(&self, row: usize) -> bool {
        let i = if self.is_constant() { 0 } else { row };
        i < self.len() && self.valid.as_ref().is_none_or(|v| v.get(i))
    }

    /// The value of a row, [`Scalar::Null`] if it is missing.
    pub fn scalar(&self, row: usize) -> Scalar {
        if !self.is_valid(row) {
            return Scalar::Null;
        }
        let i = if self.is_constant() { 0 } else { row };
        match &self.values {
            Values::Bool(v) => Scalar::Bool(v[i]),
            Values::I64(v) => Scalar::I64(v[i]),
            Values::U64(v) => Scalar::U64(v[i]),
            Values::F64(v) => Scalar::from_f64(v[i]),
            Values::Str(v) => Scalar::Str(v[i].to_owned()),
        }
    }

    /// The column of `rows` rows that it stands for.
    pub fn into_rows(self, rows: usize) -> Result<Self> {
        if !self.is_constant() {
            if self.len() != rows {
                return Err(length_mismatch(self.len(), rows));
            }
            return Ok(self);
        }
        let values = map_values!(
            self.values,
            v => v.into_iter().cycle().take(rows).collect(),
            v.get(0).map_or_else(Texts::new, |text| Texts::repeated(text, rows))
        );
        let valid = self.valid.map(|v| Mask::filled(rows, v.get(0)));
        let failed = self.failed.and_then(|f| f.repeated(rows)).map(Box::new);
        Ok(Self { values, valid, extent: Extent::Rows, failed })
    }

    /// The rows that `keep` selects; a constant stays as it is.
    pub fn filter(&self, keep: &[bool]) -> Result<Self> {
        if self.is_constant() {
            return Ok(self.clone());
        }
        if self.len() != keep.len() {
            return Err(length_mismatch(self.len(), keep.len()));
        }
        let values = map_values!(&self.values, v => filtered(v, keep), v.filter(keep));
        let valid = self.valid.as_ref().map(|v| {
            let kept = keep.iter().enumerate().filter(|(_, k)| **k).map(|(i, _)| i);
            v.take(&kept.collect::<Vec<_>>())
        });
        let failed = self.failed.as_ref().and_then(|f| f.filtered(keep)).map(Box::new);
        Ok(Self { values, valid, extent: Extent::Rows, failed })
    }

    /// The rows where this condition is true, neither false nor missing. Rows that failed are left out: see
    /// [`Vector::sound`].
    pub fn mask(&self, rows: usize) -> Result<Mask> {
        if self.value_type().is_none() {
            return Ok(Mask::zeros(rows));
        }
        let Values::Bool(values) = &self.values else {
            return Err(logic::not_a_condition(self.values.value_type()));
        };
        if self.is_constant() {
            return Ok(Mask::filled(rows, values.first() == Some(&true) && self.is_valid(0)));
        }
        if values.len() != rows {
            return Err(length_mismatch(values.len(), rows));
        }
        let mut holds = Mask::from(&values[..]);
        if let Some(valid) = &self.valid {
            holds.and(valid);
        }
        Ok(holds)
    }

    /// The same values in another type: any number in `float64`, rounded to the nearest, and integers and bool in
    /// the integer types, where a row fails that does not fit. The untyped NULL takes any type.
    pub fn widen(&self, to: ValueType) -> Result<Cow<'_, Vector>> {
        let shape = Shape::of(self);
        if self.value_type().is_none() {
            return Ok(Cow::Owned(Self::missing(to, shape)));
        }
        let from = self.values.value_type();
        if from == to {
            return Ok(Cow::Borrowed(self));
        }
        let (values, failed) = match to {
            ValueType::F64 => (Values::F64(self.to_f64()?.into_owned()), None),
            ValueType::I64 | ValueType::U64 => narrow(&self.to_i128()?, self.valid.as_ref(), to),
            ValueType::Bool | ValueType::Str => {
                let message = format!("{from} cannot be used as {to}");
                return Err(Error::new(ErrorKind::TypeMismatch, message));
            }
        };
        let (valid, extent, known) = (self.valid.clone(), self.extent, self.failed.clone());
        Ok(Cow::Owned(Self { values, valid, extent, failed: known }.failing(failed)))
    }

    /// The numbers as `float64`.
    pub(crate) fn to_f64(&self) -> Result<Cow<'_, [f64]>> {
        Ok(Cow::Owned(match &self.values {
            Values::F64(v) => return Ok(Cow::Borrowed(v)),
            Values::Bool(v) => v.iter().map(|&x| f64::from(u8::from(x))).collect(),
            Values::I64(v) => v.iter().map(|&x| x as f64).collect(),
            Values::U64(v) => v.iter().map(|&x| x as f64).collect(),
            Values::Str(_) => return Err(not_a_number(ValueType::Str)),
        }))
    }

    /// The integers, wide enough for both integer types.
    pub(crate) fn to_i128(&self) -> Result<Vec<i128>> {
        Ok(match &self.values {
            Values::Bool(v) => v.iter().map(|&x| i128::from(x)).collect(),
            Values::I64(v) => v.iter().map(|&x| i128::from(x)).collect(),
            Values::U64(v) => v.iter().map(|&x| i128::from(x)).collect(),
            Values::F64(_) | Values::Str(_) => {
                let message = format!("expected an integer, got {}", self.values.value_type());
                return Err(Error::new(ErrorKind::TypeMismatch, message));
            }
        })
    }
}

/// How many values the result of an operation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One value for all rows.
    Constant,
    /// One value for each row.
    Rows(usize),
}

impl Shape {
    fn of(vector: &Vector) -> Self {
        if vector.is_constant() { Self::Constant } else { Self::Rows(vector.len()) }
    }

    /// The shape of what is computed from `operands` row by row; their columns must be of one length.
    pub(crate) fn common(operands: &[&Vector]) -> Result<Self> {
        let mut shape = Self::Constant;
        for operand in operands {
            match (shape, Self::of(operand)) {
                (_, Self::Constant) => {}
                (Self::Rows(n), Self::Rows(m)) if n != m => return Err(length_mismatch(n, m)),
                (_, rows) => shape = rows,
            }
        }
        Ok(shape)
    }

    /// How many values that is.
    pub(crate) fn len(self) -> usize {
        match self {
            Self::Constant => 1,
            Self::Rows(n) => n,
        }
    }

    fn extent(self) -> Extent {
        match self {
            Self::Constant => Extent::Constant,
            Self::Rows(_) => Extent::Rows,
        }
    }
}

/// Applies `f` row by row; an operand of one value stands for all rows.
pub(crate) fn zip_with<A, B, R>(a: &[A], b: &[B], shape: Shape, mut f: impl FnMut(&A, &B) -> R) -> Vec<R> {
    let n = shape.len();
    match (a, b) {
        _ if a.len() == n && b.len() == n => a.iter().zip(b).map(|(x, y)| f(x, y)).collect(),
        (a, [y]) => a.iter().map(|x| f(x, y)).collect(),
        ([x], b) => b.iter().map(|y| f(x, y)).collect(),
        // `Shape::common` has refused these.
        _ => Vec::new(),
    }
}

/// Integers in the type `to`, and the rows that are valid and do not fit.
fn narrow(wide: &[i128], valid: Option<&Mask>, to: ValueType) -> (Values, Option<Failed>) {
    let does_not_fit = |x: i128| match to {
        ValueType::U64 => u64::try_from(x).is_err(),
        _ => i64::try_from(x).is_err(),
    };
    let failed = Failed::find(wide.len(), |i| {
        let fails = does_not_fit(wide[i]) && valid.is_none_or(|v| v.get(i));
        fails.then(|| overflow(format!("{} does not fit in {to}", wide[i])))
    });
    let values = match to {
        ValueType::U64 => Values::U64(wide.iter().map(|&x| x as u64).collect()),
        _ => Values::I64(wide.iter().map(|&x| x as i64).collect()),
    };
    (values, failed)
}

pub(crate) fn overflow(message: String) -> Error {
    Error::new(ErrorKind::Overflow, message).hint("compute in floating point: float64(x)")
}

fn filtered<T: Clone>(values: &[T], keep: &[bool]) -> Vec<T> {
    values.iter().zip(keep).filter(|&(_, &k)| k).map(|(v, _)| v.clone()).collect()
}

fn length_mismatch(n: usize, m: usize) -> Error {
    Error::new(ErrorKind::Internal, format!("columns of {n} and {m} rows in one expression"))
}

pub(crate) fn not_a_number(got: ValueType) -> Error {
    Error::new(ErrorKind::TypeMismatch, format!("expected a number, got {got}"))
}

impl From<Values> for Vector {
    fn from(values: Values) -> Self {
        let shape = Shape::Rows(values.len());
        Self::from_parts(values, None, shape)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::*;
    use super::*;

    #[test]
    fn nan_is_missing() {
        let v = floats(&[1.0, f64::NAN, f64::INFINITY]);
        assert_eq!(v.valid, Some(Mask::from(&[true, false, true][..])));
        assert_eq!(v.scalar(1), Scalar::Null);
        assert_eq!(floats(&[1.0]).valid, None);
        assert_eq!(constant(Scalar::F64(f64::NAN)).scalar(7), Scalar::Null);
    }

    #[test]
    fn constants_stand_for_all_rows() {
        let c = constant(Scalar::I64(3));
        assert_eq!((c.scalar(0), c.scalar(99)), (Scalar::I64(3), Scalar::I64(3)));
        assert_eq!(c.clone().into_rows(2).unwrap(), ints(&[3, 3]));
        assert_eq!(constant(Scalar::Null).into_rows(1).unwrap().scalar(0), Scalar::Null);
        assert_eq!(c.filter(&[true, false]).unwrap(), c);
        assert_eq!(
            ints(&[1]).into_rows(2).unwrap_err().message(),
            "columns of 1 and 2 rows in one expression"
        );
    }

    #[test]
    fn filter_keeps_validity_with_its_values() {
        let v = without(ints(&[1, 2, 3]), &[1]);
        let kept = v.filter(&[false, true, true]).unwrap();
        assert_eq!((kept.scalar(0), kept.scalar(1)), (Scalar::Null, Scalar::I64(3)));
    }

    #[test]
    fn mask_is_true_only_where_the_condition_is() {
        let v = bools(&[Some(true), None, Some(false)]);
        let flags = |v: &Vector, n| v.mask(n).unwrap().iter().collect::<Vec<_>>();
        assert_eq!(flags(&v, 3), [true, false, false]);
        assert_eq!(flags(&constant(Scalar::Null), 2), [false, false]);
        assert_eq!(flags(&constant(Scalar::Bool(true)), 2), [true, true]);
        assert_eq!(ints(&[1]).mask(1).unwrap_err().message(), "expected a condition, got int64");
    }

    #[test]
    fn widen_refuses_what_does_not_fit() {
        let v = unsigned(&[7, u64::MAX]);
        let e = v.widen(ValueType::I64).unwrap().into_owned().sound().unwrap_err();
        assert_eq!(
            (e.kind(), e.message()),
            (ErrorKind::Overflow, "18446744073709551615 does not fit in int64")
        );
        assert_eq!(without(v, &[1]).widen(ValueType::I64).unwrap().scalar(0), Scalar::I64(7));
        assert_eq!(ints(&[-2]).widen(ValueType::F64).unwrap().scalar(0), Scalar::F64(-2.0));
        assert_eq!(texts(&["a"]).widen(ValueType::F64).unwrap_err().kind(), ErrorKind::TypeMismatch);
    }

    #[test]
    fn common_types() {
        use ValueType::*;
        assert_eq!(U64.common(I64), Some(I64));
        assert_eq!(Bool.common(U64), Some(I64));
        assert_eq!(U64.common(U64), Some(U64));
        assert_eq!(U64.common(F64), Some(F64));
        assert_eq!(Str.common(Bool), None);
    }
}
