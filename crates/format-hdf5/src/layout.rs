//! Where the bytes of a dataset lie.

use std::ffi::{c_char, c_int};
use std::sync::Arc;

use hdf5_metno_sys::h5::H5free_memory;
use hdf5_metno_sys::h5d::*;
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5s::H5S_ALL;
use hdf5_metno_sys::h5z::H5Zfilter_avail;
use sieva_format::filters::{Filter, Pipeline};
use sieva_format::layout::{ChunkIndex, Layout, Placement, c_strides};
use sieva_types::{DType, Endian, Error, ErrorKind, Result};

use crate::chunks;
use crate::dataset::{self, Dataset, Storage};
use crate::descriptors::file_sizes;
use crate::ffi::{self, Handle, call};
use crate::leaves::{Leaf, leaves};
use crate::packed;
use crate::types::{Kind, TypeInfo};
use crate::walk::Tree;

/// Largest data of a compact dataset: they have to fit into an object header's message.
const COMPACT_LIMIT: u64 = 1 << 20;
/// Filters with lower numbers are HDF5's own.
const FIRST_OF_OTHERS: u32 = 256;
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
    /// The type of the items as they lie in the file, or as libhdf5 has it where only that can tell.
    form: TypeInfo,
    /// Why not even libhdf5 can read the data.
    pub(crate) unreadable: Option<Error>,
}

/// Finds the physical storage of a dataset.
pub(crate) fn physical(tree: &Tree, d: &Dataset) -> Result<Physical> {
    let _guard = ffi::lock();
    let mut out = Physical {
        placement: Placement::Unallocated,
        pipeline: Pipeline { filters: d.filters.iter().map(dataset::RawFilter::filter).collect() },
        fill: Vec::new(),
        form: d.info.clone(),
        unreadable: d.refused.clone(),
    };
    if out.unreadable.is_some() {
        out.placement = Placement::Library(format!("{} data that may not be read", d.storage_info().layout));
        return Ok(out);
    }
    if d.info.size > ITEM_LIMIT {
        return Err(Error::new(ErrorKind::Unsupported, format!("items of {} bytes", d.info.size)));
    }
    let file = &tree.files[d.found.file];
    let handle = file.object(d.found.token)?;
    out.fill = fill_value(&handle, d)?;
    let form = match d.info.relocated {
        true => {
            let (address, _) = file_sizes(&handle)?;
            // Wider addresses are left to libhdf5.
            (address <= 8).then(|| d.info.in_file(address as u64)).flatten()
        }
        false => Some(d.info.clone()),
    };
    if let Some(form) = &form {
        check_stored(&handle, d, form)?;
    }
    out.placement = match (library_reason(&handle, d, &out.fill)?, form) {
        (Some(reason), _) => Placement::Library(reason),
        (None, None) => Placement::Library("references in its items, or wide addresses".into()),
        (None, Some(form)) => {
            out.form = form;
            place(&handle, d, &out, file.bytes().len())?
        }
    };
    if let Placement::Library(_) = out.placement {
        packed::check_chunks(file, &handle)?;
        out.unreadable = missing_filter(d);
        if is_never_written(&handle, d) {
            (out.form, out.placement) = (d.info.clone(), Placement::Unallocated);
        }
    }
    Ok(out)
}

/// Why all arrays of a dataset have to be read by libhdf5, where they have.
fn library_reason(handle: &Handle, d: &Dataset, fill: &[u8]) -> Result<Option<String>> {
    let has_fill = || Ok(!fill.is_empty() || has_user_fill(&dataset::creation_list(handle)?));
    let reason = match d.storage {
        Storage::External => "raw data in other files",
        Storage::Virtual => "virtual",
        _ if !d.info.relocated => return Ok(None),
        // Its bytes are in the object header, of which libhdf5 gives items in memory only.
        Storage::Compact => "variable-length data or references in compact storage",
        // netCDF-4 gives texts an empty one.
        _ if d.info.kind == Kind::VlenText && fill.is_empty() => return Ok(None),
        _ if has_fill()? => "variable-length data or references with a fill value",
        _ => return Ok(None),
    };
    Ok(Some(reason.into()))
}

/// Whether nothing was ever written of items that libhdf5 would read, and their fill value is known. Its chunks have been
/// checked.
fn is_never_written(handle: &Handle, d: &Dataset) -> bool {
    let is_known = matches!(d.info.kind, Kind::VlenText | Kind::Odd(_));
    // SAFETY: the caller holds the lock, the dataset is open.
    let stored = || unsafe { H5Dget_storage_size(handle.id()) };
    is_known && matches!(d.storage, Storage::Contiguous | Storage::Chunked) && stored() == 0
}

fn has_user_fill(creation: &Handle) -> bool {
    let mut defined = H5D_fill_value_t::H5D_FILL_VALUE_ERROR;
    // SAFETY: called under the lock with an open creation list and a pointer to a local.
    let status = unsafe { H5Pfill_value_defined(creation.id(), &mut defined) };
    status >= 0 && defined == H5D_fill_value_t::H5D_FILL_VALUE_USER_DEFINED
}

/// Refuses contiguous items with heap data that are said to be more than is stored: others would be taken for the last.
fn check_stored(handle: &Handle, d: &Dataset, form: &TypeInfo) -> Result<()> {
    if d.storage != Storage::Contiguous || !form.relocated {
        return Ok(());
    }
    // SAFETY: called under the lock with an open dataset.
    let stored = unsafe { H5Dget_storage_size(handle.id()) };
    let needed = d.shape.iter().try_fold(form.size, |n, &length| n.checked_mul(length));
    // Nothing is stored before something is written.
    if stored > 0 && needed.is_none_or(|needed| needed > stored) {
        let items = d.shape.iter().product::<u64>();
        let size = form.size;
        return Err(Error::corrupt(format!("{items} items of {size} bytes in {stored} bytes of storage")));
    }
    Ok(())
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

fn place(handle: &Handle, d: &Dataset, physical: &Physical, file_len: u64) -> Result<Placement> {
    match d.storage {
        Storage::Contiguous => contiguous(handle, byte_len(d, &physical.form)?, file_len),
        Storage::Compact => compact(handle, byte_len(d, &physical.form)?),
        Storage::Chunked => {
            let index = chunks::index(handle, d, file_len)?;
            Ok(match undecodable(&physical.pipeline, &index)? {
                Some(reason) => Placement::Library(reason),
                None => Placement::Chunks(index),
            })
        }
        Storage::External | Storage::Virtual => Ok(Placement::Unallocated),
    }
}

fn byte_len(d: &Dataset, form: &TypeInfo) -> Result<u64> {
    d.shape
        .iter()
        .try_fold(form.size, |n, &s| n.checked_mul(s))
        .ok_or_else(|| Error::corrupt(format!("shape {:?} takes more than 2^64 bytes", d.shape)))
}

fn contiguous(handle: &Handle, len: u64, file_len: u64) -> Result<Placement> {
    let Some(offset) = dataset::data_offset(handle) else { return Ok(Placement::Unallocated) };
    if offset.checked_add(len).is_none_or(|end| end > file_len) {
        return Err(Error::corrupt(format!(
            "its {len} bytes at offset {offset} reach past the end of the file ({file_len} bytes)"
        )));
    }
    Ok(Placement::Direct { offset })
}

fn compact(handle: &Handle, len: u64) -> Result<Placement> {
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

/// The filter that keeps us from decoding, unless every stored chunk says that it was skipped.
///
/// # Errors
/// `corrupt-file` for one of HDF5's own, with client data that mean nothing: libhdf5 would believe them.
fn undecodable(pipeline: &Pipeline, index: &ChunkIndex) -> Result<Option<String>> {
    let unsupported = pipeline.filters.iter().enumerate().filter(|(_, f)| !f.is_supported());
    let mut needed = unsupported
        .filter(|(stage, _)| *stage >= 32 || index.chunks().any(|chunk| chunk.filter_mask >> stage & 1 == 0));
    match needed.next() {
        Some((_, Filter::Other { id, name })) if *id < FIRST_OF_OTHERS => {
            Err(Error::corrupt(format!("client data of its filter {id} ('{name}') that mean nothing")))
        }
        needed => Ok(needed.map(|(_, filter)| format!("filter '{}'", filter.name()))),
    }
}

/// The fill value of an item, or the text that it is; empty for zeros, and of other items with heap data.
fn fill_value(handle: &Handle, d: &Dataset) -> Result<Vec<u8>> {
    let creation = dataset::creation_list(handle)?;
    let is_text = d.info.kind == Kind::VlenText;
    if d.info.relocated && !is_text || !has_user_fill(&creation) {
        return Ok(Vec::new());
    }
    let stored = dataset::stored_type(handle)?;
    if is_text {
        return fill_text(&creation, &stored);
    }
    let mut fill = vec![0_u8; d.info.size as usize];
    call("cannot read its fill value", || {
        // SAFETY: as above; the buffer holds one item of the stored type.
        unsafe { H5Pget_fill_value(creation.id(), stored.id(), fill.as_mut_ptr().cast()) }
    })?;
    Ok(fill)
}

/// The fill value of a dataset of texts of variable length.
fn fill_text(creation: &Handle, stored: &Handle) -> Result<Vec<u8>> {
    let mut text: *mut c_char = std::ptr::null_mut();
    call("cannot read its fill value", || {
        // SAFETY: called under the lock with open handles; an item of the type is a pointer.
        unsafe { H5Pget_fill_value(creation.id(), stored.id(), (&raw mut text).cast()) }
    })?;
    // SAFETY: libhdf5 left null or a C string, which is ours to free with the library's own free.
    unsafe {
        let fill = ffi::bytes_of(text);
        H5free_memory(text.cast());
        Ok(fill)
    }
}

/// The layout of one leaf's items as they are stored: those of numbers that no machine computes with, and of texts of
/// variable length, as bytes that nobody looks into.
pub(crate) fn of_items(d: &Dataset, leaf: &Leaf, physical: &Physical, char_dim: bool) -> Result<Layout> {
    let form = &physical.form;
    let wrong = || Error::new(ErrorKind::Internal, format!("no member '{}' in the file's type", leaf.suffix));
    let stored = leaves(form).0.into_iter().find(|l| l.steps == leaf.steps).ok_or_else(wrong)?;
    let mut chunk_shape = if d.storage == Storage::Chunked { d.chunk_shape.clone() } else { d.shape.clone() };
    let mut strides = c_strides(&chunk_shape, form.size);
    let chunk_bytes = chunk_shape.iter().try_fold(form.size, |n, &c| n.checked_mul(c));
    let chunk_bytes =
        chunk_bytes.ok_or_else(|| Error::corrupt(format!("chunks {chunk_shape:?} are too large")))?;
    let mut extent = d.shape.clone();
    for &(len, stride) in &stored.inner {
        extent.push(len);
        chunk_shape.push(len);
        strides.push(stride);
    }
    let element_size = stored.element.size as usize;
    let (dtype, endian) = match stored.element.kind {
        Kind::Number { dtype, endian } => (dtype, endian),
        _ => (DType::Str, Endian::NATIVE),
    };
    Ok(Layout {
        dtype,
        endian,
        element_size,
        extent,
        chunk_shape,
        strides,
        base: stored.base,
        chunk_bytes,
        pipeline: physical.pipeline.clone(),
        placement: physical.placement.clone(),
        fill: fill_of(&stored, &physical.fill, element_size),
        char_dim,
        space_padded: matches!(stored.element.kind, Kind::Text { space_padded: true }),
    })
}

/// The layout of one leaf of a dataset: that of its items, or what is made of them.
pub(crate) fn of_leaf(d: &Dataset, leaf: &Leaf, physical: &Physical, char_dim: bool) -> Result<Layout> {
    let items = of_items(d, leaf, physical, char_dim)?;
    let reason = match (&items.placement, &leaf.element.kind) {
        (Placement::Library(reason), _) => reason.clone(),
        (_, Kind::Odd(number)) => number.name(),
        (_, Kind::VlenText) => "texts of variable length".into(),
        _ if d.found.file != 0 => "in another file, behind an external link".into(),
        _ => return Ok(items),
    };
    let element_size = leaf.element_size();
    let mut fill = vec![0; element_size];
    match &leaf.element.kind {
        Kind::Odd(number) => number.convert(&items.fill, &mut fill)?,
        Kind::VlenText => fill.clone_from(&physical.fill),
        _ => fill.copy_from_slice(&items.fill),
    }
    if items.endian != Endian::NATIVE {
        // What is handed over is in native order, so the fill value has to be, too.
        fill.reverse();
    }
    Ok(Layout {
        dtype: leaf.dtype().ok_or_else(|| Error::new(ErrorKind::Internal, "a leaf without a type"))?,
        endian: Endian::NATIVE,
        element_size,
        // What was never written needs no library.
        placement: match items.placement {
            Placement::Unallocated => Placement::Unallocated,
            Placement::Chunks(index) if index.stored() == 0 => Placement::Unallocated,
            _ => Placement::Library(reason),
        },
        fill,
        ..items
    })
}

/// The element's part of an item's fill value.
fn fill_of(leaf: &Leaf, fill: &[u8], size: usize) -> Vec<u8> {
    let start = leaf.base as usize;
    fill.get(start..start.saturating_add(size)).map_or_else(|| vec![0; size], <[u8]>::to_vec)
}
