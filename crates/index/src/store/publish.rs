//! Changing what counts, and removing what does not.

use std::fs;
use std::io;
use std::path::Path;

use sieva_store::local::Dir;
use sieva_types::{Error, ErrorKind, Result};

use super::Fingerprint;
use super::Home;
use super::draft::Draft;
use super::files::{Locked, lock_shared_file, sync_dir, try_lock_existing, write_error};
use super::manifest::{Listing, Manifest, SegmentName, SortedEntry};
use super::names;

/// See [`Store::publish`](super::Store::publish).
pub(super) fn publish(
    home: &Home,
    fingerprint: &Fingerprint,
    change: &dyn Fn(&Listing) -> Listing,
    durable: bool,
) -> Result<()> {
    let dir = home.create()?;
    let _locked = locked(&dir, home)?;
    let old = current(home, fingerprint)?;
    let listing = change(&old);
    check(&dir, home, &old, &listing)?;
    let manifest = Manifest { fingerprint: fingerprint.clone(), listing };
    manifest.write(&dir, home, durable, || drafts(&manifest.listing).for_each(Draft::keep))?;
    drafts(&manifest.listing).for_each(Draft::release);
    sweep(&dir, &manifest.listing);
    match home.path().parent() {
        // The store's own directory may be new.
        Some(parent) if durable && !parent.as_os_str().is_empty() => {
            sync_dir(parent).map_err(|e| write_error(parent, &e))
        }
        _ => Ok(()),
    }
}

/// See [`Store::tidy`](super::Store::tidy).
pub(super) fn tidy(home: &Home) {
    let Ok(Some(_)) = Manifest::read(home) else { return };
    let Ok(Some(dir)) = home.open() else { return };
    let Ok(_locked) = lock_shared_file(&dir, home, names::LOCK) else { return };
    if let Ok(Some(manifest)) = Manifest::read(home) {
        sweep(&dir, &manifest.listing);
    }
}

fn locked(dir: &Dir, home: &Home) -> Result<Locked> {
    lock_shared_file(dir, home, names::LOCK).map_err(|e| write_error(&home.path().join(names::LOCK), &e))
}

/// See [`Store::drop_all`](super::Store::drop_all).
pub(super) fn drop_all(home: &Home) -> Result<()> {
    let Some(dir) = home.open()? else { return Ok(()) };
    let locked = locked(&dir, home)?;
    match dir.remove_file(Path::new(names::MANIFEST)) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            return Err(write_error(&home.path().join(names::MANIFEST), &e));
        }
        _ => sweep(&dir, &Listing::default()),
    }
    let _ = dir.remove_file(Path::new(names::LOCK));
    drop(locked);
    // Stays if there is something in it.
    let _ = fs::remove_dir(home.path());
    Ok(())
}

/// What counts now for the source of this fingerprint.
fn current(home: &Home, fingerprint: &Fingerprint) -> Result<Listing> {
    let manifest = match Manifest::read(home) {
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
fn check(dir: &Dir, home: &Home, old: &Listing, new: &Listing) -> Result<()> {
    let within = dir.through();
    let segment = |s: &&SegmentName| {
        let meta = fs::symlink_metadata(within.join(&s.name));
        old.segments.contains(s) || meta.is_ok_and(|m| m.is_file() && m.len() == s.bytes)
    };
    let sorted = |s: &&SortedEntry| {
        let meta = fs::symlink_metadata(within.join(s.name()));
        old.sorted.contains(s) || (names::is_ours(&s.name(), names::SORTED) && meta.is_ok_and(|m| m.is_dir()))
    };
    let missing = new.segments.iter().find(|s| !segment(s)).map(|s| s.name.clone());
    match missing.or_else(|| new.sorted.iter().find(|s| !sorted(s)).map(SortedEntry::name)) {
        None => Ok(()),
        Some(name) => Err(Error::new(
            ErrorKind::InvalidValue,
            format!(
                "'{name}' is not in the store '{}', or was changed since it was built",
                home.path().display()
            ),
        )),
    }
}

/// Removes files of ours that are not listed, unless a builder holds them. Failures are left to the next sweep.
fn sweep(dir: &Dir, listing: &Listing) {
    let Ok(entries) = fs::read_dir(dir.through()) else { return };
    let mut found: Vec<String> = entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
    // Directories before the locks that protect them.
    found.sort_unstable_by_key(|name| !name.ends_with(names::SORTED));
    for name in found {
        let _ = if names::is_ours(&name, names::ASIDE) {
            // Written under the store's lock, which is ours: its writer is dead.
            dir.remove_file(Path::new(&name))
        } else if names::is_ours(&name, names::SEGMENT) && !listing.segments.iter().any(|s| s.name == name) {
            remove_unlocked(dir, &name)
        } else if names::is_ours(&name, names::SORTED) && !listing.sorted.iter().any(|s| s.name() == name) {
            remove_sorted(dir, &name)
        } else if names::is_ours(&name, names::SORTED_LOCK) {
            remove_unlocked(dir, &name)
        } else {
            Ok(())
        };
    }
}

fn remove_unlocked(dir: &Dir, name: &str) -> io::Result<()> {
    try_lock_existing(dir, name).map_or(Ok(()), |_held| dir.remove_file(Path::new(name)))
}

fn remove_sorted(dir: &Dir, name: &str) -> io::Result<()> {
    let lock = name.replace(names::SORTED, names::SORTED_LOCK);
    let held = try_lock_existing(dir, &lock);
    if held.is_none() && dir.through().join(&lock).symlink_metadata().is_ok() {
        return Ok(());
    }
    fs::remove_dir_all(dir.through().join(name))
}
