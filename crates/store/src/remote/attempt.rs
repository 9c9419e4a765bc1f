//! One request after another for the same bytes: each goes on where the last one was cut off.

use std::ops::Range;

use http::StatusCode;
use http::header::{ACCEPT_ENCODING, CONTENT_RANGE, HeaderMap, HeaderValue, RANGE};
use reqwest::{Client, Response};
use sieva_types::{Error, ErrorKind};

use super::failure::{Failure, Outcome, failed, stale};
use super::landing::Landing;
use super::redirect;
use super::service::Call;
use super::swift::TOKEN;
use super::transport::{Transport, Tried};
use super::validator::Validator;
use crate::{Counters, Span};

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) key: &'a str,
    pub(crate) query: &'a [(&'a str, &'a str)],
    pub(crate) span: Span,
    /// The version that it must be.
    pub(crate) version: Option<Validator>,
    /// The most bytes that it may have where all of it is asked for; none: as many as the cache.
    pub(crate) most: Option<u64>,
}

/// What came.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) bytes: Vec<u8>,
    /// Where in the object the bytes begin.
    pub(crate) start: u64,
    pub(crate) version: Validator,
    /// Whether the server sent all of the object although a range was asked for.
    pub(crate) ignores_ranges: bool,
}

/// A request being made, with what has come so far.
pub(crate) struct Attempt<'a> {
    transport: &'a Transport,
    client: &'a Client,
    ask: &'a Ask<'a>,
    name: &'a str,
    counters: &'a Counters,
    version: Option<Validator>,
    got: Vec<u8>,
    /// Who takes bytes of a range as soon as they come.
    landing: Option<&'a mut Landing>,
    /// Bytes that were taken, before those of `got`.
    taken: u64,
    /// Whether the server sends all of the object although a range was asked for.
    is_whole: bool,
    /// The token that the last request was sent with.
    token: Option<HeaderValue>,
}

impl Tried for Attempt<'_> {
    type Brought = Fetched;

    fn run(&mut self) -> impl Future<Output = Outcome<Fetched>> + Send {
        self.attempt()
    }

    /// Bytes of the range that have come, in all runs so far.
    fn brought(&self) -> u64 {
        self.taken + self.got.len() as u64
    }

    fn token(&self) -> Option<&HeaderValue> {
        self.token.as_ref()
    }

    fn what(&self) -> String {
        format!("cannot read '{}'", self.name)
    }
}

impl<'a> Attempt<'a> {
    pub(crate) fn new(
        transport: &'a Transport,
        client: &'a Client,
        ask: &'a Ask<'a>,
        name: &'a str,
        counters: &'a Counters,
        landing: Option<&'a mut Landing>,
    ) -> Self {
        Self {
            transport,
            client,
            ask,
            name,
            counters,
            version: ask.version.clone(),
            got: Vec::new(),
            landing,
            taken: 0,
            is_whole: false,
            token: None,
        }
    }

    async fn attempt(&mut self) -> Outcome<Fetched> {
        // What came of the whole object is no beginning of a range.
        if std::mem::take(&mut self.is_whole) || !matches!(self.ask.span, Span::Range(_)) {
            self.got.clear();
        }
        let answer = self.send().await?;
        match answer.status() {
            StatusCode::PARTIAL_CONTENT => self.part(answer).await,
            StatusCode::OK => self.whole(answer).await,
            StatusCode::RANGE_NOT_SATISFIABLE => self.out_of_range(&answer),
            StatusCode::PRECONDITION_FAILED => Err(stale(self.name).into()),
            _ => Err(self.failure(answer).await),
        }
    }

    /// The range to ask for now: without what has come already.
    fn wanted(&self) -> Option<Range<u64>> {
        match &self.ask.span {
            Span::Range(r) => Some(r.start + self.brought()..r.end),
            Span::All | Span::Last(_) => None,
        }
    }

    async fn send(&mut self) -> Outcome<Response> {
        let service = &self.transport.service;
        let mut request = service.request(self.client, Call::get(self.ask.key, self.ask.query)).await?;
        self.token = request.headers().get(TOKEN).cloned();
        let headers = request.headers_mut();
        // Bytes as they are stored: ranges of a compressed transfer would be other bytes.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let range = match (&self.ask.span, self.wanted()) {
            (Span::Last(n), _) => Some(format!("bytes=-{n}")),
            (_, Some(r)) => Some(format!("bytes={}-{}", r.start, r.end.saturating_sub(1))),
            _ => None,
        };
        if let Some(range) = range.and_then(|r| HeaderValue::from_str(&r).ok()) {
            headers.insert(RANGE, range);
        }
        if let Some((name, value)) = self.version.as_ref().and_then(Validator::precondition)
            && let Ok(value) = HeaderValue::from_str(value)
        {
            headers.insert(name, value);
        }
        self.counters.add_request(0);
        let what = self.what();
        redirect::follow(self.transport, self.client, request, &what).await
    }

    /// 206: part of the object.
    async fn part(&mut self, answer: Response) -> Outcome<Fetched> {
        let said = content_range(answer.headers());
        let Some((Some(range), Some(total))) = said else {
            return Err(self.nonsense("a part of the object without saying which and of how many bytes"));
        };
        let is_asked = match (&self.ask.span, self.wanted()) {
            (Span::Last(n), _) => range.end == total && range.end - range.start <= *n,
            (_, Some(wanted)) => range.start == wanted.start && range.end <= wanted.end.min(total),
            _ => false,
        };
        if !is_asked {
            return Err(
                self.nonsense(&format!("other bytes ({}-{}) than were asked for", range.start, range.end))
            );
        }
        self.check(Validator::new(answer.headers(), total))?;
        let wanted_end = self.wanted().map_or(range.end, |wanted| wanted.end.min(total));
        let missing = wanted_end - range.start;
        self.body(answer, missing).await?;
        let start = wanted_end - self.got.len() as u64;
        Ok(self.fetched(start, false))
    }

    /// 200: all of the object, whether that was asked for or not.
    async fn whole(&mut self, answer: Response) -> Outcome<Fetched> {
        self.got.clear();
        self.is_whole = true;
        let ranged = !matches!(self.ask.span, Span::All);
        let most = self.ask.most.unwrap_or_else(|| self.transport.longest_body());
        let said = answer.content_length();
        if said.is_some_and(|len| len > most) {
            return Err(self.too_long(ranged, said, most));
        }
        let mut version = Validator::new(answer.headers(), said.unwrap_or_default());
        if let Some(len) = said {
            self.check(version.clone())?;
            self.body(answer, len).await?;
        } else {
            self.unbounded_body(answer, ranged, most).await?;
            version.len = self.got.len() as u64;
            self.check(version)?;
        }
        Ok(self.fetched(0, ranged))
    }

    /// 416: the object ends before the range. Of an empty one every range does.
    fn out_of_range(&mut self, answer: &Response) -> Outcome<Fetched> {
        let total = content_range(answer.headers()).and_then(|(_, total)| total);
        if total == Some(0) || (total.is_none() && self.ask.version.is_none()) {
            self.check(Validator::new(answer.headers(), 0))?;
            return Ok(self.fetched(0, false));
        }
        let is_other = |version: &Validator| total != Some(version.len);
        if self.version.as_ref().is_some_and(is_other) {
            return Err(stale(self.name).into());
        }
        let len = total.map_or_else(String::new, |n| format!(", which has {n} bytes"));
        let message = format!("'{}' is cut off: {:?} asked for of the object{len}", self.name, self.ask.span);
        Err(Error::corrupt(message).into())
    }

    async fn failure(&self, answer: Response) -> Failure {
        if answer.status() == StatusCode::NOT_FOUND && self.version.is_some() {
            return stale(self.name).into();
        }
        failed(answer, self.name, self.transport.service.access()).await
    }

    /// Whether the answer is of the version wanted; from now on it must be this one.
    fn check(&mut self, answered: Validator) -> Outcome<()> {
        match &self.version {
            Some(version) if !version.agrees(&answered) => Err(stale(self.name).into()),
            Some(_) => Ok(()),
            None => {
                self.version = Some(answered);
                Ok(())
            }
        }
    }

    /// Reads a body of `len` bytes. What came of one that was cut off is kept.
    async fn body(&mut self, mut answer: Response, len: u64) -> Outcome<()> {
        let mut left = len;
        while left > 0 {
            let what = self.what();
            let Some(bytes) = answer.chunk().await.map_err(|e| Failure::connection(e, &what))? else {
                let cause = format!("the body ended {left} bytes early");
                return Err(Failure::Again { cause, after: None });
            };
            self.counters.add_bytes(bytes.len() as u64);
            let take = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            self.got.extend_from_slice(&bytes[..take]);
            left -= take as u64;
            self.hand_on(left);
        }
        Ok(())
    }

    /// Gives what is whole to those who wait for it: of a range of a known version, which the answer was found to have.
    fn hand_on(&mut self, left: u64) {
        if !matches!(self.ask.span, Span::Range(_)) || self.ask.version.is_none() || self.is_whole {
            return;
        }
        let Some(landing) = &mut self.landing else { return };
        let taken = landing.take(&mut self.got);
        if taken > 0 {
            self.taken += taken;
            let more = landing.next_len().saturating_sub(self.got.len());
            self.got.reserve(more.min(usize::try_from(left).unwrap_or(usize::MAX)));
        }
    }

    async fn unbounded_body(&mut self, mut answer: Response, ranged: bool, most: u64) -> Outcome<()> {
        let what = self.what();
        while let Some(bytes) = answer.chunk().await.map_err(|e| Failure::connection(e, &what))? {
            self.counters.add_bytes(bytes.len() as u64);
            self.got.extend_from_slice(&bytes);
            if self.got.len() as u64 > most {
                return Err(self.too_long(ranged, None, most));
            }
        }
        Ok(())
    }

    fn fetched(&mut self, start: u64, ignores_ranges: bool) -> Fetched {
        let version = self.version.clone().unwrap_or_default();
        Fetched { bytes: std::mem::take(&mut self.got), start, version, ignores_ranges }
    }

    fn nonsense(&self, what: &str) -> Failure {
        let message = format!("the server answers a request for '{}' with {what}", self.name);
        Error::new(ErrorKind::Unsupported, message).hint("copy the file, and query the copy").into()
    }

    fn too_long(&self, ranged: bool, said: Option<u64>, most: u64) -> Failure {
        let len =
            said.map_or_else(|| format!("more than {most} bytes"), |len| format!("all its {len} bytes"));
        if ranged {
            let message = format!("the server of '{}' gives no byte ranges, but {len} at once", self.name);
            return Error::new(ErrorKind::Unsupported, message)
                .hint(format!(
                    "copy the file, and query the copy; or allow a cache of more than {most} bytes"
                ))
                .into();
        }
        Error::new(ErrorKind::MemoryLimit, format!("'{}' has {len}, and {most} are allowed", self.name))
            .hint("allow a larger cache")
            .into()
    }
}

/// `bytes 0-99/1000` or `bytes */1000` (RFC 9110, section 14.4): the range and the whole length, where given.
fn content_range(headers: &HeaderMap) -> Option<(Option<Range<u64>>, Option<u64>)> {
    let text = headers.get(CONTENT_RANGE)?.to_str().ok()?.trim();
    let (range, total) = text.strip_prefix("bytes")?.trim_start().split_once('/')?;
    let total: Option<u64> = total.trim().parse().ok();
    let Some((first, last)) = range.split_once('-') else { return Some((None, total)) };
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let end = last.checked_add(1)?;
    (first < end && total.is_none_or(|t| end <= t)).then_some((Some(first..end), total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_are_read_or_refused() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, HeaderValue::from_str(text).unwrap());
            content_range(&headers)
        };
        assert_eq!(read("bytes 5-9/10"), Some((Some(5..10), Some(10))));
        assert_eq!(read("bytes */0"), Some((None, Some(0))));
        assert_eq!(read("bytes 0-9/*"), Some((Some(0..10), None)));
        for bad in
            ["bytes 9-5/10", "bytes 5-10/10", "bytes 0-18446744073709551615/*", "items 0-1/2", "bytes x-y/3"]
        {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
