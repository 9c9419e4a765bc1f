//! What work costs on this host, kept in the store; and measuring it off line.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Instant;

use serde_json::{Value as Json, json};
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_index::store::locations;
use sieva_query::cost::Costs;
use sieva_types::{Buffer, Bx, Error, Result};

use crate::open::Source;

/// Observations below this number are not worth keeping.
const WORTH: u64 = 8;
/// Small and large reads that a calibration makes of an array.
const SMALL_READS: u64 = 4000;
const LARGE_READS: u64 = 200;

/// What a calibration found: names and nanoseconds, with the number of observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Name, nanoseconds, observations.
    pub costs: Vec<(String, f64, u64)>,
    /// Where it is kept.
    pub kept_in: PathBuf,
}

fn file(store: &Path) -> PathBuf {
    // Asked once: thousands of small files may be opened.
    static NAME: OnceLock<String> = OnceLock::new();
    store.join(NAME.get_or_init(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host: String =
            host.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
        format!("host-{}.json", if host.is_empty() { "unknown" } else { &host })
    }))
}

/// Takes over what was kept in the first of these stores that has it.
pub fn load(stores: &[PathBuf], costs: &Costs) {
    let kept = stores.iter().find_map(|s| std::fs::read(file(s)).ok());
    let Some(kept) = kept.and_then(|bytes| serde_json::from_slice::<Json>(&bytes).ok()) else { return };
    for (name, estimate) in costs.named() {
        let cost = &kept["costs"][name];
        if let (Some(value), Some(seen)) = (cost["nanoseconds"].as_f64(), cost["observations"].as_u64()) {
            estimate.set(value, seen);
        }
    }
}

/// Keeps what was learnt in a store that exists.
pub fn save(store: &Path, costs: &Costs) {
    if store.is_dir() && costs.named().iter().any(|(_, e)| e.seen() >= WORTH) {
        // Nothing depends on it.
        let _ = write(store, costs);
    }
}

/// Removes what all hosts keep in a store.
pub fn forget(store: &Path) {
    for entry in std::fs::read_dir(store).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("host-") && name.contains(".json") {
            // What stays is small and harmless.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn write(store: &Path, costs: &Costs) -> std::io::Result<()> {
    let mut kept = serde_json::Map::new();
    for (name, estimate) in costs.named() {
        kept.insert(name.into(), json!({"nanoseconds": estimate.get(), "observations": estimate.seen()}));
    }
    let path = file(store);
    let aside = path.with_extension(format!("json.{}", std::process::id()));
    std::fs::write(&aside, format!("{:#}\n", json!({"version": 1, "costs": kept})))?;
    std::fs::rename(&aside, &path)
}

impl Source {
    /// Takes over what is kept of the costs on this host.
    pub(crate) fn costs_into(&self, costs: &Costs) {
        let place = self.many().and_then(|m| m.joined.names().first()).map_or(self.path(), Path::new);
        load(&locations(place, self.options().store_dir_of(place).as_deref()).read, costs);
    }

    /// Measures what reading this source costs here, and keeps it in its store: small and large reads of its
    /// largest arrays of each kind of layout (SDQuery section 4.1, off-line training).
    ///
    /// # Errors
    /// Reading errors; `permission-denied` where the store cannot be written.
    pub fn calibrate(&self) -> Result<Calibration> {
        let loaded = self.loaded()?;
        let costs = &loaded.indexes.costs;
        for chunked in [false, true] {
            if let Some(array) = self.largest(chunked) {
                self.measure(array, chunked, costs)?;
            }
        }
        let dir = loaded.write();
        let refused = |e| {
            Error::io(format!("cannot write to '{}'", dir.display()), &e)
                .hint("give a directory that can be written: --store DIR or SIEVA_STORE")
        };
        std::fs::create_dir_all(dir).map_err(refused)?;
        write(dir, costs).map_err(refused)?;
        let found = costs.named().iter().map(|(n, e)| ((*n).to_string(), e.get(), e.seen())).collect();
        Ok(Calibration { costs: found, kept_in: file(dir) })
    }

    fn largest(&self, chunked: bool) -> Option<usize> {
        let arrays = (0..self.schema().arrays.len()).filter(|&a| {
            self.array_header(a).is_ok()
                && self.reader().layout(a).is_ok_and(|l| l.is_chunked() == chunked)
                && self.schema().arrays[a].shape.iter().product::<u64>() > 0
        });
        arrays.max_by_key(|&a| self.schema().arrays[a].shape.iter().product::<u64>())
    }

    fn measure(&self, array: usize, chunked: bool, costs: &Costs) -> Result<()> {
        let header = self.array_header(array)?;
        let grid = sieva_index::RegionGrid::new(&header.shape, &header.region)?;
        let reader = BlockReader::new(
            std::sync::Arc::clone(self.reader()),
            array,
            std::sync::Arc::new(ChunkCache::new(0)),
            u64::MAX,
        )?;
        let (mut buffer, mut workspace) = (Buffer::default(), Workspace::default());
        let mut timed = |bx: &Bx, requests: u64| -> Result<()> {
            let started = Instant::now();
            reader.read(bx, &mut buffer, &mut workspace)?;
            let took = started.elapsed().as_secs_f64() * 1e9;
            let costs = if chunked { &costs.chunked } else { &costs.direct };
            costs.observe(requests, buffer.bytes().len() as u64, took);
            Ok(())
        };
        let step = grid.len().div_ceil(LARGE_READS as usize).max(1);
        for region in (0..grid.len()).step_by(step) {
            timed(&grid.bx(region), 1)?;
        }
        if !chunked {
            // Single elements, scattered by a multiplicative sequence.
            let n: u64 = header.shape.iter().product();
            for i in 0..SMALL_READS.min(n) {
                let mut rest = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % n;
                let mut start = vec![0; header.shape.len()];
                for d in (0..start.len()).rev() {
                    start[d] = rest % header.shape[d];
                    rest /= header.shape[d];
                }
                timed(&Bx::new(start, vec![1; header.shape.len()]), 1)?;
            }
        }
        Ok(())
    }
}
