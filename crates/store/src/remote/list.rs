//! Listings, page by page.

use sieva_types::{Error, ErrorKind, Result};

use super::attempt::Ask;
use super::service::Service;
use super::transport::Transport;
use super::{s3, swift};
use crate::{Counters, Entry, Span};

/// Pages of a thousand (S3) to ten thousand (Swift) names: more than this is a server that never comes to an end.
const MOST_PAGES: usize = 1_000_000;

pub(crate) fn can_list(service: &Service) -> bool {
    !matches!(service, Service::Http(_))
}

/// All objects whose whole keys begin with `prefix`.
pub(crate) async fn all(transport: &Transport, prefix: &str, counters: &Counters) -> Result<Vec<Entry>> {
    transport.check(prefix)?;
    let is_swift = matches!(transport.service, Service::Swift(_));
    let mut entries = Vec::new();
    let mut next: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let mut query = match is_swift {
            true => vec![("format", "json"), ("prefix", prefix)],
            false => vec![("list-type", "2"), ("prefix", prefix)],
        };
        if let Some(next) = &next {
            query.push((if is_swift { "marker" } else { "continuation-token" }, next));
        }
        let ask = Ask { key: "", query: &query, span: Span::All, version: None };
        let body = transport.fetch(&ask, counters).await?.bytes;
        let read = if is_swift { swift_page(&body) } else { s3::page(&body) };
        let (page, after) = read.map_err(|e| unreadable(transport, &e))?;
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

/// Swift gives pages until an empty one; the last name marks where to go on.
fn swift_page(body: &[u8]) -> std::result::Result<(Vec<Entry>, Option<String>), String> {
    let page = swift::page(body)?;
    let next = page.last().map(|entry| entry.key.clone());
    Ok((page, next))
}

fn unreadable(transport: &Transport, why: &str) -> Error {
    let name = transport.service.name("");
    Error::new(ErrorKind::Io, format!("cannot read the server's listing of '{name}': {why}"))
}
