//! Histograms of bins of equal width, as numpy's `histogram`: the edges are its `linspace`, a value on an edge
//! belongs to the bin above, and the last bin has its upper edge in it. Values outside are not counted.

mod wire;

use std::any::Any;
use std::sync::Arc;

use super::Aggregate;
use super::accumulator::{Accumulator, Finished, Piece, Target, bytes, grow, internal, same};
use crate::values::{Scalar, ValueType};
use sieva_types::{Error, ErrorKind, Result};

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

/// The bins of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bins {
    low: f64,
    high: f64,
    /// Width of a bin; 0 if it is too small for a float.
    step: f64,
    count: usize,
}

impl Bins {
    fn new(count: usize, (low, high): (f64, f64)) -> Self {
        Self { low, high, step: (high - low) / count as f64, count }
    }

    /// The bin of a value; `None` outside of all.
    #[inline]
    fn of(&self, x: f64) -> Option<usize> {
        if !(self.low <= x && x <= self.high) {
            return None;
        }
        let last = self.count - 1;
        let place = (x - self.low) / (self.high - self.low) * self.count as f64;
        let mut bin = (place as usize).min(last);
        // The place is rounded; the edges decide.
        if bin > 0 && x < self.edge(bin) {
            bin -= 1;
        }
        if bin < last && x >= self.edge(bin + 1) {
            bin += 1;
        }
        Some(bin)
    }

    #[inline]
    fn edge(&self, i: usize) -> f64 {
        if i == self.count {
            self.high
        } else if self.step == 0.0 {
            i as f64 / self.count as f64 * (self.high - self.low) + self.low
        } else {
            i as f64 * self.step + self.low
        }
    }
}

/// The counts of all groups, those of one behind the other.
#[derive(Debug)]
struct Histograms {
    bins: Bins,
    groups: usize,
    counts: Vec<u64>,
}

pub(super) fn make(aggregate: &Aggregate, input: ValueType) -> Option<Box<dyn Accumulator>> {
    let Aggregate::Histogram { bins, range: Some(range) } = *aggregate else { return None };
    if input == ValueType::Str {
        return None;
    }
    Some(Box::new(Histograms { bins: Bins::new(bins, range), groups: 0, counts: Vec::new() }))
}

impl Histograms {
    fn edges(&self) -> Arc<[f64]> {
        (0..=self.bins.count).map(|i| self.bins.edge(i)).collect()
    }

    /// That of a group, with the edges that all have.
    fn of(&self, group: usize, edges: &Arc<[f64]>) -> Scalar {
        let n = self.bins.count;
        Scalar::Histogram {
            edges: Arc::clone(edges),
            counts: self.counts[group * n..(group + 1) * n].to_vec(),
        }
    }
}

impl Accumulator for Histograms {
    fn len(&self) -> usize {
        self.groups
    }

    fn resize(&mut self, groups: usize) {
        self.groups = self.groups.max(groups);
        grow(&mut self.counts, self.groups * self.bins.count, 0);
    }

    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()> {
        let (bins, counts) = (self.bins, &mut self.counts);
        piece.each_float(target, |g, x| {
            if let Some(bin) = bins.of(x) {
                counts[g * bins.count + bin] += 1;
            }
        })
    }

    fn repeat(&mut self, group: usize, one: &Piece<'_>, n: u64) -> Result<()> {
        let (bins, counts) = (self.bins, &mut self.counts);
        one.part(0, 1).each_float(Target::One(group), |g, x| {
            if let Some(bin) = bins.of(x) {
                counts[g * bins.count + bin] += n;
            }
        })
    }

    fn merge(&mut self, other: &dyn Accumulator, to: &[u32]) -> Result<()> {
        let other = same::<Self>(other)?;
        if other.bins != self.bins {
            return Err(internal("states of different aggregates merged"));
        }
        let n = self.bins.count;
        for (from, &group) in other.counts.chunks_exact(n).zip(to).filter(|(_, g)| **g != super::NO_GROUP) {
            let own = &mut self.counts[group as usize * n..(group as usize + 1) * n];
            own.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        }
        Ok(())
    }

    fn finish(&mut self, order: &[usize], _: usize) -> Result<Finished> {
        let edges = self.edges();
        Ok(Finished::Histograms(order.iter().map(|&g| self.of(g, &edges)).collect()))
    }

    fn value(&self, group: usize) -> Result<Scalar> {
        Ok(self.of(group, &self.edges()))
    }

    fn memory_bytes(&self) -> u64 {
        // The result has counts of its own.
        2 * bytes(&self.counts)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bins: usize, range: (f64, f64), values: &[f64]) -> (Vec<f64>, Vec<u64>) {
        let aggregate = Aggregate::Histogram { bins, range: Some(range) };
        let mut all = make(&aggregate, ValueType::F64).unwrap();
        all.resize(3);
        all.update(Target::One(1), &Piece::F64(values)).unwrap();
        match all.value(1).unwrap() {
            Scalar::Histogram { edges, counts } => (edges.to_vec(), counts),
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
