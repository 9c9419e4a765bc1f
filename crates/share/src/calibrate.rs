//! What a store moves in a second, measured: `T = f(size, threads)` of Scibox (section V.A).

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use sieva::{Error, ErrorKind, Result, local};
use sieva_reduce::merge::cost::{Measured, Throughput};
use sieva_store::name_of;
use sieva_store::objects::{Body, Objects, open_objects};

use crate::at_once;
use crate::lock;
use crate::made::PIECE;

/// Of what is kept.
const VERSION: u32 = 1;
/// The longest that is read.
const MOST: u64 = 1 << 20;
/// The most threads, and the largest object, that are tried.
const MOST_THREADS: u32 = 256;
const MOST_SIZE: u64 = 4 << 30;

/// What is tried.
#[derive(Clone, Debug)]
pub struct CalibrateOptions {
    /// Bytes of objects.
    pub sizes: Vec<u64>,
    /// How many are moved at once.
    pub threads: Vec<u32>,
    /// Stops it when it is set.
    pub cancel: Arc<AtomicBool>,
}

impl Default for CalibrateOptions {
    fn default() -> Self {
        let sizes = [256 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20].to_vec();
        Self { sizes, threads: vec![1, 2, 4, 8], cancel: Arc::default() }
    }
}

/// What was measured of a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    version: u32,
    /// The place, as messages name it.
    pub place: String,
    /// Of objects that were put.
    pub put: Vec<Rate>,
    /// Of objects that were got.
    pub get: Vec<Rate>,
}

/// A transfer that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Bytes of each object.
    pub size: u64,
    /// How many were moved at once.
    pub threads: u32,
    /// Bytes in a second, of all together.
    pub rate: f64,
}

/// Measures what a place of a store moves, by objects that are put there, got and deleted, and keeps it for producers of this
/// machine.
///
/// # Errors
/// `invalid-value` for nothing to try, sizes and numbers that are too large; those of the store; `cancelled`.
pub fn calibrate(place: &str, options: &CalibrateOptions) -> Result<Calibration> {
    let objects = open_objects(place)?;
    let found = measure(&*objects, options)?;
    found.keep()?;
    Ok(found)
}

fn measure(objects: &dyn Objects, options: &CalibrateOptions) -> Result<Calibration> {
    let is_wrong = options.sizes.iter().any(|&size| size == 0 || size > MOST_SIZE)
        || options.threads.iter().any(|&threads| threads == 0 || threads > MOST_THREADS)
        || options.sizes.is_empty()
        || options.threads.is_empty();
    if is_wrong {
        let message = format!("objects of {:?} bytes by {:?} threads", options.sizes, options.threads);
        let hint = format!("try sizes from 1 to {MOST_SIZE} bytes, by 1 to {MOST_THREADS} threads");
        return Err(Error::new(ErrorKind::InvalidValue, message).hint(hint));
    }
    let mut found = Calibration { version: VERSION, place: objects.name(), put: Vec::new(), get: Vec::new() };
    for &size in &options.sizes {
        for &threads in &options.threads {
            let keys: Vec<String> =
                (0..threads).map(|n| format!("calibrate/{}-{n}", std::process::id())).collect();
            let moved = move_all(objects, &keys, size, &options.cancel);
            // Whatever became of it, nothing stays.
            let deleted = at_once::map(keys.len(), &keys, |key| objects.delete(key));
            let (put, get) = moved?;
            deleted?;
            found.put.push(Rate { size, threads, rate: put });
            found.get.push(Rate { size, threads, rate: get });
        }
    }
    Ok(found)
}

/// Puts and gets objects, all at once: the bytes in a second of both.
fn move_all(objects: &dyn Objects, keys: &[String], size: u64, cancel: &AtomicBool) -> Result<(f64, f64)> {
    let check = || match cancel.load(Ordering::Relaxed) {
        true => Err(Error::new(ErrorKind::Cancelled, "calibrating was interrupted")),
        false => Ok(()),
    };
    // Whole bytes, which are the same when they are read again.
    let rate = |begun: Instant| {
        let seconds = begun.elapsed().as_secs_f64().max(1e-9);
        ((size * keys.len() as u64) as f64 / seconds).round().max(1.0)
    };
    check()?;
    let begun = Instant::now();
    at_once::map(keys.len(), keys, |key| objects.put(key, &Noise { size }))?;
    let put = rate(begun);
    check()?;
    let begun = Instant::now();
    at_once::map(keys.len(), keys, |key| {
        let mut piece = vec![0; PIECE.min(usize::try_from(size).unwrap_or(PIECE))];
        let mut at = 0;
        while at < size {
            check()?;
            let n = usize::try_from(size - at).map_or(piece.len(), |left| left.min(piece.len()));
            if !objects.get_range(key, at, &mut piece[..n])? {
                let message = format!("'{}' was put, and is not there", objects.location(key));
                return Err(Error::new(ErrorKind::FileNotFound, message).hint("calibrate it again"));
            }
            at += n as u64;
        }
        Ok(())
    })?;
    Ok((put, rate(begun)))
}

/// Bytes that nothing on the way makes fewer of.
struct Noise {
    size: u64,
}

impl Body for Noise {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut state = offset | 1;
        for byte in out {
            // xorshift of Marsaglia.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
        Ok(())
    }
}

impl Calibration {
    /// The least size of objects whose rate is at least `share` of the best one, by so many threads that put them.
    pub fn best_size(&self, threads: u32, share: f64) -> u64 {
        let measured = |rate: &Rate| Measured { size: rate.size, threads: rate.threads, rate: rate.rate };
        let all: Vec<Measured> = self.put.iter().map(measured).collect();
        // What is kept was checked.
        Throughput::new(&all).map_or(1, |throughput| throughput.best_size(threads, share)).max(1)
    }

    /// What was measured of a place, or of the nearest one above it; `None` where nothing was.
    ///
    /// # Errors
    /// `corrupt-file`; those of reading.
    pub fn known(place: &str) -> Result<Option<Self>> {
        let mut place = place.trim_end_matches('/');
        loop {
            if let Some(found) = Self::read(place)? {
                return Ok(Some(found));
            }
            match place.rsplit_once('/') {
                Some((above, _)) if !above.is_empty() && !above.ends_with('/') => place = above,
                _ => return Ok(None),
            }
        }
    }

    fn read(place: &str) -> Result<Option<Self>> {
        let path = path(place)?;
        let bytes = match local::read(&path, MOST) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(local::error("reading", &path, &e)),
        };
        let read: Option<Self> = serde_json::from_slice(&bytes).ok();
        let is_good = |known: &Self| {
            let good =
                |rate: &Rate| rate.size > 0 && rate.threads > 0 && rate.rate.is_finite() && rate.rate > 0.0;
            known.version == VERSION && !known.put.is_empty() && known.put.iter().chain(&known.get).all(good)
        };
        read.filter(is_good).map(Some).ok_or_else(|| {
            let message = format!("'{}' does not say what was measured of a store", path.display());
            Error::new(ErrorKind::CorruptFile, message)
                .hint("calibrate it again: sieva share calibrate PLACE")
        })
    }

    fn keep(&self) -> Result<()> {
        let bytes = serde_json::to_vec(self)
            .map_err(|e| Error::new(ErrorKind::Internal, format!("what was measured: {e}")))?;
        let path = path(self.place.trim_end_matches('/'))?;
        if let Some(parent) = path.parent() {
            local::told("making", parent, std::fs::create_dir_all(parent))?;
        }
        let kept = local::Aside::new(&path, 0o666).and_then(|mut aside| {
            aside.file()?.write_all(&bytes)?;
            aside.publish(true)
        });
        local::told("writing", &path, kept)
    }
}

fn path(place: &str) -> Result<PathBuf> {
    Ok(lock::directory()?.join(format!("calibrated-{}.json", name_of(place.as_bytes()))))
}
