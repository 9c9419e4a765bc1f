//! What the kinds of server differ in: how each addresses an object, proves who asks, and lists what there is.

use std::pin::Pin;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Request};
use sieva_types::{Error, ErrorKind, Result};
use url::Url;

use super::failure::Failure;
use super::transport::Transport;
use crate::location::{encoded, redacted};
use crate::{Counters, Entry};

/// What comes later.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A request of a server as its store knows it, before it is addressed and signed.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    /// The object; empty for the place itself.
    pub(crate) key: &'a str,
    pub(crate) query: &'a [(&'a str, &'a str)],
    /// Headers that are signed with it.
    pub(crate) headers: HeaderMap,
    /// SHA-256 of its body; none where it has none.
    pub(crate) digest: Option<[u8; 32]>,
}

impl<'a> Call<'a> {
    /// A read of `key`; with `query` instead of a key, of a listing.
    pub(crate) fn get(key: &'a str, query: &'a [(&'a str, &'a str)]) -> Self {
        Self { method: Method::GET, key, query, headers: HeaderMap::new(), digest: None }
    }
}

/// How a service asks its server for more than a request of somebody else.
#[derive(Debug)]
pub(crate) struct Asking<'a> {
    pub transport: &'a Transport,
    pub counters: &'a Counters,
}

/// A server, and the place on it below which keys are.
pub(crate) trait Service: std::fmt::Debug + Send + Sync {
    /// The request of a call, ready to be sent but for its body.
    fn request<'a>(
        &'a self,
        client: &'a Client,
        call: Call<'a>,
    ) -> Pending<'a, std::result::Result<Request, Failure>>;

    /// Forgets a token that was refused; whether a new one can be had.
    fn renew<'a>(&'a self, refused: Option<&'a HeaderValue>) -> Pending<'a, bool> {
        let _ = refused;
        Box::pin(std::future::ready(false))
    }

    /// How messages name the place; without secrets.
    fn root(&self) -> String;

    /// How messages name an object; without secrets.
    fn name(&self, key: &str) -> String {
        match key {
            "" => self.root(),
            key => format!("{}/{key}", self.root().trim_end_matches('/')),
        }
    }

    /// What tells an object from all others, for caches: never shown, and without signatures that change with time.
    fn identity(&self, key: &str) -> String;

    /// Which server, for the limit of requests at once.
    fn authority(&self) -> String;

    /// The hint for a refusal.
    fn access(&self) -> &'static str;

    /// The normal form of an object's address, by which it is asked whether it may be opened.
    fn place(&self, key: &str) -> Result<Url>;

    /// How its objects are listed; none: they cannot be.
    fn listing(&self) -> Option<&'static Listing> {
        None
    }

    /// How objects are put; none: they cannot be.
    fn writing(&self) -> Option<&'static Writing> {
        None
    }

    /// An address by which an object can be read without a key, for so long.
    fn link<'a>(
        &'a self,
        asking: &'a Asking<'a>,
        key: &'a str,
        expires: Duration,
    ) -> Pending<'a, Result<Url>> {
        let _ = (asking, expires);
        let message = format!("'{}' has no addresses for those without a key", self.name(key));
        Box::pin(std::future::ready(Err(Error::new(ErrorKind::Unsupported, message))))
    }

    /// Whether redirects are followed: only where no secret of ours goes with the request in a header.
    fn follows_redirects(&self) -> bool {
        false
    }
}

/// The objects of a page, and where to go on, where there may be more.
pub(crate) type Page = std::result::Result<(Vec<Entry>, Option<String>), String>;

/// Listings, page by page.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The parameter that asks for one.
    pub asks: (&'static str, &'static str),
    /// The parameter that says where to go on.
    pub next: &'static str,
    /// Reads a page.
    pub page: fn(&[u8]) -> Page,
}

/// How objects are put.
#[derive(Debug)]
pub(crate) struct Writing {
    /// The header by which the server compares the body with its MD5, and refuses one that was damaged on its way.
    pub sum: fn(&[u8; 16]) -> (HeaderName, String),
    /// Whether requests are signed with the SHA-256 of their bodies.
    pub signs: bool,
    /// Whether the first object makes the container.
    pub makes_container: bool,
    /// The longest body that is held in memory and sent as it is.
    pub small: u64,
    /// How longer ones are sent.
    pub large: Large,
}

/// How long bodies are sent.
#[derive(Debug)]
pub(crate) enum Large {
    /// In parts, several at once, which the server puts together (S3).
    Parts(Parts),
    /// In one request, read as it goes; of so many bytes at most.
    Whole(u64),
}

/// The sizes of parts.
#[derive(Debug)]
pub(crate) struct Parts {
    /// Bytes of a part, where there are not too many of them.
    pub size: u64,
    /// The most parts.
    pub most: u64,
    /// The most bytes of all parts together.
    pub total: u64,
    /// Bytes in memory at once; one part at least.
    pub memory: u64,
}

/// The normal form of the address of an object in a container.
pub(crate) fn within(scheme: &str, container: &str, key: &str) -> Result<Url> {
    address(
        &Url::parse(&format!("{scheme}://{container}/"))
            .map_err(|e| Error::new(ErrorKind::InvalidValue, e.to_string()))?,
        key,
        &[],
    )
}

/// The address of `key` below `base`, with the query of `base`.
pub(crate) fn below(base: &Url, key: &str) -> Result<Url> {
    let mut url = base.clone();
    if !key.is_empty() {
        let path = format!("{}/{}", base.path().trim_end_matches('/'), encoded(key, '/'));
        url.set_path(&path);
    }
    Ok(url)
}

/// The address `base` + `key` + `query`, each encoded as signatures want it.
pub(crate) fn address(base: &Url, key: &str, query: &[(&str, &str)]) -> Result<Url> {
    let mut text = below(base, key)?.to_string();
    for (i, (name, value)) in query.iter().enumerate() {
        text.push(if i == 0 { '?' } else { '&' });
        text.push_str(&format!("{}={}", encoded(name, '-'), encoded(value, '-')));
    }
    Url::parse(&text).map_err(|e| {
        Error::new(ErrorKind::InvalidValue, format!("'{}' is no valid address: {e}", redacted(&text)))
    })
}

/// A variable of the environment that is set and not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_go_below_and_the_query_stays() {
        let base = Url::parse("http://h/a/b/?token=1").unwrap();
        assert_eq!(below(&base, "c d/0.0").unwrap().as_str(), "http://h/a/b/c%20d/0.0?token=1");
        assert_eq!(below(&base, "").unwrap(), base);
        let base = Url::parse("http://h/b").unwrap();
        let listing = address(&base, "", &[("list-type", "2"), ("prefix", "a b/")]).unwrap();
        assert_eq!(listing.as_str(), "http://h/b?list-type=2&prefix=a%20b%2F");
    }
}
