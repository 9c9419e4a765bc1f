//! Bytes that nobody vouches for.

use sieva_format::layout::{Layout, Placement};
use sieva_format::manifest::{Layouts, Manifest, SUBJECT, decode_layout, encode_layout};
use sieva_types::wire::{Reader, Writer};
use sieva_types::{DType, Error, ErrorKind};

use crate::common::{Made, empty, layout};

#[test]
fn an_error_that_says_nothing_is_damage() {
    for (message, is_good) in [("no data", true), ("", false)] {
        let mut w = Writer::default();
        w.error(&Error::new(ErrorKind::Unsupported, message));
        assert_eq!(Reader::new(&SUBJECT, &w.into_bytes(), 100).error().is_ok(), is_good);
    }
}

#[test]
fn damage_is_noticed_wherever_it_is() {
    let bytes = Manifest::take(&Made::varied(), Layouts::All).unwrap().encode();
    for at in 0..bytes.len() {
        for flip in [1, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            let e = Manifest::decode(&damaged).err().unwrap_or_else(|| panic!("byte {at} changed unnoticed"));
            assert_eq!(e.kind(), ErrorKind::CorruptIndex, "byte {at}: {e}");
        }
        assert!(Manifest::decode(&bytes[..at]).is_err(), "{at} bytes");
    }
    let mut longer = bytes;
    longer.push(0);
    assert!(Manifest::decode(&longer).is_err());
}

/// Without the checksum in the way, as somebody who means harm would write it: no panic, and every layout that is
/// accepted can be read.
#[test]
fn hostile_layouts_are_refused_or_harmless() {
    let source = Made::varied();
    for (array, layout) in source.layouts.iter().enumerate().filter_map(|(i, l)| Some((i, l.as_ref().ok()?)))
    {
        let bytes = encode_layout(layout).unwrap();
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut hostile = bytes.clone();
                hostile[at] = value;
                if let Err(e) = decode_layout(&hostile, &source.schema, array, 1 << 20) {
                    assert_eq!(e.kind(), ErrorKind::CorruptIndex, "{e}");
                } else {
                    read(&source, array, &hostile);
                }
            }
        }
    }
}

fn read(source: &Made, array: usize, hostile: &[u8]) {
    use sieva_format::buffer::Buffer;
    use sieva_format::read::{BlockReader, ChunkCache, Workspace};
    use std::sync::Arc;
    let layout = decode_layout(hostile, &source.schema, array, 1 << 20).unwrap();
    let mut layouts = source.layouts.clone();
    layouts[array] = Ok(Arc::new(layout));
    let bx = sieva_types::Bx::whole(&source.schema.arrays[array].shape);
    let made = Made { schema: source.schema.clone(), layouts, store: Arc::clone(&source.store) };
    let reader =
        BlockReader::new(Arc::new(made), array, Arc::new(ChunkCache::new(1 << 16)), 1 << 20).unwrap();
    // Values or an error: a panic fails the test.
    let mut out = Buffer::default();
    reader.read(&bx, &mut out, &mut Workspace::default()).ok();
    if let Some(flat) = reader.flat() {
        flat.read_run(0, bx.len() as usize, &mut out, &mut Workspace::default()).ok();
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let plain = || layout(DType::I32, &[3, 4], &[3, 4], Placement::Direct { offset: 16 });
    let chunks = || sieva_format::layout::ChunkIndex::new(4, Vec::new());
    let cases = [
        Layout { strides: vec![4], ..plain() },
        Layout { dtype: DType::F32, ..plain() },
        Layout { element_size: 8, ..plain() },
        Layout { fill: vec![0; 3], ..plain() },
        Layout { extent: vec![1 << 40, 1 << 40], ..plain() },
        Layout { strides: vec![u64::MAX, 4], ..plain() },
        Layout { placement: Placement::Direct { offset: u64::MAX }, ..plain() },
        Layout { chunk_shape: vec![0, 4], placement: Placement::Chunks(chunks()), ..plain() },
        Layout { chunk_bytes: 47, placement: Placement::Chunks(chunks()), ..plain() },
        Layout { base: u64::MAX, ..plain() },
        Layout { char_dim: true, ..plain() },
    ];
    for wrong in cases {
        let mut source = empty(100);
        source.add("x", &[3, 4], plain());
        let bytes = encode_layout(&wrong).unwrap();
        let e = decode_layout(&bytes, &source.schema, 0, 1 << 20).err();
        assert_eq!(e.map(|e| e.kind()), Some(ErrorKind::CorruptIndex), "{wrong:?}");
    }
}

#[test]
fn memory_is_bounded() {
    let mut source = empty(10);
    let index = sieva_format::layout::ChunkIndex::new(100_000, Vec::new());
    source.add("x", &[100_000], layout(DType::U8, &[100_000], &[1], Placement::Chunks(index)));
    source.schema.warnings = vec!["said".into(); 10_000];
    let bytes = Manifest::take(&source, Layouts::All).unwrap().encode();
    assert!(Manifest::decode(&bytes).is_ok());
    let e = Manifest::decode_within(&bytes, 100_000).unwrap_err();
    assert!(e.message().contains("more memory than allowed"), "{e}");
}
