//! The thread that writes notes to the catalog, in batches.
//!
//! A query never waits for it: notes go to a queue of bounded length, and are dropped when it is full. Whatever goes
//! wrong with the catalog ends here; one that cannot be written is left in peace for a while. At the end of the
//! process what is queued is written and the thread is joined, within a bound of time.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sieva_catalog::{Catalog, Usage};
use sieva_types::{DType, KeySet};

use super::workload::{Asked, Way};
use crate::augment::told::{is_there, now};
use crate::catalog::place;
use crate::open::Source;

/// Notes that may wait.
const QUEUE: usize = 4096;
/// Uses that are written at once.
const BATCH: usize = 512;
/// How long a note waits for others at most.
const LINGER: Duration = Duration::from_secs(2);
/// How long a catalog is left alone that could not be written.
const PAUSE: Duration = Duration::from_secs(60);
/// How long the end of the process waits for what is queued.
const AT_EXIT: Duration = Duration::from_secs(1);
/// Bytes and levels of names that a catalog keeps.
const NAME: usize = 2000;
const LEVELS: usize = 256;
/// How often is looked whether the user has a catalog meanwhile.
const LOOK: Duration = Duration::from_secs(5);

/// What one query did.
pub(super) struct Note {
    pub catalog: Arc<str>,
    /// Absolute, or a URL; its name in the catalog is found by the thread.
    pub source: PathBuf,
    /// Who asked; empty for the owner of the process.
    pub asked_by: String,
    pub operation: &'static str,
    pub arrays: Vec<Used>,
    pub selectivity: f64,
    pub way: Way,
    pub seconds: f64,
    pub bytes_read: u64,
    /// Whether conditions were on one array only.
    pub alone: bool,
}

/// What it asked of one array.
pub(super) struct Used {
    pub path: String,
    /// The type of the stored values that `set` is of.
    pub dtype: DType,
    pub set: Option<KeySet>,
    /// Bytes that a scan for this query reads of it.
    pub bytes: u64,
}

enum Message {
    Note(Note, f64),
    Stale(Stale),
    Flush(SyncSender<()>),
}

/// A store that was made for another state of its source.
struct Stale {
    catalog: Arc<str>,
    source: PathBuf,
    /// The name of the store in the catalog.
    store: String,
    at: f64,
}

struct Recorder {
    send: SyncSender<Message>,
    /// The process that the thread belongs to: a forked child has none.
    process: u32,
    thread: JoinHandle<()>,
}

static RECORDER: Mutex<Option<Recorder>> = Mutex::new(None);
static OWN: Mutex<Option<(Instant, Option<Arc<str>>)>> = Mutex::new(None);

/// The catalog that uses of this source are noted in; `None`: they are not.
pub(super) fn catalog_for(source: &Source) -> Option<Arc<str>> {
    if source.options().learn.share <= 0.0 || std::env::var_os("SIEVA_LEARN").is_some_and(|v| v == "0") {
        return None;
    }
    if let Some(url) = place::named().ok()? {
        return Some(url.into());
    }
    let mut own = OWN.try_lock().ok()?;
    if own.as_ref().is_none_or(|(looked, _)| looked.elapsed() > LOOK) {
        let file = place::own_file().filter(|f| f.exists());
        *own = Some((Instant::now(), file.map(|f| f.display().to_string().into())));
    }
    own.as_ref().and_then(|(_, url)| url.clone())
}

/// A path that means the same wherever the process goes to; a URL as it is.
pub(super) fn absolute(path: &Path) -> PathBuf {
    if path.to_str().is_some_and(sieva_store::is_url) {
        return path.to_path_buf();
    }
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Queues a note, or drops it.
pub(super) fn send(note: Note) {
    let now = now();
    queue(Message::Note(note, now));
}

/// Has the catalog know that a store was found to be of another state of its source, if it knows of the store.
pub(crate) fn found_stale(source: &Source, store: &str) {
    let Some(catalog) = catalog_for(source).filter(|url| is_there(url)) else { return };
    let source = absolute(source.path());
    queue(Message::Stale(Stale { catalog, source, store: store.to_string(), at: now() }));
}

fn queue(message: Message) {
    let Ok(mut recorder) = RECORDER.try_lock() else { return };
    let process = std::process::id();
    if recorder.as_ref().is_none_or(|r| r.process != process) {
        // That of the process that this one was forked from: its thread is not here, and cannot even be let go.
        std::mem::forget(recorder.take());
        *recorder = start(process);
    }
    if let Some(recorder) = &*recorder {
        let _ = recorder.send.try_send(message);
    }
}

/// Waits until what was noted so far is written, or for `timeout`; whether it was written in time.
pub fn flush(timeout: Duration) -> bool {
    let queue = {
        let Ok(recorder) = RECORDER.try_lock() else { return false };
        match &*recorder {
            Some(r) if r.process == std::process::id() => r.send.clone(),
            _ => return true,
        }
    };
    let (done, wait) = sync_channel(1);
    let until = Instant::now() + timeout;
    let mut message = Message::Flush(done);
    loop {
        match queue.try_send(message) {
            Ok(()) => break,
            Err(std::sync::mpsc::TrySendError::Full(back)) if Instant::now() < until => message = back,
            Err(_) => return false,
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    wait.recv_timeout(until.saturating_duration_since(Instant::now())).is_ok()
}

fn start(process: u32) -> Option<Recorder> {
    static AT_END: OnceLock<()> = OnceLock::new();
    let (send, receive) = sync_channel(QUEUE);
    let thread = std::thread::Builder::new()
        .name("sieva-usage".into())
        .spawn(move || Writer::default().run(&receive))
        .ok()?;
    AT_END.get_or_init(register);
    Some(Recorder { send, process, thread })
}

/// Has the thread write what is queued and end, and waits for it no longer than `timeout`: what a thread holds that still
/// runs at the end of a process counts as lost.
fn end(timeout: Duration) {
    let until = Instant::now() + timeout;
    let own = |r: &mut Recorder| r.process == std::process::id();
    let Some(recorder) = RECORDER.try_lock().ok().and_then(|mut r| r.take_if(own)) else { return };
    let Recorder { send, thread, .. } = recorder;
    // Without a sender the queue ends, and with it the thread.
    drop(send);
    while !thread.is_finished() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    if thread.is_finished() {
        let _ = thread.join();
    }
}

fn register() {
    unsafe extern "C" {
        fn atexit(call: extern "C" fn()) -> i32;
    }
    extern "C" fn at_exit() {
        end(AT_EXIT);
    }
    // SAFETY: `atexit` is C's, the function lives as long as the process and does not unwind.
    let _ = unsafe { atexit(at_exit) };
}

/// What the thread holds.
#[derive(Default)]
struct Writer {
    /// One that failed, and when.
    failed: Option<(Arc<str>, Instant)>,
    waiting: Vec<Usage>,
    /// Of what waits.
    catalog: Option<Arc<str>>,
    /// The source of the last note, and its name in the catalog.
    named: Option<(PathBuf, String)>,
    since: Option<Instant>,
}

impl Writer {
    fn run(&mut self, queue: &Receiver<Message>) {
        loop {
            let patience = self.since.map_or(LINGER, |s| LINGER.saturating_sub(s.elapsed()));
            match queue.recv_timeout(patience) {
                Ok(Message::Note(note, at)) => self.take(&note, at),
                Ok(Message::Stale(found)) => self.tell_stale(found),
                Ok(Message::Flush(done)) => {
                    self.write();
                    let _ = done.try_send(());
                }
                Err(RecvTimeoutError::Timeout) => self.write(),
                Err(RecvTimeoutError::Disconnected) => return self.write(),
            }
        }
    }

    fn take(&mut self, note: &Note, at: f64) {
        if self.catalog.as_ref().is_some_and(|c| *c != note.catalog) {
            self.write();
        }
        self.catalog = Some(Arc::clone(&note.catalog));
        self.since.get_or_insert_with(Instant::now);
        if self.named.as_ref().is_none_or(|(source, _)| *source != note.source) {
            self.named = Some((note.source.clone(), place::location_or_absolute(&note.source)));
        }
        let location = self.named.as_ref().map_or("", |(_, location)| location);
        self.waiting.extend(uses(note, location, at));
        if self.waiting.len() >= BATCH {
            self.write();
        }
    }

    /// Whether a catalog could not be written a short while ago.
    fn has_failed(&self, url: &Arc<str>) -> bool {
        self.failed.as_ref().is_some_and(|(failed, when)| failed == url && when.elapsed() < PAUSE)
    }

    fn tell_stale(&mut self, found: Stale) {
        if self.has_failed(&found.catalog) {
            return;
        }
        let location = place::location_or_absolute(&found.source);
        let catalog = Catalog::open(&found.catalog).ok().filter(|c| !c.is_read_only());
        let told =
            catalog.is_some_and(|c| c.set_augmentations_stale(&location, &found.store, found.at).is_ok());
        if !told {
            self.failed = Some((found.catalog, Instant::now()));
        }
    }

    /// Writes what waits, or drops it.
    fn write(&mut self) {
        let batch = std::mem::take(&mut self.waiting);
        self.since = None;
        let Some(url) = self.catalog.take().filter(|_| !batch.is_empty()) else { return };
        if self.has_failed(&url) {
            return;
        }
        // It is not held open: other programs, or libraries of this one, may want it for themselves.
        let catalog = Catalog::open(&url).ok().filter(|c| !c.is_read_only());
        let written = catalog.is_some_and(|c| c.record_usage(&batch).is_ok());
        self.failed = (!written).then(|| (url, Instant::now()));
    }
}

fn uses(note: &Note, location: &str, at: f64) -> Vec<Usage> {
    let all: u64 = note.arrays.iter().map(|a| a.bytes).fold(0, u64::saturating_add);
    let of = |used: &Used| Usage {
        location: location.to_string(),
        path: used.path.clone(),
        operation: note.operation.into(),
        condition: Asked {
            set: used.set.clone(),
            way: note.way,
            share: if all == 0 { 0.0 } else { used.bytes as f64 / all as f64 },
            alone: note.alone,
            with: note.arrays.iter().filter(|a| a.path != used.path).map(|a| a.path.clone()).collect(),
        }
        .encode(used.dtype),
        selectivity: note.selectivity,
        seconds: note.seconds,
        bytes_read: note.bytes_read,
        at,
        asked_by: note.asked_by.clone(),
    };
    // What a catalog does not keep would spoil the batch.
    let fits = |name: &str| name.len() <= NAME && !name.contains('\0') && name.matches('/').count() < LEVELS;
    let arrays = note.arrays.iter().filter(|a| a.bytes > 0 && fits(&a.path) && fits(location));
    arrays.map(of).collect()
}
