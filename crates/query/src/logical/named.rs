//! A tree over names that no schema has told of: keys of a catalog, and arrays that each object of a collection has by
//! itself. It becomes a plan as it stands; types, dates and names of enumerated values are for whom it is asked of.

use sieva_plan as plan;
use sieva_plan::{Column, ColumnId, ColumnKind, CompareOp};
use sieva_types::{Error, ErrorKind, Result};

use crate::aggregate::Aggregate;
use crate::ast::{Expr, Literal, Name};
use crate::bind::misplaced_aggregate;
use crate::code::Functions;

/// Tells what a name means.
pub type Meaning<'a> = &'a dyn Fn(&Expr) -> Result<Column>;

/// A condition over names, and the columns that its ids are of, in the order in which it names them.
///
/// # Errors
/// Those of `meaning`; `unsupported` for a subquery; `type-mismatch` for a pattern that is no text.
pub fn plan_condition(condition: &Expr, meaning: Meaning<'_>) -> Result<(Vec<Column>, plan::Expr)> {
    let mut named = NamedColumns::new(meaning);
    let condition = named.expr(condition)?;
    Ok((named.columns, condition))
}

/// The columns of names, listed as they are met, and expressions with their ids.
pub struct NamedColumns<'a> {
    meaning: Meaning<'a>,
    columns: Vec<Column>,
    /// Expressions that a column stands for: keys and aggregates of groups.
    standing: Vec<(Expr, ColumnId)>,
    functions: Functions,
}

impl<'a> NamedColumns<'a> {
    /// No columns yet.
    pub fn new(meaning: Meaning<'a>) -> Self {
        Self { meaning, columns: Vec::new(), standing: Vec::new(), functions: Functions::default() }
    }

    /// The same, with functions that came as code.
    #[must_use]
    pub fn with(self, functions: &Functions) -> Self {
        Self { functions: functions.clone(), ..self }
    }

    /// The columns so far.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// From now on a column stands for an expression.
    pub fn stand_for(&mut self, expr: Expr, id: ColumnId) {
        self.standing.push((expr, id));
    }

    /// The expression with ids in place of names.
    ///
    /// # Errors
    /// As [`plan_condition`].
    pub fn expr(&mut self, expr: &Expr) -> Result<plan::Expr> {
        if let Some((_, id)) = self.standing.iter().find(|(known, _)| known == expr) {
            return Ok(plan::Expr::Column(*id));
        }
        Ok(match expr {
            Expr::Literal(literal) => plan::Expr::Literal(planned(literal)),
            Expr::Name(_) => {
                let column = (self.meaning)(expr)?;
                self.column(column)
            }
            Expr::Unary { expr, .. } => plan::Expr::Negate(self.boxed(expr)?),
            Expr::Binary { op, left, right } => {
                plan::Expr::Binary(*op, self.boxed(left)?, self.boxed(right)?)
            }
            Expr::Compare { op, left, right } => {
                plan::Expr::Compare(*op, self.boxed(left)?, self.boxed(right)?)
            }
            Expr::Between { expr, low, high, negated } => {
                let (value, low, high) = (self.expr(expr)?, self.expr(low)?, self.expr(high)?);
                let low = plan::Expr::compare(CompareOp::GtEq, value.clone(), low);
                let high = plan::Expr::compare(CompareOp::LtEq, value, high);
                opposite_if(*negated, plan::Expr::And(vec![low, high]))
            }
            Expr::InList { expr, list, negated } => opposite_if(*negated, self.one_of(expr, list)?),
            Expr::IsNull { expr, negated } => opposite_if(*negated, plan::Expr::IsNull(self.boxed(expr)?)),
            Expr::Like { expr, pattern, negated } => {
                let like = plan::Expr::Like(self.boxed(expr)?, text(pattern, "LIKE")?);
                opposite_if(*negated, like)
            }
            Expr::And(parts) => plan::Expr::And(self.each(parts)?),
            Expr::Or(parts) => plan::Expr::Or(self.each(parts)?),
            Expr::Not(inner) => plan::Expr::Not(self.boxed(inner)?),
            Expr::Call { distinct: true, .. } | Expr::Call { star: true, .. } => {
                return Err(misplaced_aggregate(expr));
            }
            Expr::Call { function, args, .. } => self.call(expr, function, args)?,
            Expr::Subquery(_) => {
                let message = format!("a subquery where names are keys, or arrays of each object: {expr}");
                return Err(
                    Error::new(ErrorKind::Unsupported, message).hint("ask it first, and write its value")
                );
            }
        })
    }

    /// The same of each.
    ///
    /// # Errors
    /// As [`plan_condition`].
    pub fn each(&mut self, parts: &[Expr]) -> Result<Vec<plan::Expr>> {
        parts.iter().map(|p| self.expr(p)).collect()
    }

    fn boxed(&mut self, expr: &Expr) -> Result<Box<plan::Expr>> {
        self.expr(expr).map(Box::new)
    }

    /// The id of a column, which is listed if it was not.
    pub fn column(&mut self, column: Column) -> plan::Expr {
        let known = self.columns.iter().position(|c| *c == column);
        let id = known.unwrap_or_else(|| {
            self.columns.push(column);
            self.columns.len() - 1
        });
        plan::Expr::Column(ColumnId(u32::try_from(id).unwrap_or(u32::MAX)))
    }

    fn one_of(&mut self, expr: &Expr, list: &[Expr]) -> Result<plan::Expr> {
        let literal = |e: &Expr| if let Expr::Literal(l) = e { Some(planned(l)) } else { None };
        if let Some(literals) = list.iter().map(literal).collect() {
            return Ok(plan::Expr::In(self.boxed(expr)?, literals));
        }
        let equal = list
            .iter()
            .map(|other| Ok(plan::Expr::compare(CompareOp::Eq, self.expr(expr)?, self.expr(other)?)));
        Ok(plan::Expr::Or(equal.collect::<Result<_>>()?))
    }

    fn call(&mut self, whole: &Expr, function: &str, args: &[Expr]) -> Result<plan::Expr> {
        match (function, args) {
            ("tag", [Expr::Name(Name { text: key, .. }) | Expr::Literal(Literal::Str(key))]) => {
                Ok(self.column(Column::of_object(key, ColumnKind::Key)))
            }
            ("tag", _) => {
                Err(Error::new(ErrorKind::Syntax, format!("tag() takes the name of a key: {whole}"))
                    .hint("write tag(plate) or tag(\"DATE-OBS\")"))
            }
            ("glob", [value, pattern]) => {
                let pattern = plan::Expr::Literal(plan::Literal::Text(text(pattern, "GLOB")?));
                Ok(plan::Expr::Call(function.to_owned(), vec![self.expr(value)?, pattern]))
            }
            _ if Aggregate::is_name(function) => Err(misplaced_aggregate(whole)),
            _ if self.functions.is_reduction(function) => {
                let message = format!("a reduction of yours over the objects of a collection: {whole}");
                Err(Error::new(ErrorKind::Unsupported, message).hint(
                    "it sees rows in their order, which objects do not have: ask each source by itself",
                ))
            }
            _ => {
                let name = self.functions.identity(function).unwrap_or(function).to_owned();
                Ok(plan::Expr::Call(name, self.each(args)?))
            }
        }
    }
}

fn planned(literal: &Literal) -> plan::Literal {
    match literal {
        Literal::Null => plan::Literal::Null,
        Literal::Bool(v) => plan::Literal::Bool(*v),
        Literal::Int(v) => plan::Literal::Int(*v),
        Literal::Float(v) => plan::Literal::Float(*v),
        // What is a date is told by what it is compared with.
        Literal::Str(v) | Literal::Date(v) => plan::Literal::Text(v.clone()),
    }
}

fn opposite_if(negated: bool, expr: plan::Expr) -> plan::Expr {
    if negated { plan::Expr::not(expr) } else { expr }
}

fn text(pattern: &Expr, of: &str) -> Result<String> {
    match pattern {
        Expr::Literal(Literal::Str(text)) => Ok(text.clone()),
        other => {
            Err(Error::new(ErrorKind::TypeMismatch, format!("{of} needs a quoted pattern, got {other}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_condition;

    fn planned_of(text: &str) -> (Vec<Column>, plan::Expr) {
        let key = |name: &Expr| match name {
            Expr::Name(name) => Ok(Column::of_object(&name.text, ColumnKind::Key)),
            other => panic!("{other} is no name"),
        };
        plan_condition(&parse_condition(text).unwrap(), &key).unwrap()
    }

    #[test]
    fn names_are_columns_in_the_order_in_which_they_are_met() {
        let (columns, condition) = planned_of("b > 1 AND (a BETWEEN 1 AND b OR tag(b) IN (a, 2))");
        let paths: Vec<&str> = columns.iter().map(|c| c.path.as_str()).collect();
        assert_eq!(paths, ["b", "a"]);
        let (one, two) = (plan::Expr::Column(ColumnId(0)), plan::Expr::Column(ColumnId(1)));
        let number = |n: i128| plan::Expr::Literal(plan::Literal::Int(n));
        let compare = plan::Expr::compare;
        let between = vec![
            compare(CompareOp::GtEq, two.clone(), number(1)),
            compare(CompareOp::LtEq, two.clone(), one.clone()),
        ];
        let listed =
            vec![compare(CompareOp::Eq, one.clone(), two), compare(CompareOp::Eq, one.clone(), number(2))];
        let either = plan::Expr::Or(vec![plan::Expr::And(between), plan::Expr::Or(listed)]);
        let expected = plan::Expr::And(vec![compare(CompareOp::Gt, one, number(1)), either]);
        assert_eq!(condition, expected);
    }

    #[test]
    fn what_only_a_catalog_knows_is_a_call() {
        let (_, condition) = planned_of("NOT EXISTS \"DATE-OBS\" OR object NOT GLOB 'M*'");
        let column = |id| plan::Expr::Column(ColumnId(id));
        let pattern = plan::Expr::Literal(plan::Literal::Text("M*".into()));
        let call = |name: &str, args| plan::Expr::not(plan::Expr::Call(name.into(), args));
        let expected = vec![call("exists", vec![column(0)]), call("glob", vec![column(1), pattern])];
        assert_eq!(condition, plan::Expr::Or(expected));
    }
}
