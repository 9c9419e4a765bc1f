//! The kinds of server: how each addresses an object and proves who asks.

use http::HeaderValue;
use reqwest::{Client, Request};
use sieva_types::{Error, ErrorKind, Result};
use url::Url;

use super::failure::Failure;
use super::s3::S3;
use super::swift::Swift;
use crate::location::{encoded, redacted};

/// A server, and the place on it below which keys are.
#[derive(Debug)]
pub(crate) enum Service {
    /// A web server; the query of the address (a signature, maybe) goes with every request.
    Http(Url),
    S3(S3),
    Swift(Swift),
}

impl Service {
    /// A request for `key`, ready to be sent; with `query` instead of a key, for a listing.
    pub(crate) async fn request(
        &self,
        client: &Client,
        key: &str,
        query: &[(&str, &str)],
    ) -> std::result::Result<Request, Failure> {
        match self {
            // Built by the client, which makes a header of user and password.
            Self::Http(base) => {
                let built = client.get(below(base, key)?).build();
                built.map_err(|e| Failure::connection(e, "cannot make a request"))
            }
            Self::S3(s3) => s3.request(key, query).await,
            Self::Swift(swift) => swift.request(client, key, query).await,
        }
    }

    /// Forgets a token that was refused; whether a new one can be had.
    pub(crate) async fn renew(&self, refused: Option<&HeaderValue>) -> bool {
        match self {
            Self::Swift(swift) => swift.renew(refused).await,
            Self::Http(_) | Self::S3(_) => false,
        }
    }

    /// How messages name an object; without secrets.
    pub(crate) fn name(&self, key: &str) -> String {
        let join = |root: &str| match (root, key) {
            (root, "") => root.to_owned(),
            (root, key) => format!("{}/{key}", root.trim_end_matches('/')),
        };
        match self {
            Self::Http(base) => join(&redacted(base.as_str())),
            Self::S3(s3) => join(&format!("s3://{}", s3.bucket)),
            Self::Swift(swift) => join(&format!("swift://{}", swift.container)),
        }
    }

    /// What tells an object from all others, for caches: never shown, and without signatures that change with time.
    pub(crate) fn identity(&self, key: &str) -> String {
        match self {
            Self::Http(base) => {
                let mut url = base.clone();
                if is_signed(&url) {
                    url.set_query(None);
                }
                format!("{url} {key}")
            }
            Self::S3(s3) => format!("{} {key}", s3.base),
            Self::Swift(swift) => format!("{} {key}", swift.identity()),
        }
    }

    /// Which server, for the limit of requests at once.
    pub(crate) fn authority(&self) -> String {
        match self {
            Self::Http(base) => base.authority().to_owned(),
            Self::S3(s3) => s3.base.authority().to_owned(),
            Self::Swift(swift) => swift.identity(),
        }
    }

    /// The hint for a refusal.
    pub(crate) fn access(&self) -> &'static str {
        match self {
            Self::Http(_) => {
                "the address may need a signature or user and password: https://user:password@host/..."
            }
            Self::S3(_) => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN); without them requests are anonymous"
            }
            Self::Swift(_) => "set ST_AUTH, ST_USER and ST_KEY, or OS_STORAGE_URL and OS_AUTH_TOKEN",
        }
    }

    /// The normal form of an object's address, by which it is asked whether it may be opened.
    pub(crate) fn place(&self, key: &str) -> Result<Url> {
        match self {
            Self::Http(base) => below(base, key),
            Self::S3(s3) => within("s3", &s3.bucket, key),
            Self::Swift(swift) => within("swift", &swift.container, key),
        }
    }

    /// Whether redirects are followed: only where no secret of ours goes with the request in a header.
    pub(crate) fn follows_redirects(&self) -> bool {
        matches!(self, Self::Http(_))
    }
}

fn within(scheme: &str, container: &str, key: &str) -> Result<Url> {
    address(
        &Url::parse(&format!("{scheme}://{container}/"))
            .map_err(|e| Error::new(ErrorKind::InvalidValue, e.to_string()))?,
        key,
        &[],
    )
}

/// Whether an address carries its own permission: Amazon's, Swift's temporary and Azure's signed addresses.
fn is_signed(url: &Url) -> bool {
    url.query_pairs().any(|(name, _)| {
        matches!(name.to_ascii_lowercase().as_str(), "x-amz-signature" | "signature" | "temp_url_sig" | "sig")
    })
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

    #[test]
    fn a_signature_is_no_part_of_an_identity() {
        let id = |url: &str| Service::Http(Url::parse(url).unwrap()).identity("");
        assert_eq!(id("http://h/a?X-Amz-Signature=1&X-Amz-Date=2"), id("http://h/a?X-Amz-Signature=3"));
        assert_ne!(id("http://h/a?version=1"), id("http://h/a?version=2"));
    }
}
