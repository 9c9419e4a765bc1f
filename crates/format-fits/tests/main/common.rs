//! A writer of FITS files for tests, written from the standard and apart from the reader, and whole reads.

use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::buffer::Buffer;
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_format_fits::FitsSource;
use sieva_store::{MemoryStore, RangedRead};
use sieva_types::{Bx, Result, Texts};

/// A header and its data, padded to whole blocks.
pub fn hdu(cards: &[&str], data: &[u8]) -> Vec<u8> {
    let mut bytes: Vec<u8> = cards.iter().flat_map(|card| format!("{card:<80}").into_bytes()).collect();
    bytes.extend(format!("{:<80}", "END").into_bytes());
    bytes.resize(bytes.len().div_ceil(2880) * 2880, b' ');
    bytes.extend(data);
    bytes.resize(bytes.len().div_ceil(2880) * 2880, 0);
    bytes
}

/// A primary HDU without data.
pub fn empty_primary() -> Vec<u8> {
    hdu(&["SIMPLE  = T", "BITPIX  = 8", "NAXIS   = 0"], &[])
}

/// A primary HDU that holds an image. `axes`: fastest first.
pub fn image(bitpix: i32, axes: &[u64], more: &[&str], data: &[u8]) -> Vec<u8> {
    image_hdu("SIMPLE  = T", bitpix, axes, more, data)
}

/// An extension that holds an image.
pub fn image_extension(bitpix: i32, axes: &[u64], more: &[&str], data: &[u8]) -> Vec<u8> {
    image_hdu("XTENSION= 'IMAGE   '", bitpix, axes, more, data)
}

fn image_hdu(first: &str, bitpix: i32, axes: &[u64], more: &[&str], data: &[u8]) -> Vec<u8> {
    let mut cards =
        vec![first.to_string(), format!("BITPIX  = {bitpix}"), format!("NAXIS   = {}", axes.len())];
    cards.extend(axes.iter().enumerate().map(|(i, n)| format!("{:<8}= {n}", format!("NAXIS{}", i + 1))));
    cards.extend(more.iter().map(|c| c.to_string()));
    hdu(&cards.iter().map(String::as_str).collect::<Vec<_>>(), data)
}

/// A table extension of rows of `row_bytes` bytes.
pub fn table(kind: &str, row_bytes: usize, more: &[&str], data: &[u8]) -> Vec<u8> {
    let rows = data.len() / row_bytes;
    let mut cards = vec![
        format!("XTENSION= '{kind:<8}'"),
        "BITPIX  = 8".into(),
        "NAXIS   = 2".into(),
        format!("NAXIS1  = {row_bytes}"),
        format!("NAXIS2  = {rows}"),
        "PCOUNT  = 0".into(),
        "GCOUNT  = 1".into(),
    ];
    cards.extend(more.iter().map(|c| c.to_string()));
    hdu(&cards.iter().map(String::as_str).collect::<Vec<_>>(), data)
}

/// Opens a file of these bytes.
pub fn open(bytes: Vec<u8>) -> Result<Arc<FitsSource>> {
    let store: Arc<dyn RangedRead> = Arc::new(MemoryStore::new("test.fits", bytes));
    FitsSource::open(store, &[]).map(Arc::new)
}

/// The number of an array.
pub fn array(source: &FitsSource, path: &str) -> usize {
    source.schema().array(path).unwrap_or_else(|| panic!("no array '{path}'"))
}

fn reader(source: &Arc<FitsSource>, path: &str) -> Result<BlockReader> {
    let cache = Arc::new(ChunkCache::new(1 << 20));
    BlockReader::new(Arc::clone(source) as Arc<dyn ArraySource>, array(source, path), cache, 64 << 20)
}

/// The bytes of a box in native byte order.
pub fn read_box(source: &Arc<FitsSource>, path: &str, bx: &Bx) -> Result<Vec<u8>> {
    let mut out = Buffer::default();
    reader(source, path)?.read(bx, &mut out, &mut Workspace::default())?;
    Ok(out.bytes().to_vec())
}

/// The bytes of a whole array in native byte order.
pub fn read(source: &Arc<FitsSource>, path: &str) -> Result<Vec<u8>> {
    let shape = &source.schema().arrays[array(source, path)].shape;
    read_box(source, path, &Bx::whole(shape))
}

/// The texts of a whole array.
pub fn texts(source: &Arc<FitsSource>, path: &str) -> Texts {
    let shape = &source.schema().arrays[array(source, path)].shape;
    reader(source, path).unwrap().read_texts(&Bx::whole(shape), &mut Workspace::default()).unwrap()
}

/// Numbers in native byte order.
pub fn native<const N: usize, T>(bytes: &[u8], number: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.chunks_exact(N).map(|b| number(b.try_into().unwrap())).collect()
}
