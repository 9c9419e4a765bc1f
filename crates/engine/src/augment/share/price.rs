//! What a build takes, told before it is begun.

use super::{IndexJob, Stage};
use crate::augment::{told, worker};

/// What it takes to build what is left of an [`IndexJob`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BuildPrice {
    /// Regions that get zone maps or bitmaps.
    pub regions: u64,
    /// Their elements: rows that are looked at.
    pub rows: u64,
    /// Their bytes, decoded, each of which is read once.
    pub bytes: u64,
    /// Bytes of the arrays that sorted replicas carry, decoded: they are read, set aside and written again.
    pub sorted_bytes: u64,
    /// Bytes that each thread should be let have of a build's memory, for the largest region.
    pub memory: u64,
    /// The states of the sources, ascending: a build of others is another one.
    pub states: Vec<[u64; 3]>,
}

impl IndexJob {
    /// What it takes to build what is left. Nothing is read for it.
    pub fn price(&self) -> BuildPrice {
        let mut price = BuildPrice::default();
        for stage in &self.stages {
            match stage {
                Stage::Regions(sources) => sources.iter().for_each(|source| source.add_to(&mut price)),
                Stage::Replica(job) => {
                    let (source, arrays, state) = job.what();
                    let all = arrays.iter().map(|&array| told::data_bytes(source, array));
                    price.sorted_bytes = all.fold(price.sorted_bytes, u64::saturating_add);
                    price.states.push(state);
                }
            }
        }
        price.states.sort_unstable();
        price.states.dedup();
        price
    }
}

impl super::regions::Regions {
    fn add_to(&self, price: &mut BuildPrice) {
        for array in &self.arrays {
            for &(_, bytes) in &array.regions {
                price.regions += 1;
                price.rows = price.rows.saturating_add(bytes / array.item.max(1));
                price.bytes = price.bytes.saturating_add(bytes);
                price.memory = price.memory.max(worker::memory_for(bytes, array.bitmaps));
            }
        }
        price.states.push(self.state);
    }
}
