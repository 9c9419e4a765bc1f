//! Which files a path or a pattern means.

use std::fs::DirEntry;
use std::path::{Path, PathBuf};

use sieva_store::guard::{Gate, Purpose};
use sieva_types::{Error, ErrorKind, Result};

/// The files that `name` means: itself, or where it is a pattern (`*`, `?`, `[...]`, `**`) those that match it, in
/// order of their names. A path that exists is never taken for a pattern, nor is a URL.
///
/// # Errors
/// `file-not-found` where nothing matches; `invalid-value` for a pattern that is none; `permission-denied`.
pub fn expand(name: &str) -> Result<Vec<String>> {
    expand_within(name, &Gate::default())
}

/// The same, if `gate` lets each directory be listed that the pattern leads through, and each file be opened. One that it
/// refuses is an error, as is a directory that the system refuses to list: without it, the answer would be another.
///
/// # Errors
/// As [`expand`]; the gate's refusal.
pub fn expand_within(name: &str, gate: &Gate) -> Result<Vec<String>> {
    let is_pattern = name.contains(['*', '?', '[']) && !name.contains("://");
    if !is_pattern {
        return Ok(vec![name.to_string()]);
    }
    if !gate.is_open() {
        check_listed(name, gate)?;
    }
    if Path::new(name).exists() {
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
    if !gate.is_open() {
        files.iter().try_for_each(|file| gate.look(Path::new(file), Purpose::Source).map(drop))?;
    }
    files.sort();
    Ok(files)
}

/// Asks for every directory that a pattern is looked for in, from the outside in: what is in one that may not be listed
/// is not looked at.
fn check_listed(pattern: &str, gate: &Gate) -> Result<()> {
    let root = Path::new(if pattern.starts_with('/') { "/" } else { "." });
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    check_parts(root, &parts, gate)
}

fn check_parts(directory: &Path, parts: &[&str], gate: &Gate) -> Result<()> {
    let plain = parts.iter().take_while(|part| !part.contains(['*', '?', '['])).count();
    let directory: PathBuf = std::iter::once(directory).chain(parts[..plain].iter().map(Path::new)).collect();
    let Some((part, rest)) = parts[plain..].split_first() else {
        // A file of this name; whether it is there must not tell.
        return gate.look(&directory, Purpose::Source).map(drop);
    };
    gate.look(&directory, Purpose::Listing)?;
    if *part == "**" {
        return check_below(&directory, gate, 0);
    }
    let Some(pattern) = glob::Pattern::new(part).ok().filter(|_| !rest.is_empty()) else { return Ok(()) };
    let fits = |entry: &DirEntry| {
        // A link is asked for whatever it leads to: looking would tell.
        let leads_on = entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_symlink());
        leads_on && pattern.matches(&entry.file_name().to_string_lossy())
    };
    let mut found = entries(&directory).filter(fits);
    found.try_for_each(|entry| check_parts(&entry.path(), rest, gate))
}

/// Deepest directory that `**` is looked for in.
const DEEPEST: usize = 256;

fn check_below(directory: &Path, gate: &Gate, depth: usize) -> Result<()> {
    gate.look(directory, Purpose::Listing)?;
    if depth == DEEPEST {
        let message = format!("'{}' lies too deep for a pattern", directory.display());
        return Err(Error::new(ErrorKind::InvalidValue, message));
    }
    // Links are asked for as well, as it may be that they are followed; what they lead to has its own names.
    for entry in entries(directory) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => check_below(&entry.path(), gate, depth + 1)?,
            Ok(kind) if kind.is_symlink() => gate.look(&entry.path(), Purpose::Listing).map(drop)?,
            _ => {}
        }
    }
    Ok(())
}

/// What is in a directory; nothing of one that cannot be listed, which is told when files are looked for in it.
fn entries(directory: &Path) -> impl Iterator<Item = DirEntry> {
    std::fs::read_dir(directory).into_iter().flatten().flatten()
}

#[cfg(test)]
mod tests {
    use sieva_store::guard::AllowList;

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

    #[test]
    fn patterns_look_into_no_directory_that_may_not_be_listed() {
        let dir = std::env::temp_dir().join(format!("sieva-expand-within-{}", std::process::id()));
        for name in ["in/a", "in/b/c", "out/a"] {
            std::fs::create_dir_all(dir.join(name)).unwrap();
            std::fs::write(dir.join(name).join("x.nc"), b"").unwrap();
        }
        let list = AllowList::new([dir.join("in").display().to_string()]).unwrap();
        let gate = Gate::of(std::sync::Arc::new(list));
        let at = |name: &str| dir.join(name).display().to_string();
        for pattern in ["in/*/x.nc", "in/a/*.nc", "in/**/x.nc", "in/a/x.n?", "in/*/c/x.nc", "in/../in/a/*"] {
            assert_eq!(
                expand_within(&at(pattern), &gate).unwrap(),
                expand(&at(pattern)).unwrap(),
                "{pattern}"
            );
        }
        let none = expand_within(&at("in/*.nc"), &gate).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::FileNotFound);
        let refused = |pattern: &str, place: &str| {
            let e = expand_within(&at(pattern), &gate).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::PermissionDenied, "{pattern}");
            assert_eq!(e.message(), format!("'{}' is outside of what may be opened", at(place)));
        };
        refused("out/a/*.nc", "out/a");
        refused("none/a/*.nc", "none/a");
        refused("out/**/x.nc", "out");
        refused("in/../out/a/*", "in/../out/a");
        std::os::unix::fs::symlink(dir.join("out"), dir.join("in/link")).unwrap();
        refused("in/*/a/x.nc", "in/link/a/x.nc");
        refused("in/*/a/none.nc", "in/link/a/none.nc");
        refused("in/**/x.nc", "in/link");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
