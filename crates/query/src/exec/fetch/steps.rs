//! How many rows are fetched at once, so that chunks are read once and not for each batch anew.

use sieva_types::DType;

use crate::bind::Value;
use crate::exec::{Execution, FetchWay};
use crate::values::ValueType;

/// Most rows that are fetched at once.
pub(crate) const MOST_TOGETHER: usize = 1 << 22;

/// Positions that share chunks with one another and with no others: a chunk's extent along the outermost dimension that is
/// not cut singly, all of the dimensions within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Band {
    /// Positions of one.
    pub(crate) len: u64,
    /// Positions of one index of the dimensions outside, where bands begin anew.
    outer: u64,
}

impl Band {
    fn of(shape: &[u64], chunk: &[u64]) -> Option<Self> {
        let d = (0..shape.len()).find(|&d| shape[d] > 1 && chunk[d] > 1)?;
        let inner = shape[d + 1..].iter().try_fold(1_u64, |n, &m| n.checked_mul(m))?;
        let len = chunk[d].min(shape[d]).checked_mul(inner).filter(|&n| n > 0)?;
        Some(Self { len, outer: shape[d].checked_mul(inner)? })
    }

    pub(super) fn start_of(&self, position: u64) -> u64 {
        position - position % self.outer % self.len
    }

    pub(super) fn end_of(&self, position: u64) -> u64 {
        let base = position - position % self.outer;
        (self.start_of(position) + self.len).min(base + self.outer)
    }
}

impl Execution {
    /// The positions of the rows that share chunks of an array, whose dimensions are those of the rows; `None` where it has no
    /// chunks, or these follow one another in the order of the rows.
    pub(crate) fn band_of(&self, array: usize) -> Option<Band> {
        let (layout, shape) = (self.readers[array].layout(), &self.bound.rows.shape);
        let is_chunked = layout.is_chunked() && layout.chunk_shape.len() >= shape.len();
        if is_chunked { Band::of(shape, &layout.chunk_shape) } else { None }
    }

    /// How many rows are fetched at once of those that come in C order in batches of `batch`: as many as share chunks of any
    /// of the arrays, if there is room for `most`. Arrays that are read whole, once, do not count. Texts come batch by batch:
    /// how long they are is not known before.
    pub(crate) fn rows_in_step<'v>(
        &self,
        values: impl Iterator<Item = &'v Value> + Clone,
        batch: usize,
        most: usize,
    ) -> usize {
        if values.clone().any(|value| self.has_texts(value)) {
            return batch.max(1);
        }
        let wanted = self.rows_sharing(values);
        let most = most.min(MOST_TOGETHER) / batch.max(1) * batch;
        let wanted =
            usize::try_from(wanted).unwrap_or(usize::MAX).div_ceil(batch.max(1)).saturating_mul(batch);
        wanted.min(most).max(batch)
    }

    /// The rows in a row that share chunks of any of the arrays of some values; 0 where any number will do.
    pub(crate) fn rows_sharing<'v>(&self, values: impl Iterator<Item = &'v Value>) -> u64 {
        let mut most = 0;
        values.for_each(|value| {
            value.walk(&mut |v| {
                if let Value::Array { array, .. } | Value::Date(_, array) = v {
                    most = most.max(self.rows_sharing_of(*array));
                }
            });
        });
        most
    }

    fn has_texts(&self, value: &Value) -> bool {
        let mut found = self.bound.type_of(value) == Some(ValueType::Str);
        value.walk(&mut |v| {
            if let Value::Array { array, .. } = v {
                let index = self.bound.arrays[*array].index;
                found |= self.source.schema().arrays[index].dtype == DType::Str;
            }
        });
        found
    }

    fn rows_sharing_of(&self, array: usize) -> u64 {
        let index = self.bound.arrays[array].index;
        let is_small = self.options.fetch == FetchWay::Auto
            && self.is_small(array, &self.source.schema().arrays[index].shape);
        // Rows that follow one another have values that do, and each once.
        let is_outer =
            self.bound.arrays[array].axes.iter().copied().eq(0..self.bound.arrays[array].axes.len());
        match (self.spans_rows(array), self.flat[array].is_some()) {
            _ if is_small => 0,
            (true, true) => 0,
            (false, true) if is_outer => 0,
            (true, false) => self.band_of(array).map_or(0, |band| band.len),
            // All of it may be wanted for a few rows, and again for the next.
            (false, _) => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_are_the_chunks_along_one_dimension() {
        let band = Band::of(&[2, 5, 10], &[1, 2, 4]).unwrap();
        assert_eq!(band, Band { len: 20, outer: 50 });
        let bands: Vec<_> = [0, 19, 20, 49, 50, 99].map(|p| (band.start_of(p), band.end_of(p))).to_vec();
        assert_eq!(bands, [(0, 20), (0, 20), (20, 40), (40, 50), (50, 70), (90, 100)]);
        assert_eq!(Band::of(&[9], &[4]), Some(Band { len: 4, outer: 9 }));
        assert_eq!(Band::of(&[1, 9], &[7, 1]), None);
        assert_eq!(Band::of(&[], &[]), None);
    }
}
