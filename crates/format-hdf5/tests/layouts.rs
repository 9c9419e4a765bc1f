//! Where bytes lie: every chunk reference is checked against libhdf5's own, and against the bytes.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{array, layout, open, written};
use hdf5_metno::dataset::{ChunkOpts, Layout as Kind};
use hdf5_metno::{Extent, H5Type};
use sieva_format::filters::Filter;
use sieva_format::layout::Placement;
use sieva_format::{ArraySource, LibraryReader};
use sieva_types::{Bx, DType, Endian, ErrorKind};

fn bytes_at(source: &impl ArraySource, offset: u64, len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    source.store().read_exact_at(offset, &mut out).unwrap();
    out
}

#[test]
fn contiguous_data_lie_where_they_say_also_after_a_user_block() {
    for block in [0, 512, 2048] {
        let dir = common::Dir::new();
        let path = dir.file("a.h5");
        let mut builder = hdf5_metno::FileBuilder::new();
        if block > 0 {
            builder.with_fcpl(|p| p.userblock(block));
        }
        let file = builder.create(&path).unwrap();
        file.new_dataset_builder().with_data(&[1.5_f32, -2.0, 3.25]).create("x").unwrap();
        let chunked = file.new_dataset::<i32>().shape(5).chunk(2).create("c").unwrap();
        chunked.write_raw(&[10, 11, 12, 13, 14]).unwrap();
        drop(chunked);
        file.close().unwrap();
        let source = open(&path);
        let x = layout(&source, "x");
        let Placement::Direct { offset } = x.placement else { panic!("{:?}", x.placement) };
        assert_eq!(
            bytes_at(&source, offset, 12),
            [1.5_f32, -2.0, 3.25].map(f32::to_le_bytes).concat(),
            "{block}"
        );
        let Placement::Chunks(index) = &layout(&source, "c").placement else { panic!() };
        let second = index.get(1).unwrap();
        assert_eq!(
            bytes_at(&source, second.offset, 8),
            [12, 13_i32].map(i32::to_le_bytes).concat(),
            "{block}"
        );
    }
}

#[test]
fn chunk_references_equal_those_of_the_library() {
    let dir = common::Dir::new();
    let path = dir.file("a.h5");
    let mut want = Vec::new();
    {
        let file = hdf5_metno::File::create(&path).unwrap();
        let x =
            file.new_dataset::<f64>().shape((5, 7)).chunk((2, 3)).shuffle().deflate(4).create("x").unwrap();
        x.write_raw(&(0..35).map(f64::from).collect::<Vec<_>>()).unwrap();
        drop(x);
        file.flush().unwrap();
        let x = file.dataset("x").unwrap();
        for i in 0..x.num_chunks().unwrap() {
            let chunk = x.chunk_info(i).unwrap();
            want.push((chunk.offset, chunk.addr, chunk.size));
        }
    }
    let source = open(&path);
    let x = layout(&source, "x");
    assert_eq!((x.chunk_shape.as_slice(), x.chunk_bytes, x.grid()), (&[2, 3][..], 48, vec![3, 3]));
    assert_eq!(x.pipeline.filters, [Filter::Shuffle { element_size: 8 }, Filter::Deflate]);
    let Placement::Chunks(index) = &x.placement else { panic!() };
    assert_eq!(want.len(), 9);
    for (offset, address, size) in want {
        let got = index.get(offset[0] / 2 * 3 + offset[1] / 3).unwrap();
        assert_eq!((got.offset, got.size, got.filter_mask), (address, size, 0), "{offset:?}");
    }
    let info = &array(&source, "x").1.storage;
    assert_eq!((info.layout, info.stored_type.as_str()), ("chunked", "<f8"));
    assert_eq!(info.filters, ["shuffle", "deflate(4)"]);
}

#[test]
fn edge_chunks_left_unfiltered_say_so() {
    let (_dir, source) = written(|file| {
        let opts = ChunkOpts::DONT_FILTER_PARTIAL_CHUNKS;
        let x =
            file.new_dataset::<i16>().shape((3, 4)).chunk((2, 2)).chunk_opts(opts).deflate(1).create("x")?;
        x.write_raw(&[7_i16; 12])
    });
    let Placement::Chunks(index) = &layout(&source, "x").placement else { panic!() };
    let masks: Vec<u32> = (0..4).map(|i| index.get(i).unwrap().filter_mask).collect();
    assert_eq!(masks, [0, 0, u32::MAX, u32::MAX]);
}

#[test]
fn chunks_never_written_are_absent_and_read_as_fill() {
    let (_dir, source) = written(|file| {
        let x = file.new_dataset::<i32>().shape((Extent::resizable(6), 4)).chunk((3, 4)).fill_value(-9);
        let x = x.create("x")?;
        x.write_slice(&hdf5_metno_array(), (3..6, 0..4))?;
        file.new_dataset::<f32>().shape(1000).create("late")?;
        Ok(())
    });
    let x = layout(&source, "x");
    let Placement::Chunks(index) = &x.placement else { panic!() };
    assert!(index.get(0).is_none());
    assert!(index.get(1).is_some());
    assert_eq!(x.fill, (-9_i32).to_le_bytes());
    assert!(matches!(layout(&source, "late").placement, Placement::Unallocated));
    let schema = source.schema();
    assert!(schema.dims[array(&source, "x").1.dims[0]].unlimited);
}

fn hdf5_metno_array() -> ndarray::Array2<i32> {
    ndarray::Array2::from_shape_vec((3, 4), (0..12).collect()).unwrap()
}

#[test]
fn compact_data_are_inline() {
    let (_dir, source) = written(|file| {
        let x = file.new_dataset::<u16>().shape(3).layout(Kind::Compact).create("x")?;
        x.write_raw(&[1_u16, 2, 0xfffe])
    });
    let Placement::Inline(bytes) = &layout(&source, "x").placement else { panic!() };
    assert_eq!(bytes[..], [1, 0, 2, 0, 0xfe, 0xff]);
}

#[test]
fn what_only_libhdf5_tells_is_read_by_it_and_counted() {
    use hdf5_metno::types::VarLenUnicode;
    let (_dir, source) = written(|file| {
        let x = file.new_dataset::<VarLenUnicode>().shape(3).layout(Kind::Compact).create("x")?;
        x.write_raw(&["one", "", "three"].map(|text| text.parse::<VarLenUnicode>().unwrap()))
    });
    let (i, _) = array(&source, "x");
    let x = source.layout(i).unwrap();
    assert!(matches!(&x.placement, Placement::Library(why) if why.contains("compact")), "{:?}", x.placement);
    let before = source.store().counters().snapshot();
    assert_eq!(source.read_library_strings(i, &Bx::new(vec![1], vec![2])).unwrap(), ["", "three"]);
    let counted = source.store().counters().snapshot().since(before);
    assert_eq!((counted.library_reads, counted.bytes_read), (1, 0));
    let outside = source.read_library_strings(i, &Bx::new(vec![2], vec![2]));
    assert_eq!(outside.unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn packed_chunks_are_decoded_without_libhdf5() {
    let (_dir, source) = written(|file| {
        let x = file.new_dataset::<i32>().shape((4, 3)).chunk((2, 3));
        let x = x.nbit().create("x")?;
        x.write_raw(&(100..112).collect::<Vec<i32>>())
    });
    let (i, info) = array(&source, "x");
    assert_eq!(info.storage.filters, ["nbit"]);
    assert!(matches!(source.layout(i).unwrap().placement, Placement::Chunks(_)));
    let source: std::sync::Arc<dyn ArraySource> = std::sync::Arc::new(source);
    let cache = std::sync::Arc::new(sieva_format::read::ChunkCache::new(0));
    let reader = sieva_format::read::BlockReader::new(source.clone(), i, cache, 1 << 20).unwrap();
    let mut out = sieva_types::Buffer::default();
    reader.read(&Bx::new(vec![1, 1], vec![2, 2]), &mut out, &mut Default::default()).unwrap();
    assert_eq!(out.as_slice::<i32>(), [104, 105, 107, 108]);
    assert_eq!(source.store().counters().snapshot().library_reads, 0);
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct Inner {
    a: u8,
    b: f64,
}

#[derive(H5Type, Clone, Copy)]
#[repr(C)]
struct Record {
    id: i64,
    pos: [f32; 3],
    inner: Inner,
}

#[test]
fn members_of_compounds_are_arrays_with_strides() {
    let records: Vec<Record> = (0..4)
        .map(|i| Record {
            id: i,
            pos: [i as f32, 0.5, -1.0],
            inner: Inner { a: i as u8 + 1, b: i as f64 / 2.0 },
        })
        .collect();
    let (_dir, source) = written(|file| {
        file.new_dataset_builder().with_data(&records).create("r")?;
        let z = file.new_dataset::<Record>().shape(4).chunk(2).nbit().create("z")?;
        z.write_raw(&records)
    });
    let paths: Vec<_> = source.schema().arrays.iter().map(|a| a.path.as_str()).take(4).collect();
    assert_eq!(paths, ["r.id", "r.pos", "r.inner.a", "r.inner.b"]);
    let item = size_of::<Record>() as u64;
    let pos = layout(&source, "r.pos");
    assert_eq!((pos.extent.as_slice(), pos.strides.as_slice(), pos.base), (&[4, 3][..], &[item, 4][..], 8));
    let b = layout(&source, "r.inner.b");
    let Placement::Direct { offset } = b.placement else { panic!() };
    assert_eq!(bytes_at(&source, offset + b.base + 3 * b.strides[0], 8), 1.5_f64.to_le_bytes());
    // The same out of packed chunks.
    let (i, _) = array(&source, "z.pos");
    let mut out = [0; 16];
    source.read_library(i, &Bx::new(vec![1, 0], vec![2, 2]), &mut out).unwrap();
    assert_eq!(out[..], [1.0, 0.5, 2.0, 0.5_f32].map(f32::to_ne_bytes).concat());
}

/// Writes big-endian int16 data, which the safe interface cannot.
fn write_big_endian(file: &hdf5_metno::File, name: &std::ffi::CStr, values: &[i16]) {
    use hdf5_metno_sys::{h5d, h5p, h5s, h5t};
    let _guard = hdf5_metno_sys::LOCK.lock();
    let len = [values.len() as u64];
    let default = h5p::H5P_DEFAULT;
    // SAFETY: the lock is held, the file is open, the pointers are to locals that outlive the calls.
    unsafe {
        let space = h5s::H5Screate_simple(1, len.as_ptr(), std::ptr::null());
        let stored = *h5t::H5T_STD_I16BE;
        let d = h5d::H5Dcreate2(file.id(), name.as_ptr(), stored, space, default, default, default);
        let memory = *h5t::H5T_NATIVE_INT16;
        assert!(h5d::H5Dwrite(d, memory, h5s::H5S_ALL, h5s::H5S_ALL, default, values.as_ptr().cast()) >= 0);
        h5d::H5Dclose(d);
        h5s::H5Sclose(space);
    }
}

#[test]
fn big_endian_and_bool_types() {
    let (_dir, source) = written(|file| {
        write_big_endian(file, c"be", &[1, -2]);
        file.new_dataset_builder().with_data(&[true, false]).create("flag")?;
        Ok(())
    });
    let be = layout(&source, "be");
    assert_eq!((be.dtype, be.endian), (DType::I16, Endian::Big));
    assert_eq!(array(&source, "be").1.storage.stored_type, ">i2");
    let Placement::Direct { offset } = be.placement else { panic!() };
    assert_eq!(bytes_at(&source, offset, 4), [0, 1, 0xff, 0xfe]);
    let (_, info) = array(&source, "flag");
    assert_eq!(
        (info.dtype, info.storage.stored_type.as_str(), info.enum_names.len()),
        (DType::Bool, "|b1", 0)
    );
}

#[test]
fn texts_of_both_kinds() {
    use hdf5_metno::types::{FixedAscii, VarLenUnicode};
    let (_dir, source) = written(|file| {
        let long: Vec<VarLenUnicode> = ["", "é", "three"].iter().map(|s| s.parse().unwrap()).collect();
        file.new_dataset_builder().with_data(&long).create("long")?;
        let short: Vec<FixedAscii<4>> =
            ["ab", "abcd"].iter().map(|s| FixedAscii::from_ascii(s).unwrap()).collect();
        file.new_dataset_builder().with_data(&short).create("short")?;
        file.new_dataset::<VarLenUnicode>().shape(2).create("none")?;
        Ok(())
    });
    let (i, info) = array(&source, "long");
    assert_eq!((info.dtype, info.storage.stored_type.as_str()), (DType::Str, "|O"));
    let got = source.read_library_strings(i, &Bx::new(vec![1], vec![2])).unwrap();
    assert_eq!(got, ["é", "three"]);
    assert_eq!(source.read_library_strings(array(&source, "none").0, &Bx::whole(&[2])).unwrap(), ["", ""]);
    let short = layout(&source, "short");
    assert_eq!((short.dtype, short.element_size), (DType::Str, 4));
}

#[test]
fn a_chunk_past_the_end_of_the_file_is_an_error_of_its_array_only() {
    let dir = common::Dir::new();
    let path = dir.file("a.h5");
    let at;
    {
        let file = hdf5_metno::File::create(&path).unwrap();
        file.new_dataset_builder().with_data(&[1_u8, 2]).create("good").unwrap();
        let x = file.new_dataset::<u8>().shape(64).chunk(32).create("x").unwrap();
        x.write_raw(&[9_u8; 64]).unwrap();
        file.flush().unwrap();
        at = x.chunk_info(1).unwrap().addr;
    }
    // The chunk's address in its B-tree is made to point far out.
    let mut bytes = std::fs::read(&path).unwrap();
    let found = bytes.windows(8).position(|w| w == at.to_le_bytes()).unwrap();
    bytes[found + 3] = 0x7f;
    std::fs::write(&path, bytes).unwrap();
    let source = open(&path);
    let e = source.layout(array(&source, "x").0).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::CorruptFile);
    assert!(e.message().contains("x: chunk [32] of 32 bytes at offset"), "{e}");
    assert!(matches!(layout(&source, "good").placement, Placement::Direct { .. }));
}

#[test]
fn every_kind_of_chunk_index_finds_its_chunks() {
    let growing = Extent::resizable;
    let shapes: [(&str, [Extent; 2]); 5] = [
        ("fixed_array", [4.into(), 6.into()]),
        ("first_grows", [growing(4), 6.into()]),
        ("last_grows", [4.into(), growing(6)]),
        ("both_grow", [growing(4), growing(6)]),
        ("single", [4.into(), 6.into()]),
    ];
    for latest in [false, true] {
        let dir = common::Dir::new();
        let path = dir.file("a.h5");
        let mut builder = hdf5_metno::FileBuilder::new();
        builder.with_fapl(|p| if latest { p.libver_latest() } else { p });
        let file = builder.create(&path).unwrap();
        for (name, shape) in shapes {
            let chunk = if name == "single" { (4, 6) } else { (2, 2) };
            let x = file.new_dataset::<u8>().shape(shape).chunk(chunk).create(name).unwrap();
            x.write_raw(&(0..24).collect::<Vec<u8>>()).unwrap();
        }
        file.close().unwrap();
        let source = open(&path);
        for (name, _) in shapes {
            let x = layout(&source, name);
            let Placement::Chunks(index) = &x.placement else { panic!("{name}") };
            for (number, first) in [(0, 0_u8), (1, 2), (2, 4), (3, 12), (5, 16)]
                .into_iter()
                .take(x.grid().iter().product::<u64>() as usize)
            {
                let chunk = index.get(number).unwrap();
                assert_eq!(
                    bytes_at(&source, chunk.offset, 2),
                    [first, first + 1],
                    "{name} {latest} {number}"
                );
            }
        }
    }
}
