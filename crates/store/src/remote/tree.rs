//! Many remote objects under one root.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sieva_types::{Error, ErrorKind, Result};

use super::attempt::Ask;
use super::list;
use super::object::RemoteObject;
use super::runtime;
use super::target::Target;
use super::transport::Transport;
use crate::cache::{Cache, Flight, Promise};
use crate::location::check_key;
use crate::{Counters, Entry, ObjectTree, RangedRead, Span, Want};

/// Announced objects whose lengths are unknown, on their way or not yet asked for: as many as keep the connections
/// busy. More would fill memory with bytes that nobody may want.
const ANNOUNCED: usize = 64;
/// Objects of which ranges are read and whose versions are therefore remembered.
const PINNED: usize = 1 << 16;

/// A bucket's prefix, a container's, or a web server's folder.
#[derive(Debug)]
pub(crate) struct RemoteTree {
    transport: Arc<Transport>,
    /// What stands before every key: empty, or ending in `/`.
    prefix: String,
    name: String,
    counters: Arc<Counters>,
    /// Objects read by ranges, of which all ranges must be of one version.
    targets: Mutex<HashMap<String, Arc<Target>>>,
    /// Whole objects announced and not yet taken. Each is given once: a second reader sees the object of its own time.
    announced: Mutex<BTreeMap<String, Arc<Flight>>>,
}

impl RemoteTree {
    pub(crate) fn new(transport: Arc<Transport>, prefix: &str) -> Result<Self> {
        runtime::check_process()?;
        Cache::lock().set_limit(transport.options.cache_bytes);
        let prefix = match prefix.trim_end_matches('/') {
            "" => String::new(),
            trimmed => format!("{trimmed}/"),
        };
        Ok(Self {
            name: transport.service.name(prefix.trim_end_matches('/')),
            prefix,
            transport,
            counters: Arc::new(Counters::default()),
            targets: Mutex::default(),
            announced: Mutex::default(),
        })
    }

    fn key(&self, key: &str) -> Result<String> {
        check_key(key, &self.name)?;
        if key.is_empty() || key.starts_with('/') {
            let message = format!("key '{key}' leads out of '{}'", self.name);
            return Err(Error::new(ErrorKind::LinkRefused, message));
        }
        Ok(format!("{}{key}", self.prefix))
    }

    fn target(&self, key: &str) -> Arc<Target> {
        let mut targets = lock(&self.targets);
        if targets.len() >= PINNED && !targets.contains_key(key) {
            targets.clear();
        }
        let new = || Target::unseen(&self.transport, key, &self.counters);
        Arc::clone(targets.entry(key.to_owned()).or_insert_with(new))
    }

    fn range(&self, key: &str, range: &Range<u64>, out: &mut Vec<u8>) -> Result<bool> {
        let len = range.end.checked_sub(range.start).ok_or_else(|| {
            Error::corrupt(format!("'{}' is cut off: {range:?} asked for", self.transport.service.name(key)))
        })?;
        let most = self.transport.longest_body();
        if len > most {
            let name = self.transport.service.name(key);
            let message = format!("{len} bytes of '{name}' asked for at once, and {most} are allowed");
            return Err(Error::new(ErrorKind::MemoryLimit, message).hint("allow a larger cache"));
        }
        let target = self.target(key);
        out.resize(len as usize, 0);
        target.read(range.start, out, false).map(|()| true)
    }

    /// The object's last bytes, or all of it.
    fn unmeasured(&self, key: &str, span: Span, out: &mut Vec<u8>) -> Result<bool> {
        let announced = if span == Span::All { lock(&self.announced).remove(key) } else { None };
        if let Some(flight) = announced {
            self.counters.add_cache_hit();
            out.extend_from_slice(&flight.wait()?);
            return Ok(true);
        }
        let pinned = match span {
            Span::All => lock(&self.targets).get(key).cloned(),
            Span::Range(_) | Span::Last(_) => Some(self.target(key)),
        };
        let version = pinned.as_ref().and_then(|target| target.version().cloned());
        let (transport, counters, key) =
            (Arc::clone(&self.transport), Arc::clone(&self.counters), key.to_owned());
        let asked = span.clone();
        let fetched = runtime::wait_for(async move {
            let ask = Ask { key: &key, query: &[], span: asked, version, most: None };
            transport.fetch(&ask, &counters).await
        })?;
        if let Some(target) = pinned {
            target.pin(&fetched.version)?;
        }
        let from = match span {
            Span::Last(n) => fetched.bytes.len().saturating_sub(usize::try_from(n).unwrap_or(usize::MAX)),
            Span::All | Span::Range(_) => 0,
        };
        out.extend_from_slice(&fetched.bytes[from..]);
        Ok(true)
    }

    fn announce(&self, key: String) -> Result<()> {
        let (promise, flight) = Promise::new();
        {
            let mut announced = lock(&self.announced);
            if announced.contains_key(&key) {
                return Ok(());
            }
            if announced.len() >= ANNOUNCED {
                // Of those that came long ago, somebody else is not going to ask any more.
                let done = announced.iter().find(|(_, flight)| flight.is_done()).map(|(key, _)| key.clone());
                let Some(done) = done else { return Ok(()) };
                announced.remove(&done);
            }
            announced.insert(key.clone(), flight);
        }
        let (transport, counters) = (Arc::clone(&self.transport), Arc::clone(&self.counters));
        let version = lock(&self.targets).get(&key).and_then(|target| target.version().cloned());
        runtime::spawn(async move {
            let ask = Ask { key: &key, query: &[], span: Span::All, version, most: None };
            promise.keep(transport.fetch(&ask, &counters).await.map(|fetched| fetched.bytes));
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ObjectTree for RemoteTree {
    fn get(&self, key: &str, span: &Span, out: &mut Vec<u8>) -> Result<bool> {
        runtime::check_process()?;
        out.clear();
        let key = self.key(key)?;
        let done = match span {
            Span::Range(range) => self.range(&key, range, out),
            // A suffix of no bytes is no range (RFC 9110, section 14.1.2): ask for one, and give none.
            Span::Last(0) => self.unmeasured(&key, Span::Last(1), out).inspect(|_| out.clear()),
            span => self.unmeasured(&key, span.clone(), out),
        };
        match done {
            Err(e) if e.kind() == ErrorKind::FileNotFound => {
                out.clear();
                Ok(false)
            }
            done => done,
        }
    }

    fn list(&self, prefix: &str) -> Result<Option<Vec<Entry>>> {
        let Some(listing) = self.transport.service.listing() else { return Ok(None) };
        let (transport, counters) = (Arc::clone(&self.transport), Arc::clone(&self.counters));
        let (root, prefix) = (self.prefix.clone(), format!("{}{prefix}", self.prefix));
        let mut entries =
            runtime::wait_for(async move { list::all(&transport, listing, &prefix, &counters).await })?;
        entries.retain_mut(|entry| match entry.key.strip_prefix(&root) {
            // Names that end in '/' are how browsers mark folders.
            Some(key) if !key.is_empty() && !key.ends_with('/') => {
                entry.key = key.to_owned();
                true
            }
            _ => false,
        });
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Some(entries))
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn RangedRead>>> {
        match RemoteObject::open(&self.transport, &self.key(key)?) {
            Ok(object) => Ok(Some(Box::new(object))),
            Err(e) if e.kind() == ErrorKind::FileNotFound => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn will_need(&self, wants: &[Want]) {
        if runtime::check_process().is_err() {
            return;
        }
        let mut ranges: BTreeMap<String, Vec<Range<u64>>> = BTreeMap::new();
        for want in wants {
            let Ok(key) = self.key(&want.key) else { continue };
            match &want.span {
                Span::Range(range) => ranges.entry(key).or_default().push(range.clone()),
                // What cannot be fetched is told when it is asked for.
                Span::All => drop(self.announce(key)),
                Span::Last(_) => {}
            }
        }
        for (key, ranges) in ranges {
            let _ = self.target(&key).will_need(&ranges);
        }
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
