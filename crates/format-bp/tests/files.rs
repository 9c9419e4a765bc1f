//! Files of all engines (`make_bp.py` wrote them), read by the library of ADIOS2 where there is one: `SIEVA_ADIOS2` names it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::Path;

use sieva_format::ArraySource;
use sieva_format::foreign::ForeignSource;
use sieva_format::schema::{AttrValue, attr};
use sieva_store::guard::Gate;
use sieva_types::{Bx, DType, ErrorKind};

const STEPS: usize = 3;

/// The files; none where there is no library, which is said.
fn sources() -> Vec<ForeignSource> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut sources = Vec::new();
    for name in ["bp3.bp", "bp4.bp", "bp5.bp"] {
        match sieva_format_bp::open(&data.join(name), &[], &Gate::default()) {
            Ok(source) => sources.push(source),
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                assert!(std::env::var_os("SIEVA_ADIOS2").is_none_or(|set| set.is_empty()), "{e}");
                eprintln!("skipped: {e}");
            }
            Err(e) => panic!("{name}: {e}"),
        }
    }
    sources
}

fn index(source: &ForeignSource, path: &str) -> usize {
    source.schema().arrays.iter().position(|a| a.path == path).unwrap()
}

/// A box as bytes; `out` is not empty before.
fn read(source: &ForeignSource, path: &str, start: &[u64], shape: &[u64]) -> Vec<u8> {
    let array = index(source, path);
    let bytes = shape.iter().product::<u64>() as usize * source.schema().arrays[array].dtype.size();
    let mut out = vec![0xaa; bytes];
    let bx = Bx::new(start.to_vec(), shape.to_vec());
    source.library().unwrap().read_library(array, &bx, &mut out).unwrap();
    out
}

fn f64s(bytes: &[u8]) -> Vec<u64> {
    bytes.chunks_exact(8).map(|b| f64::from_ne_bytes(b.try_into().unwrap()).to_bits()).collect()
}

fn field(step: usize) -> Vec<f64> {
    let mut values: Vec<f64> = (0..24).map(|i| f64::from(i) + 100.0 * step as f64).collect();
    values[..4].copy_from_slice(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0]);
    values
}

#[test]
fn arrays_dimensions_and_attributes_are_those_written() {
    for source in sources() {
        let schema = source.schema();
        let mut paths: Vec<&str> = schema.arrays.iter().map(|a| a.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["g/T", "gap", "label", "once", "small", "some", "time", "u"]);
        let dims = |path| {
            let array = &schema.arrays[index(&source, path)];
            array.dims.iter().map(|&d| schema.dims[d].path.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(dims("g/T"), ["step", "g/dim_6", "g/dim_4"]);
        assert_eq!(dims("some"), ["some.step", "dim_4"]);
        assert_eq!(dims("once"), ["dim_4"]);
        assert_eq!(dims("time"), ["step"]);
        assert_eq!(schema.arrays[index(&source, "u")].dtype, DType::U64);
        let root = &schema.groups[0];
        assert_eq!(root.path, "");
        assert_eq!(attr(&root.attrs, "title"), Some(&AttrValue::Text("a test".into())));
        assert_eq!(attr(&root.attrs, "names"), Some(&AttrValue::Texts(vec!["one".into(), "three".into()])));
        let sizes = AttrValue::Ints(DType::U64, vec![1, i128::from(u64::MAX)]);
        assert_eq!(attr(&root.attrs, "sizes"), Some(&sizes));
        let own = &schema.arrays[index(&source, "g/T")].attrs;
        assert_eq!(attr(own, "units"), Some(&AttrValue::Text("K".into())));
        assert_eq!(schema.groups[1].path, "g");
    }
}

#[test]
fn what_is_no_array_says_why() {
    for source in sources() {
        for (path, why) in [
            ("wave", "complex numbers, which have no order"),
            ("grow", "has shape [3] in its first step and [4] in step 1"),
            ("local", "is a LocalArray: its blocks have no places in one array"),
        ] {
            let (_, e) = source.schema().left_out.iter().find(|(name, _)| name == path).unwrap();
            assert_eq!(e.kind(), ErrorKind::Unsupported);
            assert!(e.message().contains(why), "{e}");
        }
    }
}

#[test]
fn values_are_those_written_bit_for_bit() {
    for source in sources() {
        let all: Vec<u64> = (0..STEPS).flat_map(field).map(f64::to_bits).collect();
        assert_eq!(f64s(&read(&source, "g/T", &[0, 0, 0], &[3, 6, 4])), all);
        // Over the edge of two blocks, of the last two steps.
        let part: Vec<u64> = [1, 2]
            .into_iter()
            .flat_map(|step| {
                let values = field(step);
                [2, 3].into_iter().flat_map(move |row: usize| values[4 * row + 1..4 * row + 3].to_vec())
            })
            .map(f64::to_bits)
            .collect();
        assert_eq!(f64s(&read(&source, "g/T", &[1, 2, 1], &[2, 2, 2])), part);
        let times: Vec<u64> = [0.5, 1.0].map(f64::to_bits).to_vec();
        assert_eq!(f64s(&read(&source, "time", &[1], &[2])), times);
        let unsigned: Vec<u8> =
            (0..STEPS as u64).flat_map(|k| [u64::MAX - k, k]).flat_map(u64::to_ne_bytes).collect();
        assert_eq!(read(&source, "u", &[0, 0], &[3, 2]), unsigned);
        assert_eq!(read(&source, "small", &[2, 0], &[1, 2]), [0x80, 0x7f]);
        let once: Vec<u8> = [1_i16, 2, 3].into_iter().flat_map(i16::to_ne_bytes).collect();
        assert_eq!(read(&source, "once", &[1], &[3]), once);
        // Of the steps that it is in.
        let some: Vec<u8> = [[1_i32; 4], [2; 4]].concat().into_iter().flat_map(i32::to_ne_bytes).collect();
        assert_eq!(read(&source, "some", &[0, 0], &[2, 4]), some);
        // What no block covers is zero, whatever was in the buffer.
        let gap: Vec<u8> = [7_f32, 7.0, 7.0, 0.0, 0.0, 0.0].into_iter().flat_map(f32::to_ne_bytes).collect();
        assert_eq!(read(&source, "gap", &[1, 0, 0], &[1, 2, 3]), gap);
        assert!(read(&source, "g/T", &[0, 0, 0], &[0, 6, 4]).is_empty());
    }
}

#[test]
fn texts_are_one_for_each_step() {
    for source in sources() {
        let bx = Bx::new(vec![1], vec![2]);
        let texts = source.library().unwrap().read_library_strings(index(&source, "label"), &bx).unwrap();
        assert_eq!(texts.iter().collect::<Vec<_>>(), ["step 1", "step 2"]);
    }
}

#[test]
fn threads_wait_for_one_another() {
    let expected: Vec<u64> = field(2).into_iter().map(f64::to_bits).collect();
    for source in sources() {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        assert_eq!(f64s(&read(&source, "g/T", &[2, 0, 0], &[1, 6, 4])), expected);
                    }
                });
            }
        });
    }
}
