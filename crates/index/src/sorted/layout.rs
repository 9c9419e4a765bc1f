//! Where an element lies: chunks of one size in shards of one size, so that places are arithmetic.
//!
//! Zarr v3 core, codec `sharding_indexed` (ZEP 2): a shard is its inner chunks followed by an index of
//! (offset, bytes) pairs. Chunks are not compressed and written in order, so that no index need be read.

use sieva_types::{Error, ErrorKind, Result};

/// Bytes of the crc32c after each chunk and each shard index.
pub(super) const CRC: usize = 4;

/// How columns are cut into chunks and shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Elements of an inner chunk.
    pub chunk: usize,
    /// Inner chunks of a shard.
    pub shard: usize,
}

impl Layout {
    /// That of all replicas but those of tests.
    pub const STANDARD: Layout = Layout { chunk: 16384, shard: 256 };

    /// A layout that a file states: of shards that are no larger than ours, since they are read at once.
    pub fn checked(chunk: u64, shard: u64) -> Result<Self> {
        let most = Self::STANDARD.shard_rows();
        let fits = chunk.checked_mul(shard).is_some_and(|rows| (1..=most).contains(&rows));
        if fits {
            return Ok(Self { chunk: chunk as usize, shard: shard as usize });
        }
        Err(Error::new(
            ErrorKind::CorruptIndex,
            format!("chunks of {chunk} elements, {shard} in a shard, are not a layout of sorted replicas"),
        ))
    }

    /// Number of chunks of `rows` elements.
    pub fn chunks(&self, rows: u64) -> u64 {
        rows.div_ceil(self.chunk as u64)
    }

    /// Number of shards of `rows` elements.
    pub fn shards(&self, rows: u64) -> u64 {
        self.chunks(rows).div_ceil(self.shard as u64)
    }

    /// Number of chunks in `shard` of a column of `rows` elements.
    pub fn chunks_in(&self, shard: u64, rows: u64) -> usize {
        self.chunks(rows).saturating_sub(shard * self.shard as u64).min(self.shard as u64) as usize
    }

    /// Elements of a shard.
    pub fn shard_rows(&self) -> u64 {
        (self.chunk * self.shard) as u64
    }

    /// Bytes that a chunk of elements of `size` bytes takes in a shard.
    pub fn stride(&self, size: usize) -> usize {
        self.chunk * size + CRC
    }

    /// The index of a shard with `chunks` chunks of elements of `size` bytes; absent chunks are all ones.
    pub fn index(&self, chunks: usize, size: usize) -> Vec<u8> {
        let stride = self.stride(size) as u64;
        let mut bytes = Vec::with_capacity(self.shard * 16 + CRC);
        for i in 0..self.shard as u64 {
            let (at, len) = if i < chunks as u64 { (i * stride, stride) } else { (u64::MAX, u64::MAX) };
            bytes.extend_from_slice(&at.to_le_bytes());
            bytes.extend_from_slice(&len.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }
}

/// The name of `array` as one path segment that no file system and no Zarr reader takes amiss, unlike all of
/// `taken` in any case.
pub(super) fn path_segment(array: &str, taken: &[String]) -> String {
    let mut safe: String =
        array.chars().take(80).map(|c| if is_safe(c) && c != '.' { c } else { '_' }).collect();
    if safe.is_empty() || safe.starts_with("__") {
        safe.insert(0, 'a');
    }
    let free = |name: &str| {
        !RESERVED.iter().any(|r| r.eq_ignore_ascii_case(name))
            && !taken.iter().any(|t| t.eq_ignore_ascii_case(name))
    };
    if free(&safe) {
        return safe;
    }
    let mut n = 2_u64;
    loop {
        let name = format!("{safe}-{n}");
        if free(&name) {
            return name;
        }
        n += 1;
    }
}

/// The array of positions.
pub(super) const ROW: &str = "row";
/// The array of the first key of each chunk.
pub(super) const FENCE: &str = "fence";
const RESERVED: [&str; 3] = [ROW, FENCE, "c"];

/// Whether `name` is one that [`path_segment`] may have made.
pub(super) fn is_path_segment(name: &str) -> bool {
    !name.is_empty() && name.len() <= 128 && name.chars().all(is_safe) && !name.contains('.')
}

fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

/// Turns elements of `size` bytes from native to little-endian order, or back.
pub(super) fn swap_little_endian(bytes: &mut [u8], size: usize) {
    if cfg!(target_endian = "big") && size > 1 {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_path_segments_of_their_own() {
        let mut taken = Vec::new();
        for name in ["/a/b", "_a_b", "ROW", "row", "", "..", "__x", "fence", "température", "A/B", "/a/B"] {
            let segment = path_segment(name, &taken);
            assert!(is_path_segment(&segment), "{segment}");
            assert!(!taken.iter().any(|t: &String| t.eq_ignore_ascii_case(&segment)), "{segment}");
            assert!(!RESERVED.contains(&segment.as_str()) && !segment.starts_with("__"));
            taken.push(segment);
        }
        assert!(!is_path_segment("a/b") && !is_path_segment("..") && !is_path_segment(""));
    }

    #[test]
    fn the_last_shard_is_short() {
        let layout = Layout { chunk: 4, shard: 3 };
        assert_eq!((layout.chunks(25), layout.shards(25)), (7, 3));
        assert_eq!((0..4).map(|s| layout.chunks_in(s, 25)).collect::<Vec<_>>(), [3, 3, 1, 0]);
        assert_eq!(layout.index(1, 8).len(), 52);
        assert!(
            Layout::checked(0, 1).is_err()
                && Layout::checked(2, 1 << 22).is_err()
                && Layout::checked(1, u64::MAX).is_err()
        );
    }
}
