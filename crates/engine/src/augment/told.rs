//! What the catalog is told of augmentations: those that were built, dropped, or found to be of another state of the source.
//!
//! It is told by comparing: what a store holds now goes into the catalog in place of what was known of it, so that it is right
//! again whatever was missed before. Whatever goes wrong with the catalog is a note, and never the end of a build.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use sieva_catalog::{Augmentation, AugmentationState, Catalog};
use sieva_index::store::{ArraySummary, Home, Store};
use sieva_types::{Error, ErrorKind, Result};

use super::beside::was_built;
use super::{IndexKind, homes};
use crate::advise::name_of;
use crate::catalog::place;
use crate::open::Source;

/// How long a build took, for each byte of the arrays that it was of.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rate(f64);

impl Rate {
    /// Of the arrays of a source that were built in so many seconds.
    pub(crate) fn of(source: &Source, arrays: &[usize], seconds: f64) -> Self {
        let all: f64 = arrays.iter().map(|&a| data_bytes(source, a) as f64).sum();
        Self(if all > 0.0 { seconds / all } else { 0.0 })
    }
}

impl Source {
    /// Tells the catalog what the stores of this source hold: the one that the source was opened with, if it may be written,
    /// else that of `SIEVA_CATALOG`, else the user's own where the source is known to it. None is made. What went wrong, if
    /// something did.
    pub(crate) fn tell_catalog(&self, rate: Rate) -> Option<String> {
        if self.many().is_some() {
            // Each of its files tells what is beside it.
            return None;
        }
        let told = self.catalog_to_tell().and_then(|found| match found {
            Some((catalog, location)) => tell(self, &catalog, &location, rate),
            None => Ok(()),
        });
        told.err().map(|e| format!("the catalog was not told: {}", e.message()))
    }

    /// The catalog that is to be told, with the name of this source there.
    fn catalog_to_tell(&self) -> Result<Option<(Arc<Catalog>, String)>> {
        let given = self.options().told.as_ref().or(self.options().catalog.as_ref());
        let given = given.filter(|c| !c.is_read_only()).cloned();
        let (named, own) = (place::named()?, place::own_file());
        let own = own.and_then(|file| file.to_str().map(str::to_owned));
        if given.is_none() && named.is_none() && own.as_deref().is_none_or(|own| !is_there(own)) {
            return Ok(None);
        }
        let Some(location) = self.path().to_str().and_then(|path| place::location(path).ok()) else {
            return Ok(None);
        };
        if let Some(catalog) = given {
            return Ok(Some((catalog, location)));
        }
        let is_named = named.is_some();
        let Some(url) = named.or(own).filter(|url| is_there(url)) else { return Ok(None) };
        let catalog = Catalog::open(&url)?;
        if catalog.is_read_only() {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                format!("'{}' may not be written", sieva_store::redacted_database(&url)),
            ));
        }
        let is_known = is_named || !catalog.known(&[&location], None)?.is_empty();
        Ok(is_known.then(|| (Arc::new(catalog), location)))
    }
}

/// Whether there is a catalog of this URL, as far as can be told without a server.
pub(crate) fn is_there(url: &str) -> bool {
    url.contains("://") || Path::new(url.strip_prefix("sqlite:").unwrap_or(url)).exists()
}

/// Makes what a catalog knows of a source's stores what they hold.
///
/// # Errors
/// Those of the catalog, and of reading the source.
pub(crate) fn tell(source: &Source, catalog: &Catalog, location: &str, rate: Rate) -> Result<()> {
    if source.many().is_some() {
        let there = inventory_of_many(source, location, rate)?;
        return catalog.sync_augmentations(location, location, &there, now()).map(drop);
    }
    let mut all = homes(source.path(), source.options()).read;
    let write = source.loaded()?.write.clone();
    if !all.iter().any(|home| home.path() == write.path()) {
        all.push(write);
    }
    for home in all {
        let opened = source.check_store(&home.path()).and_then(|()| Store::open(&home));
        // What cannot be looked at is not known to be gone.
        let Ok(store) = opened else { continue };
        let there = match store.filter(was_built) {
            Some(store) => inventory(source, &store, location, &home, rate)?,
            None => Vec::new(),
        };
        catalog.sync_augmentations(location, &name(&home), &there, now())?;
    }
    Ok(())
}

/// The name of a store in the catalog.
pub(crate) fn name(home: &Home) -> String {
    place::location_or_absolute(&home.path())
}

pub(crate) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

fn inventory(
    source: &Source,
    store: &Store,
    location: &str,
    home: &Home,
    rate: Rate,
) -> Result<Vec<Augmentation>> {
    let built_for = store.fingerprint();
    let is_current = built_for == source.loaded()?.fingerprint()?;
    let whole = Augmentation {
        version: built_for.version.clone(),
        store: name(home),
        fingerprint: format!("{}-{:016x}", built_for.len, built_for.content),
        state: if is_current { AugmentationState::Current } else { AugmentationState::Stale },
        ..blank(location)
    };
    let one = |path: &str, kind: IndexKind, bytes: u64, data_bytes: u64, seconds: f64| Augmentation {
        path: path.to_string(),
        kind: name_of(kind).to_string(),
        bytes,
        data_bytes,
        seconds,
        ..whole.clone()
    };
    let mut found = Vec::new();
    for a in store.arrays() {
        let (data, path) = (indexed_bytes(&a), a.path());
        let seconds = rate.0 * data as f64;
        if a.with_stats > 0 {
            found.push(one(path, IndexKind::ZoneMap, a.stats_bytes, data, seconds));
        }
        if a.with_bitmap > 0 {
            found.push(one(path, IndexKind::Bitmap, a.head_bytes + a.body_bytes, data, seconds));
        }
    }
    for replica in store.sorted() {
        let bytes_of = |path: &String| {
            let array = source.schema().arrays.iter().position(|a| a.path == *path);
            array.map_or(0, |a| data_bytes(source, a))
        };
        let data = replica.columns.iter().map(bytes_of).fold(0, u64::saturating_add);
        let seconds = rate.0 * bytes_of(&replica.key) as f64;
        found.push(one(&replica.key, IndexKind::Sorted, replica.bytes, data, seconds));
    }
    Ok(found)
}

/// What files that are joined hold together: each has its store, so that the name of all stands for a store.
fn inventory_of_many(source: &Source, location: &str, rate: Rate) -> Result<Vec<Augmentation>> {
    let version = source.reader().store().version();
    let whole = Augmentation { version, store: location.to_string(), ..blank(location) };
    let mut found = Vec::new();
    for a in source.held_status()?.arrays {
        let kinds = [
            (IndexKind::ZoneMap, a.with_stats, a.stats_bytes),
            (IndexKind::Bitmap, a.with_bitmap, a.bitmap_bytes),
        ];
        for (kind, regions, bytes) in kinds {
            let (path, kind) = (a.path.clone(), name_of(kind).to_string());
            let (data_bytes, seconds) = (a.data_bytes, rate.0 * a.data_bytes as f64);
            let one = Augmentation { path, kind, bytes, data_bytes, seconds, ..whole.clone() };
            found.extend((regions > 0).then_some(one));
        }
    }
    Ok(found)
}

/// What is the same of all augmentations of a source that are noted now.
fn blank(location: &str) -> Augmentation {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Augmentation {
        location: location.to_string(),
        path: String::new(),
        kind: String::new(),
        version: String::new(),
        bytes: 0,
        seconds: 0.0,
        host: host.trim().to_string(),
        at: now(),
        store: String::new(),
        data_bytes: 0,
        fingerprint: String::new(),
        state: AugmentationState::Current,
    }
}

fn indexed_bytes(a: &ArraySummary) -> u64 {
    a.header.shape.iter().fold(a.header.dtype.size() as u64, |n, &d| n.saturating_mul(d))
}

/// The bytes of an array's elements, decoded.
pub(super) fn data_bytes(source: &Source, array: usize) -> u64 {
    let info = &source.schema().arrays[array];
    info.shape.iter().fold(info.dtype.size() as u64, |n, &d| n.saturating_mul(d))
}

/// An augmentation that a catalog knows, and what became of it where it was looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownAugmentation {
    /// What the catalog knows.
    pub known: Augmentation,
    /// Why its files could not be looked at; what is known of it then may not hold any more.
    pub unseen: Option<String>,
}

/// The augmentations that a catalog knows of sources whose location begins with `prefix`, in order of location, array and
/// kind. `look`: the files are looked at, and the catalog is told what is there now.
///
/// # Errors
/// Those of the catalog; `permission-denied` where it is to be told and may not be written.
pub fn augmentations(
    catalog: &Catalog,
    prefix: &str,
    look: bool,
    options: &crate::OpenOptions,
) -> Result<Vec<KnownAugmentation>> {
    let known = catalog.augmentations(prefix)?;
    let plain = |known| KnownAugmentation { known, unseen: None };
    if !look {
        return Ok(known.into_iter().map(plain).collect());
    }
    let mut places: Vec<(String, String)> =
        known.iter().map(|a| (a.location.clone(), a.store.clone())).collect();
    places.sort_unstable();
    places.dedup();
    let mut unseen: Vec<(String, String)> = Vec::new();
    for (location, store) in places {
        match look_at(catalog, &location, &store, options) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::Cancelled => return Err(e),
            Err(e) if catalog.is_read_only() => return Err(e),
            Err(e) => unseen.push((location, e.message().to_string())),
        }
    }
    let why = |location: &str| unseen.iter().find(|(l, _)| l == location).map(|(_, why)| why.clone());
    let seen = |known: Augmentation| KnownAugmentation { unseen: why(&known.location), known };
    Ok(catalog.augmentations(prefix)?.into_iter().map(seen).collect())
}

/// Tells a catalog what one store holds of a source now.
fn look_at(catalog: &Catalog, location: &str, store: &str, options: &crate::OpenOptions) -> Result<()> {
    let is_gone = |path: &str| {
        let found = std::fs::symlink_metadata(path);
        !sieva_store::is_url(path) && found.is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
    };
    if is_gone(location) || (!store.is_empty() && is_gone(store)) {
        // Augmentations of a file that is not there are of no use, whatever is left of them.
        return catalog.sync_augmentations(location, store, &[], now()).map(drop);
    }
    // A store that was kept elsewhere is looked for there: the name of that directory begins the store's own.
    let given = Path::new(store).parent().map(PathBuf::from);
    for dir in [None, given] {
        let options = crate::OpenOptions {
            store: dir.or_else(|| options.store.clone()),
            catalog: None,
            ..options.clone()
        };
        let source = Source::open(Path::new(location), &options)?;
        let homes = homes(source.path(), source.options()).read;
        // Which store it was in was not told by earlier versions.
        if store.is_empty() || homes.iter().any(|home| name(home) == store) {
            return tell(&source, catalog, location, Rate::default());
        }
    }
    Ok(())
}
