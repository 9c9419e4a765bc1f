//! The process that parses a file for another (`sieva_options.isolated`): started by the library with a socket as its
//! standard input, under limits that it sets itself. `docs/understanding/hostile-files.md` says against what.

use std::process::ExitCode;
use std::sync::Arc;

use sieva::{OpenOptions, Source};

fn main() -> ExitCode {
    let served = sieva::serve_isolated(|request| {
        let options = OpenOptions {
            dims: request.dims.clone(),
            external_roots: request.external_roots.clone(),
            ..OpenOptions::default()
        };
        Source::open(&request.path, &options).map(|source| Arc::clone(source.reader()))
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("sieva-worker: {e}");
            ExitCode::FAILURE
        }
    }
}
