//! Any stored bytes through any pipeline of filters: an answer of exactly the length asked for, or an error; and
//! nothing of what was decoded before in it.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | stages, at most 4 |
//! | 11 each | the filter, and five numbers of client data (2, little-endian) |
//! | or 21 | the same of scale-offset with ten numbers, of zfp with five of 4 bytes |
//! | 1 | filter mask |
//! | 2 | decoded length (little-endian) |
//! | the rest | stored bytes |
#![no_main]

use libfuzzer_sys::fuzz_target;
use sieva_format::filters::{Filter, Pipeline, Scratch};
use sieva_fuzz::check_error;
use sieva_types::ErrorKind;

/// Numbers in the registry; the last is nobody's.
const FILTERS: [u32; 15] = [1, 2, 3, 4, 5, 6, 307, 32000, 32001, 32004, 32008, 32015, 32026, 32013, 40000];
const NBIT: u32 = 5;
const SCALE_OFFSET: u32 = 6;
const ZFP: u32 = 32013;

struct Input<'a> {
    pipeline: Pipeline,
    mask: u32,
    decoded: usize,
    stored: &'a [u8],
}

fuzz_target!(|bytes: &[u8]| {
    let Some(Input { pipeline, mask, decoded, stored }) = read(bytes) else { return };
    let (mut one, mut other) = (vec![0x55; decoded], vec![0xaa; decoded]);
    let mut scratch = Scratch::default();
    let first = pipeline.decode(mask, stored, &mut one, &mut scratch);
    let again = pipeline.decode(mask, stored, &mut other, &mut scratch);
    assert_eq!(first, again);
    match first {
        Ok(()) => assert_eq!(one, other),
        Err(e) => {
            check_error(&e);
            assert!(matches!(e.kind(), ErrorKind::CorruptFile | ErrorKind::FilterUnavailable), "{e}");
        }
    }
});

fn read(bytes: &[u8]) -> Option<Input<'_>> {
    let (&stages, mut rest) = bytes.split_first()?;
    let mut filters = Vec::new();
    for _ in 0..stages % 5 {
        let (number, client_data, after) = stage(rest)?;
        filters.push(Filter::from_hdf5(number, &client_data, ""));
        rest = after;
    }
    let (&[mask, low, high], stored) = rest.split_first_chunk()?;
    let decoded = u16::from_le_bytes([low, high]).into();
    Some(Input { pipeline: Pipeline { filters }, mask: mask.into(), decoded, stored })
}

fn stage(bytes: &[u8]) -> Option<(u32, Vec<u32>, &[u8])> {
    let (&filter, rest) = bytes.split_first()?;
    let number = FILTERS[usize::from(filter) % FILTERS.len()];
    let given = if matches!(number, NBIT | SCALE_OFFSET | ZFP) { 10 } else { 5 };
    let (client_data, rest) = rest.split_at_checked(2 * given)?;
    let words: Vec<u32> = match number {
        // The first is their number.
        NBIT => {
            let words = client_data[2..].as_chunks().0.iter().map(|&n| u16::from_le_bytes(n).into());
            std::iter::once(given as u32).chain(words).collect()
        }
        // Whole words of a header.
        ZFP => client_data.as_chunks().0.iter().map(|&n| u32::from_le_bytes(n)).collect(),
        _ => client_data.as_chunks().0.iter().map(|&n| u16::from_le_bytes(n).into()).collect(),
    };
    // Scale-offset always has as many, most of them unused.
    let unused = if number == SCALE_OFFSET { 10 } else { 0 };
    Some((number, words.into_iter().chain(std::iter::repeat_n(0, unused)).collect(), rest))
}
