//! The price of a query of a collection: that of its objects, put together.

use sieva_query::optimizer::{Expected, Price};

use super::*;

impl CollectionQuery {
    /// What giving back all of its rows takes, as a query that nothing was asked of yet. The sources of all objects are
    /// opened for it, as the query opens them again: what that reads and takes is in the price. No value is read.
    ///
    /// # Errors
    /// Those of opening, told with the object and its source; `cancelled`.
    pub fn price(&self) -> Result<Price> {
        let inner = &self.inner;
        let (started, options) = (Instant::now(), inner.object_options(&self.cancel));
        let work = |at: At<'_>| inner.query_at(at, &options)?.map(|query| query.price()).transpose();
        let mut price = Price::default();
        let walk = inner.walk(&self.cancel, &work, &mut |object| {
            object.iter().for_each(|object| price.add(object));
            Ok(())
        })?;
        price.rows = inner.rows_of(price.rows);
        price.bytes_returned = inner.template.execution()?.bytes_of_rows(price.rows);
        let (opened, traffic) = (started.elapsed().as_secs_f64(), walk.traffic);
        inner.add_opening(&mut price, (traffic.bytes_read, traffic.requests), opened);
        Ok(price)
    }
}

impl Inner {
    /// The rows that come back, of the sum of those of all objects.
    fn rows_of(&self, all: Expected<u64>) -> Expected<u64> {
        let shape = &self.shape;
        let all = match (shape.grouped, shape.by.is_empty()) {
            (false, _) => all,
            // One group, of no rows too.
            (true, true) => Expected { low: u64::from(shape.having.is_none()), expected: 1, high: 1 },
            // Objects may have groups in common, or no rows of their one group.
            (true, false) => Expected { low: 0, ..all },
        };
        let low = if shape.distinct { all.low.min(1) } else { all.low };
        let window = |n: u64| n.saturating_sub(shape.offset).min(shape.limit.unwrap_or(u64::MAX));
        Expected { low: window(low), expected: window(all.expected), high: window(all.high) }
    }

    /// Adds what opening reads and takes. Threads share the objects; rows that are enough for a LIMIT end the way.
    fn add_opening(&self, price: &mut Price, (bytes, requests): (u64, u64), seconds: f64) {
        let with = |n: Expected<u64>, more: u64| Expected {
            low: if self.shape.limit.is_some() { 0 } else { n.low },
            expected: n.expected.saturating_add(more),
            high: n.high.saturating_add(more),
        };
        price.bytes_read = with(price.bytes_read, bytes);
        price.requests = with(price.requests, requests);
        let (s, threads) = (&mut price.seconds, self.threads() as f64);
        (s.low, s.expected, s.high) = (s.low / threads, s.expected / threads + seconds, s.high + seconds);
    }
}
