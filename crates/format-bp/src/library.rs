//! The C library of ADIOS2: where it is looked for, and the one lock under which it is called.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sieva_types::{Error, ErrorKind, Result};

use crate::abi::Functions;

/// The variable that names the library, or the directory that it is in.
pub const VARIABLE: &str = "SIEVA_ADIOS2";

/// Names that the system's loader is asked for, one after the other.
const NAMES: [&str; 4] =
    ["libadios2_c.so.2.12", "libadios2_c.so.2.11", "libadios2_c.so.2.10", "libadios2_c.so"];

/// What is put before the name of a file by all versions.
const STEM: &str = "libadios2_c.so";

static LOADED: Mutex<Option<&'static Loaded>> = Mutex::new(None);

struct Loaded {
    functions: Functions,
    lock: Mutex<()>,
}

/// The functions of the library, which nobody else calls meanwhile.
pub(crate) struct Api {
    functions: &'static Functions,
    _alone: MutexGuard<'static, ()>,
}

impl std::ops::Deref for Api {
    type Target = Functions;

    fn deref(&self) -> &Functions {
        self.functions
    }
}

/// What [`VARIABLE`] says, if it is set. A worker process is told so where to look.
pub fn told_place() -> Option<OsString> {
    std::env::var_os(VARIABLE).filter(|place| !place.is_empty())
}

/// The library, loaded if it is not yet; waits for who calls it now.
///
/// # Errors
/// `unsupported` where there is none, with what was tried.
pub(crate) fn api() -> Result<Api> {
    let loaded = {
        let mut slot = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        match *slot {
            Some(loaded) => loaded,
            None => *slot.insert(Box::leak(Box::new(load()?))),
        }
    };
    let alone = loaded.lock.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Api { functions: &loaded.functions, _alone: alone })
}

fn load() -> Result<Loaded> {
    if let Some(place) = told_place() {
        return load_from(&file_at(Path::new(&place)))
            .map_err(|why| missing(&format!("'{}' cannot be loaded: {why}", place.display())));
    }
    let mut tried = Vec::new();
    for name in NAMES {
        match load_from(OsStr::new(name)) {
            Ok(loaded) => return Ok(loaded),
            Err(why) => tried.push(why),
        }
    }
    // Of a library that is there and lacks something the reason is of interest, not of names that are nowhere.
    let why = tried.iter().find(|why| !why.contains("No such file")).or(tried.last());
    Err(missing(why.map_or("it is nowhere", String::as_str)))
}

/// The library in a directory, or the file itself.
fn file_at(place: &Path) -> OsString {
    let plain = place.join(STEM);
    if !place.is_dir() || plain.exists() {
        let file = if place.is_dir() { plain } else { place.to_path_buf() };
        return file.into_os_string();
    }
    let names = std::fs::read_dir(place).into_iter().flatten().flatten();
    let found = names
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(STEM)));
    found.min().unwrap_or(plain).into_os_string()
}

fn load_from(name: &OsStr) -> std::result::Result<Loaded, String> {
    // SAFETY: what the loader or the user's own environment names is run in this process, as any library that a program is
    // linked to.
    let library = unsafe { libloading::Library::new(name) }.map_err(|e| e.to_string())?;
    // SAFETY: it is ADIOS2's by its name and its symbols; it is never unloaded.
    let functions = unsafe { Functions::of(&library) }.map_err(|e| e.to_string())?;
    std::mem::forget(library);
    Ok(Loaded { functions, lock: Mutex::new(()) })
}

fn missing(why: &str) -> Error {
    Error::new(ErrorKind::Unsupported, format!("BP files are read by the C library of ADIOS2: {why}")).hint(
        format!(
            "install ADIOS2 2.10 or newer and say where its library is: {VARIABLE}=/path/to/libadios2_c.so"
        ),
    )
}
