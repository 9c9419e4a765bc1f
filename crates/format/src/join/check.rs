//! What must be the same in all files, and how it is told where it is not.

use std::sync::Arc;

use sieva_types::{DType, Error, ErrorKind, Result};

use super::axis::{Along, Files, rebase};
use super::outline::text;
use super::unpack::Unpack;
use crate::cf::TimeUnits;
use crate::schema::ArrayInfo;

/// File, array and what differs.
pub(super) fn mismatch(
    names: &[String],
    file: usize,
    array: &str,
    what: &str,
    here: &str,
    other: usize,
    there: &str,
) -> Error {
    let here = if here.is_empty() { "nothing" } else { here };
    let there = if there.is_empty() { "nothing" } else { there };
    let message =
        format!("'{}': {what} of '{array}' is {here}, in '{}' it is {there}", names[file], names[other]);
    Error::new(ErrorKind::DimensionMismatch, message)
        .hint("files that make one source agree in their arrays' types, dimensions and units")
}

/// How one array of a group's files becomes one.
#[derive(Debug)]
pub(super) struct Joint {
    /// The element type of the whole.
    pub dtype: DType,
    /// Per file of the group in order: how its values become those of the whole; empty: as they are stored.
    pub unpack: Vec<Option<Unpack>>,
}

impl Files<'_> {
    /// Compares an array of the group's first file with those of the others.
    ///
    /// # Errors
    /// `dimension-mismatch` naming file, array and what differs.
    pub(super) fn joint(&self, along: &Along, path: &str, valid_range: bool) -> Result<Joint> {
        let first = along.order[0];
        let whole = self.array(first, path, first)?;
        let mut differs = false;
        let mut times: Vec<Option<(TimeUnits, TimeUnits)>> = Vec::with_capacity(along.order.len());
        for &file in &along.order {
            if self.alike(along, first, file) {
                times.push(None);
                continue;
            }
            let own = self.array(file, path, first)?;
            self.check_dims(along, first, whole, file, own)?;
            if own.dtype != whole.dtype {
                differs = true;
                self.check_types(first, whole, file, own)?;
            }
            differs |= own.decoding != whole.decoding;
            let rebased = if is_time(whole) || is_time(own) {
                rebase(self, first, whole, file, own)?
            } else if text(own, "units") != text(whole, "units") {
                let (here, there) = (text(own, "units"), text(whole, "units"));
                return Err(mismatch(self.names, file, path, "units", here, first, there));
            } else if self.is_bounds(along, path) {
                // Bounds have no units of their own: they are those of their coordinate (CF 7.1).
                self.times(first, file, &along.dim)?
            } else {
                None
            };
            differs |= rebased.is_some();
            times.push(rebased);
        }
        if !differs || whole.dtype == DType::Str {
            return Ok(Joint { dtype: whole.dtype, unpack: Vec::new() });
        }
        let unpack = along.order.iter().zip(times).map(|(&file, times)| {
            let own = self.array(file, path, first)?;
            Ok(Some(Unpack { decoding: own.decoding.clone(), valid_range, times }))
        });
        Ok(Joint { dtype: DType::F64, unpack: unpack.collect::<Result<Vec<_>>>()? })
    }

    /// Whether a file differs from the group's first one in nothing but how long it is along the joined dimension,
    /// and where it lies along it.
    pub(super) fn alike(&self, along: &Along, first: usize, file: usize) -> bool {
        let (a, b) = (&self.outlines[first], &self.outlines[file]);
        let lens = || (0..a.lens.len()).all(|d| a.lens[d] == b.lens[d] || a.schema.dims[d].path == along.dim);
        Arc::ptr_eq(&a.schema, &b.schema) && lens()
    }

    /// Other dimensions of a group's files are the same in length and coordinates.
    ///
    /// # Errors
    /// `dimension-mismatch` naming the files and the dimension.
    pub(super) fn check_others(&self, along: &Along) -> Result<()> {
        let first = along.order[0];
        for &file in &along.order[1..] {
            let (a, b) = (&self.outlines[first], &self.outlines[file]);
            for (d, dim) in a.schema.dims.iter().enumerate().filter(|(_, dim)| dim.path != along.dim) {
                let Some(e) = b.dim(&dim.path) else { continue };
                if a.lens[d] != b.lens[e] || !self.same_coordinate(first, d, file, e) {
                    let message = format!(
                        "dimension '{}' differs between files joined along '{}': {}",
                        dim.path,
                        along.dim,
                        self.difference(first, file, &dim.path)
                    );
                    return Err(Error::new(ErrorKind::DimensionMismatch, message)
                        .hint("files are joined along one dimension: open those that differ in one only"));
                }
            }
        }
        Ok(())
    }

    fn array(&self, file: usize, path: &str, first: usize) -> Result<&ArrayInfo> {
        let schema = &self.outlines[file].schema;
        schema.array(path).map(|i| &schema.arrays[i]).ok_or_else(|| {
            let message =
                format!("'{}' has no array '{path}', which '{}' has", self.names[file], self.names[first]);
            Error::new(ErrorKind::DimensionMismatch, message)
        })
    }

    /// Types that can be taken together without loss: float64 holds all but 64-bit integers.
    fn check_types(&self, first: usize, whole: &ArrayInfo, file: usize, own: &ArrayInfo) -> Result<()> {
        let exact = |a: &ArrayInfo| {
            a.decoding.packing.is_some() || !matches!(a.dtype, DType::Str | DType::I64 | DType::U64)
        };
        if exact(whole) && exact(own) {
            return Ok(());
        }
        Err(mismatch(self.names, file, &own.path, "type", own.dtype.name(), first, whole.dtype.name()))
    }

    /// The same dimensions in the same order, and the same lengths but along the joined one.
    fn check_dims(
        &self,
        along: &Along,
        first: usize,
        whole: &ArrayInfo,
        file: usize,
        own: &ArrayInfo,
    ) -> Result<()> {
        let describe = |f: usize, a: &ArrayInfo| {
            let o = &self.outlines[f];
            let each = a.dims.iter().map(|&d| (o.schema.dims[d].path.clone(), o.lens[d]));
            each.collect::<Vec<_>>()
        };
        let (a, b) = (describe(first, whole), describe(file, own));
        let alike = a.len() == b.len()
            && a.iter()
                .zip(&b)
                .all(|(x, y)| x.0 == y.0 && (x.1 == y.1 || (x.0 == along.dim && !along.is_new)));
        if alike {
            return Ok(());
        }
        let show = |dims: &[(String, u64)]| {
            let each: Vec<String> = dims.iter().map(|(name, n)| format!("{name}: {n}")).collect();
            format!("({})", each.join(", "))
        };
        Err(mismatch(self.names, file, &own.path, "shape", &show(&b), first, &show(&a)))
    }

    fn is_bounds(&self, along: &Along, path: &str) -> bool {
        let first = &self.outlines[along.order[0]];
        let coordinate = first.dim(&along.dim).and_then(|d| first.schema.dims[d].coordinate);
        coordinate.is_some_and(|c| {
            let info = &first.schema.arrays[c];
            !text(info, "bounds").is_empty() && path.rsplit('/').next() == Some(text(info, "bounds"))
        })
    }
}

fn is_time(info: &ArrayInfo) -> bool {
    TimeUnits::is_reference_time(text(info, "units"))
}
