//! A builder that is killed leaves the old state and nothing that stays.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::*;

const PLACE: &str = "SIEVA_TEST_KILLED_BUILDER";

/// The builder: not a test of its own, but what the test below runs in a process of its own.
#[test]
fn builder() {
    let Some(dir) = std::env::var_os(PLACE).map(PathBuf::from) else { return };
    let mut writer = SegmentWriter::create(&dir).unwrap();
    let body = vec![7; 1 << 20];
    let bitmap = Some((&b"head"[..], &body[..]));
    writer.put(&header("/TEMP"), &Record { bitmap, ..stats(0, b"never") }).unwrap();
    let _finished = segment(&dir, "/TEMP", &[stats(0, b"never either")]);
    let sorted = SortedDraft::create(&dir).unwrap();
    fs::write(sorted.path().join("c"), b"12345").unwrap();
    fs::write(dir.join("0000000000000000.tmp"), b"{\"version\": 1").unwrap();
    fs::write(dir.join("ready"), b"").unwrap();
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_killed_builder_leaves_the_old_state_and_only_litter() {
    let (_parent, dir) = place();
    add(&dir, segment(&dir, "/TEMP", &[stats(0, b"old")]));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::killed::builder"])
        .env(PLACE, &dir)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while !dir.join("ready").exists() {
        assert!(child.try_wait().unwrap().is_none(), "the builder failed");
        std::thread::sleep(Duration::from_millis(5));
    }
    fs::remove_file(dir.join("ready")).unwrap();
    // It lives: its three drafts are spared (and the lock of the directory).
    add(&dir, segment(&dir, "/TEMP", &[stats(1, b"new")]));
    assert_eq!(names_in(&dir).len(), 4 + 4, "{:?}", names_in(&dir));
    child.kill().unwrap();
    child.wait().unwrap();
    let records = open(&dir).load("/TEMP").unwrap();
    assert_eq!((records.stats(0), records.stats(1)), (Some(&b"old"[..]), Some(&b"new"[..])));
    assert!(records.damage.is_empty());
    Store::publish(&dir, &fingerprint(), &Listing::clone, false).unwrap();
    assert_eq!(names_in(&dir).len(), 4, "{:?}", names_in(&dir));
}
