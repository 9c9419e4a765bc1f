//! Records that somebody wrote by hand, to harm others.

use std::sync::Arc;

use sieva_share::{Group, GroupOptions, Producer};
use sieva_store::objects::Objects;

use crate::memory::Memory;
use crate::world::{MEAN, Scratch, ask, files, follow, keys, produce};

#[test]
fn a_wrong_record_is_told_and_is_in_nobody_elses_way() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("wrong"));
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    scratch.step("a.nc", 0);
    for user in ["ada", "eve"] {
        ask(&group, user, "mean", MEAN).unwrap();
    }
    produce(&group, "model").unwrap();
    let wrong = |key: &str, bytes: &[u8]| memory.put(key, &bytes.to_vec()).unwrap();
    let member =
        |asks: &[&str]| format!(r#"{{"version":2,"joined":1,"asks":[{}]}}"#, asks.join(",")).into_bytes();
    let asking = |name: &str, sql: &str, format: &str| {
        format!(r#"{{"name":"{name}","sql":"{sql}","format":"{format}","only_new":false,"asked":1}}"#)
    };
    let long = member(&[&asking("mean", "SELECT v", &"x".repeat(9 << 20))]);
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let unordered = member(&[&asking("b", "SELECT v", "csv"), &asking("a", "SELECT v", "csv")]);
    let twice = member(&[&asking("a", "SELECT v", "csv"), &asking("a", "SELECT v", "csv")]);
    let climbing = member(&[&asking("../../x", "SELECT v", "csv")]);
    let one = asking("a", "v", "csv");
    let many = member(&vec![&*one; 10_001]);
    let wrong_ones = [
        &b"{"[..],
        br#"{"version": 3}"#,
        br#"{"version": 1, "joined": 1}"#,
        b"[1,2]",
        b"\xff",
        &long,
        &deep,
        &unordered,
        &twice,
        &climbing,
        &many,
    ];
    for (number, bytes) in wrong_ones.into_iter().enumerate() {
        wrong("group/members/eve.json", bytes);
        scratch.step(&format!("b{number}.nc"), 10);
        let done = produce(&group, "model").unwrap();
        assert_eq!((done.entries, done.troubles.len()), (1, 1), "{number}");
        assert_eq!(done.troubles[0].step, "eve");
        let status = group.status().unwrap();
        assert_eq!((status.asks.len(), status.wrong.len()), (1, 1));
    }
    // What was put for eve before is there still, and is deleted with the ask.
    let held = |memory: &Memory| keys(memory, "data/").len();
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    produce(&group, "model").unwrap();
    assert_eq!(held(&memory), 1);
    wrong("users/ada/taken.json", b"{");
    assert_eq!(produce(&group, "model").unwrap().troubles.len(), 2);
    // The next that is taken replaces it.
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!(produce(&group, "model").unwrap().troubles.len(), 1);
    // A question that nobody could have asked by the product is refused; one may be asked anew.
    let steps = wrong_ones.len() as u64 + 1;
    let elsewhere = member(&[&asking("mean", "SELECT v FROM '/etc/passwd'", "csv")]);
    wrong("group/members/eve.json", &elsewhere);
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.entries, done.failed, done.objects), (steps, steps, 0));
    wrong("group/members/eve.json", b"{");
    ask(&group, "eve", "mean", MEAN).unwrap();
    wrong("users/eve/model.json", b"{");
    assert_eq!(produce(&group, "model").unwrap().troubles.len(), 0);
    assert_eq!(follow(&group, "eve", &scratch.folder("eve")).unwrap().files.len() as u64, steps);
    wrong("group/members/eve.json", b"{");
    group.leave("eve").unwrap();
    produce(&group, "model").unwrap();
    assert_eq!(held(&memory), 0);
}

#[test]
fn a_hostile_index_puts_nothing_outside_of_the_folder_and_holds_up_nobody() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("hostile"));
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    scratch.step("a.nc", 0);
    for name in ["aaa", "model"] {
        Producer::register(&group, name, &[scratch.steps()]).unwrap();
    }
    ask(&group, "ada", "mean", MEAN).unwrap();
    let id = group.asks("ada").unwrap()[0].id();
    memory.put("data/aaa/x.json", &b"owned".to_vec()).unwrap();
    let sum = format!("{:032x}", xxhash_rust::xxh3::xxh3_128(b"owned"));
    let entry = |serial: u64, name: &str, step: &str, key: &str| {
        format!(
            r#"{{"serial":{serial},"step":{{"name":"{name}","id":"{step}","size":1}},"format":"json","made":9999999999,
            "object":{{"key":"{key}","size":5,"checksum":"{sum}","rows":1}},"failure":null}}"#
        )
    };
    let index = |epoch: u64, entries: &[String]| {
        let entries = entries.join(",");
        let answers =
            format!(r#"{{"epoch":{epoch},"ask_id":"{id}","next":9,"entries":[{entries}],"served":[]}}"#);
        format!(r#"{{"version":2,"numbering":1,"epoch":{epoch},"asks":{{"mean":{answers}}}}}"#)
    };
    let names = ["", "..", "../../x", "/tmp/x", ".bashrc", "a\\u0000b", "aaaaaaa\u{e9}/../../../x"];
    let entries: Vec<String> = (0..)
        .zip(names)
        .map(|(n, name)| entry(n, name, "aaaaaaa\u{e9}/../../../x/../../../../y", "data/aaa/x.json"))
        .chain([entry(u64::MAX, "last", "z", "data/aaa/x.json")])
        .collect();
    memory.put("users/ada/aaa.json", &index(7, &entries).into_bytes()).unwrap();
    let before: Vec<String> = files(&scratch.0).into_keys().collect();
    produce(&group, "model").unwrap();
    let followed = follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!(followed.files.len(), names.len() + 2);
    let after: Vec<String> = files(&scratch.0).into_keys().filter(|name| !before.contains(name)).collect();
    assert!(after.iter().all(|name| name.starts_with("folders/ada/mean/")), "{after:?}");
    for wrong in
        [index(8, &[entry(0, "a", "b", "../../secret")]), "{".to_owned(), r#"{"version":9}"#.to_owned()]
    {
        memory.put("users/ada/aaa.json", &wrong.into_bytes()).unwrap();
        scratch.step("a.nc", 3);
        produce(&group, "model").unwrap();
        let followed = follow(&group, "ada", &scratch.folder("ada")).unwrap();
        assert_eq!((followed.troubles.len(), followed.files.len()), (1, 1));
        scratch.step("a.nc", 4);
        produce(&group, "model").unwrap();
        follow(&group, "ada", &scratch.folder("ada")).unwrap();
    }
}
