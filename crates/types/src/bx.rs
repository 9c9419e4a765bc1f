//! Boxes: hyper-rectangles of array positions.

use crate::{Error, ErrorKind, Result};

/// A box: `start` (inclusive) and `shape`, one entry per dimension. A box of rank 0 holds one position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bx {
    /// First position along each dimension.
    pub start: Vec<u64>,
    /// Extent along each dimension.
    pub shape: Vec<u64>,
}

impl Bx {
    /// A box from its start and shape, which must be of one rank.
    pub fn new(start: Vec<u64>, shape: Vec<u64>) -> Self {
        debug_assert_eq!(start.len(), shape.len());
        Self { start, shape }
    }

    /// The box that covers a whole array.
    pub fn whole(shape: &[u64]) -> Self {
        Self { start: vec![0; shape.len()], shape: shape.to_vec() }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of positions; 1 for rank 0, 2^64 - 1 where there are more.
    pub fn len(&self) -> u64 {
        // The others may be more than fits where one is none.
        if self.shape.contains(&0) { 0 } else { self.shape.iter().fold(1, |n: u64, &s| n.saturating_mul(s)) }
    }

    /// Whether there is no position in it.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// First position after the box along dimension `d`.
    pub fn end(&self, d: usize) -> u64 {
        self.start[d] + self.shape[d]
    }

    /// The common part, if there is one.
    pub fn intersect(&self, other: &Bx) -> Option<Bx> {
        let mut out = Bx { start: Vec::with_capacity(self.rank()), shape: Vec::with_capacity(self.rank()) };
        for d in 0..self.rank() {
            let lo = self.start[d].max(other.start[d]);
            let hi = self.end(d).min(other.end(d));
            if lo >= hi {
                return None;
            }
            out.start.push(lo);
            out.shape.push(hi - lo);
        }
        Some(out)
    }

    /// Whether it lies wholly within an array of this shape, which is of its rank.
    pub fn is_within(&self, shape: &[u64]) -> bool {
        let ends = self.start.iter().zip(&self.shape).map(|(start, n)| start.checked_add(*n));
        ends.zip(shape).all(|(end, n)| end.is_some_and(|end| end <= *n))
    }

    /// Whether `other` lies wholly inside.
    pub fn contains(&self, other: &Bx) -> bool {
        (0..self.rank()).all(|d| self.start[d] <= other.start[d] && other.end(d) <= self.end(d))
    }
}

/// The number of elements of `shape`, refused where it does not fit in 63 bits (a hostile header).
pub fn checked_len(shape: &[u64]) -> Result<u64> {
    let mut n: u64 = 1;
    if shape.contains(&0) {
        return Ok(0);
    }
    for &s in shape {
        n = n.checked_mul(s).filter(|&n| n <= i64::MAX as u64).ok_or_else(|| {
            Error::new(ErrorKind::CorruptFile, format!("shape {shape:?} has more than 2^63 elements"))
        })?;
    }
    Ok(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_times_a_great_many_is_nothing() {
        assert_eq!(Bx::whole(&[1 << 40, 1 << 40, 0]).len(), 0);
        assert_eq!(Bx::whole(&[3, 5]).len(), 15);
        assert_eq!(Bx::whole(&[1 << 40, 1 << 40]).len(), u64::MAX);
    }

    #[test]
    fn intersect_of_disjoint_boxes_is_none() {
        let a = Bx::new(vec![0, 0], vec![2, 2]);
        assert_eq!(a.intersect(&Bx::new(vec![2, 0], vec![1, 1])), None);
        assert_eq!(a.intersect(&Bx::new(vec![1, 1], vec![5, 5])), Some(Bx::new(vec![1, 1], vec![1, 1])));
    }

    #[test]
    fn rank_zero_holds_one_position() {
        assert_eq!(Bx::whole(&[]).len(), 1);
        assert!(!Bx::whole(&[]).is_empty());
    }

    #[test]
    fn overflowing_shapes_are_refused() {
        assert!(checked_len(&[1 << 40, 1 << 40]).is_err());
        assert_eq!(checked_len(&[1 << 40, 0]).unwrap(), 0);
    }
}
