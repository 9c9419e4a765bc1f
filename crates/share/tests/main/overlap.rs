//! Results that have rows in common are stored once, and every consumer has its own.

use std::sync::Arc;

use sieva_share::{FetchOptions, Group, GroupOptions, Packing, Produced, Producer, ProducerOptions};
use sieva_store::objects::Objects;

use crate::memory::Memory;
use crate::world::{Scratch, ask_in, check, classic, files, follow, keys, options, produce};

const ROWS: u32 = 1_000_000;
/// What members ask for: ranges of positions that overlap, one of them with a column more.
const ASKS: [(&str, &str); 4] = [
    ("ada", "SELECT v WHERE idx(x) < 600000"),
    ("bob", "SELECT v WHERE idx(x) >= 300000 AND idx(x) < 900000"),
    ("cyd", "SELECT 2 * v AS w, v WHERE idx(x) >= 100000 AND idx(x) < 200000"),
    ("dan", "SELECT v WHERE idx(x) >= 950000"),
];

fn group(scratch: &Scratch, memory: &Arc<Memory>, format: &str) -> Group {
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    for (user, sql) in ASKS {
        ask_in(&group, user, "some", sql, format).unwrap();
    }
    group
}

/// A pass that puts all results together.
fn packed(group: &Group, name: &str) -> sieva::Result<Produced> {
    let packed = ProducerOptions { packing: Packing::Partial, object_size: Some(32 << 20), ..options() };
    Producer::open(group, name)?.pass(&packed)
}

fn stored(memory: &Memory) -> u64 {
    let contents = memory.contents();
    contents.iter().filter(|(key, _)| key.starts_with("data/")).map(|(_, bytes)| bytes.len() as u64).sum()
}

#[test]
fn ranges_that_overlap_are_stored_once_and_files_are_what_they_are_apart() {
    for format in ["netcdf", "hdf5"] {
        let scratch = Scratch::new();
        std::fs::write(scratch.0.join("steps/a.nc"), classic(7, ROWS)).unwrap();
        let (together, apart) = (Arc::new(Memory::new("together")), Arc::new(Memory::new("apart")));
        let (one, other) = (group(&scratch, &together, format), group(&scratch, &apart, format));
        let done = packed(&one, "model").unwrap();
        produce(&other, "model").unwrap();
        assert_eq!((done.entries, done.failed, done.bytes), (4, 0, stored(&together)));
        // 900000 values of v of those that overlap, 50000 more, and 100000 of w; a head for each.
        let least = 950_000 * 4 + 100_000 * 8;
        let all = least + (300_000 + 100_000) * 4;
        assert!((least..least + 4 * 4096).contains(&stored(&together)), "{}", stored(&together));
        assert!(stored(&apart) > all);
        check(&together);
        for (user, _) in ASKS {
            let fetched = scratch.0.join("fetched");
            one.fetch(&format!("{user}/some/a.nc"), &fetched, &FetchOptions::default()).unwrap();
            let bytes = std::fs::read(&fetched).unwrap();
            follow(&one, user, &scratch.folder("together")).unwrap();
            follow(&other, user, &scratch.folder("apart")).unwrap();
            let found = files(&scratch.folder("together"));
            assert_eq!(found.len(), 1);
            assert!(found == files(&scratch.folder("apart")) && found.values().all(|file| *file == bytes));
            std::fs::remove_dir_all(scratch.0.join("folders")).unwrap();
        }
        assert_eq!(packed(&one, "model").unwrap().failed, 0);
        assert_eq!(keys(&*together, "data/"), [""; 0]);
    }
}

#[test]
fn who_leaves_takes_nothing_from_the_others() {
    let scratch = Scratch::new();
    std::fs::write(scratch.0.join("steps/a.nc"), classic(7, ROWS)).unwrap();
    let memory = Arc::new(Memory::new("leaving"));
    let group = group(&scratch, &memory, "netcdf");
    packed(&group, "model").unwrap();
    let held = keys(&*memory, "data/");
    for user in ["ada", "dan"] {
        group.leave(user).unwrap();
    }
    packed(&group, "model").unwrap();
    // They are one object, which stays as long as it is wanted.
    assert_eq!((held.len(), keys(&*memory, "data/")), (1, held));
    check(&memory);
    for user in ["bob", "cyd"] {
        let done = follow(&group, user, &scratch.folder(user)).unwrap();
        assert_eq!((done.files.len(), done.troubles.len()), (1, 0));
    }
    packed(&group, "model").unwrap();
    assert_eq!(keys(&*memory, "data/"), [""; 0]);
}

#[test]
fn ranges_that_cannot_be_are_told_and_nothing_is_written() {
    let scratch = Scratch::new();
    std::fs::write(scratch.0.join("steps/a.nc"), classic(7, ROWS)).unwrap();
    let memory = Arc::new(Memory::new("hostile"));
    let group = group(&scratch, &memory, "netcdf");
    packed(&group, "model").unwrap();
    let key = "users/bob/model.json";
    let index: serde_json::Value = serde_json::from_slice(&memory.contents()[key]).unwrap();
    assert_eq!(index["version"], 3);
    for hostile in
        ["[[18446744073709551615,2],[0,1]]", "[[0,9223372036854775807],[5,9]]", "[[0,1],[0,2]]", "[[0,0]]"]
    {
        let mut wrong = index.clone();
        let object = &mut wrong["asks"]["some"]["entries"][0]["object"];
        assert!(object["ranges"].as_array().unwrap().len() > 1);
        object["ranges"] = serde_json::from_str(hostile).unwrap();
        memory.put(key, &serde_json::to_vec(&wrong).unwrap()).unwrap();
        let done = follow(&group, "bob", &scratch.folder("bob")).unwrap();
        assert_eq!((done.files.len(), done.troubles.len()), (0, 1), "{hostile}");
        assert_eq!(done.troubles[0].kind(), sieva::ErrorKind::CorruptFile, "{hostile}");
    }
}
