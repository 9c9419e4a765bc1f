//! A producer's directory, a consumer's folders, and what has to hold of a group at every moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use sieva_share::{
    Asking, FollowOptions, Followed, Follower, Group, Packing, Produced, Producer, ProducerOptions,
};
use sieva_store::objects::Objects;

use crate::memory::Memory;

/// A directory that is removed with it; in memory where the system has such.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let shm = Path::new("/dev/shm");
        let base = if shm.is_dir() { shm.to_path_buf() } else { std::env::temp_dir() };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = base.join(format!("sieva-share-{}-{number}", std::process::id()));
        std::fs::create_dir_all(dir.join("steps")).unwrap();
        Self(dir)
    }

    pub fn steps(&self) -> String {
        self.0.join("steps").display().to_string()
    }

    /// A step with so many values from `first` on.
    pub fn step(&self, name: &str, first: i32) {
        std::fs::write(self.0.join("steps").join(name), classic(first, 1000)).unwrap();
    }

    pub fn folder(&self, user: &str) -> PathBuf {
        self.0.join("folders").join(user)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// A netCDF classic file with the integers `v` from `first` on along x.
pub fn classic(first: i32, n: u32) -> Vec<u8> {
    let mut out = b"CDF\x01\0\0\0\0".to_vec();
    let name = |c: u8| u32::from(c) << 24;
    let mut words = vec![10, 1, 1, name(b'x'), n, 0, 0, 11, 1, 1, name(b'v'), 1, 0, 0, 0, 4, 4 * n];
    words.push(8 + 4 * (words.len() as u32 + 1));
    out.extend(words.iter().flat_map(|w| w.to_be_bytes()));
    out.extend((0..n as i32).flat_map(|i| (first + i).to_be_bytes()));
    out
}

pub const LARGE: &str = "SELECT v WHERE v >= 1990";
pub const MEAN: &str = "SELECT avg(v) AS mean, count(*) AS n";

pub fn ask(group: &Group, user: &str, name: &str, sql: &str) -> sieva::Result<()> {
    ask_in(group, user, name, sql, "csv")
}

pub fn ask_in(group: &Group, user: &str, name: &str, sql: &str, format: &str) -> sieva::Result<()> {
    group.ask(user, name, &Asking { sql, format, only_new: false }).map(drop)
}

pub fn options() -> ProducerOptions {
    ProducerOptions { settle: Duration::ZERO, threads: Some(1), ..ProducerOptions::default() }
}

pub fn produce(group: &Group, name: &str) -> sieva::Result<Produced> {
    Producer::open(group, name)?.pass(&options())
}

/// The same with results that share objects.
pub fn produce_packed(group: &Group, name: &str) -> sieva::Result<Produced> {
    let packed = ProducerOptions { packing: Packing::Partial, object_size: Some(10_000), ..options() };
    Producer::open(group, name)?.pass(&packed)
}

/// The same with zone maps beside every result that can have some.
pub fn produce_carrying(group: &Group, name: &str) -> sieva::Result<Produced> {
    let carrying = ProducerOptions { zone_maps_from: Some(0), ..options() };
    Producer::open(group, name)?.pass(&carrying)
}

/// A pass of the followers of all that a user asks for, each into a folder of its name.
pub fn follow(group: &Group, user: &str, folder: &Path) -> sieva::Result<Followed> {
    let mut all = Followed::default();
    for ask in group.asks(user)? {
        let follower = Follower::new(group, user, &ask.name, folder.join(&ask.name))?;
        let one = follower.pass(&FollowOptions::default())?;
        all.files.extend(one.files);
        all.failures.extend(one.failures);
        all.troubles.extend(one.troubles);
        all.bytes += one.bytes;
    }
    Ok(all)
}

/// The files of a folder that people see, by name.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(dir) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if path.is_dir() {
                open.push(path);
            } else if !name.contains("/.sieva-follow") {
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// All that an index names is there, with the length that it names, and zone maps beside it are there whole: a reader may come
/// at any moment.
pub fn check(memory: &Memory) {
    let contents = memory.contents();
    for (key, bytes) in contents.iter().filter(|(key, _)| key.starts_with("users/")) {
        let record: Value = serde_json::from_slice(bytes).unwrap();
        let answers = record["asks"].as_object().unwrap().values();
        for entry in answers.flat_map(|of| of["entries"].as_array().into_iter().flatten()) {
            if let Some(object) = entry["object"]["key"].as_str() {
                let there = contents.get(object).map(|bytes| bytes.len() as u64);
                let number = |name: &str| entry["object"][name].as_u64().unwrap();
                let ranges = entry["object"]["ranges"].as_array().into_iter().flatten();
                let ends = ranges.map(|range| range[0].as_u64().unwrap() + range[1].as_u64().unwrap());
                let end = ends.max().unwrap_or(number("offset") + number("size"));
                let is_right =
                    if object.ends_with(".parts") { there >= Some(end) } else { there == Some(end) };
                assert!(is_right, "{key} names {object} up to {end}, which has {there:?}");
                check_beside(&contents, object);
            }
        }
    }
}

/// Of zone maps beside an object that is there all is there.
pub fn check_beside(contents: &BTreeMap<String, Vec<u8>>, object: &str) {
    let Some(manifest) = contents.get(&format!("{object}.sieva/manifest.json")) else { return };
    let manifest = String::from_utf8(manifest.clone()).unwrap();
    let listed: Vec<&str> = manifest.split('"').filter(|word| word.ends_with(".seg")).collect();
    assert!(!listed.is_empty(), "{manifest}");
    for segment in listed {
        assert!(contents.contains_key(&format!("{object}.sieva/{segment}")), "{object}: {segment}");
    }
}

/// The keys of a store under a prefix.
pub fn keys(objects: &dyn Objects, prefix: &str) -> Vec<String> {
    objects.list(prefix).unwrap().into_iter().map(|e| e.key).collect()
}
