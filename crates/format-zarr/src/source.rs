//! The open source.

use std::sync::Arc;

use sieva_format::filters::Scratch;
use sieva_format::layout::Layout;
use sieva_format::schema::Schema;
use sieva_format::{ArraySource, LibraryReader, ObjectChunks};
use sieva_store::{ObjectTree, RangedRead, Span, Want};
use sieva_types::{Bx, Error, ErrorKind, PlacedTexts, Result, Texts};

use crate::budget::Budget;
use crate::build::{self, Chunks, Place};
use crate::discover::discover;
use crate::once::OnceCache;
use crate::shards::Shards;
use crate::store::MetadataStore;
use crate::texts;

/// Texts of decoded chunks that are kept, in bytes.
const TEXT_CACHE: usize = 64 << 20;
/// The most bytes of a decoded chunk of texts, whose length nothing tells beforehand.
const MAX_TEXT_CHUNK: usize = 256 << 20;
/// The most texts of one box.
const MAX_TEXTS: u64 = 1 << 27;

/// How a source is opened.
#[derive(Clone, Debug, Default)]
pub struct ZarrOptions {
    /// Names for arrays' dimensions: the array's path and the names, outermost first.
    pub dims: Vec<(String, Vec<String>)>,
    /// Bytes of memory that the metadata may take; `None`: 1 GiB.
    pub memory: Option<u64>,
}

/// An open Zarr hierarchy of version 2 or 3: a group with all that is in it, or one array.
///
/// An array that is the root itself is called `data`.
pub struct ZarrSource {
    tree: Arc<dyn ObjectTree>,
    store: Arc<dyn RangedRead>,
    schema: Schema,
    places: Vec<Place>,
    shards: Shards,
    texts: OnceCache<(u32, u64), Option<Texts>>,
}

impl ZarrSource {
    /// Reads the metadata of `tree`.
    ///
    /// An array with a codec, grid or type that cannot be read is listed all the same, or named in
    /// [`Schema::left_out`] where it has no plain values.
    ///
    /// # Errors
    /// `unknown-format` where no Zarr group or array is at the root, `corrupt-file` where metadata contradict the
    /// format, `unsupported` where they are too large or there is neither consolidated metadata nor a listing,
    /// `memory-limit`; what reading says.
    pub fn open(tree: Arc<dyn ObjectTree>, options: &ZarrOptions) -> Result<Self> {
        let located =
            |e: Error| if e.message().contains(tree.name()) { e } else { e.at(format!("'{}'", tree.name())) };
        let mut found = discover(&*tree, Budget::new(options.memory)).map_err(located)?;
        let (mut schema, places) = build::build(&mut found).map_err(located)?;
        for (path, names) in &options.dims {
            schema.name_dims(path, names).map_err(located)?;
        }
        if !options.dims.is_empty() {
            schema.resolve();
        }
        let listed = found.listed();
        let store = MetadataStore::new(Arc::clone(&tree), found.documents, listed);
        let (shards, texts) = (Shards::new(Arc::clone(&tree)), OnceCache::new(TEXT_CACHE));
        Ok(Self { tree, store: Arc::new(store), schema, places, shards, texts })
    }

    fn place(&self, array: usize) -> Result<&Place> {
        let count = self.places.len();
        let message = || format!("array {array} asked for, the source has {count}");
        self.places.get(array).ok_or_else(|| Error::new(ErrorKind::Internal, message()))
    }

    fn chunks(&self, array: usize) -> Result<(&Place, &Chunks, &Layout)> {
        let place = self.place(array)?;
        let layout = place.layout.as_deref().map_err(Clone::clone)?;
        let chunks = place.chunks.as_deref();
        let chunks = chunks.ok_or_else(|| Error::new(ErrorKind::Internal, "an array without chunks"))?;
        Ok((place, chunks, layout))
    }

    fn fetch(
        &self,
        place: &Place,
        chunks: &Chunks,
        number: u64,
        limit: u64,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        out.clear();
        let position = chunks.grid.position(number);
        let Some(location) = self.shards.locate(place.node, chunks, &position)? else {
            return Ok(false);
        };
        let too_long = |len: u64| {
            let key = &location.key;
            Error::corrupt(format!("'{key}': a chunk of {len} {TOO_LONG} {limit}"))
        };
        let span = match &location.range {
            Some(range) if range.end - range.start > limit => return Err(too_long(range.end - range.start)),
            Some(range) => Span::Range(range.clone()),
            None => self.whole(limit),
        };
        let there = self.shards.get(chunks, &location.key, &span, out)?;
        if out.len() as u64 > limit {
            return Err(too_long(out.len() as u64));
        }
        Ok(there)
    }

    /// All of an object; locally at most one byte more than it may have, so that a huge file takes no memory.
    fn whole(&self, limit: u64) -> Span {
        if self.tree.is_remote() { Span::All } else { Span::Last(limit.saturating_add(1)) }
    }

    /// The texts of one chunk; `None` where it was never written.
    fn texts_of(&self, array: usize, number: u64) -> Result<Arc<Option<Texts>>> {
        let (place, chunks, layout) = self.chunks(array)?;
        self.texts.get(&(place.node, number), || {
            let mut stored = Vec::new();
            if !self.fetch(place, chunks, number, MAX_TEXT_CHUNK as u64, &mut stored)? {
                return Ok((None, 64));
            }
            self.tree.counters().add_chunk();
            let mut scratch = Scratch::default();
            let decoded = layout.pipeline.decode_unsized(&stored, MAX_TEXT_CHUNK, &mut scratch)?;
            let (_, count) = chunks.grid.strides(1)?;
            let texts = texts::parse(&decoded, count)?;
            let bytes = texts.memory_bytes() + 64;
            Ok((Some(texts), bytes))
        })
    }

    /// Puts the texts of the chunk `number` at `position` that lie in `bx` to their places in `out`.
    fn put_texts(
        &self,
        array: usize,
        number: u64,
        position: &[u64],
        bx: &Bx,
        out: &mut PlacedTexts,
    ) -> Result<()> {
        let (_, chunks, layout) = self.chunks(array)?;
        let texts = self.texts_of(array, number).map_err(|e| e.at(format!("chunk {position:?}")))?;
        let (strides, _) = chunks.grid.strides(1)?;
        let chunk = layout.chunk_box(position);
        let Some(part) = chunk.intersect(bx) else { return Ok(()) };
        let mut at = part.start.clone();
        loop {
            let dot = |from: &Bx, strides: &dyn Fn(usize) -> u64| -> usize {
                (0..at.len()).map(|d| (at[d] - from.start[d]) * strides(d)).sum::<u64>() as usize
            };
            let target = (0..at.len()).fold(0, |n, d| n * bx.shape[d] + (at[d] - bx.start[d])) as usize;
            let text = match &*texts {
                Some(texts) => texts.get(dot(&chunk, &|d| strides[d])),
                None => Some(&*chunks.fill_text),
            };
            if let Some(text) = text {
                out.put(target, text);
            }
            if !advance(&mut at, &part) {
                return Ok(());
            }
        }
    }
}

/// How a chunk is told that is longer than it may be.
const TOO_LONG: &str = "stored bytes or more, expected at most";
const MORE_MEMORY: &str = "raise the limit with --memory (memory= in Python)";

/// The next position of `bx` in C order; false after the last one.
fn advance(at: &mut [u64], bx: &Bx) -> bool {
    for d in (0..at.len()).rev() {
        at[d] += 1;
        if at[d] < bx.end(d) {
            return true;
        }
        at[d] = bx.start[d];
    }
    false
}

/// The most stored bytes of a chunk that decodes to `chunk_bytes`: codecs hardly lengthen, but `astype` may store
/// eight bytes for one.
fn stored_limit(chunk_bytes: u64) -> u64 {
    chunk_bytes.saturating_mul(9).saturating_add(1 << 16)
}

impl ArraySource for ZarrSource {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn layout(&self, array: usize) -> Result<Arc<Layout>> {
        let place = self.place(array)?;
        let path = &self.schema.arrays[array].path;
        place.layout.clone().map_err(|e| e.at(format!("'{}': array '{path}'", self.tree.name())))
    }

    fn store(&self) -> &Arc<dyn RangedRead> {
        &self.store
    }

    fn object_chunks(&self) -> Option<&dyn ObjectChunks> {
        Some(self)
    }

    fn library(&self) -> Option<&dyn LibraryReader> {
        Some(self)
    }
}

impl ObjectChunks for ZarrSource {
    fn fetch_chunk(&self, array: usize, number: u64, most: u64, out: &mut Vec<u8>) -> Result<bool> {
        let (place, chunks, layout) = self.chunks(array)?;
        let limit = stored_limit(layout.chunk_bytes);
        self.fetch(place, chunks, number, limit.min(most), out).map_err(|e| {
            // What is too long for the memory at hand is not wrong by that.
            let is_ours = most < limit && e.message().contains(TOO_LONG);
            if is_ours { Error::new(ErrorKind::MemoryLimit, e.message()).hint(MORE_MEMORY) } else { e }
        })
    }

    fn will_need_chunks(&self, array: usize, numbers: &[u64]) {
        let Ok((place, chunks, layout)) = self.chunks(array) else { return };
        let positions: Vec<Vec<u64>> = numbers.iter().map(|&n| chunks.grid.position(n)).collect();
        let mut indexes: Vec<Want> = positions
            .iter()
            .filter_map(|position| self.shards.first_index(chunks, position))
            .map(|(key, span)| Want { key, span })
            .collect();
        indexes.dedup();
        if !indexes.is_empty() {
            self.tree.will_need(&indexes);
        }
        let limit = stored_limit(layout.chunk_bytes);
        let mut wants = Vec::with_capacity(positions.len());
        for position in &positions {
            // What fails here fails again, and is told, when the chunk is fetched.
            let Ok(Some(location)) = self.shards.locate(place.node, chunks, position) else {
                continue;
            };
            let span = location.range.map_or_else(|| self.whole(limit), Span::Range);
            wants.push(Want { key: location.key, span });
        }
        // Shards that are decoded as a whole are here by now.
        if chunks.grid.around.filters.is_empty() {
            self.tree.will_need(&wants);
        }
    }
}

impl LibraryReader for ZarrSource {
    fn read_library(&self, array: usize, _bx: &Bx, _out: &mut [u8]) -> Result<()> {
        let path = &self.schema.arrays[array].path;
        Err(Error::new(ErrorKind::Internal, format!("'{path}' is read without a library")))
    }

    fn read_library_strings(&self, array: usize, bx: &Bx) -> Result<Texts> {
        let (_, chunks, layout) = self.chunks(array)?;
        if !build::is_var_text(layout) {
            let path = &self.schema.arrays[array].path;
            return Err(Error::new(ErrorKind::Internal, format!("'{path}' has no texts of any length")));
        }
        let count = bx.shape.iter().try_fold(1_u64, |n, &len| n.checked_mul(len)).filter(|&n| n <= MAX_TEXTS);
        let Some(count) = count else {
            let message = format!("a block of shape {:?} has more than {MAX_TEXTS} texts", bx.shape);
            return Err(Error::new(ErrorKind::MemoryLimit, message).hint("ask for fewer at once"));
        };
        if bx.is_empty() {
            return Ok(Texts::new());
        }
        let mut out = PlacedTexts::new(count as usize);
        let shape = &layout.chunk_shape;
        let first: Vec<u64> = bx.start.iter().zip(shape).map(|(s, c)| s / c).collect();
        let counts: Vec<u64> = (0..bx.rank()).map(|d| (bx.end(d) - 1) / shape[d] - first[d] + 1).collect();
        let grid = Bx::new(first.clone(), counts);
        let mut position = first;
        loop {
            let number = position.iter().zip(&chunks.grid.counts).fold(0, |n, (p, c)| n * c + p);
            self.put_texts(array, number, &position, bx, &mut out)?;
            if !advance(&mut position, &grid) {
                return Ok(out.finish(""));
            }
        }
    }
}
