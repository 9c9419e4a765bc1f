//! A manifest of any content behind a checksum that fits: what is read is written and read again alike, is a source over
//! an object of the length that it names. Of some groups alone it is read or refused. So is a shared manifest around it.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use sieva::SharedManifest;
use sieva_format::ArraySource;
use sieva_format::manifest::{Excerpt, Manifest, ManifestSource};
use sieva_fuzz::{PatternStore, check_error, explore};
use sieva_types::ErrorKind;
use sieva_types::wire::Writer;
use xxhash_rust::xxh3::xxh3_64;

/// The memory that decoding is allowed.
const LIMIT: usize = 8 << 20;

fuzz_target!(|bytes: &[u8]| {
    for file in [bytes.to_vec(), shared(bytes), shared(&around(bytes))] {
        match SharedManifest::from_bytes_within(&file, LIMIT) {
            Ok(known) => {
                let again = SharedManifest::from_bytes(&known.to_bytes()).expect("what was written");
                assert_eq!(again.to_bytes(), known.to_bytes());
            }
            Err(e) => assert_eq!(e.kind(), ErrorKind::CorruptIndex, "{e}"),
        }
    }
    for file in [bytes.to_vec(), packed(bytes)] {
        for groups in [&[""][..], &["a", "g/h"]] {
            match Excerpt::decode_within(&file, groups, LIMIT) {
                Ok(part) => drop(part.manifest().encode()),
                Err(e) => assert_eq!(e.kind(), ErrorKind::CorruptIndex, "{e}"),
            }
        }
        match Manifest::decode_within(&file, LIMIT) {
            Ok(manifest) => check(manifest, xxh3_64(bytes)),
            Err(e) => {
                check_error(&e);
                assert_eq!(e.kind(), ErrorKind::CorruptIndex, "{e}");
            }
        }
    }
});

/// Content as it is stored where compression does not pay.
fn packed(content: &[u8]) -> Vec<u8> {
    let mut length = Writer::default();
    length.uint(content.len() as u64);
    let sum = xxh3_64(content).to_le_bytes();
    [&b"SVMF\x02\x00"[..], &sum, &length.into_bytes(), content].concat()
}

/// What follows the checksum of a shared manifest.
fn shared(content: &[u8]) -> Vec<u8> {
    [&b"SVSM\x01"[..], &xxh3_64(content).to_le_bytes(), content].concat()
}

/// The content of a shared manifest that holds a manifest of this content.
fn around(content: &[u8]) -> Vec<u8> {
    let mut out = Writer::default();
    out.text("[]");
    out.uint(7);
    out.blob(&packed(content));
    out.into_bytes()
}

fn check(manifest: Manifest, seed: u64) {
    let bytes = manifest.encode();
    let again = Manifest::decode(&bytes).expect("what was written");
    assert_eq!(again.encode(), bytes);
    let store = Arc::new(PatternStore::new(manifest.object_len()));
    let source = ManifestSource::new(manifest, store).expect("an object of its length");
    explore(&(Arc::new(source) as Arc<dyn ArraySource>), seed);
}
