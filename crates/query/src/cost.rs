//! What work costs: the constants of the planner, learnt from every query.
//!
//! SDQuery's model (section 4.1) prices a read by preparing and locating it (T_p + T_dl), by its bytes (T_db, T_de)
//! and by filtering in memory (T_ml). Here the first two are one cost per request, bytes are priced as they are
//! delivered (decoding included), and each is a running estimate per kind of layout.
//!
//! Choices follow these estimates, so they must be steady: a machine that is busy for a moment must not look like one on
//! which another way is better. Observations are taken in windows, whose median counts; where they differ widely among
//! themselves something else was at work, and the faster ones count. What got faster is believed soon, as nothing makes
//! work faster than it is; what got slower only little by little, a step in a second.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

/// Observations that are looked at together: of a new estimate, and later.
const FIRST_WINDOW: usize = 4;
const WINDOW: usize = 16;
/// Windows after which an estimate is settled.
const SETTLED: u32 = 4;
/// Share of the way, in logarithms, that an estimate goes towards a window.
const LEARN: f64 = 0.5;
/// The largest ratio of a window to the estimate that counts.
const CLIP: f64 = 4.0;
/// The machine was busy where the slower quarter of a window took so many times as long as the faster one.
const BUSY: f64 = 2.0;
/// The most that a settled estimate grows in one step, and the seconds between two of them.
const GROWTH: f64 = 1.02;
const STEP_SECONDS: f64 = 1.0;

/// A positive quantity, estimated robustly while it is observed.
#[derive(Debug)]
pub struct Estimate {
    bits: AtomicU64,
    seen: AtomicU64,
    window: Mutex<Window>,
}

/// Observations that have not been learnt from.
#[derive(Debug, Default)]
struct Window {
    /// Each as a ratio to the estimate.
    ratios: Vec<f64>,
    /// Windows so far, up to [`SETTLED`].
    windows: u32,
    /// When it last grew, in seconds.
    grew: f64,
}

impl Window {
    /// The factor that a full window asks for; `None` while it is not full.
    fn learn(&mut self, ratio: f64, now: f64) -> Option<f64> {
        self.ratios.push(ratio);
        let enough = if self.windows < SETTLED { FIRST_WINDOW } else { WINDOW };
        if self.ratios.len() < enough {
            return None;
        }
        self.ratios.sort_by(f64::total_cmp);
        let at = |share: f64| self.ratios[((self.ratios.len() - 1) as f64 * share) as usize];
        let (fast, middle, slow) = (at(0.25), at(0.5), at(0.75));
        let told = if slow > fast * BUSY { fast } else { middle };
        self.ratios.clear();
        let step = told.clamp(1.0 / CLIP, CLIP).powf(LEARN);
        if self.windows < SETTLED {
            self.windows += 1;
            return Some(step);
        }
        if step <= 1.0 {
            return Some(step);
        }
        if now - self.grew < STEP_SECONDS {
            return None;
        }
        self.grew = now;
        Some(step.min(GROWTH))
    }
}

impl Estimate {
    /// An estimate that starts at `value`.
    pub fn new(value: f64) -> Self {
        Self { bits: AtomicU64::new(value.to_bits()), seen: AtomicU64::new(0), window: Mutex::default() }
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
            if let Ok(mut window) = self.window.lock() {
                let windows = (seen / FIRST_WINDOW as u64).min(SETTLED.into()) as u32;
                *window = Window { windows, ..Window::default() };
            }
        }
    }

    /// Moves it towards what was seen. Observations that are not positive numbers are left out.
    pub fn observe(&self, value: f64) {
        self.observe_at(value, seconds());
    }

    /// The same at a time in seconds.
    pub(crate) fn observe_at(&self, value: f64, now: f64) {
        if !(value.is_finite() && value > 0.0) {
            return;
        }
        self.seen.fetch_add(1, Relaxed);
        // Of observations that come together one is enough.
        let Ok(mut window) = self.window.try_lock() else { return };
        let old = self.get();
        if let Some(factor) = window.learn(value / old, now) {
            self.bits.store((old * factor).to_bits(), Relaxed);
        }
    }
}

/// Seconds since this was first asked.
fn seconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64() + STEP_SECONDS
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

    /// Numbers from 0 to 1, the same in each run.
    fn noise(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn an_estimate_converges_and_shrugs_off_outliers() {
        let e = Estimate::new(100.0);
        (0..400).for_each(|i| e.observe_at(1000.0, 100.0 * f64::from(i)));
        assert!((e.get() - 1000.0).abs() < 10.0, "{}", e.get());
        (0..100).for_each(|i| e.observe_at(if i % 4 == 0 { 1e12 } else { 1000.0 }, 1e6 + f64::from(i)));
        assert!((e.get() - 1000.0).abs() < 20.0, "{}", e.get());
        e.observe(f64::NAN);
        e.observe(-1.0);
        assert_eq!(e.seen(), 500);
    }

    #[test]
    fn a_busy_moment_is_not_learnt() {
        for seed in 0..50 {
            let (e, mut noise) = (Estimate::new(100.0), noise(seed));
            let quiet = |n: f64| 100.0 * (0.9 + 0.3 * n);
            (0..200).for_each(|i| e.observe_at(quiet(noise()), f64::from(i) * 0.01));
            let settled = e.get();
            // Ten seconds in which other work takes the processor, most of the time.
            for i in 0..5000 {
                let slow = if noise() < 0.7 { 2.0 + 8.0 * noise() } else { 1.0 };
                e.observe_at(quiet(noise()) * slow, 2.0 + f64::from(i) * 0.002);
            }
            assert!(e.get() / settled < 1.25, "{} became {}", settled, e.get());
            (0..200).for_each(|i| e.observe_at(quiet(noise()), 12.0 + f64::from(i) * 0.01));
            assert!((e.get() / settled - 1.0).abs() < 0.1, "{} became {}", settled, e.get());
        }
    }

    #[test]
    fn a_slower_machine_is_learnt_in_time_and_a_faster_one_soon() {
        let e = Estimate::new(100.0);
        (0..200).for_each(|i| e.observe_at(100.0, f64::from(i)));
        (0..40_000).for_each(|i| e.observe_at(500.0, 200.0 + f64::from(i) * 0.1));
        assert!((e.get() / 500.0 - 1.0).abs() < 0.05, "{}", e.get());
        (0..200).for_each(|i| e.observe_at(50.0, 5000.0 + f64::from(i) * 0.001));
        assert!((e.get() / 50.0 - 1.0).abs() < 0.05, "{}", e.get());
    }

    #[test]
    fn requests_and_bytes_are_told_apart() {
        let costs = ReadCosts { request: Estimate::new(100.0), byte: Estimate::new(1.0) };
        for _ in 0..300 {
            costs.observe(1000, 4000, 1000.0 * 500.0 + 4000.0 * 0.1);
            costs.observe(1, 1 << 20, 500.0 + (1 << 20) as f64 * 0.1);
        }
        assert!((costs.request.get() / 500.0 - 1.0).abs() < 0.2, "{}", costs.request.get());
        assert!((costs.byte.get() / 0.1 - 1.0).abs() < 0.2, "{}", costs.byte.get());
        assert!((costs.gap() as f64 / 5000.0 - 1.0).abs() < 0.4);
    }
}
