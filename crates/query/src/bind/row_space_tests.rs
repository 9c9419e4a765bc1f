//! The row space of arrays that line up, and of those that do not.

use sieva_format::decoding::Decoding;
use sieva_format::schema::{ArrayInfo, Dimension, Naming, StorageInfo};
use sieva_types::DType;

use super::*;

/// Arrays with the paths of their dimensions and lengths; dimensions that begin with `p` have no name.
fn schema(arrays: &[(&str, &[(&str, u64)])]) -> Schema {
    let mut schema = Schema::default();
    for (path, own) in arrays {
        let mut dims = Vec::new();
        for &(dim, len) in *own {
            let known = schema.dims.iter().position(|d| d.path == dim);
            dims.push(known.unwrap_or_else(|| {
                let naming = if dim.starts_with('p') { Naming::Length } else { Naming::File };
                let (name, path) = (dim.to_string(), dim.to_string());
                schema.dims.push(Dimension { name, path, len, unlimited: false, naming, coordinate: None });
                schema.dims.len() - 1
            }));
        }
        schema.arrays.push(ArrayInfo {
            path: (*path).into(),
            dtype: DType::F64,
            shape: own.iter().map(|d| d.1).collect(),
            dims,
            attrs: Vec::new(),
            enum_names: Vec::new(),
            decoding: Decoding::none(DType::F64),
            storage: StorageInfo::default(),
            coordinates: Vec::new(),
        });
    }
    schema
}

fn rows_of(schema: &Schema, arrays: &[usize], dims: &[usize], cross: bool) -> Result<Vec<String>> {
    let (rows, _) = RowSpace::of(schema, &Parts { base: &[], arrays, dims, cross })?;
    Ok(rows.names.iter().zip(&rows.shape).map(|(n, l)| format!("{n}={l}")).collect())
}

/// The rows of all arrays, whatever their order.
fn rows(arrays: &[(&str, &[(&str, u64)])], cross: bool) -> std::result::Result<Vec<String>, Error> {
    let schema = schema(arrays);
    let forth: Vec<usize> = (0..arrays.len()).collect();
    let back: Vec<usize> = forth.iter().rev().copied().collect();
    let (one, other) = (rows_of(&schema, &forth, &[], cross), rows_of(&schema, &back, &[], cross));
    match (&one, &other) {
        (Ok(one), Ok(other)) => {
            let sorted = |l: &Vec<String>| {
                let mut l = l.clone();
                l.sort();
                l
            };
            assert_eq!(sorted(one), sorted(other));
        }
        (Err(one), Err(other)) => assert_eq!(one.kind(), other.kind()),
        _ => panic!("{one:?}, but in the other order {other:?}"),
    }
    one
}

fn lined_up(arrays: &[(&str, &[(&str, u64)])], expected: &[&str]) {
    assert_eq!(rows(arrays, false).unwrap(), expected);
    assert_eq!(rows(arrays, true).unwrap(), expected);
}

fn refused(arrays: &[(&str, &[(&str, u64)])]) -> (String, String) {
    let e = rows(arrays, false).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::UnalignedDimensions);
    (e.message().to_owned(), e.hint_text().unwrap().to_owned())
}

#[test]
fn unnamed_dimensions_of_one_length_are_one() {
    lined_up(&[("a", &[("p0", 9)]), ("g/b", &[("p1", 9)])], &["p0=9"]);
    lined_up(&[("a", &[("p0", 9), ("p1", 4)]), ("g/b", &[("p2", 4)])], &["p0=9", "p1=4"]);
    lined_up(&[("a", &[("p0", 9), ("p1", 4)]), ("g/b", &[("p2", 9)])], &["p0=9", "p1=4"]);
    lined_up(&[("a", &[("p0", 9), ("p1", 4)]), ("g/b", &[("p2", 4), ("p3", 9)])], &["p0=9", "p1=4"]);
    lined_up(&[("a", &[("p0", 3), ("p1", 3)]), ("g/b", &[("p2", 3), ("p3", 3)])], &["p0=3", "p1=3"]);
    lined_up(
        &[("a", &[("p0", 3), ("p1", 3), ("p2", 5)]), ("g/b", &[("p3", 3), ("p4", 3)])],
        &["p0=3", "p1=3", "p2=5"],
    );
    lined_up(&[("x", &[("p0", 9)]), ("y", &[("p1", 4)]), ("z", &[("p2", 9), ("p3", 4)])], &["p0=9", "p1=4"]);
}

#[test]
fn unnamed_dimensions_take_the_one_name_of_their_length() {
    lined_up(&[("a", &[("lat", 9), ("lon", 4)]), ("b", &[("p0", 9)])], &["lat=9", "lon=4"]);
    lined_up(&[("b", &[("p0", 4), ("p1", 9)]), ("a", &[("lat", 9), ("lon", 4)])], &["lon=4", "lat=9"]);
    lined_up(&[("a", &[("x", 3), ("y", 3)]), ("b", &[("p0", 3), ("p1", 3)])], &["x=3", "y=3"]);
    lined_up(&[("a", &[("z", 3), ("p0", 3)]), ("b", &[("z", 3), ("p1", 3)])], &["z=3", "p0=3"]);
    lined_up(&[("a", &[("z", 3), ("p0", 3)]), ("b", &[("z", 3)])], &["z=3", "p0=3"]);
}

#[test]
fn more_than_one_way_is_an_error_with_the_names_that_decide() {
    let (message, hint) = refused(&[("sq", &[("p0", 3), ("p1", 3)]), ("row", &[("p0", 3)])]);
    assert_eq!(
        message,
        "'row' (p0: 3) has a dimension of length 3 without a name, and the arrays of the query have 2 of that \
         length: there is more than one way to line them up"
    );
    assert_eq!(
        hint,
        "say which are one, as by dims={\"sq\": [\"axis0\", \"axis1\"], \"row\": [\"axis0\"]} \
         (--dims 'sq=axis0,axis1' --dims 'row=axis0')"
    );
    let (message, hint) =
        refused(&[("a", &[("x", 3), ("lat", 5)]), ("b", &[("y", 3), ("lat", 5)]), ("u", &[("p", 3)])]);
    assert!(message.contains("have 2 of that length (x, y)"), "{message}");
    assert!(hint.contains("{\"u\": [\"x\"]} (--dims 'u=x')"), "{hint}");
    refused(&[("a", &[("x", 3), ("y", 3)]), ("b", &[("y", 3), ("x", 3)]), ("u", &[("p0", 3), ("p1", 3)])]);
    refused(&[("a", &[("z", 3), ("p0", 3)]), ("b", &[("p1", 3)])]);
    refused(&[("a", &[("p0", 3), ("p1", 4), ("p2", 3)]), ("b", &[("p3", 4), ("p4", 3), ("p5", 3)])]);
    // A product does not say it either.
    assert!(rows(&[("sq", &[("p0", 3), ("p1", 3)]), ("row", &[("p0", 3)])], true).is_err());
}

#[test]
fn a_product_has_to_be_asked_for() {
    let lengths: [(&str, &[(&str, u64)]); 2] = [("a", &[("p0", 9)]), ("b", &[("p1", 4)])];
    let (message, hint) = refused(&lengths);
    assert_eq!(
        message,
        "'a' (p0: 9) and 'b' (p1: 4) do not line up: nothing says which positions along 'p0' and 'p1' belong \
         together"
    );
    assert!(hint.starts_with("no names given by dims= can line up"), "{hint}");
    assert!(hint.ends_with("cross=True (--cross, CROSS behind FROM) asks for each position with each"));
    assert_eq!(rows(&lengths, true).unwrap(), ["p0=9", "p1=4"]);
    refused(&[("a", &[("p0", 9), ("p1", 3)]), ("b", &[("p0", 9), ("p2", 5)])]);
    let (_, hint) = refused(&[("g/a", &[("g/x", 5)]), ("h/b", &[("h/x", 5)])]);
    assert!(hint.starts_with("if they are one, say so by dims={\"h/b\": [\"g/x\"]} (--dims 'h/b=g/x')"));
}

#[test]
fn named_dimensions_belong_together_by_arrays_of_the_query_or_of_the_file() {
    let all: [(&str, &[(&str, u64)]); 5] = [
        ("temp", &[("time", 2), ("lat", 3), ("lon", 4)]),
        ("lat", &[("lat", 3)]),
        ("lon", &[("lon", 4)]),
        ("station", &[("station", 7)]),
        ("one", &[("p0", 1)]),
    ];
    let schema = schema(&all);
    let of = |arrays: &[usize], cross| rows_of(&schema, arrays, &[], cross);
    assert_eq!(of(&[1, 2], false).unwrap(), ["lat=3", "lon=4"]);
    assert_eq!(of(&[1, 4], false).unwrap(), ["lat=3", "p0=1"], "one position multiplies nothing");
    assert_eq!(of(&[1, 3], false).unwrap_err().kind(), ErrorKind::UnalignedDimensions);
    assert_eq!(of(&[3, 1], true).unwrap(), ["station=7", "lat=3"]);
    let (lat, station) = (schema.arrays[1].dims[0], schema.arrays[3].dims[0]);
    assert_eq!(rows_of(&schema, &[2], &[lat], false).unwrap(), ["lon=4", "lat=3"]);
    assert!(rows_of(&schema, &[2], &[station], false).is_err());
}

#[test]
fn a_dimension_named_by_itself_is_the_one_that_it_is_lined_up_with() {
    let schema = schema(&[("a", &[("p0", 9), ("p1", 4)]), ("b", &[("p2", 4)])]);
    let (rows, axes) =
        RowSpace::of(&schema, &Parts { base: &[], arrays: &[0, 1], dims: &[2], cross: false }).unwrap();
    assert_eq!((rows.axis(2), axes), (Some(1), vec![vec![0, 1], vec![1]]));
}

#[test]
fn rows_of_an_earlier_query_stay_as_they_are() {
    let schema = schema(&[("b", &[("p0", 4)]), ("a", &[("p1", 9), ("p2", 4)])]);
    let (rows, axes) =
        RowSpace::of(&schema, &Parts { base: &[1, 2], arrays: &[0], dims: &[], cross: false }).unwrap();
    assert_eq!((rows.dims, axes), (vec![1, 2], vec![vec![1]]));
}

fn merged(lists: &[&[usize]]) -> Vec<usize> {
    let mut order = Vec::new();
    lists.iter().for_each(|l| insert(&mut order, l));
    order
}

#[test]
fn a_missing_dimension_goes_next_to_its_neighbour() {
    assert_eq!(merged(&[&[0, 1, 2, 3], &[2, 3], &[1]]), [0, 1, 2, 3]);
    assert_eq!(merged(&[&[1, 2], &[0, 1]]), [0, 1, 2]);
    assert_eq!(merged(&[&[0, 1], &[1, 5]]), [0, 1, 5]);
    assert_eq!(merged(&[&[0], &[7]]), [0, 7]);
    assert_eq!(merged(&[&[0, 1], &[1, 0]]), [0, 1]);
}
