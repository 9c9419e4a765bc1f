//! Lengths of variable-length items as the file has them, looked at before libhdf5 believes them.
//!
//! An item is stored as its number of elements (4 bytes), the address of a heap collection and the number of an object
//! in it (HDF5 file format specification 3.0, IV.B "Variable-length"). Converting it, libhdf5 takes and clears memory
//! for as many elements as the number says, up to 2^32, before it looks into the heap. So items are first read through
//! a conversion of ours, which takes them for plain bytes, and what says more than the file can hold is refused.

use std::ffi::c_void;
use std::sync::OnceLock;

use hdf5_metno_sys::h5::{herr_t, hsize_t};
use hdf5_metno_sys::h5f::{H5Fget_create_plist, H5Fget_filesize};
use hdf5_metno_sys::h5i::{H5Iget_file_id, hid_t};
use hdf5_metno_sys::h5p::H5Pget_sizes;
use hdf5_metno_sys::h5t::H5T_cmd_t::{H5T_CONV_CONV, H5T_CONV_FREE, H5T_CONV_INIT};
use hdf5_metno_sys::h5t::*;
use sieva_types::{Error, ErrorKind, Result};

use crate::ffi::{self, Handle, call};
use crate::leaves::Step;
use crate::memory::{self, MemoryType};
use crate::texts::BESIDES_ADDRESS;

const WHAT: &str = "cannot look at items of variable length";
/// Most bytes of one item in memory.
const ITEM_LIMIT: u64 = 512 << 20;

/// What stored items are checked against.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The stored type with plain bytes in place of each item.
    pub(crate) memory: MemoryType,
    file_len: u64,
    /// Bytes of an element in memory.
    element: u64,
}

impl Descriptors {
    /// For items of the type that `steps` lead to from `stored`, the type of the dataset or attribute `object`. An
    /// element takes `element` bytes in memory.
    pub(crate) fn of(object: &Handle, stored: &Handle, steps: &[Step], element: u64) -> Result<Self> {
        let _guard = ffi::lock();
        register()?;
        let (address, file_len) = file_sizes(object)?;
        let memory = memory::plain_bytes(stored, steps, address + BESIDES_ADDRESS)?;
        Ok(Self { memory, file_len, element })
    }

    /// Refuses items, one after another as they are stored, that say more than there can be.
    ///
    /// # Errors
    /// `corrupt-file` for an item that is longer than the file, `memory-limit` for one that is too long to be read.
    pub(crate) fn check(&self, items: &[u8]) -> Result<()> {
        for item in items.chunks_exact(self.memory.element) {
            let len = u64::from(u32::from_le_bytes([item[0], item[1], item[2], item[3]]));
            if len > self.file_len {
                let message = format!("an item of {len} elements, the file has {} bytes", self.file_len);
                return Err(Error::corrupt(message));
            }
            if len.saturating_mul(self.element) > ITEM_LIMIT {
                let message = format!("an item of {len} elements, at most {ITEM_LIMIT} bytes are read");
                return Err(Error::new(ErrorKind::MemoryLimit, message));
            }
        }
        Ok(())
    }
}

/// Bytes of an address in the object's file, and of the file.
pub(crate) fn file_sizes(object: &Handle) -> Result<(usize, u64)> {
    // SAFETY: called under the lock with an open object.
    let file = ffi::open(WHAT, || unsafe { H5Iget_file_id(object.id()) })?;
    // SAFETY: as above, with an open file.
    let list = ffi::open(WHAT, || unsafe { H5Fget_create_plist(file.id()) })?;
    let (mut address, mut length, mut bytes): (usize, usize, hsize_t) = (0, 0, 0);
    // SAFETY: as above; the numbers are ours to be written to.
    call(WHAT, || unsafe { H5Pget_sizes(list.id(), &mut address, &mut length) })?;
    // SAFETY: as above.
    call(WHAT, || unsafe { H5Fget_filesize(file.id(), &mut bytes) })?;
    Ok((address, bytes))
}

/// Makes the conversion known to libhdf5, once.
fn register() -> Result<()> {
    static DONE: OnceLock<Result<()>> = OnceLock::new();
    let register = || {
        // SAFETY: called under the lock; the types are predefined.
        let items = ffi::open(WHAT, || unsafe { H5Tvlen_create(*H5T_NATIVE_UCHAR) })?;
        // SAFETY: as above.
        let bytes = ffi::open(WHAT, || unsafe { H5Tcreate(H5T_OPAQUE, 1) })?;
        call(WHAT, || {
            // SAFETY: as above; the function has the signature that the library calls, and the name lives for ever.
            unsafe {
                H5Tregister(H5T_PERS_SOFT, c"sieva-item".as_ptr(), items.id(), bytes.id(), Some(as_bytes))
            }
        })
        .map(|_| ())
    };
    DONE.get_or_init(register).clone()
}

/// Leaves the bytes of stored items as they are.
extern "C" fn as_bytes(
    from: hid_t,
    to: hid_t,
    data: *mut H5T_cdata_t,
    _n: usize,
    _stride: usize,
    _background_stride: usize,
    _items: *mut c_void,
    _background: *mut c_void,
    _transfer: hid_t,
) -> herr_t {
    // SAFETY: libhdf5 passes its own record, and calls with its lock held and both types open.
    let (command, is_alike) = unsafe {
        (*data).need_bkg = H5T_bkg_t::H5T_BKG_NO;
        ((*data).command, H5Tget_size(from) == H5Tget_size(to))
    };
    match command {
        H5T_CONV_INIT | H5T_CONV_FREE => 0,
        // In memory items are of another size, and are none of these.
        H5T_CONV_CONV if is_alike => 0,
        H5T_CONV_CONV => -1,
    }
}
