//! A part of a file, made ahead of its reader by threads of its own, so that reading and sending overlap.
//!
//! Threads take windows of the file in ascending order, each gathers one, and the reader is given blocks of them in
//! ascending order (Su et al., SDQuery DSI, SC13, section 4.2: blocks are registered per stream in the order of their
//! offsets). How many bytes are ahead is bounded, whatever the reader does; but a window that the next block needs is
//! always made, or a reader that only looks whether the block is ready would look for ever.
//!
//! A deflated file that is taken whole has its head at the end: it tells where the chunks lie, which is known when all of
//! them are made.

use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use sieva::{Error, ErrorKind, Result};

use crate::deflated::Part;
use crate::encoded::{Encoded, Running};
use crate::file_layout::{MOST_WINDOWS, Piece, WINDOW};
use crate::hdf5::chunked::Stored;

/// The size of blocks unless the caller says another.
pub const BLOCK: usize = 256 << 10;

/// Bytes of a quarter of the memory that let one more thread work: for two windows, of which chunks fill some.
const THREAD_BYTES: u64 = 8 * WINDOW;
/// Windows whose memory is kept for others.
const MOST_SPARE: usize = 4;

/// The blocks of a byte range of an [`Encoded`] result, in ascending order. Its threads end with it.
///
/// Several threads may read it: each block goes to one of them.
pub struct EncodedStream {
    shared: Arc<Shared>,
    /// Held by the thread that takes a block.
    reader: Mutex<()>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    encoded: Encoded,
    /// Bytes that may be made, or be about to be, and not taken yet; more only where the next block needs them.
    ahead: u64,
    /// The size of blocks.
    block: u64,
    /// Bytes of the largest window.
    window: u64,
    state: Mutex<State>,
    /// A window was made.
    made: Condvar,
    /// A block was taken, or there will be no more.
    taken: Condvar,
}

#[derive(Default)]
struct State {
    /// What is still to be made.
    todo: Todo,
    /// Windows that were begun.
    issued: u64,
    /// Windows that are made, by number.
    ready: BTreeMap<u64, Result<Window>>,
    /// The number of the window that is handed out, the offset in the file where the reader is, and what of the window
    /// has been read.
    current: u64,
    at: u64,
    read: usize,
    /// Bytes that were begun and not read: of deflated windows as they will be at most, until they are made.
    out: u64,
    /// Those of them that are there, or will be there for sure.
    sure: u64,
    /// How the chunks of the windows that were read are stored, until the head is made of it.
    stored: Vec<Stored>,
    /// Memory to be used again.
    spare: Vec<Vec<u8>>,
    stopped: bool,
}

/// What is still to be made of a file.
enum Todo {
    /// The bytes of a range.
    Bytes { next: u64, end: u64 },
    /// The chunks from this number on, then the head.
    Chunks { next: u64, count: u64 },
}

impl Default for Todo {
    fn default() -> Self {
        Self::Bytes { next: 0, end: 0 }
    }
}

/// What a thread makes at once.
enum Work {
    Piece(Piece),
    Part(Part),
}

/// A window that is made.
struct Window {
    bytes: Vec<u8>,
    stored: Vec<Stored>,
}

impl Encoded {
    /// The bytes of a range as a stream of blocks of `block` bytes (0: [`BLOCK`]), the last one shorter; a range that
    /// reaches beyond the end ends with the file. Blocks are no larger than an eighth of the query's memory, or than
    /// [`BLOCK`].
    ///
    /// # Errors
    /// `io-error` where no thread can be started.
    pub fn stream(&self, range: Range<u64>, block: usize) -> Result<EncodedStream> {
        let end = range.end.min(self.size()?);
        let start = range.start.min(end);
        self.begin(Todo::Bytes { next: start, end }, start, block)
    }

    /// The whole file as a stream of blocks that lie anywhere: of a deflated file as its chunks are made, the head last.
    /// Those of other files ascend. `block` as in [`Encoded::stream`]; but a block ends with the chunks, and with the head.
    ///
    /// # Errors
    /// `io-error` where no thread can be started.
    pub fn stream_any_order(&self, block: usize) -> Result<EncodedStream> {
        match self.deflated() {
            Some(file) => self.begin(Todo::Chunks { next: 0, count: file.chunks() }, file.head_len(), block),
            None => self.stream(0..u64::MAX, block),
        }
    }

    fn begin(&self, todo: Todo, at: u64, block: usize) -> Result<EncodedStream> {
        let Running { threads, memory, .. } = *self.running();
        // A quarter of the memory for what is made ahead, another for the values that windows are made of: by few threads
        // where the memory is little.
        let share = memory / 4;
        let threads = (threads as u64).min(share / THREAD_BYTES).max(1);
        // Of values that are compressed there are two more copies.
        let copies = if matches!(todo, Todo::Chunks { .. }) { 4 } else { 2 };
        let window = (share / (copies * threads)).clamp(WINDOW, MOST_WINDOWS * WINDOW);
        // One window of a small result is small, but its columns are as many windows.
        let threads = threads.min(todo.most_windows());
        let block = if block == 0 { BLOCK } else { block } as u64;
        let block = block.min((memory / 8).max(BLOCK as u64));
        let shared = Arc::new(Shared {
            encoded: self.clone(),
            ahead: share.min((2 * threads + 2) * window),
            block,
            window,
            state: Mutex::new(State { todo, at, ..State::default() }),
            made: Condvar::new(),
            taken: Condvar::new(),
        });
        let mut stream = EncodedStream { shared, reader: Mutex::default(), threads: Vec::new() };
        for _ in 0..threads {
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
    ///
    /// # Errors
    /// As [`Encoded::size`].
    pub fn split(&self, n: usize) -> Result<Vec<Range<u64>>> {
        let len = self.size()?;
        let step = len.div_ceil(n.max(1) as u64).next_multiple_of(8);
        let each = (0..n as u64).map(|i| (i * step).min(len)..((i + 1) * step).min(len));
        Ok(each.filter(|r| !r.is_empty()).collect())
    }
}

impl EncodedStream {
    /// Fills `to` with the next block, waiting until it is there: with less where `to` is shorter than a block. Gives the
    /// offset in the file and the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// As [`Encoded::read_at`]; the same again at each further call.
    pub fn next_block(&self, to: &mut [u8]) -> Result<(u64, usize)> {
        let alone = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.shared.lock();
        state.put_head(&self.shared.encoded);
        let offset = state.at;
        let want = state.next_block(self.shared.block).min(to.len() as u64) as usize;
        let mut done = 0;
        while done < want {
            let number = state.current;
            let Some(window) = state.ready.get(&number) else {
                if state.is_all_read() {
                    break;
                }
                state = self.shared.made.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let window = window.as_ref().map_err(Clone::clone)?;
            let part = &window.bytes[state.read..];
            let n = part.len().min(want - done);
            to[done..done + n].copy_from_slice(&part[..n]);
            done += n;
            let is_over = n == part.len();
            state.read += n;
            state.out -= n as u64;
            state.sure -= n as u64;
            if is_over {
                state.end_window(number);
            }
        }
        state.at += done as u64;
        self.shared.taken.notify_all();
        if done == 0 && state.has_head_to_come() {
            drop(state);
            drop(alone);
            return self.next_block(to);
        }
        Ok((offset, done))
    }

    /// Whether [`EncodedStream::next_block`] would give a whole block, the end or an error without waiting.
    pub fn is_ready(&self) -> bool {
        let state = self.shared.lock();
        let want = state.next_block(self.shared.block);
        let mut have = 0;
        for number in state.current.. {
            if have >= want || (number == state.issued && state.todo.is_over()) {
                return true;
            }
            match state.ready.get(&number) {
                Some(Ok(window)) => have += window.bytes.len() as u64,
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

impl Todo {
    /// Whether all was begun.
    fn is_over(&self) -> bool {
        match self {
            Self::Bytes { next, end } => next >= end,
            Self::Chunks { next, count } => next >= count,
        }
    }

    /// As many windows there may be at most.
    fn most_windows(&self) -> u64 {
        match self {
            Self::Bytes { next, end } => end - next,
            Self::Chunks { next, count } => count - next,
        }
    }
}

impl State {
    /// Bytes of the block that comes next; of chunks it may have fewer.
    fn next_block(&self, block: u64) -> u64 {
        match self.todo {
            Todo::Bytes { end, .. } => block.min(end - self.at),
            Todo::Chunks { .. } => block,
        }
    }

    /// Whether another window may be begun: within `ahead` bytes, or for a block that is not covered yet.
    fn has_room(&self, ahead: u64, block: u64) -> bool {
        self.out < ahead || self.sure < self.next_block(block)
    }

    /// Whether nothing more will be made of what was to be made.
    fn is_all_read(&self) -> bool {
        self.todo.is_over() && self.current == self.issued
    }

    fn has_head_to_come(&self) -> bool {
        matches!(self.todo, Todo::Chunks { .. }) && self.is_all_read()
    }

    /// Makes the head of a deflated file, when all of its chunks were read: it is what comes next, from the file's start.
    fn put_head(&mut self, encoded: &Encoded) {
        let Some(file) = encoded.deflated().filter(|_| self.has_head_to_come()) else { return };
        let head = file.head(&std::mem::take(&mut self.stored));
        let len = file.head_len();
        (self.out, self.sure) = (len, len);
        self.todo = Todo::Bytes { next: len, end: len };
        self.at = 0;
        self.ready.insert(self.issued, head.map(|bytes| Window { bytes, stored: Vec::new() }));
        self.issued += 1;
    }

    /// Leaves the window that was read to its end.
    fn end_window(&mut self, number: u64) {
        if let Some(Ok(window)) = self.ready.remove(&number) {
            // Deflated windows have no more memory than they take, of many lengths.
            if window.stored.is_empty() && self.spare.len() < MOST_SPARE {
                self.spare.push(window.bytes);
            }
            self.stored.extend(window.stored);
        }
        self.current += 1;
        self.read = 0;
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What each thread does: window after window. A thread that ends before the range does leaves an error where its
    /// window would be, so that nobody waits for it.
    fn work(&self) {
        loop {
            let taken = catch_unwind(AssertUnwindSafe(|| self.next_window()));
            let Ok(next) = taken else {
                let mut state = self.lock();
                let number = state.issued;
                state.issued += 1;
                return self.put(state, number, 0, Err(panicked()));
            };
            let Some((number, work, memory)) = next else { return };
            let made = catch_unwind(AssertUnwindSafe(|| self.make(&work, memory)));
            let made = made.unwrap_or_else(|_| Err(panicked()));
            let unsure = if let Work::Part(part) = &work { part.raw } else { 0 };
            self.put(self.lock(), number, unsure, made);
        }
    }

    fn make(&self, work: &Work, mut memory: Vec<u8>) -> Result<Window> {
        match (work, self.encoded.deflated()) {
            (Work::Part(part), Some(file)) => {
                // As much as it takes at most; what it does not take is given back.
                let mut bytes = Vec::with_capacity(part.raw as usize);
                let stored = self.encoded.make_part(file, part, &mut bytes)?;
                bytes.shrink_to_fit();
                Ok(Window { bytes, stored })
            }
            (Work::Piece(piece), _) => {
                let len = (piece.range().end - piece.range().start) as usize;
                if memory.capacity() / 2 > len {
                    // Many small windows in large memory would be more than the limit.
                    memory = Vec::new();
                }
                memory.resize(len, 0);
                self.encoded.read_piece(piece, 1, &mut memory)?;
                Ok(Window { bytes: memory, stored: Vec::new() })
            }
            (Work::Part(_), None) => Err(panicked()),
        }
    }

    /// Puts a window where its reader looks for it. Of `unsure` bytes, those that a deflated one might have had, are now
    /// as many as it has.
    fn put(&self, mut state: MutexGuard<'_, State>, number: u64, unsure: u64, made: Result<Window>) {
        if unsure > 0 {
            let len = made.as_ref().map_or(0, |window| window.bytes.len() as u64);
            state.out = state.out + len - unsure;
            state.sure += len;
        }
        state.stopped |= made.is_err();
        state.ready.insert(number, made);
        self.made.notify_all();
        self.taken.notify_all();
    }

    /// The next window to be made, once there is room for it.
    fn next_window(&self) -> Option<(u64, Work, Vec<u8>)> {
        let mut state = self.lock();
        while !state.stopped && !state.todo.is_over() && !state.has_room(self.ahead, self.block) {
            state = self.taken.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopped || state.todo.is_over() {
            return None;
        }
        let (work, todo) = match state.todo {
            Todo::Bytes { next, end } => {
                let piece = self.encoded.window(next, end, self.window);
                let next = piece.range().end;
                (Work::Piece(piece), Todo::Bytes { next, end })
            }
            Todo::Chunks { next, count } => {
                let part = self.encoded.deflated()?.part(next, self.window)?;
                let next = part.next;
                (Work::Part(part), Todo::Chunks { next, count })
            }
        };
        match &work {
            Work::Piece(piece) => {
                let len = piece.range().end - piece.range().start;
                state.out += len;
                state.sure += len;
            }
            Work::Part(part) => state.out += part.raw,
        }
        state.todo = todo;
        state.issued += 1;
        Some((state.issued - 1, work, state.spare.pop().unwrap_or_default()))
    }
}

fn panicked() -> Error {
    Error::new(ErrorKind::Internal, "a part of the result could not be made").hint("please report it")
}
