//! Objects that are written, behind a network: S3 and Swift.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::header::{HeaderValue, IF_NONE_MATCH};
use http::{Method, StatusCode};
use sieva_types::{Error, ErrorKind, Result};

use super::attempt::{Ask, Fetched};
use super::sending::{Done, Order};
use super::sent::{Payload, md5_of, while_fed};
use super::service::{Asking, Large, Writing};
use super::target::cut;
use super::transport::Transport;
use super::validator::Validator;
use super::{list, parts, runtime};
use crate::objects::{Body, Link, Objects, check_key};
use crate::{Counters, Entry, Span};

/// Ranges are asked for in pieces, so that what is held is bounded.
const PIECE: usize = 32 << 20;
/// How often an object that is replaced while it is read is read from its beginning.
const CHANGES: usize = 5;
/// Small requests that are worth sending at once: each waits for an answer, and servers have some threads.
const AT_ONCE: usize = 16;
/// An upload in parts that began longer ago than this is taken for one whose writer was killed.
const ABANDONED: Duration = Duration::from_secs(86_400);

/// The objects whose keys begin with a prefix, in a bucket or container.
#[derive(Debug)]
pub(crate) struct RemoteObjects {
    transport: Arc<Transport>,
    writing: &'static Writing,
    /// What stands before every key: empty, or ending in `/`.
    prefix: String,
    name: String,
    counters: Arc<Counters>,
}

impl RemoteObjects {
    pub(crate) fn new(transport: Arc<Transport>, writing: &'static Writing, prefix: &str) -> Result<Self> {
        runtime::check_process()?;
        let trimmed = prefix.trim_end_matches('/');
        let prefix = if trimmed.is_empty() { String::new() } else { format!("{trimmed}/") };
        let name = transport.service.name(trimmed);
        Ok(Self { transport, writing, prefix, name, counters: Arc::default() })
    }

    fn key(&self, key: &str) -> Result<String> {
        runtime::check_process()?;
        check_key(key, &self.name)?;
        Ok(format!("{}{key}", self.prefix))
    }

    fn shared(&self) -> (Arc<Transport>, Arc<Counters>) {
        (Arc::clone(&self.transport), Arc::clone(&self.counters))
    }

    /// Puts a payload in one request. Of other answers than success, those of `expects` are ones.
    fn send(
        &self,
        key: &str,
        payload: &Payload,
        is_new: bool,
        expects: &'static [StatusCode],
    ) -> Result<Done> {
        let send = || {
            let (transport, counters) = self.shared();
            let (key, payload) = (key.to_owned(), payload.clone());
            runtime::wait_for(async move {
                let mut order =
                    Order { payload: Some(payload), expects, ..Order::new(Method::PUT, &key, "write") };
                if is_new {
                    order.headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
                }
                transport.carry_out(&order, &counters).await
            })
        };
        self.in_container(send)
    }

    /// Does what puts an object; where there is no container, makes it and does it again.
    fn in_container<T>(&self, put: impl Fn() -> Result<T>) -> Result<T> {
        match put() {
            Err(e) if e.kind() == ErrorKind::FileNotFound && self.writing.makes_container => {
                let (transport, counters) = self.shared();
                runtime::wait_for(async move {
                    transport.carry_out(&Order::new(Method::PUT, "", "make"), &counters).await
                })?;
                put()
            }
            done => done,
        }
    }

    /// Puts a body that is too long for memory in one request, reading it as it goes.
    fn stream(&self, key: &str, body: &dyn Body, most: u64) -> Result<Done> {
        let size = body.size();
        if size > most {
            let name = self.transport.service.name(key);
            let message = format!("'{name}' would have {size} bytes, and {most} can be put there at most");
            return Err(Error::new(ErrorKind::Unsupported, message)
                .hint("put it into S3, which Swift's servers mostly speak, too, or a directory"));
        }
        // Told before it is sent, so that a damaged one is never seen.
        let md5 = md5_of(body)?;
        self.in_container(|| {
            let (transport, counters) = self.shared();
            let key = key.to_owned();
            while_fed(body, |feed| async move {
                let payload = Some(Payload::fed(feed, size, md5));
                let order = Order { payload, ..Order::new(Method::PUT, &key, "write") };
                transport.carry_out(&order, &counters).await
            })
        })
    }

    /// One read of an object; `None` where there is none.
    fn fetch(
        &self,
        key: &str,
        span: Span,
        version: Option<Validator>,
        most: Option<u64>,
    ) -> Result<Option<Fetched>> {
        let is_first = version.is_none();
        let (transport, counters) = self.shared();
        let key = key.to_owned();
        let fetched = runtime::wait_for(async move {
            let ask = Ask { key: &key, query: &[], span, version, most };
            transport.fetch(&ask, &counters).await
        });
        match fetched {
            Err(e) if is_first && e.kind() == ErrorKind::FileNotFound => Ok(None),
            fetched => fetched.map(Some),
        }
    }

    /// Whether an object is the one that an attempt put whose answer did not come.
    fn is_own(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        match self.get(key, bytes.len() as u64) {
            Ok(found) => Ok(found.is_some_and(|found| found == bytes)),
            Err(e) if e.kind() == ErrorKind::CorruptFile => Ok(false),
            Err(e) => Err(e),
        }
    }
}

impl Objects for RemoteObjects {
    fn put(&self, key: &str, body: &dyn Body) -> Result<()> {
        self.put_version(key, body).map(drop)
    }

    fn put_version(&self, key: &str, body: &dyn Body) -> Result<Option<String>> {
        let (key, len) = (self.key(key)?, body.size());
        let whole = |done: Done| Validator::new(&done.headers, len).etag;
        let etag = if len <= self.writing.small {
            let payload = Payload::read(body, 0, len, self.writing.signs)?;
            whole(self.send(&key, &payload, false, &[])?)
        } else {
            match &self.writing.large {
                Large::Parts(parts) => parts::put(&self.transport, &self.counters, &key, body, parts)?,
                Large::Whole(most) => whole(self.stream(&key, body, *most)?),
            }
        };
        // By its time alone a server could not tell it from another one of the same second.
        Ok(etag.map(|etag| Validator { etag: Some(etag), modified: None, len }.to_string()))
    }

    fn create(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        let whole = self.key(key)?;
        // A server that does not know the condition below would put the new object in place of the old one.
        if self.fetch(&whole, Span::Range(0..1), None, None)?.is_some() {
            return Ok(false);
        }
        let payload = Payload::of(bytes.to_vec(), self.writing.signs);
        let expects = &[StatusCode::PRECONDITION_FAILED, StatusCode::NOT_IMPLEMENTED];
        let done = self.send(&whole, &payload, true, expects)?;
        match done.status {
            StatusCode::PRECONDITION_FAILED => Ok(done.is_repeated && self.is_own(key, bytes)?),
            // How Swift says that a later one was there when this one was complete.
            StatusCode::ACCEPTED => self.is_own(key, bytes),
            StatusCode::NOT_IMPLEMENTED => self.send(&whole, &payload, false, &[]).map(|_| true),
            _ => Ok(true),
        }
    }

    fn get(&self, key: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let whole = self.key(key)?;
        for change in 1.. {
            let found = self.fetch(&whole, Span::All, None, Some(most));
            return match found {
                // Replaced after an attempt that was cut off: as it is now was asked for.
                Err(e) if e.kind() == ErrorKind::StaleSource && change < CHANGES => continue,
                Err(e) if e.kind() == ErrorKind::MemoryLimit => {
                    Err(Error::corrupt(format!("'{}' has more than {most} bytes", self.location(key))))
                }
                found => Ok(found?.map(|fetched| fetched.bytes)),
            };
        }
        Ok(None)
    }

    fn get_range(&self, key: &str, offset: u64, out: &mut [u8]) -> Result<bool> {
        let whole = self.key(key)?;
        if out.is_empty() {
            return self.fetch(&whole, Span::Range(0..1), None, None).map(|found| found.is_some());
        }
        let (mut version, mut at) = (None, offset);
        let name = self.location(key);
        for piece in out.chunks_mut(PIECE) {
            let end = at.checked_add(piece.len() as u64);
            let end = end.ok_or_else(|| Error::corrupt(format!("'{name}' ends before byte {at}")))?;
            let Some(fetched) = self.fetch(&whole, Span::Range(at..end), version.take(), None)? else {
                return Ok(false);
            };
            version = Some(fetched.version.clone());
            piece.copy_from_slice(&cut(fetched, &(at..end), &name)?);
            at = end;
        }
        Ok(true)
    }

    fn delete(&self, key: &str) -> Result<()> {
        let key = self.key(key)?;
        let (transport, counters) = self.shared();
        runtime::wait_for(async move {
            let expects = &[StatusCode::NOT_FOUND];
            let order = Order { expects, ..Order::new(Method::DELETE, &key, "delete") };
            transport.carry_out(&order, &counters).await.map(drop)
        })
    }

    fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        runtime::check_process()?;
        let Some(listing) = self.transport.service.listing() else { return Ok(Vec::new()) };
        let (transport, counters) = self.shared();
        let whole = format!("{}{prefix}", self.prefix);
        let listed =
            runtime::wait_for(async move { list::all(&transport, listing, &whole, &counters).await });
        let mut entries = match listed {
            Err(e) if e.kind() == ErrorKind::FileNotFound && self.writing.makes_container => Vec::new(),
            listed => listed?,
        };
        entries.retain_mut(|entry| match entry.key.strip_prefix(&self.prefix) {
            Some(key) if key.starts_with(prefix) && check_key(key, "").is_ok() => {
                entry.key = key.to_owned();
                true
            }
            _ => false,
        });
        entries.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(entries)
    }

    fn tidy(&self, prefix: &str) -> Result<()> {
        runtime::check_process()?;
        if !matches!(self.writing.large, Large::Parts(_)) {
            return Ok(());
        }
        let (transport, counters) = self.shared();
        let whole = format!("{}{prefix}", self.prefix);
        let then = SystemTime::now().checked_sub(ABANDONED);
        let then = then.and_then(|then| then.duration_since(SystemTime::UNIX_EPOCH).ok());
        let then = then.unwrap_or_default().as_secs();
        runtime::wait_for(async move { parts::tidy(&transport, &counters, &whole, then).await })
    }

    fn at_once(&self) -> usize {
        AT_ONCE
    }

    fn link(&self, key: &str, expires: Duration) -> Result<Link> {
        let whole = self.key(key)?;
        self.transport.check(&whole)?;
        if expires.is_zero() {
            let message = format!("a link to '{}' that leads nowhere from the first", self.location(key));
            return Err(Error::new(ErrorKind::InvalidValue, message).hint("allow it a time above 0: 1h"));
        }
        let (transport, counters) = self.shared();
        let url = runtime::wait_for(async move {
            let asking = Asking { transport: &transport, counters: &counters };
            transport.service.link(&asking, &whole, expires).await
        })?;
        Ok(Link { url: url.into(), expires: true })
    }

    fn location(&self, key: &str) -> String {
        self.transport.service.name(&format!("{}{key}", self.prefix))
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
