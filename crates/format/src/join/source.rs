//! The source of many files: opened for their outlines at first, and again when their data are wanted.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use sieva_store::{Counters, RangedRead};
use sieva_types::{Error, ErrorKind, Result};

use super::axis::Files;
use super::outline::{Interned, Outline};
use super::plan::{Pieces, plan};
use crate::layout::Layout;
use crate::read::Part;
use crate::schema::Schema;
use crate::{ArraySource, PartOpener};

/// Files that are held open.
const OPEN: usize = 128;

/// The files that were used last, the latest at the end.
type OpenFiles = Mutex<VecDeque<(usize, Arc<dyn ArraySource>)>>;

/// Opens file number `n` of the list.
pub type Opener = Arc<dyn Fn(usize) -> Result<Arc<dyn ArraySource>> + Send + Sync>;

/// How files are put together.
#[derive(Clone, Debug, Default)]
pub struct JoinOptions {
    /// The dimension along which files of the same arrays follow one another: one of theirs, or a new one. `None`: the
    /// one that they differ in.
    pub dim: Option<String>,
    /// Whether values outside of a valid range are missing, where files are packed differently.
    pub valid_range: bool,
    /// Threads that open files.
    pub threads: usize,
}

/// Many files as one source.
pub struct JoinedSource {
    names: Vec<String>,
    outlines: Vec<Outline>,
    opener: Opener,
    schema: Schema,
    layouts: Vec<Arc<Layout>>,
    pieces: Vec<Option<Pieces>>,
    open: Arc<OpenFiles>,
    store: Arc<dyn RangedRead>,
    counters: Arc<Counters>,
}

impl JoinedSource {
    /// Opens all files for their outlines and puts them together.
    ///
    /// # Errors
    /// Those of opening a file; `dimension-mismatch` naming files, arrays and what differs; `invalid-value` for an
    /// empty list.
    pub fn open(names: Vec<String>, opener: Opener, options: &JoinOptions) -> Result<Self> {
        let none = vec![None; names.len()];
        Self::of_outlines(names, opener, options, none)
    }

    /// The source of files of which some are in this one and have not changed: `same` says for each of `names` which file of this
    /// one it is. Those are not opened but for the first of each kind, which all that are alike are described by.
    ///
    /// # Errors
    /// As [`JoinedSource::open`].
    pub fn renewed(
        &self,
        names: Vec<String>,
        opener: Opener,
        options: &JoinOptions,
        same: &[Option<usize>],
    ) -> Result<Self> {
        let mut seen = HashSet::new();
        let known = same.iter().map(|old| {
            let outline = &self.outlines[(*old)?];
            // What is told of all that are alike is said of the first: of this one, if it was not.
            (!seen.insert(Arc::as_ptr(&outline.schema))).then(|| outline.clone())
        });
        let known = known.collect();
        Self::of_outlines(names, opener, options, known)
    }

    fn of_outlines(
        names: Vec<String>,
        opener: Opener,
        options: &JoinOptions,
        known: Vec<Option<Outline>>,
    ) -> Result<Self> {
        if names.is_empty() {
            return Err(Error::new(ErrorKind::InvalidValue, "the list of files is empty"));
        }
        let outlines = outlines(known, &opener, options.threads.max(1))?;
        let files = Files { names: &names, outlines: &outlines };
        let whole = plan(&files, options.dim.as_deref(), options.valid_range)?;
        let counters = Arc::new(Counters::default());
        let version = outlines.iter().map(|o| o.version.as_str()).collect::<Vec<_>>().join(",");
        let open = Arc::<OpenFiles>::default();
        let store = Arc::new(Together {
            open: Arc::clone(&open),
            len: outlines.iter().map(|o| o.size).sum(),
            is_remote: outlines.iter().any(|o| o.is_remote),
            version,
            name: format!("{} and {} other files", names[0], names.len() - 1),
            counters: Arc::clone(&counters),
        });
        Ok(Self {
            names,
            outlines,
            opener,
            schema: whole.schema,
            layouts: whole.layouts,
            pieces: whole.pieces,
            open,
            store,
            counters,
        })
    }

    /// The files.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Length and version of a file, as they were at opening.
    pub fn state_of(&self, file: usize) -> (u64, &str) {
        let outline = &self.outlines[file];
        (outline.size, &outline.version)
    }

    /// Of each piece of an array: its file's number, and the array's number there. Empty where values are held.
    pub fn pieces(&self, array: usize) -> &[(u32, u32)] {
        self.pieces[array].as_ref().map_or(&[], |p| &p.of)
    }

    /// Whether an array's pieces are taken as they are stored.
    pub fn is_plain(&self, array: usize) -> bool {
        self.pieces[array].as_ref().is_some_and(|p| p.unpack.is_empty())
    }

    /// The shape of array `array` of file `file`, as it was at opening.
    pub fn shape_in(&self, file: usize, array: usize) -> Vec<u64> {
        self.outlines[file].shape(array)
    }

    /// File `file`, opened if it is not.
    fn file(&self, file: usize) -> Result<Arc<dyn ArraySource>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = open.iter().position(|(n, _)| *n == file)
            && let Some(found) = open.remove(at)
        {
            let source = Arc::clone(&found.1);
            open.push_back(found);
            return Ok(source);
        }
        drop(open);
        let source = (self.opener)(file)?;
        self.check(file, source.as_ref())?;
        self.counters.include(source.store().counters());
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= OPEN {
            open.pop_front();
        }
        open.push_back((file, Arc::clone(&source)));
        Ok(source)
    }

    /// A file is still what it was when its pieces were put together.
    fn check(&self, file: usize, source: &dyn ArraySource) -> Result<()> {
        let outline = &self.outlines[file];
        let store = source.store();
        store.check_unchanged()?;
        if (store.len(), store.version()) == (outline.size, outline.version.clone()) {
            return Ok(());
        }
        let message = format!("'{}' was changed since it was opened", self.names[file]);
        Err(Error::new(ErrorKind::StaleSource, message).hint("open it again"))
    }
}

impl ArraySource for JoinedSource {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        Ok(Arc::clone(&self.layouts[array]))
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }

    fn parts(&self) -> Option<&dyn PartOpener> {
        Some(self)
    }
}

impl PartOpener for JoinedSource {
    fn part(&self, array: usize, piece: usize) -> Result<Part> {
        let pieces = self.pieces[array].as_ref();
        let Some((pieces, &(file, own))) = pieces.and_then(|p| p.of.get(piece).map(|of| (p, of))) else {
            let path = &self.schema.arrays[array].path;
            return Err(Error::new(ErrorKind::Internal, format!("'{path}' has no piece {piece}")));
        };
        let source = self.file(file as usize)?;
        let unpack = pieces.unpack.get(piece).cloned().flatten();
        Ok(Part { source, array: own as usize, unpack, file: file + 1 })
    }
}

/// The outlines of files, of which some are known.
fn outlines(known: Vec<Option<Outline>>, opener: &Opener, threads: usize) -> Result<Vec<Outline>> {
    let (n, interned, next) = (known.len(), Interned::default(), AtomicUsize::new(0));
    let work = || {
        let mut done = Vec::new();
        loop {
            let file = next.fetch_add(1, Relaxed);
            if file >= n {
                return Ok(done);
            }
            let outline = match &known[file] {
                Some(outline) => Ok(interned.adopted(file, outline)),
                None => opener(file).and_then(|source| interned.outline(file, &source)),
            };
            if outline.is_err() {
                // The others need not go on.
                next.store(n, Relaxed);
            }
            done.push((file, outline?));
        }
    };
    let mut all: Vec<(usize, Outline)> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(n)).map(|_| scope.spawn(work)).collect();
        let mut done: Vec<Result<Vec<_>>> = vec![work()];
        let panicked = || Error::new(ErrorKind::Internal, "a thread that opened files ended unexpectedly");
        done.extend(others.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(panicked()))));
        done.into_iter().collect::<Result<Vec<_>>>().map(|v| v.into_iter().flatten().collect())
    })?;
    all.sort_unstable_by_key(|(file, _)| *file);
    let mut outlines: Vec<Outline> = all.into_iter().map(|(_, outline)| outline).collect();
    interned.settle(&mut outlines);
    Ok(outlines)
}

/// Stands for the bytes of all files: their number, state and traffic.
struct Together {
    open: Arc<OpenFiles>,
    len: u64,
    is_remote: bool,
    version: String,
    name: String,
    counters: Arc<Counters>,
}

impl RangedRead for Together {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, _out: &mut [u8]) -> Result<()> {
        Err(Error::new(ErrorKind::Internal, format!("offset {offset} of many files together was read")))
    }

    /// Of the files that are open; others are looked at when they are opened again.
    fn check_unchanged(&self) -> Result<()> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().try_for_each(|(_, source)| source.store().check_unchanged())
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}
