//! Chunks packed by HDF5's nbit and scale-offset filters, before libhdf5 unpacks them.
//!
//! The library takes how many items there are, and of how many bits, from the filter's client data, and reads as much,
//! however short the chunk is. So of data that it decodes (the sources of virtual data, and what lies behind filters that
//! are plug-ins of its own) each such chunk is decoded by us first.

use std::ffi::{c_int, c_uint, c_void};

use hdf5_metno_sys::h5::{HADDR_UNDEF, haddr_t, hsize_t};
use hdf5_metno_sys::h5d::H5Dchunk_iter;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use sieva_format::filters::{Pipeline, Scratch};
use sieva_types::{Error, ErrorKind, Result};

use crate::dataset::{self, RawFilter};
use crate::ffi::{Handle, call};
use crate::file::File;

/// The numbers of nbit and scale-offset.
const NUMBERS: [u32; 2] = [5, 6];
/// Most chunks that are looked at.
const CHUNK_LIMIT: usize = 4 << 20;
/// Largest decoded chunk that is looked at.
const SIZE_LIMIT: u64 = 4 << 30;

/// Checks all chunks of a dataset; nothing to do where neither is among its filters.
///
/// # Errors
/// `corrupt-file` for a chunk that the filter's client data do not describe.
pub(crate) fn check_chunks(file: &File, dataset: &Handle) -> Result<()> {
    let creation = dataset::creation_list(dataset)?;
    let filters = dataset::raw_filters(&creation)?;
    let Some(stage) = filters.iter().position(|f| NUMBERS.contains(&f.id)) else { return Ok(()) };
    let len = dataset::chunk_items(&creation)?.checked_mul(dataset::item_size(dataset)?);
    let Some(len) = len.filter(|&len| len <= SIZE_LIMIT) else {
        return Err(Error::new(ErrorKind::Unsupported, format!("packed chunks of {len:?} bytes")));
    };
    let pipeline = Pipeline { filters: filters[stage..].iter().map(RawFilter::filter).collect() };
    let (mut scratch, mut out) = (Scratch::default(), vec![0; len as usize]);
    for chunk in stored_chunks(dataset)? {
        let mask = chunk.mask.checked_shr(stage as u32).unwrap_or(0);
        let input = file.bytes_at(chunk.address, chunk.size)?;
        let decoded = pipeline.decode(mask, &input, &mut out, &mut scratch);
        decoded.map_err(|e| {
            Error::new(e.kind(), format!("its chunk at offset {}: {}", chunk.address, e.message()))
        })?;
    }
    Ok(())
}

/// A chunk in the file.
struct Stored {
    address: u64,
    size: u64,
    mask: u32,
}

/// The chunks that the file has of a dataset.
fn stored_chunks(dataset: &Handle) -> Result<Vec<Stored>> {
    let mut chunks: Vec<Stored> = Vec::new();
    call("cannot find its data", || {
        // SAFETY: called under the lock with an open dataset; the callback only writes to `chunks`.
        unsafe { H5Dchunk_iter(dataset.id(), H5P_DEFAULT, Some(keep), (&raw mut chunks).cast()) }
    })?;
    Ok(chunks)
}

unsafe extern "C" fn keep(
    _offset: *const hsize_t,
    mask: c_uint,
    address: haddr_t,
    size: hsize_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the caller's Vec.
    let chunks = unsafe { &mut *data.cast::<Vec<Stored>>() };
    if address != HADDR_UNDEF {
        chunks.push(Stored { address, size, mask });
    }
    c_int::from(chunks.len() >= CHUNK_LIMIT)
}
