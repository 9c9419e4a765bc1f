//! What the requests of a batch have in common: a reader for each array, and what its stored values mean.

use std::sync::Arc;

use sieva_format::read::{BlockReader, ChunkCache};
use sieva_query::bind::stored_domain;
use sieva_query::raw::StoredDomain;
use sieva_types::{DType, Result};

use super::Request;
use crate::open::Source;

/// The arrays of a batch.
pub(super) struct Readers {
    /// In ascending order.
    arrays: Vec<usize>,
    readers: Vec<Result<BlockReader>>,
    /// What stored values mean, decoded and raw; `None` of texts.
    domains: Vec<[Result<Option<StoredDomain>>; 2]>,
}

impl Readers {
    /// The reader of an array; `None` where no request that was found right asks for it.
    pub(super) fn of(&self, array: usize) -> Option<&Result<BlockReader>> {
        self.readers.get(self.arrays.binary_search(&array).ok()?)
    }

    /// What the stored values of an array mean; `None` of texts.
    ///
    /// # Errors
    /// What finding that out says.
    pub(super) fn domain(&self, array: usize, raw: bool) -> Result<Option<&StoredDomain>> {
        let known = self.arrays.binary_search(&array).ok().and_then(|i| self.domains.get(i));
        match known.map(|domains| &domains[usize::from(raw)]) {
            Some(Ok(domain)) => Ok(domain.as_ref()),
            Some(Err(e)) => Err(e.clone()),
            None => Ok(None),
        }
    }
}

impl Source {
    /// A reader for each array that is asked for.
    pub(super) fn readers_of(
        &self,
        requests: &[Request],
        checked: &[Result<u64>],
        memory: u64,
        kept: Option<&Arc<ChunkCache>>,
    ) -> Readers {
        let good = requests.iter().zip(checked).filter(|(_, c)| c.is_ok());
        let mut arrays: Vec<usize> = good.map(|(request, _)| request.array).collect();
        // Mostly one after the other of one array.
        arrays.dedup();
        arrays.sort_unstable();
        arrays.dedup();
        self.while_loading(|| self.reader().will_need_layouts(&arrays));
        let none = Arc::new(ChunkCache::new(0));
        let state = self.session().state_of(self, &arrays);
        let shared = state.is_some().then(|| self.session().chunks(state, memory));
        let cache = shared.as_ref().or(kept).unwrap_or(&none);
        let reader = |array| BlockReader::new(Arc::clone(self.reader()), array, Arc::clone(cache), memory);
        let domain = |array: usize, raw| {
            let info = &self.schema().arrays[array];
            let is_text = info.dtype == DType::Str;
            if is_text { Ok(None) } else { stored_domain(info, raw, self.valid_range()).map(Some) }
        };
        Readers {
            readers: arrays.iter().map(|&array| reader(array)).collect(),
            domains: arrays.iter().map(|&array| [domain(array, false), domain(array, true)]).collect(),
            arrays,
        }
    }
}
