//! Histograms of bins of equal width, as numpy's `histogram`: the edges are its `linspace`, a value on an edge
//! belongs to the bin above, and the last bin has its upper edge in it. Values outside are not counted.

use crate::values::Scalar;
use sieva_types::{Error, ErrorKind, Result};

/// The counts so far.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    low: f64,
    high: f64,
    /// Width of a bin; 0 if it is too small for a float.
    step: f64,
    counts: Vec<u64>,
}

/// The range to use for the given one: as it is, or widened by a half to both sides if it is empty.
pub(super) fn check_range(low: f64, high: f64) -> Result<(f64, f64)> {
    if low > high {
        let message = format!("the range of a histogram goes from low to high, got {low:?} to {high:?}");
        return Err(Error::new(ErrorKind::InvalidValue, message));
    }
    if !(high - low).is_finite() {
        let message = format!("the range of a histogram is finite, got {low:?} to {high:?}");
        return Err(Error::new(ErrorKind::InvalidValue, message));
    }
    Ok(if low == high { (low - 0.5, high + 0.5) } else { (low, high) })
}

impl Histogram {
    pub(super) fn new(bins: usize, (low, high): (f64, f64)) -> Self {
        Self { low, high, step: (high - low) / bins as f64, counts: vec![0; bins] }
    }

    #[inline]
    pub(super) fn add(&mut self, x: f64) {
        if !(self.low <= x && x <= self.high) {
            return;
        }
        let last = self.counts.len() - 1;
        let place = (x - self.low) / (self.high - self.low) * self.counts.len() as f64;
        let mut bin = (place as usize).min(last);
        // The place is rounded; the edges decide.
        if bin > 0 && x < self.edge(bin) {
            bin -= 1;
        }
        if bin < last && x >= self.edge(bin + 1) {
            bin += 1;
        }
        self.counts[bin] += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (to, from) in self.counts.iter_mut().zip(&other.counts) {
            *to += from;
        }
    }

    /// Whether both have the same bins.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        (self.low, self.high, self.counts.len()) == (other.low, other.high, other.counts.len())
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }

    pub(super) fn finish(self) -> Scalar {
        Scalar::Histogram {
            edges: (0..=self.counts.len()).map(|i| self.edge(i)).collect(),
            counts: self.counts,
        }
    }

    #[inline]
    fn edge(&self, i: usize) -> f64 {
        let bins = self.counts.len();
        if i == bins {
            self.high
        } else if self.step == 0.0 {
            i as f64 / bins as f64 * (self.high - self.low) + self.low
        } else {
            i as f64 * self.step + self.low
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bins: usize, range: (f64, f64), values: &[f64]) -> (Vec<f64>, Vec<u64>) {
        let mut h = Histogram::new(bins, range);
        values.iter().for_each(|&x| h.add(x));
        match h.finish() {
            Scalar::Histogram { edges, counts } => (edges, counts),
            other => panic!("{other}"),
        }
    }

    /// What numpy 2.4 gives.
    #[test]
    fn counts_are_numpys() {
        let values = [0.0, 0.5, 1.0, 1.5, 2.0, 2.0, -0.1, 2.1];
        assert_eq!(of(2, (0.0, 2.0), &values), (vec![0.0, 1.0, 2.0], vec![2, 4]));
        // 3 * 0.1 is above 0.3, so that 0.3 is in the bin below.
        let tenths: Vec<f64> = (0..=10).map(|i| f64::from(i) / 10.0).collect();
        assert_eq!(of(10, (0.0, 1.0), &tenths).1, [1, 1, 2, 0, 1, 2, 1, 0, 1, 2]);
    }

    #[test]
    fn ranges_are_checked() {
        assert_eq!(check_range(3.0, 3.0).unwrap(), (2.5, 3.5));
        assert_eq!(
            check_range(1.0, 0.0).unwrap_err().message(),
            "the range of a histogram goes from low to high, got 1.0 to 0.0"
        );
        assert!(check_range(-1e308, 1e308).is_err());
        assert!(check_range(f64::NAN, 1.0).is_err());
    }

    #[test]
    fn bins_narrower_than_a_float_count_all_the_same() {
        let (edges, counts) = of(10, (0.0, 5e-324), &[0.0, 5e-324]);
        assert_eq!((edges.len(), counts.iter().sum::<u64>()), (11, 2));
    }
}
