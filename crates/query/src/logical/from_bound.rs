//! A resolved query to its plan.

use sieva_format::decoding::Number;
use sieva_format::schema::Schema;
use sieva_plan::{
    Call, Column, ColumnId, ColumnKind, Expr, Literal, Output, Plan, Scan, SortKey, Step, Type,
};
use sieva_types::{Error, ErrorKind, Result};

use crate::aggregate::Aggregate;
use crate::bind::{Body, Bound, Condition, Value};
use crate::lower::type_of;
use crate::values::{Constants, Scalar, ValueType};

/// The plan of a resolved query, in its one form. Its source is the one that it was resolved with.
///
/// # Errors
/// `internal-error` for a query that was lowered already; `invalid-value` for one that is nested too deep.
pub fn plan_of(schema: &Schema, bound: &Bound, cross: bool) -> Result<Plan> {
    Ok(as_asked(schema, bound, cross)?.canonical())
}

/// The same as it was asked: columns in the order of the arrays, parts and aggregates in the order of the query.
pub(super) fn as_asked(schema: &Schema, bound: &Bound, cross: bool) -> Result<Plan> {
    let mut columns = Columns::of(schema, bound);
    let mut steps = Vec::new();
    match &bound.condition {
        Condition::Always => {}
        Condition::Computed(condition) => steps.push(Step::Filter(columns.expr(condition)?)),
        other => return Err(internal(format!("a condition that was lowered: {other:?}"))),
    }
    if let Body::Groups { keys, aggregates, having } = &bound.body {
        let (keys, places) = different(columns.each(keys)?, Expr::canonical);
        columns.keys = places;
        let call = |(aggregate, of): &(Aggregate, Option<Value>)| columns.call(aggregate, of.as_ref());
        let (calls, places) = different(aggregates.iter().map(call).collect::<Result<_>>()?, Call::canonical);
        columns.calls = places;
        columns.different_keys = keys.len();
        steps.push(Step::Aggregate { keys, calls });
        steps.extend(having.as_ref().map(|h| columns.expr(h)).transpose()?.map(Step::Having));
    }
    if !bound.order_by.is_empty() {
        let key = |k: &crate::bind::OrderKey| {
            let (descending, nulls_first) = (k.descending, k.nulls_first);
            Ok(SortKey { value: columns.expr(&k.value)?, descending, nulls_first })
        };
        steps.push(Step::Sort(bound.order_by.iter().map(key).collect::<Result<_>>()?));
    }
    let output = |o: &crate::bind::Output| Ok(Output::new(&*o.name, columns.expr(&o.value)?));
    steps.push(Step::Project(bound.outputs.iter().map(output).collect::<Result<_>>()?));
    steps.extend(bound.distinct.then_some(Step::Distinct));
    steps.push(Step::Limit { count: bound.limit, offset: bound.offset });
    let rows = bound.rows.dims.iter().map(|&d| schema.dims[d].path.clone()).collect();
    let scan = Scan { rows, cross, columns: columns.list, ..Scan::default() };
    let plan = Plan { scan, steps };
    plan.check()?;
    Ok(plan)
}

/// Each once, as in the plan's one form (avg, mean; a + b, b + a), and which of them each was.
fn different<T: PartialEq>(all: Vec<T>, one_form: impl Fn(&T) -> T) -> (Vec<T>, Vec<usize>) {
    let (mut kept, mut forms): (Vec<T>, Vec<T>) = (Vec::new(), Vec::new());
    let mut places = Vec::with_capacity(all.len());
    for one in all {
        let form = one_form(&one);
        let place = forms.iter().position(|known| *known == form).unwrap_or(forms.len());
        places.push(place);
        if place == forms.len() {
            kept.push(one);
            forms.push(form);
        }
    }
    (kept, places)
}

fn internal(what: String) -> Error {
    Error::new(ErrorKind::Internal, what)
}

/// What a column of the scan is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    /// An array, by its number in [`Bound::arrays`]; as stored.
    Array(usize, bool),
    /// The positions along a dimension of the schema.
    Position(usize),
}

/// The columns of the scan, and what they are of.
struct Columns {
    list: Vec<Column>,
    of: Vec<Of>,
    /// Of each key its number among those that are different, and how many these are.
    keys: Vec<usize>,
    different_keys: usize,
    /// Of each aggregate the number of its call.
    calls: Vec<usize>,
}

impl Columns {
    fn of(schema: &Schema, bound: &Bound) -> Self {
        let mut of: Vec<Of> = Vec::new();
        let mut add = |v: &Value| {
            let found = match v {
                Value::Array { array, raw } => Of::Array(*array, *raw),
                Value::Date(_, array) => Of::Array(*array, false),
                Value::Position { dim } => Of::Position(*dim),
                _ => return,
            };
            if !of.contains(&found) {
                of.push(found);
            }
        };
        values(bound).into_iter().for_each(|v| v.walk(&mut add));
        // What is named and not asked for gives the rows its dimensions all the same.
        for array in 0..bound.arrays.len() {
            if !of.iter().any(|o| matches!(o, Of::Array(a, _) if *a == array)) {
                of.push(Of::Array(array, false));
            }
        }
        of.sort_unstable();
        let list = of.iter().map(|&o| column(schema, bound, o)).collect();
        let mut columns = Self { list, of, keys: Vec::new(), different_keys: 0, calls: Vec::new() };
        for &dim in &bound.rows.dims {
            let path = &schema.dims[dim].path;
            if !columns.list.iter().any(|c| c.dims.contains(path)) {
                columns.list.push(column(schema, bound, Of::Position(dim)));
                columns.of.push(Of::Position(dim));
            }
        }
        columns
    }

    fn id(&self, of: Of) -> Result<Expr> {
        let place = self.of.iter().position(|o| *o == of);
        place.map(column_id).ok_or_else(|| internal("a column that was not listed".into()))
    }

    fn each(&self, values: &[Value]) -> Result<Vec<Expr>> {
        values.iter().map(|v| self.expr(v)).collect()
    }

    fn expr(&self, value: &Value) -> Result<Expr> {
        let boxed = |v: &Value| self.expr(v).map(Box::new);
        Ok(match value {
            Value::Constant(v) => Expr::Literal(literal(&v.scalar(0))?),
            Value::Array { array, raw } => self.id(Of::Array(*array, *raw))?,
            Value::Position { dim } => self.id(Of::Position(*dim))?,
            Value::Date(part, array) => {
                Expr::Call(part.name().to_owned(), vec![self.id(Of::Array(*array, false))?])
            }
            Value::Key(key) => {
                let number = self.keys.get(*key).ok_or_else(|| internal(format!("no key {key}")))?;
                column_id(self.of.len() + number)
            }
            Value::Aggregated(call) => {
                let number = self.calls.get(*call).ok_or_else(|| internal(format!("no aggregate {call}")))?;
                column_id(self.of.len() + self.different_keys + number)
            }
            Value::Negate(a) => Expr::Negate(boxed(a)?),
            Value::Arithmetic(op, a, b) => Expr::Binary(*op, boxed(a)?, boxed(b)?),
            Value::Compare(op, a, b) => Expr::Compare(*op, boxed(a)?, boxed(b)?),
            Value::And(parts) => Expr::And(self.each(parts)?),
            Value::Or(parts) => Expr::Or(self.each(parts)?),
            Value::Not(a) => Expr::Not(boxed(a)?),
            Value::IsNull(a) => Expr::IsNull(boxed(a)?),
            Value::Like(a, pattern) => Expr::Like(boxed(a)?, pattern.text().to_owned()),
            Value::OneOf(a, constants) => Expr::In(boxed(a)?, literals(constants)),
            Value::Call(function, args) => Expr::Call(function.name().to_owned(), self.each(args)?),
            Value::Code(called, args) => Expr::Call(called.identity().to_owned(), self.each(args)?),
            Value::Reduced(reducer, args) => Expr::Call(reducer.identity().to_owned(), self.each(args)?),
            Value::Subquery(plan, _) => Expr::Subquery(Box::new((**plan).clone())),
            Value::Unknown(_) => return Err(internal("a key in a query of one source".into())),
        })
    }

    fn call(&self, aggregate: &Aggregate, of: Option<&Value>) -> Result<Call> {
        Ok(call_of(aggregate, of.map(|v| self.expr(v)).transpose()?))
    }
}

/// An aggregate of a plan.
pub fn call_of(aggregate: &Aggregate, argument: Option<Expr>) -> Call {
    let parameters = match aggregate {
        Aggregate::Quantile(q) => vec![Literal::Float(*q)],
        Aggregate::Histogram { bins, range } => {
            let bins = Literal::Int(*bins as i128);
            let ends = range.iter().flat_map(|&(low, high)| [Literal::Float(low), Literal::Float(high)]);
            std::iter::once(bins).chain(ends).collect()
        }
        _ => Vec::new(),
    };
    let distinct = matches!(aggregate, Aggregate::CountDistinct);
    Call { function: aggregate.name().to_owned(), argument, distinct, parameters }
}

fn column_id(place: usize) -> Expr {
    Expr::Column(ColumnId(u32::try_from(place).unwrap_or(u32::MAX)))
}

/// All values of a query that are computed from rows.
fn values(bound: &Bound) -> Vec<&Value> {
    let condition = if let Condition::Computed(v) = &bound.condition { Some(v) } else { None };
    let (keys, arguments): (&[Value], Vec<&Value>) = match &bound.body {
        Body::Rows => (&[], Vec::new()),
        Body::Groups { keys, aggregates, .. } => {
            (keys, aggregates.iter().filter_map(|(_, v)| v.as_ref()).collect())
        }
    };
    let outputs = bound.outputs.iter().map(|o| &o.value);
    let order = bound.order_by.iter().map(|k| &k.value);
    condition.into_iter().chain(keys).chain(arguments).chain(outputs).chain(order).collect()
}

fn column(schema: &Schema, bound: &Bound, of: Of) -> Column {
    let dim = |axis: usize| schema.dims[bound.rows.dims[axis]].path.clone();
    match of {
        Of::Array(array, raw) => {
            let value_type = bound.type_of(&Value::Array { array, raw }).unwrap_or(ValueType::F64);
            Column {
                path: schema.arrays[bound.arrays[array].index].path.clone(),
                kind: if raw { ColumnKind::Stored } else { ColumnKind::Value },
                value_type: type_of(value_type),
                dims: bound.arrays[array].axes.iter().map(|&a| dim(a)).collect(),
            }
        }
        Of::Position(index) => Column {
            path: schema.dims[index].path.clone(),
            kind: ColumnKind::Position,
            value_type: Type::Int64,
            dims: bound.rows.axis(index).map(dim).into_iter().collect(),
        },
    }
}

/// A constant of a plan.
pub(super) fn literal(scalar: &Scalar) -> Result<Literal> {
    Ok(match scalar {
        Scalar::Null => Literal::Null,
        Scalar::Bool(v) => Literal::Bool(*v),
        Scalar::I64(v) => Literal::Int((*v).into()),
        Scalar::U64(v) => Literal::Int((*v).into()),
        Scalar::F64(v) => Literal::Float(*v),
        Scalar::Str(v) => Literal::Text(v.clone()),
        Scalar::Histogram { .. } => return Err(internal("a histogram as a constant".into())),
    })
}

fn literals(constants: &Constants) -> Vec<Literal> {
    match constants {
        Constants::Texts(texts) => texts.iter().cloned().map(Literal::Text).collect(),
        Constants::Numbers(numbers) => {
            let literal = |n: &Number| match n {
                Number::Int(v) => Literal::Int(*v),
                Number::Float(v) => Literal::Float(*v),
            };
            numbers.iter().map(literal).collect()
        }
    }
}
