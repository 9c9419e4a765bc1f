//! Which chunks of a dataset are stored, and where.

use std::ffi::{c_int, c_uint, c_void};

use hdf5_metno_sys::h5::{HADDR_UNDEF, haddr_t, hsize_t};
use hdf5_metno_sys::h5d::*;
use hdf5_metno_sys::h5p::{H5P_DEFAULT, H5Pget_chunk_opts};
use sieva_format::layout::{ChunkIndex, ChunkRef};
use sieva_types::{Error, Result};

use crate::dataset::{self, Dataset};
use crate::ffi::{Handle, call};

/// `H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`.
const UNFILTERED_EDGES: c_uint = 2;
/// `H5D_CHUNK_IDX_EARRAY`, which the bindings leave out.
const EXTENSIBLE_ARRAY: H5D_chunk_index_t = 4;

const WHAT: &str = "cannot find its data";

/// What the callback of [`index`] collects.
struct Collected<'a> {
    shape: &'a [u64],
    chunk: &'a [u64],
    grid: Vec<u64>,
    swizzle: Option<Swizzle>,
    unfiltered_edges: bool,
    file_len: u64,
    limit: u64,
    seen: u64,
    stored: Vec<(u64, ChunkRef)>,
    wrong: Option<Error>,
}

/// The stored chunks of an open dataset in a file of `file_len` bytes.
pub(crate) fn index(handle: &Handle, d: &Dataset, file_len: u64) -> Result<ChunkIndex> {
    let grid: Vec<u64> = d.shape.iter().zip(&d.chunk_shape).map(|(&s, &c)| s.div_ceil(c)).collect();
    let grid_len = sieva_types::checked_len(&grid)?;
    let mut collected = Collected {
        shape: &d.shape,
        chunk: &d.chunk_shape,
        grid,
        swizzle: Swizzle::of(handle, d)?,
        unfiltered_edges: leaves_edges_unfiltered(handle)?,
        file_len,
        limit: grid_len.saturating_mul(2).saturating_add(1024),
        seen: 0,
        stored: Vec::new(),
        wrong: None,
    };
    if grid_len > 0 {
        let status = call(WHAT, || {
            // SAFETY: the caller holds the lock, the dataset is open; the callback only writes to `collected`.
            unsafe { H5Dchunk_iter(handle.id(), H5P_DEFAULT, Some(keep_chunk), (&raw mut collected).cast()) }
        });
        if let Some(wrong) = collected.wrong {
            return Err(wrong);
        }
        status?;
    }
    Ok(ChunkIndex::new(grid_len, collected.stored))
}

/// How an extensible array numbers chunks when its only unlimited dimension is not the first: with that
/// dimension put first (HDF5 file format, version 4 layout). libhdf5 up to 2.2 does not undo it when it lists
/// the chunks: it counts the coordinates up in the order of the dimensions.
struct Swizzle {
    unlimited: usize,
    /// Most chunks along each dimension; not used for the unlimited one.
    most: Vec<u64>,
}

impl Swizzle {
    /// `None` where libhdf5 lists chunks under their own coordinates.
    fn of(handle: &Handle, d: &Dataset) -> Result<Option<Self>> {
        let growing = d.unlimited.iter().filter(|&&u| u).count();
        let Some(unlimited) = d.unlimited.iter().position(|&u| u).filter(|&u| u > 0 && growing == 1) else {
            return Ok(None);
        };
        let mut kind = H5D_CHUNK_IDX_BTREE;
        // SAFETY: the caller holds the lock, the dataset is open; the result goes to a local.
        call(WHAT, || unsafe { H5Dget_chunk_index_type(handle.id(), &mut kind) })?;
        if kind != EXTENSIBLE_ARRAY {
            return Ok(None);
        }
        let most = dataset::most_extent(handle)?;
        let most = most.iter().zip(&d.chunk_shape).map(|(&n, &c)| n.div_ceil(c)).collect();
        Ok(Some(Self { unlimited, most }))
    }

    /// The chunk's own coordinates, from those that it is listed under (both in chunks).
    fn undo(&self, listed: &[u64]) -> Option<Vec<u64>> {
        let number = (self.unlimited + 1..listed.len())
            .try_fold(listed[self.unlimited], |n, k| n.checked_mul(self.most[k])?.checked_add(listed[k]))?;
        let mut coords = vec![0; listed.len()];
        let mut rest = number;
        for k in (0..listed.len()).rev().filter(|&k| k != self.unlimited) {
            coords[k] = rest % self.most[k];
            rest /= self.most[k];
        }
        coords[self.unlimited] = rest;
        Some(coords)
    }
}

fn leaves_edges_unfiltered(handle: &Handle) -> Result<bool> {
    let creation = dataset::creation_list(handle)?;
    let mut options = 0;
    // SAFETY: called under the lock with an open creation list and a pointer to a local.
    call(WHAT, || unsafe { H5Pget_chunk_opts(creation.id(), &mut options) })?;
    Ok(options & UNFILTERED_EDGES != 0)
}

unsafe extern "C" fn keep_chunk(
    offset: *const hsize_t,
    filter_mask: c_uint,
    address: haddr_t,
    size: hsize_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the caller's record; libhdf5 passes one offset per dimension.
    let (collected, offset) = unsafe {
        let collected = &mut *data.cast::<Collected>();
        let rank = collected.shape.len();
        (collected, std::slice::from_raw_parts(offset, rank))
    };
    match collected.keep(offset, filter_mask, address, size) {
        Ok(()) => 0,
        Err(wrong) => {
            collected.wrong = Some(wrong);
            1
        }
    }
}

impl Collected<'_> {
    fn keep(&mut self, offset: &[u64], filter_mask: u32, address: u64, size: u64) -> Result<()> {
        self.seen += 1;
        if self.seen > self.limit {
            let what = format!("its index lists more than {} chunks, the grid has fewer", self.limit);
            return Err(Error::corrupt(what));
        }
        let own = match &self.swizzle {
            None => None,
            Some(swizzle) => {
                let listed: Vec<u64> = offset.iter().zip(self.chunk).map(|(o, c)| o / c).collect();
                let Some(coords) = swizzle.undo(&listed) else { return Ok(()) };
                Some(coords.iter().zip(self.chunk).map(|(i, c)| i.saturating_mul(*c)).collect::<Vec<_>>())
            }
        };
        let offset = own.as_deref().unwrap_or(offset);
        let is_outside = offset.iter().zip(self.shape).any(|(&o, &s)| o >= s);
        if address == HADDR_UNDEF || is_outside {
            // Room kept for growth, or left over from it.
            return Ok(());
        }
        if address.checked_add(size).is_none_or(|end| end > self.file_len) {
            return Err(Error::corrupt(format!(
                "chunk {offset:?} of {size} bytes at offset {address} reaches past the end of the file ({} bytes)",
                self.file_len
            )));
        }
        let mut number = 0;
        let mut is_edge = false;
        for (k, &first) in offset.iter().enumerate() {
            number = number * self.grid[k] + first / self.chunk[k];
            is_edge |= first.saturating_add(self.chunk[k]) > self.shape[k];
        }
        let filter_mask = if is_edge && self.unfiltered_edges { u32::MAX } else { filter_mask };
        self.stored.push((number, ChunkRef { offset: address, size, filter_mask }));
        Ok(())
    }
}
