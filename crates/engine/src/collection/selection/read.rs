//! Values at the hits of a collection, and the query of one of its objects.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_query::exec::Column;
use sieva_types::{Error, ErrorKind, Result, Selection};

use super::super::query::{CollectionQuery, Given, Known};
use super::{All, CollectionSelection};
use crate::query::Query;

impl All {
    /// The query of these objects, which knows its hits.
    fn query(&self) -> Result<&CollectionQuery> {
        if let Some(known) = self.query.get() {
            return Ok(known);
        }
        let rows: HashMap<usize, Arc<Selection>> =
            self.found.iter().map(|(_, found)| Arc::clone(found)).enumerate().collect();
        let given = Given {
            sources: self.sources.clone(),
            classes: self.classes.clone(),
            example: Some(self.example.clone()),
            known: Known::Rows(rows),
        };
        let made = self.collection.query_given(&self.plan, &self.options, given)?;
        Ok(self.query.get_or_init(|| made))
    }
}

impl CollectionSelection {
    /// The values of `value` (an array of the objects, or an expression of such) at these of its hits, in their order, as
    /// `take` is called with them.
    ///
    /// # Errors
    /// `invalid-value` for hits that are not there; `unknown-array`, `dimension-mismatch`; `stale-source` where a source is no
    /// longer in the state that the hits are of; reading errors, told with the object; `cancelled`; what `take` gives.
    pub fn read(
        &self,
        value: &str,
        hits: Range<u64>,
        cancel: &Arc<AtomicBool>,
        take: impl FnMut(Column) -> Result<()>,
    ) -> Result<()> {
        let n = self.len();
        if hits.start > hits.end || hits.end > n {
            let message = format!("the hits {} to below {} of {n}", hits.start, hits.end);
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let part = self.part(hits.start, hits.end - hits.start);
        let query = self.all.query()?;
        if part.is_empty() {
            // Names are still to be right.
            return query.check_value(value);
        }
        let (first, last) = part.places();
        let parts: Vec<Arc<Selection>> = part.parts().collect();
        query.read_at(first..last, value, &|number| &*parts[number - first], cancel, take)
    }

    /// The query of object number `index` of its own, from 0, with the path of the object and its hits there.
    ///
    /// # Errors
    /// `invalid-value` where it has not so many; those of opening.
    pub fn object(&self, index: usize) -> Result<(Query, String, Arc<Selection>)> {
        let (first, n) = (self.places().0, self.object_count());
        let none = || {
            let message = format!("no object {index}: there are hits in {n}, from 0 on");
            Error::new(ErrorKind::InvalidValue, message)
        };
        let found = self.parts().nth(index).ok_or_else(none)?;
        let (query, path) = self.all.query()?.query_of(first + index)?.ok_or_else(none)?;
        Ok((query, path, found))
    }
}
