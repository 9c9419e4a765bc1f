//! Any text as a query that is run on a small source of many types: no panic, one answer however it is asked for, and
//! a condition selects the rows where it is true as a value.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sieva_fuzz::{check_error, small_source};
use sieva_plan::Plan;
use sieva_query::ast::{Expr, Name, Select};
use sieva_query::bind::{BindOptions, Body, Bound, Planned, resolve};
use sieva_query::exec::{Column, Data, ExecOptions, Execution, Indexes, RowStream, aggregate, count, select};
use sieva_query::logical::{plan_rows, plan_select};
use sieva_query::lower::{Answer, LowerOptions, lower, misfit};
use sieva_query::parse;
use sieva_query::values::{Scalar, ValueType};
use sieva_types::{ErrorKind, Result};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let source = small_source();
    let schema = source.schema();
    let known = |name: &Name| resolve(schema, &name.text).is_ok();
    let subquery = |_: &Select| Ok((Plan::default(), Some(ValueType::F64)));
    let options =
        BindOptions { valid_range: bytes.len() % 2 == 1, cross: bytes.len() % 3 == 1, subqueries: &subquery };
    let done = match parse::parse_select_with(text, &known) {
        Ok(select) => plan_select(schema, &select, &options).and_then(|p| run(lowered(p, &options)?)),
        Err(_) => match parse::parse_condition_with(text, &known) {
            Ok(condition) => plan_rows(schema, &[], Some(&condition), None, &options)
                .and_then(|p| run(lowered(p, &options)?))
                .and_then(|()| check_condition(&condition, &options)),
            Err(_) => return,
        },
    };
    if let Err(e) = done {
        check_error(&e);
        assert_ne!(e.kind(), ErrorKind::CorruptFile, "{e}");
    }
});

/// The bound query of a plan, and of the plan in its one form, which fits this source as well.
fn lowered((plan, _): Planned, options: &BindOptions<'_>) -> Result<Bound> {
    let schema = small_source().schema().clone();
    let answer = |_: &Plan| Ok(Answer::Known(Scalar::F64(3.0), Some(ValueType::F64)));
    let lowering = LowerOptions { valid_range: options.valid_range, subqueries: &answer, constants: &[] };
    let (bound, canonical) = (lower(&schema, &plan, &lowering), plan.canonical());
    if bound.is_ok() {
        assert_eq!(misfit(&schema, &canonical, options.valid_range, options.cross)?, None);
        lower(&schema, &canonical, &lowering)?;
    }
    bound
}

fn execution(bound: Bound) -> Result<Arc<Execution>> {
    let options = ExecOptions { threads: 1, memory: 32 << 20, ..ExecOptions::default() };
    Execution::new(small_source(), bound, Arc::new(Indexes::default()), options).map(Arc::new)
}

fn run(bound: Bound) -> Result<()> {
    let execution = execution(bound)?;
    execution.describe()?;
    execution.price()?;
    let bound = &execution.bound;
    if matches!(bound.body, Body::Groups { .. }) {
        let (table, _) = aggregate(&execution)?;
        for output in &bound.outputs {
            table.evaluate(&execution, &output.value)?;
        }
        return Ok(());
    }
    let (selected, columns) = rows(&execution)?;
    let counted = count(&execution, 1 << 20)?;
    assert_eq!(selected, counted.count);
    if let Some(found) = counted.found {
        assert_eq!(selected, found.selection(&execution)?.len());
    }
    let n = columns.first().map_or(0, Column::len) as u64;
    assert!(columns.iter().all(|c| c.len() as u64 == n) && columns.len() == bound.outputs.len());
    let wanted = selected.saturating_sub(bound.offset).min(bound.limit.unwrap_or(u64::MAX));
    assert!(if bound.distinct { n <= wanted } else { n == wanted }, "{n} rows of {wanted}");
    Ok(())
}

/// How many positions are selected, and the columns of all rows.
fn rows(execution: &Arc<Execution>) -> Result<(u64, Vec<Column>)> {
    let selection = Arc::new(select(execution, None)?.0);
    let mut stream = RowStream::new(Arc::clone(execution), Arc::clone(&selection), 7)?;
    let mut columns: Vec<Column> = Vec::new();
    while let Some(batch) = stream.next_batch()? {
        if columns.is_empty() {
            columns = batch;
        } else {
            columns.iter_mut().zip(batch).try_for_each(|(all, part)| all.append(part))?;
        }
    }
    if columns.is_empty() {
        columns = execution
            .bound
            .outputs
            .iter()
            .map(|_| Column { data: Data::Bool(Vec::new()), valid: None })
            .collect();
    }
    Ok((selection.len(), columns))
}

/// As many positions are selected as those where the condition, computed as a value, is true; and it is at all of them.
fn check_condition(condition: &Expr, options: &BindOptions<'_>) -> Result<()> {
    let source = small_source();
    let value = std::slice::from_ref(condition);
    let among = execution(lowered(
        plan_rows(source.schema(), &[], Some(condition), Some(value), options)?,
        options,
    )?)?;
    let everywhere =
        execution(lowered(plan_rows(source.schema(), &[], None, Some(value), options)?, options)?)?;
    let (selected, columns) = rows(&among)?;
    assert_eq!(truths(&columns[0]), selected, "{condition} is not true where it selects");
    let (_, columns) = rows(&everywhere)?;
    assert_eq!(truths(&columns[0]), selected, "{condition} is true elsewhere");
    Ok(())
}

fn truths(column: &Column) -> u64 {
    let Data::Bool(values) = &column.data else { panic!("a condition of {:?}", column.dtype()) };
    let valid = |i: usize| column.valid.as_ref().is_none_or(|v| v.get(i));
    values.iter().enumerate().filter(|&(i, &v)| v && valid(i)).count() as u64
}
