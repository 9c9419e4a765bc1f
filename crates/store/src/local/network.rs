//! Whether a path lies on a file system that other machines may write at the same time.

use std::path::Path;

/// Types of file systems (`statfs(2)`, `linux/magic.h`) behind which other machines may be. FUSE is among them: what it
/// serves (sshfs, buckets, shared folders of virtual machines) cannot be told from its type.
const NETWORK: [(u32, &str); 18] = [
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB 2"),
    (0x0bd0_0bd0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x00c3_6400, "CephFS"),
    (0x6573_5546, "FUSE"),
    (0x1983_0326, "BeeGFS"),
    (0xaad7_aaea, "PanFS"),
    (0x2003_0528, "OrangeFS"),
    (0x5346_414f, "AFS"),
    (0x6b41_4653, "kAFS"),
    (0x0102_1997, "9P"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x7375_7245, "Coda"),
    (0x564c, "NCP"),
];

/// The name of a network file system by the type that `statfs` gives; `None` for a local one.
pub fn network_name(kind: u32) -> Option<&'static str> {
    NETWORK.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name)
}

/// Whether a path that exists lies on a network file system. `SIEVA_NETWORK_FS` in the environment goes before what the
/// system says: `1` takes every path for one there, `0` none.
pub fn is_on_network(path: &Path) -> bool {
    match std::env::var("SIEVA_NETWORK_FS").as_deref() {
        Ok("1") => true,
        Ok("0") => false,
        _ => kind_of(path).is_some_and(|kind| network_name(kind).is_some()),
    }
}

#[cfg(target_os = "linux")]
fn kind_of(path: &Path) -> Option<u32> {
    // Types are 32 bits wide, in a word that is longer and may have a sign.
    rustix::fs::statfs(path).ok().map(|found| found.f_type as u32)
}

#[cfg(not(target_os = "linux"))]
fn kind_of(_path: &Path) -> Option<u32> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_networks_are_told_from_local_ones() {
        let network =
            [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0bd0_0bd0, 0x4750_4653, 0x00c3_6400, 0x6573_5546];
        for kind in network {
            assert!(network_name(kind).is_some(), "{kind:#x}");
        }
        // ext4, XFS, Btrfs, tmpfs, overlayfs, ZFS, and none.
        for kind in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0x2fc1_2fc1, 0] {
            assert_eq!(network_name(kind), None, "{kind:#x}");
        }
        let mut kinds: Vec<u32> = NETWORK.iter().map(|(kind, _)| *kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), NETWORK.len());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells_the_type() {
        // The kernel's own file system of processes is never on a network.
        assert_eq!(kind_of(Path::new("/proc")), Some(0x9fa0));
        assert_eq!(kind_of(Path::new("/no/such/path")), None);
    }
}
