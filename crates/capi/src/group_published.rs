//! Groups: whole files that are published under names.

use std::ffi::c_char;
use std::sync::Arc;
use std::time::Duration;

use sieva_share::{FetchOptions, PublishOptions};

use crate::given;
use crate::group::{GroupHandle, of};
use crate::status::{guarded, invalid};
use crate::stop::StopHandle;

/// `sieva_group_publish`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_publish(
    group: *const GroupHandle,
    user: *const c_char,
    name: *const c_char,
    path: *const c_char,
    keep: u64,
    stop: *const StopHandle,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (group, user, name, path, stop) = unsafe {
            let (user, name) = (given::text(user, "user")?, given::text(name, "name")?);
            (of(group)?, user, name, given::text(path, "path")?, stop.as_ref())
        };
        let keep = Some(keep).filter(|&seconds| seconds > 0).map(Duration::from_secs);
        let cancel = stop.map_or_else(Arc::default, |stop| Arc::clone(&stop.0));
        group
            .publish(user, name, path, &PublishOptions { keep, cancel, ..PublishOptions::default() })
            .map(drop)
    })
}

/// `sieva_group_unpublish`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_unpublish(
    group: *const GroupHandle,
    user: *const c_char,
    name: *const c_char,
) -> i32 {
    // SAFETY: the promises of sieva.h.
    guarded(|| unsafe { of(group)?.unpublish(given::text(user, "user")?, given::text(name, "name")?) })
}

/// `sieva_group_fetch`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_fetch(
    group: *const GroupHandle,
    name: *const c_char,
    path: *const c_char,
    stop: *const StopHandle,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (group, name, path, stop) = unsafe {
            let (name, path) = (given::text(name, "name")?, given::text(path, "path")?);
            (of(group)?, name, path, stop.as_ref())
        };
        let cancel = stop.map_or_else(Arc::default, |stop| Arc::clone(&stop.0));
        let options = FetchOptions { cancel, ..FetchOptions::default() };
        group.fetch(name, path, &options).map(drop)
    })
}

/// `sieva_group_link`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_group_link(
    group: *const GroupHandle,
    name: *const c_char,
    expires: u64,
    text: *mut c_char,
    capacity: u64,
    needed: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let (group, name) = unsafe { (of(group)?, given::text(name, "name")?) };
        if expires == 0 {
            return Err(invalid("a link for 0 s").hint("allow it a time above 0: 3600"));
        }
        let link = group.link(name, Duration::from_secs(expires))?;
        // SAFETY: as above.
        unsafe { given::put_text(&link.url, text, capacity, needed) }
    })
}
