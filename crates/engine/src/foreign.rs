//! Sources whose reader somebody else brings.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use sieva_format::ArraySource;

use crate::open::{OpenOptions, Source};

impl Source {
    /// The source that `reader` reads. Messages call it `path`, and its augmentations go beside that.
    ///
    /// Names for dimensions are the reader's to apply ([`crate::ForeignSource::name_dims`]); the options for files that
    /// are opened here mean nothing.
    pub fn from_reader(
        reader: Arc<dyn ArraySource>,
        path: impl Into<PathBuf>,
        options: &OpenOptions,
    ) -> Self {
        Self::from_parts(reader, path.into(), options, None, Instant::now())
    }
}
