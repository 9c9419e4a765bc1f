//! Whether what a manifest says can be: what the block reader and the engine take for granted of a source.
//!
//! A reader of a format makes sure of it where it parses; a manifest may come from a process that hostile bytes have
//! taken over.

use sieva_types::{DType, Error, ErrorKind, Result, checked_len};

use crate::layout::{Layout, Placement};
use crate::schema::{ArrayInfo, Schema};

/// HDF5 stops at 32 dimensions, netCDF at 1024 in theory; numpy at 64. One more is for characters.
const MAX_RANK: usize = 65;
/// HDF5 stops at 32 filters.
const MAX_FILTERS: usize = 32;
/// Longest single element, a fixed-length text.
const MAX_ELEMENT: usize = 1 << 30;

fn senseless(path: &str, what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::CorruptIndex, format!("senseless manifest: '{path}' {what}"))
        .hint("remove it: it is made anew from the source")
}

/// Checks that indices lead somewhere and shapes agree.
pub fn schema(schema: &Schema) -> Result<()> {
    let arrays = schema.arrays.len();
    for array in &schema.arrays {
        check_array(schema, array)?;
    }
    for (d, dim) in schema.dims.iter().enumerate() {
        let fits = |c: usize| schema.arrays.get(c).is_some_and(|a| a.dims == [d]);
        if dim.coordinate.is_some_and(|c| !fits(c)) {
            return Err(senseless(&dim.path, "has a coordinate array that does not lie along it"));
        }
    }
    match schema.aliases.iter().find(|(_, array)| *array >= arrays) {
        Some((path, _)) => Err(senseless(path, "is another name of no array")),
        None => Ok(()),
    }
}

fn check_array(schema: &Schema, array: &ArrayInfo) -> Result<()> {
    let say = |what: &str| Err(senseless(&array.path, what));
    let agrees = |(&d, &n): (&usize, &u64)| schema.dims.get(d).is_some_and(|dim| dim.len == n);
    if array.dims.len() != array.shape.len() || !array.dims.iter().zip(&array.shape).all(agrees) {
        return say("has a shape that its dimensions have not");
    }
    if array.dims.len() >= MAX_RANK || checked_len(&array.shape).is_err() {
        return say("is larger than any array can be");
    }
    if array.coordinates.iter().any(|&c| c >= schema.arrays.len()) {
        return say("has a coordinate that is no array");
    }
    let (stored, dtype) = (array.decoding.stored, array.dtype);
    if ![dtype, dtype.as_unsigned(), dtype.as_signed()].contains(&stored) {
        return say("is decoded as another type than it is");
    }
    Ok(())
}

/// The bytes of so many elements of `size` bytes, where 63 bits suffice.
fn checked_bytes(shape: &[u64], size: u64) -> Option<u64> {
    checked_len(shape).ok()?.checked_mul(size).filter(|&n| n <= i64::MAX as u64)
}

/// Bytes from a block's start to the end of its last element, 0 where it has none.
fn checked_span(layout: &Layout, shape: &[u64]) -> Option<u64> {
    if shape.contains(&0) {
        return Some(0);
    }
    let mut span = layout.base.checked_add(layout.element_size as u64)?;
    for (&n, &stride) in shape.iter().zip(&layout.strides) {
        span = span.checked_add((n - 1).checked_mul(stride)?)?;
    }
    (span <= i64::MAX as u64).then_some(span)
}

/// Checks that a layout is one of `array` and that no arithmetic of the block reader can leave 63 bits or a buffer.
pub fn layout(array: &ArrayInfo, layout: &Layout) -> Result<()> {
    let say = |what: &str| Err(senseless(&array.path, what));
    let rank = array.shape.len() + usize::from(layout.char_dim);
    let ranks = [layout.extent.len(), layout.chunk_shape.len(), layout.strides.len()];
    if ranks != [rank; 3] || rank > MAX_RANK || layout.pipeline.filters.len() > MAX_FILTERS {
        return say("is laid out in other dimensions than it has");
    }
    if layout.dtype != array.dtype || !is_element_size(layout) || !is_fill(layout) {
        return say("is laid out as another type than it is");
    }
    // A box is checked against the memory limit before it is read, a chunk by its own number of bytes only.
    let size =
        if matches!(layout.placement, Placement::Chunks(_)) { layout.element_size.max(1) as u64 } else { 1 };
    if checked_len(&layout.extent).is_err() || checked_bytes(&layout.chunk_shape, size).is_none() {
        return say("is larger than any array can be");
    }
    if layout.chunk_shape.iter().chain(&layout.extent).any(|&n| n > i64::MAX as u64) {
        return say("has a length that no array can have");
    }
    check_place(array, layout)
}

/// Whether the fill value is an element; of texts of variable length it is any text.
fn is_fill(layout: &Layout) -> bool {
    let is_any_text = layout.element_size == 0
        && matches!(layout.placement, Placement::Library(_) | Placement::Unallocated);
    is_any_text || layout.fill.len() == layout.element_size
}

fn is_element_size(layout: &Layout) -> bool {
    match layout.dtype {
        DType::Str if layout.char_dim => layout.element_size == 1,
        DType::Str => layout.element_size <= MAX_ELEMENT,
        other => layout.element_size == other.size() && !layout.char_dim,
    }
}

fn check_place(array: &ArrayInfo, layout: &Layout) -> Result<()> {
    let say = |what: &str| Err(senseless(&array.path, what));
    match &layout.placement {
        Placement::Direct { offset } => {
            let end = checked_span(layout, &layout.extent).and_then(|span| offset.checked_add(span));
            if end.is_none_or(|end| end > i64::MAX as u64) {
                return say("reaches beyond any file");
            }
        }
        Placement::Inline(_) if checked_span(layout, &layout.extent).is_none() => {
            return say("reaches beyond any memory");
        }
        Placement::Chunks(_) => {
            let span = checked_span(layout, &layout.chunk_shape);
            if layout.chunk_shape.contains(&0) || span.is_none_or(|span| span > layout.chunk_bytes) {
                return say("has chunks that do not hold their elements");
            }
        }
        _ => {}
    }
    Ok(())
}
