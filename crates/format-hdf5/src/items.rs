//! Items with parts of variable length, before libhdf5 reads them: all that are said to be there have to be stored.
//!
//! libhdf5 converts contiguous items from a buffer of what is stored. Of items that are said to be larger than that, the
//! last are made of what the buffer held before.

use hdf5_metno_sys::h5d::H5Dget_storage_size;
use sieva_types::{Error, Result};

use crate::dataset::{Dataset, Storage};
use crate::descriptors::{BESIDES_ADDRESS, file_sizes};
use crate::ffi::Handle;
use crate::types::{Kind, TypeInfo};

/// Checks a dataset; nothing to do where its items are in memory as they are in the file.
///
/// # Errors
/// `corrupt-file` where the items are more than is stored.
pub(crate) fn check(d: &Dataset, handle: &Handle) -> Result<()> {
    if d.storage != Storage::Contiguous || !d.info.relocated {
        return Ok(());
    }
    // SAFETY: called under the lock with an open dataset.
    let stored = unsafe { H5Dget_storage_size(handle.id()) };
    let (address, _) = file_sizes(handle)?;
    let Some(size) = stored_size(&d.info, (address + BESIDES_ADDRESS) as u64) else { return Ok(()) };
    let needed = d.shape.iter().try_fold(size, |n, &length| n.checked_mul(length));
    // Nothing is stored before something is written.
    if stored > 0 && needed.is_none_or(|needed| needed > stored) {
        let items = d.shape.iter().product::<u64>();
        return Err(Error::corrupt(format!("{items} items of {size} bytes in {stored} bytes of storage")));
    }
    Ok(())
}

/// Bytes of an item in the file, where what is of variable length takes `pointer`; `None` of references, which are of
/// several kinds.
fn stored_size(info: &TypeInfo, pointer: u64) -> Option<u64> {
    match &info.kind {
        Kind::Reference => None,
        Kind::VlenText => Some(pointer),
        // A sequence.
        Kind::Other(_) if info.relocated => Some(pointer),
        Kind::Array(dims, item) => {
            dims.iter().try_fold(stored_size(item, pointer)?, |n, &length| n.checked_mul(length))
        }
        Kind::Complex(item) => stored_size(item, pointer)?.checked_mul(2),
        // libhdf5 makes it larger or smaller by what its members are.
        Kind::Compound(members) => members.iter().try_fold(info.size, |size, member| {
            size.checked_sub(member.info.size)?.checked_add(stored_size(&member.info, pointer)?)
        }),
        Kind::Number { .. } | Kind::Converted { .. } | Kind::Text { .. } | Kind::Other(_) => Some(info.size),
    }
}
