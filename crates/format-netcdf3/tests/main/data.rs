//! Where data lie: layouts, record strides, padding, fill values.

use sieva_format::ArraySource;
use sieva_format::layout::Placement;
use sieva_types::{DType, Endian};

use crate::common::{File, X, attr, open, read};

/// Every variable's data are found where the writer put them.
fn assert_all_read(file: &File) {
    let source = open(file);
    assert_eq!(source.schema().warnings, Vec::<String>::new());
    for var in &file.vars {
        let name = std::str::from_utf8(&var.name).unwrap();
        assert_eq!(read(&source, name).unwrap(), var.data, "{name}");
    }
}

#[test]
fn every_type_in_every_version_as_scalar_fixed_and_record() {
    for version in [1, 2, 5] {
        let types = X::ALL.into_iter().filter(|&x| version == 5 || x as u32 <= X::Double as u32);
        let mut file = File::new(version);
        file.numrecs = 3;
        let (time, x) = (file.dim("time", 0), file.dim("x", 5));
        for (i, xtype) in types.enumerate() {
            file.var(&format!("scalar{i}"), xtype, &[]);
            file.var(&format!("fixed{i}"), xtype, &[x, x]);
            file.var(&format!("record{i}"), xtype, &[time]);
            file.var(&format!("block{i}"), xtype, &[time, x]);
        }
        assert_all_read(&file);
    }
}

#[test]
fn record_variables_are_interleaved_and_padded() {
    let mut file = File::new(1);
    file.numrecs = 4;
    let (time, x) = (file.dim("time", 0), file.dim("x", 3));
    file.var("b", X::Byte, &[time, x]);
    file.var("s", X::Short, &[time]);
    file.var("d", X::Double, &[time, x]);
    let source = open(&file);
    let header = file.header_len() as u64;
    let places: Vec<_> = (0..3)
        .map(|a| {
            let layout = source.layout(a).unwrap();
            let Placement::Direct { offset } = layout.placement else { panic!() };
            (offset - header, layout.strides.clone())
        })
        .collect();
    // One record: 3 bytes and 1 of padding, 2 bytes and 2 of padding, 24 bytes.
    assert_eq!(places, [(0, vec![32, 1]), (4, vec![32]), (8, vec![32, 8])]);
    assert_all_read(&file);
}

#[test]
fn the_only_record_variable_is_not_padded() {
    for (xtype, stride) in [(X::Byte, 3), (X::Char, 3), (X::Short, 6), (X::Int, 12)] {
        let mut file = File::new(2);
        file.numrecs = 5;
        let (time, x) = (file.dim("time", 0), file.dim("x", 3));
        file.var("fixed", X::Byte, &[x]);
        file.var("only", xtype, &[time, x]);
        assert_eq!(open(&file).layout(1).unwrap().strides[0], stride);
        assert_all_read(&file);
    }
}

#[test]
fn the_padding_of_the_last_record_may_be_missing() {
    let mut file = File::new(1);
    file.numrecs = 2;
    file.said_numrecs = Some(u32::MAX.into());
    let time = file.dim("time", 0);
    file.var("i", X::Int, &[time]);
    let last = file.var("b", X::Byte, &[time]).data.clone();
    let mut bytes = file.build();
    bytes.truncate(bytes.len() - 3);
    let source = sieva_format_netcdf3::Netcdf3Source::open(crate::common::store(bytes)).unwrap();
    assert_eq!(source.schema().dims[0].len, 2);
    assert_eq!(source.schema().warnings, Vec::<String>::new());
    assert_eq!(read(&source, "b").unwrap(), last);
}

#[test]
fn streaming_files_have_as_many_records_as_they_hold() {
    for (version, streaming) in [(1, u64::from(u32::MAX)), (2, u64::from(u32::MAX)), (5, u64::MAX)] {
        for records in [0, 1, 7] {
            let mut file = File::new(version);
            file.numrecs = records;
            file.said_numrecs = Some(streaming);
            let time = file.dim("time", 0);
            file.var("a", X::Int, &[time]);
            file.var("b", X::Short, &[time]);
            assert_eq!(open(&file).schema().arrays[1].shape, [records], "CDF-{version}");
            assert_all_read(&file);
        }
        let mut file = File::new(version);
        file.said_numrecs = Some(streaming);
        file.dim("time", 0);
        assert_eq!(open(&file).schema().dims[0].len, 0);
    }
}

#[test]
fn a_file_of_no_records_has_empty_arrays() {
    let mut file = File::new(1);
    let (time, x) = (file.dim("time", 0), file.dim("x", 4));
    file.var("T", X::Float, &[time, x]);
    file.var("n", X::Int, &[time]);
    let source = open(&file);
    assert_eq!(source.schema().arrays[0].shape, [0, 4]);
    assert_eq!(source.layout(0).unwrap().extent, [0, 4]);
    assert_eq!(source.layout(0).unwrap().chunk_bytes, 0);
    assert_all_read(&file);
}

#[test]
fn a_layout_tells_type_order_and_extent() {
    let mut file = File::new(5);
    let (y, x) = (file.dim("y", 3), file.dim("x", 4));
    file.var("T", X::Int64, &[y, x]);
    let layout = open(&file).layout(0).unwrap();
    assert_eq!((layout.dtype, layout.endian, layout.element_size), (DType::I64, Endian::Big, 8));
    assert_eq!((&layout.extent, &layout.chunk_shape), (&vec![3, 4], &vec![3, 4]));
    assert_eq!((&layout.strides, layout.base, layout.chunk_bytes), (&vec![32, 8], 0, 96));
    assert!(!layout.char_dim && layout.pipeline.filters.is_empty());
}

#[test]
fn the_size_field_is_not_believed() {
    let mut file = File::new(2);
    file.numrecs = 2;
    let time = file.dim("time", 0);
    file.var("fixed", X::Int, &[]).vsize = Some(u32::MAX.into());
    file.var("a", X::Int, &[time]).vsize = Some(u32::MAX.into());
    file.var("b", X::Byte, &[time]).vsize = Some(0);
    assert_eq!(open(&file).layout(1).unwrap().strides, [8]);
    assert_all_read(&file);
}

#[test]
fn arrays_of_more_than_4_gib_have_their_full_strides() {
    let mut file = File::new(2);
    let (z, y, x) = (file.dim("z", 3), file.dim("y", 70_000), file.dim("x", 70_000));
    // Their data are not written: only the header counts here.
    file.dims.iter_mut().for_each(|d| d.1 = d.1.min(1));
    file.var("T", X::Double, &[z, y, x]).vsize = Some(u32::MAX.into());
    file.dims.iter_mut().zip([3, 70_000, 70_000]).for_each(|(d, n)| d.1 = n);
    let source = open(&file);
    let layout = source.layout(0).unwrap();
    assert_eq!(layout.strides, [39_200_000_000, 560_000, 8]);
    assert_eq!(layout.chunk_bytes, 117_600_000_000);
    assert_eq!(source.schema().warnings.len(), 1, "{:?}", source.schema().warnings);
}

#[test]
fn fill_is_the_attribute_or_the_default_as_stored() {
    let mut file = File::new(5);
    for xtype in X::ALL {
        file.var(&format!("{xtype:?}"), xtype, &[]);
    }
    file.var("own", X::Short, &[]).attrs.push(attr("_FillValue", X::Short, &[0xfc, 0x18]));
    file.var("other type", X::Short, &[]).attrs.push(attr("_FillValue", X::Int, &[0, 0, 0, 1]));
    file.var("letter", X::Char, &[]).attrs.push(attr("_FillValue", X::Char, b"-"));
    let source = open(&file);
    let fills: Vec<Vec<u8>> = (0..14).map(|a| source.layout(a).unwrap().fill.clone()).collect();
    let expected: [&[u8]; 14] = [
        &[0x81],
        &[0],
        &[0x80, 0x01],
        &[0x80, 0, 0, 1],
        &[0x7c, 0xf0, 0, 0],
        &[0x47, 0x9e, 0, 0, 0, 0, 0, 0],
        &[0xff],
        &[0xff, 0xff],
        &[0xff; 4],
        &[0x80, 0, 0, 0, 0, 0, 0, 2],
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
        &[0xfc, 0x18],
        &[0x80, 0x01],
        b"-",
    ];
    assert_eq!(fills, expected);
}

/// Shape of the array, extent of its layout, whether the layout's last dimension is one of characters.
type TextShape<'a> = (&'a str, &'a [u64], &'a [u64], bool);

fn assert_text_shapes(file: &File, expected: &[TextShape]) {
    let source = open(file);
    for &(path, shape, extent, char_dim) in expected {
        let array = source.schema().array(path).unwrap();
        let (info, layout) = (&source.schema().arrays[array], source.layout(array).unwrap());
        assert_eq!(
            (info.dtype, info.shape.as_slice(), info.dims.len()),
            (DType::Str, shape, shape.len()),
            "{path}"
        );
        assert_eq!((layout.extent.as_slice(), layout.char_dim), (extent, char_dim), "{path}");
        assert_eq!((layout.dtype, layout.element_size), (DType::Str, 1), "{path}");
    }
    let names: Vec<&[u8]> = source.schema().dims.iter().map(|d| d.name.as_bytes()).collect();
    assert_eq!(names, file.dims.iter().map(|d| d.0.as_slice()).collect::<Vec<_>>());
    assert_all_read(file);
}

#[test]
fn a_dimension_of_characters_is_in_the_layout_only() {
    let mut file = File::new(1);
    file.numrecs = 2;
    let (time, n, len, own) = (file.dim("time", 0), file.dim("n", 3), file.dim("len", 8), file.dim("own", 4));
    file.var("letter", X::Char, &[]);
    file.var("text", X::Char, &[len]);
    file.var("texts", X::Char, &[n, len]);
    file.var("log", X::Char, &[time, len]);
    file.var("square", X::Char, &[own, own]);
    let expected: [TextShape; 5] = [
        ("letter", &[], &[], false),
        ("text", &[], &[8], true),
        ("texts", &[3], &[3, 8], true),
        ("log", &[2], &[2, 8], true),
        ("square", &[4], &[4, 4], true),
    ];
    assert_text_shapes(&file, &expected);
}

#[test]
fn a_dimension_of_things_is_not_one_of_characters() {
    let mut file = File::new(1);
    file.numrecs = 2;
    let (time, n) = (file.dim("time", 0), file.dim("n", 3));
    let (level, named, outer, len) =
        (file.dim("level", 2), file.dim("named", 5), file.dim("outer", 4), file.dim("len", 6));
    file.var("depth", X::Float, &[level]);
    file.var("named", X::Char, &[]);
    for (name, dims) in [
        ("of record", &[time][..]),
        ("of numbers", &[n, level]),
        ("of coordinate", &[named]),
        ("of texts", &[outer]),
        ("texts", &[outer, len]),
    ] {
        file.var(name, X::Char, dims);
    }
    let expected: [TextShape; 5] = [
        ("of record", &[2], &[2], false),
        ("of numbers", &[3, 2], &[3, 2], false),
        ("of coordinate", &[5], &[5], false),
        ("of texts", &[4], &[4], false),
        ("texts", &[4], &[4, 6], true),
    ];
    assert_text_shapes(&file, &expected);
}
