//! What an access path is: it judges a tile, offers an answer for so much, and evaluates.

use sieva_index::stats::Verdict;
use sieva_types::{Bx, KeySet, Result};

use crate::exec::Execution;
use crate::exec::access_path::Access;
use crate::exec::tile::condition::Evaluator;
use crate::mask::Mask;

/// What is asked of a path: where the stored values of an array belong to a set, over one tile.
pub(in crate::exec) struct Question<'q> {
    /// The bound array, and whether its values are meant as stored.
    pub(super) array: usize,
    pub(super) raw: bool,
    pub(super) set: &'q KeySet,
    /// The tile, a box of the row space, and the array's own box within it.
    pub(super) bx: &'q Bx,
    pub(super) own: Bx,
    /// Nanoseconds of reading and testing all of it.
    pub(super) scan: f64,
}

/// What a path found, over the array's own box.
pub(in crate::exec) struct Answer {
    /// Where the condition holds.
    pub(super) sure: Mask,
    /// Where it may hold, and another path must tell; `None`: nowhere.
    pub(super) check: Option<Mask>,
}

/// How a path that offered finds the answer; positions that are not open may be answered anyhow.
pub(super) type Evaluate<'e> =
    Box<dyn FnOnce(&mut Evaluator<'_, 'e>, &Question<'_>, Option<&Mask>) -> Result<Answer> + 'e>;

/// What a path would take for a tile.
pub(super) struct Offer<'e> {
    /// Nanoseconds; offers are compared by them.
    pub(super) cost: f64,
    pub(super) evaluate: Evaluate<'e>,
}

/// A way to find where the stored values of one array belong to a set.
pub(super) trait AccessPath: Sync {
    /// The access that forces this path; `None` where nobody can ask for it by name.
    fn forced_by(&self) -> Option<Access>;

    /// Whether there is what the path needs of a bound array.
    fn is_there(&self, execution: &Execution, array: usize) -> bool;

    /// Whether none, all or some of a box hold, as far as the path can tell without reading the source.
    fn judge(&self, _: &Execution, _: &Question<'_>) -> Verdict {
        Verdict::Some
    }

    /// What the path offers, where it can be taken; only the positions `open` are of interest, if they are given.
    fn offer<'e>(
        &self,
        execution: &'e Execution,
        asked: &Question<'_>,
        open: Option<&Mask>,
    ) -> Option<Offer<'e>>;
}
