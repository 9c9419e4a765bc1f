//! How the row space is cut into tiles: the unit of reading, evaluation and parallel work.

pub(super) mod arrays;
pub(super) mod condition;
pub(super) mod cuts;
pub(super) mod evaluate;
pub(crate) mod prepare;
mod regions;
pub(crate) mod windows;

use sieva_format::layout::Placement;
use sieva_types::{Bx, DType};

use crate::exec::Execution;
use regions::filled;
pub use regions::{is_of_chunks, region_shape, sized_region_shape};

/// Elements of a tile where the layout does not say: 256 KiB of float32 stay in a core's own cache between being
/// read and being tested, and are enough for a read to run at full speed. Smaller chunks are put together.
pub(super) const SMALL: u64 = 1 << 16;
/// Bytes that an element takes at least while values are computed of it: what they are made of, and what they are.
const COLUMN_BYTES: usize = 16;
/// Rows of which less than one part in so many is wanted are read one by one.
const SPARSE: u64 = 8;

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

    /// What they are cut of.
    pub(crate) fn area(&self) -> &Bx {
        &self.area
    }

    /// Shape of a tile that no edge cuts.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Number of tiles.
    pub fn len(&self) -> usize {
        if self.area.is_empty() { 0 } else { self.grid.iter().product::<u64>() as usize }
    }

    /// All of them as one block; `None` where there is none.
    pub(crate) fn whole(&self) -> Option<Block> {
        (!self.area.is_empty()).then(|| Block { first: vec![0; self.grid.len()], count: self.grid.clone() })
    }

    /// The positions of a block's tiles.
    pub(crate) fn bx_of(&self, block: &Block) -> Bx {
        let axes = || (0..self.grid.len()).map(|d| (self.first[d] + block.first[d], d));
        let start: Vec<u64> = axes().map(|(c, d)| (c * self.shape[d]).max(self.area.start[d])).collect();
        let end = |(c, d): (u64, usize)| {
            (c + block.count[d]).saturating_mul(self.shape[d]).min(self.area.end(d)) - start[d]
        };
        let shape = axes().map(end).collect();
        Bx::new(start, shape)
    }

    /// The number of a block's first tile.
    pub(crate) fn first_of(&self, block: &Block) -> usize {
        block.first.iter().zip(&self.grid).fold(0, |n, (c, g)| n * g + c) as usize
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
            .map(|d| (coords[d] + 1).saturating_mul(self.shape[d]).min(self.area.end(d)) - start[d])
            .collect();
        Bx::new(start, shape)
    }

    /// How many tiles there are along some axes.
    pub(crate) fn count_along(&self, axes: &[usize]) -> usize {
        axes.iter().map(|&a| self.grid[a] as usize).product()
    }

    /// The number of the tile of a position among those along some axes.
    pub(crate) fn number_along(&self, axes: &[usize], position: &[u64]) -> usize {
        let place = |a: usize| (position[a] / self.shape[a] - self.first[a]) as usize;
        axes.iter().fold(0, |n, &a| n * self.grid[a] as usize + place(a))
    }

    /// The box of the tile of a position.
    pub(crate) fn tile_at(&self, position: &[u64]) -> Bx {
        let all: Vec<usize> = (0..position.len()).collect();
        self.tile(self.number_along(&all, position))
    }

    /// The number of consecutive tiles that together cover a piece of the row space that no other tile
    /// interleaves with in C order: tiles cut only along axes behind the first one that spans more than
    /// one position.
    pub fn band(&self) -> usize {
        let split = self.shape.iter().position(|&n| n > 1).map_or(self.shape.len(), |d| d + 1);
        self.grid[split.min(self.grid.len())..].iter().product::<u64>() as usize
    }
}

/// Tiles that follow one another and make up a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Place of the first one in the grid, and their number along each axis: 1 along those before the first that is cut.
    first: Vec<u64>,
    count: Vec<u64>,
}

impl Block {
    /// The number of tiles.
    pub(crate) fn len(&self) -> u64 {
        self.count.iter().product()
    }

    /// Its two halves in the order of the tiles; `None` of a single tile.
    pub(crate) fn halves(mut self) -> Option<(Self, Self)> {
        let d = self.count.iter().position(|&n| n > 1)?;
        let mut second = self.clone();
        self.count[d] /= 2;
        second.first[d] += self.count[d];
        second.count[d] -= self.count[d];
        Some((self, second))
    }
}

impl Execution {
    /// The tile shape for work that reads the bound arrays `arrays` over `axes` of the row space; shape
    /// entries are in the order of `axes`.
    pub(crate) fn tile_shape(&self, arrays: &[usize], axes: &[usize]) -> Vec<u64> {
        let lengths: Vec<u64> = axes.iter().map(|&a| self.bound.rows.shape[a].max(1)).collect();
        let mut shape = self.plain_shape(arrays, axes, &lengths);
        if let Some((leader, region)) = self.leading_region(arrays, axes, &lengths) {
            // Of arrays without such regions tiles are no smaller than they would be.
            let len = |shape: &[u64]| shape.iter().fold(1_u64, |n, &s| n.saturating_mul(s));
            if self.all_sized(arrays) || len(&region) > len(&shape) {
                shape = region;
                self.within_files(leader, axes, &mut shape);
            }
        }
        self.within_memory(arrays, axes, &mut shape);
        shape
    }

    /// The tile shape by how arrays are laid out.
    fn plain_shape(&self, arrays: &[usize], axes: &[usize], lengths: &[u64]) -> Vec<u64> {
        let chunked = arrays.iter().copied().filter(|&a| self.readers[a].layout().is_chunked());
        let driver =
            chunked.max_by_key(|&a| (self.bound.arrays[a].axes.len(), self.readers[a].layout().chunk_bytes));
        let mut shape = vec![1; axes.len()];
        let Some(driver) = driver else {
            shape = filled(shape, lengths, SMALL);
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
        if shape.iter().fold(1_u64, |n, &s| n.saturating_mul(s)) < SMALL {
            shape = filled(shape, lengths, 2 * SMALL);
        }
        self.within_files(driver, axes, &mut shape);
        shape
    }

    /// A tile of chunks that declare to be giant is cut, so that its mask and its part of each array have room: whether
    /// such a chunk can be decoded at all is seen when it is read, if it was ever written.
    fn within_memory(&self, arrays: &[usize], axes: &[usize], shape: &mut [u64]) {
        let most = (self.options.memory / 2 / self.options.threads as u64).max(1 << 20);
        let own = |a: usize, shape: &[u64]| {
            let lengths = self.bound.arrays[a].axes.iter().filter_map(|x| axes.iter().position(|y| y == x));
            lengths.fold(1_u64, |n, d| n.saturating_mul(shape[d]))
        };
        let fits = |shape: &[u64]| {
            let mask = shape.iter().fold(1_u64, |n, &s| n.saturating_mul(s)) / 8;
            let size = |a: usize| {
                let layout = self.readers[a].layout();
                let place = if layout.dtype == DType::Str { size_of::<String>() } else { COLUMN_BYTES };
                layout.element_size.max(place) as u64
            };
            mask <= most && arrays.iter().all(|&a| own(a, shape).saturating_mul(size(a)) <= most)
        };
        while !fits(shape) {
            let Some(d) = shape.iter().position(|&n| n > 1) else { return };
            shape[d] = shape[d].div_ceil(2);
        }
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

/// The shape of tiles of about `volume` positions of an area, with about `share` positions along `axes` together: of these
/// as many as there are along the innermost first, and as many along the others as the volume allows.
pub(crate) fn panel_shape(area: &[u64], axes: &[usize], share: u64, volume: u64) -> Vec<u64> {
    let mut shape = vec![1; area.len()];
    let (mut n, mut cells, mut is_whole) = (1, 1, true);
    for d in (0..area.len()).rev() {
        let is_cut = axes.contains(&d);
        let most = if is_cut { (share / cells).min(volume / n) } else { volume / n };
        // Beside a part of what lies within, reading more would be reading what lies between.
        let is_near = !is_whole && area[d + 1..].iter().product::<u64>() < SPARSE.saturating_mul(n);
        shape[d] = if is_near { 1 } else { most.clamp(1, area[d].max(1)) };
        is_whole &= shape[d] == area[d];
        n *= shape[d];
        cells *= if is_cut { shape[d] } else { 1 };
    }
    shape
}

/// Cuts a tile down to about `most` positions, its outermost dimensions first.
pub(crate) fn cut_to(shape: &mut [u64], most: u64) {
    let mut n = shape.iter().fold(1, |n: u64, &m| n.saturating_mul(m));
    for d in 0..shape.len() {
        if n <= most {
            return;
        }
        let inner = shape[d + 1..].iter().fold(1, |n: u64, &m| n.saturating_mul(m));
        shape[d] = (most / inner.max(1)).clamp(1, shape[d]);
        n = inner.saturating_mul(shape[d]);
    }
}

/// Cuts a tile in halves until it has about `most` positions, its outermost dimensions first: tiles of one region then lie in
/// no other.
pub(crate) fn halve_to(shape: &mut [u64], most: u64) {
    while shape.iter().fold(1_u64, |n, &m| n.saturating_mul(m)) > most {
        let Some(d) = shape.iter().position(|&n| n > 1) else { return };
        shape[d] = shape[d].div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_of_regions_are_cut_in_halves() {
        let halved = |mut shape: Vec<u64>, most| {
            halve_to(&mut shape, most);
            shape
        };
        assert_eq!(halved(vec![1 << 23], 7_000_000), [1 << 22]);
        assert_eq!(halved(vec![6, 100, 100], 25_000), [2, 100, 100]);
        assert_eq!(halved(vec![1, 3], 0), [1, 1]);
    }

    #[test]
    fn tiles_are_cut_to_what_memory_holds() {
        let cut = |mut shape: Vec<u64>, most| {
            cut_to(&mut shape, most);
            shape
        };
        assert_eq!(cut(vec![4, 100, 100], 1 << 20), [4, 100, 100]);
        assert_eq!(cut(vec![4, 100, 100], 25_000), [2, 100, 100]);
        assert_eq!(cut(vec![4, 100, 100], 1234), [1, 12, 100]);
        assert_eq!(cut(vec![4, 100, 100], 7), [1, 1, 7]);
        assert_eq!(cut(vec![], 7), [0_u64; 0]);
        assert_eq!(cut(vec![1 << 40, 1 << 40], 1), [1, 1]);
    }

    #[test]
    fn panels_are_narrow_and_long() {
        let shape = |area: &[u64], axes: &[usize], share| panel_shape(area, axes, share, 1 << 16);
        assert_eq!(shape(&[965, 360, 720], &[1, 2], 2730), [30, 3, 720]);
        assert_eq!(shape(&[965, 360, 720], &[1, 2], 300), [218, 1, 300]);
        // So large a part of a plane that reading the planes between would be reading all of them.
        assert_eq!(shape(&[965, 30, 72], &[1, 2], 720), [1, 10, 72]);
        assert_eq!(shape(&[965, 36, 720], &[1], 6), [1, 6, 720]);
        assert_eq!(shape(&[965, 360, 720], &[0, 1], 2), [1, 2, 720]);
        assert_eq!(shape(&[4, 30], &[1], 1 << 20), [4, 30]);
    }

    #[test]
    fn tiles_along_some_axes_are_numbered() {
        let tiles = Tiles::new(Bx::new(vec![1, 3, 7], vec![9, 20, 30]), vec![2, 5, 10]);
        assert_eq!(tiles.count_along(&[1, 2]), 5 * 4);
        let mut seen = vec![0; 20];
        for i in 0..tiles.len() {
            let bx = tiles.tile(i);
            assert_eq!(tiles.tile_at(&bx.start), bx);
            seen[tiles.number_along(&[1, 2], &bx.start)] += 1;
        }
        assert_eq!(seen, vec![tiles.count_along(&[0]); 20]);
    }

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
}
