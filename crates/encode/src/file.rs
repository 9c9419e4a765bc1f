//! A result as a file on disk.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use sieva::{Error, Result};

use crate::encoded::Encoded;
use crate::plan::WINDOW;

impl Encoded {
    /// Writes all bytes to the file at `path`, in the place of what it had. The caller gives it its name when it is
    /// complete.
    ///
    /// # Errors
    /// As [`Encoded::read_at`]; `io-error` and the like of writing.
    pub fn write(&self, path: &Path) -> Result<()> {
        let failed = |e: &std::io::Error| Error::io(format!("cannot write '{}'", path.display()), e);
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(path);
        let mut file = opened.map_err(|e| failed(&e))?;
        let stream = self.stream(0..self.len(), WINDOW as usize)?;
        let mut block = vec![0; self.len().min(WINDOW) as usize];
        loop {
            match stream.next_block(&mut block)? {
                (_, 0) => return Ok(()),
                (_, n) => file.write_all(&block[..n]).map_err(|e| failed(&e))?,
            }
        }
    }
}
