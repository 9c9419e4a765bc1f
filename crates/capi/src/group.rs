//! Groups: what members ask for.

use std::ffi::c_char;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use sieva::Result;
use sieva_share::{Asking, Group, GroupOptions, Producer};

use crate::given::{self, Out};
use crate::source::first_thread;
use crate::status::{guarded, invalid};

/// `sieva_group`.
pub struct GroupHandle {
    pub(crate) group: Group,
    /// What the last pass could not do, as JSON.
    pub(crate) troubles: Mutex<String>,
    /// The files that the last pass of a follower put into its folder, in order.
    files: Mutex<Vec<PathBuf>>,
}

impl GroupHandle {
    fn new(group: Group) -> Box<Self> {
        Box::new(Self { group, troubles: Mutex::new("[]".to_owned()), files: Mutex::default() })
    }

    /// Keeps the files of a pass.
    pub(crate) fn took(&self, files: Vec<PathBuf>) {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// One of the files of the last pass.
    ///
    /// # Errors
    /// `invalid-value` for the number of none.
    pub(crate) fn file(&self, index: u64) -> Result<String> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let found = usize::try_from(index).ok().and_then(|index| files.get(index));
        let path = found.ok_or_else(|| {
            invalid(format!("no file {index}: the last pass of this handle put {}", files.len()))
        })?;
        Ok(path.to_string_lossy().into_owned())
    }
}

/// The group of a handle.
///
/// # Safety
/// A pointer that is not NULL must be a live handle.
pub(crate) unsafe fn of<'a>(pointer: *const GroupHandle) -> Result<&'a Group> {
    // SAFETY: the caller's promise.
    Ok(&unsafe { given::handle(pointer, "group") }?.group)
}

/// `sieva_group_create`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_create(
    place: *const c_char,
    producer: *const c_char,
    sources: *const *const c_char,
    count: u64,
    expires: u64,
    group: *mut *mut GroupHandle,
) -> i32 {
    guarded(|| {
        first_thread();
        let out = Out::handle(group, "group")?;
        // SAFETY: the promises of sieva.h.
        let (place, producer, sources) = unsafe {
            let place = given::text(place, "place")?;
            (
                place,
                given::optional_text(producer, "producer")?,
                texts(sources, count, "sources", "a source")?,
            )
        };
        if producer.is_some() == sources.is_empty() {
            let message = match producer {
                Some(name) => format!("the producer '{}' without a source", sieva::printable(name)),
                None => format!("{count} sources without a producer"),
            };
            return Err(invalid(message).hint("name both, or neither for a group without a producer"));
        }
        if !sources.is_empty() {
            Producer::check_sources(&sources)?;
        }
        let options =
            GroupOptions { expires: Some(expires).filter(|&seconds| seconds > 0), ..GroupOptions::default() };
        let made = Group::create(place, &options)?;
        if let Some(producer) = producer {
            Producer::register(&made, producer, &sources)?;
        }
        // SAFETY: as above.
        unsafe { out.set(GroupHandle::new(made)) };
        Ok(())
    })
}

/// `sieva_group_open`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_open(place: *const c_char, group: *mut *mut GroupHandle) -> i32 {
    guarded(|| {
        first_thread();
        let out = Out::handle(group, "group")?;
        // SAFETY: the promises of sieva.h.
        let opened = Group::open(unsafe { given::text(place, "place") }?, None)?;
        // SAFETY: as above.
        unsafe { out.set(GroupHandle::new(opened)) };
        Ok(())
    })
}

/// `sieva_group_close`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_close(group: *mut GroupHandle) {
    // SAFETY: the promises of sieva.h.
    unsafe { given::free(group) }
}

/// `sieva_group_join`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_join(group: *const GroupHandle, user: *const c_char) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { of(group)?.join(given::text(user, "user")?) })
}

/// `sieva_group_leave`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_leave(group: *const GroupHandle, user: *const c_char) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { of(group)?.leave(given::text(user, "user")?) })
}

/// `sieva_group_ask`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_ask(
    group: *const GroupHandle,
    user: *const c_char,
    names: *const *const c_char,
    sqls: *const *const c_char,
    count: u64,
    format: *const c_char,
    only_new: i32,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (asked, user, names, sqls, format) = unsafe {
            let (asked, user) = (of(group)?, given::text(user, "user")?);
            let names = texts(names, count, "names", "a name")?;
            (
                asked,
                user,
                names,
                texts(sqls, count, "sqls", "a question")?,
                given::optional_text(format, "format")?,
            )
        };
        let (format, only_new) = (format.unwrap_or_default(), only_new != 0);
        let pairs = names.iter().zip(&sqls);
        let asks: Vec<(&str, Asking<'_>)> =
            pairs.map(|(name, sql)| (name.as_str(), Asking { sql, format, only_new })).collect();
        asked.ask_many(user, &asks).map(drop)
    })
}

/// `sieva_group_withdraw`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_withdraw(
    group: *const GroupHandle,
    user: *const c_char,
    name: *const c_char,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { of(group)?.withdraw(given::text(user, "user")?, given::text(name, "name")?) })
}

/// `sieva_group_list`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_list(
    group: *const GroupHandle,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let json = unsafe { of(group) }?.list_json()?;
        // SAFETY: as above.
        unsafe { given::put_text(&json, text, capacity, needed) }
    })
}

/// `sieva_group_status`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_status(
    group: *const GroupHandle,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let json = unsafe { of(group) }?.status_json()?;
        // SAFETY: as above.
        unsafe { given::put_text(&json, text, capacity, needed) }
    })
}

/// Texts of the caller.
///
/// # Safety
/// A pointer that is not NULL must lead to so many texts.
pub(crate) unsafe fn texts(
    pointer: *const *const c_char,
    count: u64,
    what: &str,
    one: &str,
) -> Result<Vec<String>> {
    // SAFETY: the caller's promise.
    let pointers = unsafe { given::values(pointer, count, what) }?;
    // SAFETY: as above.
    pointers.into_iter().map(|text| unsafe { given::text(text, one) }.map(str::to_owned)).collect()
}
