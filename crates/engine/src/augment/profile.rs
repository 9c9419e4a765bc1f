//! What work costs on this host, kept in the store; and measuring it off line.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde_json::{Value as Json, json};
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_index::store::Home;
use sieva_query::cost::Costs;
use sieva_types::{Buffer, Bx, Error, ErrorKind, Result};

use super::homes;
use crate::open::Source;

/// Observations below this number are not worth keeping.
const WORTH: u64 = 8;
/// Small and large reads that a calibration makes of an array.
const SMALL_READS: u64 = 4000;
const LARGE_READS: u64 = 200;
/// Most elements of one of them.
const LARGE_READ: u64 = 1 << 22;

/// What a calibration found: names and nanoseconds, with the number of observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// Name, nanoseconds, observations.
    pub costs: Vec<(String, f64, u64)>,
    /// Where it is kept.
    pub kept_in: PathBuf,
}

/// Bytes beyond which a file is none of ours.
const LONGEST: u64 = 64 << 10;

fn file() -> &'static str {
    // Asked once: thousands of small files may be opened.
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host: String =
            host.trim().chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).collect();
        format!("host-{}.json", if host.is_empty() { "unknown" } else { &host })
    })
}

/// Takes over what was kept in the first of these stores that has it.
pub fn load(stores: &[Home], costs: &Costs) {
    let kept = stores.iter().find_map(|s| s.read(file(), LONGEST).ok());
    let Some(kept) = kept.and_then(|bytes| serde_json::from_slice::<Json>(&bytes).ok()) else { return };
    for (name, estimate) in costs.named() {
        let cost = &kept["costs"][name];
        if let (Some(value), Some(seen)) = (cost["nanoseconds"].as_f64(), cost["observations"].as_u64()) {
            estimate.set(value, seen);
        }
    }
}

/// Keeps what was learnt in a store that exists.
pub fn save(store: &Home, costs: &Costs) {
    if costs.named().iter().any(|(_, e)| e.seen() >= WORTH) {
        // Nothing depends on it.
        let _ = store.write(file(), &text(costs));
    }
}

/// Removes what all hosts keep in a store.
pub fn forget(store: &Home) {
    // What stays is small and harmless.
    store.remove(|name| name.starts_with("host-") && name.contains(".json"));
}

fn text(costs: &Costs) -> Vec<u8> {
    let mut kept = serde_json::Map::new();
    for (name, estimate) in costs.named() {
        kept.insert(name.into(), json!({"nanoseconds": estimate.get(), "observations": estimate.seen()}));
    }
    format!("{:#}\n", json!({"version": 1, "costs": kept})).into_bytes()
}

impl Source {
    /// Takes over what is kept of the costs on this host.
    pub(crate) fn costs_into(&self, costs: &Costs) {
        let place = self.many().and_then(|m| m.files.names().first()).map_or(self.path(), Path::new);
        load(&homes(place, self.options()).read, costs);
    }

    /// Measures what reading this source costs here, and keeps it in its store: small and large reads of its
    /// largest arrays of each kind of layout (SDQuery section 4.1, off-line training).
    ///
    /// # Errors
    /// Reading errors; `permission-denied` where the store cannot be written.
    pub fn calibrate(&self) -> Result<Calibration> {
        self.calibrate_until(&Arc::default())
    }

    /// The same, until `cancel` is set.
    ///
    /// # Errors
    /// As [`Source::calibrate`], and `cancelled`.
    pub fn calibrate_until(&self, cancel: &Arc<AtomicBool>) -> Result<Calibration> {
        let loaded = self.loaded()?;
        let costs = &loaded.indexes.costs;
        for chunked in [false, true] {
            if let Some(array) = self.largest(chunked) {
                self.measure(array, chunked, costs, cancel)?;
            }
        }
        let home = loaded.write();
        home.write_new(file(), &text(costs))?;
        let found = costs.named().iter().map(|(n, e)| ((*n).to_string(), e.get(), e.seen())).collect();
        Ok(Calibration { costs: found, kept_in: home.path().join(file()) })
    }

    fn largest(&self, chunked: bool) -> Option<usize> {
        let arrays = (0..self.schema().arrays.len()).filter(|&a| {
            self.array_header(a).is_ok()
                && self.reader().layout(a).is_ok_and(|l| l.is_chunked() == chunked)
                && self.elements(a) > 0
        });
        arrays.max_by_key(|&a| self.elements(a))
    }

    fn elements(&self, array: usize) -> u64 {
        Bx::whole(&self.schema().arrays[array].shape).len()
    }

    fn measure(&self, array: usize, chunked: bool, costs: &Costs, cancel: &Arc<AtomicBool>) -> Result<()> {
        let header = self.array_header(array)?;
        let grid = sieva_index::RegionGrid::new(&header.shape, &header.region)?;
        let reader =
            BlockReader::new(Arc::clone(self.reader()), array, Arc::new(ChunkCache::new(0)), self.memory())?;
        let (mut buffer, mut workspace) = (Buffer::default(), Workspace::cancelled_by(cancel));
        let mut timed = |bx: &Bx, requests: u64| -> Result<()> {
            if cancel.load(Relaxed) {
                return Err(Error::new(ErrorKind::Cancelled, "the calibration was interrupted"));
            }
            // What was never written costs nothing, which is not what is to be learnt.
            if reader.is_unwritten(bx) {
                return Ok(());
            }
            let started = Instant::now();
            reader.read(bx, &mut buffer, &mut workspace)?;
            let took = started.elapsed().as_secs_f64() * 1e9;
            let costs = if chunked { &costs.chunked } else { &costs.direct };
            costs.observe(requests, buffer.bytes().len() as u64, took);
            Ok(())
        };
        let step = grid.len().div_ceil(LARGE_READS as usize).max(1);
        for region in (0..grid.len()).step_by(step) {
            timed(&at_most(grid.bx(region), LARGE_READ), 1)?;
        }
        if !chunked {
            // Single elements, scattered by a multiplicative sequence.
            let n = self.elements(array);
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

/// The beginning of a box, of so many elements: regions of an array that declares to be giant are giant.
fn at_most(mut bx: Bx, elements: u64) -> Bx {
    while bx.len() > elements {
        let Some(d) = bx.shape.iter().position(|&n| n > 1) else { break };
        bx.shape[d] = bx.shape[d].div_ceil(2);
    }
    bx
}
