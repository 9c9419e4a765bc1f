//! Augmentations that lie beside a remote object, under its own address with `.sieva` behind it.
//!
//! They are read where they are, and never written there: somebody built them of the object and put the store beside
//! it, or of the local file that a server now gives out.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sieva_index::Place;
use sieva_index::store::{Fingerprint, Found, Home, Store};
use sieva_query::cost::Costs;
use sieva_query::exec::Indexes;
use sieva_store::RemoteOptions;
use sieva_store::guard::{Gate, Purpose};
use sieva_types::{ErrorKind, Result};

use super::{homes, schema_hash};
use crate::manifest_cache;
use crate::open::Source;

/// How long nobody asks again where there was nothing: each time takes a round trip.
const ABSENT_FOR: Duration = Duration::from_secs(3600);
/// How often a store is looked for again where the network fails.
const RETRIES: u32 = 2;
/// Nanoseconds that a byte from a server takes, a request for data, of which many are on their way at once, and one for
/// an index, which waits for the one before it; until it is known better.
const BYTE: f64 = 4.0;
const AHEAD: f64 = 5e5;
const WAIT: f64 = 3e7;

impl Source {
    /// Runs `work`, which fetches something else, while augmentations of a remote object are looked for.
    pub(crate) fn while_loading(&self, work: impl FnOnce()) {
        if self.address_beside().is_none() {
            return work();
        }
        std::thread::scope(|scope| {
            // What goes wrong is told when they are asked for.
            scope.spawn(|| self.loaded().is_ok());
            work();
        });
    }

    /// Where a store beside the object would be.
    pub(super) fn address_beside(&self) -> Option<String> {
        let address = self.path().to_str().filter(|a| sieva_store::is_url(a) && self.options().beside)?;
        // What stands behind a question mark is for this one object.
        let is_plain = self.many().is_none() && !address.contains(['?', '#']) && !address.ends_with('/');
        // Of an object without tag and time nothing could be told to be of it.
        let is_told = || !self.reader().store().version().is_empty();
        (is_plain && is_told()).then(|| format!("{address}.sieva"))
    }

    /// The store at `address`, if it is of the state of the object that was opened; `write` is where one made here would
    /// be.
    pub(super) fn beside(
        &self,
        address: &str,
        write: &Home,
        taken: &Fingerprint,
        indexes: &mut Indexes,
    ) -> Option<Store> {
        let (note, remember) = (absence_note(&write.path()), self.options().remember);
        if remember && is_absent(&note, &taken.version) {
            return None;
        }
        let found = match find(address, &self.options().remote, &self.options().gate) {
            Ok(Some(found)) => found,
            Ok(None) => {
                if remember {
                    // Without the note it is asked for again.
                    let _ = manifest_cache::keep(&note, taken.version.as_bytes());
                }
                return None;
            }
            Err(e) => {
                indexes.note(&format!("'{}': {}: not used", sieva_store::redacted(address), e.message()));
                return None;
            }
        };
        let (reader, fingerprint, put) = (self.reader(), found.fingerprint().clone(), found.put());
        found.announce();
        if fingerprint != *taken {
            // Of a copy, if it is one; they come while the store is opened.
            Fingerprint::announce(reader.store().as_ref());
        }
        let store = match found.open() {
            Ok(store) => store?,
            Err(e) => {
                indexes.note(&format!("'{}': {}: not used", sieva_store::redacted(address), e.message()));
                return None;
            }
        };
        let is_copy = || fingerprint.is_of_copy(reader.store().as_ref(), schema_hash(reader), put);
        // While it was opened, a newer one may have been put in its place.
        let is_found = *store.fingerprint() == fingerprint;
        if is_found && (fingerprint == *taken || is_copy().unwrap_or(false)) {
            be_far(&indexes.costs);
            return Some(store);
        }
        indexes.note(&format!(
            "'{}' was made for another state of the object: not used",
            sieva_store::redacted(address)
        ));
        None
    }

    /// Asks anew next time, also where there was nothing lately.
    pub(super) fn look_again(&self) {
        if self.address_beside().is_some() {
            // None may be there.
            let _ = std::fs::remove_file(absence_note(&homes(self.path(), self.options()).write.path()));
        }
    }
}

/// What lies at an address. Nothing depends on it, so that a server that is in trouble over it is not asked for long.
fn find(address: &str, remote: &RemoteOptions, gate: &Gate) -> Result<Option<Found>> {
    let place = |options| {
        let tree = sieva_store::open_tree_within(address, options, gate, Purpose::Index)?;
        Ok(Place::Objects(tree, String::new()))
    };
    let hasty = RemoteOptions { retries: remote.retries.min(RETRIES), ..remote.clone() };
    match Store::find(&place(&hasty)?) {
        Ok(Some(found)) => Ok(Some(found.at(place(remote)?))),
        // What is forbidden is not there for us; some servers say so of all that is not there.
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(None),
        other => other,
    }
}

/// Whether somebody built what is in a store, and not only scans left it.
pub(super) fn was_built(store: &Store) -> bool {
    let listing = store.listing();
    !listing.sorted.is_empty() || listing.segments.iter().any(|segment| segment.durable())
}

/// What reads cost over a network, to begin with.
fn be_far(costs: &Costs) {
    for (costs, request) in [(&costs.direct, AHEAD), (&costs.chunked, AHEAD), (&costs.index, WAIT)] {
        costs.request.set(request, 0);
        costs.byte.set(BYTE, 0);
    }
}

/// The file that says of which version of an object nothing lay beside it; `write` is where a store made here would be.
fn absence_note(write: &Path) -> PathBuf {
    write.with_extension("absent")
}

/// Whether nothing lay beside this version of an object lately.
fn is_absent(note: &Path, version: &str) -> bool {
    let age = || std::fs::metadata(note).ok()?.modified().ok()?.elapsed().ok();
    manifest_cache::recall(note, 1 << 16).is_some_and(|noted| noted == version.as_bytes())
        && age().is_some_and(|age| age < ABSENT_FOR)
}
