//! Whose files are believed.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;

/// The users whose files are believed: whoever else can write to a file or directory could have it say anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust {
    owners: Vec<u32>,
}

impl Default for Trust {
    /// Root, and the user of this process.
    fn default() -> Self {
        Self { owners: vec![0, user()] }
    }
}

impl Trust {
    /// These, and the user of this number.
    #[must_use]
    pub fn and(mut self, owner: u32) -> Self {
        if !self.owners.contains(&owner) {
            self.owners.push(owner);
        }
        self
    }

    /// Whether only these users could have written what the system says this of. (The bits of the group are the
    /// widest rights of any access control list.)
    ///
    /// # Errors
    /// `PermissionDenied`, with the reason.
    pub fn check(&self, meta: &Metadata) -> io::Result<()> {
        let refuse = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        if !self.owners.contains(&meta.uid()) {
            let owner = meta.uid();
            return refuse(format!(
                "it belongs to user {owner}, who is neither you, nor root, nor the source's owner"
            ));
        }
        match meta.mode() & 0o022 {
            0 => Ok(()),
            _ => refuse(format!("others may write to it (mode {:04o})", meta.mode() & 0o7777)),
        }
    }
}

/// The user of this process.
pub fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}
