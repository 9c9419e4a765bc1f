//! One remote object: its bytes are in the cache, on their way, or asked for, each once.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use sieva_types::{Error, Result};

use super::attempt::{Ask, Fetched};
use super::coalesce::{self, GAP, LONGEST, ReadAhead};
use super::landing::Landing;
use super::runtime;
use super::transport::Transport;
use super::validator::Validator;
use crate::cache::{Cache, DiskCache, Group, Part};
use crate::{Counters, Span};

/// Reads longer than this are done piece by piece, so that what is held for one reader is bounded.
const WINDOW: u64 = 32 << 20;

/// An object of a server.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) transport: Arc<Transport>,
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) counters: Arc<Counters>,
    group: Group,
    /// The version that all bytes are of; set by the first answer.
    version: OnceLock<Validator>,
    disk: Option<DiskCache>,
    ignores_ranges: bool,
    /// When the server last said that it is this version; none after a failure.
    seen: Mutex<Option<Instant>>,
    ahead: Mutex<ReadAhead>,
}

impl Target {
    /// An object of which nothing is known yet.
    pub(crate) fn unseen(transport: &Arc<Transport>, key: &str, counters: &Arc<Counters>) -> Arc<Self> {
        Arc::new(Self {
            transport: Arc::clone(transport),
            key: key.to_owned(),
            name: transport.service.name(key),
            counters: Arc::clone(counters),
            group: Group::unique(),
            version: OnceLock::new(),
            disk: None,
            ignores_ranges: false,
            seen: Mutex::default(),
            ahead: Mutex::new(ReadAhead::after(0)),
        })
    }

    /// An object whose first bytes have come. Whoever opened the same version before shares its cache.
    pub(crate) fn opened(
        transport: &Arc<Transport>,
        key: &str,
        counters: Arc<Counters>,
        first: Fetched,
    ) -> Self {
        let Fetched { bytes, start, version, ignores_ranges } = first;
        let identity = format!("{} {version}", transport.service.identity(key));
        let is_known = !version.is_weak();
        let group = if is_known { Group::of(identity.as_bytes()) } else { Group::unique() };
        let options = &transport.options;
        let disk = options.cache_dir.as_ref().filter(|_| is_known);
        let disk = disk.map(|dir| DiskCache::open(dir, options.disk_bytes, identity.as_bytes()));
        let end = start + bytes.len() as u64;
        Cache::lock().keep(group, start, bytes);
        Self {
            name: transport.service.name(key),
            transport: Arc::clone(transport),
            key: key.to_owned(),
            counters,
            group,
            version: OnceLock::from(version),
            disk,
            ignores_ranges,
            seen: Mutex::new(Some(Instant::now())),
            ahead: Mutex::new(ReadAhead::after(end)),
        }
    }

    pub(crate) fn version(&self) -> Option<&Validator> {
        self.version.get()
    }

    /// Fills `out` from `offset` on, which must lie within the object where its length is known.
    pub(crate) fn read(self: &Arc<Self>, offset: u64, out: &mut [u8], reads_ahead: bool) -> Result<()> {
        runtime::check_process()?;
        let mut at = offset;
        for piece in out.chunks_mut(WINDOW as usize) {
            let range = at..at + piece.len() as u64;
            for part in self.claim(&range, reads_ahead)? {
                let bytes = part.flight.wait()?;
                copy(&part.range, &bytes, &range, piece, &self.name)?;
            }
            at = range.end;
        }
        Ok(())
    }

    /// Starts fetching what of `ranges` is neither there nor on its way, as far as half of the cache goes.
    pub(crate) fn will_need(self: &Arc<Self>, ranges: &[Range<u64>]) -> Result<()> {
        runtime::check_process()?;
        let len = self.version().map_or(u64::MAX, |version| version.len);
        let mut new = Vec::new();
        {
            let mut cache = Cache::lock();
            let mut left = cache.limit() / 2;
            let mut missing = Vec::new();
            for range in coalesce::disjoint(ranges, len) {
                left = match left.checked_sub(range.end - range.start) {
                    Some(left) => left,
                    None => break,
                };
                let present = cache.present(self.group, &range);
                missing.extend(Cache::missing(&range, &present));
            }
            // What is kept on disk is written before it is handed on, so that those who wait should wait for little.
            let longest = if self.disk.is_some() { LONGEST } else { coalesce::longest_ahead(&missing) };
            for request in self.requests(&mut cache, &missing, longest) {
                new.push(self.reserve(&mut cache, request));
            }
        }
        new.into_iter().try_for_each(|landing| self.start(landing))
    }

    /// Makes places for the segments of a request.
    fn reserve(&self, cache: &mut Cache, request: Range<u64>) -> Landing {
        let mut landing = Landing::new(request.start);
        let present = cache.present(self.group, &request);
        for range in Cache::missing(&request, &present) {
            // What is kept on disk is kept as it was asked for.
            let whole = self.disk.is_some().then(|| range.clone());
            let cut = whole.is_none().then(|| coalesce::segments(range));
            for segment in whole.into_iter().chain(cut.into_iter().flatten()) {
                let (promise, part) = cache.reserve(self.group, &segment);
                landing.push(promise, part);
            }
        }
        landing
    }

    fn requests(&self, cache: &mut Cache, missing: &[Range<u64>], longest: u64) -> Vec<Range<u64>> {
        if self.ignores_ranges && !missing.is_empty() {
            let whole = 0..self.version().map_or(0, |v| v.len);
            let present = cache.present(self.group, &whole);
            return Cache::missing(&whole, &present);
        }
        let cache = std::cell::RefCell::new(cache);
        coalesce::requests(missing, longest, |gap| {
            let is_there = || !cache.borrow_mut().present(self.group, gap).is_empty();
            // A little of what is there comes again, rather than that it cuts a request in two.
            (self.disk.is_some() || gap.end - gap.start > GAP) && is_there()
        })
    }

    /// All parts that cover `range`; those that nobody fetches yet are started.
    fn claim(self: &Arc<Self>, range: &Range<u64>, reads_ahead: bool) -> Result<Vec<Part>> {
        let mut new = Vec::new();
        let parts = {
            let mut cache = Cache::lock();
            let mut parts = cache.present(self.group, range);
            let missing = Cache::missing(range, &parts);
            if missing.is_empty() {
                self.counters.add_cache_hit();
                return Ok(parts);
            }
            let wanted = if reads_ahead { self.reach(&mut cache, missing) } else { missing };
            for request in self.requests(&mut cache, &wanted, LONGEST) {
                let landing = self.reserve(&mut cache, request);
                parts.extend(landing.parts().filter(|part| overlap(&part.range, range)).cloned());
                new.push(landing);
            }
            parts
        };
        new.into_iter().try_for_each(|landing| self.start(landing))?;
        Ok(parts)
    }

    /// The missing ranges, short ones grown by what is likely to be read next, up to what is there already.
    fn reach(&self, cache: &mut Cache, missing: Vec<Range<u64>>) -> Vec<Range<u64>> {
        let len = self.version().map_or(u64::MAX, |version| version.len);
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let [only] = missing.as_slice() else { return missing };
        let reach = ahead.reach(only, len);
        let present = cache.present(self.group, &reach);
        let free = Cache::missing(&reach, &present);
        // Only the stretch around the read: others would be requests that nobody asked for.
        free.into_iter().filter(|r| r.start <= only.start && only.end <= r.end).collect()
    }

    fn start(self: &Arc<Self>, mut landing: Landing) -> Result<()> {
        let target = Arc::clone(self);
        let (group, failed): (_, Vec<Part>) = (self.group, landing.parts().cloned().collect());
        let started = runtime::spawn(async move {
            let Err(e) = target.bring(&mut landing).await else { return };
            target.saw(None);
            for (promise, part) in landing.into_waiting() {
                Cache::lock().forget(target.group, &part);
                promise.keep(Err(e.clone()));
            }
        });
        if started.is_err() {
            failed.iter().for_each(|part| Cache::lock().forget(group, part));
        }
        started
    }

    /// Brings the bytes of `landing` from the disk or the server.
    async fn bring(self: &Arc<Self>, landing: &mut Landing) -> Result<()> {
        let range = landing.range();
        if let Some(mut bytes) = self.on_disk(|disk, range| disk.read(range), &range).await.flatten() {
            self.counters.add_cache_hit();
            landing.take(&mut bytes);
            return Ok(());
        }
        let ask = Ask {
            key: &self.key,
            query: &[],
            span: Span::Range(range.clone()),
            version: self.version().cloned(),
            most: None,
        };
        let early = if self.disk.is_some() { None } else { Some(&mut *landing) };
        let fetched = self.transport.fetch_into(&ask, &self.counters, early).await?;
        self.pin(&fetched.version)?;
        if landing.is_empty() {
            return Ok(());
        }
        let mut bytes = cut(fetched, &landing.range(), &self.name)?;
        if self.disk.is_some() {
            let whole = Arc::new(bytes);
            let written = Arc::clone(&whole);
            self.on_disk(move |disk, range| disk.write(range.start, &written), &range).await;
            bytes = Arc::try_unwrap(whole).unwrap_or_else(|shared| shared.to_vec());
        }
        landing.take(&mut bytes);
        Ok(())
    }

    async fn on_disk<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&DiskCache, &Range<u64>) -> T + Send + 'static,
        range: &Range<u64>,
    ) -> Option<T> {
        self.disk.as_ref()?;
        let (target, range) = (Arc::clone(self), range.clone());
        let done = tokio::task::spawn_blocking(move || target.disk.as_ref().map(|disk| work(disk, &range)));
        done.await.ok().flatten()
    }

    /// Whether `answered` is the version of all that came before; the first decides.
    pub(crate) fn pin(&self, answered: &Validator) -> Result<()> {
        let pinned = self.version.get_or_init(|| answered.clone());
        if !pinned.agrees(answered) {
            return Err(super::failure::stale(&self.name));
        }
        self.saw(Some(Instant::now()));
        Ok(())
    }

    /// Whether the server named this version so lately that it need not be asked.
    pub(crate) fn is_fresh(&self) -> bool {
        let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_some_and(|seen| seen.elapsed() < self.transport.options.fresh)
    }

    fn saw(&self, when: Option<Instant>) {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = when;
    }
}

/// Of what a server sent, the range that was asked for.
pub(crate) fn cut(fetched: Fetched, range: &Range<u64>, name: &str) -> Result<Vec<u8>> {
    let mut bytes = fetched.bytes;
    let have = fetched.start..fetched.start + bytes.len() as u64;
    if range.start < have.start || range.end > have.end {
        let len = fetched.version.len;
        let wanted = format!("bytes {}-{} asked for", range.start, range.end);
        return Err(Error::corrupt(format!("'{name}' is cut off: {wanted}, the object has {len}")));
    }
    bytes.truncate((range.end - have.start) as usize);
    bytes.drain(..(range.start - have.start) as usize);
    Ok(bytes)
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Copies what `part` has of `range` to its place.
fn copy(part: &Range<u64>, bytes: &[u8], range: &Range<u64>, out: &mut [u8], name: &str) -> Result<()> {
    let (start, end) = (part.start.max(range.start), part.end.min(range.end));
    if start >= end {
        return Ok(());
    }
    let from = bytes.get((start - part.start) as usize..(end - part.start) as usize);
    let to = out.get_mut((start - range.start) as usize..(end - range.start) as usize);
    match (from, to) {
        (Some(from), Some(to)) => to.copy_from_slice(from),
        _ => return Err(Error::corrupt(format!("'{name}' is cut off within bytes {start}-{end}"))),
    }
    Ok(())
}
