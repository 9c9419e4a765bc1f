//! A worker process: started, asked, killed.

use std::ffi::OsString;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use sieva_types::{Error, ErrorKind, Result};

use crate::channel::{Broken, Channel};
use crate::end;
use crate::limits::WorkerLimits;
use crate::message::Request;

/// How long a worker whose connection is closed may take to end by itself.
const PATIENCE: Duration = Duration::from_millis(200);

/// The variables that a worker inherits: how programs and libraries are found, and the language of messages.
const KEPT: [&str; 7] = ["PATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "RUST_BACKTRACE"];

/// A running worker. It is killed, and waited for, when this is dropped.
pub struct Process {
    child: Child,
    channel: Option<Channel>,
    stderr: Option<ChildStderr>,
}

impl Process {
    /// Starts `command`, whose main loop is [`crate::serve`], with these variables besides those that all workers have.
    ///
    /// # Errors
    /// What the system says, naming the command.
    pub fn start(command: &[OsString], environment: &[(OsString, OsString)]) -> Result<Self> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                "the command that starts a worker process is empty",
            ));
        };
        let failed = |e: &std::io::Error| {
            Error::io(format!("cannot start the worker process '{}'", program.display()), e)
        };
        let (ours, theirs) = UnixStream::pair().map_err(|e| failed(&e))?;
        let child = Command::new(program)
            .args(arguments)
            // Passwords are kept in variables; a parser that was taken over has no use for them.
            .env_clear()
            .envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.map_err(|e| failed(&e))?;
        let stderr = child.stderr.take();
        if let Some(stderr) = &stderr {
            never_block(stderr);
        }
        Ok(Self { child, channel: Some(Channel::new(ours)), stderr })
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// Of kind `corrupt-file`, saying how the worker ended: it is of no use any more.
    pub fn ask(&mut self, request: &Request, limits: &WorkerLimits) -> Result<Vec<u8>> {
        let deadline = Instant::now() + limits.wall;
        let message = request.encode();
        let asked = match &mut self.channel {
            Some(channel) => channel
                .send(&[&message], Some(deadline))
                .and_then(|()| channel.receive(limits.answer, Some(deadline))),
            None => Err(Broken::Gone),
        };
        // What it printed must not fill the pipe up, or it would wait for ever.
        let printed = self.printed();
        asked.map_err(|broken| {
            let status = self.stop(broken == Broken::Gone);
            let printed = printed + &self.printed();
            end::describe(&broken, status, &printed, limits)
        })
    }

    /// Ends it: at once, or when it had time to end by itself.
    fn stop(&mut self, wait: bool) -> Option<ExitStatus> {
        self.channel = None;
        let until = Instant::now() + if wait { PATIENCE } else { Duration::ZERO };
        while Instant::now() < until {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // By its handle: a process that was not waited for keeps its number, so no other can be hit.
        self.child.kill().ok();
        self.child.wait().ok()
    }

    /// What it has printed to standard error since, or the first of it.
    fn printed(&mut self) -> String {
        let mut bytes = [0; 16 << 10];
        let (mut text, mut rounds) = (String::new(), 0);
        while let Some(stderr) = &mut self.stderr
            && rounds < 8
        {
            match stderr.read(&mut bytes) {
                Ok(n) if n > 0 => text.push_str(&String::from_utf8_lossy(&bytes[..n])),
                _ => break,
            }
            rounds += 1;
        }
        text
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            self.stop(false);
        }
    }
}

/// Lets reads return when there is nothing.
fn never_block(stderr: &ChildStderr) {
    let fd = stderr.as_raw_fd();
    // SAFETY: sets a flag of a descriptor that is open for as long as `stderr` is borrowed.
    unsafe { libc::fcntl(fd, libc::F_SETFL, libc::fcntl(fd, libc::F_GETFL) | libc::O_NONBLOCK) };
}
