//! Fetched bytes on disk: one directory per object and version, one checksummed file per segment.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use xxhash_rust::xxh3::xxh3_64;

use crate::local::{self, Aside, Trust};

/// Before the bytes of a segment: this, its length, and its checksum, both little-endian.
const MAGIC: &[u8; 8] = b"sievablk";
const HEADER: usize = 24;

/// What one object has on disk. A cache only: whatever fails here costs a request and nothing else.
#[derive(Debug)]
pub(crate) struct DiskCache {
    root: PathBuf,
    dir: PathBuf,
    limit: u64,
    segments: Mutex<BTreeMap<u64, u64>>,
}

/// Bytes written by this process to each directory since it was last looked through.
static WRITTEN: Mutex<BTreeMap<PathBuf, u64>> = Mutex::new(BTreeMap::new());

impl DiskCache {
    /// The segments under `root` of the object whose address and version are `identity`.
    pub(crate) fn open(root: &Path, limit: u64, identity: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, identity);
        let name: String = digest.as_ref().iter().map(|b| format!("{b:02x}")).collect();
        let dir = root.join(&name[..2]).join(&name);
        let segments = fs::read_dir(&dir).into_iter().flatten().flatten();
        let segments = segments.filter_map(|entry| parse_name(entry.file_name().to_str()?)).collect();
        Self { root: root.to_path_buf(), dir, limit, segments: Mutex::new(segments) }
    }

    fn path(&self, start: u64, len: u64) -> PathBuf {
        self.dir.join(format!("{start:016x}-{len:x}"))
    }

    /// The bytes of `range` where one segment has them all and is whole; a damaged one is removed.
    pub(crate) fn read(&self, range: &Range<u64>) -> Option<Vec<u8>> {
        let (start, len) = {
            let segments = self.segments.lock().ok()?;
            segments.range(..=range.start).next_back().map(|(start, len)| (*start, *len))?
        };
        if start.checked_add(len)? < range.end {
            return None;
        }
        let path = self.path(start, len);
        let Some(mut bytes) = read_segment(&path, len) else {
            let _ = fs::remove_file(&path);
            self.segments.lock().ok()?.remove(&start);
            return None;
        };
        // The time of modification is the time of last use: the order in which segments go.
        let _ = local::open_regular(&path).and_then(|f| f.set_modified(SystemTime::now()));
        let from = HEADER + usize::try_from(range.start - start).ok()?;
        let to = HEADER + usize::try_from(range.end - start).ok()?;
        bytes.truncate(to);
        bytes.drain(..from);
        Some(bytes)
    }

    /// Writes a segment: aside, then renamed, so that a reader sees all of it or nothing.
    pub(crate) fn write(&self, start: u64, bytes: &[u8]) {
        let len = bytes.len() as u64;
        if len == 0 || len > self.limit / 4 {
            return;
        }
        self.make_room(len);
        if self.try_write(start, bytes).is_ok()
            && let Ok(mut segments) = self.segments.lock()
        {
            let known = segments.entry(start).or_default();
            *known = len.max(*known);
        }
    }

    fn try_write(&self, start: u64, bytes: &[u8]) -> std::io::Result<()> {
        // What somebody was allowed to read is nobody else's.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let mut aside = Aside::new(&self.path(start, bytes.len() as u64), 0o600)?;
        let file = aside.file()?;
        file.write_all(MAGIC)?;
        file.write_all(&(bytes.len() as u64).to_le_bytes())?;
        file.write_all(&xxh3_64(bytes).to_le_bytes())?;
        file.write_all(bytes)?;
        aside.publish(false)
    }

    /// Looks the directory through after every sixteenth of the limit written, and removes what was used longest ago
    /// until a sixteenth is free: other processes write there as well, and none keeps the books.
    fn make_room(&self, len: u64) {
        let mut all_written = WRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
        let written = all_written.entry(self.root.clone()).or_insert(self.limit);
        *written = written.saturating_add(len);
        if *written < self.limit / 16 {
            return;
        }
        *written = len;
        let mut files = Vec::new();
        collect(&self.root, 0, &mut files);
        files.sort_unstable();
        let total: u64 = files.iter().map(|(_, size, _)| size).sum();
        let mut over = (total + len + self.limit / 16).saturating_sub(self.limit);
        for (_, size, path) in files {
            if over == 0 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                over = over.saturating_sub(size);
            }
        }
    }
}

fn parse_name(name: &str) -> Option<(u64, u64)> {
    let (start, len) = name.split_once('-')?;
    Some((u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(len, 16).ok()?))
}

fn read_segment(path: &Path, len: u64) -> Option<Vec<u8>> {
    let file = local::open_regular(path).ok()?;
    let meta = file.metadata().ok()?;
    // In a directory that is shared somebody else may have put it there.
    Trust::default().check(&meta).ok()?;
    if meta.len() != len.checked_add(HEADER as u64)? {
        return None;
    }
    let bytes = local::read_file(&file, meta.len()).ok()?;
    let (header, data) = bytes.split_at_checked(HEADER)?;
    let said = header.get(8..16)?.try_into().map(u64::from_le_bytes).ok()?;
    let sum = header.get(16..24)?.try_into().map(u64::from_le_bytes).ok()?;
    let whole = header.starts_with(MAGIC) && said == data.len() as u64 && sum == xxh3_64(data);
    whole.then_some(bytes)
}

/// The segments below `dir`: two levels of directories that this cache has made.
fn collect(dir: &Path, depth: usize, files: &mut Vec<(SystemTime, u64, PathBuf)>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        let Ok(meta) = entry.metadata() else { continue };
        if kind.is_dir() && depth < 2 {
            collect(&entry.path(), depth + 1, files);
        } else if kind.is_file() && depth == 2 {
            files.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len(), entry.path()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("sieva-disk-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    #[test]
    fn segments_come_back_and_damaged_ones_do_not() {
        let root = dir("damage");
        let cache = DiskCache::open(&root, 1 << 20, b"url version");
        cache.write(100, b"0123456789");
        let again = DiskCache::open(&root, 1 << 20, b"url version");
        assert_eq!(again.read(&(103..106)).unwrap(), b"345");
        assert_eq!(again.read(&(103..111)), None);
        assert_eq!(DiskCache::open(&root, 1 << 20, b"url other").read(&(103..106)), None);
        let path = again.path(100, 10);
        let mut bytes = fs::read(&path).unwrap();
        bytes[HEADER + 4] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(again.read(&(100..101)), None);
        assert!(!path.exists());
        fs::remove_dir_all(root).unwrap();
    }

    /// Checksums are no obstacle to somebody who means to: what others may write is not read.
    #[test]
    fn segments_that_others_could_have_written_are_not_believed() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let root = dir("others");
        let cache = DiskCache::open(&root, 1 << 20, b"x");
        let write = || {
            cache.write(0, b"0123456789");
            assert_eq!(cache.read(&(0..2)).unwrap(), b"01");
        };
        write();
        fs::set_permissions(cache.path(0, 10), fs::Permissions::from_mode(0o620)).unwrap();
        assert_eq!(cache.read(&(0..2)), None);
        write();
        // Only root can give files away.
        if chown(cache.path(0, 10), Some(65534), None).is_ok() {
            assert_eq!(cache.read(&(0..2)), None);
        }
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_limit_holds() {
        let root = dir("limit");
        let cache = DiskCache::open(&root, 10_000, b"x");
        for i in 0..100 {
            cache.write(i * 1000, &[7; 500]);
            let mut files = Vec::new();
            collect(&root, 0, &mut files);
            let total: u64 = files.iter().map(|f| f.1).sum();
            assert!(total <= 10_000, "{total} after {i}");
        }
        assert_eq!(cache.read(&(99_000..99_500)).unwrap(), [7; 500]);
        fs::remove_dir_all(root).unwrap();
    }
}
