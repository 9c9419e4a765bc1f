//! The formats of results.

use sieva::{Error, ErrorKind, Result};

/// The format of an encoded result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// netCDF classic: 64-bit offset (CDF-2), or CDF-5 where types or sizes ask for it.
    #[default]
    Netcdf,
    /// HDF5: a data set of one dimension for each column.
    Hdf5,
    /// Arrow IPC, the file format.
    Arrow,
    /// Parquet, where it was compiled in (the feature `parquet`).
    Parquet,
    /// CSV as RFC 4180 has it, with a header line.
    Csv,
}

impl Format {
    /// All formats, the default first.
    pub const ALL: [Format; 5] = [Self::Netcdf, Self::Hdf5, Self::Arrow, Self::Parquet, Self::Csv];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Netcdf => "netcdf",
            Self::Hdf5 => "hdf5",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
            Self::Csv => "csv",
        }
    }

    /// The format of a name.
    ///
    /// # Errors
    /// `invalid-value`, listing the names.
    pub fn named(name: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|f| f.name() == name);
        known.ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.into_iter().map(Self::name).collect();
            let message = format!("'{name}' is no format of results: {}", names.join(", "));
            Error::new(ErrorKind::InvalidValue, message)
        })
    }
}
