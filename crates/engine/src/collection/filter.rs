//! Which part of a condition the catalog answers.

use sieva_catalog::{Comparison, Filter, Value};
use sieva_query::ast::{CompareOp, Expr, Literal, UnaryOp};

use super::names::Meaning;

/// The catalog's form of a condition; `None` where it names an array, or says what the catalog does not understand.
pub(super) fn of_condition(condition: &Expr) -> Option<Filter> {
    Some(match condition {
        Expr::And(parts) => Filter::And(parts.iter().map(of_condition).collect::<Option<_>>()?),
        Expr::Or(parts) => Filter::Or(parts.iter().map(of_condition).collect::<Option<_>>()?),
        Expr::Not(part) => Filter::Not(Box::new(of_condition(part)?)),
        Expr::Compare { op, left, right } => match (key(left), key(right)) {
            (Some(key), None) => Filter::Compare(key, comparison(*op), value(right)?),
            (None, Some(key)) => Filter::Compare(key, turned(comparison(*op)), value(left)?),
            _ => return None,
        },
        Expr::Between { expr, low, high, negated } => {
            negated_if(*negated, Filter::Between(key(expr)?, value(low)?, value(high)?))
        }
        // What is one of no values is not for the catalog to say.
        Expr::InList { list, .. } if list.is_empty() => return None,
        Expr::InList { expr, list, negated } => {
            negated_if(*negated, Filter::In(key(expr)?, list.iter().map(value).collect::<Option<_>>()?))
        }
        Expr::IsNull { expr, negated } => negated_if(*negated, Filter::IsNull(key(expr)?)),
        Expr::Like { expr, pattern, negated } => match value(pattern)? {
            // The catalog's patterns can escape, a query's cannot.
            Value::Text(text) if !text.contains('\\') => negated_if(*negated, Filter::Like(key(expr)?, text)),
            _ => return None,
        },
        _ => return None,
    })
}

fn negated_if(negated: bool, filter: Filter) -> Filter {
    if negated { Filter::Not(Box::new(filter)) } else { filter }
}

fn key(expr: &Expr) -> Option<String> {
    match Meaning::of_expr(expr)? {
        Meaning::Key(key) => Some(key),
        _ => None,
    }
}

fn value(expr: &Expr) -> Option<Value> {
    Some(match expr {
        Expr::Literal(Literal::Bool(b)) => Value::Bool(*b),
        Expr::Literal(Literal::Str(s)) => Value::Text(s.clone()),
        Expr::Literal(Literal::Float(f)) => Value::Float(*f),
        Expr::Literal(Literal::Int(i)) => integer(*i)?,
        Expr::Unary { op: UnaryOp::Neg, expr } => match value(expr)? {
            Value::Float(f) => Value::Float(-f),
            Value::Int(i) => Value::Int(i.checked_neg()?),
            _ => return None,
        },
        _ => return None,
    })
}

fn integer(i: i128) -> Option<Value> {
    i64::try_from(i).map(Value::Int).or_else(|_| u64::try_from(i).map(Value::UInt)).ok()
}

fn comparison(op: CompareOp) -> Comparison {
    match op {
        CompareOp::Eq => Comparison::Eq,
        CompareOp::NotEq => Comparison::Ne,
        CompareOp::Lt => Comparison::Lt,
        CompareOp::LtEq => Comparison::Le,
        CompareOp::Gt => Comparison::Gt,
        CompareOp::GtEq => Comparison::Ge,
    }
}

/// The comparison with its sides exchanged.
fn turned(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Lt => Comparison::Gt,
        Comparison::Le => Comparison::Ge,
        Comparison::Gt => Comparison::Lt,
        Comparison::Ge => Comparison::Le,
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_exchanged_and_signs_taken_in() {
        let key = Meaning::Key("z".into()).slot();
        let five = Expr::Unary { op: UnaryOp::Neg, expr: Box::new(Expr::Literal(Literal::Int(5))) };
        let condition = Expr::Compare { op: CompareOp::Lt, left: Box::new(five), right: Box::new(key) };
        assert_eq!(of_condition(&condition), Some(Filter::compare("z", Comparison::Gt, Value::Int(-5))));
    }

    #[test]
    fn what_names_an_array_is_not_the_catalogs() {
        let array = Meaning::Array("flux".into()).slot();
        let zero = Box::new(Expr::Literal(Literal::Int(0)));
        let data = Expr::Compare { op: CompareOp::Gt, left: Box::new(array), right: zero.clone() };
        let key = Box::new(Meaning::Key("z".into()).slot());
        let meta = Expr::Compare { op: CompareOp::Gt, left: key, right: zero };
        assert!(of_condition(&meta).is_some());
        assert_eq!(of_condition(&Expr::Or(vec![meta, data])), None);
    }
}
