//! Asks an open source everything: its schema, its layouts, and the values of boxes of every array.
//!
//! What a damaged file answers is anybody's guess, but it must be one answer: a box read as a whole and in parts
//! holds the same elements, and an error is one of the file, not of ours.

use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::cf::{Calendar, TimeUnits};
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_format::schema::{ArrayInfo, AttrValue, Schema, attr};
use sieva_query::bind::{is_time, stored_domain};
use sieva_types::{Buffer, Bx, DType, Error, ErrorKind, Result};

/// Arrays that are looked at of one file.
const MOST_ARRAYS: usize = 24;
/// Elements of a box at most.
const MOST_ELEMENTS: u64 = 1024;
/// The memory that a reader is allowed.
const MEMORY: u64 = 1 << 20;

/// Looks at everything that the source says; `seed` chooses places.
///
/// # Panics
/// Where the source contradicts itself, or breaks a promise of its interface.
pub fn explore(source: &Arc<dyn ArraySource>, seed: u64) {
    check_schema(source.schema());
    let n = source.schema().arrays.len();
    let cache = Arc::new(ChunkCache::new(MEMORY as usize));
    for i in 0..n.min(MOST_ARRAYS) {
        // Of many arrays some from anywhere.
        let array = if n <= MOST_ARRAYS { i } else { (seed as usize).wrapping_add(i * 7919) % n };
        let info = &source.schema().arrays[array];
        check_meaning(info);
        match BlockReader::new(Arc::clone(source), array, Arc::clone(&cache), MEMORY) {
            Ok(reader) => check_values(&reader, info, seed.rotate_left(i as u32)),
            Err(e) => {
                check_error(&e);
                assert_eq!(source.layout(array).err(), Some(e), "a layout that fails does so again");
            }
        }
    }
}

/// An error that a file may cause.
///
/// # Panics
/// Where it is one that only we can cause, or says nothing.
pub fn check_error(e: &Error) {
    assert_ne!(e.kind(), ErrorKind::Internal, "{e}");
    assert!(!e.message().is_empty());
    assert!(e.message().len() < 1 << 16, "{} bytes of message", e.message().len());
}

/// Indices in it lead somewhere, shapes are those of the dimensions.
fn check_schema(schema: &Schema) {
    for array in &schema.arrays {
        assert_eq!(array.dims.len(), array.shape.len(), "'{}'", array.path);
        for (&dim, &len) in array.dims.iter().zip(&array.shape) {
            assert_eq!(schema.dims[dim].len, len, "'{}'", array.path);
        }
        assert!(array.coordinates.iter().all(|&c| c < schema.arrays.len()));
    }
    assert!(schema.dims.iter().filter_map(|d| d.coordinate).all(|c| c < schema.arrays.len()));
    assert!(schema.aliases.iter().all(|(_, array)| *array < schema.arrays.len()));
    schema.left_out.iter().for_each(|(_, e)| check_error(e));
}

/// What attributes make of stored values.
fn check_meaning(info: &ArrayInfo) {
    for (raw, valid_range) in [(false, false), (false, true), (true, false)] {
        if let Err(e) = stored_domain(info, raw, valid_range) {
            check_error(&e);
        }
    }
    let calendar = attr(&info.attrs, "calendar").and_then(AttrValue::as_text).unwrap_or_default();
    let units = attr(&info.attrs, "units").and_then(AttrValue::as_text).unwrap_or_default();
    if is_time(info) {
        let calendar = Calendar::parse(calendar).unwrap_or_default();
        let units = TimeUnits::parse(units, calendar);
        if let Ok(units) = units {
            for n in [0.0, 1e300, f64::NAN] {
                units.to_datetime(n);
            }
        }
    }
}

fn check_values(reader: &BlockReader, info: &ArrayInfo, seed: u64) {
    let mut ws = Workspace::default();
    if info.shape.contains(&0) {
        assert_eq!(elements(reader, info, &Bx::whole(&info.shape), &mut ws), Ok(Vec::new()));
        return;
    }
    for corner in 0..3 {
        let bx = some_box(&info.shape, corner, seed);
        let Some(whole) = answer(elements(reader, info, &bx, &mut ws)) else { continue };
        assert_eq!(whole.len() as u64, bx.len());
        check_halves(reader, info, &bx, &whole, &mut ws);
        check_flat(reader, info, &bx, &whole, &mut ws);
    }
}

/// The first, the last, or any elements along each dimension; few along the outer ones.
fn some_box(shape: &[u64], corner: u64, seed: u64) -> Bx {
    let mut left = MOST_ELEMENTS;
    let (mut start, mut extent) = (vec![0; shape.len()], vec![1; shape.len()]);
    for d in (0..shape.len()).rev() {
        let most = if d == 0 { left } else { left.min(1 + left / 8) };
        extent[d] = shape[d].min(most.max(1));
        left /= extent[d];
        let free = shape[d] - extent[d];
        start[d] = match corner {
            0 => 0,
            1 => free,
            _ => seed.rotate_right(d as u32 * 7) % free.saturating_add(1).max(1),
        };
    }
    Bx::new(start, extent)
}

/// One word per element: its bytes, or its text.
type Words = Vec<Vec<u8>>;

fn elements(reader: &BlockReader, info: &ArrayInfo, bx: &Bx, ws: &mut Workspace) -> Result<Words> {
    if info.dtype == DType::Str {
        return Ok(reader.read_texts(bx, ws)?.iter().map(|text| text.as_bytes().to_vec()).collect());
    }
    let mut out = Buffer::default();
    reader.read(bx, &mut out, ws)?;
    Ok(words(reader, &out))
}

fn words(reader: &BlockReader, buffer: &Buffer) -> Words {
    buffer.bytes().chunks_exact(reader.element_dtype().size()).map(<[u8]>::to_vec).collect()
}

fn answer(read: Result<Words>) -> Option<Words> {
    read.inspect_err(check_error).ok()
}

/// The same elements, asked for in two halves along the outermost dimension that has two.
fn check_halves(reader: &BlockReader, info: &ArrayInfo, bx: &Bx, whole: &Words, ws: &mut Workspace) {
    let Some(d) = bx.shape.iter().position(|&n| n > 1) else { return };
    let (mut first, mut second) = (bx.clone(), bx.clone());
    first.shape[d] /= 2;
    second.start[d] += first.shape[d];
    second.shape[d] -= first.shape[d];
    let mut both = elements(reader, info, &first, ws).expect("half of what could be read");
    both.extend(elements(reader, info, &second, ws).expect("half of what could be read"));
    assert_eq!(both, *whole, "'{}' {bx:?}", info.path);
}

/// The same elements as one dimension.
fn check_flat(reader: &BlockReader, info: &ArrayInfo, bx: &Bx, whole: &Words, ws: &mut Workspace) {
    let Some(flat) = reader.flat().filter(|_| info.dtype != DType::Str) else { return };
    let inner: Vec<u64> = (0..bx.rank()).map(|d| info.shape[d + 1..].iter().product()).collect();
    let place = (0..bx.rank()).map(|d| bx.start[d] * inner[d]).sum();
    // A run of the innermost dimension.
    let run = bx.shape.last().copied().unwrap_or(1);
    let mut out = Buffer::default();
    flat.read_run(place, run as usize, &mut out, ws).expect("a run of what could be read");
    assert_eq!(words(reader, &out), whole[..run as usize], "'{}' {bx:?}", info.path);
}
