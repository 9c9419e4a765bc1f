//! Aggregates within expressions: found, bound once each, and replaced by their number.

use sieva_types::{Error, ErrorKind, Result};

use super::{Binder, Value};
use crate::aggregate::Aggregate;
use crate::ast::{Expr, Literal, Name, Span};
use crate::values::Scalar;

/// Whether an aggregate stands anywhere in the expression.
pub fn has_aggregate(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| {
        if let Expr::Call { function, .. } = e {
            found |= Aggregate::is_name(function);
        }
    });
    found
}

/// Binds the expressions of a grouped query: keys and aggregates become numbers, and nothing else may
/// vary within a group.
pub struct Extractor {
    keys: Vec<Expr>,
    calls: Vec<Expr>,
    aggregates: Vec<(Aggregate, Option<Value>)>,
}

impl Extractor {
    /// An extractor for groups by `keys`.
    pub fn new(keys: Vec<Expr>) -> Self {
        Self { keys, calls: Vec::new(), aggregates: Vec::new() }
    }

    /// The aggregates found.
    pub fn into_aggregates(self) -> Vec<(Aggregate, Option<Value>)> {
        self.aggregates
    }

    /// Binds one expression over groups: each key and aggregate in it is bound first and stands in it as a
    /// placeholder, which binding the rest turns into its number.
    pub fn value(&mut self, binder: &mut Binder<'_>, expr: &Expr) -> Result<Value> {
        let replaced = self.replace(binder, expr)?;
        let value = binder.value(&replaced)?;
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

    fn replace(&mut self, binder: &mut Binder<'_>, expr: &Expr) -> Result<Expr> {
        if let Some(key) = self.keys.iter().position(|k| k == expr) {
            return Ok(placeholder(KEY, key));
        }
        if let Expr::Call { function, args, distinct, star } = expr
            && Aggregate::is_name(function)
        {
            if let Some(known) = self.calls.iter().position(|c| c == expr) {
                return Ok(placeholder(AGGREGATE, known));
            }
            let (aggregate, value) = bind_call(binder, function, args, *distinct, *star)?;
            let input = value.as_ref().map(|v| binder.type_of(v)).transpose()?.flatten();
            binder.aggregate_types.push(aggregate.result_type(input)?);
            self.calls.push(expr.clone());
            self.aggregates.push((aggregate, value));
            return Ok(placeholder(AGGREGATE, self.calls.len() - 1));
        }
        expr.clone().try_map_children(&mut |child| self.replace(binder, child))
    }
}

const KEY: &str = "key";
const AGGREGATE: &str = "aggregate";
/// Where placeholders stand: no text is as long, so that no query can spell one, quoted or not.
const NOWHERE: usize = usize::MAX;

/// A name that stands for the key or aggregate of a number.
fn placeholder(what: &str, number: usize) -> Expr {
    let span = Span { start: NOWHERE, end: number };
    Expr::Name(Name { text: what.into(), quoted: true, span })
}

/// The key or aggregate that a placeholder stands for.
pub fn placed(name: &Name) -> Option<Value> {
    match name.text.as_str() {
        _ if name.span.start != NOWHERE => None,
        KEY => Some(Value::Key(name.span.end)),
        AGGREGATE => Some(Value::Aggregated(name.span.end)),
        _ => None,
    }
}

fn bind_call(
    binder: &mut Binder<'_>,
    function: &str,
    args: &[Expr],
    distinct: bool,
    star: bool,
) -> Result<(Aggregate, Option<Value>)> {
    let mut parameters = Vec::new();
    for arg in args.iter().skip(1) {
        let Value::Constant(v) = binder.value(arg)? else {
            return Err(Error::new(
                ErrorKind::TypeMismatch,
                format!("{function}() needs a constant, got {arg}"),
            ));
        };
        parameters.push(literal(&v.scalar(0)));
    }
    let aggregate = Aggregate::from_call(function, star, distinct, &parameters)?;
    let value = match args.first() {
        None if star => None,
        None => return Err(Error::new(ErrorKind::Syntax, format!("{function}() needs an argument"))),
        Some(arg) if has_aggregate(arg) => {
            return Err(Error::new(ErrorKind::Syntax, format!("an aggregate within {function}(): {arg}")));
        }
        Some(arg) => Some(binder.value(arg)?),
    };
    Ok((aggregate, value))
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
    use sieva_format::schema::{ArrayInfo, Dimension, Schema, StorageInfo};
    use sieva_types::{DType, ErrorKind};

    use crate::bind::{BindOptions, bind_select};
    use crate::parse::parse_select;
    use crate::values::Scalar;

    /// One array `a` along one dimension `x` that has no coordinates.
    fn schema() -> Schema {
        let dim = Dimension {
            name: "x".into(),
            path: "x".into(),
            len: 3,
            unlimited: false,
            named: true,
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

    fn refused(query: &str) -> (ErrorKind, String) {
        let options = BindOptions { valid_range: false, subquery: &|_| Ok(Scalar::Null) };
        let e = bind_select(&schema(), &parse_select(query).unwrap(), &options).unwrap_err();
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

    #[test]
    fn placeholders_cannot_be_spelled() {
        for name in ["key", "aggregate", "\u{1}key 7", "\u{1}aggregate 5"] {
            let (kind, _) = refused(&format!("SELECT \"{name}\", count(a) GROUP BY x"));
            assert_eq!(kind, ErrorKind::UnknownArray);
        }
    }
}
