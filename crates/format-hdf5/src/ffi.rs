//! The few primitives through which libhdf5 is called: its lock, its errors, its handles.
//!
//! The bundled library is built without thread-safety, so every call happens under the one lock that the
//! `hdf5-metno` crates share. It is reentrant; holding it over several calls keeps them together.

use std::ffi::{CStr, c_char, c_uint, c_void};
use std::sync::Once;

use hdf5_metno_sys::h5::{H5dont_atexit, H5open, herr_t};
use hdf5_metno_sys::h5e::{H5E_DEFAULT, H5E_WALK_UPWARD, H5E_error2_t, H5Eclear2, H5Eset_auto2, H5Ewalk2};
use hdf5_metno_sys::h5i::{H5Idec_ref, H5Iis_valid, hid_t};
use hdf5_metno_sys::h5o::H5O_token_t;
use parking_lot::ReentrantMutexGuard;
use sieva_types::{Error, ErrorKind, Result};

use crate::driver;

/// Longest name of a link, attribute, file or member that is read.
const NAME_LIMIT: usize = 1 << 20;

/// Takes libhdf5's lock, and on first use starts the library with its own error printing off.
pub(crate) fn lock() -> ReentrantMutexGuard<'static, ()> {
    static START: Once = Once::new();
    let guard = hdf5_metno_sys::LOCK.lock();
    START.call_once(|| {
        // SAFETY: the lock is held; these take no pointers that outlive the call. Without `dont_atexit` the
        // library would tear itself down at exit while other threads may still be inside.
        unsafe {
            H5dont_atexit();
            H5open();
        }
    });
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

/// Runs one call under the lock; a failure becomes an error of libhdf5's own innermost words.
pub(crate) fn call<T: Status>(what: &str, f: impl FnOnce() -> T) -> Result<T> {
    let _guard = lock();
    let status = f();
    let refusal = driver::refusal();
    if status.failed() { Err(last_error(what, refusal)) } else { Ok(status) }
}

/// The same for calls that return a handle.
pub(crate) fn open(what: &str, f: impl FnOnce() -> hid_t) -> Result<Handle> {
    call(what, f).map(Handle)
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
