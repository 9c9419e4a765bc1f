//! What sizes and offsets of the header come to: record dimension, slabs, record stride, number of records.
//!
//! All of it is checked here once: later code multiplies and adds without fear of overflow.

use std::collections::HashSet;

use sieva_format::Warnings;
use sieva_types::{Error, Result};

use crate::header::{Header, RawVar};

/// What one variable stores: its data, or of a record variable the data of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slab {
    pub(crate) is_record: bool,
    pub(crate) bytes: u64,
}

/// Sizes of everything in a file.
#[derive(Debug)]
pub(crate) struct Geometry {
    /// The id of the record dimension.
    pub(crate) record_dim: Option<usize>,
    /// Number of records.
    pub(crate) records: u64,
    /// Bytes from one record to the next.
    pub(crate) stride: u64,
    /// One per variable.
    pub(crate) slabs: Vec<Slab>,
}

impl Geometry {
    /// The geometry of a file of `file_len` bytes; where header and length disagree, it is said in `warnings`.
    pub(crate) fn new(header: &Header, file_len: u64, warnings: &mut Warnings) -> Result<Self> {
        let record_dim = record_dimension(header, warnings)?;
        let slabs = header.vars.iter().map(|v| slab(header, record_dim, v)).collect::<Result<Vec<_>>>()?;
        let stride = record_stride(&slabs)?;
        let mut geometry = Self { record_dim, records: 0, stride, slabs };
        let held = geometry.records_held(header, file_len);
        geometry.records = header.records.or(held).unwrap_or(0);
        geometry.check_ends(header)?;
        if let Some(held) = held.filter(|&held| held < geometry.records) {
            warnings.push(|| {
                format!(
                    "the header says {} records, the file's length holds {held}: reading the others fails",
                    geometry.records
                )
            });
        }
        Ok(geometry)
    }

    /// The length of dimension `id`.
    pub(crate) fn dim_len(&self, header: &Header, id: usize) -> u64 {
        if self.record_dim == Some(id) { self.records } else { header.dims[id].len }
    }

    /// Bytes from the beginning of variable `v` to the end of its data, paddings and other variables in between
    /// included.
    pub(crate) fn span(&self, v: usize) -> u64 {
        let slab = self.slabs[v];
        match self.records {
            _ if !slab.is_record => slab.bytes,
            0 => 0,
            n => (n - 1) * self.stride + slab.bytes,
        }
    }

    /// The number of whole records within the file's length; `None` without record variables. The padding
    /// of the last record may be missing.
    fn records_held(&self, header: &Header, file_len: u64) -> Option<u64> {
        let records = header.vars.iter().zip(&self.slabs).filter(|(_, slab)| slab.is_record);
        records
            .map(|(var, slab)| {
                let room = file_len.checked_sub(var.begin).and_then(|room| room.checked_sub(slab.bytes));
                room.map_or(0, |room| room / self.stride + 1)
            })
            .min()
    }

    /// Refuses variables that would end past 2^63.
    fn check_ends(&self, header: &Header) -> Result<()> {
        for (var, slab) in header.vars.iter().zip(&self.slabs) {
            let span = if slab.is_record { self.records.checked_mul(self.stride) } else { Some(slab.bytes) };
            let end = span.and_then(|span| span.checked_add(var.begin));
            if end.is_none_or(|end| end > i64::MAX as u64) {
                return Err(Error::corrupt(format!(
                    "variable '{}' of {} bytes{} at offset {} ends past 2^63",
                    var.name,
                    slab.bytes,
                    if slab.is_record {
                        format!(" in each of {} records", self.records)
                    } else {
                        String::new()
                    },
                    var.begin
                )));
            }
        }
        Ok(())
    }
}

/// The dimension of length 0. The format allows one; a second one is let pass as long as no variable uses it.
fn record_dimension(header: &Header, warnings: &mut Warnings) -> Result<Option<usize>> {
    let mut names = HashSet::new();
    if let Some(twin) = header.dims.iter().find(|d| !names.insert(d.name.as_str())) {
        return Err(Error::corrupt(format!("two dimensions are called '{}'", twin.name)));
    }
    let mut unlimited = header.dims.iter().enumerate().filter(|(_, d)| d.len == 0);
    let first = unlimited.next();
    for (_, other) in unlimited {
        warnings.push(|| {
            format!(
                "dimension '{}' is marked unlimited, but '{}' is already: read as empty",
                other.name,
                first.map_or("", |(_, d)| d.name.as_str())
            )
        });
    }
    Ok(first.map(|(id, _)| id))
}

fn slab(header: &Header, record_dim: Option<usize>, var: &RawVar) -> Result<Slab> {
    let is_record = var.dims.first().is_some_and(|&id| Some(id) == record_dim);
    let mut bytes = var.xtype.size() as u64;
    for (i, &id) in var.dims.iter().enumerate().skip(usize::from(is_record)) {
        let dim = &header.dims[id];
        if dim.len == 0 {
            return Err(Error::corrupt(format!(
                "variable '{}': its dimension {i} ('{}') is unlimited; only one dimension of a file may be, and only as a variable's first",
                var.name, dim.name
            )));
        }
        bytes = bytes.checked_mul(dim.len).filter(|&n| n <= i64::MAX as u64).ok_or_else(|| {
            let shape: Vec<u64> = var.dims.iter().map(|&id| header.dims[id].len).collect();
            Error::corrupt(format!("variable '{}' of shape {shape:?} takes more than 2^63 bytes", var.name))
        })?;
    }
    Ok(Slab { is_record, bytes })
}

/// The sum of what record variables take in a record: padded to 4 bytes each, unless there is only one.
fn record_stride(slabs: &[Slab]) -> Result<u64> {
    let mut records = slabs.iter().filter(|s| s.is_record).map(|s| s.bytes);
    let first = records.next().unwrap_or(0);
    let Some(second) = records.next() else {
        return Ok(first);
    };
    // A slab has at most 2^63 bytes, so that rounding it up does not overflow.
    let mut padded = [first, second].into_iter().chain(records).map(|bytes| bytes.next_multiple_of(4));
    padded
        .try_fold(0_u64, u64::checked_add)
        .filter(|&sum| sum <= i64::MAX as u64)
        .ok_or_else(|| Error::corrupt("one record takes more than 2^63 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strides(records: &[u64]) -> Result<u64> {
        let fixed = Slab { is_record: false, bytes: 7 };
        let slabs: Vec<Slab> =
            records.iter().flat_map(|&bytes| [fixed, Slab { is_record: true, bytes }]).collect();
        record_stride(&slabs)
    }

    #[test]
    fn one_record_variable_is_not_padded_but_several_are() {
        assert_eq!(strides(&[]).unwrap(), 0);
        assert_eq!(strides(&[3]).unwrap(), 3);
        assert_eq!(strides(&[3, 2, 8]).unwrap(), 16);
    }

    #[test]
    fn records_beyond_all_measure_are_refused() {
        let huge = i64::MAX as u64;
        assert_eq!(strides(&[huge]).unwrap(), huge);
        assert_eq!(strides(&[huge, huge]).unwrap_err().message(), "one record takes more than 2^63 bytes");
    }
}
