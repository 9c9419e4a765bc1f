//! Where the catalog is, how sources are named in it, and when one has changed.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sieva_types::{Error, ErrorKind, Result};

/// The catalog that is meant where none was named: what `SIEVA_CATALOG` says, else `sieva/catalog.sqlite` in the user's
/// data directory, which is made for this user alone.
///
/// # Errors
/// `invalid-value` where neither variable nor home directory is set; `io-error` and `permission-denied`.
pub fn default_url() -> Result<String> {
    if let Some(url) = named()? {
        return Ok(url);
    }
    let Some(file) = own_file() else {
        let message = "there is no place for a catalog: neither XDG_DATA_HOME nor HOME is set";
        return Err(Error::new(ErrorKind::InvalidValue, message)
            .hint("name one: --catalog URL, or SIEVA_CATALOG in the environment"));
    };
    if let Some(folder) = file.parent() {
        // As the XDG base directory specification has it: it tells what its owner has and asked.
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|e| Error::io(format!("cannot make '{}'", folder.display()), &e))?;
    }
    text(&file)
}

/// The catalog that is meant, where it must be there already: the one given, else that of `SIEVA_CATALOG`, else the
/// user's own.
///
/// # Errors
/// `file-not-found` where none is given and the user has none.
pub fn existing_url(given: Option<&str>) -> Result<String> {
    if let Some(given) = given {
        return Ok(given.to_string());
    }
    if let Some(url) = named()? {
        return Ok(url);
    }
    let own = own_file();
    if let Some(file) = own.as_ref().filter(|f| f.exists()) {
        return text(file);
    }
    let place = own.map_or_else(|| "the user's data directory".into(), |f| f.display().to_string());
    Err(Error::new(ErrorKind::FileNotFound, format!("no catalog was named, and there is none at {place}"))
        .hint("name one by --catalog or SIEVA_CATALOG; queries are noted in it from then on"))
}

/// The catalog that is named by `SIEVA_CATALOG`.
///
/// # Errors
/// `invalid-value` for a name that is not UTF-8.
pub(crate) fn named() -> Result<Option<String>> {
    let Some(url) = set("SIEVA_CATALOG") else { return Ok(None) };
    url.into_os_string().into_string().map(Some).map_err(|url| {
        let shown = sieva_store::redacted_database(&url.to_string_lossy());
        Error::new(ErrorKind::InvalidValue, format!("SIEVA_CATALOG is not UTF-8: {shown}"))
    })
}

/// The user's own catalog, which need not exist: `sieva/catalog.sqlite` in `XDG_DATA_HOME`, else in `~/.local/share`.
pub(crate) fn own_file() -> Option<PathBuf> {
    let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
    data.map(|dir| dir.join("sieva/catalog.sqlite"))
}

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// The name of a path in the catalog: absolute, with the links of its directory followed, so that one file has one
/// name whatever way leads to it. A link to a file keeps its own name. A URL is its own name, without user, password and
/// signatures, which others would read in the catalog.
///
/// # Errors
/// `file-not-found` where the directory does not exist, `invalid-value` for a path that is not UTF-8.
pub fn location(path: &str) -> Result<String> {
    if !sieva_store::is_url(path) && Path::new(path).is_dir() {
        let real = Path::new(path).canonicalize();
        return text(&real.map_err(|e| Error::io(format!("cannot find '{path}'"), &e))?);
    }
    Locations::default().of(path)
}

/// The name of a path as [`location`] has it, or its absolute path where it is not there any more.
pub(crate) fn location_or_absolute(path: &Path) -> String {
    let known = path.to_str().and_then(|p| location(p).ok());
    known.unwrap_or_else(|| {
        std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()).display().to_string()
    })
}

/// Names of many files: the links of a directory are followed once.
#[derive(Default)]
pub(crate) struct Locations {
    folders: HashMap<PathBuf, PathBuf>,
}

impl Locations {
    /// See [`location`].
    pub(crate) fn of(&mut self, path: &str) -> Result<String> {
        if sieva_store::is_url(path) {
            return Ok(sieva_store::without_secrets(path));
        }
        let given = Path::new(path);
        let cannot = |e: &std::io::Error| Error::io(format!("cannot find '{path}'"), e);
        let Some(name) = given.file_name() else {
            return text(&given.canonicalize().map_err(|e| cannot(&e))?);
        };
        let folder = given.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if let Some(known) = self.folders.get(folder) {
            return text(&known.join(name));
        }
        let real = folder.canonicalize().map_err(|e| cannot(&e))?;
        let found = text(&real.join(name));
        self.folders.insert(folder.to_path_buf(), real);
        found
    }
}

/// A path as text.
fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let message = format!("the path '{}' is not UTF-8", path.display());
        Error::new(ErrorKind::InvalidValue, message).hint("the catalog keeps names as UTF-8: rename the file")
    })
}

/// Size and version of a file, as [`sieva_store::FileStore`] tells them of an open one.
pub(crate) fn state(meta: &Metadata) -> (u64, String) {
    let since = meta.modified().ok().and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
    (meta.len(), since.map_or_else(String::new, |t| format!("{} ns", t.as_nanos())))
}

#[cfg(test)]
mod tests {
    use sieva_store::{FileStore, RangedRead};

    use super::*;

    #[test]
    fn one_file_has_one_name_and_the_state_of_an_open_one() {
        let dir = std::env::temp_dir().join(format!("sieva-place-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("real")).unwrap();
        let dir = dir.canonicalize().unwrap();
        std::os::unix::fs::symlink(dir.join("real"), dir.join("way")).unwrap();
        std::fs::write(dir.join("real/a.nc"), b"12345").unwrap();
        let through = |path: &str| location(&dir.join(path).display().to_string()).unwrap();
        let real = dir.join("real/a.nc").display().to_string();
        assert_eq!(through("way/a.nc"), real);
        assert_eq!(through("way/../real/./a.nc"), real);
        assert_eq!(location("s3://b/a.nc").unwrap(), "s3://b/a.nc");
        assert_eq!(location("/no/such/folder/a.nc").unwrap_err().kind(), ErrorKind::FileNotFound);
        let store = FileStore::open(Path::new(&real)).unwrap();
        assert_eq!(state(&std::fs::metadata(&real).unwrap()), (store.len(), store.version()));
        std::fs::remove_dir_all(dir).unwrap();
    }
}
