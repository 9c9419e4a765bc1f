//! Temporary addresses of Swift: signed with a key that the container keeps, so that who has one needs no account.

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use reqwest::{Method, Request};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::Deserialize;
use sieva_types::{Error, ErrorKind, Result};
use url::Url;

use super::sending::Order;
use super::sent::hex;
use super::service::{Asking, address, variable};
use crate::location::decoded;

/// Where a container keeps the key: only who owns it is told.
const KEY: HeaderName = HeaderName::from_static("x-container-meta-temp-url-key");
/// The key of an account or a container that somebody else set.
const GIVEN: &str = "SWIFT_TEMP_URL_KEY";
/// The longest answer of what a server can do.
const LONGEST_INFO: usize = 1 << 20;
/// Bytes of a new key.
const DRAWN: usize = 32;

/// Sums that servers know, the best of them first: those before 2017 have the last one alone.
static DIGESTS: [(&str, hmac::Algorithm); 3] = [
    ("sha256", hmac::HMAC_SHA256),
    ("sha512", hmac::HMAC_SHA512),
    ("sha1", hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
];

/// The key that the addresses of a container are signed with. It gets one if it has none.
pub(crate) async fn secret(asking: &Asking<'_>) -> Result<String> {
    if let Some(given) = variable(GIVEN) {
        // Signing needs a session, which any request makes.
        asking.transport.carry_out(&Order::new(Method::HEAD, "", "read"), asking.counters).await?;
        return Ok(given);
    }
    if let Some(known) = known(asking).await? {
        return Ok(known);
    }
    let mut drawn = [0; DRAWN];
    let failed = |_| Error::new(ErrorKind::Io, "the system gives no random numbers");
    SystemRandom::new().fill(&mut drawn).map_err(failed)?;
    let mut value = HeaderValue::from_str(&hex(&drawn))
        .map_err(|_| Error::new(ErrorKind::Internal, "a key that no header can carry"))?;
    value.set_sensitive(true);
    let headers = HeaderMap::from_iter([(KEY, value)]);
    let order = Order { headers, ..Order::new(Method::POST, "", "keep a key for links in") };
    asking.transport.carry_out(&order, asking.counters).await?;
    // As it is kept: another may have put one meanwhile.
    known(asking).await?.ok_or_else(|| {
        let place = asking.transport.service.root();
        Error::new(ErrorKind::PermissionDenied, format!("'{place}' does not tell its key for links"))
            .hint(format!("its owner is told it; who has it sets {GIVEN}"))
    })
}

async fn known(asking: &Asking<'_>) -> Result<Option<String>> {
    let order = Order::new(Method::HEAD, "", "read");
    let found = asking.transport.carry_out(&order, asking.counters).await?;
    let key = found.headers.get(KEY).and_then(|key| key.to_str().ok());
    Ok(key.filter(|key| !key.is_empty()).map(str::to_owned))
}

/// What a server tells of itself.
#[derive(Debug, Deserialize)]
struct Info {
    tempurl: Option<TempUrl>,
}

#[derive(Debug, Deserialize)]
struct TempUrl {
    #[serde(default)]
    allowed_digests: Vec<String>,
}

/// The sum that a server wants; SHA-256 where it does not tell.
pub(crate) async fn digest(asking: &Asking<'_>, storage: &Url) -> Result<hmac::Algorithm> {
    match info(asking, storage).await {
        Some(Info { tempurl: None }) => {
            let message =
                format!("the server of '{}' makes no temporary addresses", asking.transport.service.root());
            Err(Error::new(ErrorKind::Unsupported, message)
                .hint("its operator adds tempurl to the proxy; those with an account read it as it is"))
        }
        Some(Info { tempurl: Some(TempUrl { allowed_digests }) }) if !allowed_digests.is_empty() => {
            let allowed = DIGESTS.iter().find(|(name, _)| allowed_digests.iter().any(|a| a == name));
            allowed.map(|(_, digest)| *digest).ok_or_else(|| {
                let message =
                    format!("the server signs by {}, which is not known here", allowed_digests.join(", "));
                Error::new(ErrorKind::Unsupported, sieva_types::printable(&message).to_string())
            })
        }
        // A server that tells no sums is one of before 2017.
        Some(Info { tempurl: Some(_) }) => Ok(DIGESTS[2].1),
        None => Ok(DIGESTS[0].1),
    }
}

async fn info(asking: &Asking<'_>, storage: &Url) -> Option<Info> {
    let mut url = storage.clone();
    url.set_path("/info");
    url.set_query(None);
    asking.counters.add_request(0);
    let mut answer = asking.transport.reader().execute(Request::new(Method::GET, url)).await.ok()?;
    if !answer.status().is_success() {
        return None;
    }
    let mut body = Vec::new();
    while let Some(bytes) = answer.chunk().await.ok()? {
        asking.counters.add_bytes(bytes.len() as u64);
        if body.len() + bytes.len() > LONGEST_INFO {
            return None;
        }
        body.extend_from_slice(&bytes);
    }
    serde_json::from_slice(&body).ok()
}

/// The address of an object in a container with a signature that is good for so long.
pub(crate) fn signed(
    secret: &str,
    digest: hmac::Algorithm,
    container: &Url,
    key: &str,
    expires: Duration,
) -> Result<Url> {
    let until =
        SystemTime::now().checked_add(expires).and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    let until = until.map(|since| since.as_secs()).filter(|&until| i64::try_from(until).is_ok());
    let until = until.ok_or_else(|| {
        Error::new(ErrorKind::InvalidValue, format!("a link for {} s", expires.as_secs()))
            .hint("allow it less")
    })?;
    sign(secret, digest, container, key, until)
}

fn sign(secret: &str, digest: hmac::Algorithm, container: &Url, key: &str, until: u64) -> Result<Url> {
    // Signed is the path as the server sees it, without the encoding of addresses.
    let path = decoded(address(container, key, &[])?.path());
    let text = format!("GET\n{until}\n{path}");
    let sum = hmac::sign(&hmac::Key::new(digest, secret.as_bytes()), text.as_bytes());
    let (sum, until) = (hex(sum.as_ref()), until.to_string());
    address(container, key, &[("temp_url_sig", &sum), ("temp_url_expires", &until)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_signed_as_the_server_sees_it() {
        let container = Url::parse("http://h:8080/v1/AUTH_me/box").unwrap();
        // By Python's hmac of "GET\n1700000000\n/v1/AUTH_me/box/set 1/a.nc".
        for (digest, sum) in [
            (hmac::HMAC_SHA256, "d13eb9e8c2c6c3e60d5f73e703ae506c3e88aa0392d87da27cc31eb9bacf9adb"),
            (hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, "95e59a8d6a9ea8cc9eae58b57a55f5bb778991be"),
        ] {
            let url = sign("s3cret", digest, &container, "set 1/a.nc", 1_700_000_000).unwrap();
            let expected = format!(
                "http://h:8080/v1/AUTH_me/box/set%201/a.nc?temp_url_sig={sum}&temp_url_expires=1700000000"
            );
            assert_eq!(url.as_str(), expected);
        }
        let e = signed("s", hmac::HMAC_SHA256, &container, "a", Duration::MAX).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidValue);
    }
}
