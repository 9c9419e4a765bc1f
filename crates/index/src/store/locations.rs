//! Where the augmentations of a source lie.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use sieva_store::name_of;

/// Directories of stores of one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locations {
    /// Where augmentations are looked for, best first.
    pub read: Vec<PathBuf>,
    /// Where new ones go.
    pub write: PathBuf,
}

/// Where the augmentations of `source` are looked for, and where new ones go.
///
/// Without `given`: beside the source, as `<source>.sieva`; where `source` is a link, beside what it leads to
/// as well. With `given`, a directory that holds the stores of many sources, first of all in
/// `<given>/<file name>-<32 hex>.sieva`, the digits being the [`name_of`] the absolute path (links resolved), so
/// that all names of one file lead to one store, and those of no other. Whether what is found there belongs to the source is told by
/// its [`Fingerprint`](super::Fingerprint), not by its place.
pub fn locations(source: &Path, given: Option<&Path>) -> Locations {
    if let (Some(url), Some(given)) = (source.to_str().filter(|s| s.contains("://")), given) {
        // Nothing lies beside it that could be written to.
        let name = url.split(['?', '#']).next().and_then(|u| u.rsplit('/').find(|part| !part.is_empty()));
        let store = given.join(format!("{}-{}.sieva", name.unwrap_or("source"), name_of(url.as_bytes())));
        return Locations { write: store.clone(), read: vec![store] };
    }
    // Following links asks for every directory above: only where it can matter.
    let absolute = || {
        let absolute = source.canonicalize().or_else(|_| std::path::absolute(source));
        absolute.unwrap_or_else(|_| source.to_path_buf())
    };
    let mut read = vec![with_suffix(source, ".sieva")];
    if source.is_symlink() {
        let beside_target = with_suffix(&absolute(), ".sieva");
        if !read.contains(&beside_target) {
            read.push(beside_target);
        }
    }
    if let Some(given) = given {
        let absolute = absolute();
        let hash = name_of(absolute.as_os_str().as_bytes());
        let name = absolute.file_name().map_or_else(|| PathBuf::from("source"), PathBuf::from);
        read.insert(0, given.join(with_suffix(&name, &format!("-{hash}.sieva"))));
    }
    Locations { write: read[0].clone(), read }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_lies_beside_its_source_or_where_it_is_told() {
        let dir = crate::scratch::Scratch::new();
        let source = dir.path().join("pop.nc");
        std::fs::write(&source, b"x").unwrap();
        let plain = locations(&source, None);
        assert_eq!(plain.write, dir.path().join("pop.nc.sieva"));
        assert_eq!(plain.read, std::slice::from_ref(&plain.write));

        let given = locations(&source, Some(Path::new("/stores")));
        assert_eq!(given.read, [given.write.clone(), plain.write]);
        let name = given.write.file_name().unwrap().to_str().unwrap();
        assert!(
            given.write.starts_with("/stores") && name.starts_with("pop.nc-") && name.len() == 45,
            "{name}"
        );
    }

    #[test]
    fn names_of_one_file_share_a_given_store() {
        let dir = crate::scratch::Scratch::new();
        let source = dir.path().join("run17.nc");
        std::fs::write(&source, b"x").unwrap();
        let link = dir.path().join("latest.nc");
        std::os::unix::fs::symlink(&source, &link).unwrap();
        let given = Some(Path::new("/stores"));
        assert_eq!(locations(&link, given).write, locations(&source, given).write);
        let beside = locations(&link, None);
        assert_eq!(beside.write, dir.path().join("latest.nc.sieva"));
        let target = dir.path().canonicalize().unwrap().join("run17.nc.sieva");
        assert_eq!(beside.read, [beside.write.clone(), target]);
    }
}
