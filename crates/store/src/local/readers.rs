//! Who may read a file, to be given to what tells of its contents.

use std::fs::{self, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Gid, Mode, Uid, XattrFlags};

use super::trust::user;

/// The extended attributes in which Linux keeps access control lists.
const ACL: &str = "system.posix_acl_access";
const DEFAULT_ACL: &str = "system.posix_acl_default";
/// Its header, and the length of an entry: tag and permissions, 2 bytes each, and a number.
const ACL_HEAD: usize = 4;
const ACL_ENTRY: usize = 8;
/// The tag of the owner's entry.
const ACL_OWNER: u16 = 1;
/// Files of a directory that are looked at.
const LOOKED_AT: usize = 1000;

/// The users who may read a file: never more than may read the one that this was taken of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readers {
    owner: Option<u32>,
    group: u32,
    /// Of 0o044.
    bits: u32,
    acl: Option<Vec<u8>>,
}

impl Readers {
    /// Those of the file or directory at `path`; of a directory, those who may read all files right in it, too.
    /// Nobody but the user of the process, where that cannot be told.
    pub fn of(path: &Path) -> Self {
        Self::try_of(path).unwrap_or_default()
    }

    fn try_of(path: &Path) -> io::Result<Self> {
        let meta = fs::metadata(path)?;
        let mut readers =
            Self { owner: Some(meta.uid()), group: meta.gid(), bits: bits(&meta), acl: acl_of(path)? };
        if meta.is_dir() {
            for entry in fs::read_dir(path)?.take(LOOKED_AT) {
                let path = entry?.path();
                let inner = fs::metadata(&path)?;
                let alike = inner.gid() == readers.group || readers.bits & bits(&inner) == 0o044;
                let alike = alike && acl_of(&path)? == readers.acl;
                readers.bits &= if alike { bits(&inner) } else { 0 };
            }
        }
        if readers.acl.is_some() && readers.bits & 0o040 == 0 {
            // It may keep out users whom the bits would let in.
            (readers.bits, readers.acl) = (0, None);
        }
        Ok(readers)
    }

    /// These as far as the directories above `path` let them through, for what is kept elsewhere.
    #[must_use]
    pub fn who_reach(mut self, path: &Path) -> Self {
        let reached = fs::canonicalize(path).and_then(|whole| {
            whole.ancestors().skip(1).try_for_each(|above| {
                let meta = fs::metadata(above)?;
                let others = meta.mode() & 0o001 != 0;
                let group = if meta.gid() == self.group { meta.mode() & 0o010 != 0 } else { others };
                if acl_of(above)?.is_some() || (self.acl.is_some() && !(others && group)) {
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                self.bits &= if others { 0o044 } else { 0o040 };
                self.bits &= if group { 0o044 } else { 0o004 };
                Ok(())
            })
        });
        if reached.is_err() {
            (self.bits, self.acl) = (0, None);
        }
        self
    }

    /// Gives an open file to these readers.
    ///
    /// # Errors
    /// Those of the system.
    pub fn give_file(&self, file: impl AsFd) -> io::Result<()> {
        self.give(&file, false)
    }

    /// Gives an open directory to these readers: they may list it, and open what is in it as far as that is theirs.
    ///
    /// # Errors
    /// Those of the system.
    pub fn give_dir(&self, dir: impl AsFd) -> io::Result<()> {
        self.give(&dir, true)
    }

    fn give(&self, file: &impl AsFd, is_dir: bool) -> io::Result<()> {
        let own = if is_dir { 0o700 } else { 0o600 };
        let mode = |bits: u32| Mode::from_raw_mode(own | bits | if is_dir { bits >> 2 } else { 0 });
        let set = |bits: u32| Ok(rustix::fs::fchmod(file, mode(bits))?);
        if self.is_given(file, is_dir, mode(self.bits))? {
            return Ok(());
        }
        // Until all else is as it should be. (An inherited list says nothing meanwhile, as its mask is empty.)
        set(0)?;
        if user() == 0 && self.owner.is_some_and(|owner| owner != 0) {
            let owner = self.owner.map(Uid::from_raw);
            // A server that squashes root keeps it.
            let _ = rustix::fs::fchown(file, owner, None);
        }
        if self.bits == 0 && self.acl.is_none() {
            return Ok(());
        }
        let is_cleared = clear(file, ACL) && (!is_dir || clear(file, DEFAULT_ACL));
        let group = || rustix::fs::fstat(file).map(|stat| stat.st_gid);
        if group()? != self.group {
            // Not allowed where we are not in that group.
            let _ = rustix::fs::fchown(file, None, Some(Gid::from_raw(self.group)));
        }
        let is_for_all = self.bits == 0o044 && self.acl.is_none();
        // Of another group, the bits would speak of other users.
        if !is_cleared || !(is_for_all || group()? == self.group) {
            return Ok(());
        }
        match &self.acl {
            None => set(self.bits),
            // It has the bits of owner, group and others in it; where it cannot be set, it stays the owner's.
            Some(acl) => {
                let acl = rights(acl, is_dir, self.bits & 0o004 != 0);
                let _ = rustix::fs::fsetxattr(file, ACL, &acl, XattrFlags::empty());
                Ok(())
            }
        }
    }
}

impl Readers {
    /// Whether a file is theirs already: others may be reading it this moment.
    fn is_given(&self, file: &impl AsFd, is_dir: bool, mode: Mode) -> io::Result<bool> {
        let stat = rustix::fs::fstat(file)?;
        let is_owned = user() != 0 || self.owner.is_none_or(|owner| owner == stat.st_uid);
        let is_grouped = stat.st_gid == self.group || (self.acl.is_none() && matches!(self.bits, 0 | 0o044));
        let mut acl = vec![0; self.acl.as_ref().map_or(0, |acl| acl.len() + 1)];
        let is_listed = match (rustix::fs::fgetxattr(file, ACL, &mut acl[..]), &self.acl) {
            (Ok(n), Some(wanted)) => acl.get(..n) == Some(&rights(wanted, is_dir, self.bits & 0o004 != 0)),
            (Err(e), None) => is_none(e),
            _ => false,
        };
        let is_moded = self.acl.is_some() || Mode::from_raw_mode(stat.st_mode & 0o7777) == mode;
        Ok(is_owned && is_grouped && is_listed && is_moded)
    }
}

/// Who may read it besides its owner.
fn bits(meta: &Metadata) -> u32 {
    let bits = meta.mode() & 0o044;
    if meta.is_dir() { bits & (meta.mode() & 0o011) << 2 } else { bits }
}

/// The access control list of what is at `path`, where there is one.
fn acl_of(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; 256];
    loop {
        match rustix::fs::getxattr(path, ACL, &mut bytes[..]) {
            Ok(n) => {
                bytes.truncate(n);
                return Ok((n > ACL_HEAD).then_some(bytes));
            }
            // No attribute is longer than 64 KiB.
            Err(rustix::io::Errno::RANGE) if bytes.len() < 1 << 16 => bytes.resize(1 << 16, 0),
            Err(e) if is_none(e) => return Ok(None),
            Err(e) => return Err(e.into()),
        }
    }
}

/// Removes a list that was inherited from the directory; whether there is none now.
fn clear(file: &impl AsFd, name: &str) -> bool {
    rustix::fs::fremovexattr(file, name).is_ok_and(|()| true) || {
        let mut byte = [0_u8; 0];
        rustix::fs::fgetxattr(file, name, &mut byte[..]).is_err_and(is_none)
    }
}

fn is_none(e: rustix::io::Errno) -> bool {
    matches!(e, rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP)
}

/// A list with the same users and groups, who may only read; the owner may write.
fn rights(acl: &[u8], is_dir: bool, others: bool) -> Vec<u8> {
    const OTHERS: u16 = 0x20;
    let mut out = acl.to_vec();
    for entry in out[ACL_HEAD..].chunks_exact_mut(ACL_ENTRY) {
        let (tag, old) = (u16::from_le_bytes([entry[0], entry[1]]), u16::from_le_bytes([entry[2], entry[3]]));
        let read = old & 4 != 0 && (tag != OTHERS || others);
        let may = if read { 4 | if is_dir { 1 } else { 0 } } else { 0 };
        let may = if tag == ACL_OWNER { 6 | u16::from(is_dir) } else { may };
        entry[2..4].copy_from_slice(&may.to_le_bytes());
    }
    out
}
