//! Queries as people send them to a source that is chosen already: a SELECT, or a condition alone.

use std::path::Path;

use sieva_plan::Plan;
use sieva_query::ast::Select;
use sieva_query::parse;
use sieva_types::{Error, ErrorKind, Result};

use crate::open::Source;
use crate::query::{Query, QueryOptions};
use crate::subqueries::Subqueries;

impl Source {
    /// A query by a whole SELECT, or by a condition alone, whose columns are those of `SELECT *`. A FROM is not needed;
    /// if there is one, it must name this source: its path, or the last parts of it.
    ///
    /// # Errors
    /// `syntax-error`, with the place, also for a FROM that names something else; others as [`Source::query`].
    pub fn ask(&self, text: &str, options: &QueryOptions) -> Result<Query> {
        Query::of_select(self, self.parse_query(text)?, options)
    }

    /// The plan of the same text; unlike [`Source::ask`] it looks up nothing but names.
    ///
    /// # Errors
    /// As [`Source::ask`].
    pub fn ask_plan(&self, text: &str, options: &QueryOptions) -> Result<Plan> {
        let (plan, _) = self.plan_select(&self.parse_query(text)?, &Subqueries::default(), options)?;
        Ok(self.named(plan.canonical()))
    }

    fn parse_query(&self, text: &str) -> Result<Select> {
        if !is_select(text) {
            let condition = Some(self.parse_condition(text)?);
            return Ok(Select { condition, ..Select::default() });
        }
        let select = parse::parse_select_with(text, &|name| self.knows(name))?;
        let named = match (&select.from, &select.collection) {
            (Some(from), _) => Some(format!("'{from}'")).filter(|_| !self.is_named(from)),
            (None, Some(collection)) => Some(format!("collection('{collection}')")),
            (None, None) => None,
        };
        match named {
            None => Ok(select),
            Some(named) => {
                let own = self.path().display();
                let message = format!("FROM {named}: the query is asked of '{own}', which is another source");
                Err(Error::new(ErrorKind::Syntax, message).hint("leave FROM out"))
            }
        }
    }

    /// Whether `name` is this source's path, or the last parts of it.
    fn is_named(&self, name: &str) -> bool {
        let relative = name.trim_start_matches('/');
        Path::new(name) == self.path() || (!relative.is_empty() && self.path().ends_with(relative))
    }
}

/// Whether a text is a whole SELECT, and not a condition alone.
pub(crate) fn is_select(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|word| word.eq_ignore_ascii_case("select"))
}
