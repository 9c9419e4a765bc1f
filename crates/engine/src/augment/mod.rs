//! Augmentations of a source: found, checked against the source, used, built and looked after.
//!
//! Where a query runs, [`Augmented`] gives it what the store holds of the arrays that it names. A store that was
//! made for another state of the file is never used.

mod beside;
mod build;
mod carried;
mod drop;
mod histogram;
mod homes;
mod learn;
mod profile;
mod regions;
mod share;
mod sort;
mod state;
mod status;
pub(crate) mod told;
mod verify;
mod worker;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use sieva_format::ArraySource;
use sieva_format::layout::Placement;
use sieva_format::schema::ArrayInfo;
use sieva_index::store::{ArrayHeader, Fingerprint, Home, SortedEntry, Store};
use sieva_index::{ArrayIndex, RegionGrid, RegionLimits};
use sieva_query::bind::{Bound, stored_domain};
use sieva_query::exec::{Indexes, Replica, region_shape};
use sieva_store::guard::Purpose;
use sieva_types::{DType, ErrorKind, Result};

use crate::multi_file::Many;
use crate::open::Source;
use beside::was_built;
pub use build::{BuildOptions, BuildReport, IndexKind, Progress};
pub use carried::CarriedZoneMaps;
pub use histogram::GlobalHistogram;
pub(crate) use homes::homes;
pub use profile::Calibration;
pub use share::{BuildPrice, IndexJob, IndexTask};
use state::schema_hash;
pub(crate) use state::{check_state, state_of, state_of_bytes};
pub use status::{ArrayStatus, IndexStatus, ReplicaStatus};
pub use told::{KnownAugmentation, augmentations};
pub use verify::VerifyReport;

/// Bytes of a region's place among what scans learn, about.
const REGION_BYTES: u64 = 96;
/// The share of the memory limit that these places of an array may take (1/16); of larger ones an index can be built.
const LEARNT_SHARE: u64 = 16;

/// How many times as much as is stored an array may declare for scans to learn of it.
const MOST_DECLARED: u64 = 256;
/// The same in bytes, where it is not known what is stored.
const MOST_UNKNOWN: u64 = 1 << 42;

/// Share of a scan's time that statistics may take: with what saving them takes, under 3 %.
const LEARN_SHARE: f64 = 0.02;
/// Arrays of fewer bytes than this are scanned too fast for statistics to pay.
const LEARN_FROM: u64 = 64 << 20;

/// Whether scans leave statistics behind, and of which arrays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Learn {
    /// The share of its time that a scan may spend on them; 0 switches them off.
    pub share: f64,
    /// The least size of an array, in bytes.
    pub from: u64,
}

impl Default for Learn {
    fn default() -> Self {
        let off = std::env::var_os("SIEVA_LEARN").is_some_and(|v| v == "0");
        Self { share: if off { 0.0 } else { LEARN_SHARE }, from: LEARN_FROM }
    }
}

/// What is known of a source besides its data; found when it is first asked for.
#[derive(Default)]
pub struct Augmented {
    state: Mutex<Option<Arc<Loaded>>>,
    /// The content of its fingerprint, where another process took that.
    content: Option<u64>,
}

/// A source's stores as they were found.
pub(crate) struct Loaded {
    /// Where new augmentations go.
    write: Home,
    reader: Arc<dyn ArraySource>,
    fingerprint: OnceLock<Fingerprint>,
    /// What there is here for this state of the source.
    store: Option<Store>,
    /// What there is beside a remote object, where nothing was built here.
    beside: Option<Store>,
    /// Where a store of another state of the source is.
    stale: Option<Home>,
    indexes: Arc<Indexes>,
    /// The arrays that were looked for.
    looked: Mutex<HashSet<usize>>,
    learn: Learn,
    /// Set when what was learnt is not to be kept.
    discarded: AtomicBool,
}

impl Augmented {
    /// Of a source whose samples another process has read.
    pub(crate) fn of_content(content: u64) -> Self {
        Self { content: Some(content), ..Self::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Loaded>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was found, as the store is about to change or has changed; what was learnt is saved first.
    pub(crate) fn forget(&self) {
        self.lock().take();
    }

    /// Forgets what was found and learnt.
    fn discard(&self) {
        if let Some(loaded) = self.lock().take() {
            loaded.discarded.store(true, Relaxed);
        }
    }
}

impl Source {
    /// What is known of the arrays of a query. A store that cannot be used is noted, and the data are scanned.
    pub(crate) fn indexes(&self, bound: &Bound) -> Arc<Indexes> {
        let Ok(loaded) = self.loaded() else { return Arc::default() };
        for array in &bound.arrays {
            self.look_up(&loaded, array.index);
        }
        Arc::clone(&loaded.indexes)
    }

    /// Writes what scans learnt of the source to its store now, not only when it is closed.
    pub fn save_learnt(&self) {
        // It is saved when the last query that uses it lets go.
        self.augmented().forget();
    }

    /// Looks for augmentations anew when they are next wanted: other processes may have built or dropped some since the source was
    /// first asked. What was learnt is saved.
    pub fn refresh_index(&self) {
        self.augmented().forget();
        if let Some(many) = self.many() {
            many.files.forget();
        }
    }

    /// Why augmentations that exist are not used, and what of them is damaged.
    pub fn index_notes(&self) -> Vec<String> {
        self.loaded().map(|l| l.indexes.notes()).unwrap_or_default()
    }

    fn loaded(&self) -> Result<Arc<Loaded>> {
        let mut state = self.augmented().lock();
        if let Some(loaded) = &*state {
            return Ok(Arc::clone(loaded));
        }
        let loaded = Arc::new(self.load()?);
        *state = Some(Arc::clone(&loaded));
        Ok(loaded)
    }

    /// The content of the fingerprint; reads samples of the source unless another process did.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn content_hash(&self) -> Result<u64> {
        Ok(self.loaded()?.fingerprint()?.content)
    }

    /// The directory of the store that queries use, where it is a local one.
    pub(crate) fn used_home(&self) -> Option<Home> {
        self.loaded().ok()?.used()?.place().local().cloned()
    }

    /// What is known of one array of one file.
    pub(crate) fn index_of(&self, array: usize) -> Option<Arc<ArrayIndex>> {
        let loaded = self.loaded().ok()?;
        self.look_up(&loaded, array);
        loaded.indexes.array(array)
    }

    /// Of many files: each keeps what is known of it, and nothing is kept of them together.
    fn load_many(&self, many: &Many) -> Loaded {
        let mut indexes = Indexes::default();
        indexes.learn = self.options().learn.share;
        let first = many.files.names().first().map_or("", String::as_str);
        let places = homes(first.as_ref(), self.options());
        profile::load(&places.read, &indexes.costs);
        Loaded {
            write: places.write,
            reader: Arc::clone(self.reader()),
            fingerprint: OnceLock::new(),
            store: None,
            beside: None,
            stale: None,
            indexes: Arc::new(indexes),
            looked: Mutex::default(),
            learn: self.options().learn,
            discarded: AtomicBool::new(true),
        }
    }

    fn load(&self) -> Result<Loaded> {
        if let Some(many) = self.many() {
            return Ok(self.load_many(many));
        }
        let places = homes(self.path(), self.options());
        let fingerprint = OnceLock::new();
        if let Some(content) = self.augmented().content {
            let store = self.reader().store();
            let _ = fingerprint.set(Fingerprint { len: store.len(), version: store.version(), content });
        }
        let mut indexes = Indexes::default();
        indexes.learn = self.options().learn.share;
        places.refused.iter().for_each(|why| indexes.note(why));
        let (mut found, mut stale): (Option<Store>, _) = (None, None);
        for home in &places.read {
            if let Err(e) = self.check_store(&home.path()) {
                indexes.note(&format!("{}: not used", e.message()));
                continue;
            }
            match Store::open(home) {
                Ok(None) => {}
                Ok(Some(store)) => {
                    if store.fingerprint() == taken(&fingerprint, self.reader())? {
                        let is_built = was_built(&store);
                        // One that somebody built goes before what scans left.
                        if found.is_none() || is_built {
                            found = Some(store);
                        }
                        if is_built {
                            break;
                        }
                        continue;
                    }
                    indexes.note(&format!(
                        "'{}' was made for another state of the file: not used (sieva index renews it)",
                        home.path().display()
                    ));
                    crate::advise::found_stale(self, &told::name(home));
                    stale = Some(home.clone());
                }
                Err(e) => indexes.note(&format!("'{}': {}: not used", home.path().display(), e.message())),
            }
        }
        // What scans learn would stand in the way of what others built elsewhere.
        let is_elsewhere = found.as_ref().is_some_and(|store| {
            was_built(store) && store.place().local().is_some_and(|home| home.path() != places.write.path())
        });
        let beside = match self.address_beside().filter(|_| !found.as_ref().is_some_and(was_built)) {
            // The fingerprint of what is no object takes reading some of it.
            Some(address) => {
                let taken = taken(&fingerprint, self.reader())?;
                self.beside(&address, &places.write, taken, &mut indexes)
            }
            None => None,
        };
        if let Some(store) = beside.as_ref().or(found.as_ref()) {
            store.damage().iter().for_each(|d| indexes.note(d));
            for entry in store.sorted() {
                match self.open_replica(store, entry) {
                    Ok(replica) => indexes.replicas.push(Arc::new(replica)),
                    Err(e) => {
                        indexes.note(&format!("sorted replica by '{}': {}: not used", entry.key, e.message()))
                    }
                }
            }
        }
        profile::load(&places.read, &indexes.costs);
        // Nothing is written either where nothing may be opened.
        let may_write = self.check_store(&places.write.path()).is_ok();
        Ok(Loaded {
            write: places.write,
            reader: Arc::clone(self.reader()),
            fingerprint,
            store: found,
            discarded: AtomicBool::new(beside.is_some() || is_elsewhere || !may_write),
            beside,
            stale,
            indexes: Arc::new(indexes),
            looked: Mutex::default(),
            learn: self.options().learn,
        })
    }

    /// Whether a store may be opened for whoever asks. The directory that the process keeps stores in is its own.
    pub(super) fn check_store(&self, dir: &Path) -> Result<()> {
        let is_in = |own: Option<std::path::PathBuf>| own.is_some_and(|own| dir.starts_with(own));
        match is_in(self.options().store_dir_of(self.path())) || is_in(homes::cached()) {
            true => Ok(()),
            false => self.options().gate.look(dir, Purpose::Index).map(drop),
        }
    }

    fn open_replica(&self, store: &Store, entry: &SortedEntry) -> Result<Replica> {
        let replica = store.open_sorted(entry)?;
        let arrays = &self.schema().arrays;
        let known = |name: &str| {
            let index = arrays.iter().position(|a| a.path == name)?;
            (arrays[index].shape == replica.shape()).then_some(index)
        };
        let mut columns = HashMap::new();
        for (i, column) in replica.columns().iter().enumerate() {
            match known(&column.name) {
                Some(index) if indexed_dtype(&arrays[index]) == column.dtype => columns.insert(index, i),
                _ => return Err(corrupt(format!("column '{}' is not an array of this source", column.name))),
            };
        }
        let key = known(&entry.key).filter(|k| columns.get(k) == Some(&0));
        let key = key.ok_or_else(|| corrupt(format!("it is not sorted by '{}'", entry.key)))?;
        Ok(Replica::new(replica, key, columns))
    }

    /// Makes what is known of an array ready, or the place where a scan leaves what it learns.
    fn look_up(&self, loaded: &Loaded, array: usize) {
        if !loaded.looked.lock().unwrap_or_else(PoisonError::into_inner).insert(array) {
            return;
        }
        let Ok(header) = self.array_header(array) else { return };
        let packing = self.schema().arrays[array].decoding.packing;
        if let Some(many) = self.many() {
            if let Some(index) = many.index(array, &header) {
                loaded.indexes.add(array, index);
            }
            return;
        }
        if let Some(records) = loaded.used().and_then(|s| s.load(&header.path)) {
            let found = records.header();
            if (found.dtype, &found.shape, &found.missing) == (header.dtype, &header.shape, &header.missing) {
                match ArrayIndex::load(records) {
                    Ok(index) => {
                        // Of the regions that the index has, which need not be those that the array has by itself.
                        let limits = self.limits(array, index.header());
                        let sized = index.header().region != header.region;
                        let index = index.with_limits(limits, true).with_packing(packing).with_sized(sized);
                        return loaded.indexes.add(array, index);
                    }
                    Err(e) => loaded.indexes.note(&format!("'{}': {}", header.path, e.message())),
                }
            } else {
                loaded.indexes.note(&format!("'{}': its index is of an array of another kind", header.path));
            }
        }
        let bytes = header.shape.iter().product::<u64>().saturating_mul(header.dtype.size() as u64);
        let held = header.regions().map_or(u64::MAX, |n| n.saturating_mul(REGION_BYTES));
        let learns = loaded.learn.share > 0.0
            && bytes >= loaded.learn.from
            && bytes <= self.plausible(array)
            && held <= self.memory() / LEARNT_SHARE;
        let limits = self.limits(array, &header);
        if (learns || limits.any())
            && let Ok(index) = ArrayIndex::new(header)
        {
            loaded.indexes.add(array, index.with_limits(limits, learns).with_packing(packing));
        }
    }

    /// Bytes of an array that scans may learn of: one that declares far more than is stored has regions by the hundred
    /// thousand, of which nobody will see more than a few.
    fn plausible(&self, array: usize) -> u64 {
        let Ok(layout) = self.reader().layout(array) else { return 0 };
        match &layout.placement {
            Placement::Unallocated => 0,
            Placement::Direct { .. } => self.reader().store().len(),
            Placement::Chunks(index) => {
                let stored = (index.stored() as u64).saturating_mul(layout.chunk_bytes);
                stored.saturating_mul(MOST_DECLARED)
            }
            _ => MOST_UNKNOWN,
        }
    }

    /// What the file itself tells of the regions of an array.
    fn limits(&self, array: usize, header: &ArrayHeader) -> RegionLimits {
        let blocks = self.reader().limits(array);
        // Their keys are those of the stored type, whatever an attribute declares it to be.
        let stored = &self.schema().arrays[array];
        match RegionGrid::new(&header.shape, &header.region) {
            Ok(grid) if !blocks.is_empty() && stored.decoding.stored == stored.dtype => {
                RegionLimits::of_blocks(&grid, &blocks)
            }
            _ => RegionLimits::default(),
        }
    }

    /// How an array is indexed.
    ///
    /// # Errors
    /// `type-mismatch` for texts, `unsupported` for data that the format's own reader gives box by box.
    pub(crate) fn array_header(&self, array: usize) -> Result<ArrayHeader> {
        let info = &self.schema().arrays[array];
        if info.dtype == DType::Str {
            let message = format!("'{}' is text: only numbers are indexed", info.path);
            return Err(sieva_types::Error::new(ErrorKind::TypeMismatch, message));
        }
        let layout = self.reader().layout(array)?;
        if let Placement::Library(why) = &layout.placement {
            let message = format!(
                "'{}' is read by the format's own reader, box by box ({why}): it is not indexed",
                info.path
            );
            return Err(sieva_types::Error::new(ErrorKind::Unsupported, message));
        }
        let region = match (&layout.placement, self.many()) {
            (Placement::Parts(parts), Some(many)) => many.region(array, parts)?,
            _ => region_shape(&layout, &info.shape),
        };
        Ok(ArrayHeader {
            path: info.path.clone(),
            dtype: indexed_dtype(info),
            shape: info.shape.clone(),
            region,
            missing: stored_domain(info, false, false)?.missing().clone(),
        })
    }
}

impl Loaded {
    /// What tells this state of the source from others. It is taken when it is first needed, which reads some of
    /// the source; length and version are those at opening.
    fn fingerprint(&self) -> Result<&Fingerprint> {
        taken(&self.fingerprint, &self.reader)
    }

    /// The store that queries use.
    fn used(&self) -> Option<&Store> {
        self.beside.as_ref().or(self.store.as_ref())
    }
}

fn taken<'f>(known: &'f OnceLock<Fingerprint>, reader: &Arc<dyn ArraySource>) -> Result<&'f Fingerprint> {
    if let Some(known) = known.get() {
        return Ok(known);
    }
    let store = reader.store();
    let fingerprint = Fingerprint::take(store.as_ref(), store.version(), schema_hash(reader))?;
    Ok(known.get_or_init(|| fingerprint))
}

/// The type that an array's elements are indexed as: the one that they are delivered in, unsigned where an
/// attribute says that they are.
pub(crate) fn indexed_dtype(info: &ArrayInfo) -> DType {
    match info.decoding.stored {
        DType::F16 => DType::F32,
        DType::Bool => DType::U8,
        other => other,
    }
}

fn corrupt(message: String) -> sieva_types::Error {
    sieva_types::Error::new(ErrorKind::CorruptIndex, message)
}
