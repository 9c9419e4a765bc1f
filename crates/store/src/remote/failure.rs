//! What can go wrong with one request, and how it is told.

use std::time::Duration;

use http::StatusCode;
use http::header::{self, RETRY_AFTER};
use reqwest::Response;
use sieva_types::{Error, ErrorKind};

use super::address::NotPublic;
use super::retry;
use super::s3::error_code;

/// The end of one attempt that brought no bytes.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It may pass: try again, after what the server asked for.
    Again { cause: String, after: Option<Duration> },
    /// The token is no longer good: get a new one and try again, once.
    Unauthorized(Error),
    /// It will not pass.
    Final(Error),
}

/// How an attempt ended.
pub(crate) type Outcome<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Final(e)
    }
}

impl Failure {
    /// Of a connection that could not be made, or was lost. The text is that of the innermost cause, which names no
    /// address: addresses may hold secrets.
    pub(crate) fn connection(e: reqwest::Error, what: &str) -> Self {
        let e = e.without_url();
        if let Some(cause) = causes(&e).find(|cause| cause.is::<NotPublic>()) {
            return Self::Final(Error::new(ErrorKind::PermissionDenied, format!("{what}: {cause}")));
        }
        // Of a body that could not be read while it was sent.
        if let Some(ours) = causes(&e).find_map(|cause| cause.downcast_ref::<Error>()) {
            return Self::Final(ours.clone());
        }
        if e.is_builder() || e.is_redirect() {
            return Self::Final(Error::new(ErrorKind::Io, format!("{what}: {}", innermost(&e))));
        }
        let kind = if e.is_timeout() {
            "timed out"
        } else if e.is_connect() {
            "cannot connect"
        } else {
            "connection lost"
        };
        Self::Again { cause: format!("{kind}: {}", innermost(&e)), after: None }
    }
}

/// An error and what it came of.
fn causes<'a>(
    e: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(e), |e| e.source())
}

fn innermost(e: &(dyn std::error::Error + 'static)) -> String {
    let text = causes(e).last().map(ToString::to_string).unwrap_or_default();
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}

/// What a server that will not do it now may do soon, by the code of its answer: of a body that was damaged or cut off on its way,
/// and of somebody who changes the same object.
const PASSING: [&str; 6] = [
    "BadDigest",
    "XAmzContentSHA256Mismatch",
    "IncompleteBody",
    "RequestTimeout",
    "ConditionalRequestConflict",
    "OperationAborted",
];

/// The failure that an answer is. `access` says which variables give access to such a storage.
pub(crate) async fn failed(answer: Response, name: &str, access: &str) -> Failure {
    let status = answer.status();
    let header = answer.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok());
    let after = header.and_then(retry::retry_after);
    let body = start_of(answer).await;
    let code = error_code(&body);
    let is_passing = code.is_some_and(|code| PASSING.contains(&code));
    if retry::may_pass(status) || is_passing {
        let code = code.map_or_else(String::new, |code| format!(" ({code})"));
        return Failure::Again { cause: format!("the server answers {status}{code}"), after };
    }
    let e = refused(status, code, name, access);
    if status == StatusCode::UNAUTHORIZED { Failure::Unauthorized(e) } else { e.into() }
}

/// The first bytes of an error's body.
async fn start_of(mut answer: Response) -> Vec<u8> {
    let is_xml = answer.headers().get(header::CONTENT_TYPE);
    let mut body = Vec::new();
    if !is_xml.and_then(|v| v.to_str().ok()).is_some_and(|v| v.contains("xml")) {
        return body;
    }
    while body.len() < 4096 {
        let Ok(Some(bytes)) = answer.chunk().await else { break };
        body.extend_from_slice(&bytes[..bytes.len().min(4096)]);
    }
    body
}

/// A status that will not pass. `access` says which variables give access to such a storage.
pub(crate) fn refused(status: StatusCode, code: Option<&str>, name: &str, access: &str) -> Error {
    let said = code.map_or_else(|| status.to_string(), |code| format!("{status} ({code})"));
    match status.as_u16() {
        401 | 403 | 407 => {
            Error::new(ErrorKind::PermissionDenied, format!("the server refuses '{name}': {said}"))
                .hint(access)
        }
        404 if code == Some("NoSuchBucket") => {
            Error::new(ErrorKind::FileNotFound, format!("there is no bucket for '{name}': {said}"))
                .hint("make the bucket first (aws s3 mb s3://bucket), or check its name")
        }
        404 | 410 => Error::new(ErrorKind::FileNotFound, format!("there is no '{name}': {said}"))
            .hint("check the address, and whether it needs signing in to be seen"),
        301 | 302 | 307 | 308 => {
            Error::new(ErrorKind::Io, format!("the server sends '{name}' elsewhere: {said}"))
                .hint("set AWS_REGION or AWS_ENDPOINT_URL to where the bucket is")
        }
        _ => Error::new(ErrorKind::Io, format!("the server fails on '{name}': {said}")),
    }
}

/// A replaced object.
pub(crate) fn stale(name: &str) -> Error {
    Error::new(ErrorKind::StaleSource, format!("'{name}' was changed since it was opened"))
        .hint("open it again")
}

/// A request given up; `what` was to be done.
pub(crate) fn gave_up(what: &str, attempts: u32, cause: &str, seconds: f64) -> Error {
    let times = if attempts == 1 { "1 attempt".to_owned() } else { format!("{attempts} attempts") };
    Error::new(ErrorKind::Io, format!("{what}: {cause}; gave up after {times} in {seconds:.1} s"))
        .hint("check the network and the server, or allow more retries and a longer deadline")
}
