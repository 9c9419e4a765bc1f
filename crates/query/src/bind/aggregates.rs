//! Aggregates within expressions: found, bound once each, and replaced by their number.

use std::collections::HashMap;

use sieva_types::{Error, ErrorKind, Result};

use super::{Binder, Value, reduction_of_code, unknown_function};
use crate::aggregate::Aggregate;
use crate::ast::{Expr, Literal};
use crate::code::Functions;
use crate::values::Scalar;

/// Whether an aggregate stands anywhere in the expression.
pub fn has_aggregate(expr: &Expr, functions: &Functions) -> bool {
    let mut found = false;
    expr.walk(&mut |e| {
        if let Expr::Call { function, .. } = e {
            found |= Aggregate::is_name(function) || functions.is_reduction(function);
        }
    });
    found
}

/// Binds the expressions of a grouped query: keys and aggregates become numbers, and nothing else may
/// vary within a group.
#[derive(Default)]
pub struct Extractor {
    keys: Vec<Expr>,
    calls: HashMap<Expr, usize>,
    aggregates: Vec<(Aggregate, Option<Value>)>,
}

impl Extractor {
    /// An extractor for groups by `keys`.
    pub fn new(keys: Vec<Expr>) -> Self {
        Self { keys, ..Self::default() }
    }

    /// The aggregates found.
    pub fn into_aggregates(self) -> Vec<(Aggregate, Option<Value>)> {
        self.aggregates
    }

    /// Binds one expression over groups.
    pub fn value(&mut self, binder: &mut Binder<'_>, expr: &Expr) -> Result<Value> {
        binder.groups = Some(std::mem::take(self));
        let bound = binder.value(expr);
        *self = binder.groups.take().unwrap_or_default();
        let value = bound?;
        let mut varies = None;
        value.walk(&mut |v| match v {
            Value::Array { array, .. } | Value::Date(_, array) => {
                varies = Some(binder.schema.arrays[binder.arrays[*array].index].path.clone());
            }
            Value::Position { dim } => varies = Some(binder.schema.dims[*dim].path.clone()),
            _ => {}
        });
        match varies {
            Some(path) => Err(Error::new(
                ErrorKind::Syntax,
                format!("'{path}' varies within a group: it must stand in GROUP BY or in an aggregate"),
            )),
            None => Ok(value),
        }
    }
}

impl Binder<'_> {
    /// The key or the aggregate that an expression over groups is; none for others, and where there are no groups.
    pub(super) fn of_group(&mut self, expr: &Expr) -> Result<Option<Value>> {
        let Some(groups) = &self.groups else { return Ok(None) };
        if let Some(key) = groups.keys.iter().position(|k| k == expr) {
            return Ok(Some(Value::Key(key)));
        }
        let Expr::Call { function, args, distinct, star } = expr else { return Ok(None) };
        if !Aggregate::is_name(function) && !self.options.functions.is_reduction(function) {
            return Ok(None);
        }
        if let Some(&known) = groups.calls.get(expr) {
            return Ok(Some(Value::Aggregated(known)));
        }
        // What is aggregated is of rows.
        let groups = self.groups.take();
        let bound = bind_call(self, function, args, *distinct, *star);
        self.groups = groups;
        let (aggregate, value) = bound?;
        let input = value.as_ref().map(|v| self.type_of(v)).transpose()?.flatten();
        self.aggregate_types.push(aggregate.result_type(input)?);
        let groups = self.groups.get_or_insert_default();
        let number = groups.aggregates.len();
        groups.calls.insert(expr.clone(), number);
        groups.aggregates.push((aggregate, value));
        Ok(Some(Value::Aggregated(number)))
    }
}

fn bind_call(
    binder: &mut Binder<'_>,
    function: &str,
    args: &[Expr],
    distinct: bool,
    star: bool,
) -> Result<(Aggregate, Option<Value>)> {
    if binder.options.functions.is_reduction(function) {
        return Ok((Aggregate::Reduction, Some(bind_reduction(binder, function, args, distinct, star)?)));
    }
    let mut parameters = Vec::new();
    for arg in args.iter().skip(1) {
        let Value::Constant(v) = binder.value(arg)? else {
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!("{function}() needs a constant, got {arg}"),
            )
            .hint("its value has to be known before the query is run: write a number"));
        };
        parameters.push(literal(&v.scalar(0)));
    }
    let aggregate = Aggregate::from_call(function, star, distinct, &parameters)?;
    let value = match args.first() {
        None if star => None,
        None => return Err(Error::new(ErrorKind::Syntax, format!("{function}() needs an argument"))),
        Some(arg) => Some(argument(binder, function, arg)?),
    };
    Ok((aggregate, value))
}

/// What an aggregate takes in, which is of rows.
fn argument(binder: &mut Binder<'_>, function: &str, arg: &Expr) -> Result<Value> {
    if has_aggregate(arg, binder.options.functions) {
        return Err(Error::new(ErrorKind::Syntax, format!("an aggregate within {function}(): {arg}")));
    }
    binder.value(arg)
}

/// What a reduction that came as code takes in: all of its arguments are of rows.
fn bind_reduction(
    binder: &mut Binder<'_>,
    function: &str,
    args: &[Expr],
    distinct: bool,
    star: bool,
) -> Result<Value> {
    if star {
        let message = format!("{function}(*) has no meaning: only count(*) does");
        return Err(
            Error::new(ErrorKind::InvalidValue, message).hint("write its arguments, as 'step' has them")
        );
    }
    if distinct {
        let message = format!("{function}(DISTINCT ...) is not supported, only count(DISTINCT x) is");
        return Err(Error::new(ErrorKind::Unsupported, message).hint("'step' is called for each row"));
    }
    if args.is_empty() {
        return Err(Error::new(ErrorKind::Syntax, format!("{function}() needs an argument")));
    }
    let args = args.iter().map(|arg| argument(binder, function, arg)).collect::<Result<Vec<_>>>()?;
    let functions = binder.options.functions;
    let found = reduction_of_code(functions, function, args, &binder.arrays, &|v| binder.type_of(v))?;
    found.ok_or_else(|| unknown_function(function))
}

fn literal(value: &Scalar) -> Literal {
    match value {
        Scalar::Bool(b) => Literal::Bool(*b),
        Scalar::I64(i) => Literal::Int((*i).into()),
        Scalar::U64(u) => Literal::Int((*u).into()),
        Scalar::F64(f) => Literal::Float(*f),
        Scalar::Str(s) => Literal::Str(s.clone()),
        Scalar::Null | Scalar::Histogram { .. } => Literal::Null,
    }
}

#[cfg(test)]
mod tests {
    use sieva_format::decoding::Decoding;
    use sieva_format::schema::{ArrayInfo, Dimension, Naming, Schema, StorageInfo};
    use sieva_types::{DType, ErrorKind};

    use crate::bind::{BindOptions, Bound, Condition};
    use crate::logical::plan_select;
    use crate::lower::{Answer, LowerOptions, lower};
    use crate::parse::parse_select;

    /// One array `a` along one dimension `x` that has no coordinates.
    fn schema() -> Schema {
        let dim = Dimension {
            name: "x".into(),
            path: "x".into(),
            len: 3,
            unlimited: false,
            naming: Naming::File,
            coordinate: None,
        };
        let array = ArrayInfo {
            path: "a".into(),
            dtype: DType::F64,
            dims: vec![0],
            shape: vec![3],
            attrs: Vec::new(),
            enum_names: Vec::new(),
            decoding: Decoding::none(DType::F64),
            storage: StorageInfo::default(),
            coordinates: Vec::new(),
        };
        Schema { dims: vec![dim], arrays: vec![array], ..Schema::default() }
    }

    fn bound(query: &str) -> sieva_types::Result<Bound> {
        let (valid_range, schema) = (false, schema());
        let none = |_: &_| Ok((sieva_plan::Plan::default(), None));
        let functions = &crate::code::Functions::default();
        let options = BindOptions { valid_range, cross: false, subqueries: &none, functions };
        let (plan, _) = plan_select(&schema, &parse_select(query).unwrap(), &options)?;
        let subqueries = &|_: &_| Ok(Answer::Unknown(None));
        lower(&schema, &plan, &LowerOptions { valid_range, subqueries, constants: &[], functions })
    }

    fn refused(query: &str) -> (ErrorKind, String) {
        let e = bound(query).unwrap_err();
        (e.kind(), e.message().to_owned())
    }

    #[test]
    fn positions_vary_within_a_group_as_values_do() {
        for (query, path) in [("SELECT x / 2, count(a)", "x"), ("SELECT a, count(a)", "a")] {
            let message =
                format!("'{path}' varies within a group: it must stand in GROUP BY or in an aggregate");
            assert_eq!(refused(query), (ErrorKind::Syntax, message));
        }
    }

    /// Before, each constant was joined with all those before it: 52 s for as many.
    #[test]
    fn long_lists_become_one_set() {
        let n = 100_000;
        let each: Vec<String> = (0..n).rev().map(|i| (3 * i).to_string()).collect();
        let terms =
            |op: &str, join: &str| each.iter().map(|c| format!("a {op} {c}")).collect::<Vec<_>>().join(join);
        let list = each.join(", ");
        for (condition, intervals) in [
            (format!("a IN ({list})"), n),
            (format!("a NOT IN ({list})"), n + 1),
            (terms("=", " OR "), n),
            (terms("<>", " AND "), n + 1),
            (format!("NOT ({})", terms("=", " OR ")), n + 1),
        ] {
            match bound(&format!("SELECT a WHERE {condition}")).unwrap().condition {
                Condition::Stored { set, .. } => assert_eq!(set.ranges.len(), intervals),
                other => panic!(
                    "{} parts",
                    if let Condition::Any(c) | Condition::All(c) = other { c.len() } else { 1 }
                ),
            }
        }
        let condition = "idx(x) = 1 OR a > 5 OR idx(x) IN (0, 2) OR idx(x) = 1";
        match bound(&format!("SELECT a WHERE {condition}")).unwrap().condition {
            Condition::Any(parts) => {
                let positions = parts.iter().filter_map(|p| match p {
                    Condition::Position { ranges, .. } => Some(ranges.clone()),
                    _ => None,
                });
                assert_eq!((positions.collect::<Vec<_>>(), parts.len()), (vec![vec![(0, 3)]], 2));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn messages_name_what_was_written() {
        let group = "month() needs a time coordinate's own values, not what stands for a group:";
        assert_eq!(
            refused("SELECT month(a), count(a) GROUP BY a"),
            (ErrorKind::TypeMismatch, format!("{group} a"))
        );
        assert_eq!(
            refused("SELECT month(a + 1), count(a) GROUP BY a + 1"),
            (ErrorKind::TypeMismatch, format!("{group} a + 1"))
        );
        assert_eq!(refused("SELECT month(max(a))"), (ErrorKind::TypeMismatch, format!("{group} max(a)")));
        assert_eq!(
            refused("SELECT lower(a), count(a) GROUP BY a"),
            (ErrorKind::TypeMismatch, "'lower(a)': lower needs text, got float64".into())
        );
    }

    #[test]
    fn an_unknown_function_is_told_of_aggregates() {
        let e = bound("SELECT mode(a)").unwrap_err();
        assert_eq!((e.kind(), e.message()), (ErrorKind::UnknownFunction, "no function 'mode'"));
        let hint = e.hint_text().unwrap();
        assert!(
            hint.starts_with("there are abs, ") && hint.contains("; and the aggregates count, min, "),
            "{hint}"
        );
    }

    #[test]
    fn what_stands_for_groups_cannot_be_spelled() {
        for name in ["key", "aggregate", "\u{1}key 7", "\u{1}aggregate 5"] {
            let (kind, _) = refused(&format!("SELECT \"{name}\", count(a) GROUP BY x"));
            assert_eq!(kind, ErrorKind::UnknownArray);
        }
    }
}
