//! Many reads as one: boxes and selections of a source's arrays, asked by one caller or by several threads at once.
//!
//! What is read is decided in [`sieva_format::read::read_together`]; here are names and limits, values of stored
//! elements, the threads, and the window in which callers meet.

mod boxes;
mod check;
mod crew;
mod points;
mod readers;
mod window;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use sieva_format::buffer::Buffer;
use sieva_format::layout::Placement;
use sieva_format::read::{Ask, BlockReader, ChunkCache, Crew, Wanted, read_together, takes_positions};
use sieva_query::exec::{Column, Data};
use sieva_query::raw::StoredDomain;
use sieva_types::{Bx, DType, Error, ErrorKind, Result, Selection};

use crate::open::{BOX_MEMORY, Source};
pub(crate) use boxes::{BoxWindow, Windows};
pub(crate) use check::{check_box, check_room, need};
use crew::Threads;

/// Results of small requests that a thread makes at once.
const RESULTS_AT_ONCE: usize = 256;

/// What of an array is wanted.
#[derive(Clone, Debug)]
pub enum Part {
    /// A box.
    Box(Bx),
    /// The positions of a selection over the array's dimensions.
    Positions(Arc<Selection>),
}

/// One of many reads: see [`Source::read_many`].
#[derive(Clone, Debug)]
pub struct Request {
    /// The array, as [`Source::resolve`] gives it.
    pub array: usize,
    /// What of it.
    pub part: Part,
    /// Whether values are wanted as stored; else decoded.
    pub raw: bool,
    /// Set to give up this request alone.
    pub cancel: Arc<AtomicBool>,
}

impl Request {
    /// A request for the decoded values of a box.
    pub fn of_box(array: usize, bx: Bx) -> Self {
        Self { array, part: Part::Box(bx), raw: false, cancel: Arc::default() }
    }

    /// A request for the decoded values at the positions of a selection, in their order.
    pub fn of_positions(array: usize, selection: Arc<Selection>) -> Self {
        Self { array, part: Part::Positions(selection), raw: false, cancel: Arc::default() }
    }

    /// Values that it asks for.
    pub fn len(&self) -> u64 {
        match &self.part {
            Part::Box(bx) => bx.len(),
            Part::Positions(selection) => selection.len(),
        }
    }

    /// Whether it asks for none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Source {
    /// Reads many boxes and selections as one: each stored chunk and each byte of plain data that they want is read at most
    /// once, and chunks are decoded once, on all threads of the session. Values are those of reading each by itself
    /// ([`Source::read_box`]), in C order. What it may take together, results included, is [`crate::OpenOptions::memory`].
    ///
    /// An error of a request that cannot be met is in its place; the others have their values.
    ///
    /// ```no_run
    /// # fn main() -> sieva::Result<()> {
    /// let source = sieva::Source::open("pop.nc", &sieva::OpenOptions::default())?;
    /// let temp = source.resolve("TEMP")?;
    /// let bx = |first| sieva::Bx::new(vec![first, 0, 0, 0], vec![2, 20, 300, 400]);
    /// // Steps 1 and 2 are read once, and given to both.
    /// let requests = [sieva::Request::of_box(temp, bx(0)), sieva::Request::of_box(temp, bx(1))];
    /// for column in source.read_many(&requests)? {
    ///     println!("{} values", column?.len());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `memory-limit` where the results do not fit together.
    pub fn read_many(&self, requests: &[Request]) -> Result<Vec<Result<Column>>> {
        self.read_many_with(requests, self.memory())
    }

    /// The same, with another limit.
    ///
    /// # Errors
    /// As [`Source::read_many`].
    pub fn read_many_with(&self, requests: &[Request], memory: u64) -> Result<Vec<Result<Column>>> {
        self.check_file()?;
        let needs: Vec<Result<u64>> = requests.iter().map(|request| self.check_request(request)).collect();
        let need = needs.iter().flatten().fold(0_u64, |sum, n| sum.saturating_add(*n));
        if need > memory.max(check::LEAST) {
            let message = format!(
                "the results of {} requests take {need} bytes with what they are made of, the limit is {memory}",
                requests.len()
            );
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .hint("ask for fewer at once, or open the source with more: memory= in Python"));
        }
        // What others who read at the same time decode is decoded for these, too.
        let kept = self
            .box_window(None)
            .chunks_within(memory.saturating_sub(need), || self.session().chunks(None, BOX_MEMORY));
        Ok(self.read_batch(requests, needs, (memory, need), kept.as_ref()))
    }

    /// Reads requests that were checked, of which some may be in error. `kept` is the cache of decoded chunks for arrays of
    /// which the session keeps none.
    fn read_batch(
        &self,
        requests: &[Request],
        checked: Vec<Result<u64>>,
        (memory, need): (u64, u64),
        kept: Option<&Arc<ChunkCache>>,
    ) -> Vec<Result<Column>> {
        let crew = Threads(self);
        let readers = self.readers_of(requests, &checked, memory, kept);
        let mut results: Vec<Option<Result<Column>>> =
            checked.into_iter().map(|checked| checked.err().map(Err)).collect();
        let (mut asks, mut numbers) = (Vec::new(), Vec::new());
        for (i, request) in requests.iter().enumerate() {
            if results[i].is_some() {
                continue;
            }
            match readers.of(request.array) {
                Some(Ok(reader)) => match self.wanted(request, reader) {
                    Some(wanted) => {
                        asks.push(Ask { reader, wanted, cancel: &request.cancel });
                        numbers.push(i);
                    }
                    None => results[i] = Some(self.read_by_itself(request, reader, memory)),
                },
                Some(Err(e)) => results[i] = Some(Err(e.clone())),
                None => {}
            }
        }
        let others = if kept.is_some() { memory.min(BOX_MEMORY) / 4 } else { 0 };
        let spare = memory.saturating_sub(need).saturating_sub(others);
        let read = read_together(&asks, spare.max(check::LEAST), &crew);
        let of_number = |i: usize, stored| {
            let request = &requests[numbers[i]];
            self.column_of(request, asks[i].reader, readers.domain(request.array, request.raw)?, stored)
        };
        for (column, number) in columns(read, &crew, &of_number).into_iter().zip(&numbers) {
            results[*number] = Some(column);
        }
        results.into_iter().map(|result| result.unwrap_or_else(|| Err(ended()))).collect()
    }

    /// What is asked of the layout; `None` of what has to be read by itself.
    fn wanted<'a>(&self, request: &'a Request, reader: &BlockReader) -> Option<Wanted<'a>> {
        let (layout, is_text) = (reader.layout(), self.schema().arrays[request.array].dtype == DType::Str);
        match &request.part {
            Part::Box(bx) if is_text => {
                let is_many = matches!(layout.placement, Placement::Parts(_));
                let is_stored = layout.char_dim || layout.element_size > 0;
                (is_stored && !is_many)
                    .then(|| reader.text_box(bx))
                    .flatten()
                    .map(|bx| Wanted::Box(Cow::Owned(bx)))
            }
            Part::Box(bx) => Some(Wanted::Box(Cow::Borrowed(bx))),
            Part::Positions(_) if is_text || !takes_positions(layout) => None,
            Part::Positions(selection) => Some(Wanted::Positions(Arc::clone(selection))),
        }
    }

    /// Stored elements as values.
    fn column_of(
        &self,
        request: &Request,
        reader: &BlockReader,
        domain: Option<&StoredDomain>,
        stored: Buffer,
    ) -> Result<Column> {
        let Some(domain) = domain else {
            let texts = reader.texts_of(stored.bytes());
            return Ok(Column { data: Data::Str(texts), valid: None });
        };
        let is_wanted = || !request.cancel.load(Relaxed);
        let column = Column::decode_while(&stored, request.len() as usize, domain, &is_wanted);
        column.ok_or_else(|| Error::new(ErrorKind::Cancelled, "the reading was interrupted"))
    }
}

/// Makes a value of each of what was read, on all threads.
fn columns<T: Send>(
    read: Vec<Result<Buffer>>,
    crew: &Threads<'_>,
    make: &(dyn Fn(usize, Buffer) -> Result<T> + Sync),
) -> Vec<Result<T>> {
    let (n, threads) = (read.len(), crew.threads());
    let at_once = (n / (16 * threads.max(1))).clamp(1, RESULTS_AT_ONCE);
    let mut read = read.into_iter();
    let block =
        |_| -> (Vec<Result<Buffer>>, Vec<Result<T>>) { (read.by_ref().take(at_once).collect(), Vec::new()) };
    let blocks: Vec<_> = (0..n.div_ceil(at_once)).map(block).map(Mutex::new).collect();
    let lock = |block: usize| blocks[block].lock().unwrap_or_else(PoisonError::into_inner);
    crew.each(blocks.len(), threads, &|block| {
        let read = std::mem::take(&mut lock(block).0);
        let each = read.into_iter().zip(block * at_once..);
        let made = each.map(|(read, i)| read.and_then(|stored| make(i, stored))).collect();
        lock(block).1 = made;
    });
    let mut out = Vec::with_capacity(n);
    for (block, end) in blocks.into_iter().zip((1..).map(|i| (i * at_once).min(n))) {
        out.extend(block.into_inner().unwrap_or_else(PoisonError::into_inner).1);
        // Of a thread that ended before its time.
        out.resize_with(end, || Err(ended()));
    }
    out
}

/// The error of those whose work ended before its time.
fn ended() -> Error {
    Error::new(ErrorKind::Internal, "a worker thread ended unexpectedly")
}
