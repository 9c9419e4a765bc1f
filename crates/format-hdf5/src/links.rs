//! Which files a file may lead to: external links, sources of virtual data, raw data kept elsewhere.
//!
//! Every path is resolved here, to its canonical form, before libhdf5 may open it.

use std::ffi::{CStr, CString, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hdf5_metno_sys::h5d::H5Dget_create_plist;
use hdf5_metno_sys::h5p::*;
use sieva_types::{Error, ErrorKind, Result};

use crate::dataset;
use crate::ffi::{self, Handle, call};
use crate::file::{File, ObjectKind};
use crate::fill;
use crate::packed;
use crate::types::TypeInfo;

/// Deepest chain of virtual data on virtual data that is followed.
const CHAIN_LIMIT: usize = 8;
/// Most mappings of one virtual dataset that are looked at.
const MAPPING_LIMIT: usize = 1 << 20;

/// The directories that links may lead into.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policy {
    roots: Vec<PathBuf>,
}

impl Policy {
    /// The policy that allows `roots`; those that do not exist allow nothing.
    pub(crate) fn new(roots: &[PathBuf]) -> Self {
        Self { roots: roots.iter().filter_map(|r| r.canonicalize().ok()).collect() }
    }

    /// The canonical path of the existing file `target`.
    ///
    /// # Errors
    /// `link-refused` outside of the roots; `file-not-found` where there is none.
    fn allow(&self, target: &Path) -> Result<PathBuf> {
        let real = target.canonicalize().map_err(|e| Error::io(format!("'{}'", target.display()), &e))?;
        if self.roots.iter().any(|root| real.starts_with(root)) {
            return Ok(real);
        }
        Err(refused(target))
    }

    /// The file that an external link of `file` names, looked for as given and beside `file`.
    pub(crate) fn external(&self, file: &File, name: &[u8]) -> Result<PathBuf> {
        self.external_of(local(file, name)?, name)
    }

    fn external_of(&self, from: &Path, name: &[u8]) -> Result<PathBuf> {
        let name = Path::new(std::ffi::OsStr::from_bytes(name));
        if self.roots.is_empty() {
            return Err(refused(name));
        }
        self.allow(&directory_of(from).join(name))
    }

    /// Checks that reading the dataset opens no file but allowed ones (and `file` itself).
    pub(crate) fn check_dataset(&self, file: &File, dataset: &Handle) -> Result<()> {
        self.check_chain(file, dataset, 0)
    }

    fn check_chain(&self, file: &File, dataset: &Handle, depth: usize) -> Result<()> {
        let _guard = ffi::lock();
        let info = TypeInfo::read(&dataset::stored_type(dataset)?)?;
        fill::check(file, File::identify(dataset)?.1, &info)?;
        // SAFETY: the lock is held, `dataset` is open.
        let creation =
            ffi::open("cannot look at a dataset", || unsafe { H5Dget_create_plist(dataset.id()) })?;
        for name in external_names(&creation)? {
            self.check_candidates(file, &name)?;
        }
        packed::check_chunks(file, dataset)?;
        let sources = virtual_sources(&creation)?;
        if !sources.is_empty() && depth == CHAIN_LIMIT {
            let what = format!("virtual data more than {CHAIN_LIMIT} files deep");
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
        let mut checked = std::collections::HashSet::new();
        for source in sources {
            if checked.insert(source.clone()) {
                self.check_source(file, &source, depth)?;
            }
        }
        Ok(())
    }

    fn check_source(&self, file: &File, source: &Source, depth: usize) -> Result<()> {
        if source.file == b"." {
            return self.check_target(file, &source.dataset, depth);
        }
        let here = directory_of(local(file, &source.file)?);
        for path in self.check_candidates(file, &source.file)? {
            if file.is_at(&path) {
                self.check_target(file, &source.dataset, depth)?;
            } else if let Ok(other) = File::open(&path) {
                self.check_target(&other, &source.dataset, depth)?;
            }
        }
        let pattern = Path::new(std::ffi::OsStr::from_bytes(&source.file));
        if source.file.contains(&b'%') {
            self.check_pattern(&here.join(pattern))?;
        }
        Ok(())
    }

    /// The dataset that a mapping reads, which may be virtual or kept elsewhere itself.
    fn check_target(&self, file: &File, dataset: &[u8], depth: usize) -> Result<()> {
        let Ok(name) = CString::new(dataset) else { return Ok(()) };
        // A source that is not there reads as fill value; one behind an external link is not found either,
        // but libhdf5 would follow the link.
        match file.object_at(file.handle(), &name) {
            Ok(target) if matches!(File::identify(&target), Ok((ObjectKind::Dataset, _))) => {
                self.check_chain(file, &target, depth + 1)
            }
            Err(e) if e.message().contains("callback") || e.message().contains("traversal") => {
                Err(refused(Path::new(std::ffi::OsStr::from_bytes(dataset))))
            }
            _ => Ok(()),
        }
    }

    /// The existing files among those that libhdf5 would try for `name`, all allowed.
    fn check_candidates(&self, file: &File, name: &[u8]) -> Result<Vec<PathBuf>> {
        let path = local(file, name)?;
        let name = Path::new(std::ffi::OsStr::from_bytes(name));
        let own = path.canonicalize().ok();
        let mut found = Vec::new();
        let mut any = false;
        for candidate in candidates(path, name) {
            if std::fs::symlink_metadata(&candidate).is_err() {
                continue;
            }
            any = true;
            let real = candidate.canonicalize().ok();
            match real {
                Some(real) if Some(&real) == own.as_ref() => found.push(real),
                _ => found.push(self.allow(&candidate)?),
            }
        }
        if !any && self.roots.is_empty() && !name.as_os_str().as_bytes().contains(&b'%') {
            return Err(refused(name));
        }
        Ok(found)
    }

    /// A name with `%b` in it stands for many files: all entries of its directory have to be allowed.
    fn check_pattern(&self, pattern: &Path) -> Result<()> {
        let directory = directory_of(pattern);
        let in_name = pattern.file_name().is_some_and(|n| n.as_bytes().contains(&b'%'));
        if directory.as_os_str().as_bytes().contains(&b'%') || !in_name {
            return Err(refused(pattern));
        }
        self.allow(&directory)?;
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|t| t.is_symlink()) {
                self.allow(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// Where libhdf5 looks for `name` from `file`: as given, beside the file, by its last component beside the
/// file, beside what the file's own name is a link to, and under the prefixes of the environment.
fn candidates(file: &Path, name: &Path) -> Vec<PathBuf> {
    let leaf = Path::new(name.file_name().unwrap_or_default());
    let mut directories = vec![PathBuf::new(), directory_of(file)];
    directories.extend(file.canonicalize().ok().map(|real| directory_of(&real)));
    for variable in ["HDF5_VDS_PREFIX", "HDF5_EXTFILE_PREFIX"] {
        directories.extend(std::env::var_os(variable).iter().flat_map(std::env::split_paths));
    }
    let mut out: Vec<PathBuf> = directories.iter().flat_map(|d| [d.join(name), d.join(leaf)]).collect();
    out.sort();
    out.dedup();
    out
}

fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// The path of a local file. What is kept elsewhere leads to no other file: a name in it must not reach into the file
/// system of whoever reads it.
fn local<'a>(file: &'a File, target: &[u8]) -> Result<&'a Path> {
    file.path().ok_or_else(|| {
        let (target, name) = (String::from_utf8_lossy(target), file.bytes().store().name());
        let what = format!("it leads to '{target}', and '{name}' is no local file");
        Error::new(ErrorKind::LinkRefused, what).hint("copy both to a local directory, and allow that")
    })
}

fn refused(target: &Path) -> Error {
    Error::new(ErrorKind::LinkRefused, format!("it leads to '{}', which is not allowed", target.display()))
        .hint("allow its directory: --external DIR on the command line, external=[DIR] in Python")
}

/// The names of the files that hold a dataset's raw data.
pub(crate) fn external_names(creation: &Handle) -> Result<Vec<Vec<u8>>> {
    // SAFETY: called under the lock with an open creation list.
    let n = call("cannot look at a dataset", || unsafe { H5Pget_external_count(creation.id()) })?;
    (0..n as c_uint)
        .map(|i| {
            let mut buffer = vec![0_u8; 4096];
            call("cannot look at a dataset", || {
                // SAFETY: as above; the buffer is as long as said, offset and size are not asked for.
                unsafe {
                    H5Pget_external(
                        creation.id(),
                        i,
                        buffer.len() - 1,
                        buffer.as_mut_ptr().cast(),
                        std::ptr::null_mut(),
                        std::ptr::null_mut(),
                    )
                }
            })?;
            Ok(CStr::from_bytes_until_nul(&buffer).map(|s| s.to_bytes().to_vec()).unwrap_or_default())
        })
        .collect()
}

/// One source of a virtual dataset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    /// File name as stored; `.` for the same file.
    pub(crate) file: Vec<u8>,
    /// Path of the dataset in it.
    pub(crate) dataset: Vec<u8>,
}

/// The sources of a virtual dataset; none for any other.
pub(crate) fn virtual_sources(creation: &Handle) -> Result<Vec<Source>> {
    // SAFETY: called under the lock with an open creation list.
    if unsafe { H5Pget_layout(creation.id()) } != hdf5_metno_sys::h5d::H5D_layout_t::H5D_VIRTUAL {
        return Ok(Vec::new());
    }
    let mut n = 0;
    // SAFETY: as above, the pointer is to a local.
    call("cannot look at virtual data", || unsafe { H5Pget_virtual_count(creation.id(), &mut n) })?;
    if n > MAPPING_LIMIT {
        return Err(Error::new(ErrorKind::Unsupported, format!("virtual data of {n} mappings")));
    }
    (0..n)
        .map(|i| {
            let what = "cannot look at virtual data";
            // SAFETY: as above; mapping `i` exists and the buffer is as long as said.
            let file =
                ffi::name(what, |b, len| unsafe { H5Pget_virtual_filename(creation.id(), i, b, len) })?;
            // SAFETY: as above.
            let dataset =
                ffi::name(what, |b, len| unsafe { H5Pget_virtual_dsetname(creation.id(), i, b, len) })?;
            Ok(Source { file, dataset })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_under_a_root_are_allowed() {
        let base = std::env::temp_dir().join(format!("sieva-h5-links-{}", std::process::id()));
        let (inside, outside) = (base.join("in"), base.join("out"));
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(inside.join("a"), b"").unwrap();
        std::fs::write(outside.join("b"), b"").unwrap();
        std::os::unix::fs::symlink(outside.join("b"), inside.join("link")).ok();
        let from = inside.join("main.h5");
        let policy = Policy::new(std::slice::from_ref(&inside));
        assert!(policy.external_of(&from, b"a").is_ok());
        for escape in ["../out/b", "link"] {
            let e = policy.external_of(&from, escape.as_bytes()).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::LinkRefused, "{escape}");
        }
        assert_eq!(policy.external_of(&from, b"none").unwrap_err().kind(), ErrorKind::FileNotFound);
        assert_eq!(Policy::default().external_of(&from, b"a").unwrap_err().kind(), ErrorKind::LinkRefused);
        std::fs::remove_dir_all(base).unwrap();
    }
}
