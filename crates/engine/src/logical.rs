//! A query as a logical plan, and a plan as a query.

use sieva_plan::{Plan, SourceRef};
use sieva_query::ast::Select;
use sieva_query::bind::{BindOptions, Subqueries, bind_select};
use sieva_query::logical::{plan_of, select_of};
use sieva_query::values::ValueType;
use sieva_store::without_secrets;
use sieva_types::{Error, ErrorKind, Result};

use crate::open::Source;
use crate::query::{Query, QueryOptions};

impl Query {
    /// The query as data, in its one form; nothing is read or run for it, and subqueries are plans of their own.
    ///
    /// # Errors
    /// `invalid-value` for a query that is nested deeper than a plan may be.
    pub fn logical_plan(&self) -> Result<Plan> {
        self.source().plan_select(self.select(), self.options())
    }
}

impl Source {
    /// The query that a plan stands for. Its source must be this one: given, or of the same path.
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
        let own = self.path().to_string_lossy();
        match &plan.scan.source {
            SourceRef::Given => {}
            SourceRef::Path(path) if *path == without_secrets(&own) => {}
            SourceRef::Path(other) => return Err(of_another(&format!("'{other}'"), &own)),
            SourceRef::Collection(name) => return Err(of_another(&format!("collection('{name}')"), &own)),
        }
        let query = Query::of_select(self, Select { from: None, ..select_of(plan)? }, options)?;
        let mut here = self.logical_plan(query.select(), query.options())?.0;
        (here.scan.source, here.scan.cross) = (plan.scan.source.clone(), plan.scan.cross);
        if here == plan.canonical() {
            return Ok(query);
        }
        let message = format!(
            "the plan is of arrays of other dimensions or types than those in '{}'",
            without_secrets(&own)
        );
        Err(Error::new(ErrorKind::InvalidValue, message).hint("make the plan anew for this source"))
    }

    /// The plan of a SELECT over this source, which is named in it.
    pub(crate) fn plan_select(&self, select: &Select, options: &QueryOptions) -> Result<Plan> {
        let mut plan = self.logical_plan(select, options)?.0;
        plan.scan.source = SourceRef::Path(without_secrets(&self.path().to_string_lossy()));
        Ok(plan)
    }

    /// The plan of a SELECT over this source, and the type of its value where it is a subquery.
    fn logical_plan(&self, select: &Select, options: &QueryOptions) -> Result<(Plan, Option<ValueType>)> {
        let subquery = |select: &Select| {
            let (mut plan, value_type) = self.source_of(select)?.logical_plan(select, options)?;
            if plan.outputs().len() != 1 {
                let n = plan.outputs().len();
                let message = format!("a subquery used as a value has {n} columns, not one");
                return Err(Error::new(ErrorKind::TypeMismatch, message));
            }
            plan.scan.source = select.from.clone().map_or(SourceRef::Given, SourceRef::Path);
            Ok((plan, value_type))
        };
        let valid_range = self.valid_range();
        let subqueries = Subqueries::Plan(&subquery);
        let binding = BindOptions { valid_range, cross: options.cross, subqueries };
        let bound = bind_select(self.schema(), select, &binding)?;
        let plan = plan_of(self.schema(), &bound, options.cross || select.cross)?;
        Ok((plan, bound.outputs.first().and_then(|o| bound.type_of(&o.value))))
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
