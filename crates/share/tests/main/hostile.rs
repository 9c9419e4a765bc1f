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
    let hostile = format!(
        r#"{{"version":1,"name":"mean","sql":"SELECT v","format":"{}","only_new":false,"asked":1}}"#,
        "x".repeat(300_000)
    );
    let elsewhere = r#"{"version":1,"name":"mean","sql":"SELECT v FROM '/etc/passwd'","format":"csv","only_new":false,"asked":1}"#;
    for (number, bytes) in
        [&b"{"[..], br#"{"version": 2}"#, b"[1,2]", b"\xff", hostile.as_bytes()].into_iter().enumerate()
    {
        wrong("group/asks/eve/mean.json", bytes);
        scratch.step(&format!("b{number}.nc"), 10);
        let done = produce(&group, "model").unwrap();
        assert_eq!((done.entries, done.troubles.len()), (1, 1), "{number}");
        assert_eq!(done.troubles[0].step, "eve/mean");
        let status = group.status().unwrap();
        assert_eq!((status.asks.len(), status.wrong.len()), (1, 1));
    }
    // What was put for eve before is there still, and is deleted with the ask.
    let held = |memory: &Memory| keys(memory, "data/").len();
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    produce(&group, "model").unwrap();
    assert_eq!(held(&memory), 1);
    wrong("users/ada/mean/taken.json", b"{");
    assert_eq!(produce(&group, "model").unwrap().troubles.len(), 2);
    memory.delete("users/ada/mean/taken.json").unwrap();
    // A question that nobody could have asked by the product is refused; one may be asked anew.
    wrong("group/asks/eve/mean.json", elsewhere.as_bytes());
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.entries, done.failed, done.objects), (6, 6, 0));
    wrong("group/asks/eve/mean.json", b"{");
    ask(&group, "eve", "mean", MEAN).unwrap();
    wrong("users/eve/mean/model.json", b"{");
    assert_eq!(produce(&group, "model").unwrap().troubles.len(), 0);
    assert_eq!(follow(&group, "eve", &scratch.folder("eve")).unwrap().files.len(), 6);
    wrong("group/asks/eve/mean.json", b"{");
    group.withdraw("eve", "mean").unwrap();
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
        format!(
            r#"{{"version":1,"epoch":{epoch},"ask_id":"{id}","next":9,"entries":[{entries}],"served":[]}}"#
        )
    };
    let names = ["", "..", "../../x", "/tmp/x", ".bashrc", "a\\u0000b", "aaaaaaa\u{e9}/../../../x"];
    let entries: Vec<String> = (0..)
        .zip(names)
        .map(|(n, name)| entry(n, name, "aaaaaaa\u{e9}/../../../x/../../../../y", "data/aaa/x.json"))
        .chain([entry(u64::MAX, "last", "z", "data/aaa/x.json")])
        .collect();
    memory.put("users/ada/mean/aaa.json", &index(7, &entries).into_bytes()).unwrap();
    let before: Vec<String> = files(&scratch.0).into_keys().collect();
    produce(&group, "model").unwrap();
    let followed = follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!(followed.files.len(), names.len() + 2);
    let after: Vec<String> = files(&scratch.0).into_keys().filter(|name| !before.contains(name)).collect();
    assert!(after.iter().all(|name| name.starts_with("folders/ada/mean/")), "{after:?}");
    for wrong in
        [index(8, &[entry(0, "a", "b", "../../secret")]), "{".to_owned(), r#"{"version":9}"#.to_owned()]
    {
        memory.put("users/ada/mean/aaa.json", &wrong.into_bytes()).unwrap();
        scratch.step("a.nc", 3);
        produce(&group, "model").unwrap();
        let followed = follow(&group, "ada", &scratch.folder("ada")).unwrap();
        assert_eq!((followed.troubles.len(), followed.files.len()), (1, 1));
        scratch.step("a.nc", 4);
        produce(&group, "model").unwrap();
        follow(&group, "ada", &scratch.folder("ada")).unwrap();
    }
}
