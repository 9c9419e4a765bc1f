//! How great objects should be (section V.A): what sharing costs and saves, and what the store does best.

use std::collections::BTreeMap;

use sieva_types::{Error, ErrorKind, Result};

/// Bytes of the gigabyte that stores count by.
const GIGABYTE: f64 = 1e9;

/// What a store takes, in one currency, for each gigabyte (10^9 bytes).
///
/// ```
/// use sieva_reduce::merge::cost::Prices;
///
/// // Amazon S3, as the paper has it.
/// let prices = Prices::new(0.095, 0.0, 0.012)?;
/// // Four consumers that want a gigabyte each, of which none has a part of its own.
/// let wanted = [1_000_000_000; 4];
/// assert!(prices.with_sharing(1_000_000_000, 4) < prices.without_sharing(&wanted));
/// // One object of at most so many bytes is no dearer than four of their own.
/// assert_eq!(prices.greatest_size(&wanted), Some(2_993_006_993));
/// # Ok::<(), sieva_types::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    storage: f64,
    into: f64,
    out: f64,
}

impl Prices {
    /// Prices of storage (alpha), of transfer into the store (beta) and out of it (gamma).
    ///
    /// # Errors
    /// `invalid-value` for what is negative or not finite.
    pub fn new(storage: f64, into: f64, out: f64) -> Result<Self> {
        for (name, price) in [("storage", storage), ("transfer into it", into), ("transfer out of it", out)] {
            if !(price.is_finite() && price >= 0.0) {
                let message =
                    format!("the price of {name} is a number from 0 for each gigabyte, got {price:?}");
                return Err(Error::new(ErrorKind::InvalidValue, message));
            }
        }
        Ok(Self { storage, into, out })
    }

    /// Equation 1: each consumer has an object of its own, of so many bytes.
    pub fn without_sharing(&self, sizes: &[u64]) -> f64 {
        (self.storage + self.into + self.out) * gigabytes(sizes)
    }

    /// Equation 2: one object of so many bytes, which each of `consumers` gets whole.
    pub fn with_sharing(&self, size: u64, consumers: usize) -> f64 {
        let size = size as f64 / GIGABYTE;
        self.storage * size + self.into * size + self.out * consumers as f64 * size
    }

    /// The same where consumers get the bytes of the object that they want, and no others (partial access, section VI.B).
    pub fn with_partial_access(&self, size: u64, sizes: &[u64]) -> f64 {
        (self.storage + self.into) * (size as f64 / GIGABYTE) + self.out * gigabytes(sizes)
    }

    /// Equation 3: the greatest size in bytes of one object for these consumers that is no dearer than objects of their own.
    /// None where any size is as dear, as nothing costs anything.
    pub fn greatest_size(&self, sizes: &[u64]) -> Option<u64> {
        let below = self.storage + self.into + self.out * sizes.len() as f64;
        let size = (self.storage + self.into + self.out) * gigabytes(sizes) * GIGABYTE / below;
        // Beyond the range of the type it is the greatest of it.
        (below > 0.0).then_some(size.floor() as u64)
    }

    /// The size in bytes of objects for these consumers. With partial access what the network does best, `best`
    /// (`Size_net`); without it at most what equation 3 allows.
    pub fn object_size(&self, sizes: &[u64], best: u64, partial_access: bool) -> u64 {
        match self.greatest_size(sizes) {
            Some(greatest) if !partial_access => best.min(greatest),
            _ => best,
        }
    }
}

fn gigabytes(sizes: &[u64]) -> f64 {
    sizes.iter().map(|&s| s as f64).sum::<f64>() / GIGABYTE
}

/// A transfer that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Bytes of the object.
    pub size: u64,
    /// How many threads moved one each at a time.
    pub threads: u32,
    /// Bytes that all of them moved in a second.
    pub rate: f64,
}

/// `T = f(size, threads)`: what a store moves in a second, by what was measured, on straight lines between it.
#[derive(Clone, Debug, PartialEq)]
pub struct Throughput {
    /// By threads, then by size.
    curves: BTreeMap<u32, BTreeMap<u64, f64>>,
}

impl Throughput {
    /// The rates that were measured; of several at one place their mean.
    ///
    /// # Errors
    /// `invalid-value` if there is none, and for sizes, threads and rates that are not above 0.
    pub fn new(measured: &[Measured]) -> Result<Self> {
        let mut sums: BTreeMap<(u32, u64), (f64, f64)> = BTreeMap::new();
        for m in measured {
            if m.size == 0 || m.threads == 0 || !(m.rate.is_finite() && m.rate > 0.0) {
                let message = format!(
                    "a transfer of {} bytes by {} threads, {:?} bytes a second: all are above 0",
                    m.size, m.threads, m.rate
                );
                return Err(Error::new(ErrorKind::InvalidValue, message));
            }
            let (sum, n) = sums.entry((m.threads, m.size)).or_default();
            *sum += m.rate;
            *n += 1.0;
        }
        if sums.is_empty() {
            return Err(Error::new(ErrorKind::InvalidValue, "no transfer was measured"));
        }
        let mut curves: BTreeMap<u32, BTreeMap<u64, f64>> = BTreeMap::new();
        for ((threads, size), (sum, n)) in sums {
            curves.entry(threads).or_default().insert(size, sum / n);
        }
        Ok(Self { curves })
    }

    /// Bytes in a second for objects of a size by so many threads. Beyond what was measured it is as at the nearest.
    pub fn rate(&self, size: u64, threads: u32) -> f64 {
        let Some(((below, first), (above, second))) = self.beside(threads) else { return 0.0 };
        between((f64::from(below), at(first, size)), (f64::from(above), at(second, size)), f64::from(threads))
    }

    /// `Size_net`: the least size of objects whose rate by so many threads is at least `share` of the best one (1 for the best
    /// itself). Only sizes that were measured are looked at.
    pub fn best_size(&self, threads: u32, share: f64) -> u64 {
        let Some(((_, first), (_, second))) = self.beside(threads) else { return 1 };
        // Between these sizes the rate is on straight lines.
        let mut sizes: Vec<u64> = first.keys().chain(second.keys()).copied().collect();
        sizes.sort_unstable();
        let rates: Vec<f64> = sizes.iter().map(|&s| self.rate(s, threads)).collect();
        let best = rates.iter().copied().fold(0.0, f64::max);
        let enough = rates.iter().position(|&r| r >= best * share.clamp(0.0, 1.0));
        enough.and_then(|i| sizes.get(i)).copied().unwrap_or(1)
    }

    /// The curves of the nearest numbers of threads that were measured, below and above.
    fn beside(&self, threads: u32) -> Option<(Curve<'_>, Curve<'_>)> {
        let below = self.curves.range(..=threads).next_back();
        let above = self.curves.range(threads..).next();
        let ((low, first), (high, second)) = (below.or(above)?, above.or(below)?);
        Some(((*low, first), (*high, second)))
    }
}

type Curve<'a> = (u32, &'a BTreeMap<u64, f64>);

/// The rate of a curve at a size.
fn at(curve: &BTreeMap<u64, f64>, size: u64) -> f64 {
    let point = |(s, r): (&u64, &f64)| (*s as f64, *r);
    let below = curve.range(..=size).next_back().map(point);
    let above = curve.range(size..).next().map(point);
    match (below.or(above), above.or(below)) {
        (Some(low), Some(high)) => between(low, high, size as f64),
        _ => 0.0,
    }
}

/// The value at `x` on the line through two points.
fn between((x0, y0): (f64, f64), (x1, y1): (f64, f64), x: f64) -> f64 {
    if x1 <= x0 { y0 } else { y0 + (y1 - y0) * ((x - x0) / (x1 - x0)).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S3: (f64, f64, f64) = (0.095, 0.0, 0.012);

    fn prices((storage, into, out): (f64, f64, f64)) -> Prices {
        Prices::new(storage, into, out).unwrap()
    }

    #[test]
    fn costs_are_those_of_the_equations() {
        let p = prices(S3);
        let sizes = [500_000_000, 1_500_000_000];
        assert!((p.without_sharing(&sizes) - 0.107 * 2.0).abs() < 1e-12);
        assert!((p.with_sharing(2_000_000_000, 2) - (0.19 + 0.048)).abs() < 1e-12);
        assert!((p.with_partial_access(2_000_000_000, &sizes) - (0.19 + 0.024)).abs() < 1e-12);
        // At the greatest size both cost the same, beyond it sharing is dearer.
        let greatest = p.greatest_size(&sizes).unwrap();
        assert!((p.with_sharing(greatest, 2) - p.without_sharing(&sizes)).abs() < 1e-9);
        assert!(p.with_sharing(greatest + 1_000_000, 2) > p.without_sharing(&sizes));
    }

    #[test]
    fn the_size_is_that_of_the_network_unless_what_is_not_wanted_costs_more() {
        let p = prices(S3);
        let sizes = [1_000_000; 8];
        let greatest = p.greatest_size(&sizes).unwrap();
        assert_eq!(p.object_size(&sizes, greatest / 2, false), greatest / 2);
        assert_eq!(p.object_size(&sizes, greatest * 2, false), greatest);
        assert_eq!(p.object_size(&sizes, greatest * 2, true), greatest * 2);
    }

    #[test]
    fn a_store_that_takes_nothing_and_consumers_that_want_nothing() {
        let free = prices((0.0, 0.0, 0.0));
        assert_eq!((free.greatest_size(&[5]), free.object_size(&[5], 7, false)), (None, 7));
        assert_eq!(prices(S3).greatest_size(&[]), Some(0));
        assert_eq!(prices((0.0, 0.0, 1.0)).greatest_size(&[]), None);
        assert_eq!(prices(S3).greatest_size(&[u64::MAX; 3]).map(|s| s > u64::MAX / 2), Some(true));
        for wrong in [(f64::NAN, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, f64::INFINITY)] {
            let e = Prices::new(wrong.0, wrong.1, wrong.2).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidValue);
        }
    }

    fn measured() -> Throughput {
        let at = |threads, size, rate| Measured { size, threads, rate };
        let all = [at(1, 10, 100.0), at(1, 20, 300.0), at(1, 40, 200.0), at(4, 20, 600.0), at(4, 40, 1000.0)];
        Throughput::new(&all).unwrap()
    }

    #[test]
    fn rates_lie_on_lines_between_what_was_measured() {
        let t = measured();
        for (size, threads, rate) in [
            (10, 1, 100.0),
            (15, 1, 200.0),
            (30, 1, 250.0),
            (5, 1, 100.0),
            (80, 1, 200.0),
            (30, 4, 800.0),
            (20, 2, 400.0),
            (40, 9, 1000.0),
        ] {
            assert!(
                (t.rate(size, threads) - rate).abs() < 1e-9,
                "{size} {threads}: {}",
                t.rate(size, threads)
            );
        }
    }

    #[test]
    fn the_best_size_is_the_least_that_is_near_the_best_rate() {
        let t = measured();
        assert_eq!((t.best_size(1, 1.0), t.best_size(4, 1.0), t.best_size(64, 1.0)), (20, 40, 40));
        assert_eq!((t.best_size(4, 0.6), t.best_size(1, 0.0)), (20, 10));
    }

    #[test]
    fn what_was_measured_twice_counts_once_and_nonsense_not_at_all() {
        let at = |size, rate| Measured { size, threads: 2, rate };
        assert!((Throughput::new(&[at(5, 1.0), at(5, 3.0)]).unwrap().rate(5, 2) - 2.0).abs() < 1e-12);
        for wrong in [&[][..], &[at(0, 1.0)], &[at(5, 0.0)], &[at(5, f64::NAN)]] {
            assert_eq!(Throughput::new(wrong).unwrap_err().kind(), ErrorKind::InvalidValue);
        }
    }
}
