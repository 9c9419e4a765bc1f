//! CephFS: the attribute `ceph.file.layout` of a file, as text:
//! `stripe_unit=65536 stripe_count=4 object_size=1048576 pool=data`.
//!
//! Stripes go by turns to `stripe_count` objects until those have `object_size` bytes each, then to the next ones (Ceph,
//! *File striping*). On which OSD an object lies is a hash over the map of the cluster, which a file system does not tell;
//! so each object stands for a server: what is one object is on one OSD, in one piece.

use sieva_types::Result;

use super::{Striping, wrong};

/// The layout that an attribute describes, of a file of `len` bytes.
///
/// # Errors
/// `invalid-value`, saying what is missing or impossible.
pub(super) fn parse(bytes: &[u8], len: u64) -> Result<Striping> {
    let text = std::str::from_utf8(bytes).map_err(|_| wrong("the attribute is no text".into()))?;
    let text = text.trim_end_matches('\0');
    let of = |key: &str| {
        let found = text.split_ascii_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let value = found.ok_or_else(|| wrong(format!("no {key}")))?;
        value.parse::<u64>().map_err(|_| wrong(format!("{key}: '{value}' is no number of bytes")))
    };
    let (unit, count, size) = (of("stripe_unit")?, of("stripe_count")?, of("object_size")?);
    // With one object at a time its stripes lie one after the other in it.
    let unit = if count == 1 && unit > 0 && size.is_multiple_of(unit) { size } else { unit };
    Striping::by_objects(unit, count, size, len, "object", "CephFS".into())
}
