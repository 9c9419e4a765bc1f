//! The body of a request: in memory, or read from its owner while it goes.

use std::pin::Pin;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use md5::{Digest, Md5};
use sieva_types::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

use super::runtime;
use crate::objects::Body;

/// Bytes that are handed on at once: often enough to see that the body moves.
const PIECE: usize = 256 << 10;
/// Bytes that are read at once of a body that is read while it goes.
const READ: usize = 1 << 20;

/// What is sent, as often as it takes.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    source: Source,
    pub(crate) size: u64,
    pub(crate) md5: [u8; 16],
    /// None: requests are not signed with it.
    pub(crate) sha256: Option<[u8; 32]>,
}

#[derive(Clone, Debug)]
enum Source {
    Memory(Bytes),
    Fed(Feed),
}

impl Payload {
    /// Bytes in memory.
    pub(crate) fn of(bytes: Vec<u8>, is_signed: bool) -> Self {
        let sha256 = is_signed.then(|| sha256(&bytes));
        let md5 = Md5::digest(&bytes).into();
        Self { size: bytes.len() as u64, md5, sha256, source: Source::Memory(bytes.into()) }
    }

    /// `len` bytes of a body from `offset` on, read now.
    pub(crate) fn read(body: &dyn Body, offset: u64, len: u64, is_signed: bool) -> Result<Self> {
        Ok(Self::of(read(body, offset, len)?, is_signed))
    }

    /// A body that `feed` gives, with its MD5, for which it is read once before it is sent.
    pub(crate) fn fed(feed: Feed, size: u64, md5: [u8; 16]) -> Self {
        Self { source: Source::Fed(feed), size, md5, sha256: None }
    }

    /// The body of one attempt, and what tells whether it moves.
    pub(crate) fn start(&self) -> (Sent, Progress) {
        let progress = Progress::default();
        let source = self.source.clone();
        (Sent { source, at: 0, size: self.size, waits: None, progress: progress.clone() }, progress)
    }
}

/// SHA-256 of bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref());
    out
}

/// MD5 of a whole body, read piece by piece.
pub(crate) fn md5_of(body: &dyn Body) -> Result<[u8; 16]> {
    let mut digest = Md5::new();
    let mut at = 0;
    while at < body.size() {
        let bytes = read(body, at, (body.size() - at).min(READ as u64))?;
        digest.update(&bytes);
        at += bytes.len() as u64;
    }
    Ok(digest.finalize().into())
}

/// MD5 of the MD5s of parts: what S3 tells a body by that came in parts.
pub(crate) fn md5_of_parts(parts: &[[u8; 16]]) -> [u8; 16] {
    Md5::digest(parts.as_flattened()).into()
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(body: &dyn Body, offset: u64, len: u64) -> Result<Vec<u8>> {
    let len = usize::try_from(len).map_err(|_| {
        Error::new(ErrorKind::MemoryLimit, format!("{len} bytes of a body are needed at once"))
    })?;
    let mut bytes = vec![0; len];
    body.read_exact_at(offset, &mut bytes)?;
    Ok(bytes)
}

/// When a body last moved.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Arc<Mutex<Instant>>);

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Progress {
    /// How long nothing of it has been taken.
    pub(crate) fn rests(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    fn moved(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// The body of one attempt.
#[derive(Debug)]
pub(crate) struct Sent {
    source: Source,
    at: u64,
    size: u64,
    waits: Option<oneshot::Receiver<Result<Bytes>>>,
    progress: Progress,
}

impl Sent {
    fn next(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let left = self.size - self.at;
        if left == 0 {
            return Poll::Ready(None);
        }
        let feed = match &self.source {
            Source::Memory(bytes) => {
                let at = usize::try_from(self.at).unwrap_or(usize::MAX).min(bytes.len());
                let end = at.saturating_add(PIECE).min(bytes.len());
                return Poll::Ready(Some(Ok(bytes.slice(at..end))));
            }
            Source::Fed(feed) => feed,
        };
        let waits = self.waits.get_or_insert_with(|| feed.ask(self.at, left.min(READ as u64)));
        let Poll::Ready(given) = Pin::new(waits).poll(context) else { return Poll::Pending };
        self.waits = None;
        let gone = |_| Err(Error::new(ErrorKind::Internal, "nobody gives the body that is being sent"));
        Poll::Ready(Some(given.unwrap_or_else(gone)))
    }
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>>>> {
        let Poll::Ready(next) = self.next(context) else { return Poll::Pending };
        if let Some(Ok(bytes)) = &next {
            self.at += bytes.len() as u64;
            self.progress.moved();
        }
        Poll::Ready(next.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.at == self.size
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.size - self.at)
    }
}

/// Gives the bytes of a body that belongs to a thread which waits for the network meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct Feed(Sender<Message>);

enum Message {
    /// Bytes are wanted: from where, how many, for whom.
    Bytes(u64, u64, oneshot::Sender<Result<Bytes>>),
    /// The work is over.
    Over,
}

impl Feed {
    fn ask(&self, offset: u64, len: u64) -> oneshot::Receiver<Result<Bytes>> {
        let (give, given) = oneshot::channel();
        // Nobody is there any more: the answer is that of a sender which is gone.
        let _ = self.0.send(Message::Bytes(offset, len, give));
        given
    }
}

/// Does `work` on the network threads, and gives it the bytes of `body` while waiting for it.
pub(crate) fn while_fed<T, W>(body: &dyn Body, work: impl FnOnce(Feed) -> W) -> Result<T>
where
    T: Send + 'static,
    W: Future<Output = Result<T>> + Send + 'static,
{
    let (send, receive) = mpsc::channel();
    let (end, ended) = mpsc::channel();
    let work = work(Feed(send.clone()));
    runtime::spawn(async move {
        // Nobody waits any more: nothing to tell.
        let _ = end.send(work.await);
        let _ = send.send(Message::Over);
    })?;
    while let Ok(Message::Bytes(offset, len, give)) = receive.recv() {
        // An attempt that was given up wants nothing any more.
        let _ = give.send(read(body, offset, len).map(Bytes::from));
    }
    ended.recv().unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "a network task was lost")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_standards() {
        let payload = Payload::of(b"abc".to_vec(), true);
        assert_eq!(hex(&payload.md5), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(payload.sha256.unwrap()[..4], [0xba, 0x78, 0x16, 0xbf]);
        assert_eq!(md5_of(&b"abc".to_vec()).unwrap(), payload.md5);
        assert_eq!(hex(&md5_of(&Vec::new()).unwrap()), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex(&md5_of_parts(&[])), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(Payload::of(Vec::new(), false).sha256, None);
    }

    #[test]
    fn a_body_is_fed_by_the_thread_that_has_it() {
        let body: Vec<u8> = (0..3 * READ + 5).map(|i| (i % 251) as u8).collect();
        let size = body.len() as u64;
        let got = while_fed(&body, |feed| async move {
            let (mut sent, _) = Payload::fed(feed, size, [0; 16]).start();
            let mut got = Vec::new();
            while let Some(frame) =
                std::future::poll_fn(|c| http_body::Body::poll_frame(Pin::new(&mut sent), c)).await
            {
                got.extend_from_slice(frame?.data_ref().unwrap());
            }
            Ok(got)
        });
        assert!(got.unwrap() == body);
    }

    #[test]
    fn what_reading_a_body_says_is_what_sending_it_says() {
        let lost = while_fed(&vec![1, 2, 3], |feed| async move {
            let (mut sent, _) = Payload::fed(feed, 4, [0; 16]).start();
            let next = std::future::poll_fn(|c| http_body::Body::poll_frame(Pin::new(&mut sent), c)).await;
            next.unwrap().map(|_| ())
        });
        assert_eq!(lost.unwrap_err().message(), "bytes past the end of a body");
    }
}
