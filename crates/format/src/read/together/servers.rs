//! Which job is read next: those of each server in the order in which it keeps its bytes, no more than a few of a server at
//! once, and servers side by side, so that one that is slow holds up those alone who need it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use sieva_store::Striping;

/// Requests that a server has at once: one that it answers, and one that is there when it has done so. More would wait there
/// all the same, and keep threads from other servers.
pub(super) const PER_SERVER: usize = 2;
/// Threads that read from servers, most of which wait for them, besides those that there are cores for.
const MOST_THREADS: usize = 32;
/// The smallest stripes at whose ends plain bytes are cut: below it a request costs more than that two servers answer one.
pub(super) const LEAST_STRIPE: u64 = 64 << 10;
/// Stripes of a range that are looked at for their servers.
const MOST_STRIPES: usize = 256;

/// The jobs that are left.
pub(super) struct Queue {
    /// The servers that each job reads from.
    servers: Vec<Vec<u32>>,
    state: Mutex<State>,
    freed: Condvar,
}

type Lanes = VecDeque<VecDeque<usize>>;
/// Jobs with their places.
type Placed = Vec<(u64, usize)>;

struct State {
    /// Jobs by their server, each in its order; the lane that was taken from goes to the end.
    lanes: Lanes,
    /// Those of several servers, which come after those of one, so that a slow server keeps none of its neighbours busy while
    /// it has work of its own.
    wide: Lanes,
    /// How many requests each server has.
    busy: HashMap<u32, usize>,
}

impl Queue {
    /// Jobs that read these bytes; none where it is not known.
    pub(super) fn new(striping: &Striping, jobs: &[Option<Range<u64>>]) -> Self {
        let servers: Vec<Vec<u32>> = jobs.iter().map(|bytes| servers_of(striping, bytes.as_ref())).collect();
        let mut lanes: BTreeMap<(bool, Option<u32>), Placed> = BTreeMap::new();
        for (job, (bytes, servers)) in jobs.iter().zip(&servers).enumerate() {
            let begin = bytes.as_ref().map_or(0, |bytes| bytes.start);
            let place = striping.disk_order(begin).unwrap_or(begin);
            lanes.entry((servers.len() > 1, servers.first().copied())).or_default().push((place, job));
        }
        let mut state = State { lanes: Lanes::new(), wide: Lanes::new(), busy: HashMap::new() };
        for ((is_wide, _), mut lane) in lanes {
            lane.sort_unstable();
            let lane = lane.into_iter().map(|(_, job)| job).collect();
            if is_wide { state.wide.push_back(lane) } else { state.lanes.push_back(lane) }
        }
        Self { servers, state: Mutex::new(state), freed: Condvar::new() }
    }

    /// How many threads are of use where there are so many cores.
    pub(super) fn threads(&self, cores: usize) -> usize {
        let state = self.lock();
        ((state.lanes.len() + state.wide.len()) * PER_SERVER).clamp(cores, MOST_THREADS.max(cores))
    }

    /// The next job, once its servers have room for it; `None` where none is left.
    pub(super) fn next(&self) -> Option<(usize, Ticket<'_>)> {
        let mut state = self.lock();
        loop {
            let State { lanes, wide, busy } = &mut *state;
            let has_room = |job: usize| {
                self.servers[job].iter().all(|server| busy.get(server).is_none_or(|n| *n < PER_SERVER))
            };
            if let Some(job) = take(lanes, &has_room).or_else(|| take(wide, &has_room)) {
                for server in &self.servers[job] {
                    *busy.entry(*server).or_default() += 1;
                }
                return Some((job, Ticket { queue: self, job }));
            }
            if lanes.is_empty() && wide.is_empty() {
                return None;
            }
            // Somebody has a ticket, as a server has no room, and gives it back whatever happens.
            state = self.freed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the first job of a lane that there is room for.
fn take(lanes: &mut Lanes, has_room: &dyn Fn(usize) -> bool) -> Option<usize> {
    for _ in 0..lanes.len() {
        let mut lane = lanes.pop_front()?;
        let job = lane.front().copied().filter(|job| has_room(*job));
        if job.is_some() {
            lane.pop_front();
        }
        if !lane.is_empty() {
            lanes.push_back(lane);
        }
        if job.is_some() {
            return job;
        }
    }
    None
}

/// That a job may ask its servers.
pub(super) struct Ticket<'a> {
    queue: &'a Queue,
    job: usize,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        for server in &self.queue.servers[self.job] {
            if let Some(n) = state.busy.get_mut(server) {
                *n -= 1;
            }
        }
        drop(state);
        self.queue.freed.notify_all();
    }
}

/// The servers of a range, the first one first.
fn servers_of(striping: &Striping, bytes: Option<&Range<u64>>) -> Vec<u32> {
    let Some(bytes) = bytes.filter(|_| !striping.is_single()) else { return Vec::new() };
    let mut servers: Vec<u32> = Vec::new();
    for piece in striping.pieces(bytes.clone()).take(MOST_STRIPES) {
        if !servers.contains(&piece.server) {
            servers.push(piece.server);
        }
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_take_turns_each_in_its_order_and_none_has_more_than_a_few() {
        let striping = Striping::given(100, 3, 0).unwrap();
        // Stripes 0 to 8, and two bytes that two servers have.
        let mut jobs: Vec<Option<Range<u64>>> = (0..9).map(|i| Some(i * 100..i * 100 + 50)).collect();
        jobs.extend([Some(899..901), None]);
        let queue = Queue::new(&striping, &jobs);
        assert_eq!((queue.threads(1), queue.threads(99)), (10, 99));
        let take = |n: usize| -> Vec<_> { (0..n).filter_map(|_| queue.next()).collect() };
        let numbers = |taken: &[(usize, Ticket<'_>)]| taken.iter().map(|(job, _)| *job).collect::<Vec<_>>();
        // What is on no server is never held up.
        let first = take(7);
        assert_eq!(numbers(&first), [10, 0, 1, 2, 3, 4, 5]);
        drop(first);
        let second = take(5);
        // The last one begins on server 2 and ends on server 0.
        assert_eq!(numbers(&second), [6, 7, 8, 9]);
    }

    #[test]
    fn who_finds_no_server_with_room_waits_until_one_has() {
        let striping = Striping::given(100, 2, 0).unwrap();
        let queue = Queue::new(&striping, &[Some(0..1), Some(1..2), Some(2..3)]);
        let (first, second) = (queue.next().unwrap(), queue.next().unwrap());
        std::thread::scope(|scope| {
            let third = scope.spawn(|| queue.next().unwrap().0);
            assert!(!third.is_finished());
            drop(first);
            assert_eq!(third.join().unwrap(), 2);
        });
        drop(second);
        assert!(queue.next().is_none() && queue.lock().busy.values().all(|n| *n == 0));
    }
}
