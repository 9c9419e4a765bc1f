//! What is partitioned: segments of rows, from the caller's table or from a bucket that was too large.

use std::ops::Range;

use sieva_types::{Buffer, Bx, DType, Error, ErrorKind, Result, checked_len};

use super::Table;
use super::partition::Partition;

/// The columns of all rows: the caller's, then the positions.
#[derive(Clone, Debug)]
pub(super) struct Schema {
    /// The key's type.
    pub key: DType,
    /// Bytes of an element of each column; the last is that of the positions.
    pub sizes: Vec<usize>,
    pub rows: u64,
}

impl Schema {
    /// Number of the column of positions.
    pub fn positions(&self) -> usize {
        self.sizes.len() - 1
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        self.sizes.iter().sum::<usize>() as u64
    }

    /// Bytes of the widest element.
    pub fn widest(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or(8)
    }

    /// The position at `i` of a buffer of positions.
    pub fn position(&self, positions: &Buffer, i: usize) -> u64 {
        match self.sizes[self.positions()] {
            4 => positions.as_slice::<u32>()[i].into(),
            _ => positions.as_slice::<u64>()[i],
        }
    }
}

/// Rows in segments, read column by column.
pub(super) trait Source: Sync {
    /// Number of segments.
    fn segments(&self) -> usize;
    /// Rows of a segment.
    fn rows(&self, segment: usize) -> usize;
    /// The elements of a column (the positions are the last one) of a segment.
    fn read(&self, segment: usize, column: usize, out: &mut Buffer) -> Result<()>;
}

/// The caller's table, whose segments are its regions.
pub(super) struct TableSource<'a> {
    table: &'a dyn Table,
    schema: Schema,
    shape: &'a [u64],
    lens: Vec<usize>,
    /// Whether the regions, one after the other, hold the positions in ascending order.
    pub ordered: bool,
}

impl<'a> TableSource<'a> {
    /// # Errors
    /// `invalid-value` where the regions cannot be a cover of the shape, `memory-limit` where one has more than 2^32 elements.
    pub fn new(table: &'a dyn Table, schema: &Schema, shape: &'a [u64]) -> Result<Self> {
        let wrong =
            || Error::new(ErrorKind::InvalidValue, format!("regions do not cover the shape {shape:?}"));
        let (mut lens, mut ordered, mut rows) = (Vec::new(), true, 0_u64);
        for region in 0..table.regions() {
            let bx = table.region(region);
            let fits = bx.rank() == shape.len()
                && bx.start.len() == shape.len()
                && (0..shape.len())
                    .all(|d| bx.start[d].checked_add(bx.shape[d]).is_some_and(|e| e <= shape[d]));
            let len = if fits { checked_len(&bx.shape)? } else { return Err(wrong()) };
            ordered &= len == 0 || (is_contiguous(&bx, shape) && linear(&bx.start, shape) == rows);
            rows = rows.checked_add(len).ok_or_else(wrong)?;
            let too_long = |_| {
                let message = format!("a region of {len} elements is too large to be sorted");
                Error::new(ErrorKind::MemoryLimit, message)
            };
            lens.push(u32::try_from(len).map_err(too_long)? as usize);
        }
        if rows != schema.rows {
            return Err(wrong());
        }
        Ok(Self { table, schema: schema.clone(), shape, lens, ordered })
    }
}

impl Source for TableSource<'_> {
    fn segments(&self) -> usize {
        self.lens.len()
    }

    fn rows(&self, segment: usize) -> usize {
        self.lens[segment]
    }

    fn read(&self, segment: usize, column: usize, out: &mut Buffer) -> Result<()> {
        if column == self.schema.positions() {
            positions(&self.table.region(segment), self.shape, self.schema.sizes[column], out);
            return Ok(());
        }
        self.table.read(segment, column, out)?;
        let want = self.lens[segment] * self.schema.sizes[column];
        if out.bytes().len() == want {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Internal,
            format!("column {column} of region {segment} has {} bytes, not {want}", out.bytes().len()),
        ))
    }
}

/// Some successive segments of a source.
pub(super) struct Segments<'a> {
    pub all: &'a dyn Source,
    pub range: Range<usize>,
}

impl Source for Segments<'_> {
    fn segments(&self) -> usize {
        self.range.len()
    }

    fn rows(&self, segment: usize) -> usize {
        self.all.rows(self.range.start + segment)
    }

    fn read(&self, segment: usize, column: usize, out: &mut Buffer) -> Result<()> {
        self.all.read(self.range.start + segment, column, out)
    }
}

/// Whether the elements of the box lie one after the other in the array.
fn is_contiguous(bx: &Bx, shape: &[u64]) -> bool {
    let outer = bx.shape.iter().take_while(|&&n| n == 1).count();
    (outer + 1..shape.len()).all(|d| bx.shape[d] == shape[d])
}

/// The C-order position of an element.
fn linear(at: &[u64], shape: &[u64]) -> u64 {
    at.iter().zip(shape).fold(0, |sum, (i, n)| sum * n + i)
}

/// The C-order positions of a box, in its own C order, as elements of `size` bytes.
fn positions(bx: &Bx, shape: &[u64], size: usize, out: &mut Buffer) {
    out.resize(bx.len() as usize * size);
    if bx.is_empty() {
        return;
    }
    let run = bx.shape.last().copied().unwrap_or(1);
    let (mut at, mut done) = (bx.start.clone(), 0);
    while done < (bx.len() as usize) {
        let (first, range) = (linear(&at, shape), done..done + run as usize);
        match size {
            4 => (first as u32..).zip(&mut out.as_mut_slice()[range]).for_each(|(p, o)| *o = p),
            _ => (first..).zip(&mut out.as_mut_slice()[range]).for_each(|(p, o)| *o = p),
        }
        done += run as usize;
        for d in (0..at.len().saturating_sub(1)).rev() {
            at[d] += 1;
            if at[d] < bx.end(d) {
                break;
            }
            at[d] = bx.start[d];
        }
    }
}

/// A bucket of a partition, in segments of bounded size.
pub(super) struct BucketSource<'a> {
    partition: &'a Partition,
    schema: &'a Schema,
    /// Batch, first row within the batch, number of rows.
    segments: Vec<(usize, usize, usize)>,
}

impl<'a> BucketSource<'a> {
    pub fn new(partition: &'a Partition, bucket: usize, schema: &'a Schema, segment_rows: usize) -> Self {
        let cut = |(batch, run): (usize, Range<usize>)| {
            run.clone().step_by(segment_rows).map(move |at| (batch, at, segment_rows.min(run.end - at)))
        };
        Self { partition, schema, segments: partition.runs(bucket).flat_map(cut).collect() }
    }
}

impl Source for BucketSource<'_> {
    fn segments(&self) -> usize {
        self.segments.len()
    }

    fn rows(&self, segment: usize) -> usize {
        self.segments[segment].2
    }

    fn read(&self, segment: usize, column: usize, out: &mut Buffer) -> Result<()> {
        let (batch, at, rows) = self.segments[segment];
        out.resize(rows * self.schema.sizes[column]);
        self.partition.read(self.schema, batch, column, at, out.bytes_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_of_boxes() {
        let mut out = Buffer::default();
        positions(&Bx::new(vec![1, 2], vec![2, 3]), &[4, 10], 4, &mut out);
        assert_eq!(out.as_slice::<u32>(), [12, 13, 14, 22, 23, 24]);
        positions(&Bx::whole(&[]), &[], 8, &mut out);
        assert_eq!(out.as_slice::<u64>(), [0]);
        positions(&Bx::new(vec![0, 1, 1], vec![2, 1, 1]), &[2, 3, 4], 8, &mut out);
        assert_eq!(out.as_slice::<u64>(), [5, 17]);
    }

    #[test]
    fn contiguous_boxes() {
        let shape = [4, 5, 6];
        assert!(is_contiguous(&Bx::new(vec![1, 0, 0], vec![2, 5, 6]), &shape));
        assert!(is_contiguous(&Bx::new(vec![1, 2, 3], vec![1, 1, 2]), &shape));
        assert!(is_contiguous(&Bx::new(vec![1, 2, 0], vec![1, 2, 6]), &shape));
        assert!(!is_contiguous(&Bx::new(vec![1, 2, 0], vec![1, 2, 5]), &shape));
        assert!(!is_contiguous(&Bx::new(vec![1, 0, 0], vec![2, 4, 6]), &shape));
    }
}
