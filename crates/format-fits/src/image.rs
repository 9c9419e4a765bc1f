//! Image HDUs: one array each (FITS standard 4.0, sections 4.4.1 and 7.1).

use std::sync::Arc;

use sieva_format::decoding::Decoding;
use sieva_format::layout::{Layout, Placement};
use sieva_format::schema::{Attr, AttrValue, StorageInfo};
use sieva_types::{DType, Endian, Error, Result};

use crate::blocks::{Blocks, Transform, rows_per_block};
use crate::builder::{Builder, Fetch, NewArray, Planned, chunked_layout, numpy_name, plain_layout};
use crate::header::{Header, is_structural};
use crate::scaling::{Given, Scaling, scaling};
use crate::scan::{Hdu, MAX_RANK};

/// The type of elements of a BITPIX.
pub(crate) fn dtype(bitpix: i32) -> Option<DType> {
    Some(match bitpix {
        8 => DType::U8,
        16 => DType::I16,
        32 => DType::I32,
        64 => DType::I64,
        -32 => DType::F32,
        -64 => DType::F64,
        _ => return None,
    })
}

/// What an image's numbers mean.
pub(crate) fn image_scaling(header: &Header, stored: DType) -> Scaling {
    let blank = header.int("BLANK").or_else(|| header.int("ZBLANK"));
    scaling(stored, Given { scale: header.float("BSCALE"), zero: header.float("BZERO"), blank })
}

/// An image's attributes, with its unit under the name that other formats use.
pub(crate) fn image_attrs(header: &Header, keep: impl Fn(&str) -> bool) -> Vec<Attr> {
    let mut attrs = header.attrs(|name| !is_structural(name) && keep(name));
    if let Some(unit) = header.text("BUNIT").filter(|u| !u.is_empty()) {
        attrs.push(("units".into(), AttrValue::Text(unit.into())));
    }
    attrs
}

/// Adds the array of an image HDU.
pub(crate) fn add_image(builder: &mut Builder, hdu: &Hdu, path: String) -> Result<()> {
    let Some(stored) = dtype(hdu.bitpix).filter(|_| !hdu.axes.is_empty()) else { return Ok(()) };
    if hdu.axes.len() > MAX_RANK {
        let rank = hdu.axes.len();
        builder.leave_out(path, format!("an image of {rank} dimensions, at most {MAX_RANK} can be read"));
        return Ok(());
    }
    if !builder.has_room() {
        return Ok(());
    }
    let shape: Vec<u64> = hdu.axes.iter().rev().copied().collect();
    let given = image_scaling(&hdu.header, stored);
    let size = stored.size();
    let elements = shape.iter().try_fold(size as u64, |n, &len| n.checked_mul(len));
    let empty = shape.contains(&0);
    let elements = elements.filter(|&n| empty || n <= hdu.data_len).or(empty.then_some(0));
    let elements = elements.ok_or_else(|| Error::corrupt(format!("'{path}': axes exceed the data")))?;
    let layout = plain_layout(given.dtype, size, shape.clone());
    let (layout, fetch) = place(layout, hdu.data_start, given.flip_sign, empty);
    let dims = builder.phony_dims("", &shape);
    let is_chunked = matches!(layout.placement, Placement::Objects);
    builder.add(NewArray {
        alias: format!("hdu{}", hdu.number),
        dims,
        attrs: image_attrs(&hdu.header, |_| true),
        decoding: given.decoding,
        storage: StorageInfo {
            layout: "contiguous",
            chunk_shape: is_chunked.then(|| layout.chunk_shape.clone()),
            filters: Vec::new(),
            stored_type: numpy_name(stored, size),
            stored_bytes: Some(elements),
            offset: Some(hdu.data_start),
        },
        planned: Planned { layout: Ok(Arc::new(layout)), fetch },
        path,
    });
    Ok(())
}

/// Where the elements are: as they lie, or in blocks whose sign bits are flipped.
fn place(layout: Layout, start: u64, flip_sign: bool, empty: bool) -> (Layout, Fetch) {
    if empty {
        return (layout, Fetch::Direct);
    }
    if !flip_sign {
        return (Layout { placement: Placement::Direct { offset: start }, ..layout }, Fetch::Direct);
    }
    // A block is a run along the outermost dimension whose steps are small enough.
    let cut = (0..layout.extent.len()).find(|&d| layout.strides[d] <= 128 << 10).unwrap_or(0);
    let (stride, rows) = (layout.strides[cut], layout.extent[cut]);
    let per_block = rows_per_block(stride, rows);
    let mut chunk_shape = layout.extent.clone();
    chunk_shape[..cut].fill(1);
    chunk_shape[cut] = per_block;
    let transform = Transform::FlipSign(layout.element_size);
    let layout = chunked_layout(layout, chunk_shape);
    let block_bytes = layout.chunk_bytes;
    let blocks =
        Blocks { start, stride, item: stride, rows, rows_per_block: per_block, block_bytes, transform };
    (layout, Fetch::Blocks(blocks))
}

/// The layout of decoded tiles: native byte order.
pub(crate) fn tile_layout(decoding: &Decoding, size: usize, shape: Vec<u64>, tile: Vec<u64>) -> Layout {
    let layout = plain_layout(decoding.stored, size, shape);
    Layout { endian: Endian::NATIVE, ..chunked_layout(layout, tile) }
}
