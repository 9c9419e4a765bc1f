//! What a process that was killed left in a folder while it made a file of what came.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sieva::local;

/// What lies in each folder that was looked at under a name that may be one aside.
#[derive(Default)]
pub(crate) struct Left(Mutex<BTreeMap<PathBuf, Vec<String>>>);

impl Left {
    /// Removes what `path` was made in by processes that are gone. Nobody else makes it now: the folder is locked. A folder is
    /// looked at once.
    pub fn remove(&self, path: &Path) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let halves = known.entry(folder.to_owned()).or_insert_with(|| halves(folder));
        for half in halves.extract_if(.., |half| local::is_aside_of(half, name.as_ref())) {
            let half = folder.join(half);
            // What cannot be removed is in nobody's way.
            let _ = if half.is_dir() { fs::remove_dir_all(half) } else { fs::remove_file(half) };
        }
    }
}

/// Files and directories in a folder whose names end as those aside do.
fn halves(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_file()));
    ours.filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".part"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_for_that_name_goes() {
        let folder = std::env::temp_dir().join(format!("sieva-left-{}", std::process::id()));
        let long = format!(".{}.0123456789abcdef.part", "é".repeat(40));
        let others =
            [".b.zarr.0123456789abcdef.part", ".a.zarr.0123.part", ".a.zarr.part", ".sieva", "a.zarr"];
        for name in [".a.zarr.0123456789abcdef.part", &long].into_iter().chain(others) {
            fs::create_dir_all(folder.join(name).join("within")).unwrap();
        }
        fs::write(folder.join(".a.zarr.fedcba9876543210.part"), b"a file").unwrap();
        std::os::unix::fs::symlink(&folder, folder.join(".a.zarr.aaaaaaaaaaaaaaaa.part")).unwrap();
        let left = Left::default();
        left.remove(&folder.join("a.zarr"));
        left.remove(&folder.join("é".repeat(60)));
        let mut there: Vec<String> =
            fs::read_dir(&folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        there.sort();
        let mut expected = [&others[..], &[".a.zarr.aaaaaaaaaaaaaaaa.part"]].concat();
        expected.sort_unstable();
        assert_eq!(there, expected);
        fs::remove_dir_all(folder).unwrap();
    }
}
