//! Images of every type, and what their scaling means.

use sieva_format::ArraySource;
use sieva_format::decoding::Number;
use sieva_types::{Bx, DType};

use crate::common::{array, image, image_extension, native, open, read, read_box};

#[test]
fn every_type_comes_back_in_c_order() {
    let floats: Vec<f32> = vec![-0.0, f32::NAN, f32::INFINITY, 1.5, -2.0, 3.0];
    let bytes: Vec<u8> = floats.iter().flat_map(|v| v.to_be_bytes()).collect();
    let mut file = image(-32, &[3, 2], &[], &bytes);
    file.extend(image_extension(8, &[2], &[], &[200, 7]));
    file.extend(image_extension(16, &[2], &[], &[0xff, 0xfe, 0, 5]));
    file.extend(image_extension(64, &[1], &[], &i64::MIN.to_be_bytes()));
    file.extend(image_extension(-64, &[1], &[], &0.1_f64.to_be_bytes()));
    let source = open(file).unwrap();
    assert_eq!(source.schema().arrays[0].shape, [2, 3], "the first axis is the fastest");
    let read_floats = native(&read(&source, "hdu0").unwrap(), f32::from_ne_bytes);
    assert_eq!(
        read_floats.iter().map(|v| v.to_bits()).collect::<Vec<_>>(),
        floats.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
    );
    assert_eq!(read(&source, "hdu1").unwrap(), [200, 7]);
    assert_eq!(native(&read(&source, "hdu2").unwrap(), i16::from_ne_bytes), [-2, 5]);
    assert_eq!(native(&read(&source, "hdu3").unwrap(), i64::from_ne_bytes), [i64::MIN]);
    assert_eq!(native(&read(&source, "hdu4").unwrap(), f64::from_ne_bytes), [0.1]);
}

#[test]
fn unsigned_integers_are_exact() {
    let stored = [i64::MIN, -1, 0, i64::MAX];
    let bytes: Vec<u8> = stored.iter().flat_map(|v| v.to_be_bytes()).collect();
    let mut file = image(64, &[4], &["BZERO   = 9223372036854775808", "BSCALE  = 1.0"], &bytes);
    file.extend(image_extension(8, &[3], &["BZERO   = -128"], &[0, 128, 255]));
    file.extend(image_extension(16, &[2], &["BZERO   = 32768", "BLANK   = -32768"], &[0x80, 0, 0, 1]));
    let source = open(file).unwrap();
    assert_eq!(source.schema().arrays[0].dtype, DType::U64);
    let unsigned = native(&read(&source, "hdu0").unwrap(), u64::from_ne_bytes);
    assert_eq!(unsigned, [0, (1 << 63) - 1, 1 << 63, u64::MAX]);
    assert_eq!(native(&read(&source, "hdu1").unwrap(), i8::from_ne_bytes), [-128, 0, 127]);
    assert_eq!(native(&read(&source, "hdu2").unwrap(), u16::from_ne_bytes), [0, 32769]);
    assert_eq!(source.schema().arrays[2].decoding.missing, [Number::Int(0)]);
}

#[test]
fn blocks_of_large_unsigned_images_fit_together() {
    // Rows of 600 bytes, 1000 of them in 3 planes: several blocks a plane, the last one short.
    let values: Vec<u16> = (0..300 * 1000 * 3_u32).map(|i| (i * 7919 % 65521) as u16).collect();
    let bytes: Vec<u8> = values.iter().flat_map(|v| (v ^ 0x8000).to_be_bytes()).collect();
    let source = open(image(16, &[300, 1000, 3], &["BZERO   = 32768"], &bytes)).unwrap();
    assert!(native(&read(&source, "hdu0").unwrap(), u16::from_ne_bytes) == values);
    let bx = Bx::new(vec![1, 430, 7], vec![2, 20, 5]);
    let part = native(&read_box(&source, "hdu0", &bx).unwrap(), u16::from_ne_bytes);
    let mut expected: Vec<u16> = Vec::new();
    for plane in 1..3 {
        for row in 430..450 {
            let at = (plane * 1000 + row) * 300 + 7;
            expected.extend(&values[at..at + 5]);
        }
    }
    assert_eq!(part, expected);
}

#[test]
fn scaled_data_are_packed() {
    let file =
        image(16, &[2], &["BSCALE  = 0.5", "BZERO   = 10.0", "BLANK   = 4", "BUNIT   = 'K'"], &[0, 4, 0, 6]);
    let source = open(file).unwrap();
    let info = &source.schema().arrays[array(&source, "hdu0")];
    assert_eq!((info.dtype, info.decoding.packing), (DType::I16, Some((0.5, 10.0))));
    assert_eq!(info.decoding.missing, [Number::Int(4)]);
    assert_eq!(info.decoding.decoded(), DType::F64);
    assert_eq!(native(&read(&source, "hdu0").unwrap(), i16::from_ne_bytes), [4, 6]);
}

#[test]
fn an_axis_of_no_length_is_an_empty_array() {
    let mut file = image(16, &[3, 0], &["BZERO   = 32768"], &[]);
    file.extend(image_extension(8, &[1], &[], &[9]));
    let source = open(file).unwrap();
    assert_eq!(source.schema().arrays[0].shape, [0, 3]);
    assert_eq!(read(&source, "hdu0").unwrap(), [] as [u8; 0]);
    assert_eq!(read(&source, "hdu1").unwrap(), [9]);
}
