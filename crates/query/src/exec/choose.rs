//! Whether a sorted replica answers a condition, and how.

use std::ops::Range;
use std::sync::Arc;

use sieva_index::stats::Verdict;
use sieva_types::{Bx, Error, ErrorKind, KeySet, Result};

use super::access::{Access, Replica};
use super::chosen::{self, Chosen, Test};
use super::prepare::{KnownMask, Node};
use super::tiles::Tiles;
use super::{ExecStats, Execution};
use crate::bind::Condition;
use crate::mask::Mask;

/// So few rows are always best found by a replica.
const FEW: u64 = 1 << 12;
/// Nanoseconds of reading a row's position and putting it in its place, about.
const ROW_COST: f64 = 25.0;

/// Tiles that tell how many are left open by zone maps.
const SAMPLED_TILES: usize = 64;

/// What a replica answered.
pub struct Choice {
    /// The rows, or `None` where there is none.
    pub node: Option<Node>,
    /// Which of the conditions it answered.
    pub answered: Vec<usize>,
}

/// A replica that can answer a condition.
struct Offer {
    replica: Arc<Replica>,
    /// Which of the conditions is on its key.
    part: usize,
    /// Bounds of the number of its rows.
    estimate: (u64, u64),
}

impl Execution {
    /// Whether the access that is forced can be taken for any condition on stored values.
    ///
    /// # Errors
    /// `no-index` where it cannot.
    pub fn check_access(&self) -> Result<()> {
        let access = self.options.access;
        let mut arrays = Vec::new();
        stored_arrays(&self.bound.condition, &mut arrays);
        let able = |&a: &usize| match access {
            Access::Auto | Access::Scan => true,
            Access::ZoneMap => self.indexed[a].as_ref().is_some_and(|i| i.any_known()),
            Access::Bitmap => self.indexed[a].as_ref().is_some_and(|i| i.has_bitmaps()),
            Access::Sorted => self.indexes.replicas.iter().any(|r| r.key == self.bound.arrays[a].index),
        };
        if arrays.is_empty() || arrays.iter().any(able) {
            return Ok(());
        }
        let schema = self.source.schema();
        let mut names: Vec<&str> =
            arrays.iter().map(|&a| schema.arrays[self.bound.arrays[a].index].path.as_str()).collect();
        names.dedup();
        let notes = self.indexes.notes();
        let why = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        Err(Error::new(
            ErrorKind::NoIndex,
            format!("access '{}' needs an index of that kind of {}{why}", access.name(), names.join(" or ")),
        )
        .hint(format!(
            "sieva index SOURCE --var {} --kind {}, or use access auto",
            names.first().unwrap_or(&""),
            access.name()
        )))
    }

    /// Finds rows by the best replica for one of `parts` (which all must hold), if it pays or is asked for.
    pub(super) fn choose(&self, parts: &[(Condition, Vec<usize>)]) -> Result<Option<Choice>> {
        if !self.options.access.replicas() {
            return Ok(None);
        }
        let Some(offer) = self.best_offer(parts) else { return Ok(None) };
        if self.options.access == Access::Auto && !self.pays(&offer, parts) {
            return Ok(None);
        }
        self.or_without(self.take(&offer, parts))
    }

    /// The rows, where a replica gives them all and nothing is left to be tested.
    pub(super) fn rows_by_replica(&self) -> Result<Option<Arc<Chosen>>> {
        if !self.options.access.replicas() || self.indexes.replicas.is_empty() {
            return Ok(None);
        }
        let parts = match &self.bound.condition {
            Condition::All(parts) => parts.clone(),
            other => vec![other.clone()],
        };
        let parts: Vec<_> = parts.into_iter().map(|c| (c, Vec::new())).collect();
        let Some(offer) = self.best_offer(&parts) else { return Ok(None) };
        if !parts.iter().all(|(c, _)| self.test_of(&offer.replica, c).is_some()) {
            return Ok(None);
        }
        let prepared = self.prepare()?;
        match prepared.node {
            Node::Chosen(chosen) if chosen.rows_in(&prepared.area) => Ok(Some(chosen)),
            _ => Ok(None),
        }
    }

    /// The count where a replica knows it without reading a position.
    pub(super) fn count_by_replica(&self) -> Result<Option<u64>> {
        let Condition::Stored { .. } = &self.bound.condition else { return Ok(None) };
        if !self.options.access.replicas() {
            return Ok(None);
        }
        let axes = self.bound.condition_axes(&self.bound.condition);
        let parts = [(self.bound.condition.clone(), axes)];
        let Some(offer) = self.best_offer(&parts) else { return Ok(None) };
        self.or_without(self.slices(&offer, &parts).map(|slices| Some(rows_of(&slices))))
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

    /// The replica whose key's condition leaves the fewest rows.
    fn best_offer(&self, parts: &[(Condition, Vec<usize>)]) -> Option<Offer> {
        let offers = parts.iter().enumerate().flat_map(|(part, (condition, _))| {
            let keyed = match condition {
                Condition::Stored { array, raw, set } if self.spans_rows(*array) => Some((*array, *raw, set)),
                _ => None,
            };
            self.indexes.replicas.iter().filter_map(move |replica| {
                let (array, raw, set) = keyed?;
                let dtype = replica.replica.columns().first()?.dtype;
                let fits =
                    replica.key == self.bound.arrays[array].index && self.keys_agree(array, raw, dtype);
                let estimate = fits.then(|| replica.replica.estimate(set))?;
                Some(Offer { replica: Arc::clone(replica), part, estimate })
            })
        });
        offers.min_by_key(|o| o.estimate.1)
    }

    /// Whether an array's positions are those of the row space.
    fn spans_rows(&self, array: usize) -> bool {
        let axes = &self.bound.arrays[array].axes;
        axes.len() == self.bound.rows.shape.len() && axes.is_sorted()
    }

    /// Whether a replica is cheaper than going through the tiles that zone maps leave.
    fn pays(&self, offer: &Offer, parts: &[(Condition, Vec<usize>)]) -> bool {
        let (low, high) = offer.estimate;
        if high <= FEW {
            return true;
        }
        if high * Chosen::ROW_BYTES > self.options.memory / 4 {
            return false;
        }
        let tests = parts.iter().enumerate().filter(|(i, _)| *i != offer.part);
        let tests = tests.filter(|(_, (c, _))| self.test_of(&offer.replica, c).is_some()).count() as f64;
        let rows = (low + high) as f64 / 2.0;
        let by_replica = rows * (ROW_COST + 4.0 * (1.0 + tests) * self.indexes.costs.index.byte.get());
        // What the zone maps leave must be read, if only once.
        let nodes: Vec<Node> = parts.iter().map(|(c, _)| Node::Leaf(c.clone())).collect();
        let axes: Vec<usize> = (0..self.bound.rows.shape.len()).collect();
        let mut arrays = Vec::new();
        parts.iter().for_each(|(c, _)| self.arrays_of(c, &mut arrays));
        let tiles = Tiles::new(Bx::whole(&self.bound.rows.shape), self.tile_shape(&arrays, &axes));
        let Condition::Stored { array, .. } = &parts[offer.part].0 else { return false };
        let tile = Bx::new(vec![0; tiles.shape().len()], tiles.shape().to_vec());
        let of_tile = self.scan_cost(*array, &self.own_box(*array, &tile)) / self.options.threads as f64;
        if by_replica >= tiles.len() as f64 * of_tile {
            return false;
        }
        // Some of them tell how many of all are left open.
        let step = tiles.len().div_ceil(SAMPLED_TILES).max(1);
        let open = (0..tiles.len()).step_by(step).filter(|&i| {
            let tile = tiles.tile(i);
            !nodes.iter().any(|n| matches!(self.foresee(n, &tile), Verdict::None))
        });
        by_replica < (open.count() * step) as f64 * of_tile
    }

    fn slices(&self, offer: &Offer, parts: &[(Condition, Vec<usize>)]) -> Result<Vec<Range<u64>>> {
        match &parts[offer.part].0 {
            Condition::Stored { set, .. } => offer.replica.replica.slices(set),
            _ => Err(Error::new(ErrorKind::Internal, "a replica was chosen for what is no range")),
        }
    }

    /// The test on the replica's slice that a condition comes to, where it is on a column that it carries.
    fn test_of(&self, replica: &Replica, condition: &Condition) -> Option<Test> {
        let Condition::Stored { array, raw, set } = condition else { return None };
        let bound = &self.bound.arrays[*array];
        let column = *replica.columns.get(&bound.index).filter(|_| self.spans_rows(*array))?;
        if !self.keys_agree(*array, *raw, replica.replica.columns()[column].dtype) {
            return None;
        }
        let domain = if *raw { &bound.raw_domain } else { &bound.domain };
        let set: KeySet = set.clone();
        Some((column, domain.dtype(), set))
    }

    fn take(&self, offer: &Offer, parts: &[(Condition, Vec<usize>)]) -> Result<Option<Choice>> {
        let slices = self.slices(offer, parts)?;
        let (mut tests, mut answered) = (Vec::new(), vec![offer.part]);
        for (i, (condition, _)) in parts.iter().enumerate().filter(|(i, _)| *i != offer.part) {
            if let Some(test) = self.test_of(&offer.replica, condition) {
                tests.push(test);
                answered.push(i);
            }
        }
        let (kept, len) = chosen::test(&offer.replica, &slices, &tests)?;
        if len == 0 {
            return Ok(Some(Choice { node: None, answered }));
        }
        // A place among the rows is kept in 32 bits.
        let listed = len * Chosen::ROW_BYTES <= self.options.memory / 4 && len <= u64::from(u32::MAX);
        let node = if listed {
            let chosen = Arc::new(Chosen::new(Arc::clone(&offer.replica), slices, kept, len)?);
            Node::Chosen(Arc::clone(self.chosen.get_or_init(|| chosen)))
        } else {
            Node::Known(self.as_mask(&offer.replica, &slices, kept.as_ref())?)
        };
        Ok(Some(Choice { node: Some(node), answered }))
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
        chosen::for_each_position(replica, slices, kept, |p| mask.set(p as usize))?;
        Ok(KnownMask { axes: (0..bx.rank()).collect(), bx, mask })
    }

    /// What the replica contributed to a run.
    pub(super) fn replica_stats(&self) -> ExecStats {
        ExecStats { by_replica: self.chosen().map_or(0, |c| c.count()), ..ExecStats::default() }
    }
}

fn rows_of(slices: &[Range<u64>]) -> u64 {
    slices.iter().map(|s| s.end - s.start).sum()
}

/// The bound arrays that conditions on stored values are on.
fn stored_arrays(condition: &Condition, out: &mut Vec<usize>) {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|p| stored_arrays(p, out)),
        Condition::Stored { array, .. } => out.push(*array),
        _ => {}
    }
}
