//! What a source says of its arrays and dimensions, in C's form.

use std::ffi::{CString, c_char};

use sieva::{DType, Schema};

use crate::attributes::{Attribute, of_attrs};
use crate::given::Out;
use crate::source::{SourceHandle, opened};
use crate::status::{guarded, invalid, text};
use crate::types::number_of;

/// Names, shapes and attributes, kept as long as the source is open.
pub struct Described {
    format: CString,
    arrays: Vec<ArrayText>,
    dims: Vec<(CString, u64, bool)>,
    /// Attributes of groups, by path, the root first.
    pub groups: Vec<(String, Vec<Attribute>)>,
}

struct ArrayText {
    path: CString,
    value_type: i32,
    stored_type: i32,
    shape: Vec<u64>,
    /// Names of the dimensions, as pointers into [`Described::dims`].
    dims: Vec<Text>,
    attributes: Vec<Attribute>,
}

/// A pointer to a text of the same source.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Text(*const c_char);

// SAFETY: the text is never changed, and lives as long as what points to it.
unsafe impl Send for Text {}
// SAFETY: as above.
unsafe impl Sync for Text {}

impl Described {
    /// The schema in C's form.
    pub fn of(schema: &Schema) -> Self {
        let dims: Vec<_> = schema.dims.iter().map(|d| (text(&d.path), d.len, d.unlimited)).collect();
        let arrays = schema.arrays.iter().map(|a| ArrayText {
            path: text(&a.path),
            value_type: number_of(value_type(a.decoding.packing.is_some(), a.decoding.decoded())),
            stored_type: number_of(a.dtype),
            shape: a.shape.clone(),
            // A CString's text stays where it is when the CString itself is moved.
            dims: a.dims.iter().map(|&d| Text(dims[d].0.as_ptr())).collect(),
            attributes: of_attrs(&a.attrs),
        });
        let groups = schema.groups.iter().map(|g| (g.path.clone(), of_attrs(&g.attrs)));
        Self { format: text(&schema.format), arrays: arrays.collect(), groups: groups.collect(), dims }
    }

    /// The attributes of array `i`.
    pub fn attributes_of(&self, i: usize) -> &[Attribute] {
        &self.arrays[i].attributes
    }
}

/// The type that values are given back in.
fn value_type(packed: bool, decoded: DType) -> DType {
    match decoded {
        _ if packed => DType::F64,
        DType::F16 => DType::F32,
        other => other,
    }
}

/// `sieva_array`
#[repr(C)]
pub struct Array {
    /// Its path.
    pub path: *const c_char,
    /// What its values are read as.
    pub value_type: i32,
    /// What is stored.
    pub stored_type: i32,
    /// Number of dimensions.
    pub rank: u32,
    /// Number of attributes.
    pub attributes: u32,
    /// Lengths.
    pub shape: *const u64,
    /// Paths of dimensions.
    pub dims: *const *const c_char,
}

/// `sieva_dimension`
#[repr(C)]
pub struct Dim {
    /// Its path.
    pub path: *const c_char,
    /// Its length.
    pub length: u64,
    /// Whether it may grow.
    pub unlimited: i32,
    /// 0.
    pub reserved: i32,
}

/// `sieva_source_count`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_source_count(
    source: *const SourceHandle,
    arrays: *mut u64,
    dimensions: *mut u64,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let described = unsafe { opened(source)?.described() };
        let (arrays, dims) = (Out::new(arrays, "arrays")?, Out::new(dimensions, "dimensions")?);
        // SAFETY: as above.
        unsafe {
            arrays.set(described.arrays.len() as u64);
            dims.set(described.dims.len() as u64);
        }
        Ok(())
    })
}

/// `sieva_source_format`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_source_format(source: *const SourceHandle, format: *mut *const c_char) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let described = unsafe { opened(source)?.described() };
        // SAFETY: as above.
        unsafe { Out::new(format, "format")?.set(described.format.as_ptr()) };
        Ok(())
    })
}

/// `sieva_array_find`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_array_find(
    source: *const SourceHandle,
    name: *const c_char,
    index: *mut u64,
) -> i32 {
    guarded(|| {
        let out = Out::new(index, "index")?;
        // SAFETY: the promises of sieva.h.
        let found = unsafe { opened(source)?.array(name) }?;
        // SAFETY: as above.
        unsafe { out.set(found as u64) };
        Ok(())
    })
}

/// `sieva_array_describe`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_array_describe(
    source: *const SourceHandle,
    index: u64,
    array: *mut Array,
) -> i32 {
    guarded(|| {
        let out = Out::new(array, "array")?;
        // SAFETY: the promises of sieva.h.
        let described = unsafe { opened(source)?.described() };
        let n = described.arrays.len();
        let known = usize::try_from(index).ok().and_then(|i| described.arrays.get(i));
        let known =
            known.ok_or_else(|| invalid(format!("no array {index}: the source has {n}, from 0 on")))?;
        let array = Array {
            path: known.path.as_ptr(),
            value_type: known.value_type,
            stored_type: known.stored_type,
            rank: known.shape.len() as u32,
            attributes: known.attributes.len() as u32,
            shape: known.shape.as_ptr(),
            dims: known.dims.as_ptr().cast(),
        };
        // SAFETY: as above.
        unsafe { out.set(array) };
        Ok(())
    })
}

/// `sieva_dimension_describe`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_dimension_describe(
    source: *const SourceHandle,
    index: u64,
    dimension: *mut Dim,
) -> i32 {
    guarded(|| {
        let out = Out::new(dimension, "dimension")?;
        // SAFETY: the promises of sieva.h.
        let described = unsafe { opened(source)?.described() };
        let n = described.dims.len();
        let known = usize::try_from(index).ok().and_then(|i| described.dims.get(i));
        let known =
            known.ok_or_else(|| invalid(format!("no dimension {index}: the source has {n}, from 0 on")))?;
        let dim = Dim { path: known.0.as_ptr(), length: known.1, unlimited: known.2.into(), reserved: 0 };
        // SAFETY: as above.
        unsafe { out.set(dim) };
        Ok(())
    })
}
