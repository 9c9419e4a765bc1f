//! From a logical plan to a bound query: ids of columns become arrays of one source, conditions become sets of stored
//! values, subqueries become their values where those are known.
//!
//! A plan says already what each name means, which dimensions are one, and which number a date is. What is left needs
//! the source's schema and reads nothing of it: NOT is pushed down to the comparisons (so that three-valued logic needs no
//! third value: what is left is where the condition is true), and comparisons of one array with a constant are rewritten
//! to sets of stored values ([`crate::raw`]).

mod columns;
mod compare;
mod condition;
mod fits;
mod junction;
#[cfg(test)]
mod tests;
mod value;

use sieva_format::schema::Schema;
use sieva_plan::{self as plan, Expr, Plan, Step};
use sieva_types::{Error, ErrorKind, Result};

use crate::aggregate::{Aggregate, REDUCTION};
use crate::ast::Literal;
use crate::bind::{Body, Bound, BoundArray, Condition, OrderKey, Output, Value, no_rows};
use crate::code::Functions;
use crate::values::{Scalar, ValueType};
pub(crate) use columns::type_of;
pub use fits::misfit;

/// What is known of the value of a subquery.
#[derive(Clone, Debug)]
pub enum Answer {
    /// Its type alone (`None`: it is of none).
    Unknown(Option<ValueType>),
    /// Its value, and its type, which one that is missing has as well.
    Known(Scalar, Option<ValueType>),
}

/// How a plan is lowered.
pub struct LowerOptions<'a> {
    /// Whether values outside of `valid_range` are missing.
    pub valid_range: bool,
    /// What is known of a subquery. One of unknown value stays in the bound query as [`Value::Subquery`]: such a query can
    /// be described, not run.
    pub subqueries: &'a dyn Fn(&Plan) -> Result<Answer>,
    /// What is known of the columns that are one value for a whole object of a collection, in their order. One of unknown
    /// value stays in the bound query as [`Value::Unknown`], likewise.
    pub constants: &'a [Answer],
    /// Functions that came as code.
    pub functions: &'a Functions,
}

/// The bound query of a plan over a source of this schema, whose arrays have the plan's dimensions and types: see
/// [`misfit`] for a plan that was not made for it.
///
/// # Errors
/// `invalid-value` for what is no plan, and for columns that the schema does not have as the plan has them;
/// `type-mismatch` and the like for expressions that no text gives; those of answering subqueries, and
/// `arithmetic-overflow` of constants that are computed from them.
pub fn lower(schema: &Schema, plan: &Plan, options: &LowerOptions<'_>) -> Result<Bound> {
    plan.check()?;
    let (rows, arrays, columns) = columns::of_scan(schema, &plan.scan, options)?;
    let mut this =
        Lowering { schema, options, arrays, columns, key_types: Vec::new(), aggregate_types: Vec::new() };
    let (mut condition, mut body, mut outputs) = (Condition::Always, Body::Rows, Vec::new());
    let (mut order_by, mut distinct, mut limit, mut offset) = (Vec::new(), false, None, 0);
    for step in &plan.steps {
        match step {
            Step::Filter(e) => condition = this.condition(e, false)?,
            Step::Aggregate { keys, calls } => body = this.groups(plan, keys, calls)?,
            Step::Having(e) => {
                if let Body::Groups { having, .. } = &mut body {
                    *having = Some(this.of_type(e, ValueType::Bool, "HAVING")?);
                }
            }
            Step::Sort(keys) => order_by = keys.iter().map(|k| this.order_key(k)).collect::<Result<_>>()?,
            Step::Project(all) => outputs = all.iter().map(|o| this.output(o)).collect::<Result<_>>()?,
            Step::Distinct => distinct = true,
            Step::Limit { count, offset: skipped } => (limit, offset) = (*count, *skipped),
        }
    }
    let Lowering { arrays, key_types, aggregate_types, .. } = this;
    Ok(Bound {
        rows,
        arrays,
        condition,
        body,
        outputs,
        distinct,
        order_by,
        limit,
        offset,
        key_types,
        aggregate_types,
    })
}

/// The constant that an expression without columns comes to; none where it is of columns.
///
/// # Errors
/// As [`lower`].
pub fn constant_of(expr: &Expr) -> Result<Option<Scalar>> {
    let subqueries = &|_: &Plan| Err(Error::new(ErrorKind::Unsupported, "a subquery in a constant"));
    let functions = &Functions::default();
    let options = &LowerOptions { valid_range: false, subqueries, constants: &[], functions };
    let (schema, arrays, columns) = (&Schema::default(), Vec::new(), Vec::new());
    let this =
        Lowering { schema, options, arrays, columns, key_types: Vec::new(), aggregate_types: Vec::new() };
    if has_column(expr) {
        return Ok(None);
    }
    Ok(if let Value::Constant(v) = this.value(expr)? { Some(v.scalar(0)) } else { None })
}

fn has_column(expr: &Expr) -> bool {
    matches!(expr, Expr::Column(_)) || expr.children().into_iter().any(has_column)
}

/// A plan while it is lowered.
struct Lowering<'a> {
    schema: &'a Schema,
    options: &'a LowerOptions<'a>,
    arrays: Vec<BoundArray>,
    /// What the columns are, by their ids.
    columns: Vec<Value>,
    /// Types of [`Value::Key`] and [`Value::Aggregated`].
    key_types: Vec<Option<ValueType>>,
    aggregate_types: Vec<Option<ValueType>>,
}

impl Lowering<'_> {
    /// Groups. Aggregates have the numbers that resolving gives them, in the order in which the rest of the plan names them,
    /// so that groups of a query and of its plan in its one form are told apart by nothing.
    fn groups(&mut self, whole: &Plan, keys: &[Expr], calls: &[plan::Call]) -> Result<Body> {
        if self.columns.is_empty() {
            return Err(no_rows());
        }
        let keys = keys.iter().map(|k| self.value(k)).collect::<Result<Vec<_>>>()?;
        let key_types = keys.iter().map(|k| self.type_of(k)).collect::<Result<_>>()?;
        let mut aggregates = Vec::with_capacity(calls.len());
        let order = order_of_calls(whole, self.columns.len() + keys.len(), calls.len());
        for call in order.iter().map(|&c| &calls[c]) {
            if call.function == REDUCTION {
                let value = self.reduction(call)?;
                self.aggregate_types.push(self.type_of(&value)?);
                aggregates.push((Aggregate::Reduction, Some(value)));
                continue;
            }
            let value = call.argument.as_ref().map(|a| self.value(a)).transpose()?;
            let parameters: Vec<Literal> = call.parameters.iter().map(Literal::from).collect();
            let aggregate =
                Aggregate::from_call(&call.function, value.is_none(), call.distinct, &parameters)?;
            let input = value.as_ref().map(|v| self.type_of(v)).transpose()?.flatten();
            self.aggregate_types.push(aggregate.result_type(input)?);
            aggregates.push((aggregate, value));
        }
        self.key_types = key_types;
        self.columns.extend((0..keys.len()).map(Value::Key));
        let mut numbers = vec![Value::Aggregated(0); order.len()];
        order.iter().enumerate().for_each(|(number, &call)| numbers[call] = Value::Aggregated(number));
        self.columns.extend(numbers);
        Ok(Body::Groups { keys, aggregates, having: None })
    }

    fn order_key(&self, key: &plan::SortKey) -> Result<OrderKey> {
        let (descending, nulls_first) = (key.descending, key.nulls_first);
        Ok(OrderKey { value: self.value(&key.value)?, descending, nulls_first })
    }

    fn output(&self, output: &plan::Output) -> Result<Output> {
        Ok(Output { name: output.name.clone(), value: self.value(&output.value)? })
    }
}

/// The calls in the order in which the columns of the result, HAVING and ORDER BY name them; `first` is the column of the
/// first call.
fn order_of_calls(plan: &Plan, first: usize, calls: usize) -> Vec<usize> {
    fn walk(e: &Expr, named: &mut impl FnMut(usize)) {
        if let Expr::Column(id) = e {
            named(id.0 as usize);
        }
        e.children().into_iter().for_each(|c| walk(c, named));
    }
    let mut order = Vec::with_capacity(calls);
    let mut seen = vec![false; calls];
    let mut add = |id: usize| {
        if let Some(call) = id.checked_sub(first).filter(|&c| c < calls && !seen[c]) {
            seen[call] = true;
            order.push(call);
        }
    };
    plan.outputs().iter().for_each(|o| walk(&o.value, &mut add));
    for step in &plan.steps {
        match step {
            Step::Having(e) => walk(e, &mut add),
            Step::Sort(keys) => keys.iter().for_each(|k| walk(&k.value, &mut add)),
            _ => {}
        }
    }
    order.extend((0..calls).filter(|&c| !seen[c]));
    order
}

/// The error of a plan that is not of these arrays.
fn not_of_these(what: String) -> Error {
    let message = format!("the plan is of arrays of other dimensions or types: {what}");
    Error::new(ErrorKind::InvalidValue, message).hint("make the plan anew for this source")
}
