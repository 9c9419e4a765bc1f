//! GlusterFS: the size of the shards that a file is cut into.
//!
//! Each shard is a file of its own, which a hash gives a brick that is not told; so each shard stands for a server. Bricks keep
//! the size as the attribute `trusted.glusterfs.shard.block-size` of the file (8 bytes, big-endian). A mounted volume hides it
//! (`shard_getxattr`), but answers `glusterfs.pathinfo`, and has its translators and their options as files below `.meta`: the
//! size there is the one that the volume gives new files.

use std::fs::{self, Metadata};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sieva_types::{Result, parse_size};

use super::{Striping, wrong};
use crate::local;

/// What a file on a mounted volume has, and no other one.
pub(super) const ATTRIBUTE: &str = "glusterfs.pathinfo";

/// Bytes of a file below `.meta`, at most, and translators of a volume.
const MOST_BYTES: u64 = 4096;
const MOST_TRANSLATORS: usize = 1 << 10;

/// The layout that the attribute of a brick describes, of a file of `len` bytes.
///
/// # Errors
/// `invalid-value`, saying what is wrong with it.
pub(super) fn parse(bytes: &[u8], len: u64) -> Result<Striping> {
    let size = <[u8; 8]>::try_from(bytes).map_err(|_| wrong(format!("{} bytes: expected 8", bytes.len())))?;
    shards(u64::from_be_bytes(size), len)
}

/// The layout of a file of `len` bytes on a mounted volume.
///
/// # Errors
/// `invalid-value` where the volume does not shard its files, or does not tell.
pub(super) fn ask(file: BorrowedFd<'_>, len: u64) -> Result<Striping> {
    let root = local::real_path(file).ok().and_then(|path| mount_of(&path));
    let text = root.and_then(|root| block_size(&root.join(".meta/graphs/active")));
    let text = text.ok_or_else(|| wrong("the volume tells of no shards".into()))?;
    of_option(&text, len)
}

/// The layout by the option of a volume, of a file of `len` bytes.
///
/// # Errors
/// `invalid-value` for what is no size.
pub(super) fn of_option(text: &str, len: u64) -> Result<Striping> {
    shards(size_of(text)?, len)
}

fn shards(size: u64, len: u64) -> Result<Striping> {
    Striping::by_objects(size, 1, size, len, "shard", "GlusterFS".into())
}

/// A size as GlusterFS writes it: `4MB` is 4 MiB.
fn size_of(text: &str) -> Result<u64> {
    let text = text.trim();
    parse_size(text.strip_suffix(['B', 'b']).unwrap_or(text))
}

/// The uppermost directory of the file system that a file is on.
fn mount_of(path: &Path) -> Option<PathBuf> {
    let device = |path: &Path| fs::metadata(path).as_ref().map(Metadata::dev).ok();
    let own = device(path)?;
    let same = path.ancestors().skip(1).take_while(|dir| device(dir) == Some(own));
    same.last().map(Path::to_path_buf)
}

/// The option of the translator that shards files, by the directories of a volume's translators.
fn block_size(graph: &Path) -> Option<String> {
    let text = |path: &Path| String::from_utf8(local::read(path, MOST_BYTES).ok()?).ok();
    let translators =
        fs::read_dir(graph).ok()?.take(MOST_TRANSLATORS).filter_map(|entry| Some(entry.ok()?.path()));
    let is_sharding =
        |dir: &PathBuf| text(&dir.join("type")).is_some_and(|kind| kind.trim() == "features/shard");
    let sharding = translators.into_iter().find(is_sharding)?;
    // Where the option is not set there is no such file, but the translator tells what it took.
    text(&sharding.join("options/shard-block-size")).or_else(|| {
        let told = text(&sharding.join("private"))?;
        let size = told
            .lines()
            .find_map(|line| line.strip_prefix("shard-block-size")?.trim_start().strip_prefix('='));
        size.map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_found_among_the_translators() {
        let graph = std::env::temp_dir().join(format!("sieva-gluster-{}", std::process::id()));
        let write = |name: &str, text: &str| {
            let path = graph.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("v-dht/type", "cluster/distribute\n");
        assert_eq!(block_size(&graph), None);
        write("v-shard/type", "features/shard\n");
        write("v-shard/private", "[features/shard.v-shard]\nshard-block-size = 64.0MB\ninode-count = 2\n");
        assert_eq!(size_of(&block_size(&graph).unwrap()).unwrap(), 64 << 20);
        write("v-shard/options/shard-block-size", "4MB\n");
        assert_eq!(size_of(&block_size(&graph).unwrap()).unwrap(), 4 << 20);
        fs::remove_dir_all(&graph).unwrap();
        assert_eq!(block_size(&graph), None);
    }

    #[test]
    fn a_file_system_has_one_uppermost_directory() {
        assert_eq!(mount_of(Path::new("/proc/self/status")), Some(PathBuf::from("/proc")));
        assert_eq!(mount_of(Path::new("/no/such/file")), None);
        assert!(
            size_of("lots").is_err()
                && size_of("4GB").unwrap() == 4 << 30
                && size_of("4096").unwrap() == 4096
        );
    }
}
