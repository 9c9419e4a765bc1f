//! Learning from use: what queries asked is written to a catalog, and advice follows from it.
//!
//! A query that has run leaves a note ([`used`]) that a thread of its own writes to the catalog, if one is configured.
//! [`advise`] reads the notes of a while, prices each of them with the planner's cost model for every augmentation that
//! could have answered it ([`model`]), and chooses within a budget of bytes ([`choose`]). [`apply`] does what was
//! chosen. The loop is that of SDS's server, which decides from the history of requests what to reorganise.

mod apply;
mod candidates;
mod choose;
mod evict;
mod json;
mod model;
mod rules;
mod sample;
mod usage_log;
mod used;
mod workload;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_catalog::Catalog;
use sieva_types::Result;

use crate::augment::IndexKind;
pub use apply::{Done, apply};
pub use choose::{Item, Verdict};
pub use rules::{NamedRule, rules, set_rule};
pub use usage_log::flush as flush_usage;
pub(crate) use usage_log::found_stale;
pub(crate) use used::{fetched, used};

/// Of what, and within which bounds, advice is asked for.
#[derive(Clone, Debug)]
pub struct AdviseOptions {
    /// The source, directory or beginning of locations that is looked at; empty: all that the catalog has notes of.
    pub prefix: String,
    /// Bytes that augmentations may take together; `None`: any number.
    pub budget: Option<u64>,
    /// The directory of stores that was given to the queries; `None`: what SIEVA_STORE says, else beside the source.
    pub store: Option<PathBuf>,
    /// Workers that a build would have.
    pub jobs: usize,
    /// The latest notes that count.
    pub limit: usize,
    /// Set to stop.
    pub cancel: Arc<AtomicBool>,
}

impl Default for AdviseOptions {
    fn default() -> Self {
        Self {
            prefix: String::new(),
            budget: None,
            store: None,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            limit: 100_000,
            cancel: Arc::default(),
        }
    }
}

/// What should be built, kept and removed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// What there is or could be: first what is chosen, in the order of choice.
    pub items: Vec<Item>,
    /// The budget in bytes.
    pub budget: Option<u64>,
    /// Bytes of what there is now.
    pub bytes_now: u64,
    /// Bytes of what would be there.
    pub bytes_then: u64,
    /// Seconds that what is chosen saves, over the notes that were looked at.
    pub saves: f64,
    /// No choice within the budget saves more than this.
    pub bound: f64,
    /// Notes that were looked at.
    pub uses: u64,
    /// Sources and arrays that were left out, and why.
    pub skipped: Vec<(String, String)>,
}

impl Advice {
    /// Whether everything is as it should be.
    pub fn is_empty(&self) -> bool {
        !self.items.iter().any(|i| matches!(i.verdict, Verdict::Build | Verdict::Evict))
    }
}

/// What the notes of a catalog say should be built, kept and removed. Reads some regions of arrays that were asked.
///
/// # Errors
/// Those of the catalog; `cancelled`. Sources that cannot be read are told in [`Advice::skipped`].
pub fn advise(catalog: &Catalog, options: &AdviseOptions) -> Result<Advice> {
    let (cases, skipped, uses) = candidates::gather(catalog, options)?;
    let chosen =
        choose::choose(cases.iter().flat_map(|c| c.arrays.iter().cloned()).collect(), options.budget);
    Ok(Advice {
        bytes_now: chosen.items.iter().map(|i| i.bytes_now).sum(),
        bytes_then: chosen.items.iter().filter(|i| i.is_there_then()).map(|i| i.bytes).sum(),
        items: chosen.items,
        budget: options.budget,
        saves: chosen.saves,
        bound: chosen.bound,
        uses,
        skipped,
    })
}

/// The place of a kind in lists of three.
fn number(kind: IndexKind) -> usize {
    match kind {
        IndexKind::ZoneMap => 0,
        IndexKind::Bitmap => 1,
        IndexKind::Sorted => 2,
    }
}

/// The name of a kind, as the command line and the catalog have it.
pub(crate) fn name_of(kind: IndexKind) -> &'static str {
    IndexKind::NAMED[number(kind)].0
}
