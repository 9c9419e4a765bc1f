//! What work costs: the constants of the planner, learnt from every query.
//!
//! SDQuery's model (section 4.1) prices a read by preparing and locating it (T_p + T_dl), by its bytes (T_db, T_de)
//! and by filtering in memory (T_ml). Here the first two are one cost per request, bytes are priced as they are
//! delivered (decoding included), and each is a running estimate per kind of layout. An estimate moves by a
//! share of the ratio to what was seen, and no single observation moves it far: a stall of the disk or of the
//! machine does not spoil it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Share of the way that an estimate goes towards an observation, in logarithms.
const LEARN: f64 = 0.1;
/// The largest ratio of an observation to the estimate that counts.
const CLIP: f64 = 4.0;

/// A positive quantity, estimated robustly while it is observed.
#[derive(Debug)]
pub struct Estimate {
    bits: AtomicU64,
    seen: AtomicU64,
}

impl Estimate {
    /// An estimate that starts at `value`.
    pub fn new(value: f64) -> Self {
        Self { bits: AtomicU64::new(value.to_bits()), seen: AtomicU64::new(0) }
    }

    /// The estimate.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.bits.load(Relaxed))
    }

    /// Number of observations.
    pub fn seen(&self) -> u64 {
        self.seen.load(Relaxed)
    }

    /// Sets it, as a profile that was kept does.
    pub fn set(&self, value: f64, seen: u64) {
        if value.is_finite() && value > 0.0 {
            self.bits.store(value.to_bits(), Relaxed);
            self.seen.store(seen, Relaxed);
        }
    }

    /// Moves it towards what was seen. Observations that are not positive numbers are left out.
    pub fn observe(&self, value: f64) {
        if !(value.is_finite() && value > 0.0) {
            return;
        }
        let seen = self.seen.fetch_add(1, Relaxed);
        // The first ones count more, so that a new machine is known soon.
        let share = LEARN.max(1.0 / (seen + 2) as f64);
        let old = self.get();
        let ratio = (value / old).clamp(1.0 / CLIP, CLIP);
        self.bits.store((old * ratio.powf(share)).to_bits(), Relaxed);
    }
}

/// Costs of reading arrays of one kind of layout, in nanoseconds.
#[derive(Debug)]
pub struct ReadCosts {
    /// Of one request, whatever its size.
    pub request: Estimate,
    /// Of one byte that a large read delivers, decoding included.
    pub byte: Estimate,
}

/// The planner's constants.
#[derive(Debug)]
pub struct Costs {
    /// Arrays whose elements lie plainly in the file.
    pub direct: ReadCosts,
    /// Arrays in chunks that are decoded as a whole; a request is a chunk.
    pub chunked: ReadCosts,
    /// Augmentations.
    pub index: ReadCosts,
}

impl Default for Costs {
    /// Of a file in the page cache of a machine of 2020 or later.
    fn default() -> Self {
        let costs = |request, byte| ReadCosts { request: Estimate::new(request), byte: Estimate::new(byte) };
        Self { direct: costs(400.0, 0.07), chunked: costs(2000.0, 0.5), index: costs(600.0, 0.15) }
    }
}

impl Costs {
    /// Each estimate with its name, as profiles keep it.
    pub fn named(&self) -> [(&'static str, &Estimate); 6] {
        [
            ("direct.request_ns", &self.direct.request),
            ("direct.byte_ns", &self.direct.byte),
            ("chunked.request_ns", &self.chunked.request),
            ("chunked.byte_ns", &self.chunked.byte),
            ("index.request_ns", &self.index.request),
            ("index.byte_ns", &self.index.byte),
        ]
    }
}

impl ReadCosts {
    /// Nanoseconds of `requests` requests for `bytes` bytes together: equations 1 and 4 of SDQuery, in which
    /// blocks and segments differ by their number and size only.
    pub fn price(&self, requests: u64, bytes: u64) -> f64 {
        requests as f64 * self.request.get() + bytes as f64 * self.byte.get()
    }

    /// Bytes that cost as much as a request: gaps up to this are better read than skipped.
    pub fn gap(&self) -> u64 {
        (self.request.get() / self.byte.get()).clamp(64.0, 64.0 * 1024.0 * 1024.0) as u64
    }

    /// Learns from `requests` requests for `bytes` bytes that took `nanoseconds`.
    pub fn observe(&self, requests: u64, bytes: u64, nanoseconds: f64) {
        let (request, byte) = (self.request.get(), self.byte.get());
        // Each observation teaches the part that dominates it.
        if requests as f64 * request > bytes as f64 * byte * 2.0 {
            self.request.observe((nanoseconds - bytes as f64 * byte) / requests as f64);
        } else if bytes as f64 * byte > requests as f64 * request * 2.0 {
            self.byte.observe((nanoseconds - requests as f64 * request) / bytes as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_converges_and_shrugs_off_outliers() {
        let e = Estimate::new(100.0);
        (0..200).for_each(|_| e.observe(1000.0));
        assert!((e.get() - 1000.0).abs() < 10.0, "{}", e.get());
        e.observe(1e12);
        assert!(e.get() < 1200.0);
        e.observe(f64::NAN);
        e.observe(-1.0);
        assert!(e.get() < 1200.0);
    }

    #[test]
    fn requests_and_bytes_are_told_apart() {
        let costs = ReadCosts { request: Estimate::new(100.0), byte: Estimate::new(1.0) };
        for _ in 0..300 {
            costs.observe(1000, 4000, 1000.0 * 500.0 + 4000.0 * 0.1);
            costs.observe(1, 1 << 20, 500.0 + (1 << 20) as f64 * 0.1);
        }
        assert!((costs.request.get() / 500.0 - 1.0).abs() < 0.05, "{}", costs.request.get());
        assert!((costs.byte.get() / 0.1 - 1.0).abs() < 0.05, "{}", costs.byte.get());
        assert!((costs.gap() as f64 / 5000.0 - 1.0).abs() < 0.1);
    }
}
