//! Attributes as plain values.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};

use hdf5_metno_sys::h5::{H5_INDEX_NAME, H5_ITER_NATIVE, herr_t, hsize_t};
use hdf5_metno_sys::h5a::{H5A_info_t, H5Aget_space, H5Aget_type, H5Aiterate2, H5Aopen, H5Aread};
use hdf5_metno_sys::h5i::hid_t;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use hdf5_metno_sys::h5r::{H5R_ref_t, H5Rdestroy, H5Ropen_object};
use hdf5_metno_sys::h5s::*;
use hdf5_metno_sys::h5t::*;
use sieva_format::schema::{Attr, AttrValue};
use sieva_types::{Buffer, DType, Endian, Error, Result};

use crate::bounds::{Bounds, size_of_attr};
use crate::checks;
use crate::descriptors::Descriptors;
use crate::ffi::{self, Handle, Token, call};
use crate::file::File;
use crate::memory::{self, decode_text, fixed_text};
use crate::numbers::OddNumber;
use crate::types::{Kind, TypeInfo, integer_of};

/// Largest attribute that is read.
const SIZE_LIMIT: u64 = 16 << 20;
/// Most variable-length items of one attribute that are read.
const ITEM_LIMIT: u64 = 1 << 16;
/// Most attributes of one object that are listed.
const COUNT_LIMIT: usize = 1 << 16;

/// What the file keeps in attributes for itself; users see it as dimensions and not as attributes.
const BOOKKEEPING: [&str; 10] = [
    "CLASS",
    "NAME",
    "REFERENCE_LIST",
    "DIMENSION_LIST",
    "DIMENSION_LABELS",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_NCProperties",
    "_nc3_strict",
    "_nc_provenance",
];

/// The attributes of an object: those for users, and the file's own by name.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) shown: Vec<Attr>,
    pub(crate) own: HashMap<String, AttrValue>,
    /// For each dimension, the scale that is attached first (`DIMENSION_LIST`).
    pub(crate) scales: Vec<Option<Token>>,
}

impl Attributes {
    /// Whether the object is a dimension scale.
    pub(crate) fn is_scale(&self) -> bool {
        self.text("CLASS") == Some("DIMENSION_SCALE")
    }

    /// The text of one of the file's own attributes.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.own.get(name).and_then(AttrValue::as_text)
    }

    /// The integers of one of the file's own attributes.
    pub(crate) fn ints(&self, name: &str) -> Option<&[i128]> {
        match self.own.get(name)? {
            AttrValue::Ints(_, v) => Some(v),
            _ => None,
        }
    }
}

/// Reads the attributes of an object in the order of the file. One that cannot be read is shown in words.
///
/// # Errors
/// Where they cannot be listed; those of [`Bounds::check`].
pub(crate) fn read(file: &File, object: &Handle, bounds: &Bounds) -> Result<Attributes> {
    let _guard = ffi::lock();
    let mut out = Attributes::default();
    for raw in names(object)? {
        bounds.check()?;
        let name = String::from_utf8_lossy(raw.to_bytes()).into_owned();
        if name == "REFERENCE_LIST" {
            continue;
        }
        // SAFETY: the lock is held, the object is open, the name a C string.
        let attr = ffi::open("cannot open it", || unsafe { H5Aopen(object.id(), raw.as_ptr(), H5P_DEFAULT) });
        if name == "DIMENSION_LIST" {
            out.scales = attr.and_then(|attr| scales(file, &attr)).unwrap_or_default();
            continue;
        }
        let value = attr.and_then(|attr| value(&attr)).unwrap_or_else(|e| AttrValue::Other(e.to_string()));
        bounds.take(size_of_attr(&name, &value));
        if BOOKKEEPING.contains(&name.as_str()) {
            out.own.insert(name, value);
        } else {
            out.shown.push((name, value));
        }
    }
    // Outside of dimension scales these names mean nothing special.
    if !out.is_scale() {
        for name in ["CLASS", "NAME"] {
            out.shown.extend(out.own.remove(name).map(|value| (name.to_owned(), value)));
        }
    }
    Ok(out)
}

fn names(object: &Handle) -> Result<Vec<CString>> {
    let mut names: Vec<CString> = Vec::new();
    let mut position: hsize_t = 0;
    call("cannot list attributes", || {
        // SAFETY: the lock is held, the object open; the callback only writes to `names`.
        unsafe {
            H5Aiterate2(
                object.id(),
                H5_INDEX_NAME,
                H5_ITER_NATIVE,
                &mut position,
                Some(keep_name),
                (&raw mut names).cast::<c_void>(),
            )
        }
    })?;
    Ok(names)
}

unsafe extern "C" fn keep_name(
    _object: hid_t,
    name: *const c_char,
    _info: *const H5A_info_t,
    data: *mut c_void,
) -> herr_t {
    // SAFETY: libhdf5 passes a valid name for the length of the call, and `data` is the caller's Vec.
    let (names, name) = unsafe { (&mut *data.cast::<Vec<CString>>(), CStr::from_ptr(name)) };
    names.push(name.to_owned());
    herr_t::from(names.len() >= COUNT_LIMIT)
}

/// The number of items in a dataspace, and whether it is null (holds nothing, not even a shape).
fn extent(attr: &Handle) -> Result<(u64, bool)> {
    // SAFETY: the lock is held, the attribute is open.
    let space = ffi::open("cannot read it", || unsafe { H5Aget_space(attr.id()) })?;
    // SAFETY: as above.
    let n = call("cannot read it", || unsafe { H5Sget_simple_extent_npoints(space.id()) })?;
    // SAFETY: as above.
    Ok((n as u64, unsafe { H5Sget_simple_extent_type(space.id()) } == H5S_NULL))
}

fn value(attr: &Handle) -> Result<AttrValue> {
    // SAFETY: the lock is held, the attribute is open.
    let handle = ffi::open("cannot read it", || unsafe { H5Aget_type(attr.id()) })?;
    let info = TypeInfo::read(&handle)?;
    let (n, is_null) = extent(attr)?;
    let (mut count, mut item, mut steps) = (n, &info, Vec::new());
    while let Kind::Array(dims, inner) = &item.kind {
        count = count.saturating_mul(dims.iter().product());
        steps.push(crate::leaves::Step::Items(dims.clone()));
        item = inner;
    }
    let limit = if item.relocated { ITEM_LIMIT } else { SIZE_LIMIT / item.size.max(8) };
    if count > limit {
        return Ok(AttrValue::Other(format!("{count} items, too many to list")));
    }
    if is_null {
        return Ok(empty(&item.kind));
    }
    let count = count as usize;
    match item.kind.clone() {
        Kind::Number { dtype, .. } => numbers(attr, &handle, &steps, dtype, count),
        Kind::Odd(number) => odd_numbers(attr, &memory::of(&handle, &steps, item)?.handle, &number, count),
        Kind::Text { space_padded } => {
            let memory = memory::of(&handle, &steps, item)?;
            let mut bytes = vec![0_u8; count * item.size as usize];
            read_into(attr, &memory.handle, bytes.as_mut_ptr().cast())?;
            Ok(texts(
                bytes.chunks_exact(item.size.max(1) as usize).map(|b| fixed_text(b, space_padded)).collect(),
            ))
        }
        Kind::VlenText => {
            check_items(attr, &handle, &steps, count, 1)?;
            let memory = memory::of(&handle, &steps, item)?;
            vlen_texts(attr, &memory.handle, count)
        }
        Kind::Compound(_) => Ok(AttrValue::Other("compound".into())),
        Kind::Complex(_) => Ok(AttrValue::Other("complex number".into())),
        Kind::Reference => Ok(AttrValue::Other("object reference".into())),
        Kind::Sequence(_) => Ok(AttrValue::Other("variable-length sequences".into())),
        Kind::Other(what) => Ok(AttrValue::Other(what)),
        Kind::Array(..) => Ok(AttrValue::Other("blocks".into())),
    }
}

/// What an attribute without any item is: netCDF writes empty texts so.
fn empty(kind: &Kind) -> AttrValue {
    match kind {
        Kind::Number { dtype, .. } => no_numbers(*dtype),
        Kind::Odd(number) => no_numbers(number.dtype()),
        Kind::Text { .. } | Kind::VlenText => AttrValue::Text(String::new()),
        _ => AttrValue::Other("nothing".into()),
    }
}

fn no_numbers(dtype: DType) -> AttrValue {
    if dtype.is_float() { AttrValue::Floats(dtype, Vec::new()) } else { AttrValue::Ints(dtype, Vec::new()) }
}

fn texts(mut texts: Vec<String>) -> AttrValue {
    if texts.len() == 1 { AttrValue::Text(texts.remove(0)) } else { AttrValue::Texts(texts) }
}

fn read_into(attr: &Handle, memory: &Handle, out: *mut c_void) -> Result<()> {
    // SAFETY: the lock is held, the handles are open; the callers' buffers hold all items of type `memory`.
    call("cannot read it", || unsafe { H5Aread(attr.id(), memory.id(), out) }).map(|_| ())
}

fn numbers(
    attr: &Handle,
    handle: &Handle,
    steps: &[crate::leaves::Step],
    dtype: DType,
    count: usize,
) -> Result<AttrValue> {
    let wide = if dtype.is_float() {
        DType::F64
    } else if dtype.as_unsigned() == dtype && dtype != DType::Bool {
        DType::U64
    } else {
        DType::I64
    };
    // Bit-fields convert to nothing but bit-fields, so width is all that changes for them.
    let memory = memory::widened(handle, steps, wide)?;
    let mut words = vec![0_u64; count];
    read_into(attr, &memory.handle, words.as_mut_ptr().cast())?;
    Ok(match wide {
        DType::F64 => AttrValue::Floats(dtype, words.into_iter().map(f64::from_bits).collect()),
        DType::U64 => AttrValue::Ints(dtype, words.into_iter().map(i128::from).collect()),
        _ => AttrValue::Ints(dtype, words.into_iter().map(|w| i128::from(w as i64)).collect()),
    })
}

/// Numbers that no machine computes with; `stored` is their own type.
fn odd_numbers(attr: &Handle, stored: &Handle, number: &OddNumber, count: usize) -> Result<AttrValue> {
    let dtype = number.dtype();
    let mut items = vec![0_u8; count * number.size];
    read_into(attr, stored, items.as_mut_ptr().cast())?;
    let mut converted = Buffer::default();
    converted.resize(count * dtype.size());
    number.convert(&items, converted.bytes_mut())?;
    if dtype.is_float() {
        return Ok(AttrValue::Floats(dtype, converted.as_slice::<f64>().to_vec()));
    }
    let integers = converted.bytes().chunks_exact(dtype.size());
    Ok(AttrValue::Ints(dtype, integers.map(|bytes| integer_of(bytes, dtype, Endian::NATIVE)).collect()))
}

/// Refuses an attribute whose `count` items of variable length say more than there can be.
fn check_items(
    attr: &Handle,
    stored: &Handle,
    steps: &[crate::leaves::Step],
    count: usize,
    element: u64,
) -> Result<()> {
    let items = Descriptors::of(attr, stored, steps, element)?;
    let mut bytes = vec![0_u8; count * items.memory.element];
    read_into(attr, &items.memory.handle, bytes.as_mut_ptr().cast())?;
    items.check(&bytes)
}

fn vlen_texts(attr: &Handle, memory: &Handle, count: usize) -> Result<AttrValue> {
    let mut pointers: Vec<*mut c_char> = vec![std::ptr::null_mut(); count];
    read_into(attr, memory, pointers.as_mut_ptr().cast())?;
    let mut out = Vec::with_capacity(count);
    let mut total = 0;
    for &p in &pointers {
        // SAFETY: libhdf5 filled each with null or a C string.
        let bytes = unsafe { ffi::bytes_of(p) };
        total += bytes.len() as u64;
        if total <= SIZE_LIMIT {
            out.push(decode_text(&bytes));
        }
        // SAFETY: the string is ours; it was allocated by the library, whose own free takes it.
        unsafe { hdf5_metno_sys::h5::H5free_memory(p.cast()) };
    }
    if total > SIZE_LIMIT {
        return Ok(AttrValue::Other(format!("{count} texts of {total} bytes, too long to list")));
    }
    Ok(texts(out))
}

/// For each dimension, the first scale of `DIMENSION_LIST`.
fn scales(file: &File, attr: &Handle) -> Result<Vec<Option<Token>>> {
    // SAFETY: the lock is held, the attribute is open.
    let handle = ffi::open("cannot read it", || unsafe { H5Aget_type(attr.id()) })?;
    // SAFETY: as above.
    if unsafe { H5Tget_class(handle.id()) } != H5T_VLEN {
        return Err(Error::corrupt("it does not hold lists"));
    }
    // SAFETY: as above.
    let item = ffi::open("cannot read it", || unsafe { H5Tget_super(handle.id()) })?;
    let (n, _) = extent(attr)?;
    if n > u64::from(H5S_MAX_RANK) {
        return Err(Error::corrupt("it has more entries than an array may have dimensions"));
    }
    // SAFETY: the lock is held, the handles are open.
    let is_old = unsafe { H5Tequal(item.id(), *H5T_STD_REF_OBJ) } > 0;
    // SAFETY: as above.
    let is_new = unsafe { H5Tequal(item.id(), *H5T_STD_REF) } > 0;
    if !is_old && !is_new {
        // Of anything else one item may be of any size.
        return Ok(vec![None; n as usize]);
    }
    if is_old {
        return old_scales(file, attr, &handle, n as usize);
    }
    check_items(attr, &handle, &[], n as usize, size_of::<H5R_ref_t>() as u64)?;
    let mut lists: Vec<hvl_t> = (0..n).map(|_| hvl_t { len: 0, p: std::ptr::null_mut() }).collect();
    read_into(attr, &handle, lists.as_mut_ptr().cast())?;
    let mut out = Vec::with_capacity(lists.len());
    for list in &lists {
        let first = if list.len == 0 || list.p.is_null() {
            None
        } else {
            // SAFETY: the list holds at least one reference of the new kind.
            unsafe { dereference(list.p.cast(), list.len) }
        };
        out.push(first);
        // SAFETY: the list is ours and was allocated by the library.
        unsafe { hdf5_metno_sys::h5::H5free_memory(list.p) };
    }
    Ok(out)
}

/// The same for references that are addresses, out of the heap. libhdf5 would take as much memory for one as the file says
/// that it has bytes, and does not tell how many that are.
fn old_scales(file: &File, attr: &Handle, stored: &Handle, n: usize) -> Result<Vec<Option<Token>>> {
    let items = Descriptors::of(attr, stored, &[], size_of::<u64>() as u64)?;
    let mut bytes = vec![0_u8; n * items.memory.element];
    read_into(attr, &items.memory.handle, bytes.as_mut_ptr().cast())?;
    items.check(&bytes)?;
    bytes.chunks_exact(items.memory.element).map(|item| checks::first_address(file.bytes(), item)).collect()
}

/// The object of the first of `len` references, all of which are released.
///
/// # Safety
/// `refs` must point to `len` references that libhdf5 wrote.
unsafe fn dereference(refs: *mut H5R_ref_t, len: usize) -> Option<Token> {
    // A reference may name another file, which libhdf5 would open for writing: our driver refuses to.
    let object = crate::file::access_list().and_then(|access| {
        // SAFETY: by contract; the lock is held by the caller.
        ffi::open("cannot follow a reference", || unsafe { H5Ropen_object(refs, access.id(), H5P_DEFAULT) })
    });
    for i in 0..len {
        // SAFETY: by contract.
        unsafe { H5Rdestroy(refs.add(i)) };
    }
    object.and_then(|object| File::identify(&object)).ok().map(|(_, token)| token)
}
