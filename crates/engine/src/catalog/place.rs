//! Where the catalog is, how sources are named in it, and when one has changed.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sieva_types::{Error, ErrorKind, Result};

/// The catalog that is meant where none was named: what `SIEVA_CATALOG` says, else `sieva/catalog.sqlite` in the user's
/// data directory, which is made.
///
/// # Errors
/// `invalid-value` where neither variable nor home directory is set; `io-error` and `permission-denied`.
pub fn default_url() -> Result<String> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    if let Some(url) = set("SIEVA_CATALOG") {
        return url.into_os_string().into_string().map_err(|url| {
            Error::new(ErrorKind::InvalidValue, format!("SIEVA_CATALOG is not UTF-8: {}", url.display()))
        });
    }
    let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")));
    let Some(folder) = data.map(|dir| dir.join("sieva")) else {
        let message = "there is no place for a catalog: neither XDG_DATA_HOME nor HOME is set";
        return Err(Error::new(ErrorKind::InvalidValue, message)
            .hint("name one: --catalog URL, or SIEVA_CATALOG in the environment"));
    };
    std::fs::create_dir_all(&folder)
        .map_err(|e| Error::io(format!("cannot make '{}'", folder.display()), &e))?;
    Ok(folder.join("catalog.sqlite").display().to_string())
}

/// The name of a path in the catalog: absolute, with the links of its directory followed, so that one file has one
/// name whatever way leads to it. A link to a file keeps its own name; a URL is its own name.
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

/// Names of many files: the links of a directory are followed once.
#[derive(Default)]
pub(crate) struct Locations {
    folders: HashMap<PathBuf, PathBuf>,
}

impl Locations {
    /// See [`location`].
    pub(crate) fn of(&mut self, path: &str) -> Result<String> {
        if sieva_store::is_url(path) {
            return Ok(path.to_string());
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
