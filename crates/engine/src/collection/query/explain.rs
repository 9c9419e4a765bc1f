//! How a query of a collection is answered, in words.

use std::fmt::Write as _;

use super::*;
use crate::explain::price_lines;

impl CollectionQuery {
    /// How it is answered, and what that takes; `analyze` runs it and adds what happened. The sources of all objects are
    /// opened for it, as for [`CollectionQuery::price`].
    ///
    /// # Errors
    /// As [`CollectionQuery::count`].
    pub fn explain(&self, analyze: bool) -> Result<String> {
        let inner = &self.inner;
        let shape = &inner.shape;
        let mut out = String::new();
        let filter = match shape.filter_text.join(" AND ") {
            none if none.is_empty() => "no condition on keys".to_string(),
            some => some,
        };
        let before = *inner.lock_stats();
        let _ = writeln!(out, "collection {}", inner.collection.name());
        let _ = writeln!(out, "catalog    {filter}");
        let _ = writeln!(out, "           {} objects in {} sources", before.objects, before.sources);
        let rest = if shape.rest_text.is_empty() { "no condition on data" } else { &shape.rest_text };
        let _ = writeln!(out, "data       {rest}");
        let _ = writeln!(out, "arrays     {}", shape.arrays.join(", "));
        price_lines(&mut out, &self.price()?);
        if analyze {
            self.analyze(&mut out)?;
        }
        Ok(sieva_types::printable_lines(&out).into_owned())
    }

    fn analyze(&self, out: &mut String) -> Result<()> {
        let rows = self.count()?;
        let s = self.stats();
        let _ = writeln!(
            out,
            "analyzed   {rows} rows; {} objects evaluated, {} lack an array; {} sources opened",
            s.evaluated, s.lacking, s.sources_opened
        );
        let _ = writeln!(out, "           {} bytes in {} requests", s.bytes_read, s.requests);
        let _ = writeln!(
            out,
            "           catalog {:.6} s, open and evaluate {:.6} s",
            s.catalog_seconds, s.run_seconds
        );
        Ok(())
    }
}
