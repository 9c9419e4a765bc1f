//! A tree in memory, which counts what is asked of it, and the simplest way to read arrays.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sieva_format::ArraySource;
use sieva_format::buffer::{Buffer, swap_bytes};
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_format_zarr::{ZarrOptions, ZarrSource};
use sieva_store::{Counters, Entry, ObjectTree, RangedRead, Span, Want};
use sieva_types::{Bx, DType, Error, Result, Texts};

/// Objects by key.
#[derive(Default)]
pub struct MemoryTree {
    pub objects: Mutex<BTreeMap<String, Vec<u8>>>,
    /// What was asked for, and what was announced.
    pub asked: Mutex<Vec<(String, Span)>>,
    pub announced: Mutex<Vec<Want>>,
    pub is_remote: bool,
    pub cannot_list: bool,
    pub counters: Counters,
}

impl MemoryTree {
    pub fn new(objects: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Self { objects: Mutex::new(objects.into_iter().collect()), ..Self::default() }
    }

    pub fn of(objects: &[(&str, &str)]) -> Arc<Self> {
        Arc::new(Self::new(objects.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec()))))
    }
}

impl ObjectTree for MemoryTree {
    fn get(&self, key: &str, span: &Span, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        self.asked.lock().unwrap().push((key.to_owned(), span.clone()));
        let objects = self.objects.lock().unwrap();
        let Some(bytes) = objects.get(key) else { return Ok(false) };
        let range = match span {
            Span::All => 0..bytes.len(),
            Span::Range(r) => usize::try_from(r.start).unwrap()..usize::try_from(r.end).unwrap(),
            Span::Last(n) => bytes.len().saturating_sub(usize::try_from(*n).unwrap())..bytes.len(),
        };
        out.extend(bytes.get(range).ok_or_else(|| Error::corrupt(format!("'{key}' is cut off")))?);
        Ok(true)
    }

    fn list(&self, prefix: &str) -> Result<Option<Vec<Entry>>> {
        let objects = self.objects.lock().unwrap();
        let entry = |(key, bytes): (&String, &Vec<u8>)| Entry {
            key: key.clone(),
            size: bytes.len() as u64,
            version: String::new(),
        };
        Ok((!self.cannot_list)
            .then(|| objects.iter().filter(|(k, _)| k.starts_with(prefix)).map(entry).collect()))
    }

    fn open(&self, _key: &str) -> Result<Option<Box<dyn RangedRead>>> {
        panic!("the reader asks for spans only")
    }

    fn will_need(&self, wants: &[Want]) {
        self.announced.lock().unwrap().extend_from_slice(wants);
    }

    fn is_remote(&self) -> bool {
        self.is_remote
    }

    fn name(&self) -> &str {
        "memory"
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

pub fn open(tree: Arc<dyn ObjectTree>) -> Result<Arc<ZarrSource>> {
    ZarrSource::open(tree, &ZarrOptions::default()).map(Arc::new)
}

pub fn reader(source: &Arc<ZarrSource>, array: usize) -> Result<BlockReader> {
    BlockReader::new(
        Arc::clone(source) as Arc<dyn ArraySource>,
        array,
        Arc::new(ChunkCache::new(1 << 20)),
        1 << 28,
    )
}

/// The numbers of a box, little-endian.
pub fn numbers(source: &Arc<ZarrSource>, array: usize, bx: &Bx) -> Result<Vec<u8>> {
    let reader = reader(source, array)?;
    let mut out = Buffer::default();
    reader.read(bx, &mut out, &mut Workspace::default())?;
    let mut bytes = out.bytes_mut().to_vec();
    if cfg!(target_endian = "big") {
        swap_bytes(&mut bytes, reader.element_dtype().size());
    }
    Ok(bytes)
}

pub fn texts(source: &Arc<ZarrSource>, array: usize, bx: &Bx) -> Result<Texts> {
    reader(source, array)?.read_texts(bx, &mut Workspace::default())
}

/// Reads everything, as whoever opens a foreign tree would.
pub fn read_all(source: &Arc<ZarrSource>) -> Result<()> {
    for (i, array) in source.schema().arrays.iter().enumerate() {
        let bx = Bx::whole(&array.shape);
        if array.dtype == DType::Str {
            texts(source, i, &bx).map(drop)
        } else {
            numbers(source, i, &bx).map(drop)
        }?;
    }
    Ok(())
}
