//! Many asks and many members: what a pass costs in requests.

use std::path::PathBuf;
use std::sync::Arc;

use sieva::ErrorKind;
use sieva_share::{Asking, Followers, Group, GroupOptions, Producer};
use sieva_store::objects::Objects;

use crate::memory::Memory;
use crate::world::{MEAN, Scratch, ask, files, follow, produce};

fn csv(sql: &str) -> Asking<'_> {
    Asking { sql, format: "csv", only_new: false }
}

fn group(memory: &Arc<Memory>, scratch: &Scratch) -> Group {
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    group
}

#[test]
fn a_thousand_asks_of_a_member_are_as_many_requests_as_one() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("thousand"));
    let group = group(&memory, &scratch);
    scratch.step("a.nc", 1000);
    let texts: Vec<(String, String)> = (0..1000)
        .map(|n| (format!("n{n:04}"), format!("SELECT count(*) AS n WHERE v < {}", 1000 + n)))
        .collect();
    let askings: Vec<(&str, Asking<'_>)> = texts.iter().map(|(name, sql)| (&**name, csv(sql))).collect();
    memory.take_log();
    let asks = group.ask_many("ada", &askings).unwrap();
    assert_eq!(memory.take_log(), ["get group/members/ada.json", "put group/members/ada.json"]);
    assert_eq!(asks, group.asks("ada").unwrap());
    for user in ["bob", "cyd", "dan"] {
        ask(&group, user, "mean", MEAN).unwrap();
    }
    produce(&group, "model").unwrap();
    // Four members, of whom nobody took anything: three gets for each, two for the group, three listings.
    memory.take_log();
    produce(&group, "model").unwrap();
    let log = memory.take_log();
    assert_eq!(log.len(), 3 * 4 + 5, "{log:?}");
    // A new file: the producer's record, an index of each member, the schema, and what is put for them.
    scratch.step("b.nc", 1500);
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.entries, done.failed, done.troubles.len()), (1003, 0, 0));
    let log = memory.take_log();
    assert_eq!(log.len() as u64, 3 * 4 + 5 + 1 + 4 + 1 + done.objects, "{log:?}");
    // What nobody asks for in other words is put once: all counts of the second file below 1500 are 0.
    follow_one(&group, &scratch, "n0400", "0");
    follow_one(&group, &scratch, "n0501", "1");
}

fn follow_one(group: &Group, scratch: &Scratch, ask: &str, expected: &str) {
    let folder = scratch.folder(ask);
    let follower = sieva_share::Follower::new(group, "ada", ask, &folder).unwrap();
    assert_eq!(follower.pass(&Default::default()).unwrap().files.len(), 2);
    let text = String::from_utf8(files(&folder)["b.csv"].clone()).unwrap();
    assert_eq!(text.split_whitespace().collect::<Vec<_>>(), ["n", expected]);
}

#[test]
fn many_are_asked_at_once_or_none() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("many"));
    let group = group(&memory, &scratch);
    ask(&group, "ada", "mean", MEAN).unwrap();
    let before = memory.contents();
    for (askings, kind) in [
        (vec![("new", csv(MEAN)), ("wrong", csv("SELECT"))], ErrorKind::Syntax),
        (vec![("new", csv(MEAN)), ("a/b", csv(MEAN))], ErrorKind::InvalidValue),
        (vec![("new", csv(MEAN)), ("new", csv("SELECT v"))], ErrorKind::InvalidValue),
        (vec![("new", Asking { sql: MEAN, format: "xls", only_new: false })], ErrorKind::InvalidValue),
    ] {
        assert_eq!(group.ask_many("ada", &askings).unwrap_err().kind(), kind);
        assert_eq!(memory.contents(), before);
    }
    let names: Vec<String> = (0..10_000).map(|n| format!("n{n}")).collect();
    let askings: Vec<(&str, Asking<'_>)> = names.iter().map(|name| (&**name, csv(MEAN))).collect();
    let e = group.ask_many("ada", &askings).unwrap_err();
    assert_eq!(
        (e.kind(), e.message()),
        (ErrorKind::InvalidValue, "ada would ask for 10001 things, and 10000 are the most")
    );
    assert_eq!(group.ask_many("ada", &[]).unwrap(), []);
    assert_eq!(memory.contents(), before);
    // Nobody's yet: who asks for nothing is a member all the same.
    assert_eq!(group.ask_many("bob", &[]).unwrap(), []);
    assert_eq!(group.members().unwrap(), ["ada", "bob"]);
    // In place of what was asked by the name; what is asked again stays as it is.
    let known = group.asks("ada").unwrap();
    let asks = group.ask_many("ada", &[("large", csv("SELECT v")), ("mean", csv(MEAN))]).unwrap();
    assert_eq!((&asks[1], &*asks[0].name), (&known[0], "large"));
    let changed = group.ask_many("ada", &[("mean", csv("SELECT min(v) AS least"))]).unwrap();
    assert_ne!(changed[0].id(), known[0].id());
    let back = group.ask_many("ada", &[("mean", csv(MEAN))]).unwrap();
    assert_ne!(back[0].id(), known[0].id(), "asked again is another ask");
}

#[test]
fn what_each_takes_is_told_of_each_and_deleted_when_both_have_it() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("each"));
    let group = group(&memory, &scratch);
    scratch.step("a.nc", 0);
    group
        .ask_many(
            "ada",
            &[("one", csv(MEAN)), ("two", csv(MEAN)), ("new", Asking { only_new: true, ..csv(MEAN) })],
        )
        .unwrap();
    assert_eq!(produce(&group, "model").unwrap().objects, 1);
    let waiting = || -> Vec<(String, u64, usize)> {
        let status = group.status().unwrap().asks.into_iter();
        status.map(|one| (one.ask.name, one.answered, one.waiting.len())).collect()
    };
    let of = |name: &str, answered, waiting| (name.to_owned(), answered, waiting);
    assert_eq!(waiting(), [of("new", 1, 0), of("one", 1, 1), of("two", 1, 1)]);
    let take = |ask: &str| {
        let follower = sieva_share::Follower::new(&group, "ada", ask, scratch.folder(ask)).unwrap();
        follower.pass(&Default::default()).unwrap().files.len()
    };
    assert_eq!(take("one"), 1);
    assert_eq!(waiting(), [of("new", 1, 0), of("one", 1, 0), of("two", 1, 1)]);
    assert_eq!(produce(&group, "model").unwrap().deleted, 0);
    assert_eq!((take("two"), take("one"), take("new")), (1, 0, 0));
    assert_eq!(produce(&group, "model").unwrap().deleted, 1);
    // The one that is withdrawn is forgotten, the other goes on.
    group.withdraw("ada", "one").unwrap();
    scratch.step("b.nc", 10);
    produce(&group, "model").unwrap();
    assert_eq!((take("two"), take("new")), (1, 1));
    let taken = String::from_utf8(memory.contents()["users/ada/taken.json"].clone()).unwrap();
    assert!(taken.contains("two") && !taken.contains("one"), "{taken}");
}

#[test]
fn a_group_of_an_earlier_version_says_what_to_do() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("earlier"));
    memory.put("group/group.json", &br#"{"version":1,"created":1,"expires":null}"#.to_vec()).unwrap();
    for e in [
        Group::open_in(memory.clone(), None).unwrap_err(),
        Group::create_in(memory.clone(), &GroupOptions::default()).unwrap_err(),
    ] {
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.message().ends_with("group/group.json' is of version 1, not 2"), "{e}");
        assert!(e.hint_text().is_some_and(|hint| hint.contains("make a group at another place")), "{e}");
    }
    drop(scratch);
}

#[test]
fn directories_that_are_not_there_for_a_while_are_not_answered_again() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("unmounted"));
    let group = group(&memory, &scratch);
    for n in 0..3 {
        scratch.step(&format!("{n}.nc"), n);
    }
    ask(&group, "ada", "mean", MEAN).unwrap();
    assert_eq!(produce(&group, "model").unwrap().entries, 3);
    let (here, aside) = (scratch.0.join("steps"), scratch.0.join("aside"));
    std::fs::rename(&here, &aside).unwrap();
    std::fs::create_dir(&here).unwrap();
    assert_eq!(produce(&group, "model").unwrap().entries, 0);
    std::fs::remove_dir(&here).unwrap();
    std::fs::rename(&aside, &here).unwrap();
    assert_eq!(produce(&group, "model").unwrap().entries, 0);
    // A record of the producer that was lost: all is answered again, and nothing is fetched twice.
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    memory.delete("group/producers/model.json").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2));
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    assert_eq!(produce(&group, "model").unwrap().entries, 3);
    assert_eq!(follow(&group, "ada", &scratch.folder("ada")).unwrap().files.len(), 0);
}

#[test]
fn many_folders_of_a_member_are_kept_by_few_requests_for_records() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("folders"));
    let group = group(&memory, &scratch);
    scratch.step("a.nc", 1000);
    let texts: Vec<(String, String)> = (0..150)
        .map(|n| (format!("n{n:03}"), format!("SELECT count(*) AS n WHERE v < {}", 1000 + n)))
        .collect();
    let askings: Vec<(&str, Asking<'_>)> = texts.iter().map(|(name, sql)| (&**name, csv(sql))).collect();
    group.ask_many("ada", &askings).unwrap();
    let objects = produce(&group, "model").unwrap().objects;
    let wanted: Vec<(&str, PathBuf)> =
        texts.iter().map(|(name, _)| (&**name, scratch.folder(name))).collect();
    memory.take_log();
    let followers = Followers::new(&group, "ada", &wanted).unwrap();
    let done = followers.pass(&Default::default()).unwrap();
    assert!(done.iter().all(|one| one.files.len() == 1 && one.troubles.is_empty()));
    let log = memory.take_log();
    let of_records = log.iter().filter(|line| !line.contains("data/")).count();
    assert!(of_records < 30, "{of_records} of {}: {log:?}", log.len());
    for (number, (_, folder)) in wanted.iter().enumerate() {
        let text = String::from_utf8(files(folder)["a.csv"].clone()).unwrap();
        assert_eq!(text.split_whitespace().nth(1), Some(&*number.to_string()));
    }
    // All of it was said to be taken, and there is nothing new.
    assert_eq!(produce(&group, "model").unwrap().deleted, objects);
    assert!(followers.pass(&Default::default()).unwrap().iter().all(|one| one.files.is_empty()));
    let twice = [("n000", &wanted[0].1), ("n001", &wanted[0].1)];
    let refused = Followers::new(&group, "ada", &twice).map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidValue);
}
