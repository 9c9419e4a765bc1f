//! Framed messages over a socket pair: a length of 8 bytes, little-endian, then so many bytes.
//!
//! A socket and not a pipe: writing to one whose reader is dead then is an error and no signal, whatever the host
//! program does with signals.

use std::io::{ErrorKind as IoKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Why a message did not come or go.
#[derive(Debug, PartialEq, Eq)]
pub enum Broken {
    /// The other side is gone, perhaps within a message.
    Gone,
    /// The deadline passed.
    Late,
    /// The other side announced a message of so many bytes.
    TooLong(u64),
}

/// One side of a connection.
pub struct Channel {
    stream: UnixStream,
}

/// Memory is taken as bytes arrive, by so many at once: announcing much takes nothing.
const STEP: usize = 1 << 20;

impl Channel {
    /// A channel over `stream`.
    pub fn new(stream: UnixStream) -> Self {
        Self { stream }
    }

    /// Sends one message in parts.
    pub fn send(&mut self, parts: &[&[u8]], deadline: Option<Instant>) -> Result<(), Broken> {
        let len: u64 = parts.iter().map(|p| p.len() as u64).sum();
        let head = len.to_le_bytes();
        for mut part in std::iter::once(&head[..]).chain(parts.iter().copied()) {
            while !part.is_empty() {
                self.stream.set_write_timeout(left(deadline)?).map_err(|_| Broken::Gone)?;
                match self.stream.write(part) {
                    Ok(0) => return Err(Broken::Gone),
                    Ok(n) => part = &part[n..],
                    Err(e) => pass(&e)?,
                }
            }
        }
        Ok(())
    }

    /// Receives one message of at most `limit` bytes.
    pub fn receive(&mut self, limit: usize, deadline: Option<Instant>) -> Result<Vec<u8>, Broken> {
        let mut head = [0; 8];
        self.fill(&mut head, deadline)?;
        let len = u64::from_le_bytes(head);
        if len > limit as u64 {
            return Err(Broken::TooLong(len));
        }
        let len = len as usize;
        let mut message = Vec::new();
        while message.len() < len {
            let start = message.len();
            message.resize(len.min(start + STEP.max(start)), 0);
            self.fill(&mut message[start..], deadline)?;
        }
        Ok(message)
    }

    fn fill(&mut self, mut out: &mut [u8], deadline: Option<Instant>) -> Result<(), Broken> {
        while !out.is_empty() {
            self.stream.set_read_timeout(left(deadline)?).map_err(|_| Broken::Gone)?;
            match self.stream.read(out) {
                Ok(0) => return Err(Broken::Gone),
                Ok(n) => out = &mut out[n..],
                Err(e) => pass(&e)?,
            }
        }
        Ok(())
    }
}

/// Time that is left, which is more than none: that would mean no limit.
fn left(deadline: Option<Instant>) -> Result<Option<Duration>, Broken> {
    match deadline.map(|d| d.saturating_duration_since(Instant::now())) {
        Some(Duration::ZERO) => Err(Broken::Late),
        left => Ok(left.map(|l| l.max(Duration::from_millis(1)))),
    }
}

/// An error of the socket: whether to try again.
fn pass(e: &std::io::Error) -> Result<(), Broken> {
    match e.kind() {
        IoKind::Interrupted | IoKind::WouldBlock | IoKind::TimedOut => Ok(()),
        _ => Err(Broken::Gone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (Channel, Channel) {
        let (a, b) = UnixStream::pair().unwrap();
        (Channel::new(a), Channel::new(b))
    }

    #[test]
    fn messages_arrive_whole_and_in_order() {
        let (mut a, mut b) = pair();
        let long: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let sent = long.clone();
        let writer = std::thread::spawn(move || {
            a.send(&[b"one", b""], None).unwrap();
            a.send(&[&sent[..7], &sent[7..]], None).unwrap();
        });
        assert_eq!(b.receive(10, None).unwrap(), b"one");
        assert_eq!(b.receive(4_000_000, None).unwrap(), long);
        writer.join().unwrap();
        assert_eq!(b.receive(10, None), Err(Broken::Gone));
    }

    #[test]
    fn what_is_too_long_too_late_or_cut_off_is_told() {
        let (mut a, mut b) = pair();
        a.send(&[&[0; 11]], None).unwrap();
        assert_eq!(b.receive(10, None), Err(Broken::TooLong(11)));
        let (a, mut b) = pair();
        let soon = Instant::now() + Duration::from_millis(20);
        assert_eq!(b.receive(10, Some(soon)), Err(Broken::Late));
        (&a.stream).write_all(&[200, 0, 0, 0, 0, 0, 0, 0, 1]).unwrap();
        drop(a);
        assert_eq!(b.receive(1000, None), Err(Broken::Gone));
    }
}
