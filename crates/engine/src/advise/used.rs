//! What a query that has run hands to the recorder. It is on the query's way: a few copies, nothing else.

use sieva_query::bind::{Body, Bound, Condition, Value};
use sieva_query::exec::ExecStats;
use sieva_types::{DType, KeySet};

use super::usage_log::{self, Note, Used};
use super::workload::Way;
use crate::query::Query;

/// Notes that the condition of a query was evaluated, in `seconds`.
pub(crate) fn used(query: &Query, operation: &'static str, hits: Option<u64>, did: &ExecStats, seconds: f64) {
    let Some(catalog) = usage_log::catalog_for(query.source()) else { return };
    let bound = query.bound();
    let mut sets: Vec<Option<KeySet>> = vec![None; bound.arrays.len()];
    let mut read: Vec<bool> = vec![false; bound.arrays.len()];
    visit(&bound.condition, &mut sets, &mut read);
    let tested = read.iter().filter(|r| **r).count();
    if let Body::Groups { keys, aggregates, .. } = &bound.body {
        keys.iter().chain(aggregates.iter().filter_map(|(_, v)| v.as_ref())).for_each(|v| mark(v, &mut read));
    }
    let arrays = sets.into_iter().zip(read).enumerate();
    let arrays = arrays.map(|(i, (set, read))| of_array(query, bound, i, set, read)).collect();
    send(query, catalog, operation, arrays, hits, way(did), seconds, tested == 1);
}

/// Notes that values of some arrays were fetched at `hits` positions, in `seconds`.
pub(crate) fn fetched(query: &Query, bound: &Bound, hits: u64, seconds: f64) {
    let Some(catalog) = usage_log::catalog_for(query.source()) else { return };
    let mut read: Vec<bool> = vec![false; bound.arrays.len()];
    bound.outputs.iter().for_each(|o| mark(&o.value, &mut read));
    let arrays = read.into_iter().enumerate().filter(|(_, read)| *read);
    let arrays = arrays.map(|(i, read)| of_array(query, bound, i, None, read)).collect();
    send(query, catalog, "read", arrays, Some(hits), Way::Known, seconds, false);
}

#[allow(clippy::too_many_arguments)] // what a note holds, by name
fn send(
    query: &Query,
    catalog: std::sync::Arc<str>,
    operation: &'static str,
    arrays: Vec<Used>,
    hits: Option<u64>,
    way: Way,
    seconds: f64,
    alone: bool,
) {
    let stats = query.stats();
    usage_log::send(Note {
        catalog,
        source: usage_log::absolute(query.source().path()),
        asked_by: query.source().options().identity.as_ref().map_or_else(String::new, ToString::to_string),
        operation,
        arrays,
        selectivity: hits.map_or(f64::NAN, |n| n as f64 / query.bound().rows.len().max(1) as f64),
        way,
        seconds,
        bytes_read: stats.io.bytes_read.saturating_add(stats.index.0),
        alone,
    });
}

fn of_array(query: &Query, bound: &Bound, number: usize, set: Option<KeySet>, read: bool) -> Used {
    let info = &query.source().schema().arrays[bound.arrays[number].index];
    let dtype = match &set {
        Some(_) => bound.arrays[number].domain.dtype(),
        None => info.dtype,
    };
    let width = if dtype == DType::Str { 16 } else { dtype.size() as u64 };
    let bytes = info.shape.iter().fold(width, |n, &d| n.saturating_mul(d));
    Used { path: info.path.clone(), dtype, set, bytes: if read { bytes } else { 0 } }
}

/// The sets of stored values that conditions are on, united for each array, and which arrays they read.
fn visit(condition: &Condition, sets: &mut [Option<KeySet>], read: &mut [bool]) {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|p| visit(p, sets, read)),
        Condition::Stored { array, set, .. } => {
            read[*array] = true;
            let known = sets[*array].take();
            sets[*array] = Some(known.map_or_else(|| set.clone(), |k| k.union(set)));
        }
        Condition::Computed(value) => mark(value, read),
        Condition::Always | Condition::Never | Condition::Position { .. } => {}
    }
}

fn mark(value: &Value, read: &mut [bool]) {
    value.walk(&mut |v| {
        if let Value::Array { array, .. } | Value::Date(_, array) = v {
            read[*array] = true;
        }
    });
}

fn way(did: &ExecStats) -> Way {
    if did.by_replica > 0 {
        Way::Sorted
    } else if did.by_bitmap > 0 {
        Way::Bitmap
    } else if did.tiles_skipped > 0 {
        Way::ZoneMap
    } else if did.tiles_scanned > 0 {
        Way::Scan
    } else {
        Way::Known
    }
}
