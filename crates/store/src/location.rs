//! Where an object is: a local path or a URL, told apart by the scheme.

use std::path::PathBuf;

use sieva_types::{Error, ErrorKind, Result};
use url::Url;

use crate::remote::service::Service;
use crate::stores::Store;

/// A place of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Local(PathBuf),
    Remote(Remote),
}

/// An object, or a place of many, behind a network.
#[derive(Clone)]
pub(crate) struct Remote {
    /// The address in its normal form, by which places are compared.
    pub url: Url,
    /// The container; empty where the address says all.
    pub container: String,
    /// The object in the container, or what the names of its objects begin with; none where there is no container.
    pub key: Option<String>,
    /// The server.
    pub connect: fn(&Remote) -> Result<Box<dyn Service>>,
}

impl PartialEq for Remote {
    fn eq(&self, other: &Self) -> bool {
        (&self.url, &self.container, &self.key) == (&other.url, &other.container, &other.key)
    }
}

impl Eq for Remote {}

impl std::fmt::Debug for Remote {
    /// Without what the address may hold of secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&redacted(self.url.as_str()))
    }
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
        (Store::of_scheme(scheme)?.locate)(location, rest)
    }

    /// The address in its normal form, by which places are compared; none of a local path. The key of an object in a
    /// container is what it is, whatever looks like a step or an escape in it.
    pub(crate) fn url(&self) -> Option<Url> {
        match self {
            Self::Local(_) => None,
            Self::Remote(place) => Some(place.url.clone()),
        }
    }
}

/// The error of an address that is none.
pub(crate) fn invalid(location: &str, why: &str) -> Error {
    Error::new(ErrorKind::InvalidValue, format!("'{}' is no valid address: {why}", redacted(location)))
}

/// An object in a container: what follows `scheme://`.
///
/// # Errors
/// `invalid-value` for a container that no server has; `link-refused` for a key that leads elsewhere.
pub(crate) fn container_and_key(
    scheme: &str,
    location: &str,
    rest: &str,
    connect: fn(&Remote) -> Result<Box<dyn Service>>,
) -> Result<Location> {
    let (container, key) = rest.split_once('/').unwrap_or((rest, ""));
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if container.is_empty() || matches!(container, "." | "..") || !container.chars().all(plain) {
        return Err(invalid(location, "a container's name has letters, digits, '-', '.' and '_' only"));
    }
    check_key(key, location)?;
    let url = Url::parse(&format!("{scheme}://{container}/{}", encoded(key, '/')))
        .map_err(|e| invalid(location, &e.to_string()))?;
    let (container, key) = (container.to_owned(), Some(key.to_owned()));
    Ok(Location::Remote(Remote { url, container, key, connect }))
}

/// Refuses keys that a URL's path would resolve to elsewhere.
pub(crate) fn check_key(key: &str, root: &str) -> Result<()> {
    if key.split('/').any(|part| matches!(part, "." | "..")) || key.contains('\0') {
        let message = format!("key '{key}' leads out of '{}'", redacted(root));
        return Err(Error::new(ErrorKind::LinkRefused, message));
    }
    Ok(())
}

/// An address without what must not be shown: user, password, and the query, which may hold a signature. A path is left
/// as it is.
///
/// ```
/// let shown = sieva_store::redacted("https://me:secret@host/a.nc?X-Amz-Signature=abc");
/// assert_eq!(shown, "https://host/a.nc?...");
/// assert_eq!(sieva_store::redacted("/data/a?b.nc"), "/data/a?b.nc");
/// assert_eq!(sieva_store::redacted("http://me:pass/word@host/a.nc"), "http:...@host/a.nc");
/// assert_eq!(sieva_store::redacted(" http:/me:password@host/a.nc"), "http:...@host/a.nc");
/// ```
pub fn redacted(location: &str) -> String {
    let Some((scheme, rest)) = scheme(location).filter(|_| !is_misspelt(location)) else {
        return without_user(location);
    };
    let without_query = rest.split(['?', '#']).next().unwrap_or_default();
    let (authority, path) = match without_query.split_once('/') {
        Some((authority, path)) => (authority, format!("/{path}")),
        None => (without_query, String::new()),
    };
    let host = authority.rsplit('@').next().unwrap_or_default();
    let query = if rest.contains('?') { "?..." } else { "" };
    format!("{scheme}://{host}{path}{query}")
}

/// The address of a database, or the path of one, as [`redacted`]; what was meant as an address and is misspelt is shown
/// from its host on.
///
/// ```
/// use sieva_store::redacted_database as shown;
/// assert_eq!(shown("postgresql://me:secret@host/db"), "postgresql://host/db");
/// assert_eq!(shown("me:secret@host/db"), "...@host/db");
/// assert_eq!(shown("host=h password='my secret' user=me"), "host=h password=... user=me");
/// assert_eq!(shown("/data/me@home/catalog.sqlite"), "/data/me@home/catalog.sqlite");
/// ```
pub fn redacted_database(address: &str) -> String {
    let text = address.trim_start();
    let path = text.strip_prefix("sqlite:").unwrap_or(text);
    let is_path = path.starts_with(['/', '.', '~']) && !path.starts_with("//");
    let shown = if is_path { address.to_owned() } else { redacted(address) };
    let shown = match shown.rsplit_once('@') {
        Some((before, host)) if !is_path && !before.ends_with("...") => {
            format!("...@{}", host.split(['?', '#']).next().unwrap_or_default())
        }
        _ => shown,
    };
    without_passwords(&shown)
}

/// A list of settings (`host=h password=x`) without the values of passwords.
fn without_passwords(settings: &str) -> String {
    let mut shown = String::new();
    let mut rest = settings;
    while let Some(at) = find_password(rest) {
        let (before, value) = rest.split_at(at);
        let value = value.trim_start();
        shown = shown + before + "...";
        rest = match value.strip_prefix('\'') {
            Some(quoted) => end_of_quoted(quoted),
            None => value.find([' ', '\t', '\n', '&']).map_or("", |end| &value[end..]),
        };
    }
    shown + rest
}

/// What follows the closing quotation mark of a value.
fn end_of_quoted(text: &str) -> &str {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        if c == '\'' && !is_escaped {
            return &text[at + 1..];
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    ""
}

/// Where the value of the first setting begins whose name says that it is a password.
fn find_password(text: &str) -> Option<usize> {
    let lower = text.to_ascii_lowercase();
    let mut from = 0;
    while let Some(found) = lower.get(from..)?.find('=') {
        let at = from + found;
        let name = lower[..at].trim_end().rsplit([' ', '\t', '\n', '&', '?', ';']).next().unwrap_or_default();
        if ["password", "passwd", "pwd", "pass"].iter().any(|end| name.ends_with(end)) {
            return Some(at + 1);
        }
        from = at + 1;
    }
    None
}

/// Whether the parts of an address are not where they should be: one of the web cannot be parsed; in another, a password
/// ends what looks like its host.
fn is_misspelt(location: &str) -> bool {
    let Some((scheme, rest)) = location.split_once(':') else { return false };
    if ["http", "https"].iter().any(|s| scheme.eq_ignore_ascii_case(s)) {
        return Url::parse(location).is_err();
    }
    let rest = rest.trim_start_matches(['/', '\\']);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let has_port =
        authority.split_once(':').is_some_and(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    authority.contains(':') && !has_port && !authority.contains('@') && rest.contains('@')
}

/// The schemes of addresses that have a user and a password.
const WITH_USER: [&str; 10] =
    ["http", "https", "s3", "swift", "ftp", "ftps", "postgres", "postgresql", "mysql", "redis"];

/// What looks like an address and is none, without all that may be a user and a password.
fn without_user(location: &str) -> String {
    let text = location.trim_start();
    let Some((scheme, rest)) = text.split_once(':') else { return location.to_owned() };
    let is_scheme =
        scheme.len() > 1 && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let has_user = rest.starts_with(['/', '\\']) || WITH_USER.iter().any(|s| s.eq_ignore_ascii_case(scheme));
    match rest.rsplit_once('@') {
        Some((_, host)) if is_scheme && has_user => {
            format!("{scheme}:...@{}", host.split(['?', '#']).next().unwrap_or_default())
        }
        _ => location.to_owned(),
    }
}

/// Parameters of a query that are a permission of their own, or belong to one: Amazon's, Swift's temporary and Azure's signed
/// addresses, and what others call their keys.
const SECRETS: [&str; 20] = [
    "signature",
    "sig",
    "temp_url_sig",
    "temp_url_expires",
    "token",
    "access_token",
    "auth",
    "authorization",
    "key",
    "api_key",
    "apikey",
    "api-key",
    "password",
    "passwd",
    "pwd",
    "secret",
    "awsaccesskeyid",
    "policy",
    "key-pair-id",
    "expires",
];

/// An address as it may be kept: without user, password, signatures and keys. What tells one object from another stays.
///
/// ```
/// let kept = sieva_store::without_secrets("https://me:secret@host/a.nc?version=3&X-Amz-Signature=abc");
/// assert_eq!(kept, "https://host/a.nc?version=3");
/// assert_eq!(sieva_store::without_secrets("/data/a.nc?sig=1"), "/data/a.nc?sig=1");
/// ```
pub fn without_secrets(location: &str) -> String {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.starts_with("x-amz-") || name.starts_with("x-goog-") || SECRETS.contains(&name.as_str())
    };
    match Location::parse(location) {
        Ok(Location::Remote(Remote { url, .. })) if matches!(url.scheme(), "http" | "https") => {
            let mut kept = url.clone();
            let _ = (kept.set_username(""), kept.set_password(None));
            let is_azure = url.query_pairs().any(|(name, _)| name == "sig");
            let pairs: Vec<(String, String)> = url
                .query_pairs()
                .filter(|(name, _)| !is_azure && !is_secret(name))
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect();
            match (pairs.len() == url.query_pairs().count(), pairs.is_empty()) {
                (true, _) => {}
                (false, true) => kept.set_query(None),
                (false, false) => drop(kept.query_pairs_mut().clear().extend_pairs(pairs)),
            }
            // As it was written, where nothing was taken away.
            if kept == url { location.to_owned() } else { kept.into() }
        }
        Ok(_) => location.to_owned(),
        // What is no address that we can read may hold anything.
        Err(_) => redacted(location),
    }
}

/// Refuses what can be the name of nothing: an empty one, and one with a NUL, which systems and libraries cut or refuse in
/// words of their own. `what` is what it should name.
///
/// # Errors
/// `invalid-value`.
pub fn check_name(name: &std::path::Path, what: &str) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = name.as_os_str().as_bytes();
    let wrong = |why: &str| Err(Error::new(ErrorKind::InvalidValue, format!("{what} {why}")));
    match bytes {
        [] => wrong("is empty: a path or an address is expected"),
        _ if bytes.contains(&0) => wrong(&format!(
            "{:?} has a NUL character, which no path can have",
            String::from_utf8_lossy(bytes)
        )),
        _ => Ok(()),
    }
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

/// `text` without percent-encoding; what is no UTF-8 then is replaced.
pub(crate) fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|_| *first == b'%').and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.filter(|two| two.bytes().all(|c| c.is_ascii_hexdigit()));
        match byte.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &after[2..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        for text in ["", "/v1/AUTH_a:b/c d/é", "100%", "%2", "a%zz%41"] {
            assert_eq!(decoded(&encoded(text, '/')), text);
        }
        assert_eq!((&*decoded("%41%4"), &*decoded("%+1")), ("A%4", "%+1"));
    }

    #[test]
    fn schemes_are_told_apart() {
        for (address, url, container, key) in [
            ("s3://b/a/b c.nc", "s3://b/a/b%20c.nc", "b", Some("a/b c.nc")),
            ("swift://c/o", "swift://c/o", "c", Some("o")),
            ("SWIFT://c", "swift://c/", "c", Some("")),
            ("https://h/a?x=1", "https://h/a?x=1", "", None),
        ] {
            let Location::Remote(place) = Location::parse(address).unwrap() else { panic!("{address}") };
            assert_eq!((place.url.as_str(), &*place.container, place.key.as_deref()), (url, container, key));
        }
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
        assert_eq!(redacted("gsiftp://h:2811/d/a@b.nc"), "gsiftp://h:2811/d/a@b.nc");
    }

    /// "pw" is in no word that may be shown.
    #[test]
    fn passwords_of_databases_are_not_shown_however_they_are_spelt() {
        for text in [
            "postgresql://me:pw@h/db",
            "postgres://me:pw@h/db",
            "postgresql:/me:pw@h/db",
            "postgresql:me:pw@h/db",
            "postgresql:///me:pw@h/db",
            "PostgreSQL://me:pw@h/db",
            "POSTGRES:me:pw@h/db",
            "postgresql+psycopg://me:pw@h/db",
            "jdbc:postgresql://me:pw@h/db",
            "jdbc:postgresql://h/db?user=me&password=pw",
            "postgresql:\\\\me:pw@h/db",
            " postgresql://me:pw@h/db",
            "postgresql//me:pw@h/db",
            "//me:pw@h/db",
            "me:pw@h/db",
            "postgresql%3A//me:pw@h/db",
            "postgresql://me%3Apw@h/db",
            "postgresql://me:p@pw@h/db",
            "postgresql://me:p/pw@h/db",
            "postgresql://me:p?pw@h/db",
            "postgresql://me:p#pw@h/db",
            "postgresql://me:@pw@h/db",
            "postgresql://h/db?password=pw",
            "postgresql://h/db?user=me&PASSWORD=pw&x=1",
            "host=h user=me password=pw dbname=db",
            "host=h password = 'pw \\' pw' user=me",
            "PASSWORD=pw",
            "host=/run/pg password=pw",
            "sqlite:postgresql://me:pw@h/db",
            "sqlite://me:pw@h/db",
            "s3://KEY:pw/pw@bucket/key",
            "postgresql://me:12/pw@h/db",
        ] {
            let shown = redacted_database(text);
            assert!(!shown.contains("pw"), "{text} is shown as {shown}");
        }
        for plain in [
            "/d/me@h/c.sqlite",
            "./a:b@c.sqlite",
            "c.sqlite",
            "sqlite:/d/a:b@c",
            ":memory:",
            "/d/x=1/c.sqlite",
        ] {
            assert_eq!(redacted_database(plain), plain);
        }
    }

    #[test]
    fn what_is_kept_of_an_address_is_no_permission() {
        for (whole, kept) in [
            ("https://u:p@h/a.nc", "https://h/a.nc"),
            ("https://h/a.nc?version=2", "https://h/a.nc?version=2"),
            ("https://h/a.nc?X-Amz-Date=1&X-Amz-Credential=c&X-Amz-Signature=s", "https://h/a.nc"),
            ("https://h/a.nc?sv=1&se=2&sig=s", "https://h/a.nc"),
            ("https://h/a.nc?Token=t&id=5&API_KEY=k", "https://h/a.nc?id=5"),
            ("https://h/a%20b.nc", "https://h/a%20b.nc"),
            ("s3://bucket/a b.nc", "s3://bucket/a b.nc"),
            ("/data/a.nc?sig=1", "/data/a.nc?sig=1"),
            ("gopher://u:p@h/a?sig=1", "gopher://h/a?..."),
        ] {
            assert_eq!(without_secrets(whole), kept);
        }
    }

    #[test]
    fn names_of_nothing_are_refused() {
        let said = |name: &str| check_name(name.as_ref(), "the name").unwrap_err();
        assert_eq!(said("").to_string(), "the name is empty: a path or an address is expected");
        assert!(said("a\0b").message().contains("has a NUL character"));
        assert_eq!(said("").kind(), ErrorKind::InvalidValue);
        check_name("a".as_ref(), "the name").unwrap();
    }

    #[test]
    fn keys_are_encoded_as_signatures_want_it() {
        assert_eq!(encoded("a b/ü+~", '/'), "a%20b/%C3%BC%2B~");
    }
}
