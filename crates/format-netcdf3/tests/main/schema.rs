//! What the schema says: dimensions, attributes, coordinates, storage.

use sieva_format::ArraySource;
use sieva_format::decoding::Number;
use sieva_format::schema::AttrValue;
use sieva_format_netcdf3::{Netcdf3Source, is_netcdf3};
use sieva_types::{DType, ErrorKind};

use crate::common::{File, X, attr, open, read, refused, store};

#[test]
fn the_magic_number_tells_the_format() {
    let formats = [(1, "netCDF-3 classic"), (2, "netCDF-3 64-bit offset"), (5, "netCDF-3 CDF-5")];
    for (version, format) in formats {
        let source = open(&File::new(version));
        assert_eq!(source.schema().format, format);
        assert!(is_netcdf3(&**source.store()));
    }
    for other in [&b""[..], b"CDF", b"CDF\x03", b"CDF\x04....", b"\x89HDF\r\n\x1a\n", b"cdf\x01"] {
        let store = store(other.to_vec());
        assert!(!is_netcdf3(&*store));
        assert_eq!(Netcdf3Source::open(store).err().unwrap().kind(), ErrorKind::UnknownFormat, "{other:?}");
    }
    assert_eq!(
        refused(b"\x89HDF".to_vec()).message(),
        "'test.nc': not a netCDF classic file: it begins with \"\\x89HDF\", expected CDF and 1, 2 or 5"
    );
}

#[test]
fn an_empty_file_has_a_root_group_and_nothing_else() {
    for version in [1, 2, 5] {
        let source = open(&File::new(version));
        let schema = source.schema();
        assert_eq!((schema.groups.len(), schema.dims.len(), schema.arrays.len()), (1, 0, 0));
        assert_eq!(source.layout(0).unwrap_err().kind(), ErrorKind::Internal);
    }
}

#[test]
fn a_list_may_have_its_tag_and_be_empty() {
    let mut bytes = b"CDF\x01\0\0\0\0".to_vec();
    for tag in [10_u8, 12, 11] {
        bytes.extend([0, 0, 0, tag, 0, 0, 0, 0]);
    }
    assert_eq!(Netcdf3Source::open(store(bytes)).unwrap().schema().arrays.len(), 0);
}

#[test]
fn attributes_keep_order_type_and_padding_out() {
    for version in [1, 2, 5] {
        let mut file = File::new(version);
        file.padding = 0x5a;
        file.attrs = vec![
            attr("t", X::Char, b"hello"),
            attr("history", X::Char, b"made\0\0"),
            attr("", X::Char, b""),
            attr("bytes", X::Byte, &[1, 0xff, 3]),
            attr("shorts", X::Short, &[0, 1, 0xff, 0xff, 0, 3]),
            attr("one", X::Double, &1.5_f64.to_be_bytes()),
            attr("latin", X::Char, b"\xb0C"),
        ];
        file.var("v", X::Int, &[]).attrs = vec![attr("units", X::Char, b"K")];
        let source = open(&file);
        let expected = [
            ("t", AttrValue::Text("hello".into())),
            ("history", AttrValue::Text("made".into())),
            ("", AttrValue::Text(String::new())),
            ("bytes", AttrValue::Ints(DType::I8, vec![1, -1, 3])),
            ("shorts", AttrValue::Ints(DType::I16, vec![1, -1, 3])),
            ("one", AttrValue::Floats(DType::F64, vec![1.5])),
            ("latin", AttrValue::Text("°C".into())),
        ];
        let expected: Vec<_> = expected.into_iter().map(|(n, v)| (n.to_string(), v)).collect();
        assert_eq!(source.schema().attrs(), expected);
        assert_eq!(source.schema().arrays[0].attrs, [("units".to_string(), AttrValue::Text("K".into()))]);
    }
}

#[test]
fn dimensions_are_named_and_find_their_coordinates() {
    let mut file = File::new(1);
    file.numrecs = 2;
    let (x, time) = (file.dim("x", 3), file.dim("time", 0));
    file.var("T", X::Short, &[time, x]).attrs = vec![
        attr("scale_factor", X::Float, &0.5_f32.to_be_bytes()),
        attr("_FillValue", X::Short, &[0x80, 0]),
        attr("coordinates", X::Char, b"lon nothing"),
    ];
    file.var("x", X::Float, &[x]);
    file.var("lon", X::Float, &[x]);
    let source = open(&file);
    let schema = source.schema();
    let dims: Vec<_> = schema
        .dims
        .iter()
        .map(|d| (d.path.as_str(), d.len, d.unlimited, d.is_named(), d.coordinate))
        .collect();
    assert_eq!(dims, [("x", 3, false, true, Some(1)), ("time", 2, true, true, None)]);
    let array = &schema.arrays[0];
    assert_eq!((array.dims.as_slice(), array.shape.as_slice()), (&[1, 0][..], &[2, 3][..]));
    assert_eq!(array.coordinates, [2]);
    assert_eq!(array.decoding.packing, Some((0.5, 0.0)));
    assert_eq!(array.decoding.missing, [Number::Int(-32768)]);
}

#[test]
fn storage_is_told() {
    let mut file = File::new(1);
    file.numrecs = 2;
    let (time, x) = (file.dim("time", 0), file.dim("x", 3));
    file.var("f", X::Float, &[x]);
    file.var("s", X::Short, &[time, x]);
    file.var("c", X::Char, &[x]);
    let source = open(&file);
    let told: Vec<_> = source
        .schema()
        .arrays
        .iter()
        .map(|a| (a.storage.layout, a.storage.stored_type.as_str(), a.storage.stored_bytes.unwrap()))
        .collect();
    assert_eq!(told, [("contiguous", ">f4", 12), ("record", ">i2", 12), ("contiguous", "|S1", 3)]);
    assert_eq!(source.schema().arrays[0].storage.offset, Some(file.header_len() as u64));
}

#[test]
fn a_dimension_used_twice_gets_a_second_name() {
    let mut file = File::new(1);
    let (n, m) = (file.dim("n", 3), file.dim("m", 2));
    file.var("cov", X::Int, &[n, n]);
    file.var("cube", X::Byte, &[n, m, n, n]);
    file.var("n", X::Int, &[n]);
    file.var("n_2", X::Int, &[]);
    let source = open(&file);
    let schema = source.schema();
    let dims: Vec<_> = schema.dims.iter().map(|d| (d.name.as_str(), d.len, d.coordinate)).collect();
    assert_eq!(dims, [("n", 3, Some(2)), ("m", 2, None), ("n_1", 3, None), ("n_2_", 3, None)]);
    assert_eq!(schema.arrays[0].dims, [0, 2]);
    assert_eq!(schema.arrays[1].dims, [0, 1, 2, 3]);
    assert_eq!(read(&source, "cube").unwrap(), file.vars[1].data);
}

#[test]
fn newer_types_in_an_older_version_are_read_with_a_warning() {
    let mut file = File::new(2);
    file.var("v", X::UByte, &[]);
    let source = open(&file);
    assert_eq!(source.schema().arrays[0].dtype, DType::U8);
    assert_eq!(
        source.schema().warnings,
        ["type 7 at offset 52 belongs to CDF-5, not to netCDF-3 64-bit offset"]
    );
}

#[test]
fn a_nul_at_the_end_of_a_name_is_not_part_of_it() {
    let mut file = File::new(1);
    file.dim("n\0", 2);
    file.var("v\0\0", X::Int, &[0]);
    let source = open(&file);
    assert_eq!((source.schema().dims[0].name.as_str(), source.schema().array("v")), ("n", Some(0)));
    assert_eq!(source.schema().warnings, Vec::<String>::new());
}

#[test]
fn names_that_are_not_utf_8_are_read_with_a_warning() {
    let mut file = File::new(1);
    file.dims.push((b"gr\xf6\xdfe".to_vec(), 2));
    file.var("v", X::Int, &[0]);
    let source = open(&file);
    assert_eq!(source.schema().dims[0].name, "gr\u{fffd}\u{fffd}e");
    assert_eq!(
        source.schema().warnings,
        ["the name at offset 16 is not UTF-8: read as 'gr\u{fffd}\u{fffd}e'"]
    );
}
