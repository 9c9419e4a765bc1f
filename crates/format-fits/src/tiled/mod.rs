//! Tile-compressed images: a binary table with a tile in each row (FITS standard 4.0, section 10).
//!
//! Tiles are the array's chunks. One is handed out decoded and at full size; what lies beyond the image's edge is
//! zero and not looked at.
//!
//! | file | does |
//! |---|---|
//! | `spec.rs` | keywords |
//! | `rows.rs` | the table's rows and its heap |
//! | `pixels.rs` | bytes of a tile to pixels |
//! | `rice.rs`, `plio.rs`, `hcompress.rs` (`hinverse.rs`, `hsmooth.rs`) | codecs; gzip is a kept library's |
//! | `dither.rs` | quantised floating-point numbers |

mod bits;
mod dither;
mod hcompress;
mod hinverse;
mod hsmooth;
mod pixels;
mod plio;
mod rice;
mod rows;
mod spec;

use std::ops::Range;
use std::sync::Arc;

use sieva_format::layout::{Layout, Placement, c_strides};
use sieva_format::schema::StorageInfo;
use sieva_store::RangedRead;
use sieva_types::{Error, Result};

use crate::builder::{Builder, Fetch, NewArray, Planned, numpy_name};
use crate::image;
use crate::scan::Hdu;
use crate::table::is_column_keyword;
use dither::Quantum;
use rows::Rows;
use spec::{Codec, Descriptor, Spec};

/// Bytes of a row of the table behind an image.
const MAX_ROW: u64 = 1 << 20;

/// The way to the tiles of an image.
#[derive(Debug)]
pub(crate) struct Tiled {
    spec: Spec,
    grid: Vec<u64>,
    rows: Rows,
    flip_sign: bool,
}

/// Adds the array of a tile-compressed image.
pub(crate) fn add_tiled(builder: &mut Builder, hdu: &Hdu, path: String) -> Result<()> {
    let spec = Spec::new(hdu)?;
    let [row_bytes, rows] = hdu.axes[..] else {
        return Err(Error::corrupt(format!("a table of {} axes, expected 2", hdu.axes.len())));
    };
    let grid: Vec<u64> = spec.shape.iter().zip(&spec.tile).map(|(n, t)| n.div_ceil(*t)).collect();
    let tiles: u64 = grid.iter().product();
    if row_bytes > MAX_ROW {
        return Err(Error::corrupt(format!(
            "a row of {row_bytes} bytes for each tile, expected some dozens"
        )));
    }
    if tiles > rows {
        let message = format!("an image of {tiles} tiles, the table has {rows} rows");
        return Err(Error::corrupt(message));
    }
    if !builder.has_room() {
        return Ok(());
    }
    let table_bytes = row_bytes.saturating_mul(rows);
    let heap = hdu.header.int("THEAP").and_then(|h| u64::try_from(h).ok()).unwrap_or(table_bytes);
    let end = hdu.data_start.saturating_add(hdu.data_len);
    let heap = hdu.data_start.saturating_add(heap).min(end)..end;
    let scaling = image::image_scaling(&hdu.header, spec.stored);
    let dims = builder.phony_dims("", &spec.shape);
    let size = spec.stored.size();
    let layout = image::tile_layout(&scaling.decoding, size, spec.shape.clone(), spec.tile.clone());
    let layout = if tiles == 0 { Layout { placement: Placement::Unallocated, ..layout } } else { layout };
    let storage = StorageInfo {
        layout: "chunked",
        chunk_shape: Some(spec.tile.clone()),
        filters: if spec.codec == Codec::Plain { Vec::new() } else { vec![spec.codec_name.clone()] },
        stored_type: numpy_name(spec.stored, size),
        stored_bytes: Some(heap.end - heap.start),
        offset: None,
    };
    let rows = Rows::new(hdu.data_start, row_bytes, rows, heap);
    let tiled = Tiled { spec, grid, rows, flip_sign: scaling.flip_sign };
    builder.add(NewArray {
        path,
        alias: format!("hdu{}", hdu.number),
        dims,
        attrs: image::image_attrs(&hdu.header, |name| !is_column_keyword(name)),
        decoding: scaling.decoding,
        storage,
        planned: Planned { layout: Ok(Arc::new(layout)), fetch: Fetch::Tiles(Box::new(tiled)) },
    });
    Ok(())
}

/// Where a tile's bytes are and how they are to be understood.
struct Found {
    place: Range<u64>,
    codec: Codec,
    /// Whether it holds numbers as they are, though others of the image are quantised.
    as_is: bool,
}

impl Tiled {
    /// Puts tile `number` into `out`, decoded and at full size.
    pub(crate) fn fetch(&self, store: &dyn RangedRead, number: u64, out: &mut Vec<u8>) -> Result<()> {
        let spec = &self.spec;
        let row = self.rows.row(store, number)?;
        let shape = self.shape_of(number);
        let pixels = shape.iter().try_fold(1_u64, |n, &len| n.checked_mul(len));
        let pixels = pixels.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX);
        let found = self.find(&row)?;
        // No codec makes a pixel take more than some bytes more: a longer tile is not worth its memory.
        let (stored, most) = (found.place.end - found.place.start, (pixels as u64).saturating_mul(16));
        if stored > most.saturating_add(64 << 10) {
            return Err(Error::corrupt(format!("a tile of {pixels} pixels takes {stored} bytes")));
        }
        let input = self.rows.read(store, found.place)?;
        let decoded = pixels::decode(found.codec, input, pixels, spec.stored.size())?;
        let tile = match spec.dither.filter(|_| !found.as_is) {
            Some(dither) => decoded.dequantised(spec.stored, self.quantum(&row)?, dither, number),
            None => decoded.stored(spec.stored, self.flip_sign)?,
        };
        self.enlarge(&shape, tile, out);
        Ok(())
    }

    /// The bytes of the file that hold these tiles, as far as their rows can be read.
    pub(crate) fn ranges(&self, store: &dyn RangedRead, numbers: &[u64]) -> Vec<Range<u64>> {
        let place =
            |&n: &u64| self.rows.row(store, n).and_then(|row| self.find(&row)).map(|found| found.place);
        numbers.iter().filter_map(|n| place(n).ok()).collect()
    }

    fn find(&self, row: &[u8]) -> Result<Found> {
        let columns = &self.spec.columns;
        let place = |column: Option<Descriptor>| match column {
            Some(descriptor) => self.rows.place(row, descriptor).map(Some),
            None => Ok(None),
        };
        for (column, codec, as_is) in [
            (columns.compressed, self.spec.codec, false),
            (columns.gzip, Codec::Gzip, true),
            (columns.plain, Codec::Plain, true),
        ] {
            if let Some(place) = place(column)?.filter(|place| !place.is_empty()) {
                return Ok(Found { place, codec, as_is });
            }
        }
        Err(Error::corrupt("no column holds data of the tile"))
    }

    fn quantum(&self, row: &[u8]) -> Result<Quantum> {
        let columns = &self.spec.columns;
        let number = |of: Option<spec::PerTile>| of.and_then(|of| rows::number(row, of));
        let scale =
            number(columns.scale).ok_or_else(|| Error::corrupt("a quantised tile without a ZSCALE"))?;
        let zero = number(columns.zero).unwrap_or(0.0);
        let blank = number(columns.blank).filter(|b| b.abs() < 1e18).map(|b| b as i64);
        Ok(Quantum { scale, zero, blank })
    }

    /// The shape of a tile, cut at the image's edge.
    fn shape_of(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let mut shape = self.spec.tile.clone();
        for d in (0..shape.len()).rev() {
            let count = self.grid[d].max(1);
            let start = rest % count * shape[d];
            rest /= count;
            shape[d] = shape[d].min(self.spec.shape[d].saturating_sub(start));
        }
        shape
    }

    /// Lays a tile that the edge cut into one of full size.
    fn enlarge(&self, shape: &[u64], tile: Vec<u8>, out: &mut Vec<u8>) {
        if *shape == *self.spec.tile {
            *out = tile;
            return;
        }
        let size = self.spec.stored.size() as u64;
        let (from, to) = (c_strides(shape, size), c_strides(&self.spec.tile, size));
        let full: u64 = self.spec.tile.iter().product::<u64>() * size;
        out.resize(full as usize, 0);
        let Some(&width) = shape.last() else { return };
        let run = (width * size) as usize;
        for (n, line) in tile.chunks_exact(run.max(1)).enumerate() {
            let mut first = n as u64 * run as u64;
            let mut at = 0;
            for d in 0..shape.len() {
                at += first / from[d] * to[d];
                first %= from[d];
            }
            out[at as usize..at as usize + run].copy_from_slice(line);
        }
    }
}
