//! The regions that arrays are cut into, of which zone maps and bitmaps are kept; and tiles that follow them.
//!
//! By itself a region is a tile of a query over its array. Where regions of another size were asked for, it is the tile that
//! follows: what is known of a region decides one tile, and its bitmap is evaluated once.

use sieva_format::layout::Layout;
use sieva_types::Bx;

use super::SMALL;
use crate::exec::Execution;

/// An array is cut into no more regions than about this many, so that what is known of them stays small.
const MAX_REGIONS: u64 = 1 << 18;
/// Bytes of a region at least, where it may be of any size: what is known of it takes about as many.
const MIN_BYTES: u64 = 256;
/// Elements of a region at most: larger ones have no bitmap.
const MAX_ELEMENTS: u64 = 1 << 31;

/// The shape of the regions that an array of this layout is cut into: a tile of a query over it alone.
pub fn region_shape(layout: &Layout, array: &[u64]) -> Vec<u64> {
    let lengths: Vec<u64> = array.iter().map(|&n| n.max(1)).collect();
    let enough = least(array);
    if !layout.is_chunked() {
        return filled(vec![1; array.len()], &lengths, SMALL.max(enough));
    }
    let chunk = chunk_of(layout, &lengths);
    if elements(&chunk) >= SMALL.max(enough) {
        return chunk;
    }
    filled(chunk, &lengths, (2 * SMALL).max(enough))
}

/// The shape of regions of about `bytes` bytes (256 at least) of an array whose elements have `size`: whole chunks, at least one. Along the
/// outermost dimension it may be longer than the array, so that files that are joined, and an array that grows, have the
/// same.
pub fn sized_region_shape(layout: &Layout, array: &[u64], size: usize, bytes: u64) -> Vec<u64> {
    let mut lengths: Vec<u64> = array.iter().map(|&n| n.max(1)).collect();
    let target = (bytes.max(MIN_BYTES) / size.max(1) as u64).clamp(1, MAX_ELEMENTS).max(least(array));
    if let Some(first) = lengths.first_mut() {
        *first = (*first).max(MAX_ELEMENTS);
    }
    let one = if layout.is_chunked() { chunk_of(layout, &lengths) } else { vec![1; array.len()] };
    filled(one, &lengths, target)
}

/// Whether regions of this shape are made of whole chunks of an array.
pub fn is_of_chunks(layout: &Layout, array: &[u64], region: &[u64]) -> bool {
    let whole = |d: usize| {
        let chunk = if layout.is_chunked() { layout.chunk_shape[d].max(1) } else { 1 };
        region[d] >= array[d] || region[d].is_multiple_of(chunk)
    };
    region.len() == array.len() && !region.contains(&0) && (0..array.len()).all(whole)
}

/// The elements of a region so that there are not too many.
fn least(array: &[u64]) -> u64 {
    elements(array) / MAX_REGIONS
}

fn elements(shape: &[u64]) -> u64 {
    shape.iter().fold(1_u64, |n, &s| n.saturating_mul(s))
}

fn chunk_of(layout: &Layout, lengths: &[u64]) -> Vec<u64> {
    layout.chunk_shape.iter().zip(lengths).map(|(&c, &n)| c.clamp(1, n)).collect()
}

/// `shape` made larger in whole multiples, innermost axes first, up to about `target` elements.
pub(super) fn filled(mut shape: Vec<u64>, lengths: &[u64], target: u64) -> Vec<u64> {
    let mut n: u64 = elements(&shape);
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

impl Execution {
    /// The array whose regions tiles over `axes` follow, and their shape along these: the largest regions of a size that was
    /// asked for, of arrays that have as many dimensions as any.
    pub(super) fn leading_region(
        &self,
        arrays: &[usize],
        axes: &[usize],
        lengths: &[u64],
    ) -> Option<(usize, Vec<u64>)> {
        let sized = self.with_most_axes(arrays).filter_map(|a| Some((a, self.sized_region(a)?)));
        let of_axes = |(array, region): (usize, &[u64])| {
            let mut shape = vec![1; axes.len()];
            for (axis, &n) in self.bound.arrays[array].axes.iter().zip(region) {
                if let Some(d) = axes.iter().position(|a| a == axis) {
                    shape[d] = n.clamp(1, lengths[d]);
                }
            }
            (array, shape)
        };
        sized.map(of_axes).max_by_key(|(array, shape)| (elements(shape), std::cmp::Reverse(*array)))
    }

    /// Whether all of these arrays that have as many dimensions as any have regions of a size that was asked for.
    pub(super) fn all_sized(&self, arrays: &[usize]) -> bool {
        self.with_most_axes(arrays).all(|a| self.sized_region(a).is_some())
    }

    /// Whether tiles over these arrays follow the regions of one.
    pub(crate) fn follows_regions(&self, arrays: &[usize]) -> bool {
        self.with_most_axes(arrays).any(|a| self.sized_region(a).is_some())
    }

    fn with_most_axes(&self, arrays: &[usize]) -> impl Iterator<Item = usize> {
        let axes = |a: usize| self.bound.arrays[a].axes.len();
        let most = arrays.iter().map(|&a| axes(a)).max().unwrap_or(0);
        arrays.iter().copied().filter(move |&a| axes(a) == most)
    }

    fn sized_region(&self, array: usize) -> Option<&[u64]> {
        let index = self.indexed[array].as_ref().filter(|index| index.is_sized() && index.any_known())?;
        // Scanning is as it would be without an index.
        self.options.access.zonemaps().then(|| index.grid().region())
    }

    /// Whether a region's bitmap has room while it is evaluated: its rows, and about as many bytes of what is read.
    pub(in crate::exec) fn has_room_for_bitmap(&self, region: &Bx) -> bool {
        region.len() <= self.options.rows_at_work(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_grow_from_the_inner_axes() {
        assert_eq!(filled(vec![1, 1, 1], &[10, 100, 100], 1000), [1, 10, 100]);
        assert_eq!(filled(vec![1], &[1 << 30], 1 << 18), [1 << 18]);
        assert_eq!(filled(vec![1, 4], &[10, 8], 1 << 18), [10, 8]);
    }
}
