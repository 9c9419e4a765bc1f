//! The bytes of one HDF5 file, wherever they are kept, as libhdf5 and our own looks at its metadata share them.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sieva_store::RangedRead;
use sieva_types::{Error, ErrorKind, Result};

/// Bytes around metadata that are fetched with them: far less than a request costs.
const NEAR: u64 = 16 << 10;

/// A store that libhdf5 reads, with an identity of its own: a store that is opened twice is two files.
pub(crate) struct FileBytes {
    id: u64,
    store: Arc<dyn RangedRead>,
    /// Bytes of the file's pages where its space is managed so; 0 otherwise.
    page: AtomicU64,
    /// The first error of the store since the last look. libhdf5 may go on after one, as if there were nothing.
    failure: Mutex<Option<Error>>,
}

impl std::fmt::Debug for FileBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileBytes").field("id", &self.id).field("name", &self.store.name()).finish()
    }
}

impl FileBytes {
    /// The bytes of `store`.
    pub(crate) fn new(store: Arc<dyn RangedRead>) -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { id, store, page: AtomicU64::new(0), failure: Mutex::new(None) })
    }

    /// What tells these bytes from all others of the process.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Where they are read from.
    pub(crate) fn store(&self) -> &dyn RangedRead {
        &*self.store
    }

    /// The same, to keep.
    pub(crate) fn shared_store(&self) -> Arc<dyn RangedRead> {
        Arc::clone(&self.store)
    }

    /// Length of the file.
    pub(crate) fn len(&self) -> u64 {
        self.store.len()
    }

    /// The local file that they are, where they are one.
    pub(crate) fn local_path(&self) -> Option<&Path> {
        self.store.local_path()
    }

    /// Notes that metadata are kept in pages of so many bytes.
    pub(crate) fn set_page(&self, page: u64) {
        self.page.store(page, Ordering::Relaxed);
    }

    /// Fills `out` from `offset` on. What fails is remembered: see [`FileBytes::take_failure`].
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        // A panic must not run into libhdf5's frames: the process would end.
        let read = catch_unwind(AssertUnwindSafe(|| self.store.read_exact_at(offset, out)));
        let read = read.unwrap_or_else(|_| {
            let what =
                format!("reading {} bytes at offset {offset} of '{}' broke", out.len(), self.store.name());
            Err(Error::new(ErrorKind::Internal, what))
        });
        if let Err(e) = &read {
            self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| e.clone());
        }
        read
    }

    /// Says that these bytes are about to be read.
    pub(crate) fn will_need(&self, ranges: &[Range<u64>]) {
        // As in `read`. What could not be announced is read all the same.
        let _ = catch_unwind(AssertUnwindSafe(|| self.store.will_need(ranges)));
    }

    /// The same for metadata of which libhdf5 reads `len` bytes at `start`, where whole pages hold such.
    pub(crate) fn announce(&self, start: u64, len: u64) {
        if self.page.load(Ordering::Relaxed) > 0 && self.store.is_remote() {
            let range = start..start.saturating_add(len).min(self.len());
            self.will_need(&self.whole_pages(std::iter::once(range)));
        }
    }

    /// Ranges of metadata grown to the pages that they lie in: those of the file, or [`NEAR`], for what belongs
    /// together is written together, and a later round then finds it there.
    pub(crate) fn whole_pages(&self, ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
        let page = match self.page.load(Ordering::Relaxed) {
            0 => NEAR,
            page => page,
        };
        let grow = |r: Range<u64>| {
            let end = r.end.checked_next_multiple_of(page).unwrap_or(r.end).min(self.len());
            r.start - r.start % page..end
        };
        let mut pages: Vec<Range<u64>> = ranges.map(grow).collect();
        pages.dedup();
        pages
    }

    /// The first error of the store since the last call.
    pub(crate) fn take_failure(&self) -> Option<Error> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
