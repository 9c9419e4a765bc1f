//! Fill values with parts of variable length, before libhdf5 converts them, which it does when it is asked for any property
//! of a dataset.
//!
//! Such a part is stored as its number of elements and a place in the heap. Converting it, libhdf5 takes and clears
//! memory for as many elements as the number says, up to 2^32, before it looks into the heap. So the number is looked at
//! first, in the dataset's own header.

use sieva_types::{Error, ErrorKind, Result};

use crate::ffi::Token;
use crate::file::File;
use crate::heaps::Sizes;
use crate::scout::{FillMessage, fill_messages};
use crate::types::TypeInfo;

/// Checks the fill value of the dataset `token` of this type; nothing to do where none of it is in a heap.
///
/// # Errors
/// `corrupt-file` where it says more than the file can hold, `unsupported` where it cannot be looked at.
pub(crate) fn check(file: &File, token: Token, info: &TypeInfo) -> Result<()> {
    if !info.relocated {
        return Ok(());
    }
    let bytes = file.bytes();
    let sizes = Sizes::of(bytes)?;
    let form = info.in_file(sizes.address as u64);
    for message in fill_messages(bytes, sizes.start, token.address())? {
        let (value, form) = match (message, &form) {
            (FillMessage::Value(value), _) if value.is_empty() => continue,
            (FillMessage::Value(value), Some(form)) => (value, form),
            _ => return Err(Error::new(ErrorKind::Unsupported, "its fill value cannot be looked at")),
        };
        // A message is short, so that an item that is no longer has few parts.
        if (value.len() as u64) < form.size {
            let message = format!("its fill value has {} bytes, its items have {}", value.len(), form.size);
            return Err(Error::corrupt(message));
        }
        form.heap_items().into_iter().try_for_each(|(at, item)| {
            check_item(value.get(at as usize..).unwrap_or(&[]), item, bytes.len())
        })?;
    }
    Ok(())
}

/// Checks one part, whose number of elements stands at the start of `value`.
fn check_item(value: &[u8], item: Option<&TypeInfo>, file_len: u64) -> Result<()> {
    let n = value.first_chunk().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
    if n > 0 && item.is_some_and(|item| item.relocated) {
        return Err(Error::new(ErrorKind::Unsupported, "its fill value has sequences of sequences"));
    }
    let size = item.map_or(1, |item| item.size);
    if n.saturating_mul(size) > file_len {
        let message = format!("its fill value has {n} elements of {size} bytes, the file has {file_len}");
        return Err(Error::corrupt(message));
    }
    Ok(())
}
