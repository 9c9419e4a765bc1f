//! Listings, page by page.

use sieva_types::{Error, ErrorKind, Result};

use super::attempt::Ask;
use super::service::Listing;
use super::transport::Transport;
use crate::{Counters, Entry, Span};

/// Pages of a thousand (S3) to ten thousand (Swift) names: more than this is a server that never comes to an end.
const MOST_PAGES: usize = 1_000_000;

/// All objects whose whole keys begin with `prefix`.
pub(crate) async fn all(
    transport: &Transport,
    listing: &Listing,
    prefix: &str,
    counters: &Counters,
) -> Result<Vec<Entry>> {
    transport.check(prefix)?;
    let mut entries = Vec::new();
    let mut next: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let mut query = vec![listing.asks, ("prefix", prefix)];
        if let Some(next) = &next {
            query.push((listing.next, next));
        }
        let ask = Ask { key: "", query: &query, span: Span::All, version: None, most: None };
        let body = transport.fetch(&ask, counters).await?.bytes;
        let (page, after) = (listing.page)(&body).map_err(|e| unreadable(transport, &e))?;
        entries.extend(page);
        if after.is_none() {
            return Ok(entries);
        }
        if after == next {
            return Err(unreadable(transport, "the same page comes again and again"));
        }
        next = after;
    }
    Err(unreadable(transport, "it has no end"))
}

fn unreadable(transport: &Transport, why: &str) -> Error {
    let name = transport.service.name("");
    Error::new(ErrorKind::Io, format!("cannot read the server's listing of '{name}': {why}"))
}
