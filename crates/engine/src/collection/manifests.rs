//! Manifests that were decoded, kept for the next query of this process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use sieva_catalog::{Catalog, Known};
use sieva_format::manifest::Manifest;
use sieva_types::Result;

/// Arrays of all manifests that are kept: some 100 MB.
const MOST_ARRAYS: usize = 150_000;

/// What is known of a source before it is opened.
pub(super) enum Hint {
    /// Nothing.
    None,
    /// Its manifest as the catalog keeps it, with the state that it is of.
    Stored(Known),
    /// Its manifest.
    Decoded(Box<Manifest>),
}

#[derive(Default)]
struct Kept {
    arrays: usize,
    by_location: HashMap<String, (u64, String, Manifest)>,
}

fn kept() -> MutexGuard<'static, Kept> {
    static KEPT: OnceLock<Mutex<Kept>> = OnceLock::new();
    KEPT.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hints for these sources. A manifest is used again as long as the catalog tells of the same state of the source.
pub(super) fn hints(catalog: &Catalog, locations: &[&str]) -> Result<Vec<Hint>> {
    let (had, new): (Vec<&str>, Vec<&str>) = {
        let kept = kept();
        locations.iter().partition(|l| kept.by_location.contains_key(**l))
    };
    let mut known = catalog.known(&new, true)?;
    known.extend(catalog.known(&had, false)?);
    let kept = kept();
    let mut stale = Vec::new();
    let mut hints = Vec::with_capacity(locations.len());
    for (i, &location) in locations.iter().enumerate() {
        hints.push(match (known.remove(location), kept.by_location.get(location)) {
            (Some(now), Some((size, version, manifest))) if now.size == *size && now.version == *version => {
                Hint::Decoded(Box::new(manifest.clone()))
            }
            (Some(now), _) if now.manifest.is_some() => Hint::Stored(now),
            (Some(_), Some(_)) => {
                stale.push(i);
                Hint::None
            }
            _ => Hint::None,
        });
    }
    drop(kept);
    let changed: Vec<&str> = stale.iter().map(|&i| locations[i]).collect();
    let mut known = catalog.known(&changed, true)?;
    for i in stale {
        if let Some(now) = known.remove(locations[i]) {
            hints[i] = Hint::Stored(now);
        }
    }
    Ok(hints)
}

/// The manifest that a hint holds, kept from now on; `None` where there is none that can be read.
pub(super) fn decoded(location: &str, hint: Hint) -> Option<Manifest> {
    let known = match hint {
        Hint::None => return None,
        Hint::Decoded(manifest) => return Some(*manifest),
        Hint::Stored(known) => known,
    };
    let manifest = Manifest::decode(known.manifest.as_deref()?).ok()?;
    let arrays = manifest.schema().arrays.len();
    let mut kept = kept();
    if let Some((_, _, old)) = kept.by_location.remove(location) {
        kept.arrays -= old.schema().arrays.len();
    }
    if kept.arrays + arrays <= MOST_ARRAYS {
        kept.arrays += arrays;
        let entry = (known.size, known.version.clone(), manifest.clone());
        kept.by_location.insert(location.to_string(), entry);
    }
    Some(manifest)
}
