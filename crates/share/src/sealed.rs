//! The objects of an encrypted group: whatever is put is encrypted here, and decrypted here, and nowhere else.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sieva::{Error, ErrorKind, Result};
use sieva_store::Entry;
use sieva_store::objects::{Body, Link, Objects};

use crate::key::GroupKey;
use crate::segments::{HEAD, SEGMENT, SealedBody, Sealing, opened_size, sealed_size};

/// Heads that are known: those of objects that are read in pieces.
const MOST_HEADS: usize = 64;
/// How often an object that is replaced while it is read is read anew.
const CHANGES: usize = 5;
/// Segments that are read at once.
const PIECE: usize = 128 * SEGMENT as usize;

/// Objects of a store, by a key.
pub(crate) struct Sealed {
    inner: Arc<dyn Objects>,
    key: GroupKey,
    heads: Mutex<BTreeMap<String, Arc<Sealing>>>,
}

impl Sealed {
    pub fn new(inner: Arc<dyn Objects>, key: GroupKey) -> Self {
        Self { inner, key, heads: Mutex::default() }
    }

    fn damaged(&self, key: &str) -> Error {
        let message = format!("'{}' is not what a member of the group put there", self.inner.location(key));
        Error::new(ErrorKind::CorruptFile, message)
            .hint("it is damaged, or somebody without the key wrote or moved it")
    }

    fn known(&self, key: &str) -> Option<Arc<Sealing>> {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn forget(&self, key: &str) {
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// The head of an object; `None` where there is no object.
    fn head(&self, key: &str) -> Result<Option<Arc<Sealing>>> {
        if let Some(known) = self.known(key) {
            return Ok(Some(known));
        }
        let mut head = [0; HEAD];
        if !self.inner.get_range(key, 0, &mut head)? {
            return Ok(None);
        }
        let sealing = Sealing::of(&self.key, key, &head)?.ok_or_else(|| self.damaged(key))?;
        let sealing = Arc::new(sealing);
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        if heads.len() >= MOST_HEADS {
            heads.clear();
        }
        heads.insert(key.to_owned(), Arc::clone(&sealing));
        Ok(Some(sealing))
    }

    /// One read of a range of at most a [`PIECE`]; false where there is no object.
    fn piece(&self, key: &str, offset: u64, out: &mut [u8]) -> Result<bool> {
        let Some(sealing) = self.head(key)? else { return Ok(false) };
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > sealing.size()) {
            let (place, size) = (self.inner.location(key), sealing.size());
            let end = offset.saturating_add(out.len() as u64);
            let message = format!("'{place}' ends with byte {size}, before byte {end}");
            return Err(Error::new(ErrorKind::CorruptFile, message));
        }
        if out.is_empty() {
            return Ok(true);
        }
        let (first, at, n) = sealing.sealed(offset, out.len() as u64);
        let mut bytes = vec![0; n as usize];
        if !self.inner.get_range(key, at, &mut bytes)? {
            return Ok(false);
        }
        if !sealing.open(first, &mut bytes) {
            return Err(self.damaged(key));
        }
        let from = (offset - first * SEGMENT) as usize;
        out.copy_from_slice(&bytes[from..from + out.len()]);
        Ok(true)
    }
}

impl Objects for Sealed {
    fn put(&self, key: &str, body: &dyn Body) -> Result<()> {
        self.forget(key);
        self.inner.put(key, &SealedBody::new(&self.key, key, body)?)
    }

    fn create(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        let plain = bytes.to_vec();
        let body = SealedBody::new(&self.key, key, &plain)?;
        let mut sealed = vec![0; body.size() as usize];
        body.read_exact_at(0, &mut sealed)?;
        self.inner.create(key, &sealed)
    }

    fn get(&self, key: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let Some(mut bytes) = self.inner.get(key, sealed_size(most).unwrap_or(u64::MAX))? else {
            return Ok(None);
        };
        let head = bytes.get(..HEAD).map(|head| Sealing::of(&self.key, key, head)).transpose()?.flatten();
        let sealing = head.ok_or_else(|| self.damaged(key))?;
        if sealed_size(sealing.size()) != Some(bytes.len() as u64) {
            return Err(self.damaged(key));
        }
        bytes.drain(..HEAD);
        match sealing.open(0, &mut bytes) {
            true => Ok(Some(bytes)),
            false => Err(self.damaged(key)),
        }
    }

    fn get_range(&self, key: &str, offset: u64, out: &mut [u8]) -> Result<bool> {
        if out.is_empty() {
            return self.piece(key, offset, out);
        }
        let mut at = offset;
        for piece in out.chunks_mut(PIECE) {
            for change in 1.. {
                // By the head that was known it may be an object that is there no longer.
                let was_known = self.known(key).is_some();
                match self.piece(key, at, piece) {
                    Ok(false) => return Ok(false),
                    Ok(true) => break,
                    Err(e) => {
                        self.forget(key);
                        let may_be_other =
                            matches!(e.kind(), ErrorKind::CorruptFile | ErrorKind::StaleSource);
                        if !may_be_other || !was_known && change > 1 || change == CHANGES {
                            return Err(e);
                        }
                    }
                }
            }
            at += piece.len() as u64;
        }
        Ok(true)
    }

    fn delete(&self, key: &str) -> Result<()> {
        self.forget(key);
        self.inner.delete(key)
    }

    fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let mut listed = self.inner.list(prefix)?;
        listed.iter_mut().for_each(|entry| entry.size = opened_size(entry.size));
        Ok(listed)
    }

    fn tidy(&self, prefix: &str) -> Result<()> {
        self.inner.tidy(prefix)
    }

    fn at_once(&self) -> usize {
        self.inner.at_once()
    }

    fn link(&self, key: &str, _expires: Duration) -> Result<Link> {
        let message = format!("'{}' is encrypted: who has no key cannot read it", self.inner.location(key));
        Err(Error::new(ErrorKind::Unsupported, message)
            .hint("fetch it, and publish the file in a group that is not encrypted"))
    }

    fn location(&self, key: &str) -> String {
        self.inner.location(key)
    }

    fn name(&self) -> String {
        self.inner.name()
    }
}
