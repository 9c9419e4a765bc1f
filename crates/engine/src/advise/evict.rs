//! Taking single augmentations out of a store: zone maps and bitmaps share files, so what stays is written anew.

use sieva_index::store::{Listing, Record, SegmentWriter, Store};
use sieva_types::Result;

use super::{candidates, number};
use crate::augment::IndexKind;
use crate::open::Source;

/// Removes augmentations, as (path, kind), of a source; zone maps go with their bitmaps.
///
/// # Errors
/// `permission-denied`, `io-error`, and those of a store that is damaged.
pub(super) fn remove(
    source: &Source,
    drops: &[(String, IndexKind)],
    options: &super::AdviseOptions,
) -> Result<()> {
    if source.many().is_some() {
        for file in source.files() {
            let file = candidates::open(&file, options)?;
            let known = |path: &str| file.schema().arrays.iter().any(|a| a.path == path);
            let held: Vec<_> = drops.iter().filter(|(path, _)| known(path)).cloned().collect();
            remove(&file, &held, options)?;
        }
        return Ok(());
    }
    let replicas: Vec<String> = paths(drops, |k| k == IndexKind::Sorted);
    if !replicas.is_empty() {
        source.drop_replicas(&replicas)?;
    }
    if drops.iter().any(|(_, k)| *k != IndexKind::Sorted) {
        let status = source.held_status()?;
        if status.exists && !status.stale {
            rewrite(source, drops)?;
        }
        source.save_learnt();
    }
    Ok(())
}

fn paths(drops: &[(String, IndexKind)], which: impl Fn(IndexKind) -> bool) -> Vec<String> {
    drops.iter().filter(|(_, k)| which(*k)).map(|(path, _)| path.clone()).collect()
}

/// Writes what stays to a segment of its own, which then counts in place of those that it was read from.
fn rewrite(source: &Source, drops: &[(String, IndexKind)]) -> Result<()> {
    let Some(home) = source.used_home() else { return Ok(()) };
    let Some(store) = Store::open(&home)? else { return Ok(()) };
    let goes = |path: &str, kind: usize| drops.iter().any(|(p, k)| p == path && number(*k) == kind);
    let old: Vec<String> = store.listing().segments.iter().map(|s| s.name().to_string()).collect();
    let mut writer = SegmentWriter::create(&home)?;
    let mut written = false;
    for array in store.arrays() {
        let path = array.path();
        let Some(records) = store.load(path).filter(|_| !goes(path, 0)) else { continue };
        for region in 0..array.header.regions()? {
            let at = region as usize;
            let Some(stats) = records.stats(at) else { continue };
            let (mut body, head) = (Vec::new(), records.bitmap_head(at).unwrap_or(None));
            let head =
                head.filter(|h| !goes(path, 1) && records.read_body(at, 0..h.body_len, &mut body).is_ok());
            let bitmap = head.as_ref().map(|h| (&h[..], &body[..]));
            writer.put(&array.header, &Record { region, content: records.content(at), stats, bitmap })?;
            written = true;
        }
    }
    let new = if written { Some(writer.finish(true)?) } else { None };
    let change = |listing: &Listing| {
        let mut listing = listing.clone();
        listing.segments.retain(|s| !old.iter().any(|o| o == s.name()));
        // What was published meanwhile is newer.
        listing.segments.splice(0..0, new.clone());
        listing
    };
    Store::publish(&home, store.fingerprint(), &change, true)
}
