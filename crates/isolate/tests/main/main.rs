//! Isolation, with this program as its own worker: run as `main --worker DEED` it serves, or misbehaves so.
#![allow(clippy::unwrap_used, clippy::panic)]

mod answers;
mod deeds;
mod misdeeds;
mod odd;

use std::ffi::OsString;
use std::panic::catch_unwind;
use std::path::PathBuf;
use std::process::ExitCode;

/// The command that starts this program as a worker.
fn command(deed: &str) -> Vec<OsString> {
    vec![std::env::current_exe().unwrap().into(), "--worker".into(), deed.into()]
}

/// The folder of test data beside the checkout; `None` with a word to whoever runs the tests.
fn shared(folder: &str) -> Option<PathBuf> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("SIEVA_SHARED_DATA").map_or(beside, PathBuf::from).join(folder);
    if data.is_dir() {
        return Some(data);
    }
    println!("skipped: no directory '{}' (set SIEVA_SHARED_DATA)", data.display());
    None
}

/// All files below a directory, in order.
fn files(root: &std::path::Path) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() { left.push(entry) } else { found.push(entry) }
        }
    }
    found.sort();
    found
}

const TESTS: [(&str, fn()); 7] = [
    ("isolated_answers_are_those_of_the_reader", answers::isolated_answers_are_those_of_the_reader),
    ("manifests_of_real_files_round_trip", answers::manifests_of_real_files_round_trip),
    ("a_worker_that_misbehaves_is_an_error", misdeeds::a_worker_that_misbehaves_is_an_error),
    ("the_next_request_starts_a_new_worker", misdeeds::the_next_request_starts_a_new_worker),
    ("a_worker_is_confined", misdeeds::a_worker_is_confined),
    ("no_process_is_left", misdeeds::no_process_is_left),
    ("odd_files_neither_crash_nor_hang", odd::odd_files_neither_crash_nor_hang),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|a| a == "--worker") {
        return deeds::work(args.get(1).map_or("", String::as_str));
    }
    if args.iter().any(|a| a == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    let wanted = args.iter().find(|a| !a.starts_with('-'));
    let mut failed = 0;
    for (name, test) in TESTS.iter().filter(|(name, _)| wanted.is_none_or(|w| name.contains(w.as_str()))) {
        let ok = catch_unwind(test).is_ok();
        println!("test {name} ... {}", if ok { "ok" } else { "FAILED" });
        failed += u8::from(!ok);
    }
    ExitCode::from(failed)
}
