//! Programs: the suite that compares with loops in C, and the example of the guide.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::toolchain::{Link, compile, has, root, run, scratch};

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
        "once.c",
        "started.c",
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
    command.args(["-q", "--error-exitcode=9", "--leak-check=full"]).arg(program).arg(file);
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
    // Valgrind is some thirty times slower; the whole chain runs without it.
    assert_eq!(run(check.env("SIEVA_CHAIN", "2000")), "0 failures\n");
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
    compile(&[root().join("tests/c/collection.c")], Link::Shared, &program);
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

/// A netCDF-3 file with TEMP and SALT (4, 10, 30, 40); returns how many points of its second half have
/// 25 < TEMP <= 28.
fn write_ocean(path: &Path) -> usize {
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
