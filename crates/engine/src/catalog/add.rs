//! Walks directories and registers what is found: in parallel, in batches, each of them wholly or not at all.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sieva_catalog::{Catalog, IngestReport, SourceRecord};
use sieva_types::{Error, ErrorKind, Result};

use super::one::{self, Outcome};
use super::work::Tasks;
use super::{place, statistics};
use crate::many::expand;
use crate::open::{OpenOptions, Source};

/// Files that are looked up in the catalog at a time.
const FILES: usize = 128;
/// Tasks that may wait before a directory's files are dealt with where they are found.
const WAITING: usize = 1024;
/// A batch is registered once it has so many objects, or bytes of manifests, or is so old.
const OBJECTS: usize = 20_000;
const MANIFESTS: usize = 32 << 20;
const AGE: Duration = Duration::from_secs(2);
/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);
/// Problems that are kept by name.
const NAMED: usize = 1000;
/// What makes a directory a Zarr group or array.
const ZARR: [&str; 4] = ["zarr.json", ".zmetadata", ".zgroup", ".zarray"];

/// What is told of progress: files dealt with, and files found so far.
pub type Tell = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// How sources are registered.
#[derive(Clone)]
pub struct AddOptions {
    /// Threads that walk and open.
    pub jobs: usize,
    /// Collections to put them into, made where they are not there.
    pub collections: Vec<String>,
    /// Whether to build zone maps, and to keep the least and greatest value of each array.
    pub statistics: bool,
    /// How files are opened. Names of dimensions and allowed directories are not used: what is kept of a file is what
    /// the file says.
    pub open: OpenOptions,
    /// Called from time to time, from the calling thread.
    pub progress: Option<Tell>,
    /// Set to stop. What is registered until then stays.
    pub cancel: Arc<AtomicBool>,
}

impl Default for AddOptions {
    fn default() -> Self {
        Self {
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            collections: Vec::new(),
            statistics: false,
            open: OpenOptions::default(),
            progress: None,
            cancel: Arc::default(),
        }
    }
}

/// What was registered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddReport {
    /// Sources that were not known.
    pub added: u64,
    /// Sources that had changed.
    pub replaced: u64,
    /// Sources that were as they are known.
    pub unchanged: u64,
    /// Groups and arrays of those added or replaced.
    pub objects: u64,
    /// Files of other formats.
    pub others: u64,
    /// Attributes, and objects, that the catalog does not keep: long lists, values that are no number and no text.
    pub left_out: u64,
    /// Sources whose arrays' statistics were recorded though they had not changed.
    pub described: u64,
    /// Sources that are registered as damaged now, and why; the first 1000.
    pub damaged: Vec<(String, String)>,
    /// Files and directories that could not be looked at, and why; the first 1000. Nothing is registered of them.
    pub unreadable: Vec<(String, String)>,
}

enum Task {
    Folder(PathBuf),
    /// Paths that are names in the catalog, too.
    Files(Vec<String>),
}

/// Registers files, directories with all that is under them, what a glob matches, and URLs. Known sources of the same
/// size and version are not opened again. Hidden files, links to directories, and `.sieva` stores are passed over.
///
/// # Errors
/// `file-not-found` for a name that is nothing, `cancelled`, and those of the catalog. A file that cannot be read is no
/// error: see [`AddReport`].
pub fn add(catalog: &Catalog, names: &[String], options: &AddOptions) -> Result<AddReport> {
    let tasks = Tasks::new(first_tasks(names)?);
    make_collections(catalog, &options.collections)?;
    let open = OpenOptions {
        dims: Vec::new(),
        external_roots: Vec::new(),
        join: None,
        catalog: None,
        ..options.open.clone()
    };
    let (send, receive) = mpsc::sync_channel(64);
    let walk = Walk {
        catalog,
        options,
        open,
        tasks,
        found: AtomicU64::new(0),
        done: AtomicU64::new(0),
        report: Mutex::default(),
        failed: Mutex::default(),
    };
    let registered = std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            let (walk, send) = (&walk, send.clone());
            scope.spawn(move || walk.tasks.work(|task| walk.task(task, &send)));
        }
        drop(send);
        let registered = register(&walk, &receive);
        if registered.is_err() {
            walk.tasks.stop();
            // Who waits to hand over a record comes to its end.
            drop(receive);
        }
        registered
    });
    let failed = walk.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut report = walk.report.into_inner().unwrap_or_else(PoisonError::into_inner);
    let ingested = registered?;
    if let Some(e) = failed {
        return Err(e);
    }
    if options.cancel.load(Relaxed) {
        let message = format!("stopped after {} files", walk.done.into_inner());
        return Err(Error::new(ErrorKind::Cancelled, message)
            .hint("what was registered is kept: the same call goes on from there"));
    }
    report.added = ingested.added;
    report.replaced = ingested.replaced;
    report.unchanged += ingested.unchanged;
    report.objects = ingested.objects;
    Ok(report)
}

fn first_tasks(names: &[String]) -> Result<Vec<Task>> {
    let mut tasks = Vec::new();
    let mut files = Vec::new();
    for name in names {
        for path in expand(name)? {
            let here = place::location(&path)?;
            if sieva_store::is_url(&here) {
                files.push(here);
                continue;
            }
            let meta =
                std::fs::metadata(&here).map_err(|e| Error::io(format!("cannot look at '{path}'"), &e))?;
            if meta.is_dir() { tasks.push(Task::Folder(here.into())) } else { files.push(here) }
        }
    }
    tasks.extend(files.chunks(FILES).map(|files| Task::Files(files.to_vec())));
    Ok(tasks)
}

fn make_collections(catalog: &Catalog, names: &[String]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let known = catalog.collections()?;
    let new = names.iter().filter(|name| !known.iter().any(|c| c.name == **name));
    new.into_iter().try_for_each(|name| catalog.create_collection(name, ""))
}

/// Registers records as they come, until there are no more.
fn register(walk: &Walk<'_>, receive: &mpsc::Receiver<SourceRecord>) -> Result<IngestReport> {
    let (mut all, mut batch) = (IngestReport::default(), Batch::default());
    let tell = || {
        if let Some(tell) = &walk.options.progress {
            tell(walk.done.load(Relaxed), walk.found.load(Relaxed));
        }
    };
    let mut told = Instant::now();
    loop {
        match receive.recv_timeout(TICK) {
            Ok(record) => batch.push(record),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if walk.options.cancel.load(Relaxed) {
            walk.tasks.stop();
        }
        if batch.is_due() {
            batch.register(walk, &mut all)?;
        }
        if told.elapsed() >= TICK {
            tell();
            told = Instant::now();
        }
    }
    batch.register(walk, &mut all)?;
    tell();
    Ok(all)
}

/// Records that are registered together.
#[derive(Default)]
struct Batch {
    records: Vec<SourceRecord>,
    objects: usize,
    manifests: usize,
    since: Option<Instant>,
}

impl Batch {
    fn push(&mut self, record: SourceRecord) {
        self.objects += record.objects.len() + 1;
        self.manifests += record.manifest.as_ref().map_or(0, Vec::len);
        self.since.get_or_insert_with(Instant::now);
        self.records.push(record);
    }

    fn is_due(&self) -> bool {
        self.objects >= OBJECTS
            || self.manifests >= MANIFESTS
            || self.since.is_some_and(|since| since.elapsed() >= AGE)
    }

    fn register(&mut self, walk: &Walk<'_>, all: &mut IngestReport) -> Result<()> {
        let records = std::mem::take(self).records;
        if records.is_empty() {
            return Ok(());
        }
        let mut add = |report: IngestReport| {
            all.added += report.added;
            all.replaced += report.replaced;
            all.unchanged += report.unchanged;
            all.objects += report.objects;
        };
        let is_of_one = |e: &Error| matches!(e.kind(), ErrorKind::InvalidValue | ErrorKind::Overflow);
        match walk.catalog.ingest(&records) {
            Err(e) if is_of_one(&e) => {}
            done => {
                add(done?);
                // Those that turned out not to have changed are not put into collections by that.
                let names: Vec<&str> = records.iter().map(|r| r.location.as_str()).collect();
                return walk.collect(&names);
            }
        }
        // One of them holds what the catalog cannot keep: the others are not to suffer for it.
        for record in records {
            match walk.catalog.ingest(std::slice::from_ref(&record)) {
                Err(e) if is_of_one(&e) => {
                    let bare = one::damaged(&record.location, &(record.size, record.version), &e);
                    note(&mut walk.report().damaged, &bare.location, e.message());
                    add(walk.catalog.ingest(std::slice::from_ref(&bare))?);
                }
                done => add(done?),
            }
        }
        Ok(())
    }
}

fn note(list: &mut Vec<(String, String)>, name: &str, why: &str) {
    if list.len() < NAMED {
        list.push((name.to_string(), why.to_string()));
    }
}

/// What threads that walk and open share.
struct Walk<'a> {
    catalog: &'a Catalog,
    options: &'a AddOptions,
    open: OpenOptions,
    tasks: Tasks<Task>,
    found: AtomicU64,
    done: AtomicU64,
    report: Mutex<AddReport>,
    /// What the catalog said that ends it all.
    failed: Mutex<Option<Error>>,
}

impl Walk<'_> {
    fn report(&self) -> std::sync::MutexGuard<'_, AddReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn task(&self, task: Task, send: &SyncSender<SourceRecord>) {
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
        let known = self.catalog.known(&names, false)?;
        let mut unchanged = Vec::new();
        for path in files {
            if self.options.cancel.load(Relaxed) {
                break;
            }
            self.done.fetch_add(1, Relaxed);
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
    fn collect(&self, locations: &[&str]) -> Result<()> {
        let names = self.options.collections.iter().filter(|_| !locations.is_empty());
        names.into_iter().try_for_each(|name| self.catalog.collect(name, locations).map(|_| ()))
    }

    /// Size and version, where a look at a path tells them.
    fn state(&self, path: &str) -> Option<(u64, String)> {
        if sieva_store::is_url(path) {
            let open = sieva_store::open(path, &self.open.remote);
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
        let mut record = match one::look(path, path, state, &self.open, with_statistics) {
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
        let found = Source::open(path, &self.open).and_then(|s| statistics::of(&s, &self.options.cancel));
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
