//! The layout of an array as bytes, and back.

use std::sync::Arc;

use sieva_types::wire::{Reader, Writer};
use sieva_types::{Result, checked_len};

use super::chunks;
use crate::filters::{BitshuffleCodec, Filter, Pipeline};
use crate::layout::{Layout, Placement};

const DIRECT: u8 = 0;
const INLINE: u8 = 1;
const CHUNKS: u8 = 2;
const UNALLOCATED: u8 = 3;
const LIBRARY: u8 = 4;

/// Most client data of a filter: those of nbit describe a whole compound.
const MOST_CLIENT_DATA: u32 = 1 << 16;

/// Whether all of a layout can be written down: whether nobody but its source knows where the bytes are.
pub fn can_keep(layout: &Layout) -> bool {
    let placed = matches!(
        layout.placement,
        Placement::Direct { .. }
            | Placement::Inline(_)
            | Placement::Chunks(_)
            | Placement::Unallocated
            | Placement::Library(_)
    );
    placed && layout.pipeline.filters.iter().all(|f| number_of(f).is_some())
}

/// Writes a layout for which [`can_keep`] holds.
pub fn write(w: &mut Writer, layout: &Layout) {
    w.dtype(layout.dtype);
    w.endian(layout.endian);
    w.uint(layout.element_size as u64);
    w.uints(&layout.extent);
    w.uints(&layout.chunk_shape);
    w.uints(&layout.strides);
    w.uint(layout.base);
    w.uint(layout.chunk_bytes);
    w.list(&layout.pipeline.filters, write_filter);
    w.blob(&layout.fill);
    w.byte(u8::from(layout.char_dim) | u8::from(layout.space_padded) << 1);
    match &layout.placement {
        Placement::Direct { offset } => {
            w.byte(DIRECT);
            w.uint(*offset);
        }
        Placement::Inline(bytes) => {
            w.byte(INLINE);
            w.blob(bytes);
        }
        Placement::Chunks(index) => {
            w.byte(CHUNKS);
            chunks::write(w, index);
        }
        Placement::Library(reason) => {
            w.byte(LIBRARY);
            w.text(reason);
        }
        _ => w.byte(UNALLOCATED),
    }
}

/// Reads a layout; `check::layout` says whether it makes sense.
pub fn read(r: &mut Reader<'_>) -> Result<Layout> {
    let mut layout = Layout {
        dtype: r.dtype()?,
        endian: r.endian()?,
        element_size: r.index()?,
        extent: r.uints()?,
        chunk_shape: r.uints()?,
        strides: r.uints()?,
        base: r.uint()?,
        chunk_bytes: r.uint()?,
        pipeline: Pipeline { filters: r.list(read_filter)? },
        fill: r.blob()?.to_vec(),
        char_dim: false,
        space_padded: false,
        placement: Placement::Unallocated,
    };
    let flags = r.byte()?;
    if flags > 3 {
        return Err(r.damaged("texts of an unknown kind"));
    }
    (layout.char_dim, layout.space_padded) = (flags & 1 != 0, flags & 2 != 0);
    layout.placement = match r.byte()? {
        DIRECT => Placement::Direct { offset: r.uint()? },
        INLINE => Placement::Inline(Arc::from(r.blob()?)),
        CHUNKS => {
            let grid_len = checked_len(&layout.grid()).map_err(|e| r.damaged(e.message()))?;
            Placement::Chunks(chunks::read(r, grid_len)?)
        }
        UNALLOCATED => Placement::Unallocated,
        LIBRARY => Placement::Library(r.text()?),
        other => return Err(r.damaged(format!("{other} is no placement"))),
    };
    Ok(layout)
}

/// A filter's number, that of the HDF5 registry.
fn number_of(filter: &Filter) -> Option<u32> {
    Some(match filter {
        Filter::Deflate => 1,
        Filter::Shuffle { .. } => 2,
        Filter::Fletcher32 => 3,
        Filter::Szip(_) => 4,
        Filter::Nbit(_) => 5,
        Filter::ScaleOffset(_) => 6,
        Filter::Bzip2 => 307,
        Filter::Lzf => 32000,
        Filter::Blosc => 32001,
        Filter::Lz4 => 32004,
        Filter::Bitshuffle(_) => 32008,
        Filter::Zfp(_) => 32013,
        Filter::Zstd => 32015,
        Filter::Blosc2 => 32026,
        Filter::Other { id, .. } => *id,
        // Codecs of Zarr: their chunks are objects, of which no layout is kept.
        _ => return None,
    })
}

fn write_filter(w: &mut Writer, filter: &Filter) {
    let unknown = matches!(filter, Filter::Other { .. });
    w.flag(unknown);
    w.uint(u64::from(number_of(filter).unwrap_or(0)));
    match filter {
        Filter::Shuffle { element_size } => w.uint(*element_size as u64),
        Filter::Szip(szip) => szip.to_hdf5().into_iter().for_each(|v| w.uint(u64::from(v))),
        Filter::ScaleOffset(packing) => packing.to_hdf5().into_iter().for_each(|v| w.uint(u64::from(v))),
        Filter::Nbit(packing) => write_client_data(w, packing.to_hdf5()),
        Filter::Zfp(zfp) => write_client_data(w, zfp.to_hdf5()),
        Filter::Bitshuffle(b) => {
            w.uint(b.element_size as u64);
            w.uint(b.block_size as u64);
            w.byte(match b.codec {
                BitshuffleCodec::None => 0,
                BitshuffleCodec::Lz4 => 2,
                BitshuffleCodec::Zstd => 3,
            });
        }
        Filter::Other { name, .. } => w.text(name),
        _ => {}
    }
}

fn write_client_data(w: &mut Writer, client_data: &[u32]) {
    w.uint(client_data.len() as u64);
    client_data.iter().for_each(|&v| w.uint(u64::from(v)));
}

fn read_filter(r: &mut Reader<'_>) -> Result<Filter> {
    let unknown = r.flag()?;
    let id = number(r)?;
    if unknown {
        return Ok(Filter::Other { id, name: r.text()? });
    }
    let client_data = match id {
        2 => vec![number(r)?],
        4 => vec![number(r)?, number(r)?, number(r)?, number(r)?],
        6 => (0..20).map(|_| number(r)).collect::<Result<_>>()?,
        5 | 32013 => (0..number(r)?.min(MOST_CLIENT_DATA)).map(|_| number(r)).collect::<Result<_>>()?,
        32008 => vec![0, 0, number(r)?, number(r)?, u32::from(r.byte()?)],
        _ => Vec::new(),
    };
    match Filter::from_hdf5(id, &client_data, "") {
        Filter::Other { .. } => Err(r.damaged(format!("filter {id} with senseless parameters"))),
        known => Ok(known),
    }
}

fn number(r: &mut Reader<'_>) -> Result<u32> {
    let value = r.uint()?;
    u32::try_from(value).map_err(|_| r.damaged(format!("{value} is beyond 32 bits")))
}
