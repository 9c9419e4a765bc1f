//! How the row space is cut into tiles: the unit of reading, evaluation and parallel work.

use sieva_format::layout::{Layout, Placement};
use sieva_types::Bx;

use super::Execution;

/// Elements of a tile where the layout does not say: 256 KiB of float32 stay in a core's own cache between being
/// read and being tested, and are enough for a read to run at full speed. Smaller chunks are put together.
const SMALL: u64 = 1 << 16;
/// An array is cut into no more regions than about this many, so that what is known of them stays small.
const MAX_REGIONS: u64 = 1 << 18;

/// The tiles of a box of the row space, in C order of a grid.
#[derive(Clone, Debug)]
pub struct Tiles {
    area: Bx,
    /// Tile shape; tiles are aligned to multiples of it from the origin of the row space.
    shape: Vec<u64>,
    /// First grid coordinate and number of them along each axis.
    first: Vec<u64>,
    grid: Vec<u64>,
}

impl Tiles {
    /// The tiles of `area` with tiles of `shape`.
    pub fn new(area: Bx, shape: Vec<u64>) -> Self {
        let first: Vec<u64> = area.start.iter().zip(&shape).map(|(s, t)| s / t).collect();
        let grid = (0..area.rank()).map(|d| area.end(d).div_ceil(shape[d]) - first[d]).collect();
        Self { area, shape, first, grid }
    }

    /// Shape of a tile that no edge cuts.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Number of tiles.
    pub fn len(&self) -> usize {
        if self.area.is_empty() { 0 } else { self.grid.iter().product::<u64>() as usize }
    }

    /// The box of tile `i`, cut at the area.
    pub fn tile(&self, i: usize) -> Bx {
        let mut rest = i as u64;
        let mut coords = vec![0; self.grid.len()];
        for d in (0..self.grid.len()).rev() {
            coords[d] = self.first[d] + rest % self.grid[d];
            rest /= self.grid[d];
        }
        let start: Vec<u64> =
            (0..coords.len()).map(|d| (coords[d] * self.shape[d]).max(self.area.start[d])).collect();
        let shape = (0..coords.len())
            .map(|d| ((coords[d] + 1) * self.shape[d]).min(self.area.end(d)) - start[d])
            .collect();
        Bx::new(start, shape)
    }

    /// The number of consecutive tiles that together cover a piece of the row space that no other tile
    /// interleaves with in C order: tiles cut only along axes behind the first one that spans more than
    /// one position.
    pub fn band(&self) -> usize {
        let split = self.shape.iter().position(|&n| n > 1).map_or(self.shape.len(), |d| d + 1);
        self.grid[split.min(self.grid.len())..].iter().product::<u64>() as usize
    }
}

impl Execution {
    /// The tile shape for work that reads the bound arrays `arrays` over `axes` of the row space; shape
    /// entries are in the order of `axes`.
    pub(super) fn tile_shape(&self, arrays: &[usize], axes: &[usize]) -> Vec<u64> {
        let lengths: Vec<u64> = axes.iter().map(|&a| self.bound.rows.shape[a].max(1)).collect();
        let chunked = arrays.iter().copied().filter(|&a| self.readers[a].layout().is_chunked());
        let driver =
            chunked.max_by_key(|&a| (self.bound.arrays[a].axes.len(), self.readers[a].layout().chunk_bytes));
        let mut shape = vec![1; axes.len()];
        let Some(driver) = driver else {
            shape = filled(shape, &lengths, SMALL);
            arrays.iter().for_each(|&a| self.within_files(a, axes, &mut shape));
            return shape;
        };
        for (&axis, &chunk) in
            self.bound.arrays[driver].axes.iter().zip(&self.readers[driver].layout().chunk_shape)
        {
            if let Some(d) = axes.iter().position(|&a| a == axis) {
                shape[d] = chunk.clamp(1, lengths[d]);
            }
        }
        if shape.iter().product::<u64>() < SMALL {
            shape = filled(shape, &lengths, 2 * SMALL);
        }
        self.within_files(driver, axes, &mut shape);
        shape
    }

    /// A tile of an array of many files spans no more of them than it must: files that hold nothing of interest are
    /// not opened.
    fn within_files(&self, array: usize, axes: &[usize], shape: &mut [u64]) {
        let Placement::Parts(parts) = &self.readers[array].layout().placement else { return };
        let axis = self.bound.arrays[array].axes.get(parts.axis);
        if let Some(d) = axis.and_then(|axis| axes.iter().position(|a| a == axis))
            && let Some(longest) = parts.starts.windows(2).map(|s| s[1] - s[0]).max()
        {
            shape[d] = shape[d].min(longest.max(1));
        }
    }
}

/// The shape of the regions that an array of this layout is cut into: a tile of a query over it alone.
pub fn region_shape(layout: &Layout, array: &[u64]) -> Vec<u64> {
    let lengths: Vec<u64> = array.iter().map(|&n| n.max(1)).collect();
    let enough = array.iter().product::<u64>() / MAX_REGIONS;
    let one = vec![1; array.len()];
    if !layout.is_chunked() {
        return filled(one, &lengths, SMALL.max(enough));
    }
    let chunk = layout.chunk_shape.iter().zip(&lengths).map(|(&c, &n)| c.clamp(1, n)).collect::<Vec<_>>();
    if chunk.iter().product::<u64>() >= SMALL.max(enough) {
        return chunk;
    }
    filled(chunk, &lengths, (2 * SMALL).max(enough))
}

/// `shape` made larger in whole multiples, innermost axes first, up to about `target` elements.
fn filled(mut shape: Vec<u64>, lengths: &[u64], target: u64) -> Vec<u64> {
    let mut n: u64 = shape.iter().product();
    for d in (0..shape.len()).rev() {
        let whole = lengths[d].div_ceil(shape[d]);
        let times = (target / n).clamp(1, whole);
        n = n.saturating_mul(times);
        shape[d] *= times;
        if times < whole {
            break;
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_cover_the_area_once() {
        let area = Bx::new(vec![1, 3], vec![3, 9]);
        let tiles = Tiles::new(area.clone(), vec![2, 5]);
        let mut seen = std::collections::HashSet::new();
        for i in 0..tiles.len() {
            let t = tiles.tile(i);
            assert!(area.contains(&t));
            for y in t.start[0]..t.end(0) {
                for x in t.start[1]..t.end(1) {
                    assert!(seen.insert((y, x)));
                }
            }
        }
        assert_eq!(seen.len() as u64, area.len());
    }

    #[test]
    fn a_band_is_what_no_other_tile_interleaves_with() {
        let band = |area: &[u64], shape: &[u64]| Tiles::new(Bx::whole(area), shape.to_vec()).band();
        assert_eq!(band(&[100], &[10]), 1);
        assert_eq!(band(&[4, 20, 300], &[1, 10, 150]), 2);
        assert_eq!(band(&[4, 20, 300], &[2, 10, 150]), 4);
        assert_eq!(band(&[4, 20, 300], &[1, 1, 150]), 1);
        assert_eq!(band(&[4, 20], &[4, 20]), 1);
        assert_eq!(band(&[], &[]), 1);
    }

    #[test]
    fn tiles_grow_from_the_inner_axes() {
        assert_eq!(filled(vec![1, 1, 1], &[10, 100, 100], 1000), [1, 10, 100]);
        assert_eq!(filled(vec![1], &[1 << 30], 1 << 18), [1 << 18]);
        assert_eq!(filled(vec![1, 4], &[10, 8], 1 << 18), [10, 8]);
    }
}
