//! Every case of `data/cases.json`: the same bytes as zarr-python reads, whole and box by box.

use std::sync::Arc;

use serde_json::Value as Json;
use sieva_format::ArraySource;
use sieva_format::decoding::Number;
use sieva_format_zarr::{ZarrSource, is_zarr};
use sieva_types::{Bx, DType};

use crate::tree::{MemoryTree, numbers, open, texts};

fn cases() -> Vec<Json> {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cases.json");
    let path = std::env::var("SIEVA_ZARR_CASES").unwrap_or_else(|_| kept.into());
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| {
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
            .iter()
            .position(|&d| d == c)
            .unwrap()
    };
    let digits: Vec<usize> = text.bytes().filter(|&c| c != b'=').map(digit).collect();
    let bits = |i: usize| digits.get(i / 6).map_or(0, |d| d >> (5 - i % 6) & 1);
    (0..digits.len() * 6 / 8)
        .map(|byte| (0..8).fold(0, |sum, bit| sum << 1 | bits(byte * 8 + bit) as u8))
        .collect()
}

fn tree(case: &Json) -> MemoryTree {
    let objects = case["objects"].as_object().unwrap();
    MemoryTree::new(objects.iter().map(|(k, v)| (k.clone(), base64(v.as_str().unwrap()))))
}

#[test]
fn every_array_equals_what_zarr_python_reads() {
    let cases = cases();
    assert!(cases.len() > 150, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        for is_remote in [false, true] {
            let tree = MemoryTree { is_remote, ..tree(case) };
            assert!(is_zarr(&tree).unwrap());
            let checked =
                open(Arc::new(tree)).map_err(|e| e.to_string()).and_then(|source| check(case, &source));
            wrong.extend(checked.err().map(|why| format!("{}: {why}", case["name"])));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

fn check(case: &Json, source: &Arc<ZarrSource>) -> Result<(), String> {
    if !source.schema().left_out.is_empty() {
        return Err(format!("left out: {:?}", source.schema().left_out));
    }
    let mut count = 0;
    for (path, expected) in case["arrays"].as_object().unwrap() {
        let members = expected.get("members").and_then(Json::as_object);
        for (name, expected) in members.into_iter().flatten() {
            check_array(source, &format!("{path}.{name}"), expected)?;
            count += 1;
        }
        if members.is_none() {
            check_array(source, path, expected)?;
            count += 1;
        }
    }
    check_dims(case, source)?;
    check_missing(case, source)?;
    if count != source.schema().arrays.len() {
        return Err(format!("{} arrays, expected {count}", source.schema().arrays.len()));
    }
    Ok(())
}

fn check_array(source: &Arc<ZarrSource>, path: &str, expected: &Json) -> Result<(), String> {
    let array = source.schema().array(path).ok_or_else(|| format!("no array '{path}'"))?;
    let info = &source.schema().arrays[array];
    let shape: Vec<u64> = expected["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    if info.shape != shape {
        return Err(format!("'{path}' of shape {:?}, expected {shape:?}", info.shape));
    }
    let whole = Bx::whole(&shape);
    let message = |e: sieva_types::Error| e.to_string();
    if let Some(expected) = expected.get("texts") {
        let expected: Vec<&str> = expected.as_array().unwrap().iter().map(|t| t.as_str().unwrap()).collect();
        let given = texts(source, array, &whole).map_err(message)?;
        let last = Bx::new(shape.iter().map(|n| n - 1).collect(), vec![1; shape.len()]);
        let one = texts(source, array, &last).map_err(message)?;
        let same = given.iter().eq(expected.iter().copied()) && one.iter().eq(given.iter().rev().take(1));
        return if same { Ok(()) } else { Err(format!("'{path}' is {given:?}, expected {expected:?}")) };
    }
    if info.dtype.name() != expected["dtype"].as_str().unwrap() {
        return Err(format!("'{path}' of type {}, expected {}", info.dtype, expected["dtype"]));
    }
    let bytes = base64(expected["base64"].as_str().unwrap());
    let given = numbers(source, array, &whole).map_err(message)?;
    if given != bytes {
        return Err(format!("'{path}' ({}): other bytes\n{given:?}\n{bytes:?}", info.dtype));
    }
    let size = if info.dtype == DType::F16 { 4 } else { info.dtype.size() };
    check_rows(source, array, &bytes, size)
}

/// Row by row, from the second element of each on.
fn check_rows(source: &Arc<ZarrSource>, array: usize, bytes: &[u8], size: usize) -> Result<(), String> {
    let shape = &source.schema().arrays[array].shape;
    let (Some(&rows), Some(&last)) = (shape.first(), shape.last()) else { return Ok(()) };
    if shape.len() != 2 || last < 2 {
        return Ok(());
    }
    for row in 0..rows {
        let bx = Bx::new(vec![row, 1], vec![1, last - 1]);
        let given = numbers(source, array, &bx).map_err(|e| e.to_string())?;
        let start = (row * last + 1) as usize * size;
        if given != bytes[start..start + (last - 1) as usize * size] {
            return Err(format!("row {row} differs"));
        }
    }
    Ok(())
}

fn check_dims(case: &Json, source: &Arc<ZarrSource>) -> Result<(), String> {
    let schema = source.schema();
    for (path, names) in case["dims"].as_object().unwrap() {
        let info = &schema.arrays[schema.array(path).unwrap()];
        let given: Vec<&str> = info.dims.iter().map(|&d| schema.dims[d].name.as_str()).collect();
        let expected: Vec<&str> = names.as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
        let coordinates = info.dims.iter().all(|&d| schema.dims[d].coordinate.is_some());
        if given != expected || !coordinates {
            return Err(format!("'{path}' has dimensions {given:?}, expected {expected:?} with coordinates"));
        }
    }
    Ok(())
}

/// The stored value that means "missing" is the one that xarray masks.
fn check_missing(case: &Json, source: &Arc<ZarrSource>) -> Result<(), String> {
    for (path, fill) in case.get("missing").and_then(Json::as_object).into_iter().flatten() {
        let info = &source.schema().arrays[source.schema().array(path).unwrap()];
        let given: Vec<f64> = info
            .decoding
            .missing
            .iter()
            .map(|n| match n {
                Number::Int(i) => *i as f64,
                Number::Float(f) => *f,
            })
            .collect();
        let expected: Vec<f64> = fill.as_str().map(|t| t.parse().unwrap()).into_iter().collect();
        if given != expected {
            return Err(format!("missing values of '{path}' are {given:?}, expected {expected:?}"));
        }
    }
    Ok(())
}

#[test]
fn a_remote_tree_is_told_what_will_be_needed() {
    let cases = cases();
    let Some(case) = cases.iter().find(|c| c["name"] == "shards end") else { return };
    let tree = Arc::new(MemoryTree { is_remote: true, ..tree(case) });
    let source = open(Arc::clone(&tree) as _).unwrap();
    tree.announced.lock().unwrap().clear();
    tree.asked.lock().unwrap().clear();
    numbers(&source, 0, &Bx::whole(&[11, 7])).unwrap();
    let announced: Vec<_> =
        tree.announced.lock().unwrap().iter().map(|w| (w.key.clone(), w.span.clone())).collect();
    let asked = tree.asked.lock().unwrap();
    assert!(asked.len() > 4);
    assert!(asked.iter().all(|a| announced.contains(a)), "{asked:?} of {announced:?}");
    // Each index once.
    let indexes = asked.iter().filter(|(_, span)| matches!(span, sieva_store::Span::Last(_))).count();
    assert_eq!(indexes, 4);
}
