//! A result as a file on disk.

use std::os::unix::fs::FileExt;
use std::path::Path;

use sieva::local::{self, Aside};
use sieva::{Error, Result};

use crate::encoded::Encoded;
use crate::file_layout::WINDOW;

impl Encoded {
    /// Writes all bytes to a file that takes the name `path` when it is complete, in the place of what has it.
    ///
    /// # Errors
    /// As [`Encoded::read_at`]; `invalid-value` for a directory, a device, a pipe or a socket; `io-error` and the like of
    /// writing.
    pub fn write(&self, path: &Path) -> Result<()> {
        local::replaceable(path)?;
        let failed = |e: &std::io::Error| Error::io(format!("cannot write '{}'", path.display()), e);
        let mut aside = Aside::new(path, 0o666).map_err(|e| failed(&e))?;
        let stream = self.stream_any_order(WINDOW as usize)?;
        let mut block = vec![0; WINDOW as usize];
        loop {
            match stream.next_block(&mut block)? {
                (_, 0) => return aside.publish(false).map_err(|e| failed(&e)),
                (at, n) => (aside.file())
                    .and_then(|file| file.write_all_at(&block[..n], at))
                    .map_err(|e| failed(&e))?,
            }
        }
    }
}
