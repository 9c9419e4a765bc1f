//! Parts of selections: hits by their numbers.

use std::sync::{Arc, Mutex};

use crate::given::{self, Out};
use crate::selection::{SelectionHandle, range};
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
        let n = range(&whole.selection, first, count)?;
        let made = SelectionHandle {
            source: Arc::clone(&whole.source),
            query: Arc::clone(&whole.query),
            options: whole.options.clone(),
            selection: Arc::new(whole.selection.slice(first, n)),
            reader: Mutex::new(None),
        };
        // SAFETY: as above.
        unsafe { out.set(Box::new(made)) };
        Ok(())
    })
}
