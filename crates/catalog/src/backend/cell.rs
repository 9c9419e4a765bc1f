//! What a column of a row holds.

use sieva_types::{Error, ErrorKind, Result};

/// One value of a row or a parameter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Null,
    Int(i64),
    Real(f64),
    Text(String),
    Blob(Vec<u8>),
}

impl From<i64> for Cell {
    fn from(v: i64) -> Self {
        Self::Int(v)
    }
}

impl From<f64> for Cell {
    fn from(v: f64) -> Self {
        Self::Real(v)
    }
}

impl From<&str> for Cell {
    fn from(v: &str) -> Self {
        Self::Text(v.to_owned())
    }
}

impl From<String> for Cell {
    fn from(v: String) -> Self {
        Self::Text(v)
    }
}

impl From<&[u8]> for Cell {
    fn from(v: &[u8]) -> Self {
        Self::Blob(v.to_vec())
    }
}

impl From<Vec<u8>> for Cell {
    fn from(v: Vec<u8>) -> Self {
        Self::Blob(v)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(v: Option<T>) -> Self {
        v.map_or(Self::Null, Into::into)
    }
}

/// One row of an answer. A column of another type than expected means that the database is damaged.
pub(crate) struct Row<'a>(pub &'a [Cell]);

impl Row<'_> {
    fn damaged<T>(&self, column: usize, expected: &str) -> Result<T> {
        let message =
            format!("column {column} of a row of the catalog holds {:?}, not {expected}", self.0.get(column));
        Err(Error::new(ErrorKind::CorruptFile, message.chars().take(300).collect::<String>()))
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64> {
        match self.0.get(column) {
            Some(Cell::Int(v)) => Ok(*v),
            _ => self.damaged(column, "an integer"),
        }
    }

    /// An integer that counts something.
    pub(crate) fn count(&self, column: usize) -> Result<u64> {
        u64::try_from(self.int(column)?).or_else(|_| self.damaged(column, "a count"))
    }

    pub(crate) fn optional_count(&self, column: usize) -> Result<Option<u64>> {
        if self.0.get(column) == Some(&Cell::Null) { Ok(None) } else { self.count(column).map(Some) }
    }

    pub(crate) fn real(&self, column: usize) -> Result<f64> {
        match self.0.get(column) {
            Some(Cell::Real(v)) => Ok(*v),
            // SQLite has no NaN: it stores NULL.
            Some(Cell::Null) => Ok(f64::NAN),
            _ => self.damaged(column, "a float"),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<&str> {
        match self.0.get(column) {
            Some(Cell::Text(v)) => Ok(v),
            _ => self.damaged(column, "a text"),
        }
    }

    pub(crate) fn optional_text(&self, column: usize) -> Result<Option<&str>> {
        if self.0.get(column) == Some(&Cell::Null) { Ok(None) } else { self.text(column).map(Some) }
    }

    pub(crate) fn blob(&self, column: usize) -> Result<&[u8]> {
        match self.0.get(column) {
            Some(Cell::Blob(v)) => Ok(v),
            _ => self.damaged(column, "bytes"),
        }
    }

    pub(crate) fn optional_blob(&self, column: usize) -> Result<Option<&[u8]>> {
        if self.0.get(column) == Some(&Cell::Null) { Ok(None) } else { self.blob(column).map(Some) }
    }
}
