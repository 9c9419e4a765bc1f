//! Files and results that are published: whatever stops whom when, a name leads to all of something or to nothing.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sieva::{ErrorKind, OpenOptions, QueryOptions, Source};
use sieva_encode::Format;
use sieva_share::{FetchOptions, FollowOptions, Follower, Group, GroupOptions, Producer, PublishOptions};
use sieva_store::objects::Objects;

use crate::memory::{Crash, Memory};
use crate::world::{MEAN, Scratch, ask, check_beside, classic, keys, produce};

fn in_memory(memory: &Arc<Memory>) -> Group {
    Group::create_in(memory.clone(), &GroupOptions::default()).unwrap()
}

fn written(scratch: &Scratch, name: &str, bytes: &[u8]) -> PathBuf {
    let path = scratch.0.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn publish(group: &Group, user: &str, name: &str, path: &Path) -> sieva::Result<()> {
    group.publish(user, name, path, &PublishOptions::default()).map(drop)
}

fn fetched(group: &Group, scratch: &Scratch, name: &str) -> sieva::Result<Vec<u8>> {
    let path = scratch.0.join("fetched");
    group.fetch(name, &path, &FetchOptions::default())?;
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    Ok(bytes)
}

fn kind(e: &sieva::Error) -> ErrorKind {
    e.kind()
}

#[test]
fn a_file_is_published_under_a_name_that_stays() {
    let scratch = Scratch::new();
    let place = scratch.0.join("group").display().to_string();
    let group = Group::create(&place, &GroupOptions::default()).unwrap();
    let (one, two) = (written(&scratch, "one", b"one"), written(&scratch, "two", b"longer"));
    let told = group.publish("ada", "a.nc", &one, &PublishOptions::default()).unwrap();
    assert_eq!((&*told.user, &*told.name, told.state.size, told.complete), ("ada", "a.nc", 3, true));
    let plain = scratch.0.join("group/published/ada/a.nc");
    assert_eq!(
        (std::fs::read(&plain).unwrap(), told.location),
        (b"one".to_vec(), plain.display().to_string())
    );
    assert_eq!(fetched(&group, &scratch, "a.nc").unwrap(), b"one");
    publish(&group, "ada", "a.nc", &two).unwrap();
    publish(&group, "ada", "empty", &written(&scratch, "none", b"")).unwrap();
    for name in ["a.nc", "ada/a.nc"] {
        assert_eq!(fetched(&group, &scratch, name).unwrap(), b"longer");
    }
    assert_eq!(fetched(&group, &scratch, "empty").unwrap(), b"");
    let link = group.link("a.nc", Duration::from_secs(60)).unwrap();
    assert_eq!((link.url, link.expires), (format!("file://{}", plain.display()), false));
    let status = group.status().unwrap();
    let named: Vec<&str> = status.published.iter().map(|p| &*p.name).collect();
    assert_eq!((named, status.wrong.len()), (vec!["a.nc", "empty"], 0));
    group.unpublish("ada", "a.nc").unwrap();
    group.unpublish("ada", "empty").unwrap();
    let e = group.unpublish("ada", "a.nc").unwrap_err();
    assert_eq!(
        (kind(&e), e.message()),
        (ErrorKind::FileNotFound, &*format!("nothing is published as 'a.nc' at '{place}'"))
    );
    assert_eq!(kind(&fetched(&group, &scratch, "a.nc").unwrap_err()), ErrorKind::FileNotFound);
    assert_eq!(keys(&**group.objects(), ""), ["group/group.json"]);
}

#[test]
fn a_result_is_published_and_those_of_asks_have_names() {
    let scratch = Scratch::new();
    let group = in_memory(&Arc::new(Memory::new("results")));
    scratch.step("run.1.nc", 1000);
    let source = Source::open(scratch.0.join("steps/run.1.nc"), &OpenOptions::default()).unwrap();
    let query = Arc::new(source.sql("SELECT v WHERE v < 1002", &QueryOptions::default()).unwrap());
    let csv = Format::named("csv").unwrap();
    let told = group
        .publish_result("ada", "small.csv", &query, csv, &scratch.0, &PublishOptions::default())
        .unwrap();
    assert_eq!((told.state.rows, told.state.sql.as_deref()), (Some(2), Some("SELECT v WHERE v < 1002")));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().replace("\r\n", "\n");
    assert_eq!(text(fetched(&group, &scratch, "small.csv").unwrap()), "v\n1000\n1001\n");

    sieva_share::Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    ask(&group, "bob", "last", "SELECT v WHERE v > 1998").unwrap();
    ask(&group, "bob", "wrong", "SELECT none").unwrap();
    produce(&group, "model").unwrap();
    assert_eq!(text(fetched(&group, &scratch, "bob/last/run.1.nc").unwrap()), "v\n1999\n");
    for (name, said) in [
        ("bob/last/run.2.nc", "of that ask there is run.1.nc"),
        ("bob/none/run.1.nc", "sieva share status"),
        ("bob/wrong/run.1.nc", "ask for something else"),
    ] {
        let e = fetched(&group, &scratch, name).unwrap_err();
        assert_eq!(kind(&e), ErrorKind::FileNotFound, "{name}");
        assert!(e.to_string().contains(said) || e.hint_text().is_some_and(|h| h.contains(said)), "{e}");
    }
    // The producer's next pass leaves alone what is published.
    assert_eq!(produce(&group, "model").unwrap().deleted, 0);
    assert_eq!(text(fetched(&group, &scratch, "ada/small.csv").unwrap()), "v\n1000\n1001\n");
}

/// What there is after each act but the last.
const HELD: [&str; 4] = ["old", "new", "old", "new"];
/// What happens, in order. Each is done again by who was killed in it.
const ACTS: usize = 5;

fn act(number: usize, group: &Group, scratch: &Scratch) -> sieva::Result<()> {
    let options = PublishOptions { zone_maps_from: Some(0), ..PublishOptions::default() };
    match number {
        0..4 => group.publish("ada", "n", scratch.0.join(HELD[number]), &options).map(drop),
        4 => match group.unpublish("ada", "n") {
            // Killed after the last step of it.
            Err(e) if e.kind() == ErrorKind::FileNotFound => Ok(()),
            done => done,
        },
        _ => unreachable!(),
    }
}

#[test]
fn whoever_is_killed_at_any_step_a_name_leads_to_all_of_something() {
    assert!(all_crashes(b"the old one", b"new") > 30);
}

#[test]
fn and_of_zone_maps_beside_it_nothing_is_half_or_left() {
    assert!(all_crashes(&classic(1, 3000), &classic(2, 2000)) > 60);
    // What was there carried some, and what comes does not.
    assert!(all_crashes(&classic(1, 3000), b"new") > 40);
}

/// Plays all acts with a crash at each operation; says how many there were.
fn all_crashes(old: &[u8], new: &[u8]) -> usize {
    let mut crashes = 0;
    for number in 0.. {
        let mut happened = false;
        for crash in [Crash::Before(number), Crash::After(number)] {
            let (scratch, memory) = (Scratch::new(), Arc::new(Memory::new(&format!("{crash:?}"))));
            let group = in_memory(&memory);
            written(&scratch, "old", old);
            written(&scratch, "new", new);
            memory.set_crash(Some(crash));
            for number in 0..ACTS {
                let done = act(number, &group, &scratch);
                if memory.has_crashed() {
                    (happened, crashes) = (true, crashes + 1);
                    assert!(done.is_err());
                    memory.set_crash(None);
                    match fetched(&group, &scratch, "n") {
                        Ok(found) => assert!(found == new || found == old, "{crash:?}"),
                        Err(e) => {
                            assert!(
                                kind(&e) == ErrorKind::FileNotFound && (number == 0 || number == 4),
                                "{e}"
                            );
                        }
                    }
                    act(number, &group, &scratch).unwrap();
                } else {
                    done.unwrap();
                }
                check_beside(&memory.contents(), "published/ada/n");
                match HELD.get(number) {
                    Some(&name) => {
                        let expected = if name == "old" { old } else { new };
                        let mut found = fetched(&group, &scratch, "n");
                        if memory.has_crashed() {
                            // Who fetches is killed, too.
                            (happened, crashes) = (true, crashes + 1);
                            memory.set_crash(None);
                            found = fetched(&group, &scratch, "n");
                        }
                        assert_eq!(found.unwrap(), expected);
                    }
                    None => {
                        let there: Vec<String> = memory.contents().into_keys().collect();
                        assert_eq!(there, ["group/group.json"], "{crash:?}");
                    }
                }
            }
        }
        if !happened {
            break;
        }
    }
    crashes
}

#[test]
fn fetching_goes_on_where_it_was_stopped_and_shows_no_half() {
    let (scratch, memory) = (Scratch::new(), Arc::new(Memory::new("resumed")));
    let group = in_memory(&memory);
    let bytes: Vec<u8> = (0..20 << 20).map(|i: u32| (i ^ (i >> 11)) as u8).collect();
    publish(&group, "ada", "large", &written(&scratch, "source", &bytes)).unwrap();
    let path = scratch.0.join("here");
    // After the listing, the record and two pieces of 8 MiB.
    memory.set_crash(Some(Crash::Before(4)));
    assert_eq!(kind(&group.fetch("large", &path, &FetchOptions::default()).unwrap_err()), ErrorKind::Io);
    assert!(!path.exists());
    memory.set_crash(None);
    let done = group.fetch("large", &path, &FetchOptions::default()).unwrap();
    assert_eq!((done.size, done.came), (20 << 20, 4 << 20));
    assert!(std::fs::read(&path).unwrap() == bytes);
    // Of another one meanwhile: all of it comes.
    memory.set_crash(Some(Crash::Before(4)));
    group.fetch("large", &path, &FetchOptions::default()).unwrap_err();
    memory.set_crash(None);
    let other: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    publish(&group, "ada", "large", &written(&scratch, "source", &other)).unwrap();
    let done = group.fetch("large", &path, &FetchOptions::default()).unwrap();
    assert!(done.came >= done.size && std::fs::read(&path).unwrap() == other);
    // A damaged one is told, and what was here stays.
    memory.damage("published/ada/large");
    let e = group.fetch("large", &path, &FetchOptions::default()).unwrap_err();
    assert_eq!(kind(&e), ErrorKind::CorruptFile, "{e}");
    assert!(std::fs::read(&path).unwrap() == other);
    let left = std::fs::read_dir(&scratch.0)
        .unwrap()
        .filter(|e| e.as_ref().unwrap().file_name().to_string_lossy().ends_with(".part"));
    assert_eq!(left.count(), 0);
}

#[test]
fn a_part_of_somebody_else_is_not_gone_on_with() {
    let (scratch, memory) = (Scratch::new(), Arc::new(Memory::new("planted")));
    let group = in_memory(&memory);
    publish(&group, "ada", "n", &written(&scratch, "source", b"bytes")).unwrap();
    let (path, part) =
        (scratch.0.join("n"), scratch.0.join(format!(".n.{}.part", &sieva_store::name_of(b"n")[..8])));
    let victim = written(&scratch, "victim", b"mine");
    std::os::unix::fs::symlink(&victim, &part).unwrap();
    group.fetch("n", &path, &FetchOptions::default()).unwrap_err();
    std::fs::remove_file(&part).unwrap();
    std::fs::hard_link(&victim, &part).unwrap();
    let e = group.fetch("n", &path, &FetchOptions::default()).unwrap_err();
    assert_eq!(kind(&e), ErrorKind::PermissionDenied, "{e}");
    assert!(!path.exists() && std::fs::read(&victim).unwrap() == b"mine");
    std::fs::remove_file(&part).unwrap();
    // One of ours that is longer than what is fetched.
    std::fs::write(&part, b"bytes and more").unwrap();
    assert_eq!(group.fetch("n", &path, &FetchOptions::default()).unwrap().came, 5);
    assert_eq!(std::fs::read(&path).unwrap(), b"bytes");
}

#[test]
fn what_is_no_file_is_never_replaced_by_one() {
    let (scratch, memory) = (Scratch::new(), Arc::new(Memory::new("special")));
    let group = in_memory(&memory);
    publish(&group, "ada", "n", &written(&scratch, "source", b"bytes")).unwrap();
    let at = |name: &str| scratch.0.join(name);
    let _listens = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    std::fs::create_dir(at("folder")).unwrap();
    std::os::unix::fs::symlink(at("pipe"), at("link")).unwrap();
    for name in ["socket", "pipe", "folder", "link"] {
        let before = std::fs::symlink_metadata(at(name)).unwrap();
        let e = group.fetch("n", at(name), &FetchOptions::default()).unwrap_err();
        assert!(kind(&e) == ErrorKind::InvalidValue && e.message().contains("not a regular file"), "{e}");
        let after = std::fs::symlink_metadata(at(name)).unwrap();
        assert_eq!((before.file_type(), before.ino()), (after.file_type(), after.ino()), "{name}");
    }
    // A link to a file, or to nothing, is replaced itself.
    for target in ["source", "nowhere"] {
        let link = at(&format!("to-{target}"));
        std::os::unix::fs::symlink(at(target), &link).unwrap();
        group.fetch("n", &link, &FetchOptions::default()).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_file(), "{target}");
    }
    assert!(std::fs::symlink_metadata(at("nowhere")).is_err());
    // In the folder of a follower, too.
    scratch.step("a.nc", 1500);
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    ask(&group, "ada", "mean", MEAN).unwrap();
    produce(&group, "model").unwrap();
    let folder = at("kept");
    std::fs::create_dir(&folder).unwrap();
    let listens = std::os::unix::net::UnixListener::bind(folder.join("a.csv")).unwrap();
    let follower = Follower::new(&group, "ada", "mean", &folder).unwrap();
    let e = follower.pass(&FollowOptions::default()).unwrap_err();
    assert!(kind(&e) == ErrorKind::InvalidValue && e.message().contains("not a regular file"), "{e}");
    drop(listens);
    std::fs::remove_file(folder.join("a.csv")).unwrap();
    assert_eq!(follower.pass(&FollowOptions::default()).unwrap().files.len(), 1);
}

#[test]
fn names_of_two_are_told_apart_and_processes_of_one_wait() {
    let (scratch, memory) = (Scratch::new(), Arc::new(Memory::new("two")));
    let group = in_memory(&memory);
    for user in ["ada", "bob"] {
        publish(&group, user, "n", &written(&scratch, user, user.as_bytes())).unwrap();
    }
    let e = fetched(&group, &scratch, "n").unwrap_err();
    assert_eq!((kind(&e), e.message()), (ErrorKind::InvalidValue, "'n' was published by ada and bob"));
    assert_eq!(fetched(&group, &scratch, "bob/n").unwrap(), b"bob");
    std::thread::scope(|scope| {
        for number in 0..8_u8 {
            let (group, path) = (&group, written(&scratch, &number.to_string(), &vec![number; 5000]));
            scope.spawn(move || publish(group, "cyd", "m", &path).unwrap());
        }
    });
    let found = fetched(&group, &scratch, "cyd/m").unwrap();
    assert!(found.len() == 5000 && found.iter().all(|byte| *byte == found[0]));
    assert_eq!(group.published().unwrap().0.iter().filter(|p| !p.complete).count(), 0);
}

#[test]
fn what_is_no_name_is_refused_and_nothing_is_put() {
    let (scratch, memory) = (Scratch::new(), Arc::new(Memory::new("names")));
    let group = in_memory(&memory);
    let path = written(&scratch, "source", b"bytes");
    for name in ["", "..", "../a", "/a", "a/b", ".a", "-a", "a b", "a\0b", "\u{202e}a", &"a".repeat(121)] {
        assert_eq!(
            kind(&publish(&group, "ada", name, &path).unwrap_err()),
            ErrorKind::InvalidValue,
            "{name:?}"
        );
        assert_eq!(
            kind(&publish(&group, name, "a", &path).unwrap_err()),
            ErrorKind::InvalidValue,
            "{name:?}"
        );
        let e = group.fetch(name, scratch.0.join("out"), &FetchOptions::default()).unwrap_err();
        assert!(matches!(kind(&e), ErrorKind::InvalidValue | ErrorKind::FileNotFound), "{name:?}: {e}");
        group.link(name, Duration::from_secs(60)).unwrap_err();
        group.unpublish("ada", name).unwrap_err();
    }
    publish(&group, "ada", "a", &scratch.0).unwrap_err();
    publish(&group, "ada", "a", &scratch.0.join("none")).unwrap_err();
    let never = PublishOptions { keep: Some(Duration::ZERO), ..PublishOptions::default() };
    assert_eq!(kind(&group.publish("ada", "a", &path, &never).unwrap_err()), ErrorKind::InvalidValue);
    assert_eq!(keys(&*memory, ""), ["group/group.json"]);
    publish(&group, "ada", "a", &path).unwrap();
    let e = group.fetch("a", scratch.0.join("o\0ut"), &FetchOptions::default()).unwrap_err();
    assert_eq!(kind(&e), ErrorKind::InvalidValue);
    assert!(!scratch.0.join("out").exists());
}

#[test]
fn a_file_that_changes_while_it_is_put_is_told_and_what_was_there_stays() {
    let scratch = Scratch::new();
    let path = written(&scratch, "source", b"first");
    let changing = path.clone();
    let gate = move |what: &str| {
        if what == "put published/ada/n" && std::fs::read(&changing).unwrap() == b"then" {
            std::fs::write(&changing, b"then more").unwrap();
        }
    };
    let memory = Arc::new(Memory::gated("changing", gate));
    let group = in_memory(&memory);
    publish(&group, "ada", "n", &path).unwrap();
    std::fs::write(&path, b"then").unwrap();
    let e = publish(&group, "ada", "n", &path).unwrap_err();
    assert_eq!(kind(&e), ErrorKind::StaleSource, "{e}");
    assert_eq!(fetched(&group, &scratch, "n").unwrap(), b"first");
    assert!(!group.published().unwrap().0[0].complete);
    publish(&group, "ada", "n", &path).unwrap();
    assert_eq!(fetched(&group, &scratch, "n").unwrap(), b"then more");
}

#[test]
fn what_is_over_is_there_no_longer_and_is_deleted() {
    let (scratch, memory) = (Scratch::new(), Arc::new(Memory::new("over")));
    let group = in_memory(&memory);
    scratch.step("a.nc", 1000);
    sieva_share::Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    let path = written(&scratch, "source", &classic(0, 10));
    let week = PublishOptions { keep: Some(Duration::from_secs(7 * 86_400)), ..PublishOptions::default() };
    let told = group.publish("ada", "week", &path, &week).unwrap();
    assert_eq!(told.state.until, Some(told.state.made + 7 * 86_400));
    group.publish("ada", "n", &path, &week).unwrap();
    let record = memory.contents()["group/published/ada/n.json"].clone();
    let record = String::from_utf8(record).unwrap();
    let until = format!("\"until\":{}", told.state.until.unwrap());
    assert!(record.contains(&until) || record.contains("\"until\":"), "{record}");
    let mut over: serde_json::Value = serde_json::from_str(&record).unwrap();
    over["states"][0]["until"] = 1000.into();
    memory.put("group/published/ada/n.json", &over.to_string().into_bytes()).unwrap();
    assert_eq!(kind(&fetched(&group, &scratch, "n").unwrap_err()), ErrorKind::FileNotFound);
    assert_eq!(kind(&group.link("n", Duration::from_secs(60)).unwrap_err()), ErrorKind::FileNotFound);
    assert_eq!(group.published().unwrap().0.len(), 1);
    assert_eq!(produce(&group, "model").unwrap().deleted, 1);
    assert_eq!(keys(&*memory, "published/"), ["published/ada/week"]);
    assert_eq!(keys(&*memory, "group/published/"), ["group/published/ada/week.json"]);
    // A record of somebody else that is none is told, and is in nobody's way.
    memory.put("group/published/eve/n.json", &b"{\"version\":2,\"states\":[]}".to_vec()).unwrap();
    let (found, wrong) = group.published().unwrap();
    assert_eq!((found.len(), wrong.len()), (1, 1));
    assert_eq!(produce(&group, "model").unwrap().deleted, 0);
    group.unpublish("eve", "n").unwrap();
    assert_eq!(group.published().unwrap().1.len(), 0);
}
