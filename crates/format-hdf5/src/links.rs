//! Which files a file may lead to: external links, sources of virtual data, raw data kept elsewhere.
//!
//! Every path is resolved here, to its canonical form, before libhdf5 may open it, and again when it does
//! ([`Policy::source`]).

use std::ffi::{CStr, CString, c_uint};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use hdf5_metno_sys::h5d::H5Dget_create_plist;
use hdf5_metno_sys::h5p::*;
use sieva_store::guard::{Gate, Purpose};
use sieva_store::{FileStore, local};
use sieva_types::{Error, ErrorKind, Result};

use crate::bytes::FileBytes;
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
    /// Who has to agree, too.
    gate: Gate,
    /// The file itself, which its virtual data may name.
    own: Option<PathBuf>,
}

impl Policy {
    /// The policy that allows `roots`; those that do not exist allow nothing.
    pub(crate) fn new(roots: &[PathBuf], gate: &Gate) -> Self {
        let roots = roots.iter().filter_map(|r| r.canonicalize().ok()).collect();
        Self { roots, gate: gate.clone(), own: None }
    }

    /// Who is asked before a file is opened that another leads to.
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The same for links of `bytes`, which may be named by them, too. What is no local file leads to no other.
    pub(crate) fn of(self, bytes: &FileBytes) -> Self {
        match bytes.local_path() {
            Some(path) => Self { own: path.canonicalize().ok(), ..self },
            None => Self::default(),
        }
    }

    /// The file that libhdf5 looks for at `path`, as a source of virtual data; `None` where there is none. Never one that
    /// counts from the working directory: what the same file answers would depend on where somebody stands.
    ///
    /// # Errors
    /// `link-refused` where it is not one of those that are allowed; the gate's refusal.
    pub(crate) fn source(&self, path: &Path) -> Result<Option<FileStore>> {
        self.open(path)?.map(|(file, real)| FileStore::of(file, &real)).transpose()
    }

    /// The same, as a file with raw data.
    ///
    /// # Errors
    /// As [`Policy::source`].
    pub(crate) fn file(&self, path: &Path) -> Result<Option<std::fs::File>> {
        Ok(self.open(path)?.map(|(file, _)| file))
    }

    fn open(&self, path: &Path) -> Result<Option<(std::fs::File, PathBuf)>> {
        if path.is_relative() {
            return Ok(None);
        }
        let Ok(file) = self.gate.open_regular(path, Purpose::Link)? else { return Ok(None) };
        // By what was opened, not by its name, which may mean another file by now.
        let real = local::real_path(&file).map_err(|e| Error::io(format!("'{}'", path.display()), &e))?;
        if self.own.as_deref() != Some(&*real) && !self.is_allowed(&real) {
            return Err(refused(path));
        }
        Ok(Some((file, real)))
    }

    fn is_allowed(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    /// The canonical path of the existing file `target`.
    ///
    /// # Errors
    /// `link-refused` outside of the roots; `file-not-found` where there is none.
    fn allow(&self, target: &Path) -> Result<PathBuf> {
        self.gate.look(target, Purpose::Link)?;
        let real = target.canonicalize().map_err(|e| Error::io(format!("'{}'", target.display()), &e))?;
        if self.is_allowed(&real) { Ok(real) } else { Err(refused(target)) }
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
            if depth > 0 && !name.starts_with(b"/") {
                // libhdf5 would look for it in the working directory.
                let what =
                    "virtual data of an array whose raw data are kept in other files, under relative names";
                return Err(Error::new(ErrorKind::Unsupported, what));
            }
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

    /// Checks all that a mapping stands for: a pattern, one source after the other until there is none, as libhdf5 does.
    fn check_source(&self, file: &File, source: &Source, depth: usize) -> Result<()> {
        let is_pattern = [&source.file, &source.dataset].iter().any(|name| numbered(name, 0).1);
        for number in 0..=MAPPING_LIMIT {
            let one = Source {
                file: numbered(&source.file, number).0,
                dataset: numbered(&source.dataset, number).0,
            };
            if !self.check_one_source(file, &one, depth)? || !is_pattern {
                return Ok(());
            }
        }
        Err(Error::new(ErrorKind::Unsupported, format!("virtual data of more than {MAPPING_LIMIT} sources")))
    }

    /// Checks one source; whether it is there.
    fn check_one_source(&self, file: &File, source: &Source, depth: usize) -> Result<bool> {
        if source.file == b"." {
            return self.check_target(file, &source.dataset, depth);
        }
        let mut is_there = false;
        for path in self.check_candidates(file, &source.file)? {
            if file.is_at(&path) {
                is_there |= self.check_target(file, &source.dataset, depth)?;
            } else if let Ok(other) = File::open(&path, &self.gate) {
                is_there |= self.check_target(&other, &source.dataset, depth)?;
            }
        }
        Ok(is_there)
    }

    /// The dataset that a mapping reads, which may be virtual or kept elsewhere itself; whether it is there.
    fn check_target(&self, file: &File, dataset: &[u8], depth: usize) -> Result<bool> {
        let Ok(name) = CString::new(dataset) else { return Ok(false) };
        // A source that is not there reads as fill value; one behind an external link is not found either,
        // but libhdf5 would follow the link.
        match file.object_at(file.handle(), &name) {
            Ok(target) if matches!(File::identify(&target), Ok((ObjectKind::Dataset, _))) => {
                self.check_chain(file, &target, depth + 1).map(|()| true)
            }
            Err(e) if is_refusal(&e) => Err(refused(Path::new(std::ffi::OsStr::from_bytes(dataset)))),
            _ => Ok(false),
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
            let real = candidate.canonicalize().ok();
            if let Some(real) = real.filter(|real| Some(real) == own.as_ref()) {
                any = true;
                found.push(real);
                continue;
            }
            // Before it is known whether it is there: a refusal must not tell.
            self.gate.look(&candidate, Purpose::Link)?;
            if std::fs::symlink_metadata(&candidate).is_err() {
                continue;
            }
            if self.roots.is_empty() {
                return Err(refused(name));
            }
            any = true;
            found.push(self.allow(&candidate)?);
        }
        if !any && self.roots.is_empty() {
            return Err(refused(name));
        }
        Ok(found)
    }
}

/// Whether a link could not be followed because an external one is on the way, which [`File::object_at`] refuses.
pub(crate) fn is_refusal(e: &Error) -> bool {
    e.message().contains("callback") || e.message().contains("traversal")
}

/// A name of a mapping with `%b` as this number and `%%` as `%`; whether the number is in it.
fn numbered(name: &[u8], number: usize) -> (Vec<u8>, bool) {
    let (mut out, mut has_number) = (Vec::new(), false);
    let mut rest = name.iter();
    while let Some(&byte) = rest.next() {
        match (byte, rest.as_slice().first()) {
            (b'%', Some(b'b')) => {
                out.extend(number.to_string().into_bytes());
                has_number = true;
                rest.next();
            }
            (b'%', Some(b'%')) => {
                out.push(b'%');
                rest.next();
            }
            _ => out.push(byte),
        }
    }
    (out, has_number)
}

/// Where libhdf5 looks for `name` from `file`: beside it; an absolute name as it is given, then by its last part beside it.
/// It also tries the working directory, which [`Policy::source`] never gives it.
fn candidates(file: &Path, name: &Path) -> Vec<PathBuf> {
    let here = directory_of(file);
    match name.file_name() {
        Some(leaf) if name.is_absolute() => vec![name.to_path_buf(), here.join(leaf)],
        _ => vec![here.join(name)],
    }
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
        let policy = Policy::new(std::slice::from_ref(&inside), &Gate::default());
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
