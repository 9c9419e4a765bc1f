//! Scanning: a tile is read and all of its values are tested.

use sieva_types::Bx;

use super::path::{AccessPath, Answer, Offer, Question};
use crate::exec::Execution;
use crate::exec::access_path::Access;
use crate::mask::Mask;

/// Reading and testing.
pub(super) struct ScanPath;

/// It can always be done.
pub(super) fn offer<'e>(asked: &Question<'_>) -> Offer<'e> {
    Offer {
        cost: asked.scan,
        evaluate: Box::new(|evaluator, asked, _| {
            evaluator.read = true;
            evaluator.did.by_scan += 1;
            let (_, sure) = evaluator.leaves.test(asked.array, asked.raw, asked.set, asked.bx)?;
            Ok(Answer { sure, check: None })
        }),
    }
}

impl AccessPath for ScanPath {
    fn forced_by(&self) -> Option<Access> {
        Some(Access::Scan)
    }

    fn is_there(&self, _: &Execution, _: usize) -> bool {
        true
    }

    fn offer<'e>(&self, _: &'e Execution, asked: &Question<'_>, _: Option<&Mask>) -> Option<Offer<'e>> {
        Some(offer(asked))
    }
}

impl Execution {
    /// Nanoseconds of reading and testing a box of an array.
    pub(crate) fn scan_cost(&self, array: usize, own: &Bx) -> f64 {
        let layout = self.readers[array].layout();
        let bytes = own.len() * layout.element_size as u64;
        let costs = self.read_costs(array);
        costs.price(bytes.div_ceil(layout.chunk_bytes.max(1)).max(1), bytes)
    }
}
