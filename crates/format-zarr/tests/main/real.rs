//! Real trees of other writers, where they are at hand: `SIEVA_TEST_DATA`, or `../shared/data` beside the repository.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use sieva_format::ArraySource;
use sieva_store::DirTree;
use sieva_types::{Bx, DType};

use crate::tree::{numbers, open, read_all};

fn data() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("SIEVA_TEST_DATA").map_or_else(beside, PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no test data at {}", path.display());
    None
}

/// Sums and extremes that numpy found, of float64 and smaller types.
#[test]
fn arrays_have_the_extremes_that_numpy_found() {
    let Some(data) = data() else { return };
    let mut checked = 0;
    for set in ["dev", "odd"] {
        let oracle: Json =
            serde_json::from_slice(&std::fs::read(data.join(set).join("oracle.json")).unwrap()).unwrap();
        for (file, arrays) in oracle.as_object().unwrap().iter().filter(|(file, _)| file.contains("zarr")) {
            let path = data.join(set).join(file);
            if !path.is_dir() {
                continue;
            }
            let source =
                open(Arc::new(DirTree::open(&path).unwrap())).unwrap_or_else(|e| panic!("{file}: {e}"));
            for (name, expected) in arrays.as_object().unwrap() {
                let name = if name.is_empty() { "data" } else { name };
                checked += usize::from(
                    check(&source, name, expected).unwrap_or_else(|e| panic!("{file}: {name}: {e}")),
                );
            }
        }
    }
    println!("{checked} arrays");
    assert!(checked > 80, "{checked} arrays");
}

/// Whether there was something to check.
fn check(source: &Arc<sieva_format_zarr::ZarrSource>, name: &str, expected: &Json) -> Result<bool, String> {
    let Some(array) = source.schema().array(name) else {
        let is_left_out = source.schema().left_out.iter().any(|(path, _)| path.starts_with(name));
        let members = source.schema().arrays.iter().any(|a| a.path.starts_with(&format!("{name}.")));
        return if is_left_out || members { Ok(false) } else { Err("no such array".into()) };
    };
    let info = &source.schema().arrays[array];
    let (Some(low), Some(high)) = (expected["min"].as_str(), expected["max"].as_str()) else {
        return Ok(false);
    };
    let (Ok(low), Ok(high)) = (low.parse::<f64>(), high.parse::<f64>()) else { return Ok(false) };
    if info.dtype == DType::Str || info.dtype == DType::F16 {
        return Ok(false);
    }
    let bytes = match numbers(source, array, &Bx::whole(&info.shape)) {
        Err(e) if e.kind() == sieva_types::ErrorKind::FilterUnavailable => return Ok(false),
        read => read.map_err(|e| e.to_string())?,
    };
    let size = info.dtype.size();
    let float = |b: &[u8]| match info.dtype {
        DType::F64 => f64::from_le_bytes(b.try_into().unwrap()),
        DType::F32 => f64::from(f32::from_le_bytes(b.try_into().unwrap())),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 | DType::Bool => {
            b.iter().rev().fold(0_u64, |n, &b| n << 8 | u64::from(b)) as f64
        }
        _ => {
            let unsigned = b.iter().rev().fold(0_u64, |n, &b| n << 8 | u64::from(b));
            (unsigned.cast_signed() << (64 - 8 * size) >> (64 - 8 * size)) as f64
        }
    };
    let values = || bytes.chunks_exact(size).map(float).filter(|v| !v.is_nan());
    let (least, greatest) =
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    let nan = bytes.chunks_exact(size).filter(|b| float(b).is_nan()).count() as u64;
    let same = (least, greatest) == (low, high) && expected["nan"].as_u64().is_none_or(|n| n == nan);
    if same {
        Ok(true)
    } else {
        Err(format!("{least}..{greatest}, {nan} NaN; expected {low}..{high}, {}", expected["nan"]))
    }
}

/// Odd trees of all writers: whatever is in them, an answer or an error.
#[test]
fn odd_trees_end_in_answers_or_errors() {
    let Some(data) = data() else { return };
    let mut opened = 0;
    for folder in std::fs::read_dir(data.join("odd")).unwrap().map(|e| e.unwrap().path()) {
        let is_zarr = folder.file_name().unwrap().to_string_lossy().starts_with("zarr-");
        for path in is_zarr
            .then(|| std::fs::read_dir(&folder).unwrap())
            .into_iter()
            .flatten()
            .map(|e| e.unwrap().path())
        {
            let Ok(tree) = DirTree::open(&path) else { continue };
            match open(Arc::new(tree)) {
                Err(e) => println!("{}: {e}", path.display()),
                Ok(source) => {
                    opened += 1;
                    for (left, why) in &source.schema().left_out {
                        println!("{}: {left} left out: {why}", path.display());
                    }
                    if let Err(e) = read_all(&source) {
                        println!("{}: {e}", path.display());
                    }
                }
            }
        }
    }
    assert!(opened > 60, "{opened} trees");
}
