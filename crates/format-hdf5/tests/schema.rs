//! What a file says of itself: groups, links, dimensions, attributes.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{array, dims, written};
use hdf5_metno::types::VarLenUnicode;
use hdf5_metno::{File, ObjectReference1};
use sieva_format::schema::{AttrValue, attr};
use sieva_format::{ArraySource, LibraryReader};
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};
use sieva_types::{DType, ErrorKind};

fn text(value: &str) -> VarLenUnicode {
    value.parse().unwrap()
}

/// Makes `path` a dimension scale and attaches it to the axes of `to`.
fn scale(file: &File, path: &str, name: &str) -> hdf5_metno::Result<()> {
    let d = file.dataset(path)?;
    d.new_attr::<VarLenUnicode>().create("CLASS")?.write_scalar(&text("DIMENSION_SCALE"))?;
    d.new_attr::<VarLenUnicode>().create("NAME")?.write_scalar(&text(name))
}

fn attach(file: &File, to: &str, scales: &[&str]) -> hdf5_metno::Result<()> {
    use hdf5_metno::types::VarLenArray;
    let lists: Vec<VarLenArray<ObjectReference1>> = scales
        .iter()
        .map(|path| Ok(VarLenArray::from_slice(&[file.reference::<ObjectReference1>(path)?])))
        .collect::<hdf5_metno::Result<_>>()?;
    let list = file
        .dataset(to)?
        .new_attr::<VarLenArray<ObjectReference1>>()
        .shape(lists.len())
        .create("DIMENSION_LIST")?;
    list.write_raw(&lists)
}

#[test]
fn each_object_once_and_other_names_as_aliases() {
    let (_dir, source) = written(|file| {
        let g = file.create_group("g")?;
        g.new_dataset_builder().with_data(&[1_i32, 2]).create("x")?;
        g.link_hard("/g", "again")?;
        file.link_hard("/g/x", "y")?;
        file.link_soft("/g/x", "soft")?;
        file.link_soft("/nowhere", "dangling")?;
        file.link_soft("/g", "h")?;
        file.link_external("/etc/passwd", "/x", "out")?;
        Ok(())
    });
    let schema = source.schema();
    let paths: Vec<_> = schema.arrays.iter().map(|a| a.path.as_str()).collect();
    assert_eq!(paths, ["y"], "the root's own names come first");
    let mut aliases: Vec<_> = schema.aliases.iter().map(|(path, i)| (path.as_str(), *i)).collect();
    aliases.sort_unstable();
    assert_eq!(aliases, [("g/again/x", 0), ("g/x", 0), ("h/x", 0), ("soft", 0)]);
    assert_eq!(schema.groups.iter().map(|g| g.path.as_str()).collect::<Vec<_>>(), ["", "g"]);
    assert!(
        schema.warnings.iter().any(|w| w.contains("'dangling'") && w.contains("'/nowhere'")),
        "{schema:?}"
    );
    assert!(schema.warnings.iter().any(|w| w.contains("'out'") && w.contains("/etc/passwd")), "{schema:?}");
}

#[test]
fn names_of_groups_are_expanded_once() {
    let (_dir, source) = written(|file| {
        let g = file.create_group("g")?;
        g.new_dataset_builder().with_data(&[1_i32, 2]).create("x")?;
        g.link_hard("/g", "loop")?;
        file.link_soft("/g", "h")
    });
    let aliases: Vec<_> = source.schema().aliases.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(aliases, ["g/loop/x", "h/x"]);
}

#[test]
fn external_links_are_followed_under_a_root_only() {
    let dir = common::Dir::new();
    let other = File::create(dir.file("b.h5")).unwrap();
    other.new_dataset_builder().with_data(&[1.0_f64, 2.0]).create("x").unwrap();
    other.close().unwrap();
    let main = File::create(dir.file("a.h5")).unwrap();
    main.link_external("b.h5", "/x", "far").unwrap();
    main.close().unwrap();
    assert!(common::open(&dir.file("a.h5")).schema().arrays.is_empty());
    let options = Hdf5Options { external_roots: vec![dir.0.clone()], ..Hdf5Options::default() };
    let source = Hdf5Source::open(&dir.file("a.h5"), &options).unwrap();
    let (i, far) = array(&source, "far");
    assert_eq!(far.shape, [2]);
    let mut out = [0; 16];
    source.read_library(i, &sieva_types::Bx::whole(&[2]), &mut out).unwrap();
    assert_eq!(out[8..], 2.0_f64.to_ne_bytes());
}

#[test]
fn dimensions_come_from_scales_by_object() {
    let (_dir, source) = written(|file| {
        file.create_group("g")?;
        file.new_dataset_builder().with_data(&[10.0_f64, 20.0]).create("lat")?;
        file.new_dataset_builder().with_data(&[1.0_f64, 2.0]).create("g/lat")?;
        file.new_dataset::<f32>().shape((2, 2, 3)).create("g/t")?;
        file.new_dataset::<i32>().shape(3).create("n")?;
        scale(file, "lat", "latitude")?;
        scale(file, "g/lat", "")?;
        scale(file, "n", "This is a netCDF dimension but not a netCDF variable.         3")?;
        attach(file, "g/t", &["/lat", "/lat", "/n"])
    });
    let schema = source.schema();
    assert_eq!(schema.format, "netCDF-4");
    assert_eq!(dims(&source, "g/t"), ["lat", "lat_1", "n"]);
    assert!(schema.array("n").is_none(), "a dimension only");
    let [lat, again, n] = array(&source, "g/t").1.dims[..] else { panic!() };
    assert_eq!(schema.dims[lat].coordinate, schema.array("lat"));
    assert_eq!((schema.dims[again].coordinate, schema.dims[n].coordinate), (None, None));
    assert_eq!(dims(&source, "g/lat"), ["g/lat"]);
    assert!(array(&source, "lat").1.attrs.is_empty(), "bookkeeping is hidden");
}

#[test]
fn labels_name_dimensions_within_a_group() {
    let (_dir, source) = written(|file| {
        for name in ["a", "b"] {
            let d = file.new_dataset::<u8>().shape((2, 3)).create(name)?;
            let labels = d.new_attr::<VarLenUnicode>().shape(2).create("DIMENSION_LABELS")?;
            labels.write_raw(&[text("row"), text("")])?;
        }
        Ok(())
    });
    assert_eq!(dims(&source, "a"), ["row", "phony_dim_0"]);
    assert_eq!(dims(&source, "b"), dims(&source, "a"));
}

#[test]
fn phony_dimensions_are_those_of_the_netcdf_library() {
    let (_dir, source) = written(|file| {
        file.create_group("g")?;
        file.new_dataset::<u8>().shape((3, 3, 2)).create("a")?;
        file.new_dataset::<u8>().shape((2, 3)).create("b")?;
        file.new_dataset::<u8>().shape(3).create("g/c")?;
        Ok(())
    });
    assert_eq!(dims(&source, "g/c"), ["g/phony_dim_0"], "inner groups are numbered first");
    assert_eq!(dims(&source, "a"), ["phony_dim_1", "phony_dim_2", "phony_dim_3"]);
    assert_eq!(dims(&source, "b"), ["phony_dim_3", "phony_dim_1"]);
}

#[test]
fn dimension_names_of_the_user_are_global() {
    let dir = common::Dir::new();
    let path = dir.file("a.h5");
    let file = File::create(&path).unwrap();
    file.create_group("g").unwrap();
    file.new_dataset::<f32>().shape((4, 5)).create("g/theta").unwrap();
    file.new_dataset_builder().with_data(&[0_i32; 4]).create("angle").unwrap();
    file.new_dataset::<f32>().shape(7).create("long").unwrap();
    file.close().unwrap();
    let named = |dims: &[(&str, &[&str])]| Hdf5Options {
        dims: dims.iter().map(|(p, n)| (p.to_string(), n.iter().map(|s| s.to_string()).collect())).collect(),
        ..Hdf5Options::default()
    };
    let open = |dims: &[(&str, &[&str])]| Hdf5Source::open(&path, &named(dims));
    let source = open(&[("g/theta", &["angle", "k"]), ("angle", &["angle"])]).unwrap();
    assert_eq!(dims(&source, "g/theta"), ["angle", "k"]);
    let angle = array(&source, "g/theta").1.dims[0];
    assert_eq!(source.schema().dims[angle].coordinate, source.schema().array("angle"));
    let refused = |dims: &[(&str, &[&str])]| open(dims).err().map(|e| e.kind());
    assert_eq!(refused(&[("none", &["a"])]), Some(ErrorKind::UnknownArray));
    assert_eq!(refused(&[("g/theta", &["a"])]), Some(ErrorKind::InvalidValue));
    assert_eq!(refused(&[("angle", &["a"]), ("long", &["a"])]), Some(ErrorKind::DimensionMismatch));
}

#[test]
fn attributes_keep_type_and_value() {
    let (_dir, source) = written(|file| {
        let d = file.new_dataset_builder().with_data(&[1_i16]).create("x")?;
        d.new_attr::<f32>().create("scale_factor")?.write_scalar(&0.1_f32)?;
        d.new_attr::<u64>().shape(2).create("big")?.write_raw(&[u64::MAX, 1])?;
        d.new_attr::<VarLenUnicode>().create("units")?.write_scalar(&text("°C"))?;
        d.new_attr::<bool>().create("flag")?.write_scalar(&true)
    });
    let attrs = &array(&source, "x").1.attrs;
    assert_eq!(attr(attrs, "scale_factor"), Some(&AttrValue::Floats(DType::F32, vec![f64::from(0.1_f32)])));
    assert_eq!(attr(attrs, "big"), Some(&AttrValue::Ints(DType::U64, vec![i128::from(u64::MAX), 1])));
    assert_eq!(attr(attrs, "units"), Some(&AttrValue::Text("°C".into())));
    assert_eq!(attr(attrs, "flag"), Some(&AttrValue::Ints(DType::Bool, vec![1])));
    assert_eq!(attrs.len(), 4);
}

#[test]
fn what_is_not_hdf5_or_cut_off_is_said() {
    let dir = common::Dir::new();
    let path = dir.file("a.h5");
    std::fs::write(&path, b"CDF\x01").unwrap();
    let open = |path: &std::path::Path| Hdf5Source::open(path, &Hdf5Options::default()).err().unwrap();
    assert_eq!(open(&path).kind(), ErrorKind::UnknownFormat);
    assert_eq!(open(&dir.file("none.h5")).kind(), ErrorKind::FileNotFound);
    let file = File::create(&path).unwrap();
    file.new_dataset_builder().with_data(&[1.0_f64; 100]).create("x").unwrap();
    file.close().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    let e = open(&path);
    assert_eq!(e.kind(), ErrorKind::CorruptFile);
    assert!(e.message().contains("truncated") && e.hint_text().is_some(), "{e}");
}

#[test]
fn a_heap_of_zeros_is_an_error_and_no_endless_loop() {
    let dir = common::Dir::new();
    let path = dir.file("a.h5");
    let file = File::create(&path).unwrap();
    file.new_dataset_builder().with_data(&[text("one"), text("two")]).create("x").unwrap();
    file.close().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let heap = bytes.windows(4).position(|w| w == b"GCOL").unwrap();
    bytes[heap + 16 + 24..heap + 16 + 24 + 64].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let source = common::open(&path);
    let (i, _) = array(&source, "x");
    let e = source.read_library_strings(i, &sieva_types::Bx::whole(&[2])).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptFile, "{e}");
}
