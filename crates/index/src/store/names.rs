//! The names of the files of a store. What is named otherwise is none of ours, and never removed.

use std::hash::{BuildHasher, RandomState};

/// The manifest.
pub(super) const MANIFEST: &str = "manifest.json";
/// The file whose lock serialises publishers.
pub(super) const LOCK: &str = "lock";
/// Suffix of segments.
pub(super) const SEGMENT: &str = ".seg";
/// Suffix of the directories of sorted replicas.
pub(super) const SORTED: &str = ".zarr";
/// Suffix of the files whose locks protect unpublished sorted replicas.
pub(super) const SORTED_LOCK: &str = ".lock";
/// Suffix of manifests being written.
pub(super) const ASIDE: &str = ".tmp";

/// 16 hexadecimal digits that no other call gives, in this process or another, save by a chance of 2^-64 (whoever
/// makes a file of it refuses one that exists).
pub(crate) fn random() -> String {
    // The standard library seeds this from the operating system's randomness.
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Whether `name` is 16 hexadecimal digits and `suffix`: a plain name, of a file of ours.
pub(super) fn is_ours(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix).is_some_and(|stem| {
        stem.len() == 16 && stem.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_names_of_ours_pass() {
        assert!(is_ours(&format!("{}{SEGMENT}", random()), SEGMENT));
        assert_ne!(random(), random());
        for name in
            ["../23456789abcdef.seg", "0123456789abcde/.seg", "0123456789ABCDEF.seg", ".seg", "x.seg", ""]
        {
            assert!(!is_ours(name, SEGMENT), "{name}");
        }
        assert!(!is_ours("0123456789abcdef.seg", SORTED));
    }
}
