//! Selections: the positions that satisfy a condition, their set algebra, and the ways through them.

mod block;
mod build;
mod coords;
mod made;
mod marks;
mod persist;
mod ranks;
mod set;
mod walk;

use std::fmt;

pub use block::PositionBlock;
pub use build::SelectionBuilder;
pub use coords::unravel;
pub use marks::Marks;
pub use walk::{Batches, Positions, Runs};

use crate::{Bx, Error, ErrorKind, Result, checked_len};
use set::{PositionSet, SetOp};
use walk::{Chunk, Walker};

/// A set of positions in a row space: named dimensions and their extents.
///
/// A position is the C-order linear index of a row. Blocks of positions are kept as nothing, as runs, as a sorted
/// list or as bits, whichever is smallest; what is selected wholly costs nothing, however large. Bitmaps are shared
/// between selections, so a clone is cheap.
#[derive(Clone, PartialEq)]
pub struct Selection {
    dims: Vec<String>,
    shape: Vec<u64>,
    set: PositionSet,
}

impl Selection {
    /// No position.
    ///
    /// Like every constructor, fails with [`ErrorKind::DimensionMismatch`] if there is not one extent for each
    /// name, and with [`ErrorKind::Overflow`] beyond 2^63 positions.
    pub fn empty(dims: Vec<String>, shape: Vec<u64>) -> Result<Self> {
        let set = PositionSet::empty(n_rows(&dims, &shape)?);
        Ok(Self { dims, shape, set })
    }

    /// Every position; takes no time and no memory, whatever their number.
    pub fn all(dims: Vec<String>, shape: Vec<u64>) -> Result<Self> {
        let set = PositionSet::all(n_rows(&dims, &shape)?);
        Ok(Self { dims, shape, set })
    }

    /// The selection as bytes that travel: what [`Selection::write_to`] writes.
    ///
    /// Fails as that does.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.write_to(&mut out)?;
        Ok(out)
    }

    /// The selection that [`Selection::to_bytes`] made; bytes after it are damage, too.
    ///
    /// Fails as [`Selection::read_from`] does.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut left = bytes;
        let read = Self::read_from(&mut left)?;
        if left.is_empty() {
            return Ok(read);
        }
        Err(Error::corrupt(format!("damaged selection: {} bytes follow it", left.len())))
    }

    /// The names of the dimensions.
    pub fn dims(&self) -> &[String] {
        &self.dims
    }

    /// The extents of the dimensions.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The number of positions of the row space, selected or not.
    pub fn n_rows(&self) -> u64 {
        self.set.extent()
    }

    /// The number of selected positions.
    pub fn len(&self) -> u64 {
        self.set.len()
    }

    /// Whether no position is selected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `position` is selected.
    pub fn contains(&self, position: u64) -> bool {
        self.set.contains(position)
    }

    /// What both select. Fails with [`ErrorKind::DimensionMismatch`] on another row space, as the others do.
    pub fn intersection(&self, other: &Self) -> Result<Self> {
        self.merge(other, SetOp::And)
    }

    /// What either selects.
    pub fn union(&self, other: &Self) -> Result<Self> {
        self.merge(other, SetOp::Or)
    }

    /// What this selects and `other` does not.
    pub fn difference(&self, other: &Self) -> Result<Self> {
        self.merge(other, SetOp::Sub)
    }

    /// What exactly one of both selects.
    pub fn symmetric_difference(&self, other: &Self) -> Result<Self> {
        self.merge(other, SetOp::Xor)
    }

    /// What this does not select.
    #[must_use]
    pub fn complement(&self) -> Self {
        self.with(PositionSet::all(self.n_rows()).merge(&self.set, SetOp::Sub))
    }

    /// The selected positions in increasing order.
    pub fn iter(&self) -> Positions<'_> {
        self.iter_from(0)
    }

    /// As [`Selection::iter`], without the first `rank` ones.
    pub fn iter_from(&self, rank: u64) -> Positions<'_> {
        Positions::from_rank(&self.set, rank)
    }

    /// The selected positions in increasing order, `size` at a time (a size of 0 counts as 1).
    pub fn batches(&self, size: usize) -> Batches<'_> {
        Batches::new(&self.set, size)
    }

    /// The maximal runs of consecutive selected positions, as `(start, length)`.
    pub fn runs(&self) -> Runs<'_> {
        Runs::new(&self.set)
    }

    /// The positions laid out for looks at many short ranges; made anew by each call, which takes about as long as going
    /// through all of them.
    pub fn marks(&self) -> Marks {
        Marks::new(&self.set)
    }

    /// The selected position of which `rank` selected ones lie below.
    pub fn select(&self, rank: u64) -> Option<u64> {
        self.set.select(rank)
    }

    /// The number of selected positions below `position`.
    pub fn rank(&self, position: u64) -> u64 {
        self.set.rank(position)
    }

    /// Of the selected positions in increasing order, `count` after the first `offset`; fewer where they end.
    #[must_use]
    pub fn slice(&self, offset: u64, count: u64) -> Self {
        let count = count.min(self.len().saturating_sub(offset));
        if count == self.len() {
            return self.clone();
        }
        let ends = count.checked_sub(1).and_then(|n| Some((self.select(offset)?, self.select(offset + n)?)));
        self.with(match ends {
            Some((first, last)) => self.set.merge(&build::range(self.n_rows(), first, last + 1), SetOp::And),
            None => PositionSet::empty(self.n_rows()),
        })
    }

    /// The selected positions in increasing order.
    ///
    /// Fails with [`ErrorKind::MemoryLimit`] where they cannot be held; the caller knows how much it allows.
    pub fn positions(&self) -> Result<Vec<i64>> {
        let mut out = zeroed(Some(self.len()), "positions")?;
        out.iter_mut().zip(self.iter()).for_each(|(to, p)| *to = p as i64);
        Ok(out)
    }

    /// The coordinates of the selected positions: row-major, one number per dimension for each.
    ///
    /// Fails with [`ErrorKind::MemoryLimit`] where they cannot be held; the caller knows how much it allows.
    pub fn coords(&self) -> Result<Vec<i64>> {
        let n = self.len().checked_mul(self.shape.len() as u64);
        let mut out = zeroed(n, "coordinates")?;
        coords::fill_coords(&self.set, &self.shape, &mut out);
        Ok(out)
    }

    /// As [`Selection::coords`], into memory of the caller, which must have exactly the length.
    pub fn fill_coords(&self, out: &mut [i64]) -> Result<()> {
        self.check_room(self.len().checked_mul(self.shape.len() as u64), out.len(), "coordinates")?;
        coords::fill_coords(&self.set, &self.shape, out);
        Ok(())
    }

    /// One byte for each position of the row space: 1 where it is selected, else 0.
    ///
    /// Fails with [`ErrorKind::MemoryLimit`] where they cannot be held; the caller knows how much it allows.
    pub fn mask(&self) -> Result<Vec<u8>> {
        let mut out = zeroed(Some(self.n_rows()), "bytes of a mask")?;
        self.mark(&mut out);
        Ok(out)
    }

    /// As [`Selection::mask`], into memory of the caller, which must have exactly the length.
    pub fn fill_mask(&self, out: &mut [u8]) -> Result<()> {
        self.check_room(Some(self.n_rows()), out.len(), "bytes of a mask")?;
        out.fill(0);
        self.mark(out);
        Ok(())
    }

    /// The smallest box around all selected positions; `None` if there is none.
    pub fn bounding_box(&self) -> Option<Bx> {
        coords::bounding_box(&self.set, &self.shape)
    }

    /// The memory that the positions take, about. Selections that share bitmaps each count them.
    pub fn memory_bytes(&self) -> u64 {
        self.set.memory_bytes()
    }

    fn with(&self, set: PositionSet) -> Self {
        Self { dims: self.dims.clone(), shape: self.shape.clone(), set }
    }

    fn merge(&self, other: &Self, op: SetOp) -> Result<Self> {
        if self.dims != other.dims || self.shape != other.shape {
            let (a, b) = (Space(&self.dims, &self.shape), Space(&other.dims, &other.shape));
            let message = format!("selections over {a} and over {b} do not share one row space");
            return Err(Error::new(ErrorKind::DimensionMismatch, message));
        }
        Ok(self.with(self.set.merge(&other.set, op)))
    }

    /// Sets the byte of each selected position to 1.
    fn mark(&self, out: &mut [u8]) {
        let mut walker = Walker::new(&self.set);
        while let Some(chunk) = walker.next_chunk(u64::MAX) {
            match chunk {
                Chunk::Run { start, len } => out[start as usize..][..len as usize].fill(1),
                Chunk::List { base, lows } => {
                    let bucket = &mut out[base as usize..];
                    for &low in lows {
                        bucket[low as usize] = 1;
                    }
                }
            }
        }
    }

    fn check_room(&self, expected: Option<u64>, given: usize, what: &str) -> Result<()> {
        if expected == Some(given as u64) {
            return Ok(());
        }
        let expected = expected.map_or("more than 2^64".to_owned(), |n| n.to_string());
        let space = Space(&self.dims, &self.shape);
        let message =
            format!("room for {given} {what} given, {expected} needed for a selection over {space}");
        Err(Error::new(ErrorKind::InvalidValue, message))
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Selection({} of {}, {})", self.len(), self.n_rows(), Space(&self.dims, &self.shape))
    }
}

impl<'a> IntoIterator for &'a Selection {
    type Item = u64;
    type IntoIter = Positions<'a>;

    fn into_iter(self) -> Positions<'a> {
        self.iter()
    }
}

/// A row space as `(time: 12, lat: 180)`.
struct Space<'a>(&'a [String], &'a [u64]);

impl fmt::Display for Space<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (i, (name, extent)) in self.0.iter().zip(self.1).enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            write!(f, "{comma}{name}: {extent}")?;
        }
        f.write_str(")")
    }
}

/// The number of positions of a row space.
fn n_rows(dims: &[String], shape: &[u64]) -> Result<u64> {
    if dims.len() != shape.len() {
        let message = format!("{} dimensions {dims:?} with {} extents {shape:?}", dims.len(), shape.len());
        return Err(Error::new(ErrorKind::DimensionMismatch, message));
    }
    checked_len(shape).map_err(|_| {
        let message = format!("the row space {} has more than 2^63 positions", Space(dims, shape));
        Error::new(ErrorKind::Overflow, message)
    })
}

/// `n` zeros, or an error instead of an abort.
fn zeroed<T: Clone + Default>(n: Option<u64>, what: &str) -> Result<Vec<T>> {
    let mut out = Vec::new();
    let n = n.and_then(|n| usize::try_from(n).ok()).filter(|&n| out.try_reserve_exact(n).is_ok());
    let Some(n) = n else {
        let message = format!("no memory for the {what} of a selection");
        return Err(Error::new(ErrorKind::MemoryLimit, message).hint("go through it in batches"));
    };
    out.resize(n, T::default());
    Ok(out)
}

#[cfg(test)]
mod tests;
