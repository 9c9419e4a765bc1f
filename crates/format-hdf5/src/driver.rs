//! The file driver through which libhdf5 reads: ranges of any store, no locks, no writing, and a look at metadata first.
//!
//! libhdf5 opens files by name. A store is put under a name for as long as it is being opened ([`Announced`]). Any
//! other name is one that libhdf5 looks for itself, as a source of virtual data: it tries several places, also the
//! working directory, and counts up the numbers of patterns. Each of these is held against what may be opened
//! ([`Permit`]) when it is tried. So is each file with raw data of a dataset, which libhdf5 opens without a driver
//! ([`open_itself`]).
//!
//! libhdf5 reads its metadata in whole blocks, so the driver sees each before the library does and can refuse one that
//! would make it loop or crash ([`Checks`]).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use hdf5_metno_sys::h5::{HADDR_UNDEF, haddr_t, herr_t, hsize_t};
use hdf5_metno_sys::h5fd::H5FDregister;
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5Pset_driver;
use sieva_types::{Error, ErrorKind, Result};

use crate::bytes::FileBytes;
use crate::checks::{Checks, kind};
use crate::ffi::{Handle, call, lock};
use crate::links::Policy;

/// `H5FD_CLASS_VERSION` of the structures below; the library refuses any other.
const CLASS_VERSION: c_uint = 1;
/// A number of the range that is left to drivers of applications.
const CLASS_VALUE: c_int = 511;
/// Largest address of a file.
const MAX_ADDRESS: haddr_t = i64::MAX as u64;
/// Bytes that may be read of a shorter file: libhdf5 reads ahead of what it knows to be there.
const MOST_PAST_END: u64 = 1 << 20;
/// Free lists by kind of memory, as other drivers have them (`H5FD_FLMAP_DICHOTOMY`).
const FREE_LISTS: [c_int; 7] = [1, 1, 1, 3, 3, 1, 1];
/// Aggregation, the data sieve, SWMR reading, and the plain format of one file. Not the metadata accumulator:
/// with it reads would no longer be whole blocks.
const FEATURES: c_ulong = 0x1 | 0x8 | 0x10 | 0x1000 | 0x8000;

// The structures below are held against libhdf5's own: written by build.rs.
include!(concat!(env!("OUT_DIR"), "/H5FD_t.rs"));
include!(concat!(env!("OUT_DIR"), "/H5FD_class_t.rs"));

/// What every driver's file begins with.
#[repr(C)]
struct Public {
    driver: hid_t,
    class: *const Class,
    number: c_ulong,
    access_flags: c_uint,
    feature_flags: c_ulong,
    max_address: haddr_t,
    base_address: haddr_t,
    threshold: hsize_t,
    alignment: hsize_t,
    is_paged: bool,
}

/// A file of this driver.
#[repr(C)]
struct Driven {
    public: Public,
    bytes: Arc<FileBytes>,
    end_of_addresses: haddr_t,
    checks: Checks,
}

/// A function that this driver does not have.
type Absent = Option<unsafe extern "C" fn()>;

/// The driver as libhdf5 takes it (`H5FD_class_t`; the version that hdf5-metno-sys declares is an older one).
#[repr(C)]
struct Class {
    version: c_uint,
    value: c_int,
    name: *const c_char,
    max_address: haddr_t,
    close_degree: c_int,
    terminate: Absent,
    superblock: [Absent; 3],
    access_size: usize,
    access: [Absent; 3],
    transfer_size: usize,
    transfer: [Absent; 2],
    open: unsafe extern "C" fn(*const c_char, c_uint, hid_t, haddr_t) -> *mut Driven,
    close: unsafe extern "C" fn(*mut Driven) -> herr_t,
    compare: unsafe extern "C" fn(*const Driven, *const Driven) -> c_int,
    query: unsafe extern "C" fn(*const Driven, *mut c_ulong) -> herr_t,
    type_map: Absent,
    allocation: [Absent; 2],
    get_end_of_addresses: unsafe extern "C" fn(*const Driven, c_int) -> haddr_t,
    set_end_of_addresses: unsafe extern "C" fn(*mut Driven, c_int, haddr_t) -> herr_t,
    get_end_of_file: unsafe extern "C" fn(*const Driven, c_int) -> haddr_t,
    get_handle: Absent,
    read: unsafe extern "C" fn(*mut Driven, c_int, hid_t, haddr_t, usize, *mut c_void) -> herr_t,
    write: unsafe extern "C" fn(*mut Driven, c_int, hid_t, haddr_t, usize, *const c_void) -> herr_t,
    vectors_and_selections: [Absent; 4],
    flush_and_truncate: [Absent; 2],
    locking: [Absent; 2],
    delete: Absent,
    control: Absent,
    free_lists: [c_int; 7],
}

// SAFETY: the class is constant; its one pointer is to a string literal.
unsafe impl Sync for Class {}

static CLASS: Class = Class {
    version: CLASS_VERSION,
    value: CLASS_VALUE,
    name: c"sieva".as_ptr(),
    max_address: MAX_ADDRESS,
    close_degree: 1,
    terminate: None,
    superblock: [None; 3],
    access_size: 0,
    access: [None; 3],
    transfer_size: 0,
    transfer: [None; 2],
    open,
    close,
    compare,
    query,
    type_map: None,
    allocation: [None; 2],
    get_end_of_addresses,
    set_end_of_addresses,
    get_end_of_file,
    get_handle: None,
    read,
    write,
    vectors_and_selections: [None; 4],
    flush_and_truncate: [None; 2],
    locking: [None; 2],
    delete: None,
    control: None,
    free_lists: FREE_LISTS,
};

/// Why the driver did not read; libhdf5's own message would only be that it did not.
static REFUSAL: Mutex<Option<Error>> = Mutex::new(None);

/// Takes the reason of the last refusal, if there was one since the last time.
pub(crate) fn refusal() -> Option<Error> {
    REFUSAL.lock().unwrap_or_else(PoisonError::into_inner).take()
}

fn refuse(why: Error) -> herr_t {
    *REFUSAL.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    -1
}

/// The stores that are being opened, by the name that libhdf5 is given.
static STORES: LazyLock<Mutex<HashMap<CString, Arc<FileBytes>>>> = LazyLock::new(Mutex::default);

/// A name under which libhdf5 finds a store, while this lives. It is made and dropped under libhdf5's lock, so that
/// two openings of one path do not meet.
pub(crate) struct Announced(CString);

impl Announced {
    /// Puts `bytes` under their local path, which links of the file count from, or under a name of their own.
    pub(crate) fn new(bytes: &Arc<FileBytes>) -> Result<Self> {
        let name = match bytes.local_path() {
            Some(path) => CString::new(path.as_os_str().as_bytes()),
            None => CString::new(format!("sieva-store-{}", bytes.id())),
        };
        let name = name.map_err(|_| Error::new(ErrorKind::FileNotFound, "its path has a NUL in it"))?;
        STORES.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone(), bytes.clone());
        Ok(Self(name))
    }

    /// The name.
    pub(crate) fn name(&self) -> &CStr {
        &self.0
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        STORES.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

thread_local! {
    /// The files that libhdf5 may look for in calls of this thread.
    static PERMITTED: RefCell<Vec<Policy>> = const { RefCell::new(Vec::new()) };
}

/// For as long as it lives, calls of this thread may lead libhdf5 to the files of a policy; without one, to none.
pub(crate) struct Permit(());

impl Permit {
    /// Permits what `policy` allows.
    pub(crate) fn new(policy: &Policy) -> Self {
        PERMITTED.with_borrow_mut(|permitted| permitted.push(policy.clone()));
        Self(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        PERMITTED.with_borrow_mut(Vec::pop);
    }
}

thread_local! {
    /// Whether a call of libhdf5 is under way, and not one of it back to us.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// Makes a call of libhdf5: what it opens itself meanwhile comes to [`open_itself`].
pub(crate) fn within<R>(call: impl FnOnce() -> R) -> R {
    set_within(true, call)
}

/// Does what libhdf5 calls back for, where files are opened as ever.
fn without<R>(work: impl FnOnce() -> R) -> R {
    set_within(false, work)
}

fn set_within<R>(is_within: bool, work: impl FnOnce() -> R) -> R {
    /// Puts back what was, also after a panic.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            WITHIN.set(self.0);
        }
    }
    let _before = Before(WITHIN.replace(is_within));
    work()
}

/// Opens the file that libhdf5 wants to open itself, where that is allowed: raw data of a dataset. Outside of its calls -2,
/// for a file that may not be opened or is not there -1.
pub(crate) extern "C" fn open_itself(name: *const c_char) -> c_int {
    // At the end of a thread there is no such thing any more, nor a call of libhdf5.
    if !WITHIN.try_with(Cell::get).unwrap_or(false) {
        return -2;
    }
    // SAFETY: libhdf5 passes a C string.
    let name = unsafe { CStr::from_ptr(name) };
    let opened = without(|| catch_unwind(AssertUnwindSafe(|| permitted(name, Policy::file))).ok().flatten());
    opened.map_or(-1, IntoRawFd::into_raw_fd)
}

/// What `open` finds at a path that the policy of the moment allows; a refusal is noted.
fn permitted<T>(name: &CStr, open: impl FnOnce(&Policy, &Path) -> Result<Option<T>>) -> Option<T> {
    let policy = PERMITTED.with_borrow(|permitted| permitted.last().cloned())?;
    open(&policy, Path::new(OsStr::from_bytes(name.to_bytes()))).unwrap_or_else(|e| {
        refuse(e);
        None
    })
}

/// Makes `access` open files through this driver.
pub(crate) fn set(access: &Handle) -> Result<()> {
    static DRIVER: OnceLock<hid_t> = OnceLock::new();
    let _guard = lock();
    let driver = *DRIVER.get_or_init(|| {
        // SAFETY: the lock is held; the class is static and laid out as version 1 of the library's structure.
        unsafe { H5FDregister((&raw const CLASS).cast()) }
    });
    // SAFETY: as above; the driver has no settings of its own.
    call("cannot set the file driver", || unsafe { H5Pset_driver(access.id(), driver, std::ptr::null()) })
        .map(|_| ())
        .map_err(|e| Error::new(ErrorKind::Internal, e.to_string()))
}

unsafe extern "C" fn open(name: *const c_char, flags: c_uint, _access: hid_t, _max: haddr_t) -> *mut Driven {
    // SAFETY: libhdf5 passes a C string.
    let name = unsafe { CStr::from_ptr(name) };
    // Bit 0 asks for writing, which is refused.
    let bytes = if flags & 1 == 0 { without(|| find(name)) } else { None };
    let Some(bytes) = bytes else { return std::ptr::null_mut() };
    let checks = match without(|| Checks::of(&bytes)) {
        Ok(checks) => checks,
        Err(e) => {
            refuse(e);
            return std::ptr::null_mut();
        }
    };
    Box::into_raw(Box::new(Driven {
        public: Public {
            driver: 0,
            class: std::ptr::null(),
            number: 0,
            access_flags: 0,
            feature_flags: 0,
            max_address: 0,
            base_address: 0,
            threshold: 0,
            alignment: 0,
            is_paged: false,
        },
        bytes,
        end_of_addresses: 0,
        checks,
    }))
}

/// The store of this name, or the file that it leads to if that is permitted.
fn find(name: &CStr) -> Option<Arc<FileBytes>> {
    if let Some(bytes) = STORES.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
        return Some(bytes.clone());
    }
    permitted(name, Policy::source).map(|store| FileBytes::new(Arc::new(store)))
}

unsafe extern "C" fn close(file: *mut Driven) -> herr_t {
    // SAFETY: libhdf5 closes once what `open` gave it.
    without(|| drop(unsafe { Box::from_raw(file) }));
    0
}

/// An order of files in which a file equals itself only. What is opened again is another, even under the same name:
/// else libhdf5 would answer for it from what it remembers of the old one.
unsafe extern "C" fn compare(one: *const Driven, two: *const Driven) -> c_int {
    // SAFETY: both are open files of this driver.
    let (one, two) = unsafe { (&*one, &*two) };
    one.bytes.id().cmp(&two.bytes.id()) as c_int
}

unsafe extern "C" fn query(_file: *const Driven, flags: *mut c_ulong) -> herr_t {
    if !flags.is_null() {
        // SAFETY: the pointer is libhdf5's to be written to.
        unsafe { flags.write(FEATURES) };
    }
    0
}

unsafe extern "C" fn get_end_of_addresses(file: *const Driven, _kind: c_int) -> haddr_t {
    // SAFETY: an open file of this driver.
    unsafe { (*file).end_of_addresses }
}

unsafe extern "C" fn set_end_of_addresses(file: *mut Driven, _kind: c_int, address: haddr_t) -> herr_t {
    // SAFETY: an open file of this driver.
    unsafe { (*file).end_of_addresses = address };
    0
}

unsafe extern "C" fn get_end_of_file(file: *const Driven, _kind: c_int) -> haddr_t {
    // SAFETY: an open file of this driver.
    unsafe { (*file).bytes.len() }
}

unsafe extern "C" fn read(
    file: *mut Driven,
    kind: c_int,
    _transfer: hid_t,
    address: haddr_t,
    size: usize,
    out: *mut c_void,
) -> herr_t {
    // SAFETY: an open file of this driver.
    let file = unsafe { &mut *file };
    if size as u64 > file.bytes.len().max(MOST_PAST_END) {
        // A size that the file made up: clearing the memory is what would take it.
        let len = file.bytes.len();
        return refuse(Error::corrupt(format!("{size} bytes at {address} asked for, the file has {len}")));
    }
    // SAFETY: a buffer of `size` bytes, which are set before they are read.
    let out = unsafe {
        std::ptr::write_bytes(out.cast::<u8>(), 0, size);
        std::slice::from_raw_parts_mut(out.cast::<u8>(), size)
    };
    if address == HADDR_UNDEF {
        return -1;
    }
    match without(|| file.fill(kind, address, out).and_then(|()| file.wrong(kind, address, out))) {
        Ok(None) => 0,
        Ok(Some(wrong)) => refuse(Error::corrupt(wrong)),
        Err(e) => refuse(e),
    }
}

unsafe extern "C" fn write(
    _file: *mut Driven,
    _kind: c_int,
    _transfer: hid_t,
    _address: haddr_t,
    _size: usize,
    _data: *const c_void,
) -> herr_t {
    -1
}

impl Driven {
    /// Reads from `address` on; what lies past the end of the file is zeros, as libhdf5's own drivers have it.
    fn fill(&self, kind: c_int, address: u64, out: &mut [u8]) -> Result<()> {
        let there = self.bytes.len().saturating_sub(address).min(out.len() as u64) as usize;
        if there == 0 {
            return Ok(());
        }
        if kind != kind::RAW_DATA {
            self.bytes.announce(address, there as u64);
        }
        self.bytes.read(address, &mut out[..there])
    }

    /// What is wrong with the structure that `bytes` at `address` begin with, if anything is.
    fn wrong(&mut self, kind: c_int, address: u64, bytes: &[u8]) -> Result<Option<&'static str>> {
        self.checks.wrong(&self.bytes, kind, address, bytes, self.public.base_address)
    }
}
