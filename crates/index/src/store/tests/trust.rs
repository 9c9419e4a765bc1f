//! Whose word is taken of a store, who may read it, and what somebody else can do to those who use it.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::time::{Duration, Instant};

use sieva_store::local::{Readers, Trust, user};
use sieva_types::ErrorKind;

use super::*;

const NOBODY: u32 = 65534;

/// A store with one segment, which is its name.
fn made(dir: &Path) -> String {
    let one = segment(dir, "/TEMP", &[stats(0, b"some")]);
    let name = one.name().to_string();
    add(dir, one);
    name
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Whether files can be given away; says so where not.
fn is_root() -> bool {
    let root = user() == 0;
    if !root {
        eprintln!("skipped: only root can make files of another user");
    }
    root
}

#[test]
fn a_store_of_somebody_else_is_not_believed() {
    if !is_root() {
        return;
    }
    let (_parent, dir) = place();
    let name = made(&dir);
    chown(&dir, Some(NOBODY), None).unwrap();
    let e = Store::open(&dir).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::PermissionDenied);
    assert!(e.message().contains("it belongs to user 65534, who is neither you, nor root"), "{e}");
    assert!(e.hint_text().unwrap().contains("SIEVA_STORE"));
    // Nothing is written to it, and nothing is removed.
    let before = names_in(&dir);
    assert_eq!(SegmentWriter::create(&dir).unwrap_err().kind(), ErrorKind::PermissionDenied);
    Store::publish(&dir, &fingerprint(), &Listing::clone, false).unwrap_err();
    assert_eq!(Store::drop_all(&dir).unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(names_in(&dir), before);
    // The source is theirs: so may the store be.
    let home = Home::new(dir.clone(), Trust::default().and(NOBODY));
    assert_eq!(Store::open(&home).unwrap().unwrap().damage().len(), 0);
    // A file of somebody else in a store of ours.
    chown(&dir, Some(0), None).unwrap();
    chown(dir.join(name), Some(NOBODY), None).unwrap();
    let store = open(&dir);
    assert!(store.damage()[0].contains("it belongs to user 65534"), "{:?}", store.damage());
    chown(dir.join("manifest.json"), Some(NOBODY), None).unwrap();
    assert_eq!(Store::open(&dir).unwrap_err().kind(), ErrorKind::PermissionDenied);
}

#[test]
fn what_others_may_write_to_is_not_believed() {
    let (_parent, dir) = place();
    let name = made(&dir);
    for (path, bits) in [(dir.clone(), 0o775), (dir.clone(), 0o757), (dir.join("manifest.json"), 0o662)] {
        let before = mode(&path);
        set_mode(&path, bits);
        let e = Store::open(&dir).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::PermissionDenied);
        assert!(e.message().contains(&format!("others may write to it (mode {bits:04o})")), "{e}");
        set_mode(&path, before);
    }
    set_mode(&dir.join(name), 0o660);
    assert!(open(&dir).damage()[0].contains("others may write to it (mode 0660)"));
}

#[test]
fn a_link_is_no_store() {
    let (parent, dir) = place();
    let real = parent.path().join("real");
    made(&real);
    symlink(&real, &dir).unwrap();
    let e = Store::open(&dir).unwrap_err();
    assert_eq!((e.kind(), e.message().ends_with("it is a link")), (ErrorKind::PermissionDenied, true), "{e}");
    let before = names_in(&real);
    SegmentWriter::create(&dir).unwrap_err();
    assert_eq!(names_in(&real), before);
}

#[test]
fn a_store_is_for_those_who_may_read_the_source() {
    let parent = crate::scratch::Scratch::new();
    let source = parent.path().join("x.nc");
    fs::write(&source, b"x").unwrap();
    let group = fs::metadata(&source).unwrap().gid();
    for (bits, file, directory) in [
        (0o600, 0o600, 0o700),
        (0o644, 0o644, 0o755),
        (0o640, 0o640, 0o750),
        (0o604, 0o604, 0o705),
        (0o400, 0o600, 0o700),
    ] {
        set_mode(&source, bits);
        let dir = parent.path().join(format!("{bits:o}.sieva"));
        let home = Home::new(dir.clone(), Trust::default()).beside(&source);
        let writer = SegmentWriter::create(&home).unwrap();
        // Nobody else holds the lock of a draft.
        let draft = dir.join(&names_in(&dir)[0]);
        assert_eq!(mode(&draft), 0o600);
        drop(writer);
        let mut writer = SegmentWriter::create(&home).unwrap();
        writer.put(&header("/TEMP"), &stats(0, b"s")).unwrap();
        let name = writer.finish(false).unwrap();
        let sorted = SortedDraft::create(&home).unwrap();
        fs::create_dir(sorted.path().join("c")).unwrap();
        fs::write(sorted.path().join("c/0"), b"s").unwrap();
        assert_eq!(mode(&sorted.path()), 0o700);
        let sorted = sorted.finish("/TEMP", vec!["/TEMP".into()], 7).unwrap();
        let listing = Listing { segments: vec![name.clone()], sorted: vec![sorted.clone()] };
        Store::publish(&home, &fingerprint(), &|_| listing.clone(), false).unwrap();
        home.write("host-x.json", b"{}").unwrap();
        for path in ["manifest.json", "host-x.json", name.name()].map(|n| dir.join(n)) {
            assert_eq!(mode(&path), file, "{} {bits:o}", path.display());
        }
        assert_eq!(mode(&sorted.dir.join("c/0")), file);
        for path in [&dir, &sorted.dir, &sorted.dir.join("c")] {
            assert_eq!(mode(path), directory, "{} {bits:o}", path.display());
            assert_eq!(fs::metadata(path).unwrap().gid(), group);
        }
        // Whoever can open a file can hold its lock.
        assert_eq!(mode(&dir.join("lock")), 0o600);
    }
}

#[test]
fn the_group_of_the_source_is_that_of_the_store() {
    if !is_root() {
        return;
    }
    let parent = crate::scratch::Scratch::new();
    let source = parent.path().join("x.nc");
    fs::write(&source, b"x").unwrap();
    chown(&source, Some(NOBODY), Some(4321)).unwrap();
    set_mode(&source, 0o640);
    let dir = parent.path().join("x.nc.sieva");
    let home = Home::new(dir.clone(), Trust::default().and(NOBODY)).beside(&source);
    Store::publish(&home, &fingerprint(), &Listing::clone, false).unwrap();
    for path in [dir.clone(), dir.join("manifest.json")] {
        let meta = fs::metadata(&path).unwrap();
        assert_eq!(
            (meta.uid(), meta.gid(), meta.mode() & 0o066),
            (NOBODY, 4321, 0o040),
            "{}",
            path.display()
        );
    }
}

#[test]
fn elsewhere_a_store_is_for_those_who_reach_the_source() {
    let parent = crate::scratch::Scratch::new();
    let (above, source) = (parent.path().join("private"), parent.path().join("private/x.nc"));
    fs::create_dir(&above).unwrap();
    fs::write(&source, b"x").unwrap();
    set_mode(&source, 0o644);
    set_mode(&above, 0o755);
    assert_eq!(Readers::of(&source).who_reach(&source), Readers::of(&source));
    set_mode(&above, 0o700);
    let dir = parent.path().join("elsewhere.sieva");
    let home = Home::new(dir.clone(), Trust::default()).apart_from(&source);
    Store::publish(&home, &fingerprint(), &Listing::clone, false).unwrap();
    assert_eq!((mode(&dir), mode(&dir.join("manifest.json"))), (0o700, 0o600));
}

#[test]
fn planted_names_are_not_followed() {
    let (parent, dir) = place();
    made(&dir);
    let victim = parent.path().join("victim");
    fs::write(&victim, b"precious").unwrap();
    for name in ["host-x.json", &format!("host-x.json.{}", std::process::id())] {
        symlink(&victim, dir.join(name)).unwrap();
    }
    let home = Home::from(&dir);
    assert!(home.read("host-x.json", 100).is_err());
    home.write("host-x.json", b"{}").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(home.read("host-x.json", 100).unwrap(), b"{}");
    // A lock that is a link, or a pipe.
    fs::remove_file(dir.join("lock")).unwrap();
    symlink(&victim, dir.join("lock")).unwrap();
    Store::publish(&dir, &fingerprint(), &Listing::clone, false).unwrap_err();
    fs::remove_file(dir.join("lock")).unwrap();
    let pipe = |path: PathBuf| std::process::Command::new("mkfifo").arg("-m600").arg(path).status().unwrap();
    assert!(pipe(dir.join("lock")).success() && pipe(dir.join("host-y.json")).success());
    Store::publish(&dir, &fingerprint(), &Listing::clone, false).unwrap_err();
    assert_eq!(home.read("host-y.json", 100).unwrap_err().kind(), std::io::ErrorKind::InvalidData);
    fs::remove_file(dir.join("manifest.json")).unwrap();
    assert!(pipe(dir.join("manifest.json")).success());
    assert_eq!(Store::open(&dir).unwrap_err().kind(), ErrorKind::CorruptIndex);
    // Of any length, of which nothing is read.
    fs::remove_file(dir.join("manifest.json")).unwrap();
    fs::File::create(dir.join("manifest.json")).unwrap().set_len(3 << 40).unwrap();
    let e = Store::open(&dir).unwrap_err();
    assert!(e.message().contains("too large for a manifest"), "{e}");
    fs::File::create(dir.join("host-z.json")).unwrap().set_len(3 << 40).unwrap();
    assert_eq!(home.read("host-z.json", 100).unwrap_err().kind(), std::io::ErrorKind::FileTooLarge);
}

#[test]
fn a_lock_that_is_held_is_waited_for_no_longer_than_stated() {
    let (_parent, dir) = place();
    made(&dir);
    let held = fs::OpenOptions::new().write(true).open(dir.join("lock")).unwrap();
    held.lock().unwrap();
    let home = Home::from(&dir).with_patience(Duration::from_millis(50));
    let begun = Instant::now();
    let e = Store::publish(&home, &fingerprint(), &Listing::clone, false).unwrap_err();
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(e.kind(), ErrorKind::Io);
    // Not every file system lets the kernel say whose lock it is.
    let holders =
        [format!("its lock is held by process {}", std::process::id()), "held by another process".into()];
    assert!(
        holders.iter().any(|h| e.message().contains(h)) && e.message().ends_with("waited for 0.05 s"),
        "{e}"
    );
    assert!(e.hint_text().unwrap().contains("end the process that holds the lock"));
    // Readers need none.
    assert_eq!(open(&dir).damage().len(), 0);
    held.unlock().unwrap();
    Store::publish(&home, &fingerprint(), &Listing::clone, false).unwrap();
}
