//! What is a BP file, by what is there and not by its name, and which files it is made of.

use std::path::{Path, PathBuf};

use sieva_store::RangedRead;
use sieva_store::guard::{Gate, Purpose};
use sieva_types::{Error, ErrorKind, Result};

/// A BP3 file ends in a tag of 24 bytes, 4 bytes of the writer's version, and an index of 28 bytes.
const TAG: &[u8] = b"ADIOS-BP v";
const TAG_FROM_END: u64 = 56;

/// Whether an object is a BP3 file.
pub fn is_bp(store: &dyn RangedRead) -> bool {
    let Some(place) = store.len().checked_sub(TAG_FROM_END) else { return false };
    let mut tag = [0; TAG.len()];
    store.read_exact_at(place, &mut tag).is_ok() && tag == TAG
}

/// Whether a directory is a BP4 or BP5 file.
pub fn is_bp_directory(path: &Path) -> bool {
    path.join("md.idx").is_file()
}

/// The files of a BP file that the library opens: the file itself, or those of a directory, in order.
///
/// # Errors
/// `link-refused` where one is a link out of the directory; `unknown-format` where one is a pipe or a device, which the
/// library would wait for; the gate's refusal.
pub fn own_files(path: &Path, gate: &Gate) -> Result<Vec<PathBuf>> {
    let failed = |e: &std::io::Error| Error::io(format!("cannot look at '{}'", path.display()), e);
    if !gate.look(path, Purpose::Source)?.is_some_and(|found| found.is_dir()) {
        return Ok(vec![path.to_path_buf()]);
    }
    let inside = path.canonicalize().map_err(|e| failed(&e))?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(|e| failed(&e))? {
        let entry = entry.map_err(|e| failed(&e))?.path();
        let Ok(real) = entry.canonicalize() else { continue };
        if !real.starts_with(&inside) {
            let message = format!(
                "'{}' is a link that leads out of the BP directory: it is outside of what may be opened",
                entry.display()
            );
            return Err(
                Error::new(ErrorKind::LinkRefused, message).hint("put a copy in its place if you trust it")
            );
        }
        if !entry.file_name().and_then(|name| name.to_str()).is_some_and(is_read) {
            continue;
        }
        if !gate.look(&entry, Purpose::Source)?.is_some_and(|found| found.is_file()) {
            let message = format!("'{}' is not a regular file", entry.display());
            return Err(
                Error::new(ErrorKind::UnknownFormat, message).hint("a pipe or device is not waited for")
            );
        }
        files.push(entry);
    }
    files.sort();
    Ok(files)
}

/// Whether the library reads a file of this name; others of the directory tell how it was written.
fn is_read(name: &str) -> bool {
    let numbered = ["md.", "mmd.", "data."].iter().find_map(|stem| name.strip_prefix(stem));
    name == "md.idx" || numbered.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}
