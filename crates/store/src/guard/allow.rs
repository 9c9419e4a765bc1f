//! A guard that is a list: directories, files, and beginnings of URLs.

use std::path::{Path, PathBuf};

use sieva_types::{Error, ErrorKind, Result};
use url::Url;

use super::{Guard, Place, Purpose, refusal};
use crate::location::Location;

/// Allows what lies at or below its entries, and nothing else.
///
/// ```
/// use sieva_store::guard::{AllowList, Gate, Purpose};
///
/// let list = AllowList::new(["https://data.example.org/open"]).unwrap();
/// let gate = Gate::of(std::sync::Arc::new(list));
/// assert!(gate.check_url("https://data.example.org/open/a.nc", Purpose::Source).is_ok());
/// for other in ["https://data.example.org/open/%2e%2e/a.nc", "https://data.example.org/opener", "http://data.example.org/open/a"] {
///     assert!(gate.check_url(other, Purpose::Source).is_err(), "{other}");
/// }
/// ```
#[derive(Clone, Debug, Default)]
pub struct AllowList {
    paths: Vec<PathBuf>,
    urls: Vec<Url>,
    hint: Option<String>,
}

impl AllowList {
    /// The list of these paths and URLs. A path counts by where it leads now; one that is not there, by its name.
    ///
    /// # Errors
    /// `invalid-value` for an address that is none, and for one with a query.
    pub fn new<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Result<Self> {
        let mut list = Self::default();
        for entry in entries {
            list.add(entry.as_ref())?;
        }
        Ok(list)
    }

    /// Adds a path or a URL.
    ///
    /// # Errors
    /// As [`AllowList::new`].
    pub fn add(&mut self, entry: &str) -> Result<()> {
        let location = Location::parse(entry)?;
        match (location.url(), location) {
            (Some(url), _) if url.query().is_some() => {
                let shown = crate::redacted(entry);
                let message = format!("'{shown}' has a query, and a place that is allowed has none");
                Err(Error::new(ErrorKind::InvalidValue, message))
            }
            (Some(url), _) => {
                self.urls.push(url);
                Ok(())
            }
            (None, Location::Local(path)) => {
                self.add_path(&path);
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    /// Adds a directory or a file.
    pub fn add_path(&mut self, path: &Path) {
        if path.as_os_str().is_empty() {
            return;
        }
        let real = path.canonicalize().or_else(|_| std::path::absolute(path));
        self.paths.extend(real);
    }

    /// What refusals advise.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn allows(&self, place: &Place<'_>) -> bool {
        match place {
            Place::File { real, .. } => self.paths.iter().any(|allowed| real.starts_with(allowed)),
            Place::Url(url) => !is_ambiguous(url) && self.urls.iter().any(|allowed| covers(allowed, url)),
        }
    }
}

impl Guard for AllowList {
    fn check(&self, place: &Place<'_>, purpose: Purpose) -> Result<()> {
        if self.allows(place) {
            return Ok(());
        }
        let e = refusal(place, purpose);
        Err(match &self.hint {
            Some(hint) => e.hint(hint.clone()),
            None => e,
        })
    }
}

/// Whether `url` is `allowed` or lies below it, on the same server.
fn covers(allowed: &Url, url: &Url) -> bool {
    let server =
        |u: &Url| (u.scheme().to_owned(), u.host_str().map(str::to_owned), u.port_or_known_default());
    let root = allowed.path().trim_end_matches('/');
    let below = url.path().strip_prefix(root);
    server(allowed) == server(url) && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a server could take the path of a URL for another than it says: percent-encoded separators with dots between
/// them. What a URL's normal form resolves is gone already.
fn is_ambiguous(url: &Url) -> bool {
    let mut path = url.path().to_owned();
    // Some decode more than once.
    for _ in 0..4 {
        let decoded = decoded(&path);
        let dots =
            |part: &str| matches!(part.trim_matches(|c: char| c.is_ascii_control() || c == ' '), "." | "..");
        if decoded.split(['/', '\\']).any(dots) || decoded.contains('\0') {
            return true;
        }
        if decoded == path {
            return false;
        }
        path = decoded;
    }
    true
}

/// `text` with its percent-encoded bytes in place.
fn decoded(text: &str) -> String {
    let (bytes, mut out) = (text.as_bytes(), Vec::with_capacity(text.len()));
    let mut at = 0;
    while at < bytes.len() {
        let pair = bytes.get(at + 1..at + 3).and_then(|p| std::str::from_utf8(p).ok());
        let byte = pair.filter(|_| bytes[at] == b'%').and_then(|p| u8::from_str_radix(p, 16).ok());
        out.push(byte.unwrap_or(bytes[at]));
        at += if byte.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::guard::Gate;

    #[test]
    fn no_spelling_leads_out_of_an_allowed_address() {
        let list = AllowList::new(["https://h/pub", "s3://bucket/pub/", "http://h:8080"]).unwrap();
        let gate = Gate::of(Arc::new(list));
        let is_allowed = |url: &str| gate.check_url(url, Purpose::Link).is_ok();
        for inside in [
            "https://h/pub",
            "https://h/pub/a/b.nc",
            "HTTPS://H:443/pub/a?sig=1",
            "https://h/pub/x/../a",
            "https://h/pub/a%20b",
            "s3://bucket/pub/a",
            "s3://bucket/pub/100%25",
            "http://h:8080/any",
        ] {
            assert!(is_allowed(inside), "{inside}");
        }
        for outside in [
            "https://h/",
            "https://h/public",
            "https://h/pub/../secret",
            "https://h/pub/%2e%2e/secret",
            "https://h/pub/.%2E/secret",
            "https://h/pub/..\\secret",
            "https://h/pub\\..\\secret",
            "https://h/pub/.\t./secret",
            "https://h/pub/.\n./secret",
            "https://h/pub/..%2fsecret",
            "https://h/pub/x%5c..%5c..%5csecret",
            "https://h/pub/%252e%252e/secret",
            "https://h/pub/%25252e%25252e%25252fsecret",
            "https://h/pub/..%00/secret",
            "https://h@evil/pub/a",
            "https://h.evil/pub/a",
            "https://h:8443/pub/a",
            "http://h/pub/a",
            "s3://bucket/public/a",
            "s3://bucket/x/%2e%2e/pub/a",
            "s3://bucket/pub/../a",
            "s3://other/pub/a",
            "swift://bucket/pub/a",
            "/pub/a",
        ] {
            assert!(!is_allowed(outside), "{outside}");
        }
    }

    #[test]
    fn a_list_of_directories_takes_whole_names() {
        let list = AllowList::new(["/tmp", "/nowhere/at/all"]).unwrap().with_hint("say please");
        let file = |real: &str| {
            let place = Place::File { asked: Path::new("x"), real: Path::new(real) };
            list.check(&place, Purpose::Source)
        };
        assert!(file("/tmp/a").is_ok() && file("/tmp").is_ok() && file("/nowhere/at/all/b").is_ok());
        let e = file("/tmpx/a").unwrap_err();
        assert_eq!(
            (e.message(), e.hint_text()),
            ("'x' is outside of what may be opened", Some("say please"))
        );
        assert_eq!(AllowList::new(["https://h/a?b"]).unwrap_err().kind(), ErrorKind::InvalidValue);
        assert_eq!(AllowList::new(["https://"]).unwrap_err().kind(), ErrorKind::InvalidValue);
    }
}
