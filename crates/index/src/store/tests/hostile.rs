//! Bytes made to harm, with checksums that fit: nothing panics, and no size is believed.

use std::fs;

use proptest::collection::vec;
use proptest::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::*;

const BLOCK: usize = 48;

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn set(bytes: &mut [u8], at: usize, n: u64) {
    bytes[at..at + 8].copy_from_slice(&n.to_le_bytes());
}

/// A segment with two blocks, its directory's offset and that of the blocks in it.
fn made(dir: &Path) -> (SegmentName, Vec<u8>, usize, usize) {
    let bitmap =
        |region| Record { bitmap: Some((b"the head", b"body")), ..stats(region, b"some statistics") };
    let listed = segment(dir, "/TEMP", &[bitmap(0), bitmap(3), bitmap(9)]);
    let bytes = fs::read(dir.join(listed.name())).unwrap();
    let directory = u64_at(&bytes, bytes.len() - 32) as usize;
    let blocks = bytes.len() - 32 - 2 * BLOCK;
    (listed, bytes, directory, blocks)
}

/// Makes all checksums fit and lists the segment.
fn sign(dir: &Path, listed: &SegmentName, bytes: &mut [u8], directory: usize, blocks: usize) {
    for block in [blocks, blocks + BLOCK] {
        let kind = u32::from_le_bytes(bytes[block + 4..block + 8].try_into().unwrap());
        let records = u32::from_le_bytes(bytes[block + 16..block + 20].try_into().unwrap()) as usize;
        let offset = u64_at(bytes, block + 8) as usize;
        let table = offset.saturating_add(records * if kind == 1 { 24 } else { 32 });
        let payload = table.saturating_add(u64_at(bytes, block + 24) as usize);
        let hash = |range: std::ops::Range<usize>| bytes.get(range).map(xxh3_64);
        let (table_hash, payload_hash) = (hash(offset..table), hash(table..payload));
        set(bytes, block + 32, table_hash.unwrap_or(0));
        set(bytes, block + 40, payload_hash.unwrap_or(0));
    }
    let trailer = bytes.len() - 32;
    let hash = xxh3_64(&bytes[directory..trailer]);
    set(bytes, trailer + 16, hash);
    fs::write(dir.join(listed.name()), &bytes).unwrap();
    let listed = SegmentName {
        name: listed.name().into(),
        bytes: bytes.len() as u64,
        directory: hash,
        durable: true,
        draft: None,
    };
    let listing = Listing { segments: vec![listed], sorted: Vec::new() };
    write(dir, listing);
}

/// Asks for all there is.
fn exercise(dir: &Path) -> usize {
    let store = open(dir);
    let mut told = store.damage().len();
    for summary in store.arrays() {
        let Some(records) = store.load(summary.path()) else { continue };
        told += records.damage.len();
        for region in 0..101 {
            records.stats(region);
            records.content(region);
            match records.bitmap_head(region) {
                Ok(Some(head)) => {
                    let (len, all) = (head.body_len, head.len());
                    assert!(len < 10_000 && all < 10_000);
                    records.read_body(region, 0..len, &mut Vec::new()).unwrap();
                }
                Ok(None) => {}
                Err(_) => told += 1,
            }
        }
    }
    told
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn damage_with_fitting_checksums_never_panics(
        changes in vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(0), Just(255), Just(1)]), 1..4),
        anywhere in any::<bool>(),
    ) {
        let (_parent, dir) = place();
        let (listed, mut bytes, directory, blocks) = made(&dir);
        let (start, end) = (if anywhere { 64 } else { directory }, bytes.len() - 32);
        for (at, byte) in &changes {
            bytes[start + at.index(end - start)] = *byte;
        }
        sign(&dir, &listed, &mut bytes, directory, blocks);
        exercise(&dir);
    }
}

/// Applies a change to a good segment; says how much damage is told of it.
fn told_after(change: impl Fn(&mut [u8], usize, usize)) -> usize {
    let (_parent, dir) = place();
    let (listed, mut bytes, directory, blocks) = made(&dir);
    change(&mut bytes, directory, blocks);
    sign(&dir, &listed, &mut bytes, directory, blocks);
    exercise(&dir)
}

#[test]
fn impossible_sizes_and_places_are_refused() {
    assert_eq!(told_after(|_, _, _| ()), 0);
    // Of the first block: its payload, its offset, its number of records, its array.
    for payload in [u64::MAX, 1 << 40, 60 << 20, 0] {
        assert!(told_after(|bytes, _, blocks| set(bytes, blocks + 24, payload)) > 0, "{payload}");
    }
    for offset in [u64::MAX, 0, 1 << 40] {
        assert!(told_after(|bytes, _, blocks| set(bytes, blocks + 8, offset)) > 0, "{offset}");
    }
    assert!(told_after(|bytes, _, blocks| bytes[blocks + 16..blocks + 20].fill(255)) > 0);
    assert!(told_after(|bytes, _, blocks| bytes[blocks] = 1) > 0);
    // Two blocks of the same bytes.
    let overlap =
        |bytes: &mut [u8], _, blocks: usize| bytes.copy_within(blocks..blocks + BLOCK, blocks + BLOCK);
    assert!(told_after(overlap) > 0);
    // Of the first array: the length of its path, its first dimension; the number of arrays.
    assert!(told_after(|bytes, directory, _| bytes[directory + 4..directory + 8].fill(255)) > 0);
    assert!(told_after(|bytes, directory, _| bytes[directory..directory + 4].fill(255)) > 0);
    let shape = |bytes: &mut [u8], directory: usize, _| set(bytes, directory + 4 + 4 + 5 + 4, u64::MAX);
    assert!(told_after(shape) > 0);
}

#[test]
fn records_of_no_region_and_bodies_beyond_the_end_are_refused() {
    let heads = |change: fn(&mut [u8], usize)| {
        told_after(move |bytes, _, blocks| {
            let first = if bytes[blocks + 4] == 2 { blocks } else { blocks + BLOCK };
            let table = u64_at(bytes, first + 8) as usize;
            change(bytes, table);
        })
    };
    assert_eq!(heads(|_, _| ()), 0);
    assert!(heads(|bytes, table| set(bytes, table, 100)) > 0);
    assert!(heads(|bytes, table| set(bytes, table + 8, u64::MAX)) > 0);
    assert!(heads(|bytes, table| set(bytes, table + 16, 1 << 40)) > 0);
    assert!(heads(|bytes, table| bytes[table + 24] += 1) > 0);
}

proptest! {
    #[test]
    fn no_text_in_the_place_of_a_manifest_panics(text in ".{0,200}", bytes in vec(any::<u8>(), 0..200)) {
        let (_parent, dir) = place();
        fs::create_dir(&dir).unwrap();
        for bytes in [text.as_bytes(), &bytes] {
            fs::write(dir.join("manifest.json"), bytes).unwrap();
            prop_assert!(Store::open(&dir).is_err());
        }
    }
}

#[test]
fn a_deeply_nested_manifest_is_refused() {
    let (_parent, dir) = place();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("manifest.json"), format!("{{\"version\": {}", "[".repeat(1 << 20))).unwrap();
    assert!(Store::open(&dir).is_err());
}
