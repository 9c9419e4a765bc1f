//! A plan to the tree of a query that asks the same.

use sieva_plan as plan;
use sieva_plan::{ColumnId, ColumnKind, Plan, SourceRef, Step};
use sieva_types::{Error, ErrorKind, Result};

use super::from_bound::literal;
use super::order;
use crate::aggregate::REDUCTION;
use crate::ast::{Expr, Literal, Name, OrderBy, Projection, Select, SelectItem, Span, UnaryOp};
use crate::lower::Answer;

/// The query that asks what the plan does: its text gives the same plan again.
///
/// # Errors
/// `invalid-value` for what is no plan, and for one without columns of a result.
pub fn select_of(plan: &Plan) -> Result<Select> {
    plan.check()?;
    let scan = &plan.scan;
    let mut columns: Vec<Expr> = (0..scan.columns.len()).map(|id| column(plan, id)).collect();
    let mut select = Select { cross: scan.cross, ..Select::default() };
    match &scan.source {
        SourceRef::Given => {}
        SourceRef::Path(path) => select.from = Some(path.clone()),
        SourceRef::Collection(name) => select.collection = Some(name.clone()),
    }
    let mut asked = vec![false; columns.len()];
    for step in &plan.steps {
        let mut expr = |e: &plan::Expr| {
            mark(e, &mut asked);
            expression(e, &columns)
        };
        match step {
            Step::Filter(e) => select.condition = Some(expr(e)?),
            Step::Having(e) => select.having = Some(expr(e)?),
            Step::Aggregate { keys, calls } => {
                select.group_by = keys.iter().map(|k| expr(k).map(no_ordinal)).collect::<Result<_>>()?;
                let made = calls.iter().map(|c| call(c, &mut expr)).collect::<Result<Vec<_>>>()?;
                columns.extend(select.group_by.iter().cloned().chain(made));
            }
            Step::Sort(keys) => {
                let key = |k: &plan::SortKey| {
                    let nulls_first = k.nulls_first.then_some(true);
                    Ok(OrderBy { expr: expr(&k.value)?, descending: k.descending, nulls_first })
                };
                select.order_by = keys.iter().map(key).collect::<Result<_>>()?;
            }
            Step::Project(outputs) => {
                let item = |o: &plan::Output| {
                    let expr = expr(&o.value)?;
                    let is_named = matches!(&expr, Expr::Name(n) if n.text == o.name);
                    Ok(SelectItem { expr, alias: (!is_named).then(|| o.name.clone()), text: o.name.clone() })
                };
                select.projection = Projection::Items(outputs.iter().map(item).collect::<Result<_>>()?);
            }
            Step::Distinct => select.distinct = true,
            Step::Limit { count, offset } => {
                (select.limit, select.offset) = (*count, Some(*offset).filter(|&n| n > 0));
            }
        }
    }
    if plan.outputs().is_empty() {
        return Err(Error::new(ErrorKind::InvalidValue, "the plan has no columns of a result")
            .hint("add a step 'project'"));
    }
    name_all(&mut select, &columns, &asked);
    match scan.source {
        SourceRef::Collection(_) => order::keep_objects(plan, &columns, &mut select),
        _ => order::keep(plan, &asked, &columns, &mut select),
    }
    Ok(select)
}

/// Names what the plan scans and asks nothing of, so that the rows have its dimensions.
fn name_all(select: &mut Select, columns: &[Expr], asked: &[bool]) {
    let unasked = columns.iter().zip(asked).filter(|(_, asked)| !**asked);
    let named: Vec<Expr> = unasked.map(|(column, _)| order::always(column)).collect();
    if !named.is_empty() {
        select.condition = Some(Expr::and(select.condition.take().into_iter().chain(named)));
    }
}

fn mark(e: &plan::Expr, asked: &mut [bool]) {
    if let plan::Expr::Column(ColumnId(id)) = e
        && let Some(asked) = asked.get_mut(*id as usize)
    {
        *asked = true;
    }
    e.children().into_iter().for_each(|c| mark(c, asked));
}

/// What a column of the scan is called. GROUP BY and ORDER BY take an alias before an array: where a column of the result
/// has an array's name and is something else, the array's path begins with a slash.
fn column(plan: &Plan, id: usize) -> Expr {
    let column = &plan.scan.columns[id];
    let mut text = column.path.clone();
    let is_other = |o: &plan::Output, text: &str| o.name == text && !is_column(plan, &o.value, id);
    while plan.outputs().iter().any(|o| is_other(o, &text)) {
        text.insert(0, '/');
    }
    let name = match plan.scan.source {
        // A key may have the name of an array.
        SourceRef::Collection(_) => Expr::name(text),
        _ => word(&text),
    };
    match column.kind {
        ColumnKind::Value => name,
        ColumnKind::Stored => function("raw", vec![name]),
        ColumnKind::Position => function("idx", vec![name]),
        ColumnKind::Key => function("tag", vec![Expr::Literal(Literal::Str(column.path.clone()))]),
        ColumnKind::Object | ColumnKind::Source => word(column.kind.name()),
    }
}

fn word(text: &str) -> Expr {
    Expr::Name(Name { text: text.to_owned(), quoted: false, span: Span::default() })
}

/// An expression over columns of a scan as people write it, for messages: keys stand there by their names.
///
/// # Errors
/// `internal-error` for a column that is none of these.
pub fn condition_of(columns: &[plan::Column], e: &plan::Expr) -> Result<Expr> {
    let name = |c: &plan::Column| match c.kind {
        ColumnKind::Value | ColumnKind::Key => word(&c.path),
        ColumnKind::Stored => function("raw", vec![word(&c.path)]),
        ColumnKind::Position => function("idx", vec![word(&c.path)]),
        ColumnKind::Object | ColumnKind::Source => word(c.kind.name()),
    };
    expression(e, &columns.iter().map(name).collect::<Vec<_>>())
}

/// The condition of a plan of an object as a tree; none where it keeps all rows. `constants`: what is known of its columns
/// that are constants.
///
/// # Errors
/// `internal-error` for a plan that makes no sense.
pub fn filter_of(plan: &Plan, constants: &[Answer]) -> Result<Option<Expr>> {
    let mut constants = constants.iter();
    let term = |(id, of): (usize, &plan::Column)| match of.kind.is_of_object() {
        true => known(constants.next()),
        false => Ok(column(plan, id)),
    };
    let columns = plan.scan.columns.iter().enumerate().map(term).collect::<Result<Vec<Expr>>>()?;
    let filter = plan.steps.iter().find_map(|s| if let Step::Filter(e) = s { Some(e) } else { None });
    filter.map(|e| expression(e, &columns)).transpose()
}

/// What is known of a constant as it is written.
fn known(answer: Option<&Answer>) -> Result<Expr> {
    match answer {
        Some(Answer::Known(value, _)) => expression(&plan::Expr::Literal(literal(value)?), &[]),
        _ => Ok(Expr::Literal(Literal::Null)),
    }
}

/// Whether a value is this column of the scan, or the key of a group that is.
fn is_column(plan: &Plan, value: &plan::Expr, id: usize) -> bool {
    let plan::Expr::Column(ColumnId(of)) = value else { return false };
    let of = *of as usize;
    let keys =
        plan.steps.iter().find_map(|s| if let Step::Aggregate { keys, .. } = s { Some(keys) } else { None });
    let key = of.checked_sub(plan.scan.columns.len()).and_then(|k| keys.and_then(|keys| keys.get(k)));
    match key {
        Some(key) => is_column(plan, key, id),
        None => of == id && plan.scan.columns[id].kind == ColumnKind::Value,
    }
}

/// A constant to group by, so that it is not taken for the number of a column.
fn no_ordinal(e: Expr) -> Expr {
    match e {
        Expr::Literal(Literal::Int(_)) => {
            let zero = Box::new(Expr::Literal(Literal::Int(0)));
            Expr::Binary { op: plan::BinaryOp::Add, left: zero, right: Box::new(e) }
        }
        other => other,
    }
}

fn function(name: &str, args: Vec<Expr>) -> Expr {
    Expr::Call { function: name.to_owned(), args, distinct: false, star: false }
}

fn call(call: &plan::Call, expr: &mut impl FnMut(&plan::Expr) -> Result<Expr>) -> Result<Expr> {
    let argument = call.argument.as_ref().map(expr).transpose()?;
    if let (REDUCTION, Some(reduced)) = (&*call.function, &argument) {
        return Ok(reduced.clone());
    }
    let star = argument.is_none();
    let args = argument.into_iter().chain(call.parameters.iter().map(|l| Expr::Literal(l.into()))).collect();
    Ok(Expr::Call { function: call.function.clone(), args, distinct: call.distinct, star })
}

fn expression(e: &plan::Expr, columns: &[Expr]) -> Result<Expr> {
    let boxed = |e: &plan::Expr| expression(e, columns).map(Box::new);
    let each =
        |parts: &[plan::Expr]| parts.iter().map(|p| expression(p, columns)).collect::<Result<Vec<_>>>();
    Ok(match e {
        plan::Expr::Literal(l) => Expr::Literal(l.into()),
        plan::Expr::Column(ColumnId(id)) => columns
            .get(*id as usize)
            .cloned()
            .ok_or_else(|| Error::new(ErrorKind::Internal, format!("no column {id} in a checked plan")))?,
        plan::Expr::Negate(a) => Expr::Unary { op: UnaryOp::Neg, expr: boxed(a)? },
        plan::Expr::Binary(op, a, b) => Expr::Binary { op: *op, left: boxed(a)?, right: boxed(b)? },
        plan::Expr::Compare(op, a, b) => Expr::Compare { op: *op, left: boxed(a)?, right: boxed(b)? },
        plan::Expr::In(a, list) => {
            let list = list.iter().map(|l| Expr::Literal(l.into())).collect();
            Expr::InList { expr: boxed(a)?, list, negated: false }
        }
        plan::Expr::IsNull(a) => Expr::IsNull { expr: boxed(a)?, negated: false },
        plan::Expr::Like(a, pattern) => {
            let pattern = Box::new(Expr::Literal(Literal::Str(pattern.clone())));
            Expr::Like { expr: boxed(a)?, pattern, negated: false }
        }
        plan::Expr::And(parts) => Expr::and(each(parts)?),
        plan::Expr::Or(parts) => Expr::or(each(parts)?),
        plan::Expr::Not(a) => opposite(expression(a, columns)?),
        plan::Expr::Call(name, args) => function(plan::written_name(name), each(args)?),
        plan::Expr::Subquery(plan) => Expr::Subquery(Box::new(select_of(plan)?)),
    })
}

/// NOT, where people write it.
fn opposite(e: Expr) -> Expr {
    match e {
        Expr::InList { expr, list, .. } => Expr::InList { expr, list, negated: true },
        Expr::IsNull { expr, .. } => Expr::IsNull { expr, negated: true },
        Expr::Like { expr, pattern, .. } => Expr::Like { expr, pattern, negated: true },
        other => Expr::Not(Box::new(other)),
    }
}
