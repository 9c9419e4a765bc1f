//! Types in memory: what libhdf5 is asked to hand over for one leaf of a dataset's type.

use std::ffi::c_uint;

use hdf5_metno_sys::h5t::*;
use sieva_types::{DType, Endian, Result};

use crate::ffi::{self, Handle, call};
use crate::leaves::Step;
use crate::types::{Kind, TypeInfo};

/// A type in memory that holds one leaf of an item.
#[derive(Debug)]
pub(crate) struct MemoryType {
    /// libhdf5's type.
    pub(crate) handle: Handle,
    /// Bytes of it.
    pub(crate) size: usize,
    /// Where the leaf's first element is in it.
    pub(crate) offset: usize,
    /// Bytes of one element.
    pub(crate) element: usize,
    /// Byte strides of the dimensions within an item.
    pub(crate) strides: Vec<usize>,
}

const WHAT: &str = "cannot make a type in memory";

/// The memory type for the leaf that `steps` lead to from the stored type `stored`: its element in native byte order,
/// or as it is stored where no machine knows it.
pub(crate) fn of(stored: &Handle, steps: &[Step], element: &TypeInfo) -> Result<MemoryType> {
    build(stored, steps, &|leaf| native(leaf, &element.kind))
}

/// The same with numbers widened to `dtype` of 8 bytes (bit-fields stay such).
pub(crate) fn widened(stored: &Handle, steps: &[Step], dtype: DType) -> Result<MemoryType> {
    build(stored, steps, &|leaf| copy(wide_type(leaf, dtype)))
}

/// The same with `size` plain bytes as the leaf, whatever its type.
pub(crate) fn plain_bytes(stored: &Handle, steps: &[Step], size: usize) -> Result<MemoryType> {
    // SAFETY: called under the lock.
    build(stored, steps, &|_| ffi::open(WHAT, || unsafe { H5Tcreate(H5T_OPAQUE, size) }))
}

fn build(stored: &Handle, steps: &[Step], leaf: &dyn Fn(&Handle) -> Result<Handle>) -> Result<MemoryType> {
    let _guard = ffi::lock();
    let Some((step, rest)) = steps.split_first() else {
        let handle = leaf(stored)?;
        let size = size_of(&handle);
        return Ok(MemoryType { handle, size, offset: 0, element: size, strides: Vec::new() });
    };
    match step {
        Step::Member(name) => {
            // SAFETY: the lock is held, `stored` is an open compound, `name` a C string.
            let index = call(WHAT, || unsafe { H5Tget_member_index(stored.id(), name.as_ptr()) })?;
            // SAFETY: as above; the member exists.
            let member = ffi::open(WHAT, || unsafe { H5Tget_member_type(stored.id(), index as c_uint) })?;
            let inner = build(&member, rest, leaf)?;
            // SAFETY: as above.
            let handle = ffi::open(WHAT, || unsafe { H5Tcreate(H5T_COMPOUND, inner.size) })?;
            // SAFETY: as above.
            call(WHAT, || unsafe { H5Tinsert(handle.id(), name.as_ptr(), 0, inner.handle.id()) })?;
            Ok(MemoryType { handle, ..inner })
        }
        Step::Items(dims) => {
            let inner = build(&super_type(stored)?, rest, leaf)?;
            // SAFETY: the lock is held, the inner type is open, `dims` has as many entries as said.
            let handle = ffi::open(WHAT, || unsafe {
                H5Tarray_create2(inner.handle.id(), dims.len() as c_uint, dims.as_ptr())
            })?;
            let outer = sieva_format::layout::c_strides(dims, inner.size as u64);
            let mut strides: Vec<usize> = outer.iter().map(|&s| s as usize).collect();
            strides.extend(&inner.strides);
            Ok(MemoryType { size: size_of(&handle), handle, strides, ..inner })
        }
        Step::Part(part) => {
            let inner = build(&super_type(stored)?, rest, leaf)?;
            // SAFETY: the lock is held, the inner type is an open floating-point type.
            let handle = ffi::open(WHAT, || unsafe { H5Tcomplex_create(inner.handle.id()) })?;
            Ok(MemoryType {
                size: size_of(&handle),
                handle,
                offset: inner.offset + part * inner.size,
                ..inner
            })
        }
    }
}

fn super_type(t: &Handle) -> Result<Handle> {
    // SAFETY: called under the lock with an open derived type.
    ffi::open(WHAT, || unsafe { H5Tget_super(t.id()) })
}

fn size_of(t: &Handle) -> usize {
    // SAFETY: called under the lock with an open type.
    unsafe { H5Tget_size(t.id()) }
}

fn copy(id: i64) -> Result<Handle> {
    // SAFETY: called under the lock with an open or predefined type.
    ffi::open(WHAT, || unsafe { H5Tcopy(id) })
}

fn is_bitfield(t: &Handle) -> bool {
    // SAFETY: called under the lock with an open type.
    unsafe { H5Tget_class(t.id()) == H5T_BITFIELD }
}

fn wide_type(leaf: &Handle, dtype: DType) -> i64 {
    match dtype {
        _ if is_bitfield(leaf) => *H5T_NATIVE_B64,
        DType::F64 => *H5T_NATIVE_DOUBLE,
        DType::U64 => *H5T_NATIVE_UINT64,
        _ => *H5T_NATIVE_INT64,
    }
}

/// The element's type as this machine has it.
fn native(leaf: &Handle, kind: &Kind) -> Result<Handle> {
    match kind {
        Kind::Number { .. } => {
            // An enumeration is read as its integers, and one with members refuses a new byte order.
            // SAFETY: called under the lock with an open type.
            let handle = if unsafe { H5Tget_class(leaf.id()) } == H5T_ENUM {
                super_type(leaf)?
            } else {
                copy(leaf.id())?
            };
            let order = if Endian::NATIVE == Endian::Big { H5T_ORDER_BE } else { H5T_ORDER_LE };
            // SAFETY: as above; the copy is ours to change.
            call(WHAT, || unsafe { H5Tset_order(handle.id(), order) })?;
            Ok(handle)
        }
        _ => copy(leaf.id()),
    }
}

/// The text in a fixed-size field: up to its padding.
pub(crate) fn fixed_text(bytes: &[u8], space_padded: bool) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let text = decode_text(&bytes[..end]);
    if space_padded { text.trim_end_matches(' ').to_owned() } else { text }
}

/// Text of unknown encoding: UTF-8 if it is that, else Latin-1.
pub(crate) fn decode_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.iter().map(|&b| char::from(b)).collect(),
    }
}
