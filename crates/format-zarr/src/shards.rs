//! Where a chunk lies: an object of its own, or a range of a shard that its index tells.
//!
//! An index holds offset and length of each inner chunk as 64-bit integers, both 2^64 - 1 for one never written
//! (Zarr v3, codec `sharding_indexed`, version 1.0). Offsets count from the start of the shard, also of one that is
//! a chunk of an outer shard.

use std::ops::Range;
use std::sync::Arc;

use sieva_format::filters::Scratch;
use sieva_store::{ObjectTree, Span};
use sieva_types::{Endian, Error, ErrorKind, Result};

use crate::build::Chunks;
use crate::grid::Level;
use crate::once::OnceCache;

/// Bytes of the checksum after an index.
const CHECKSUM_LEN: u64 = 4;
/// Bytes of an entry.
const ENTRY_LEN: u64 = 16;
/// The most bytes of a shard that can only be decoded as a whole.
const MAX_SHARD: usize = 256 << 20;
/// Memory that indexes of one source may take, and decoded shards.
const CACHE_BYTES: usize = 64 << 20;

/// Bytes of an object: all, or a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) key: String,
    pub(crate) range: Option<Range<u64>>,
}

/// The ranges of a shard's chunks within it, `None` for those never written.
type Index = Vec<Option<Range<u64>>>;
/// The array's node, the object's key and the positions of the shards within it.
type IndexKey = (u32, String, Vec<Vec<u64>>);

/// What is known of a source's shards, kept as memory allows.
pub(crate) struct Shards {
    tree: Arc<dyn ObjectTree>,
    /// An empty index is that of a shard never written.
    indexes: OnceCache<IndexKey, Index>,
    /// Shards behind codecs of their own, decoded.
    decoded: OnceCache<String, Option<Vec<u8>>>,
}

impl Shards {
    pub(crate) fn new(tree: Arc<dyn ObjectTree>) -> Self {
        Self { tree, indexes: OnceCache::new(CACHE_BYTES), decoded: OnceCache::new(CACHE_BYTES) }
    }

    /// Puts bytes of an object of the array into `out`; false where there is no such object.
    pub(crate) fn get(&self, chunks: &Chunks, key: &str, span: &Span, out: &mut Vec<u8>) -> Result<bool> {
        if chunks.grid.around.filters.is_empty() {
            return self.tree.get(key, span, out);
        }
        out.clear();
        let decoded = self.decoded.get(&key.to_owned(), || {
            let decoded = self.decode(chunks, key)?;
            let bytes = decoded.as_ref().map_or(0, Vec::len) + 64;
            Ok((decoded, bytes))
        })?;
        let Some(bytes) = &*decoded else { return Ok(false) };
        let len = bytes.len() as u64;
        let range = match span {
            Span::All => 0..len,
            Span::Range(range) => range.clone(),
            Span::Last(n) => len.saturating_sub(*n)..len,
        };
        let place = usize::try_from(range.start).ok().zip(usize::try_from(range.end).ok());
        let part = place.and_then(|(start, end)| bytes.get(start..end));
        let part =
            part.ok_or_else(|| Error::corrupt(format!("'{key}' is cut off: {range:?} of {len} bytes")))?;
        out.extend_from_slice(part);
        Ok(true)
    }

    /// A shard behind codecs of its own.
    fn decode(&self, chunks: &Chunks, key: &str) -> Result<Option<Vec<u8>>> {
        let mut stored = Vec::new();
        if !self.tree.get(key, &Span::Last(MAX_SHARD as u64 + 1), &mut stored)? {
            return Ok(None);
        }
        if stored.len() > MAX_SHARD {
            let message = format!("'{key}': a shard behind codecs of more than {MAX_SHARD} bytes");
            return Err(Error::new(ErrorKind::MemoryLimit, message)
                .hint("write shards without codecs around them: only then can their chunks be read alone"));
        }
        let decoded = chunks.grid.around.decode_unsized(&stored, MAX_SHARD, &mut Scratch::default());
        decoded.map(Some).map_err(|e| e.at(format!("'{key}'")))
    }

    /// Where the chunk at `position` of the grid lies; `None` where it was never written, as far as indexes tell.
    pub(crate) fn locate(&self, node: u32, chunks: &Chunks, position: &[u64]) -> Result<Option<Location>> {
        let (object, within) = chunks.grid.path(position);
        let key = chunks.keys.key(&object);
        let mut range: Option<Range<u64>> = None;
        for (depth, level) in chunks.grid.levels.iter().enumerate() {
            let index_key = (node, key.clone(), within[..depth].to_vec());
            let make = || {
                let index = self.read_index(chunks, &key, range.as_ref(), level)?;
                let bytes = index.len() * size_of::<Option<Range<u64>>>() + 256;
                Ok((index, bytes))
            };
            let index: Arc<Index> = self.indexes.get(&index_key, make)?;
            let entry =
                usize::try_from(level.number(&within[depth])).ok().and_then(|n| index.get(n).cloned());
            let Some(inner) = entry.flatten() else { return Ok(None) };
            range = Some(shift(inner, range.as_ref()).map_err(|e| e.at(&key))?);
        }
        Ok(Some(Location { key, range }))
    }

    fn read_index(
        &self,
        chunks: &Chunks,
        key: &str,
        shard: Option<&Range<u64>>,
        level: &Level,
    ) -> Result<Index> {
        let len = level.index_len();
        let span = match shard {
            None => level.span(),
            Some(shard) if shard.end - shard.start < len => {
                let have = shard.end - shard.start;
                return Err(Error::corrupt(format!(
                    "'{key}': a shard of {have} bytes has an index of {len}"
                )));
            }
            Some(shard) if level.index.at_start => Span::Range(shard.start..shard.start + len),
            Some(shard) => Span::Range(shard.end - len..shard.end),
        };
        let mut bytes = Vec::new();
        if !self.get(chunks, key, &span, &mut bytes)? {
            return Ok(Index::new());
        }
        if bytes.len() as u64 != len {
            let have = bytes.len();
            return Err(Error::corrupt(format!(
                "'{key}': a shard of {have} bytes, its index alone takes {len}"
            )));
        }
        parse_index(&bytes, level).map_err(|e| e.at(format!("index of the shard '{key}'")))
    }

    /// The bytes of the index that has to be read before the chunk at `position` can be, of the outermost shard.
    pub(crate) fn first_index(&self, chunks: &Chunks, position: &[u64]) -> Option<(String, Span)> {
        let level = chunks.grid.levels.first()?;
        let (object, _) = chunks.grid.path(position);
        let is_whole = !chunks.grid.around.filters.is_empty();
        let span = if is_whole { Span::Last(MAX_SHARD as u64 + 1) } else { level.span() };
        Some((chunks.keys.key(&object), span))
    }
}

impl Level {
    /// Bytes of the index.
    fn index_len(&self) -> u64 {
        self.len() * ENTRY_LEN + if self.index.has_checksum { CHECKSUM_LEN } else { 0 }
    }

    /// The index's bytes of an object that is a shard.
    fn span(&self) -> Span {
        if self.index.at_start { Span::Range(0..self.index_len()) } else { Span::Last(self.index_len()) }
    }
}

/// A range within a shard as one of the object, where the shard is the range `shard` of it.
fn shift(inner: Range<u64>, shard: Option<&Range<u64>>) -> Result<Range<u64>> {
    let Some(shard) = shard else { return Ok(inner) };
    let len = shard.end - shard.start;
    if inner.end > len {
        return Err(Error::corrupt(format!("a shard's index names bytes {inner:?} of {len}")));
    }
    Ok(shard.start + inner.start..shard.start + inner.end)
}

fn parse_index(bytes: &[u8], level: &Level) -> Result<Index> {
    let mut entries = bytes;
    if level.index.has_checksum {
        let split = bytes.split_last_chunk::<4>();
        let (data, sum) = split.ok_or_else(|| Error::corrupt("no checksum"))?;
        let (given, computed) = (u32::from_le_bytes(*sum), crc32c::crc32c(data));
        if given != computed {
            return Err(Error::corrupt(format!("stored crc32c {given:08x}, computed {computed:08x}")));
        }
        entries = data;
    }
    let word = |bytes: &[u8]| {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        match level.index.endian {
            Endian::Little => u64::from_le_bytes(word),
            Endian::Big => u64::from_be_bytes(word),
        }
    };
    entries
        .chunks_exact(ENTRY_LEN as usize)
        .map(|entry| {
            let (offset, len) = (word(&entry[..8]), word(&entry[8..]));
            if (offset, len) == (u64::MAX, u64::MAX) {
                return Ok(None);
            }
            let end = offset.checked_add(len).filter(|&end| end <= i64::MAX as u64);
            let end = end.ok_or_else(|| Error::corrupt(format!("{len} bytes at offset {offset}")))?;
            Ok(Some(offset..end))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs::IndexCodecs;

    fn level(has_checksum: bool) -> Level {
        let index = IndexCodecs { endian: Endian::Big, has_checksum, at_start: false };
        Level { counts: vec![2], axes: vec![0], index }
    }

    #[test]
    fn indexes_are_parsed_and_checked() {
        let mut bytes: Vec<u8> =
            [5_u64, 7, u64::MAX, u64::MAX].iter().flat_map(|w| w.to_be_bytes()).collect();
        assert_eq!(parse_index(&bytes, &level(false)).unwrap(), [Some(5..12), None]);
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        assert_eq!(parse_index(&bytes, &level(true)).unwrap(), [Some(5..12), None]);
        bytes[0] ^= 1;
        assert!(parse_index(&bytes, &level(true)).is_err());
        let lies: Vec<u8> = [u64::MAX, 7, 0, 0].iter().flat_map(|w| w.to_be_bytes()).collect();
        assert!(parse_index(&lies, &level(false)).is_err());
    }

    #[test]
    fn an_inner_shard_keeps_to_its_range() {
        assert_eq!(shift(2..5, Some(&(10..20))).unwrap(), 12..15);
        assert_eq!(shift(2..5, None).unwrap(), 2..5);
        assert!(shift(2..11, Some(&(10..20))).is_err());
    }
}
