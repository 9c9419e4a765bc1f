//! What tells one version of an object from the next.

use http::HeaderMap;
use http::header::{ETAG, HeaderName, IF_MATCH, IF_UNMODIFIED_SINCE, LAST_MODIFIED};

/// A version of a remote object: its tag or time of modification (RFC 9110, section 8.8), and its length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Validator {
    pub(crate) etag: Option<String>,
    pub(crate) modified: Option<String>,
    pub(crate) len: u64,
}

impl Validator {
    pub(crate) fn new(headers: &HeaderMap, len: u64) -> Self {
        let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::to_owned);
        Self { etag: text(ETAG), modified: text(LAST_MODIFIED), len }
    }

    /// Whether nothing but the length is known.
    pub(crate) fn is_weak(&self) -> bool {
        self.etag.is_none() && self.modified.is_none()
    }

    /// The header by which a server itself refuses another version. A weak tag never matches under If-Match
    /// (RFC 9110, section 13.1.1): then only the answer's tag is compared.
    pub(crate) fn precondition(&self) -> Option<(HeaderName, &str)> {
        match (&self.etag, &self.modified) {
            (Some(tag), _) if tag.starts_with('"') => Some((IF_MATCH, tag)),
            (None, Some(modified)) => Some((IF_UNMODIFIED_SINCE, modified)),
            _ => None,
        }
    }

    /// The time of modification in seconds since 1970.
    pub(crate) fn modified_at(&self) -> Option<u64> {
        let time = httpdate::parse_http_date(self.modified.as_deref()?).ok()?;
        time.duration_since(std::time::SystemTime::UNIX_EPOCH).ok().map(|since| since.as_secs())
    }

    /// Whether `other`, of a later answer, is the same version: what both name must agree.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let same = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        let tags = same(&self.etag, &other.etag);
        // Mirrors behind one name may disagree on times; a tag that is equal settles it.
        let settled = self.etag.is_some() && self.etag == other.etag;
        self.len == other.len && tags && (settled || same(&self.modified, &other.modified))
    }
}

impl std::fmt::Display for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.etag.as_ref().or(self.modified.as_ref()) {
            Some(version) => write!(f, "{version} {}", self.len),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(etag: Option<&str>, modified: Option<&str>, len: u64) -> Validator {
        Validator { etag: etag.map(Into::into), modified: modified.map(Into::into), len }
    }

    #[test]
    fn versions_agree_or_not() {
        let a = version(Some("\"1\""), Some("Mon"), 5);
        assert!(a.agrees(&version(Some("\"1\""), Some("Tue"), 5)));
        assert!(!a.agrees(&version(Some("\"2\""), Some("Mon"), 5)));
        assert!(!a.agrees(&version(Some("\"1\""), Some("Mon"), 6)));
        assert!(!version(None, Some("Mon"), 5).agrees(&version(None, Some("Tue"), 5)));
        assert_eq!(a.to_string(), "\"1\" 5");
    }

    #[test]
    fn times_of_modification() {
        let at = |modified| version(None, Some(modified), 5).modified_at();
        assert_eq!(at("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!((at("yesterday"), version(Some("x"), None, 5).modified_at()), (None, None));
    }

    #[test]
    fn a_weak_tag_is_no_precondition() {
        assert_eq!(version(Some("W/\"1\""), Some("Mon"), 5).precondition(), None);
        assert_eq!(version(Some("\"1\""), None, 5).precondition(), Some((IF_MATCH, "\"1\"")));
        assert_eq!(version(None, Some("Mon"), 5).precondition(), Some((IF_UNMODIFIED_SINCE, "Mon")));
    }
}
