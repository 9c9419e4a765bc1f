//! The grid of regions that an array is cut into.

use std::sync::Arc;

use sieva_types::{Bx, Error, ErrorKind, Result};

/// More regions than these no index has.
const MAX_REGIONS: u64 = 1 << 20;

/// Blocks of an array, numbered in C order: all of one shape but for those at the far edges, and for those at the
/// edges of the pieces that an array of many files is put together from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionGrid {
    shape: Vec<u64>,
    region: Vec<u64>,
    grid: Vec<u64>,
    cuts: Option<Cuts>,
}

/// Where regions begin along the axis of the pieces, and at the end its length.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cuts {
    axis: usize,
    starts: Arc<[u64]>,
}

impl RegionGrid {
    /// The grid of an array of `shape` in regions of shape `region` (entries of at least 1).
    ///
    /// # Errors
    /// `invalid-value` where the ranks differ, an entry of `region` is 0, or the sizes overflow.
    pub fn new(shape: &[u64], region: &[u64]) -> Result<Self> {
        if shape.len() != region.len() || region.contains(&0) {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!("regions of shape {region:?} do not cut an array of shape {shape:?}"),
            ));
        }
        sieva_types::checked_len(shape)?;
        sieva_types::checked_len(region)?;
        let grid = shape.iter().zip(region).map(|(n, r)| n.div_ceil(*r)).collect();
        Ok(Self { shape: shape.to_vec(), region: region.to_vec(), grid, cuts: None })
    }

    /// The grid of an array in pieces: `pieces` says where they begin along `axis` and where the last one ends; each is
    /// cut anew.
    ///
    /// # Errors
    /// As [`RegionGrid::new`]; `invalid-value` where the pieces do not make up the array.
    pub fn of_pieces(shape: &[u64], region: &[u64], axis: usize, pieces: &[u64]) -> Result<Self> {
        let mut whole = Self::new(shape, region)?;
        let ends = (pieces.first(), pieces.last());
        if axis >= shape.len() || ends != (Some(&0), Some(&shape[axis])) || !pieces.is_sorted() {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                format!(
                    "{} pieces along axis {axis} do not make up an array of shape {shape:?}",
                    pieces.len()
                ),
            ));
        }
        let mut starts: Vec<u64> = Vec::with_capacity(pieces.len());
        for piece in pieces.windows(2) {
            starts.extend((piece[0]..piece[1]).step_by(region[axis] as usize));
        }
        whole.grid[axis] = starts.len() as u64;
        starts.push(shape[axis]);
        whole.cuts = Some(Cuts { axis, starts: starts.into() });
        Ok(whole)
    }

    /// Where the region of grid coordinate `coord` along axis `d` begins and ends.
    fn span(&self, d: usize, coord: u64) -> (u64, u64) {
        match &self.cuts {
            Some(cuts) if cuts.axis == d => (cuts.starts[coord as usize], cuts.starts[coord as usize + 1]),
            _ => {
                let start = coord * self.region[d];
                (start, self.shape[d].min(start + self.region[d]))
            }
        }
    }

    /// The grid coordinate of the region that holds position `at` of axis `d`.
    fn coord(&self, d: usize, at: u64) -> u64 {
        match &self.cuts {
            Some(cuts) if cuts.axis == d => cuts.starts.partition_point(|&s| s <= at) as u64 - 1,
            _ => at / self.region[d],
        }
    }

    /// The array's shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The shape of a region that no edge cuts.
    pub fn region(&self) -> &[u64] {
        &self.region
    }

    /// Number of regions.
    pub fn len(&self) -> usize {
        self.grid.iter().product::<u64>() as usize
    }

    /// Whether the array has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it has no more regions than an index may have.
    pub fn is_bounded(&self) -> bool {
        self.grid.iter().try_fold(1_u64, |n, &m| n.checked_mul(m)).is_some_and(|n| n <= MAX_REGIONS)
    }

    /// The box of region `number`.
    pub fn bx(&self, number: usize) -> Bx {
        let spans: Vec<(u64, u64)> =
            self.coords(number).into_iter().enumerate().map(|(d, c)| self.span(d, c)).collect();
        Bx::new(spans.iter().map(|s| s.0).collect(), spans.iter().map(|s| s.1 - s.0).collect())
    }

    /// How many regions [`RegionGrid::touched`] finds.
    pub fn count_touched(&self, bx: &Bx) -> u64 {
        if bx.is_empty() {
            return 0;
        }
        let along = |d: usize| self.coord(d, bx.end(d) - 1) - self.coord(d, bx.start[d]) + 1;
        (0..self.grid.len()).fold(1, |n: u64, d| n.saturating_mul(along(d)))
    }

    /// The number of the region whose grid coordinates these are; `None` outside of the grid.
    pub fn number(&self, coords: &[u64]) -> Option<usize> {
        let inside = coords.len() == self.grid.len() && coords.iter().zip(&self.grid).all(|(c, n)| c < n);
        inside.then(|| coords.iter().zip(&self.grid).fold(0, |at, (c, n)| at * n + c) as usize)
    }

    /// Grid coordinates of region `number`.
    pub fn coords(&self, number: usize) -> Vec<u64> {
        let mut rest = number as u64;
        let mut coords = vec![0; self.grid.len()];
        for d in (0..self.grid.len()).rev() {
            coords[d] = rest % self.grid[d];
            rest /= self.grid[d];
        }
        coords
    }

    /// The region that holds the whole of a box within the array; `None` where it touches several, or is empty.
    pub fn only(&self, bx: &Bx) -> Option<usize> {
        let mut number = 0;
        for d in 0..self.grid.len() {
            if bx.shape[d] == 0 {
                return None;
            }
            let coord = self.coord(d, bx.start[d]);
            if bx.end(d) > self.span(d, coord).1 {
                return None;
            }
            number = number * self.grid[d] as usize + coord as usize;
        }
        Some(number)
    }

    /// The numbers of the regions that a box within the array touches, ascending.
    pub fn touched(&self, bx: &Bx) -> Vec<usize> {
        if bx.is_empty() {
            return Vec::new();
        }
        let mut numbers = vec![0];
        for d in 0..self.grid.len() {
            let (first, last) = (self.coord(d, bx.start[d]), self.coord(d, bx.end(d) - 1));
            numbers = numbers
                .iter()
                .flat_map(|&n| (first..=last).map(move |c| (n, c)))
                .map(|(n, c)| n * self.grid[d] as usize + c as usize)
                .collect();
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_cover_the_array_once() {
        let grid = RegionGrid::new(&[5, 7], &[2, 3]).unwrap();
        assert_eq!(grid.len(), 9);
        let mut seen = [[0; 7]; 5];
        for n in 0..grid.len() {
            let bx = grid.bx(n);
            assert_eq!(grid.number(&grid.coords(n)), Some(n));
            assert_eq!((grid.touched(&bx), grid.only(&bx)), (vec![n], Some(n)));
            (bx.start[0]..bx.end(0))
                .for_each(|i| (bx.start[1]..bx.end(1)).for_each(|j| seen[i as usize][j as usize] += 1));
        }
        assert!(seen.as_flattened().iter().all(|&n| n == 1));
        assert_eq!(grid.touched(&Bx::new(vec![1, 2], vec![2, 2])), [0, 1, 3, 4]);
        assert_eq!(grid.count_touched(&Bx::new(vec![1, 2], vec![2, 2])), 4);
        assert_eq!(grid.only(&Bx::new(vec![1, 2], vec![2, 1])), None);
        assert_eq!(grid.only(&Bx::new(vec![1, 2], vec![1, 1])), Some(0));
        assert_eq!(grid.number(&[3, 0]), None);
    }

    #[test]
    fn regions_begin_anew_with_each_piece() {
        let grid = RegionGrid::of_pieces(&[9, 4], &[2, 3], 0, &[0, 3, 3, 8, 9]).unwrap();
        let rows: Vec<(u64, u64)> =
            (0..grid.len()).step_by(2).map(|n| (grid.bx(n).start[0], grid.bx(n).shape[0])).collect();
        assert_eq!(rows, [(0, 2), (2, 1), (3, 2), (5, 2), (7, 1), (8, 1)]);
        for n in 0..grid.len() {
            let bx = grid.bx(n);
            assert_eq!((grid.touched(&bx), grid.only(&bx)), (vec![n], Some(n)));
        }
        assert_eq!(grid.touched(&Bx::new(vec![2, 0], vec![2, 1])), [2, 4]);
        assert_eq!(grid.only(&Bx::new(vec![2, 0], vec![2, 1])), None);
        for pieces in [&[0, 8][..], &[1, 9], &[0, 5, 4, 9], &[]] {
            assert!(RegionGrid::of_pieces(&[9, 4], &[2, 3], 0, pieces).is_err());
        }
    }

    #[test]
    fn arrays_without_dimensions_or_elements() {
        let scalar = RegionGrid::new(&[], &[]).unwrap();
        assert_eq!((scalar.len(), scalar.touched(&Bx::whole(&[]))), (1, vec![0]));
        assert!(RegionGrid::new(&[0, 4], &[1, 4]).unwrap().is_empty());
        assert!(RegionGrid::new(&[4], &[0]).is_err());
        assert!(RegionGrid::new(&[4], &[1, 1]).is_err());
    }
}
