//! What a query's objects are, in which state their sources are, and how much there is to be read of them.

use std::sync::Arc;

use sieva_index::content_hash;
use sieva_types::wire::{Subject, Writer};
use sieva_types::{Error, ErrorKind, Result};

use super::super::paths::array_of;
use super::super::query::CollectionQuery;
use super::super::run::{At, Walk};
use super::wire::{write_classes, write_objects};
use crate::augment::state_of_bytes;
use crate::frame::{framed, opened};
use crate::open::Source;

const LISTING: [u8; 4] = *b"SVCL";
/// Memory that a listing of somebody else may take.
const MEMORY: u64 = 256 << 20;
const SUBJECT: Subject = Subject {
    name: "listing",
    kind: ErrorKind::InvalidValue,
    hint: "send it again, or make it anew from the query: what it was sent through has changed or cut it off",
};

/// All objects of a query at one time.
#[derive(Debug)]
pub(in crate::collection) struct Listing {
    /// A hash of them, with their sources and the values of their keys.
    pub objects: u64,
    /// A hash of the states of all sources.
    pub states: u64,
    /// The state of each source.
    pub each: Vec<[u64; 3]>,
    /// For each source the bytes of the arrays of its objects, as they are stored where that is known.
    pub weights: Vec<Vec<u64>>,
}

impl CollectionQuery {
    /// Its objects and the states of their sources, which are opened for it once.
    pub(super) fn listing(&self) -> Result<Arc<Listing>> {
        self.listed_by(|| self.list())
    }

    /// Hashes of its objects with the values of their keys, of the states of their sources, and of how these are opened: equal
    /// where the same was asked of files that were not changed. All sources are opened for it, once.
    ///
    /// # Errors
    /// Those of opening, told with the location.
    pub fn state(&self) -> Result<[u64; 3]> {
        let listing = self.listing()?;
        Ok([listing.objects, listing.states, meaning_of(self.template().source())])
    }

    /// What tells the states of its sources, as bytes: another process that asks the same need not open all of them
    /// ([`CollectionQuery::take_listing`]). `None` of a query that is run by a plan of other names: its tasks list for themselves.
    ///
    /// # Errors
    /// Those of opening, told with the location.
    pub fn listing_bytes(&self) -> Result<Option<Vec<u8>>> {
        if self.planned_otherwise()?.is_some() {
            return Ok(None);
        }
        let listing = self.listing()?;
        let mut w = Writer::default();
        w.uint(listing.objects);
        w.uint(listing.states);
        w.list(&listing.each, |w, state| state.iter().for_each(|&n| w.uint(n)));
        w.list(&listing.weights, |w, weights| w.uints(weights));
        Ok(Some(framed(LISTING, w)))
    }

    /// Takes over what a process that asks the same found of the sources, which is believed: their states are those that it
    /// tells. The objects have to be those that the catalog tells here.
    ///
    /// # Errors
    /// `invalid-value` for bytes that are no listing, damaged, or of another version; `stale-source` where it is of other
    /// objects.
    pub fn take_listing(&self, bytes: &[u8]) -> Result<()> {
        let mut r = opened(LISTING, "SVCL", &SUBJECT, bytes, MEMORY)?;
        let (objects, states) = (r.uint()?, r.uint()?);
        let each = r.list(|r| Ok([r.uint()?, r.uint()?, r.uint()?]))?;
        let weights = r.list(|r| r.uints())?;
        let lens = weights.iter().map(Vec::len);
        let is_of_these = || lens.eq(self.found().iter().map(|found| found.objects.len()));
        if states != hash_of_states(&each) || each.len() != weights.len() {
            return Err(r.damaged("its states are others than it says"));
        }
        r.finish()?;
        if objects != self.hash_of_objects() || !is_of_these() {
            let what = "the catalog tells other processes of other objects, or of other values of their keys";
            return Err(Error::new(ErrorKind::StaleSource, what).hint("ask again"));
        }
        self.listed_by(|| Ok(Listing { objects, states, each, weights })).map(drop)
    }

    fn list(&self) -> Result<Listing> {
        let sources = self.found();
        let work = |at: At<'_>| {
            let is_first = at.found.objects.first().is_some_and(|first| std::ptr::eq(first, at.object));
            let state = if is_first { Some(state_of_bytes(at.source)?) } else { None };
            Ok((state, self.bytes_of(at)?))
        };
        let mut walk = Walk::new(sources);
        let (mut each, mut weights): (Vec<[u64; 3]>, Vec<Vec<u64>>) = (Vec::new(), Vec::new());
        while let Some(found) = walk.window(&self.setting(), &work)? {
            for (state, bytes) in found {
                if let Some(state) = state {
                    each.push(state);
                    weights.push(Vec::new());
                }
                weights.last_mut().ok_or_else(no_source)?.push(bytes);
            }
        }
        Ok(Listing { objects: self.hash_of_objects(), states: hash_of_states(&each), each, weights })
    }

    /// A hash of its objects, with their sources and the values of their keys.
    fn hash_of_objects(&self) -> u64 {
        let mut w = Writer::default();
        write_classes(&mut w, self.classes());
        w.list(self.found(), |w, found| {
            w.text(&found.location);
            write_objects(w, &found.objects);
        });
        content_hash(&w.into_bytes())
    }

    /// Bytes of the query's arrays in an object.
    fn bytes_of(&self, at: At<'_>) -> Result<u64> {
        let schema = at.source.schema();
        let mut bytes = 0_u64;
        for name in self.arrays() {
            let path = array_of(schema, &at.object.group, name)?;
            let Some(info) = path.and_then(|p| schema.array(&p)).map(|i| &schema.arrays[i]) else { continue };
            let whole = info.shape.iter().fold(info.dtype.size() as u64, |n, &len| n.saturating_mul(len));
            bytes = bytes.saturating_add(info.storage.stored_bytes.unwrap_or(whole));
        }
        Ok(bytes)
    }
}

fn hash_of_states(each: &[[u64; 3]]) -> u64 {
    let mut w = Writer::default();
    each.iter().flatten().for_each(|&n| w.uint(n));
    content_hash(&w.into_bytes())
}

fn no_source() -> Error {
    Error::new(ErrorKind::Internal, "an object before the first of its source")
}

/// A hash of how a source was opened, as far as that changes what its values mean.
pub(super) fn meaning_of(source: &Source) -> u64 {
    content_hash(source.meaning().as_bytes())
}
