//! Stores with a changed file: what is believed is what was written, or damage is told.
//!
//! With checksums made to fit the change there is nothing to tell it by; then nothing may panic.
#![no_main]

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use sieva_fuzz::Change;
use sieva_fuzz::values::noise;
use sieva_index::bitmap::{Workspace, build};
use sieva_index::stats::RegionStats;
use sieva_index::store::{ArrayHeader, Fingerprint, Record, SegmentWriter, SortedDraft, Store};
use sieva_index::{ArrayIndex, Elements, content_hash};
use sieva_types::keys::f32_key;
use sieva_types::{DType, ErrorKind, KeySet};
use xxhash_rust::xxh3::xxh3_64;

const PATH: &str = "/TEMP";
const TRAILER: usize = 32;
const BLOCK: usize = 48;

#[derive(Arbitrary, Debug)]
struct Input {
    file: u8,
    sign: bool,
    changes: Vec<Change>,
}

thread_local! {
    static STORE: RefCell<Original> = RefCell::new(Original::new());
}

fuzz_target!(|input: Input| STORE.with_borrow_mut(|store| store.run(&input)));

/// A store as it was published, in memory and in a directory.
struct Original {
    dir: PathBuf,
    _parent: tempfile::TempDir,
    /// The manifest first.
    files: Vec<(PathBuf, Vec<u8>)>,
    seen: Seen,
    values: Vec<Vec<f32>>,
}

/// All that can be learnt, each with whether it was there.
type Seen = Vec<Option<String>>;

impl Original {
    fn new() -> Self {
        let parent = tempfile::tempdir().expect("a directory");
        let dir = parent.path().join("x.nc.sieva");
        let values: Vec<Vec<f32>> = (0..6).map(values).collect();
        let names = publish(&dir, &values);
        let names = std::iter::once("manifest.json".to_owned()).chain(names);
        let files = names.map(|name| (dir.join(&name), fs::read(dir.join(&name)).expect("a file"))).collect();
        let mut store = Self { dir, _parent: parent, files, seen: Vec::new(), values };
        let (seen, told) = look(&store.dir, Some(&store.values));
        assert!(!told && seen.iter().flatten().count() > 40);
        store.seen = seen;
        store
    }

    fn run(&mut self, input: &Input) {
        let number = usize::from(input.file) % self.files.len();
        let mut bytes = self.files[number].1.clone();
        input.changes.iter().for_each(|change| change.apply(&mut bytes));
        if input.sign {
            self.write_signed(number, bytes);
            look(&self.dir, None);
        } else if number > 0 || !is_signed(&bytes) {
            fs::write(&self.files[number].0, bytes).expect("to be written");
            let (seen, told) = look(&self.dir, Some(&self.values));
            assert!(told || seen == self.seen, "something is gone, and nothing is told");
            let same = seen.iter().zip(&self.seen).all(|(new, old)| new.is_none() || new == old);
            assert!(same, "damage is believed");
        }
        // Signing changes the manifest too.
        for (path, bytes) in [&self.files[0], &self.files[number]] {
            fs::write(path, bytes).expect("to be written");
        }
    }

    fn write_signed(&self, number: usize, mut bytes: Vec<u8>) {
        if number == 0 {
            return fs::write(&self.files[0].0, signed_manifest(&bytes)).expect("to be written");
        }
        let original = &self.files[number].1;
        let directory = sign_segment(&mut bytes, u64_at(original, original.len() - TRAILER) as usize);
        fs::write(&self.files[number].0, &bytes).expect("to be written");
        let mut manifest: Value = serde_json::from_slice(&self.files[0].1).expect("JSON");
        let segment = &mut manifest["segments"][number - 1];
        segment["bytes"] = json!(bytes.len());
        segment["directory"] = json!(format!("{directory:016x}"));
        let body = manifest.as_object_mut().expect("an object");
        body.remove("version");
        body.remove("xxh3");
        let text = format!("\n{}\n", &manifest.to_string()[1..]);
        fs::write(&self.files[0].0, signed_manifest(text.as_bytes())).expect("to be written");
    }
}

/// A region: decimals, with what floats have beside numbers.
fn values(region: u64) -> Vec<f32> {
    let special = [f32::NAN, f32::INFINITY, -0.0, 9.969_21e36];
    (0..200)
        .map(|i| match noise(region, i) {
            n if n % 16 == 0 => special[n as usize / 16 % 4],
            n => (n % 400) as f32 * 0.05 + region as f32,
        })
        .collect()
}

fn header(path: &str) -> ArrayHeader {
    let fill = f32_key(9.969_21e36);
    ArrayHeader {
        path: path.into(),
        dtype: DType::F32,
        shape: vec![6, 200],
        region: vec![1, 200],
        missing: KeySet { ranges: vec![(fill, fill)], nan: true },
    }
}

/// Two segments, of which the second replaces some of the first, and a sorted replica that is none.
fn publish(dir: &Path, values: &[Vec<f32>]) -> Vec<String> {
    let mut segments = Vec::new();
    for regions in [0..4, 3..6] {
        let mut writer = SegmentWriter::create(dir).expect("a segment");
        for region in regions {
            put(&mut writer, &header(PATH), region, &values[region]);
            put(&mut writer, &header("/other"), region, &values[5 - region]);
        }
        segments.push(writer.finish(false).expect("a segment"));
    }
    let draft = SortedDraft::create(dir).expect("a draft");
    let sorted = vec![draft.finish(PATH, vec![PATH.into()], 7).expect("an entry")];
    let names = segments.iter().map(|s| s.name().to_owned()).collect();
    let fingerprint = Fingerprint { len: 12_345, version: "17".into(), content: 0xfeed };
    let listing = sieva_index::store::Listing { segments, sorted };
    Store::publish(dir, &fingerprint, &|_| listing.clone(), false).expect("to be published");
    names
}

fn put(writer: &mut SegmentWriter, header: &ArrayHeader, region: usize, values: &[f32]) {
    let (elements, missing) = (Elements::F32(values), &header.missing);
    let (mut stats, mut head, mut body) = (Vec::new(), Vec::new(), Vec::new());
    RegionStats::full(elements, missing).encode(&mut stats);
    build(elements, missing, 2, &mut Workspace::default(), &mut head, &mut body);
    let bitmap = (region % 3 != 2).then_some((&head[..], &body[..]));
    let content = Some(content_hash(elements.bytes()));
    let record = Record { region: region as u64, content, stats: &stats, bitmap };
    writer.put(header, &record).expect("a record");
}

/// Looks at everything; says whether damage was told. Answers are checked where the values are given.
fn look(dir: &Path, values: Option<&[Vec<f32>]>) -> (Seen, bool) {
    let mut seen = Seen::new();
    let store = match Store::open(dir) {
        Ok(Some(store)) => store,
        Ok(None) => return (seen, true),
        Err(e) => {
            assert!(matches!(e.kind(), ErrorKind::CorruptIndex | ErrorKind::Unsupported), "{e}");
            return (seen, true);
        }
    };
    let mut told = !store.damage().is_empty();
    seen.push(Some(format!("{:?} {:?}", store.fingerprint(), store.sorted())));
    store.arrays();
    for path in [PATH, "/other"] {
        // As the engine does: an array of another kind is none of the source's.
        let (found, expected) = (store.load(path), header(path));
        let is_of_source = |h: &ArrayHeader| {
            (h.dtype, &h.shape, &h.missing) == (expected.dtype, &expected.shape, &expected.missing)
        };
        let Some(records) = found.filter(|r| is_of_source(r.header())) else {
            assert!(values.is_none() || told, "'{path}' is gone, and nothing is told");
            seen.extend(vec![None; 1 + 4 * 6]);
            continue;
        };
        told |= !records.damage.is_empty();
        seen.push(Some(format!("{:?}", records.header())));
        (0..6).for_each(|region| seen.push(records.content(region).map(|n| n.to_string())));
        let index = ArrayIndex::load(records).expect("of the array's shape");
        let values: Option<Vec<_>> =
            values.map(|v| if path == PATH { v.to_vec() } else { v.iter().rev().cloned().collect() });
        (0..index.grid().len().min(6)).for_each(|region| learn(&index, region, values.as_deref(), &mut seen));
        index.summary();
        told |= !index.damage().is_empty();
    }
    (seen, told)
}

/// What is known of a region, and what it answers.
fn learn(index: &ArrayIndex, region: usize, values: Option<&[Vec<f32>]>, seen: &mut Seen) {
    let set = KeySet { nan: true, ..KeySet::interval(f32_key(3.0), f32_key(7.5)) };
    let truth = values.map(|v| sieva_index::members(Elements::F32(&v[region]), &set));
    let (least, most) = index.count_bounds(region, &set);
    if let Some(truth) = &truth {
        let hits = sieva_fuzz::bits::ones(truth);
        assert!(least <= hits && hits <= most, "{least} <= {hits} <= {most}");
    }
    seen.push(index.stats(region).map(|s| format!("{s:?} {:?}", index.verdict(region, &set))));
    let Some(bitmap) = index.bitmap(region) else { return seen.extend([None, None]) };
    seen.push(Some(format!("{:?} {}", bitmap.bins(), bitmap.cost(&set))));
    let words = sieva_fuzz::bits::words(bitmap.rows() as usize);
    let (mut sure, mut check) = (vec![0; words], vec![0; words]);
    if index.evaluate(region, &bitmap, &set, &mut Workspace::default(), &mut sure, &mut check).is_none() {
        return seen.push(None);
    }
    if let Some(truth) = &truth {
        assert_eq!(sieva_fuzz::bits::answer(&sure, &check, truth), *truth);
    }
    seen.push(Some(format!("{sure:?} {check:?}")));
}

fn is_signed(manifest: &[u8]) -> bool {
    let text = String::from_utf8_lossy(manifest);
    let start = manifest.iter().position(|&b| b == b'\n').map_or(manifest.len(), |at| at + 1);
    text.contains(&format!("{:016x}", xxh3_64(&manifest[start..])))
}

/// What follows the first line, behind a first line with its checksum.
fn signed_manifest(manifest: &[u8]) -> Vec<u8> {
    let start = manifest.iter().position(|&b| b == b'\n').map_or(0, |at| at + 1);
    let rest = &manifest[start..];
    let head = format!("{{\"version\": 1, \"xxh3\": \"{:016x}\",\n", xxh3_64(rest));
    [head.as_bytes(), rest].concat()
}

/// Makes all checksums of a segment fit, whose directory is at `directory` if it can be; the directory's checksum.
fn sign_segment(bytes: &mut Vec<u8>, directory: usize) -> u64 {
    bytes.resize(bytes.len().max(64 + TRAILER), 0);
    let end = bytes.len() - TRAILER;
    let directory = directory.min(end);
    // Two arrays of two kinds of records: four blocks, last in the directory.
    for block in (1..=4).filter_map(|n| end.checked_sub(n * BLOCK)).filter(|&at| at >= directory) {
        let entry = if bytes[block + 4] == 1 { 24 } else { 32 };
        let records = u64_at(bytes, block + 16) as u32 as usize;
        let offset = u64_at(bytes, block + 8) as usize;
        let table = offset.saturating_add(records * entry);
        let payload = table.saturating_add(u64_at(bytes, block + 24) as usize);
        for (at, range) in [(block + 32, offset..table), (block + 40, table..payload)] {
            let hash = bytes.get(range).map_or(0, xxh3_64);
            bytes[at..at + 8].copy_from_slice(&hash.to_le_bytes());
        }
    }
    let hash = xxh3_64(&bytes[directory..end]);
    for (i, n) in [directory as u64, (end - directory) as u64, hash].into_iter().enumerate() {
        bytes[end + i * 8..end + i * 8 + 8].copy_from_slice(&n.to_le_bytes());
    }
    bytes[end + 24..].copy_from_slice(b"SIEVAEND");
    hash
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}
