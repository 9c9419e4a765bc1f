//! Opening and closing sources.

use std::ffi::c_char;
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use sieva::{QueryOptions, Result, Source};

use crate::describe::Described;
use crate::given::{self, Out};
use crate::options::{self, Options};
use crate::status::guarded;

/// `sieva_source`.
pub struct SourceHandle(pub Arc<Opened>);

/// An open source with what C is shown of it. Queries and selections keep it open.
pub struct Opened {
    /// The engine's source.
    pub source: Source,
    /// What queries are run with unless they have options of their own.
    pub options: QueryOptions,
    /// Names, shapes and attributes in C's form.
    pub described: Described,
}

impl Opened {
    /// The array that a name of the caller means.
    ///
    /// # Errors
    /// `unknown-array`, `ambiguous-name`.
    ///
    /// # Safety
    /// The name must be NULL or end with a NUL.
    pub unsafe fn array(&self, name: *const c_char) -> Result<usize> {
        // SAFETY: the caller's promise.
        self.source.resolve(unsafe { given::text(name, "array") }?)
    }
}

/// The thread that opened the first source, which in C mostly is the main one. The standard library never frees the
/// handle of a main thread that it did not start, and keeps but a pointer into it, which leak checkers take for a loss;
/// to them, this one is a handle in use.
static FIRST_THREAD: OnceLock<Thread> = OnceLock::new();

/// `sieva_open`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_open(
    path: *const c_char,
    options: *const Options,
    source: *mut *mut SourceHandle,
) -> i32 {
    guarded(|| {
        FIRST_THREAD.get_or_init(std::thread::current);
        let out = Out::handle(source, "source")?;
        // SAFETY: the promises of sieva.h.
        let (path, (open, options)) =
            unsafe { (given::text(path, "path")?, options::open_options(options)?) };
        let source = Source::open(path, &open)?;
        let described = Described::of(source.schema());
        // SAFETY: checked; the header asks for a place that can be written.
        unsafe { out.set(Box::new(SourceHandle(Arc::new(Opened { source, options, described })))) };
        Ok(())
    })
}

/// `sieva_close`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_close(source: *mut SourceHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(source) }
}
