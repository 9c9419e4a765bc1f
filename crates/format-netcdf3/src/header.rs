//! The header as it is written: lists of dimensions, attributes and variables.
//!
//! Every count is held against the bytes that are left before anything is made of it. What the
//! dimensions and sizes mean is checked in [`crate::geometry`].

use sieva_format::Warnings;
use sieva_store::RangedRead;
use sieva_types::{Error, ErrorKind, Result};

use crate::cursor::Cursor;
use crate::nctype::NcType;

const DIMENSION_TAG: u32 = 10;
const VARIABLE_TAG: u32 = 11;
const ATTRIBUTE_TAG: u32 = 12;

/// The most dimensions of one variable, as in the netCDF library.
const MAX_RANK: u64 = 1024;

/// The most dimensions, and the most variables, of a file: eight times what the netCDF library promises.
pub(crate) const MAX_ENTRIES: usize = 1 << 16;

/// The version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Classic,
    Offset64,
    Cdf5,
}

impl Version {
    /// The version that the first bytes of a file tell.
    pub(crate) fn from_magic(magic: [u8; 4]) -> Option<Self> {
        match &magic {
            b"CDF\x01" => Some(Self::Classic),
            b"CDF\x02" => Some(Self::Offset64),
            b"CDF\x05" => Some(Self::Cdf5),
            _ => None,
        }
    }

    /// The name of the format.
    pub(crate) fn format(self) -> &'static str {
        match self {
            Self::Classic => "netCDF-3 classic",
            Self::Offset64 => "netCDF-3 64-bit offset",
            Self::Cdf5 => "netCDF-3 CDF-5",
        }
    }

    /// Bytes of a count.
    fn count_bytes(self) -> u64 {
        if self == Self::Cdf5 { 8 } else { 4 }
    }

    /// Bytes of an offset.
    fn offset_bytes(self) -> u64 {
        if self == Self::Classic { 4 } else { 8 }
    }
}

/// A dimension. Length 0 marks the record dimension.
#[derive(Debug)]
pub(crate) struct RawDim {
    pub(crate) name: String,
    pub(crate) len: u64,
}

/// An attribute and its values as they are stored.
#[derive(Debug)]
pub(crate) struct RawAttr {
    pub(crate) name: String,
    pub(crate) xtype: NcType,
    pub(crate) bytes: Vec<u8>,
}

/// A variable. Its dimension ids are those of the header's list.
#[derive(Debug)]
pub(crate) struct RawVar {
    pub(crate) name: String,
    pub(crate) dims: Vec<usize>,
    pub(crate) attrs: Vec<RawAttr>,
    pub(crate) xtype: NcType,
    pub(crate) begin: u64,
}

/// The whole header.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) version: Version,
    /// Number of records; `None` means as many as the file holds.
    pub(crate) records: Option<u64>,
    pub(crate) dims: Vec<RawDim>,
    pub(crate) attrs: Vec<RawAttr>,
    pub(crate) vars: Vec<RawVar>,
    /// Offset of the first byte after the header.
    pub(crate) end: u64,
}

/// Reads the header of `store`. What was not as it should be but could be read is said in `warnings`.
pub(crate) fn parse(store: &dyn RangedRead, warnings: &mut Warnings) -> Result<Header> {
    let mut cursor = Cursor::new(store);
    let version = version(&mut cursor)?;
    let mut parser = Parser { cursor, version, warnings };
    let records = parser.count("the number of records")?;
    let streaming = if version == Version::Cdf5 { u64::MAX } else { u64::from(u32::MAX) };
    let dims = parser.dimensions()?;
    let attrs = parser.attributes("the file")?;
    let vars = parser.variables(dims.len())?;
    let end = parser.cursor.position();
    Ok(Header { version, records: (records != streaming).then_some(records), dims, attrs, vars, end })
}

fn version(cursor: &mut Cursor) -> Result<Version> {
    let unknown = |found: String| {
        Error::new(
            ErrorKind::UnknownFormat,
            format!("not a netCDF classic file: {found}, expected CDF and 1, 2 or 5"),
        )
    };
    if cursor.remaining() < 4 {
        return Err(unknown(format!("it has {} bytes", cursor.remaining())));
    }
    let magic = cursor.u32("the magic number")?.to_be_bytes();
    Version::from_magic(magic).ok_or_else(|| unknown(format!("it begins with \"{}\"", magic.escape_ascii())))
}

/// Lets a number of entries pass that is not too large.
pub(crate) fn few(n: u64, what: &str) -> Result<u64> {
    if n <= MAX_ENTRIES as u64 {
        return Ok(n);
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        format!("the file has {n} {what}, at most {MAX_ENTRIES} are supported"),
    ))
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    version: Version,
    warnings: &'a mut Warnings,
}

impl Parser<'_> {
    fn count(&mut self, what: &str) -> Result<u64> {
        match self.version.count_bytes() {
            8 => self.cursor.u64(what),
            _ => self.cursor.u32(what).map(u64::from),
        }
    }

    fn offset(&mut self, what: &str) -> Result<u64> {
        match self.version.offset_bytes() {
            8 => self.cursor.u64(what),
            _ => self.cursor.u32(what).map(u64::from),
        }
    }

    /// A count of things of at least `bytes` bytes each, which must have room in what is left.
    fn bounded(&mut self, what: &str, bytes: u64) -> Result<u64> {
        let at = self.cursor.position();
        let n = self.count(what)?;
        let most = self.cursor.remaining() / bytes;
        if n > most {
            return Err(Error::corrupt(format!(
                "{what} at offset {at} is {n}, the file has room for {most} at most"
            )));
        }
        Ok(n)
    }

    /// The head of the list of `what`: its number of entries, of at least `bytes` bytes each.
    fn list(&mut self, tag: u32, what: &str, bytes: u64) -> Result<u64> {
        let at = self.cursor.position();
        let found = self.cursor.u32(&format!("the tag of the {what}"))?;
        let n = self.bounded(&format!("the number of {what}"), bytes)?;
        if found == tag || (found == 0 && n == 0) {
            return Ok(n);
        }
        Err(Error::corrupt(match found {
            0 => format!("the list of {what} at offset {at} is marked absent but counts {n}"),
            _ => format!("the list of {what} at offset {at} has tag {found:#x}, expected {tag:#x} or 0"),
        }))
    }

    /// `len` bytes and the padding after them. Its content is not looked at: old libraries did not zero it.
    fn padded(&mut self, len: u64, what: &str) -> Result<Vec<u8>> {
        let bytes = self.cursor.bytes(len, what)?.to_vec();
        self.cursor.bytes(len.wrapping_neg() % 4, "padding")?;
        Ok(bytes)
    }

    fn name(&mut self) -> Result<String> {
        let at = self.cursor.position();
        let len = self.bounded("the length of its name", 1)?;
        let bytes = self.padded(len, "its name")?;
        // Some writers count the NUL that ends a string in C.
        let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |i| i + 1);
        let name = String::from_utf8_lossy(&bytes[..end]).into_owned();
        if name.is_empty() {
            self.warnings.push(|| format!("the name at offset {at} is empty"));
        } else if name.as_bytes() != &bytes[..end] {
            self.warnings.push(|| format!("the name at offset {at} is not UTF-8: read as '{name}'"));
        }
        Ok(name)
    }

    fn xtype(&mut self) -> Result<NcType> {
        let at = self.cursor.position();
        let code = self.cursor.u32("its type")?;
        let Some(xtype) = NcType::from_code(code) else {
            return Err(Error::corrupt(format!(
                "type {code} at offset {at} does not exist, expected 1 to 11"
            )));
        };
        if xtype.is_cdf5() && self.version != Version::Cdf5 {
            self.warnings.push(|| {
                format!("type {code} at offset {at} belongs to CDF-5, not to {}", self.version.format())
            });
        }
        Ok(xtype)
    }

    fn dimensions(&mut self) -> Result<Vec<RawDim>> {
        let n = self
            .list(DIMENSION_TAG, "dimensions", 2 * self.version.count_bytes())
            .and_then(|n| few(n, "dimensions"))?;
        let mut dims = Vec::new();
        for i in 0..n {
            let name = self.name().map_err(|e| e.at(format!("dimension {i}")))?;
            let len = self.count("its length").map_err(|e| e.at(format!("dimension {i} ('{name}')")))?;
            dims.push(RawDim { name, len });
        }
        Ok(dims)
    }

    fn attributes(&mut self, owner: &str) -> Result<Vec<RawAttr>> {
        let n = self.list(ATTRIBUTE_TAG, "attributes", 2 * self.version.count_bytes() + 4);
        let n = n.map_err(|e| e.at(owner))?;
        let mut attrs = Vec::new();
        for i in 0..n {
            attrs.push(self.attribute().map_err(|e| e.at(format!("attribute {i} of {owner}")))?);
        }
        Ok(attrs)
    }

    fn attribute(&mut self) -> Result<RawAttr> {
        let name = self.name()?;
        let xtype = self.xtype()?;
        let size = xtype.size() as u64;
        let n = self.bounded("the number of its values", size)?;
        let bytes = self.padded(n * size, "its values")?;
        Ok(RawAttr { name, xtype, bytes })
    }

    fn variables(&mut self, dims: usize) -> Result<Vec<RawVar>> {
        // Name, dimensions, attributes (tag and count), type, vsize, begin.
        let bytes = 4 * self.version.count_bytes() + 8 + self.version.offset_bytes();
        let n = self.list(VARIABLE_TAG, "variables", bytes).and_then(|n| few(n, "variables"))?;
        let mut vars = Vec::new();
        for i in 0..n {
            let name = self.name().map_err(|e| e.at(format!("variable {i}")))?;
            let owner = format!("variable '{name}'");
            let ids = self.dimension_ids(dims).map_err(|e| e.at(&owner))?;
            let attrs = self.attributes(&owner)?;
            let (xtype, begin) = self.place().map_err(|e| e.at(&owner))?;
            vars.push(RawVar { name, dims: ids, attrs, xtype, begin });
        }
        Ok(vars)
    }

    fn dimension_ids(&mut self, dims: usize) -> Result<Vec<usize>> {
        let rank = self.bounded("its number of dimensions", self.version.count_bytes())?;
        if rank > MAX_RANK {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("it has {rank} dimensions, at most {MAX_RANK} are supported"),
            ));
        }
        let mut ids = Vec::new();
        for _ in 0..rank {
            let at = self.cursor.position();
            let id = self.count("a dimension id")?;
            match usize::try_from(id) {
                Ok(id) if id < dims => ids.push(id),
                _ => {
                    return Err(Error::corrupt(format!(
                        "dimension id {id} at offset {at}, the file has {dims} dimensions"
                    )));
                }
            }
        }
        Ok(ids)
    }

    fn place(&mut self) -> Result<(NcType, u64)> {
        let xtype = self.xtype()?;
        self.count("its size")?;
        Ok((xtype, self.offset("its begin")?))
    }
}
