//! The worker's side of isolation: which file it opens, and what that may lead to.

use std::sync::Arc;

use sieva_store::guard::{Gate, OneFile};
use sieva_types::Result;

use crate::{OpenOptions, Source};

/// The main loop of a worker process, for files of all formats. Where the process that asks has a gate, which cannot be
/// asked from here, the worker opens the file itself and nothing else, and refuses the rest in the words of a gate.
///
/// # Errors
/// Those of [`sieva_isolate::serve`].
pub fn serve_isolated() -> Result<()> {
    sieva_isolate::serve(|request| {
        let mut options = OpenOptions {
            dims: request.dims.clone(),
            external_roots: request.external_roots.clone(),
            ..OpenOptions::default()
        };
        if let Some(identity) = request.alone {
            options.gate = Gate::of(Arc::new(OneFile::new(identity)));
        }
        Source::open(&request.path, &options).map(|source| Arc::clone(source.reader()))
    })
}
