//! How a worker ended, in words.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use sieva_types::{Error, ErrorKind};

use crate::channel::Broken;
use crate::limits::WorkerLimits;

const HINT: &str = "the file may be damaged or made to do harm; nothing of it was used";

/// The error that a worker's end is.
pub fn describe(broken: &Broken, status: Option<ExitStatus>, printed: &str, limits: &WorkerLimits) -> Error {
    let wall = limits.wall.as_secs_f64();
    match broken {
        Broken::Late => parsed(format!("ran over {wall} s")).hint(format!("{HINT}; a longer time may do")),
        Broken::TooLong(n) => parsed(format!("answered with {n} bytes, at most {} are taken", limits.answer)),
        Broken::Gone => gone(status, printed, limits),
    }
}

/// An error of the process that parsed.
pub fn parsed(what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("the process that parsed it {what}")).hint(HINT)
}

fn gone(status: Option<ExitStatus>, printed: &str, limits: &WorkerLimits) -> Error {
    let Some(status) = status else { return parsed("is gone") };
    // What Rust's and C++'s allocators print before they abort.
    if printed.contains("memory allocation of") || printed.contains("bad_alloc") {
        return parsed(format!("ran over {}", bytes(limits.memory)))
            .hint(format!("{HINT}; a higher limit of memory may do"));
    }
    match (status.signal(), status.code()) {
        (Some(libc::SIGXCPU), _) => parsed(format!("ran over {} s of processor time", limits.cpu_seconds)),
        // Ours is never told so: it has a word of its own in `describe`.
        (Some(libc::SIGKILL), _) => parsed("was killed, or closed its connection and went on")
            .hint(format!("{HINT}; a machine that is short of memory kills processes too")),
        (Some(signal), _) => parsed(format!("was killed by {}", signal_name(signal))),
        (None, code) => {
            let last = printed.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("nothing");
            let last: String = last.chars().filter(|c| !c.is_control()).take(200).collect();
            let code = code.map_or_else(String::new, |code| format!(" with code {code}"));
            let message = format!("the worker process ended{code} without an answer; it printed: {last}");
            // Not by a crash: more likely it could not start than that the file did it.
            Error::new(ErrorKind::Io, message).hint("check the command that starts worker processes")
        }
    }
}

fn bytes(n: u64) -> String {
    match n {
        n if n >= 1 << 30 && n % (1 << 30) == 0 => format!("{} GiB", n >> 30),
        n if n >= 1 << 20 => format!("{} MiB", n >> 20),
        n => format!("{n} bytes"),
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGBUS => "SIGBUS",
        libc::SIGABRT => "SIGABRT",
        libc::SIGFPE => "SIGFPE",
        libc::SIGILL => "SIGILL",
        libc::SIGSYS => "SIGSYS",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGTERM => "SIGTERM",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
