//! Files whose length is known only when they are written: kept in a temporary file without a name.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use sieva::{Error, ErrorKind, Result, unnamed_file};

/// Bytes that are written at once.
const WRITE: usize = 1 << 20;

/// How the message begins of a result that takes more than it may.
const TOO_LONG: &str = "the result takes more than";

/// Whether a result takes more than [`crate::EncodeOptions::spool_limit`]: what to do then, who set the limit knows best.
pub fn is_over_spool_limit(e: &Error) -> bool {
    e.kind() == ErrorKind::MemoryLimit && e.message().starts_with(TOO_LONG)
}

/// A written file; it is gone when this is.
pub(crate) struct Spool {
    file: File,
    /// Its bytes.
    pub len: u64,
}

impl Spool {
    /// Has `write` write a file of `limit` bytes at most to the directory `dir`.
    ///
    /// # Errors
    /// `memory-limit` beyond the limit; `io-error` and the like of the directory; those of `write`.
    pub fn write<R>(
        dir: &Path,
        limit: u64,
        write: impl FnOnce(&mut BufWriter<Limited>) -> Result<R>,
    ) -> Result<(Self, R)> {
        let file =
            unnamed_file(dir).map_err(|e| Error::io(format!("cannot write to '{}'", dir.display()), &e))?;
        let mut out = BufWriter::with_capacity(WRITE, Limited { file, len: 0, limit, is_over: false });
        let written = write(&mut out).and_then(|done| out.flush().map_err(|e| failed(&e)).map(|()| done));
        let (limited, _) = out.into_parts();
        if limited.is_over {
            let message = format!("{TOO_LONG} {limit} bytes in '{}'", dir.display());
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .hint("select less, take it as netCDF or HDF5, which are not written first, or allow more"));
        }
        Ok((Self { file: limited.file, len: limited.len }, written?))
    }

    /// Puts bytes in the place of its first ones.
    ///
    /// # Errors
    /// `io-error` and the like.
    pub fn rewrite(&mut self, head: &[u8]) -> Result<()> {
        self.file.write_all_at(head, 0).map_err(|e| failed(&e))
    }

    /// Fills `to` with the bytes from `offset` on.
    ///
    /// # Errors
    /// `io-error`.
    pub fn read_exact_at(&self, offset: u64, to: &mut [u8]) -> Result<()> {
        self.file
            .read_exact_at(to, offset)
            .map_err(|e| Error::io("cannot read what was written of the result", &e))
    }
}

/// The error of writing a result.
pub(crate) fn failed(e: &io::Error) -> Error {
    Error::io("cannot write the result", e)
}

/// A file that takes only so many bytes.
pub(crate) struct Limited {
    file: File,
    len: u64,
    limit: u64,
    is_over: bool,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.len + bytes.len() as u64 > self.limit {
            self.is_over = true;
            return Err(io::Error::other("more than the limit"));
        }
        let n = self.file.write(bytes)?;
        self.len += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_name_stays() {
        let dir = std::env::temp_dir().join(format!("sieva-spool-{}", std::process::id()));
        std::fs::create_dir(&dir).unwrap();
        let put = |n: usize| {
            move |out: &mut BufWriter<Limited>| out.write_all(&vec![7; n]).map_err(|e| failed(&e)).map(|()| n)
        };
        let (spool, n) = Spool::write(&dir, 3 << 20, put(2 << 20)).unwrap();
        assert_eq!((spool.len, n), (2 << 20, 2 << 20));
        let mut part = [0; 3];
        spool.read_exact_at((2 << 20) - 3, &mut part).unwrap();
        assert_eq!(part, [7; 3]);
        assert!(spool.read_exact_at(2 << 20, &mut part).is_err());
        for n in [(3 << 20) + 1, (3 << 20) + 2_000_000] {
            let e = Spool::write(&dir, 3 << 20, put(n)).err().unwrap();
            assert!(is_over_spool_limit(&e), "{e}");
        }
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        std::fs::remove_dir(&dir).unwrap();
        assert_eq!(Spool::write(&dir, 9, put(1)).err().unwrap().kind(), ErrorKind::FileNotFound);
    }
}
