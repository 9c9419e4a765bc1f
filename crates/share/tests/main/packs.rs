//! Results that share objects: each consumer reads its part, and an object goes when nobody needs any of its parts.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sieva::ErrorKind;
use sieva_share::{
    Asking, CalibrateOptions, Calibration, Follower, Group, GroupOptions, Packing, Prices, Producer,
    ProducerOptions, calibrate,
};
use sieva_store::objects::Objects;

use crate::memory::Memory;
use crate::world::{LARGE, MEAN, Scratch, ask, check, files, follow, keys, options};

fn packed(packing: Packing) -> ProducerOptions {
    ProducerOptions { packing, object_size: Some(10_000), ..options() }
}

fn few(n: usize) -> String {
    format!("SELECT v WHERE idx(x) < {}", n + 1)
}

/// A member with twenty asks, and one with the first of them.
fn group(scratch: &Scratch) -> (Arc<Memory>, Group) {
    let memory = Arc::new(Memory::new("packs"));
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    scratch.step("a.nc", 1000);
    let texts: Vec<(String, String)> = (0..20).map(|n| (format!("few-{n:02}"), few(n))).collect();
    let askings: Vec<(&str, Asking<'_>)> =
        texts.iter().map(|(name, sql)| (&**name, Asking { sql, format: "csv", only_new: false })).collect();
    group.ask_many("ada", &askings).unwrap();
    group.ask_many("bob", &askings[..1]).unwrap();
    (memory, group)
}

fn expected(n: usize) -> Vec<u8> {
    let rows: String = (0..=n).map(|i| format!("{}\n", 1000 + i)).collect();
    format!("v\n{rows}").into_bytes()
}

fn take(group: &Group, scratch: &Scratch, user: &str, n: usize) -> Vec<u8> {
    let (name, folder) = (format!("few-{n:02}"), scratch.folder(user).join(format!("{n}")));
    let followed = Follower::new(group, user, &name, &folder).unwrap().pass(&Default::default()).unwrap();
    assert_eq!((followed.files.len(), followed.troubles.len()), (1, 0));
    files(&folder)["a.csv"].clone()
}

#[test]
fn each_reads_its_part_and_the_object_stays_as_long_as_one_is_wanted() {
    for (packing, objects) in [(Packing::Files, 20), (Packing::Partial, 1), (Packing::Whole, 2)] {
        let scratch = Scratch::new();
        let (memory, group) = group(&scratch);
        let producer = Producer::open(&group, "model").unwrap();
        let pass = || {
            let done = producer.pass(&packed(packing)).unwrap();
            check(&memory);
            done
        };
        let done = pass();
        assert_eq!((done.entries, done.failed, done.objects), (21, 0, objects), "{packing:?}");
        let held: u64 = memory.list("data/").unwrap().iter().map(|entry| entry.size).sum();
        assert_eq!(done.bytes, held);
        for n in 0..20 {
            assert_eq!(take(&group, &scratch, "ada", n), expected(n), "{packing:?} {n}");
        }
        // The one that bob wants as well is there, with what lies in the same object.
        pass();
        assert_eq!(keys(&*memory, "data/").len(), 1, "{packing:?}");
        assert_eq!(take(&group, &scratch, "bob", 0), expected(0));
        assert_eq!(pass().deleted, 1);
        assert_eq!(keys(&*memory, "data/"), [""; 0]);
    }
}

#[test]
fn a_part_that_cannot_be_or_is_damaged_is_told_and_no_other() {
    let scratch = Scratch::new();
    let (memory, group) = group(&scratch);
    Producer::open(&group, "model").unwrap().pass(&packed(Packing::Partial)).unwrap();
    let key = keys(&*memory, "data/").remove(0);
    // In the middle of the object: in one part of many.
    memory.damage(&key);
    let wrong: Vec<ErrorKind> = (0..20)
        .filter_map(|n| {
            let folder = scratch.folder("ada").join(format!("{n}"));
            let follower = Follower::new(&group, "ada", &format!("few-{n:02}"), folder).unwrap();
            follower.pass(&Default::default()).unwrap().troubles.pop().map(|e| e.kind())
        })
        .collect();
    assert_eq!(wrong, [ErrorKind::CorruptFile]);
    let mut index: Value = serde_json::from_slice(&memory.contents()["users/bob/model.json"]).unwrap();
    for offset in [u64::MAX, i64::MAX as u64] {
        let object = &mut index["asks"]["few-00"]["entries"][0]["object"];
        assert!(object["offset"].as_u64().unwrap() > 0);
        object["offset"] = offset.into();
        memory.put("users/bob/model.json", &index.to_string().into_bytes()).unwrap();
        let follower = Follower::new(&group, "bob", "few-00", scratch.folder("bob")).unwrap();
        let troubles = follower.pass(&Default::default()).unwrap().troubles;
        assert_eq!(troubles[0].kind(), ErrorKind::CorruptFile);
        assert!(troubles[0].message().contains("cannot be"), "{troubles:?}");
    }
}

#[test]
fn results_of_many_formats_and_sizes_come_back_whole() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("formats"));
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    let producer = Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    scratch.step("a.nc", 1000);
    // Parquet is not compiled into every build of the tests.
    let formats = ["netcdf", "hdf5", "arrow", "csv", "json"];
    for format in formats {
        for (name, sql) in [("all", "SELECT v"), ("large", LARGE), ("mean", MEAN)] {
            group.ask("ada", &format!("{name}-{format}"), &Asking { sql, format, only_new: false }).unwrap();
        }
    }
    let passes: Vec<BTreeMap<String, Vec<u8>>> = [Packing::Files, Packing::Partial]
        .map(|packing| {
            producer.pass(&packed(packing)).unwrap();
            let folder = scratch.folder(&format!("{packing:?}"));
            follow(&group, "ada", &folder).unwrap();
            // Asked anew for the other way.
            for ask in group.asks("ada").unwrap() {
                group.withdraw("ada", &ask.name).unwrap();
                group
                    .ask("ada", &ask.name, &Asking { sql: &ask.sql, format: &ask.format, only_new: false })
                    .unwrap();
            }
            files(&folder)
        })
        .into();
    assert_eq!(passes[0].len(), 3 * formats.len());
    assert_eq!(passes[0], passes[1]);
}

#[test]
fn a_store_is_measured_and_what_was_measured_says_how_large_objects_are() {
    let scratch = Scratch::new();
    let place = scratch.0.join("store").display().to_string();
    let options =
        CalibrateOptions { sizes: vec![1000, 50_000], threads: vec![1, 3], ..CalibrateOptions::default() };
    let found = calibrate(&place, &options).unwrap();
    let points = |rates: &[sieva_share::Rate]| rates.iter().map(|r| (r.size, r.threads)).collect::<Vec<_>>();
    let all = [(1000, 1), (1000, 3), (50_000, 1), (50_000, 3)];
    assert_eq!((points(&found.put), points(&found.get)), (all.to_vec(), all.to_vec()));
    assert!(found.put.iter().chain(&found.get).all(|r| r.rate.is_finite() && r.rate > 0.0));
    assert!([1000, 50_000].contains(&found.best_size(1, 0.9)));
    assert_eq!(files(&scratch.0.join("store")), BTreeMap::new());
    // Known of the place, and of what lies in it.
    assert_eq!(Calibration::known(&found.place).unwrap(), Some(found.clone()));
    assert_eq!(Calibration::known(&format!("{}/ocean/", found.place)).unwrap(), Some(found.clone()));
    assert_eq!(Calibration::known(&format!("{}-other", found.place)).unwrap(), None);
    for (sizes, threads) in
        [(vec![], vec![1]), (vec![0], vec![1]), (vec![1], vec![]), (vec![1], vec![0]), (vec![1], vec![1000])]
    {
        let wrong = CalibrateOptions { sizes, threads, ..CalibrateOptions::default() };
        assert_eq!(calibrate(&place, &wrong).unwrap_err().kind(), ErrorKind::InvalidValue);
    }
    let stopped = CalibrateOptions { cancel: Arc::new(true.into()), ..options };
    assert_eq!(calibrate(&place, &stopped).unwrap_err().kind(), ErrorKind::Cancelled);
    assert_eq!(files(&scratch.0.join("store")), BTreeMap::new());
}

#[test]
fn sizes_and_prices_that_cannot_be_are_refused() {
    let scratch = Scratch::new();
    let (_, group) = group(&scratch);
    ask(&group, "ada", "mean", MEAN).unwrap();
    let none = ProducerOptions { object_size: Some(0), ..packed(Packing::Whole) };
    let e = Producer::open(&group, "model").unwrap().pass(&none).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidValue);
    assert_eq!(Prices::new(-1.0, 0.0, 0.0).unwrap_err().kind(), ErrorKind::InvalidValue);
}
