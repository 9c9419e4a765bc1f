//! A producer and a consumer at the same time: every order of their operations with at most so many changes from one to the
//! other in the middle of a pass.

use std::sync::{Arc, Condvar, Mutex};
use std::thread::ThreadId;

use sieva_share::{Group, GroupOptions, Producer};

use crate::memory::Memory;
use crate::world::{LARGE, MEAN, Scratch, ask, check, files, follow, produce};

/// Changes from one to the other that are not forced: those orders find what is to be found (Musuvathi, Qadeer: Iterative
/// Context Bounding for Systematic Testing of Multithreaded Programs, PLDI 2007).
const CHANGES: usize = 2;

#[derive(Default)]
struct State {
    actors: Vec<ThreadId>,
    waiting: [bool; 2],
    finished: [bool; 2],
    /// Who may go.
    turn: Option<usize>,
}

/// Lets one actor go at a time, as a schedule says.
#[derive(Default)]
struct Conductor {
    state: Mutex<State>,
    changed: Condvar,
}

impl Conductor {
    /// Waits for the turn of the calling actor; others than actors pass.
    fn enter(&self) {
        let mut state = self.state.lock().unwrap();
        let me = std::thread::current().id();
        let Some(me) = state.actors.iter().position(|actor| *actor == me) else { return };
        state.waiting[me] = true;
        self.changed.notify_all();
        while state.turn != Some(me) {
            state = self.changed.wait(state).unwrap();
        }
        state.turn = None;
        state.waiting[me] = false;
    }

    fn finish(&self, me: usize) {
        let mut state = self.state.lock().unwrap();
        state.finished[me] = true;
        self.changed.notify_all();
    }

    /// Waits until everybody waits or has finished, and lets one go; false when all have finished. `choose` is given who can.
    fn step(&self, choose: &mut dyn FnMut(&[usize]) -> usize) -> bool {
        let mut state = self.state.lock().unwrap();
        loop {
            let settled = (0..2).all(|i| state.waiting[i] || state.finished[i]);
            if state.actors.len() == 2 && state.turn.is_none() && settled {
                break;
            }
            state = self.changed.wait(state).unwrap();
        }
        let able: Vec<usize> = (0..2).filter(|&i| state.waiting[i]).collect();
        if able.is_empty() {
            return false;
        }
        state.turn = Some(choose(&able));
        self.changed.notify_all();
        true
    }
}

/// The orders that were tried: at each point the choices that are left.
#[derive(Default)]
struct Orders {
    /// Of each point of the run the one who went, and whether the other is still to be tried.
    points: Vec<(usize, bool)>,
}

impl Orders {
    /// The next run's beginning; false when all were tried.
    fn next(&mut self) -> bool {
        while let Some((went, other)) = self.points.pop() {
            if other {
                self.points.push((1 - went, false));
                return true;
            }
        }
        false
    }
}

type Act = fn(&Group, &Scratch) -> sieva::Result<()>;

/// Runs both acts in each order, from the same beginning; then all pass again, and the consumer has what it should.
fn all_orders(name: &str, begin: Act, acts: [Act; 2], end: fn(&Group, &Scratch)) -> u64 {
    let (mut orders, mut runs) = (Orders::default(), 0);
    loop {
        runs += 1;
        let conductor = Arc::new(Conductor::default());
        let gate = Arc::clone(&conductor);
        let memory = Arc::new(Memory::gated(&format!("{name}-{runs}"), move |_| gate.enter()));
        let scratch = Scratch::new();
        let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
        begin(&group, &scratch).unwrap();
        std::thread::scope(|scope| {
            for (me, act) in acts.into_iter().enumerate() {
                let (conductor, group, scratch) = (&conductor, &group, &scratch);
                scope.spawn(move || {
                    {
                        let mut state = conductor.state.lock().unwrap();
                        // In order, so that actor 0 is the first act.
                        while state.actors.len() != me {
                            state = conductor.changed.wait(state).unwrap();
                        }
                        state.actors.push(std::thread::current().id());
                        conductor.changed.notify_all();
                    }
                    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| act(group, scratch)));
                    conductor.finish(me);
                    done.unwrap().unwrap();
                });
            }
            let (mut at, mut last, mut changes) = (0, None, 0);
            let mut choose = |able: &[usize]| {
                let is_free = able.len() == 2 && last.is_some();
                let usual = last.filter(|l| able.contains(l)).unwrap_or(able[0]);
                if at == orders.points.len() {
                    // Both may begin; later the one who is at work goes on, unless a change is left to try.
                    let other = able.len() == 2 && (!is_free || changes < CHANGES);
                    orders.points.push((usual, other));
                }
                let went = orders.points[at].0;
                changes += usize::from(is_free && last != Some(went));
                (at, last) = (at + 1, Some(went));
                went
            };
            while conductor.step(&mut choose) {
                check(&memory);
            }
        });
        end(&group, &scratch);
        check(&memory);
        let data: Vec<String> = memory.contents().into_keys().filter(|k| k.starts_with("data/")).collect();
        assert_eq!(data, [""; 0]);
        if !orders.next() {
            return runs;
        }
    }
}

fn begin(group: &Group, scratch: &Scratch) -> sieva::Result<()> {
    scratch.step("a.nc", 1000);
    Producer::register(group, "model", &[scratch.steps()])?;
    group.join("ada")?;
    ask(group, "ada", "mean", MEAN)?;
    produce(group, "model")?;
    scratch.step("b.nc", 1500);
    Ok(())
}

/// Everybody passes until nothing is left to do.
fn settle(group: &Group, scratch: &Scratch) {
    for _ in 0..2 {
        produce(group, "model").unwrap();
        follow(group, "ada", &scratch.folder("ada")).unwrap();
    }
    produce(group, "model").unwrap();
}

fn pass(group: &Group, _: &Scratch) -> sieva::Result<()> {
    produce(group, "model").map(drop)
}

#[test]
fn a_pass_of_the_producer_beside_one_of_the_consumer() {
    let runs = all_orders(
        "passes",
        begin,
        [pass, |group, scratch| follow(group, "ada", &scratch.folder("ada")).map(drop)],
        |group, scratch| {
            settle(group, scratch);
            let found = files(&scratch.folder("ada"));
            assert_eq!(found.keys().collect::<Vec<_>>(), ["mean/a.csv", "mean/b.csv"]);
        },
    );
    assert!(runs > 50, "{runs}");
}

#[test]
fn a_pass_beside_another_question_by_the_same_name() {
    let runs =
        all_orders("asks", begin, [pass, |group, _| ask(group, "ada", "mean", LARGE)], |group, scratch| {
            settle(group, scratch);
            let found = files(&scratch.folder("ada"));
            assert_eq!(found.keys().collect::<Vec<_>>(), ["mean/a.csv", "mean/b.csv"]);
            assert!(found.values().all(|bytes| bytes.starts_with(b"v")), "{found:?}");
        });
    assert!(runs > 20, "{runs}");
}

#[test]
fn a_pass_beside_one_who_leaves() {
    let runs = all_orders("leaves", begin, [pass, |group, _| group.leave("ada")], |group, _| {
        produce(group, "model").unwrap();
        let users = group.objects().list("users/").unwrap();
        assert!(users.is_empty(), "{users:?}");
    });
    assert!(runs > 20, "{runs}");
}
