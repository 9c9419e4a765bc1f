//! What a process that was killed left in a folder while it made a file of what came.

use std::path::Path;

/// Characters of a file's name that the directory has in its own in which it is made.
const OF_NAME: usize = 40;
/// Digits behind them.
const DIGITS: usize = 16;

/// Removes directories in which `path` was made by processes that are gone. Nobody else makes it now: the folder is locked.
pub(crate) fn remove(path: &Path) {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
    let begin: String = name.to_string_lossy().chars().take(OF_NAME).collect();
    let is_left = |name: &str| {
        let digits = name
            .strip_prefix('.')
            .and_then(|rest| rest.strip_prefix(&*begin))
            .and_then(|rest| rest.strip_prefix('.'))
            .and_then(|rest| rest.strip_suffix(".part"));
        digits.is_some_and(|d| d.len() == DIGITS && d.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && entry.file_name().to_str().is_some_and(is_left) {
            // What cannot be removed is in nobody's way.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_for_that_name_goes() {
        let folder = std::env::temp_dir().join(format!("sieva-left-{}", std::process::id()));
        let long = "é".repeat(60);
        let left = [
            ".a.zarr.0123456789abcdef.part".to_owned(),
            format!(".{}.0123456789abcdef.part", "é".repeat(40)),
        ];
        let others =
            ["a.zarr", ".b.zarr.0123456789abcdef.part", ".a.zarr.0123.part", ".a.zarr.part", ".sieva"];
        for name in left.iter().map(|name| &**name).chain(others) {
            std::fs::create_dir_all(folder.join(name).join("within")).unwrap();
        }
        std::fs::write(folder.join(".a.zarr.fedcba9876543210.part"), b"a file").unwrap();
        remove(&folder.join("a.zarr"));
        remove(&folder.join(long));
        let there = |name: &str| folder.join(name).exists();
        assert!(!left.iter().any(|name| there(name)));
        assert!(others.iter().all(|name| there(name)) && there(".a.zarr.fedcba9876543210.part"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
