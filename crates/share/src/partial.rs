//! A file that is fetched: beside its name until all of it is here and right, and gone on with by who comes later.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use sieva::local::{self, Dir};
use sieva::{Error, ErrorKind, Result};
use sieva_store::name_of;
use xxhash_rust::xxh3::Xxh3;

use crate::made::{PIECE, digest};

/// Characters of the file's own name that are repeated in that of its part.
const SHOWN: usize = 40;

/// The part of a file that is here, held by this process.
pub(crate) struct Partial {
    dir: Dir,
    file: File,
    name: PathBuf,
    target: PathBuf,
    path: PathBuf,
}

impl Partial {
    /// The part of the file that will be at `path`; empty where there is none yet.
    ///
    /// # Errors
    /// `invalid-value` while another process fetches it, and for what is no file there; `permission-denied` for a part of
    /// somebody else.
    pub fn open(path: &Path) -> Result<Self> {
        sieva_store::check_name(path, "the path of a file")?;
        let Some(target) = path.file_name() else {
            let message = format!("'{}' names no file", path.display());
            return Err(Error::new(ErrorKind::InvalidValue, message).hint("name one: -o FILE"));
        };
        local::replaceable(path)?;
        let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let dir = local::told("opening", folder, Dir::open(folder))?;
        let text = target.to_string_lossy();
        let shown: String = text.chars().take(SHOWN).collect();
        let name = PathBuf::from(format!(".{shown}.{}.part", &name_of(text.as_bytes())[..8]));
        let file = local::told("writing", path, held(&dir, &name))?.ok_or_else(|| {
            let message = format!("another process fetches '{}'", path.display());
            Error::new(ErrorKind::InvalidValue, message).hint("wait for it, or name another file")
        })?;
        Ok(Self { dir, file, name, target: target.into(), path: path.to_owned() })
    }

    /// Makes it so many bytes with this checksum, of which `more` gives those that are not here; says how many came. What came
    /// stays where it fails.
    ///
    /// # Errors
    /// `corrupt-file` for other bytes; what `more` says.
    pub fn fill(
        &mut self,
        size: u64,
        checksum: &str,
        more: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<u64> {
        let begun = self.told(|file| Ok(file.metadata()?.len()))?;
        let mut came = 0;
        // What is here may be of something else: then all of it comes.
        let tries = if begun == 0 || begun > size { &[0][..] } else { &[begun, 0] };
        for &keep in tries {
            self.told(|file| file.set_len(keep))?;
            let mut sum = Xxh3::new();
            self.told(|file| hash(file, &mut sum))?;
            let mut piece = vec![0; PIECE.min(usize::try_from(size - keep).unwrap_or(PIECE))];
            let mut at = keep;
            while at < size {
                let n = usize::try_from(size - at).map_or(piece.len(), |left| left.min(piece.len()));
                more(at, &mut piece[..n])?;
                sum.update(&piece[..n]);
                self.told(|file| file.write_all(&piece[..n]))?;
                at += n as u64;
                came += n as u64;
            }
            if digest(&sum) == checksum {
                return Ok(came);
            }
        }
        self.told(|file| file.set_len(0))?;
        Err(Error::new(ErrorKind::CorruptFile, "its checksum is not the one that was put"))
    }

    /// Puts it under its name, in place of what is there.
    pub fn publish(self) -> Result<()> {
        local::replaceable(&self.path)?;
        let moved = self.file.sync_all().and_then(|()| self.dir.rename(&self.name, &self.target));
        local::told("writing", &self.path, moved.and_then(|()| self.dir.sync()))
    }

    /// Removes it.
    pub fn discard(self) {
        let _ = self.dir.remove_file(&self.name);
    }

    fn told<T>(&mut self, f: impl FnOnce(&mut File) -> io::Result<T>) -> Result<T> {
        local::told("writing", &self.path, f(&mut self.file))
    }
}

/// Opens or makes the part and takes its lock; `None` where another process has it.
fn held(dir: &Dir, name: &Path) -> io::Result<Option<File>> {
    for _ in 0..16 {
        let flags = OFlags::RDWR | OFlags::CREATE;
        let file = dir.open_file(name, flags, Mode::from_raw_mode(0o666))?;
        let meta = local::regular(&file)?;
        if meta.uid() != rustix::process::geteuid().as_raw() || meta.nlink() > 1 {
            let why = "what is beside it as its part was put there by somebody else";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(e) => return Err(e),
        }
        // Who had it may have put it under its final name meanwhile: then it is no part any more.
        match dir.open_regular(name).and_then(|there| there.metadata()) {
            Ok(there) if (there.dev(), there.ino()) == (meta.dev(), meta.ino()) => return Ok(Some(file)),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
    }
    Ok(None)
}

/// Adds all bytes of a file to a sum, and leaves it at its end.
pub(crate) fn hash(file: &mut File, sum: &mut Xxh3) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut piece = vec![0; 1 << 20];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(()),
            n => sum.update(&piece[..n]),
        }
    }
}
