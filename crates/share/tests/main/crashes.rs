//! Killed at every step: each operation of the store fails in turn, before it took effect and after, and whoever was
//! killed is started again.

use std::collections::BTreeMap;
use std::sync::Arc;

use sieva_share::{Group, GroupOptions, Produced, Producer};

use crate::memory::{Crash, Memory};
use crate::world::{
    LARGE, MEAN, Scratch, ask_in, check, files, follow, produce, produce_carrying, produce_packed,
};

/// The files of a folder, by name.
type Files = BTreeMap<String, Vec<u8>>;

/// What happens, in order. Each is done again by who was killed in it.
const ACTS: usize = 12;

/// A pass of the producer, and the format that is asked for.
type Pass = (fn(&Group, &str) -> sieva::Result<Produced>, &'static str);

fn act(number: usize, memory: &Arc<Memory>, scratch: &Scratch, (produce, format): Pass) -> sieva::Result<()> {
    let ask = |group: &Group, user: &str, name: &str, sql: &str| ask_in(group, user, name, sql, format);
    let create = || Group::create_in(memory.clone(), &GroupOptions::default());
    let group = || Group::open_in(memory.clone(), None);
    let folder = scratch.folder("ada");
    match number {
        0 => Producer::register(&create()?, "model", &[scratch.steps()]).map(drop),
        1 => group()?.join("ada").and_then(|()| group()?.join("bob")),
        2 => ask(&group()?, "ada", "mean", MEAN).and_then(|()| ask(&group()?, "bob", "mean", MEAN)),
        3 => ask(&group()?, "ada", "large", LARGE),
        4 | 7 | 11 => produce(&group()?, "model").map(drop),
        5 | 10 => follow(&group()?, "ada", &folder).map(drop),
        6 => {
            scratch.step("b.nc", 1500);
            Ok(())
        }
        // Another question by the same name, while answers to the first one wait.
        8 => ask(&group()?, "ada", "large", "SELECT v WHERE v < 1503"),
        9 => produce(&group()?, "model")
            .and_then(|_| follow(&group()?, "bob", &scratch.folder("bob")))
            .map(drop),
        _ => unreachable!(),
    }
}

/// Plays all acts, with one crash; what the consumers have in the end, and whether it happened.
fn play(crash: Option<Crash>, produce: Pass) -> (Files, Files, bool) {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new(&format!("crash-{crash:?}")));
    memory.set_crash(crash);
    scratch.step("a.nc", 1000);
    let mut happened = false;
    for number in 0..ACTS {
        let done = act(number, &memory, &scratch, produce);
        check(&memory);
        if memory.has_crashed() {
            happened = true;
            assert!(done.is_err(), "act {number} did not notice {crash:?}");
            memory.set_crash(None);
            act(number, &memory, &scratch, produce)
                .unwrap_or_else(|e| panic!("act {number} after {crash:?}: {e}"));
            check(&memory);
        } else {
            done.unwrap_or_else(|e| panic!("act {number} with {crash:?}: {e}"));
        }
    }
    // All was taken: nothing is kept for ever.
    let data: Vec<String> = memory.contents().into_keys().filter(|k| k.starts_with("data/")).collect();
    assert_eq!(data, [""; 0], "after {crash:?}");
    (files(&scratch.folder("ada")), files(&scratch.folder("bob")), happened)
}

#[test]
fn whoever_is_killed_at_any_step_nothing_is_lost_or_half_or_kept_for_ever() {
    all_crashes((produce, "csv"));
}

#[test]
fn nor_of_results_that_share_objects() {
    all_crashes((produce_packed, "csv"));
}

#[test]
fn nor_of_results_that_carry_zone_maps() {
    all_crashes((produce_carrying, "hdf5"));
}

fn all_crashes(produce: Pass) {
    let (ada, bob, _) = play(None, produce);
    let end = if produce.1 == "hdf5" { "h5" } else { produce.1 };
    let named = |stems: &[&str]| stems.iter().map(|stem| format!("{stem}.{end}")).collect::<Vec<_>>();
    assert!(ada.keys().eq(&named(&["large/a", "large/b", "mean/a", "mean/b"])), "{:?}", ada.keys());
    assert!(bob.keys().eq(&named(&["mean/a", "mean/b"])));
    let mut crashes = 0;
    for number in 0.. {
        let before = play(Some(Crash::Before(number)), produce);
        let after = play(Some(Crash::After(number)), produce);
        if !before.2 && !after.2 {
            break;
        }
        for (found_by_ada, found_by_bob, _) in [before, after] {
            assert_eq!((&found_by_ada, &found_by_bob), (&ada, &bob), "operation {number}");
            crashes += 1;
        }
    }
    assert!(crashes > 100, "{crashes}");
}

#[test]
fn a_store_that_lists_late_delays_and_loses_nothing() {
    let passes: [Pass; 2] = [(produce, "csv"), (produce_carrying, "hdf5")];
    passes.into_iter().for_each(all_late);
}

fn all_late(produce: Pass) {
    let (ada, bob, _) = play(None, produce);
    // What is listed is what there was when act `frozen` began, until act `thawed`.
    for frozen in 0..ACTS {
        let scratch = Scratch::new();
        let memory = Arc::new(Memory::new(&format!("late-{frozen}")));
        scratch.step("a.nc", 1000);
        for number in 0..ACTS {
            if number == frozen {
                memory.freeze_listing();
            }
            act(number, &memory, &scratch, produce).unwrap();
            check(&memory);
        }
        memory.freeze_listing();
        for number in [4, 5, 9, 10, 11] {
            act(number, &memory, &scratch, produce).unwrap();
            check(&memory);
            memory.freeze_listing();
        }
        let found = (files(&scratch.folder("ada")), files(&scratch.folder("bob")));
        assert_eq!((&found.0, &found.1), (&ada, &bob), "frozen at {frozen}");
        let data: Vec<String> = memory.contents().into_keys().filter(|k| k.starts_with("data/")).collect();
        assert_eq!(data, [""; 0], "frozen at {frozen}");
    }
}
