//! Objects that are written: named byte strings under one root, put whole, read, listed and deleted.
//!
//! What is promised is what every kind of store gives: a reader sees an object as it was before or after a put, never half
//! of it. Listings may be late. Who writes what is the matter of the caller; [`Objects::create`] is for names that two may
//! take at once.

mod dir;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use sieva_types::{Error, ErrorKind, Result};

use crate::guard::{Gate, Purpose};
use crate::location::{Location, redacted};
use crate::{Entry, RemoteOptions, remote};
pub use dir::DirObjects;

/// Bytes to put, read as often as it takes: a request that failed is sent again.
pub trait Body: Send + Sync {
    /// How many there are.
    fn size(&self) -> u64;

    /// Fills `out` with the bytes from `offset` on.
    ///
    /// # Errors
    /// What making them says.
    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()>;
}

impl Body for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let from = usize::try_from(offset).ok().and_then(|at| self.get(at..)?.get(..out.len()));
        let from = from.ok_or_else(|| Error::new(ErrorKind::Internal, "bytes past the end of a body"))?;
        out.copy_from_slice(from);
        Ok(())
    }
}

impl Body for Vec<u8> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        self.as_slice().read_exact_at(offset, out)
    }
}

/// An address that takes no key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The address, which is as secret as what it leads to.
    pub url: String,
    /// Whether it leads nowhere when its time is over; else whoever may read the place may read it by this.
    pub expires: bool,
}

/// Objects under one root, written and read by many at once. Keys are relative, with `/` between parts, each of which
/// begins with a letter, a digit or `_`.
pub trait Objects: Send + Sync {
    /// Puts an object in place of what is there.
    ///
    /// # Errors
    /// `io-error` where the system or the network fails, `permission-denied`, `link-refused` for a key that leads out
    /// of the root. What is there is then the old object or, where the answer got lost, the new one.
    fn put(&self, key: &str, body: &dyn Body) -> Result<()>;

    /// The same; which version of the object that is, as [`RangedRead::version`](crate::RangedRead::version) is for who opens
    /// it. `None` where the store does not say.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn put_version(&self, key: &str, body: &dyn Body) -> Result<Option<String>> {
        self.put(key, body).map(|()| None)
    }

    /// Puts an object where there is none; false where there is one. Where the answer of a request got lost, an object with
    /// these bytes is taken for the one that was put.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn create(&self, key: &str, bytes: &[u8]) -> Result<bool>;

    /// All bytes of an object, of which there may be `most`, as they are now; `None` where there is none.
    ///
    /// # Errors
    /// As [`Objects::put`]; `corrupt-file` for one that is longer.
    fn get(&self, key: &str, most: u64) -> Result<Option<Vec<u8>>>;

    /// Fills `out` with bytes of an object from `offset` on; false where there is no such object.
    ///
    /// # Errors
    /// As [`Objects::get`]; `corrupt-file` where it ends before.
    fn get_range(&self, key: &str, offset: u64, out: &mut [u8]) -> Result<bool>;

    /// Deletes an object; one that is not there is deleted already.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn delete(&self, key: &str) -> Result<()>;

    /// The objects whose keys begin with `prefix`, in order of their keys. What was put or deleted a moment ago may be told
    /// as before.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn list(&self, prefix: &str) -> Result<Vec<Entry>>;

    /// Removes what writers that were killed left under `prefix`, if the store keeps such things.
    ///
    /// # Errors
    /// As [`Objects::put`].
    fn tidy(&self, prefix: &str) -> Result<()> {
        let _ = prefix;
        Ok(())
    }

    /// How many requests at once pay: 1 where nothing is waited for.
    fn at_once(&self) -> usize {
        1
    }

    /// An address by which who has no key can read an object, for so long.
    ///
    /// # Errors
    /// `unsupported` of a store that makes none; `invalid-value` for a time that it does not allow; `permission-denied` for who
    /// may not make one.
    fn link(&self, key: &str, expires: Duration) -> Result<Link> {
        let _ = expires;
        let message = format!("'{}' has no addresses for those without a key", self.location(key));
        Err(Error::new(ErrorKind::Unsupported, message))
    }

    /// The path or address of an object, by which a source is opened.
    fn location(&self, key: &str) -> String;

    /// How messages name the root.
    fn name(&self) -> String;
}

/// The objects under a root: a directory (`file://` or a path) or a place of an object store (`s3://bucket/prefix`,
/// `swift://container/prefix`; the environment says where and who). Directory and container are made with the first object, a
/// bucket is not. Nothing is asked of a server yet.
///
/// # Errors
/// `unsupported` for addresses that nothing can be written to; `invalid-value` for those that are none;
/// `permission-denied` where the environment does not say who writes.
///
/// ```
/// let e = sieva_store::objects::open_objects("https://host/data").map(|_| ()).unwrap_err();
/// assert_eq!(e.message(), "'https://host/data' cannot be written to");
/// ```
pub fn open_objects(root: &str) -> Result<Arc<dyn Objects>> {
    open_objects_within(root, &RemoteOptions::default(), &Gate::default(), Purpose::Source)
}

/// The same with limits of remote storage, if `gate` lets it: it is asked for the root, and for each object of a remote one.
///
/// # Errors
/// As [`open_objects`]; the gate's refusal.
pub fn open_objects_within(
    root: &str,
    options: &RemoteOptions,
    gate: &Gate,
    purpose: Purpose,
) -> Result<Arc<dyn Objects>> {
    match Location::parse(root)? {
        Location::Local(path) => {
            gate.look(&path, purpose)?;
            // One place has one name, however it is written.
            let real = path.canonicalize().or_else(|_| std::path::absolute(&path));
            Ok(Arc::new(DirObjects::new(real.unwrap_or(path))))
        }
        Location::Remote(place) => remote::open_objects(&place, options, gate, purpose),
    }
}

/// Refuses keys that are no plain names below the root.
pub(crate) fn check_key(key: &str, root: &str) -> Result<()> {
    let plain = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
    };
    if key.len() <= 900 && key.split('/').all(plain) {
        return Ok(());
    }
    let message = format!("'{}' is no key of an object in '{}'", sieva_types::printable(key), redacted(root));
    let hint = "parts have letters, digits, '-', '.' and '_', and do not begin with '-' or '.'";
    Err(Error::new(ErrorKind::LinkRefused, message).hint(hint))
}
