//! A part of a query's rows as a query, and a query whose answer was found elsewhere.

use std::sync::{Arc, Mutex};

use sieva_query::bind::Bound;
use sieva_query::exec::GroupTable;
use sieva_types::{Bx, Error, ErrorKind, KeySet, Result, Selection};

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

/// Which of a query's rows are looked at.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Those in a box.
    Rows(Bx),
    /// Those whose value of an array of the schema has one of these keys.
    Keys(usize, KeySet),
}

impl Part {
    /// A bound query of these rows alone.
    ///
    /// # Errors
    /// `invalid-value` where the query asks for no range of the array.
    pub(super) fn of(&self, bound: Bound) -> Result<Bound> {
        match self {
            Self::Rows(bx) => Ok(bound.within(bx)),
            Self::Keys(array, keys) => bound.of_keys(*array, keys).ok_or_else(|| {
                let message = "a task by values of an array of which its query asks for no range";
                Error::new(ErrorKind::InvalidValue, message)
            }),
        }
    }
}

impl Query {
    /// The query of a part of the rows, all of it that satisfy its condition.
    pub(crate) fn within(&self, part: Part) -> Result<Self> {
        let asked = self.asked((Arc::default(), Arc::clone(self.cache())));
        let bound = part.of(asked.bound.clone())?;
        Self::alone(&self.source, Asked { bound, within: Some(part), ..asked }, &self.options)
    }

    /// The same query at these positions: its condition was evaluated elsewhere, and is not looked at here. ORDER BY, OFFSET,
    /// LIMIT and DISTINCT are applied to the rows at them.
    ///
    /// # Errors
    /// `invalid-value` for positions of other rows; `unsupported` for groups.
    pub fn at(&self, selection: Selection) -> Result<Self> {
        if self.is_grouped() {
            return Err(Error::new(ErrorKind::Unsupported, "positions for a query whose rows are groups"));
        }
        self.check_positions(&selection)?;
        self.knowing(Known::Selection(selection))
    }

    /// That these are positions of this query's rows.
    pub(crate) fn check_positions(&self, selection: &Selection) -> Result<()> {
        let rows = &self.bound().rows;
        if selection.dims() == rows.names && selection.shape() == rows.shape {
            return Ok(());
        }
        let message = format!("{selection:?} is no selection of the rows of this query");
        Err(Error::new(ErrorKind::InvalidValue, message))
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
        let asked = self.asked((Arc::new(Mutex::new(evaluated)), Arc::clone(self.cache())));
        let made = Self::made(&self.source, asked, &self.options)?;
        if let Some(table) = groups {
            made.set_groups(table);
        }
        Ok(made)
    }
}
