//! The gate: all guards that have to agree before a place is opened.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags};
use sieva_types::Result;
use url::Url;

use super::{Guard, Place, Purpose};
use crate::local;
use crate::location::Location;

/// Links that are followed to find where something would be that is not there.
const MOST_LINKS: usize = 40;

/// The guards that are asked before anything is opened; none, as by default: what the system allows may be opened.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    guards: Vec<Arc<dyn Guard>>,
}

/// Gates are the same where they ask the same guards.
impl PartialEq for Gate {
    fn eq(&self, other: &Self) -> bool {
        self.guards.len() == other.guards.len()
            && self.guards.iter().zip(&other.guards).all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

impl Eq for Gate {}

impl Gate {
    /// A gate with one guard.
    pub fn of(guard: Arc<dyn Guard>) -> Self {
        Self { guards: vec![guard] }
    }

    /// The same with one guard more, who has to agree, too.
    #[must_use]
    pub fn and(&self, guard: Arc<dyn Guard>) -> Self {
        let mut guards = self.guards.clone();
        guards.push(guard);
        Self { guards }
    }

    /// Whether nobody is asked.
    pub fn is_open(&self) -> bool {
        self.guards.is_empty()
    }

    /// Asks every guard.
    ///
    /// # Errors
    /// That of the first who refuses.
    pub fn check(&self, place: &Place<'_>, purpose: Purpose) -> Result<()> {
        self.guards.iter().try_for_each(|guard| guard.check(place, purpose))
    }

    /// Asks for a URL, in its normal form; one of a local file is asked for as the file.
    ///
    /// # Errors
    /// `invalid-value` for what is no URL that can be opened; the refusal.
    pub fn check_url(&self, url: &str, purpose: Purpose) -> Result<()> {
        if self.is_open() {
            return Ok(());
        }
        match Location::parse(url)? {
            Location::Local(path) => self.look(&path, purpose).map(drop),
            location => match location.url() {
                Some(url) => self.check_parsed(&url, purpose),
                None => Ok(()),
            },
        }
    }

    /// Asks for a URL that is in its normal form.
    pub(crate) fn check_parsed(&self, url: &Url, purpose: Purpose) -> Result<()> {
        self.check(&Place::Url(url), purpose)
    }

    /// What the system says of the file or directory at `path`, links followed, if it may be opened; `None` where there is
    /// none, or nobody may look at it. Nothing is read of it.
    ///
    /// # Errors
    /// The refusal, which is the same for what is there and for what is not.
    pub fn look(&self, path: &Path, purpose: Purpose) -> Result<Option<Metadata>> {
        if self.is_open() {
            return Ok(std::fs::metadata(path).ok());
        }
        let found = handle(path).and_then(|fd| Ok((real_of(&fd)?, File::from(fd))));
        match found {
            Ok((real, file)) => {
                self.check(&Place::File { asked: path, real: &real }, purpose)?;
                Ok(file.metadata().ok())
            }
            Err(_) => {
                self.check(&Place::File { asked: path, real: &would_be(path) }, purpose)?;
                Ok(None)
            }
        }
    }

    /// Opens the regular file at `path` for reading, links followed, if it may be opened, as [`local::open_regular`] does.
    ///
    /// # Errors
    /// Outside: the refusal. Inside: those of the system, of what may be opened.
    pub fn open_regular(&self, path: &Path, purpose: Purpose) -> Result<io::Result<File>> {
        if self.is_open() {
            return Ok(local::open_regular(path));
        }
        // Only a handle: of a device or a pipe, opening it could do something already.
        let found = handle(path).and_then(|fd| Ok((real_of(&fd)?, fd)));
        let (real, fd) = match found {
            Ok(found) => found,
            Err(e) => {
                self.check(&Place::File { asked: path, real: &would_be(path) }, purpose)?;
                return Ok(Err(e));
            }
        };
        self.check(&Place::File { asked: path, real: &real }, purpose)?;
        Ok(local::regular(&File::from(match fd.try_clone() {
            Ok(fd) => fd,
            Err(e) => return Ok(Err(e)),
        }))
        .and_then(|_| {
            // The file that was asked for, whatever its name leads to now.
            local::open_regular(Path::new(&format!("/proc/self/fd/{}", fd.as_raw_fd())))
        }))
    }
}

/// A handle of what is at `path`, by which nothing can be read.
fn handle(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)
}

/// The path of what a handle is of.
fn real_of(fd: &OwnedFd) -> io::Result<PathBuf> {
    let real = local::real_path(fd)?;
    // The system adds words to the path of what was removed meanwhile: that is another name, and maybe another's.
    let (there, here) = (std::fs::symlink_metadata(&real)?, File::from(fd.try_clone()?).metadata()?);
    match real.is_absolute() && (there.dev(), there.ino()) == (here.dev(), here.ino()) {
        true => Ok(real),
        false => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Where something would be that is not there, or cannot be looked at: the links of the part of its path that is there are
/// followed, and those that lead to nothing.
fn would_be(path: &Path) -> PathBuf {
    let mut path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    for _ in 0..MOST_LINKS {
        let Some((real, rest)) = deepest(&path) else { break };
        let mut parts = rest.components();
        let link = parts.next().and_then(|first| std::fs::read_link(real.join(first)).ok());
        match link {
            Some(target) => path = real.join(target).join(parts.as_path()),
            None => return plain(&real.join(rest)),
        }
    }
    plain(&path)
}

/// The deepest part of a path that is there, its links followed, and what comes after it.
fn deepest(path: &Path) -> Option<(PathBuf, PathBuf)> {
    path.ancestors().find_map(|ancestor| {
        let real = ancestor.canonicalize().ok()?;
        Some((real, path.strip_prefix(ancestor).ok()?.to_path_buf()))
    })
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            part => out.push(part),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use sieva_types::ErrorKind;

    use super::*;
    use crate::guard::refusal;

    /// Allows what lies below a directory, and notes what it is asked.
    #[derive(Debug)]
    struct Below(PathBuf, Mutex<Vec<PathBuf>>);

    impl Guard for Below {
        fn check(&self, place: &Place<'_>, purpose: Purpose) -> Result<()> {
            let Place::File { real, .. } = place else { return Err(refusal(place, purpose)) };
            self.1.lock().unwrap().push(real.to_path_buf());
            if real.starts_with(&self.0) { Ok(()) } else { Err(refusal(place, purpose)) }
        }
    }

    fn directories(name: &str) -> (PathBuf, PathBuf, Gate, Arc<Below>) {
        let base = std::env::temp_dir().join(format!("sieva-gate-{name}-{}", std::process::id()));
        std::fs::create_dir_all(base.join("in/deep")).unwrap();
        std::fs::create_dir_all(base.join("out")).unwrap();
        let base = base.canonicalize().unwrap();
        std::fs::write(base.join("in/a"), b"inside").unwrap();
        std::fs::write(base.join("out/b"), b"outside").unwrap();
        let guard = Arc::new(Below(base.join("in"), Mutex::default()));
        (base.clone(), base.join("in"), Gate::of(Arc::clone(&guard) as Arc<dyn Guard>), guard)
    }

    #[test]
    fn what_a_name_leads_to_is_asked_for() {
        let (base, inside, gate, guard) = directories("leads");
        std::os::unix::fs::symlink(base.join("out/b"), inside.join("link")).unwrap();
        std::os::unix::fs::symlink(base.join("out/none"), inside.join("dangling")).unwrap();
        std::os::unix::fs::symlink("../../out", inside.join("deep/up")).unwrap();
        let open = |name: &str| gate.open_regular(&inside.join(name), Purpose::Source);
        assert_eq!(local::read_file(&open("a").unwrap().unwrap(), 100).unwrap(), b"inside");
        assert_eq!(open("none").unwrap().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(open("deep").unwrap().unwrap_err().to_string(), "not a regular file");
        // The same words for what is there and for what is not.
        for out in
            ["../out/b", "../out/none", "link", "dangling", "deep/up/b", "deep/up/none", "none/../../out/b"]
        {
            let e = open(out).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::PermissionDenied, "{out}");
            let shown = inside.join(out).display().to_string();
            assert_eq!(e.message(), format!("'{shown}' is outside of what may be opened"));
            assert_eq!(gate.look(&inside.join(out), Purpose::Source).unwrap_err(), e);
        }
        assert!(guard.1.lock().unwrap().contains(&base.join("out/none")), "a dangling link is followed");
        assert!(gate.look(&inside.join("a"), Purpose::Source).unwrap().unwrap().is_file());
        assert!(gate.look(&inside.join("none"), Purpose::Source).unwrap().is_none());
        std::fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn an_open_gate_asks_nobody_and_every_guard_has_to_agree() {
        let (base, inside, gate, _) = directories("all");
        assert!(Gate::default().is_open() && !gate.is_open());
        assert!(Gate::default().open_regular(&base.join("out/b"), Purpose::Source).unwrap().is_ok());
        let other = gate.and(Arc::new(Below(base.join("out"), Mutex::default())));
        for place in [inside.join("a"), base.join("out/b")] {
            let e = other.open_regular(&place, Purpose::Link).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::LinkRefused);
        }
        assert_eq!(gate, gate.clone());
        assert_ne!(gate, other);
        let e = gate.check_url("https://h/a", Purpose::Source).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::PermissionDenied);
        let e = gate.check_url(&format!("file://{}", base.join("out/b").display()), Purpose::Source);
        assert_eq!(e.unwrap_err().kind(), ErrorKind::PermissionDenied);
        std::fs::remove_dir_all(base).unwrap();
    }
}
