//! Rows by a sorted replica: the plan's choice of one is carried out.

use std::ops::Range;
use std::sync::Arc;

use sieva_types::{Bx, Error, ErrorKind, Result};

use crate::exec::access_path::Replica;
use crate::exec::access_path::replica_parts::parts_of;
use crate::exec::access_path::sorted::{self, Chosen};
use crate::exec::access_path::source_order::for_each_position;
use crate::exec::tile::prepare::{KnownMask, Node};
use crate::exec::{ExecStats, Execution};
use crate::mask::Mask;
use crate::optimizer::ReplicaPath;

impl Execution {
    /// The rows, where a replica gives them all and nothing is left to be tested.
    pub(in crate::exec) fn rows_by_replica(&self) -> Result<Option<Arc<Chosen>>> {
        if !self.physical().replica.as_ref().is_some_and(|path| path.answers_all) {
            return Ok(None);
        }
        let prepared = self.prepare()?;
        match &prepared.node {
            Node::Chosen(chosen) if chosen.rows_in(&prepared.area) => Ok(Some(Arc::clone(chosen))),
            _ => Ok(None),
        }
    }

    /// What a sorted replica has of the rows of this query, for `n` of them that were found elsewhere (by another process,
    /// or by a query before): where its slice is cheaper to read than values from all over the file.
    ///
    /// # Errors
    /// As evaluating the query by the replica.
    pub fn chosen_for(&self, n: u64) -> Result<Option<&Arc<Chosen>>> {
        let path = self.physical().replica.as_ref();
        if self.chosen().is_none() && path.is_some_and(|p| p.answers_all && self.slice_pays(p, n)) {
            self.prepare()?;
        }
        Ok(self.chosen())
    }

    /// The count where a replica knows it without reading a position.
    pub(in crate::exec) fn count_by_replica(&self) -> Result<Option<u64>> {
        let plan = self.physical();
        let Some(path) = &plan.counted_by else { return Ok(None) };
        self.or_without(path.replica.replica.slices(&path.keys).map(|slices| Some(rows_of(&slices))))
    }

    /// A damaged replica is noted and left aside.
    fn or_without<T>(&self, found: Result<Option<T>>) -> Result<Option<T>> {
        match found {
            Err(e) if e.kind() == ErrorKind::CorruptIndex => {
                self.indexes.note(&format!("sorted replica: {}", e.message()));
                Ok(None)
            }
            other => other,
        }
    }

    /// The rows that a replica gives; the outer `None` where it is damaged, the inner where there is no row.
    pub(in crate::exec) fn take(&self, path: &ReplicaPath) -> Result<Option<Option<Node>>> {
        self.or_without(self.rows_of_path(path).map(Some))
    }

    fn rows_of_path(&self, path: &ReplicaPath) -> Result<Option<Node>> {
        let replica = &path.replica;
        let slices = replica.replica.slices(&path.keys)?;
        let (kept, len) =
            sorted::test(replica, &slices, &path.tests, (self.options.threads, &self.options.cancel))?;
        if len == 0 {
            return Ok(None);
        }
        // A place among the rows is kept in 32 bits.
        let listed = len * Chosen::ROW_BYTES <= self.options.memory / 4 && len <= u64::from(u32::MAX);
        Ok(Some(if listed {
            let chosen = Arc::new(Chosen::new(Arc::clone(replica), &slices, kept, &self.options)?);
            Node::Chosen(Arc::clone(self.chosen.get_or_init(|| chosen)))
        } else {
            Node::Known(self.as_mask(replica, &slices, kept.as_ref())?)
        }))
    }

    /// Rows too many to be listed, as a bit each.
    fn as_mask(&self, replica: &Replica, slices: &[Range<u64>], kept: Option<&Mask>) -> Result<KnownMask> {
        let bx = Bx::whole(&self.bound.rows.shape);
        if bx.len() / 8 > self.options.memory / 4 {
            return Err(Error::new(
                ErrorKind::MemoryLimit,
                format!("the positions of {} rows take {} bytes", bx.len(), bx.len() / 8),
            )
            .hint("raise the limit with --memory (memory= in Python), or use another access"));
        }
        let mut mask = Mask::zeros(bx.len() as usize);
        for_each_position(replica, &parts_of(replica, slices, kept), kept, |p| mask.set(p as usize))?;
        Ok(KnownMask { axes: (0..bx.rank()).collect(), bx, mask, failed: None })
    }

    /// What the replica contributed to a run.
    pub(in crate::exec) fn replica_stats(&self) -> ExecStats {
        ExecStats { by_replica: self.chosen().map_or(0, |c| c.count()), ..ExecStats::default() }
    }
}

fn rows_of(slices: &[Range<u64>]) -> u64 {
    slices.iter().map(|s| s.end - s.start).sum()
}
