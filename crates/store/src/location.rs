//! Where an object is: a local path or a URL, told apart by the scheme.

use std::path::PathBuf;

use sieva_types::{Error, ErrorKind, Result};
use url::Url;

/// The schemes that [`crate::open`] knows, as messages list them.
const KNOWN: &str = "a local path, file://, http://, https://, s3://bucket/key, swift://container/object";

/// A place of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Local(PathBuf),
    Http(Url),
    S3 { bucket: String, key: String },
    Swift { container: String, key: String },
}

/// Whether `location` is a URL rather than a local path: `scheme://...`.
///
/// ```
/// assert!(sieva_store::is_url("s3://bucket/pop.nc"));
/// assert!(!sieva_store::is_url("dir/pop.nc"));
/// ```
pub fn is_url(location: &str) -> bool {
    scheme(location).is_some()
}

/// The scheme and what follows it (RFC 3986, section 3.1).
fn scheme(location: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = location.split_once("://")?;
    let starts = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    let fits = scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    (starts && fits).then_some((scheme, rest))
}

impl Location {
    pub(crate) fn parse(location: &str) -> Result<Self> {
        let Some((scheme, rest)) = scheme(location) else { return Ok(Self::Local(PathBuf::from(location))) };
        match scheme.to_ascii_lowercase().as_str() {
            "file" => file_path(location),
            "http" | "https" => match Url::parse(location) {
                Ok(url) if url.host().is_some() => Ok(Self::Http(url)),
                Ok(_) => Err(invalid(location, "it names no host")),
                Err(e) => Err(invalid(location, &e.to_string())),
            },
            "s3" => container_and_key(location, rest).map(|(bucket, key)| Self::S3 { bucket, key }),
            "swift" => {
                container_and_key(location, rest).map(|(container, key)| Self::Swift { container, key })
            }
            other => Err(Error::new(ErrorKind::Unsupported, format!("no storage of scheme '{other}://'"))
                .hint(format!("use {KNOWN}"))),
        }
    }
}

fn invalid(location: &str, why: &str) -> Error {
    Error::new(ErrorKind::InvalidValue, format!("'{}' is no valid address: {why}", redacted(location)))
}

fn file_path(location: &str) -> Result<Location> {
    let url = Url::parse(location).map_err(|e| invalid(location, &e.to_string()))?;
    let path = url.to_file_path().map_err(|()| {
        invalid(location, "a file URL names no host and a whole path").hint("write file:///directory/file")
    })?;
    Ok(Location::Local(path))
}

fn container_and_key(location: &str, rest: &str) -> Result<(String, String)> {
    let (container, key) = rest.split_once('/').unwrap_or((rest, ""));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if container.is_empty() || matches!(container, "." | "..") || !container.chars().all(plain) {
        return Err(invalid(location, "a container's name has letters, digits, '-', '.' and '_' only"));
    }
    check_key(key, location)?;
    Ok((container.to_owned(), key.to_owned()))
}

/// Refuses keys that a URL's path would resolve to elsewhere.
pub(crate) fn check_key(key: &str, root: &str) -> Result<()> {
    if key.split('/').any(|part| matches!(part, "." | "..")) || key.contains('\0') {
        let message = format!("key '{key}' leads out of '{}'", redacted(root));
        return Err(Error::new(ErrorKind::LinkRefused, message));
    }
    Ok(())
}

/// An address without what must not be shown: user, password, and the query, which may hold a signature.
pub(crate) fn redacted(location: &str) -> String {
    let Some((scheme, rest)) = scheme(location) else { return location.to_owned() };
    let without_query = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = match without_query.split_once('/') {
        Some((authority, path)) => (authority, format!("/{path}")),
        None => (without_query, String::new()),
    };
    let host = authority.rsplit('@').next().unwrap_or_default();
    let query = if rest.contains('?') { "?..." } else { "" };
    format!("{scheme}://{host}{path}{query}")
}

/// `text` with all but the unreserved characters (RFC 3986, section 2.3) and `keep` percent-encoded.
pub(crate) fn encoded(text: &str, keep: char) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let c = byte as char;
        if c.is_ascii_alphanumeric() || "-._~".contains(c) || c == keep {
            out.push(c);
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemes_are_told_apart() {
        let s3 = Location::S3 { bucket: "b".into(), key: "a/b c.nc".into() };
        assert_eq!(Location::parse("s3://b/a/b c.nc").unwrap(), s3);
        let swift = Location::Swift { container: "c".into(), key: "o".into() };
        assert_eq!(Location::parse("swift://c/o").unwrap(), swift);
        assert_eq!(Location::parse("/a/b").unwrap(), Location::Local("/a/b".into()));
        assert_eq!(Location::parse("file:///a/b%20c").unwrap(), Location::Local("/a/b c".into()));
        let e = Location::parse("gopher://x/y").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.hint_text().unwrap().contains("swift://container/object"), "{e}");
        for bad in ["http://", "s3://", "s3:///key", "swift://a b/c", "http://[::1"] {
            assert_eq!(Location::parse(bad).unwrap_err().kind(), ErrorKind::InvalidValue, "{bad}");
        }
        assert_eq!(Location::parse("s3://b/a/../c").unwrap_err().kind(), ErrorKind::LinkRefused);
    }

    #[test]
    fn secrets_are_not_shown() {
        let shown = redacted("https://user:pw@host:8/a/b.nc?X-Amz-Signature=abc");
        assert_eq!(shown, "https://host:8/a/b.nc?...");
        assert_eq!(redacted("http://h"), "http://h");
        assert_eq!(redacted("http://h?sig=1/2"), "http://h?...");
    }

    #[test]
    fn keys_are_encoded_as_signatures_want_it() {
        assert_eq!(encoded("a b/ü+~", '/'), "a%20b/%C3%BC%2B~");
    }
}
