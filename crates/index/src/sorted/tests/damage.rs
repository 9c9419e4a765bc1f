//! Replicas that are damaged or hostile.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::{Value, json};
use sieva_types::{Buffer, DType, ErrorKind, KeySet, Result};

use super::{How, PLAIN, rows};
use crate::sorted::SortedReplica;
use crate::sorted::layout::Layout;

/// All that a replica says, or the first error.
fn answers(dir: &Path) -> Result<Vec<Vec<u64>>> {
    let replica = SortedReplica::open(dir)?;
    let mut all = vec![replica.shape().to_vec()];
    all.push(replica.columns().iter().flat_map(|c| c.name.bytes().map(u64::from)).collect());
    for set in [KeySet::interval(0, 1 << 62), KeySet { ranges: vec![(-5, 5)], nan: true }] {
        all.push(replica.slices(&set)?.into_iter().flat_map(|s| [s.start, s.end]).collect());
    }
    let (mut positions, mut out) = (Vec::new(), Buffer::default());
    replica.positions(0..replica.rows(), &mut positions)?;
    all.push(positions);
    for column in 0..replica.columns().len() {
        replica.read(column, 0..replica.rows(), &mut out)?;
        all.push(out.bytes().iter().map(|&b| b.into()).collect());
    }
    Ok(all)
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn a_flipped_bit_is_noticed_or_changes_nothing() {
    let values: Vec<[u8; 8]> = (0..30_u64).map(|i| (i * 0x0123_4567_89ab_cdef).to_le_bytes()).collect();
    let table = rows(&[10, 9], &[3, 4], &[DType::F64, DType::U16], &values, 9);
    let dir = crate::scratch::Scratch::new();
    table.build(dir.path(), How { layout: Layout { chunk: 16, shard: 3 }, ..PLAIN }).unwrap();
    let want = answers(dir.path()).unwrap();
    let mut noticed = BTreeSet::new();
    for path in files_below(dir.path()) {
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 7);
            fs::write(&path, &damaged).unwrap();
            check_damaged(dir.path(), &path, &want, &mut noticed);
        }
        for len in [0, 1, bytes.len() / 2, bytes.len() - 1] {
            fs::write(&path, &bytes[..len]).unwrap();
            check_damaged(dir.path(), &path, &want, &mut noticed);
        }
        fs::remove_file(&path).unwrap();
        check_damaged(dir.path(), &path, &want, &mut noticed);
        fs::write(&path, &bytes).unwrap();
    }
    // The group's metadata and two shards of each array of rows, one of the fences.
    assert_eq!(noticed.len(), 1 + 3 * 2 + 1);
}

/// Checksums are right where a file comes from another replica, or from another place in it.
#[test]
fn files_of_another_build_are_noticed() {
    let values: Vec<[u8; 8]> = (0..999_u64).map(|i| (i * 0x0123_4567_89ab_cdef).to_le_bytes()).collect();
    let (dir, other) = (crate::scratch::Scratch::new(), crate::scratch::Scratch::new());
    let how = How { layout: Layout { chunk: 16, shard: 3 }, ..PLAIN };
    let columns = [DType::I64; 2];
    rows(&[90], &[30], &columns, &values, 1).build(dir.path(), how).unwrap();
    rows(&[90], &[30], &columns, &values, 2).build(other.path(), How { seal: 8, ..how }).unwrap();
    let swapped = |from: &Path, to: &str| {
        let to = dir.path().join(to);
        let kept = fs::read(&to).unwrap();
        fs::copy(from, &to).unwrap();
        let told = answers(dir.path()).unwrap_err();
        assert_eq!(told.kind(), ErrorKind::CorruptIndex, "{}: {told}", to.display());
        fs::write(to, kept).unwrap();
    };
    for file in ["group_column_0/c/0", "group_column_1/c/1", "row/c/0", "fence/c/0"] {
        swapped(&other.path().join(file), file);
    }
    swapped(&dir.path().join("group_column_1/c/0"), "group_column_0/c/0");
    swapped(&dir.path().join("row/c/0"), "row/c/1");
    answers(dir.path()).unwrap();
}

fn check_damaged(dir: &Path, file: &Path, want: &[Vec<u64>], noticed: &mut BTreeSet<PathBuf>) {
    match answers(dir) {
        Ok(got) => assert!(got == want, "'{}' is damaged and believed", file.display()),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::CorruptIndex, "{e}");
            noticed.insert(file.to_owned());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    /// Metadata that is consistent with its hash and otherwise hostile.
    #[test]
    fn hostile_metadata_never_panics(
        key in prop::sample::select(vec!["version", "shape", "numbers", "chunk", "shard", "columns", "fences", "key", "seal", "format"]),
        value in prop_oneof![
            any::<u64>().prop_map(Value::from), (0..40_u64).prop_map(Value::from),
            prop::collection::vec(any::<u64>(), 0..4).prop_map(Value::from),
            prop::collection::vec(0..20_u64, 0..4).prop_map(Value::from),
            Just(Value::Null), Just(json!("x")), Just(json!(-1)), Just(json!(1.5)), Just(json!([{"name": 3}])),
            Just(json!([{"name": "a", "dtype": "float64", "path": "../a"}])), Just(json!([0, u64::MAX, u64::MAX])),
            Just(json!([{"name": "a", "dtype": "uint64", "path": "group_column_1"}])),
        ],
    ) {
        let table = rows(&[40], &[7], &[DType::F64, DType::U16], &[[3; 8], [0xff; 8], [9; 8]], 4);
        let dir = crate::scratch::Scratch::new();
        table.build(dir.path(), How { layout: Layout { chunk: 16, shard: 3 }, threads: 1, ..PLAIN }).unwrap();
        let path = dir.path().join("zarr.json");
        let mut group: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        group["attributes"]["sieva"][key] = value;
        group["attributes"]["sieva"]["check"] = json!("0000000000000000");
        let text = serde_json::to_string_pretty(&group).unwrap();
        let check = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
        fs::write(&path, text.replacen("0000000000000000", &check, 1)).unwrap();
        if let Err(e) = answers(dir.path()) {
            prop_assert_eq!(e.kind(), ErrorKind::CorruptIndex, "{}", e);
        }
    }

    #[test]
    fn texts_that_are_no_metadata_never_panic(text in "\\PC{0,80}", head: bool) {
        let dir = crate::scratch::Scratch::new();
        let text = if head { format!("{{\"check\": \"{text}") } else { text };
        fs::write(dir.path().join("zarr.json"), text).unwrap();
        prop_assert_eq!(SortedReplica::open(dir.path()).unwrap_err().kind(), ErrorKind::CorruptIndex);
    }
}
