//! Limits of an ask: what exceeds them is told to who asked, and costs nobody else.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use sieva::ErrorKind;
use sieva_share::{Asking, Follower, Group, GroupOptions, Packing, Produced, Producer, ProducerOptions};

use crate::memory::Memory;
use crate::world::{LARGE, MEAN, Scratch, ask, classic, files, follow, options};

/// Values of a file that takes no room on the disk: what is computed of all of them takes many seconds.
const MANY: u32 = 400_000_000;

fn group(scratch: &Scratch) -> (Arc<Memory>, Group) {
    let memory = Arc::new(Memory::new("limits"));
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    (memory, group)
}

fn long_step(scratch: &Scratch, name: &str) {
    let mut file = File::create(scratch.0.join("steps").join(name)).unwrap();
    let mut bytes = classic(0, 0);
    // Of the dimension, and of the values.
    for (at, value) in [(24, MANY), (72, 4 * MANY)] {
        assert_eq!(bytes[at..at + 4], [0; 4]);
        bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }
    file.write_all(&bytes).unwrap();
    file.set_len(bytes.len() as u64 + 4 * u64::from(MANY)).unwrap();
}

fn slow(number: u32) -> String {
    format!("SELECT sum(sin(exp(cos(sqrt(abs(sin(cos(v + {number})))))))) AS s")
}

fn produce(group: &Group, options: &ProducerOptions) -> Produced {
    Producer::open(group, "model").unwrap().pass(options).unwrap()
}

fn short() -> ProducerOptions {
    ProducerOptions { ask_time: Some(Duration::from_millis(500)), ..options() }
}

#[test]
fn an_ask_that_runs_alone_is_stopped_told_so_and_not_evaluated_again() {
    let scratch = Scratch::new();
    let (_, group) = group(&scratch);
    long_step(&scratch, "a.nc");
    ask(&group, "eve", "slow", &slow(0)).unwrap();
    let done = produce(&group, &short());
    assert_eq!((done.entries, done.failed, done.deferred, done.troubles.len()), (1, 1, 0, 0));
    let status = group.status().unwrap();
    let failure = status.asks[0].waiting[0].failure.as_ref().unwrap();
    assert_eq!(&*failure.code, "cancelled");
    assert!(
        failure.message.starts_with("stopped after 0.5 s: this producer lets no ask take longer"),
        "{failure:?}"
    );
    assert_eq!(produce(&group, &short()).entries, 0);
    let followed = follow(&group, "eve", &scratch.folder("eve")).unwrap();
    assert_eq!((followed.failures.len(), followed.files.len()), (1, 0));
    // Of a file that it can be asked of it is answered.
    scratch.step("b.nc", 0);
    let done = produce(&group, &short());
    assert_eq!((done.entries, done.failed), (1, 0));
}

#[test]
fn who_asks_for_too_much_waits_for_the_next_pass_and_the_others_have_theirs() {
    let scratch = Scratch::new();
    let (_, group) = group(&scratch);
    long_step(&scratch, "a.nc");
    let texts: Vec<(String, String)> = (0..3).map(|n| (format!("slow-{n}"), slow(n))).collect();
    let askings: Vec<(&str, Asking<'_>)> =
        texts.iter().map(|(name, sql)| (&**name, Asking { sql, format: "csv", only_new: false })).collect();
    // Of names that come before and after those of the others.
    for user in ["eve", "zoe"] {
        group.ask_many(user, &askings).unwrap();
    }
    ask(&group, "fay", "few", "SELECT v WHERE idx(x) < 3").unwrap();
    let done = produce(&group, &short());
    // What both ask for alike is stopped once, for both.
    assert_eq!((done.entries, done.failed, done.deferred), (3, 2, 4));
    follow(&group, "fay", &scratch.folder("fay")).unwrap();
    assert_eq!(files(&scratch.folder("fay"))["few/a.csv"], b"v\n0\n0\n0\n");
    for deferred in [2, 0] {
        let done = produce(&group, &short());
        assert_eq!((done.entries, done.failed, done.deferred), (2, 2, deferred));
    }
    assert_eq!(produce(&group, &short()).entries, 0);
}

#[test]
fn results_that_are_too_large_and_asks_that_take_too_much_memory_are_refused_and_others_made() {
    let scratch = Scratch::new();
    let (_, group) = group(&scratch);
    std::fs::write(scratch.0.join("steps/a.nc"), classic(1000, 1_000_000)).unwrap();
    for format in ["csv", "netcdf", "json"] {
        group.ask("eve", format, &Asking { sql: "SELECT v", format, only_new: false }).unwrap();
    }
    ask(&group, "ada", "few", "SELECT v WHERE v < 1003").unwrap();
    let limited = ProducerOptions { result_size: Some(100_000), ..options() };
    let done = produce(&group, &limited);
    assert_eq!((done.entries, done.failed, done.objects), (4, 3, 1));
    let codes = |user: &str| -> Vec<String> {
        let asks = group.status().unwrap().asks.into_iter().filter(|one| one.user == user);
        let waiting = asks.flat_map(|one| one.waiting).filter_map(|entry| entry.failure);
        waiting.map(|failure| failure.code).collect()
    };
    assert_eq!(codes("eve"), ["memory-limit"; 3]);
    for entry in group.status().unwrap().asks.into_iter().flat_map(|one| one.waiting) {
        let told = entry.failure.map_or(String::new(), |failure| failure.message);
        let expected = "a result of more than 100000 bytes: this producer puts no larger one (ask for less, or talk \
                        to the producer)";
        assert!(told.is_empty() || told == expected, "{told}");
    }
    assert_eq!(codes("ada"), [""; 0]);
    ask(&group, "zoe", "groups", "SELECT v, count(*) AS n GROUP BY v").unwrap();
    ask(&group, "ada", "mean", MEAN).unwrap();
    let limited = ProducerOptions { ask_memory: Some(1 << 20), ..options() };
    let done = produce(&group, &limited);
    assert_eq!((done.entries, done.failed), (2, 1));
    assert_eq!((codes("zoe"), codes("ada").len()), (vec!["memory-limit".to_owned()], 0));
    let follower = Follower::new(&group, "ada", "mean", scratch.folder("ada")).unwrap();
    follower.pass(&Default::default()).unwrap();
    assert_eq!(files(&scratch.folder("ada"))["a.csv"], b"mean,n\n500999.5,1000000\n");
}

#[test]
fn memory_of_an_ask_is_the_same_whatever_others_ask() {
    let all = ["median(v)", "quantile(v, 0.25)"];
    for asked in [&all[..1], &all[..]] {
        let scratch = Scratch::new();
        let (_, group) = group(&scratch);
        std::fs::write(scratch.0.join("steps/a.nc"), classic(1000, 1_000_000)).unwrap();
        for (number, what) in asked.iter().enumerate() {
            ask(&group, "eve", &format!("a{number}"), &format!("SELECT {what} AS found")).unwrap();
        }
        let done = produce(&group, &ProducerOptions { ask_memory: Some(512 << 10), ..options() });
        // All values have to be kept for each.
        assert_eq!((done.entries, done.failed), (asked.len() as u64, asked.len() as u64));
        let waiting = group.status().unwrap().asks.into_iter().flat_map(|one| one.waiting);
        let codes: Vec<String> = waiting.filter_map(|entry| Some(entry.failure?.code)).collect();
        assert_eq!(codes, vec!["memory-limit"; asked.len()]);
    }
}

#[test]
fn limits_that_allow_nothing_are_refused() {
    let scratch = Scratch::new();
    let (_, group) = group(&scratch);
    ask(&group, "ada", "large", LARGE).unwrap();
    let producer = Producer::open(&group, "model").unwrap();
    let none = ProducerOptions { ask_time: Some(Duration::ZERO), ..options() };
    let more = ProducerOptions { memory: Some(1 << 20), ask_memory: Some(2 << 20), ..options() };
    for (wrong, text) in [(none, "an ask may take 0 s"), (more, "an ask may take 2097152 bytes of 1048576")] {
        for e in [producer.pass(&wrong).map(drop).unwrap_err(), producer.plan(&wrong).map(drop).unwrap_err()]
        {
            assert_eq!(e.kind(), ErrorKind::InvalidValue);
            assert!(e.message().starts_with(text), "{e}");
        }
    }
}

#[test]
fn a_result_that_a_full_store_has_no_room_for_takes_nothing_from_others() {
    for packing in [Packing::Files, Packing::Partial] {
        let scratch = Scratch::new();
        let (memory, group) = group(&scratch);
        std::fs::write(scratch.0.join("steps/a.nc"), classic(7, 100_000)).unwrap();
        ask(&group, "eve", "all", "SELECT v").unwrap();
        ask(&group, "bob", "mean", MEAN).unwrap();
        let options = ProducerOptions { packing, object_size: Some(50_000), ..options() };
        memory.set_room(Some(50_000));
        for answered in [1, 0] {
            let done = produce(&group, &options);
            assert_eq!((done.entries, done.failed, done.troubles.len()), (answered, 0, 1));
            assert!(done.troubles[0].error.message().ends_with("No space left on device"));
        }
        assert_eq!(follow(&group, "bob", &scratch.folder("bob")).unwrap().files.len(), 1);
        memory.set_room(None);
        let done = produce(&group, &options);
        assert_eq!((done.entries, done.failed, done.troubles.len()), (1, 0, 0));
    }
}
