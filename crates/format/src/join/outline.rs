//! What of one file decides how it fits to others: its schema without what may differ, and its coordinates' values.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use sieva_types::{Buffer, Bx, DType, Result, Texts};

use super::unpack::Unpack;
use crate::ArraySource;
use crate::decoding::Number;
use crate::read::{BlockReader, ChunkCache, Workspace};
use crate::schema::{ArrayInfo, AttrValue, Schema, attr};

/// Coordinates of more values than this are not compared, and nothing is joined by them.
const MAX_VALUES: u64 = 1 << 24;
/// Bytes that reading them may take: whole chunks are decoded for few values.
const MEMORY: u64 = 1 << 28;

/// The values of a coordinate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Values {
    /// Elements of a numeric type, in native byte order.
    Numbers(DType, Arc<[u8]>),
    /// Texts.
    Texts(Arc<Texts>),
}

impl Values {
    /// Whether values are the same, whatever types hold them. A missing one is the same as another.
    pub(crate) fn same(&self, other: &Self) -> bool {
        if self == other {
            return true;
        }
        match (self, other) {
            (Self::Numbers(..), Self::Numbers(..)) => {
                self.len() == other.len() && (0..self.len()).all(|i| self.same_at(other, i))
            }
            _ => false,
        }
    }

    /// Whether value `i` is.
    pub(crate) fn same_at(&self, other: &Self, i: usize) -> bool {
        match (self.exact(i), other.exact(i)) {
            (Some(Number::Int(a)), Some(Number::Int(b))) => a == b,
            (Some(Number::Float(a)), Some(Number::Float(b))) => a == b || (a.is_nan() && b.is_nan()),
            (Some(Number::Int(i)), Some(Number::Float(x)))
            | (Some(Number::Float(x)), Some(Number::Int(i))) => i as f64 == x && x as i128 == i,
            (a, b) => a.is_none() && b.is_none(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Numbers(DType::F16, bytes) => bytes.len() / DType::F32.size(),
            Self::Numbers(dtype, bytes) => bytes.len() / dtype.size().max(1),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// Value `i` as the number that it is.
    fn exact(&self, i: usize) -> Option<Number> {
        let Self::Numbers(dtype, bytes) = self else { return None };
        let eight = || bytes.get(i * 8..(i + 1) * 8)?.try_into().ok();
        match dtype {
            DType::I64 => Some(Number::Int(i64::from_ne_bytes(eight()?).into())),
            DType::U64 => Some(Number::Int(u64::from_ne_bytes(eight()?).into())),
            _ => self.number(i).map(Number::Float),
        }
    }

    /// Value `i` as a number, for putting files in order.
    pub(crate) fn number(&self, i: usize) -> Option<f64> {
        let Self::Numbers(dtype, bytes) = self else { return None };
        macro_rules! at {
            ($t:ty) => {{
                let size = size_of::<$t>();
                let bytes = bytes.get(i * size..(i + 1) * size)?;
                <$t>::from_ne_bytes(bytes.try_into().ok()?) as f64
            }};
        }
        Some(match dtype {
            DType::I8 => at!(i8),
            DType::I16 => at!(i16),
            DType::I32 => at!(i32),
            DType::I64 => at!(i64),
            DType::U8 | DType::Bool => at!(u8),
            DType::U16 => at!(u16),
            DType::U32 => at!(u32),
            DType::U64 => at!(u64),
            DType::F16 | DType::F32 => at!(f32),
            DType::F64 => at!(f64),
            DType::Str => return None,
        })
    }
}

/// One file as others see it.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    /// Shared by the files that differ in nothing but lengths and coordinate values.
    pub schema: Arc<Schema>,
    /// The length of each of the schema's dimensions in this file.
    pub lens: Vec<u64>,
    /// The values of each dimension's coordinate, where it has one.
    pub coords: Vec<Option<Values>>,
    /// Bytes of the file.
    pub size: u64,
    /// What changes when the file does.
    pub version: String,
    /// Whether it is behind a network.
    pub is_remote: bool,
}

impl Outline {
    pub(crate) fn dim(&self, name: &str) -> Option<usize> {
        self.schema.dims.iter().position(|d| d.path == name)
    }

    /// The shape of an array in this file.
    pub(crate) fn shape(&self, array: usize) -> Vec<u64> {
        self.schema.arrays[array].dims.iter().map(|&d| self.lens[d]).collect()
    }
}

/// Schemas and coordinates that files share are kept once: a thousand files of one model have one schema.
#[derive(Default)]
pub(crate) struct Interned {
    schemas: Mutex<HashMap<String, Vec<Shared>>>,
    values: Mutex<HashMap<u64, Values>>,
}

/// The schema of files that are alike.
struct Shared {
    /// The first of them in the order of the list, whose schema it is.
    file: usize,
    schema: Arc<Schema>,
}

impl Interned {
    /// The outline of an open file, number `file` of the list. Reads its coordinates.
    pub(crate) fn outline(&self, file: usize, source: &Arc<dyn ArraySource>) -> Result<Outline> {
        let schema = source.schema();
        let lens = schema.dims.iter().map(|d| d.len).collect();
        let coords = schema.dims.iter().map(|d| d.coordinate.map(|c| self.read(source, c)).transpose());
        let coords = coords.map(|v| v.map(Option::flatten)).collect::<Result<Vec<_>>>()?;
        let store = source.store();
        let (size, version, is_remote) = (store.len(), store.version(), store.is_remote());
        Ok(Outline { schema: self.schema(file, schema), lens, coords, size, version, is_remote })
    }

    /// An outline of before, of a file that has not changed since.
    pub(crate) fn adopted(&self, file: usize, outline: &Outline) -> Outline {
        let coords = outline.coords.iter().map(|values| values.clone().map(|values| self.shared(values)));
        Outline { schema: self.schema(file, &outline.schema), coords: coords.collect(), ..outline.clone() }
    }

    /// Files are opened by many threads, in any order. What is told of files that are alike (chunks, attributes) is
    /// said of the first in the list, so that each process that opens the same list has the same schema.
    fn schema(&self, file: usize, schema: &Schema) -> Arc<Schema> {
        let mut known = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        let alike = known.entry(paths(schema)).or_default();
        let Some(found) = alike.iter_mut().find(|s| same(&s.schema, schema)) else {
            let schema = Arc::new(schema.clone());
            alike.push(Shared { file, schema: Arc::clone(&schema) });
            return schema;
        };
        if file < found.file {
            *found = Shared { file, schema: Arc::new(schema.clone()) };
        }
        Arc::clone(&found.schema)
    }

    /// Gives each outline the schema of its kind's first file, once all files have been looked at.
    pub(crate) fn settle(self, outlines: &mut [Outline]) {
        let known = self.schemas.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut settled: HashMap<*const Schema, Arc<Schema>> = HashMap::new();
        for outline in outlines {
            let first = settled.entry(Arc::as_ptr(&outline.schema)).or_insert_with(|| {
                let alike = known.get(&paths(&outline.schema)).map_or(&[][..], Vec::as_slice);
                let shared = alike.iter().find(|s| same(&s.schema, &outline.schema));
                Arc::clone(shared.map_or(&outline.schema, |s| &s.schema))
            });
            outline.schema = Arc::clone(first);
        }
    }

    /// The values of a coordinate; `None` where there are too many.
    fn read(&self, source: &Arc<dyn ArraySource>, array: usize) -> Result<Option<Values>> {
        let info = &source.schema().arrays[array];
        let bx = Bx::whole(&info.shape);
        if bx.len() > MAX_VALUES {
            return Ok(None);
        }
        let reader = BlockReader::new(Arc::clone(source), array, Arc::new(ChunkCache::new(0)), MEMORY)?;
        let mut ws = Workspace::default();
        if info.dtype == DType::Str {
            return Ok(Some(Values::Texts(reader.read_texts(&bx, &mut ws)?.into())));
        }
        let mut buffer = Buffer::default();
        reader.read(&bx, &mut buffer, &mut ws)?;
        let values = if is_plain(info) {
            let dtype = if info.dtype.is_integer() { info.decoding.stored } else { reader.element_dtype() };
            Values::Numbers(dtype, buffer.bytes().into())
        } else {
            let unpack = Unpack { decoding: info.decoding.clone(), valid_range: false, times: None };
            let mut out = vec![0; bx.len() as usize * 8];
            unpack.apply(reader.element_dtype(), &buffer, &mut out);
            Values::Numbers(DType::F64, out.into())
        };
        Ok(Some(self.shared(values)))
    }

    fn shared(&self, values: Values) -> Values {
        use std::hash::{BuildHasher, Hash, Hasher};
        let Values::Numbers(dtype, bytes) = &values else { return values };
        let mut hasher = std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default().build_hasher();
        (dtype.name(), bytes).hash(&mut hasher);
        let mut known = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&hasher.finish()) {
            Some(found) if *found == values => found.clone(),
            _ => {
                known.insert(hasher.finish(), values.clone());
                values
            }
        }
    }
}

/// The arrays' paths, a line each.
fn paths(schema: &Schema) -> String {
    schema.arrays.iter().flat_map(|a| [a.path.as_str(), "\n"]).collect()
}

/// Whether an array's values are what is stored.
fn is_plain(info: &ArrayInfo) -> bool {
    info.decoding.packing.is_none() && info.decoding.missing.is_empty()
}

/// Whether two schemas differ in nothing that matters here but lengths. Attributes that say how values are to be
/// understood count; a history does not.
fn same(a: &Schema, b: &Schema) -> bool {
    let dims = a.dims.len() == b.dims.len()
        && a.dims.iter().zip(&b.dims).all(|(a, b)| (&a.path, a.coordinate) == (&b.path, b.coordinate));
    let array = |a: &ArrayInfo, b: &ArrayInfo| {
        (&a.path, a.dtype, &a.dims, &a.decoding) == (&b.path, b.dtype, &b.dims, &b.decoding)
            && ["units", "calendar", "bounds"].iter().all(|name| attr(&a.attrs, name) == attr(&b.attrs, name))
            && a.storage.chunk_shape.is_some() == b.storage.chunk_shape.is_some()
    };
    dims && a.format == b.format
        && a.arrays.len() == b.arrays.len()
        && a.arrays.iter().zip(&b.arrays).all(|(a, b)| array(a, b))
}

/// An attribute's text, or nothing.
pub(crate) fn text<'a>(info: &'a ArrayInfo, name: &str) -> &'a str {
    attr(&info.attrs, name).and_then(AttrValue::as_text).unwrap_or_default()
}
