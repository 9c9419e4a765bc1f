//! A small source of many types: what queries are bound to and run on.

use std::sync::{Arc, LazyLock};

use sieva_format::ArraySource;
use sieva_format_netcdf3::Netcdf3Source;
use sieva_store::MemoryStore;

/// Type numbers of the netCDF classic format, CDF-5.
const CHAR: u32 = 2;
const DIMS: [(&str, u64); 4] = [("time", 4), ("lat", 3), ("lon", 5), ("letters", 6)];

/// The source: a file of four dimensions, their coordinates, and arrays of all types along them.
pub fn small_source() -> Arc<dyn ArraySource> {
    static SOURCE: LazyLock<Arc<dyn ArraySource>> = LazyLock::new(|| {
        let store = MemoryStore::new("small.nc", file());
        Arc::new(Netcdf3Source::open(Arc::new(store)).expect("a sound file"))
    });
    Arc::clone(&SOURCE)
}

/// An array: name, type, dimensions, attributes that are texts, and those that are numbers of the array's type.
struct Array {
    name: &'static str,
    kind: u32,
    dims: &'static [u64],
    texts: &'static [(&'static str, &'static str)],
    numbers: &'static [(&'static str, f64)],
}

const fn plain(name: &'static str, kind: u32, dims: &'static [u64]) -> Array {
    Array { name, kind, dims, texts: &[], numbers: &[] }
}

const ARRAYS: [Array; 15] = [
    Array {
        texts: &[("units", "hours since 2000-02-28 12:00"), ("calendar", "noleap")],
        ..plain("time", 6, &[0])
    },
    plain("lat", 5, &[1]),
    plain("lon", 6, &[2]),
    Array { numbers: &[("_FillValue", 3.0)], ..plain("TEMP", 5, &[0, 1, 2]) },
    Array { numbers: &[("scale_factor", 0.25), ("add_offset", -7.0)], ..plain("packed", 3, &[1, 2]) },
    Array { texts: &[("_Unsigned", "true")], numbers: &[("missing_value", -1.0)], ..plain("flag", 1, &[0]) },
    Array { numbers: &[("valid_min", 1.0), ("valid_max", 9.0)], ..plain("n", 4, &[0, 2]) },
    plain("big", 10, &[2]),
    plain("huge", 11, &[2]),
    plain("byte", 7, &[1]),
    plain("word", 8, &[1]),
    plain("count", 9, &[1]),
    Array { texts: &[("units", "days since 1850-01-01")], ..plain("when", 4, &[0, 1]) },
    plain("name", CHAR, &[1, 3]),
    plain("one", 6, &[]),
];

/// Bytes of an element by type number, CDF-5.
fn width(kind: u32) -> usize {
    match kind {
        1 | 2 | 7 => 1,
        3 | 8 => 2,
        4 | 5 | 9 => 4,
        _ => 8,
    }
}

/// The element of a number, big-endian.
fn element(kind: u32, n: f64) -> Vec<u8> {
    match kind {
        CHAR => vec![b"ab Z\0\xe9"[n.abs() as usize % 6]],
        5 => (n as f32).to_be_bytes().to_vec(),
        6 => n.to_be_bytes().to_vec(),
        11 => (n as u64).to_be_bytes().to_vec(),
        _ => (n as i64).to_be_bytes()[8 - width(kind)..].to_vec(),
    }
}

/// Numbers that are likely to harm; times and coordinates ascend.
fn number(array: &Array, i: usize) -> f64 {
    const HARMFUL: [f64; 12] = [
        0.0,
        -1.0,
        f64::NAN,
        3.0,
        f64::INFINITY,
        -0.0,
        7.5,
        f64::MAX,
        f64::NEG_INFINITY,
        f64::MIN_POSITIVE,
        1e15,
        -128.0,
    ];
    if array.dims.len() == 1 && array.kind > CHAR && array.kind < 7 {
        return 10.0 * i as f64 - 7.0;
    }
    HARMFUL[(i * 5 + array.name.len()) % HARMFUL.len()]
}

fn file() -> Vec<u8> {
    // Offsets have one width, so that a header without them is as long as one with them.
    let head = header(0).len() as u64;
    let mut file = header(head);
    for array in &ARRAYS {
        (0..elements(array)).for_each(|i| file.extend(element(array.kind, number(array, i))));
        file.resize(file.len().next_multiple_of(4), 0);
    }
    file
}

fn elements(array: &Array) -> usize {
    array.dims.iter().map(|&d| DIMS[d as usize].1 as usize).product()
}

fn header(data: u64) -> Vec<u8> {
    let mut out = b"CDF\x05".to_vec();
    put(&mut out, &[0]);
    tag(&mut out, 10, DIMS.len());
    for (name, len) in DIMS {
        text(&mut out, name);
        put(&mut out, &[len]);
    }
    tag(&mut out, 0, 0);
    tag(&mut out, 11, ARRAYS.len());
    let mut begin = data;
    for array in &ARRAYS {
        let bytes = (elements(array) * width(array.kind)).next_multiple_of(4) as u64;
        text(&mut out, array.name);
        put(&mut out, &[array.dims.len() as u64]);
        put(&mut out, array.dims);
        attributes(&mut out, array);
        out.extend(array.kind.to_be_bytes());
        put(&mut out, &[bytes, begin]);
        begin += bytes;
    }
    out
}

fn attributes(out: &mut Vec<u8>, array: &Array) {
    let n = array.texts.len() + array.numbers.len();
    tag(out, if n == 0 { 0 } else { 12 }, n);
    for (name, value) in array.texts {
        text(out, name);
        out.extend(CHAR.to_be_bytes());
        text(out, value);
    }
    for &(name, value) in array.numbers {
        // What unpacks is a double whatever the type that is packed.
        let kind = if name.contains('_') && array.kind == 3 { 6 } else { array.kind };
        text(out, name);
        out.extend(kind.to_be_bytes());
        put(out, &[1]);
        out.extend(element(kind, value));
        out.resize(out.len().next_multiple_of(4), 0);
    }
}

fn tag(out: &mut Vec<u8>, tag: u32, n: usize) {
    out.extend(tag.to_be_bytes());
    put(out, &[n as u64]);
}

fn put(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|n| out.extend(n.to_be_bytes()));
}

fn text(out: &mut Vec<u8>, text: &str) {
    put(out, &[text.len() as u64]);
    out.extend(text.as_bytes());
    out.resize(out.len().next_multiple_of(4), 0);
}
