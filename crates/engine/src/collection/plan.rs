//! A query of a collection as a logical plan, and a plan as such a query.
//!
//! The scan of a collection has the arrays by their paths within an object, in the order in which they are named, and the
//! keys. Types, dimensions and dates are those of each object, so that a plan stays the same when objects are added.

use sieva_plan::{Column, ColumnId, ColumnKind, Output, Plan, Scan, SortKey, SourceRef, Step};
use sieva_query::aggregate::Aggregate;
use sieva_query::ast::{Expr, Literal, Name, Select, Span};
use sieva_query::logical::{NamedColumns, call_of, select_of};
use sieva_query::lower::constant_of;
use sieva_query::values::Scalar;
use sieva_types::{Error, ErrorKind, Result};

use super::Collection;
use super::names::Meaning;
use super::query::CollectionQuery;
use super::shape::Shape;
use crate::query::QueryOptions;

impl Collection {
    /// The query that a plan of this collection stands for. The catalog is asked here, files are opened when rows are.
    ///
    /// # Errors
    /// `invalid-value` for what is no plan, or one of another source; as [`Collection::sql`].
    pub fn query_plan(&self, plan: &Plan, options: &QueryOptions) -> Result<CollectionQuery> {
        let select = self.select_of(plan)?;
        CollectionQuery::new(self, &self.names()?, select, options)
    }

    /// The tree of a plan of this collection.
    pub(super) fn select_of(&self, plan: &Plan) -> Result<Select> {
        match &plan.scan.source {
            SourceRef::Collection(name) if name == self.name() => {}
            other => {
                let message = format!("the plan is not of the collection '{}': {other:?}", self.name());
                return Err(Error::new(ErrorKind::InvalidValue, message)
                    .hint("ask that source, or make the plan anew for this one"));
            }
        }
        select_of(plan)
    }
}

/// The plan of a query of the collection `name`, as it was asked.
pub(super) fn plan_of(name: &str, shape: &Shape, options: &QueryOptions) -> Result<Plan> {
    made(name, shape, options, shape.pushed.iter().chain(&shape.rest).cloned().collect())
}

/// The same without the conditions that the catalog answers: what is left to the data of the objects.
pub(super) fn rest_of(name: &str, shape: &Shape, options: &QueryOptions) -> Result<Plan> {
    made(name, shape, options, shape.rest.iter().cloned().collect())
}

/// The same with these conditions alone.
pub(super) fn pushed_of(name: &str, shape: &Shape, options: &QueryOptions) -> Result<Plan> {
    made(name, shape, options, shape.pushed.clone())
}

fn made(name: &str, shape: &Shape, options: &QueryOptions, conditions: Vec<Expr>) -> Result<Plan> {
    let cross = options.cross;
    let mut named = NamedColumns::new(&Meaning::column_of).with(&options.functions);
    for array in &shape.arrays {
        named.column(Column::of_object(array, ColumnKind::Value));
    }
    let mut steps = Vec::new();
    if !conditions.is_empty() {
        steps.push(Step::Filter(named.expr(&Expr::and(conditions))?));
    }
    if shape.grouped {
        let keys = named.each(&shape.by)?;
        let calls = shape.calls.iter().map(|c| call(&mut named, c)).collect::<Result<Vec<_>>>()?;
        steps.push(Step::Aggregate { keys, calls });
        // What stands in the result is a key, an aggregate, or made of them.
        let first = u32::try_from(named.columns().len()).unwrap_or(u32::MAX);
        for (id, expr) in (first..).zip(shape.by.iter().chain(&shape.calls)) {
            named.stand_for(expr.clone(), ColumnId(id));
        }
    }
    if let Some(having) = &shape.having {
        steps.push(Step::Having(named.expr(having)?));
    }
    if !shape.order_by.is_empty() {
        let key = |k: &sieva_query::ast::OrderBy| {
            let (descending, nulls_first) = (k.descending, k.nulls_first.unwrap_or(false));
            Ok(SortKey { value: named.expr(&k.expr)?, descending, nulls_first })
        };
        steps.push(Step::Sort(shape.order_by.iter().map(key).collect::<Result<_>>()?));
    }
    let outputs = shape.items.iter().map(|i| Ok(Output::new(i.column_name(), named.expr(&i.expr)?)));
    steps.push(Step::Project(outputs.collect::<Result<_>>()?));
    steps.extend(shape.distinct.then_some(Step::Distinct));
    steps.push(Step::Limit { count: shape.limit, offset: shape.offset });
    let source = SourceRef::Collection(name.to_owned());
    let plan =
        Plan { scan: Scan { source, rows: Vec::new(), cross, columns: named.columns().to_vec() }, steps };
    plan.check()?;
    Ok(plan)
}

fn call(named: &mut NamedColumns<'_>, call: &Expr) -> Result<sieva_plan::Call> {
    let Expr::Call { function, args, distinct, star } = call else {
        return Err(Error::new(ErrorKind::Internal, format!("'{call}' is no aggregate")));
    };
    let parameters = args.iter().skip(1).map(|arg| parameter(named, function, arg));
    let parameters = parameters.collect::<Result<Vec<Literal>>>()?;
    let aggregate = Aggregate::from_call(function, *star, *distinct, &parameters)?;
    Ok(call_of(&aggregate, args.first().map(|a| named.expr(a)).transpose()?))
}

/// A parameter of an aggregate, which is one for all objects.
fn parameter(named: &mut NamedColumns<'_>, function: &str, arg: &Expr) -> Result<Literal> {
    if let Expr::Literal(literal) = arg {
        return Ok(literal.clone());
    }
    let mut is_computed = true;
    arg.walk(&mut |e| is_computed &= Meaning::of_expr(e).is_none());
    let known = if is_computed { constant_of(&named.expr(arg)?)? } else { None };
    match known {
        Some(Scalar::F64(value)) => Ok(Literal::Float(value)),
        Some(Scalar::I64(value)) => Ok(Literal::Int(value.into())),
        Some(Scalar::U64(value)) => Ok(Literal::Int(value.into())),
        _ => {
            let message = format!("{function}() needs a constant, got {}", shown(arg));
            Err(Error::new(ErrorKind::TypeMismatch, message)
                .hint("its value has to be one for all objects: write a number"))
        }
    }
}

/// An expression as people write it.
pub(super) fn shown(expr: &Expr) -> String {
    fn plain(expr: &Expr) -> Result<Expr> {
        let text = match Meaning::of_expr(expr) {
            Some(Meaning::Array(text) | Meaning::Key(text)) => text,
            Some(_) => return Ok(expr.clone()),
            None => return expr.clone().try_map_children(&mut plain),
        };
        Ok(Expr::Name(Name { text, quoted: false, span: Span::default() }))
    }
    plain(expr).map_or_else(|e| e.to_string(), |e| e.to_string())
}
