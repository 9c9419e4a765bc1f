//! Opening a store.

use std::sync::Arc;

use sieva_store::Counters;
use sieva_types::{Error, ErrorKind, Result};

use super::load::{load, superseded};
use super::manifest::{Listing, Manifest, SortedEntry};
use super::names;
use super::segment::Segment;
use super::summary::{ArraySummary, summaries};
use super::{ArrayRecords, Fingerprint, Home, publish};
use crate::place::Place;
use crate::sorted::SortedReplica;

/// How often a manifest is read anew when segments vanish while they are opened.
const ATTEMPTS: usize = 5;

/// A store as it was when it was opened: what is published later is not seen, what is removed later stays
/// readable (sorted replicas excepted, which the caller opens).
#[derive(Debug)]
pub struct Store {
    place: Place,
    manifest: Manifest,
    /// Oldest first.
    segments: Vec<Arc<Segment>>,
    damage: Vec<String>,
}

/// A store of which the manifest was read.
#[derive(Debug)]
pub struct Found {
    place: Place,
    manifest: Manifest,
    put: Option<u64>,
}

impl Found {
    /// The state of the source that it belongs to.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.manifest.fingerprint
    }

    /// When it was put where it is, in seconds since 1970, where that is a server that says so.
    pub fn put(&self) -> Option<u64> {
        self.put
    }

    /// The same, to be read by way of `place`.
    #[must_use]
    pub fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// Says that it is about to be opened: what that reads of a remote one comes together.
    pub fn announce(&self) {
        announce(&self.place, &self.manifest);
    }

    /// Opens it.
    ///
    /// # Errors
    /// As [`Store::open_at`].
    pub fn open(self) -> Result<Option<Store>> {
        let (place, mut manifest) = (&self.place, self.manifest);
        for _ in 1..ATTEMPTS {
            let (store, vanished) = Store::open_segments(place, manifest);
            // Gone because a newer manifest does not list them? Then that is the one to go by.
            match if vanished { Manifest::read_at(place)? } else { None } {
                Some((newer, _)) if newer != store.manifest => manifest = newer,
                None if vanished => return Ok(None),
                _ => return Ok(Some(store)),
            }
        }
        Ok(Some(Store::open_segments(place, manifest).0))
    }
}

impl Store {
    /// The name of its manifest.
    pub const MANIFEST: &'static str = names::MANIFEST;

    /// The store in a local directory; `None` if there is none.
    ///
    /// # Errors
    /// `permission-denied` where others could have written it; `corrupt-index` where the manifest is damaged, `unsupported` where a newer version wrote it,
    /// `permission-denied` or `io-error` where it cannot be read.
    pub fn open(home: impl Into<Home>) -> Result<Option<Self>> {
        Self::open_at(&Place::Local(home.into()))
    }

    /// The store in `place`, which may lie beside a remote object; `None` if there is none.
    ///
    /// # Errors
    /// As [`Store::open`], and those of the network.
    pub fn open_at(place: &Place) -> Result<Option<Self>> {
        Self::find(place)?.map_or(Ok(None), Found::open)
    }

    /// What its manifest says of the store in `place`, before anything else of it is read; `None` if there is none.
    ///
    /// # Errors
    /// As [`Store::open_at`].
    pub fn find(place: &Place) -> Result<Option<Found>> {
        let found = Manifest::read_at(place)?;
        Ok(found.map(|(manifest, put)| Found { place: place.clone(), manifest, put }))
    }

    /// Opens the listed segments; says whether some were not there.
    fn open_segments(place: &Place, manifest: Manifest) -> (Self, bool) {
        let (mut segments, mut damage, mut vanished) = (Vec::new(), Vec::new(), false);
        let counters = Counters::default();
        announce(place, &manifest);
        for listed in &manifest.listing.segments {
            match Segment::open(place, listed, &counters) {
                Ok(Ok(segment)) => segments.push(Arc::new(segment)),
                Ok(Err(e)) => damage.push(e.message().to_owned()),
                Err(e) => {
                    vanished |= e.is_absence();
                    let e = e.into_error(format!("segment '{}'", listed.name()));
                    damage.push(e.message().to_owned());
                }
            }
        }
        (Self { place: place.clone(), manifest, segments, damage }, vanished)
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Opens one of its sorted replicas.
    ///
    /// # Errors
    /// As [`SortedReplica::open`]; `corrupt-index` for one that was built elsewhere.
    pub fn open_sorted(&self, entry: &SortedEntry) -> Result<SortedReplica> {
        let place = self.place.child(&entry.name());
        let replica = SortedReplica::open_at(&place)?;
        if entry.seal.is_none() || entry.seal == replica.seal() {
            return Ok(replica);
        }
        let message = format!("'{place}' is the replica of another source, or of other columns");
        Err(Error::new(ErrorKind::CorruptIndex, message))
    }

    /// The state of the source that it belongs to.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.manifest.fingerprint
    }

    /// The manifest of a copy of this store, for a copy of its source that has this fingerprint. It lists the segments alone.
    ///
    /// # Errors
    /// `internal-error` for what does not become JSON.
    pub fn manifest_of_copy(&self, fingerprint: Fingerprint) -> Result<Vec<u8>> {
        let listing = Listing { segments: self.manifest.listing.segments.clone(), sorted: Vec::new() };
        Manifest { fingerprint, listing }.encode()
    }

    /// What counts.
    pub fn listing(&self) -> &Listing {
        &self.manifest.listing
    }

    /// Segments that are left out because they are damaged or gone, one line each.
    pub fn damage(&self) -> &[String] {
        &self.damage
    }

    /// What it has of each array. Reads the tables of all segments.
    pub fn arrays(&self) -> Vec<ArraySummary> {
        summaries(&self.segments)
    }

    /// The names of segments from which nothing is taken any more, as all that they have was built anew with other regions.
    pub fn superseded(&self) -> Vec<String> {
        superseded(&self.segments)
    }

    /// The records of the array at `path`; `None` if there are none (or none undamaged: [`Store::damage`]).
    ///
    /// What is damaged, or of an array of another shape, type or kind of missing values than the newest
    /// records', is left out and told in [`ArrayRecords::damage`]. Records of other regions than those of the newest build
    /// are left out, too.
    pub fn load(&self, path: &str) -> Option<ArrayRecords> {
        load(&self.segments, path, &self.damage, true)
    }

    /// Sorted replicas.
    pub fn sorted(&self) -> &[SortedEntry] {
        &self.manifest.listing.sorted
    }

    /// Makes `change` of what counts count, in a moment: whoever opens the store sees the old or the new state.
    /// With `durable` the new one survives a crash of the machine.
    ///
    /// `change` is given what counts now, for the source of this very `fingerprint`: nothing where the store
    /// belongs to another state of the source, or is damaged. Then files that no longer count are removed, and
    /// what killed builders left. Publishers wait for each other.
    ///
    /// # Errors
    /// `invalid-value` where `change` lists something that is not in this store; `unsupported` where a newer
    /// version wrote the store, or the file system has no locks; `permission-denied` where the place is
    /// read-only or not believed, with a hint; `io-error`, also where the store's lock is held too long. The old state counts then.
    pub fn publish(
        home: impl Into<Home>,
        fingerprint: &Fingerprint,
        change: &dyn Fn(&Listing) -> Listing,
        durable: bool,
    ) -> Result<()> {
        publish::publish(&home.into(), fingerprint, change, durable)
    }

    /// Removes what killed builders left in a store, as [`Store::publish`] does, where there is nothing to publish.
    /// What cannot be removed is left to the next time.
    pub fn tidy(home: &Home) {
        publish::tidy(home);
    }

    /// Removes a store; fine if there is none. What is being built there stays, as do files that are not ours.
    ///
    /// # Errors
    /// `permission-denied` or `io-error` where the manifest cannot be removed; `unsupported` where the file
    /// system has no locks.
    pub fn drop_all(home: impl Into<Home>) -> Result<()> {
        publish::drop_all(&home.into())
    }
}

fn announce(place: &Place, manifest: &Manifest) {
    let segments = manifest.listing.segments.iter();
    place.announce(segments.flat_map(|s| Segment::ends(s.bytes).map(|range| (s.name(), range))));
}
