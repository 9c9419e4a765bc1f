//! A source in a worker process: each request of it is one message there and one back.

use std::ffi::OsString;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use sieva_format::layout::Layout;
use sieva_format::manifest::{Manifest, decode_layout};
use sieva_format::schema::Schema;
use sieva_format::{ArraySource, LibraryReader};
use sieva_store::RangedRead;
use sieva_types::{Bx, Error, ErrorKind, Result, Texts};

use crate::end::parsed;
use crate::limits::WorkerLimits;
use crate::message::{OpenRequest, Request, decode_answer, decode_texts};
use crate::process::Process;

/// How to reach a file through worker processes, one after the other.
pub struct Remote {
    command: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    request: OpenRequest,
    limits: WorkerLimits,
    process: Mutex<Option<Process>>,
}

impl Remote {
    /// Nothing is started yet.
    pub fn new(
        command: &[OsString],
        environment: &[(OsString, OsString)],
        request: OpenRequest,
        limits: WorkerLimits,
    ) -> Self {
        let (command, environment) = (command.to_vec(), environment.to_vec());
        Self { command, environment, request, limits, process: Mutex::new(None) }
    }

    /// Opens the file in a new worker.
    pub fn open(&self, layouts: bool) -> Result<Manifest> {
        let (process, manifest) = self.start(layouts)?;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Some(process);
        Ok(manifest)
    }

    /// Ends the worker, where there is one.
    pub fn rest(&self) {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn start(&self, layouts: bool) -> Result<(Process, Manifest)> {
        let mut process = Process::start(&self.command, &self.environment)?;
        let open = Request::Open { request: self.request.clone(), limits: self.limits, layouts };
        let answer = process.ask(&open, &self.limits).map_err(|e| self.place(e))?;
        let content = unwrap(&answer).map_err(|e| self.place(e))??;
        let manifest = Manifest::decode_within(content, self.limits.answer.saturating_mul(4));
        Ok((process, manifest.map_err(|e| self.place(lie(&e)))?))
    }

    fn place(&self, e: Error) -> Error {
        e.at(format!("'{}'", self.request.path.display()))
    }

    /// Asks the worker, a new one where the last has ended; `read` takes the answer's content.
    fn ask<T>(
        &self,
        known: &Manifest,
        request: &Request,
        read: impl FnOnce(&[u8]) -> Result<T>,
    ) -> Result<T> {
        let mut slot = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let mut process = match slot.take() {
            Some(process) => process,
            None => {
                let (process, manifest) = self.start(false)?;
                if manifest.object_len() != known.object_len()
                    || manifest.object_version() != known.object_version()
                {
                    let message =
                        format!("'{}' was changed since it was opened", self.request.path.display());
                    return Err(Error::new(ErrorKind::StaleSource, message).hint("open it again"));
                }
                process
            }
        };
        let answer = process.ask(request, &self.limits).map_err(|e| self.place(e))?;
        let content = unwrap(&answer).map_err(|e| self.place(e))?;
        let found = match content {
            // An error is an answer: the worker is well.
            Err(e) => Err(e),
            // One that lies is not asked again.
            Ok(content) => Ok(read(content).map_err(|e| self.place(lie(&e)))?),
        };
        *slot = Some(process);
        found
    }
}

fn unwrap(answer: &[u8]) -> Result<Result<&[u8]>> {
    decode_answer(answer).map_err(|e| lie(&e))
}

/// An answer that makes no sense.
fn lie(e: &Error) -> Error {
    parsed(format!("answered with nonsense: {}", e.message()))
}

/// The source behind [`Remote`], as it was when it was opened first.
pub struct RemoteSource {
    remote: Arc<Remote>,
    manifest: Manifest,
    store: Arc<dyn RangedRead>,
    layouts: Vec<OnceLock<Arc<Layout>>>,
}

impl RemoteSource {
    /// A source whose schema is that of `manifest`.
    pub fn new(remote: Arc<Remote>, manifest: Manifest, store: Arc<dyn RangedRead>) -> Self {
        let layouts = manifest.schema().arrays.iter().map(|_| OnceLock::new()).collect();
        Self { remote, manifest, store, layouts }
    }
}

impl ArraySource for RemoteSource {
    fn schema(&self) -> &Schema {
        self.manifest.schema()
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        let none = || Error::new(ErrorKind::Internal, format!("no array number {array}"));
        let slot = self.layouts.get(array).ok_or_else(none)?;
        if let Some(layout) = slot.get() {
            return Ok(Arc::clone(layout));
        }
        let limit = self.remote.limits.answer.saturating_mul(4);
        let read = |bytes: &[u8]| decode_layout(bytes, self.schema(), array, limit);
        let layout = Arc::new(self.remote.ask(&self.manifest, &Request::Layout(array), read)?);
        Ok(Arc::clone(slot.get_or_init(|| layout)))
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }

    fn library(&self) -> Option<&dyn LibraryReader> {
        Some(self)
    }
}

impl LibraryReader for RemoteSource {
    fn read_library(&self, array: usize, bx: &Bx, out: &mut [u8]) -> Result<()> {
        self.store.counters().add_library_read(out.len() as u64);
        self.remote.ask(&self.manifest, &Request::Library(array, bx.clone()), |bytes| {
            if bytes.len() != out.len() {
                let message = format!("{} bytes where {} were asked for", bytes.len(), out.len());
                return Err(Error::corrupt(message));
            }
            out.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn is_unwritten(&self, array: usize, bx: &Bx) -> bool {
        // What goes wrong is told when the box is read.
        let request = Request::Unwritten(array, bx.clone());
        self.remote.ask(&self.manifest, &request, |bytes| Ok(bytes == [1])).unwrap_or(false)
    }

    fn read_library_strings(&self, array: usize, bx: &Bx) -> Result<Texts> {
        self.store.counters().add_library_read(0);
        let wanted = bx.shape.iter().try_fold(1_u64, |n, &s| n.checked_mul(s));
        let limit = self.remote.limits.answer.saturating_mul(4);
        self.remote.ask(&self.manifest, &Request::Texts(array, bx.clone()), |bytes| {
            let texts = decode_texts(bytes, limit)?;
            if Some(texts.len() as u64) == wanted {
                return Ok(texts);
            }
            Err(Error::corrupt(format!("{} texts for a box of shape {:?}", texts.len(), bx.shape)))
        })
    }
}
