//! What may be asked in parts, and of which queries.

use sieva_plan::{Expr, Plan, SourceRef, Step};
use sieva_query::aggregate::Aggregate;
use sieva_query::bind::Body;
use sieva_types::{Error, ErrorKind, Result};

use crate::query::Query;

/// What tasks give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskKind {
    /// The number of rows that satisfy the condition.
    Count,
    /// Their positions, of which all else is fetched in the end.
    Selection,
    /// Groups with their aggregates.
    Groups,
}

impl TaskKind {
    /// All of them, in the order of their codes in bytes.
    pub const ALL: &[Self] = &[Self::Count, Self::Selection, Self::Groups];

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Selection => "selection",
            Self::Groups => "groups",
        }
    }

    /// The kind of this name.
    ///
    /// # Errors
    /// `invalid-value` where there is none.
    pub fn named(name: &str) -> Result<Self> {
        let found = Self::ALL.iter().copied().find(|kind| kind.name() == name);
        found.ok_or_else(|| {
            let message = format!("'{name}' is nothing that tasks give: expected count, selection or groups");
            Error::new(ErrorKind::InvalidValue, message)
        })
    }

    /// Its code in bytes.
    pub(crate) fn code(self) -> u8 {
        Self::ALL.iter().position(|&k| k == self).unwrap_or_default() as u8
    }

    /// The kind of a code.
    pub(crate) fn of_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// What answers all that may be asked of a query.
    pub(super) fn of(query: &Query) -> Self {
        let by_groups = query.is_grouped() && !query.known().reduces_in_order();
        if by_groups { Self::Groups } else { Self::Selection }
    }

    /// That it is to be had of a query in parts.
    pub(crate) fn check(self, query: &Query) -> Result<()> {
        let refuse = |what: &str, hint: &str| Err(Error::new(ErrorKind::Unsupported, what).hint(hint));
        match (self, &query.bound().body) {
            (Self::Groups, Body::Rows) => {
                refuse("tasks of the groups of a query without them", "ask for its selection")
            }
            (Self::Count, Body::Groups { .. }) => {
                refuse("tasks that count groups: one may have rows in many", "ask for the groups")
            }
            (Self::Count, Body::Rows) if query.bound().distinct => {
                refuse("tasks that count different rows: one may be in many", "ask for the selection")
            }
            (Self::Groups, Body::Groups { aggregates, .. })
                if aggregates.iter().any(|(a, _)| *a == Aggregate::Reduction) =>
            {
                refuse(
                    "tasks of the groups of a reduction of yours, which sees its rows in their order",
                    "ask for the selection, of which the groups are made in the end",
                )
            }
            (Self::Groups, Body::Groups { aggregates, .. })
                if aggregates.iter().any(|(a, _)| a.needs_range()) =>
            {
                refuse(
                    "tasks of a histogram without a range, which all rows decide",
                    "write histogram(x, bins, low, high); SELECT min(x), max(x) tells both",
                )
            }
            _ => Ok(()),
        }
    }
}

/// That a plan asks nothing of other sources, whose state a task does not tell.
pub(super) fn refuse_other_sources(plan: &Plan) -> Result<()> {
    let mut all: Vec<&Expr> = Vec::new();
    for step in &plan.steps {
        match step {
            Step::Filter(e) | Step::Having(e) => all.push(e),
            Step::Aggregate { keys, calls } => {
                all.extend(keys);
                all.extend(calls.iter().filter_map(|c| c.argument.as_ref()));
            }
            Step::Sort(keys) => all.extend(keys.iter().map(|k| &k.value)),
            Step::Project(outputs) => all.extend(outputs.iter().map(|o| &o.value)),
            Step::Distinct | Step::Limit { .. } => {}
        }
    }
    while let Some(expr) = all.pop() {
        all.extend(expr.children());
        let Expr::Subquery(inner) = expr else { continue };
        if inner.scan.source != SourceRef::Given {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "tasks of a query with a subquery of another source",
            )
            .hint("ask the subquery first, and write its value"));
        }
        refuse_other_sources(inner)?;
    }
    Ok(())
}
