//! Encrypted groups: all goes as in others, and the store learns nothing but names, sizes and times.

use std::sync::Arc;
use std::time::Duration;

use sieva::ErrorKind;
use sieva_share::{FetchOptions, Group, GroupKey, GroupOptions, Producer, PublishOptions};
use sieva_store::objects::Objects;

use crate::memory::Memory;
use crate::world::{LARGE, MEAN, Scratch, ask, files, follow, produce, produce_packed};

fn encrypted(key: &GroupKey) -> GroupOptions {
    GroupOptions { key: Some(key.clone()), ..GroupOptions::default() }
}

fn contains(bytes: &[u8], what: &str) -> bool {
    bytes.windows(what.len()).any(|window| window == what.as_bytes())
}

#[test]
fn consumers_have_what_they_have_without_a_key_and_the_store_has_no_word_of_it() {
    for pass in [produce, produce_packed] {
        let scratch = Scratch::new();
        scratch.step("a.nc", 1000);
        scratch.step("b.nc", 1500);
        let key = GroupKey::draw().unwrap();
        let memory = Arc::new(Memory::new("encrypted"));
        let groups = [
            Group::create_in(memory.clone(), &encrypted(&key)).unwrap(),
            Group::create_in(Arc::new(Memory::new("plain")), &GroupOptions::default()).unwrap(),
        ];
        let found = ["one", "other"].iter().zip(&groups).map(|(folder, group)| {
            Producer::register(group, "model", &[scratch.steps()]).unwrap();
            ask(group, "ada", "mean", MEAN).unwrap();
            ask(group, "ada", "large", LARGE).unwrap();
            let done = pass(group, "model").unwrap();
            assert_eq!((done.entries, done.failed, done.troubles.len()), (4, 0, 0));
            let contents = memory.contents();
            let followed = follow(group, "ada", &scratch.folder(folder)).unwrap();
            assert_eq!((followed.files.len(), followed.troubles.len()), (4, 0));
            let sizes = group.status().unwrap().objects.1;
            assert_eq!(sizes, done.bytes);
            (files(&scratch.folder(folder)), contents)
        });
        let found: Vec<_> = found.collect();
        assert!(found[0].0 == found[1].0 && found[0].0.len() == 4);
        for (name, bytes) in found[0].1.iter().filter(|(name, _)| *name != "group/group.json") {
            for word in ["SELECT", "a.nc", "1999", "version", "model"] {
                assert!(!contains(bytes, word), "{name} says {word}");
            }
        }
        // All was taken: nothing is kept.
        assert_eq!(pass(&groups[0], "model").unwrap().failed, 0);
        assert!(!memory.contents().keys().any(|key| key.starts_with("data/")));
    }
}

#[test]
fn another_key_or_none_changes_nothing() {
    let memory = Arc::new(Memory::new("keys"));
    let key = GroupKey::draw().unwrap();
    Group::create_in(memory.clone(), &encrypted(&key)).unwrap().join("ada").unwrap();
    let before = memory.contents();
    let other = GroupKey::draw().unwrap();
    for (given, kind, said) in [
        (None, ErrorKind::PermissionDenied, "is encrypted"),
        (Some(&other), ErrorKind::InvalidValue, "the key is not the one of the group"),
    ] {
        let options = GroupOptions { key: given.cloned(), ..GroupOptions::default() };
        for e in [
            Group::open_in(memory.clone(), given).unwrap_err(),
            Group::create_in(memory.clone(), &options).unwrap_err(),
        ] {
            assert_eq!(e.kind(), kind);
            assert!(e.message().contains(said), "{e}");
        }
    }
    assert_eq!(memory.contents(), before);
    assert_eq!(Group::open_in(memory.clone(), Some(&key)).unwrap().members().unwrap(), ["ada"]);
    // What somebody without the key made of the record, who would have the members put records in plain.
    let record = String::from_utf8(before["group/group.json"].clone()).unwrap();
    let mut said: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(said["version"], 3);
    said["expires"] = 1.into();
    memory.put("group/group.json", &said.to_string().into_bytes()).unwrap();
    assert_eq!(Group::open_in(memory.clone(), Some(&key)).unwrap_err().kind(), ErrorKind::InvalidValue);
    let plain = Arc::new(Memory::new("plain"));
    Group::create_in(plain.clone(), &GroupOptions::default()).unwrap();
    let e = Group::open_in(plain, Some(&key)).unwrap_err();
    assert!(e.message().ends_with("is not encrypted, and a key is given"), "{e}");
}

#[test]
fn what_is_published_is_encrypted_and_read_in_ranges() {
    let scratch = Scratch::new();
    let (memory, key) = (Arc::new(Memory::new("published")), GroupKey::draw().unwrap());
    let group = Group::create_in(memory.clone(), &encrypted(&key)).unwrap();
    let bytes: Vec<u8> = (0..(9 << 20) + 17).map(|i: u32| (i ^ (i >> 13)) as u8).collect();
    let path = scratch.0.join("source");
    std::fs::write(&path, &bytes).unwrap();
    group.publish("ada", "n", &path, &PublishOptions::default()).unwrap();
    let there = memory.contents()["published/ada/n"].clone();
    assert!(there.len() > bytes.len() && !there.windows(32).any(|window| window == &bytes[65..97]));
    let back = scratch.0.join("back");
    group.fetch("n", &back, &FetchOptions::default()).unwrap();
    assert!(std::fs::read(&back).unwrap() == bytes);
    let mut out = vec![0; 70_000];
    for offset in [0, 1, 65_535, 65_536, 130_000, bytes.len() - 70_000] {
        assert!(group.objects().get_range("published/ada/n", offset as u64, &mut out).unwrap());
        assert!(out == bytes[offset..offset + 70_000], "{offset}");
    }
    let e = group.objects().get_range("published/ada/n", bytes.len() as u64 - 1, &mut out[..2]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptFile);
    assert!(!group.objects().get_range("published/ada/none", 0, &mut out).unwrap());
    assert!(group.objects().get_range("published/ada/n", 0, &mut []).unwrap());
    assert_eq!(group.link("n", Duration::from_secs(60)).unwrap_err().kind(), ErrorKind::Unsupported);
    // Replaced by another while its head is known.
    std::fs::write(&path, b"short").unwrap();
    let other = Group::open_in(memory.clone(), Some(&key)).unwrap();
    other.publish("ada", "n", &path, &PublishOptions::default()).unwrap();
    group.fetch("n", &back, &FetchOptions::default()).unwrap();
    assert_eq!(std::fs::read(&back).unwrap(), b"short");
    // What was there before, or lies at another name, is not believed there.
    memory.put("published/ada/n", &there).unwrap();
    let e = group.fetch("n", &back, &FetchOptions::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptFile, "{e}");
    memory.put("published/ada/m", &there).unwrap();
    let mut out = [0; 4];
    let e = group.objects().get_range("published/ada/m", 0, &mut out).unwrap_err();
    assert!(e.message().ends_with("is not what a member of the group put there"), "{e}");
    let record = memory.contents()["group/published/ada/n.json"].clone();
    memory.put("group/members/eve.json", &record).unwrap();
    assert_eq!(group.asks("eve").unwrap_err().kind(), ErrorKind::CorruptFile);
    assert_eq!(std::fs::read(&back).unwrap(), b"short");
}
