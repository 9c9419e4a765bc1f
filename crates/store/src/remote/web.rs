//! Web servers: the address says all, who asks included.

use reqwest::{Client, Request};
use sieva_types::Result;
use url::Url;

use super::failure::Failure;
use super::service::{Call, Pending, Service, below};
use crate::location::{Location, Remote, invalid, redacted};
use crate::stores::Store;

/// The store of `http://` and `https://`.
pub(crate) const STORE: Store = Store {
    schemes: &["http", "https"],
    form: "http:// or https://host/object",
    variables: &[],
    locate: |location, _| match Url::parse(location) {
        Ok(url) if url.host().is_some() => Ok(Location::Remote(Remote {
            url,
            container: String::new(),
            key: None,
            connect: |place| Ok(Box::new(Web(place.url.clone()))),
        })),
        Ok(_) => Err(invalid(location, "it names no host")),
        Err(e) => Err(invalid(location, &e.to_string())),
    },
};

/// A web server, and the place on it below which keys are. The query of the address (a signature, maybe) goes with every
/// request.
#[derive(Debug)]
pub(crate) struct Web(pub(crate) Url);

impl Service for Web {
    fn request<'a>(
        &'a self,
        client: &'a Client,
        call: Call<'a>,
    ) -> Pending<'a, std::result::Result<Request, Failure>> {
        Box::pin(async move {
            // Built by the client, which makes a header of user and password.
            let built = client.request(call.method, below(&self.0, call.key)?).headers(call.headers).build();
            built.map_err(|e| Failure::connection(e, "cannot make a request"))
        })
    }

    fn root(&self) -> String {
        redacted(self.0.as_str())
    }

    fn identity(&self, key: &str) -> String {
        let mut url = self.0.clone();
        if is_signed(&url) {
            url.set_query(None);
        }
        format!("{url} {key}")
    }

    fn authority(&self) -> String {
        self.0.authority().to_owned()
    }

    fn access(&self) -> &'static str {
        "the address may need a signature or user and password: https://user:password@host/..."
    }

    fn place(&self, key: &str) -> Result<Url> {
        below(&self.0, key)
    }

    fn follows_redirects(&self) -> bool {
        true
    }
}

/// Whether an address carries its own permission: Amazon's, Swift's temporary and Azure's signed addresses.
fn is_signed(url: &Url) -> bool {
    url.query_pairs().any(|(name, _)| {
        matches!(name.to_ascii_lowercase().as_str(), "x-amz-signature" | "signature" | "temp_url_sig" | "sig")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_no_part_of_an_identity() {
        let id = |url: &str| Web(Url::parse(url).unwrap()).identity("");
        assert_eq!(id("http://h/a?X-Amz-Signature=1&X-Amz-Date=2"), id("http://h/a?X-Amz-Signature=3"));
        assert_ne!(id("http://h/a?version=1"), id("http://h/a?version=2"));
    }
}
