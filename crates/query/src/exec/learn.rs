//! What a scan leaves behind: costs of reading, and statistics of the regions that it decoded.
//!
//! Statistics may take a small share of the time of reading only, so a scan pays for as many regions as that
//! allows and the next one goes on with others: the cheaper the data are to read, the less there is to gain.

use std::time::Instant;

use sieva_index::{Elements, Want};
use sieva_types::{Buffer, Bx};

use crate::cost::Estimate;
use crate::exec::Execution;

/// Reads of at least this many bytes tell what a byte costs.
const LARGE: usize = 64 << 10;

/// One worker's account of time, in nanoseconds.
#[derive(Debug)]
pub struct Learner {
    read: f64,
    spent: f64,
    /// Nanoseconds of making the zone map, and the histogram, of one byte.
    zone: Estimate,
    histogram: Estimate,
}

impl Default for Learner {
    fn default() -> Self {
        Self { read: 0.0, spent: 0.0, zone: Estimate::new(0.05), histogram: Estimate::new(0.4) }
    }
}

impl Learner {
    /// Takes note of a read that began at `started` (`None`: of which some was in memory) and filled `buffer` with the box
    /// `own` of a bound array.
    pub fn learn(
        &mut self,
        execution: &Execution,
        array: usize,
        own: &Bx,
        buffer: &Buffer,
        started: Option<Instant>,
    ) {
        let took = started.map_or(0.0, |s| s.elapsed().as_secs_f64() * 1e9);
        let bytes = buffer.bytes().len();
        if bytes >= LARGE && started.is_some() {
            execution.read_costs(array).observe(1, bytes as u64, took);
        }
        self.read += took;
        if execution.indexes.learn <= 0.0 {
            return;
        }
        let Some(index) = &execution.indexed[array] else { return };
        let whole = |region: &usize| index.grid().bx(*region) == *own;
        let Some(region) = index.grid().only(own).filter(whole) else { return };
        let want = index.want(region);
        let price = match want {
            Want::Nothing => return,
            Want::Zone => &self.zone,
            Want::Histogram => &self.histogram,
        };
        if self.spent + price.get() * bytes as f64 > self.read * execution.indexes.learn {
            return;
        }
        let dtype = index.dtype();
        let started = Instant::now();
        if let Some(elements) = Elements::new(dtype, buffer) {
            index.learn(region, want, elements);
        }
        let took = started.elapsed().as_secs_f64() * 1e9;
        self.spent += took;
        price.observe(took / bytes.max(1) as f64);
    }
}
