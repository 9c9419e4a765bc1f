//! A part of a file, made ahead of its reader by threads of its own, so that reading and sending overlap.
//!
//! Threads take windows of the file in ascending order, each gathers one, and the reader is given blocks of them in
//! ascending order (Su et al., SDQuery DSI, SC13, section 4.2: blocks are registered per stream in the order of their
//! offsets). How many windows are ahead is bounded, whatever the reader does.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use sieva::{Error, ErrorKind, Result};

use crate::encoded::Encoded;
use crate::plan::{MOST_WINDOWS, Piece, WINDOW};

/// The size of blocks unless the caller says another.
pub const BLOCK: usize = 256 << 10;

/// The blocks of a byte range of an [`Encoded`] result, in ascending order. Its threads end with it.
///
/// Several threads may read it: each block goes to one of them.
pub struct EncodedStream {
    shared: Arc<Shared>,
    /// Held by the thread that takes a block.
    reader: Mutex<()>,
    threads: Vec<JoinHandle<()>>,
    block: usize,
    end: u64,
}

struct Shared {
    encoded: Encoded,
    /// Windows that may be made and not taken yet.
    ahead: u64,
    state: Mutex<State>,
    /// A window was made.
    made: Condvar,
    /// A window was taken.
    taken: Condvar,
}

#[derive(Default)]
struct State {
    /// Where the next window to be made begins, and its number.
    next: u64,
    end: u64,
    issued: u64,
    /// Windows that are made, by number.
    ready: BTreeMap<u64, Result<Vec<u8>>>,
    /// The number of the window that is handed out, the offset in the file where the reader is, and what of the window
    /// has been read.
    current: u64,
    at: u64,
    read: usize,
    /// Memory to be used again.
    spare: Vec<Vec<u8>>,
    stopped: bool,
}

impl Encoded {
    /// The bytes of a range as a stream of blocks of `block` bytes (0: [`BLOCK`]), the last one shorter; a range that
    /// reaches beyond the end ends with the file.
    ///
    /// # Errors
    /// `io-error` where no thread can be started.
    pub fn stream(&self, range: Range<u64>, block: usize) -> Result<EncodedStream> {
        let end = range.end.min(self.len());
        let start = range.start.min(end);
        let query = self.query();
        let threads = query.threads().max(1);
        let ahead = (query.memory() / 4 / (MOST_WINDOWS * WINDOW)).clamp(2, 2 * threads as u64 + 2);
        let state = State { next: start, end, at: start, ..State::default() };
        let shared = Arc::new(Shared {
            encoded: self.clone(),
            ahead,
            state: Mutex::new(state),
            made: Condvar::new(),
            taken: Condvar::new(),
        });
        let windows = (end - start).div_ceil(WINDOW);
        let block = if block == 0 { BLOCK } else { block };
        let mut stream = EncodedStream { shared, reader: Mutex::default(), threads: Vec::new(), block, end };
        for _ in 0..windows.min(threads as u64) {
            let shared = Arc::clone(&stream.shared);
            let thread = std::thread::Builder::new().name("sieva-stream".into());
            let started = thread.spawn(move || shared.work());
            // Those that were started end when the stream is dropped.
            stream.threads.push(started.map_err(|e| Error::io("cannot start a thread", &e))?);
        }
        Ok(stream)
    }

    /// The file cut into `n` ranges of about the same number of bytes, for as many streams: bytes of values are hits, so
    /// each has as many of them. Ranges begin at multiples of 8 bytes behind the first; there are fewer where the file is
    /// short.
    pub fn split(&self, n: usize) -> Vec<Range<u64>> {
        let len = self.len();
        let step = len.div_ceil(n.max(1) as u64).next_multiple_of(8);
        (0..n as u64)
            .map(|i| (i * step).min(len)..((i + 1) * step).min(len))
            .filter(|r| !r.is_empty())
            .collect()
    }
}

impl EncodedStream {
    /// Fills `to` with the next block, waiting until it is there: with less where `to` is shorter than a block. Gives the
    /// offset in the file and the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// As [`Encoded::read_at`]; the same again at each further call.
    pub fn next_block(&self, to: &mut [u8]) -> Result<(u64, usize)> {
        let _alone = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.lock();
        let offset = state.at;
        let want = self.block.min(to.len()).min(usize::try_from(self.end - offset).unwrap_or(usize::MAX));
        let mut done = 0;
        while done < want {
            let number = state.current;
            let Some(window) = state.ready.get(&number) else {
                state = self.shared.made.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let window = window.as_ref().map_err(Clone::clone)?;
            let part = &window[state.read..];
            let n = part.len().min(want - done);
            to[done..done + n].copy_from_slice(&part[..n]);
            done += n;
            let is_over = n == part.len();
            state.read += n;
            if is_over {
                state.end_window(number);
                self.shared.taken.notify_all();
            }
        }
        state.at += done as u64;
        Ok((offset, done))
    }

    /// Whether [`EncodedStream::next_block`] would give a whole block, the end or an error without waiting.
    pub fn is_ready(&self) -> bool {
        let state = self.shared.lock();
        let want = (self.block as u64).min(self.end - state.at);
        let mut have = 0;
        for number in state.current.. {
            if have >= want {
                return true;
            }
            match state.ready.get(&number) {
                Some(Ok(window)) => have += window.len() as u64,
                Some(Err(_)) => return true,
                None => return false,
            }
            if number == state.current {
                have -= state.read as u64;
            }
        }
        false
    }
}

impl Drop for EncodedStream {
    fn drop(&mut self) {
        self.shared.lock().stopped = true;
        self.shared.taken.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl State {
    /// Leaves the window that was read to its end.
    fn end_window(&mut self, number: u64) {
        if let Some(Ok(window)) = self.ready.remove(&number) {
            self.spare.push(window);
        }
        self.current += 1;
        self.read = 0;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each thread does: window after window.
    fn work(&self) {
        while let Some((number, piece, mut window)) = self.next_window() {
            let made = catch_unwind(AssertUnwindSafe(|| {
                let range = piece.range();
                window.resize((range.end - range.start) as usize, 0);
                self.encoded.read_piece(&piece, 1, &mut window).map(|()| window)
            }));
            let made = made.unwrap_or_else(|_| {
                Err(Error::new(ErrorKind::Internal, "a part of the result could not be made")
                    .hint("please report it"))
            });
            let mut state = self.lock();
            state.stopped |= made.is_err();
            state.ready.insert(number, made);
            self.made.notify_all();
            self.taken.notify_all();
        }
    }

    /// The next window to be made, once there is room for it.
    fn next_window(&self) -> Option<(u64, Piece, Vec<u8>)> {
        let mut state = self.lock();
        while !state.stopped && state.next < state.end && state.issued >= state.current + self.ahead {
            state = self.taken.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopped || state.next >= state.end {
            return None;
        }
        let piece = self.encoded.window(state.next, state.end);
        state.next = piece.range().end;
        state.issued += 1;
        Some((state.issued - 1, piece, state.spare.pop().unwrap_or_default()))
    }
}
