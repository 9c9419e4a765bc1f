//! A part of a query's rows as a query, and a query whose answer was found elsewhere.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use sieva_query::exec::GroupTable;
use sieva_types::{Bx, Result, Selection};

use super::Query;
use super::positions::Evaluated;

/// What was found of a query elsewhere.
pub(crate) enum Known {
    /// The number of positions that satisfy the condition.
    Count(u64),
    /// The positions.
    Selection(Selection),
    /// The groups.
    Groups(GroupTable),
}

impl Query {
    /// The query of the rows in a box, all that satisfy its condition.
    pub(crate) fn within(&self, bx: &Bx) -> Result<Self> {
        let bound = self.execution.bound.clone().within(bx);
        Self::new(&self.source, bound, self.select.clone(), &self.options, Instant::now())
    }

    /// The same query, which knows this.
    pub(crate) fn knowing(&self, known: Known) -> Result<Self> {
        let mut evaluated = Evaluated::default();
        let mut groups = None;
        match known {
            Known::Count(n) => evaluated.set_count(n),
            Known::Selection(found) => evaluated.set_selection(Arc::new(found)),
            Known::Groups(table) => groups = Some(table),
        }
        let (bound, select) = (self.execution.bound.clone(), self.select.clone());
        let shared = (Arc::new(Mutex::new(evaluated)), Arc::clone(&self.cache));
        let made = Self::sharing(&self.source, bound, select, &self.options, (Instant::now(), shared))?;
        if let Some(table) = groups {
            made.set_groups(table);
        }
        Ok(made)
    }
}
