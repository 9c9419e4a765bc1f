//! Chunks packed by HDF5's scale-offset filter, before libhdf5 unpacks them.
//!
//! The library takes memory for as many elements as the filter's client data say, and where values take all their
//! bits it reads as many, however short the chunk is. Here the client data are held against the dataset; and of data
//! that libhdf5 decodes because their type is one that it has to convert, each chunk is decoded first.

use sieva_format::filters::{Pipeline, Scratch};
use sieva_types::{Error, ErrorKind, Result};

use crate::dataset::{self, RawFilter};
use crate::ffi::Handle;
use crate::file::File;
use crate::nbit::{SIZE_LIMIT, stored_chunks};

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

/// Checks all chunks of a dataset that libhdf5 will decode; nothing to do where scale-offset is not among its filters.
pub(crate) fn check_chunks(file: &File, dataset: &Handle) -> Result<()> {
    let creation = dataset::creation_list(dataset)?;
    let filters = dataset::raw_filters(&creation)?;
    let Some(stage) = filters.iter().position(|f| f.id == NUMBER) else { return Ok(()) };
    let len = dataset::chunk_items(&creation)?.checked_mul(dataset::item_size(dataset)?);
    check(&filters, len)?;
    let Some(len) = len.filter(|&len| len <= SIZE_LIMIT) else {
        let message = format!("scale-offset chunks of {len:?} bytes");
        return Err(Error::new(ErrorKind::Unsupported, message));
    };
    let pipeline = Pipeline { filters: filters[stage..].iter().map(RawFilter::filter).collect() };
    let (mut scratch, mut out) = (Scratch::default(), vec![0; len as usize]);
    for chunk in stored_chunks(dataset)? {
        let mask = chunk.mask.checked_shr(stage as u32).unwrap_or(0);
        let input = file.bytes_at(chunk.address, chunk.size)?;
        pipeline.decode(mask, &input, &mut out, &mut scratch).map_err(|e| {
            Error::new(e.kind(), format!("its chunk at offset {}: {}", chunk.address, e.message()))
        })?;
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
