//! The JSON of a replica: the group's, which is ours to believe, and the arrays', which is for other readers.
//!
//! The group's metadata carries a hash over its own text, so that not one digit of it can be wrong unnoticed.

use serde_json::{Map, Value, json};
use sieva_types::{DType, Error, ErrorKind, Result, checked_len};
use xxhash_rust::xxh3::xxh3_64;

use crate::place::Place;

use super::layout::{Layout, is_path_segment};
use super::{Column, files};

/// The file of a group's metadata.
const GROUP: &str = "zarr.json";
const FORMAT: &str = "sieva-sorted-replica";
const VERSION: u64 = 2;
/// The version whose files have no seals.
const UNSEALED: u64 = 1;
const CHECK: &str = "\"check\": \"";
const UNCHECKED: &str = "0000000000000000";
/// A group's metadata is a few kilobytes; what is larger than this is not read.
const LONGEST: u64 = 64 << 20;

/// What the group's metadata says.
#[derive(Clone, Debug)]
pub(super) struct Meta {
    pub layout: Layout,
    pub shape: Vec<u64>,
    /// Rows whose key is not NaN: all but the last ones.
    pub numbers: u64,
    pub columns: Vec<Column>,
    /// The directory of each column.
    pub paths: Vec<String>,
    /// crc32c of the elements of `fence`, which ties them to this build.
    pub fences: u32,
    /// The number that its files are sealed with; none of replicas of the version before.
    pub seal: Option<u64>,
    pub source: Map<String, Value>,
}

impl Meta {
    /// Number of rows.
    pub fn rows(&self) -> u64 {
        checked_len(&self.shape).unwrap_or(0)
    }

    /// The text of the group's `zarr.json`.
    pub fn to_text(&self) -> Result<String> {
        let columns: Vec<Value> = (self.columns.iter().zip(&self.paths))
            .map(|(c, path)| json!({"name": c.name, "dtype": c.dtype.name(), "path": path}))
            .collect();
        // "check" sorts before all other keys of ours, so that its first occurrence is this one.
        let ours = json!({
            "check": UNCHECKED, "format": FORMAT, "shape": self.shape,
            "version": if self.seal.is_some() { VERSION } else { UNSEALED },
            "seal": self.seal.map(|seal| format!("{seal:016x}")),
            "key": self.columns.first().map(|c| c.name.as_str()), "numbers": self.numbers,
            "chunk": self.layout.chunk, "shard": self.layout.shard, "fences": self.fences, "columns": columns,
        });
        let group = json!({
            "attributes": {"sieva": ours, "sieva_source": self.source},
            "node_type": "group", "zarr_format": 3,
        });
        let text = pretty(&group)?;
        let check = format!("{:016x}", xxh3_64(text.as_bytes()));
        Ok(text.replacen(&format!("{CHECK}{UNCHECKED}"), &format!("{CHECK}{check}"), 1))
    }

    /// Reads the group's metadata in `place`.
    ///
    /// # Errors
    /// `corrupt-index` for whatever it says that is not so.
    pub fn read(place: &Place) -> Result<Self> {
        let bytes = files::read_small(place, GROUP, LONGEST)?;
        Self::parse(&bytes).map_err(|what| {
            let name = place.name_of(GROUP);
            Error::new(
                ErrorKind::CorruptIndex,
                format!("'{name}' is not metadata of a sorted replica: {what}"),
            )
        })
    }

    fn parse(bytes: &[u8]) -> std::result::Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|e| e.to_string())?;
        verify(text)?;
        let mut group: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        let source = match group.pointer_mut("/attributes/sieva_source").map(Value::take) {
            Some(Value::Object(source)) => source,
            _ => return Err("no attributes of the source".into()),
        };
        let ours = group.pointer("/attributes/sieva").ok_or("no attributes of ours")?;
        let is_sealed = ours["version"] == VERSION;
        if ours["format"] != FORMAT || !(is_sealed || ours["version"] == UNSEALED) {
            return Err(format!("version {} of format {} is not known", ours["version"], ours["format"]));
        }
        let seal = ours["seal"].as_str().and_then(|text| u64::from_str_radix(text, 16).ok());
        if is_sealed && seal.is_none() {
            return Err(format!("'seal' is {}", ours["seal"]));
        }
        let number = |key: &str| ours[key].as_u64().ok_or_else(|| format!("no number '{key}'"));
        let list = |key: &str| ours[key].as_array().ok_or_else(|| format!("no list '{key}'"));
        let shape: Option<Vec<u64>> = list("shape")?.iter().map(Value::as_u64).collect();
        let (columns, paths) =
            list("columns")?.iter().map(column).collect::<Option<(Vec<_>, Vec<_>)>>().ok_or("bad columns")?;
        let meta = Self {
            layout: Layout::checked(number("chunk")?, number("shard")?).map_err(|e| e.to_string())?,
            shape: shape.ok_or("bad shape")?,
            numbers: number("numbers")?,
            fences: u32::try_from(number("fences")?).map_err(|e| e.to_string())?,
            seal: seal.filter(|_| is_sealed),
            columns,
            paths,
            source,
        };
        let rows = checked_len(&meta.shape).map_err(|e| e.to_string())?;
        let is_float = meta.columns.first().ok_or("no columns")?.dtype.is_float();
        if meta.numbers > rows || (meta.numbers < rows && !is_float) {
            return Err(format!("{} of {rows} keys are numbers", meta.numbers));
        }
        Ok(meta)
    }
}

/// The attribute "check" is the xxh3 of the text with zeros in its place.
fn verify(text: &str) -> std::result::Result<(), String> {
    let at = text.find(CHECK).ok_or("no check")? + CHECK.len();
    let check = text.get(at..at + UNCHECKED.len()).ok_or("no check")?;
    let mut unchecked = text.to_owned();
    unchecked.replace_range(at..at + UNCHECKED.len(), UNCHECKED);
    if format!("{:016x}", xxh3_64(unchecked.as_bytes())) == check {
        return Ok(());
    }
    Err("its text is not what was written".into())
}

fn column(value: &Value) -> Option<(Column, String)> {
    let (name, dtype) = (value["name"].as_str()?, dtype_of(value["dtype"].as_str()?)?);
    let path = value["path"].as_str().filter(|p| is_path_segment(p))?;
    Some((Column { name: name.to_owned(), dtype }, path.to_owned()))
}

fn dtype_of(name: &str) -> Option<DType> {
    use DType::{F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    [I8, I16, I32, I64, U8, U16, U32, U64, F32, F64].into_iter().find(|d| d.name() == name)
}

/// The text of an array's `zarr.json`: one dimension of `len` elements, sharded, with crc32c.
pub(super) fn array_text(layout: Layout, dtype: DType, len: u64, attributes: Value) -> Result<String> {
    let bytes = match dtype.size() {
        1 => json!({"name": "bytes"}),
        _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
    };
    let index = json!({"name": "bytes", "configuration": {"endian": "little"}});
    pretty(&json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": [len],
        "data_type": dtype.name(),
        "fill_value": if dtype.is_float() { json!(0.0) } else { json!(0) },
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [layout.shard_rows()]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [layout.chunk],
            "codecs": [bytes, {"name": "crc32c"}],
            "index_codecs": [index, {"name": "crc32c"}],
            "index_location": "end",
        }}],
        "attributes": attributes,
    }))
}

fn pretty(value: &Value) -> Result<String> {
    serde_json::to_string_pretty(value)
        .map_err(|e| Error::new(ErrorKind::Internal, format!("cannot write metadata: {e}")))
}
