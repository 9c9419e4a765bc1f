//! Names, dimensions, attributes, and how few reads a file takes to open.

use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::schema::{AttrValue, attr};
use sieva_format_fits::{FitsSource, is_fits};
use sieva_store::{MemoryStore, RangedRead};
use sieva_types::ErrorKind;

use crate::common::{array, empty_primary, hdu, image, image_extension, open, read, table};

fn named(name: &str, version: Option<u32>) -> Vec<u8> {
    let name = format!("EXTNAME = '{name}'");
    let version = version.map(|v| format!("EXTVER  = {v}"));
    let cards: Vec<&str> = [Some(name.as_str()), version.as_deref()].into_iter().flatten().collect();
    image_extension(8, &[2], &cards, &[1, 2])
}

#[test]
fn extensions_of_one_name_are_told_by_their_version() {
    let hdus = [named("SCI", Some(1)), named("ERR", Some(1)), named("SCI", Some(5)), named("SCI", None)];
    let source = open([vec![empty_primary()], hdus.to_vec()].concat().concat()).unwrap();
    let paths: Vec<&str> = source.schema().arrays.iter().map(|a| a.path.as_str()).collect();
    assert_eq!(paths, ["SCI", "ERR", "SCI_5", "SCI_2"]);
    let aliases: Vec<_> = source.schema().aliases.iter().map(|(path, n)| (path.as_str(), *n)).collect();
    assert_eq!(aliases, [("hdu1", 0), ("hdu2", 1), ("hdu3", 2), ("hdu4", 3)]);
}

#[test]
fn names_are_made_fit_for_paths() {
    let hdus = [empty_primary(), named("a/b", None), named("..", None), named("hdu1", None)];
    let source = open(hdus.concat()).unwrap();
    let paths: Vec<&str> = source.schema().arrays.iter().map(|a| a.path.as_str()).collect();
    assert_eq!(paths, ["a_b", "__", "hdu1"]);
    assert!(!source.schema().aliases.iter().any(|(path, _)| path == "hdu1"), "a name goes before an alias");
}

#[test]
fn images_share_dimensions_by_length() {
    let hdus = [
        image(8, &[3, 3], &[], &[0; 9]),
        image_extension(8, &[3, 2], &[], &[0; 6]),
        image_extension(8, &[2, 3, 3], &[], &[0; 18]),
    ];
    let source = open(hdus.concat()).unwrap();
    let dims: Vec<_> = source.schema().arrays.iter().map(|a| a.dims.clone()).collect();
    assert_eq!(dims, [vec![0, 1], vec![2, 0], vec![0, 1, 2]]);
    assert!(source.schema().dims.iter().all(|d| !d.is_named()));
    let store: Arc<dyn RangedRead> = Arc::new(MemoryStore::new("m", hdus.concat()));
    let given = [("hdu1".to_string(), vec!["y".to_string(), "x".to_string()])];
    let source = FitsSource::open(store, &given).unwrap();
    let dims = source.schema().arrays[1].dims.iter().map(|&d| source.schema().dims[d].name.as_str());
    assert_eq!(dims.collect::<Vec<_>>(), ["y", "x"]);
}

#[test]
fn keywords_are_attributes() {
    let cards = [
        "EXPTIME =                 12.5 / s",
        "OBJECT  = 'NGC ''1'''",
        "LONG    = 'one &'",
        "CONTINUE  'two'",
        "HIERARCH ESO DET GAIN = 3",
        "EMPTY   =",
        "COMMENT first",
        "COMMENT second",
        "CTYPE1  = 'RA---TAN'",
        "BUNIT   = 'Jy'",
    ];
    let source = open(image(8, &[1], &cards, &[1])).unwrap();
    let schema = source.schema();
    let text = |t: &str| Some(AttrValue::Text(t.into()));
    for attrs in [schema.attrs(), &schema.arrays[0].attrs] {
        let get = |name| attr(attrs, name).cloned();
        assert_eq!(get("EXPTIME").and_then(|v| v.as_f64()), Some(12.5));
        assert_eq!(get("OBJECT"), text("NGC '1'"));
        assert_eq!(get("LONG"), text("one two"));
        assert_eq!(get("ESO DET GAIN").and_then(|v| v.as_f64()), Some(3.0));
        assert_eq!(get("EMPTY"), Some(AttrValue::Other("undefined".into())));
        assert_eq!(get("COMMENT"), Some(AttrValue::Texts(vec!["first".into(), "second".into()])));
        assert_eq!(get("NAXIS1"), None);
    }
    assert_eq!(attr(&schema.arrays[0].attrs, "units").cloned(), text("Jy"));
}

#[test]
fn what_is_not_read_is_left_out_with_a_reason() {
    let groups = hdu(
        &[
            "SIMPLE  = T",
            "BITPIX  = 8",
            "NAXIS   = 2",
            "NAXIS1  = 0",
            "NAXIS2  = 2",
            "GROUPS  = T",
            "PCOUNT  = 1",
        ],
        &[0; 3],
    );
    let odd = hdu(&["XTENSION= 'DUMP'", "BITPIX  = 8", "NAXIS   = 1", "NAXIS1  = 4"], &[0; 4]);
    let complex = table("BINTABLE", 8, &["TFIELDS = 1", "TFORM1  = 'C'", "TTYPE1  = 'v'"], &[0; 16]);
    let packed = table("BINTABLE", 8, &["TFIELDS = 1", "TFORM1  = '1PB'", "ZTABLE  = T"], &[0; 16]);
    let source = open([groups, odd, complex, packed].concat()).unwrap();
    let left_out = &source.schema().left_out;
    assert!(left_out.iter().all(|(_, e)| e.kind() == ErrorKind::Unsupported));
    let said: Vec<_> = left_out.iter().map(|(path, e)| (path.as_str(), e.message())).collect();
    assert_eq!(
        said,
        [
            ("hdu0", "random groups, which are not supported"),
            ("hdu1", "an extension of type 'DUMP', which is not supported"),
            ("hdu2/v", "a column of complex numbers, which is not supported"),
            ("hdu3", "a tile-compressed table, which is not supported"),
        ]
    );
}

#[test]
fn data_are_skipped_when_headers_are_read() {
    let mut file = image(8, &[1 << 20], &[], &vec![0; 1 << 20]);
    file.extend(image_extension(8, &[2], &[], &[3, 4]));
    let store = Arc::new(MemoryStore::new("m", file));
    let source = FitsSource::open(store.clone(), &[]).unwrap();
    let after = store.counters().snapshot();
    assert!(after.requests <= 4 && after.bytes_read < 64 << 10, "{after:?}");
    assert_eq!(read(&Arc::new(source), "hdu1").unwrap(), [3, 4]);
}

#[test]
fn a_file_of_one_image_takes_one_read_to_open() {
    let store = Arc::new(MemoryStore::new("m", image(8, &[1 << 20], &[], &vec![0; 1 << 20])));
    FitsSource::open(store.clone(), &[]).unwrap();
    assert_eq!(store.counters().snapshot().requests, 1);
}

#[test]
fn files_are_told_by_their_beginning() {
    let is = |name: &str, bytes: &[u8]| is_fits(&MemoryStore::new(name, bytes.to_vec()));
    assert!(is("a", &empty_primary()) && !is("a.fits", b"SIMPLE") && !is("a.fits", b"CDF\x01 and more"));
    let gzip = || MemoryStore::new("a.fits.gz", vec![0x1f, 0x8b, 8, 0]);
    assert!(is_fits(&gzip()) && !is("a.gz", &[0x1f, 0x8b, 8, 0]));
    let e = FitsSource::open(Arc::new(gzip()), &[]).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.hint_text().unwrap().contains("gunzip"));
    let source = open(image(8, &[1], &[], &[5])).unwrap();
    assert_eq!(array(&source, "hdu0"), 0);
}
