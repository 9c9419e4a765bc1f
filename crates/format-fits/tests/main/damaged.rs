//! Files that contradict themselves, and bytes changed at random.

use sieva_format::ArraySource;
use sieva_types::{Bx, ErrorKind};

use crate::common::{empty_primary, hdu, image, image_extension, open, read, read_box, table};

const TILES: &[u8] = include_bytes!("../fixtures/tiles.fits");

#[test]
fn a_damaged_first_header_is_an_error() {
    let message = |bytes: Vec<u8>| {
        let e = open(bytes).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::CorruptFile);
        e.to_string()
    };
    let whole = empty_primary();
    let no_end = String::from_utf8(whole).unwrap().replace("END", "   ").into_bytes();
    assert!(message(no_end).contains("has no END before the end of the file"));
    let axes = hdu(&["SIMPLE  =                    T", "BITPIX  = 8", "NAXIS   = 1", "NAXIS1  = -4"], &[]);
    assert!(message(axes).contains("NAXIS1 is Int(-4), expected 0 or more"));
    assert!(message(image(7, &[1], &[], &[1])).contains("BITPIX is Int(7)"));
    let huge = image(64, &[1 << 62, 1 << 62], &[], &[]);
    assert!(message(huge).contains("its axes make more than 2^62 bytes of data"));
    assert_eq!(open(b"no FITS at all".to_vec()).err().unwrap().kind(), ErrorKind::UnknownFormat);
}

#[test]
fn what_follows_damage_is_left_out_and_said() {
    let mut file = image(8, &[2], &[], &[1, 2]);
    file.extend(hdu(&["XTENSION= 'IMAGE'", "BITPIX  = 8"], &[]));
    file.extend(image_extension(8, &[2], &[], &[3, 4]));
    let source = open(file).unwrap();
    assert_eq!(source.schema().arrays.len(), 1);
    assert_eq!(
        source.schema().warnings,
        ["HDU 1 and what follows it are left out: HDU 1: NAXIS is missing, expected 0 to 999"]
    );
    let mut file = image(8, &[2], &[], &[1, 2]);
    file.extend([0; 5000]);
    let source = open(file).unwrap();
    assert_eq!(source.schema().warnings, ["what follows HDU 0 from offset 5760 on is no HDU"]);
}

#[test]
fn data_that_are_cut_off_are_read_as_far_as_they_go() {
    let data: Vec<u8> = (0..8000_u32).map(|i| i as u8).collect();
    for unsigned in [&[][..], &["BZERO   = 32768"][..]] {
        let mut file = image(16, &[2, 2000], unsigned, &data);
        file.truncate(2880 + 4000);
        let source = open(file).unwrap();
        assert!(source.schema().warnings[0].starts_with("HDU 0 ends at offset 10880, the file at 6880"));
        let e = read(&source, "hdu0").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::CorruptFile, "{e}");
        if unsigned.is_empty() {
            assert_eq!(read_box(&source, "hdu0", &Bx::new(vec![1, 0], vec![1, 2])).unwrap().len(), 4);
        }
    }
}

#[test]
fn many_extensions_of_one_name_take_no_more_than_their_number() {
    let one = image_extension(8, &[0], &["EXTNAME = 'X'"], &[]);
    let mut file = empty_primary();
    (0..3000).for_each(|_| file.extend(&one));
    let source = open(file).unwrap();
    assert_eq!(source.schema().arrays.len(), 3000);
    assert_eq!(source.schema().arrays[2999].path, "X_3000");
}

#[test]
fn columns_beyond_the_row_are_left_out() {
    let cards = ["TFIELDS = 3", "TFORM1  = '2B'", "TFORM2  = '99999999J'", "TFORM3  = 'B'"];
    let file = [empty_primary(), table("BINTABLE", 3, &cards, &[1, 2, 3, 4, 5, 6])].concat();
    let source = open(file).unwrap();
    assert_eq!(read(&source, "hdu1/col1").unwrap(), [1, 2, 4, 5]);
    let left_out: Vec<&str> = source.schema().left_out.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(left_out, ["hdu1/col2", "hdu1/col3"]);
}

/// Reads what little of each array fits into small memory.
fn read_all(bytes: Vec<u8>) -> usize {
    let Ok(source) = open(bytes) else { return 0 };
    let mut read = 0;
    for array in &source.schema().arrays {
        let shape: Vec<u64> = array.shape.iter().map(|&n| n.min(30)).collect();
        let bx = Bx::whole(&shape);
        if bx.len() < 20_000 && array.dtype != sieva_types::DType::Str {
            read += usize::from(read_box(&source, &array.path, &bx).is_ok());
        }
    }
    read
}

#[test]
fn changed_bytes_never_do_harm() {
    let cards = ["TFIELDS = 3", "TFORM1  = '2I'", "TFORM2  = '3X'", "TFORM3  = '4A'", "TDIM1   = '(1,2)'"];
    let small = [image(16, &[4, 3], &["BZERO   = 32768"], &[7; 24]), table("BINTABLE", 9, &cards, &[1; 90])];
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = move |n: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % n as u64) as usize
    };
    let mut read = 0;
    for (file, rounds) in [(small.concat(), 400), (TILES.to_vec(), 400)] {
        for round in 0..rounds {
            let mut bytes = file.clone();
            for _ in 0..1 + random(12) {
                let at = random(bytes.len());
                // Digits keep headers readable and make them lie.
                bytes[at] =
                    if bytes[at].is_ascii_digit() { b'0' + random(10) as u8 } else { random(256) as u8 };
            }
            if round % 9 == 0 {
                bytes.truncate(random(bytes.len()));
            }
            read += read_all(bytes);
        }
    }
    assert!(read > 400, "only {read} arrays could be read: most damage is to be local");
}
