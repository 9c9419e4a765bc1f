//! Compiles the C of this crate, and checks that libhdf5's structures are laid out as the Rust code has them.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::fmt::Write;
use std::path::PathBuf;

/// The structures that cross the boundary: in C, in Rust, and their size.
const STRUCTURES: [(&str, &str, usize); 10] = [
    ("H5FD_t", "Public", 80),
    ("H5FD_class_t", "Class", 336),
    ("H5O_token_t", "hdf5_metno_sys::h5o::H5O_token_t", 16),
    ("H5O_info2_t", "hdf5_metno_sys::h5o::H5O_info2_t", 72),
    ("H5L_info2_t", "hdf5_metno_sys::h5l::H5L_info2_t", 40),
    ("H5A_info_t", "hdf5_metno_sys::h5a::H5A_info_t", 24),
    ("H5E_error2_t", "hdf5_metno_sys::h5e::H5E_error2_t", 56),
    ("H5R_ref_t", "hdf5_metno_sys::h5r::H5R_ref_t", 64),
    ("hvl_t", "hdf5_metno_sys::h5t::hvl_t", 16),
    ("H5AC_cache_config_t", "hdf5_metno_sys::h5ac::H5AC_cache_config_t", 1216),
];

/// Fields of them: the structure's place above, the field in C and in Rust, and where it begins.
const FIELDS: [(usize, &str, &str, usize); 44] = [
    (0, "driver_id", "driver", 0),
    (0, "cls", "class", 8),
    (0, "fileno", "number", 16),
    (0, "access_flags", "access_flags", 24),
    (0, "feature_flags", "feature_flags", 32),
    (0, "maxaddr", "max_address", 40),
    (0, "base_addr", "base_address", 48),
    (0, "threshold", "threshold", 56),
    (0, "alignment", "alignment", 64),
    (0, "paged_aggr", "is_paged", 72),
    (1, "version", "version", 0),
    (1, "value", "value", 4),
    (1, "name", "name", 8),
    (1, "maxaddr", "max_address", 16),
    (1, "fc_degree", "close_degree", 24),
    (1, "terminate", "terminate", 32),
    (1, "sb_size", "superblock", 40),
    (1, "fapl_size", "access_size", 64),
    (1, "fapl_get", "access", 72),
    (1, "dxpl_size", "transfer_size", 96),
    (1, "dxpl_copy", "transfer", 104),
    (1, "open", "open", 120),
    (1, "close", "close", 128),
    (1, "cmp", "compare", 136),
    (1, "query", "query", 144),
    (1, "get_type_map", "type_map", 152),
    (1, "alloc", "allocation", 160),
    (1, "get_eoa", "get_end_of_addresses", 176),
    (1, "set_eoa", "set_end_of_addresses", 184),
    (1, "get_eof", "get_end_of_file", 192),
    (1, "get_handle", "get_handle", 200),
    (1, "read", "read", 208),
    (1, "write", "write", 216),
    (1, "read_vector", "vectors_and_selections", 224),
    (1, "flush", "flush_and_truncate", 256),
    (1, "lock", "locking", 272),
    (1, "fl_map", "free_lists", 304),
    (3, "type", "type_", 24),
    (4, "u", "u", 24),
    (6, "desc", "desc", 48),
    (9, "set_initial_size", "set_initial_size", 1033),
    (9, "initial_size", "initial_size", 1040),
    (9, "max_size", "max_size", 1056),
    (9, "min_size", "min_size", 1064),
];

/// Numbers of libhdf5's that the Rust code writes out, too.
const NUMBERS: [(&str, i64); 9] = [
    ("H5FD_CLASS_VERSION", 1),
    ("H5F_CLOSE_WEAK", 1),
    ("H5FD_MEM_BTREE", 2),
    ("H5FD_MEM_DRAW", 3),
    ("H5FD_MEM_LHEAP", 5),
    ("H5FD_MEM_OHDR", 6),
    ("H5FD_MEM_NTYPES", 7),
    ("H5D_CHUNK_IDX_EARRAY", 4),
    ("H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS", 2),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=native/environment.c");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let include = std::env::var_os("DEP_HDF5_INCLUDE").expect("hdf5-metno-sys says where the headers are");
    let checks = out.join("layouts.c");
    std::fs::write(&checks, c_checks()).unwrap();
    for (number, (in_c, in_rust, size)) in STRUCTURES.iter().enumerate() {
        std::fs::write(out.join(format!("{in_c}.rs")), rust_checks(number, in_rust, *size)).unwrap();
    }
    cc::Build::new()
        .include(include)
        .file("native/environment.c")
        .file(checks)
        .warnings_into_errors(true)
        .compile("sieva_hdf5");
}

/// Assertions for the C compiler, over the headers of the library that is linked.
fn c_checks() -> String {
    let mut out = String::from(
        "#include <stddef.h>
#include <hdf5.h>
#include <H5FDdevelop.h>
",
    );
    for (in_c, _, size) in STRUCTURES {
        writeln!(out, "_Static_assert(sizeof({in_c}) == {size}, \"size of {in_c}\");").unwrap();
    }
    for (number, in_c, _, offset) in FIELDS {
        let structure = STRUCTURES[number].0;
        let place = format!("offsetof({structure}, {in_c}) == {offset}");
        writeln!(out, "_Static_assert({place}, \"place of {structure}.{in_c}\");").unwrap();
    }
    for (name, value) in NUMBERS {
        writeln!(out, "_Static_assert({name} == {value}, \"{name}\");").unwrap();
    }
    out
}

/// The same of one structure for the Rust compiler.
fn rust_checks(number: usize, in_rust: &str, size: usize) -> String {
    let mut out = format!(
        "const _: () = assert!(std::mem::size_of::<{in_rust}>() == {size});
"
    );
    for (_, _, field, offset) in FIELDS.iter().filter(|(structure, ..)| *structure == number) {
        let place = format!("std::mem::offset_of!({in_rust}, {field}) == {offset}");
        writeln!(out, "const _: () = assert!({place});").unwrap();
    }
    out
}
