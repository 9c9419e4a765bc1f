//! Walks directories and registers what is found: in parallel, in batches, each of them wholly or not at all.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use sieva_catalog::{Catalog, IngestReport, SourceRecord};
use sieva_types::{Error, ErrorKind, Result};

use super::batch::Batch;
use super::place;
use super::walk::{FILES, Task, Walk};
use super::work::Tasks;
use crate::multi_file::expand;
use crate::open::OpenOptions;

/// How often progress is told.
const TICK: Duration = Duration::from_millis(100);
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

/// Registers files, directories with all that is under them, what a glob matches, and URLs. Known sources of the same
/// size and version are not opened again. Hidden files, links to directories, and `.sieva` stores are passed over.
///
/// # Errors
/// `file-not-found` for a name that is nothing, `cancelled`, and those of the catalog. A file that cannot be read is no
/// error: see [`AddReport`].
pub fn add(catalog: &Catalog, names: &[String], options: &AddOptions) -> Result<AddReport> {
    let (tasks, addresses) = first_tasks(names)?;
    let tasks = Tasks::new(tasks);
    make_collections(catalog, &options.collections)?;
    let open = OpenOptions {
        dims: Vec::new(),
        external_roots: Vec::new(),
        join: None,
        catalog: None,
        cancel: Arc::clone(&options.cancel),
        ..options.open.clone()
    };
    let (send, receive) = mpsc::sync_channel(64);
    let walk = Walk {
        catalog,
        options,
        open,
        tasks,
        addresses,
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

/// What is looked at first; and by its name in the catalog the whole address of each object that was given with a password
/// or a signature, which are not kept.
fn first_tasks(names: &[String]) -> Result<(Vec<Task>, HashMap<String, String>)> {
    let (mut tasks, mut addresses) = (Vec::new(), HashMap::new());
    let mut files = Vec::new();
    for name in names {
        for path in expand(name)? {
            sieva_store::check_name(path.as_ref(), "the name of a source")?;
            let here = place::location(&path)?;
            if sieva_store::is_url(&here) {
                if here != path {
                    addresses.insert(here.clone(), path);
                }
                files.push(here);
                continue;
            }
            let meta =
                std::fs::metadata(&here).map_err(|e| Error::io(format!("cannot look at '{path}'"), &e))?;
            if meta.is_dir() { tasks.push(Task::Folder(here.into())) } else { files.push(here) }
        }
    }
    tasks.extend(files.chunks(FILES).map(|files| Task::Files(files.to_vec())));
    Ok((tasks, addresses))
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
