//! Parquet: row groups of about a million rows, columns that may miss values, pages compressed by zstd. Where it was
//! compiled in (the feature `parquet`).

#[cfg(feature = "parquet")]
mod columns;
#[cfg(feature = "parquet")]
mod file;
#[cfg(feature = "parquet")]
mod types;

use crate::writer::{Making, ResultWriter};

/// The format.
pub(crate) struct Parquet;

impl ResultWriter for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &["parquet"]
    }

    #[cfg(feature = "parquet")]
    fn making(&self) -> Making {
        Making::Rows(file::begin)
    }

    #[cfg(not(feature = "parquet"))]
    fn making(&self) -> Making {
        use sieva::{Error, ErrorKind};

        Making::Rows(|_, _| {
            Err(Error::new(ErrorKind::Unsupported, "results as parquet were not compiled in")
                .hint("take another format"))
        })
    }

    fn is_for_pipes(&self) -> bool {
        false
    }
}
