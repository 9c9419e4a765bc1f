//! One dataset: its type, shape, attributes, and how it is stored.

use std::ffi::c_uint;

use hdf5_metno_sys::h5d::*;
use hdf5_metno_sys::h5p::*;
use hdf5_metno_sys::h5s::*;
use hdf5_metno_sys::h5t::H5Tget_size;
use sieva_format::schema::StorageInfo;
use sieva_types::{Error, Result, checked_len};

use crate::attrs::{self, Attributes};
use crate::bounds::Bounds;
use crate::ffi::{self, Handle, call};
use crate::fill;
use crate::links::{self, Policy};
use crate::types::TypeInfo;
use crate::walk::{Found, Tree};

/// Up to so many chunks a dataset's stored size is added up at opening; beyond, or over a network, it
/// would make opening slow.
const COUNTED_CHUNKS: u64 = 1024;
/// Most client data of a filter, far above what any has.
const CLIENT_DATA_LIMIT: usize = 1 << 16;

/// How the data are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    Contiguous,
    Compact,
    Chunked,
    External,
    Virtual,
}

/// A filter of the pipeline as the file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RawFilter {
    pub(crate) id: u32,
    pub(crate) client_data: Vec<u32>,
    pub(crate) name: String,
}

/// What opening a dataset tells.
#[derive(Debug)]
pub(crate) struct Dataset {
    pub(crate) found: Found,
    pub(crate) info: TypeInfo,
    pub(crate) shape: Vec<u64>,
    /// Whether each dimension may grow.
    pub(crate) unlimited: Vec<bool>,
    pub(crate) attributes: Attributes,
    pub(crate) storage: Storage,
    pub(crate) chunk_shape: Vec<u64>,
    pub(crate) filters: Vec<RawFilter>,
    pub(crate) stored_bytes: Option<u64>,
    pub(crate) offset: Option<u64>,
    /// Why its data may not be read.
    pub(crate) refused: Option<Error>,
}

impl Dataset {
    /// Looks at dataset `found`; `None` if it has no shape (a null dataspace).
    pub(crate) fn describe(
        tree: &Tree,
        found: &Found,
        policy: &Policy,
        bounds: &Bounds,
    ) -> Result<Option<Self>> {
        let _guard = ffi::lock();
        let file = &tree.files[found.file];
        let handle = file.object(found.token)?;
        let info = TypeInfo::read(&stored_type(&handle)?)?;
        fill::check(file, found.token, &info)?;
        let creation = creation_list(&handle)?;
        let storage = storage_of(&creation)?;
        let refused = match storage {
            Storage::External | Storage::Virtual => policy.check_dataset(file, &handle).err(),
            _ => None,
        };
        let Some((shape, unlimited)) = extent(&handle, &creation, storage, refused.is_some())? else {
            return Ok(None);
        };
        checked_len(&shape)?;
        let chunk_shape =
            if storage == Storage::Chunked { chunk_shape(&creation, shape.len())? } else { Vec::new() };
        let few = shape.iter().zip(&chunk_shape).try_fold(1_u64, |n, (&s, &c)| n.checked_mul(s.div_ceil(c)));
        // Adding up goes through the whole index of chunks.
        let is_far = storage == Storage::Chunked && file.is_remote();
        let counted = storage != Storage::Virtual && !is_far && few.is_some_and(|n| n <= COUNTED_CHUNKS);
        Ok(Some(Self {
            info,
            attributes: attrs::read(file, &handle, bounds)?,
            filters: raw_filters(&creation)?,
            // SAFETY: the lock is held, the dataset is open.
            stored_bytes: counted.then(|| unsafe { H5Dget_storage_size(handle.id()) }),
            offset: (storage == Storage::Contiguous).then(|| data_offset(&handle)).flatten(),
            found: found.clone(),
            shape,
            unlimited,
            storage,
            chunk_shape,
            refused,
        }))
    }

    /// The physical storage descriptor, but for the stored type.
    pub(crate) fn storage_info(&self) -> StorageInfo {
        StorageInfo {
            layout: match self.storage {
                Storage::Contiguous => "contiguous",
                Storage::Compact => "compact",
                Storage::Chunked => "chunked",
                Storage::External => "external",
                Storage::Virtual => "virtual",
            },
            chunk_shape: (self.storage == Storage::Chunked).then(|| self.chunk_shape.clone()),
            filters: self.filters.iter().map(RawFilter::label).collect(),
            stored_type: String::new(),
            stored_bytes: self.stored_bytes,
            offset: self.offset,
        }
    }
}

impl RawFilter {
    /// The filter for decoding.
    pub(crate) fn filter(&self) -> sieva_format::filters::Filter {
        sieva_format::filters::Filter::from_hdf5(self.id, &self.client_data, &self.name)
    }

    /// Its name, with the level where that is all there is to set.
    fn label(&self) -> String {
        let filter = self.filter();
        match (self.id, &self.client_data[..]) {
            (1 | 307 | 32015, [level, ..]) => format!("{}({level})", filter.name()),
            _ => filter.name().to_owned(),
        }
    }
}

const WHAT: &str = "cannot look at a dataset";

/// The creation properties of an open dataset.
pub(crate) fn creation_list(dataset: &Handle) -> Result<Handle> {
    // SAFETY: called under the lock with an open dataset.
    ffi::open(WHAT, || unsafe { H5Dget_create_plist(dataset.id()) })
}

/// The type of an open dataset's items.
pub(crate) fn stored_type(dataset: &Handle) -> Result<Handle> {
    // SAFETY: called under the lock with an open dataset.
    ffi::open(WHAT, || unsafe { H5Dget_type(dataset.id()) })
}

/// Where a contiguous dataset's bytes begin, if they were ever allocated.
pub(crate) fn data_offset(dataset: &Handle) -> Option<u64> {
    let mut status = H5D_space_status_t::H5D_SPACE_STATUS_ERROR;
    // SAFETY: called under the lock with an open dataset and a pointer to a local.
    let called = unsafe { H5Dget_space_status(dataset.id(), &mut status) };
    if called < 0 || status != H5D_space_status_t::H5D_SPACE_STATUS_ALLOCATED {
        return None;
    }
    // SAFETY: as above. The library adds the length of a user block.
    let offset = unsafe { H5Dget_offset(dataset.id()) };
    (offset != hdf5_metno_sys::h5::HADDR_UNDEF).then_some(offset)
}

/// Items of one chunk of a chunked dataset.
pub(crate) fn chunk_items(creation: &Handle) -> Result<u64> {
    let mut shape = [1; H5S_MAX_RANK as usize];
    call(WHAT, || {
        // SAFETY: called under the lock with an open creation list; the buffer is as long as said.
        unsafe { H5Pget_chunk(creation.id(), H5S_MAX_RANK as i32, shape.as_mut_ptr()) }
    })?;
    checked_len(&shape)
}

/// Bytes of one item of an open dataset.
pub(crate) fn item_size(dataset: &Handle) -> Result<u64> {
    let stored = stored_type(dataset)?;
    // SAFETY: called under the lock with an open type.
    Ok(unsafe { H5Tget_size(stored.id()) } as u64)
}

fn storage_of(creation: &Handle) -> Result<Storage> {
    // SAFETY: called under the lock with an open creation list.
    Ok(match unsafe { H5Pget_layout(creation.id()) } {
        H5D_layout_t::H5D_COMPACT => Storage::Compact,
        H5D_layout_t::H5D_CHUNKED => Storage::Chunked,
        H5D_layout_t::H5D_VIRTUAL => Storage::Virtual,
        H5D_layout_t::H5D_CONTIGUOUS if !links::external_names(creation)?.is_empty() => Storage::External,
        H5D_layout_t::H5D_CONTIGUOUS => Storage::Contiguous,
        _ => return Err(Error::corrupt("a layout of an unknown kind")),
    })
}

/// The most that each dimension of a dataset may grow to.
pub(crate) fn most_extent(dataset: &Handle) -> Result<Vec<u64>> {
    // SAFETY: called under the lock with an open dataset.
    let space = ffi::open(WHAT, || unsafe { H5Dget_space(dataset.id()) })?;
    // SAFETY: as above.
    let rank = call(WHAT, || unsafe { H5Sget_simple_extent_ndims(space.id()) })? as usize;
    let mut most = vec![0; rank];
    call(WHAT, || {
        // SAFETY: as above; the buffer holds one entry per dimension, the other may be null.
        unsafe { H5Sget_simple_extent_dims(space.id(), std::ptr::null_mut(), most.as_mut_ptr()) }
    })?;
    Ok(most)
}

/// Shape and growth of a dataset; `None` for a null dataspace.
///
/// The extent of virtual data can depend on their sources, which are opened for it; where these are refused
/// the extent noted in the mapping has to do.
fn extent(
    dataset: &Handle,
    creation: &Handle,
    storage: Storage,
    is_refused: bool,
) -> Result<Option<(Vec<u64>, Vec<bool>)>> {
    let space = if storage == Storage::Virtual && is_refused {
        // SAFETY: called under the lock with an open creation list.
        ffi::open(WHAT, || unsafe { H5Pget_virtual_vspace(creation.id(), 0) })?
    } else {
        // SAFETY: called under the lock with an open dataset.
        ffi::open(WHAT, || unsafe { H5Dget_space(dataset.id()) })?
    };
    // SAFETY: as above.
    if unsafe { H5Sget_simple_extent_type(space.id()) } == H5S_NULL {
        return Ok(None);
    }
    // SAFETY: as above.
    let rank = call(WHAT, || unsafe { H5Sget_simple_extent_ndims(space.id()) })? as usize;
    if rank > H5S_MAX_RANK as usize {
        return Err(Error::corrupt(format!("{rank} dimensions, more than HDF5 allows")));
    }
    let (mut shape, mut most) = (vec![0; rank], vec![0; rank]);
    call(WHAT, || {
        // SAFETY: as above; both buffers hold one entry per dimension.
        unsafe { H5Sget_simple_extent_dims(space.id(), shape.as_mut_ptr(), most.as_mut_ptr()) }
    })?;
    Ok(Some((shape, most.into_iter().map(|m| m == H5S_UNLIMITED).collect())))
}

fn chunk_shape(creation: &Handle, rank: usize) -> Result<Vec<u64>> {
    let mut shape = vec![0; H5S_MAX_RANK as usize];
    let n = call(WHAT, || {
        // SAFETY: called under the lock with an open creation list; the buffer is as long as said.
        unsafe { H5Pget_chunk(creation.id(), H5S_MAX_RANK as i32, shape.as_mut_ptr()) }
    })?;
    shape.truncate(rank);
    if n as usize != rank || shape.contains(&0) {
        return Err(Error::corrupt(format!("chunks {shape:?} for an array of {rank} dimensions")));
    }
    Ok(shape)
}

/// The filters of a dataset in the order of writing.
pub(crate) fn raw_filters(creation: &Handle) -> Result<Vec<RawFilter>> {
    // SAFETY: called under the lock with an open creation list.
    let n = call(WHAT, || unsafe { H5Pget_nfilters(creation.id()) })?;
    (0..n as c_uint).map(|i| raw_filter(creation, i)).collect()
}

fn raw_filter(creation: &Handle, i: c_uint) -> Result<RawFilter> {
    let mut client_data = vec![0_u32; 32];
    loop {
        let (mut flags, mut config, mut len) = (0, 0, client_data.len());
        let mut name = [0_u8; 256];
        let id = call(WHAT, || {
            // SAFETY: called under the lock with an open creation list that has filter `i`; the buffers are as
            // long as said.
            unsafe {
                H5Pget_filter2(
                    creation.id(),
                    i,
                    &mut flags,
                    &mut len,
                    client_data.as_mut_ptr(),
                    name.len() - 1,
                    name.as_mut_ptr().cast(),
                    &mut config,
                )
            }
        })?;
        if len > CLIENT_DATA_LIMIT {
            return Err(Error::corrupt(format!("a filter with {len} parameters")));
        }
        if len <= client_data.len() {
            client_data.truncate(len);
            let end = name.iter().position(|&b| b == 0).unwrap_or(0);
            let name = String::from_utf8_lossy(&name[..end]).into_owned();
            return Ok(RawFilter { id: id as u32, client_data, name });
        }
        client_data.resize(len, 0);
    }
}
