//! Changing what counts, and removing what does not.

use std::fs;
use std::io;
use std::path::Path;

use sieva_types::{Error, ErrorKind, Result};

use super::Fingerprint;
use super::draft::Draft;
use super::files::{lock_shared_file, sync_dir, try_lock_existing, write_error};
use super::manifest::{Listing, Manifest, SegmentName, SortedEntry};
use super::names;

/// See [`Store::publish`](super::Store::publish).
pub(super) fn publish(
    dir: &Path,
    fingerprint: &Fingerprint,
    change: &dyn Fn(&Listing) -> Listing,
    durable: bool,
) -> Result<()> {
    fs::create_dir_all(dir).map_err(|e| write_error(dir, &e))?;
    let lock = dir.join(names::LOCK);
    let _locked = lock_shared_file(&lock).map_err(|e| write_error(&lock, &e))?;
    let old = current(dir, fingerprint)?;
    let listing = change(&old);
    check(dir, &old, &listing)?;
    let manifest = Manifest { fingerprint: fingerprint.clone(), listing };
    manifest.write(dir, durable, || drafts(&manifest.listing).for_each(Draft::keep))?;
    drafts(&manifest.listing).for_each(Draft::release);
    sweep(dir, &manifest.listing);
    match dir.parent() {
        // The store's own directory may be new.
        Some(parent) if durable && !parent.as_os_str().is_empty() => {
            sync_dir(parent).map_err(|e| write_error(parent, &e))
        }
        _ => Ok(()),
    }
}

/// See [`Store::tidy`](super::Store::tidy).
pub(super) fn tidy(dir: &Path) {
    let Ok(Some(_)) = Manifest::read(dir) else { return };
    let Ok(_locked) = lock_shared_file(&dir.join(names::LOCK)) else { return };
    if let Ok(Some(manifest)) = Manifest::read(dir) {
        sweep(dir, &manifest.listing);
    }
}

/// See [`Store::drop_all`](super::Store::drop_all).
pub(super) fn drop_all(dir: &Path) -> Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    let lock = dir.join(names::LOCK);
    let locked = lock_shared_file(&lock).map_err(|e| write_error(&lock, &e))?;
    let manifest = dir.join(names::MANIFEST);
    match fs::remove_file(&manifest) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(write_error(&manifest, &e)),
        _ => sweep(dir, &Listing::default()),
    }
    let _ = fs::remove_file(&lock);
    drop(locked);
    // Stays if there is something in it.
    let _ = fs::remove_dir(dir);
    Ok(())
}

/// What counts now for the source of this fingerprint.
fn current(dir: &Path, fingerprint: &Fingerprint) -> Result<Listing> {
    let manifest = match Manifest::read(dir) {
        Err(e) if e.kind() == ErrorKind::CorruptIndex => None,
        other => other?,
    };
    let same = manifest.filter(|manifest| manifest.fingerprint == *fingerprint);
    Ok(same.map(|manifest| manifest.listing).unwrap_or_default())
}

/// Drafts of what is listed: those that come to count now.
fn drafts(listing: &Listing) -> impl Iterator<Item = &Draft> {
    let segments = listing.segments.iter().map(|segment| &segment.draft);
    segments.chain(listing.sorted.iter().map(|sorted| &sorted.draft)).flatten().map(AsRef::as_ref)
}

/// Refuses to list what is not there. Of what counts already, readers tell.
fn check(dir: &Path, old: &Listing, new: &Listing) -> Result<()> {
    let segment = |s: &&SegmentName| {
        let meta = fs::symlink_metadata(dir.join(&s.name));
        old.segments.contains(s) || meta.is_ok_and(|m| m.is_file() && m.len() == s.bytes)
    };
    let sorted = |s: &&SortedEntry| {
        let meta = fs::symlink_metadata(dir.join(s.name()));
        old.sorted.contains(s) || (names::is_ours(&s.name(), names::SORTED) && meta.is_ok_and(|m| m.is_dir()))
    };
    let missing = new.segments.iter().find(|s| !segment(s)).map(|s| s.name.clone());
    match missing.or_else(|| new.sorted.iter().find(|s| !sorted(s)).map(SortedEntry::name)) {
        None => Ok(()),
        Some(name) => Err(Error::new(
            ErrorKind::InvalidValue,
            format!("'{name}' is not in the store '{}', or was changed since it was built", dir.display()),
        )),
    }
}

/// Removes files of ours that are not listed, unless a builder holds them. Failures are left to the next sweep.
fn sweep(dir: &Path, listing: &Listing) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    let mut found: Vec<String> = entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
    // Directories before the locks that protect them.
    found.sort_unstable_by_key(|name| !name.ends_with(names::SORTED));
    for name in found {
        let path = dir.join(&name);
        let _ = if names::is_ours(&name, names::ASIDE) {
            // Written under the store's lock, which is ours: its writer is dead.
            fs::remove_file(&path)
        } else if names::is_ours(&name, names::SEGMENT) && !listing.segments.iter().any(|s| s.name == name) {
            remove_unlocked(&path)
        } else if names::is_ours(&name, names::SORTED) && !listing.sorted.iter().any(|s| s.name() == name) {
            remove_sorted(&path)
        } else if names::is_ours(&name, names::SORTED_LOCK) {
            remove_unlocked(&path)
        } else {
            Ok(())
        };
    }
}

fn remove_unlocked(path: &Path) -> io::Result<()> {
    try_lock_existing(path).map_or(Ok(()), |_held| fs::remove_file(path))
}

fn remove_sorted(path: &Path) -> io::Result<()> {
    let lock = path.with_extension(&names::SORTED_LOCK[1..]);
    let held = try_lock_existing(&lock);
    if held.is_none() && lock.symlink_metadata().is_ok() {
        return Ok(());
    }
    fs::remove_dir_all(path)
}
