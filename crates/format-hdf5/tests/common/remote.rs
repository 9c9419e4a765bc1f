//! An object behind a simulated network: counts requests and waits on a clock of its own.
//!
//! It behaves as the cache in front of a remote object does: what was fetched stays, ranges that are announced are
//! fetched at once and joined where a gap costs less than a request, and what nobody announced brings the aligned
//! block around it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use sieva_store::{Counters, RangedRead};
use sieva_types::Result;

/// What is fetched for a byte that nobody announced.
const BLOCK: u64 = 1 << 20;
/// Granularity of announced ranges.
const GRAIN: u64 = 4 << 10;
/// Ranges nearer than this become one request.
const GAP: u64 = 96 << 10;

/// The wrapper. Time is counted in round trips: an announced range is there one round trip after it was announced.
pub struct Remote {
    inner: Arc<dyn RangedRead>,
    /// Whether announcements are heard.
    listens: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// When each grain arrives.
    arrival: HashMap<u64, u64>,
    traffic: Traffic,
}

/// What went over the network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Range requests.
    pub requests: u64,
    /// Round trips that a reader had to wait for.
    pub rounds: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Remote {
    pub fn new(inner: Arc<dyn RangedRead>) -> Arc<Self> {
        Arc::new(Self { inner, listens: true, state: Mutex::default() })
    }

    /// One that only sees reads, as if nothing were announced.
    pub fn deaf(inner: Arc<dyn RangedRead>) -> Arc<Self> {
        Arc::new(Self { inner, listens: false, state: Mutex::default() })
    }

    pub fn traffic(&self) -> Traffic {
        self.state.lock().unwrap().traffic
    }

    fn grains(&self, range: &Range<u64>) -> Range<u64> {
        range.start / GRAIN..range.end.min(self.inner.len()).div_ceil(GRAIN)
    }
}

impl State {
    /// Fetches what is missing of these grains; those that lie near each other in one request.
    fn fetch(&mut self, mut grains: Vec<u64>) {
        grains.retain(|grain| !self.arrival.contains_key(grain));
        grains.sort_unstable();
        grains.dedup();
        let mut last = None;
        for grain in grains {
            let joined = last.is_some_and(|last| grain - last <= GAP / GRAIN);
            self.traffic.requests += u64::from(!joined);
            for between in if joined { last.unwrap() + 1..grain + 1 } else { grain..grain + 1 } {
                self.traffic.bytes += GRAIN;
                self.arrival.entry(between).or_insert(self.traffic.rounds + 1);
            }
            last = Some(grain);
        }
    }
}

impl RangedRead for Remote {
    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.inner.read_exact_at(offset, out)?;
        let mut state = self.state.lock().unwrap();
        let grains = self.grains(&(offset..offset + out.len() as u64));
        let is_missing = |state: &State| grains.clone().any(|grain| !state.arrival.contains_key(&grain));
        if is_missing(&state) {
            let end = offset + out.len() as u64;
            let block = offset / BLOCK * BLOCK..end.next_multiple_of(BLOCK);
            state.fetch(self.grains(&block).collect());
        }
        let there = grains.filter_map(|grain| state.arrival.get(&grain).copied()).max().unwrap_or(0);
        state.traffic.rounds = state.traffic.rounds.max(there);
        Ok(())
    }

    fn check_unchanged(&self) -> Result<()> {
        self.inner.check_unchanged()
    }

    fn will_need(&self, ranges: &[Range<u64>]) {
        if self.listens {
            let grains = ranges.iter().flat_map(|range| self.grains(range)).collect();
            self.state.lock().unwrap().fetch(grains);
        }
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    fn counters(&self) -> &Counters {
        self.inner.counters()
    }
}
