//! What is put is what is loaded.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Put {
    array: usize,
    region: u64,
    content: Option<u64>,
    stats: Vec<u8>,
    bitmap: Option<(Vec<u8>, Vec<u8>)>,
}

impl Put {
    fn record(&self) -> Record<'_> {
        let bitmap = self.bitmap.as_ref().map(|(head, body)| (head.as_slice(), body.as_slice()));
        Record { region: self.region, content: self.content, stats: &self.stats, bitmap }
    }
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..most)
}

fn put() -> impl Strategy<Value = Put> {
    (0..3_usize, 0..100_u64, of(any::<u64>()), bytes(60), of((bytes(90), bytes(300))))
        .prop_map(|(array, region, content, stats, bitmap)| Put { array, region, content, stats, bitmap })
}

const PATHS: [&str; 3] = ["/TEMP", "/group/SALT", "x"];

/// What should be known of a region after these records, in this order.
fn expected(puts: &[Put]) -> BTreeMap<(usize, u64), Put> {
    let mut all = BTreeMap::new();
    for put in puts {
        let known: &mut Put = all.entry((put.array, put.region)).or_insert_with(|| put.clone());
        known.content = put.content.or(known.content);
        if !put.stats.is_empty() {
            known.stats = put.stats.clone();
        }
        if put.bitmap.is_some() {
            known.bitmap = put.bitmap.clone();
        }
    }
    all
}

fn assert_holds(records: &ArrayRecords, region: usize, put: Option<&Put>) {
    assert_eq!(records.content(region), put.and_then(|put| put.content));
    assert_eq!(records.stats(region), put.map(|put| put.stats.as_slice()).filter(|s| !s.is_empty()));
    let bitmap = put.and_then(|put| put.bitmap.as_ref());
    assert_eq!(records.has_bitmap(region), bitmap.is_some());
    let head = records.bitmap_head(region).unwrap();
    assert_eq!(head.as_deref(), bitmap.map(|(head, _)| head.as_slice()));
    if let (Some(head), Some((_, body))) = (head, bitmap) {
        assert_eq!(head.body_len, body.len() as u64);
        let mut out = vec![9; 5];
        records.read_body(region, 0..head.body_len, &mut out).unwrap();
        assert_eq!(&out, body);
        let (start, end) = (head.body_len / 3, head.body_len / 2);
        records.read_body(region, start..end, &mut out).unwrap();
        assert_eq!(out, body[start as usize..end as usize]);
        assert!(records.read_body(region, 0..head.body_len + 1, &mut out).is_err());
    } else {
        assert!(records.read_body(region, 0..0, &mut Vec::new()).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn records_of_many_segments_are_merged_field_by_field(builds in vec(vec(put(), 0..40), 1..5)) {
        let (_parent, dir) = place();
        for build in &builds {
            let mut writer = SegmentWriter::create(&dir).unwrap();
            build.iter().for_each(|put| writer.put(&header(PATHS[put.array]), &put.record()).unwrap());
            add(&dir, writer.finish(false).unwrap());
        }
        let store = open(&dir);
        prop_assert_eq!((store.fingerprint(), store.damage().len()), (&fingerprint(), 0));
        let all = expected(&builds.concat());
        for (array, path) in PATHS.into_iter().enumerate() {
            let Some(records) = store.load(path) else {
                prop_assert!(all.keys().all(|(a, _)| *a != array));
                continue;
            };
            prop_assert_eq!((records.header(), records.damage.len()), (&header(path), 0));
            (0..101).for_each(|region| assert_holds(&records, region, all.get(&(array, region as u64))));
            let of_array: Vec<_> = all.iter().filter(|((a, _), _)| *a == array).map(|(_, put)| put).collect();
            let summary = store.arrays().into_iter().find(|s| s.path() == path).unwrap();
            prop_assert_eq!(summary.with_stats, of_array.iter().filter(|p| !p.stats.is_empty()).count() as u64);
            prop_assert_eq!(summary.with_bitmap, of_array.iter().filter(|p| p.bitmap.is_some()).count() as u64);
            prop_assert_eq!(summary.stats_bytes, of_array.iter().map(|p| p.stats.len() as u64).sum::<u64>());
        }
    }
}

/// More than one block of each kind, and the bounds of what waits in memory.
#[test]
fn many_blocks_are_written_and_found() {
    let (_parent, dir) = place();
    let mut writer = SegmentWriter::create(&dir).unwrap();
    let arrays: Vec<_> = (0..20).map(|i| header(&format!("/a{i}"))).collect();
    let content = |array: usize, region: u64| vec![(array as u8).wrapping_mul(31) ^ region as u8; 70_000];
    for region in 0..30 {
        for (a, array) in arrays.iter().enumerate() {
            let (stats, head) = (&content(a, region)[..50_000], &content(a, region)[..]);
            let record = Record { region, content: None, stats, bitmap: Some((head, &stats[..100])) };
            writer.put(array, &record).unwrap();
        }
    }
    add(&dir, writer.finish(true).unwrap());
    let store = open(&dir);
    for (a, array) in arrays.iter().enumerate() {
        let mut records = store.load(&array.path).unwrap();
        records.heads.limit(1 << 20);
        for region in (0..30).chain((0..30).rev()) {
            let expected = content(a, region as u64);
            assert_eq!(records.stats(region).unwrap(), &expected[..50_000]);
            assert_eq!(&*records.bitmap_head(region).unwrap().unwrap(), expected);
            assert!(records.heads.held() <= 2 << 20, "{}", records.heads.held());
        }
    }
}

#[test]
fn heads_are_read_by_the_block_and_once() {
    let (_parent, dir) = place();
    let records: Vec<_> = (0..100)
        .map(|region| Record { region, content: None, stats: b"s", bitmap: Some((b"head", b"body")) })
        .collect();
    add(&dir, segment(&dir, "/TEMP", &records));
    let records = open(&dir).load("/TEMP").unwrap();
    let (bytes, requests) = (records.bytes_read(), records.requests());
    (0..100).for_each(|region| assert_eq!(&*records.bitmap_head(region).unwrap().unwrap(), b"head"));
    assert_eq!((records.bytes_read() - bytes, records.requests() - requests), (400, 1));
    records.read_body(3, 1..3, &mut Vec::new()).unwrap();
    assert_eq!((records.bytes_read() - bytes, records.requests() - requests), (402, 2));
}

#[test]
fn what_cannot_be_put_is_refused() {
    let (_parent, dir) = place();
    let mut writer = SegmentWriter::create(&dir).unwrap();
    let kind = |e: Result<(), sieva_types::Error>| e.unwrap_err().kind();
    writer.put(&header("/TEMP"), &stats(99, b"ok")).unwrap();
    let refused = sieva_types::ErrorKind::InvalidValue;
    assert_eq!(kind(writer.put(&header("/TEMP"), &stats(100, b""))), refused);
    let other = ArrayHeader { dtype: DType::F64, ..header("/TEMP") };
    assert_eq!(kind(writer.put(&other, &stats(0, b""))), refused);
    assert_eq!(kind(writer.put(&ArrayHeader { dtype: DType::Str, ..header("/t") }, &stats(0, b""))), refused);
    let large = vec![0; (16 << 20) + 1];
    assert_eq!(kind(writer.put(&header("/TEMP"), &stats(0, &large))), sieva_types::ErrorKind::Unsupported);
    add(&dir, writer.finish(false).unwrap());
    assert_eq!(open(&dir).load("/TEMP").unwrap().stats(99), Some(&b"ok"[..]));
}

#[test]
fn arrays_without_regions_and_of_rank_zero() {
    let (_parent, dir) = place();
    let scalar = ArrayHeader { shape: vec![], region: vec![], ..header("/scalar") };
    let empty = ArrayHeader { shape: vec![0, 5], region: vec![1, 5], ..header("/empty") };
    let mut writer = SegmentWriter::create(&dir).unwrap();
    writer.put(&scalar, &stats(0, b"one")).unwrap();
    assert!(writer.put(&empty, &stats(0, b"none")).is_err());
    add(&dir, writer.finish(false).unwrap());
    let store = open(&dir);
    assert_eq!(store.load("/scalar").unwrap().stats(0), Some(&b"one"[..]));
    assert_eq!(store.load("/scalar").unwrap().stats(usize::MAX), None);
    let empty = store.load("/empty").unwrap();
    assert_eq!((empty.header().shape.as_slice(), empty.stats(0)), (&[0, 5][..], None));
}

#[test]
fn stores_and_records_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Store>();
    shared::<ArrayRecords>();
    shared::<Head>();
}
