//! The formats of results.

use sieva::{Error, ErrorKind, Result};

/// The format of an encoded result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// netCDF classic: 64-bit offset (CDF-2), or CDF-5 where types or sizes ask for it.
    #[default]
    Netcdf,
}

impl Format {
    /// All formats, the default first.
    pub const ALL: [Format; 1] = [Self::Netcdf];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Netcdf => "netcdf",
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
