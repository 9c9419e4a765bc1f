//! The value of a subquery, as an expression that means the same where the subquery stood.

use sieva_plan::{BinaryOp, Expr, Literal, Type};

/// The one value of a plan that is used as a value: of its only column, in the type that expressions have it in.
///
/// Not that in which columns are handed out: of a float32 array it is a float64, of a time coordinate its number, of a
/// text its text. A plan without rows is [`Value::Missing`], one with several is no value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Missing, of a type that is known, unless it is of none (`SELECT NULL`).
    Missing(Option<Type>),
    /// True or false.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer, also a small one: its type decides what arithmetic with it gives.
    UInt(u64),
    /// A number; NaN is missing.
    Float(f64),
    /// A text.
    Text(String),
}

impl Value {
    /// The value where it is compared: numbers compare exactly whatever types hold them.
    pub(super) fn compared(&self) -> Expr {
        match self {
            Self::Missing(_) => Expr::Literal(Literal::Null),
            Self::UInt(v) => Expr::Literal(Literal::Int((*v).into())),
            other => other.typed(),
        }
    }

    /// The value anywhere. What no literal has, a type of a missing value and a small unsigned integer, is computed.
    pub(super) fn typed(&self) -> Expr {
        let int = |v: i128| Expr::Literal(Literal::Int(v));
        let most = int(u64::MAX.into());
        match self {
            Self::Missing(None | Some(Type::Any)) => Expr::Literal(Literal::Null),
            Self::Missing(Some(Type::Bool)) => {
                Expr::compare(sieva_plan::CompareOp::Eq, missing(int(0)), int(0))
            }
            Self::Missing(Some(Type::Int64)) => missing(int(0)),
            Self::Missing(Some(Type::UInt64)) => missing(most),
            Self::Missing(Some(Type::Float64)) => missing(Expr::Literal(Literal::Float(0.0))),
            Self::Missing(Some(Type::Text)) => missing(Expr::Literal(Literal::Text(String::new()))),
            Self::Bool(b) => Expr::Literal(Literal::Bool(*b)),
            Self::Int(v) => int((*v).into()),
            // Beside a literal that is unsigned, as it does not fit otherwise, a smaller one is unsigned as well.
            Self::UInt(v) if i64::try_from(*v).is_ok() => Expr::binary(BinaryOp::Rem, int((*v).into()), most),
            Self::UInt(v) => int((*v).into()),
            Self::Float(v) if v.is_nan() => Self::Missing(Some(Type::Float64)).typed(),
            Self::Float(v) => Expr::Literal(Literal::Float(*v)),
            Self::Text(text) => Expr::Literal(Literal::Text(text.clone())),
        }
    }
}

/// What is missing, and of the type of `of`.
fn missing(of: Expr) -> Expr {
    Expr::Call("nullif".to_owned(), vec![of.clone(), of])
}
