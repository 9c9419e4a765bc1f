//! What a source says of itself: dimensions, arrays, groups, attributes.

use sieva_types::{DType, Error};

use crate::decoding::Decoding;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// One text.
    Text(String),
    /// Several texts.
    Texts(Vec<String>),
    /// Integers of any width (bool and enum included), with the stored type.
    Ints(DType, Vec<i128>),
    /// Floating-point numbers with the stored type.
    Floats(DType, Vec<f64>),
    /// Something that has no plain value (a reference, a compound), in words.
    Other(String),
}

impl AttrValue {
    /// The text, where it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(s) => Some(s),
            Self::Texts(v) if v.len() == 1 => Some(&v[0]),
            _ => None,
        }
    }

    /// The first number as float64, where it is numeric and not empty.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Ints(_, v) => v.first().map(|&i| i as f64),
            Self::Floats(_, v) => v.first().copied(),
            _ => None,
        }
    }
}

/// A name with its value, in the order of the file.
pub type Attr = (String, AttrValue);

/// The value of attribute `name` in `attrs`.
pub fn attr<'a>(attrs: &'a [Attr], name: &str) -> Option<&'a AttrValue> {
    attrs.iter().find(|(n, _)| n == name).map(|(_, v)| v)
}

/// A named dimension. Arrays that share it line up along it.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// Leaf name.
    pub name: String,
    /// Path with the group that defines it: `group/name`, without a leading slash.
    pub path: String,
    /// Length now.
    pub len: u64,
    /// Whether it may grow.
    pub unlimited: bool,
    /// Where its name comes from.
    pub naming: Naming,
    /// The 1-D coordinate array along it (index into [`Schema::arrays`]), where there is one.
    pub coordinate: Option<usize>,
}

impl Dimension {
    /// Whether something names it; else it is phony: arrays without names share it for its length alone.
    pub fn is_named(&self) -> bool {
        self.naming != Naming::Length
    }
}

/// Where the name of a dimension comes from. The codes are those of manifests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Naming {
    /// Nowhere: it was made up for the length.
    Length = 0,
    /// The file's own means: netCDF and Zarr dimensions, dimension scales, labels.
    #[default]
    File = 1,
    /// The caller, by `dims=`.
    Caller = 2,
    /// The attribute `DimensionNames`, as GPM files have it.
    DimensionNames = 3,
    /// StructMetadata.0 of HDF-EOS5.
    HdfEos = 4,
    /// The layout and the attribute `axisLabels` of openPMD.
    OpenPmd = 5,
    /// `axes`, `signal` and `AXISNAME_indices` of NeXus.
    Nexus = 6,
}

impl Naming {
    const ALL: [Naming; 7] = [
        Self::Length,
        Self::File,
        Self::Caller,
        Self::DimensionNames,
        Self::HdfEos,
        Self::OpenPmd,
        Self::Nexus,
    ];

    /// The naming of a code.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// What names it, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Length => "of equal length",
            Self::File => "named by the file",
            Self::Caller => "named by dims=",
            Self::DimensionNames => "named by DimensionNames (GPM)",
            Self::HdfEos => "named by StructMetadata.0 (HDF-EOS5)",
            Self::OpenPmd => "named by openPMD",
            Self::Nexus => "named by NeXus",
        }
    }
}

/// How and where an array's bytes are stored, for people (the physical storage descriptor).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StorageInfo {
    /// `contiguous`, `chunked`, `compact`, `record`, `virtual` or `external`.
    pub layout: &'static str,
    /// Chunk shape where it is chunked.
    pub chunk_shape: Option<Vec<u64>>,
    /// Names of the filters in the order of writing.
    pub filters: Vec<String>,
    /// The stored type as numpy writes it: `<f4`, `>i2`, `|S12`.
    pub stored_type: String,
    /// Bytes that the array takes in the file, where known.
    pub stored_bytes: Option<u64>,
    /// Offset of the first byte where it is contiguous.
    pub offset: Option<u64>,
}

/// One array.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayInfo {
    /// Path: `group/name`, a compound's member `group/name.member`; no leading slash.
    pub path: String,
    /// Stored element type ([`DType::Str`] for texts, char arrays included).
    pub dtype: DType,
    /// Its dimensions, outermost first (indices into [`Schema::dims`]).
    pub dims: Vec<usize>,
    /// Its shape, one entry per dimension.
    pub shape: Vec<u64>,
    /// Attributes in the order of the file.
    pub attrs: Vec<Attr>,
    /// Names of an enumeration's values.
    pub enum_names: Vec<(i128, String)>,
    /// How stored values become values (CF).
    pub decoding: Decoding,
    /// How it is stored.
    pub storage: StorageInfo,
    /// Auxiliary coordinates: arrays named by the CF `coordinates` attribute that exist.
    pub coordinates: Vec<usize>,
}

impl ArrayInfo {
    /// Leaf name: what follows the last `/`.
    pub fn leaf(&self) -> &str {
        leaf(&self.path)
    }
}

/// One group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupInfo {
    /// Path without a leading slash; empty for the root.
    pub path: String,
    /// Attributes in the order of the file.
    pub attrs: Vec<Attr>,
}

/// Everything a source says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    /// `HDF5`, `netCDF-4`, `netCDF-3 classic` ...
    pub format: String,
    /// Groups, the root first.
    pub groups: Vec<GroupInfo>,
    /// Dimensions.
    pub dims: Vec<Dimension>,
    /// Arrays in the order of the file.
    pub arrays: Vec<ArrayInfo>,
    /// Other paths (hard and soft links) of arrays: path and index in [`Schema::arrays`].
    pub aliases: Vec<(String, usize)>,
    /// What a path leads to that is no array here, with the reason: a link that is not followed, a type
    /// without plain values.
    pub left_out: Vec<(String, Error)>,
    /// What could not be understood and was left out or read otherwise, in words.
    pub warnings: Vec<String>,
}

impl Schema {
    /// The attributes of the root group.
    pub fn attrs(&self) -> &[Attr] {
        self.groups.first().map_or(&[], |g| &g.attrs)
    }

    /// The array of exactly this path.
    pub fn array(&self, path: &str) -> Option<usize> {
        self.arrays.iter().position(|a| a.path == path)
    }
}

/// What follows the last `/` of a path.
pub fn leaf(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
