//! Where the bytes of a dataset lie.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use hdf5_metno_sys::h5::{HADDR_UNDEF, haddr_t, hsize_t};
use hdf5_metno_sys::h5d::*;
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5s::H5S_ALL;
use hdf5_metno_sys::h5z::H5Zfilter_avail;
use sieva_format::filters::Pipeline;
use sieva_format::layout::{ChunkIndex, ChunkRef, Layout, Placement, c_strides};
use sieva_types::{Endian, Error, ErrorKind, Result};

use crate::dataset::{self, Dataset, Storage};
use crate::ffi::{self, Handle, call};
use crate::items;
use crate::nbit;
use crate::scaleoffset;
use crate::types::{Kind, Leaf};
use crate::walk::Tree;

/// `H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`.
const UNFILTERED_EDGES: c_uint = 2;
/// `H5D_CHUNK_IDX_EARRAY`, which the bindings leave out.
const EXTENSIBLE_ARRAY: H5D_chunk_index_t = 4;
/// Largest data of a compact dataset: they have to fit into an object header's message.
const COMPACT_LIMIT: u64 = 1 << 20;
/// Largest item of a dataset, so that a fill value can be held.
const ITEM_LIMIT: u64 = 16 << 20;

const WHAT: &str = "cannot find its data";

/// The physical storage of a dataset, shared by the arrays of a compound's members.
#[derive(Debug)]
pub(crate) struct Physical {
    pub(crate) placement: Placement,
    pub(crate) pipeline: Pipeline,
    /// Fill value of a whole item in stored byte order; empty where it is zeros.
    fill: Vec<u8>,
    /// Why not even libhdf5 can read the data.
    pub(crate) unreadable: Option<Error>,
}

/// Finds the physical storage of a dataset in a file of `file_len` bytes.
pub(crate) fn physical(tree: &Tree, d: &Dataset, file_len: u64) -> Result<Physical> {
    let _guard = ffi::lock();
    let mut out = Physical {
        placement: Placement::Unallocated,
        pipeline: Pipeline { filters: d.filters.iter().map(dataset::RawFilter::filter).collect() },
        fill: Vec::new(),
        unreadable: d.refused.clone(),
    };
    if out.unreadable.is_some() {
        out.placement = Placement::Library(format!("{} data that may not be read", d.storage_info().layout));
        return Ok(out);
    }
    if d.info.size > ITEM_LIMIT {
        return Err(Error::new(ErrorKind::Unsupported, format!("items of {} bytes", d.info.size)));
    }
    let handle = tree.files[d.found.file].object(d.found.token)?;
    items::check(d, &handle)?;
    out.fill = fill_value(&handle, d)?;
    out.placement = match library_reason(d) {
        Some(reason) => Placement::Library(reason),
        None => place(&handle, d, file_len, &out.pipeline)?,
    };
    if matches!(out.placement, Placement::Library(_)) {
        nbit::check(&tree.files[d.found.file], &handle)?;
    }
    // Types that need converting go through libhdf5 wherever their data lie.
    if matches!(out.placement, Placement::Library(_)) || !matches!(d.info.kind, Kind::Number { .. }) {
        scaleoffset::check_chunks(&tree.files[d.found.file], &handle)?;
    }
    if d.storage == Storage::Chunked {
        scaleoffset::check(&d.filters, chunk_bytes(d))?;
    }
    if let (Placement::Library(_), Some(missing)) = (&out.placement, missing_filter(d)) {
        out.unreadable = Some(missing);
    }
    Ok(out)
}

/// Bytes of one decoded chunk.
fn chunk_bytes(d: &Dataset) -> Option<u64> {
    d.chunk_shape.iter().try_fold(d.info.size, |n, &c| n.checked_mul(c))
}

/// Why all arrays of a dataset have to be read by libhdf5, where they have.
fn library_reason(d: &Dataset) -> Option<String> {
    if d.found.file != 0 {
        return Some("in another file, behind an external link".into());
    }
    match d.storage {
        Storage::External => Some("raw data in other files".into()),
        Storage::Virtual => Some("virtual".into()),
        _ if d.info.relocated => Some("variable-length data or references in its items".into()),
        _ => None,
    }
}

/// The error for the first filter that neither sieva nor libhdf5 has.
fn missing_filter(d: &Dataset) -> Option<Error> {
    let missing = d.filters.iter().find(|f| {
        // SAFETY: the caller holds the lock.
        unsafe { H5Zfilter_avail(f.id as c_int) <= 0 }
    })?;
    let name = missing.filter().name().to_owned();
    Some(Error::new(
        ErrorKind::FilterUnavailable,
        format!("its data are encoded with filter {} ('{name}'), which is not available", missing.id),
    ))
}

fn place(handle: &Handle, d: &Dataset, file_len: u64, pipeline: &Pipeline) -> Result<Placement> {
    match d.storage {
        Storage::Contiguous => contiguous(handle, d, file_len),
        Storage::Compact => compact(handle, d),
        Storage::Chunked => chunks(handle, d, file_len, pipeline),
        Storage::External | Storage::Virtual => Ok(Placement::Unallocated),
    }
}

fn byte_len(d: &Dataset) -> Result<u64> {
    d.shape
        .iter()
        .try_fold(d.info.size, |n, &s| n.checked_mul(s))
        .ok_or_else(|| Error::corrupt(format!("shape {:?} takes more than 2^64 bytes", d.shape)))
}

fn contiguous(handle: &Handle, d: &Dataset, file_len: u64) -> Result<Placement> {
    let Some(offset) = dataset::data_offset(handle) else { return Ok(Placement::Unallocated) };
    let len = byte_len(d)?;
    if offset.checked_add(len).is_none_or(|end| end > file_len) {
        return Err(Error::corrupt(format!(
            "its {len} bytes at offset {offset} reach past the end of the file ({file_len} bytes)"
        )));
    }
    Ok(Placement::Direct { offset })
}

fn compact(handle: &Handle, d: &Dataset) -> Result<Placement> {
    let len = byte_len(d)?;
    if len > COMPACT_LIMIT {
        return Err(Error::corrupt(format!("compact data of {len} bytes")));
    }
    let stored = dataset::stored_type(handle)?;
    let mut bytes = vec![0_u8; len as usize];
    call(WHAT, || {
        // SAFETY: the caller holds the lock, the handles are open; with the stored type no conversion takes
        // place, and the buffer holds all items of it.
        unsafe { H5Dread(handle.id(), stored.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.as_mut_ptr().cast()) }
    })?;
    Ok(Placement::Inline(Arc::from(bytes)))
}

/// What the callback of [`chunks`] collects.
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

fn chunks(handle: &Handle, d: &Dataset, file_len: u64, pipeline: &Pipeline) -> Result<Placement> {
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
    if let Some(reason) = undecodable(pipeline, &collected.stored) {
        return Ok(Placement::Library(reason));
    }
    Ok(Placement::Chunks(ChunkIndex::new(grid_len, collected.stored)))
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

/// The filter that keeps us from decoding, unless every stored chunk says that it was skipped.
fn undecodable(pipeline: &Pipeline, stored: &[(u64, ChunkRef)]) -> Option<String> {
    let unsupported = pipeline.filters.iter().enumerate().filter(|(_, f)| !f.is_supported());
    let mut needed = unsupported.filter(|(stage, _)| {
        *stage >= 32 || stored.iter().any(|(_, chunk)| chunk.filter_mask >> stage & 1 == 0)
    });
    needed.next().map(|(_, filter)| format!("filter '{}'", filter.name()))
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

/// The fill value of an item; empty for zeros.
fn fill_value(handle: &Handle, d: &Dataset) -> Result<Vec<u8>> {
    if d.info.relocated {
        return Ok(Vec::new());
    }
    let creation = dataset::creation_list(handle)?;
    let mut defined = H5D_fill_value_t::H5D_FILL_VALUE_ERROR;
    // SAFETY: called under the lock with an open creation list and a pointer to a local.
    let status = unsafe { H5Pfill_value_defined(creation.id(), &mut defined) };
    if status < 0 || defined != H5D_fill_value_t::H5D_FILL_VALUE_USER_DEFINED {
        return Ok(Vec::new());
    }
    let stored = dataset::stored_type(handle)?;
    let mut fill = vec![0_u8; d.info.size as usize];
    call("cannot read its fill value", || {
        // SAFETY: as above; the buffer holds one item of the stored type.
        unsafe { H5Pget_fill_value(creation.id(), stored.id(), fill.as_mut_ptr().cast()) }
    })?;
    Ok(fill)
}

/// The layout of one leaf of a dataset.
pub(crate) fn of_leaf(d: &Dataset, leaf: &Leaf, physical: &Physical, char_dim: bool) -> Result<Layout> {
    let element_size = leaf.element_size();
    let mut chunk_shape = if d.storage == Storage::Chunked { d.chunk_shape.clone() } else { d.shape.clone() };
    let item_strides = c_strides(&chunk_shape, d.info.size);
    let chunk_bytes = chunk_shape.iter().try_fold(d.info.size, |n, &c| n.checked_mul(c));
    let chunk_bytes =
        chunk_bytes.ok_or_else(|| Error::corrupt(format!("chunks {chunk_shape:?} are too large")))?;
    let mut extent = d.shape.clone();
    let mut strides = item_strides;
    for &(len, stride) in &leaf.inner {
        extent.push(len);
        chunk_shape.push(len);
        strides.push(stride);
    }
    let placement = placement_of(leaf, &physical.placement);
    let mut fill = fill_of(leaf, &physical.fill, element_size);
    let mut endian = match leaf.element.kind {
        Kind::Number { endian, .. } => endian,
        _ => Endian::NATIVE,
    };
    if matches!(placement, Placement::Library(_)) && endian != Endian::NATIVE {
        // What libhdf5 hands over is in native order, so the fill value has to be, too.
        endian = Endian::NATIVE;
        fill.reverse();
    }
    Ok(Layout {
        dtype: leaf.dtype().ok_or_else(|| Error::new(ErrorKind::Internal, "a leaf without a type"))?,
        endian,
        element_size,
        extent,
        chunk_shape,
        strides,
        base: leaf.base,
        chunk_bytes,
        pipeline: physical.pipeline.clone(),
        placement,
        fill,
        char_dim,
        space_padded: matches!(leaf.element.kind, Kind::Text { space_padded: true }),
    })
}

/// A leaf that needs converting goes through libhdf5 wherever its dataset lies, unless nothing was written.
fn placement_of(leaf: &Leaf, whole: &Placement) -> Placement {
    match (&leaf.element.kind, whole) {
        (_, Placement::Library(_)) => whole.clone(),
        (Kind::Converted { what, .. }, _) => Placement::Library(what.clone()),
        _ => whole.clone(),
    }
}

/// The element's part of an item's fill value.
fn fill_of(leaf: &Leaf, fill: &[u8], size: usize) -> Vec<u8> {
    let start = leaf.base as usize;
    let is_plain = matches!(leaf.element.kind, Kind::Number { .. } | Kind::Text { .. });
    match fill.get(start..start.saturating_add(size)) {
        Some(part) if is_plain => part.to_vec(),
        _ => vec![0; size],
    }
}
