//! Real files, whose right answers numpy gave: through the functions that C calls.

use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::ptr::null_mut;

use serde_json::Value;
use sieva_c::options::Options;
use sieva_c::query::{QueryHandle, sieva_query_and, sieva_query_create, sieva_query_free, sieva_query_nhits};
use sieva_c::region::sieva_query_set_region;
use sieva_c::selection::{
    SelectionHandle, sieva_query_selection, sieva_selection_free, sieva_selection_positions,
};
use sieva_c::source::{SourceHandle, sieva_close, sieva_open};
use sieva_c::status::sieva_error_message;

/// Least number of queries that must be asked: fewer means that names are no longer found.
const LEAST: usize = 60;

/// The files: `../shared/data` beside the checkout, or `SIEVA_SHARED_DATA`.
fn directory() -> Option<PathBuf> {
    let beside = crate::toolchain::root().join("../../../shared/data");
    let dir = std::env::var_os("SIEVA_SHARED_DATA").map_or(beside, PathBuf::from).join("dev");
    if dir.join("queries.json").is_file() {
        return Some(dir);
    }
    eprintln!("skipped: no {}", dir.display());
    None
}

fn ok(status: i32, what: &str) {
    // SAFETY: the message is a text for as long as this thread does not fail again.
    let message = unsafe { CStr::from_ptr(sieva_error_message()) };
    assert_eq!(status, 0, "{what}: {message:?}");
}

/// The array that a name of the file of queries means: `raw:x`, `path::member`, `path@axis`.
fn array_of(name: &str) -> String {
    name.trim_start_matches("raw:").split('@').next().unwrap().replace("::", ".")
}

/// Names for the dimensions of an HDF5 file, where arrays of different groups meet.
fn lined_up(case: &Value) -> String {
    if !case["file"].as_str().unwrap().starts_with("hdf5/") {
        return String::new();
    }
    let rank = case["shape"].as_array().unwrap().len();
    let all = (0..rank).map(|k| format!("axis{k}")).collect::<Vec<_>>().join(",");
    let conditions = case["conditions"].as_array().unwrap().iter().map(|c| &c[0]);
    let names = conditions.chain([&case["target"]]).map(|n| n.as_str().unwrap());
    let line = |name: &str| match name.split_once('@') {
        Some((_, axis)) => format!("{}=axis{axis}", array_of(name)),
        None => format!("{}={all}", array_of(name)),
    };
    if rank == 0 { String::new() } else { names.map(line).collect::<Vec<_>>().join("\n") }
}

/// A condition of one comparison; `between` is two.
unsafe fn condition(source: *const SourceHandle, of: &Value, what: &str) -> *mut QueryHandle {
    let name = CString::new(array_of(of[0].as_str().unwrap())).unwrap();
    let one = |op: i32, value: &Value| {
        let mut query = null_mut();
        let (integer, float) = (value.as_i64(), value.as_f64().unwrap());
        let (number, at) = match &integer {
            Some(i) => (5, (&raw const *i).cast()),
            None => (12, (&raw const float).cast()),
        };
        // SAFETY: all pointers lead to what the types say.
        ok(unsafe { sieva_query_create(source, name.as_ptr(), op, number, at, &mut query) }, what);
        query
    };
    match of[1].as_str().unwrap() {
        ">" => one(1, &of[2]),
        ">=" => one(2, &of[2]),
        "<" => one(3, &of[2]),
        "==" => one(5, &of[2]),
        "between" => {
            let (low, high) = if of[2].is_array() { (&of[2][0], &of[2][1]) } else { (&of[2], &of[3]) };
            // SAFETY: both are new handles.
            unsafe { and(one(2, low), one(4, high), what) }
        }
        other => panic!("operator {other}"),
    }
}

/// Both; the parts are freed.
unsafe fn and(a: *mut QueryHandle, b: *mut QueryHandle, what: &str) -> *mut QueryHandle {
    let mut both = null_mut();
    // SAFETY: the caller's handles.
    unsafe {
        ok(sieva_query_and(a, b, &mut both), what);
        sieva_query_free(a);
        sieva_query_free(b);
    }
    both
}

/// Asks one query; panics where the answer is not numpy's.
unsafe fn ask(source: *const SourceHandle, case: &Value, what: &str) {
    let parts = case["conditions"].as_array().unwrap();
    // SAFETY: handles are used until they are freed, here.
    unsafe {
        let each = parts.iter().map(|c| condition(source, c, what));
        let query = each.reduce(|a, b| and(a, b, what)).unwrap();
        // Rows of the target, whatever the conditions are on.
        let target = CString::new(array_of(case["target"].as_str().unwrap())).unwrap();
        let shape: Vec<u64> = case["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
        let start = vec![0; shape.len()];
        let rank = shape.len() as u32;
        ok(sieva_query_set_region(query, target.as_ptr(), 1, rank, start.as_ptr(), shape.as_ptr()), what);
        let (mut n, mut count) = (0, 0);
        ok(sieva_query_nhits(query, &mut n), what);
        assert_eq!(n, case["hits"].as_u64().unwrap(), "{what}");
        let mut selection: *mut SelectionHandle = null_mut();
        ok(sieva_query_selection(query, &mut selection), what);
        sieva_query_free(query);
        let mut positions = vec![0; n as usize];
        ok(sieva_selection_positions(selection, 0, n, positions.as_mut_ptr(), &mut count), what);
        sieva_selection_free(selection);
        assert_eq!(positions.first().copied(), case["first"].as_u64(), "{what}: first");
        assert_eq!(positions.last().copied(), case["last"].as_u64(), "{what}: last");
        let sum: u128 = positions.iter().map(|&p| u128::from(p)).sum();
        assert_eq!(sum.to_string(), case["idxsum"].to_string(), "{what}: sum");
    }
}

#[test]
fn real_files_give_numpys_answers() {
    let Some(dir) = directory() else { return };
    let text = std::fs::read_to_string(dir.join("queries.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut asked = 0;
    for case in &cases {
        let file = case["file"].as_str().unwrap();
        let what = format!("{file} {}", case["conditions"]);
        let readable = ["netcdf3/", "netcdf4/", "hdf5/"].iter().any(|f| file.starts_with(f));
        // Stored values are asked for in text alone.
        if !readable || what.contains("raw:") {
            continue;
        }
        let path = CString::new(dir.join(file).to_str().unwrap()).unwrap();
        let dims = CString::new(lined_up(case)).unwrap();
        let options = Options { dims: dims.as_ptr(), no_learning: 1, ..Options::DEFAULT };
        let mut source = null_mut();
        // SAFETY: the path is a text; the handle is closed below.
        unsafe {
            ok(sieva_open(path.as_ptr(), &options, &mut source), &what);
            ask(source, case, &what);
            sieva_close(source);
        }
        asked += 1;
    }
    println!("{asked} of {} queries asked", cases.len());
    assert!(asked >= LEAST, "{asked} queries asked");
}
