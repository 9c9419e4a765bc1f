//! Prints a tree as query text, with no more parentheses than it needs.

use super::{BinaryOp, Expr, Literal, Name, OrderBy, Precedence, Projection, Select, SelectItem};
use crate::parse::is_bare_name;
use std::fmt::{Display, Formatter, Result};

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if !self.quoted && is_bare_name(&self.text) {
            f.write_str(&self.text)
        } else {
            write_quoted(f, &self.text, '"')
        }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Bool(true) => f.write_str("TRUE"),
            Self::Bool(false) => f.write_str("FALSE"),
            Self::Int(v) => write!(f, "{v}"),
            Self::Float(v) if v.is_nan() => f.write_str("nan"),
            // The debug form is the shortest that reads back to the same bits, and never looks like an integer.
            Self::Float(v) => write!(f, "{v:?}"),
            Self::Str(v) => write_quoted(f, v, '\''),
            Self::Date(v) => {
                f.write_str(if v.contains([':', 'T']) { "TIMESTAMP " } else { "DATE " })?;
                write_quoted(f, v, '\'')
            }
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Literal(v) => write!(f, "{v}"),
            Self::Name(v) => write!(f, "{v}"),
            Self::Unary { op: super::UnaryOp::Neg, expr } => write_negated(f, expr),
            Self::Binary { op, left, right } => write_binary(f, *op, left, right),
            Self::Compare { op, left, right } => {
                operand(f, left)?;
                write!(f, " {} ", op.symbol())?;
                operand(f, right)
            }
            Self::Between { expr, low, high, negated } => {
                operand(f, expr)?;
                f.write_str(if *negated { " NOT BETWEEN " } else { " BETWEEN " })?;
                operand(f, low)?;
                f.write_str(" AND ")?;
                operand(f, high)
            }
            Self::InList { expr, list, negated } => {
                operand(f, expr)?;
                f.write_str(if *negated { " NOT IN (" } else { " IN (" })?;
                write_list(f, list)?;
                f.write_str(")")
            }
            Self::IsNull { expr, negated } => {
                operand(f, expr)?;
                f.write_str(if *negated { " IS NOT NULL" } else { " IS NULL" })
            }
            Self::Like { expr, pattern, negated } => {
                operand(f, expr)?;
                f.write_str(if *negated { " NOT LIKE " } else { " LIKE " })?;
                operand(f, pattern)
            }
            Self::And(parts) => write_junction(f, parts, "AND", Precedence::Not),
            Self::Or(parts) => write_junction(f, parts, "OR", Precedence::And),
            Self::Not(expr) => {
                f.write_str("NOT ")?;
                // `NOT a = b` needs no parentheses, but is read twice without them.
                if matches!(**expr, Self::Not(_)) {
                    write!(f, "{expr}")
                } else {
                    at_least(f, expr, Precedence::Primary)
                }
            }
            Self::Call { function, args, distinct, star } => {
                write!(f, "{function}({}", if *distinct { "DISTINCT " } else { "" })?;
                if *star {
                    f.write_str("*")?;
                }
                write_list(f, args)?;
                f.write_str(")")
            }
            Self::Subquery(select) => write!(f, "({select})"),
        }
    }
}

/// Writes `expr`, in parentheses if it binds looser than `least`.
fn at_least(f: &mut Formatter<'_>, expr: &Expr, least: Precedence) -> Result {
    if expr.precedence() < least { write!(f, "({expr})") } else { write!(f, "{expr}") }
}

/// Writes the operand of a comparison.
fn operand(f: &mut Formatter<'_>, expr: &Expr) -> Result {
    at_least(f, expr, Precedence::Sum)
}

/// Writes a sign so that it is not taken for that of a literal, nor two of them for a comment.
fn write_negated(f: &mut Formatter<'_>, expr: &Expr) -> Result {
    match expr {
        _ if expr.precedence() == Precedence::Sign => write!(f, "- {expr}"),
        Expr::Literal(Literal::Int(_) | Literal::Float(_)) => write!(f, "-({expr})"),
        _ => {
            f.write_str("-")?;
            at_least(f, expr, Precedence::Power)
        }
    }
}

fn write_binary(f: &mut Formatter<'_>, op: BinaryOp, left: &Expr, right: &Expr) -> Result {
    let (least_left, least_right) = match Precedence::of(op) {
        Precedence::Sum => (Precedence::Sum, Precedence::Product),
        Precedence::Product => (Precedence::Product, Precedence::Sign),
        _ => (Precedence::Primary, Precedence::Sign),
    };
    at_least(f, left, least_left)?;
    write!(f, " {} ", op.symbol())?;
    at_least(f, right, least_right)
}

fn write_junction(f: &mut Formatter<'_>, parts: &[Expr], word: &str, least: Precedence) -> Result {
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            write!(f, " {word} ")?;
        }
        at_least(f, part, least)?;
    }
    Ok(())
}

fn write_list<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> Result {
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        write!(f, "{item}")?;
    }
    Ok(())
}

/// Writes `text` between quotes; a quote inside is doubled.
fn write_quoted(f: &mut Formatter<'_>, text: &str, quote: char) -> Result {
    write!(f, "{quote}")?;
    for c in text.chars() {
        write!(f, "{c}")?;
        if c == quote {
            write!(f, "{c}")?;
        }
    }
    write!(f, "{quote}")
}

impl Display for SelectItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", self.expr)?;
        if let Some(alias) = &self.alias {
            f.write_str(" AS ")?;
            write_quoted(f, alias, '"')?;
        }
        Ok(())
    }
}

impl Display for OrderBy {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}", self.expr)?;
        if self.descending {
            f.write_str(" DESC")?;
        }
        match self.nulls_first {
            Some(true) => f.write_str(" NULLS FIRST"),
            Some(false) => f.write_str(" NULLS LAST"),
            None => Ok(()),
        }
    }
}

impl Display for Projection {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Items(items) => write_list(f, items),
        }
    }
}

impl Display for Select {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "SELECT {}{}", if self.distinct { "DISTINCT " } else { "" }, self.projection)?;
        if let Some(name) = &self.collection {
            f.write_str(" FROM collection(")?;
            write_quoted(f, name, '\'')?;
            f.write_str(")")?;
        }
        if let Some(from) = &self.from {
            f.write_str(" FROM ")?;
            write_quoted(f, from, '\'')?;
        }
        if self.cross {
            f.write_str(" CROSS")?;
        }
        if let Some(condition) = &self.condition {
            write!(f, " WHERE {condition}")?;
        }
        if !self.group_by.is_empty() {
            f.write_str(" GROUP BY ")?;
            write_list(f, &self.group_by)?;
        }
        if let Some(having) = &self.having {
            write!(f, " HAVING {having}")?;
        }
        if !self.order_by.is_empty() {
            f.write_str(" ORDER BY ")?;
            write_list(f, &self.order_by)?;
        }
        if let Some(limit) = self.limit {
            write!(f, " LIMIT {limit}")?;
        }
        if let Some(offset) = self.offset {
            write!(f, " OFFSET {offset}")?;
        }
        Ok(())
    }
}
