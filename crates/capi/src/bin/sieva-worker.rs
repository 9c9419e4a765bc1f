//! The process that parses a file for another (`sieva_options.isolated`): started by the library with a socket as its
//! standard input, under limits that it sets itself. `docs/understanding/hostile-files.md` says against what.

use std::process::ExitCode;

fn main() -> ExitCode {
    match sieva::serve_isolated() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("sieva-worker: {e}");
            ExitCode::FAILURE
        }
    }
}
