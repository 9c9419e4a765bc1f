//! One request that changes something on a server, and what it answered.

use std::pin::pin;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, ETAG, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use reqwest::{Client, Response};
use sieva_types::{Error, ErrorKind, Result};

use super::failure::{Failure, Outcome, failed};
use super::redirect;
use super::s3::error_code;
use super::sent::{Payload, Progress, hex};
use super::service::Call;
use super::swift::TOKEN;
use super::transport::{Transport, Tried};
use crate::Counters;

/// Answers are short: pages of listings are the longest.
const LONGEST_ANSWER: usize = 16 << 20;

/// What is to be done.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) method: Method,
    /// The object; empty for the place itself.
    pub(crate) key: &'a str,
    pub(crate) query: &'a [(&'a str, &'a str)],
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Option<Payload>,
    /// What messages call it: "write", "delete".
    pub(crate) verb: &'static str,
    /// Answers that are none of success, and yet ones.
    pub(crate) expects: &'static [StatusCode],
}

impl<'a> Order<'a> {
    /// Something to be done with an object.
    pub(crate) fn new(method: Method, key: &'a str, verb: &'static str) -> Self {
        Self { method, key, query: &[], headers: HeaderMap::new(), payload: None, verb, expects: &[] }
    }
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
    /// The tag that the server gave what was sent, without quotation marks.
    pub(crate) tag: Option<String>,
    pub(crate) headers: HeaderMap,
    /// Whether an attempt before may have done it: its answer did not come, or was one of trouble.
    pub(crate) is_repeated: bool,
}

/// An order being carried out.
pub(crate) struct Sending<'a> {
    transport: &'a Transport,
    sender: Client,
    order: &'a Order<'a>,
    name: String,
    counters: &'a Counters,
    token: Option<HeaderValue>,
    in_doubt: bool,
}

impl Tried for Sending<'_> {
    type Brought = Done;

    async fn run(&mut self) -> Outcome<Done> {
        let done = self.attempt().await;
        self.in_doubt |= matches!(done, Err(Failure::Again { .. }));
        done
    }

    fn token(&self) -> Option<&HeaderValue> {
        self.token.as_ref()
    }

    fn what(&self) -> String {
        format!("cannot {} '{}'", self.order.verb, self.name)
    }
}

impl Sending<'_> {
    async fn attempt(&mut self) -> Outcome<Done> {
        // One that is given up from outside, because time is up, may have been carried out, too.
        let is_repeated = std::mem::replace(&mut self.in_doubt, true);
        let answer = self.send().await?;
        let status = answer.status();
        if !status.is_success() && !self.order.expects.contains(&status) {
            let failure = self.refused(answer).await;
            self.in_doubt = is_repeated;
            return Err(failure);
        }
        let headers = answer.headers().clone();
        let body = self.body(answer).await?;
        if status.is_success() {
            self.check(status, &headers, &body)?;
        }
        self.in_doubt = is_repeated;
        let tag = tag(&headers).map(str::to_owned);
        Ok(Done { status, body, tag, headers, is_repeated })
    }

    async fn send(&mut self) -> Outcome<Response> {
        let order = self.order;
        let mut headers = order.headers.clone();
        let writing = self.transport.service.writing();
        if let (Some(payload), Some(writing)) = (&order.payload, writing) {
            let (name, value) = (writing.sum)(&payload.md5);
            let value = HeaderValue::from_str(&value);
            headers.extend(value.ok().map(|value| (name, value)));
        }
        let digest = order.payload.as_ref().and_then(|payload| payload.sha256);
        let call = Call { method: order.method.clone(), key: order.key, query: order.query, headers, digest };
        let mut request = self.transport.service.request(self.transport.reader(), call).await?;
        self.token = request.headers().get(TOKEN).cloned();
        let progress = match &order.payload {
            Some(payload) => {
                request.headers_mut().insert(CONTENT_LENGTH, payload.size.into());
                let (sent, progress) = payload.start();
                *request.body_mut() = (payload.size > 0).then(|| reqwest::Body::wrap(sent));
                progress
            }
            None => {
                if order.method == Method::POST || order.method == Method::PUT {
                    request.headers_mut().insert(CONTENT_LENGTH, 0.into());
                }
                Progress::default()
            }
        };
        self.counters.add_request(0);
        let what = self.what();
        let answer = redirect::follow(self.transport, &self.sender, request, &what);
        moving(answer, &progress, self.transport.options.read_timeout).await
    }

    async fn refused(&self, answer: Response) -> Failure {
        // How Swift says that the body is not the one that its checksum is of.
        if answer.status() == StatusCode::UNPROCESSABLE_ENTITY {
            return damaged();
        }
        failed(answer, &self.name, self.transport.service.access()).await
    }

    async fn body(&self, mut answer: Response) -> Outcome<Vec<u8>> {
        let mut body = Vec::new();
        let patience = self.transport.options.read_timeout;
        loop {
            let next = tokio::time::timeout(patience, answer.chunk()).await.map_err(|_| resting(patience))?;
            let Some(bytes) = next.map_err(|e| Failure::connection(e, &self.what()))? else {
                return Ok(body);
            };
            self.counters.add_bytes(bytes.len() as u64);
            if body.len() + bytes.len() > LONGEST_ANSWER {
                let message = format!("{}: the server answers with more than is read", self.what());
                return Err(Error::new(ErrorKind::Io, message).into());
            }
            body.extend_from_slice(&bytes);
        }
    }

    /// Whether success is one. S3 begins to answer before it is done, and says in the body that it failed; a gateway or a login
    /// page answers in the place of the store, which tells a tag of what it keeps.
    fn check(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Outcome<()> {
        if let Some(code) = error_code(body).filter(|_| body.windows(7).any(|w| w == b"<Error>")) {
            let cause = format!("the server answers {code}");
            if matches!(code, "InternalError" | "SlowDown" | "ServiceUnavailable" | "RequestTimeout") {
                return Err(Failure::Again { cause, after: None });
            }
            return Err(Error::new(ErrorKind::Io, format!("{}: {cause}", self.what())).into());
        }
        let Some(payload) = self.order.payload.as_ref().filter(|_| self.order.method == Method::PUT) else {
            return Ok(());
        };
        if tag(headers).is_none_or(str::is_empty) && !is_kept_later(status, headers) {
            let cause =
                format!("the server answers {status} without the ETag of what it keeps, as no store does");
            return Err(Failure::Again { cause, after: None });
        }
        if tag_is_sum(headers) && tag(headers).is_some_and(|tag| is_other(tag, &hex(&payload.md5))) {
            return Err(damaged());
        }
        Ok(())
    }
}

/// The tag of an answer, without quotation marks.
fn tag(headers: &HeaderMap) -> Option<&str> {
    headers.get(ETAG).and_then(|tag| tag.to_str().ok()).map(|tag| tag.trim_matches('"'))
}

/// How Swift says that one that came later was complete before: it keeps that, and tells no tag.
fn is_kept_later(status: StatusCode, headers: &HeaderMap) -> bool {
    status == StatusCode::ACCEPTED && headers.contains_key("x-trans-id")
}

/// Whether tags are sums of the bytes: not of those that are encrypted with a key of their own.
fn tag_is_sum(headers: &HeaderMap) -> bool {
    !headers.iter().any(|(name, value)| name.as_str().contains("encryption") && value.as_bytes() != b"AES256")
}

/// Whether a tag is a sum of this form, of other bytes.
pub(crate) fn is_other(tag: &str, sum: &str) -> bool {
    let digits = |text: &str| text.split('-').next().is_some_and(|sum| sum.len() == 32 && is_hex(sum));
    let count = |text: &str| text.split_once('-').map(|(_, n)| n.to_owned());
    digits(tag) && count(tag) == count(sum) && !tag.eq_ignore_ascii_case(sum)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn damaged() -> Failure {
    Failure::Again { cause: "other bytes came than were sent".to_owned(), after: None }
}

fn resting(patience: Duration) -> Failure {
    Failure::Again { cause: format!("timed out: nothing moved for {patience:?}"), after: None }
}

/// Waits for an answer as long as the body moves.
async fn moving(
    answer: impl Future<Output = Outcome<Response>>,
    progress: &Progress,
    patience: Duration,
) -> Outcome<Response> {
    let mut answer = pin!(answer);
    loop {
        let left = patience.saturating_sub(progress.rests());
        if let Ok(answer) = tokio::time::timeout(left, &mut answer).await {
            return answer;
        }
        if progress.rests() >= patience {
            return Err(resting(patience));
        }
    }
}

impl Transport {
    /// Carries out an order.
    pub(crate) async fn carry_out(&self, order: &Order<'_>, counters: &Counters) -> Result<Done> {
        self.check(order.key)?;
        let size = order.payload.as_ref().map_or(0, |payload| payload.size);
        let mut sending = Sending {
            transport: self,
            sender: self.sender()?,
            order,
            name: self.service.name(order.key),
            counters,
            token: None,
            in_doubt: false,
        };
        self.repeat(&mut sending, size, counters).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_that_are_sums_are_told_from_others() {
        let sum = "900150983cd24fb0d6963f7d28e17f72";
        assert!(!is_other(sum, sum) && !is_other(&sum.to_uppercase(), sum));
        assert!(is_other("000150983cd24fb0d6963f7d28e17f72", sum));
        for none in
            ["", "v1", "0x8D", "000150983cd24fb0d6963f7d28e17f72-2", "z00150983cd24fb0d6963f7d28e17f72"]
        {
            assert!(!is_other(none, sum), "{none}");
        }
        assert!(is_other("000150983cd24fb0d6963f7d28e17f72-2", &format!("{sum}-2")));
        assert!(!is_other("000150983cd24fb0d6963f7d28e17f72-3", &format!("{sum}-2")));
    }

    #[test]
    fn encrypted_objects_have_tags_of_another_kind() {
        let headers = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-amz-server-side-encryption", HeaderValue::from_static(value));
            headers
        };
        assert!(tag_is_sum(&HeaderMap::new()) && tag_is_sum(&headers("AES256")));
        assert!(!tag_is_sum(&headers("aws:kms")));
    }
}
