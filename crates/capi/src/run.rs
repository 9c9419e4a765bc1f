//! Several queries at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva::{Query, Result, RunOptions, Session};

use crate::given;
use crate::query::QueryHandle;
use crate::request::{RequestHandle, starting};
use crate::session::SessionHandle;
use crate::start::Place;
use crate::status::{OK, code_of, guarded};

/// Queries that are to be run, and where their codes go.
struct Asked {
    session: Session,
    queries: Vec<Arc<Query>>,
    memory: Option<u64>,
    codes: Place<i32>,
}

impl Asked {
    /// What was given, checked.
    ///
    /// # Safety
    /// The promises of sieva.h.
    unsafe fn new(
        session: *const SessionHandle,
        queries: *const *const QueryHandle,
        count: u64,
        memory: u64,
        codes: *mut i32,
    ) -> Result<Self> {
        // SAFETY: the caller's promise.
        let given = unsafe { given::values(queries, count, "queries") }?;
        let mut all = Vec::with_capacity(given.len());
        for (i, query) in given.into_iter().enumerate() {
            // SAFETY: as above.
            let query = unsafe { given::handle(query, &format!("queries[{i}]")) }?;
            all.push(query.bound_of_file()?);
        }
        // SAFETY: as above.
        let session = unsafe { session.as_ref() }.map(|s| s.session().clone()).unwrap_or_default();
        let memory = Some(memory).filter(|&bytes| bytes > 0);
        Ok(Self { session, queries: all, memory, codes: Place(codes) })
    }

    /// Runs them; gives the number of those that failed. Without a place for codes the first failure is that of all.
    fn run(self, cancel: &Arc<AtomicBool>) -> Result<u64> {
        let options = RunOptions { memory: self.memory, threads: None, cancel: Some(Arc::clone(cancel)) };
        let queries: Vec<&Query> = self.queries.iter().map(|query| &**query).collect();
        let ran = self.session.run(&queries, &options)?;
        let mut failed = 0;
        for (i, result) in ran.results.into_iter().enumerate() {
            let code = result.as_ref().err().map_or(OK, |e| code_of(e.kind()));
            failed += u64::from(code != OK);
            if self.codes.0.is_null() {
                result?;
            } else {
                // SAFETY: the caller's place has as many codes as there are queries, by its promise.
                unsafe { self.codes.0.add(i).write_unaligned(code) };
            }
        }
        Ok(failed)
    }
}

/// `sieva_session_run`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_session_run(
    session: *const SessionHandle,
    queries: *const *const QueryHandle,
    count: u64,
    memory: u64,
    codes: *mut i32,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        unsafe { Asked::new(session, queries, count, memory, codes) }?.run(&Arc::default()).map(drop)
    })
}

/// `sieva_start_run`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_start_run(
    session: *const SessionHandle,
    queries: *const *const QueryHandle,
    count: u64,
    memory: u64,
    codes: *mut i32,
    request: *mut *mut RequestHandle,
) -> i32 {
    // SAFETY: the promises of sieva.h; what is written to is left alone until the request has ended.
    unsafe {
        starting(request, || {
            let asked = Asked::new(session, queries, count, memory, codes)?;
            RequestHandle::counting(Arc::default(), move |stop| asked.run(stop))
        })
    }
}
