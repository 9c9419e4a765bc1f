//! Which files a path or a pattern means.

use std::path::Path;

use sieva_types::{Error, ErrorKind, Result};

/// The files that `name` means: itself, or where it is a pattern (`*`, `?`, `[...]`, `**`) those that match it, in
/// order of their names. A path that exists is never taken for a pattern, nor is a URL.
///
/// # Errors
/// `file-not-found` where nothing matches; `invalid-value` for a pattern that is none; `permission-denied`.
pub fn expand(name: &str) -> Result<Vec<String>> {
    let is_pattern = name.contains(['*', '?', '[']) && !name.contains("://");
    if !is_pattern || Path::new(name).exists() {
        return Ok(vec![name.to_string()]);
    }
    let found = glob::glob(name).map_err(|e| {
        Error::new(ErrorKind::InvalidValue, format!("'{name}' is no pattern: {} at {}", e.msg, e.pos))
    })?;
    let mut files = Vec::new();
    for entry in found {
        let path =
            entry.map_err(|e| Error::io(format!("cannot list '{}'", e.path().display()), e.error()))?;
        // What indexes are kept in lies beside the files.
        if path.extension().is_none_or(|e| e != "sieva") {
            files.push(path.display().to_string());
        }
    }
    if files.is_empty() {
        return Err(Error::new(ErrorKind::FileNotFound, format!("no file matches '{name}'")));
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_expanded_in_order_and_paths_are_not() {
        let dir = std::env::temp_dir().join(format!("sieva-expand-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("b.nc.sieva")).unwrap();
        for name in ["b.nc", "a.nc", "c[1].nc"] {
            std::fs::write(dir.join(name), b"").unwrap();
        }
        let at = |name: &str| dir.join(name).display().to_string();
        assert_eq!(expand(&at("?.nc*")).unwrap(), [at("a.nc"), at("b.nc")]);
        assert_eq!(expand(&at("c[1].nc")).unwrap(), [at("c[1].nc")]);
        assert_eq!(expand("s3://b/*.nc").unwrap(), ["s3://b/*.nc"]);
        assert_eq!(expand(&at("*.h5")).unwrap_err().kind(), ErrorKind::FileNotFound);
        assert_eq!(expand(&at("a[")).unwrap_err().kind(), ErrorKind::InvalidValue);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
