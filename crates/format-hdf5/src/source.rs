//! The source: an open file behind the trait that all formats share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_format::layout::{Layout, Placement};
use sieva_format::schema::Schema;
use sieva_format::{ArraySource, LibraryReader};
use sieva_store::guard::{Gate, Purpose};
use sieva_store::{FileStore, RangedRead};
use sieva_types::{Bx, Error, ErrorKind, Result, Texts};

use crate::bounds::Bounds;
use crate::bytes::FileBytes;
use crate::dataset::Dataset;
use crate::driver::Permit;
use crate::ffi;
use crate::file::{File, signature_offset};
use crate::kept::Kept;
use crate::layout::Physical;
use crate::links::Policy;
use crate::schema::{Array, Listing};
use crate::scout::Scout;
use crate::stored::{StoredFile, StoredItems};
use crate::walk::{self, Tree};
use crate::{layout, library, schema};

/// Bytes of the stack on which a file is walked, of which those that are used are taken.
const STACK: usize = 64 << 20;

/// How a file is opened.
#[derive(Clone, Debug, Default)]
pub struct Hdf5Options {
    /// Directories that external links, virtual data and raw data kept elsewhere may lead into. A target counts
    /// by its canonical path; with none given, nothing outside of the file is ever opened.
    pub external_roots: Vec<PathBuf>,
    /// Most bytes of a decoded chunk of data that are read apart from other arrays' (texts of variable length, numbers
    /// that no machine computes with, data behind external links); 1 GiB where none are given.
    pub chunk_limit: Option<u64>,
    /// Dimension names for arrays, by path. A dimension named so is the same one for all arrays, whatever their
    /// group.
    pub dims: Vec<(String, Vec<String>)>,
    /// Who is asked before this file, and any that it leads to, is opened.
    pub gate: Gate,
    /// Most bytes that the list of what is in the file may take; 1 GiB where none are given.
    pub memory: Option<u64>,
    /// Ends the opening when it is set.
    pub cancel: Arc<AtomicBool>,
}

/// An HDF5 or netCDF-4 file.
pub struct Hdf5Source {
    store: Arc<dyn RangedRead>,
    /// Whether what libhdf5 reads goes through `store` as well, and is counted there.
    is_counted: bool,
    /// Where its links may lead.
    policy: Policy,
    tree: Tree,
    schema: Schema,
    datasets: Vec<Dataset>,
    arrays: Vec<Array>,
    physical: Vec<Kept<Physical>>,
    layouts: Vec<Kept<Layout>>,
    /// Each file's data, apart from libhdf5, and what is made of them.
    files: Vec<StoredFile>,
    items: Vec<Kept<Option<StoredItems>>>,
}

/// Most bytes of a list where options say nothing.
const LIST_LIMIT: u64 = 1 << 30;
/// Most bytes of a decoded chunk where options say nothing.
const CHUNK_LIMIT: u64 = 1 << 30;

impl Hdf5Source {
    /// Opens the file at `path` and lists what is in it. The counters of its store count data, not metadata.
    ///
    /// # Errors
    /// `file-not-found`, `permission-denied`; `unknown-format` for what is not HDF5; `corrupt-file` where the
    /// file's own structure is damaged; `memory-limit`, `cancelled`; `invalid-value`, `unknown-array` or `dimension-mismatch` for dimension
    /// names that do not fit.
    pub fn open(path: &Path, options: &Hdf5Options) -> Result<Self> {
        let open = || FileStore::open_within(path, &options.gate, Purpose::Source);
        let store: Arc<dyn RangedRead> = Arc::new(open()?);
        let metadata: Arc<dyn RangedRead> = Arc::new(open()?);
        if (store.len(), store.version()) != (metadata.len(), metadata.version()) {
            let what = format!("'{}' was changed while it was opened", path.display());
            return Err(Error::new(ErrorKind::StaleSource, what).hint("open it again"));
        }
        Self::of(store, metadata, options)
    }

    /// Opens the file that `store` holds, wherever that is. All reads go through it, those of metadata too.
    ///
    /// Of an object behind a network ([`RangedRead::is_remote`]) the metadata are asked for ahead, many pieces at
    /// once, and the stored bytes of chunked arrays are not added up. An object that is no local file
    /// ([`RangedRead::local_path`]) leads to no other: its external links, raw data kept elsewhere and virtual data
    /// of other files are `link-refused`, whatever the options allow.
    ///
    /// # Errors
    /// As [`Hdf5Source::open`]; an error of the store comes out as it is (`io-error`, `stale-source`,
    /// `permission-denied`), also from the middle of opening.
    pub fn open_store(store: Arc<dyn RangedRead>, options: &Hdf5Options) -> Result<Self> {
        Self::of(store.clone(), store, options)
    }

    fn of(store: Arc<dyn RangedRead>, metadata: Arc<dyn RangedRead>, options: &Hdf5Options) -> Result<Self> {
        let is_counted = Arc::ptr_eq(&store, &metadata);
        let place = |e: Error| e.at(format!("'{}'", store.name()));
        ffi::start().map_err(place)?;
        let bytes = FileBytes::new(metadata);
        let Some(start) = start_of(&bytes).map_err(place)? else {
            return Err(Error::new(ErrorKind::UnknownFormat, "no HDF5 signature").at(store.name()));
        };
        let policy = Policy::new(&options.external_roots, &options.gate).of(&bytes);
        let Listing { tree, schema, datasets, arrays } =
            deeply(|| understand(bytes, start, options, &policy)).map_err(|e| {
                let is_stale = e.kind() == ErrorKind::CorruptFile;
                // Bytes of two versions of a file look damaged.
                place(is_stale.then(|| store.check_unchanged().err()).flatten().unwrap_or(e))
            })?;
        if !schema.warnings.is_empty() {
            store.check_unchanged()?;
        }
        let chunk_limit = options.chunk_limit.unwrap_or(CHUNK_LIMIT);
        let store_of = |(number, file): (usize, &File)| match number {
            0 => Arc::clone(&store),
            _ => file.bytes().shared_store(),
        };
        let files = tree.files.iter().enumerate().map(store_of);
        Ok(Self {
            files: files.map(|store| StoredFile::new(store, chunk_limit)).collect(),
            items: arrays.iter().map(|_| Kept::default()).collect(),
            physical: datasets.iter().map(|_| Kept::default()).collect(),
            layouts: arrays.iter().map(|_| Kept::default()).collect(),
            store,
            is_counted,
            policy,
            tree,
            schema,
            datasets,
            arrays,
        })
    }

    fn array(&self, array: usize) -> Result<&Array> {
        let none = || Error::new(ErrorKind::Internal, format!("no array number {array}"));
        self.arrays.get(array).ok_or_else(none)
    }

    fn physical(&self, dataset: usize) -> Result<Arc<Physical>> {
        self.physical[dataset].get_or_find(|| {
            let d = &self.datasets[dataset];
            if !self.store.is_remote() {
                self.store.check_unchanged()?;
            }
            self.tree.files[d.found.file].fetch_indexes(&[d.found.token])?;
            self.through_library(d, || layout::physical(&self.tree, d))
        })
    }

    /// Runs calls of libhdf5 on a dataset. It may take bytes that its storage failed to give for absent ones.
    fn through_library<T>(&self, d: &Dataset, f: impl FnOnce() -> Result<T>) -> Result<T> {
        let _guard = ffi::lock();
        let _permit = Permit::new(&self.policy);
        let bytes = self.tree.files[d.found.file].bytes();
        bytes.take_failure();
        let found = f();
        match (bytes.take_failure(), found) {
            (Some(failure), _) => Err(failure),
            (None, Err(e)) if e.kind() == ErrorKind::CorruptFile => {
                bytes.store().check_unchanged()?;
                Err(e)
            }
            (None, found) => found,
        }
    }

    /// The items that an array is made of, where these and not libhdf5 are asked.
    fn items(&self, array: usize) -> Result<Arc<Option<StoredItems>>> {
        self.layout(array)?;
        let entry = self.array(array)?;
        let find = || {
            let d = &self.datasets[entry.dataset];
            let physical = self.physical(entry.dataset)?;
            if matches!(physical.placement, Placement::Library(_)) {
                return Ok(None);
            }
            let layout = layout::of_items(d, &entry.leaf, &physical, entry.char_dim)?;
            let (file, bytes) = (&self.files[d.found.file], self.tree.files[d.found.file].bytes());
            StoredItems::new(file, bytes, &self.schema.arrays[array], &entry.leaf, layout).map(Some)
        };
        self.items[array].get_or_find(|| find().map_err(|e| self.place(array, e)))
    }

    /// What `read` finds of stored items, with errors of it at their place.
    fn of_items<T>(&self, array: usize, read: impl FnOnce() -> Result<T>) -> Result<T> {
        let number = self.datasets[self.array(array)?.dataset].found.file;
        let file = &self.files[number];
        // Whoever asks looks after the file itself, but after none that its links lead to.
        let unchanged = if number == 0 { Ok(()) } else { file.check_unchanged() };
        unchanged.and_then(|()| read()).map_err(|e| {
            // Bytes of two versions of a file look damaged.
            let is_damage = e.kind() == ErrorKind::CorruptFile;
            let e = is_damage.then(|| file.check_unchanged().err()).flatten().unwrap_or(e);
            if e.message().contains(&self.schema.arrays[array].path) { e } else { self.place(array, e) }
        })
    }

    fn count_library_read(&self, bytes: usize) {
        self.store.counters().add_library_read(if self.is_counted { 0 } else { bytes as u64 });
    }

    /// Names file and array in an error.
    fn place(&self, array: usize, e: Error) -> Error {
        e.at(&self.schema.arrays[array].path).at(format!("'{}'", self.store.name()))
    }
}

impl ArraySource for Hdf5Source {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        let entry = self.array(array)?;
        let find = || {
            let physical = self.physical(entry.dataset)?;
            // Said before anything is read: refused data may seem to have no extent, and then none would be.
            if let Some(e) = &physical.unreadable {
                return Err(e.clone());
            }
            layout::of_leaf(&self.datasets[entry.dataset], &entry.leaf, &physical, entry.char_dim)
        };
        self.layouts[array].get_or_find(|| find().map_err(|e| self.place(array, e)))
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }

    fn will_need_layouts(&self, arrays: &[usize]) {
        let datasets = arrays.iter().filter_map(|&a| self.arrays.get(a)).map(|array| array.dataset);
        let mut unknown: Vec<usize> = datasets.filter(|&d| !self.physical[d].is_found()).collect();
        unknown.sort_unstable();
        unknown.dedup();
        // One alone is fetched when it is asked for.
        if !self.store.is_remote() || unknown.len() < 2 {
            return;
        }
        let mut of_file: BTreeMap<usize, Vec<_>> = BTreeMap::new();
        for found in unknown.iter().map(|&d| &self.datasets[d].found) {
            of_file.entry(found.file).or_default().push(found.token);
        }
        for (file, tokens) in of_file {
            // What cannot be fetched is told when it is asked for.
            let _ = self.tree.files[file].fetch_indexes(&tokens);
        }
    }

    fn library(&self) -> Option<&dyn LibraryReader> {
        Some(self)
    }
}

impl LibraryReader for Hdf5Source {
    fn read_library(&self, array: usize, bx: &Bx, out: &mut [u8]) -> Result<()> {
        if let Some(items) = &*self.items(array)? {
            return self.of_items(array, || items.read(bx, out));
        }
        let entry = self.array(array)?;
        self.count_library_read(out.len());
        let d = &self.datasets[entry.dataset];
        self.through_library(d, || library::read(&self.tree, d, &entry.leaf, bx, out))
            .map_err(|e| self.place(array, e))
    }

    fn is_unwritten(&self, array: usize, bx: &Bx) -> bool {
        // What cannot be found is told when it is read.
        self.items(array).is_ok_and(|items| (*items).as_ref().is_some_and(|items| items.is_unwritten(bx)))
    }

    fn read_library_strings(&self, array: usize, bx: &Bx) -> Result<Texts> {
        if let Some(items) = &*self.items(array)? {
            return self.of_items(array, || items.read_texts(bx));
        }
        let entry = self.array(array)?;
        self.count_library_read(0);
        let d = &self.datasets[entry.dataset];
        self.through_library(d, || library::read_texts(&self.tree, d, &entry.leaf, bx))
            .map_err(|e| self.place(array, e))
    }
}

/// Where the file begins in its bytes; `None` where it is not HDF5.
fn start_of(bytes: &FileBytes) -> Result<Option<u64>> {
    Scout::announce_head(bytes);
    signature_offset(bytes.store())
}

/// Runs `work` on a stack of its own: libhdf5 follows nested types by recursion as deep as the file has them, which is
/// more than the 2 MiB of an ordinary thread hold.
fn deeply<R: Send>(work: impl FnOnce() -> Result<R> + Send) -> Result<R> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|e| Error::io("cannot start a thread", &e))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Walks the file and lists what is in it.
fn understand(bytes: Arc<FileBytes>, start: u64, options: &Hdf5Options, policy: &Policy) -> Result<Listing> {
    let _permit = Permit::new(policy);
    let bounds = Bounds::new(options.memory.unwrap_or(LIST_LIMIT), &options.cancel);
    // Before libhdf5 and its lock: what it will ask for is fetched in few rounds.
    let scout = Scout::fetch_metadata(&bytes, start)?;
    let tree = walk::walk(File::of(bytes)?.with(scout), policy, &bounds)?;
    let listing = schema::list(tree, policy, options, &bounds)?;
    // Neither a group nor an attribute may be missing only because its bytes could not be had.
    let failure = listing.tree.files.iter().find_map(|file| file.bytes().take_failure());
    failure.map_or(Ok(listing), Err)
}
