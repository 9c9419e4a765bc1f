//! BP files of ADIOS2 asked as any source, where its C library is there: `SIEVA_ADIOS2` names it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};

use sieva::{ErrorKind, OpenOptions, QueryOptions, Source};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-bp/tests/data")
}

/// The source; none where there is no library, which is said.
fn open(path: &Path) -> Option<Source> {
    match Source::open(path, &OpenOptions::default()) {
        Ok(source) => Some(source),
        Err(e) if e.kind() == ErrorKind::Unsupported => {
            assert!(std::env::var_os("SIEVA_ADIOS2").is_none_or(|set| set.is_empty()), "{e}");
            eprintln!("skipped: {e}");
            None
        }
        Err(e) => panic!("{}: {e}", path.display()),
    }
}

#[test]
fn conditions_on_all_steps_have_the_hits_of_a_loop() {
    // As make_bp.py wrote it: 0 to 23 and a hundred for each of three steps, the first row NaN, both infinities and -0.0.
    let steps = (0..3).flat_map(|step| (0..24).map(move |n| f64::from(n) + 100.0 * f64::from(step)));
    let hostile = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
    let values: Vec<f64> = steps.enumerate().map(|(n, v)| *hostile.get(n % 24).unwrap_or(&v)).collect();
    for name in ["bp3.bp", "bp4.bp", "bp5.bp"] {
        let Some(source) = open(&data().join(name)) else { return };
        let count = |condition: &str| {
            let text = format!("SELECT \"g/T\" WHERE {condition}");
            source.sql(&text, &QueryOptions::default()).unwrap().count().unwrap()
        };
        let hits = |is: fn(f64) -> bool| values.iter().filter(|v| is(**v)).count() as u64;
        assert_eq!(count("\"g/T\" > 110"), hits(|v| v > 110.0), "{name}");
        assert_eq!(count("\"g/T\" = 0"), hits(|v| v == 0.0), "{name}");
        assert_eq!(count("\"g/T\" <= 0"), hits(|v| v <= 0.0), "{name}");
        assert_eq!(count("\"g/T\" IS NULL"), hits(f64::is_nan), "{name}");
    }
}

#[test]
fn a_directory_of_neither_format_is_told() {
    let e = Source::open(data(), &OpenOptions::default()).map(drop).unwrap_err();
    assert!(e.message().contains("neither a Zarr group nor a BP file of ADIOS2"), "{e}");
}
