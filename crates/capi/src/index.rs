//! Building augmentations: what makes later queries faster, and global histograms possible.

use std::ffi::c_char;

use sieva::{BuildOptions, IndexKind, Result};

use crate::source::{Opened, SourceHandle, opened};
use crate::status::{guarded, invalid};

/// Kinds by their bits (`SIEVA_INDEX_...`).
pub const KINDS: [(IndexKind, u32); 3] =
    [(IndexKind::ZoneMap, 1), (IndexKind::Bitmap, 2), (IndexKind::Sorted, 4)];

/// `sieva_index_build`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_index_build(
    source: *const SourceHandle,
    array: *const c_char,
    kinds: u32,
) -> i32 {
    guarded(|| {
        // SAFETY: the promises of sieva.h.
        let source = unsafe { opened(source) }?;
        // SAFETY: as above.
        let (arrays, options) = unsafe { build_of(source, array, kinds) }?;
        source.source.build_index(&arrays, &options).map(|_| ())
    })
}

/// The kinds of a sum of their bits.
///
/// # Errors
/// `invalid-value` for kinds that are none.
pub fn kinds_of(kinds: u32) -> Result<Vec<IndexKind>> {
    let known: u32 = KINDS.iter().map(|k| k.1).sum();
    if kinds == 0 || kinds & !known != 0 {
        return Err(invalid(format!(
            "kinds of index {kinds:#x}: a sum of zonemap (1), bitmap (2), sorted (4)"
        )));
    }
    Ok(KINDS.iter().filter(|k| kinds & k.1 != 0).map(|k| k.0).collect())
}

/// The arrays that are to be indexed, and how.
///
/// # Errors
/// `invalid-value` for kinds that are none; `unknown-array`.
///
/// # Safety
/// The name must be NULL or end with a NUL.
pub unsafe fn build_of(
    source: &Opened,
    array: *const c_char,
    kinds: u32,
) -> Result<(Vec<String>, BuildOptions)> {
    let kinds = kinds_of(kinds)?;
    let arrays = if array.is_null() {
        Vec::new()
    } else {
        // SAFETY: the caller's promise.
        let index = unsafe { source.array(array) }?;
        vec![source.source.schema().arrays[index].path.clone()]
    };
    let default = BuildOptions::within(source.source.session());
    let options = BuildOptions {
        kinds,
        jobs: source.options.threads.unwrap_or(default.jobs),
        memory: source.options.memory.unwrap_or(default.memory),
        ..default
    };
    Ok((arrays, options))
}
