//! What every backend does.

use std::collections::BTreeSet;

use sieva_catalog::{
    ArrayStats, Augmentation, AugmentationState, Catalog, Comparison, Filter, Find, IngestReport, ObjectKind,
    ObjectRecord, Origin, Rule, SourceRecord, Usage, Value,
};
use sieva_types::ErrorKind;

/// Runs everything, each on a catalog of its own.
pub fn all(url: &mut dyn FnMut(&str) -> String) {
    registering(&url("registering"));
    tags_outlive_changes(&url("tags"));
    collections(&url("collections"));
    bounds(&url("bounds"));
    records(&url("records"));
    wide_answers(&url("wide"));
    several_writers(&url("writers"));
}

fn source(location: &str, version: &str, field: f64) -> SourceRecord {
    let group = ObjectRecord::group("1/2").attribute("RADEG", field).attribute("name", "a");
    let flux =
        ObjectRecord::array("1/2/flux", "<f4", &[3, 4]).attribute("units", "Jy").attribute("units", "mJy");
    SourceRecord::new(location, "HDF5", 100, version).object(flux).object(group)
}

fn registering(url: &str) {
    let catalog = Catalog::open(url).unwrap();
    let mut first = source("/d/a.h5", "1", 1.5);
    first.manifest = Some(b"manifest".to_vec());
    let report = catalog.ingest(&[first.clone(), source("/d/b.h5", "1", 2.5)]).unwrap();
    assert_eq!(report, IngestReport { added: 2, replaced: 0, unchanged: 0, objects: 8 });
    assert_eq!(catalog.ingest(&[first]).unwrap().unchanged, 1);
    let known = catalog.known(&["/d/a.h5", "/d/none", "/d/b.h5"], Some(1 << 20)).unwrap();
    assert_eq!(known.len(), 2);
    assert_eq!(known["/d/a.h5"].manifest.as_deref(), Some(&b"manifest"[..]));
    assert!(catalog.set_manifest("/d/b.h5", "1", Some(b"m")).unwrap());
    assert!(!catalog.set_manifest("/d/b.h5", "2", None).unwrap());

    let (info, objects) = catalog.show("/d/a.h5").unwrap().unwrap();
    assert_eq!((info.size, info.objects, info.error), (100, 4, None));
    let paths: Vec<_> = objects.iter().map(|o| o.path.as_str()).collect();
    assert_eq!(paths, ["", "1", "1/2", "1/2/flux"]);
    assert_eq!((objects[3].elements, objects[3].shape.as_slice()), (12, &[3u64, 4][..]));
    assert_eq!(objects[3].attributes, [("units".into(), Value::from("mJy"), Origin::Attribute)]);

    let report = catalog.ingest(&[source("/d/a.h5", "2", 3.5)]).unwrap();
    assert_eq!((report.replaced, report.added), (1, 0));
    let arrays = |filter: Filter| catalog.find(&Find::new(filter).limit(10)).unwrap();
    assert!(arrays(Filter::equal("RADEG", 1.5)).is_empty());
    let found = arrays(Filter::And(vec![Filter::equal("RADEG", 3.5), Filter::equal("units", "mJy")]));
    assert_eq!((found[0].location.as_str(), found[0].path.as_str()), ("/d/a.h5", "1/2/flux"));
    assert_eq!(catalog.known(&["/d/a.h5"], Some(1 << 20)).unwrap()["/d/a.h5"].manifest, None);
    let groups = Find::new(Filter::equal("RADEG", 3.5)).kind(Some(ObjectKind::Group));
    assert_eq!(catalog.find(&groups).unwrap()[0].path, "1/2");

    let twice = SourceRecord::new("/d/c.h5", "HDF5", 1, "1").object(ObjectRecord::group("x"));
    let e =
        catalog.ingest(&[source("/d/e.h5", "1", 0.0), twice.object(ObjectRecord::group("x"))]).unwrap_err();
    assert_eq!(e.message(), "/d/c.h5: object 'x' is there twice");
    assert_eq!(catalog.list("/d/", 10, None).unwrap().len(), 2, "nothing of a refused batch is there");
    assert_eq!(catalog.list("/d/", 10, Some("/d/a.h5")).unwrap()[0].location, "/d/b.h5");
    assert_eq!(catalog.forget_prefix("/d/a").unwrap(), 1);
    drop(catalog);
    assert_eq!(Catalog::open_read_only(url).unwrap().list("", 10, None).unwrap().len(), 1);
}

fn tags_outlive_changes(url: &str) {
    let catalog = Catalog::open(url).unwrap();
    catalog.ingest(&[source("/a", "1", 1.0)]).unwrap();
    catalog.tag("/a", "1/2", "RADEG", 7i64).unwrap();
    catalog.tag("/a", "", "good", true).unwrap();
    let with = |filter: Filter| catalog.find(&Find::new(filter).limit(10)).unwrap().len();
    let (found, good) = (|v: f64| with(Filter::equal("RADEG", v)), || with(Filter::equal("good", true)));
    assert_eq!((with(Filter::equal("RADEG", 7i64)), found(1.0), good()), (1, 0, 1));
    catalog.ingest(&[source("/a", "2", 2.0)]).unwrap();
    assert_eq!((found(7.0), found(2.0), good()), (1, 0, 1));
    let object = catalog.object("/a", "1/2").unwrap().unwrap();
    let both: Vec<_> =
        object.attributes.iter().filter(|a| a.0 == "RADEG").map(|a| (a.1.clone(), a.2)).collect();
    assert_eq!(both, [(Value::Float(2.0), Origin::Attribute), (Value::Int(7), Origin::Tag)]);
    assert!(catalog.untag("/a", "1/2", "RADEG").unwrap() && !catalog.untag("/a", "1/2", "RADEG").unwrap());
    assert_eq!((found(7.0), found(2.0)), (0, 1));
    assert_eq!(catalog.tag("/b", "", "k", 1i64).unwrap_err().kind(), ErrorKind::FileNotFound);
    assert_eq!(catalog.tag("/a", "no", "k", 1i64).unwrap_err().kind(), ErrorKind::UnknownArray);
}

fn collections(url: &str) {
    let catalog = Catalog::open(url).unwrap();
    let mut named = source("/x/1", "1", 1.0);
    named.collections.push("boss".into());
    catalog.ingest(&[named, source("/x/2", "1", 1.0), source("/y/1", "1", 1.0)]).unwrap();
    let of = |name: &str| catalog.objects_of(name, &Filter::equal("RADEG", 1i64), 10, None);
    assert_eq!(of("boss").unwrap().len(), 1);
    let e = of("bos").unwrap_err();
    assert_eq!((e.kind(), e.hint_text()), (ErrorKind::UnknownAttribute, Some("there are: boss")));
    assert_eq!(catalog.collect_prefix("boss", "/x/").unwrap(), 1);
    catalog.ingest(&[source("/x/3", "1", 1.0)]).unwrap();
    assert_eq!(of("boss").unwrap().len(), 3);
    catalog.create_collection("boss", "spectra").unwrap();
    assert_eq!(catalog.collect("boss", &["/y/1", "/none"]).unwrap(), 1);
    let all = catalog.collections().unwrap();
    assert_eq!(
        (all[0].description.as_str(), all[0].sources, all[0].prefixes.as_slice()),
        ("spectra", 4, &["/x/".to_owned()][..])
    );
    let flux = Find::new(Filter::All).collection("boss").name("flux");
    assert_eq!(catalog.count(&flux).unwrap(), 4);
    assert_eq!(catalog.count(&flux.name("lux")).unwrap(), 0);
    assert!(catalog.remove_collection("boss").unwrap() && of("boss").is_err());
}

fn bounds(url: &str) {
    let catalog = Catalog::open(url).unwrap();
    let with = |location: &str, stats: Option<ArrayStats>| {
        let mut array = ObjectRecord::array("g/TEMP", "<f4", &[10]);
        array.stats = stats;
        SourceRecord::new(location, "HDF5", 1, "1").object(array)
    };
    let range = |low: Value, high: Value| {
        Some(ArrayStats { range: Some((low, high)), missing: 1, count: 10, blob: None })
    };
    let big = 1i64 << 53;
    catalog
        .ingest(&[
            with("/cold", range((-1.5).into(), 0.0.into())),
            with("/hot", range(30i64.into(), u64::MAX.into())),
            with("/big", range((big + 1).into(), (big + 1).into())),
            with("/unknown", None),
            with("/missing", Some(ArrayStats { range: None, missing: 10, count: 10, blob: Some(vec![1]) })),
        ])
        .unwrap();
    let could = |low: Option<Value>, high: Option<Value>| {
        catalog
            .could_contain("TEMP", low.as_ref(), high.as_ref(), None)
            .unwrap()
            .into_iter()
            .collect::<BTreeSet<_>>()
    };
    let set = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(could(Some(0i64.into()), Some(1i64.into())), set(&["/cold", "/unknown"]));
    assert_eq!(could(Some((big as f64).into()), Some((big as f64).into())), set(&["/hot", "/unknown"]));
    assert_eq!(could(None, None), set(&["/cold", "/hot", "/big", "/unknown"]));
    assert_eq!(could(Some(u64::MAX.into()), None), set(&["/hot", "/unknown"]));
    assert_eq!(
        catalog.could_contain("g/TEMP", None, Some(&Value::Int(-1)), None).unwrap(),
        ["/cold", "/unknown"]
    );
    assert!(catalog.could_contain("x/TEMP", None, None, None).unwrap().is_empty());
    let e = catalog.could_contain("TEMP", Some(&"x".into()), None, None).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::TypeMismatch);
    let stats =
        ArrayStats { range: Some((5i64.into(), 6i64.into())), missing: 0, count: 10, blob: Some(vec![7]) };
    assert!(catalog.set_array_stats("/unknown", "1", &[("g/TEMP", stats.clone())]).unwrap());
    assert!(!catalog.set_array_stats("/unknown", "0", &[("g/TEMP", stats.clone())]).unwrap());
    let e = catalog.set_array_stats("/unknown", "1", &[("g", stats.clone())]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::UnknownArray);
    let found = catalog.array_stats("TEMP", None).unwrap();
    assert_eq!(found.iter().find(|f| f.location == "/unknown").unwrap().stats, Some(stats));
    assert_eq!(found[0].stats, range((-1.5).into(), 0.0.into()));
    assert_eq!(could(Some(0i64.into()), Some(1i64.into())), set(&["/cold"]));
}

fn records(url: &str) {
    let catalog = Catalog::open(url).unwrap();
    let built = |bytes| Augmentation {
        location: "/a".into(),
        path: "TEMP".into(),
        kind: "bitmap".into(),
        version: "1".into(),
        bytes,
        seconds: 1.5,
        host: "node1".into(),
        at: 1e9,
        store: "/a.sieva".into(),
        data_bytes: 80,
        fingerprint: "80-1f".into(),
        state: AugmentationState::Current,
    };
    catalog.record_augmentations(&[built(1), built(2)]).unwrap();
    assert_eq!(catalog.augmentations("/").unwrap(), [built(2)]);
    // What is known already is not written again; another store of the same source is another matter.
    let sync =
        |store: &str, there: &[Augmentation]| catalog.sync_augmentations("/a", store, there, 2e9).unwrap();
    assert!(!sync("/a.sieva", &[Augmentation { at: 2e9, seconds: 9.0, ..built(2) }]));
    assert!(!sync("/elsewhere", &[]));
    assert_eq!(catalog.augmentations("/").unwrap(), [built(2)]);
    assert!(catalog.set_augmentations_stale("/a", "/a.sieva", 2e9).unwrap());
    assert!(!catalog.set_augmentations_stale("/a", "/a.sieva", 3e9).unwrap());
    let stale = Augmentation { state: AugmentationState::Stale, at: 2e9, ..built(2) };
    assert_eq!(catalog.augmentations("/").unwrap(), [stale]);
    assert!(sync("/a.sieva", &[]) && !sync("/a.sieva", &[]));
    let gone = Augmentation { state: AugmentationState::Gone, at: 2e9, ..built(2) };
    assert_eq!(catalog.augmentations("/").unwrap(), [gone]);
    let renewed = Augmentation { fingerprint: "81-2f".into(), seconds: 3.0, ..built(4) };
    assert!(sync("/a.sieva", std::slice::from_ref(&renewed)));
    assert_eq!(catalog.augmentations("/").unwrap(), [renewed]);
    catalog.set_rule("/a", "TEMP", "bitmap", Some(Rule::Pinned)).unwrap();
    catalog.set_rule("/a", "TEMP", "bitmap", Some(Rule::Forbidden)).unwrap();
    assert_eq!(catalog.rules("").unwrap(), [("/a".into(), "TEMP".into(), "bitmap".into(), Rule::Forbidden)]);
    catalog.set_rule("/a", "TEMP", "bitmap", None).unwrap();
    assert!(catalog.rules("").unwrap().is_empty());
    assert!(catalog.drop_augmentation("/a", "TEMP", "bitmap").unwrap());
    let usage = |n: u64| Usage {
        location: "/a".into(),
        path: "TEMP".into(),
        operation: "count".into(),
        condition: "TEMP > 5".into(),
        selectivity: 0.25,
        seconds: 0.5,
        bytes_read: n,
        at: n as f64,
        asked_by: if n.is_multiple_of(2) { "/O=Grid/CN=Ada".into() } else { String::new() },
    };
    catalog.record_usage(&(0..50).map(usage).collect::<Vec<_>>()).unwrap();
    catalog.set_usage_retention(10).unwrap();
    catalog.record_usage(&[usage(50)]).unwrap();
    let latest = catalog.usage("/a", 100).unwrap();
    assert_eq!(latest, (41..=50).rev().map(usage).collect::<Vec<_>>());
}

/// More rows than one comparison is read for at once.
fn wide_answers(url: &str) {
    let catalog = Catalog::open(url).unwrap();
    let mut source = SourceRecord::new("/wide", "HDF5", 1, "1");
    for i in 0..12_000i64 {
        let array = ObjectRecord::array(format!("a{i:05}"), "<f4", &[1]);
        let array = array.attribute("every", 1i64).attribute("i", i).attribute("odd", i % 2 == 1);
        source.objects.push(array.attribute("third", i % 3));
    }
    catalog.ingest(&[source]).unwrap();
    let count = |filter: Filter| catalog.count(&Find::new(filter)).unwrap();
    let (every, odd) = (|| Filter::equal("every", 1i64), || Filter::equal("odd", true));
    let i = |comparison, value: i64| Filter::compare("i", comparison, value);
    assert_eq!(count(every()), 12_000);
    let both = || Filter::And(vec![every(), odd(), Filter::equal("third", 0i64)]);
    assert_eq!(count(both()), 2000);
    let within = vec![odd(), i(Comparison::Ge, 100), Filter::Not(Box::new(i(Comparison::Gt, 11_000)))];
    assert_eq!(count(Filter::And(within)), 5450);
    assert_eq!(count(Filter::Or(vec![Filter::IsNull("every".into()), i(Comparison::Lt, 10)])), 10);
    let few = Filter::In("i".into(), vec![5i64.into(), 7i64.into(), 20_000i64.into()]);
    assert_eq!(count(Filter::And(vec![every(), few, odd()])), 2);
    let page = catalog.find(&Find::new(both()).limit(5)).unwrap();
    assert_eq!(
        page.iter().map(|o| o.path.as_str()).collect::<Vec<_>>(),
        ["a00003", "a00009", "a00015", "a00021", "a00027"]
    );
    let next = catalog.find(&Find::new(both()).limit(2000).after(Some(page[4].id))).unwrap();
    assert_eq!((next.len(), next[0].path.as_str()), (1995, "a00033"));
}

fn several_writers(url: &str) {
    let catalog = Catalog::open(url).unwrap();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let shared = &catalog;
            scope.spawn(move || {
                // Half of them as another process would.
                let own = (worker % 2 == 0).then(|| Catalog::open(url).unwrap());
                let catalog = own.as_ref().unwrap_or(shared);
                for i in 0..10 {
                    catalog.ingest(&[source(&format!("/{worker}/{i}"), "1", f64::from(worker))]).unwrap();
                    let own = Find::new(Filter::equal("RADEG", worker)).limit(100);
                    let found = catalog.find(&own).unwrap();
                    assert_eq!(found.len(), i + 1);
                }
            });
        }
    });
    assert_eq!(catalog.find(&Find::new(Filter::Exists("RADEG".into())).limit(100)).unwrap().len(), 40);
}
