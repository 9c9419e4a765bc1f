//! A query as a logical plan, and a plan as a query.

use std::time::Instant;

use sieva_plan::{Plan, SourceRef};
use sieva_query::ast::{Expr, Select};
use sieva_query::bind::{BindOptions, Bound, Planned};
use sieva_query::logical::{plan_rows, plan_select, select_of};
use sieva_query::lower::{Answer, LowerOptions, lower, misfit};
use sieva_store::without_secrets;
use sieva_types::{Error, ErrorKind, Result};

use crate::open::Source;
use crate::query::{Query, QueryOptions, functions_of};
use crate::subqueries::Subqueries;

impl Query {
    /// The query as data, in its one form; subqueries are plans of their own. It was made with the query: nothing is read
    /// or run for it. Its [id](Plan::id) is the query's.
    ///
    /// # Errors
    /// None any more: a query that is nested deeper than a plan may be is not made.
    pub fn logical_plan(&self) -> Result<Plan> {
        Ok(self.source().named(self.canonical_plan().clone()))
    }
}

impl Source {
    /// The query that a plan stands for. Its source must be this one: given, or of the same path. Nothing is read or run
    /// until something is asked of it.
    ///
    /// # Errors
    /// `invalid-value` for what is no plan, of another source, or made for arrays of other dimensions or types;
    /// `unknown-array` and the like where those arrays are not there.
    ///
    /// # Example
    /// ```no_run
    /// # fn main() -> sieva::Result<()> {
    /// let source = sieva::Source::open("pop.nc", &sieva::OpenOptions::default())?;
    /// let options = sieva::QueryOptions::default();
    /// let bytes = source.sql("SELECT max(TEMP) WHERE z_t < 500", &options)?.logical_plan()?.to_bytes()?;
    /// let plan = sieva::Plan::from_bytes(&bytes)?;
    /// assert_eq!(source.query_plan(&plan, &options)?.logical_plan()?.id()?, plan.id()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn query_plan(&self, plan: &Plan, options: &QueryOptions) -> Result<Query> {
        let started = Instant::now();
        let own = self.path().to_string_lossy();
        match &plan.scan.source {
            SourceRef::Given => {}
            SourceRef::Path(path) if *path == without_secrets(&own) => {}
            SourceRef::Path(other) => return Err(of_another(&format!("'{other}'"), &own)),
            SourceRef::Collection(name) => return Err(of_another(&format!("collection('{name}')"), &own)),
        }
        plan.check()?;
        if plan.outputs().is_empty() {
            return Err(Error::new(ErrorKind::InvalidValue, "the plan has no columns of a result")
                .hint("add a step 'project'"));
        }
        self.check_fits(plan, options)?;
        Query::of_plan(self, plan.canonical(), options, started)
    }

    /// A plan with this source named in it.
    pub(crate) fn named(&self, mut plan: Plan) -> Plan {
        plan.scan.source = SourceRef::Path(without_secrets(&self.path().to_string_lossy()));
        plan
    }

    /// Makes sure that a plan that came from elsewhere is of this source's arrays.
    pub(crate) fn check_fits(&self, plan: &Plan, options: &QueryOptions) -> Result<()> {
        let Some(why) = misfit(self.schema(), plan, self.valid_range(), options.cross)? else {
            return Ok(());
        };
        let message = format!(
            "the plan is of arrays of other dimensions or types than those in '{}': {why}",
            without_secrets(&self.path().to_string_lossy())
        );
        Err(Error::new(ErrorKind::InvalidValue, message).hint("make the plan anew for this source"))
    }

    /// The plan of a SELECT as it was asked, and the type of its first column. Subqueries are planned, not run.
    pub(crate) fn plan_select(
        &self,
        select: &Select,
        subqueries: &Subqueries,
        options: &QueryOptions,
    ) -> Result<Planned> {
        self.resolving(subqueries, options, |binding| plan_select(self.schema(), select, binding))
    }

    /// The same of a condition and of what is read of its rows, which have at least the dimensions `base`.
    pub(crate) fn plan_rows(
        &self,
        base: &[usize],
        condition: Option<&Expr>,
        select: Option<&[Expr]>,
        subqueries: &Subqueries,
        options: &QueryOptions,
    ) -> Result<Planned> {
        self.resolving(subqueries, options, |binding| {
            plan_rows(self.schema(), base, condition, select, binding)
        })
    }

    fn resolving(
        &self,
        subqueries: &Subqueries,
        options: &QueryOptions,
        f: impl FnOnce(&BindOptions<'_>) -> Result<Planned>,
    ) -> Result<Planned> {
        let subqueries = |select: &Select| subqueries.planned(self, select, options);
        let functions = &functions_of(self.session(), options);
        let (valid_range, cross) = (self.valid_range(), options.cross);
        f(&BindOptions { valid_range, cross, subqueries: &subqueries, functions })
    }

    /// The bound query of a plan of this source; what its subqueries give stays open.
    pub(crate) fn lowered(
        &self,
        plan: &Plan,
        subqueries: &Subqueries,
        options: &QueryOptions,
    ) -> Result<Bound> {
        self.lowered_with(plan, &[], &|plan| subqueries.unknown(self, plan, options), options)
    }

    /// The bound query of a plan of this source with the values of its subqueries, which are run unless they were.
    pub(crate) fn lowered_to_run(
        &self,
        plan: &Plan,
        subqueries: &Subqueries,
        options: &QueryOptions,
    ) -> Result<Bound> {
        self.lowered_with(plan, &[], &|plan| subqueries.answered(self, plan, options), options)
    }

    /// The same, with what `subqueries` says of each; `constants` are those of an object of a collection.
    pub(crate) fn lowered_with(
        &self,
        plan: &Plan,
        constants: &[Answer],
        subqueries: &dyn Fn(&Plan) -> Result<Answer>,
        options: &QueryOptions,
    ) -> Result<Bound> {
        let (valid_range, functions) = (self.valid_range(), &functions_of(self.session(), options));
        lower(self.schema(), plan, &LowerOptions { valid_range, subqueries, constants, functions })
    }
}

/// A plan as the text of a SELECT, which gives the same plan again.
///
/// # Errors
/// `invalid-value` for what is no plan, or has no columns of a result.
pub fn plan_text(plan: &Plan) -> Result<String> {
    Ok(select_of(plan)?.to_string())
}

fn of_another(other: &str, own: &str) -> Error {
    let message = format!("the plan is of {other}, and was asked of '{}'", without_secrets(own));
    Error::new(ErrorKind::InvalidValue, message).hint("ask that source, or make the plan anew for this one")
}
