//! The bytes behind a foreign source: not what its arrays are read from, but what tells its states apart.

use std::path::PathBuf;
use std::time::SystemTime;

use sieva_store::{Counters, FileStore, RangedRead, file_id};
use sieva_types::{Error, ErrorKind, Result};

/// One of the files, as it was when the source was opened.
#[derive(Debug)]
struct Part {
    path: PathBuf,
    /// Where it begins among the bytes of all of them.
    start: u64,
    len: u64,
    modified: Option<SystemTime>,
    id: (u64, u64),
}

/// The files that a foreign source is kept in, one after the other; none where it is in no file.
#[derive(Debug)]
pub struct ForeignStore {
    name: String,
    parts: Vec<Part>,
    len: u64,
    version: String,
    counters: Counters,
}

impl ForeignStore {
    /// The store of a source that messages call `name`. `version` changes when the source does and the times and lengths
    /// of `files` do not.
    ///
    /// # Errors
    /// `file-not-found` and the like; `invalid-value` where there are neither files nor a version, as an index of
    /// another state of the source would not be noticed.
    pub fn new(name: impl Into<String>, files: &[PathBuf], version: &str) -> Result<Self> {
        if files.is_empty() && version.is_empty() {
            let message = "a source without files needs a version that tells its states apart";
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let (mut parts, mut len, mut all) = (Vec::with_capacity(files.len()), 0_u64, version.to_string());
        for path in files {
            let (bytes, modified, id) = look(path)?;
            let end = len.checked_add(bytes);
            parts.push(Part { path: path.clone(), start: len, len: bytes, modified, id });
            len = end.ok_or_else(|| Error::corrupt(format!("'{}' is too long", path.display())))?;
            let since = modified.and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
            all += &format!(" {bytes}@{}", since.map_or(0, |t| t.as_nanos()));
        }
        // Thousands of files have a short version, too.
        let version = if parts.len() > 4 { short(&all) } else { all.trim().to_string() };
        Ok(Self { name: name.into(), parts, len, version, counters: Counters::default() })
    }
}

fn look(path: &PathBuf) -> Result<(u64, Option<SystemTime>, (u64, u64))> {
    let meta =
        std::fs::metadata(path).map_err(|e| Error::io(format!("cannot look at '{}'", path.display()), &e))?;
    Ok((meta.len(), meta.modified().ok(), file_id(&meta)))
}

/// 128 bits of FNV-1a: it need not withstand an enemy, who could change the files unnoticed anyway.
fn short(text: &str) -> String {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let hash = text.bytes().fold(BASIS, |h, b| (h ^ u128::from(b)).wrapping_mul(PRIME));
    format!("{hash:032x}")
}

impl RangedRead for ForeignStore {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(out.len() as u64).filter(|&end| end <= self.len);
        let Some(end) = end else {
            let (name, len, n) = (&self.name, self.len, out.len());
            return Err(Error::corrupt(format!("'{name}': {n} bytes at {offset} asked for, it has {len}")));
        };
        for part in &self.parts {
            let (low, high) = (part.start.max(offset), (part.start + part.len).min(end));
            if low < high {
                let target = &mut out[(low - offset) as usize..(high - offset) as usize];
                FileStore::open(&part.path)?.read_exact_at(low - part.start, target)?;
            }
        }
        Ok(())
    }

    fn check_unchanged(&self) -> Result<()> {
        for part in &self.parts {
            if look(&part.path)? != (part.len, part.modified, part.id) {
                let message = format!("'{}' was changed since it was opened", part.path.display());
                return Err(Error::new(ErrorKind::StaleSource, message).hint("open it again"));
            }
        }
        Ok(())
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
