//! Files that ask for more memory than they could fill: refused before it is taken.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::sync::Arc;

use hdf5_metno::types::VarLenUnicode;
use sieva_format::ArraySource;
use sieva_format::read::{BlockReader, ChunkCache, Workspace};
use sieva_format::schema::AttrValue;
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};
use sieva_store::MemoryStore;
use sieva_types::{Bx, ErrorKind, Result, Texts};

/// A file with texts in a dataset and in an attribute, as bytes.
fn texts() -> Vec<u8> {
    let text = |s: &str| s.parse::<VarLenUnicode>().unwrap();
    let dir = common::Dir::new();
    let path = dir.file("a.h5");
    // The oldest format: object headers without checksums.
    let file = hdf5_metno::FileBuilder::new().with_fapl(|p| p.libver_earliest()).create(&path).unwrap();
    let x = file.new_dataset_builder().with_data(&[text("of a dataset"), text("b")]).create("x").unwrap();
    x.new_attr::<VarLenUnicode>().create("note").unwrap().write_scalar(&text("of an attribute")).unwrap();
    drop(x);
    file.close().unwrap();
    std::fs::read(path).unwrap()
}

fn open(bytes: Vec<u8>) -> Result<Arc<Hdf5Source>> {
    let store = Arc::new(MemoryStore::new("a.h5", bytes));
    Hdf5Source::open_store(store, &Hdf5Options::default()).map(Arc::new)
}

fn read(source: Arc<Hdf5Source>) -> Result<Texts> {
    let reader = BlockReader::new(source, 0, Arc::new(ChunkCache::new(0)), 1 << 20)?;
    reader.read_texts(&Bx::whole(&[2]), &mut Workspace::default())
}

/// The place of the stored item whose text has `len` bytes: the number, then the address of a heap collection.
fn item(bytes: &[u8], len: u32) -> usize {
    let leads_to_heap = |at: usize| {
        let address = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap());
        bytes.get(address as usize..).is_some_and(|b| b.starts_with(b"GCOL"))
    };
    let is_it = |&at: &usize| bytes[at..at + 4] == len.to_le_bytes() && leads_to_heap(at);
    (0..bytes.len() - 12).find(is_it).unwrap()
}

#[test]
fn texts_longer_than_the_file() {
    let mut bytes = texts();
    assert_eq!(read(open(bytes.clone()).unwrap()).unwrap(), ["of a dataset", "b"]);
    let at = item(&bytes, 12);
    bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let e = read(open(bytes).unwrap()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptFile);
    assert!(e.message().contains("a text of 4294967295 bytes, the file has"), "{e}");
}

#[test]
fn texts_of_attributes_longer_than_the_file() {
    let mut bytes = texts();
    let at = item(&bytes, 15);
    bytes[at..at + 4].copy_from_slice(&0xf000_0000_u32.to_le_bytes());
    let source = open(bytes).unwrap();
    let (name, AttrValue::Other(why)) = &source.schema().arrays[0].attrs[0] else { panic!() };
    assert_eq!(name, "note");
    assert!(why.contains("an item of 4026531840 elements, the file has"), "{why}");
}

#[test]
fn a_heap_whose_objects_have_no_length() {
    let mut bytes = texts();
    let heap = bytes.windows(5).position(|w| w == b"GCOL\x01").unwrap();
    // Objects of no length, for ever; and what nobody looks at is not zero.
    bytes[heap + 16..heap + 4096].fill(0);
    bytes[heap + 6] = 0x3f;
    let e = read(open(bytes).unwrap()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptFile);
    assert!(e.message().contains("global heap collection"), "{e}");
}

#[test]
fn metadata_longer_than_the_file() {
    let mut bytes = texts();
    assert_eq!(bytes[8], 0, "a superblock of version 0, which may name a block for the driver");
    let block = bytes.len() as u64;
    bytes.extend([0, 0, 0, 0]);
    bytes.extend((1_u32 << 30).to_le_bytes());
    bytes.extend(b"NCSAmult");
    let end = bytes.len() as u64;
    bytes[40..48].copy_from_slice(&end.to_le_bytes());
    bytes[48..56].copy_from_slice(&block.to_le_bytes());
    let e = open(bytes).map(|_| ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptFile);
    assert!(e.message().contains("asked for, the file has"), "{e}");
}
