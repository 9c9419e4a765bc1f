//! One value.

use super::ValueType;
use std::fmt;
use std::sync::Arc;

/// One value: a literal, a cell of a result, or what an aggregate comes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// Missing.
    Null,
    /// True or false.
    Bool(bool),
    /// A signed integer.
    I64(i64),
    /// An unsigned integer.
    U64(u64),
    /// A number; never NaN, which is [`Scalar::Null`].
    F64(f64),
    /// Text.
    Str(String),
    /// Counts of the values between neighbouring edges; there is one edge more than counts.
    Histogram {
        /// The ends of the bins, ascending.
        edges: Arc<[f64]>,
        /// How many values lie in each bin.
        counts: Vec<u64>,
    },
}

impl Scalar {
    /// A number, missing if it is NaN.
    pub fn from_f64(value: f64) -> Self {
        if value.is_nan() { Self::Null } else { Self::F64(value) }
    }

    /// Its type; none for the untyped NULL and for histograms, which are no operands.
    pub fn value_type(&self) -> Option<ValueType> {
        match self {
            Self::Null | Self::Histogram { .. } => None,
            Self::Bool(_) => Some(ValueType::Bool),
            Self::I64(_) => Some(ValueType::I64),
            Self::U64(_) => Some(ValueType::U64),
            Self::F64(_) => Some(ValueType::F64),
            Self::Str(_) => Some(ValueType::Str),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bool(v) => write!(f, "{v}"),
            Self::I64(v) => write!(f, "{v}"),
            Self::U64(v) => write!(f, "{v}"),
            // The debug form is the shortest that reads back to the same bits.
            Self::F64(v) => write!(f, "{v:?}"),
            Self::Str(v) => f.write_str(v),
            Self::Histogram { edges, counts } => write!(f, "{counts:?} between {edges:?}"),
        }
    }
}
