//! Steps from memory: answered as files are, once each, and nothing is left of them.

use std::sync::Arc;
use std::time::Duration;

use sieva::{AttrValue, Bx, DType, ErrorKind, MemoryArrays, MemoryValues};
use sieva_share::{Asking, Group, GroupOptions, Produced, Producer, ProducerOptions};

use crate::memory::{Crash, Memory};
use crate::world::{LARGE, MEAN, Scratch, ask, check, files, follow, options, produce};

/// The array `v` of so many integers from `first` on, in two blocks.
fn integers(first: i32, n: u64) -> MemoryArrays {
    let mut arrays = MemoryArrays::default();
    arrays.array("v", DType::I32, &[n], None).unwrap();
    for (start, count) in [(n / 3, n - n / 3), (0, n / 3)] {
        let values = (first + start as i32..first + (start + count) as i32).flat_map(i32::to_ne_bytes);
        let values = MemoryValues::Bytes(Arc::new(values.collect::<Vec<u8>>()));
        arrays.block("v", Bx::new(vec![start], vec![count]), values).unwrap();
    }
    arrays.attribute("v/units", AttrValue::Text("m".into()));
    arrays
}

fn group(memory: &Arc<Memory>) -> (Group, Producer) {
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    let producer = Producer::register_memory(&group, "model").unwrap();
    (group, producer)
}

fn offer(producer: &Producer, step: &str, first: i32) -> Produced {
    producer.offer(step, &integers(first, 1000), &options()).unwrap()
}

#[test]
fn steps_from_memory_are_answered_as_files_are() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("offered"));
    let (group, producer) = group(&memory);
    assert_eq!(offer(&producer, "run.000000", 0).entries, 0);
    ask(&group, "ada", "mean", MEAN).unwrap();
    let only_new = Asking { sql: LARGE, format: "csv", only_new: true };
    group.ask("bob", "large", &only_new).unwrap();
    ask(&group, "eve", "wrong", "SELECT none").unwrap();
    let done = offer(&producer, "run.000001", 1000);
    assert_eq!((done.steps, done.entries, done.failed, done.troubles.len()), (1, 3, 1, 0));
    offer(&producer, "run.000002", 1500);
    check(&memory);
    let ada = scratch.folder("ada");
    follow(&group, "ada", &ada).unwrap();
    let found = files(&ada);
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["mean/run.000001.csv", "mean/run.000002.csv"]);
    assert_eq!(found[names[0]], b"mean,n\n1499.5,1000\n");
    assert_eq!(found[names[1]], b"mean,n\n1999.5,1000\n");
    let bob = scratch.folder("bob");
    follow(&group, "bob", &bob).unwrap();
    let rows: Vec<usize> =
        files(&bob).values().map(|csv| csv.iter().filter(|b| **b == b'\n').count() - 1).collect();
    assert_eq!(rows, [10, 510]);
    let wrong = follow(&group, "eve", &scratch.folder("eve")).unwrap();
    let codes: Vec<&str> =
        wrong.failures.iter().map(|entry| &*entry.failure.as_ref().unwrap().code).collect();
    assert_eq!(codes, ["unknown-array"; 2]);
    // A pass without a step deletes what was taken, and makes nothing.
    let swept = produce(&group, "model").unwrap();
    assert_eq!((swept.steps, swept.entries), (0, 0));
    assert!(!memory.contents().keys().any(|key| key.starts_with("data/")));
    let listed = group.list_json().unwrap();
    assert!(listed.contains("run.000002") && listed.contains("\"units\""), "{listed}");
}

#[test]
fn a_step_of_the_same_name_takes_the_place_of_the_first() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("again"));
    let (group, producer) = group(&memory);
    ask(&group, "ada", "mean", MEAN).unwrap();
    offer(&producer, "run.000000", 0);
    offer(&producer, "run.000000", 10);
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    let expected = [("mean/run.000000.csv".to_owned(), b"mean,n\n509.5,1000\n".to_vec())];
    assert_eq!(files(&scratch.folder("ada")), expected.into());
}

#[test]
fn whoever_is_killed_in_a_step_nothing_is_half_and_the_step_may_be_offered_again() {
    let story = |crash: Option<Crash>| {
        let scratch = Scratch::new();
        let memory = Arc::new(Memory::new("offered-crash"));
        let (group, producer) = group(&memory);
        ask(&group, "ada", "mean", MEAN).unwrap();
        ask(&group, "ada", "large", LARGE).unwrap();
        offer(&producer, "run.000000", 0);
        memory.set_crash(crash);
        let offered = producer.offer("run.000001", &integers(1200, 1000), &options());
        check(&memory);
        let happened = memory.has_crashed();
        assert_eq!(offered.is_err(), happened, "{crash:?}");
        memory.set_crash(None);
        if happened {
            offer(&producer, "run.000001", 1200);
        }
        follow(&group, "ada", &scratch.folder("ada")).unwrap();
        produce(&group, "model").unwrap();
        assert!(!memory.contents().keys().any(|key| key.starts_with("data/")), "{crash:?}");
        (files(&scratch.folder("ada")), happened)
    };
    let (expected, _) = story(None);
    assert_eq!(expected.len(), 4);
    for crash in [Crash::Before, Crash::After] {
        let mut at = 0;
        loop {
            let (found, happened) = story(Some(crash(at)));
            assert_eq!(found, expected, "{:?}", crash(at));
            if !happened {
                break;
            }
            at += 1;
        }
        assert!(at > 5, "{at} operations");
    }
}

#[test]
fn what_is_over_is_said_and_a_new_run_begins_again() {
    let memory = Arc::new(Memory::new("over"));
    let (group, producer) = group(&memory);
    assert!(!group.is_over(None).unwrap());
    producer.end().unwrap();
    assert!(group.is_over(None).unwrap() && group.is_over(Some("model")).unwrap());
    assert!(!group.is_over(Some("other")).unwrap());
    let other = Producer::register_memory(&group, "other").unwrap();
    assert!(!group.is_over(None).unwrap());
    other.end().unwrap();
    Producer::register_memory(&group, "model").unwrap();
    assert!(!group.is_over(None).unwrap() && group.is_over(Some("other")).unwrap());
    let empty = Group::create_in(Arc::new(Memory::new("none")), &GroupOptions::default()).unwrap();
    assert!(!empty.is_over(None).unwrap());
}

#[test]
fn questions_reach_the_step_alone_and_limits_are_of_each_ask() {
    let memory = Arc::new(Memory::new("reach"));
    let scratch = Scratch::new();
    let (group, producer) = group(&memory);
    scratch.step("a.nc", 7);
    let elsewhere = format!("SELECT count(*) AS n WHERE v > (SELECT min(v) FROM '{}/a.nc')", scratch.steps());
    ask(&group, "eve", "file", &elsewhere).unwrap();
    let slow = "sum(sin(exp(cos(sqrt(abs(sin(cos(v))))))))";
    for number in 0..3 {
        let sql = format!("SELECT {slow} AS s WHERE v > {number}");
        ask(&group, "eve", &format!("slow-{number}"), &sql).unwrap();
    }
    let short = ProducerOptions { ask_time: Some(Duration::from_millis(1)), ..options() };
    let done = producer.offer("run.000000", &integers(0, 3_000_000), &short).unwrap();
    assert_eq!((done.entries, done.failed, done.deferred), (4, 4, 0));
    let followed = follow(&group, "eve", &scratch.folder("eve")).unwrap();
    let mut codes: Vec<String> =
        followed.failures.into_iter().map(|entry| entry.failure.unwrap().code).collect();
    codes.sort();
    assert_eq!(codes, ["cancelled", "cancelled", "cancelled", "permission-denied"]);
}

#[test]
fn what_is_no_step_is_refused_and_what_has_no_arrays_is_one() {
    let memory = Arc::new(Memory::new("misused"));
    let (group, producer) = group(&memory);
    for name in ["", "a/b", "a\nb", &"a".repeat(201)] {
        let e = producer.offer(name, &integers(0, 10), &options()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidValue, "{name:?}");
    }
    let mut half = MemoryArrays::default();
    half.array("v", DType::I32, &[2], None).unwrap();
    let e = producer.offer("run.000000", &half, &options()).unwrap_err();
    assert_eq!((e.kind(), e.message()), (ErrorKind::InvalidValue, "of 'v' 0 of 2 values were given"));
    assert!(Producer::register_memory(&group, "../model").is_err());
    ask(&group, "ada", "mean", MEAN).unwrap();
    let done = producer.offer("run.000000", &MemoryArrays::default(), &options()).unwrap();
    assert_eq!((done.entries, done.failed), (1, 1));
}
