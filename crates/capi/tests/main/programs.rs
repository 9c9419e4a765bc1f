//! Programs: the suite that compares with loops in C, and the example of the guide.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::toolchain::{Link, compile, compile_with, has, root, run, scratch};

/// The files of the suite.
fn suite() -> Vec<PathBuf> {
    let files = [
        "main.c",
        "ocean.c",
        "queries.c",
        "values.c",
        "results.c",
        "plans.c",
        "tasks.c",
        "calls.c",
        "limits.c",
        "functions.c",
        "once.c",
        "started.c",
        "made.c",
        "sharing.c",
        "steps.c",
        "index.c",
    ];
    files.map(|f| root().join("tests/c").join(f)).to_vec()
}

/// `program file`, with a store of its own.
fn on(program: &Path, file: &Path) -> Command {
    let mut command = Command::new(program);
    // Cargo's path leads to an earlier build's library first.
    command.arg(file).env("SIEVA_STORE", file.with_extension("store")).env_remove("LD_LIBRARY_PATH");
    command.env("SIEVA_TEST_WORKER", env!("CARGO_BIN_EXE_sieva-worker"));
    command
}

/// The same under valgrind, which ends with 9 where memory is misused or lost.
fn checked(program: &Path, file: &Path) -> Command {
    let mut command = Command::new("valgrind");
    // "Possibly lost" is what the default session keeps until the process ends: pointers of its tables lead into blocks.
    command.args(["-q", "--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite"]);
    command.args(["--show-leak-kinds=definite"]).arg(program).arg(file);
    command.env("SIEVA_STORE", file.with_extension("store")).env_remove("LD_LIBRARY_PATH");
    command.env("SIEVA_TEST_WORKER", env!("CARGO_BIN_EXE_sieva-worker"));
    command
}

#[test]
fn the_suite_agrees_with_loops_in_c() {
    let dir = scratch("suite");
    compile(&suite(), Link::Shared, &dir.join("suite"));
    assert_eq!(run(&mut on(&dir.join("suite"), &dir.join("ocean.nc"))), "0 failures\n");
}

#[test]
fn the_static_library_needs_three_system_libraries() {
    let dir = scratch("static");
    compile(&suite(), Link::Static, &dir.join("suite"));
    let mut run_it = on(&dir.join("suite"), &dir.join("ocean.nc"));
    assert_eq!(run(run_it.env("SIEVA_CHAIN", "1000")), "0 failures\n");
}

#[test]
fn the_suite_loses_no_memory() {
    if !has("valgrind") {
        return;
    }
    let dir = scratch("suite-valgrind");
    compile(&suite(), Link::Shared, &dir.join("suite"));
    let mut check = checked(&dir.join("suite"), &dir.join("ocean.nc"));
    // Valgrind is some thirty times slower; the whole chain runs without it, and so does code of users.
    assert_eq!(run(check.env("SIEVA_CHAIN", "2000").env("SIEVA_NO_CODE", "1")), "0 failures\n");
}

#[test]
fn handles_are_shared_by_threads() {
    let dir = scratch("threads");
    let sources = ["threads.c", "ocean.c"].map(|f| root().join("tests/c").join(f));
    compile(&sources, Link::Shared, &dir.join("threads"));
    assert_eq!(run(&mut on(&dir.join("threads"), &dir.join("ocean.nc"))), "0 failures\n");
    if has("valgrind") {
        assert_eq!(run(&mut checked(&dir.join("threads"), &dir.join("ocean.nc"))), "0 failures\n");
    }
}

#[test]
fn tags_and_collections_agree_with_loops_in_c() {
    let dir = scratch("collection");
    let program = dir.join("collection");
    let sources = ["collection.c", "gathered.c"].map(|f| root().join("tests/c").join(f));
    compile(&sources, Link::Shared, &program);
    let on_new = |name: &str, command: fn(&Path, &Path) -> Command| {
        let data = dir.join(name);
        std::fs::create_dir(&data).unwrap();
        assert_eq!(run(&mut command(&program, &data)), "0 failures\n");
    };
    on_new("plain", on);
    if has("valgrind") {
        on_new("valgrind", checked);
    }
}

#[test]
fn the_example_compiles_and_runs() {
    let dir = scratch("example");
    let (program, file) = (dir.join("warm"), dir.join("ocean.nc"));
    compile(&[root().join("examples/warm.c")], Link::Shared, &program);
    let warm = write_ocean(&file);
    let expected = format!("{warm} of 24000 points are warm\n");
    assert_eq!(run(on(&program, &file).arg("25")), expected);
    if has("valgrind") {
        assert_eq!(run(checked(&program, &file).arg("25")), expected);
    }
    let bad = on(&program, &dir.join("none.nc")).arg("25").output().unwrap();
    assert_eq!(bad.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&bad.stderr).starts_with("open: file-not-found: "));
}

#[test]
fn the_example_of_sharing_compiles_and_runs() {
    let dir = scratch("sharing");
    let (program, file, folder) = (dir.join("share"), dir.join("ocean.nc"), dir.join("folder"));
    compile(&[root().join("examples/share.c")], Link::Shared, &program);
    let warm = write_ocean(&file);
    let sql = "SELECT TEMP WHERE TEMP > 25 AND TEMP <= 28 AND idx(t) >= 2";
    let once = |command: fn(&Path, &Path) -> Command, group: &str, folder: &Path| {
        let mut command = command(&program, &dir.join(group));
        assert_eq!(run(command.arg(&file).arg(sql).arg(folder)), "1 answers, 0 of them errors, 1 files\n");
    };
    once(on, "group", &folder);
    let rows = std::fs::read_to_string(folder.join("ocean.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + warm);
    if has("valgrind") {
        once(checked, "checked", &dir.join("again"));
    }
}

#[test]
fn the_example_of_steps_compiles_and_runs() {
    let dir = scratch("steps");
    let program = dir.join("steps");
    compile(&[root().join("examples/steps.c")], Link::Shared, &program);
    let sql = "SELECT max(T) AS most, count(*) AS n WHERE idx(y) < 2 AND idx(x) >= 25";
    let once = |command: fn(&Path, &Path) -> Command, group: &str, folder: &Path| {
        let mut command = command(&program, &dir.join(group));
        assert_eq!(run(command.arg(sql).arg(folder)), "3 files, 0 errors\n");
        for step in 0..3 {
            let rows = std::fs::read_to_string(folder.join(format!("heat.00000{step}.csv"))).unwrap();
            assert_eq!(rows, format!("most,n\n{}.0,50\n", 1000 * step + 99));
        }
    };
    once(on, "group", &dir.join("folder"));
    if has("valgrind") {
        once(checked, "checked", &dir.join("again"));
    }
}

/// A program that writes an HDF5 file of doubles, `values` (6, 50) with value 7 * i % 100 at position i, by the library.
const WRITER: &str = r#"#include <hdf5.h>
int main(int argc, char **argv)
{
    hsize_t shape[2] = { 6, 50 };
    double values[300];
    for (int i = 0; i < 300; i++)
        values[i] = 7 * i % 100;
    hid_t file = H5Fcreate(argv[argc - 1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hid_t space = H5Screate_simple(2, shape, NULL);
    hid_t set = H5Dcreate2(file, "values", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    int failed = H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0;
    H5Dclose(set);
    H5Sclose(space);
    return H5Fclose(file) < 0 || failed;
}
"#;

#[test]
fn hdf5_reads_the_elements_that_were_found() {
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "hdf5"]).output();
    let Some(flags) = flags.ok().filter(|f| f.status.success()) else {
        eprintln!("skipped: pkg-config knows no hdf5: its header is wanted (apt-get install libhdf5-dev)");
        return;
    };
    let flags = String::from_utf8(flags.stdout).unwrap();
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let dir = scratch("elements");
    let (writer, program, file) = (dir.join("writer"), dir.join("elements"), dir.join("values.h5"));
    std::fs::write(dir.join("writer.c"), WRITER).unwrap();
    run(Command::new("cc").arg(dir.join("writer.c")).args(&flags).arg("-o").arg(&writer));
    run(Command::new(&writer).arg(&file));
    compile_with(&[root().join("examples/elements.c")], Link::Shared, &flags, &program);
    let hits = (0..300).filter(|i| 7 * i % 100 > 90).count();
    let said = run(on(&program, &file).args(["values", "90"]));
    assert_eq!(said, format!("{hits} values are greater than 90\nHDF5 and sieva agree\n"));
    let none = run(on(&program, &file).args(["values", "1000"]));
    assert_eq!(none, "0 values are greater than 1000\nHDF5 and sieva agree\n");
}

/// A netCDF-3 file with TEMP and SALT (4, 10, 30, 40); returns how many points of its second half have
/// 25 < TEMP <= 28.
pub fn write_ocean(path: &Path) -> usize {
    const SHAPE: [u32; 4] = [4, 10, 30, 40];
    let n: u32 = SHAPE.iter().product();
    let temp: Vec<f32> = (0..n).map(|i| ((i * 7919) % 3400) as f32 / 100.0 - 2.0).collect();
    let salt: Vec<f32> = (0..n).map(|i| 30.0 + (i % 977) as f32 / 100.0).collect();
    let head = |begins: [u32; 2]| {
        let mut out = b"CDF\x01\0\0\0\0".to_vec();
        let mut word = |w: u32| out.extend(w.to_be_bytes());
        [0x0a, 4].into_iter().for_each(&mut word);
        for (d, len) in SHAPE.iter().enumerate() {
            // A name of one letter, padded to four bytes: t, z, y, x.
            [1, u32::from(b"tzyx"[d]) << 24, *len].into_iter().for_each(&mut word);
        }
        [0, 0, 0x0b, 2].into_iter().for_each(&mut word);
        for (name, begin) in [b"TEMP", b"SALT"].into_iter().zip(begins) {
            [4, u32::from_be_bytes(*name), 4, 0, 1, 2, 3, 0, 0, 5, 4 * n, begin]
                .into_iter()
                .for_each(&mut word);
        }
        out
    };
    let length = head([0, 0]).len() as u32;
    let mut bytes = head([length, length + 4 * n]);
    bytes.extend(temp.iter().chain(&salt).flat_map(|v| v.to_be_bytes()));
    std::fs::write(path, bytes).unwrap();
    temp[n as usize / 2..].iter().filter(|&&t| t > 25.0 && t <= 28.0).count()
}
