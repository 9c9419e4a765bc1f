//! What is handed over to register a source.

use sieva_types::{Error, ErrorKind, Result};

use crate::value::Value;

/// Whether an object holds other objects or data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ObjectKind {
    /// A group; also the root of a source.
    Group,
    /// An array.
    Array,
}

impl ObjectKind {
    pub(crate) fn code(self) -> i64 {
        match self {
            Self::Group => 0,
            Self::Array => 1,
        }
    }

    pub(crate) fn from_code(code: i64) -> Result<Self> {
        match code {
            0 => Ok(Self::Group),
            1 => Ok(Self::Array),
            _ => Err(Error::new(ErrorKind::CorruptFile, format!("an object's kind is {code}, not 0 or 1"))),
        }
    }
}

/// A named value of an object.
pub type Attribute = (String, Value);

/// What is known of an array's values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrayStats {
    /// The least and the greatest value that is not missing, exactly; `None` where all are missing or nothing is known.
    pub range: Option<(Value, Value)>,
    /// Missing elements.
    pub missing: u64,
    /// All elements. Where `missing` equals it and it is not 0, no value can be found.
    pub count: u64,
    /// Anything else, as bytes that the catalog does not look into.
    pub blob: Option<Vec<u8>>,
}

/// One group or array of a source.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectRecord {
    /// Path in the source, without a leading slash; `""` is the source itself, its root group.
    pub path: String,
    /// Group or array.
    pub kind: ObjectKind,
    /// Element type as text; empty for a group.
    pub dtype: String,
    /// Shape; empty for a group and for a scalar.
    pub shape: Vec<u64>,
    /// Stored bytes, where known.
    pub stored_bytes: Option<u64>,
    /// Attributes of the file. Of a key that is there twice the last counts.
    pub attributes: Vec<Attribute>,
    /// Statistics of an array, where known.
    pub stats: Option<ArrayStats>,
}

impl ObjectRecord {
    /// A group.
    pub fn group(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            kind: ObjectKind::Group,
            dtype: String::new(),
            shape: Vec::new(),
            stored_bytes: None,
            attributes: Vec::new(),
            stats: None,
        }
    }

    /// An array.
    pub fn array(path: impl Into<String>, dtype: impl Into<String>, shape: &[u64]) -> Self {
        Self { kind: ObjectKind::Array, dtype: dtype.into(), shape: shape.to_vec(), ..Self::group(path) }
    }

    /// With an attribute more.
    #[must_use]
    pub fn attribute(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.push((key.into(), value.into()));
        self
    }

    /// With statistics.
    #[must_use]
    pub fn stats(mut self, stats: ArrayStats) -> Self {
        self.stats = Some(stats);
        self
    }

    /// Elements of an array, where their number fits.
    ///
    /// # Errors
    /// `arithmetic-overflow` where the shape holds more than 2^63 - 1.
    pub fn element_count(&self) -> Result<u64> {
        let product =
            self.shape.iter().try_fold(1u64, |n, &d| n.checked_mul(d)).filter(|&n| n <= i64::MAX as u64);
        let empty = self.shape.contains(&0);
        product.or(empty.then_some(0)).ok_or_else(|| {
            let message =
                format!("'{}' has the shape {:?}: more than 2^63 - 1 elements", self.path, self.shape);
            Error::new(ErrorKind::Overflow, message)
        })
    }
}

/// One source with all of its objects.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceRecord {
    /// Where it is: an absolute path or a URL. Unique.
    pub location: String,
    /// `HDF5`, `Zarr v3` ...; empty where it could not be told.
    pub format: String,
    /// Bytes.
    pub size: u64,
    /// What changes when the source does: time of modification, or tag.
    pub version: String,
    /// Why the source could not be read; `None`: it could.
    pub error: Option<String>,
    /// Groups and arrays in any order. Groups above them need not be named; the root is `""`.
    pub objects: Vec<ObjectRecord>,
    /// How the bytes of the arrays lie, as bytes that the catalog does not look into.
    pub manifest: Option<Vec<u8>>,
    /// Statistics of the whole source, as bytes that the catalog does not look into.
    pub statistics: Option<Vec<u8>>,
    /// Collections to put it into, made where they are not there.
    pub collections: Vec<String>,
}

impl SourceRecord {
    /// A source without objects.
    pub fn new(
        location: impl Into<String>,
        format: impl Into<String>,
        size: u64,
        version: impl Into<String>,
    ) -> Self {
        Self {
            location: location.into(),
            format: format.into(),
            size,
            version: version.into(),
            error: None,
            objects: Vec::new(),
            manifest: None,
            statistics: None,
            collections: Vec::new(),
        }
    }

    /// With an object more.
    #[must_use]
    pub fn object(mut self, object: ObjectRecord) -> Self {
        self.objects.push(object);
        self
    }
}
