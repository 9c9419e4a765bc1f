//! What needs no library: which files are BP files, and what may be opened.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use sieva_store::MemoryStore;
use sieva_store::guard::Gate;
use sieva_types::{DType, ErrorKind};

use crate::attributes::integer;
use crate::place::{is_bp, is_bp_directory, own_files};
use crate::variable::dtype_of;

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("sieva-bp-{name}-{}", std::process::id()));
    fs::remove_dir_all(&path).ok();
    fs::create_dir_all(&path).unwrap();
    path
}

#[test]
fn files_are_told_by_their_last_bytes() {
    let is = |bytes: &[u8]| is_bp(&MemoryStore::new("x", bytes));
    let mut file = b"data".to_vec();
    file.extend(b"ADIOS-BP v2.8.0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    file.extend([0; 28]);
    assert!(is(&file));
    assert!(!is(&file[..file.len() - 1]));
    assert!(!is(b"ADIOS-BP v"));
    assert!(!is(&[]));
}

#[test]
fn a_directory_has_an_index_and_numbered_files() {
    let path = directory("files");
    assert!(!is_bp_directory(&path));
    for name in ["md.idx", "md.0", "mmd.0", "data.0", "data.10", "data.x", "profiling.json", "data."] {
        fs::write(path.join(name), name).unwrap();
    }
    assert!(is_bp_directory(&path));
    let found = own_files(&path, &Gate::default()).unwrap();
    let names: Vec<_> = found.iter().map(|file| file.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["data.0", "data.10", "md.0", "md.idx", "mmd.0"]);
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn links_out_of_the_directory_and_what_is_no_file_are_refused() {
    let path = directory("links");
    fs::write(path.join("md.idx"), "").unwrap();
    symlink("md.idx", path.join("md.0")).unwrap();
    assert_eq!(own_files(&path, &Gate::default()).unwrap().len(), 2);
    fs::create_dir(path.join("data.0")).unwrap();
    assert_eq!(own_files(&path, &Gate::default()).unwrap_err().kind(), ErrorKind::UnknownFormat);
    fs::remove_dir(path.join("data.0")).unwrap();
    symlink("/dev/null", path.join("data.0")).unwrap();
    let refused = own_files(&path, &Gate::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::LinkRefused);
    assert!(refused.message().contains("data.0' is a link that leads out of the BP directory"));
    fs::remove_dir_all(&path).unwrap();
}

#[test]
fn types_that_are_no_values_say_why() {
    assert_eq!(dtype_of("uint64_t"), Ok(DType::U64));
    assert_eq!(dtype_of("char"), Ok(DType::I8));
    assert!(dtype_of("float complex").unwrap_err().contains("complex numbers"));
    assert!(dtype_of("struct").unwrap_err().contains("'struct'"));
}

#[test]
fn integers_keep_their_sign() {
    assert_eq!(integer(DType::I16, &(-2_i16).to_ne_bytes()), -2);
    assert_eq!(integer(DType::I8, &[0x80]), -128);
    assert_eq!(integer(DType::U8, &[0x80]), 128);
    assert_eq!(integer(DType::U64, &u64::MAX.to_ne_bytes()), i128::from(u64::MAX));
    assert_eq!(integer(DType::I64, &i64::MIN.to_ne_bytes()), i128::from(i64::MIN));
}
