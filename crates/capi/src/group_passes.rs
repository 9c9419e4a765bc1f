//! Passes of producers and followers of groups.

use std::ffi::c_char;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use serde_json::json;
use sieva::Result;
use sieva_share::{FollowOptions, Follower, Packing, Prices, Producer, ProducerOptions, plan_json};

use crate::given;
use crate::group::GroupHandle;
use crate::status::{guarded, invalid};
use crate::stop::StopHandle;

/// Numbers of `sieva_packing`.
pub const PACKING: [(Packing, i32); 3] = [(Packing::Files, 0), (Packing::Partial, 1), (Packing::Whole, 2)];

/// `sieva_produce_options`. New fields come at the end; 0 always means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProduceOptions {
    /// Bytes of the struct as the program knows it.
    pub size: u64,
    /// Bytes that evaluating may take.
    pub memory: u64,
    /// Of these, one ask.
    pub ask_memory: u64,
    /// Bytes of a result.
    pub result_size: u64,
    /// Bytes of an object that results share.
    pub object_size: u64,
    /// Seconds that an ask may take.
    pub ask_time: f64,
    /// For each gigabyte: storage, transfer into the store and out of it.
    pub prices: [f64; 3],
    /// How long a file has to be left alone.
    pub settle_ms: i64,
    /// Threads.
    pub threads: u32,
    /// `sieva_packing`.
    pub packing: i32,
    /// Where results are kept until they are put, or NULL.
    pub spool: *const c_char,
    /// What ends the pass, or NULL.
    pub stop: *const StopHandle,
}

impl ProduceOptions {
    /// What NULL stands for.
    pub const DEFAULT: Self = Self {
        size: size_of::<Self>() as u64,
        memory: 0,
        ask_memory: 0,
        result_size: 0,
        object_size: 0,
        ask_time: 0.0,
        prices: [0.0; 3],
        settle_ms: 0,
        threads: 0,
        packing: 0,
        spool: std::ptr::null(),
        stop: std::ptr::null(),
    };

    /// How a pass is made.
    ///
    /// # Safety
    /// A pointer that is not NULL must lead to as many bytes as its first field says; its handle must be live.
    pub(crate) unsafe fn read(pointer: *const Self) -> Result<ProducerOptions> {
        // SAFETY: the caller's promise.
        let (this, spool, stop) = unsafe {
            let this = given::growing(pointer, Self::DEFAULT, "sieva_produce_options")?;
            (this, given::optional_text(this.spool, "spool")?, this.stop.as_ref())
        };
        let some = |value: u64| Some(value).filter(|&value| value > 0);
        let default = ProducerOptions::default();
        let packing = PACKING.iter().find(|(_, number)| *number == this.packing);
        let (packing, _) = packing.ok_or_else(|| invalid(format!("no sieva_packing {}", this.packing)))?;
        let ask_time = (this.ask_time != 0.0).then(|| Duration::try_from_secs_f64(this.ask_time)).transpose();
        let [storage, into, out] = this.prices;
        let prices = (this.prices != [0.0; 3]).then(|| Prices::new(storage, into, out)).transpose()?;
        Ok(ProducerOptions {
            settle: match this.settle_ms {
                0 => default.settle,
                ms => Duration::from_millis(u64::try_from(ms).unwrap_or(0)),
            },
            memory: some(this.memory),
            ask_memory: some(this.ask_memory),
            ask_time: ask_time.map_err(|_| invalid(format!("an ask_time of {} s", this.ask_time)))?,
            result_size: some(this.result_size),
            packing: *packing,
            prices,
            object_size: some(this.object_size),
            threads: Some(this.threads as usize).filter(|&threads| threads > 0),
            spool: spool.map_or_else(|| default.spool.clone(), Into::into),
            cancel: stop.map_or_else(|| Arc::clone(&default.cancel), |stop| Arc::clone(&stop.0)),
            ..default
        })
    }
}

/// `sieva_produced`. New fields come at the end.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Produced {
    /// Bytes of the struct as the program knows it.
    pub size: u64,
    /// Files that something was made of.
    pub steps: u64,
    /// Asks that were answered.
    pub answers: u64,
    /// Of these, by an error.
    pub failed: u64,
    /// Objects that were put.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that were deleted.
    pub deleted: u64,
    /// Files that are not complete yet.
    pub waiting: u64,
    /// Asks that are left to the next pass.
    pub deferred: u64,
    /// What could not be done.
    pub troubles: u64,
}

/// `sieva_followed`. New fields come at the end.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Followed {
    /// Bytes of the struct as the program knows it.
    pub size: u64,
    /// Files that were put into the folder.
    pub files: u64,
    /// Bytes that were fetched for them.
    pub bytes: u64,
    /// Answers that are errors.
    pub failures: u64,
    /// What could not be fetched.
    pub troubles: u64,
}

/// `sieva_group_plan`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_plan(
    group: *const GroupHandle,
    producer: *const c_char,
    options: *const ProduceOptions,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (handle, name, options) = unsafe {
            let handle = given::handle(group, "group")?;
            (handle, given::text(producer, "producer")?, ProduceOptions::read(options)?)
        };
        let json = plan_json(&Producer::open(&handle.group, name)?.plan(&options)?);
        // SAFETY: as above.
        unsafe { given::put_text(&json, text, capacity, needed) }
    })
}

/// `sieva_group_produce`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_produce(
    group: *const GroupHandle,
    producer: *const c_char,
    options: *const ProduceOptions,
    produced: *mut Produced,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (handle, name, options, size) = unsafe {
            let handle = given::handle(group, "group")?;
            let (name, options) = (given::text(producer, "producer")?, ProduceOptions::read(options)?);
            (handle, name, options, size_of_given(produced, "produced", size_of::<Produced>())?)
        };
        let done = Producer::open(&handle.group, name)?.pass(&options)?;
        // SAFETY: as above.
        unsafe { give(handle.produced(&done, size), produced, size) };
        Ok(())
    })
}

/// `sieva_group_follow`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_follow(
    group: *const GroupHandle,
    user: *const c_char,
    name: *const c_char,
    folder: *const c_char,
    stop: *const StopHandle,
    followed: *mut Followed,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (handle, user, name, folder, stop, size) = unsafe {
            let (handle, user) = (given::handle(group, "group")?, given::text(user, "user")?);
            let (name, folder) = (given::text(name, "name")?, given::text(folder, "folder")?);
            let size = size_of_given(followed, "followed", size_of::<Followed>())?;
            (handle, user, name, folder, stop.as_ref(), size)
        };
        let cancel = stop.map_or_else(Arc::default, |stop| Arc::clone(&stop.0));
        let options = FollowOptions { cancel, ..FollowOptions::default() };
        let done = Follower::new(&handle.group, user, name, folder)?.pass(&options)?;
        let failures = done.failures.iter().filter_map(|entry| {
            let failure = entry.failure.as_ref()?;
            Some(told(&entry.step.name, &failure.code, &failure.message))
        });
        let troubles = done.troubles.iter().map(|e| told("", e.kind().code(), e.message()));
        handle.tell(serde_json::Value::Array(failures.chain(troubles).collect()).to_string());
        let out = Followed {
            size,
            files: done.files.len() as u64,
            bytes: done.bytes,
            failures: done.failures.len() as u64,
            troubles: done.troubles.len() as u64,
        };
        handle.took(done.files);
        // SAFETY: as above.
        unsafe { give(out, followed, size) };
        Ok(())
    })
}

/// `sieva_group_followed`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_followed(
    group: *const GroupHandle,
    index: u64,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let handle = unsafe { given::handle(group, "group") }?;
        let path = handle.file(index)?;
        // SAFETY: as above.
        unsafe { given::put_text(&path, text, capacity, needed) }
    })
}

/// `sieva_group_troubles`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_troubles(
    group: *const GroupHandle,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let handle = unsafe { given::handle(group, "group") }?;
        let json = handle.troubles.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // SAFETY: as above.
        unsafe { given::put_text(&json, text, capacity, needed) }
    })
}

impl GroupHandle {
    /// What a pass did, for a struct of so many bytes; what it could not do is kept for who asks.
    pub(crate) fn produced(&self, done: &sieva_share::Produced, size: u64) -> Produced {
        let troubles = done.troubles.iter().map(|t| told(&t.step, t.error.kind().code(), t.error.message()));
        self.tell(serde_json::Value::Array(troubles.collect()).to_string());
        Produced {
            size,
            steps: done.steps,
            answers: done.entries,
            failed: done.failed,
            objects: done.objects,
            bytes: done.bytes,
            deleted: done.deleted,
            waiting: done.waiting,
            deferred: done.deferred,
            troubles: done.troubles.len() as u64,
        }
    }

    fn tell(&self, troubles: String) {
        *self.troubles.lock().unwrap_or_else(PoisonError::into_inner) = troubles;
    }
}

fn told(step: &str, code: &str, message: &str) -> serde_json::Value {
    json!({"step": step, "code": code, "message": message})
}

/// The bytes of a struct for results, which its first field says; 0 where there is none.
///
/// # Safety
/// A pointer that is not NULL must lead to as many bytes as its first field says.
pub(crate) unsafe fn size_of_given<T>(pointer: *const T, what: &str, known: usize) -> Result<u64> {
    if pointer.is_null() {
        return Ok(0);
    }
    // SAFETY: the caller's promise.
    let size = unsafe { pointer.cast::<u64>().read_unaligned() };
    match (8..=4096).contains(&size) {
        true => Ok(size),
        false => Err(invalid(format!("{what} of {size} bytes"))
            .hint(format!("set its first field to its size: {known} bytes here"))),
    }
}

/// Gives as much of a result as the caller's struct has room for.
///
/// # Safety
/// A pointer that is not NULL must be valid for writing `size` bytes.
pub(crate) unsafe fn give<T: Copy>(result: T, to: *mut T, size: u64) {
    if !to.is_null() {
        let known = (size as usize).min(size_of::<T>());
        // SAFETY: the caller's promise; both are at least so long.
        unsafe { std::ptr::copy_nonoverlapping((&raw const result).cast::<u8>(), to.cast::<u8>(), known) };
    }
}
