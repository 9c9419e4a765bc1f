//! Opening a source: which format it is, and what names mean in it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use sieva_catalog::Catalog;
use sieva_format::ArraySource;
use sieva_format::physical::SubCorrelation;
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_format::schema::Schema;
use sieva_isolate::WorkerLimits;
use sieva_query::ast::Name;
use sieva_query::bind::{Bound, resolve, stored_domain};
use sieva_query::exec::{Access, Column, Data, ExecOptions, Execution};
use sieva_query::parse;
use sieva_store::guard::Gate;
use sieva_store::{RangedRead, RemoteOptions, Striping};
use sieva_types::{Bx, DType, Error, ErrorKind, Result};

use crate::augment::{Augmented, Learn};
use crate::catalog::known;
use crate::formats;
use crate::identity::Identity;
use crate::manifest_cache;
use crate::multi_file::Many;
use crate::query::{Query, QueryOptions};
use crate::read_many::{BoxWindow, check_box, check_room, need};
use crate::session::Session;
use crate::shared_manifest::SharedManifest;

/// A quarter of this may be taken by decoded chunks while a box is read.
pub(crate) const BOX_MEMORY: u64 = 256 << 20;

/// How a source is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Names of an array's dimensions where the file does not give them: path and names, outermost first.
    /// Arrays of different groups that are given one name line up along it.
    pub dims: Vec<(String, Vec<String>)>,
    /// Directories that external links, external raw data and symbolic links of a Zarr directory may lead to. None are
    /// followed otherwise.
    pub external_roots: Vec<PathBuf>,
    /// Whether values outside of `valid_range`, `valid_min` and `valid_max` are missing.
    pub valid_range: bool,
    /// A directory for stores of augmentations; `None`: what SIEVA_STORE says, else beside the source.
    pub store: Option<PathBuf>,
    /// Whether scans leave statistics behind.
    pub learn: Learn,
    /// Of many files: the dimension along which those with the same arrays follow one another, one of theirs or a new
    /// one; `None`: the one that they differ in.
    pub join: Option<String>,
    /// How remote objects are fetched, and what of them is kept.
    pub remote: RemoteOptions,
    /// Whether what was found of remote objects is kept for the next opening.
    pub remember: bool,
    /// Whether augmentations are looked for beside remote objects, too; of the files of a source of many, and of the objects
    /// of a collection, they are not.
    pub beside: bool,
    /// The command of a worker process that parses local files in place of this one; empty: this one does.
    pub isolated: Vec<OsString>,
    /// What such a worker may take.
    pub limits: WorkerLimits,
    /// What is known of local files: those that have not changed since they were registered are not parsed.
    pub catalog: Option<Arc<Catalog>>,
    /// What is told of augmentations that are built, dropped or found stale; `None`: `catalog`, if it may be written, else
    /// that of SIEVA_CATALOG, else the user's own where the source is known to it.
    pub told: Option<Arc<Catalog>>,
    /// What opening the source learnt elsewhere: it is not parsed here, and nothing of it is read before values are wanted.
    /// Of one file or object.
    pub manifest: Option<Arc<SharedManifest>>,
    /// Where the bytes of the file lie; `None`: what its storage tells, if anything. Of several files that of each.
    pub striping: Option<Striping>,
    /// Bytes that reading a box of an array may take, its values included, and metadata of a Zarr hierarchy, a reference set and
    /// manifests of a catalog; `None`: 1 GiB, or half of the system's memory where that is more. In a session, boxes have at
    /// most what its queries have.
    /// The list of what is in an HDF5 file may take as much.
    pub memory: Option<u64>,
    /// Ends the opening of an HDF5 file when it is set (`cancelled`).
    pub cancel: Arc<AtomicBool>,
    /// Who asks, where that is somebody else than the owner of the process.
    pub identity: Option<Identity>,
    /// What its queries share memory and what was found before with.
    pub session: Session,
    /// Who is asked before anything is opened that a query, a caller or a file names: this source, those of subqueries,
    /// and what they lead to. What the process was set up with (its store, its caches, its catalog) is not asked for.
    pub gate: Gate,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            dims: Vec::new(),
            external_roots: Vec::new(),
            valid_range: false,
            store: None,
            learn: Learn::default(),
            join: None,
            remote: RemoteOptions::default(),
            remember: true,
            beside: true,
            isolated: Vec::new(),
            limits: WorkerLimits::default(),
            catalog: None,
            told: None,
            manifest: None,
            striping: None,
            memory: None,
            cancel: Arc::default(),
            identity: None,
            session: Session::default(),
            gate: Gate::default(),
        }
    }
}

impl OpenOptions {
    /// Refuses names that can be of nothing, before a system or a library does in words of its own.
    fn check(&self, path: &Path) -> Result<()> {
        sieva_store::check_name(path, "the name of a source")?;
        self.store.as_deref().map_or(Ok(()), |dir| sieva_store::check_name(dir, "the directory for stores"))
    }

    /// The directory that was given for stores.
    pub(crate) fn store_dir(&self) -> Option<PathBuf> {
        let set = || std::env::var_os("SIEVA_STORE").filter(|v| !v.is_empty()).map(PathBuf::from);
        self.store.clone().or_else(set)
    }

    /// The directory for the stores of the source at `path`: those of remote objects lie in the cache directory if
    /// nothing else was said.
    pub(crate) fn store_dir_of(&self, path: &Path) -> Option<PathBuf> {
        let is_remote = || path.to_str().is_some_and(sieva_store::is_url);
        self.store_dir()
            .or_else(|| manifest_cache::cache_dir().filter(|_| is_remote()).map(|d| d.join("stores")))
    }
}

/// An open source. Cheap to clone.
#[derive(Clone)]
pub struct Source {
    inner: Arc<dyn ArraySource>,
    path: Arc<PathBuf>,
    options: Arc<OpenOptions>,
    augmented: Arc<Augmented>,
    many: Option<Many>,
    /// Paths and globs by which it is opened again; none of what was not opened by its name.
    asked: Option<Arc<[String]>>,
    striping: Arc<OnceLock<Striping>>,
    sets: Arc<Mutex<HashMap<usize, Option<Arc<SubCorrelation>>>>>,
    /// Its own, and that which it has in common with others of its session, once it is known.
    windows: (Arc<BoxWindow>, Arc<OnceLock<Arc<BoxWindow>>>),
    opened_in: f64,
}

impl Source {
    /// Opens the file at `path`; its format is told by its first bytes, not by its name.
    ///
    /// # Errors
    /// `file-not-found`, `permission-denied`, `unknown-format` naming what can be read, `corrupt-file`.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let started = Instant::now();
        let path = path.as_ref();
        options.check(path)?;
        if let Some(known) = &options.manifest {
            // Not of what is opened after it, of subqueries or in the place of it.
            let options = OpenOptions { manifest: None, ..options.clone() };
            let inner = known.open(path, &options)?;
            let mut source = Self::from_parts(inner, path.to_path_buf(), &options, None, started);
            source.augmented = Arc::new(Augmented::of_content(known.content()));
            return Ok(source);
        }
        let inner = match known::open_one(path, options) {
            Some(known) => known,
            None => formats::open(path, options)?,
        };
        let source = Self::from_parts(inner, path.to_path_buf(), options, None, started);
        Ok(match path.to_str() {
            Some(name) => source.asked_as([name.to_owned()].into()),
            None => source,
        })
    }

    /// The same, which is opened again by these paths and globs.
    pub(crate) fn asked_as(self, asked: Arc<[String]>) -> Self {
        Self { asked: Some(asked), ..self }
    }

    /// Paths and globs by which it is opened again, where it was opened by such.
    pub(crate) fn asked(&self) -> Option<&Arc<[String]>> {
        self.asked.as_ref()
    }

    /// A source behind which this reader is.
    pub(crate) fn from_parts(
        inner: Arc<dyn ArraySource>,
        path: PathBuf,
        options: &OpenOptions,
        many: Option<Many>,
        started: Instant,
    ) -> Self {
        let (path, options, augmented) = (Arc::new(path), Arc::new(options.clone()), Arc::default());
        let (striping, sets, windows) = (Arc::default(), Arc::default(), Default::default());
        let opened_in = started.elapsed().as_secs_f64();
        Self { inner, path, options, augmented, many, asked: None, striping, sets, windows, opened_in }
    }

    /// The files that it is made of, where there are many.
    pub(crate) fn many(&self) -> Option<&Many> {
        self.many.as_ref()
    }

    /// The path as it was given. An address may hold a password or a signature: it is shown by [`Source::name`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How it is shown: its path, or its address without user, password and query.
    pub fn name(&self) -> String {
        sieva_store::redacted(&self.path.to_string_lossy())
    }

    /// What the source says of itself.
    pub fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    /// How it was opened.
    pub(crate) fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// Where those meet who read boxes of it at the same time.
    pub(crate) fn windows(&self) -> (&Arc<BoxWindow>, &OnceLock<Arc<BoxWindow>>) {
        (&self.windows.0, &self.windows.1)
    }

    /// How it was opened, as far as that changes what names and values mean; the same text for the same meaning.
    pub fn meaning(&self) -> String {
        let OpenOptions { dims, valid_range, join, .. } = &*self.options;
        format!("dims {dims:?}, valid range {valid_range}, join {join:?}")
    }

    /// The session that its queries belong to.
    pub fn session(&self) -> &Session {
        &self.options.session
    }

    /// What is known of it besides its data.
    pub(crate) fn augmented(&self) -> &Arc<Augmented> {
        &self.augmented
    }

    /// A bound query, ready to run with the augmentations that there are.
    pub(crate) fn execution(&self, bound: Bound, options: ExecOptions) -> Result<Execution> {
        // Before what is known of them is looked up, which asks for one layout after another.
        let arrays: Vec<usize> = bound.arrays.iter().map(|a| a.index).collect();
        self.while_loading(|| self.inner.will_need_layouts(&arrays));
        let run = |bound: Bound| {
            let indexes = self.indexes(&bound);
            Execution::new(Arc::clone(&self.inner), bound, indexes, options.clone())
        };
        if matches!(options.access, Access::Auto | Access::Scan) {
            return run(bound);
        }
        if let Ok(execution) = run(bound.clone())
            && execution.check_access().is_ok()
        {
            return Ok(execution);
        }
        // Somebody else may have built it meanwhile.
        self.augmented.forget();
        let execution = run(bound)?;
        execution.check_access()?;
        Ok(execution)
    }

    /// The reader behind it.
    pub fn reader(&self) -> &Arc<dyn ArraySource> {
        &self.inner
    }

    /// Where the bytes of its file lie: what it was opened with, else what its manifest or the storage tells. Found when it is first asked
    /// for, and kept. Of many files, which lie each in its own way, nothing is known here.
    ///
    /// ```
    /// # use sieva::{OpenOptions, Source};
    /// # let path = std::env::temp_dir().join(format!("sieva-striping-{}.nc", std::process::id()));
    /// # std::fs::write(&path, [b"CDF\x01".as_slice(), &[0; 28]].concat())?;
    /// let striping = Some("stripe_size=1MiB,stripe_count=4".parse()?);
    /// let source = Source::open(&path, &OpenOptions { striping, ..OpenOptions::default() })?;
    /// assert_eq!(source.striping().servers(), 4);
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn striping(&self) -> &Striping {
        self.striping.get_or_init(|| {
            match self.inner.striping().filter(|_| self.options.striping.is_none()) {
                Some(kept) => kept.clone(),
                None => self.striping_of(&**self.inner.store()),
            }
        })
    }

    /// Which boxes of an array each server has, and which servers a box is on: made when it is first asked for, and kept with
    /// the layouts. `None` where the elements are no byte ranges of the file.
    ///
    /// # Errors
    /// What finding the layout says.
    pub fn sub_correlation(&self, array: usize) -> Result<Option<Arc<SubCorrelation>>> {
        let kept = || self.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept().get(&array) {
            return Ok(known.clone());
        }
        let layout = self.inner.layout(array)?;
        let set = SubCorrelation::new(layout, self.striping().clone()).map(Arc::new);
        Ok(kept().entry(array).or_insert(set).clone())
    }

    /// The striping of one of its files.
    pub(crate) fn striping_of(&self, store: &dyn RangedRead) -> Striping {
        match &self.options.striping {
            Some(given) => given.clone().for_length(store.len()),
            None => Striping::of(store),
        }
    }

    /// Seconds that opening took.
    pub fn opened_in(&self) -> f64 {
        self.opened_in
    }

    /// The array that a name means.
    ///
    /// # Errors
    /// `unknown-array` with the nearest names, `ambiguous-name` with the paths it could mean.
    pub fn resolve(&self, name: &str) -> Result<usize> {
        match resolve(self.schema(), name)? {
            sieva_query::bind::Meaning::Array(i) => Ok(i),
            sieva_query::bind::Meaning::Dimension(_) => Err(Error::new(
                ErrorKind::UnknownArray,
                format!("'{name}' is a dimension without a coordinate array"),
            )
            .hint(format!("idx({name}) gives its positions in a query"))),
        }
    }

    /// A query by condition (`None`: every position). `select` lists what comes back; `None` is the
    /// coordinates, then the arrays in the condition.
    ///
    /// # Errors
    /// `syntax-error`, `unknown-array`, `type-mismatch` and the like.
    pub fn query(
        &self,
        condition: Option<&str>,
        select: Option<&[String]>,
        options: &QueryOptions,
    ) -> Result<Query> {
        let known = |name: &Name| self.knows(name);
        let condition = condition.map(|c| parse::parse_condition_with(c, &known)).transpose()?;
        let select = match select {
            None => None,
            Some(list) => Some(
                list.iter().map(|s| parse::parse_expression_with(s, &known)).collect::<Result<Vec<_>>>()?,
            ),
        };
        Query::of_condition(self, condition, select, options)
    }

    /// A SELECT over this source; its FROM, if it has one, is not looked at.
    ///
    /// # Errors
    /// As [`Source::query`].
    pub fn sql(&self, text: &str, options: &QueryOptions) -> Result<Query> {
        let select = parse::parse_select_with(text, &|name| self.knows(name))?;
        Query::of_select(self, select, options)
    }

    pub(crate) fn knows(&self, name: &Name) -> bool {
        !matches!(resolve(self.schema(), &name.text), Err(e) if e.kind() == ErrorKind::UnknownArray)
    }

    /// Whether values outside of `valid_range` are missing.
    pub(crate) fn valid_range(&self) -> bool {
        self.options.valid_range
    }

    /// Values of the box `start`, `shape` of an array: as stored, or decoded. What that may take is
    /// [`OpenOptions::memory`].
    ///
    /// # Errors
    /// `invalid-value` where the box does not lie within the array, and reading errors; `memory-limit`.
    pub fn read_box(&self, array: usize, bx: &Bx, raw: bool) -> Result<Column> {
        self.read_box_with(array, bx, raw, self.memory(), &Arc::default())
    }

    /// The same, with another limit, until `cancel` is set.
    ///
    /// # Errors
    /// As [`Source::read_box`], and `cancelled`.
    pub fn read_box_with(
        &self,
        array: usize,
        bx: &Bx,
        raw: bool,
        memory: u64,
        cancel: &Arc<AtomicBool>,
    ) -> Result<Column> {
        self.check_file()?;
        let info = &self.schema().arrays[array];
        check_box(info, bx)?;
        let need = need(info, bx.len());
        if need > memory.max(1 << 20) {
            // Refused there, unless it has an error that is told first.
            let none = Arc::new(ChunkCache::new(0));
            return self.read_box_alone(array, bx, raw, memory, cancel, &none);
        }
        self.read_box_in_window((array, bx, raw), (memory, need), cancel, |cache| {
            self.read_box_alone(array, bx, raw, memory, cancel, cache)
        })
    }

    /// That a local file is the one that was opened: its structure is known from then on, and would be taken for that of other bytes.
    /// Stores of several objects look at each when they read it.
    ///
    /// # Errors
    /// `stale-source`
    pub(crate) fn check_file(&self) -> Result<()> {
        let store = self.inner.store();
        if store.local_path().is_some() { store.check_unchanged() } else { Ok(()) }
    }

    /// Reads a box by itself, with this cache.
    fn read_box_alone(
        &self,
        array: usize,
        bx: &Bx,
        raw: bool,
        memory: u64,
        cancel: &Arc<AtomicBool>,
        cache: &Arc<ChunkCache>,
    ) -> Result<Column> {
        let info = &self.schema().arrays[array];
        let reader = BlockReader::new(Arc::clone(&self.inner), array, Arc::clone(cache), memory)?;
        let mut workspace = Workspace::cancelled_by(cancel);
        if info.dtype == DType::Str {
            let texts = reader.read_texts(bx, &mut workspace)?;
            return Ok(Column { data: Data::Str(texts), valid: None });
        }
        reader.check_stored(bx)?;
        check_room(info, bx.len(), memory)?;
        let mut buffer = sieva_format::buffer::Buffer::default();
        reader.read(bx, &mut buffer, &mut workspace)?;
        let stored = stored_domain(info, raw, self.options.valid_range)?;
        Ok(Column::decode(&buffer, bx.len() as usize, &stored))
    }

    /// Bytes that reading boxes may take: [`OpenOptions::memory`], and of a source of a session no more than a query has there.
    pub fn memory(&self) -> u64 {
        self.session().memory_of_source(self.options.memory)
    }
}
