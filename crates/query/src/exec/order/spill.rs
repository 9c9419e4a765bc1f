//! A temporary file for what does not fit into memory. It has no name, so that nothing is left of it whatever happens.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sieva_store::unnamed_file;
use sieva_types::{Error, ErrorKind, Result};

/// Bytes that are written at once.
const WRITE: usize = 1 << 20;

/// A file that only so much is written to.
#[derive(Debug)]
pub struct SpillFile {
    file: File,
    /// What is to be written at its end.
    pending: Vec<u8>,
    written: u64,
    limit: u64,
}

impl SpillFile {
    /// A file of at most `limit` bytes in a directory.
    ///
    /// # Errors
    /// `io-error` and the like of the directory.
    pub fn new(dir: &Path, limit: u64) -> Result<Self> {
        let failed = |e| Error::io(format!("cannot make a temporary file in '{}'", dir.display()), &e);
        let file = unnamed_file(dir).map_err(failed)?;
        Ok(Self { file, pending: Vec::with_capacity(WRITE), written: 0, limit })
    }

    /// Its bytes, those that are still to be written among them.
    pub fn len(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Adds bytes at its end.
    ///
    /// # Errors
    /// `memory-limit` beyond its limit; `io-error`, where the disk is full too.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.len() + bytes.len() as u64 > self.limit {
            let message =
                format!("sorting takes more than the {} bytes that may be spilled to disk", self.limit);
            return Err(Error::new(ErrorKind::MemoryLimit, message).hint(super::sort::HINT));
        }
        if self.pending.len() + bytes.len() > WRITE {
            self.flush()?;
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes what is pending: what is read has to be written.
    ///
    /// # Errors
    /// `io-error`.
    pub fn flush(&mut self) -> Result<()> {
        let failed = |e| Error::io("cannot write to a temporary file what does not fit into memory", &e);
        self.file.write_all_at(&self.pending, self.written).map_err(failed)?;
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    /// Fills `to` with the bytes from `offset` on.
    ///
    /// # Errors
    /// `io-error`.
    pub fn read_exact_at(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        let failed = |e| Error::io("cannot read what was written to a temporary file", &e);
        self.file.read_exact_at(to, offset).map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_name_stays() {
        let dir = std::env::temp_dir().join(format!("sieva-spill-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let mut file = SpillFile::new(&dir, 3 << 20).unwrap();
        for i in 0..3 << 10 {
            file.append(&[i as u8; 1 << 10]).unwrap();
        }
        file.flush().unwrap();
        let mut part = [0; 3];
        file.read_exact_at((3 << 20) - 1025, &mut part).unwrap();
        assert_eq!((part, file.len()), ([254, 255, 255], 3 << 20));
        assert_eq!(file.append(&[0]).unwrap_err().kind(), ErrorKind::MemoryLimit);
        assert!(file.read_exact_at(3 << 20, &mut part).is_err());
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir(&dir).unwrap();
        assert_eq!(SpillFile::new(&dir, 9).unwrap_err().kind(), ErrorKind::FileNotFound);
    }
}
