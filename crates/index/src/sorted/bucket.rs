//! Sorting one bucket in memory and writing its rows, column by column.

use std::ops::Range;

use sieva_types::{Buffer, Result};

use super::code::{base_code, for_each_code};
use super::partition::Partition;
use super::run::Run;
use super::source::Schema;
use super::writer::Writer;

/// A bucket of a partition, and the row of the replica that it begins at.
pub(super) struct Bucket<'a> {
    pub partition: &'a Partition,
    pub number: usize,
    pub first_row: u64,
    /// The rows of the replica that are written here; others of the bucket are left out.
    pub wanted: Range<u64>,
}

/// Memory that a thread uses for one bucket after the other.
#[derive(Default)]
pub(super) struct Scratch {
    column: Buffer,
    narrow: Vec<u64>,
    wide: Vec<u128>,
    by_position: Vec<u32>,
    order: Vec<u32>,
    out: Vec<u8>,
}

/// Bytes that sorting takes for each row of a bucket. `ordered`: rows come in the order of positions.
pub(super) fn bytes_per_row(schema: &Schema, ordered: bool) -> usize {
    let (order, by_position) = (4, if ordered { 0 } else { 4 });
    let position = if ordered { 0 } else { schema.sizes[schema.positions()] };
    let record = if schema.sizes[0].max(position) <= 4 { 8 } else { 16 };
    schema.widest() + record + order + by_position
}

/// Sorts the rows of `bucket` and writes them.
pub(super) fn sort(
    run: &Run<'_>,
    schema: &Schema,
    writer: &Writer,
    bucket: &Bucket<'_>,
    ordered: bool,
    scratch: &mut Scratch,
) -> Result<()> {
    find_order(schema, bucket, ordered, scratch)?;
    let Scratch { column, order, out, .. } = scratch;
    let end = bucket.first_row + order.len() as u64;
    let rows = bucket.first_row.max(bucket.wanted.start)..end.min(bucket.wanted.end);
    let order = &order[(rows.start - bucket.first_row) as usize..(rows.end - bucket.first_row) as usize];
    for (number, &size) in schema.sizes.iter().enumerate() {
        run.check()?;
        bucket.partition.read_bucket(schema, bucket.number, number, column)?;
        let from = column.bytes();
        writer.write(number, rows.clone(), out, |range, to| match size {
            1 => gather::<1>(from, &order[range], to),
            2 => gather::<2>(from, &order[range], to),
            4 => gather::<4>(from, &order[range], to),
            _ => gather::<8>(from, &order[range], to),
        })?;
        run.advance(order.len());
    }
    Ok(())
}

fn gather<const SIZE: usize>(from: &[u8], order: &[u32], to: &mut [u8]) {
    let from = from.as_chunks::<SIZE>().0;
    for (element, &row) in to.as_chunks_mut::<SIZE>().0.iter_mut().zip(order) {
        *element = from[row as usize];
    }
}

/// Leaves in `scratch.order` the rows of the bucket in the order of keys, ties by position.
///
/// Records are a code and the number of the row in the order of positions, so that no two are equal and any
/// sort is a stable one.
fn find_order(schema: &Schema, bucket: &Bucket<'_>, ordered: bool, scratch: &mut Scratch) -> Result<()> {
    let Scratch { column, narrow, wide, by_position, order, .. } = scratch;
    if !ordered {
        bucket.partition.read_bucket(schema, bucket.number, schema.positions(), column)?;
        match schema.sizes[schema.positions()] {
            4 => sort_narrow(column.as_slice::<u32>().iter().copied(), narrow, by_position),
            _ => sort_wide(column.as_slice::<u64>().iter().copied(), wide, by_position),
        }
    }
    bucket.partition.read_bucket(schema, bucket.number, 0, column)?;
    let (mut low, mut high) = (u64::MAX, 0);
    for_each_code(schema.key, column.bytes(), |_, code| (low, high) = (low.min(code), high.max(code)));
    let base = if schema.sizes[0] <= 4 { base_code(schema.key) } else { low };
    let is_narrow = high.saturating_sub(base) <= u64::from(u32::MAX);
    let codes = Codes { schema, column, by_position: (!ordered).then_some(&by_position[..]) };
    match is_narrow {
        true => sort_narrow(codes.iter(|code| (code - base) as u32), narrow, order),
        false => sort_wide(codes.iter(|code| code), wide, order),
    }
    if !ordered {
        order.iter_mut().for_each(|i| *i = by_position[*i as usize]);
    }
    Ok(())
}

/// The codes of a column in the order of positions.
struct Codes<'a> {
    schema: &'a Schema,
    column: &'a Buffer,
    by_position: Option<&'a [u32]>,
}

impl<'a> Codes<'a> {
    fn iter<T>(&self, f: impl Fn(u64) -> T + 'a) -> impl Iterator<Item = T> + 'a {
        let (key, bytes, by_position) = (self.schema.key, self.column.bytes(), self.by_position);
        let rows = bytes.len() / self.schema.sizes[0];
        (0..rows).map(move |i| {
            let row = by_position.map_or(i, |p| p[i] as usize);
            f(super::code::code_at(key, bytes, row))
        })
    }
}

/// The order of 32-bit codes by sorting words of a code and a number.
fn sort_narrow(codes: impl Iterator<Item = u32>, records: &mut Vec<u64>, order: &mut Vec<u32>) {
    records.clear();
    records.extend((0_u64..).zip(codes).map(|(i, code)| u64::from(code) << 32 | i));
    records.sort_unstable();
    order.clear();
    order.extend(records.iter().map(|&record| record as u32));
}

/// As [`sort_narrow`], of 64-bit codes.
fn sort_wide(codes: impl Iterator<Item = u64>, records: &mut Vec<u128>, order: &mut Vec<u32>) {
    records.clear();
    records.extend((0_u128..).zip(codes).map(|(i, code)| u128::from(code) << 32 | i));
    records.sort_unstable();
    order.clear();
    order.extend(records.iter().map(|&record| record as u32));
}
