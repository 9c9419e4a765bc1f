//! Values that are known before anything runs: lengths of arrays, and what variables of the file begin with.

use std::collections::HashMap;

use sieva_types::Result;

use super::Variable;
use crate::c::ast::{Binary, Expr, ExprKind, Unary};
use crate::c::builtin;
use crate::c::lex::Pos;
use crate::c::tree::Kind;
use crate::c::types::Ty;
use crate::element::Element;

/// A number that is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub fn integer(self) -> Option<i128> {
        match self {
            Self::Int(v) => Some(v),
            Self::Float(_) => None,
        }
    }

    /// As a value of the tree.
    pub fn kind(self) -> Kind {
        match self {
            Self::Int(v) => Kind::Int(v as i64),
            Self::Float(v) => Kind::Float(v),
        }
    }

    fn float(self) -> f64 {
        match self {
            Self::Int(v) => v as f64,
            Self::Float(v) => v,
        }
    }

    /// As a value of a type: integers must fit, of floats the fraction is cut off.
    pub fn converted(self, element: Element, pos: Pos) -> Result<Self> {
        if element.is_float() {
            let value = self.float();
            return Ok(Self::Float(if element == Element::F32 { f64::from(value as f32) } else { value }));
        }
        let value = match self {
            Self::Int(v) => v,
            Self::Float(v) => v as i128,
        };
        let bits = element.size() as u32 * 8;
        let (low, high) = match element.is_unsigned() {
            true => (0, (1_i128 << bits) - 1),
            false => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        };
        if value < low || value > high || self.float().is_nan() {
            return Err(pos.wrong(format!("{self} is no value of type {}", element.c_name())));
        }
        Ok(Self::Int(value))
    }

    /// Its bytes as a value of a type into which it was converted.
    pub fn bytes(self, element: Element) -> Vec<u8> {
        match (self, element) {
            (value, Element::F32) => (value.float() as f32).to_le_bytes().to_vec(),
            (value, Element::F64) => value.float().to_le_bytes().to_vec(),
            (Self::Int(v), _) => v.to_le_bytes()[..element.size()].to_vec(),
            (Self::Float(v), _) => (v as i128).to_le_bytes()[..element.size()].to_vec(),
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(v) => write!(f, "{v}"),
            Self::Float(v) => write!(f, "{v}"),
        }
    }
}

/// The value of an expression of numbers, and of constants of the file.
pub(crate) fn value(of: &Expr, file: &HashMap<String, Variable>) -> Result<Number> {
    let no =
        |pos: Pos| pos.wrong("a value that is known here is expected: numbers, and constants of the file");
    match &of.kind {
        ExprKind::Int { value, .. } => Ok(Number::Int(i128::from(*value))),
        ExprKind::Float { value, .. } => Ok(Number::Float(*value)),
        ExprKind::Name(name) => match (file.get(name), builtin::constant(name)) {
            (Some(Variable::Constant(_, number)), _) => Ok(*number),
            (None, Some(number)) => Ok(Number::Float(number)),
            _ => Err(no(of.pos)),
        },
        ExprKind::Unary(operator, inner) => match (operator, value(inner, file)?) {
            (Unary::Minus, Number::Int(v)) => Ok(Number::Int(-v)),
            (Unary::Minus, Number::Float(v)) => Ok(Number::Float(-v)),
            (Unary::Plus, v) => Ok(v),
            _ => Err(no(of.pos)),
        },
        ExprKind::Cast(Ty::Of(element), inner) => value(inner, file)?.converted(*element, of.pos),
        ExprKind::Binary(operator, a, b) => {
            binary(*operator, value(a, file)?, value(b, file)?).ok_or_else(|| no(of.pos))
        }
        _ => Err(no(of.pos)),
    }
}

fn binary(operator: Binary, a: Number, b: Number) -> Option<Number> {
    if let (Number::Int(a), Number::Int(b)) = (a, b) {
        return Some(Number::Int(match operator {
            Binary::Add => a.checked_add(b)?,
            Binary::Sub => a.checked_sub(b)?,
            Binary::Mul => a.checked_mul(b)?,
            Binary::Div => a.checked_div(b)?,
            Binary::Rem => a.checked_rem(b)?,
            _ => return None,
        }));
    }
    let (a, b) = (a.float(), b.float());
    Some(Number::Float(match operator {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        _ => return None,
    }))
}
