//! An object of S3 that was uploaded in parts: the tag of such an object is a digest, a hyphen and the number of its parts
//! (Amazon S3, *Checking object integrity*).
//!
//! All parts but the last have one size, which is not told. Uploaders take whole mebibytes: where one such size alone gives
//! that number of parts, it is the size. Requests that keep to the borders of parts are what the service advises.

use super::Striping;

const MIB: u64 = 1 << 20;
/// The most parts that an upload has.
const MOST_PARTS: u64 = 10_000;

/// The parts of an object by its name, version (the tag in quotes, then the length) and length; or why they are not known.
pub(super) fn parse(name: &str, version: &str, len: u64) -> Result<Striping, &'static str> {
    if !name.starts_with("s3://") {
        return Err("nothing is known of it");
    }
    let parts = parts_of(version).ok_or("its tag tells no parts")?;
    let size = size_of_parts(len, parts).ok_or("the size of its parts is not told")?;
    Striping::by_objects(size, 1, size, len, "part", "an upload in parts".into())
        .map_err(|_| "its parts are impossible")
}

/// The number of parts that a tag tells.
fn parts_of(version: &str) -> Option<u64> {
    let tag = version.strip_prefix('"')?.split_once('"')?.0;
    let (digest, parts) = tag.split_once('-')?;
    let is_digest = digest.len() == 32 && digest.bytes().all(|b| b.is_ascii_hexdigit());
    parts.parse().ok().filter(|n| is_digest && (2..=MOST_PARTS).contains(n))
}

/// The one whole number of mebibytes of which `parts` parts make `len` bytes.
fn size_of_parts(len: u64, parts: u64) -> Option<u64> {
    // ⌈len / size⌉ = parts for sizes from ⌈len / parts⌉ to below len / (parts - 1).
    let (least, most) = (len.div_ceil(parts), len.checked_sub(1)? / (parts - 1));
    let size = least.div_ceil(MIB) * MIB;
    (size > 0 && size <= most && size + MIB > most).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: &str = "\"0123456789abcdef0123456789abcdef-7\" 53477376";

    #[test]
    fn the_parts_of_an_upload_are_told_by_its_tag() {
        let found = parse("s3://b/k", TAG, 51 * MIB).unwrap();
        assert_eq!(
            found.describe(),
            "7 parts, stripe_size=8MiB,stripe_count=1,object_size=8MiB (an upload in parts)"
        );
        let ends: Vec<u64> = found.pieces(0..51 * MIB).map(|p| p.range.end / MIB).collect();
        assert_eq!(ends, [8, 16, 24, 32, 40, 48, 51]);
    }

    #[test]
    fn sizes_that_are_not_the_only_ones_are_not_guessed() {
        for (len, parts) in [(51 * MIB, 2), (10, 2), (0, 3), (1 << 40, 3)] {
            let found = size_of_parts(len, parts);
            assert!(found.is_none(), "{len} {parts} {found:?}");
        }
        for len in [2 * MIB, 100 * MIB + 5, 4097 * MIB - 1] {
            for size in [1, 5, 8, 64].map(|n| n * MIB) {
                let parts = len.div_ceil(size);
                if let Some(found) = (parts > 1).then(|| size_of_parts(len, parts)).flatten() {
                    assert_eq!(found, size);
                }
            }
        }
    }

    #[test]
    fn other_tags_tell_nothing() {
        // Of nginx: time and length.
        for version in
            ["\"64b1e3f0-1388\" 5000", "", "W/\"0\" 1", "\"0123456789abcdef0123456789abcdef\" 5", "\"x-0\""]
        {
            assert_eq!(parts_of(version), None, "{version}");
        }
        assert!(parse("https://host/k", TAG, 51 * MIB).is_err());
        assert!(parse("s3://b/k", "\"0123456789abcdef0123456789abcdef-99999\" 5", 5).is_err());
    }
}
