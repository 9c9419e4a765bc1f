//! Zone maps beside what is put: found by who asks the object, right, and gone with it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva::{BuildOptions, ErrorKind, IndexKind, OpenOptions, QueryOptions, Source};
use sieva_encode::Format;
use sieva_share::{Group, GroupKey, GroupOptions, Producer, PublishOptions};

use crate::memory::Memory;
use crate::world::{Scratch, ask_in, classic, follow, keys, produce, produce_carrying};

/// Values of a file, of several regions.
const MANY: u32 = 300_000;

fn carrying() -> PublishOptions {
    PublishOptions { zone_maps_from: Some(0), ..PublishOptions::default() }
}

/// What a query that wants few values gives, and the bytes that it reads.
fn asked(path: &Path) -> (u64, u64) {
    let source = Source::open(path, &OpenOptions::default()).unwrap();
    let query = source.sql("SELECT v WHERE v >= 1299990", &QueryOptions::default()).unwrap();
    (query.count().unwrap(), query.stats().io.bytes_read)
}

fn in_directory(scratch: &Scratch) -> Group {
    Group::create(&scratch.0.join("group").display().to_string(), &GroupOptions::default()).unwrap()
}

#[test]
fn who_asks_what_was_published_reads_what_it_needs() {
    let scratch = Scratch::new();
    let group = in_directory(&scratch);
    let path = scratch.0.join("run.nc");
    std::fs::write(&path, classic(1_000_000, MANY)).unwrap();
    let done = group.publish("ada", "run.nc", &path, &carrying()).unwrap();
    let there = scratch.0.join("group/published/ada/run.nc");
    let names: Vec<&str> = done.state.zone_maps.iter().map(|name| &**name).collect();
    assert!(matches!(names[..], [segment, "manifest.json"] if segment.ends_with(".seg")), "{names:?}");
    let (whole, carried) = (asked(&path), asked(&there));
    assert_eq!((whole.0, carried.0), (10, 10));
    assert!(whole.1 >= u64::from(MANY) * 4 && carried.1 * 4 < whole.1, "{carried:?} of {whole:?}");
    let source = Source::open(&there, &OpenOptions::default()).unwrap();
    assert_eq!(source.index_notes(), [""; 0]);
    let verified = source.verify_index(true, &AtomicBool::new(false), &|_| ()).unwrap();
    assert!(verified.regions > 1 && verified.differences.is_empty(), "{verified:?}");
    // Of other bytes they are not believed.
    std::fs::write(&there, classic(1_000_001, MANY)).unwrap();
    assert_eq!(asked(&there).0, 11);
    group.unpublish("ada", "run.nc").unwrap();
    assert_eq!(keys(&**group.objects(), ""), ["group/group.json"]);
}

#[test]
fn what_others_left_beside_a_published_file_goes_with_it() {
    let scratch = Scratch::new();
    let group = in_directory(&scratch);
    let path = scratch.0.join("run.nc");
    std::fs::write(&path, classic(0, 1000)).unwrap();
    let plain = group.publish("ada", "run.nc", &path, &PublishOptions::default()).unwrap();
    assert!(plain.state.zone_maps.is_empty());
    let there = Source::open(scratch.0.join("group/published/ada/run.nc"), &OpenOptions::default()).unwrap();
    let kinds = vec![IndexKind::ZoneMap];
    there.build_index(&[], &BuildOptions { kinds, ..BuildOptions::default() }).unwrap();
    assert!(keys(&**group.objects(), "published/").len() > 1);
    group.unpublish("ada", "run.nc").unwrap();
    assert_eq!(keys(&**group.objects(), ""), ["group/group.json"]);
}

#[test]
fn results_carry_them_until_nobody_wants_the_result() {
    let scratch = Scratch::new();
    let group = in_directory(&scratch);
    std::fs::write(scratch.0.join("steps/a.nc"), classic(1_000_000, MANY)).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    for format in ["netcdf", "hdf5", "csv"] {
        ask_in(&group, "ada", format, "SELECT v WHERE v >= 1000002", format).unwrap();
    }
    let done = produce_carrying(&group, "model").unwrap();
    assert_eq!((done.objects, done.failed), (3, 0));
    let held = keys(&**group.objects(), "data/");
    let carriers: Vec<&String> = held.iter().filter(|key| key.ends_with(".sieva/manifest.json")).collect();
    assert_eq!((carriers.len(), held.len()), (2, 3 + 2 * 2));
    let status = group.status().unwrap().objects;
    assert_eq!(status, (3, done.bytes));
    for manifest in carriers {
        let object = scratch.0.join("group").join(manifest.strip_suffix(".sieva/manifest.json").unwrap());
        let (rows, read) = asked(&object);
        assert_eq!(rows, 10);
        assert!(read < u64::from(MANY), "{read}");
    }
    // Not made anew, nor deleted, while somebody wants them.
    assert_eq!(produce_carrying(&group, "model").unwrap().deleted, 0);
    assert_eq!(keys(&**group.objects(), "data/"), held);
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!(produce_carrying(&group, "model").unwrap().deleted, 3);
    assert_eq!(keys(&**group.objects(), "data/"), [""; 0]);
}

#[test]
fn small_files_those_of_other_formats_and_encrypted_ones_carry_none() {
    let scratch = Scratch::new();
    let memory = Arc::new(Memory::new("none"));
    let group = Group::create_in(memory.clone(), &GroupOptions::default()).unwrap();
    let (small, text) = (scratch.0.join("small.nc"), scratch.0.join("text"));
    std::fs::write(&small, classic(0, 1000)).unwrap();
    std::fs::write(&text, b"words".repeat(2_000_000)).unwrap();
    let references = scratch.0.join("references.json");
    let elsewhere = format!(
        r#"{{"version":1,"refs":{{".zgroup":"{{\"zarr_format\":2}}","x/0":["{}"]}}}}"#,
        small.display()
    );
    std::fs::write(&references, elsewhere).unwrap();
    let without = group.publish("ada", "small.nc", &small, &PublishOptions::default()).unwrap();
    assert!(without.state.zone_maps.is_empty());
    for path in [&text, &references] {
        let done = group.publish("ada", "other", path, &carrying()).unwrap();
        assert!(done.state.zone_maps.is_empty() && done.complete);
    }
    scratch.step("a.nc", 0);
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    ask_in(&group, "ada", "all", "SELECT v", "hdf5").unwrap();
    produce(&group, "model").unwrap();
    let key = GroupKey::draw().unwrap();
    let options = GroupOptions { key: Some(key), ..GroupOptions::default() };
    let sealed = Arc::new(Memory::new("sealed"));
    let encrypted = Group::create_in(sealed.clone(), &options).unwrap();
    encrypted.publish("ada", "small.nc", &small, &carrying()).unwrap();
    for store in [memory, sealed] {
        assert!(store.contents().keys().all(|key| !key.contains(".sieva")));
    }
}

#[test]
fn a_result_that_is_published_carries_them_and_names_of_stores_are_refused() {
    let scratch = Scratch::new();
    let group = in_directory(&scratch);
    scratch.step("a.nc", 1_299_000);
    let source = Source::open(scratch.0.join("steps/a.nc"), &OpenOptions::default()).unwrap();
    let query = Arc::new(source.sql("SELECT v", &QueryOptions::default()).unwrap());
    let format = Format::named("netcdf").unwrap();
    let done = group.publish_result("ada", "all.nc", &query, format, &scratch.0, &carrying()).unwrap();
    assert_eq!(done.state.zone_maps.len(), 2);
    assert_eq!(asked(&scratch.0.join("group/published/ada/all.nc")).0, 10);
    let e = group.publish("ada", "all.nc.sieva", scratch.0.join("steps/a.nc"), &carrying()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidValue);
    assert_eq!(e.message(), "'all.nc.sieva' would be the zone maps of something else");
    let left = std::fs::read_dir(&scratch.0).unwrap().flatten();
    assert!(left.map(|entry| entry.file_name()).all(|name| !name.to_string_lossy().contains("zone-maps")));
}
