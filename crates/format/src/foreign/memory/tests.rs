//! Boxes of arrays in memory beside the same boxes of one whole array.

use super::*;
use crate::{ArraySource, LibraryReader};

fn bytes(values: &[i32]) -> MemoryValues {
    MemoryValues::Bytes(Arc::new(values.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>()))
}

fn texts(values: &[&str]) -> MemoryValues {
    MemoryValues::Texts(values.iter().map(|s| (*s).to_owned()).collect())
}

/// The values of a box of an array that holds its own positions.
fn values_of(shape: &[u64], bx: &Bx) -> Vec<i32> {
    let mut out = Vec::new();
    let strides = crate::layout::c_strides(shape, 1);
    for number in 0..bx.len() {
        let (mut rest, mut at) = (number, 0);
        for d in (0..bx.rank()).rev() {
            at += (bx.start[d] + rest % bx.shape[d]) * strides[d];
            rest /= bx.shape[d];
        }
        out.push(at as i32);
    }
    out
}

/// Cuts a box in two along its longest dimension, until there are `n` boxes, or as many as elements.
fn cut(shape: &[u64], n: usize) -> Vec<Bx> {
    let mut boxes = vec![Bx::whole(shape)];
    while boxes.len() < n && boxes.iter().any(|bx| bx.len() > 1) {
        let largest = (0..boxes.len()).max_by_key(|&i| boxes[i].len()).unwrap();
        let bx = boxes.swap_remove(largest);
        let d = (0..bx.rank()).max_by_key(|&d| bx.shape[d]).unwrap();
        let (mut low, mut high) = (bx.clone(), bx);
        low.shape[d] = (low.shape[d] / 3).max(1);
        high.start[d] += low.shape[d];
        high.shape[d] -= low.shape[d];
        boxes.extend([low, high].into_iter().filter(|bx| !bx.is_empty()));
    }
    boxes
}

#[test]
fn boxes_are_those_of_the_whole_array_however_it_is_cut() {
    for (shape, blocks) in [(vec![7], 3), (vec![5, 4], 6), (vec![3, 5, 4], 9), (vec![2, 2, 3, 3], 1)] {
        let mut arrays = MemoryArrays::default();
        arrays.array("g/a", DType::I32, &shape, None).unwrap();
        for bx in cut(&shape, blocks) {
            let values = bytes(&values_of(&shape, &bx));
            arrays.block("/g/a", bx, values).unwrap();
        }
        let (source, _loan) = arrays.source("step 1", "1").unwrap();
        for bx in cut(&shape, 8).into_iter().chain([Bx::whole(&shape)]) {
            let mut out = vec![0; 4 * bx.len() as usize];
            source.read_library(0, &bx, &mut out).unwrap();
            let found: Vec<i32> =
                out.chunks_exact(4).map(|b| i32::from_ne_bytes(b.try_into().unwrap())).collect();
            assert_eq!(found, values_of(&shape, &bx), "{bx:?} of {shape:?}");
        }
    }
}

#[test]
fn scalars_texts_and_empty_arrays_are_arrays_too() {
    let mut arrays = MemoryArrays::default();
    arrays.array("n", DType::I32, &[], None).unwrap();
    arrays.block("n", Bx::whole(&[]), bytes(&[7])).unwrap();
    arrays.array("t", DType::Str, &[2, 3], None).unwrap();
    arrays.block("t", Bx::new(vec![0, 0], vec![2, 2]), texts(&["a", "b", "d", ""])).unwrap();
    arrays.block("t", Bx::new(vec![0, 2], vec![2, 1]), texts(&["c", "ü"])).unwrap();
    arrays.array("none", DType::F64, &[0, 3], None).unwrap();
    arrays.array("b", DType::Bool, &[3], None).unwrap();
    let flags = MemoryValues::Bytes(Arc::new(vec![0_u8, 1, 200]));
    arrays.block("b", Bx::whole(&[3]), flags).unwrap();
    let (source, _loan) = arrays.source("step 1", "1").unwrap();
    let mut out = [0; 4];
    source.read_library(0, &Bx::whole(&[]), &mut out).unwrap();
    assert_eq!(i32::from_ne_bytes(out), 7);
    let all = source.read_library_strings(1, &Bx::whole(&[2, 3])).unwrap();
    assert_eq!(all, ["a", "b", "c", "d", "", "ü"]);
    let part = source.read_library_strings(1, &Bx::new(vec![1, 1], vec![1, 2])).unwrap();
    assert_eq!(part, ["", "ü"]);
    source.read_library(2, &Bx::whole(&[0, 3]), &mut []).unwrap();
    source.read_library(3, &Bx::whole(&[3]), &mut out[..3]).unwrap();
    assert_eq!(out[..3], [0, 1, 1]);
}

#[test]
fn names_are_those_of_the_same_arrays_in_a_bp_file() {
    let mut arrays = MemoryArrays::default();
    arrays.array("fields/T", DType::I32, &[2, 2], None).unwrap();
    arrays.block("fields/T", Bx::whole(&[2, 2]), bytes(&[1, 2, 3, 4])).unwrap();
    arrays.array("y", DType::I32, &[2], Some(vec!["y".into()])).unwrap();
    arrays.block("y", Bx::whole(&[2]), bytes(&[10, 20])).unwrap();
    arrays.attribute("fields/T/units", AttrValue::Text("K".into()));
    arrays.attribute("fields/T/_FillValue", AttrValue::Ints(DType::I32, vec![3]));
    arrays.attribute("title", AttrValue::Text("run 7".into()));
    arrays.leave_out("c", "is of complex numbers").unwrap();
    let (source, _loan) = arrays.source("step 1", "1").unwrap();
    let schema = source.schema();
    let dims: Vec<&str> = schema.dims.iter().map(|d| d.path.as_str()).collect();
    assert_eq!(dims, ["fields/dim_2", "fields/dim_2_1", "y"]);
    assert_eq!(schema.dims[2].coordinate, Some(1));
    assert_eq!(schema.arrays[0].attrs[1], ("units".into(), AttrValue::Text("K".into())));
    assert_eq!(schema.attrs(), [("title".into(), AttrValue::Text("run 7".into()))]);
    assert_eq!(schema.groups.iter().map(|g| g.path.as_str()).collect::<Vec<_>>(), ["", "fields"]);
    assert_eq!(schema.left_out[0].1.message(), "'c' is of complex numbers");
}

#[test]
fn what_contradicts_itself_is_refused() {
    let refused = |done: Result<()>| assert_eq!(done.unwrap_err().kind(), ErrorKind::InvalidValue);
    let mut arrays = MemoryArrays::default();
    refused(arrays.array("/", DType::I32, &[1], None));
    refused(arrays.array("a", DType::I32, &[1 << 40, 1 << 40], None));
    refused(arrays.array("a", DType::I32, &[1; 65], None));
    refused(arrays.array("a", DType::I32, &[4], Some(vec!["y".into(), "x".into()])));
    arrays.array("a", DType::I32, &[4], None).unwrap();
    refused(arrays.array("a", DType::I32, &[4], None));
    refused(arrays.leave_out("a", "is none"));
    let unknown = arrays.block("b", Bx::whole(&[1]), bytes(&[1])).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::UnknownArray);
    refused(arrays.block("a", Bx::new(vec![2], vec![3]), bytes(&[1, 2, 3])));
    refused(arrays.block("a", Bx::new(vec![u64::MAX], vec![2]), bytes(&[1, 2])));
    refused(arrays.block("a", Bx::whole(&[2, 2]), bytes(&[1, 2, 3, 4])));
    refused(arrays.block("a", Bx::whole(&[4]), bytes(&[1, 2, 3])));
    refused(arrays.block("a", Bx::whole(&[4]), MemoryValues::Bytes(Arc::new(vec![0; 15]))));
    refused(arrays.block("a", Bx::whole(&[4]), texts(&["1", "2", "3", "4"])));
}

#[test]
fn gaps_and_overlaps_are_refused_where_all_is_known() {
    let of = |boxes: &[(u64, u64)]| {
        let mut arrays = MemoryArrays::default();
        arrays.array("a", DType::I32, &[4, 1], None).unwrap();
        for &(start, n) in boxes {
            let values = bytes(&vec![1; n as usize]);
            arrays.block("a", Bx::new(vec![start, 0], vec![n, 1]), values).unwrap();
        }
        arrays.source("step 1", "1").map(drop).map_err(|e| e.message().to_owned())
    };
    assert_eq!(of(&[(2, 2), (0, 1), (1, 1), (3, 0)]), Ok(()));
    assert_eq!(of(&[(0, 2)]), Err("of 'a' 2 of 4 values were given".into()));
    let overlap = "two blocks of 'a' overlap: from [0, 0] of shape [3, 1] and from [2, 0] of shape [2, 1]";
    assert_eq!(of(&[(2, 2), (0, 3)]), Err(overlap.into()));
    let mut twice = MemoryArrays::default();
    twice.array("n", DType::I32, &[], None).unwrap();
    for value in [1, 2] {
        twice.block("n", Bx::whole(&[]), bytes(&[value])).unwrap();
    }
    assert_eq!(twice.source("step 1", "1").map(drop).unwrap_err().kind(), ErrorKind::InvalidValue);
    let mut lengths = MemoryArrays::default();
    for (path, n) in [("a", 2), ("b", 3)] {
        lengths.array(path, DType::I32, &[n], Some(vec!["x".into()])).unwrap();
        lengths.block(path, Bx::whole(&[n]), bytes(&vec![0; n as usize])).unwrap();
    }
    let e = lengths.source("step 1", "1").map(drop).unwrap_err();
    assert_eq!(e.message(), "dimension 'x' of 'b' has length 3, elsewhere it has 2");
}

#[test]
fn memory_that_was_taken_back_is_not_read() {
    let mut arrays = MemoryArrays::default();
    arrays.array("a", DType::I32, &[2], None).unwrap();
    arrays.block("a", Bx::whole(&[2]), bytes(&[1, 2])).unwrap();
    let (source, loan) = arrays.source("step 1", "1").unwrap();
    let mut out = [0; 8];
    source.read_library(0, &Bx::whole(&[2]), &mut out).unwrap();
    drop(loan);
    let e = source.read_library(0, &Bx::whole(&[2]), &mut out).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::StaleSource);
}
