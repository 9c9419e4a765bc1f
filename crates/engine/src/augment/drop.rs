//! Removing augmentations.

use sieva_index::store::{Listing, Store};
use sieva_types::{ErrorKind, Result};

use super::told::Rate;
use super::{homes, profile};
use crate::open::Source;

impl Source {
    /// Keeps what could not be told for [`Source::index_notes`].
    fn note_of_dropping(&self, untold: Option<String>) {
        if let (Some(note), Ok(loaded)) = (untold, self.loaded()) {
            loaded.indexes.note(&note);
        }
    }

    /// Removes a source's store with all that is in it; whether there was one.
    ///
    /// # Errors
    /// `permission-denied`, `io-error`.
    pub fn drop_index(&self) -> Result<bool> {
        self.augmented().discard();
        if let Some(many) = self.many() {
            return many.drop_index();
        }
        let mut dropped = false;
        for home in homes(self.path(), self.options()).read {
            if home.path().is_dir() {
                profile::forget(&home);
                match Store::drop_all(&home) {
                    // One's own is gone; that of the file's owner is not one's own.
                    Err(e) if dropped && e.kind() == ErrorKind::PermissionDenied => {}
                    gone => {
                        gone?;
                        dropped = true;
                    }
                }
            }
        }
        self.note_of_dropping(self.tell_catalog(Rate::default()));
        Ok(dropped)
    }

    /// Removes the sorted replicas of these arrays (none named: all); returns their number.
    ///
    /// # Errors
    /// `unknown-array`, `permission-denied`, `io-error`.
    pub fn drop_replicas(&self, arrays: &[String]) -> Result<usize> {
        if let Some(many) = self.many() {
            self.augmented().forget();
            return many.drop_replicas(self, arrays);
        }
        let arrays = arrays.iter().map(|a| self.resolve(a)).collect::<Result<Vec<_>>>()?;
        let paths: Vec<&str> = arrays.iter().map(|&a| self.schema().arrays[a].path.as_str()).collect();
        let loaded = self.loaded()?;
        // Where it was found, which need not be where new ones go.
        let store = loaded.store.as_ref().and_then(|store| Some((store, store.place().local()?)));
        let Some((store, home)) = store else { return Ok(0) };
        let goes = |key: &str| paths.is_empty() || paths.contains(&key);
        let n = store.sorted().iter().filter(|e| goes(&e.key)).count();
        if n > 0 {
            let keep = |listing: &Listing| {
                let mut listing = listing.clone();
                listing.sorted.retain(|e| !goes(&e.key));
                listing
            };
            Store::publish(home, loaded.fingerprint()?, &keep, true)?;
        }
        self.augmented().forget();
        self.note_of_dropping(self.tell_catalog(Rate::default()));
        Ok(n)
    }
}
