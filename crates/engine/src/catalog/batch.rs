//! Records that are registered in one transaction.

use std::time::{Duration, Instant};

use sieva_catalog::{IngestReport, SourceRecord};
use sieva_types::{Error, ErrorKind, Result};

use super::one;
use super::walk::{Walk, note};

/// A batch is registered once it has so many objects, or bytes of manifests, or is so old.
const OBJECTS: usize = 20_000;
const MANIFESTS: usize = 32 << 20;
const AGE: Duration = Duration::from_secs(2);

/// Records that are registered together.
#[derive(Default)]
pub(super) struct Batch {
    records: Vec<SourceRecord>,
    objects: usize,
    manifests: usize,
    since: Option<Instant>,
}

impl Batch {
    pub(super) fn push(&mut self, record: SourceRecord) {
        self.objects += record.objects.len() + 1;
        self.manifests += record.manifest.as_ref().map_or(0, Vec::len);
        self.since.get_or_insert_with(Instant::now);
        self.records.push(record);
    }

    pub(super) fn is_due(&self) -> bool {
        self.objects >= OBJECTS
            || self.manifests >= MANIFESTS
            || self.since.is_some_and(|since| since.elapsed() >= AGE)
    }

    /// Registers them, and counts what became of them.
    pub(super) fn register(&mut self, walk: &Walk<'_>, all: &mut IngestReport) -> Result<()> {
        let records = std::mem::take(self).records;
        if records.is_empty() {
            return Ok(());
        }
        let mut add = |report: IngestReport| {
            all.added += report.added;
            all.replaced += report.replaced;
            all.unchanged += report.unchanged;
            all.objects += report.objects;
        };
        let is_of_one = |e: &Error| matches!(e.kind(), ErrorKind::InvalidValue | ErrorKind::Overflow);
        match walk.catalog.ingest(&records) {
            Err(e) if is_of_one(&e) => {}
            done => {
                add(done?);
                // Those that turned out not to have changed are not put into collections by that.
                let names: Vec<&str> = records.iter().map(|r| r.location.as_str()).collect();
                return walk.collect(&names);
            }
        }
        // One of them holds what the catalog cannot keep: the others are not to suffer for it.
        for record in records {
            match walk.catalog.ingest(std::slice::from_ref(&record)) {
                Err(e) if is_of_one(&e) => {
                    let bare = one::damaged(&record.location, &(record.size, record.version), &e);
                    note(&mut walk.report().damaged, &bare.location, e.message());
                    add(walk.catalog.ingest(std::slice::from_ref(&bare))?);
                }
                done => add(done?),
            }
        }
        Ok(())
    }
}
