//! What manifests say of the objects of a query, kept for the next query of this process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sieva_catalog::{Catalog, Known};
use sieva_format::manifest::Excerpt;
use sieva_types::Result;

use super::objects::{Object, SourceObjects};

/// Bytes of the manifests that are fetched at once: those of sources for which it does not suffice are parsed.
const MANIFESTS: u64 = 128 << 20;
/// Arrays of all excerpts that are kept: some 100 MB.
const MOST_ARRAYS: usize = 150_000;

/// What is known of a source before it is opened.
pub(super) enum Hint {
    /// Nothing.
    None,
    /// What the catalog keeps of it.
    Stored(Known),
    /// What its manifest says of the objects.
    Decoded(Arc<Excerpt>),
}

/// What was decoded of a source's manifest.
struct Entry {
    /// The groups that it tells of, ascending.
    groups: Vec<String>,
    excerpt: Arc<Excerpt>,
}

impl Entry {
    fn arrays(&self) -> usize {
        self.excerpt.manifest().schema().arrays.len()
    }

    fn has(&self, objects: &[Object]) -> bool {
        objects.iter().all(|o| self.groups.binary_search(&o.group).is_ok())
    }
}

#[derive(Default)]
struct Kept {
    arrays: usize,
    /// No hash table: leak checkers, to which it looks lost, see that this one is in use until the process ends.
    by_location: BTreeMap<String, Entry>,
}

fn kept() -> MutexGuard<'static, Kept> {
    static KEPT: OnceLock<Mutex<Kept>> = OnceLock::new();
    KEPT.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hints for these sources and their objects. The catalog is asked of those alone of which nothing is kept: whether a
/// manifest is of the present state of its source, the source itself tells when it is opened.
pub(super) fn hints(catalog: &Catalog, sources: &[&SourceObjects]) -> Result<Vec<Hint>> {
    let kept: Vec<Option<Arc<Excerpt>>> = {
        let kept = kept();
        let of = |s: &SourceObjects| kept.by_location.get(&s.location).filter(|e| e.has(&s.objects));
        sources.iter().map(|s| of(s).map(|e| Arc::clone(&e.excerpt))).collect()
    };
    let new: Vec<&str> =
        sources.iter().zip(&kept).filter(|(_, k)| k.is_none()).map(|(s, _)| s.location.as_str()).collect();
    let mut known = if new.is_empty() { HashMap::new() } else { catalog.known(&new, Some(MANIFESTS))? };
    let hint = |(source, kept): (&&SourceObjects, Option<Arc<Excerpt>>)| match kept {
        Some(excerpt) => Hint::Decoded(excerpt),
        None => known.remove(&source.location).map_or(Hint::None, Hint::Stored),
    };
    Ok(sources.iter().zip(kept).map(hint).collect())
}

/// Forgets what is kept of a source that has changed.
pub(super) fn forget(location: &str) {
    let mut kept = kept();
    if let Some(old) = kept.by_location.remove(location) {
        kept.arrays -= old.arrays();
    }
}

/// What a hint says of the objects of a source, kept from now on; `None` where there is nothing that can be read.
pub(super) fn decoded(source: &SourceObjects, hint: Hint) -> Option<Arc<Excerpt>> {
    let known = match hint {
        Hint::None => return None,
        Hint::Decoded(excerpt) => return Some(excerpt),
        Hint::Stored(known) => known,
    };
    let mut groups: Vec<String> = source.objects.iter().map(|o| o.group.clone()).collect();
    groups.sort_unstable();
    groups.dedup();
    let wanted: Vec<&str> = groups.iter().map(String::as_str).collect();
    let excerpt = Arc::new(Excerpt::decode(known.manifest.as_deref()?, &wanted).ok()?);
    let entry = Entry { groups, excerpt: Arc::clone(&excerpt) };
    forget(&source.location);
    let mut kept = kept();
    if kept.arrays + entry.arrays() <= MOST_ARRAYS {
        kept.arrays += entry.arrays();
        kept.by_location.insert(source.location.clone(), entry);
    }
    Some(excerpt)
}
