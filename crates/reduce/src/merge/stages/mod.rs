//! Plans of several consumers, each once, in an order in which what one needs of another is there (section V.B).
//!
//! A subquery is a plan like any other: the mean that DR6 compares with and the mean that somebody asks for (DR3) are one
//! [`Unit`]. Units of one stage do not depend on one another: they can be run as one scan. Values of a stage are put into
//! the plans of the later ones ([`Stages::ready`]).

mod substitute;
#[cfg(test)]
mod tests;
mod value;

use std::collections::HashMap;

use sieva_plan::{Expr, Plan, SourceRef, Step};
use sieva_types::{Error, ErrorKind, Result};

pub use substitute::substitute;
pub use value::Value;

/// A plan that is run once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The plan in its one form, with the subqueries that it was asked with.
    pub plan: Plan,
    /// Its name, [`Plan::id`].
    pub id: String,
    /// The stage in which it can be run, from 0.
    pub stage: usize,
    /// The units whose values it needs, each once.
    pub needs: Vec<usize>,
    /// Who asked for it, in order, each once; nobody where only its value is needed.
    pub who: Vec<u32>,
    /// Whether another unit needs it as one value.
    pub is_value: bool,
}

/// Units and their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stages {
    /// The units; each stands behind those that it needs.
    pub units: Vec<Unit>,
    /// The numbers of the units of each stage.
    pub stages: Vec<Vec<usize>>,
    /// Units by their plans.
    known: HashMap<Plan, usize>,
}

impl Stages {
    /// The stages of what consumers ask for.
    ///
    /// Plans are equal if their one forms are, with names of columns and source: make all of them of the source that they
    /// are run on. A subquery without a source of its own is of that of the plan it stands in. Plans of a collection are
    /// run as they are.
    ///
    /// # Errors
    /// `invalid-value` for what is no plan.
    ///
    /// ```
    /// use sieva_plan::{Call, Column, ColumnId, CompareOp, Expr, Output, Plan, Scan, Step, Type};
    /// use sieva_reduce::merge::stages::{Stages, Value};
    ///
    /// let temp = || Scan::given(vec![Column::of_array("TEMP", Type::Float64, &["x"])], &["x"]);
    /// let column = Expr::Column(ColumnId(0));
    /// // DR3, which consumer 1 asks for.
    /// let call = Call { function: "avg".into(), argument: Some(column.clone()), distinct: false, parameters: vec![] };
    /// let project = Step::Project(vec![Output::new("avg(TEMP)", Expr::Column(ColumnId(1)))]);
    /// let mean = Plan { scan: temp(), steps: vec![Step::Aggregate { keys: vec![], calls: vec![call] }, project] };
    /// // DR6 of consumer 2: TEMP >= mean(TEMP).
    /// let above = Expr::compare(CompareOp::GtEq, column.clone(), Expr::Subquery(Box::new(mean.clone())));
    /// let project = Step::Project(vec![Output::new("TEMP", column)]);
    /// let warm = Plan { scan: temp(), steps: vec![Step::Filter(above), project] };
    ///
    /// let stages = Stages::of(&[(2, warm), (1, mean)])?;
    /// assert_eq!(stages.stages, [vec![0], vec![1]]);
    /// assert_eq!((stages.units[0].who.as_slice(), stages.units[1].who.as_slice()), (&[1][..], &[2][..]));
    /// // The mean was 4.5: it stands in the plan of the second stage now.
    /// let ready = stages.ready(1, &|_| Some(Value::Float(4.5)))?;
    /// assert!(!format!("{ready:?}").contains("Subquery"));
    /// # Ok::<(), sieva_types::Error>(())
    /// ```
    pub fn of(asked: &[(u32, Plan)]) -> Result<Self> {
        let mut this = Self::default();
        for (who, plan) in asked {
            plan.check()?;
            let unit = this.add(plan.canonical())?;
            let list = &mut this.units[unit].who;
            if let Err(place) = list.binary_search(who) {
                list.insert(place, *who);
            }
        }
        let last = this.units.iter().map(|u| u.stage + 1).max().unwrap_or(0);
        this.stages.resize(last, Vec::new());
        for (number, unit) in this.units.iter().enumerate() {
            this.stages[unit.stage].push(number);
        }
        Ok(this)
    }

    /// The plan of a unit with the values of those that it needs in place of the subqueries: it can be run by itself, and
    /// gives what the unit's own plan gives, to the bit. `value_of` has the value of a unit by its number.
    ///
    /// # Errors
    /// `invalid-value` if there is no such unit, or a value is missing.
    pub fn ready(&self, unit: usize, value_of: &dyn Fn(usize) -> Option<Value>) -> Result<Plan> {
        let found = self.units.get(unit);
        let unit = found.ok_or_else(|| wrong(format!("no unit {unit}, there are {}", self.units.len())))?;
        if unit.needs.is_empty() {
            return Ok(unit.plan.clone());
        }
        substitute(&unit.plan, &mut |plan| {
            let needed = self.known.get(&own(&unit.plan.scan.source, plan));
            let value = needed.and_then(|&n| value_of(n));
            value.ok_or_else(|| wrong(format!("unit {} without the value of a subquery", unit.id)))
        })
    }

    /// The number of the unit of a plan in its one form, which is added with those that it needs.
    fn add(&mut self, plan: Plan) -> Result<usize> {
        if let Some(&known) = self.known.get(&plan) {
            return Ok(known);
        }
        let mut needs = Vec::new();
        if !matches!(plan.scan.source, SourceRef::Collection(_)) {
            let mut inner = Vec::new();
            plan.steps.iter().flat_map(Step::exprs).for_each(|e| subqueries(e, &mut inner));
            for sub in inner {
                let number = self.add(own(&plan.scan.source, sub))?;
                self.units[number].is_value = true;
                if !needs.contains(&number) {
                    needs.push(number);
                }
            }
        }
        let stage = needs.iter().map(|&n| self.units[n].stage + 1).max().unwrap_or(0);
        let number = self.units.len();
        self.known.insert(plan.clone(), number);
        let id = plan.id()?;
        self.units.push(Unit { plan, id, stage, needs, who: Vec::new(), is_value: false });
        Ok(number)
    }
}

/// A subquery as a plan by itself: of the source of the plan that it stands in, unless it has its own.
fn own(source: &SourceRef, sub: &Plan) -> Plan {
    let mut plan = sub.canonical();
    if plan.scan.source == SourceRef::Given {
        plan.scan.source = source.clone();
    }
    plan
}

/// The subqueries of an expression, not those within them.
fn subqueries<'e>(e: &'e Expr, found: &mut Vec<&'e Plan>) {
    if let Expr::Subquery(plan) = e {
        found.push(plan);
    }
    e.children().into_iter().for_each(|c| subqueries(c, found));
}

fn wrong(message: String) -> Error {
    Error::new(ErrorKind::InvalidValue, message)
}
