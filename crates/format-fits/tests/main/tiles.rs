//! Tile-compressed images that astropy wrote, against what astropy reads (`fixtures/make.py`).

use sieva_format::ArraySource;
use sieva_types::{Bx, DType};

use crate::common::{array, open, read, read_box};

const FILE: &[u8] = include_bytes!("../fixtures/tiles.fits");
const EXPECTED: &[u8] = include_bytes!("../fixtures/tiles.bin");
/// Names, types, and the codecs that the schema tells.
const IMAGES: [(&str, DType, &str); 11] = [
    ("RICE", DType::I16, "RICE_1"),
    ("RICEU", DType::U16, "RICE_1"),
    ("RICEB", DType::U8, "RICE_1"),
    ("GZIP2", DType::I64, "GZIP_2"),
    ("PLIO", DType::I32, "PLIO_1"),
    ("PLAIN", DType::F64, ""),
    ("DITHER1", DType::F32, "RICE_1"),
    ("DITHER2", DType::F32, "GZIP_1"),
    ("NODITHER", DType::F64, "GZIP_2"),
    ("HCOMP", DType::I32, "HCOMPRESS_1"),
    ("HSMOOTH", DType::I16, "HCOMPRESS_1"),
];

/// Pixels in little-endian order, all NaNs alike.
fn comparable(native: &[u8], dtype: DType) -> Vec<u64> {
    let number = |b: &[u8]| {
        let mut wide = [0; 8];
        wide[..b.len()].copy_from_slice(b);
        u64::from_le_bytes(wide)
    };
    let nan = |bits: u64| match dtype {
        DType::F32 => f32::from_bits(bits as u32).is_nan(),
        DType::F64 => f64::from_bits(bits).is_nan(),
        _ => false,
    };
    native
        .chunks_exact(dtype.size())
        .map(number)
        .map(|bits| if nan(bits) { u64::MAX } else { bits })
        .collect()
}

fn little_endian(mut native: Vec<u8>, dtype: DType) -> Vec<u8> {
    if cfg!(target_endian = "big") {
        native.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    native
}

#[test]
fn every_codec_gives_what_astropy_reads() {
    let source = open(FILE.to_vec()).unwrap();
    let mut expected = EXPECTED;
    for (name, dtype, codec) in IMAGES {
        let info = &source.schema().arrays[array(&source, name)];
        assert_eq!((info.dtype, &info.shape[..]), (dtype, &[21, 26][..]), "{name}");
        assert_eq!(info.storage.filters.concat(), codec);
        let pixels = little_endian(read(&source, name).unwrap(), dtype);
        let (mine, rest) = expected.split_at(pixels.len());
        assert!(comparable(&pixels, dtype) == comparable(mine, dtype), "{name}");
        expected = rest;
    }
    assert!(expected.is_empty());
}

#[test]
fn a_box_across_tiles_is_cut_out_of_them() {
    let source = open(FILE.to_vec()).unwrap();
    let whole = read(&source, "DITHER1").unwrap();
    let part = read_box(&source, "DITHER1", &Bx::new(vec![6, 9], vec![12, 17])).unwrap();
    let rows = (6..18).flat_map(|row| &whole[(row * 26 + 9) * 4..(row * 26 + 26) * 4]);
    assert!(part.iter().eq(rows));
}

#[test]
fn keywords_of_the_table_behind_are_no_attributes() {
    let source = open(FILE.to_vec()).unwrap();
    let info = &source.schema().arrays[array(&source, "RICE")];
    let names: Vec<&str> = info.attrs.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["EXTNAME"]);
}

#[test]
fn damaged_tiles_are_errors_that_name_them() {
    let clean = open(FILE.to_vec()).unwrap();
    let n = array(&clean, "RICE");
    drop(clean);
    // The table of the first image follows its two header blocks behind the primary header.
    let text = String::from_utf8_lossy(FILE);
    let end = text[2880..].find(&format!("END{}", " ".repeat(77))).unwrap() + 2880;
    let table = (end + 80).div_ceil(2880) * 2880;
    let mut bytes = FILE.to_vec();
    bytes[table + 4..table + 8].copy_from_slice(&u32::MAX.to_be_bytes());
    let source = open(bytes).unwrap();
    assert_eq!(source.schema().arrays[n].path, "RICE");
    let e = read(&source, "RICE").unwrap_err();
    assert_eq!(e.kind().code(), "corrupt-file");
    assert!(e.message().contains("RICE") && e.message().contains("chunk [0, 0]"), "{e}");
    assert!(read(&source, "RICEU").is_ok());
}
