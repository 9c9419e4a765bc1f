//! What manifests say of the objects of a query, kept for the next query of this process.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sieva_catalog::{Catalog, Known};
use sieva_format::manifest::Excerpt;
use sieva_index::content_hash;
use sieva_types::Result;

use super::objects::{Object, SourceObjects};

/// Bytes of the manifests that are fetched at once: those of sources for which it does not suffice are parsed.
const MANIFESTS: u64 = 128 << 20;
/// Arrays of all excerpts that are kept: some 100 MB.
const MOST_ARRAYS: usize = 150_000;

/// Groups that few objects lie in.
const MOST_ABOVE: usize = 64;

/// What is known of a source before it is opened.
pub(super) enum Hint {
    /// Nothing.
    None,
    /// What the catalog keeps of it.
    Stored(Known),
    /// What came with the objects from elsewhere.
    Carried(Arc<[u8]>),
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

impl Kept {
    /// What is known of a source without asking anybody.
    fn hint(&self, source: &SourceObjects) -> Hint {
        let known = self.by_location.get(&source.location).filter(|e| e.has(&source.objects));
        let came = source.pinned.as_ref().and_then(|p| p.manifest.as_ref());
        match (known, came) {
            (Some(entry), _) => Hint::Decoded(Arc::clone(&entry.excerpt)),
            (None, Some(bytes)) => Hint::Carried(Arc::clone(bytes)),
            (None, None) => Hint::None,
        }
    }
}

fn kept() -> MutexGuard<'static, Kept> {
    static KEPT: OnceLock<Mutex<Kept>> = OnceLock::new();
    KEPT.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hints for these sources and their objects. The catalog, where there is one, is asked of those alone of which nothing is
/// kept and nothing came along: whether a manifest is of the present state of its source, the source itself tells when it
/// is opened.
pub(super) fn hints(catalog: Option<&Catalog>, sources: &[&SourceObjects]) -> Result<Vec<Hint>> {
    let mut hints: Vec<Hint> = {
        let kept = kept();
        sources.iter().map(|s| kept.hint(s)).collect()
    };
    let unknown = |(s, h): (&&SourceObjects, &Hint)| matches!(h, Hint::None).then(|| s.location.clone());
    let new: Vec<String> = sources.iter().zip(&hints).filter_map(unknown).collect();
    let new: Vec<&str> = new.iter().map(String::as_str).collect();
    let mut known = match catalog {
        Some(catalog) if !new.is_empty() => catalog.known(&new, Some(MANIFESTS))?,
        _ => HashMap::new(),
    };
    for (source, hint) in sources.iter().zip(&mut hints) {
        if let (Hint::None, Some(stored)) = (&hint, known.remove(&source.location)) {
            *hint = Hint::Stored(stored);
        }
    }
    Ok(hints)
}

/// For each of these sources, which are pinned, what opening it for its objects needs, as bytes: none where its manifest is
/// not there, or not of the state that it is pinned to. Together they take as much as manifests that are fetched at once.
pub(super) fn carried(catalog: &Catalog, sources: &[SourceObjects]) -> Result<Vec<Option<Arc<[u8]>>>> {
    let all: Vec<&SourceObjects> = sources.iter().collect();
    let (hints, mut left) = (hints(Some(catalog), &all)?, MANIFESTS as usize);
    let bytes = |(source, hint): (&SourceObjects, Hint)| {
        let (pinned, excerpt) = (source.pinned.as_ref()?, decoded(source, hint)?);
        let (manifest, groups) = (excerpt.manifest(), groups_of(source));
        let state = [manifest.object_len(), content_hash(manifest.object_version().as_bytes())];
        if state != pinned.state {
            return None;
        }
        // A part of a large source's objects: what is kept of it tells of all.
        let is_small = manifest.schema().groups.len() < 2 * groups.len() + MOST_ABOVE;
        let bytes = if is_small { excerpt.to_bytes() } else { excerpt.part(&groups).ok()?.to_bytes() };
        left = left.checked_sub(bytes.len())?;
        Some(bytes.into())
    };
    Ok(sources.iter().zip(hints).map(bytes).collect())
}

/// The groups of a source's objects, ascending and each once.
fn groups_of(source: &SourceObjects) -> Vec<&str> {
    let mut groups: Vec<&str> = source.objects.iter().map(|o| o.group.as_str()).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
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
    let excerpt = Arc::new(match hint {
        Hint::None => return None,
        Hint::Decoded(excerpt) => return Some(excerpt),
        Hint::Carried(bytes) => Excerpt::from_bytes(&bytes).ok()?,
        Hint::Stored(known) => Excerpt::decode(known.manifest.as_deref()?, &groups_of(source)).ok()?,
    });
    let groups = groups_of(source).into_iter().map(str::to_owned).collect();
    let entry = Entry { groups, excerpt: Arc::clone(&excerpt) };
    forget(&source.location);
    let mut kept = kept();
    if kept.arrays + entry.arrays() <= MOST_ARRAYS {
        kept.arrays += entry.arrays();
        kept.by_location.insert(source.location.clone(), entry);
    }
    Some(excerpt)
}
