//! What ties a file to its replica: a checksum is right in a file of another replica, too.
//!
//! A shard has its seal between its last chunk and its index, where readers of Zarr look at nothing.

use xxhash_rust::xxh3::Xxh3;

/// Bytes of a seal.
pub(super) const SEAL: usize = 8;

/// The seal of a shard of the array in directory `path` of the replica whose number is `replica`.
pub(super) fn seal_of(replica: u64, path: &str, shard: u64) -> [u8; SEAL] {
    let mut hash = Xxh3::new();
    hash.update(&replica.to_le_bytes());
    hash.update(&shard.to_le_bytes());
    hash.update(path.as_bytes());
    hash.digest().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seals_differ_by_replica_array_and_shard() {
        let of = [(1, "row", 0), (2, "row", 0), (1, "row", 1), (1, "fence", 0), (1, "ro", 0)];
        let seals: std::collections::BTreeSet<_> = of.iter().map(|&(r, p, s)| seal_of(r, p, s)).collect();
        assert_eq!(seals.len(), of.len());
        assert_eq!(seal_of(1, "row", 0), seal_of(1, "row", 0));
    }
}
