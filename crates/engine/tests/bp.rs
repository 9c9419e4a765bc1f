//! BP files of ADIOS2 asked as any source, where its C library is there: `SIEVA_ADIOS2` names it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};

use sieva::{ErrorKind, OpenOptions, QueryOptions, Source};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-bp/tests/data")
}

/// The source; none where there is no library, which is said.
fn open(path: &Path, join: Option<&str>) -> Option<Source> {
    let options = OpenOptions { join: join.map(str::to_owned), ..OpenOptions::default() };
    match Source::open_many(&[path.to_string_lossy()], &options) {
        Ok(source) => Some(source),
        Err(e) if e.kind() == ErrorKind::Unsupported => {
            assert!(std::env::var_os("SIEVA_ADIOS2").is_none_or(|set| set.is_empty()), "{e}");
            eprintln!("skipped: {e}");
            None
        }
        Err(e) => panic!("{}: {e}", path.display()),
    }
}

/// As make_bp.py wrote it: 0 to 23 and a hundred for each of three steps, the first row NaN, both infinities and -0.0.
fn values() -> Vec<f64> {
    let steps = (0..3).flat_map(|step| (0..24).map(move |n| f64::from(n) + 100.0 * f64::from(step)));
    let hostile = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0];
    steps.enumerate().map(|(n, value)| *hostile.get(n % 24).unwrap_or(&value)).collect()
}

/// Whether a value is a hit.
type Hits = fn(f64) -> bool;

/// Compares the hits of conditions with those of a loop over so many files.
fn check(source: &Source, files: u64) {
    let conditions: [(&str, Hits); 4] =
        [("> 110", |v| v > 110.0), ("= 0", |v| v == 0.0), ("<= 0", |v| v <= 0.0), ("IS NULL", f64::is_nan)];
    for (condition, is) in conditions {
        let text = format!("SELECT \"g/T\" WHERE \"g/T\" {condition}");
        let found = source.sql(&text, &QueryOptions::default()).unwrap().count().unwrap();
        let expected = values().into_iter().filter(|v| is(*v)).count() as u64 * files;
        assert_eq!(found, expected, "{condition}");
    }
}

#[test]
fn conditions_on_all_steps_have_the_hits_of_a_loop() {
    for name in ["bp3.bp", "bp4.bp", "bp5.bp"] {
        let Some(source) = open(&data().join(name), None) else { return };
        check(&source, 1);
    }
}

#[test]
fn several_files_are_one_source() {
    let Some(source) = open(&data().join("bp[45].bp"), Some("run")) else { return };
    check(&source, 2);
}

#[test]
fn a_directory_of_neither_format_is_told() {
    let e = Source::open(data(), &OpenOptions::default()).map(drop).unwrap_err();
    assert!(e.message().contains("neither a Zarr group nor a BP file of ADIOS2"), "{e}");
}
