//! Whether a plan makes sense by itself, without the source.

use std::collections::HashSet;

use sieva_types::{Error, ErrorKind, Result};

use crate::expr::{Expr, MAX_DEPTH};
use crate::given::is_function;
use crate::plan::{Plan, Step};

impl Plan {
    /// Makes sure that steps stand in their order, that ids are those of columns that are there, and that nothing is
    /// nested too deep.
    ///
    /// # Errors
    /// `invalid-value`, which names the step.
    pub fn check(&self) -> Result<()> {
        self.check_within(MAX_DEPTH)
    }

    fn check_within(&self, depth: usize) -> Result<()> {
        self.check_scan()?;
        let scanned = self.scan.columns.len();
        let mut ids = 0..scanned;
        let mut last = None;
        for step in &self.steps {
            let (name, place) = step.place();
            if last.is_some_and(|l| l >= place) {
                let order = "filter, aggregate, having, sort, project, distinct, limit, each at most once";
                return Err(wrong(format!("the step '{name}' stands behind one that follows it")).hint(order));
            }
            last = Some(place);
            for e in step.exprs() {
                check_expr(e, &ids, depth).map_err(|e| e.at(format!("step '{name}' of the plan")))?;
            }
            match step {
                Step::Aggregate { keys, calls } => {
                    if let Some(call) = calls.iter().find(|call| !is_function(&call.function)) {
                        return Err(no_word(&call.function));
                    }
                    ids = scanned..scanned + keys.len() + calls.len();
                }
                Step::Having(_) if ids.start == 0 && scanned > 0 => {
                    return Err(wrong("'having' without 'aggregate'"));
                }
                // No text would say it, nor a file have it.
                Step::Project(outputs) if outputs.iter().any(|o| o.name.is_empty()) => {
                    return Err(wrong("a column of the result has no name"));
                }
                Step::Distinct if self.outputs().is_empty() => {
                    return Err(wrong("'distinct' without 'project'"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_scan(&self) -> Result<()> {
        let rows: HashSet<&str> = self.scan.rows.iter().map(String::as_str).collect();
        if rows.len() < self.scan.rows.len() {
            return Err(wrong("the rows have a dimension twice"));
        }
        for column in &self.scan.columns {
            if let Some(dim) = column.dims.iter().find(|d| !rows.contains(d.as_str())) {
                let message = format!("column '{}' varies along '{dim}', which the rows lack", column.path);
                return Err(wrong(message));
            }
        }
        Ok(())
    }
}

fn wrong(what: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidValue, format!("not a plan: {}", what.into()))
}

fn no_word(name: &str) -> Error {
    wrong(format!("{name:?} is no name of a function: letters, digits and '_'"))
}

fn check_expr(expr: &Expr, ids: &std::ops::Range<usize>, depth: usize) -> Result<()> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(wrong(format!("expressions are nested deeper than {MAX_DEPTH}")));
    };
    match expr {
        Expr::Column(id) if !ids.contains(&(id.0 as usize)) => {
            let (first, end) = (ids.start, ids.end);
            Err(wrong(format!("there is no column {}; there are those from {first} to below {end}", id.0)))
        }
        Expr::Call(function, _) if !is_function(function) => Err(no_word(function)),
        Expr::Subquery(plan) => plan.check_within(depth),
        _ => expr.children().into_iter().try_for_each(|c| check_expr(c, ids, depth)),
    }
}
