//! Numbers for the states of sources: what is kept of a file is kept of it as it was.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use sieva_format::read::is_of_one_file;

use super::local_file;
use crate::open::Source;

/// A file that was changed less than this ago may be changed again without its time telling: file systems count in steps.
const SETTLED: Duration = Duration::from_secs(2);
/// So many states are remembered; then numbers begin anew, and what was kept is not found again.
const MOST: usize = 1 << 12;

/// Numbers by what tells one state of one file, understood in one way, from all others.
#[derive(Default)]
pub(super) struct Sources(Mutex<HashMap<String, u64>>);

impl Sources {
    /// The number of a source's state as it was opened; `None` where a change of one of `arrays` might not be noticed.
    pub(super) fn state_of(&self, source: &Source, arrays: &[usize]) -> Option<u64> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let (path, store) = (local_file(source)?, source.reader().store());
        let version = store.version();
        let modified = version.strip_suffix(" ns")?.parse().ok().map(Duration::from_nanos)?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + modified).ok()?;
        if since < SETTLED {
            return None;
        }
        let is_here = |array: &usize| {
            source.reader().layout(*array).is_ok_and(|layout| is_of_one_file(&layout.placement))
        };
        if !arrays.iter().all(is_here) {
            return None;
        }
        let path = std::path::absolute(path).ok()?;
        let roots = &source.options().external_roots;
        let identity = format!(
            "{path:?} {} {version} {} {roots:?} {}",
            store.len(),
            source.meaning(),
            source.reader().schema().format
        );
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        Some(*known.entry(identity).or_insert_with(|| NEXT.fetch_add(1, Ordering::Relaxed)))
    }
}
