//! Accumulators: what an aggregate knows of the values of many groups, each state in a vector for all groups.
//!
//! A new aggregate is a file with an [`Accumulator`] and a line in [`MAKERS`].

use std::any::Any;
use std::fmt::Debug;

use super::Aggregate;
use super::wire::Encoded;
use crate::mask::Bits;
use crate::values::{Scalar, ValueType, Values, Vector};
use sieva_index::stats::Total;
use sieva_types::{Error, ErrorKind, Result, TextSlice};

/// The group of a row that goes into none.
pub const NO_GROUP: u32 = u32::MAX;

/// The groups that the values of a piece go into.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// All into this one.
    One(usize),
    /// The first into this one, and each further one into the next.
    From(usize),
    /// Each into its own; those of [`NO_GROUP`] into none.
    Each(&'a [u32]),
}

impl<'a> Target<'a> {
    /// The groups of the `n` values from `at` on.
    #[must_use]
    pub fn part(self, at: usize, n: usize) -> Self {
        match self {
            Self::One(group) => Self::One(group),
            Self::From(first) => Self::From(first + at),
            Self::Each(groups) => Self::Each(&groups[at..at + n]),
        }
    }

    /// Calls `add` with the group and the place of each of `n` values for which `is_there`.
    #[inline(always)]
    pub(super) fn each(self, n: usize, is_there: impl Fn(usize) -> bool, mut add: impl FnMut(usize, usize)) {
        match self {
            Self::One(group) => (0..n).filter(|&i| is_there(i)).for_each(|i| add(group, i)),
            Self::From(first) => (0..n).filter(|&i| is_there(i)).for_each(|i| add(first + i, i)),
            Self::Each(groups) => {
                for (i, &group) in groups.iter().enumerate() {
                    if group != NO_GROUP && is_there(i) {
                        add(group as usize, i);
                    }
                }
            }
        }
    }
}

/// Which values are there; `None`: all.
pub type Present<'a> = Option<Bits<'a>>;

/// Values that are taken in together. Floats that are NaN are missing.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the types name themselves
pub enum Piece<'a> {
    /// So many rows, for aggregates that look at no value.
    Rows(usize),
    Bool(&'a [bool], Present<'a>),
    I64(&'a [i64], Present<'a>),
    U64(&'a [u64], Present<'a>),
    F32(&'a [f32]),
    F64(&'a [f64]),
    Str(TextSlice<'a>, Present<'a>),
}

/// Whether a value is there.
#[inline(always)]
pub(super) fn is_there(present: Present<'_>, i: usize) -> bool {
    present.is_none_or(|p| p.get(i))
}

impl Piece<'_> {
    /// How many values.
    pub fn len(&self) -> usize {
        match self {
            Self::Rows(n) => *n,
            Self::Bool(v, _) => v.len(),
            Self::I64(v, _) => v.len(),
            Self::U64(v, _) => v.len(),
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::Str(v, _) => v.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its first value is there; rows are.
    pub fn has_first(&self) -> bool {
        match *self {
            Self::Rows(_) => true,
            Self::Bool(_, p) | Self::I64(_, p) | Self::U64(_, p) | Self::Str(_, p) => is_there(p, 0),
            Self::F32(v) => !v[0].is_nan(),
            Self::F64(v) => !v[0].is_nan(),
        }
    }

    /// The `n` values from `at` on.
    #[must_use]
    pub fn part(&self, at: usize, n: usize) -> Self {
        let to = at + n;
        match *self {
            Self::Rows(_) => Self::Rows(n),
            Self::Bool(v, p) => Self::Bool(&v[at..to], p.map(|p| p.from(at))),
            Self::I64(v, p) => Self::I64(&v[at..to], p.map(|p| p.from(at))),
            Self::U64(v, p) => Self::U64(&v[at..to], p.map(|p| p.from(at))),
            Self::F32(v) => Self::F32(&v[at..to]),
            Self::F64(v) => Self::F64(&v[at..to]),
            Self::Str(v, p) => Self::Str(v.part(at..to), p.map(|p| p.from(at))),
        }
    }

    /// Calls `add` with the group of each value that is there and with the value as a float.
    #[inline(always)]
    pub(super) fn each_float(&self, target: Target<'_>, mut add: impl FnMut(usize, f64)) -> Result<()> {
        match *self {
            Self::F64(v) => target.each(v.len(), |i| !v[i].is_nan(), |g, i| add(g, v[i])),
            Self::F32(v) => target.each(v.len(), |i| !v[i].is_nan(), |g, i| add(g, f64::from(v[i]))),
            Self::I64(v, p) => target.each(v.len(), |i| is_there(p, i), |g, i| add(g, v[i] as f64)),
            Self::U64(v, p) => target.each(v.len(), |i| is_there(p, i), |g, i| add(g, v[i] as f64)),
            Self::Bool(v, p) => {
                target.each(v.len(), |i| is_there(p, i), |g, i| add(g, f64::from(u8::from(v[i]))));
            }
            Self::Rows(_) | Self::Str(..) => return Err(wrong_piece(self)),
        }
        Ok(())
    }
}

/// What an aggregate knows of the values of all groups; [`Encoded`] for who merges it elsewhere.
///
/// Whatever way the values are cut into pieces, and in whatever order pieces are merged, [`Accumulator::finish`] gives the
/// same bits.
pub trait Accumulator: Encoded + Debug + Send + Sync {
    /// How many groups there are states of.
    fn len(&self) -> usize;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes states of no values, up to so many in all.
    fn resize(&mut self, groups: usize);

    /// Takes in a piece. All groups are below [`Accumulator::len`].
    ///
    /// # Errors
    /// `internal-error` for values of another type.
    fn update(&mut self, target: Target<'_>, piece: &Piece<'_>) -> Result<()>;

    /// Takes in `n` rows of the one value of a piece.
    ///
    /// # Errors
    /// `internal-error` for values of another type.
    fn repeat(&mut self, group: usize, one: &Piece<'_>, n: u64) -> Result<()>;

    /// Takes in `n` values of which the exact sum is known, for aggregates that need no more.
    ///
    /// # Errors
    /// `internal-error` for others, and for a sum of another type.
    fn add_total(&mut self, _group: usize, _total: &Total, _n: u64) -> Result<()> {
        Err(internal("an aggregate that needs more than a sum"))
    }

    /// Takes in what another accumulator of the same aggregate knows of its groups: of group `i` into group `to[i]`.
    ///
    /// # Errors
    /// `internal-error` for another aggregate.
    fn merge(&mut self, other: &dyn Accumulator, to: &[u32]) -> Result<()>;

    /// The values of the groups in `order`, found by so many threads. What it knows is used up.
    ///
    /// # Errors
    /// `arithmetic-overflow` if a sum of integers does not fit in its type.
    fn finish(&mut self, order: &[usize], threads: usize) -> Result<Finished>;

    /// What some aggregates that share what it knows come to: those of which [`Aggregate::shares`] says so, or its own alone.
    ///
    /// # Errors
    /// As [`Accumulator::finish`].
    fn finish_each(&mut self, _: &[Aggregate], order: &[usize], threads: usize) -> Result<Vec<Finished>> {
        Ok(vec![self.finish(order, threads)?])
    }

    /// The value of one group so far.
    ///
    /// # Errors
    /// As [`Accumulator::finish`].
    fn value(&self, group: usize) -> Result<Scalar>;

    /// Bytes that it takes.
    fn memory_bytes(&self) -> u64;

    /// The most bytes more that taking in so many values takes, for a moment too.
    fn growth(&self, _values: u64) -> u64 {
        0
    }

    /// Makes room for so many values that are to come, where each is kept.
    fn expect_values(&mut self, _values: u64) {}

    /// The most bytes more that [`Accumulator::repeat`] of so many rows takes.
    fn repeating(&self, n: u64) -> u64 {
        self.growth(n)
    }

    /// The most bytes more that merging takes, for a moment too.
    fn merging(&self, _other: &dyn Accumulator) -> u64 {
        0
    }

    /// For [`Accumulator::merge`].
    fn as_any(&self) -> &dyn Any;
}

/// The values of groups.
#[derive(Clone, Debug)]
pub enum Finished {
    /// One value for each.
    Values(Vector),
    /// A histogram for each.
    Histograms(Vec<Scalar>),
}

impl Finished {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Self::Values(v) => v.len(),
            Self::Histograms(v) => v.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    pub fn scalar(&self, i: usize) -> Scalar {
        match self {
            Self::Values(v) => v.scalar(i),
            Self::Histograms(v) => v[i].clone(),
        }
    }

    /// A column of numbers of which NaN is missing.
    pub(super) fn floats(values: Vec<f64>) -> Result<Self> {
        Ok(Self::Values(Vector::new(Values::F64(values), None)?))
    }
}

/// Feeds `n` rows of a vector of the type `input`, the values of which `target` tells the groups.
///
/// # Errors
/// `type-mismatch` for a vector of another type; the first row that failed.
pub fn feed(
    to: &mut dyn Accumulator,
    input: ValueType,
    target: Target<'_>,
    vector: &Vector,
    n: usize,
) -> Result<()> {
    with_piece(vector, input, n, |piece| to.update(target, piece))
}

/// Calls `f` with `n` rows of a vector as one piece of the type `input`.
///
/// # Errors
/// As [`feed`], and those of `f`.
pub fn with_piece<T>(
    vector: &Vector,
    input: ValueType,
    n: usize,
    f: impl FnOnce(&Piece<'_>) -> Result<T>,
) -> Result<T> {
    let vector = vector.widen(input)?;
    let vector = if vector.is_constant() || vector.failed_rows().is_some() || vector.len() != n {
        std::borrow::Cow::Owned(vector.into_owned().sound()?.into_rows(n)?)
    } else {
        vector
    };
    let present = vector.valid.as_ref().map(|v| v.bits(0));
    match &vector.values {
        Values::Bool(v) => f(&Piece::Bool(v, present)),
        Values::I64(v) => f(&Piece::I64(v, present)),
        Values::U64(v) => f(&Piece::U64(v, present)),
        Values::Str(v) => f(&Piece::Str(v.all(), present)),
        Values::F64(v) => match present {
            None => f(&Piece::F64(v)),
            Some(p) => {
                let or_nan = |(i, &x): (usize, &f64)| if p.get(i) { x } else { f64::NAN };
                f(&Piece::F64(&v.iter().enumerate().map(or_nan).collect::<Vec<_>>()))
            }
        },
    }
}

/// Groups of which the values are found by one thread at least.
const SHARE: usize = 1 << 10;

/// The value of each group in `order`, by so many threads.
pub(super) fn of_each(order: &[usize], threads: usize, of: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
    let mut values = vec![0.0; order.len()];
    let (share, of) = (order.len().div_ceil(threads.max(1)).max(SHARE), &of);
    std::thread::scope(|scope| {
        for (values, groups) in values.chunks_mut(share).zip(order.chunks(share)) {
            let mut find =
                move || values.iter_mut().zip(groups).for_each(|(value, &group)| *value = of(group));
            if order.len() <= share {
                find();
            } else {
                scope.spawn(find);
            }
        }
    });
    values
}

pub(super) fn wrong_piece(piece: &Piece<'_>) -> Error {
    let kind = match piece {
        Piece::Rows(_) => "rows",
        Piece::Bool(..) => "bool",
        Piece::I64(..) => "int64",
        Piece::U64(..) => "uint64",
        Piece::F32(_) => "float32",
        Piece::F64(_) => "float64",
        Piece::Str(..) => "text",
    };
    internal(&format!("{kind} fed to an aggregate of another type"))
}

/// The other accumulator, which has to be of the same type.
pub(super) fn same<T: 'static>(other: &dyn Accumulator) -> Result<&T> {
    other.as_any().downcast_ref().ok_or_else(|| internal("states of different aggregates merged"))
}

pub(super) fn internal(message: &str) -> Error {
    Error::new(ErrorKind::Internal, message)
}

/// Bytes of a vector's places.
pub(super) fn bytes<T>(v: &Vec<T>) -> u64 {
    (v.capacity() * size_of::<T>()) as u64
}

/// Makes a vector so long, with no room to spare: who asks for groups asks for many at once.
pub(super) fn grow<T: Clone>(v: &mut Vec<T>, len: usize, value: T) {
    if v.capacity() == 0 {
        // Zeros come from the system as they are, and cost nothing where they are never looked at.
        *v = vec![value; len];
        return;
    }
    v.reserve_exact(len.saturating_sub(v.len()));
    v.resize(len.max(v.len()), value);
}
