//! The rows of a query in their final order, of which LIMIT may leave only the first.

use std::sync::Arc;
use std::time::Instant;

use sieva_query::exec::{self, ExecStats, OrderedRows, RowStream};
use sieva_types::{Error, ErrorKind, Result, Selection};

use super::Query;
use crate::advise;
use crate::stats::Phase;

impl Query {
    /// The positions of the first rows, where LIMIT wants no more: the scan ends with the tile that has the last.
    pub(super) fn first_rows(&self) -> Result<Option<Arc<Selection>>> {
        let _entered = self.enter()?;
        let Some(enough) = self.enough() else { return Ok(None) };
        if let Some(known) = self.known_selection()? {
            return Ok(Some(known));
        }
        let mut evaluated = self.evaluated();
        if let Some(first) = &evaluated.first {
            return Ok(Some(Arc::clone(first)));
        }
        let started = Instant::now();
        let (first, did) = self.timed(Phase::Select, || exec::select(self.execution()?, Some(enough)))?;
        let first = Arc::new(first);
        evaluated.first = Some(Arc::clone(&first));
        drop(evaluated);
        self.note_evaluation(did);
        advise::used(self, "first", None, &did, started.elapsed().as_secs_f64());
        Ok(Some(first))
    }

    /// The positions of the first rows in the order of ORDER BY, where LIMIT wants no more: not all rows are put in order.
    fn first_in_order(&self) -> Result<Option<Vec<u64>>> {
        let bound = self.bound();
        if bound.limit.is_none() || bound.order_by.is_empty() || bound.distinct {
            return Ok(None);
        }
        let known = self.known_selection()?;
        let started = Instant::now();
        let Some((positions, did)) = exec::first_in_order(self.execution()?, known.as_deref())? else {
            return Ok(None);
        };
        self.lock_stats().add(Phase::Select, started);
        if known.is_none() {
            self.note_evaluation(did);
            advise::used(self, "first", None, &did, started.elapsed().as_secs_f64());
        }
        Ok(Some(positions))
    }

    /// The rows of an ungrouped query, any part of them at any time.
    pub(crate) fn ordered_rows(&self) -> Result<OrderedRows> {
        let _entered = self.enter()?;
        if let Some(positions) = self.first_in_order()? {
            return Ok(OrderedRows::at(Arc::clone(self.execution()?), positions));
        }
        let selection = match self.first_rows()? {
            Some(first) => first,
            None => match self.selection() {
                Err(e) if self.may_do_without(&e) => {
                    let rows = self.distinct_before(1 << 16)?;
                    return OrderedRows::of_stream(Arc::clone(self.execution()?), rows);
                }
                found => found?,
            },
        };
        OrderedRows::new(Arc::clone(self.execution()?), selection)
    }

    /// The rows of an ungrouped query.
    pub(crate) fn row_stream(&self, batch: usize) -> Result<RowStream> {
        let _entered = self.enter()?;
        if let Some(positions) = self.first_in_order()? {
            return Ok(RowStream::at(Arc::clone(self.execution()?), positions, batch));
        }
        if let Some(first) = self.first_rows()? {
            return RowStream::new(Arc::clone(self.execution()?), first, batch);
        }
        if self.known_selection()?.is_none() {
            let started = Instant::now();
            if let Some(rows) = RowStream::of_replica(self.execution()?, batch)? {
                let found = self.execution()?.chosen().map_or(0, |c| c.count());
                let did = ExecStats { by_replica: found, ..ExecStats::default() };
                self.note_evaluation(did);
                let mut stats = self.lock_stats();
                stats.add(Phase::Select, started);
                stats.hits = Some(found);
                drop(stats);
                advise::used(self, "select", Some(found), &did, started.elapsed().as_secs_f64());
                return Ok(rows);
            }
        }
        match self.selection() {
            Err(e) if self.may_do_without(&e) => self.distinct_before(batch),
            found => RowStream::new(Arc::clone(self.execution()?), found?, batch),
        }
    }

    /// Whether the answer may be there in spite of what failed: LIMIT may want no row of DISTINCT behind the one that did.
    fn may_do_without(&self, e: &Error) -> bool {
        let bound = self.bound();
        e.kind() == ErrorKind::Overflow
            && bound.distinct
            && bound.limit.is_some()
            && bound.order_by.is_empty()
    }

    /// The different rows before the position at which the condition fails.
    fn distinct_before(&self, batch: usize) -> Result<RowStream> {
        let execution = self.execution()?;
        let (selection, failed, did) = exec::select_until_failure(execution)?;
        self.note_evaluation(did);
        let (execution, selection) = (Arc::clone(execution), Arc::new(selection));
        match failed {
            Some(failed) => Ok(RowStream::until_failure(execution, selection, failed, batch)),
            None => RowStream::new(execution, selection, batch),
        }
    }
}
