//! Opening and closing sources.

use std::ffi::c_char;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Thread;

use sieva::ast::Expr;
use sieva::{QueryOptions, Result, Source};

use crate::asked::Asked;
use crate::describe::Described;
use crate::given::{self, Out};
use crate::options::{self, Options};
use crate::status::guarded;

/// `sieva_source`.
pub struct SourceHandle(pub Asked);

impl SourceHandle {
    /// A handle of a file.
    pub fn of(file: Arc<Opened>) -> Box<Self> {
        Box::new(Self(Asked::File(file)))
    }
}

/// The file that a handle of the caller is.
///
/// # Errors
/// `invalid-value` for NULL; `unsupported` of a collection.
///
/// # Safety
/// As [`given::handle`].
pub unsafe fn opened<'a>(source: *const SourceHandle) -> Result<&'a Arc<Opened>> {
    // SAFETY: the caller's promise.
    unsafe { given::handle(source, "source") }?.0.file()
}

/// An open source with what C is shown of it. Queries and selections keep it open.
pub struct Opened {
    /// The engine's source.
    pub source: Source,
    /// What queries are run with unless they have options of their own.
    pub options: QueryOptions,
    /// The group in which names are looked for first: that of an object of a collection; empty otherwise.
    pub group: String,
    described: OnceLock<Described>,
    /// Its manifest, once it was asked for: first for its length, mostly.
    manifest: Mutex<Option<Arc<[u8]>>>,
}

impl Opened {
    /// A source whose names are looked for in `group` first.
    pub fn new(source: Source, options: QueryOptions, group: String) -> Arc<Self> {
        Arc::new(Self { source, options, group, described: OnceLock::new(), manifest: Mutex::default() })
    }

    /// What opening it learnt, for other processes.
    ///
    /// # Errors
    /// As `sieva_source_manifest()`.
    pub fn manifest(&self) -> Result<Arc<[u8]>> {
        let mut known = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            self.source.reader().store().check_unchanged()?;
            return Ok(Arc::clone(known));
        }
        Ok(Arc::clone(known.insert(self.source.manifest()?.into())))
    }

    /// Names, shapes and attributes in C's form.
    pub fn described(&self) -> &Described {
        self.described.get_or_init(|| Described::of(self.source.schema()))
    }

    /// The tree of a value that the caller names or writes.
    ///
    /// # Errors
    /// `ambiguous-name`, `syntax-error`.
    pub fn value(&self, text: &str) -> Result<Expr> {
        self.source.parse_value_within(&self.group, text)
    }

    /// The array that a name of the caller means.
    ///
    /// # Errors
    /// `unknown-array`, `ambiguous-name`.
    ///
    /// # Safety
    /// The name must be NULL or end with a NUL.
    pub unsafe fn array(&self, name: *const c_char) -> Result<usize> {
        // SAFETY: the caller's promise.
        self.source.resolve_within(&self.group, unsafe { given::text(name, "array") }?)
    }
}

/// The thread that opened the first source, which in C mostly is the main one. The standard library never frees the
/// handle of a main thread that it did not start, and keeps but a pointer into it, which leak checkers take for a loss;
/// to them, this one is a handle in use.
static FIRST_THREAD: OnceLock<Thread> = OnceLock::new();

/// Keeps the calling thread's handle if it is the first that opens anything.
pub fn first_thread() {
    FIRST_THREAD.get_or_init(std::thread::current);
}

/// `sieva_open`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_open(
    path: *const c_char,
    options: *const Options,
    source: *mut *mut SourceHandle,
) -> i32 {
    guarded(|| {
        first_thread();
        let out = Out::handle(source, "source")?;
        // SAFETY: the promises of sieva.h.
        let (path, (open, options)) =
            unsafe { (given::text(path, "path")?, options::open_options(options)?) };
        let source = Source::open_many(&[path], &open)?;
        // SAFETY: checked; the header asks for a place that can be written.
        unsafe { out.set(SourceHandle::of(Opened::new(source, options, String::new()))) };
        Ok(())
    })
}

/// `sieva_source_manifest`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_source_manifest(
    source: *const SourceHandle,
    bytes: *mut u8,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let place = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        let source = unsafe { opened(source) }?;
        let made = source.manifest()?;
        // SAFETY: as above.
        unsafe { given::put_bytes(&made, (bytes, capacity), place) }
    })
}

/// `sieva_close`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_close(source: *mut SourceHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(source) }
}
