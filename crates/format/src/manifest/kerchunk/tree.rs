//! A reference set as the tree of objects that a Zarr reader opens.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use sieva_store::{Counters, Entry, MemoryStore, ObjectTree, RangedRead, Span, Want};
use sieva_types::{Error, ErrorKind, Result};

use super::{Reference, References};

/// Opens the object at a url.
pub type Opener = Box<dyn Fn(&str) -> Result<Arc<dyn RangedRead>> + Send + Sync>;

/// The keys of a reference set as objects; the objects that they lead to are opened at their first use.
pub struct ReferenceTree {
    references: References,
    opener: Opener,
    opened: Mutex<HashMap<Arc<str>, Arc<dyn RangedRead>>>,
    /// Length and version of objects when the set was opened, where somebody noted them.
    noted: HashMap<Arc<str>, (u64, String)>,
    /// Whether a url leads over a network.
    is_far: bool,
    name: String,
    counters: Counters,
}

impl ReferenceTree {
    /// The tree of a reference set that messages call `name`. Every url in it is asked of `allowed`, as it will be
    /// handed to `opener`; a set that leads anywhere else is not opened at all.
    ///
    /// # Errors
    /// `link-refused`, naming the first url that is not allowed.
    pub fn new(
        name: impl Into<String>,
        references: References,
        opener: Opener,
        allowed: &dyn Fn(&str) -> bool,
    ) -> Result<Self> {
        let name = name.into();
        let urls = urls_of(&references);
        if let Some(url) = urls.iter().find(|url| !allowed(url)) {
            let message = format!("'{name}' refers to '{url}', outside of the roots that it may lead to");
            return Err(Error::new(ErrorKind::LinkRefused, message)
                .hint("name its directory with --external (external= in Python) if you trust it"));
        }
        // Those of networks have a scheme.
        let is_far = urls.iter().any(|url| url.contains("://") && !url.starts_with("file:"));
        let (opened, counters) = (Mutex::default(), Counters::default());
        let noted = HashMap::new();
        Ok(Self { references, opener, opened, noted, is_far, name, counters })
    }

    /// The same; `state` tells length and version of the object at a url as it is now, as far as that is known without opening
    /// it. They are part of the version of each reference to it, and an object that has others when it is opened is stale.
    #[must_use]
    pub fn noting(mut self, state: &dyn Fn(&str) -> Option<(u64, String)>) -> Self {
        let urls = urls_of(&self.references);
        self.noted = urls.into_iter().filter_map(|url| Some((Arc::clone(url), state(url)?))).collect();
        self
    }

    /// The reference set.
    pub fn references(&self) -> &References {
        &self.references
    }

    fn object(&self, url: &Arc<str>) -> Result<Arc<dyn RangedRead>> {
        let known = self.opened.lock().unwrap_or_else(PoisonError::into_inner).get(url).cloned();
        if let Some(object) = known {
            return Ok(object);
        }
        // Not under the lock: opening may take a network's time. Two may open it, one is kept.
        let object = (self.opener)(url).map_err(|e| e.at(&self.name))?;
        if self
            .noted
            .get(url)
            .is_some_and(|(len, version)| (*len, version) != (object.len(), &object.version()))
        {
            let message = format!(
                "'{}', to which '{}' refers, was changed since that was opened",
                object.name(),
                self.name
            );
            return Err(Error::new(ErrorKind::StaleSource, message).hint("open the source again"));
        }
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Arc::clone(opened.entry(Arc::clone(url)).or_insert(object)))
    }

    /// The object behind a key and the range of it that the key means.
    fn target(&self, url: &Arc<str>, reference: &Reference) -> Result<(Arc<dyn RangedRead>, Range<u64>)> {
        let object = self.object(url)?;
        let range = match reference {
            Reference::Range { offset, len, .. } => *offset..offset.saturating_add(*len),
            _ => 0..object.len(),
        };
        if range.end > object.len() {
            let (len, name) = (object.len(), object.name());
            return Err(
                Error::corrupt(format!("'{name}' is cut off: {range:?} of {len} bytes")).at(&self.name)
            );
        }
        Ok((object, range))
    }

    /// The part of `whole` that `span` means.
    fn cut(&self, key: &str, whole: Range<u64>, span: &Span) -> Result<Range<u64>> {
        let len = whole.end - whole.start;
        let part = match span {
            Span::All => 0..len,
            Span::Range(range) => range.clone(),
            Span::Last(n) => len.saturating_sub(*n)..len,
        };
        if part.start > part.end || part.end > len {
            let message = format!("'{}/{key}' is cut off: {part:?} of {len} bytes", self.name);
            return Err(Error::corrupt(message));
        }
        Ok(whole.start + part.start..whole.start + part.end)
    }
}

impl ObjectTree for ReferenceTree {
    fn get(&self, key: &str, span: &Span, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let Some(reference) = self.references.entries.get(key) else { return Ok(false) };
        match reference {
            Reference::Inline(bytes) => {
                let part = self.cut(key, 0..bytes.len() as u64, span)?;
                out.extend_from_slice(&bytes[part.start as usize..part.end as usize]);
            }
            Reference::Range { url, .. } | Reference::Whole { url } => {
                let (object, whole) = self.target(url, reference)?;
                let part = self.cut(key, whole, span)?;
                out.resize((part.end - part.start) as usize, 0);
                object.read_exact_at(part.start, out)?;
                self.counters.add_request(out.len() as u64);
            }
        }
        Ok(true)
    }

    fn list(&self, prefix: &str) -> Result<Option<Vec<Entry>>> {
        let mut found = Vec::new();
        let mut versions: HashMap<*const u8, String> = HashMap::new();
        let version = |url: &Arc<str>| {
            self.noted.get(url).map_or_else(String::new, |(len, version)| format!("{len} bytes {version}"))
        };
        for (key, reference) in self.references.entries.range(prefix.to_owned()..) {
            if !key.starts_with(prefix) {
                break;
            }
            let size = match reference {
                Reference::Inline(bytes) => bytes.len() as u64,
                Reference::Range { len, .. } => *len,
                Reference::Whole { url } => self.object(url)?.len(),
            };
            let version = match reference.url() {
                Some(url) => versions.entry(url.as_ptr()).or_insert_with(|| version(url)).clone(),
                None => String::new(),
            };
            found.push(Entry { key: key.clone(), size, version });
        }
        Ok(Some(found))
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn RangedRead>>> {
        let Some(reference) = self.references.entries.get(key) else { return Ok(None) };
        let name = format!("{}/{key}", self.name);
        Ok(Some(match reference {
            Reference::Inline(bytes) => Box::new(MemoryStore::new(name, bytes.clone())),
            Reference::Range { url, .. } | Reference::Whole { url } => {
                let (object, range) = self.target(url, reference)?;
                Box::new(Window { object, range, name })
            }
        }))
    }

    fn will_need(&self, wants: &[Want]) {
        let mut ranges: HashMap<&Arc<str>, Vec<Range<u64>>> = HashMap::new();
        for want in wants {
            let Some(reference) = self.references.entries.get(&want.key) else { continue };
            let Some(url) = reference.url() else { continue };
            let part =
                self.target(url, reference).and_then(|(_, whole)| self.cut(&want.key, whole, &want.span));
            // What cannot be had is told when it is read.
            if let Ok(part) = part {
                ranges.entry(url).or_default().push(part);
            }
        }
        for (url, ranges) in ranges {
            if let Ok(object) = self.object(url) {
                object.will_need(&ranges);
            }
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        let opened: Vec<Arc<dyn RangedRead>> =
            self.opened.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        opened.iter().try_for_each(|object| object.check_unchanged())
    }

    fn is_remote(&self) -> bool {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        // Before anything is open the urls tell.
        opened.values().any(|object| object.is_remote()) || opened.is_empty() && self.is_far
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// The urls of a set, in order. A hundred thousand references may share a long one: it is compared once.
fn urls_of(references: &References) -> BTreeSet<&Arc<str>> {
    let mut seen = HashSet::new();
    let urls = references.entries.values().filter_map(Reference::url);
    urls.filter(|url| seen.insert(Arc::as_ptr(url))).collect()
}

/// A part of an object as an object.
struct Window {
    object: Arc<dyn RangedRead>,
    range: Range<u64>,
    name: String,
}

impl RangedRead for Window {
    fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > self.len()) {
            return Err(Error::corrupt(format!(
                "'{}' is cut off: {} bytes at offset {offset} asked for, it has {}",
                self.name,
                out.len(),
                self.len()
            )));
        }
        self.object.read_exact_at(self.range.start + offset, out)
    }

    fn check_unchanged(&self) -> Result<()> {
        self.object.check_unchanged()
    }

    fn version(&self) -> String {
        self.object.version()
    }

    fn will_need(&self, ranges: &[Range<u64>]) {
        let moved = |r: &Range<u64>| {
            let at = |n: u64| n.saturating_add(self.range.start).min(self.range.end);
            at(r.start)..at(r.end)
        };
        self.object.will_need(&ranges.iter().map(moved).collect::<Vec<_>>());
    }

    fn is_remote(&self) -> bool {
        self.object.is_remote()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn counters(&self) -> &Counters {
        self.object.counters()
    }
}
