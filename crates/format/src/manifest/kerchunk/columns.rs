//! The tables of fsspec's Parquet references, as plain columns: row n of an array's table is its chunk number n in C
//! order of the grid.
//!
//! In files: `.zmetadata` holds all metadata and `record_size`; `ARRAY/refs.K.parq` has the rows from
//! `K * record_size` on, in the columns `path`, `offset`, `size` and `raw`; the last is filled up with nulls.
//! Reference: fsspec, `LazyReferenceMapper`.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use sieva_types::{Error, ErrorKind, Result};

use super::{Reference, References};

/// More rows than this are refused, of one array.
const MAX_ROWS: u64 = 10_000_000;

/// The chunks of one array.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Where a chunk lies; `None` for one that is absent or has its bytes in `raw`.
    pub path: Vec<Option<Arc<str>>>,
    /// Offset of its first byte.
    pub offset: Vec<i64>,
    /// Its bytes there; 0 means all of the object.
    pub size: Vec<i64>,
    /// Its bytes.
    pub raw: Vec<Option<Vec<u8>>>,
}

/// A reference set as metadata and tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// By key: the texts of `.zgroup`, `.zattrs`, `.zarray`, which are JSON but for NaN.
    pub metadata: BTreeMap<String, String>,
    /// By path of the array.
    pub arrays: BTreeMap<String, Columns>,
}

/// Keys of metadata, by their last part.
fn is_metadata(key: &str) -> bool {
    matches!(key.rsplit('/').next(), Some(".zgroup" | ".zattrs" | ".zarray" | ".zmetadata"))
}

fn senseless(array: &str, what: impl std::fmt::Display) -> Error {
    Error::corrupt(format!("reference set: '{array}': {what}"))
}

/// The grid of an array from its `.zarray`: chunks along each dimension, what stands between the parts of a key, and
/// the number of chunks.
struct Grid {
    lengths: Vec<u64>,
    separator: String,
    rows: u64,
}

impl Grid {
    fn new(array: &str, zarray: &str) -> Result<Self> {
        let meta: Value = serde_json::from_str(zarray).map_err(|e| senseless(array, e))?;
        let numbers = |name: &str| -> Option<Vec<u64>> {
            meta.get(name)?.as_array()?.iter().map(Value::as_u64).collect()
        };
        let (Some(shape), Some(chunks)) = (numbers("shape"), numbers("chunks")) else {
            return Err(senseless(array, "no shape or no chunks in .zarray"));
        };
        if shape.len() != chunks.len() || chunks.contains(&0) {
            return Err(senseless(array, format!("chunks {chunks:?} of shape {shape:?}")));
        }
        let lengths: Vec<u64> = shape.iter().zip(&chunks).map(|(n, &c)| n.div_ceil(c)).collect();
        let rows = lengths.iter().try_fold(1_u64, |n, &l| n.checked_mul(l)).filter(|&n| n <= MAX_ROWS);
        let rows = rows.ok_or_else(|| {
            let message = format!("reference set: '{array}' has more than {MAX_ROWS} chunks");
            Error::new(ErrorKind::Unsupported, message)
        })?;
        let separator = meta.get("dimension_separator").and_then(Value::as_str).unwrap_or(".").to_owned();
        Ok(Self { lengths, separator, rows })
    }

    fn row(&self, key: &str) -> Option<usize> {
        if self.lengths.is_empty() {
            return (key == "0").then_some(0);
        }
        let parts: Option<Vec<u64>> = key.split(self.separator.as_str()).map(|p| p.parse().ok()).collect();
        let parts = parts.filter(|p| p.len() == self.lengths.len())?;
        if parts.iter().zip(&self.lengths).any(|(i, n)| i >= n) {
            return None;
        }
        usize::try_from(parts.iter().zip(&self.lengths).fold(0, |row, (i, n)| row * n + i)).ok()
    }

    fn key(&self, mut row: u64) -> String {
        if self.lengths.is_empty() {
            return "0".into();
        }
        let mut parts = Vec::with_capacity(self.lengths.len());
        for &n in self.lengths.iter().rev() {
            parts.push((row % n.max(1)).to_string());
            row /= n.max(1);
        }
        parts.reverse();
        parts.join(&self.separator)
    }
}

impl References {
    /// As metadata and tables.
    ///
    /// # Errors
    /// `corrupt-file` for a key that is neither metadata nor a chunk of an array; `unsupported` for an array of more
    /// than ten million chunks.
    pub fn to_tables(&self) -> Result<Tables> {
        let mut tables = Tables::default();
        let mut grids = BTreeMap::new();
        for (key, reference) in self.entries.iter().filter(|(key, _)| is_metadata(key)) {
            let Reference::Inline(bytes) = reference else {
                return Err(senseless(key, "metadata in another file"));
            };
            let text = std::str::from_utf8(bytes).map_err(|e| senseless(key, e))?;
            if let Some(array) = key.strip_suffix("/.zarray") {
                let grid = Grid::new(array, text)?;
                tables.arrays.insert(array.to_owned(), Columns::empty(grid.rows as usize));
                grids.insert(array, grid);
            }
            tables.metadata.insert(key.clone(), text.to_owned());
        }
        for (key, reference) in self.entries.iter().filter(|(key, _)| !is_metadata(key)) {
            // With `/` between the parts of a key, the array is the longest path that is one.
            let ends = key.match_indices('/').map(|(end, _)| end).rev();
            let found = ends.into_iter().find_map(|end| {
                let row = grids.get(&key[..end])?.row(&key[end + 1..])?;
                Some((&key[..end], row))
            });
            let (array, row) = found.ok_or_else(|| senseless(key, "no chunk of an array"))?;
            if let Some(columns) = tables.arrays.get_mut(array) {
                columns.set(row, reference)?;
            }
        }
        Ok(tables)
    }

    /// From metadata and tables; rows beyond an array's grid, with which the last file is filled up, are left aside.
    ///
    /// # Errors
    /// `corrupt-file` where columns are of different lengths, ranges are none, or a table has no metadata.
    pub fn from_tables(tables: &Tables) -> Result<Self> {
        let inline = |text: &String| Reference::Inline(text.clone().into_bytes());
        let mut entries: BTreeMap<_, _> =
            tables.metadata.iter().map(|(k, v)| (k.clone(), inline(v))).collect();
        for (array, columns) in &tables.arrays {
            let zarray = tables.metadata.get(&format!("{array}/.zarray"));
            let grid = Grid::new(array, zarray.ok_or_else(|| senseless(array, "no .zarray"))?)?;
            let n = columns.path.len();
            if [columns.offset.len(), columns.size.len(), columns.raw.len()] != [n; 3] {
                return Err(senseless(array, "columns of different lengths"));
            }
            for row in 0..n.min(grid.rows as usize) {
                if let Some(reference) = columns.get(row).map_err(|what| senseless(array, what))? {
                    entries.insert(format!("{array}/{}", grid.key(row as u64)), reference);
                }
            }
        }
        Ok(Self { entries })
    }
}

impl Columns {
    fn empty(rows: usize) -> Self {
        Self { path: vec![None; rows], offset: vec![0; rows], size: vec![0; rows], raw: vec![None; rows] }
    }

    fn set(&mut self, row: usize, reference: &Reference) -> Result<()> {
        match reference {
            Reference::Inline(bytes) => self.raw[row] = Some(bytes.clone()),
            Reference::Whole { url } => self.path[row] = Some(Arc::clone(url)),
            Reference::Range { url, offset, len } => {
                let (Ok(offset), Ok(len)) = (i64::try_from(*offset), i64::try_from(*len)) else {
                    return Err(senseless(url, "a range beyond 63 bits"));
                };
                self.path[row] = Some(Arc::clone(url));
                (self.offset[row], self.size[row]) = (offset, len);
            }
        }
        Ok(())
    }

    fn get(&self, row: usize) -> std::result::Result<Option<Reference>, String> {
        let (offset, size) = (self.offset[row], self.size[row]);
        Ok(match (&self.raw[row], &self.path[row]) {
            (Some(bytes), _) => Some(Reference::Inline(bytes.clone())),
            (None, None) => None,
            (None, Some(url)) if size == 0 => Some(Reference::Whole { url: Arc::clone(url) }),
            (None, Some(url)) => match (u64::try_from(offset), u64::try_from(size)) {
                (Ok(offset), Ok(len)) => Some(Reference::Range { url: Arc::clone(url), offset, len }),
                _ => return Err(format!("range {offset}, {size} is none")),
            },
        })
    }
}
