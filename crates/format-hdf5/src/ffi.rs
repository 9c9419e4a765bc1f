//! The few primitives through which libhdf5 is called: its lock, its errors, its handles.
//!
//! The bundled library is built without thread-safety, so every call happens under the one lock that the
//! `hdf5-metno` crates share. It is reentrant; holding it over several calls keeps them together.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use hdf5_metno_sys::h5::{H5dont_atexit, H5open, herr_t};
use hdf5_metno_sys::h5e::{H5E_DEFAULT, H5E_WALK_UPWARD, H5E_error2_t, H5Eclear2, H5Eset_auto2, H5Ewalk2};
use hdf5_metno_sys::h5i::{H5Idec_ref, H5Iis_valid, hid_t};
use hdf5_metno_sys::h5o::H5O_token_t;
use parking_lot::ReentrantMutexGuard;
use sieva_types::{Error, ErrorKind, Result};

use crate::driver;

/// Longest name of a link, attribute, file or member that is read.
const NAME_LIMIT: usize = 1 << 20;

// Written by build.rs, which holds the headers of the library against the same numbers.
include!(concat!(env!("OUT_DIR"), "/H5O_token_t.rs"));
include!(concat!(env!("OUT_DIR"), "/H5O_info2_t.rs"));
include!(concat!(env!("OUT_DIR"), "/H5L_info2_t.rs"));
include!(concat!(env!("OUT_DIR"), "/H5A_info_t.rs"));
include!(concat!(env!("OUT_DIR"), "/H5E_error2_t.rs"));
include!(concat!(env!("OUT_DIR"), "/H5R_ref_t.rs"));
include!(concat!(env!("OUT_DIR"), "/hvl_t.rs"));

unsafe extern "C" {
    /// Whether libhdf5 sees none of its variables in the environment (`native/environment.c`).
    safe fn sieva_hdf5_environment_is_hidden() -> i32;
    /// What opens files that libhdf5 opens by itself (`native/environment.c`).
    safe fn sieva_hdf5_open_by(opener: extern "C" fn(*const c_char) -> c_int);
    /// Which kinds of plug-ins are loaded. The bindings' declaration has its argument as a pointer.
    fn H5PLset_loading_state(kinds: c_uint) -> herr_t;
}

/// Starts the library, once. Whatever opens a file comes through here first.
///
/// # Errors
/// `memory-limit` where it does not start, which takes nothing else; `internal-error` where it was linked wrongly. Nothing
/// of it may be called then.
pub(crate) fn start() -> Result<()> {
    static STARTED: OnceLock<std::result::Result<(), (ErrorKind, &'static str)>> = OnceLock::new();
    let _guard = hdf5_metno_sys::LOCK.lock();
    let started = STARTED.get_or_init(|| {
        if sieva_hdf5_environment_is_hidden() == 0 {
            return Err((ErrorKind::Internal, "libhdf5 is linked so that it sees the environment"));
        }
        sieva_hdf5_open_by(driver::open_itself);
        // SAFETY: the lock is held; these take no pointers that outlive the call. Without `dont_atexit`, which is too
        // late where somebody else started the library, it would tear itself down at exit while other threads may
        // still be inside. Plug-ins are made for another libhdf5 than this one.
        unsafe {
            H5dont_atexit();
            if H5open() < 0 {
                return Err((ErrorKind::MemoryLimit, "there is no memory for libhdf5 to start in"));
            }
            if H5PLset_loading_state(0) < 0 {
                return Err((ErrorKind::Internal, "libhdf5 does not forgo plug-ins"));
            }
        }
        Ok(())
    });
    started.map_err(|(kind, why)| Error::new(kind, why))
}

/// Takes libhdf5's lock, with the library's own error printing off.
pub(crate) fn lock() -> ReentrantMutexGuard<'static, ()> {
    let guard = hdf5_metno_sys::LOCK.lock();
    // SAFETY: the lock is held; no callback means no printing. Others in the process may have turned it on.
    unsafe { H5Eset_auto2(H5E_DEFAULT, None, std::ptr::null_mut()) };
    guard
}

/// What a call of libhdf5 returns: negative means failure.
pub(crate) trait Status: Copy {
    /// Whether it says that the call failed.
    fn failed(self) -> bool;
}

impl Status for i32 {
    fn failed(self) -> bool {
        self < 0
    }
}

impl Status for i64 {
    fn failed(self) -> bool {
        self < 0
    }
}

impl Status for isize {
    fn failed(self) -> bool {
        self < 0
    }
}

/// Runs one call under the lock; a failure becomes an error of libhdf5's own innermost words. So does a file that was
/// refused: libhdf5 would go on as if it were not there.
pub(crate) fn call<T: Status>(what: &str, f: impl FnOnce() -> T) -> Result<T> {
    let _guard = lock();
    let status = driver::within(f);
    match (status.failed(), driver::refusal()) {
        (true, refusal) => Err(last_error(what, refusal)),
        (false, Some(refusal)) if refusal.kind() == ErrorKind::LinkRefused => Err(refusal.at(what)),
        (false, _) => Ok(status),
    }
}

/// The same for calls that return a handle.
pub(crate) fn open(what: &str, f: impl FnOnce() -> hid_t) -> Result<Handle> {
    let mut opened = None;
    call(what, || {
        let id = f();
        // Closed again where something was refused on the way.
        opened = (id >= 0).then(|| Handle(id));
        id
    })?;
    opened.ok_or_else(|| Error::new(ErrorKind::Internal, format!("{what}: no handle")))
}

/// The error on libhdf5's stack, which is cleared; what our driver met comes first, under its own kind.
fn last_error(what: &str, refusal: Option<Error>) -> Error {
    let mut innermost = String::new();
    // SAFETY: the caller holds the lock; the callback only writes to `innermost`, which outlives the walk.
    unsafe {
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, Some(keep_first), (&raw mut innermost).cast());
        H5Eclear2(H5E_DEFAULT);
    }
    if let Some(refusal) = refusal {
        return refusal.at(what);
    }
    let kind = if innermost.contains("is not registered") {
        ErrorKind::FilterUnavailable
    } else {
        ErrorKind::CorruptFile
    };
    if innermost.is_empty() {
        innermost.push_str("no reason given");
    }
    Error::new(kind, format!("{what}: {innermost}"))
}

/// Keeps the description of the first, innermost error that has one.
unsafe extern "C" fn keep_first(_n: c_uint, error: *const H5E_error2_t, data: *mut c_void) -> herr_t {
    // SAFETY: libhdf5 passes a valid record for the length of the call, and `data` is the caller's String.
    let (error, innermost) = unsafe { (&*error, &mut *data.cast::<String>()) };
    if innermost.is_empty() && !error.desc.is_null() {
        // SAFETY: a non-null description is a C string.
        *innermost = unsafe { CStr::from_ptr(error.desc) }.to_string_lossy().into_owned();
    }
    0
}

/// An open object of libhdf5, closed when dropped.
#[derive(Debug)]
pub(crate) struct Handle(hid_t);

impl Handle {
    /// The raw identifier, valid while `self` lives.
    pub(crate) fn id(&self) -> hid_t {
        self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _guard = lock();
        // SAFETY: the lock is held; the identifier is ours and is checked to be open still.
        unsafe {
            if H5Iis_valid(self.0) > 0 {
                H5Idec_ref(self.0);
            }
        }
    }
}

/// Identity of an object within its file: in native files the address of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Token([u8; 16]);

impl Token {
    /// The token that libhdf5 gave.
    pub(crate) fn from_raw(raw: H5O_token_t) -> Self {
        // SAFETY: `H5O_token_t` is a plain array of 16 bytes.
        Self(unsafe { std::mem::transmute::<H5O_token_t, [u8; 16]>(raw) })
    }

    /// The token of the object at `address`, as object references store it.
    pub(crate) fn from_address(address: u64) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&address.to_le_bytes());
        Self(bytes)
    }

    /// The address of the object's header, counted from the end of a user block.
    pub(crate) fn address(self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// As libhdf5 wants it.
    pub(crate) fn raw(self) -> H5O_token_t {
        // SAFETY: as above.
        unsafe { std::mem::transmute::<[u8; 16], H5O_token_t>(self.0) }
    }
}

/// Reads a name through a function of the shape `(buffer, size) -> length`, which libhdf5 has many of.
pub(crate) fn name(what: &str, mut get: impl FnMut(*mut c_char, usize) -> isize) -> Result<Vec<u8>> {
    let _guard = lock();
    let len = call(what, || get(std::ptr::null_mut(), 0))? as usize;
    if len > NAME_LIMIT {
        return Err(Error::corrupt(format!("{what}: a name of {len} bytes")));
    }
    let mut buffer = vec![0_u8; len + 1];
    call(what, || get(buffer.as_mut_ptr().cast(), buffer.len()))?;
    buffer.truncate(buffer.iter().position(|&b| b == 0).unwrap_or(len));
    Ok(buffer)
}

/// The bytes of a C string that a callback was given.
///
/// # Safety
/// `text` must be null or a C string that lives through the call.
pub(crate) unsafe fn bytes_of(text: *const c_char) -> Vec<u8> {
    if text.is_null() {
        return Vec::new();
    }
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()
}
