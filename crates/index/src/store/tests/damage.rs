//! Files that are not as they were written: the old bytes or a told damage, never other bytes.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};

use sieva_types::ErrorKind;

use super::*;

/// A store of two segments and one sorted replica, and the names of its segments.
fn small(dir: &Path) -> Vec<String> {
    let bitmap =
        |region, stats| Record { bitmap: Some((b"the head", b"body")), ..super::stats(region, stats) };
    add(dir, segment(dir, "/TEMP", &[stats(0, b"zero"), bitmap(1, b"one"), stats(5, b"five")]));
    add(dir, segment(dir, "/TEMP", &[bitmap(2, b"two"), bitmap(7, b"seven")]));
    let draft = SortedDraft::create(dir).unwrap();
    fs::write(draft.path().join("zarr.json"), b"{}").unwrap();
    let entry = draft.finish("/TEMP", vec!["/TEMP".into(), "/SALT".into()], 7).unwrap();
    let change = |old: &Listing| Listing { sorted: vec![entry.clone()], ..old.clone() };
    Store::publish(dir, &fingerprint(), &change, false).unwrap();
    open(dir).listing().segments.iter().map(|s| s.name().to_owned()).collect()
}

/// All that can be learnt from a store but bodies, each with whether it was there.
type Seen = Vec<Option<Vec<u8>>>;

/// Looks at everything; says whether damage was told.
fn look(dir: &Path) -> (Seen, bool) {
    let mut seen: Seen = Vec::new();
    let Ok(Some(store)) = Store::open(dir) else { return (seen, true) };
    let mut told = !store.damage().is_empty();
    seen.push(Some(format!("{:?} {:?}", store.fingerprint(), store.sorted()).into_bytes()));
    let Some(records) = store.load("/TEMP") else { return (seen, told) };
    told |= !records.damage.is_empty();
    seen.push(Some(format!("{:?}", records.header()).into_bytes()));
    for region in 0..100 {
        seen.push(records.content(region).map(|n| n.to_le_bytes().to_vec()));
        seen.push(records.stats(region).map(<[u8]>::to_vec));
        let head = records.bitmap_head(region);
        told |= head.is_err();
        seen.push(head.ok().flatten().map(|head| [&*head, &head.body_len.to_le_bytes()].concat()));
    }
    (seen, told)
}

/// Whether all that is seen was there before, and all that was there is seen unless damage was told.
fn assert_honest(dir: &Path, before: &Seen, what: &str) -> bool {
    let (seen, told) = look(dir);
    assert!(told || seen == *before, "{what}: something is gone, and nothing is told");
    let same = |(new, old): (&Option<Vec<u8>>, &Option<Vec<u8>>)| new.is_none() || new == old;
    assert!(seen.iter().zip(before).all(same), "{what}: other bytes");
    told
}

#[test]
fn every_flipped_bit_gives_the_old_bytes_or_is_told() {
    let (_parent, dir) = place();
    let mut files = small(&dir);
    files.push("manifest.json".into());
    let (before, told) = look(&dir);
    assert!(!told && before.iter().flatten().count() > 10);
    for name in files {
        let path = dir.join(&name);
        let good = fs::read(&path).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let mut noticed = 0;
        for bit in 0..good.len() * 8 {
            let at = bit / 8;
            file.write_all_at(&[good[at] ^ (1 << (bit % 8))], at as u64).unwrap();
            noticed += usize::from(assert_honest(&dir, &before, &format!("bit {bit} of {name}")));
            file.write_all_at(&[good[at]], at as u64).unwrap();
        }
        // What is not noticed is padding and bodies.
        assert!(noticed * 2 > good.len() * 8, "{name}: {noticed} of {} bits noticed", good.len() * 8);
    }
    assert_eq!(look(&dir), (before, false));
}

#[test]
fn every_truncation_is_told() {
    let (_parent, dir) = place();
    let mut files = small(&dir);
    files.push("manifest.json".into());
    let (before, _) = look(&dir);
    for name in files {
        let path = dir.join(&name);
        let good = fs::read(&path).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        for len in (0..good.len()).rev() {
            file.set_len(len as u64).unwrap();
            assert!(assert_honest(&dir, &before, &format!("{name} of {len} bytes")));
        }
        fs::write(&path, [&good[..], b"\0"].concat()).unwrap();
        assert!(assert_honest(&dir, &before, &format!("{name} with a byte more")));
        fs::remove_file(&path).unwrap();
        assert_honest(&dir, &before, &format!("{name} missing"));
        fs::write(&path, &good).unwrap();
    }
}

#[test]
fn a_damaged_segment_leaves_the_others() {
    let (_parent, dir) = place();
    let names = small(&dir);
    fs::write(dir.join(&names[1]), b"").unwrap();
    let store = open(&dir);
    assert!(
        store.damage()[0].contains(&names[1]) && store.damage()[0].contains("0 bytes"),
        "{:?}",
        store.damage()
    );
    let records = store.load("/TEMP").unwrap();
    assert_eq!(records.damage, store.damage());
    assert_eq!((records.stats(1), records.stats(2)), (Some(&b"one"[..]), None));
    fs::remove_file(dir.join(&names[0])).unwrap();
    let store = open(&dir);
    assert_eq!((store.damage().len(), store.load("/TEMP").is_none()), (2, true));
}

#[test]
fn a_segment_in_the_place_of_another_is_refused() {
    let (_parent, dir) = place();
    add(&dir, segment(&dir, "/TEMP", &[stats(0, b"old")]));
    add(&dir, segment(&dir, "/TEMP", &[stats(7, b"new")]));
    let names: Vec<_> = open(&dir).listing().segments.iter().map(|s| s.name().to_owned()).collect();
    fs::copy(dir.join(&names[0]), dir.join(&names[1])).unwrap();
    let records = open(&dir).load("/TEMP").unwrap();
    assert_eq!((records.stats(0), records.stats(7)), (Some(&b"old"[..]), None));
    assert!(records.damage[0].contains("not the one that was published"), "{:?}", records.damage);
}

#[test]
fn links_and_pipes_are_refused() {
    let (parent, dir) = place();
    let names = small(&dir);
    let moved = parent.path().join("elsewhere.seg");
    fs::rename(dir.join(&names[0]), &moved).unwrap();
    symlink(&moved, dir.join(&names[0])).unwrap();
    let store = open(&dir);
    assert!(store.damage()[0].contains("not a regular file"), "{:?}", store.damage());
    // A pipe would block whoever opens it.
    fs::remove_file(dir.join(&names[1])).unwrap();
    let made = std::process::Command::new("mkfifo").arg(dir.join(&names[1])).status();
    if made.is_ok_and(|status| status.success()) {
        assert_eq!(open(&dir).damage().len(), 2);
    }
    fs::rename(dir.join("manifest.json"), parent.path().join("m")).unwrap();
    symlink(parent.path().join("m"), dir.join("manifest.json")).unwrap();
    assert_eq!(Store::open(&dir).unwrap_err().kind(), ErrorKind::CorruptIndex);
}

#[test]
fn names_that_lead_out_of_the_store_are_refused() {
    let (_parent, dir) = place();
    fs::create_dir(&dir).unwrap();
    for name in ["../0123456789abcdef.seg", "/etc/passwd", "manifest.json", "", "0123456789abcdef.seg/.."] {
        let draft = None;
        let segment = SegmentName { name: name.into(), bytes: 1, directory: 2, durable: true, draft };
        let listing = Listing { segments: vec![segment], sorted: Vec::new() };
        write(&dir, listing);
        let e = Store::open(&dir).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::CorruptIndex, "{name}");
        assert!(e.message().contains("no name of a store"), "{e}");
    }
}

#[test]
fn a_newer_version_is_no_damage() {
    let (_parent, dir) = place();
    small(&dir);
    fs::write(dir.join("manifest.json"), br#"{"version": 2, "whatever": []}"#).unwrap();
    let e = Store::open(&dir).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.message().contains("newer sieva") && e.hint_text().is_some(), "{e}");
    let e = Store::publish(&dir, &fingerprint(), &Listing::clone, false).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(fs::read_to_string(dir.join("manifest.json")).unwrap().contains("whatever"));
    Store::drop_all(&dir).unwrap();
    assert!(!dir.exists());
}

#[test]
fn segments_of_another_shape_are_left_out() {
    let (_parent, dir) = place();
    add(&dir, segment(&dir, "/TEMP", &[stats(0, b"old"), stats(1, b"old")]));
    let mut writer = SegmentWriter::create(&dir).unwrap();
    let grown = ArrayHeader { shape: vec![11, 1000], ..header("/TEMP") };
    writer.put(&grown, &stats(0, b"new")).unwrap();
    add(&dir, writer.finish(false).unwrap());
    let records = open(&dir).load("/TEMP").unwrap();
    assert_eq!((records.stats(0), records.stats(1)), (Some(&b"new"[..]), None));
    assert_eq!((records.header(), records.damage.len()), (&grown, 1));
    assert!(records.damage[0].contains("another array"), "{:?}", records.damage);
}
