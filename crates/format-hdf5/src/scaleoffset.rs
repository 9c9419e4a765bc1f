//! What the scale-offset filter is told of a chunk, compared with the chunk, before libhdf5 decodes any.
//!
//! The filter takes memory for as many elements as its client data say, whatever the chunk holds.

use sieva_types::{Error, Result};

use crate::dataset::RawFilter;

/// The filter's number in the registry.
const NUMBER: u32 = 6;
/// Where its client data keep the elements of a chunk, and the bytes of an element.
const ELEMENTS: usize = 2;
const ELEMENT_SIZE: usize = 4;

/// Checks the filters of a dataset whose chunks take `chunk_bytes` bytes.
///
/// # Errors
/// `corrupt-file` where the filter is told of chunks of another size.
pub(crate) fn check(filters: &[RawFilter], chunk_bytes: Option<u64>) -> Result<()> {
    for filter in filters.iter().filter(|f| f.id == NUMBER) {
        let number = |at: usize| filter.client_data.get(at).copied().map(u64::from);
        // The product of two numbers of 32 bits.
        let told = number(ELEMENTS).zip(number(ELEMENT_SIZE)).map(|(n, size)| n * size);
        if told.is_none() || told != chunk_bytes {
            let said = told.map_or("nothing".to_owned(), |n| format!("{n} bytes"));
            let message =
                format!("its scale-offset filter is told {said} of chunks of {chunk_bytes:?} bytes");
            return Err(Error::corrupt(message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_has_to_know_the_size_of_a_chunk() {
        let filter = |n: u32, size: u32| RawFilter {
            id: NUMBER,
            client_data: vec![2, 0, n, 0, size, 1],
            name: String::new(),
        };
        assert_eq!(check(&[filter(32, 8)], Some(256)), Ok(()));
        for (filters, chunk) in [
            ([filter(u32::MAX, 8)], Some(256)),
            ([filter(32, 4)], Some(256)),
            ([filter(32, 8)], None),
            ([RawFilter { client_data: vec![2, 0], ..filter(0, 0) }], Some(256)),
        ] {
            assert!(check(&filters, chunk).is_err(), "{filters:?}");
        }
    }
}
