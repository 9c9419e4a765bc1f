//! Any text as a query that is run on a small source of many types: no panic, and one answer however it is asked for.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sieva_fuzz::{check_error, small_source};
use sieva_query::ast::{Name, Select};
use sieva_query::bind::{BindOptions, Body, Bound, bind_condition, bind_select, resolve};
use sieva_query::exec::{ExecOptions, Execution, Indexes, RowStream, aggregate, count, select};
use sieva_query::parse;
use sieva_query::values::Scalar;
use sieva_types::{ErrorKind, Result};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let source = small_source();
    let schema = source.schema();
    let known = |name: &Name| resolve(schema, &name.text).is_ok();
    let subquery = |_: &Select| Ok(Scalar::F64(3.0));
    let options = BindOptions { valid_range: bytes.len() % 2 == 1, subquery: &subquery };
    let bound = match parse::parse_select_with(text, &known) {
        Ok(select) => bind_select(schema, &select, &options),
        Err(_) => match parse::parse_condition_with(text, &known) {
            Ok(condition) => bind_condition(schema, Some(&condition), None, &options),
            Err(_) => return,
        },
    };
    if let Ok(bound) = bound
        && let Err(e) = run(bound)
    {
        check_error(&e);
        assert_ne!(e.kind(), ErrorKind::CorruptFile, "{e}");
    }
});

fn run(bound: Bound) -> Result<()> {
    let options = ExecOptions { threads: 1, memory: 32 << 20, ..ExecOptions::default() };
    let execution = Arc::new(Execution::new(small_source(), bound, Arc::new(Indexes::default()), options)?);
    execution.plan()?;
    if matches!(execution.bound.body, Body::Groups { .. }) {
        let (table, _) = aggregate(&execution)?;
        for output in &execution.bound.outputs {
            table.evaluate(&execution, &output.value)?;
        }
        return Ok(());
    }
    let (selection, _) = select(&execution, None)?;
    assert_eq!(selection.len(), count(&execution)?.0);
    let mut stream = RowStream::new(Arc::clone(&execution), Arc::new(selection), 7)?;
    let mut rows = 0;
    while let Some(columns) = stream.next_batch()? {
        let n = columns[0].len();
        assert!(columns.len() == execution.bound.outputs.len() && columns.iter().all(|c| c.len() == n));
        rows += n as u64;
    }
    assert!(execution.bound.limit.is_none_or(|limit| rows <= limit));
    Ok(())
}
