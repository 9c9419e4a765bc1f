//! Chunks packed by HDF5's nbit filter, before libhdf5 unpacks them.
//!
//! The library takes the number of items and of bits from the filter's parameters and reads as many bits as
//! these ask for, however short the chunk is. Here the parameters are held against the dataset, and the length of
//! each chunk against the parameters.

use std::ffi::{c_int, c_uint, c_void};

use hdf5_metno_sys::h5::{HADDR_UNDEF, haddr_t, hsize_t};
use hdf5_metno_sys::h5d::H5Dchunk_iter;
use hdf5_metno_sys::h5p::H5P_DEFAULT;
use sieva_format::filters::{Filter, Pipeline, Scratch};
use sieva_types::{Error, ErrorKind, Result};

use crate::dataset::{self, RawFilter};
use crate::ffi::{Handle, call};
use crate::file::File;

/// The filter's number.
const NBIT: u32 = 5;
/// Deepest nesting of types within the parameters.
const DEPTH_LIMIT: usize = 32;
/// Most chunks that are looked at.
const CHUNK_LIMIT: usize = 4 << 20;
/// Largest packed chunk that is looked at.
pub(crate) const SIZE_LIMIT: u64 = 4 << 30;

/// Checks all chunks of a dataset; nothing to do where nbit is not among its filters.
pub(crate) fn check(file: &File, dataset: &Handle) -> Result<()> {
    let creation = dataset::creation_list(dataset)?;
    let filters = dataset::raw_filters(&creation)?;
    let Some(stage) = filters.iter().position(|f| f.id == NBIT) else { return Ok(()) };
    let items = dataset::chunk_items(&creation)?;
    let size = dataset::item_size(dataset)?;
    let wrong = || Error::corrupt("its nbit filter does not fit its type and chunks");
    let packed = match packed_len(&filters[stage].client_data, items, size).ok_or_else(wrong)? {
        Some(len) if len <= SIZE_LIMIT => len,
        Some(len) => return Err(Error::new(ErrorKind::Unsupported, format!("nbit chunks of {len} bytes"))),
        None => return Ok(()),
    };
    let outer = Pipeline { filters: filters[stage + 1..].iter().map(RawFilter::filter).collect() };
    let mut scratch = Scratch::default();
    for chunk in stored_chunks(dataset)? {
        if chunk.mask >> stage.min(31) & 1 == 1 {
            continue;
        }
        let mask = chunk.mask.checked_shr(stage as u32 + 1).unwrap_or(0);
        let is_long_enough = match length_under(&outer, mask, chunk.size) {
            Some(len) => len >= packed,
            None => unpacks_to(file, &outer, mask, &chunk, packed, &mut scratch)?,
        };
        if !is_long_enough {
            return Err(Error::corrupt(format!(
                "a chunk of {} bytes at offset {} is too short for its nbit filter",
                chunk.size, chunk.address
            )));
        }
    }
    Ok(())
}

/// A chunk in the file.
pub(crate) struct Stored {
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) mask: u32,
}

/// The chunks that the file has of a dataset.
pub(crate) fn stored_chunks(dataset: &Handle) -> Result<Vec<Stored>> {
    let mut chunks: Vec<Stored> = Vec::new();
    call("cannot find its data", || {
        // SAFETY: called under the lock with an open dataset; the callback only writes to `chunks`.
        unsafe { H5Dchunk_iter(dataset.id(), H5P_DEFAULT, Some(keep), (&raw mut chunks).cast()) }
    })?;
    Ok(chunks)
}

unsafe extern "C" fn keep(
    _offset: *const hsize_t,
    mask: c_uint,
    address: haddr_t,
    size: hsize_t,
    data: *mut c_void,
) -> c_int {
    // SAFETY: `data` is the caller's Vec.
    let chunks = unsafe { &mut *data.cast::<Vec<Stored>>() };
    if address != HADDR_UNDEF {
        chunks.push(Stored { address, size, mask });
    }
    c_int::from(chunks.len() >= CHUNK_LIMIT)
}

/// What is left of a chunk once stages that keep lengths are undone; `None` where one does not.
fn length_under(outer: &Pipeline, mask: u32, size: u64) -> Option<u64> {
    let applied =
        outer.filters.iter().enumerate().filter(|(i, _)| mask.checked_shr(*i as u32).unwrap_or(0) & 1 == 0);
    let mut len = size;
    for (_, filter) in applied {
        match filter {
            Filter::Shuffle { .. } => {}
            Filter::Fletcher32 => len = len.saturating_sub(4),
            _ => return None,
        }
    }
    Some(len)
}

/// Whether the stages outside of nbit decode to the length that it needs.
fn unpacks_to(
    file: &File,
    outer: &Pipeline,
    mask: u32,
    chunk: &Stored,
    packed: u64,
    scratch: &mut Scratch,
) -> Result<bool> {
    let input = file.bytes_at(chunk.address, chunk.size)?;
    let mut out = vec![0; packed as usize];
    Ok(outer.decode(mask, &input, &mut out, scratch).is_ok())
}

/// Bytes of a packed chunk of `items` items of `size` bytes: the outer `None` where the parameters are not for
/// such a chunk, the inner one where the filter does nothing.
fn packed_len(parameters: &[u32], items: u64, size: u64) -> Option<Option<u64>> {
    if u64::from(*parameters.first()?) != parameters.len() as u64 {
        return None;
    }
    if *parameters.get(1)? != 0 {
        return Some(None);
    }
    let mut rest = parameters.get(3..)?.iter().copied();
    let (item_size, bits) = packed_type(&mut rest, 0)?;
    if u64::from(parameters[2]) != items || item_size != size {
        return None;
    }
    Some(Some(items.checked_mul(bits)? / 8 + 1))
}

/// Size in bytes and packed length in bits of the type that the parameters describe next.
fn packed_type(rest: &mut impl Iterator<Item = u32>, depth: usize) -> Option<(u64, u64)> {
    if depth > DEPTH_LIMIT {
        return None;
    }
    let class = rest.next()?;
    let size = u64::from(rest.next()?);
    match class {
        // A number: byte order, precision, offset.
        1 => {
            let (order, precision, offset) = (rest.next()?, u64::from(rest.next()?), u64::from(rest.next()?));
            (order <= 1 && precision > 0 && precision + offset <= 8 * size).then_some((size, precision))
        }
        // A block of items.
        2 => {
            let (item, bits) = packed_type(rest, depth + 1)?;
            (item > 0 && size % item == 0)
                .then(|| bits.checked_mul(size / item))
                .flatten()
                .map(|bits| (size, bits))
        }
        // A compound: the number of members, each with its offset.
        3 => {
            let mut bits = 0_u64;
            for _ in 0..rest.next()? {
                let offset = u64::from(rest.next()?);
                let (member, member_bits) = packed_type(rest, depth + 1)?;
                if offset + member > size {
                    return None;
                }
                bits = bits.checked_add(member_bits)?;
            }
            Some((size, bits))
        }
        // Bytes that are kept as they are.
        4 => Some((size, 8 * size)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_length_follows_from_the_parameters() {
        assert_eq!(packed_len(&[8, 0, 200, 1, 4, 0, 31, 0], 200, 4), Some(Some(776)));
        assert_eq!(packed_len(&[8, 1, 200, 1, 4, 0, 32, 0], 200, 4), Some(None));
        for (given, items, size) in
            [([8, 0, 200, 1, 4, 0, 31, 0], 201, 4), ([8, 0, 200, 1, 4, 0, 31, 2], 200, 4)]
        {
            assert_eq!(packed_len(&given, items, size), None, "{given:?}");
        }
        assert_eq!(packed_len(&[8, 0, 2, 1, 8, 0, 31, 0], 2, 4), None);
        // A compound of a 5-bit number and two raw bytes three times.
        let compound = [15, 0, 8, 3, 8, 2, 0, 1, 2, 0, 5, 0, 2, 4, 6];
        assert_eq!(packed_len(&compound, 8, 8), Some(Some(8 * (5 + 48) / 8 + 1)));
    }
}
