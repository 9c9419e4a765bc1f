//! Queries by condition trees, and values at positions that were selected before: what bindings of other
//! languages are made of, which have no need of query text.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_query::ast::{Expr, Name};
use sieva_query::bind::resolve;
use sieva_query::exec::{self, Column, ExecOptions, Execution, Gatherer};
use sieva_query::parse;
use sieva_types::{Error, ErrorKind, Result};

use crate::open::Source;
use crate::query::{Query, QueryOptions, memory_of_code};
use crate::session::Turn;
use crate::subqueries::Subqueries;

impl Source {
    /// The tree of a condition's text, read with the names of this source in mind (`a/b` is a path where there
    /// is one, else a division).
    ///
    /// # Errors
    /// `syntax-error`, with the place.
    pub fn parse_condition(&self, text: &str) -> Result<Expr> {
        parse::parse_condition_with(text, &|name| self.means(name))
    }

    /// The tree of a value: of an array where `text` is the name of one, whatever characters it has, else of
    /// an expression.
    ///
    /// # Errors
    /// `ambiguous-name`, `syntax-error`.
    pub fn parse_value(&self, text: &str) -> Result<Expr> {
        match self.resolve(text) {
            Ok(array) => Ok(Expr::name(self.schema().arrays[array].path.as_str())),
            Err(e) if e.kind() == ErrorKind::AmbiguousName => Err(e),
            Err(_) => parse::parse_expression_with(text, &|name| self.means(name)),
        }
    }

    /// The tree of any expression's text, read with the names of this source in mind.
    ///
    /// # Errors
    /// `syntax-error`, with the place.
    pub fn parse_expression(&self, text: &str) -> Result<Expr> {
        parse::parse_expression_with(text, &|name| self.means(name))
    }

    /// A tree that was made without knowing this source, with the names of this source in mind: a path that is none of
    /// them is a division, whose parts belong to the operators beside it.
    ///
    /// # Errors
    /// As [`Source::parse_expression`].
    pub fn settled(&self, expr: Expr) -> Result<Expr> {
        let mut is_other = false;
        expr.walk(&mut |e| {
            is_other |= match e {
                Expr::Name(n) => !n.quoted && n.text.trim_start_matches('/').contains('/') && !self.means(n),
                Expr::Subquery(_) => true,
                _ => false,
            };
        });
        // Only text knows how names and operators beside each other are grouped.
        if is_other { self.parse_expression(&expr.to_string()) } else { Ok(expr) }
    }

    /// A query by a condition tree (`None`: every position); as [`Source::query`] otherwise.
    ///
    /// # Errors
    /// `unknown-array`, `type-mismatch` and the like.
    pub fn query_tree(
        &self,
        condition: Option<Expr>,
        select: Option<Vec<Expr>>,
        options: &QueryOptions,
    ) -> Result<Query> {
        Query::of_condition(self, condition, select, options)
    }

    pub(crate) fn means(&self, name: &Name) -> bool {
        !matches!(resolve(self.schema(), &name.text), Err(e) if e.kind() == ErrorKind::UnknownArray)
    }
}

impl Query {
    /// The dimensions of the row space, outermost first, as indices in [`crate::Schema::dims`].
    pub fn row_dims(&self) -> &[usize] {
        &self.bound().rows.dims
    }

    /// A reader of `value` at any positions of this query's row space, whether they satisfy its condition or
    /// not; `cancel` stops it.
    ///
    /// # Errors
    /// `dimension-mismatch` where the value varies along a dimension that the rows do not have; reading errors.
    pub fn points(&self, value: &Expr, options: &QueryOptions, cancel: Arc<AtomicBool>) -> Result<Points> {
        let (source, rows) = (self.source(), &self.bound().rows);
        let select = std::slice::from_ref(value);
        let (subqueries, dims) = (Subqueries::default(), &rows.dims);
        let (plan, _) = source.plan_rows(dims, None, Some(select), &subqueries, options)?;
        let bound = source.lowered_to_run(&plan, &subqueries, options)?;
        if bound.rows != *rows {
            let (got, want) = (bound.rows.names.join(", "), rows.names.join(", "));
            return Err(Error::new(
                ErrorKind::DimensionMismatch,
                format!("'{value}' has rows ({got}), the query has rows ({want})"),
            ));
        }
        let memory = options.memory.unwrap_or_else(|| source.session().query_memory());
        let options = ExecOptions {
            threads: options.threads.unwrap_or_else(|| source.session().threads()).max(1),
            memory,
            room: None,
            code: memory_of_code(options, memory),
            spill: 0,
            cancel,
            // No condition is evaluated, so that no index is needed; a replica may still give the values.
            access: exec::Access::Auto,
            fetch: options.fetch,
            cache: Some(Arc::clone(self.cache())),
        };
        let execution = Arc::new(source.execution(bound, options)?);
        execution.fetch_from(self.execution()?.chosen());
        let turn = Turn::new(source.session(), execution.options.memory, &execution.options.cancel);
        Ok(Points { gatherer: Gatherer::new(Arc::clone(&execution)), execution, turn })
    }
}

/// Reads one value at positions; keeps decoded chunks from call to call.
pub struct Points {
    execution: Arc<Execution>,
    gatherer: Gatherer,
    turn: Turn,
}

impl Points {
    /// The values at `positions`, ascending, in C order of the row space.
    ///
    /// # Errors
    /// Reading errors and `cancelled`; `invalid-value` for a position outside of the row space.
    pub fn read(&mut self, positions: &[u64]) -> Result<Column> {
        let rows = self.execution.bound.rows.len();
        if let Some(outside) = positions.iter().find(|&&p| p >= rows) {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("position {outside} is none of the {rows} rows"),
            ));
        }
        let _entered = self.turn.enter()?;
        let mut columns = exec::fetch(&mut self.gatherer, &self.execution.bound.outputs, positions)?;
        columns.pop().ok_or_else(|| Error::new(ErrorKind::Internal, "nothing was fetched"))
    }
}
