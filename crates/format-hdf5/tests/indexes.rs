//! Headers of indexes that promise what libhdf5 would believe: refused before it does. The checksums fit.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::sync::Arc;

use hdf5_metno_sys::{h5d, h5p, h5s, h5t};
use sieva_format::ArraySource;
use sieva_format_hdf5::{Hdf5Options, Hdf5Source};
use sieva_store::MemoryStore;
use sieva_types::{ErrorKind, lookup3};

/// A file of the newest format (or the oldest), as bytes.
fn file(is_new: bool, write: impl FnOnce(&hdf5_metno::File)) -> Vec<u8> {
    let dir = common::Dir::new();
    let path = dir.file("a.h5");
    let builder = hdf5_metno::FileBuilder::new()
        .with_fapl(|p| if is_new { p.libver_latest() } else { p.libver_earliest() })
        .clone();
    let file = builder.create(&path).unwrap();
    write(&file);
    file.close().unwrap();
    std::fs::read(path).unwrap()
}

fn open(bytes: Vec<u8>) -> Hdf5Source {
    let store = Arc::new(MemoryStore::new("a.h5", bytes));
    Hdf5Source::open_store(store, &Hdf5Options::default()).unwrap()
}

/// What is wrong with a file, wherever that is told: on opening, of an object that is left out, or of an array.
fn wrong(bytes: Vec<u8>) -> Vec<String> {
    let store = Arc::new(MemoryStore::new("a.h5", bytes));
    let source = match Hdf5Source::open_store(store, &Hdf5Options::default()) {
        Ok(source) => source,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::CorruptFile, "{e}");
            return vec![e.to_string()];
        }
    };
    let mut told: Vec<String> = source.schema().warnings.clone();
    told.extend(
        (0..source.schema().arrays.len()).filter_map(|a| source.layout(a).err()).map(|e| e.to_string()),
    );
    told
}

fn place(bytes: &[u8], signature: &[u8]) -> usize {
    bytes.windows(signature.len()).position(|w| w == signature).unwrap()
}

/// The file with other bytes at `offset` in the structure of this signature and length, and a checksum that fits.
fn damaged(mut bytes: Vec<u8>, signature: &[u8], len: usize, offset: usize, new: &[u8]) -> Vec<u8> {
    let at = place(&bytes, signature);
    let there = lookup3(&bytes[at..at + len], 0);
    assert_eq!(bytes[at + len..at + len + 4], there.to_le_bytes(), "the length of the structure");
    bytes[at + offset..at + offset + new.len()].copy_from_slice(new);
    let sum = lookup3(&bytes[at..at + len], 0);
    bytes[at + len..at + len + 4].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn assert_refused(bytes: Vec<u8>, why: &str) {
    let told = wrong(bytes);
    assert!(told.iter().any(|said| said.contains(why)), "'{why}' is not in {told:?}");
}

/// Many links: in a fractal heap with a tree.
fn links(file: &hdf5_metno::File) {
    for i in 0..100 {
        file.create_group(&format!("group number {i}")).unwrap();
    }
}

#[test]
fn trees_of_version_2() {
    let good = file(true, links);
    assert_eq!(wrong(good.clone()), [""; 0]);
    let cases: [(usize, &[u8], &str); 6] = [
        (6, &u32::MAX.to_le_bytes(), "the nodes of a tree are longer than the file"),
        (6, &12_u32.to_le_bytes(), "the nodes of a tree hold no records"),
        (10, &1_u16.to_le_bytes(), "the records of a tree are not as long as those of its type"),
        (12, &900_u16.to_le_bytes(), "the nodes of a tree hold no records, or more than can be counted"),
        (24, &60000_u16.to_le_bytes(), "a node of a tree has more records than fit into it"),
        (26, &(1_u64 << 60).to_le_bytes(), "a tree has other records than were counted"),
    ];
    for (offset, new, why) in cases {
        assert_refused(damaged(good.clone(), b"BTHD", 34, offset, new), why);
    }
}

#[test]
fn attributes_that_cannot_be_shared() {
    let good = file(true, |file| {
        for i in 0..20 {
            file.new_attr::<i32>()
                .create(format!("attribute {i}").as_str())
                .unwrap()
                .write_scalar(&i)
                .unwrap();
        }
    });
    assert_eq!(wrong(good.clone()), [""; 0]);
    // One leaf of 20 records of 17 bytes: 8 lead to the heap, then flags.
    let bad = damaged(good, b"BTLF\0\x08", 6 + 20 * 17, 6 + 3 * 17 + 8, &[2]);
    assert_refused(bad, "an attribute is shared in a file that shares none");
}

#[test]
fn references_longer_than_the_file() {
    // The list of a dataset's scales: references of 8 bytes, said to have 2^28 and some.
    let good = file(true, |file| {
        let scale = file.new_dataset_builder().with_data(&[1, 2, 3]).create("scale").unwrap();
        let name = scale.name();
        drop(scale);
        let _guard = hdf5_metno_sys::LOCK.lock();
        attach(file, &name);
    });
    let source = open(good.clone());
    let dims = &source.schema().arrays.iter().find(|a| a.path == "x").unwrap().dims;
    assert_eq!(source.schema().dims[dims[0]].path, "scale");
    let mut bad = good;
    // The datatype of the list: variable length, then the reference of 8 bytes.
    let list = place(&bad, b"DIMENSION_LIST\0");
    let size = list + bad[list..].windows(4).position(|w| w == [8, 0, 0, 0]).unwrap();
    bad[size + 3] = 0x1a;
    let header = bad[..list].windows(4).rposition(|w| w == b"OHDR" || w == b"OCHK").unwrap();
    let end = (size + 4..bad.len() - 4).find(|&end| {
        let mut before = bad[header..end].to_vec();
        before[size + 3 - header] = 0;
        bad[end..end + 4] == lookup3(&before, 0).to_le_bytes()
    });
    let end = end.unwrap();
    let sum = lookup3(&bad[header..end], 0);
    bad[end..end + 4].copy_from_slice(&sum.to_le_bytes());
    let source = open(bad);
    let dims = &source.schema().arrays.iter().find(|a| a.path == "x").unwrap().dims;
    assert_eq!(source.schema().dims[dims[0]].path, "scale");
}

/// Makes `x`, whose only dimension has this scale.
fn attach(file: &hdf5_metno::File, scale: &str) {
    use hdf5_metno_sys::{h5a, h5o, h5r};
    let scale = std::ffi::CString::new(scale).unwrap();
    let (three, one) = (3_u64, 1_u64);
    // SAFETY: the caller holds the lock, the file is open, the pointers are to locals that outlive the calls.
    unsafe {
        let default = h5p::H5P_DEFAULT;
        let text = h5t::H5Tcopy(*h5t::H5T_C_S1);
        assert!(h5t::H5Tset_size(text, 16) >= 0);
        let scalar = h5s::H5Screate(h5s::H5S_class_t::H5S_SCALAR);
        let s = h5o::H5Oopen(file.id(), scale.as_ptr(), default);
        let class = h5a::H5Acreate2(s, c"CLASS".as_ptr(), text, scalar, default, default);
        assert!(h5a::H5Awrite(class, text, c"DIMENSION_SCALE".as_ptr().cast()) >= 0);
        let space = h5s::H5Screate_simple(1, &three, std::ptr::null());
        let kind = *h5t::H5T_STD_I32LE;
        let x = h5d::H5Dcreate2(file.id(), c"x".as_ptr(), kind, space, default, default, default);
        let mut reference = 0_u64;
        let to = (&raw mut reference).cast();
        assert!(h5r::H5Rcreate(to, file.id(), scale.as_ptr(), h5r::H5R_type_t::H5R_OBJECT1, -1) >= 0);
        let lists = h5t::H5Tvlen_create(*h5t::H5T_STD_REF_OBJ);
        let dims = h5s::H5Screate_simple(1, &one, std::ptr::null());
        let list = h5t::hvl_t { len: 1, p: (&raw mut reference).cast() };
        let attr = h5a::H5Acreate2(x, c"DIMENSION_LIST".as_ptr(), lists, dims, default, default);
        assert!(h5a::H5Awrite(attr, lists, (&raw const list).cast()) >= 0);
        for id in [attr, dims, lists, x, space, class, s, scalar, text] {
            hdf5_metno_sys::h5i::H5Idec_ref(id);
        }
    }
}

#[test]
fn fractal_heaps() {
    let good = file(true, links);
    let cases: [(usize, &[u8], &str); 5] = [
        (110, &0_u16.to_le_bytes(), "a fractal heap holds numbers that mean nothing"),
        (112, &500_u64.to_le_bytes(), "a fractal heap holds numbers that mean nothing"),
        (120, &(1_u64 << 40).to_le_bytes(), "a fractal heap holds numbers that mean nothing"),
        (128, &3_u16.to_le_bytes(), "the first row of a fractal heap is longer"),
        (140, &999_u16.to_le_bytes(), "a fractal heap has more rows"),
    ];
    for (offset, new, why) in cases {
        assert_refused(damaged(good.clone(), b"FRHP", 142, offset, new), why);
    }
}

#[test]
fn fixed_arrays() {
    let good = file(true, |file| {
        file.new_dataset::<i32>().shape(64).chunk(4).create("x").unwrap().write(&[7_i32; 64]).unwrap();
    });
    assert_eq!(wrong(good.clone()), [""; 0]);
    let cases: [(usize, &[u8], &str); 3] = [
        (8, &(1_u64 << 60).to_le_bytes(), "a fixed array has more elements than the file can hold"),
        (8, &9000_u64.to_le_bytes(), "a fixed array has more elements than the file can hold"),
        (6, &[1], "the header of a fixed array holds numbers that mean nothing"),
    ];
    for (offset, new, why) in cases {
        assert_refused(damaged(good.clone(), b"FAHD", 24, offset, new), why);
    }
}

#[test]
fn extensible_arrays() {
    let good = file(true, |file| {
        let x = file.new_dataset::<i32>().shape(64..).chunk(4).create("x").unwrap();
        x.write(&[7_i32; 64]).unwrap();
    });
    assert_eq!(wrong(good.clone()), [""; 0]);
    let cases: [(usize, &[u8], &str); 6] = [
        (6, &[200], "the header of an extensible array holds numbers that mean nothing"),
        (7, &[1], "the header of an extensible array holds numbers that mean nothing"),
        (9, &[3], "the header of an extensible array holds numbers that mean nothing"),
        (10, &[0], "the header of an extensible array holds numbers that mean nothing"),
        (11, &[1], "the header of an extensible array holds numbers that mean nothing"),
        (44, &(1_u64 << 60).to_le_bytes(), "an extensible array has more elements than the file can hold"),
    ];
    for (offset, new, why) in cases {
        assert_refused(damaged(good.clone(), b"EAHD", 68, offset, new), why);
    }
}

#[test]
fn nodes_of_version_1_trees_have_one_parent_and_its_level() {
    // More chunks than one node has room for: a root of level 1 over leaves.
    let good = file(false, |file| {
        file.new_dataset::<i32>().shape(400).chunk(2).create("x").unwrap().write(&[7_i32; 400]).unwrap();
    });
    assert_eq!(wrong(good.clone()), [""; 0]);
    let root = (0..good.len() - 8).find(|&at| good[at..].starts_with(b"TREE\x01\x01")).unwrap();
    let key = 8 + 2 * 8;
    let child = |number: usize| root + 24 + key + number * (key + 8);
    let count = usize::from(good[root + 6]);
    assert!(count > 2, "{count} children");
    // The first child for the second; the root for the first, which libhdf5 asks for again.
    let cases = [
        (1, good[child(0)..child(0) + 8].to_vec(), "two nodes of a tree lead to the same one"),
        (0, root.to_le_bytes().to_vec(), "a node of a tree is not of the level below its parent's"),
    ];
    for (number, address, why) in cases {
        let mut bad = good.clone();
        bad[child(number)..child(number) + 8].copy_from_slice(&address);
        assert_refused(bad, why);
    }
    let mut bad = good.clone();
    let leaf = u64::from_le_bytes(good[child(0)..child(0) + 8].try_into().unwrap()) as usize;
    bad[leaf + 5] = 1;
    assert_refused(bad, "a node of a tree is not of the level below its parent's");
}

/// A virtual dataset of two mappings of this file.
fn mappings(file: &hdf5_metno::File) {
    file.new_dataset_builder().with_data(&[1, 2, 3, 4]).create("x").unwrap();
    let _guard = hdf5_metno_sys::LOCK.lock();
    let (four, two) = (4_u64, 2_u64);
    // SAFETY: the lock is held, the file is open, the pointers are to locals that outlive the calls.
    unsafe {
        let space = h5s::H5Screate_simple(1, &four, std::ptr::null());
        let list = h5p::H5Pcreate(*h5p::H5P_CLS_DATASET_CREATE);
        for start in [0_u64, 2] {
            let (set, null) = (h5s::H5S_SELECT_SET, std::ptr::null());
            assert!(h5s::H5Sselect_hyperslab(space, set, &start, null, &two, null) >= 0);
            assert!(h5p::H5Pset_virtual(list, space, c".".as_ptr(), c"x".as_ptr(), space) >= 0);
        }
        let (kind, default) = (*h5t::H5T_STD_I32LE, h5p::H5P_DEFAULT);
        let d = h5d::H5Dcreate2(file.id(), c"v".as_ptr(), kind, space, default, list, default);
        assert!(d >= 0);
        h5d::H5Dclose(d);
        h5p::H5Pclose(list);
        h5s::H5Sclose(space);
    }
}

#[test]
fn mappings_of_virtual_data() {
    let good = file(true, mappings);
    assert_eq!(wrong(good.clone()), [""; 0]);
    // The first object of the collection: version, count, then mappings with their names; its checksum is last.
    let heap = place(&good, b"GCOL");
    let size = u64::from_le_bytes(good[heap + 24..heap + 32].try_into().unwrap()) as usize;
    let start = heap + 32;
    assert_eq!(u64::from_le_bytes(good[start + 1..start + 9].try_into().unwrap()), 2);
    let damaged = |offset: usize, new: &[u8], is_signed: bool| {
        let mut bad = good.clone();
        bad[start + offset..start + offset + new.len()].copy_from_slice(new);
        let sum = lookup3(&bad[start..start + size - 4], 0).to_le_bytes();
        if is_signed {
            bad[start + size - 4..start + size].copy_from_slice(&sum);
        }
        bad
    };
    let why = "the mappings of virtual data are not as many, or not as long, as they say";
    // As many as multiplied by the bytes of each come to few again.
    for count in [u64::MAX, (1_u64 << 60) + 1, 3, 1] {
        assert_refused(damaged(1, &count.to_le_bytes(), true), why);
    }
    assert_refused(damaged(1, &3_u64.to_le_bytes(), false), "do not have their checksum");
    let selection = good[start..].windows(4).position(|w| w == 2_u32.to_le_bytes()).unwrap();
    assert_refused(damaged(selection, &7_u32.to_le_bytes(), true), why);
}
