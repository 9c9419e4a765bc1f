//! Columns of binary and ASCII tables.

use sieva_format::ArraySource;
use sieva_format::decoding::Number;
use sieva_format::schema::{AttrValue, attr};
use sieva_types::DType;

use crate::common::{array, empty_primary, native, open, read, table, texts};

/// Two rows: an unsigned short, three floats, a text, a logical, bits, a variable array, a 2 x 2 matrix.
fn binary() -> Vec<u8> {
    let mut data = Vec::new();
    for row in 0..2_u8 {
        data.extend([0x80, row]);
        (0..3).for_each(|i| data.extend((f32::from(row) + i as f32 / 4.0).to_be_bytes()));
        data.extend(if row == 0 { b"ab  " } else { b"c\0\0\0" });
        data.push(if row == 0 { b'T' } else { b'F' });
        data.extend([0b0100_0000, 0b1000_0000]);
        data.extend([0; 8]);
        (0..4).for_each(|i| data.extend([0, 10 * row + i]));
    }
    let cards = [
        "TFIELDS = 7",
        "TTYPE1  = 'count'",
        "TFORM1  = 'I'",
        "TZERO1  = 32768",
        "TNULL1  = -32767",
        "TUNIT1  = 'adu'",
        "TTYPE2  = 'xyz'",
        "TFORM2  = '3E'",
        "TTYPE3  = 'name'",
        "TFORM3  = '4A'",
        "TTYPE4  = 'good'",
        "TFORM4  = 'L'",
        "TTYPE5  = 'flags'",
        "TFORM5  = '9X'",
        "TTYPE6  = 'list'",
        "TFORM6  = '1PE(9)'",
        "TTYPE7  = 'matrix'",
        "TFORM7  = '4I'",
        "TDIM7   = '(2,2)'",
        "EXTNAME = 'EVENTS'",
        "OBSERVER= 'me'",
    ];
    let mut file = empty_primary();
    file.extend(table("BINTABLE", data.len() / 2, &cards, &data));
    file
}

#[test]
fn columns_of_a_binary_table() {
    let source = open(binary()).unwrap();
    assert_eq!(native(&read(&source, "EVENTS/count").unwrap(), u16::from_ne_bytes), [0, 1]);
    assert_eq!(
        native(&read(&source, "EVENTS/xyz").unwrap(), f32::from_ne_bytes),
        [0.0, 0.25, 0.5, 1.0, 1.25, 1.5]
    );
    assert_eq!(texts(&source, "EVENTS/name"), ["ab", "c"]);
    assert_eq!(read(&source, "EVENTS/good").unwrap(), [1, 0]);
    let bits = read(&source, "EVENTS/flags").unwrap();
    assert_eq!(bits, [[0, 1, 0, 0, 0, 0, 0, 0, 1]; 2].concat());
    let matrix = native(&read(&source, "EVENTS/matrix").unwrap(), i16::from_ne_bytes);
    assert_eq!(matrix, [0, 1, 2, 3, 10, 11, 12, 13]);
}

#[test]
fn what_the_schema_says_of_columns() {
    let source = open(binary()).unwrap();
    let schema = source.schema();
    let info = |path: &str| &schema.arrays[array(&source, path)];
    let dims =
        |path: &str| -> Vec<&str> { info(path).dims.iter().map(|&d| schema.dims[d].path.as_str()).collect() };
    let count = info("EVENTS/count");
    assert_eq!((count.dtype, &count.decoding.missing[..]), (DType::U16, &[Number::Int(1)][..]));
    assert_eq!(attr(&count.attrs, "units"), Some(&AttrValue::Text("adu".into())));
    assert_eq!(dims("EVENTS/count"), ["EVENTS/row"]);
    assert_eq!(info("EVENTS/matrix").shape, [2, 2, 2]);
    assert_eq!(dims("EVENTS/xyz")[0], "EVENTS/row");
    assert_eq!(dims("EVENTS/matrix").len(), 3);
    assert_ne!(dims("EVENTS/matrix")[1], dims("EVENTS/matrix")[2]);
    let (path, reason) = &schema.left_out[0];
    assert_eq!(path, "EVENTS/list");
    assert_eq!(reason.message(), "a column of arrays of different lengths, which is not supported");
    let group = schema.groups.iter().find(|g| g.path == "EVENTS").unwrap();
    assert_eq!(
        group.attrs,
        [
            ("OBSERVER".to_string(), AttrValue::Text("me".into())),
            ("EXTNAME".to_string(), AttrValue::Text("EVENTS".into()))
        ]
        .into_iter()
        .rev()
        .collect::<Vec<_>>()
    );
    let alias = schema.aliases.iter().find(|(path, _)| path == "hdu1/count").unwrap();
    assert_eq!(alias.1, array(&source, "EVENTS/count"));
}

#[test]
fn columns_of_many_rows_come_in_blocks() {
    let data: Vec<u8> = (0..100_000_u32).flat_map(|i| [&i.to_be_bytes()[..], &[7]].concat()).collect();
    let mut file = empty_primary();
    let cards = ["TFIELDS = 2", "TFORM1  = 'J'", "TFORM2  = 'B'"];
    file.extend(table("BINTABLE", 5, &cards, &data));
    let source = open(file).unwrap();
    let column = native(&read(&source, "hdu1/col1").unwrap(), i32::from_ne_bytes);
    assert!(column.iter().copied().eq(0..100_000));
    assert!(read(&source, "hdu1/col2").unwrap() == vec![7; 100_000]);
}

#[test]
fn columns_of_an_ascii_table() {
    let rows = ["   12  1.50E+01ab ", "   --      2.5 cd ", "  -13         0  e"];
    let mut file = empty_primary();
    let cards = [
        "TFIELDS = 4",
        "TTYPE1  = 'n'",
        "TFORM1  = 'I5'",
        "TBCOL1  = 1",
        "TNULL1  = '--'",
        "TTYPE2  = 'x'",
        "TFORM2  = 'E10.2'",
        "TBCOL2  = 6",
        "TTYPE3  = 's'",
        "TFORM3  = 'A3'",
        "TBCOL3  = 16",
        "TTYPE4  = 'z'",
        "TFORM4  = 'A9'",
        "TBCOL4  = 16",
    ];
    file.extend(table("TABLE", 18, &cards, rows.concat().as_bytes()));
    let source = open(file).unwrap();
    assert_eq!(native(&read(&source, "hdu1/n").unwrap(), i64::from_ne_bytes), [12, i64::MIN, -13]);
    let n = &source.schema().arrays[array(&source, "hdu1/n")];
    assert_eq!(n.decoding.missing, [Number::Int(i64::MIN.into())]);
    assert_eq!(native(&read(&source, "hdu1/x").unwrap(), f64::from_ne_bytes), [15.0, 2.5, 0.0]);
    assert_eq!(texts(&source, "hdu1/s"), ["ab", "cd", "  e"]);
    let (path, reason) = &source.schema().left_out[0];
    assert_eq!(
        (path.as_str(), reason.message()),
        ("hdu1/z", "the column ends beyond the row of 18 characters")
    );
}
