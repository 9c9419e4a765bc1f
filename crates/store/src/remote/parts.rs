//! Long bodies in parts, which the server puts together when all are there (S3's multipart uploads).

use std::sync::Arc;
use std::sync::mpsc;

use http::{Method, StatusCode};
use serde::Deserialize;
use sieva_types::{Error, ErrorKind, Result};

use super::attempt::Ask;
use super::runtime;
use super::sending::{Done, Order, is_other};
use super::sent::{Payload, hex, md5_of_parts};
use super::service::Parts;
use super::transport::Transport;
use crate::objects::Body;
use crate::{Counters, Span};

/// Parts under way at once.
const AT_ONCE: u64 = 4;
/// Pages of a listing of uploads.
const MOST_PAGES: usize = 10_000;

/// How a body is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    size: u64,
    part: u64,
    at_once: u64,
}

impl Cut {
    fn new(size: u64, parts: &Parts) -> Self {
        const MIB: u64 = 1 << 20;
        let least = size.div_ceil(parts.most).next_multiple_of(MIB);
        let part = parts.size.max(least);
        Self { size, part, at_once: (parts.memory / part).clamp(1, AT_ONCE) }
    }

    fn count(&self) -> u64 {
        self.size.div_ceil(self.part)
    }

    /// Where a part begins, and how long it is.
    fn place(&self, index: u64) -> (u64, u64) {
        let start = index * self.part;
        (start, self.part.min(self.size - start))
    }
}

/// An upload under way.
struct Upload {
    transport: Arc<Transport>,
    counters: Arc<Counters>,
    key: String,
    id: String,
}

/// Puts a body in parts; the tag of the whole, where the server says it. What came of one that fails is removed.
pub(crate) fn put(
    transport: &Arc<Transport>,
    counters: &Arc<Counters>,
    key: &str,
    body: &dyn Body,
    parts: &Parts,
) -> Result<Option<String>> {
    let cut = Cut::new(body.size(), parts);
    if cut.size > parts.total {
        let name = transport.service.name(key);
        let (size, most) = (cut.size, parts.total);
        let message = format!("'{name}' would have {size} bytes, and {most} can be put there at most");
        return Err(Error::new(ErrorKind::Unsupported, message));
    }
    let upload = Arc::new(begin(transport, counters, key)?);
    let done = send_all(&upload, body, cut).and_then(|sent| finish(&upload, cut.size, sent));
    if done.is_err() {
        // The first error is the one to tell.
        let _ = runtime::wait_for(async move { upload.abort().await });
    }
    done
}

fn begin(transport: &Arc<Transport>, counters: &Arc<Counters>, key: &str) -> Result<Upload> {
    let (asked, counted, object) = (Arc::clone(transport), Arc::clone(counters), key.to_owned());
    let done = runtime::wait_for(async move {
        let query = &[("uploads", "")];
        asked.carry_out(&Order { query, ..Order::new(Method::POST, &object, "write") }, &counted).await
    })?;
    let id = between(&done.body, "<UploadId>", "</UploadId>");
    let id = id.ok_or_else(|| nonsense(transport, key, "begins no upload in parts"))?;
    Ok(Upload { transport: Arc::clone(transport), counters: Arc::clone(counters), key: key.to_owned(), id })
}

/// A part that was sent: its sum, and the tag that the server gave it, which is another where it encrypts.
type SentPart = ([u8; 16], Option<String>);

/// Sends all parts, a few at once; gives their sums and tags.
fn send_all(upload: &Arc<Upload>, body: &dyn Body, cut: Cut) -> Result<Vec<SentPart>> {
    let (tell, told) = mpsc::channel();
    let (mut sent, mut under_way, mut failed) = (Vec::<SentPart>::new(), 0, None);
    loop {
        let index = sent.len() as u64;
        if failed.is_none() && index < cut.count() && under_way < cut.at_once {
            let (start, len) = cut.place(index);
            match Payload::read(body, start, len, true) {
                Ok(payload) => {
                    sent.push((payload.md5, None));
                    let (upload, tell) = (Arc::clone(upload), tell.clone());
                    runtime::spawn(async move {
                        // Nobody waits any more: nothing to tell.
                        let answer = upload.send(index + 1, payload).await;
                        let _ = tell.send(answer.map(|tag| (index as usize, tag)));
                    })?;
                    under_way += 1;
                }
                Err(e) => failed = Some(e),
            }
            continue;
        }
        if under_way == 0 {
            return failed.map_or(Ok(sent), Err);
        }
        let lost = |_| Err(Error::new(ErrorKind::Internal, "a network task was lost"));
        under_way -= 1;
        match told.recv().unwrap_or_else(lost) {
            Ok((index, tag)) => {
                if let Some(part) = sent.get_mut(index) {
                    part.1 = tag;
                }
            }
            Err(e) => {
                failed.get_or_insert(e);
            }
        }
    }
}

/// Has the parts put together, and looks whether they became what was sent; the tag of the whole.
fn finish(upload: &Arc<Upload>, size: u64, sent: Vec<SentPart>) -> Result<Option<String>> {
    let upload = Arc::clone(upload);
    runtime::wait_for(async move {
        let sums: Vec<[u8; 16]> = sent.iter().map(|(sum, _)| *sum).collect();
        // The tag of the whole is a sum of sums where those of the parts are sums.
        let are_sums = sent.iter().all(|(sum, tag)| tag.as_ref().is_none_or(|tag| *tag == hex(sum)));
        let sum = are_sums.then(|| format!("{}-{}", hex(&md5_of_parts(&sums)), sums.len()));
        let done = upload.complete(&sent).await?;
        if done.status == StatusCode::NOT_FOUND {
            // An answer that got lost was that it is done; a second one is that there is no such upload.
            let there = if done.is_repeated { upload.there(size, sum.as_deref()).await? } else { None };
            return there.map(Some).ok_or_else(|| upload.nonsense("does not know the parts any more"));
        }
        match between(&done.body, "<ETag>", "</ETag>") {
            Some(tag) if sum.is_some_and(|sum| is_other(&plain(&tag), &sum)) => {
                Err(upload.nonsense("made other bytes of the parts than were sent"))
            }
            // As it is told to readers.
            Some(tag) => Ok(Some(format!("\"{}\"", plain(&tag)))),
            // Somebody else may have answered: a gateway, a login page.
            None => Err(upload.nonsense("does not say what it made of the parts")),
        }
    })
}

impl Upload {
    async fn send(&self, number: u64, payload: Payload) -> Result<Option<String>> {
        let number = number.to_string();
        let query: &[_] = &[("partNumber", &*number), ("uploadId", &*self.id)];
        let order =
            Order { query, payload: Some(payload), ..Order::new(Method::PUT, &self.key, "write a part of") };
        Ok(self.transport.carry_out(&order, &self.counters).await?.tag)
    }

    async fn complete(&self, sent: &[SentPart]) -> Result<Done> {
        let mut text = "<CompleteMultipartUpload>".to_owned();
        for (index, (sum, tag)) in sent.iter().enumerate() {
            let (number, sum) = (index + 1, hex(sum));
            // A tag is a word of the server's: one that XML would not take is none that it gave.
            let plain =
                |tag: &&String| tag.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.+/=".contains(&b));
            let tag = tag.as_ref().filter(plain).unwrap_or(&sum);
            text += &format!("<Part><PartNumber>{number}</PartNumber><ETag>\"{tag}\"</ETag></Part>");
        }
        text += "</CompleteMultipartUpload>";
        let order = Order {
            query: &[("uploadId", &self.id)],
            payload: Some(Payload::of(text.into_bytes(), true)),
            expects: &[StatusCode::NOT_FOUND],
            ..Order::new(Method::POST, &self.key, "write")
        };
        self.transport.carry_out(&order, &self.counters).await
    }

    async fn abort(&self) -> Result<()> {
        let order = Order {
            query: &[("uploadId", &self.id)],
            expects: &[StatusCode::NOT_FOUND],
            ..Order::new(Method::DELETE, &self.key, "remove the parts of")
        };
        self.transport.carry_out(&order, &self.counters).await.map(drop)
    }

    /// The tag of the object that is there, where it is what these parts are together, as far as tags tell.
    async fn there(&self, size: u64, sum: Option<&str>) -> Result<Option<String>> {
        let ask = Ask { key: &self.key, query: &[], span: Span::Range(0..1), version: None, most: None };
        let version = self.transport.fetch(&ask, &self.counters).await?.version;
        let is_ours = |tag: &String| sum.is_none_or(|sum| !is_other(&plain(tag), sum));
        Ok(version.etag.filter(|tag| version.len == size && is_ours(tag)))
    }

    fn nonsense(&self, what: &str) -> Error {
        nonsense(&self.transport, &self.key, what)
    }
}

fn nonsense(transport: &Transport, key: &str, what: &str) -> Error {
    Error::new(ErrorKind::Io, format!("cannot write '{}': the server {what}", transport.service.name(key)))
}

/// What stands between two words of an answer.
fn between(body: &[u8], from: &str, to: &str) -> Option<String> {
    let text = std::str::from_utf8(body).ok()?;
    let found = text.split_once(from)?.1.split_once(to)?.0.trim();
    (!found.is_empty()).then(|| found.to_owned())
}

/// A tag without quotation marks, in whatever way they are written.
fn plain(tag: &str) -> String {
    tag.replace("&quot;", "").replace("&#34;", "").replace('"', "")
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Uploads {
    #[serde(default, rename = "Upload")]
    uploads: Vec<Begun>,
    next_key_marker: Option<String>,
    next_upload_id_marker: Option<String>,
    #[serde(default)]
    is_truncated: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Begun {
    key: String,
    upload_id: String,
    initiated: String,
}

/// Removes the parts of uploads under `prefix` that began before `then`, seconds since 1970, and were never finished.
pub(crate) async fn tidy(
    transport: &Arc<Transport>,
    counters: &Arc<Counters>,
    prefix: &str,
    then: u64,
) -> Result<()> {
    transport.check(prefix)?;
    let mut after = (String::new(), String::new());
    for _ in 0..MOST_PAGES {
        let mut query = vec![("uploads", ""), ("prefix", prefix)];
        if !after.0.is_empty() {
            query.extend([("key-marker", &*after.0), ("upload-id-marker", &*after.1)]);
        }
        let ask = Ask { key: "", query: &query, span: Span::All, version: None, most: None };
        let body = transport.fetch(&ask, counters).await?.bytes;
        let said: Uploads = std::str::from_utf8(&body)
            .ok()
            .and_then(|text| quick_xml::de::from_str(text).ok())
            .ok_or_else(|| nonsense(transport, prefix, "gives a list of uploads that cannot be read"))?;
        let is_old = |begun: &Begun| began(&begun.initiated).is_some_and(|at| at < then);
        for Begun { key, upload_id: id, .. } in said.uploads.into_iter().filter(is_old) {
            if key.starts_with(prefix) {
                let (transport, counters) = (Arc::clone(transport), Arc::clone(counters));
                Upload { transport, counters, key, id }.abort().await?;
            }
        }
        let next = (said.next_key_marker.unwrap_or_default(), said.next_upload_id_marker.unwrap_or_default());
        if !said.is_truncated || next.0.is_empty() || next == after {
            return Ok(());
        }
        after = next;
    }
    Ok(())
}

/// Seconds from 1970 to a time such as `2010-11-10T20:48:33.000Z`.
fn began(text: &str) -> Option<u64> {
    let number = |at: std::ops::Range<usize>| text.get(at)?.parse::<i64>().ok();
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hours, minutes, seconds) = (number(11..13)?, number(14..16)?, number(17..19)?);
    // Days of years that begin in March: the day that some years have more is the last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468;
    u64::try_from(days * 86_400 + hours * 3600 + minutes * 60 + seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const PARTS: Parts = Parts { size: 16 * MIB, most: 10_000, total: 5 << 40, memory: 64 * MIB };

    #[test]
    fn parts_cover_a_body_and_are_not_too_many() {
        for size in [1, 16 * MIB, 16 * MIB + 1, 100 * MIB + 7, 200 << 30, 5 << 40] {
            let cut = Cut::new(size, &PARTS);
            let (last, len) = cut.place(cut.count() - 1);
            assert_eq!(last + len, size);
            assert!(cut.count() <= 10_000 && len > 0 && cut.at_once >= 1, "{cut:?}");
            assert!(cut.at_once == 1 || cut.at_once * cut.part <= PARTS.memory, "{cut:?}");
        }
        assert_eq!(Cut::new(100 * MIB, &PARTS), Cut { size: 100 * MIB, part: 16 * MIB, at_once: 4 });
    }

    #[test]
    fn times_are_read() {
        assert_eq!(began("1970-01-01T00:00:00.000Z"), Some(0));
        assert_eq!(began("2000-03-01T00:00:01.000Z"), Some(951_868_801));
        assert_eq!(began("2024-02-29T12:30:00Z"), Some(1_709_209_800));
        assert_eq!((began("yesterday"), began("")), (None, None));
    }

    #[test]
    fn words_of_answers() {
        assert_eq!(between(b"<a><UploadId> x-1 </UploadId>", "<UploadId>", "</UploadId>").unwrap(), "x-1");
        assert_eq!(between(b"<UploadId></UploadId>", "<UploadId>", "</UploadId>"), None);
        assert_eq!(plain("&quot;ab-2&quot;"), "ab-2");
        assert_eq!(plain("\"ab-2\""), "ab-2");
    }
}
