//! ORDER BY: all positions in the order of their values, on disk where they do not fit into memory.

use std::sync::Arc;

use sieva_types::{Error, ErrorKind, Result, Selection};

use crate::exec::Execution;
use crate::exec::fetch::Gatherer;
use crate::exec::fetch::rows::Points;
use crate::exec::order::{Encoded, PositionList, Sorter, Top, key_width, needed};
use crate::exec::pool::{Flow, in_order_within};
use crate::exec::tile::evaluate::evaluate;
use crate::values::{ValueType, Vector};

/// Rows whose keys are computed at once, or as many as share chunks.
const BATCH: usize = 1 << 16;
/// Parts of them for each thread, at least.
const PER_THREAD: u64 = 4;
/// Bytes that are certain of a number's key, and of a text's.
const LEAST_NUMBER: u64 = 9;
const LEAST_TEXT: u64 = 3;
/// Bytes of a position on disk, with its row and in order.
const SPILLED: u64 = 16;

/// The positions of a selection in the order of ORDER BY, C order among equals: the first `most`, or all.
///
/// # Errors
/// Reading errors, `cancelled`, `memory-limit`.
pub(in crate::exec) fn sorted_positions(
    execution: &Arc<Execution>,
    selection: &Selection,
    most: Option<u64>,
) -> Result<PositionList> {
    let options = &execution.options;
    let most = most.unwrap_or(u64::MAX).min(selection.len());
    if most == 0 {
        return Ok(PositionList::Held(Vec::new()));
    }
    let mut kept = Kept::new(execution, selection.len(), most)?;
    let batch = execution.rows_keyed(selection.len());
    let jobs = usize::try_from(selection.len().div_ceil(batch)).unwrap_or(usize::MAX);
    in_order_within(
        (jobs, options.at_work() / 2),
        options.threads,
        &options.cancel,
        |(keys, _): &(Encoded, Vec<u64>)| keys.memory_bytes() as u64,
        || {
            let mut gatherer = Gatherer::new(Arc::clone(execution));
            gatherer.use_threads(1);
            gatherer
        },
        |gatherer, i| {
            let positions: Vec<u64> = selection.iter_from(i as u64 * batch).take(batch as usize).collect();
            Ok((keys_of(execution, gatherer, &positions)?, positions))
        },
        |(keys, positions)| kept.add(&keys, &positions, execution).map(|()| Flow::Continue(())),
    )?;
    match kept {
        Kept::First(top) => top.finish(&options.cancel).map(PositionList::Held),
        Kept::All(sorter) => sorter.finish(most),
    }
}

impl Execution {
    /// Of how many of so many rows the keys of ORDER BY are computed at once.
    pub(crate) fn rows_keyed(&self, rows: u64) -> u64 {
        let keys = || self.bound.order_by.iter().map(|k| &k.value);
        let (threads, most) =
            (self.options.threads.max(1), self.rows_fetched(keys()) / self.options.threads.max(1));
        let batch = most.clamp(1, BATCH);
        let share = usize::try_from(rows.div_ceil(PER_THREAD * threads as u64)).unwrap_or(usize::MAX);
        self.rows_in_step(keys(), batch, most.min(share)) as u64
    }
}

/// The keys of the rows at some positions.
fn keys_of(execution: &Execution, gatherer: &mut Gatherer, positions: &[u64]) -> Result<Encoded> {
    let (keys, n) = (&execution.bound.order_by, positions.len());
    let mut vectors: Vec<Vector> = Vec::with_capacity(keys.len());
    for key in keys {
        let mut points = Points { gatherer, positions };
        vectors.push(evaluate(&key.value, &mut points)?.into_rows(n)?.sound()?);
    }
    Ok(Encoded::of(keys, &vectors, n, key_width(execution)))
}

/// The rows that are kept.
enum Kept {
    First(Top),
    All(Sorter),
}

impl Kept {
    fn new(execution: &Execution, rows: u64, most: u64) -> Result<Self> {
        let (bound, options) = (&execution.bound, &execution.options);
        let is_text = |k: &crate::bind::OrderKey| bound.type_of(&k.value) == Some(ValueType::Str);
        let least = bound.order_by.iter().map(|k| if is_text(k) { LEAST_TEXT } else { LEAST_NUMBER }).sum();
        let width = key_width(execution);
        let first = Top::bytes_kept(most, least);
        if most < rows && first <= options.room().bytes {
            let most = usize::try_from(most).unwrap_or(usize::MAX);
            return Ok(Self::First(Top::new(most, width)));
        }
        let what = format!("ORDER BY of {rows} rows");
        let spilled = rows.saturating_mul(least + SPILLED);
        if options.spill == 0 {
            let need = needed(rows.saturating_mul(least), rows);
            options.room().check(need, &what).map_err(|e| e.hint(crate::exec::order::HINT))?;
        } else if needed(rows.saturating_mul(least), rows) > options.room().bytes && spilled > options.spill {
            let message = format!(
                "{what} would take {spilled} bytes or more on disk; the limit of what is spilled is {}",
                options.spill
            );
            return Err(Error::new(ErrorKind::MemoryLimit, message).hint(crate::exec::order::HINT));
        }
        Ok(Self::All(Sorter::new(options, width, options.room().bytes, what)))
    }

    fn add(&mut self, keys: &Encoded, positions: &[u64], execution: &Execution) -> Result<()> {
        match self {
            Self::First(top) => {
                top.add(keys, positions, &execution.options.cancel)?;
                let what = format_args!("the first {} rows of ORDER BY", top.most);
                execution.options.room().check(top.memory_bytes(), what)
            }
            Self::All(sorter) => sorter.add(keys, positions),
        }
    }
}
