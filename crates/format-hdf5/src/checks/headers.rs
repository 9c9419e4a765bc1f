//! Headers of objects: what the layout in one leads to is known from then on.

use sieva_types::Result;

use super::trees::Trees;
use super::{Look, mappings};
use crate::bytes::FileBytes;
use crate::heaps::Sizes;
use crate::scout::{DataPlace, data_places};

/// What is wrong with what the header at `address` leads to, if anything is.
///
/// # Errors
/// Those of the storage.
pub(super) fn object(
    bytes: &FileBytes,
    sizes: Sizes,
    base: u64,
    address: u64,
    trees: &mut Trees,
) -> Result<Option<&'static str>> {
    for place in data_places(bytes, Sizes { start: base, ..sizes }, address)? {
        match place {
            DataPlace::Mappings { heap, index } => {
                let look = Look::new(bytes, sizes, base);
                let wrong = look.finish(|look| mappings::wrong(look, heap, index))?;
                if wrong.is_some() {
                    return Ok(wrong);
                }
            }
            DataPlace::OldTree { root, key } => trees.expect_root(root, key),
            DataPlace::Index { at, chunks } => trees.expect_index(at, chunks),
            DataPlace::SharedMessages => trees.share_messages(),
        }
    }
    Ok(None)
}
