//! Arrays that were built anew with other regions.

use super::*;

/// A segment of `TEMP` and, if wanted, of `SALT`, in regions of so many columns.
fn of_regions(dir: &Path, columns: u64, durable: bool, salt: bool) -> String {
    let mut writer = SegmentWriter::create(dir).unwrap();
    for path in ["/TEMP", "/SALT"].iter().filter(|path| salt || **path == "/TEMP") {
        let array = ArrayHeader { region: vec![1, columns], ..header(path) };
        writer.put(&array, &stats(3, format!("{path} by {columns}").as_bytes())).unwrap();
    }
    let segment = writer.finish(durable).unwrap();
    let name = segment.name().to_owned();
    add(dir, segment);
    name
}

fn regions_of(store: &Store, path: &str) -> (u64, String) {
    let records = store.load(path).unwrap();
    assert_eq!(records.damage, [""; 0]);
    let known = records.stats(3).unwrap_or_default().to_vec();
    (records.header().region[1], String::from_utf8(known).unwrap())
}

#[test]
fn regions_of_the_newest_build_count_and_others_say_nothing() {
    let (_parent, dir) = place();
    let first = of_regions(&dir, 100, true, true);
    assert_eq!(open(&dir).superseded(), [""; 0]);
    of_regions(&dir, 250, true, false);
    let store = open(&dir);
    assert_eq!(regions_of(&store, "/TEMP"), (250, "/TEMP by 250".into()));
    assert_eq!(regions_of(&store, "/SALT"), (100, "/SALT by 100".into()));
    // Something is taken from the first one still.
    assert_eq!(store.superseded(), [""; 0]);
    of_regions(&dir, 500, true, true);
    let store = open(&dir);
    assert_eq!(regions_of(&store, "/TEMP"), (500, "/TEMP by 500".into()));
    assert_eq!(store.superseded().len(), 2);
    assert!(store.superseded().contains(&first));
    let summary = store.arrays().into_iter().find(|a| a.path() == "/TEMP").unwrap();
    assert_eq!((summary.regions, summary.with_stats, summary.segments.len()), (20, 1, 1));
}

#[test]
fn what_scans_leave_hides_no_build() {
    let (_parent, dir) = place();
    of_regions(&dir, 500, false, false);
    let scanned = of_regions(&dir, 100, false, false);
    assert_eq!(regions_of(&open(&dir), "/TEMP").0, 100);
    of_regions(&dir, 250, true, false);
    let late = of_regions(&dir, 100, false, false);
    let store = open(&dir);
    assert_eq!(regions_of(&store, "/TEMP"), (250, "/TEMP by 250".into()));
    assert_eq!(store.superseded().len(), 3);
    assert!(store.superseded().contains(&scanned) && store.superseded().contains(&late));
}

#[test]
fn an_array_that_differs_in_more_is_damage() {
    let (_parent, dir) = place();
    let mut writer = SegmentWriter::create(&dir).unwrap();
    let other = ArrayHeader { shape: vec![10, 999], region: vec![1, 50], ..header("/TEMP") };
    writer.put(&other, &stats(0, b"x")).unwrap();
    add(&dir, writer.finish(true).unwrap());
    of_regions(&dir, 100, true, false);
    let store = open(&dir);
    assert_eq!(store.load("/TEMP").unwrap().damage.len(), 1);
    assert_eq!(store.superseded(), [""; 0]);
}
