//! How a query's memory is shared out.
//!
//! A quarter is for decoded chunks that more than one tile wants, a quarter for tiles at work and on their way, with the
//! instances of functions that came as code, and three quarters are the most that may be held of what grows with the rows:
//! sort keys, groups, rows seen. Rarely are all of them in use; if they are, that is a quarter more than the limit.

use std::fmt::Display;

use sieva_types::{Error, ErrorKind, Result};

use crate::bind::Value;
use crate::exec::{ExecOptions, Execution};
use crate::values::ValueType;

/// Bytes that tiles at work may take, however low the limit is: less would make tiles of single rows.
const LEAST_AT_WORK: u64 = 1 << 20;
/// Bytes of a value of one row while it is computed with: the number, and whether it is there.
const VALUE_BYTES: u64 = 9;
/// What a text is taken to need at least.
const TEXT_BYTES: u64 = 64;
/// Arrays of at most this many elements (coordinates) are read whole and kept.
const SMALL_ARRAY: u64 = 1 << 20;
/// Bytes of a position that is fetched, besides its value: the position in several orders, and where it lies.
const FETCH_BYTES: u64 = 72;

/// The most that what grows with the rows may take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    /// Bytes of it.
    pub bytes: u64,
    /// The limit of the query, for messages.
    limit: u64,
}

impl Room {
    /// Whether `need` bytes of `what` are allowed.
    ///
    /// # Errors
    /// `memory-limit`.
    pub fn check(&self, need: u64, what: impl Display) -> Result<()> {
        if need <= self.bytes {
            return Ok(());
        }
        let message = format!(
            "{what} would take {need} bytes or more; of the limit of {} bytes {} are for that",
            self.limit, self.bytes
        );
        Err(Error::new(ErrorKind::MemoryLimit, message)
            .hint("ask for less, or raise the limit with --memory (memory= in Python)"))
    }
}

impl ExecOptions {
    /// What grows with the rows may take this.
    pub fn room(&self) -> Room {
        Room { bytes: self.room.unwrap_or(self.memory / 4 * 3), limit: self.memory }
    }

    /// Bytes of the tiles at work or on their way, of all threads.
    pub(super) fn at_work(&self) -> u64 {
        (self.memory / 4).saturating_sub(self.code).max(LEAST_AT_WORK)
    }

    /// How many rows of `row` bytes each thread may work on at once.
    pub(crate) fn rows_at_work(&self, row: u64) -> u64 {
        (self.at_work() / self.threads.max(1) as u64 / row.max(1)).max(1)
    }

    /// The error of a query that was stopped.
    ///
    /// # Errors
    /// `cancelled`.
    pub(crate) fn check_cancel(&self) -> Result<()> {
        crate::exec::pool::check(&self.cancel)
    }
}

impl Execution {
    /// Bytes that a row takes at most while a value is computed.
    pub(super) fn computing_bytes(&self, value: &Value) -> u64 {
        let mut stored = 0;
        value.walk(&mut |v| {
            if let Value::Array { array, .. } | Value::Date(_, array) = v {
                stored = stored.max(self.element_bytes(*array));
            }
        });
        live_vectors(value) * VALUE_BYTES.max(stored)
    }

    /// Bytes of a row of a column of a result.
    pub(super) fn column_bytes(&self, value: &Value) -> u64 {
        match value {
            Value::Array { array, .. } => self.element_bytes(*array) + 1,
            _ if self.bound.type_of(value) == Some(ValueType::Str) => TEXT_BYTES,
            _ => VALUE_BYTES,
        }
    }

    /// Bytes of an element of an array, as it is worked with.
    pub(crate) fn element_bytes(&self, array: usize) -> u64 {
        let size = self.readers[array].layout().element_size as u64;
        match self.source.schema().arrays[self.bound.arrays[array].index].dtype {
            sieva_types::DType::Str => size.max(TEXT_BYTES) + size_of::<String>() as u64,
            _ => size.max(8),
        }
    }

    /// How many elements of an array may be held at once where they are fetched: an eighth of the limit for each thread.
    pub(super) fn room_for(&self, array: usize) -> u64 {
        (self.options.memory / 8 / self.options.threads.max(1) as u64 / self.element_bytes(array)).max(1)
    }

    /// Whether an array is fetched as a whole, once, whichever of its elements are wanted.
    pub(crate) fn is_small(&self, array: usize, shape: &[u64]) -> bool {
        let n = shape.iter().fold(1_u64, |n, &m| n.saturating_mul(m));
        n <= SMALL_ARRAY.min(self.room_for(array))
    }

    /// How many rows of `values` may be fetched at once.
    pub fn rows_fetched<'v>(&self, values: impl Iterator<Item = &'v Value>) -> usize {
        let (mut held, mut most) = (FETCH_BYTES, 0);
        for value in values {
            held += 2 * self.column_bytes(value);
            most = most.max(self.computing_bytes(value));
        }
        let rows = self.options.at_work() / (held + most);
        usize::try_from(rows).unwrap_or(usize::MAX).max(1)
    }
}

/// Vectors that are held at once while a value is computed.
fn live_vectors(value: &Value) -> u64 {
    let children = value.children();
    let waiting = children.iter().enumerate().map(|(before, child)| before as u64 + live_vectors(child));
    waiting.max().unwrap_or(0).max(children.len() as u64 + 1).max(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_says_what_would_be_needed() {
        let options = ExecOptions { memory: 1 << 20, ..ExecOptions::default() };
        let room = options.room();
        assert!(room.check(3 << 18, "7 groups").is_ok());
        let e = room.check((3 << 18) + 1, "7 groups").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::MemoryLimit);
        assert_eq!(
            e.message(),
            "7 groups would take 786433 bytes or more; of the limit of 1048576 bytes 786432 are for that"
        );
    }
}
