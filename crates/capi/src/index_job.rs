//! Building indexes by many processes: a job, its tasks, and what they give.

use std::ffi::c_char;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sieva::{IndexJob, IndexTask, Result};

use crate::given::{self, Out};
use crate::index_care::Building;
use crate::index_options::{IndexOptions, IndexReport};
use crate::source::{SourceHandle, opened};
use crate::status::{guarded, invalid};

/// `sieva_index_job`.
pub struct IndexJobHandle(Mutex<Held>);

struct Held {
    /// None once it is finished.
    job: Option<IndexJob>,
    tasks: Vec<IndexTask>,
    /// What was given for each task of the stage.
    done: Vec<Option<Vec<u8>>>,
}

/// `sieva_index_result`: what a task gives, as bytes.
pub struct IndexResultHandle(Vec<u8>);

impl IndexJobHandle {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn job(&mut self) -> Result<&mut IndexJob> {
        self.job.as_mut().ok_or_else(|| invalid("the job is finished"))
    }

    fn task(&self, number: u64) -> Result<usize> {
        let n = usize::try_from(number).ok().filter(|&n| n < self.tasks.len());
        n.ok_or_else(|| invalid(format!("task {number} of {}", self.tasks.len())))
    }

    /// Takes what a task gave, and the stage once all did.
    fn take(&mut self, number: u64, bytes: Vec<u8>) -> Result<()> {
        let n = self.task(number)?;
        self.done[n] = Some(bytes);
        if self.done.iter().any(Option::is_none) {
            return Ok(());
        }
        let done: Vec<Vec<u8>> = self.done.iter().flatten().cloned().collect();
        self.job()?.take(&done)?;
        self.tasks.clear();
        self.done.clear();
        Ok(())
    }
}

/// `sieva_index_job_open`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_job_open(
    source: *const SourceHandle,
    arrays: *const *const c_char,
    count: u64,
    kinds: u32,
    options: *const IndexOptions,
    job: *mut *mut IndexJobHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(job, "job")?;
        // SAFETY: the promises of sieva.h.
        let work = unsafe { Building::given(source, (arrays, count), kinds, options) }?;
        let job = work.source.source.index_job(&work.arrays, &work.options)?;
        let held = Held { job: Some(job), tasks: Vec::new(), done: Vec::new() };
        // SAFETY: as above.
        unsafe { out.set(Box::new(IndexJobHandle(Mutex::new(held)))) };
        Ok(())
    })
}

/// `sieva_index_job_tasks`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_job_tasks(
    job: *const IndexJobHandle,
    parts: u64,
    count: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        let mut held = unsafe { given::handle(job, "job") }?.held();
        let parts = usize::try_from(parts).unwrap_or(usize::MAX);
        let tasks = held.job()?.tasks(parts)?;
        held.done = vec![None; tasks.len()];
        held.tasks = tasks;
        // SAFETY: as above.
        unsafe { out.set(held.tasks.len() as u64) };
        Ok(())
    })
}

/// `sieva_index_job_task`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_job_task(
    job: *const IndexJobHandle,
    number: u64,
    bytes: *mut u8,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let place = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        let held = unsafe { given::handle(job, "job") }?.held();
        let task = &held.tasks[held.task(number)?];
        // SAFETY: as above.
        unsafe { given::put_bytes(&task.to_bytes(), (bytes, capacity), place) }
    })
}

/// `sieva_index_job_take`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_job_take(
    job: *const IndexJobHandle,
    number: u64,
    bytes: *const u8,
    count: u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (job, bytes) = unsafe { (given::handle(job, "job")?, given::values(bytes, count, "bytes")?) };
        job.held().take(number, bytes)
    })
}

/// `sieva_index_job_finish`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_job_finish(job: *const IndexJobHandle, report: *mut IndexReport) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (job, size) = unsafe { (given::handle(job, "job")?, IndexReport::given_size(report)?) };
        let mut held = job.held();
        held.job()?;
        let did = held.job.take().map(IndexJob::finish).transpose()?.unwrap_or_default();
        // SAFETY: as above.
        unsafe { IndexReport::built(&did).put(report, size) };
        Ok(())
    })
}

/// `sieva_index_job_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_job_free(job: *mut IndexJobHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(job) }
}

/// `sieva_index_task_run`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_task_run(
    source: *const SourceHandle,
    task: *const u8,
    count: u64,
    options: *const IndexOptions,
    result: *mut *mut IndexResultHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(result, "result")?;
        // SAFETY: the promises of sieva.h.
        let (source, bytes) = unsafe { (opened(source)?, given::values(task, count, "task")?) };
        // SAFETY: as above.
        let options = unsafe { IndexOptions::read(options, source) }?;
        let done = source.source.run_index_task(&IndexTask::from_bytes(&bytes)?, &options)?;
        // SAFETY: as above.
        unsafe { out.set(Box::new(IndexResultHandle(done))) };
        Ok(())
    })
}

/// `sieva_index_result_bytes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_result_bytes(
    result: *const IndexResultHandle,
    bytes: *mut u8,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let place = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        unsafe { given::put_bytes(&given::handle(result, "result")?.0, (bytes, capacity), place) }
    })
}

/// `sieva_index_result_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_result_free(result: *mut IndexResultHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(result) }
}

/// `sieva_index_refresh`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_refresh(source: *const SourceHandle) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        unsafe { opened(source) }?.source.refresh_index();
        Ok(())
    })
}
