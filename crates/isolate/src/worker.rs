//! The worker's side: opens one file, answers what is asked of it.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::manifest::{Layouts, Manifest};
use sieva_types::{Error, ErrorKind, Result};

use crate::channel::Channel;
use crate::limits::{WorkerLimits, confine, grant_cpu};
use crate::message::{GOOD_HEAD, OpenRequest, Request, encode_error, encode_texts};
use crate::opened::Opened;

/// Longest request.
const MAX_REQUEST: usize = 1 << 24;

/// The main loop of a worker process: answers the requests of the process that started it, which come over standard
/// input, until that one is gone. `open` opens a file of any format that the worker knows.
///
/// The first request sets limits for the life of the process and closes all open files but the standard ones: call it
/// first thing in a process of its own.
///
/// # Errors
/// `invalid-value` where standard input is no socket: nobody started it as a worker. `io-error` where the limits
/// cannot be set.
pub fn serve(open: impl Fn(&OpenRequest) -> Result<Arc<dyn ArraySource>>) -> Result<()> {
    let mut channel = Channel::new(connection()?);
    let (mut opened, mut limits): (Option<Opened>, Option<WorkerLimits>) = (None, None);
    let mut path = PathBuf::new();
    loop {
        // Whatever is wrong with it: the other side is gone, or talks another language.
        let Ok(message) = channel.receive(MAX_REQUEST, None) else { return Ok(()) };
        let request = Request::decode(&message)?;
        if let (None, Request::Open { limits: given, .. }) = (&limits, &request) {
            confine(given)?;
            limits = Some(*given);
        }
        if let Request::Open { request, .. } = &request {
            path.clone_from(&request.path);
        }
        let Some(limits) = &limits else {
            return Err(Error::new(ErrorKind::InvalidValue, "the first request opens no file"));
        };
        grant_cpu(limits.cpu_seconds)?;
        // A panic of a parser is a parser's error.
        let answer = catch_unwind(AssertUnwindSafe(|| answer(&request, &mut opened, limits, &open)));
        let answer = answer.unwrap_or_else(|_| {
            let message = format!("'{}': the reader of the format failed on it", path.display());
            Err(Error::corrupt(message).hint("please report it"))
        });
        let sent = match answer {
            Ok(content) => channel.send(&[&GOOD_HEAD, &content], None),
            Err(e) => channel.send(&[&encode_error(&e)], None),
        };
        if sent.is_err() {
            return Ok(());
        }
    }
}

/// The socket that standard input is. Standard output is left alone: what libraries print there never mixes with it.
fn connection() -> Result<UnixStream> {
    let failed = |e: &std::io::Error| Error::io("cannot use standard input", e);
    let own: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned().map_err(|e| failed(&e))?;
    // The copy would be closed with all others: the original stays in use.
    let stream = UnixStream::from(own);
    if stream.peer_addr().is_err() {
        return Err(Error::new(
            ErrorKind::InvalidValue,
            "standard input is no socket: this is a worker process",
        )
        .hint("it is started by sieva itself, with isolated=True"));
    }
    drop(stream);
    // SAFETY: descriptor 0 is open, it was copied just now; nothing else in a worker reads standard input.
    Ok(unsafe { <UnixStream as std::os::fd::FromRawFd>::from_raw_fd(0) })
}

fn answer(
    request: &Request,
    opened: &mut Option<Opened>,
    limits: &WorkerLimits,
    open: &impl Fn(&OpenRequest) -> Result<Arc<dyn ArraySource>>,
) -> Result<Vec<u8>> {
    if let Request::Open { request, layouts, .. } = request {
        let opened = opened.insert(Opened::new(open(request)?, limits));
        let which = if *layouts { Layouts::All } else { Layouts::None };
        return Manifest::take(&*opened.source, which).map(|manifest| manifest.encode());
    }
    let none = || Error::new(ErrorKind::Internal, "asked of a worker that has opened no file");
    let opened = opened.as_mut().ok_or_else(none)?;
    match request {
        Request::Open { .. } => Err(none()),
        Request::Layout(array) => opened.layout(*array),
        Request::Library(array, bx) => opened.numbers(*array, bx),
        Request::Unwritten(array, bx) => opened.is_unwritten(*array, bx).map(|is| vec![u8::from(is)]),
        Request::Texts(array, bx) => opened.texts(*array, bx).map(|texts| encode_texts(&texts)),
    }
}
