//! Conditions of the query language as the catalog's own form, which its database evaluates.

use sieva_catalog::{Comparison, Filter, Value};
use sieva_plan::{Column, ColumnId, ColumnKind, CompareOp, Expr, Literal};
use sieva_query::ast::Expr as Tree;
use sieva_query::logical::{condition_of, plan_condition};
use sieva_query::parse::parse_condition;
use sieva_types::{Error, ErrorKind, Result};

/// What `\` is in the pattern of LIKE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backslash {
    /// It takes the next character as it is, as the catalog has it.
    Escapes,
    /// A character as others, as queries have it.
    Stands,
}

/// The filter that the text of a condition on keys means: `RADEG = 153.17 AND ("DATE-OBS" LIKE '2014%' OR NOT EXISTS
/// plate)`.
///
/// # Errors
/// `syntax-error` with the place and what was expected, and for a condition that the catalog does not answer;
/// `arithmetic-overflow` for a number that no value of a key can be.
pub fn parse_filter(text: &str) -> Result<Filter> {
    let key = |name: &Tree| match name {
        Tree::Name(name) => Ok(Column::of_object(&name.text, ColumnKind::Key)),
        other => Err(Error::new(ErrorKind::Internal, format!("{other} stands in a text"))),
    };
    let (columns, condition) = plan_condition(&parse_condition(text)?, &key)?;
    filter_of(&columns, &condition, Backslash::Escapes).map_err(|part| refused(&columns, part))
}

/// The catalog's form of a condition of a plan over `columns`.
///
/// # Errors
/// The part of it that the catalog does not answer: of others than keys, or more than comparisons of a key with values.
pub(crate) fn filter_of<'e>(
    columns: &[Column],
    condition: &'e Expr,
    backslash: Backslash,
) -> std::result::Result<Filter, &'e Expr> {
    let key = |e: &Expr| key_of(columns, e).ok_or(condition);
    let each = |parts: &'e [Expr]| {
        parts.iter().map(|p| filter_of(columns, p, backslash)).collect::<std::result::Result<Vec<_>, _>>()
    };
    Ok(match condition {
        Expr::Literal(Literal::Bool(true)) => Filter::All,
        Expr::Literal(Literal::Bool(false)) => Filter::Or(Vec::new()),
        Expr::And(parts) => all(with_ranges(each(parts)?)),
        Expr::Or(parts) => Filter::Or(each(parts)?),
        Expr::Not(inner) => Filter::Not(Box::new(filter_of(columns, inner, backslash)?)),
        Expr::Compare(op, a, b) => match (a.as_ref(), b.as_ref()) {
            (a, Expr::Literal(b)) => Filter::Compare(key(a)?, comparison(*op), value(b).ok_or(condition)?),
            (Expr::Literal(a), b) => {
                Filter::Compare(key(b)?, comparison(op.mirrored()), value(a).ok_or(condition)?)
            }
            _ => return Err(condition),
        },
        Expr::In(a, list) => {
            Filter::In(key(a)?, list.iter().map(value).collect::<Option<_>>().ok_or(condition)?)
        }
        Expr::IsNull(a) => Filter::IsNull(key(a)?),
        Expr::Like(a, pattern) if backslash == Backslash::Escapes => Filter::Like(key(a)?, pattern.clone()),
        Expr::Like(a, pattern) => Filter::Like(key(a)?, pattern.replace('\\', "\\\\")),
        Expr::Call(function, args) => match (function.as_str(), args.as_slice()) {
            ("exists", [a]) => Filter::Exists(key(a)?),
            ("glob", [a, Expr::Literal(Literal::Text(pattern))]) => Filter::Glob(key(a)?, pattern.clone()),
            _ => return Err(condition),
        },
        Expr::Literal(_) | Expr::Column(_) | Expr::Negate(_) | Expr::Binary(..) | Expr::Subquery(_) => {
            return Err(condition);
        }
    })
}

fn key_of(columns: &[Column], e: &Expr) -> Option<String> {
    let Expr::Column(ColumnId(id)) = e else { return None };
    columns.get(*id as usize).filter(|c| c.kind == ColumnKind::Key).map(|c| c.path.clone())
}

/// The value of a literal, exactly; `None` where keys have no such values.
fn value(literal: &Literal) -> Option<Value> {
    match literal {
        Literal::Null => None,
        Literal::Bool(b) => Some(Value::Bool(*b)),
        Literal::Float(f) => Some(Value::Float(*f)),
        Literal::Text(s) => Some(Value::Text(s.clone())),
        Literal::Int(i) => match (i64::try_from(*i), u64::try_from(*i)) {
            (Ok(i), _) => Some(Value::Int(i)),
            (_, Ok(u)) => Some(Value::UInt(u)),
            // A plan writes great floats as the integers that they are.
            _ => Some(*i as f64).filter(|f| *f as i128 == *i).map(Value::Float),
        },
    }
}

/// All of these; one alone as it is.
fn all(mut parts: Vec<Filter>) -> Filter {
    if parts.len() == 1 { parts.swap_remove(0) } else { Filter::And(parts) }
}

/// Two ends of one key as one range, for which the index is read once.
fn with_ranges(parts: Vec<Filter>) -> Vec<Filter> {
    let mut out: Vec<Filter> = Vec::with_capacity(parts.len());
    for part in parts {
        let joined = out.iter_mut().any(|known| match range(known, &part) {
            Some(range) => {
                *known = range;
                true
            }
            None => false,
        });
        if !joined {
            out.push(part);
        }
    }
    out
}

fn range(a: &Filter, b: &Filter) -> Option<Filter> {
    let (Filter::Compare(key, op, x), Filter::Compare(other, other_op, y)) = (a, b) else { return None };
    match (op, other_op) {
        _ if key != other => None,
        (Comparison::Ge, Comparison::Le) => Some(Filter::Between(key.clone(), x.clone(), y.clone())),
        (Comparison::Le, Comparison::Ge) => Some(Filter::Between(key.clone(), y.clone(), x.clone())),
        _ => None,
    }
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

/// The error of a part that the catalog does not answer.
fn refused(columns: &[Column], part: &Expr) -> Error {
    let listed = if let Expr::In(_, list) = part { list.as_slice() } else { &[] };
    let written =
        part.children().into_iter().filter_map(|e| if let Expr::Literal(l) = e { Some(l) } else { None });
    let is_great = written.chain(listed).any(|l| matches!(l, Literal::Int(_)) && value(l).is_none());
    let shown = condition_of(columns, part).map(|e| e.to_string()).unwrap_or_default();
    if is_great {
        let message = format!("a number of {shown} is beyond the integers of 64 bits");
        return Error::new(ErrorKind::Overflow, message).hint("write a great number as a float: 1e20");
    }
    Error::new(
        ErrorKind::Syntax,
        format!("the catalog compares keys with values, it does not answer: {shown}"),
    )
    .hint("write KEY = VALUE, with AND, OR, NOT between; texts in single quotes: object = 'M31'")
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
