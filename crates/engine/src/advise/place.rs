//! Where the catalog is, and under which names it knows sources.

use std::path::{Path, PathBuf};

use sieva_types::{Error, ErrorKind, Result};

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

/// The catalog of this user where nothing else is said: `sieva/catalog.sqlite` in `XDG_DATA_HOME`, else in
/// `~/.local/share`.
pub(super) fn default_file() -> Option<PathBuf> {
    let data = set("XDG_DATA_HOME").map(PathBuf::from);
    let home = || set("HOME").map(|home| Path::new(&home).join(".local/share"));
    data.or_else(home).map(|dir| dir.join("sieva/catalog.sqlite"))
}

/// The catalog that is named by `SIEVA_CATALOG`.
pub(super) fn named() -> Option<String> {
    set("SIEVA_CATALOG")
}

/// The catalog that is meant: the one given, else that of `SIEVA_CATALOG`, else the user's own.
///
/// # Errors
/// `file-not-found` where none is given and the user has none.
pub fn catalog_url(given: Option<&str>) -> Result<String> {
    if let Some(url) = given.map(str::to_string).or_else(named) {
        return Ok(url);
    }
    let file = default_file().filter(|f| f.exists());
    file.map(|f| f.display().to_string()).ok_or_else(|| {
        let place =
            default_file().map_or_else(|| "the user's data directory".into(), |f| f.display().to_string());
        Error::new(ErrorKind::FileNotFound, format!("no catalog was named, and there is none at {place}"))
            .hint("name one by --catalog or SIEVA_CATALOG; queries are noted in it from then on")
    })
}

/// The name by which a catalog knows the source `name`: an absolute path without `.`, or the URL itself. Links are
/// not followed, as what they lead to may change.
pub fn location_of(name: &Path) -> String {
    if name.to_str().is_some_and(sieva_store::is_url) {
        return name.display().to_string();
    }
    std::path::absolute(name).unwrap_or_else(|_| name.to_path_buf()).display().to_string()
}

/// Whether a location is what `prefix` means: itself, something in that directory, or what begins with it.
pub(super) fn is_within(location: &str, prefix: &str) -> bool {
    let Some(rest) = location.strip_prefix(prefix) else { return false };
    let whole = Path::new(prefix).exists() && !prefix.ends_with('/');
    rest.is_empty() || rest.starts_with('/') || !whole
}
