//! Pipelines against chunks that HDF5 and its plug-ins stored, against other encoders, and against damage.

use super::bits::bit_shuffle;
use super::{Bitshuffle, BitshuffleCodec, Filter, Pipeline, Scratch};
use proptest::collection::vec;
use proptest::prelude::*;

/// A line of `fixtures/chunks.txt`, which `fixtures/make_chunks.py` wrote.
struct Fixture {
    line: &'static str,
    pipeline: Pipeline,
    stored: Vec<u8>,
    expected: Vec<u8>,
}

fn fixtures() -> Vec<Fixture> {
    include_str!("fixtures/chunks.txt").lines().map(fixture).collect()
}

fn fixture(line: &'static str) -> Fixture {
    let fields: Vec<&str> = line.split(" | ").collect();
    let filters = fields[1].split(';').map(filter).collect();
    let hex = fields[2].as_bytes().chunks(2);
    let stored =
        hex.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect();
    Fixture { line, pipeline: Pipeline { filters }, stored, expected: data(fields[0]) }
}

fn filter(text: &str) -> Filter {
    let (id, client_data) = text.split_once(':').unwrap();
    let client_data: Vec<u32> =
        client_data.split(',').filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect();
    Filter::from_hdf5(id.parse().unwrap(), &client_data, "")
}

fn data(name: &str) -> Vec<u8> {
    match name {
        "ramp" => (0..64).flat_map(|i: i32| (i * i / 3 - 100).to_le_bytes()).collect(),
        "steps" => (0..300).flat_map(|i: i16| (i / 37).to_be_bytes()).collect(),
        "grid" => (0..120_u8).flat_map(|i| f32::from(i % 7).to_le_bytes()).collect(),
        "zeros" => vec![0; 130 * 8],
        _ => panic!("no data {name}"),
    }
}

fn decode(pipeline: &Pipeline, stored: &[u8], len: usize) -> sieva_types::Result<Vec<u8>> {
    let mut out = vec![0xaa; len];
    pipeline.decode(0, stored, &mut out, &mut Scratch::default()).map(|()| out)
}

fn one(filter: Filter) -> Pipeline {
    Pipeline { filters: vec![filter] }
}

#[test]
fn stored_chunks_decode_to_their_values() {
    // One scratch for all: what one chunk leaves behind must not reach the next.
    let mut scratch = Scratch::default();
    for Fixture { line, pipeline, stored, expected } in fixtures() {
        assert!(pipeline.is_supported(), "{line}");
        let mut out = vec![0xaa; expected.len()];
        pipeline.decode(0, &stored, &mut out, &mut scratch).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert!(out == expected, "wrong values: {line}");
    }
}

#[test]
fn any_other_decoded_size_is_an_error() {
    for Fixture { line, pipeline, stored, expected } in fixtures() {
        for len in [0, expected.len() - 1, expected.len() + 1, 2 * expected.len()] {
            assert!(decode(&pipeline, &stored, len).is_err(), "{len} bytes: {line}");
        }
    }
}

#[test]
fn damage_is_an_error_or_other_values_but_never_a_panic() {
    let mut scratch = Scratch::default();
    for Fixture { pipeline, stored, expected, .. } in fixtures() {
        let mut out = vec![0; expected.len()];
        for cut in 0..stored.len() {
            let _ = pipeline.decode(0, &stored[..cut], &mut out, &mut scratch);
        }
        let mut damaged = stored.clone();
        for at in 0..stored.len() {
            for value in [0, 0xff, stored[at] ^ 1, stored[at] ^ 0x80, stored[at].wrapping_add(1)] {
                damaged[at] = value;
                let _ = pipeline.decode(0, &damaged, &mut out, &mut scratch);
            }
            damaged[at] = stored[at];
        }
    }
}

#[test]
fn no_filters_and_skipped_filters_copy() {
    let none = Pipeline::default();
    assert_eq!(decode(&none, &[1, 2, 3], 3).unwrap(), [1, 2, 3]);
    let e = decode(&none, &[1, 2, 3], 4).unwrap_err();
    assert_eq!(e.to_string(), "decoded to 3 bytes, expected 4");
    let pipeline = Pipeline { filters: vec![Filter::Shuffle { element_size: 2 }, filter("40000:")] };
    let mut out = [0; 4];
    pipeline.decode(0b10, &[1, 2, 3, 4], &mut out, &mut Scratch::default()).unwrap();
    assert_eq!(out, [1, 3, 2, 4]);
    pipeline.decode(0b11, &[1, 2, 3, 4], &mut out, &mut Scratch::default()).unwrap();
    assert_eq!(out, [1, 2, 3, 4]);
}

#[test]
fn an_unsupported_stage_is_named() {
    let pipeline = Pipeline { filters: vec![Filter::Deflate, filter("40000:")] };
    assert_eq!(pipeline.unsupported().unwrap().name(), "filter 40000");
    let e = decode(&pipeline, &[0; 8], 8).unwrap_err();
    assert_eq!(e.kind(), sieva_types::ErrorKind::FilterUnavailable);
    assert_eq!(e.to_string(), "no decoder for the filter 'filter 40000'");
}

#[test]
fn a_false_length_takes_no_memory() {
    // Each claims gigabytes for a few bytes of input.
    let huge = u64::MAX.to_be_bytes();
    for filter in [Filter::Lz4, filter("32008:0,3,4,0,2"), filter("32008:0,3,4,0,3")] {
        let e = decode(&one(filter), &[&huge[..], &[0xff; 12]].concat(), 64).unwrap_err();
        assert!(e.message().contains("expected at most 64"), "{e}");
    }
    let e = decode(&one(filter("4:169,8,32,64")), &[0xff; 12], 64).unwrap_err();
    assert_eq!(e.to_string(), "szip: content of 4294967295 bytes, expected at most 64");
}

/// Every filter that decodes, with parameters that make a difference.
fn any_filter() -> impl Strategy<Value = Filter> {
    let texts = [
        "1:",
        "2:3",
        "2:4",
        "3:",
        "4:169,8,32,64",
        "4:141,16,16,300",
        "4:169,2,24,5",
        "4:32,7,8,9",
        "6:2,0,9,0,4,1,0,1,7,0,0,0,0,0,0,0,0,0,0,0",
        "6:0,2,9,1,8,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0",
        "307:",
        "32000:",
        "32001:",
        "32004:",
        "32008:0,3,4,0,0",
        "32008:0,3,2,8,2",
        "32008:0,3,8,0,3",
        "32015:",
        "32026:",
    ];
    prop::sample::select(texts.map(filter).to_vec())
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut packer = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut stored = vec![0; packer.zlib_compress_bound(data.len())];
    let len = packer.zlib_compress(data, &mut stored).unwrap();
    stored.truncate(len);
    stored
}

/// Bytes with repetitions of all kinds in them, as compressors like them.
fn repetitive() -> impl Strategy<Value = Vec<u8>> {
    vec((vec(any::<u8>(), 1..20), 1..40_usize), 0..30)
        .prop_map(|parts| parts.into_iter().flat_map(|(part, times)| part.repeat(times)).collect())
}

proptest! {
    #[test]
    fn random_bytes_never_panic(
        filters in vec(any_filter(), 1..4),
        stored in vec(any::<u8>(), 0..300),
        len in 0..2000_usize,
        filter_mask in 0..8_u32,
    ) {
        let mut out = vec![0; len];
        let _ = Pipeline { filters }.decode(filter_mask, &stored, &mut out, &mut Scratch::default());
    }

    #[test]
    fn flipped_bytes_never_panic(
        which in any::<prop::sample::Index>(),
        flips in vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
    ) {
        let fixtures = fixtures();
        let Fixture { pipeline, stored, expected, .. } = which.get(&fixtures);
        let mut stored = stored.clone();
        for (at, value) in flips {
            let at = at.index(stored.len());
            stored[at] = value;
        }
        let _ = decode(pipeline, &stored, expected.len());
    }

    #[test]
    fn lz4_equals_another_encoder(data in repetitive()) {
        let block = lz4_flex::block::compress(&data);
        let mut out = vec![0xaa; data.len()];
        super::lz4::decode_block("lz4", &block, &mut out).unwrap();
        prop_assert_eq!(out, data);
    }

    #[test]
    fn stacked_compressors_come_back(data in repetitive(), element_size in 1..20_usize) {
        let packed = ::zstd::bulk::compress(&zlib(&data), 3).unwrap();
        let filters = vec![Filter::Deflate, Filter::Zstd];
        prop_assert_eq!(decode(&Pipeline { filters }, &packed, data.len()).unwrap(), data.clone());
        // The shuffle of a shuffle's inverse: any bytes are the shuffle of some others.
        let unshuffled = decode(&one(Filter::Shuffle { element_size }), &data, data.len()).unwrap();
        let filters = vec![Filter::Shuffle { element_size }, Filter::Deflate];
        prop_assert_eq!(decode(&Pipeline { filters }, &zlib(&data), data.len()).unwrap(), unshuffled);
    }

    #[test]
    fn bitshuffle_blocks_and_leftovers_come_back(
        data in vec(any::<u8>(), 0..3000),
        element_size in 1..12_usize,
        groups in 1..6_usize,
    ) {
        let data = &data[..data.len() / element_size * element_size];
        let (group_len, block_size) = (8 * element_size, 8 * groups);
        let (whole, rest) = data.split_at(data.len() / group_len * group_len);
        let mut stored: Vec<u8> = whole
            .chunks(block_size * element_size)
            .flat_map(|block| bit_shuffle(element_size, block))
            .collect();
        stored.extend(rest);
        let filter = Bitshuffle { element_size, block_size, codec: BitshuffleCodec::None };
        prop_assert_eq!(decode(&one(Filter::Bitshuffle(filter)), &stored, data.len()).unwrap(), data);
    }
}
