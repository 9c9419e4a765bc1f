//! Tasks: parts of the work of a plan for other processes, and the merging of what they found.

use std::sync::{Arc, Mutex, PoisonError};

use sieva::{CollectionQuery, CollectionTask, Error, ErrorKind, Plan, QueryOptions, Result, Task, TaskKind};

use crate::asked::{AnyTask, Asked, Bound, Found};
use crate::given::{self, Out};
use crate::logical::PlanHandle;
use crate::options::Options;
use crate::query::QueryHandle;
use crate::result::{ResultHandle, ResultOptions, own_or};
use crate::source::SourceHandle;
use crate::status::{guarded, invalid};

/// `sieva_tasks`.
#[derive(Clone)]
pub enum TasksHandle {
    /// Of a file.
    File(Arc<[Task]>),
    /// Of a collection.
    Collection(Arc<Shares>),
}

/// Tasks of a collection. Each gets what opening its sources needs when its bytes are wanted: that of all takes memory.
pub struct Shares {
    query: CollectionQuery,
    tasks: Vec<CollectionTask>,
    /// The bytes that were wanted last: first for their number, mostly.
    last: Mutex<Option<(usize, Arc<[u8]>)>>,
}

// Tasks are never none.
#[allow(clippy::len_without_is_empty)]
impl TasksHandle {
    /// Tasks of a file.
    pub fn of(tasks: Vec<Task>) -> Self {
        Self::File(tasks.into())
    }

    /// Tasks of a query of a collection.
    pub fn of_collection(query: CollectionQuery, tasks: Vec<CollectionTask>) -> Self {
        Self::Collection(Arc::new(Shares { query, tasks, last: Mutex::default() }))
    }

    /// How many there are.
    pub fn len(&self) -> u64 {
        match self {
            Self::File(tasks) => tasks.len() as u64,
            Self::Collection(shares) => shares.tasks.len() as u64,
        }
    }

    /// The bytes of one of them.
    fn bytes(&self, number: u64) -> Result<Arc<[u8]>> {
        let none = || invalid(format!("task {number} of {}", self.len()));
        let n = usize::try_from(number).map_err(|_| none())?;
        match self {
            Self::File(tasks) => Ok(tasks.get(n).ok_or_else(none)?.to_bytes()?.into()),
            Self::Collection(shares) => shares.bytes(n, shares.tasks.get(n).ok_or_else(none)?),
        }
    }
}

impl Shares {
    fn bytes(&self, number: usize, task: &CollectionTask) -> Result<Arc<[u8]>> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, bytes)) if *known == number => Ok(Arc::clone(bytes)),
            _ => {
                let made = self.query.carrying(task)?.to_bytes()?.into();
                Ok(Arc::clone(&last.insert((number, made)).1))
            }
        }
    }
}

/// `sieva_merge`: empty where merging failed.
#[derive(Clone)]
pub struct MergeHandle(Arc<Mutex<Option<Found>>>);

impl MergeHandle {
    /// What was found.
    pub fn new(found: Found) -> Box<Self> {
        Box::new(Self(Arc::new(Mutex::new(Some(found)))))
    }

    /// Another handle of what is held now: what is added to one does not count for the other.
    ///
    /// # Errors
    /// `memory-limit`; `invalid-value` where it was lost.
    pub fn copy(&self) -> Result<Box<Self>> {
        self.with(Found::copy).map(Self::new)
    }

    /// Adds what another holds.
    ///
    /// # Errors
    /// As `sieva_merge_add()`.
    pub fn add(&self, other: &Self) -> Result<()> {
        let more = other.with(Found::copy)?;
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = held.as_mut().ok_or_else(gone)?;
        whole.check_mergeable(&more)?;
        let merged = whole.merge(more);
        if merged.is_err() {
            *held = None;
        }
        merged
    }

    fn with<R>(&self, f: impl FnOnce(&Found) -> Result<R>) -> Result<R> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().ok_or_else(gone).and_then(f)
    }

    /// The engine's query, which knows its answer by this.
    ///
    /// # Errors
    /// As `sieva_merge_query()`.
    pub fn finished(&self, asked: &Asked, plan: &Arc<Plan>, options: &QueryOptions) -> Result<Bound> {
        asked.finished(self.with(Found::copy)?, plan, options)
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::InvalidValue, "what was merged was lost when merging failed")
        .hint("merge the partial results anew")
}

/// The kind of a code; none for 0.
///
/// # Errors
/// `invalid-value` for a number that is none.
pub fn kind_of(kind: i32) -> Result<Option<TaskKind>> {
    match usize::try_from(kind).ok().map(|k| k.checked_sub(1)) {
        Some(None) => Ok(None),
        Some(Some(k)) if k < TaskKind::ALL.len() => Ok(Some(TaskKind::ALL[k])),
        _ => Err(invalid(format!("kind is {kind}: there are SIEVA_TASK_... 0 to 3"))),
    }
}

/// `sieva_plan_tasks`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_plan_tasks(
    source: *const SourceHandle,
    plan: *const PlanHandle,
    kind: i32,
    parts: u64,
    tasks: *mut *mut TasksHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(tasks, "tasks")?;
        // SAFETY: the promises of sieva.h.
        let (source, plan) =
            unsafe { (&given::handle(source, "source")?.0, &given::handle(plan, "plan")?.0) };
        let made = source.tasks(plan, source.options(), (kind_of(kind)?, parts))?;
        // SAFETY: as above.
        unsafe { out.set(Box::new(made)) };
        Ok(())
    })
}

/// `sieva_tasks_count`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tasks_count(tasks: *const TasksHandle, count: *mut u64) -> i32 {
    guarded(|| {
        let out = Out::new(count, "count")?;
        // SAFETY: the promises of sieva.h.
        unsafe { out.set(given::handle(tasks, "tasks")?.len()) };
        Ok(())
    })
}

/// `sieva_tasks_bytes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tasks_bytes(
    tasks: *const TasksHandle,
    number: u64,
    bytes: *mut u8,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let place = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        let made = unsafe { given::handle(tasks, "tasks") }?.bytes(number)?;
        // SAFETY: as above.
        unsafe { given::put_bytes(&made, (bytes, capacity), place) }
    })
}

/// `sieva_tasks_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_tasks_free(tasks: *mut TasksHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(tasks) }
}

/// `sieva_task_run`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_task_run(
    source: *const SourceHandle,
    task: *const u8,
    count: u64,
    options: *const Options,
    merge: *mut *mut MergeHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(merge, "merge")?;
        // SAFETY: the promises of sieva.h.
        let (source, bytes) =
            unsafe { (&given::handle(source, "source")?.0, given::values(task, count, "task")?) };
        // SAFETY: as above.
        let options = unsafe { own_or(source, options) }?;
        let found = source.run(&AnyTask::from_bytes(&bytes)?, &options)?;
        // SAFETY: as above.
        unsafe { out.set(MergeHandle::new(found)) };
        Ok(())
    })
}

/// `sieva_merge_from_bytes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_merge_from_bytes(
    bytes: *const u8,
    count: u64,
    memory: u64,
    merge: *mut *mut MergeHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(merge, "merge")?;
        // SAFETY: the promises of sieva.h.
        let bytes = unsafe { given::values(bytes, count, "bytes") }?;
        let read = Found::from_bytes(&bytes, memory)?;
        // SAFETY: as above.
        unsafe { out.set(MergeHandle::new(read)) };
        Ok(())
    })
}

/// `sieva_merge_add`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_merge_add(merge: *mut MergeHandle, other: *const MergeHandle) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (own, other) =
            unsafe { (given::handle(merge.cast_const(), "merge")?, given::handle(other, "other")?) };
        own.add(other)
    })
}

/// `sieva_merge_bytes`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_merge_bytes(
    merge: *const MergeHandle,
    bytes: *mut u8,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        let place = Out::new(needed, "needed")?;
        // SAFETY: the promises of sieva.h.
        let made = unsafe { given::handle(merge, "merge") }?.with(Found::to_bytes)?;
        // SAFETY: as above.
        unsafe { given::put_bytes(&made, (bytes, capacity), place) }
    })
}

/// `sieva_merge_query`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_merge_query(
    merge: *const MergeHandle,
    source: *const SourceHandle,
    plan: *const PlanHandle,
    options: *const Options,
    query: *mut *mut QueryHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(query, "query")?;
        // SAFETY: the promises of sieva.h.
        let (merge, source, plan) = unsafe {
            (
                given::handle(merge, "merge")?,
                &given::handle(source, "source")?.0,
                &given::handle(plan, "plan")?.0,
            )
        };
        // SAFETY: as above.
        let options = unsafe { own_or(source, options) }?;
        let known = merge.finished(source, plan, &options)?;
        let made = QueryHandle::knowing(source, plan, options, known);
        // SAFETY: as above.
        unsafe { out.set(made) };
        Ok(())
    })
}

/// `sieva_merge_result`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_merge_result(
    merge: *const MergeHandle,
    source: *const SourceHandle,
    plan: *const PlanHandle,
    options: *const Options,
    result_options: *const ResultOptions,
    result: *mut *mut ResultHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(result, "result")?;
        // SAFETY: the promises of sieva.h.
        let (merge, source, plan, how) = unsafe {
            (
                given::handle(merge, "merge")?,
                &given::handle(source, "source")?.0,
                &given::handle(plan, "plan")?.0,
                ResultOptions::read(result_options)?,
            )
        };
        // SAFETY: as above.
        let options = unsafe { own_or(source, options) }?;
        let made = ResultHandle::of(&merge.finished(source, plan, &options)?, &how)?;
        // SAFETY: as above.
        unsafe { out.set(made) };
        Ok(())
    })
}

/// `sieva_merge_free`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_merge_free(merge: *mut MergeHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(merge) }
}
