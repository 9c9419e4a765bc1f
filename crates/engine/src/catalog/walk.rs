//! What is done with one directory and with files: which have changed, and what is to be registered of them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError};

use sieva_catalog::{Catalog, SourceRecord};
use sieva_store::guard::Purpose;
use sieva_types::{Error, ErrorKind, Result};

use super::add::{AddOptions, AddReport};
use super::one::{self, Outcome};
use super::work::Tasks;
use super::{place, statistics};
use crate::open::{OpenOptions, Source};

/// Files that are looked up in the catalog at a time.
pub(super) const FILES: usize = 128;
/// Tasks that may wait before a directory's files are dealt with where they are found.
const WAITING: usize = 1024;
/// Problems that are kept by name.
const NAMED: usize = 1000;
/// What makes a directory a Zarr group or array.
const ZARR: [&str; 4] = ["zarr.json", ".zmetadata", ".zgroup", ".zarray"];

/// Something to look at.
pub(super) enum Task {
    Folder(PathBuf),
    /// Paths that are names in the catalog, too.
    Files(Vec<String>),
}

/// Keeps a problem, unless there are too many.
pub(super) fn note(list: &mut Vec<(String, String)>, name: &str, why: &str) {
    if list.len() < NAMED {
        list.push((name.to_string(), why.to_string()));
    }
}

/// What threads that walk and open share.
pub(super) struct Walk<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) options: &'a AddOptions,
    pub(super) open: OpenOptions,
    /// Whole addresses of objects, by their names in the catalog, where these are not the same.
    pub(super) addresses: HashMap<String, String>,
    pub(super) tasks: Tasks<Task>,
    pub(super) found: AtomicU64,
    pub(super) done: AtomicU64,
    pub(super) report: Mutex<AddReport>,
    /// What the catalog said that ends it all.
    pub(super) failed: Mutex<Option<Error>>,
}

impl Walk<'_> {
    pub(super) fn report(&self) -> std::sync::MutexGuard<'_, AddReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does one task; what is to be registered is handed over.
    pub(super) fn task(&self, task: Task, send: &SyncSender<SourceRecord>) {
        match task {
            Task::Folder(path) => self.folder(&path, send),
            Task::Files(files) => {
                self.found.fetch_add(files.len() as u64, Relaxed);
                self.files(&files, send);
            }
        }
    }

    fn folder(&self, path: &Path, send: &SyncSender<SourceRecord>) {
        let unreadable = |path: &Path, e: &dyn std::fmt::Display| {
            note(&mut self.report().unreadable, &path.display().to_string(), &e.to_string());
        };
        if ZARR.iter().any(|name| path.join(name).exists()) {
            return match path.to_str() {
                Some(path) => self.task(Task::Files(vec![path.to_string()]), send),
                None => unreadable(path, &"the name is not UTF-8"),
            };
        }
        let entries = match std::fs::read_dir(path) {
            Ok(entries) => entries,
            Err(e) => return unreadable(path, &e),
        };
        let mut files = Vec::with_capacity(FILES);
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(e) => return unreadable(path, &e),
            };
            match self.entry(&entry) {
                Err(e) => unreadable(&entry.path(), &e),
                Ok(None) => {}
                Ok(Some(Task::Files(found))) => files.extend(found),
                Ok(Some(folder)) => self.tasks.push(folder),
            }
            if files.len() >= FILES {
                let files = std::mem::replace(&mut files, Vec::with_capacity(FILES));
                match self.tasks.waiting() < WAITING {
                    true => self.tasks.push(Task::Files(files)),
                    false => self.task(Task::Files(files), send),
                }
            }
        }
        if !files.is_empty() {
            self.tasks.push(Task::Files(files));
        }
    }

    /// What an entry of a directory is, where it is to be looked at.
    fn entry(&self, entry: &std::fs::DirEntry) -> std::result::Result<Option<Task>, String> {
        let (name, path) = (entry.file_name(), entry.path());
        let bytes = name.as_encoded_bytes();
        if bytes.starts_with(b".") || bytes.ends_with(b".sieva") {
            return Ok(None);
        }
        let kind = entry.file_type().map_err(|e| e.to_string())?;
        if kind.is_dir() {
            return Ok(Some(Task::Folder(path)));
        }
        // A link may lead to a file; one to a directory may lead round in a circle.
        if kind.is_symlink() && !path.is_file() || !kind.is_symlink() && !kind.is_file() {
            return Ok(None);
        }
        let path = path.into_os_string().into_string().map_err(|_| "the name is not UTF-8".to_string())?;
        Ok(Some(Task::Files(vec![path])))
    }

    fn files(&self, files: &[String], send: &SyncSender<SourceRecord>) {
        if let Err(e) = self.look(files, send) {
            self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(e);
            self.tasks.stop();
        }
    }

    /// Looks at files and hands over what is to be registered.
    fn look(&self, files: &[String], send: &SyncSender<SourceRecord>) -> Result<()> {
        let names: Vec<&str> = files.iter().map(String::as_str).collect();
        let known = self.catalog.known(&names, None)?;
        let mut unchanged = Vec::new();
        for path in files {
            if self.options.cancel.load(Relaxed) {
                break;
            }
            self.done.fetch_add(1, Relaxed);
            if sieva_store::local::is_open_database(Path::new(path)) {
                self.report().others += 1;
                continue;
            }
            let Some(state) = self.state(path) else { continue };
            match known.get(path) {
                Some(known) if (known.size, &known.version) == (state.0, &state.1) => {
                    unchanged.push(path.as_str());
                    if self.options.statistics && known.error.is_none() {
                        self.describe(path, &state.1)?;
                    }
                }
                _ => {
                    if !self.open(path, &state, send) {
                        break;
                    }
                }
            }
        }
        self.report().unchanged += unchanged.len() as u64;
        self.collect(&unchanged)
    }

    /// Puts registered sources into the collections that were asked for.
    pub(super) fn collect(&self, locations: &[&str]) -> Result<()> {
        let names = self.options.collections.iter().filter(|_| !locations.is_empty());
        names.into_iter().try_for_each(|name| self.catalog.collect(name, locations).map(|_| ()))
    }

    /// What a source is opened by.
    fn address<'a>(&'a self, location: &'a str) -> &'a str {
        self.addresses.get(location).map_or(location, String::as_str)
    }

    /// Size and version, where a look at a path tells them.
    fn state(&self, path: &str) -> Option<(u64, String)> {
        if sieva_store::is_url(path) {
            let open = sieva_store::open_within(
                self.address(path),
                &self.open.remote,
                &self.open.gate,
                Purpose::Source,
            );
            return Some(open.map_or((0, String::new()), |store| (store.len(), store.version())));
        }
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => Some((0, String::new())),
            Ok(meta) => Some(place::state(&meta)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
            Err(e) => {
                note(&mut self.report().unreadable, path, &e.to_string());
                None
            }
        }
    }

    /// Opens one and hands over what is to be registered; false where nobody takes it any more.
    fn open(&self, path: &str, state: &(u64, String), send: &SyncSender<SourceRecord>) -> bool {
        let with_statistics = self.options.statistics.then_some(&self.options.cancel);
        let mut record = match one::look(self.address(path), path, state, &self.open, with_statistics) {
            Outcome::Found(record, left_out) => {
                self.report().left_out += left_out;
                *record
            }
            Outcome::Damaged(record) => {
                note(&mut self.report().damaged, path, record.error.as_deref().unwrap_or_default());
                *record
            }
            Outcome::Other => {
                self.report().others += 1;
                return true;
            }
            Outcome::Unreadable(e) if e.kind() == ErrorKind::Cancelled => return true,
            Outcome::Unreadable(e) => {
                note(&mut self.report().unreadable, path, e.message());
                return true;
            }
            Outcome::Gone => {
                if sieva_store::is_url(path) {
                    note(&mut self.report().unreadable, path, "there is no such object");
                }
                return true;
            }
        };
        record.collections.clone_from(&self.options.collections);
        send.send(record).is_ok()
    }

    /// Records statistics of a known source that has none yet.
    fn describe(&self, path: &str, version: &str) -> Result<()> {
        let known = self.catalog.show(path)?;
        if known.is_none_or(|(_, objects)| objects.iter().any(|o| o.stats.is_some())) {
            return Ok(());
        }
        let found = Source::open(self.address(path), &self.open)
            .and_then(|s| statistics::of(&s, &self.options.cancel));
        match found {
            Err(e) if e.kind() == ErrorKind::Cancelled => Ok(()),
            Err(e) => {
                note(&mut self.report().unreadable, path, e.message());
                Ok(())
            }
            Ok(stats) if stats.is_empty() => Ok(()),
            Ok(stats) => {
                let stats: Vec<_> = stats.iter().map(|(path, s)| (path.as_str(), s.clone())).collect();
                if self.catalog.set_array_stats(path, version, &stats)? {
                    self.report().described += 1;
                }
                Ok(())
            }
        }
    }
}
