//! Aggregation while scanning: tiles are taken into groups as they come.

use std::sync::Arc;

use sieva_types::{Error, ErrorKind, Result, Selection};

use crate::aggregate::Aggregate;
use crate::bind::{Body, Value};
use crate::exec::groups::reduced::{has_reduction, reduced};
use crate::exec::groups::{GroupTable, Groups, Kind, Made, Panels, Shared, Sink, Wanted, add_window, finish};
use crate::exec::pool::check;
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::windows::Window;
use crate::exec::{ExecStats, Execution};
use crate::values::Scalar;

/// Bytes of a key of a row while rows are put into groups: its number, its value, and its part of a table of them.
const KEY_BYTES: u64 = 192;

/// The groups of a query, after HAVING, sorted by key.
///
/// # Errors
/// Reading errors, `cancelled`, `memory-limit` where the groups do not fit; `internal-error` for one that needs [`reduce`].
pub fn aggregate(execution: &Execution) -> Result<(GroupTable, ExecStats)> {
    let (keys, aggregates) = asked_of(execution)?;
    if has_reduction(aggregates) {
        return Err(Error::new(ErrorKind::Internal, "a reduction of rows that were not selected"));
    }
    let mut stats = ExecStats::default();
    let finished = with_ranges(execution, aggregates, &mut stats)?;
    let shared = Shared::of(&finished);
    let groups = run(execution, keys, &shared, Form::Finished, &mut stats)?;
    Ok((finish(execution, groups, &shared)?, stats))
}

/// The same of a query with reductions that came as code, where [`Execution::reduces_in_order`]: of the selected rows, in
/// their order.
///
/// # Errors
/// As [`aggregate`]; `arithmetic-overflow` where the code fails.
pub fn reduce(execution: &Arc<Execution>, selection: &Selection) -> Result<GroupTable> {
    let (keys, aggregates) = asked_of(execution)?;
    // What an evaluation did was told by who selected.
    let finished = with_ranges(execution, aggregates, &mut ExecStats::default())?;
    let table = reduced(execution, keys, &finished, selection)?;
    finish(execution, Made::Table(table), &Shared::alone(&finished))
}

/// The keys and the aggregates of a query.
#[allow(clippy::type_complexity)] // the two parts of a grouped query
fn asked_of(execution: &Execution) -> Result<(&[Value], &[(Aggregate, Option<Value>)])> {
    match &execution.bound.body {
        Body::Groups { keys, aggregates, .. } => Ok((keys, aggregates)),
        Body::Rows => Err(Error::new(ErrorKind::Internal, "a query without groups was asked for them")),
    }
}

/// The aggregates, of which histograms without a range have that of all rows.
fn with_ranges(
    execution: &Execution,
    aggregates: &[(Aggregate, Option<Value>)],
    stats: &mut ExecStats,
) -> Result<Vec<(Aggregate, Option<Value>)>> {
    let mut finished = aggregates.to_vec();
    let open: Vec<usize> = (0..aggregates.len()).filter(|&i| aggregates[i].0.needs_range()).collect();
    if !open.is_empty() {
        let ends: Vec<(Aggregate, Option<Value>)> = open
            .iter()
            .flat_map(|&i| [Aggregate::Min, Aggregate::Max].map(|a| (a, aggregates[i].1.clone())))
            .collect();
        let found = run(execution, &[], &Shared::alone(&ends), Form::States, stats)?;
        for (n, &i) in open.iter().enumerate() {
            let (low, high) = (found.value(2 * n)?, found.value(2 * n + 1)?);
            finished[i].0 = aggregates[i].0.with_range(as_range(low, high))?;
        }
    }
    Ok(finished)
}

/// The groups of a query before they are finished, for merging with those of others.
///
/// # Errors
/// As [`aggregate`]; `unsupported` for a histogram without a range, which the rows of all decide.
pub fn partial_groups(execution: &Execution) -> Result<(Groups, ExecStats)> {
    let (keys, aggregates) = asked_of(execution)?;
    refuse_parts(aggregates)?;
    let mut stats = ExecStats::default();
    let made = run(execution, keys, &Shared::alone(aggregates), Form::States, &mut stats)?;
    Ok((made.into_groups(execution, keys.len(), &execution.kinds_of(aggregates))?, stats))
}

/// The table of groups that were put together out of those of queries like this one: HAVING applied, sorted by key.
///
/// # Errors
/// As [`aggregate`].
pub fn finish_groups(execution: &Execution, groups: Groups) -> Result<GroupTable> {
    let Body::Groups { aggregates, .. } = &execution.bound.body else {
        return Err(Error::new(ErrorKind::Internal, "groups of a query without them"));
    };
    finish(execution, Made::Hashed(groups), &Shared::alone(aggregates))
}

/// Refuses aggregates that are not made of parts of the rows.
pub(in crate::exec) fn refuse_parts(aggregates: &[(Aggregate, Option<Value>)]) -> Result<()> {
    if has_reduction(aggregates) {
        let message = "a reduction of yours over rows that are taken in in parts, or of many objects";
        return Err(Error::new(ErrorKind::Unsupported, message)
            .hint("it sees its rows in their order: ask a source by itself"));
    }
    if !aggregates.iter().any(|(a, _)| a.needs_range()) {
        return Ok(());
    }
    let message = "a histogram of rows that are taken in in parts, or of many objects, needs its range";
    Err(Error::new(ErrorKind::Unsupported, message).hint("write histogram(x, bins, low, high)"))
}

fn as_range(low: Scalar, high: Scalar) -> Option<(f64, f64)> {
    let number = |s| match s {
        Scalar::F64(f) => Some(f),
        Scalar::I64(i) => Some(i as f64),
        Scalar::U64(u) => Some(u as f64),
        Scalar::Bool(b) => Some(f64::from(u8::from(b))),
        _ => None,
    };
    Some((number(low)?, number(high)?))
}

/// What is made of the rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// States, which others may be merged into.
    States,
    /// What they come to, where that takes less.
    Finished,
}

fn run(
    execution: &Execution,
    keys: &[Value],
    shared: &Shared<'_>,
    form: Form,
    stats: &mut ExecStats,
) -> Result<Made> {
    let prepared = execution.prepare()?;
    let aggregates = &*shared.first();
    let arrays = arrays_of_groups(keys, aggregates);
    refuse_large_states(execution, aggregates)?;
    let kinds = execution.kinds_of(aggregates);
    let mut sink = Sink::new(execution, &prepared, keys, &kinds)?;
    if let Sink::Dense(plan, _) = &mut sink {
        plan.expect_results(shared.others());
    }
    let row = row_bytes(execution, keys, aggregates, matches!(sink, Sink::Dense(..)));
    let mut tiles = execution.tiles_of(&prepared, &arrays, row);
    if let (Form::Finished, Sink::Dense(plan, _)) = (form, &sink)
        && let Some(panels) = Panels::new(execution, plan, &arrays, &tiles, &kinds)?
    {
        tiles = panels.tiles.clone();
        sink = sink.into_panels(panels);
    }
    stats.merge(&execution.replica_stats());
    let wanted = Wanted { keys, aggregates, arrays: &arrays, kinds: &kinds };
    // Blocks of which one row tells are added as a whole: of what was never written there may be any number.
    let mut leaves = Leaves::new(execution);
    for window in
        execution.windows_where(&prepared, &tiles, |bx| execution.is_one_group(keys, aggregates, bx))
    {
        check(&execution.options.cancel)?;
        stats.tiles_skipped += window.skipped();
        let known = match window {
            Window::None(_) => 0,
            Window::All(_, n, bx) => {
                execution.add_one_group(&wanted, &bx, &mut leaves, &mut sink)?;
                n
            }
            Window::Open(_, mut candidates) => {
                let n = execution.add_same(&wanted, &tiles, &mut candidates, &mut leaves, &mut sink)?;
                add_window(execution, &prepared, &tiles, &candidates, &wanted, &mut sink, stats)?;
                n
            }
        };
        stats.tiles_skipped += known;
        stats.tiles_taken += known;
    }
    match sink {
        Sink::Panels(plan, panels) => {
            Ok(Made::Table(panels.finish(execution, &prepared, &plan, (&wanted, shared), stats)?))
        }
        sink => sink.made(execution, &kinds),
    }
}

/// The arrays that keys and aggregates read.
pub(crate) fn arrays_of_groups(keys: &[Value], aggregates: &[(Aggregate, Option<Value>)]) -> Vec<usize> {
    let mut arrays = Vec::new();
    for value in keys.iter().chain(aggregates.iter().filter_map(|(_, v)| v.as_ref())) {
        value.walk(&mut |v| {
            if let Value::Array { array, .. } = v {
                arrays.push(*array);
            }
        });
    }
    arrays
}

/// Bytes that a row takes while its tile is worked on: where it is a group of its own, those of its states too.
pub(super) fn row_bytes(
    execution: &Execution,
    keys: &[Value],
    aggregates: &[(Aggregate, Option<Value>)],
    is_dense: bool,
) -> u64 {
    let computed = keys.iter().chain(aggregates.iter().filter_map(|(_, v)| v.as_ref()));
    let most = computed.map(|v| execution.computing_bytes(v)).max().unwrap_or(0);
    let states = aggregates.iter().map(|(a, v)| {
        let (fixed, each) = a.expected_bytes();
        let text = v.as_ref().map_or(0, |v| execution.column_bytes(v));
        let each = if each > 0 { each + text } else { 0 };
        if is_dense { each } else { fixed + each }
    });
    let states: u64 = states.sum();
    let of_key = |k: &Value| if is_dense { 8 } else { KEY_BYTES + 2 * execution.column_bytes(k) };
    let of_keys: u64 = keys.iter().map(of_key).sum();
    // Where it is among the tile's positions and among those of a value's own dimensions.
    32 + most + of_keys + states
}

impl Execution {
    /// Bytes that a row takes while it is put into its group: by its position, and by the hash of its keys.
    pub(crate) fn group_row_bytes(
        &self,
        keys: &[Value],
        aggregates: &[(Aggregate, Option<Value>)],
    ) -> [u64; 2] {
        [true, false].map(|is_dense| row_bytes(self, keys, aggregates, is_dense))
    }
}

/// Refuses aggregates of which not even one of each fits.
pub(super) fn refuse_large_states(
    execution: &Execution,
    aggregates: &[(Aggregate, Option<Value>)],
) -> Result<()> {
    let fixed = aggregates.iter().map(|(a, _)| a.expected_bytes().0).fold(0, u64::saturating_add);
    execution.options.room().check(fixed, format_args!("{} aggregates of one group", aggregates.len()))
}

impl Execution {
    /// Aggregates with the types of their arguments.
    pub(in crate::exec) fn kinds_of(&self, aggregates: &[(Aggregate, Option<Value>)]) -> Vec<Kind> {
        aggregates.iter().map(|(a, v)| (*a, v.as_ref().and_then(|v| self.bound.type_of(v)))).collect()
    }
}
