//! Sorted replicas with a changed file: the old answers, or an error of kind `corrupt-index`.
//!
//! The replica is cut into chunks of 16 rows, three to a shard, so that small inputs meet all that large replicas
//! have. With checksums made to fit the change, other answers are allowed, panics and other errors are not.
#![no_main]

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use sieva_fuzz::values::noise;
use sieva_fuzz::{Change, Data, Rows, SetRecipe};
use sieva_index::sorted::SortedReplica;
use sieva_types::keys::f64_key;
use sieva_types::{Buffer, DType, ErrorKind, KeySet, Result};
use xxhash_rust::xxh3::xxh3_64;

const ROWS: usize = 150;
const CHUNK: usize = 16;
const SHARD: usize = 3;
const CHECK: &str = "\"check\": \"";
const UNCHECKED: &str = "0000000000000000";
/// Directories of the arrays and the sizes of their elements.
const ARRAYS: [(&str, usize); 4] = [("column_0", 8), ("column_1", 2), ("row", 4), ("fence", 8)];

#[derive(Arbitrary, Debug)]
struct Input {
    file: u8,
    sign: bool,
    changes: Vec<Change>,
    field: Option<(u8, Field)>,
    set: SetRecipe,
}

/// What comes in the place of something in the metadata.
#[derive(Arbitrary, Debug)]
enum Field {
    Number(u64),
    Small(u8),
    Signed(i64),
    Float(f64),
    Text(String),
    List(Vec<u64>),
    Columns(Vec<(u8, u8, u8)>),
    Nothing,
}

thread_local! {
    static REPLICA: RefCell<Original> = RefCell::new(Original::new());
}

fuzz_target!(|input: Input| REPLICA.with_borrow_mut(|replica| replica.run(&input)));

struct Original {
    parent: tempfile::TempDir,
    /// The metadata first.
    files: Vec<(PathBuf, Vec<u8>)>,
    keys: Vec<i128>,
}

impl Original {
    fn new() -> Self {
        let values: Vec<f64> = (0..ROWS as u64).map(value).collect();
        let key = Data::new(DType::F64, &values.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<_>>());
        let other = (0..ROWS as u16).flat_map(u16::to_ne_bytes).collect::<Vec<_>>();
        let other = Data::new(DType::U16, &other);
        let parent = tempfile::tempdir().expect("a directory");
        let built = parent.path().join("built");
        Rows::new(vec![&key, &other], 40).build(&built, 1, 1 << 28).expect("a replica");
        let mut replica = Self { parent, files: Vec::new(), keys: key.keys() };
        replica.files = cut_anew(&built, &replica.dir());
        replica.restore();
        let all = KeySet::interval(0, 1 << 62);
        let (mut want, mut got) = (answers(&built, &all).expect("answers"), replica.answers(&all));
        // Estimates are by chunks.
        [4, 2].iter().for_each(|&at| drop((want.remove(at), got.remove(at))));
        assert_eq!(want, got);
        replica
    }

    fn dir(&self) -> PathBuf {
        self.parent.path().join("small")
    }

    /// Those of the unchanged replica.
    fn answers(&self, set: &KeySet) -> Vec<Vec<u64>> {
        answers(&self.dir(), set).expect("answers of an unchanged replica")
    }

    fn restore(&self) {
        for (path, bytes) in &self.files {
            fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            fs::write(path, bytes).expect("to be written");
        }
    }

    fn run(&self, input: &Input) {
        let number = usize::from(input.file) % self.files.len();
        let set = input.set.condition(DType::F64, &self.keys);
        let (path, original) = &self.files[number];
        let mut bytes = original.clone();
        input.changes.iter().for_each(|change| change.apply(&mut bytes));
        if number == 0
            && let Some((key, field)) = &input.field
        {
            set_field(&mut bytes, *key, field);
        }
        let want = self.answers(&set);
        if input.sign {
            self.write_signed(number, bytes);
        } else if !(number == 0 && signed_text(&bytes).as_ref() == Some(&bytes)) {
            fs::write(path, bytes).expect("to be written");
        }
        match answers(&self.dir(), &set) {
            Ok(got) => assert!(input.sign || got == want, "'{}' is damaged and believed", path.display()),
            Err(e) => assert_eq!(e.kind(), ErrorKind::CorruptIndex, "{e}"),
        }
        // Signing changes the metadata too.
        for (path, bytes) in [&self.files[0], &self.files[number]] {
            fs::write(path, bytes).expect("to be written");
        }
    }

    fn write_signed(&self, number: usize, mut bytes: Vec<u8>) {
        let (path, original) = &self.files[number];
        if number == 0 {
            bytes = signed_text(&bytes).unwrap_or(bytes);
            return fs::write(path, bytes).expect("to be written");
        }
        let array = path.parent().and_then(Path::parent).and_then(Path::file_name).expect("an array");
        let size = ARRAYS.iter().find(|a| *a.0 == *array).expect("an array").1;
        let chunks = (original.len() - 4 - SHARD * 16) / (CHUNK * size + 4);
        let shard = &mut bytes[..].chunks_exact_mut(CHUNK * size + 4).take(chunks);
        let mut elements = Vec::new();
        for chunk in shard {
            let (data, sum) = chunk.split_at_mut(CHUNK * size);
            sum.copy_from_slice(&crc32c::crc32c(data).to_le_bytes());
            elements.extend_from_slice(data);
        }
        fs::write(path, bytes).expect("to be written");
        if *array == *"fence" {
            elements.truncate(ROWS.div_ceil(CHUNK) * size);
            let mut text = self.files[0].1.clone();
            set_field(&mut text, FENCES, &Field::Number(crc32c::crc32c(&elements).into()));
            let text = signed_text(&text).expect("metadata");
            fs::write(&self.files[0].0, text).expect("to be written");
        }
    }
}

/// Decimals, zeros of both signs, infinities and NaN.
fn value(i: u64) -> f64 {
    match noise(7, i) {
        n if n % 9 == 0 => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0][n as usize / 9 % 5],
        n => (n % 90) as f64 / 10.0 - 3.0,
    }
}

/// The files of the replica in `from`, cut into small chunks, as files of `to`.
fn cut_anew(from: &Path, to: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let replica = SortedReplica::open(from).expect("a replica");
    let rows = replica.rows();
    let mut columns = Vec::new();
    for column in 0..2 {
        let mut buffer = Buffer::default();
        replica.read(column, 0..rows, &mut buffer).expect("elements");
        columns.push(buffer.bytes().to_vec());
    }
    let mut positions = Vec::new();
    replica.positions(0..rows, &mut positions).expect("positions");
    columns.push(positions.iter().flat_map(|&p| (p as u32).to_le_bytes()).collect());
    let fences: Vec<u8> = columns[0].chunks(CHUNK * 8).flat_map(|chunk| chunk[..8].to_vec()).collect();
    let mut text = fs::read(from.join("zarr.json")).expect("metadata");
    set_field(&mut text, 3, &Field::Small(CHUNK as u8));
    set_field(&mut text, 4, &Field::Small(SHARD as u8));
    set_field(&mut text, FENCES, &Field::Number(crc32c::crc32c(&fences).into()));
    columns.push(fences);
    let mut files = vec![(to.join("zarr.json"), signed_text(&text).expect("metadata"))];
    for ((name, size), bytes) in ARRAYS.iter().zip(columns) {
        for (number, shard) in bytes.chunks(CHUNK * SHARD * size).enumerate() {
            files.push((to.join(name).join("c").join(number.to_string()), shard_file(shard, *size)));
        }
    }
    files
}

fn shard_file(elements: &[u8], size: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for chunk in elements.chunks(CHUNK * size) {
        let mut whole = chunk.to_vec();
        whole.resize(CHUNK * size, 0);
        file.extend_from_slice(&whole);
        file.extend_from_slice(&crc32c::crc32c(&whole).to_le_bytes());
    }
    // The index is for other readers.
    file.extend_from_slice(&[0; SHARD * 16 + 4]);
    file
}

/// All that a replica says, or the first error.
fn answers(dir: &Path, set: &KeySet) -> Result<Vec<Vec<u64>>> {
    let replica = SortedReplica::open(dir)?;
    let mut all = vec![replica.shape().to_vec()];
    for set in [set, &KeySet { nan: true, ..KeySet::interval(f64_key(-1.0), f64_key(2.5)) }] {
        let slices = replica.slices(set)?;
        assert!(slices.iter().all(|s| s.start < s.end && s.end <= replica.rows()));
        let (least, most) = replica.estimate(set);
        assert!(most <= replica.rows());
        all.extend([slices.into_iter().flat_map(|s| [s.start, s.end]).collect(), vec![least, most]]);
    }
    let (mut positions, mut out) = (Vec::new(), Buffer::default());
    replica.positions(0..replica.rows(), &mut positions)?;
    assert!(positions.iter().all(|&p| p < replica.rows()));
    all.push(positions);
    for column in 0..replica.columns().len() {
        replica.read(column, 0..replica.rows(), &mut out)?;
        all.push(out.bytes().iter().map(|&b| b.into()).collect());
    }
    Ok(all)
}

/// Fields of the metadata.
const FIELDS: [&str; 11] =
    ["shape", "numbers", "columns", "chunk", "shard", "fences", "version", "format", "key", "seal", "check"];
const FENCES: u8 = 5;

/// Changes a field of the metadata, if these are JSON.
fn set_field(text: &mut Vec<u8>, key: u8, field: &Field) {
    let Ok(mut group) = serde_json::from_slice::<Value>(text) else { return };
    let key = FIELDS[usize::from(key) % FIELDS.len()];
    let Some(slot) = group.pointer_mut(&format!("/attributes/sieva/{key}")) else { return };
    *slot = field.value();
    *text = serde_json::to_vec_pretty(&group).expect("JSON");
}

impl Field {
    fn value(&self) -> Value {
        const TYPES: [&str; 6] = ["float64", "uint64", "int8", "float32", "uint16", "str"];
        const PATHS: [&str; 6] = ["column_0", "column_1", "row", "fence", "../x", "c"];
        let pick = |of: &[&'static str; 6], i: u8| of[usize::from(i) % 6];
        match self {
            Self::Number(n) => json!(n),
            Self::Small(n) => json!(n),
            Self::Signed(n) => json!(n),
            Self::Float(x) => json!(x),
            Self::Text(text) => json!(text),
            Self::List(list) => json!(list),
            Self::Columns(columns) => columns
                .iter()
                .map(|&(name, dtype, path)| {
                    json!({"name": name.to_string(), "dtype": pick(&TYPES, dtype), "path": pick(&PATHS, path)})
                })
                .collect(),
            Self::Nothing => Value::Null,
        }
    }
}

/// The text with its checksum in it; `None` where it has no place for one.
fn signed_text(text: &[u8]) -> Option<Vec<u8>> {
    let mut text = String::from_utf8(text.to_vec()).ok()?;
    let at = text.find(CHECK)? + CHECK.len();
    text.get(at..at + UNCHECKED.len())?;
    text.replace_range(at..at + UNCHECKED.len(), UNCHECKED);
    let check = format!("{:016x}", xxh3_64(text.as_bytes()));
    text.replace_range(at..at + UNCHECKED.len(), &check);
    Some(text.into_bytes())
}
