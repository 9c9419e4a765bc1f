//! Sessions: what queries share.

use std::ffi::c_char;
use std::ptr;

use sieva::{Session, SessionOptions, Source};

use crate::given::{self, Out};
use crate::options::{self, Options};
use crate::source::{Opened, SourceHandle, first_thread};
use crate::status::{guarded, invalid};

/// `sieva_session`.
pub struct SessionHandle(Session);

impl SessionHandle {
    /// The engine's session.
    pub fn session(&self) -> &Session {
        &self.0
    }
}

/// Freeing a session ends its queries: sources and queries that are left are asked in vain.
impl Drop for SessionHandle {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// `sieva_session_options`. New fields come at the end; 0 always means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SessionGiven {
    /// Bytes of the struct as the program knows it.
    pub size: u64,
    /// Bytes that queries and caches may take.
    pub memory: u64,
    /// Of these, bytes for caches.
    pub cache: u64,
    /// Threads of a query that does not say.
    pub threads: u32,
    /// Queries that may run at once.
    pub queries: u32,
    /// Whether nothing is kept from query to query.
    pub no_cache: i32,
    /// Nothing.
    pub reserved: i32,
}

impl SessionGiven {
    /// What NULL stands for.
    const DEFAULT: Self = Self {
        size: size_of::<Self>() as u64,
        memory: 0,
        cache: 0,
        threads: 0,
        queries: 0,
        no_cache: 0,
        reserved: 0,
    };
}

/// `sieva_session_stats`. New fields come at the end.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct SessionDid {
    /// Bytes of the struct as the program knows it.
    pub size: u64,
    /// Bytes that it may take.
    pub memory: u64,
    /// Bytes of shares that running queries have.
    pub reserved: u64,
    /// The most of it.
    pub peak_reserved: u64,
    /// Queries that run.
    pub running: u64,
    /// Callers that wait.
    pub waiting: u64,
    /// Queries that were made.
    pub queries: u64,
    /// Evaluations of conditions.
    pub evaluations: u64,
    /// Conditions that were known.
    pub selections_reused: u64,
    /// Bytes of selections, decoded chunks and values that are kept.
    pub cache_bytes: u64,
    /// What was found in the cache.
    pub cache_hits: u64,
    /// What was not.
    pub cache_misses: u64,
}

/// `sieva_session_create`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_session_create(
    options: *const SessionGiven,
    session: *mut *mut SessionHandle,
) -> i32 {
    guarded(|| {
        first_thread();
        let out = Out::handle(session, "session")?;
        // SAFETY: the promises of sieva.h.
        let given = unsafe { given::growing(options, SessionGiven::DEFAULT, "sieva_session") }?;
        let some = |n: u64| Some(n).filter(|&n| n > 0);
        let made = Session::new(&SessionOptions {
            memory: some(given.memory),
            cache: if given.no_cache != 0 { Some(0) } else { some(given.cache) },
            threads: some(given.threads.into()).map(|n| n as usize),
            queries: some(given.queries.into()).map(|n| n as usize),
        })?;
        // SAFETY: checked; the header asks for a place that can be written.
        unsafe { out.set(Box::new(SessionHandle(made))) };
        Ok(())
    })
}

/// `sieva_session_open`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_session_open(
    session: *const SessionHandle,
    path: *const c_char,
    options: *const Options,
    source: *mut *mut SourceHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(source, "source")?;
        // SAFETY: the promises of sieva.h.
        let (session, path, (mut open, options)) = unsafe {
            (given::handle(session, "session")?, given::text(path, "path")?, options::open_options(options)?)
        };
        open.session = session.0.clone();
        let source = Source::open_many(&[path], &open)?;
        // SAFETY: as above.
        unsafe { out.set(SourceHandle::of(Opened::new(source, options, String::new()))) };
        Ok(())
    })
}

/// `sieva_session_did`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_session_did(session: *const SessionHandle, stats: *mut SessionDid) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let did = unsafe { given::handle(session, "session") }?.0.stats();
        if stats.is_null() {
            return Err(invalid("stats is NULL: no place for the result"));
        }
        // SAFETY: the first field is there, by the caller's promise.
        let size = unsafe { stats.cast::<u64>().read_unaligned() };
        if !(8..=4096).contains(&size) {
            return Err(invalid(format!("stats of {size} bytes"))
                .hint("set their first field: sieva_session_stats stats = SIEVA_SESSION_STATS_INIT"));
        }
        let own = SessionDid {
            size,
            memory: did.memory,
            reserved: did.reserved,
            peak_reserved: did.peak_reserved,
            running: did.running,
            waiting: did.waiting,
            queries: did.queries,
            evaluations: did.evaluations,
            selections_reused: did.selections_reused,
            cache_bytes: did.cache.bytes + did.selections.1,
            cache_hits: did.cache.hits,
            cache_misses: did.cache.misses,
        };
        let known = (size as usize).min(size_of::<SessionDid>());
        // SAFETY: the caller's struct has `size` bytes, by its promise.
        unsafe { ptr::copy_nonoverlapping((&raw const own).cast::<u8>(), stats.cast::<u8>(), known) };
        Ok(())
    })
}

/// `sieva_session_cancel`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_session_cancel(session: *const SessionHandle) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        unsafe { given::handle(session, "session") }?.0.cancel();
        Ok(())
    })
}

/// `sieva_session_forget`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_session_forget(session: *const SessionHandle) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        unsafe { given::handle(session, "session") }?.0.forget();
        Ok(())
    })
}

/// `sieva_session_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_session_free(session: *mut SessionHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(session) }
}
