//! Rows of a result: fetched at the selected positions, in C order or in that of ORDER BY, in steps of rows that share chunks,
//! and handed out in batches.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_format::cf::TimeUnits;
use sieva_types::{Error, ErrorKind, Result, Selection, SelectionBuilder};

use crate::bind::{Output, Value};
use crate::exec::Execution;
use crate::exec::access_path::sorted::Chosen;
use crate::exec::fetch::Gatherer;
use crate::exec::fetch::column::Column;
use crate::exec::fetch::steps::MOST_TOGETHER;
use crate::exec::order::PositionList;
use crate::exec::order::all::sorted_positions;
use crate::exec::order::distinct::Distinct;
use crate::exec::tile::evaluate::{Provider, evaluate};
use crate::values::{Values, Vector};

/// Rows that are looked at together for duplicates.
pub(crate) const ROWS_COMPARED: usize = 1 << 16;
/// Numbers of rows between which no others are read for nothing.
const NEAR: u64 = 1 << 12;

/// Whether an error may be of rows that are not wanted yet.
fn may_be_later(e: &Error, may_end: bool) -> bool {
    e.kind() == ErrorKind::Overflow || (!may_end && e.kind() != ErrorKind::Cancelled)
}

/// The rows of a query, batch by batch.
pub struct RowStream {
    execution: Arc<Execution>,
    gatherer: Gatherer,
    positions: Positions,
    batch: usize,
    /// Rows that there is room for.
    most: usize,
    /// Rows that are fetched at once: of those that lie anywhere as many as fit, and of those in the order of the arrays as
    /// many as share chunks, so that chunks are not read for each batch anew.
    together: usize,
    /// Those of them that were not given yet.
    ready: Ready,
    seen: Option<Distinct>,
    /// Of DISTINCT the rows that are given in the end: their numbers, and how many of them were given.
    rest: Option<(PositionList, u64)>,
    /// Rows still to be skipped and to be given: counted here where duplicates are dropped on the way.
    skip: u64,
    left: u64,
    /// What failed behind the last of the positions.
    failure: Option<Error>,
}

/// Rows that were fetched.
#[derive(Default)]
struct Ready {
    positions: Vec<u64>,
    columns: Vec<Column>,
    at: usize,
}

/// Where the rows come from.
enum Positions {
    /// A selection in C order, from this rank on, up to another one.
    Ranked { selection: Arc<Selection>, rank: u64, end: u64 },
    /// Positions in the order of ORDER BY, from this one on.
    Sorted { positions: PositionList, at: u64 },
    /// The rows that a sorted replica gave, from this one on.
    Chosen { chosen: Arc<Chosen>, at: usize },
}

impl Positions {
    fn next(&mut self, batch: usize) -> Result<Vec<u64>> {
        Ok(match self {
            Self::Ranked { selection, rank, end } => {
                let left = usize::try_from(end.saturating_sub(*rank)).unwrap_or(usize::MAX);
                let positions: Vec<u64> = selection.iter_from(*rank).take(batch.min(left)).collect();
                *rank += positions.len() as u64;
                positions
            }
            Self::Sorted { positions, at } => {
                let part = positions.read(*at..*at + batch as u64)?;
                *at += part.len() as u64;
                part
            }
            Self::Chosen { chosen, at } => {
                let all = chosen.count() as usize;
                let part = (*at).min(all)..at.saturating_add(batch).min(all);
                *at = part.end.max(*at);
                chosen.positions(part).collect()
            }
        })
    }

    /// Whether there are no more.
    fn is_over(&self) -> bool {
        match self {
            Self::Ranked { rank, end, .. } => rank >= end,
            Self::Sorted { positions, at } => *at >= positions.len(),
            Self::Chosen { chosen, at } => *at as u64 >= chosen.count(),
        }
    }

    /// Gives so many of the last ones again.
    fn back(&mut self, n: usize) {
        match self {
            Self::Ranked { rank, .. } => *rank -= n as u64,
            Self::Sorted { at, .. } => *at -= n as u64,
            Self::Chosen { at, .. } => *at -= n,
        }
    }

    /// The positions of the rows of these numbers, ascending ones.
    fn at(&self, numbers: &[u64]) -> Result<Vec<u64>> {
        let mut found = Vec::with_capacity(numbers.len());
        for near in numbers.chunk_by(|a, b| b - a < NEAR) {
            match self {
                Self::Ranked { selection, .. } => {
                    found.extend(near.iter().filter_map(|&n| selection.select(n)));
                }
                Self::Sorted { positions, .. } => {
                    // No more at once than numbers that are near one another span.
                    for few in near.chunks(NEAR as usize) {
                        let part = positions.read(few[0]..few[few.len() - 1] + 1)?;
                        found.extend(few.iter().map(|&n| part[(n - few[0]) as usize]));
                    }
                }
                Self::Chosen { chosen, .. } => {
                    found.extend(near.iter().flat_map(|&n| chosen.positions(n as usize..n as usize + 1)));
                }
            }
        }
        Ok(found)
    }
}

impl RowStream {
    /// The rows at the positions of `selection`, at most `batch` at once.
    ///
    /// # Errors
    /// Reading errors of ORDER BY's values, `memory-limit` where they do not fit.
    pub fn new(execution: Arc<Execution>, selection: Arc<Selection>, batch: usize) -> Result<Self> {
        let gatherer = Gatherer::new(Arc::clone(&execution));
        execution.chosen_for(selection.len())?;
        if let Some(first) = first_of_equal(&execution, &selection)? {
            let bound = &execution.bound;
            let most = bound.limit.map(|limit| limit.saturating_add(bound.offset));
            let positions = sorted_positions(&execution, &first, most)?;
            return Ok(Self::over(execution, gatherer, Positions::Sorted { positions, at: 0 }, batch, false));
        }
        let positions = if execution.bound.order_by.is_empty() {
            let end = selection.len();
            Positions::Ranked { selection, rank: 0, end }
        } else {
            let positions = sorted_positions(&execution, &selection, execution.bound.rows_wanted())?;
            Positions::Sorted { positions, at: 0 }
        };
        let distinct = execution.bound.distinct;
        Ok(Self::over(execution, gatherer, positions, batch, distinct))
    }

    /// The rows at the first `end` positions of `selection`, behind which the condition failed: an error where LIMIT wants
    /// more than those. Without ORDER BY.
    pub fn until_failure(
        execution: Arc<Execution>,
        selection: Arc<Selection>,
        (end, failure): (u64, Error),
        batch: usize,
    ) -> Self {
        let gatherer = Gatherer::new(Arc::clone(&execution));
        let (distinct, positions) = (execution.bound.distinct, Positions::Ranked { selection, rank: 0, end });
        Self { failure: Some(failure), ..Self::over(execution, gatherer, positions, batch, distinct) }
    }

    /// The rows at `positions`, in this order: ORDER BY, OFFSET and LIMIT are applied. At most `batch` at once.
    pub fn at(execution: Arc<Execution>, positions: Vec<u64>, batch: usize) -> Self {
        let gatherer = Gatherer::new(Arc::clone(&execution));
        let positions = PositionList::Held(positions);
        let (distinct, positions) = (execution.bound.distinct, Positions::Sorted { positions, at: 0 });
        let mut stream = Self::over(execution, gatherer, positions, batch, distinct);
        if let Positions::Sorted { at, .. } = &mut stream.positions {
            *at = 0;
        }
        stream
    }

    /// The rows that a sorted replica gave, where those are the answer and no other order is wanted; `None`
    /// otherwise. No selection is made of them.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn of_replica(execution: &Arc<Execution>, batch: usize) -> Result<Option<Self>> {
        if !execution.bound.order_by.is_empty() {
            return Ok(None);
        }
        let Some(chosen) = execution.rows_by_replica()? else { return Ok(None) };
        let gatherer = Gatherer::new(Arc::clone(execution));
        let positions = Positions::Chosen { chosen, at: 0 };
        Ok(Some(Self::over(Arc::clone(execution), gatherer, positions, batch, execution.bound.distinct)))
    }

    /// Rows of these positions, of which equal ones are given once if `distinct`.
    fn over(
        execution: Arc<Execution>,
        gatherer: Gatherer,
        mut positions: Positions,
        batch: usize,
        distinct: bool,
    ) -> Self {
        let bound = &execution.bound;
        let (mut skip, left) = (bound.offset, bound.limit.unwrap_or(u64::MAX));
        if !distinct {
            match &mut positions {
                Positions::Ranked { rank, .. } => *rank = skip,
                Positions::Sorted { positions, at } => *at = skip.min(positions.len()),
                Positions::Chosen { chosen, at } => *at = skip.min(chosen.count()) as usize,
            }
            skip = 0;
        }
        let seen = distinct.then(|| Distinct::new(&execution));
        let most = execution.rows_fetched(bound.outputs.iter().map(|o| &o.value));
        let batch = batch.clamp(1, most);
        let together = match &positions {
            Positions::Sorted { .. } => batch.max(most.min(MOST_TOGETHER)),
            _ if distinct && left < u64::MAX => batch,
            _ => execution.rows_in_step(bound.outputs.iter().map(|o| &o.value), batch, most),
        };
        let (ready, rest, failure) = (Ready::default(), None, None);
        Self { execution, gatherer, positions, batch, most, together, ready, seen, rest, skip, left, failure }
    }

    /// Whether the last row was given, as far as that is known without looking for another.
    pub fn is_over(&self) -> bool {
        self.seen.is_none() && self.ready.positions.is_empty() && (self.left == 0 || self.positions.is_over())
    }

    /// The columns of the next rows; `None` after the last ones.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn next_batch(&mut self) -> Result<Option<Vec<Column>>> {
        if let Some(columns) = self.of_replica_alone()? {
            return Ok(Some(columns));
        }
        Ok(self.next_rows()?.map(|(_, columns)| columns))
    }

    /// The columns of the next rows, where a replica gave the rows and has all of their values; no position is looked at then.
    fn of_replica_alone(&mut self) -> Result<Option<Vec<Column>>> {
        let Positions::Chosen { chosen, at } = &mut self.positions else { return Ok(None) };
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let n = self.batch.min(left).min((chosen.count() as usize).saturating_sub(*at));
        // What was fetched and not given yet comes before what the replica gives now.
        if n == 0 || self.seen.is_some() || !self.ready.positions.is_empty() {
            return Ok(None);
        }
        let found = self.gatherer.rows_of(chosen, &self.execution.bound.outputs, *at..*at + n)?;
        if found.is_some() {
            *at += n;
            self.left -= n as u64;
        }
        Ok(found)
    }

    /// As [`RowStream::next_batch`], with the positions of the rows.
    ///
    /// # Errors
    /// Reading errors and `cancelled`.
    pub fn next_rows(&mut self) -> Result<Option<(Vec<u64>, Vec<Column>)>> {
        let is_counted = |s: &Self| s.seen.is_none() || s.rest.is_some();
        while self.left > 0 || (is_counted(self) && !self.ready.positions.is_empty()) {
            self.execution.options.check_cancel()?;
            if self.rest.is_some() {
                return self.next_of_rest();
            }
            let Some((mut positions, mut columns)) = self.fetched()? else { return self.next_of_rest() };
            if let Some(mut seen) = self.seen.take() {
                let kept = seen.new_ones(&columns, &self.execution.options);
                self.seen = Some(seen);
                let mut kept = kept?;
                self.window(&mut kept);
                columns = columns.iter().map(|c| c.take(&kept)).collect();
                positions = kept.iter().map(|&i| positions[i]).collect();
            }
            if columns.first().is_some_and(|c| !c.is_empty()) {
                return Ok(Some((positions, columns)));
            }
        }
        Ok(None)
    }

    /// The next rows before DISTINCT; `None` after the last ones.
    fn fetched(&mut self) -> Result<Option<(Vec<u64>, Vec<Column>)>> {
        let left = self.ready.positions.len() - self.ready.at;
        if left == 0 {
            let wanted = if self.seen.is_none() { self.left } else { u64::MAX };
            let most = usize::try_from(wanted).unwrap_or(usize::MAX);
            // What OFFSET leaves out is counted among them.
            let most = most.saturating_add(usize::try_from(self.skip).unwrap_or(usize::MAX));
            let mut positions = self.positions.next(self.together.min(most))?;
            if self.seen.is_none() {
                self.window(&mut positions);
            }
            if positions.is_empty() {
                return self.failure.clone().map_or(Ok(None), Err);
            }
            let columns = self.columns_of(&mut positions)?;
            if positions.len() <= self.batch {
                return Ok(Some((positions, columns)));
            }
            self.ready = Ready { positions, columns, at: 0 };
        }
        Ok(Some(self.part_of_ready()))
    }

    /// A batch of the rows that were fetched.
    fn part_of_ready(&mut self) -> (Vec<u64>, Vec<Column>) {
        let (start, ready) = (self.ready.at, &mut self.ready);
        ready.at = ready.positions.len().min(start + self.batch);
        let part: Vec<usize> = (start..ready.at).collect();
        let given = (
            ready.positions[start..ready.at].to_vec(),
            ready.columns.iter().map(|c| c.take(&part)).collect(),
        );
        if ready.at == ready.positions.len() {
            *ready = Ready::default();
        }
        given
    }

    /// The columns of some rows. Where the last ones fail that may not be wanted (by who takes the first batch alone, or as
    /// DISTINCT and LIMIT leave none of them), only of the first: the others are given again. So what comes before a damaged
    /// chunk is given, whatever was fetched with it.
    fn columns_of(&mut self, positions: &mut Vec<u64>) -> Result<Vec<Column>> {
        let may_end = self.seen.is_some() && self.left < u64::MAX;
        loop {
            let n = positions.len();
            let kept = if may_end { n / 2 } else { self.batch };
            match fetch(&mut self.gatherer, &self.execution.bound.outputs, positions) {
                Err(e) if may_be_later(&e, may_end) && (1..n).contains(&kept) => {
                    let behind = positions.split_off(kept).len();
                    self.positions.back(behind);
                    self.together = self.batch;
                    // LIMIT counts them when they are fetched.
                    if self.seen.is_none() && self.left < u64::MAX {
                        self.left += behind as u64;
                    }
                }
                done => return done,
            }
        }
    }

    /// The next of the rows that DISTINCT had no room for, once all others were given.
    fn next_of_rest(&mut self) -> Result<Option<(Vec<u64>, Vec<Column>)>> {
        if !self.ready.positions.is_empty() {
            return Ok(Some(self.part_of_ready()));
        }
        let Some(seen) = &mut self.seen else { return Ok(None) };
        let (numbers, mut at) = match self.rest.take() {
            Some(known) => known,
            None => (seen.rest(&self.execution.options)?, 0),
        };
        loop {
            let mut part = numbers.read(at..at + self.together as u64)?;
            at += part.len() as u64;
            let is_last = part.is_empty();
            self.window(&mut part);
            if part.is_empty() && !is_last && self.left > 0 {
                continue;
            }
            self.rest = Some((numbers, at));
            if part.is_empty() {
                return Ok(None);
            }
            let positions = self.positions.at(&part)?;
            let columns = fetch(&mut self.gatherer, &self.execution.bound.outputs, &positions)?;
            self.ready = Ready { positions, columns, at: 0 };
            return Ok(Some(self.part_of_ready()));
        }
    }

    /// Applies what is left of OFFSET and LIMIT.
    fn window<T>(&mut self, rows: &mut Vec<T>) {
        let skipped = self.skip.min(rows.len() as u64);
        rows.drain(..skipped as usize);
        self.skip -= skipped;
        rows.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        if self.left < u64::MAX {
            self.left -= rows.len() as u64;
        }
    }
}

/// The first of each set of equal rows, where DISTINCT may go before ORDER BY: equal rows then have equal keys, and the
/// first one of them by its position is the first in that order, too. `None` otherwise, and where there are too many.
fn first_of_equal(execution: &Arc<Execution>, selection: &Arc<Selection>) -> Result<Option<Selection>> {
    let bound = &execution.bound;
    let is_output = |key: &Value| bound.outputs.iter().any(|output| output.value.is_same(key));
    let is_ours = bound.distinct && !bound.order_by.is_empty();
    if !is_ours || !bound.order_by.iter().all(|key| is_output(&key.value)) {
        return Ok(None);
    }
    let most = execution.options.room().bytes / 4 / size_of::<u64>() as u64;
    let positions = Positions::Ranked { selection: Arc::clone(selection), rank: 0, end: selection.len() };
    let gatherer = Gatherer::new(Arc::clone(execution));
    let mut stream = RowStream::over(Arc::clone(execution), gatherer, positions, ROWS_COMPARED, true);
    (stream.skip, stream.left) = (0, u64::MAX);
    stream.together =
        execution.rows_in_step(bound.outputs.iter().map(|o| &o.value), stream.batch, stream.most);
    let mut found = SelectionBuilder::new(selection.dims().to_vec(), selection.shape().to_vec())?;
    let mut count = 0;
    loop {
        match stream.next_rows() {
            Ok(Some((positions, _))) => {
                count += positions.len() as u64;
                found.push_positions(positions)?;
            }
            Ok(None) => return Ok(Some(found.finish())),
            // In the order of the rows a value that cannot be represented may come behind the last one that LIMIT wants.
            Err(e) if matches!(e.kind(), ErrorKind::MemoryLimit | ErrorKind::Overflow) => return Ok(None),
            Err(e) => return Err(e),
        }
        if count > most {
            return Ok(None);
        }
    }
}

/// The outputs' columns at the given positions.
///
/// # Errors
/// Reading errors and `cancelled`.
pub fn fetch(gatherer: &mut Gatherer, outputs: &[Output], positions: &[u64]) -> Result<Vec<Column>> {
    outputs.iter().map(|output| fetch_value(gatherer, &output.value, positions)).collect()
}

/// The values of one output at the given positions.
pub(in crate::exec) fn fetch_value(
    gatherer: &mut Gatherer,
    value: &Value,
    positions: &[u64],
) -> Result<Column> {
    gatherer.execution().options.check_cancel()?;
    if let Value::Array { array, raw } = value {
        return gatherer.column(*array, *raw, positions);
    }
    let mut points = Points { gatherer, positions };
    Column::from_vector(evaluate(value, &mut points)?, positions.len())
}

/// The columns at some positions.
pub(in crate::exec) struct Points<'a> {
    pub(in crate::exec) gatherer: &'a mut Gatherer,
    pub(in crate::exec) positions: &'a [u64],
}

impl Provider for Points<'_> {
    fn array(&mut self, array: usize, raw: bool) -> Result<Vector> {
        self.gatherer.execution().options.check_cancel()?;
        let (first, n) = (self.positions.first().copied().unwrap_or(0), self.positions.len() as u64);
        if n > 1 && self.positions.is_sorted() && self.positions.last() == Some(&(first + n - 1)) {
            return self.gatherer.run(array, raw, first..first + n)?.into_vector();
        }
        self.gatherer.column(array, raw, self.positions)?.into_vector()
    }

    fn position(&mut self, dim: usize) -> Result<Vector> {
        let rows = &self.gatherer.execution().bound.rows;
        let axis = rows.axis(dim).unwrap_or_default();
        let inner: u64 = rows.shape[axis + 1..].iter().product();
        let along = |&p: &u64| (p / inner % rows.shape[axis]) as i64;
        Vector::new(Values::I64(self.positions.iter().map(along).collect()), None)
    }

    fn units(&self, array: usize) -> Option<&TimeUnits> {
        self.gatherer.execution().bound.arrays[array].time.as_deref()
    }

    fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.gatherer.execution().options.cancel)
    }
}
