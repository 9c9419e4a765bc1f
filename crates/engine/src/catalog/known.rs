//! Opening files by what the catalog knows of them: nothing is parsed, and for its outline nothing is read.
//!
//! A file is taken as known while its size and time of modification are those that it was registered with.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use sieva_catalog::{Catalog, Known};
use sieva_format::filters::Pipeline;
use sieva_format::layout::{Layout, Placement, c_strides};
use sieva_format::manifest::{MAX_DECODED, Manifest, ManifestSource};
use sieva_format::{ArraySource, Wrapped};
use sieva_index::stats::RegionStats;
use sieva_index::store::ArrayHeader;
use sieva_store::RangedRead;
use sieva_types::{DType, Endian, Result};

use super::lazy::LazyFile;
use super::place::Locations;
use super::statistics;
use crate::open::OpenOptions;
use crate::{formats, memory};

/// Files that the catalog is asked for at a time.
const BLOCK: usize = 256;
/// Such blocks of answers that are held.
const BLOCKS: usize = 4;
/// Asking for statistics of so many files takes at most so long; the others are looked at as if nothing were known.
const PATIENCE: Duration = Duration::from_secs(4);

/// The catalog, where it may be used: what a user says of dimensions is not in it, nor where links lead to.
fn usable(options: &OpenOptions) -> Option<&Arc<Catalog>> {
    options.catalog.as_ref().filter(|_| options.dims.is_empty() && options.external_roots.is_empty())
}

/// Opens one local file by what is known of it; `None` where nothing is, or not of its present state.
pub(crate) fn open_one(path: &Path, options: &OpenOptions) -> Option<Arc<dyn ArraySource>> {
    let catalog = usable(options)?;
    let name = path.to_str().filter(|name| !sieva_store::is_url(name))?;
    let location = Locations::default().of(name).ok()?;
    let known = catalog.known(&[&location], Some(memory(options))).ok()?.remove(&location)?;
    Some(Arc::new(source(&known, name, options)?))
}

/// Bytes that what is known of one file may take.
fn memory(options: &OpenOptions) -> u64 {
    options.memory.unwrap_or_else(memory::default_limit)
}

/// A source made of what is known of a file.
fn source(known: &Known, name: &str, options: &OpenOptions) -> Option<ManifestSource> {
    let bytes = known.manifest.as_deref().filter(|_| known.error.is_none())?;
    let store = LazyFile::look(name.as_ref(), &options.gate).ok()?;
    if (store.len(), store.version()) != (known.size, known.version.clone()) {
        return None;
    }
    let limit = usize::try_from(memory(options)).unwrap_or(usize::MAX).min(MAX_DECODED);
    let source = ManifestSource::new(Manifest::decode_within(bytes, limit).ok()?, Arc::new(store)).ok()?;
    let (path, options) = (name.to_string(), OpenOptions { catalog: None, ..options.clone() });
    Some(source.with_fallback(Box::new(move || formats::open(path.as_ref(), &options))))
}

type Block = Arc<HashMap<String, Known>>;

/// What is known of many files, asked for as they are opened.
pub(crate) struct KnownFiles {
    catalog: Arc<Catalog>,
    /// Their names in the catalog; empty for those that can have none.
    locations: Vec<String>,
    /// Bytes that the manifests of one block may take.
    manifests: u64,
    /// The answers of the last questions.
    blocks: Mutex<VecDeque<(usize, Block)>>,
    /// The versions of the files whose outlines were taken from the catalog.
    versions: Vec<OnceLock<String>>,
}

impl KnownFiles {
    /// Of these files; `None` where no catalog is used.
    pub(crate) fn of(names: &[String], options: &OpenOptions) -> Option<Self> {
        let catalog = Arc::clone(usable(options)?);
        let mut locations = Locations::default();
        let local = |name: &String| !sieva_store::is_url(name);
        let locations = names.iter().map(|name| {
            Some(name).filter(|n| local(n)).and_then(|n| locations.of(n).ok()).unwrap_or_default()
        });
        let versions = names.iter().map(|_| OnceLock::new()).collect();
        let (locations, manifests) = (locations.collect(), memory(options) / (2 * BLOCKS as u64));
        Some(Self { catalog, locations, manifests, blocks: Mutex::default(), versions })
    }

    /// The answers for a block of files. Others wait: they most likely want the same.
    fn block(&self, number: usize) -> Option<Block> {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = blocks.iter().find(|(n, _)| *n == number) {
            return Some(Arc::clone(found));
        }
        let locations: Vec<&str> = self.locations.iter().map(String::as_str).collect();
        let asked = locations.chunks(BLOCK).nth(number)?;
        // A catalog that fails is no reason not to open files.
        let found = Arc::new(self.catalog.known(asked, Some(self.manifests)).unwrap_or_default());
        if blocks.len() >= BLOCKS {
            blocks.pop_front();
        }
        blocks.push_back((number, Arc::clone(&found)));
        Some(found)
    }

    /// The reader of file `n`, which is `name`.
    pub(crate) fn open(&self, n: usize, name: &str, options: &OpenOptions) -> Option<Arc<dyn ArraySource>> {
        Some(Arc::new(self.source(n, name, options)?))
    }

    fn source(&self, n: usize, name: &str, options: &OpenOptions) -> Option<ManifestSource> {
        source(self.block(n / BLOCK)?.get(self.locations.get(n)?)?, name, options)
    }

    /// What tells the outline of file `n`: schema and coordinates are at hand.
    pub(crate) fn outline(
        &self,
        n: usize,
        name: &str,
        options: &OpenOptions,
    ) -> Option<Arc<dyn ArraySource>> {
        let source = self.source(n, name, options)?;
        let _ = self.versions.get(n)?.set(source.store().version());
        Some(Arc::new(Outlined(source)))
    }

    /// Statistics of whole arrays (file, array's number there) for an array of this header; empty: nothing is known.
    pub(crate) fn statistics(&self, header: &ArrayHeader, pieces: &[(u32, u32)]) -> Vec<Option<RegionStats>> {
        let started = Instant::now();
        let mut found: Vec<Option<RegionStats>> = vec![None; pieces.len()];
        for (number, block) in pieces.chunks(BLOCK).enumerate() {
            let stats = self.block_statistics(header, block, &started);
            // Of the first files none has any: the others hardly do.
            if number == 0 && stats.iter().all(Option::is_none) || started.elapsed() > PATIENCE {
                break;
            }
            found[number * BLOCK..][..block.len()].clone_from_slice(&stats);
        }
        if found.iter().all(Option::is_none) { Vec::new() } else { found }
    }

    fn block_statistics(
        &self,
        header: &ArrayHeader,
        pieces: &[(u32, u32)],
        started: &Instant,
    ) -> Vec<Option<RegionStats>> {
        let of = |file: u32| {
            let file = file as usize;
            Some((self.locations.get(file)?.as_str(), self.versions.get(file)?.get()?.as_str()))
        };
        let stats = pieces.iter().map(|&(file, _)| {
            if started.elapsed() > PATIENCE {
                return None;
            }
            let object = self.catalog.object(of(file)?.0, &header.path).ok()??;
            statistics::known_for(header, &object.stats?)
        });
        let mut stats: Vec<Option<RegionStats>> = stats.collect();
        // Asked after them: what is of another state than was opened is told by its version.
        let names: Vec<&str> = pieces.iter().filter_map(|&(file, _)| Some(of(file)?.0)).collect();
        let known = self.catalog.known(&names, None).unwrap_or_default();
        for (stats, &(file, _)) in stats.iter_mut().zip(pieces) {
            let is_same = of(file).is_some_and(|(name, v)| known.get(name).is_some_and(|k| k.version == v));
            *stats = stats.take().filter(|_| is_same);
        }
        stats
    }
}

/// A known source whose coordinates' values are those that were kept. For outlines only: how its coordinates lie is not
/// what the file itself says.
struct Outlined(ManifestSource);

impl Wrapped for Outlined {
    fn inner(&self) -> &dyn ArraySource {
        &self.0
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        match inline(self.0.manifest(), array) {
            Some(layout) => Ok(Arc::new(layout)),
            None => self.0.layout(array),
        }
    }
}

/// The layout of a coordinate whose values are kept: in memory, as one block.
fn inline(manifest: &Manifest, array: usize) -> Option<Layout> {
    let bytes = manifest.values(array)?;
    let info = manifest.schema().arrays.get(array)?;
    // Kept values of float16 are wider than stored ones.
    let size = Some(info.dtype).filter(|d| !matches!(d, DType::F16 | DType::Str))?.size();
    Some(Layout {
        dtype: info.dtype,
        endian: Endian::NATIVE,
        element_size: size,
        extent: info.shape.clone(),
        chunk_shape: info.shape.clone(),
        strides: c_strides(&info.shape, size as u64),
        base: 0,
        chunk_bytes: bytes.len() as u64,
        pipeline: Pipeline::default(),
        placement: Placement::Inline(bytes.into()),
        fill: vec![0; size],
        char_dim: false,
        space_padded: false,
    })
}
