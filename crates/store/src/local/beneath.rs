//! A directory that is open: files in it are named from its descriptor, so that nothing can be put in its place meanwhile,
//! and no link leads out of it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

/// An open directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Dir {
    /// Opens the directory at `path`, links followed.
    ///
    /// # Errors
    /// Those of the system; `NotADirectory`.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OFlags::empty())
    }

    /// A handle of the directory at `path`, links followed, from which files can be opened, and which cannot be listed.
    ///
    /// # Errors
    /// Those of the system; `NotADirectory`.
    pub fn handle(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OFlags::PATH)
    }

    /// Opens the regular file `name` below it for reading; links are followed as long as they stay below it.
    ///
    /// # Errors
    /// Those of the system: `NotFound`, `CrossesDevices` for what leads out; `InvalidData` where it is no regular file;
    /// `Unsupported` where the kernel cannot tell.
    pub fn open_inside(&self, name: &Path) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        self.refuse_database(name, AtFlags::empty())?;
        let file = match rustix::fs::openat2(&self.fd, name, flags, Mode::empty(), how) {
            // Something was renamed while the kernel looked; kernels before 5.6, and sandboxes.
            Err(Errno::AGAIN | Errno::NOSYS | Errno::PERM) => Err(io::ErrorKind::Unsupported.into()),
            opened => opened.map(File::from).map_err(super::opening),
        }?;
        super::regular(&file)?;
        Ok(file)
    }

    /// Refuses a database that this process has open.
    fn refuse_database(&self, name: &Path, flags: AtFlags) -> io::Result<()> {
        super::databases::refuse_file(|| {
            let found = rustix::fs::statat(&self.fd, name, flags).ok()?;
            Some((found.st_dev, found.st_ino))
        })
    }

    /// Opens the directory at `path`, which itself must be no link.
    ///
    /// # Errors
    /// Those of the system; `NotADirectory` where the last part of the path is a link, too.
    pub fn open_no_link(path: &Path) -> io::Result<Self> {
        Self::open_with(path, OFlags::NOFOLLOW)
    }

    fn open_with(path: &Path, more: OFlags) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        Ok(Self { fd, path: path.to_path_buf() })
    }

    /// The path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the system says of it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn metadata(&self) -> io::Result<std::fs::Metadata> {
        File::from(self.fd.try_clone()?).metadata()
    }

    /// Opens the directory `name` below it; no part of `name` may be a link.
    ///
    /// # Errors
    /// Those of the system, as [`Dir::open_file`]; `NotADirectory`.
    pub fn open_dir(&self, name: &Path) -> io::Result<Self> {
        let file = self.open_file(name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        Ok(Self { fd: file.into(), path: self.path.join(name) })
    }

    /// Makes the directory `name` in it, for the user of the process alone.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make_dir(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.fd, name, Mode::RWXU)?)
    }

    /// Makes the directory `name` in it for whoever the process' umask lets; one that is there is taken as it is.
    ///
    /// # Errors
    /// Those of the system.
    pub fn make_shared_dir(&self, name: &Path) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Removes a directory in it, which is empty.
    ///
    /// # Errors
    /// Those of the system; also where it is not empty.
    pub fn remove_dir(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// A path that leads to it whatever is renamed meanwhile, as long as it is open: by its descriptor.
    pub fn through(&self) -> PathBuf {
        let through = PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()));
        // Where there is no /proc, nothing is better than the path.
        if through.exists() { through } else { self.path.clone() }
    }

    /// Opens the regular file `name` below it for reading; no part of `name` may be a link.
    ///
    /// # Errors
    /// Those of the system: `NotFound`; `FilesystemLoop` at a link, `CrossesDevices` for a name that leads out;
    /// `InvalidData` where it is no regular file.
    pub fn open_regular(&self, name: &Path) -> io::Result<File> {
        let file = self.open_file(name, OFlags::RDONLY, Mode::empty())?;
        super::regular(&file)?;
        Ok(file)
    }

    /// Opens `name` below it with these flags; no part of `name` may be a link, and nothing is waited for.
    ///
    /// # Errors
    /// Those of the system, as [`Dir::open_regular`].
    pub fn open_file(&self, name: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        self.refuse_database(name, AtFlags::SYMLINK_NOFOLLOW)?;
        for _ in 0..16 {
            match rustix::fs::openat2(&self.fd, name, flags, mode, how) {
                Ok(fd) => return Ok(File::from(fd)),
                // Something was renamed while the kernel looked.
                Err(Errno::AGAIN) => {}
                // Kernels before 5.6, and sandboxes that forbid what they do not know.
                Err(Errno::NOSYS | Errno::PERM) => return self.open_by_parts(name, flags, mode),
                Err(e) => return Err(super::opening(e)),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// The same part by part, each opened from the one before it.
    fn open_by_parts(&self, name: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        let mut parts: Vec<_> = name.components().collect();
        if parts.iter().any(|p| !matches!(p, Component::Normal(_))) {
            return Err(Errno::XDEV.into());
        }
        let Some(last) = parts.pop() else { return Err(Errno::NOENT.into()) };
        let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut dir: Option<OwnedFd> = None;
        for part in parts {
            let from: BorrowedFd<'_> = dir.as_ref().map_or(self.fd.as_fd(), AsFd::as_fd);
            dir = Some(rustix::fs::openat(from, part.as_os_str(), through, Mode::empty())?);
        }
        let from = dir.as_ref().map_or(self.fd.as_fd(), AsFd::as_fd);
        Ok(File::from(rustix::fs::openat(from, last.as_os_str(), flags, mode)?))
    }

    #[cfg(test)]
    pub(super) fn open_by_parts_for_test(&self, name: &Path, flags: OFlags, mode: Mode) -> io::Result<File> {
        self.open_by_parts(name, flags | OFlags::NOFOLLOW, mode)
    }

    /// Renames one file in it to another, replacing what is there.
    ///
    /// # Errors
    /// Those of the system.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    /// Renames one file in it to a name that nothing has yet; false where something does.
    ///
    /// # Errors
    /// Those of the system.
    pub fn rename_new(&self, from: &Path, to: &Path) -> io::Result<bool> {
        match rustix::fs::renameat_with(&self.fd, from, &self.fd, to, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => return Ok(false),
            // File systems that cannot: a second name of a file is never put in place of another.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            Err(e) => return Err(e.into()),
        }
        match rustix::fs::linkat(&self.fd, from, &self.fd, to, AtFlags::empty()) {
            Ok(()) => self.remove_file(from).map(|()| true),
            Err(Errno::EXIST) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Removes a file in it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove_file(&self, name: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    /// Makes sure that what was done to the names in it survives a crash of the machine.
    ///
    /// # Errors
    /// Those of the system.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.fd)?)
    }
}
