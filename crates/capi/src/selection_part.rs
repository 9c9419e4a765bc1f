//! Parts of selections: hits by their numbers.

use std::sync::Arc;

use crate::given::{self, Out};
use crate::selection::{Hits, SelectionHandle};
use crate::status::guarded;

/// `sieva_selection_part`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_selection_part(
    selection: *const SelectionHandle,
    first: u64,
    count: u64,
    part: *mut *mut SelectionHandle,
) -> i32 {
    guarded(|| {
        let out = Out::handle(part, "part")?;
        // SAFETY: the promises of sieva.h.
        let whole = unsafe { given::handle(selection, "selection") }?;
        let n = whole.range(first, count)?;
        let hits = match whole.hits() {
            Hits::File(query, all) => Hits::File(Arc::clone(query), Arc::new(all.slice(first, n))),
            Hits::Collection(all) => Hits::Collection(all.part(first, n)),
        };
        // SAFETY: as above.
        unsafe { out.set(whole.with(hits)) };
        Ok(())
    })
}
