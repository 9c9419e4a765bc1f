//! The list of formats.

use std::fmt;
use std::hash::{Hash, Hasher};

use arrow_schema::Schema;
use sieva::{Error, ErrorKind, Result, printable};

use crate::arrow::Arrow;
use crate::csv::Csv;
use crate::hdf5::Hdf5;
use crate::json::Json;
use crate::netcdf::Netcdf;
use crate::parquet::Parquet;
use crate::table::Table;
use crate::writer::{Making, Out, ResultWriter, RowSink};

/// All formats, in the order in which messages and the command line list them.
static WRITERS: [&dyn ResultWriter; 7] = [&Table, &Csv, &Json, &Arrow, &Parquet, &Netcdf, &Hdf5];

/// The format of an encoded result; that of no choice is netCDF.
///
/// ```
/// use sieva_encode::Format;
///
/// let names: Vec<&str> = Format::all().map(Format::name).collect();
/// assert!(names.contains(&"parquet"));
/// assert_eq!(Format::named("csv")?.suffixes(), ["csv"]);
/// assert_eq!(Format::of_suffix("Feather").map(Format::name), Some("arrow"));
/// # Ok::<(), sieva::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Format(pub(crate) &'static dyn ResultWriter);

impl Format {
    /// All formats.
    pub fn all() -> impl Iterator<Item = Self> {
        WRITERS.into_iter().map(Self)
    }

    /// The format of a name.
    ///
    /// # Errors
    /// `invalid-value`, listing the names.
    pub fn named(name: &str) -> Result<Self> {
        Self::all().find(|f| f.name() == name).ok_or_else(|| unknown(name))
    }

    /// The format that a name or a suffix stands for, in letters of either case.
    ///
    /// # Errors
    /// `invalid-value`, listing the names.
    pub fn of_name_or_suffix(text: &str) -> Result<Self> {
        let named = Self::all().find(|f| f.name().eq_ignore_ascii_case(text));
        named.or_else(|| Self::of_suffix(text)).ok_or_else(|| unknown(text))
    }

    /// The format of files whose names end with a point and `suffix`, in letters of either case.
    pub fn of_suffix(suffix: &str) -> Option<Self> {
        Self::all().find(|f| f.suffixes().iter().any(|s| s.eq_ignore_ascii_case(suffix)))
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// What names of its files end with, without the point; the usual one first.
    pub fn suffixes(self) -> &'static [&'static str] {
        self.0.suffixes()
    }

    /// Whether the place of each value is known before one is read; else a file is written row by row.
    pub fn is_laid_out(self) -> bool {
        matches!(self.0.making(), Making::LaidOut { .. })
    }

    /// Whether values can be deflated.
    pub fn is_deflatable(self) -> bool {
        self.is_laid_out()
    }

    /// Whether it can be written to a pipe.
    pub fn is_for_pipes(self) -> bool {
        self.0.is_for_pipes()
    }

    /// Begins a file of rows with the columns of `schema`, which is written batch after batch.
    ///
    /// # Errors
    /// `unsupported` of a format that is laid out as a whole ([`Format::is_laid_out`]: take
    /// [`Encoded`](crate::Encoded)), of one that was not compiled in, and of columns that it has no type for; those of
    /// writing.
    pub fn begin<'a>(self, schema: &Schema, out: Out<'a>) -> Result<Box<dyn RowSink + 'a>> {
        match self.0.making() {
            Making::Rows(begin) => begin(schema, out),
            Making::LaidOut { .. } => {
                let message = format!("{} is not written row by row", self.name());
                Err(Error::new(ErrorKind::Unsupported, message))
            }
        }
    }
}

fn unknown(name: &str) -> Error {
    let names: Vec<&str> = Format::all().map(Format::name).collect();
    let message = format!("'{}' is no format of results: {}", printable(name), names.join(", "));
    Error::new(ErrorKind::InvalidValue, message)
}

impl Default for Format {
    fn default() -> Self {
        Self(&Netcdf)
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl Hash for Format {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_two_formats_share_a_name_or_a_suffix() {
        let names: HashSet<&str> = Format::all().map(Format::name).collect();
        let suffixes: Vec<&str> = Format::all().flat_map(Format::suffixes).copied().collect();
        assert_eq!(names.len(), WRITERS.len());
        assert_eq!(suffixes.iter().collect::<HashSet<_>>().len(), suffixes.len());
        for format in Format::all() {
            assert_eq!(Format::named(format.name()).unwrap(), format);
            assert!(!format.suffixes().is_empty());
            for suffix in format.suffixes() {
                assert_eq!(Format::of_suffix(&suffix.to_uppercase()), Some(format));
            }
        }
    }

    #[test]
    fn an_unknown_format_is_told_with_those_that_there_are() {
        let e = Format::named("zarr").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidValue);
        assert_eq!(
            e.message(),
            "'zarr' is no format of results: table, csv, json, arrow, parquet, netcdf, hdf5"
        );
        assert_eq!(Format::of_suffix("zarr"), None);
        assert_eq!(Format::of_name_or_suffix("NETCDF").unwrap(), Format::default());
        assert_eq!(Format::of_name_or_suffix("Cdf").unwrap(), Format::default());
        assert_eq!(Format::of_name_or_suffix("").unwrap_err().kind(), ErrorKind::InvalidValue);
    }
}
