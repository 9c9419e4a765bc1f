//! What goes in comes out.

use proptest::collection::vec;
use proptest::prelude::*;
use sieva_format::decoding::{Decoding, Number};
use sieva_format::filters::{Filter, Pipeline};
use sieva_format::layout::{ChunkIndex, ChunkRef, Layout, Placement};
use sieva_format::manifest::{Layouts, Manifest, SUBJECT};
use sieva_format::schema::{ArrayInfo, Attr, AttrValue, Dimension, GroupInfo, Naming, Schema, StorageInfo};
use sieva_types::wire::{DTYPES, Reader, Writer};
use sieva_types::{DType, Error, ErrorKind};

use crate::common::{Made, empty, layout};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("units".to_owned()), "[a-zé/._]{0,12}".prop_map(|s| s)]
}

fn dtype() -> impl Strategy<Value = DType> {
    (0..DTYPES.len()).prop_map(|i| DTYPES[i])
}

fn attr() -> impl Strategy<Value = Attr> {
    let value = prop_oneof![
        name().prop_map(AttrValue::Text),
        vec(name(), 0..4).prop_map(AttrValue::Texts),
        (dtype(), vec(any::<i128>(), 0..4)).prop_map(|(t, v)| AttrValue::Ints(t, v)),
        (dtype(), vec(any::<u64>().prop_map(f64::from_bits), 0..4))
            .prop_map(|(t, v)| AttrValue::Floats(t, v)),
        name().prop_map(AttrValue::Other),
    ];
    (name(), value)
}

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i128>().prop_map(Number::Int),
        any::<u64>().prop_map(|b| Number::Float(f64::from_bits(b)))
    ]
}

fn storage() -> impl Strategy<Value = StorageInfo> {
    let some = prop_oneof![Just(None), any::<u64>().prop_map(Some)];
    (0..5_usize, proptest::option::of(vec(any::<u64>(), 0..3)), vec(name(), 0..3), name(), some.clone(), some)
        .prop_map(|(l, chunk_shape, filters, stored_type, stored_bytes, offset)| StorageInfo {
            layout: ["", "contiguous", "virtual", "record", "of another reader"][l],
            chunk_shape,
            filters,
            stored_type,
            stored_bytes,
            offset,
        })
}

fn error() -> impl Strategy<Value = Error> {
    (0..ErrorKind::ALL.len(), name(), proptest::option::of(name())).prop_map(|(kind, message, hint)| {
        let e = Error::new(ErrorKind::ALL[kind], format!("{message}!"));
        hint.into_iter().fold(e, Error::hint)
    })
}

prop_compose! {
    fn array(dims: Vec<u64>)(
        path in name(), dtype in dtype(), attrs in vec(attr(), 0..4), storage in storage(),
        picked in vec(0..dims.len(), 0..4), enum_names in vec((any::<i128>(), name()), 0..3),
        packing in proptest::option::of((any::<f64>(), any::<f64>())), missing in vec(number(), 0..3),
        valid in (proptest::option::of(number()), proptest::option::of(number())),
    ) -> ArrayInfo {
        ArrayInfo {
            path, dtype, attrs, enum_names, storage,
            shape: picked.iter().map(|&d| dims[d]).collect(),
            dims: picked,
            decoding: Decoding { stored: dtype.as_unsigned(), packing, missing, valid },
            coordinates: vec![0],
        }
    }
}

fn schema() -> impl Strategy<Value = Schema> {
    vec(0_u64..1000, 1..4)
        .prop_flat_map(|lens| {
            let groups = vec((name(), vec(attr(), 0..4)), 1..4);
            let dims = vec((name(), name(), any::<bool>(), 0..7_u8), lens.len());
            let lists = (vec((name(), 0..1_usize), 0..3), vec((name(), error()), 0..3), vec(name(), 0..3));
            (Just(lens.clone()), name(), groups, dims, vec(array(lens), 1..5), lists)
        })
        .prop_map(|(lens, format, groups, dims, arrays, (aliases, left_out, warnings))| Schema {
            format,
            groups: groups.into_iter().map(|(path, attrs)| GroupInfo { path, attrs }).collect(),
            dims: dims
                .into_iter()
                .zip(lens)
                .enumerate()
                .map(|(d, ((name, path, unlimited, naming), len))| {
                    let coordinate = arrays.iter().position(|a| a.dims == [d]);
                    let naming = Naming::from_code(naming).unwrap_or_default();
                    Dimension { name, path, len, unlimited, naming, coordinate }
                })
                .collect(),
            arrays,
            aliases,
            left_out,
            warnings,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_schema_comes_back_bit_for_bit(schema in schema()) {
        let source = Made { schema, ..empty(10) };
        let manifest = Manifest::take(&source, Layouts::None).unwrap();
        let again = Manifest::decode(&manifest.encode()).unwrap();
        // As text: NaN is not itself, and its bits are told by what is encoded again.
        prop_assert_eq!(format!("{:?}", again.schema()), format!("{:?}", &source.schema));
        prop_assert_eq!(again.encode(), manifest.encode());
    }

    #[test]
    fn any_chunks_come_back(
        grid in 1_u64..5000,
        stored in proptest::collection::btree_map(any::<u64>(), (any::<u64>(), any::<u64>(), any::<u32>()), 0..50),
    ) {
        let chunk = |(offset, size, filter_mask)| ChunkRef { offset, size: size & !(1 << 63), filter_mask };
        let stored: Vec<_> = stored.into_iter().map(|(n, c)| (n % grid, chunk(c))).collect();
        let index = ChunkIndex::new(grid, stored);
        let expected: Vec<_> = (0..grid).map(|n| index.get(n)).collect();
        let mut source = empty(10);
        source.add("x", &[grid], layout(DType::U8, &[grid], &[1], Placement::Chunks(index)));
        let manifest = Manifest::take(&source, Layouts::All).unwrap();
        let layout = Manifest::decode(&manifest.encode()).unwrap().layout(0).unwrap().unwrap();
        let Placement::Chunks(index) = &layout.placement else { panic!("{layout:?}") };
        prop_assert_eq!((0..grid).map(|n| index.get(n)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn any_number_comes_back(uint in any::<u64>(), int in any::<i128>(), shift in 0..127_u32) {
        let mut w = Writer::default();
        w.uint(uint >> (shift % 64));
        w.int(int >> shift);
        let bytes = w.into_bytes();
        let mut r = Reader::new(&SUBJECT, &bytes, 0);
        prop_assert_eq!((r.uint().unwrap(), r.int().unwrap()), (uint >> (shift % 64), int >> shift));
        r.finish().unwrap();
    }
}

#[test]
fn layouts_of_all_kinds_come_back() {
    let source = Made::varied();
    let manifest = Manifest::decode(&Manifest::take(&source, Layouts::All).unwrap().encode()).unwrap();
    for (array, expected) in source.layouts.iter().enumerate() {
        match expected {
            Ok(layout) => {
                assert_eq!(format!("{:?}", manifest.layout(array).unwrap().unwrap()), format!("{layout:?}"))
            }
            Err(e) => assert_eq!(manifest.layout(array).unwrap_err(), *e),
        }
    }
    let some = Manifest::take(&source, Layouts::Some(&[1])).unwrap();
    assert!(some.layout(0).unwrap().is_none() && some.layout(1).unwrap().is_some());
    assert!(Manifest::take(&source, Layouts::Some(&[99])).is_err());
}

#[test]
fn every_filter_comes_back() {
    let described: [(u32, &[u32], &str); 17] = [
        (1, &[4], ""),
        (2, &[8], ""),
        (3, &[], ""),
        (4, &[52, 32, 16, 256], ""),
        (4, &[4, 8, 32, 1024], ""),
        (5, &[8, 0, 200, 1, 4, 0, 31, 0], ""),
        (6, &[2, 0, 9, 0, 4, 1, 1, 1, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], ""),
        (6, &[0, 3, 9, 1, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], ""),
        (307, &[9], ""),
        (32000, &[], ""),
        (32001, &[], ""),
        (32004, &[], ""),
        (32008, &[0, 3, 4, 0, 2], ""),
        (32013, &[1, 0x0570_667a, 0x0000_0547, 0x8800_0005], ""),
        (32015, &[], ""),
        (32026, &[], ""),
        (40000, &[1], "somebody's"),
    ];
    let filters: Vec<Filter> =
        described.iter().map(|(id, data, name)| Filter::from_hdf5(*id, data, name)).collect();
    assert_eq!(filters.iter().filter(|f| matches!(f, Filter::Other { .. })).count(), 1);
    let mut source = empty(10);
    let plain = layout(DType::U8, &[1], &[1], Placement::Unallocated);
    source.add("x", &[1], Layout { pipeline: Pipeline { filters: filters.clone() }, ..plain });
    let manifest = Manifest::take(&source, Layouts::All).unwrap();
    let again = Manifest::decode(&manifest.encode()).unwrap();
    assert_eq!(again.layout(0).unwrap().unwrap().pipeline.filters, filters);
}

#[test]
fn a_million_chunks_take_few_bytes_each() {
    let n = 1_000_000_u64;
    let (mut at, mut seed) = (4096, 1_u64);
    let mut chunk = |i: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Sizes of compressed chunks: 20 000 and up to 4096 more.
        let size = 20_000 + (seed >> 52);
        let found = ChunkRef { offset: at, size, filter_mask: 0 };
        at += size;
        (i, found)
    };
    let index = ChunkIndex::new(n, (0..n).map(&mut chunk).collect());
    let mut source = empty(10);
    source.add("x", &[n], layout(DType::U8, &[n], &[1], Placement::Chunks(index)));
    let manifest = Manifest::take(&source, Layouts::All).unwrap();
    let bytes = manifest.encode();
    assert!(bytes.len() < 2_500_000, "{} bytes", bytes.len());
    let again = Manifest::decode(&bytes).unwrap();
    let (ours, theirs) = (again.layout(0).unwrap().unwrap(), source.layouts[0].clone().unwrap());
    let (Placement::Chunks(ours), Placement::Chunks(theirs)) = (&ours.placement, &theirs.placement) else {
        panic!("not chunks");
    };
    assert!((0..n).all(|i| ours.get(i) == theirs.get(i)));
}
