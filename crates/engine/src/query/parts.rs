//! A part of a query's rows as a query, and a query whose answer was found elsewhere.

use std::sync::{Arc, Mutex};

use sieva_query::exec::GroupTable;
use sieva_types::{Bx, Result, Selection};

use super::Query;
use super::made::Asked;
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
        let asked = self.asked((Arc::default(), Arc::clone(&self.cache)));
        let bound = asked.bound.clone().within(bx);
        Self::alone(&self.source, Asked { bound, within: Some(bx.clone()), ..asked }, &self.options)
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
        let asked = self.asked((Arc::new(Mutex::new(evaluated)), Arc::clone(&self.cache)));
        let made = Self::made(&self.source, asked, &self.options)?;
        if let Some(table) = groups {
            made.set_groups(table);
        }
        Ok(made)
    }
}
