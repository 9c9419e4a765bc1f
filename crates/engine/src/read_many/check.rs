//! What is asked is checked before anything is read: boxes, selections, and the memory that values take.

use sieva_format::schema::ArrayInfo;
use sieva_types::{Bx, DType, Error, ErrorKind, Result, Selection};

use super::{Part, Request};
use crate::open::Source;

/// What is always allowed: small readings need not be counted.
pub(super) const LEAST: u64 = 1 << 20;
/// What a text of any length takes besides its bytes: one of those that are read, and one of the result.
const TEXT_BYTES: u64 = 64;

impl Source {
    /// Checks a request, and says what its values take, with what they are made of.
    ///
    /// # Errors
    /// `invalid-value` for a box that does not lie within the array, `dimension-mismatch` for a selection over another row
    /// space.
    pub(super) fn check_request(&self, request: &Request) -> Result<u64> {
        let Some(info) = self.schema().arrays.get(request.array) else {
            let n = self.schema().arrays.len();
            let message = format!("array number {} of {n}", request.array);
            return Err(Error::new(ErrorKind::InvalidValue, message));
        };
        match &request.part {
            Part::Box(bx) => check_box(info, bx)?,
            Part::Positions(selection) => self.check_selection(info, selection)?,
        }
        Ok(need(info, request.len()))
    }

    fn check_selection(&self, info: &ArrayInfo, selection: &Selection) -> Result<()> {
        let dims = info.dims.iter().map(|&d| &self.schema().dims[d]);
        let is_named =
            |(dim, name): (&sieva_format::schema::Dimension, &String)| dim.name == *name || dim.path == *name;
        if selection.shape() == info.shape && dims.zip(selection.dims()).all(is_named) {
            return Ok(());
        }
        let dims = info.dims.iter().map(|&d| self.schema().dims[d].name.as_str());
        let own: Vec<String> = dims.zip(&info.shape).map(|(dim, n)| format!("{dim}: {n}")).collect();
        let theirs = selection.dims().iter().zip(selection.shape()).map(|(dim, n)| format!("{dim}: {n}"));
        let message = format!(
            "a selection over ({}) of '{}', which has ({})",
            theirs.collect::<Vec<_>>().join(", "),
            info.path,
            own.join(", ")
        );
        Err(Error::new(ErrorKind::DimensionMismatch, message)
            .hint("select over the array's own dimensions, or read it by a query that selects it"))
    }
}

/// Whether a box lies within an array.
///
/// # Errors
/// `invalid-value`.
pub(crate) fn check_box(info: &ArrayInfo, bx: &Bx) -> Result<()> {
    let is_within = || {
        (0..bx.rank()).all(|d| bx.start[d].checked_add(bx.shape[d]).is_some_and(|end| end <= info.shape[d]))
    };
    if bx.start.len() == bx.rank() && bx.rank() == info.shape.len() && is_within() {
        return Ok(());
    }
    let message = format!(
        "box {:?} + {:?} does not lie in '{}' of shape {:?}",
        bx.start, bx.shape, info.path, info.shape
    );
    Err(Error::new(ErrorKind::InvalidValue, message))
}

/// Bytes of `n` values: what is stored, what it is decoded to, and which of it is missing.
pub(crate) fn need(info: &ArrayInfo, n: u64) -> u64 {
    let each = match info.dtype {
        DType::Str => TEXT_BYTES,
        dtype => (dtype.size().max(4) + info.decoding.decoded().size() + 1) as u64,
    };
    n.saturating_mul(each)
}

/// Refuses `n` values that take more than `memory`, with what they are made of.
///
/// # Errors
/// `memory-limit`.
pub(crate) fn check_room(info: &ArrayInfo, n: u64, memory: u64) -> Result<()> {
    let need = need(info, n);
    if need <= memory.max(1 << 20) {
        return Ok(());
    }
    let message = format!(
        "{n} values of '{}' take {need} bytes with what they are made of, the limit is {memory}",
        info.path
    );
    Err(Error::new(ErrorKind::MemoryLimit, message)
        .hint("read a smaller box, or open the source with more: memory= in Python"))
}
