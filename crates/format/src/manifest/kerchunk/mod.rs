//! Reference sets of kerchunk: a Zarr hierarchy whose chunks are byte ranges of other files.
//!
//! [`export`] turns a manifest into one that xarray, fsspec and zarr open; [`import`] reads one that anybody made, and
//! [`ReferenceTree`] is the tree of objects that a Zarr reader opens it by. [`columns`] gives and takes the tables of
//! fsspec's Parquet references; writing Parquet itself is left to the caller: the `parquet` crate (60.0, no feature
//! but zstd) takes 89 s to build and brings a second zstd, which pyarrow, present where such files are wanted, does
//! not.
//!
//! Specification: kerchunk documentation, "References specification", version 1.

mod base64;
pub mod columns;
mod data;
mod export;
mod import;
mod json;
mod tree;
mod zarr;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use export::{Exported, export};
pub use import::import;
pub use tree::{Opener, ReferenceTree};

/// What a key of the hierarchy leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// These bytes.
    Inline(Vec<u8>),
    /// A byte range of another object.
    Range {
        /// The object.
        url: Arc<str>,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
    /// All of another object.
    Whole {
        /// The object.
        url: Arc<str>,
    },
}

impl Reference {
    /// The other object, where there is one.
    pub fn url(&self) -> Option<&Arc<str>> {
        match self {
            Self::Inline(_) => None,
            Self::Range { url, .. } | Self::Whole { url } => Some(url),
        }
    }
}

/// A reference set: what each key of a Zarr hierarchy leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// By key: `.zgroup`, `TEMP/.zarray`, `TEMP/0.0.3`.
    pub entries: BTreeMap<String, Reference>,
}

impl References {
    /// As JSON of version 1, without templates.
    pub fn to_json(&self) -> String {
        let mut out = String::from("{\"version\":1,\"refs\":{");
        for (i, (key, reference)) in self.entries.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            json::text(&mut out, key);
            out.push(':');
            match reference {
                Reference::Inline(bytes) => json::text(&mut out, &inline_text(bytes)),
                Reference::Range { url, offset, len } => {
                    out.push('[');
                    json::text(&mut out, url);
                    out.push_str(&format!(",{offset},{len}]"));
                }
                Reference::Whole { url } => {
                    out.push('[');
                    json::text(&mut out, url);
                    out.push(']');
                }
            }
        }
        out.push_str("}}");
        out
    }
}

/// Bytes as the specification writes them: as they are where they are ASCII, else in base64.
fn inline_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.is_ascii() && !text.starts_with(base64::PREFIX) => text.to_owned(),
        _ => format!("{}{}", base64::PREFIX, base64::encode(bytes)),
    }
}
