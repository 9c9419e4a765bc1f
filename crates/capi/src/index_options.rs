//! `sieva_index_options`: how indexes are built; and what building and verifying did.

use std::ffi::{c_char, c_void};
use std::sync::Arc;
use std::time::Duration;

use sieva::{BuildOptions, BuildReport, Progress, Result, VerifyReport};

use crate::given;
use crate::source::Opened;
use crate::status::invalid;
use crate::stop::StopHandle;

/// `sieva_progress`
pub type Tell = unsafe extern "C" fn(context: *mut c_void, done: u64, total: u64);

/// `sieva_index_options`. New fields come at the end; 0 always means the default.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct IndexOptions {
    /// Bytes of the struct as the program knows it.
    pub size: u64,
    /// Bytes that the regions at hand may take, and a sort.
    pub memory: u64,
    /// Workers.
    pub jobs: u32,
    /// Significant decimal digits of the bounds of bitmaps' bins.
    pub precision: u32,
    /// Arrays that a sorted replica carries besides its key, a line for each, or NULL.
    pub columns: *const c_char,
    /// How long somebody else's lock on the store is waited for.
    pub lock_timeout_ms: u64,
    /// What ends building, or NULL.
    pub stop: *const StopHandle,
    /// What is told how far it is, or NULL.
    pub progress: Option<Tell>,
    /// What that is called with.
    pub progress_context: *mut c_void,
    /// Bytes of a region, about.
    pub region_size: u64,
}

/// A function of the program that is told how far work is.
struct Teller {
    call: Tell,
    context: *mut c_void,
}

// SAFETY: the header asks for a function that may be called from any thread, at the same time.
unsafe impl Send for Teller {}
// SAFETY: as above.
unsafe impl Sync for Teller {}

impl Teller {
    fn tell(&self, progress: Progress) {
        // SAFETY: the program's promise of `sieva_index_options.progress`.
        unsafe { (self.call)(self.context, progress.done, progress.total) }
    }
}

impl IndexOptions {
    /// What NULL stands for.
    pub const DEFAULT: Self = Self {
        size: size_of::<Self>() as u64,
        memory: 0,
        jobs: 0,
        precision: 0,
        columns: std::ptr::null(),
        lock_timeout_ms: 0,
        stop: std::ptr::null(),
        progress: None,
        progress_context: std::ptr::null_mut(),
        region_size: 0,
    };

    /// How indexes of a source are built: what the caller does not say is as the source was opened, else the default.
    ///
    /// # Errors
    /// `invalid-value`.
    ///
    /// # Safety
    /// A pointer that is not NULL must lead to as many bytes as its first field says; its text must end with a NUL, its
    /// handle be live.
    pub unsafe fn read(pointer: *const Self, source: &Opened) -> Result<BuildOptions> {
        // SAFETY: the caller's promise.
        let own = unsafe { given::growing(pointer, Self::DEFAULT, "sieva_index_options") }?;
        // SAFETY: as above.
        let (columns, stop) =
            unsafe { (given::optional_text(own.columns, "options.columns")?, own.stop.as_ref()) };
        let some = |n: u64| Some(n).filter(|&n| n > 0);
        let default = BuildOptions::within(source.source.session());
        let jobs = some(own.jobs.into()).map(|n| n as usize).or(source.options.threads);
        let teller = own.progress.map(|call| Arc::new(Teller { call, context: own.progress_context }));
        let stop = stop.map(|s| Arc::clone(&s.0)).or_else(|| source.options.cancel.clone());
        Ok(BuildOptions {
            jobs: jobs.unwrap_or(default.jobs),
            memory: some(own.memory).or(source.options.memory).unwrap_or(default.memory),
            precision: if own.precision == 0 { default.precision } else { own.precision },
            region_size: some(own.region_size),
            columns: columns.map(names),
            lock_timeout: some(own.lock_timeout_ms).map_or(default.lock_timeout, Duration::from_millis),
            progress: teller.map(|t| Arc::new(move |p| t.tell(p)) as Arc<dyn Fn(Progress) + Send + Sync>),
            cancel: stop.unwrap_or_default(),
            ..default
        })
    }
}

/// Names, a line for each.
fn names(text: &str) -> Vec<String> {
    text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_string).collect()
}

/// `sieva_index_report`: what building or verifying did. New fields come at the end.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct IndexReport {
    /// Bytes of the struct as the program knows it.
    pub size: u64,
    /// Regions built.
    pub regions_built: u64,
    /// Regions that had all that was asked for.
    pub regions_kept: u64,
    /// Of those built, regions whose content was the same as before.
    pub regions_renewed: u64,
    /// Bytes of data read, as decoded.
    pub bytes_read: u64,
    /// Replicas written.
    pub replicas_built: u64,
    /// Arrays with data that cannot be read.
    pub unreadable: u64,
    /// Regions whose records were compared with the data.
    pub regions_verified: u64,
    /// Rows of replicas that were.
    pub rows_verified: u64,
    /// Differences found.
    pub differences: u64,
}

impl IndexReport {
    /// Of building.
    pub fn built(report: &BuildReport) -> Self {
        Self {
            regions_built: report.built,
            regions_kept: report.kept,
            regions_renewed: report.renewed,
            bytes_read: report.bytes,
            replicas_built: report.replicas,
            unreadable: report.unreadable.len() as u64,
            ..Self::default()
        }
    }

    /// Of verifying.
    pub fn verified(report: &VerifyReport) -> Self {
        Self {
            regions_verified: report.regions,
            rows_verified: report.rows,
            differences: report.differences.len() as u64,
            ..Self::default()
        }
    }

    /// The bytes of the caller's struct; 0 for NULL.
    ///
    /// # Errors
    /// `invalid-value` for an impossible size.
    ///
    /// # Safety
    /// A pointer that is not NULL must lead to as many bytes as its first field says.
    pub unsafe fn given_size(report: *const Self) -> Result<u64> {
        if report.is_null() {
            return Ok(0);
        }
        // SAFETY: the first field is there, by the caller's promise.
        let size = unsafe { report.cast::<u64>().read_unaligned() };
        if (8..=4096).contains(&size) {
            return Ok(size);
        }
        Err(invalid(format!("report of {size} bytes"))
            .hint("set its first field: sieva_index_report report = SIEVA_INDEX_REPORT_INIT"))
    }

    /// Writes it to the caller's struct of `size` bytes, if there is one.
    ///
    /// # Safety
    /// The struct must be valid for writing `size` bytes.
    pub unsafe fn put(mut self, report: *mut Self, size: u64) {
        if report.is_null() {
            return;
        }
        self.size = size;
        let known = (size as usize).min(size_of::<Self>());
        // SAFETY: the caller's struct has `size` bytes, by its promise.
        unsafe { std::ptr::copy_nonoverlapping((&raw const self).cast::<u8>(), report.cast::<u8>(), known) };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sieva::options::{OPTIONS, Stage};

    use super::*;

    #[test]
    fn fields_are_those_of_the_table() {
        let IndexOptions {
            size: _,
            memory: _,
            jobs: _,
            precision: _,
            columns: _,
            lock_timeout_ms: _,
            stop: _,
            progress: _,
            progress_context: _,
            region_size: _,
        } = IndexOptions::DEFAULT;
        let own = [
            "memory",
            "jobs",
            "precision",
            "columns",
            "lock_timeout_ms",
            "stop",
            "progress",
            "progress_context",
            "region_size",
        ];
        let rows = OPTIONS.iter().filter(|o| o.stage == Stage::Building);
        let table: BTreeSet<&str> = rows.flat_map(|o| o.c.names()).copied().collect();
        assert_eq!(BTreeSet::from(own), table);
        assert_eq!(names("a\n g/b \n\n"), ["a", "g/b"]);
    }
}
