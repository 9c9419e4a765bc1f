//! Files that contradict the format: what is refused, what opens with a warning, and the words for it.

use sieva_format::ArraySource;
use sieva_format_netcdf3::Netcdf3Source;
use sieva_types::ErrorKind;

use crate::common::{File, X, attr, open, read, refused, store};

/// `time` (unlimited) and `x`; `T(time, x)` short with an attribute, `x(x)` double.
fn sample(version: u8) -> File {
    let mut file = File::new(version);
    file.numrecs = 3;
    let (time, x) = (file.dim("time", 0), file.dim("x", 5));
    file.var("T", X::Short, &[time, x]).attrs = vec![attr("units", X::Char, b"K")];
    file.var("x", X::Double, &[x]);
    file
}

fn put(bytes: &mut [u8], at: usize, n: u32) {
    bytes[at..at + 4].copy_from_slice(&n.to_be_bytes());
}

#[test]
fn a_header_cut_off_anywhere_is_refused() {
    for version in [1, 2, 5] {
        let file = sample(version);
        let bytes = file.build();
        for len in 4..file.header_len() {
            let e = refused(bytes[..len].to_vec());
            assert_eq!(e.kind(), ErrorKind::CorruptFile, "CDF-{version}, {len} bytes: {e}");
            assert!(e.message().starts_with("'test.nc': "), "{e}");
        }
    }
}

#[test]
fn messages_name_the_part_of_the_header() {
    let bytes = sample(1).build();
    let units = bytes.windows(5).position(|w| w == b"units").unwrap();
    let cases: [(usize, u32, &str); 8] = [
        (8, 7, "the list of dimensions at offset 8 has tag 0x7, expected 0xa or 0"),
        (8, 0, "the list of dimensions at offset 8 is marked absent but counts 2"),
        (12, 1 << 30, "the number of dimensions at offset 12 is 1073741824, the file has room for "),
        (16, 1 << 31, "dimension 0: the length of its name at offset 16 is 2147483648"),
        (units - 12, 0, "variable 'T': the list of attributes at offset 76 is marked absent"),
        (units + 8, 12, "attribute 0 of variable 'T': type 12 at offset 96 does not exist, expected 1 to 11"),
        (units + 12, 200, "attribute 0 of variable 'T': the number of its values at offset 100 is 200"),
        (68, 2, "variable 'T': dimension id 2 at offset 68, the file has 2 dimensions"),
    ];
    for (at, value, message) in cases {
        let mut bytes = bytes.clone();
        put(&mut bytes, at, value);
        let e = refused(bytes);
        assert_eq!(e.kind(), ErrorKind::CorruptFile);
        let expected = format!("'test.nc': {message}");
        assert!(e.message().starts_with(&expected), "\n   got {}\nwanted {expected}", e.message());
    }
}

#[test]
fn missing_data_are_warned_of_and_fail_when_read() {
    let file = sample(1);
    let mut bytes = file.build();
    bytes.truncate(file.header_len() + 8);
    let end = bytes.len();
    let source = Netcdf3Source::open(store(bytes)).unwrap();
    assert_eq!(
        source.schema().warnings,
        [
            "the header says 3 records, the file's length holds 0: reading the others fails".to_string(),
            format!(
                "variable 'x' ends at offset {}, the file at {end}: reading what is missing fails",
                end + 32
            ),
        ]
    );
    assert_eq!(source.schema().arrays[0].shape, [3, 5]);
    assert_eq!(read(&source, "x").unwrap_err().kind(), ErrorKind::CorruptFile);
}

#[test]
fn records_that_the_file_does_not_hold_are_warned_of() {
    let mut file = sample(2);
    file.said_numrecs = Some(1_000_000);
    let source = open(&file);
    assert_eq!(
        source.schema().warnings,
        ["the header says 1000000 records, the file's length holds 3: reading the others fails"]
    );
    assert_eq!(source.schema().dims[0].len, 1_000_000);
    // Fewer records than the file holds: it is being appended to.
    file.said_numrecs = Some(2);
    assert_eq!(open(&file).schema().warnings, Vec::<String>::new());
}

#[test]
fn data_inside_the_header_are_not_read() {
    let mut file = sample(1);
    file.vars[1].begin = Some(4);
    let source = open(&file);
    let why = format!("variable 'x' begins at offset 4, inside the header of {} bytes", file.header_len());
    assert_eq!(source.schema().warnings, [format!("{why}: it cannot be read")]);
    let e = source.layout(1).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ErrorKind::CorruptFile, format!("'test.nc': {why}").as_str()));
    assert_eq!(read(&source, "T").unwrap(), file.vars[0].data);
}

#[test]
fn a_second_unlimited_dimension_may_not_be_used() {
    let mut file = File::new(1);
    let (a, b, x) = (file.dim("a", 0), file.dim("b", 0), file.dim("x", 2));
    let source = open(&file);
    assert_eq!(
        source.schema().warnings,
        ["dimension 'b' is marked unlimited, but 'a' is already: read as empty"]
    );
    assert!(source.schema().dims[0].unlimited && !source.schema().dims[1].unlimited);
    for (dims, bad) in
        [(vec![b], "0 ('b')"), (vec![a, b], "1 ('b')"), (vec![x, a], "1 ('a')"), (vec![a, a], "1 ('a')")]
    {
        file.vars.clear();
        file.var("v", X::Int, &dims);
        let e = refused(file.build());
        assert_eq!(e.kind(), ErrorKind::CorruptFile);
        assert!(
            e.message().starts_with(&format!("'test.nc': variable 'v': its dimension {bad} is unlimited;")),
            "{e}"
        );
    }
}

#[test]
fn names_given_twice() {
    let mut file = sample(1);
    file.var("x", X::Byte, &[1]);
    let source = open(&file);
    assert_eq!(source.schema().warnings, ["two variables are called 'x': the second one is left out"]);
    assert_eq!(source.schema().arrays.len(), 2);
    assert_eq!(read(&source, "x").unwrap(), file.vars[1].data);
    file.dim("time", 4);
    assert_eq!(refused(file.build()).message(), "'test.nc': two dimensions are called 'time'");
}

#[test]
fn a_left_out_record_variable_still_takes_its_place() {
    let mut file = sample(1);
    file.var("T", X::Int, &[0]);
    let source = open(&file);
    assert_eq!(source.layout(0).unwrap().strides, [16, 2]);
    assert_eq!(read(&source, "T").unwrap(), file.vars[0].data);
}

#[test]
fn sizes_that_overflow_are_refused() {
    let huge = |dims: &[u64], version| {
        let mut file = File::new(version);
        let ids: Vec<u64> = dims.iter().enumerate().map(|(i, _)| file.dim(&format!("d{i}"), 1)).collect();
        file.var("v", X::Double, &ids);
        file.dims.iter_mut().zip(dims).for_each(|(d, &n)| d.1 = n);
        file.vars[0].vsize = Some(0);
        file
    };
    let e = refused(huge(&[1 << 31, 1 << 31, 1 << 31], 1).build());
    assert_eq!(
        e.message(),
        "'test.nc': variable 'v' of shape [2147483648, 2147483648, 2147483648] takes more than 2^63 bytes"
    );
    assert!(refused(huge(&[u64::MAX, 2], 5).build()).message().ends_with("takes more than 2^63 bytes"));
    let mut far = sample(5);
    far.vars[1].begin = Some(u64::MAX - 8);
    assert!(refused(far.build()).message().ends_with("ends past 2^63"));
    let mut many = sample(5);
    many.said_numrecs = Some(u64::MAX - 1);
    assert_eq!(
        refused(many.build()).message(),
        format!(
            "'test.nc': variable 'T' of 10 bytes in each of {} records at offset {} ends past 2^63",
            u64::MAX - 1,
            many.header_len() + 40
        )
    );
}

#[test]
fn more_dimensions_than_are_sensible_are_refused() {
    let mut file = File::new(1);
    file.dim("n", 1);
    file.var("v", X::Int, &[0; 1025]);
    let e = refused(file.build());
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert_eq!(e.message(), "'test.nc': variable 'v': it has 1025 dimensions, at most 1024 are supported");
    file.vars.clear();
    file.dims = (0..65_537).map(|i| (format!("{i}").into_bytes(), 1)).collect();
    let e = refused(file.build());
    assert_eq!(e.message(), "'test.nc': the file has 65537 dimensions, at most 65536 are supported");
}
