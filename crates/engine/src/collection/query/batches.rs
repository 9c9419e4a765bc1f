//! Results as a stream of record batches.

use super::*;

/// The record batches of a result. Iterate, or hand on as an Arrow stream.
pub struct CollectionBatches {
    pub(super) inner: Arc<Inner>,
    pub(super) cancel: Arc<AtomicBool>,
    /// The way through the objects; `None` for groups.
    pub(super) walk: Option<Walk>,
    pub(super) ready: VecDeque<RecordBatch>,
    pub(super) size: usize,
    pub(super) skip: u64,
    pub(super) left: u64,
    pub(super) given: u64,
}

impl CollectionBatches {
    /// The schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.inner.schema)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.left == 0 && self.walk.is_some() {
                return Ok(None);
            }
            if let Some(batch) = self.ready.pop_front() {
                if self.walk.is_none() {
                    return Ok(Some(batch));
                }
                if let Some(cut) = self.cut(&batch) {
                    return Ok(Some(cut));
                }
                continue;
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// What OFFSET and LIMIT leave of a batch.
    fn cut(&mut self, batch: &RecordBatch) -> Option<RecordBatch> {
        let rows = batch.num_rows() as u64;
        let skipped = self.skip.min(rows);
        self.skip -= skipped;
        let taken = (rows - skipped).min(self.left);
        self.left -= taken;
        self.given += taken;
        self.inner.lock_stats().hits = Some(self.given);
        (taken > 0).then(|| batch.slice(skipped as usize, taken as usize))
    }

    /// Runs the next objects; false at the end.
    fn fill(&mut self) -> Result<bool> {
        let (inner, size, started) = (Arc::clone(&self.inner), self.size, Instant::now());
        let Some(walk) = &mut self.walk else { return Ok(false) };
        let options = inner.object_options(&self.cancel);
        let of_object = |at: At<'_>, most: u64| -> Result<Option<Vec<RecordBatch>>> {
            let Some(query) = inner.query_within(at, most, &options)? else { return Ok(None) };
            let all: Batches = query.batches(size)?;
            let each = all.map(|b| rows::conform(&inner.schema, &b?));
            each.filter(|b| !matches!(b, Ok(b) if b.num_rows() == 0)).collect::<Result<Vec<_>>>().map(Some)
        };
        let is_limited = inner.shape.limit.is_some();
        let work = |at: At<'_>| match of_object(at, u64::MAX) {
            // LIMIT may leave none of its rows, or only those before the one that failed.
            Err(e) if is_limited && e.kind() == ErrorKind::Overflow => Ok(Err(at.number)),
            done => done.map(Ok),
        };
        let found = walk.window(&inner.setting(&self.cancel), &work)?;
        let mut wanted = self.skip.saturating_add(self.left);
        let (mut evaluated, mut lacking) = {
            let s = inner.lock_stats();
            (s.evaluated, s.lacking)
        };
        let is_end = found.is_none();
        for batches in found.into_iter().flatten() {
            let batches = match batches {
                Ok(batches) => batches,
                Err(_) if wanted == 0 => break,
                Err(number) => inner.at_object(number, &self.cancel, &|at| of_object(at, wanted))?,
            };
            let rows: u64 = batches.iter().flatten().map(|b| b.num_rows() as u64).sum();
            wanted = wanted.saturating_sub(rows);
            evaluated += u64::from(batches.is_some());
            lacking += u64::from(batches.is_none());
            self.ready.extend(batches.into_iter().flatten());
        }
        inner.note(walk, started, evaluated, lacking);
        Ok(!is_end)
    }
}

impl Iterator for CollectionBatches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if let Err(e) = &next {
            *self.inner.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(e.clone());
            (self.walk, self.left) = (None, 0);
            self.ready.clear();
        }
        next.transpose()
    }
}

/// The batches as an Arrow C stream wants them: errors as Arrow errors that carry ours.
impl From<CollectionBatches> for Box<dyn arrow_array::RecordBatchReader + Send> {
    fn from(batches: CollectionBatches) -> Self {
        let schema = batches.schema();
        let each = batches.map(|b| b.map_err(|e| ArrowError::ExternalError(Box::new(e))));
        Box::new(arrow_array::RecordBatchIterator::new(each, schema))
    }
}
