//! The optimizer: from a bound query to its physical plan.
//!
//! A plan is a function of the bound query, the schema, the layouts, the statistics and the costs. Making it reads no value
//! of the source: what has to be read first (conditions on fewer dimensions than the rows have) is a stage of the plan,
//! which the executor runs once. One pass to a file:
//!
//! | pass | decides |
//! |---|---|
//! | `boxes` | the box of the rows that ranges of positions leave |
//! | `stages` | which conditions are evaluated before the first tile, and which tile by tile |
//! | `order` | the order of conditions |
//! | `zones`, `bounds` | what zone maps and histograms say of a tile |
//! | `access_path` | whether a sorted replica gives the rows |
//! | `fetch_path` | which arrays the result reads, and how |
//! | `statistics` | aggregates of tiles that zone maps know |
//! | `expectation` | about how many rows a condition selects |
//! | `price` | what all of it takes |
//!
//! Conditions come in normal form and as intervals of stored values from binding ([`crate::bind`]).

mod access_path;
mod bounds;
mod boxes;
mod cost_of_boxes;
mod describe;
mod effort;
mod expectation;
mod fetch_path;
mod order;
mod price;
mod stages;
mod statistics;
mod touched;
mod zones;

use std::sync::{Arc, OnceLock};

use sieva_types::{Bx, Result};

pub(crate) use access_path::ReplicaPath;
pub(crate) use bounds::{Bounds, all_bounds, any_bounds};
pub(crate) use boxes::cut;
pub use describe::{Description, Found};
pub(crate) use fetch_path::{FetchPath, Fetched};
pub use price::{Expected, Price, UNBOUNDED};
pub(crate) use stages::Step;
pub(crate) use statistics::Known;
pub use touched::Touched;
pub(crate) use zones::{within_all, within_any};

use crate::bind::Condition;
use crate::exec::Execution;
use crate::exec::access_path::zone_map::Outlook;
use crate::exec::tile::Tiles;

/// How a query is going to be run. A value: made once, kept with the query, the same for all that is asked of it.
#[derive(Debug)]
pub struct PhysicalPlan {
    /// The box of the rows outside of which nothing is selected, as far as it is known before anything is read.
    pub(crate) area: Bx,
    /// What must hold within it besides what the replica answers: masks first, each group in the order of its rank.
    pub(crate) steps: Vec<Step>,
    /// The replica that gives the rows, if one does.
    pub(crate) replica: Option<ReplicaPath>,
    /// The replica that tells their number alone.
    pub(crate) counted_by: Option<ReplicaPath>,
    /// How the values of the result are fetched.
    pub(crate) fetch: Vec<FetchPath>,
    /// What zone maps say of its tiles, once somebody asked.
    rows: OnceLock<(Outlook, Bounds)>,
    /// How many of its tiles aggregates take from statistics, once somebody asked.
    known: OnceLock<Option<(u64, u64)>>,
}

impl PhysicalPlan {
    /// Makes the plan of a query; `replicas` is whether one may give the rows.
    pub(crate) fn new(execution: &Execution, replicas: bool) -> Self {
        let mut parts = match &execution.bound.condition {
            Condition::All(parts) => parts.clone(),
            other => vec![other.clone()],
        };
        let counted_by = execution.counting_path(&parts).filter(|_| replicas);
        let replica = execution.replica_path(&parts).filter(|_| replicas);
        if let Some(path) = &replica {
            let mut number = 0;
            parts.retain(|_| {
                number += 1;
                !path.answered.contains(&(number - 1))
            });
        }
        let mut area = Bx::whole(&execution.bound.rows.shape);
        parts.retain(|part| !boxes::cut_by(&execution.bound, part, &mut area));
        order::sort(execution, &mut parts);
        let steps: Vec<Step> = parts.iter().map(|part| execution.step(part, &area)).collect();
        let fetch = execution.fetch_paths(replica.as_ref());
        Self { area, steps, replica, counted_by, fetch, rows: OnceLock::new(), known: OnceLock::new() }
    }

    /// The tiles of its area, as they are if the first stage does not shrink it.
    pub(crate) fn tiles(&self, execution: &Execution) -> Tiles {
        self.tiles_with(execution, &[])
    }

    /// The same where arrays are read besides those of the condition.
    pub(crate) fn tiles_with(&self, execution: &Execution, also: &[usize]) -> Tiles {
        let mut tested = Vec::new();
        self.steps.iter().for_each(|step| step.tested(&mut tested));
        execution.tiles_over(&self.area, &tested, also, 0)
    }
}

impl Execution {
    /// What zone maps say of the tiles of a plan, and bounds of the number of rows.
    pub(crate) fn planned_rows(&self, plan: &PhysicalPlan, tiles: &Tiles) -> Result<(Outlook, Bounds)> {
        if let Some(known) = plan.rows.get() {
            return Ok(*known);
        }
        let outlook = self.outlook_of(plan, tiles)?;
        let (mut low, mut high) = outlook.rows;
        if let Some(path) = plan.replica.as_ref().or(plan.counted_by.as_ref()) {
            high = high.min(path.rows.1);
            if path.answers_all && path.tests.is_empty() {
                low = low.max(path.rows.0);
            }
        }
        Ok(*plan.rows.get_or_init(|| (outlook, (low.min(high), high))))
    }

    /// The physical plan of this query, made when it is first asked for.
    pub fn physical(&self) -> &Arc<PhysicalPlan> {
        self.physical.get_or_init(|| Arc::new(PhysicalPlan::new(self, true)))
    }
}
