//! Publishing: at once, by many, and what is swept away.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use sieva_types::ErrorKind;

use super::*;

#[test]
fn no_store_is_none() {
    let (parent, dir) = place();
    assert!(Store::open(&dir).unwrap().is_none());
    Store::drop_all(&dir).unwrap();
    fs::write(parent.path().join("file"), b"").unwrap();
    assert!(Store::open(&parent.path().join("file")).unwrap().is_none());
    fs::create_dir(&dir).unwrap();
    assert!(Store::open(&dir).unwrap().is_none());
}

#[test]
fn what_is_not_published_does_not_count_and_does_not_stay() {
    let (_parent, dir) = place();
    let mut writer = SegmentWriter::create(&dir).unwrap();
    writer.put(&header("/TEMP"), &stats(0, b"x")).unwrap();
    assert_eq!(names_in(&dir).len(), 1);
    drop(writer);
    let finished = segment(&dir, "/TEMP", &[stats(0, b"x")]);
    let sorted = SortedDraft::create(&dir).unwrap();
    fs::write(sorted.path().join("zarr.json"), b"{}").unwrap();
    assert!(Store::open(&dir).unwrap().is_none());
    drop((finished, sorted));
    assert!(names_in(&dir).is_empty());
}

#[test]
fn builders_at_work_are_not_swept_away() {
    let (_parent, dir) = place();
    let mut writer = SegmentWriter::create(&dir).unwrap();
    writer.put(&header("/TEMP"), &stats(0, b"slow")).unwrap();
    let finished = segment(&dir, "/TEMP", &[stats(1, b"finished")]);
    let sorted = SortedDraft::create(&dir).unwrap();
    fs::write(sorted.path().join("c"), b"12345").unwrap();
    add(&dir, segment(&dir, "/TEMP", &[stats(2, b"fast")]));
    let entry = sorted.finish("/TEMP", vec!["/TEMP".into()], 7).unwrap();
    assert_eq!(entry.bytes, 5);
    let slow = writer.finish(true).unwrap();
    let change = |old: &Listing| {
        let segments = [&old.segments[..], &[slow.clone(), finished.clone()]].concat();
        Listing { segments, sorted: vec![entry.clone()] }
    };
    Store::publish(&dir, &fingerprint(), &change, true).unwrap();
    let store = open(&dir);
    let records = store.load("/TEMP").unwrap();
    assert_eq!([0, 1, 2].map(|r| records.stats(r).unwrap()), [&b"slow"[..], b"finished", b"fast"]);
    assert_eq!(store.sorted(), [entry]);
    assert_eq!(fs::read(store.sorted()[0].dir.join("c")).unwrap(), b"12345");
    // Three segments, the replica, manifest and lock: the locks of builders are gone.
    assert_eq!(names_in(&dir).len(), 6);
}

#[test]
fn what_is_no_longer_listed_is_removed_but_stays_readable() {
    let (_parent, dir) = place();
    let bitmap = Some((&b"head"[..], &b"body"[..]));
    add(&dir, segment(&dir, "/TEMP", &[Record { bitmap, ..stats(0, b"old") }]));
    let draft = SortedDraft::create(&dir).unwrap();
    fs::write(draft.path().join("c"), b"12345").unwrap();
    let entry = draft.finish("/TEMP", Vec::new(), 7).unwrap();
    let change = |old: &Listing| Listing { sorted: vec![entry.clone()], ..old.clone() };
    Store::publish(&dir, &fingerprint(), &change, false).unwrap();
    fs::write(dir.join("notes.txt"), b"of the user").unwrap();
    let old = open(&dir);
    let records = old.load("/TEMP").unwrap();
    replace(
        &dir,
        &Listing { segments: vec![segment(&dir, "/TEMP", &[stats(0, b"new")])], sorted: Vec::new() },
    );
    assert_eq!(names_in(&dir).len(), 4);
    assert_eq!(&*records.bitmap_head(0).unwrap().unwrap(), b"head");
    assert_eq!(old.load("/TEMP").unwrap().stats(0), Some(&b"old"[..]));
    assert_eq!(open(&dir).load("/TEMP").unwrap().stats(0), Some(&b"new"[..]));
    Store::drop_all(&dir).unwrap();
    assert_eq!(names_in(&dir), ["notes.txt"]);
    fs::remove_file(dir.join("notes.txt")).unwrap();
    Store::drop_all(&dir).unwrap();
    assert!(!dir.exists());
}

#[test]
fn dropping_a_store_spares_builders_at_work() {
    let (_parent, dir) = place();
    add(&dir, segment(&dir, "/TEMP", &[stats(0, b"old")]));
    let finished = segment(&dir, "/TEMP", &[stats(1, b"new")]);
    Store::drop_all(&dir).unwrap();
    assert!(Store::open(&dir).unwrap().is_none());
    add(&dir, finished);
    let records = open(&dir).load("/TEMP").unwrap();
    assert_eq!((records.stats(0), records.stats(1)), (None, Some(&b"new"[..])));
}

#[test]
fn another_state_of_the_source_begins_with_nothing() {
    let (_parent, dir) = place();
    add(&dir, segment(&dir, "/TEMP", &[stats(0, b"old")]));
    let changed = Fingerprint { len: 9, ..fingerprint() };
    let new = segment(&dir, "/TEMP", &[stats(1, b"new")]);
    let change = |old: &Listing| {
        assert_eq!(*old, Listing::default());
        Listing { segments: vec![new.clone()], sorted: Vec::new() }
    };
    Store::publish(&dir, &changed, &change, false).unwrap();
    let store = open(&dir);
    assert_eq!(store.fingerprint(), &changed);
    assert_eq!(store.load("/TEMP").unwrap().stats(0), None);
    assert_eq!(names_in(&dir).len(), 3);
}

#[test]
fn a_damaged_manifest_is_told_and_built_over() {
    let (_parent, dir) = place();
    add(&dir, segment(&dir, "/TEMP", &[stats(0, b"old")]));
    fs::write(dir.join("manifest.json"), b"{").unwrap();
    let e = Store::open(&dir).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptIndex);
    assert!(e.message().contains("manifest.json"), "{e}");
    add(&dir, segment(&dir, "/TEMP", &[stats(1, b"new")]));
    assert_eq!(open(&dir).load("/TEMP").unwrap().stats(0), None);
    assert_eq!(names_in(&dir).len(), 3);
}

#[test]
fn what_is_not_there_is_not_listed() {
    let (_parent, dir) = place();
    add(&dir, segment(&dir, "/TEMP", &[stats(0, b"old")]));
    let (_other, elsewhere) = place();
    let foreign = segment(&elsewhere, "/TEMP", &[stats(0, b"x")]);
    let sorted = SortedDraft::create(&elsewhere).unwrap().finish("/TEMP", Vec::new(), 7).unwrap();
    for listing in [
        Listing { segments: vec![foreign], sorted: Vec::new() },
        Listing { segments: Vec::new(), sorted: vec![sorted] },
    ] {
        let e = Store::publish(&dir, &fingerprint(), &|_| listing.clone(), false).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidValue, "{e}");
    }
    assert_eq!(open(&dir).load("/TEMP").unwrap().stats(0), Some(&b"old"[..]));
}

#[test]
fn publishers_at_once_lose_nothing() {
    let (_parent, dir) = place();
    std::thread::scope(|scope| {
        for worker in 0..8_u64 {
            let dir = &dir;
            scope.spawn(move || {
                for round in 0..10 {
                    let region = worker * 10 + round;
                    add(dir, segment(dir, "/TEMP", &[stats(region, &region.to_le_bytes())]));
                }
            });
        }
    });
    let store = open(&dir);
    assert_eq!((store.listing().segments.len(), store.damage().len()), (80, 0));
    let records = store.load("/TEMP").unwrap();
    (0..80).for_each(|r| assert_eq!(records.stats(r), Some(&(r as u64).to_le_bytes()[..])));
    assert_eq!(names_in(&dir).len(), 82);
}

#[test]
fn readers_see_the_old_state_or_the_new_one() {
    let (_parent, dir) = place();
    let state = |dir: &Path, n: u8| Listing {
        segments: (0..3).map(|r| segment(dir, "/TEMP", &[stats(r, &[n])])).collect(),
        sorted: Vec::new(),
    };
    replace(&dir, &state(&dir, 0));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    let store = open(&dir);
                    // Overtaken each time it read the manifest anew: told, not believed.
                    if store.damage().is_empty() {
                        let records = store.load("/TEMP").unwrap();
                        let seen = [0, 1, 2].map(|r| records.stats(r).unwrap()[0]);
                        assert!(seen.iter().all(|n| *n == seen[0]), "{seen:?}");
                    }
                }
            });
        }
        (1..100).for_each(|n| replace(&dir, &state(&dir, n)));
        done.store(true, Relaxed);
    });
    assert_eq!(open(&dir).load("/TEMP").unwrap().stats(2), Some(&[99][..]));
    assert_eq!(names_in(&dir).len(), 5);
}

#[test]
fn a_place_that_is_read_only_names_the_way_out() {
    let (parent, dir) = place();
    fs::set_permissions(parent.path(), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(parent.path().join("probe"), b"").is_ok() {
        eprintln!("skipped: this user (root?) may write to directories that are read-only");
        return;
    }
    let e = SegmentWriter::create(&dir).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::PermissionDenied);
    assert!(e.hint_text().unwrap().contains("SIEVA_STORE"));
    let e = Store::publish(&dir, &fingerprint(), &Listing::clone, false).unwrap_err();
    assert!(e.hint_text().unwrap().contains("SIEVA_STORE"));
}

/// As root has all permissions, the mapping of errors is tested by itself.
#[test]
fn errors_of_writing_say_what_to_do() {
    use std::io::{Error, ErrorKind as Io};

    let mapped = |kind| super::super::files::write_error(Path::new("/x"), &Error::from(kind));
    for (io, kind) in [
        (Io::PermissionDenied, ErrorKind::PermissionDenied),
        (Io::ReadOnlyFilesystem, ErrorKind::PermissionDenied),
        (Io::StorageFull, ErrorKind::Io),
        (Io::Unsupported, ErrorKind::Unsupported),
    ] {
        let e = mapped(io);
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.hint_text().unwrap().contains("SIEVA_STORE"), "{e}");
    }
    assert_eq!(mapped(Io::NotFound).hint_text(), None);
}
