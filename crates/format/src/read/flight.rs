//! Chunks that are being decoded: who wants one that another thread decodes just then waits for it, so that it is decoded once.
//!
//! Nobody waits while he decodes, so those who wait never wait for one another. Whoever decodes has a [`Lease`]; when it
//! ends, whatever ends it, those who wait are told: the chunk, the error of reading it, or that they are to try themselves.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use sieva_types::{Error, ErrorKind, Result};

use super::cache::{ChunkCache, Key};

/// How often who waits looks whether he was given up.
const POLL: Duration = Duration::from_millis(20);

/// A decoded chunk; `None` where it was never written.
type Chunk = Option<Arc<Vec<u8>>>;

/// What became of the decoding of a chunk.
#[derive(Debug)]
enum Outcome {
    Given(Result<Chunk>),
    /// Who decoded it gave up, or had less memory than those who wait may have.
    Abandoned,
}

/// A chunk that one thread decodes.
#[derive(Debug)]
pub(super) struct Flight {
    /// A forked process has none of its parent's threads.
    process: u32,
    outcome: Mutex<Option<Outcome>>,
    landed: Condvar,
}

impl Flight {
    pub(super) fn new() -> Self {
        Self { process: std::process::id(), outcome: Mutex::default(), landed: Condvar::new() }
    }

    /// Whether its thread is one of this process.
    pub(super) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// What it gives; `None` where who waits is to decode the chunk himself. `check` is called now and then.
    ///
    /// # Errors
    /// Those of decoding the chunk; what `check` says.
    pub(super) fn wait(&self, check: &mut dyn FnMut() -> Result<()>) -> Result<Option<Chunk>> {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match &*outcome {
                Some(Outcome::Given(Ok(chunk))) => return Ok(Some(chunk.clone())),
                Some(Outcome::Given(Err(e))) => return Err(e.clone()),
                Some(Outcome::Abandoned) => return Ok(None),
                None => check()?,
            }
            outcome = self.landed.wait_timeout(outcome, POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn land(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        self.landed.notify_all();
    }
}

/// What there is of a chunk that is wanted.
pub(super) enum Claim<'a> {
    /// The chunk, decoded before or meanwhile.
    Given(Chunk),
    /// It is to be decoded by who asked.
    Own(Lease<'a>),
}

/// That a thread decodes a chunk.
pub(super) struct Lease<'a> {
    cache: &'a ChunkCache,
    key: Key,
    /// `None` where nobody else looks for it.
    flight: Option<Arc<Flight>>,
}

impl<'a> Lease<'a> {
    pub(super) fn new(cache: &'a ChunkCache, key: Key, flight: Option<Arc<Flight>>) -> Self {
        Self { cache, key, flight }
    }

    /// Tells what came of it. The chunk is kept: in the place of others if more of it `is_wanted` soon, else where there is room.
    pub(super) fn land(mut self, decoded: &Result<Chunk>, is_wanted: bool) {
        match decoded {
            Ok(Some(chunk)) if is_wanted => self.cache.put(self.key.1, Arc::clone(chunk)),
            Ok(Some(chunk)) => self.cache.offer_made(self.key.1, chunk),
            _ => {}
        }
        let outcome = match decoded {
            // Others may have more memory, and have not given up.
            Err(e) if matches!(e.kind(), ErrorKind::Cancelled | ErrorKind::MemoryLimit) => Outcome::Abandoned,
            decoded => Outcome::Given(decoded.clone()),
        };
        self.end(|_| outcome);
    }

    /// The same of a chunk that who decoded it does not need as such: copied where others want it, or where there is room.
    pub(super) fn land_passed(mut self, chunk: &[u8]) {
        let kept = self.cache.offer_copy(self.key.1, chunk, self.is_awaited());
        self.end(|is_awaited| match kept {
            Some(kept) => Outcome::Given(Ok(Some(kept))),
            None if is_awaited => Outcome::Given(Ok(Some(Arc::new(chunk.to_vec())))),
            None => Outcome::Abandoned,
        });
    }

    /// Whether others wait: they hold it besides the table of the cache and this lease.
    fn is_awaited(&self) -> bool {
        self.flight.as_ref().is_some_and(|flight| Arc::strong_count(flight) > 2)
    }

    /// Has nobody else find it any more, and tells those who did.
    fn end(&mut self, outcome: impl FnOnce(bool) -> Outcome) {
        let Some(flight) = self.flight.take() else { return };
        self.cache.forget(self.key, &flight);
        let is_awaited = Arc::strong_count(&flight) > 1;
        flight.land(outcome(is_awaited));
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.end(|_| Outcome::Abandoned);
    }
}

/// The error of who waits and is not wanted any more.
pub(super) fn given_up() -> Error {
    Error::new(ErrorKind::Cancelled, "the reading was interrupted")
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
    use std::thread;

    use super::*;

    const KEY: crate::read::cache::ChunkKey = (0, 4, 2);

    fn never() -> impl FnMut() -> Result<()> {
        || Ok(())
    }

    fn own(cache: &ChunkCache) -> Lease<'_> {
        match cache.claim(KEY, &mut never()).unwrap() {
            Claim::Own(lease) => lease,
            Claim::Given(chunk) => panic!("it was given {chunk:?}"),
        }
    }

    /// Has threads claim a chunk that this one decodes, and `end` its lease while they wait; what they got.
    fn while_others_wait(
        cache: &ChunkCache,
        n: usize,
        end: impl FnOnce(Lease<'_>),
    ) -> Vec<Option<Result<Chunk>>> {
        let lease = own(cache);
        thread::scope(|scope| {
            let claim = || match cache.claim(KEY, &mut never()) {
                Ok(Claim::Given(chunk)) => Some(Ok(chunk)),
                Ok(Claim::Own(_)) => None,
                Err(e) => Some(Err(e)),
            };
            let waiting: Vec<_> = (0..n).map(|_| scope.spawn(claim)).collect();
            while Arc::strong_count(lease.flight.as_ref().unwrap()) < 2 + n {
                thread::yield_now();
            }
            end(lease);
            waiting.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn those_who_wait_get_the_chunk_or_the_error_of_who_decodes_it() {
        for (is_wanted, room) in [(true, 1 << 20), (false, 1 << 20), (true, 9), (false, 9)] {
            let (cache, chunk) = (ChunkCache::new(room), || Ok(Some(Arc::new(vec![7; 9]))));
            let got = while_others_wait(&cache, 5, |lease| lease.land(&chunk(), is_wanted));
            assert!(got.into_iter().all(|got| *got.unwrap().unwrap().unwrap() == [7; 9]));
            assert_eq!(cache.holds(KEY), room > 9);
        }
        let cache = ChunkCache::new(1 << 20);
        let got = while_others_wait(&cache, 3, |lease| lease.land(&Ok(None), true));
        assert!(got.into_iter().all(|got| got.unwrap().unwrap().is_none()) && !cache.is_at_hand(KEY));
        let got = while_others_wait(&cache, 3, |lease| lease.land(&Err(Error::corrupt("bad")), true));
        assert!(got.into_iter().all(|got| got.unwrap().unwrap_err().message() == "bad"));
        // Nothing is left: the next one decodes.
        own(&cache);
    }

    #[test]
    fn a_chunk_that_is_passed_is_copied_for_those_who_wait_whether_there_is_room_or_not() {
        for room in [1 << 20, 300] {
            let cache = ChunkCache::new(room);
            let got = while_others_wait(&cache, 4, |lease| lease.land_passed(&[3; 1000]));
            assert!(got.into_iter().all(|got| *got.unwrap().unwrap().unwrap() == [3; 1000]));
            assert_eq!(cache.holds(KEY), room > 1000);
            own(&ChunkCache::new(room)).land_passed(&[3; 1000]);
        }
    }

    #[test]
    fn one_of_those_who_wait_goes_on_where_who_decodes_gives_up_or_has_too_little_memory() {
        let cache = ChunkCache::new(1 << 20);
        let limited = || Err(Error::new(ErrorKind::MemoryLimit, "too little"));
        let ends: [fn(Lease<'_>, Result<Chunk>); 2] =
            [|lease, _| drop(lease), |lease, e| lease.land(&e, true)];
        for end in ends {
            let (decoded, next) = (AtomicUsize::new(0), own(&cache));
            thread::scope(|scope| {
                for _ in 0..6 {
                    scope.spawn(|| match cache.claim(KEY, &mut never()).unwrap() {
                        Claim::Given(chunk) => assert_eq!(*chunk.unwrap(), [1]),
                        Claim::Own(lease) => {
                            decoded.fetch_add(1, Relaxed);
                            lease.land(&Ok(Some(Arc::new(vec![1]))), true);
                        }
                    });
                }
                end(next, limited());
            });
            assert_eq!(decoded.into_inner(), 1);
            cache.clear();
        }
    }

    #[test]
    fn who_is_given_up_while_he_waits_ends_and_the_others_get_theirs() {
        let (cache, gone, begun) = (ChunkCache::new(1 << 20), AtomicBool::new(false), Barrier::new(2));
        let lease = own(&cache);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                let mut first = true;
                let check = &mut || {
                    if std::mem::take(&mut first) {
                        begun.wait();
                    }
                    if gone.load(Relaxed) { Err(given_up()) } else { Ok(()) }
                };
                cache.claim(KEY, check).map(|_| ()).unwrap_err()
            });
            begun.wait();
            gone.store(true, Relaxed);
            assert_eq!(waiting.join().unwrap().kind(), ErrorKind::Cancelled);
        });
        lease.land(&Ok(Some(Arc::new(vec![5]))), true);
        assert_eq!(cache.get(KEY).unwrap()[..], [5]);
        // What nothing is kept of is decoded by each.
        let none = ChunkCache::new(0);
        let (_first, _second) = (own(&none), own(&none));
    }
}
