//! Tasks of a collection, cut at drawn places, sent as bytes and merged in drawn order, give the answer of the whole.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test

use std::fs;
use std::path::{Path, PathBuf};

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use sieva::catalog::{AddOptions, Catalog, add};
use sieva::{
    Collection, CollectionPartial, CollectionQuery, CollectionSelection, CollectionTask, Column, Data,
    ErrorKind, OpenOptions, Plan, QueryOptions, TaskKind,
};

/// Numbers that look drawn, the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A Zarr 2 directory of groups with `flux`, and with `ivar` in most: big-endian floats, some of them special.
fn write_plate(path: &Path, first: u64, groups: u64, draw: &mut Draw) {
    let put = |name: String, text: &[u8]| {
        let file = path.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    put(".zgroup".into(), br#"{"zarr_format": 2}"#);
    for n in first..first + groups {
        put(format!("f{n}/.zgroup"), br#"{"zarr_format": 2}"#);
        let band = if n % 4 == 0 {
            String::new()
        } else {
            format!(r#", "band": "{}""#, ["u", "g", "r"][n as usize % 3])
        };
        put(format!("f{n}/.zattrs"), format!(r#"{{"fiber": {n}{band}}}"#).as_bytes());
        let length = 1 + draw.below(40);
        for array in ["flux", "ivar"].into_iter().take(if n % 5 == 3 { 1 } else { 2 }) {
            let head = format!(
                r#"{{"zarr_format": 2, "shape": [{length}], "chunks": [{length}], "dtype": ">f8", "compressor": null,
                "fill_value": -999.0, "order": "C", "filters": null}}"#
            );
            put(format!("f{n}/{array}/.zarray"), head.as_bytes());
            put(format!("f{n}/{array}/.zattrs"), br#"{"_ARRAY_DIMENSIONS": ["x"]}"#);
            let special =
                [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, 5e-324, -999.0];
            let mut value = || match draw.below(5) {
                0 => special[draw.below(special.len() as u64) as usize],
                _ => draw.below(20_000) as f64 / 7.0 - 1000.0,
            };
            let bytes: Vec<u8> = (0..length).flat_map(|_| value().to_be_bytes()).collect();
            put(format!("f{n}/{array}/0"), &bytes);
        }
    }
}

/// A collection of three plates with 20 objects in a new directory.
fn collection(name: &str) -> (PathBuf, Collection) {
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tasks-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    let (mut draw, mut first, mut names) = (Draw(name.len() as u64), 0, Vec::new());
    for (plate, groups) in [12, 1, 7].into_iter().enumerate() {
        let path = directory.join(format!("plate{plate}.zarr"));
        write_plate(&path, first, groups, &mut draw);
        first += groups;
        names.push(path.to_str().unwrap().to_owned());
    }
    let url = format!("sqlite:{}", directory.join("catalog.sqlite").display());
    let catalog = Catalog::open(&url).unwrap();
    let options = AddOptions { collections: vec!["plates".into()], ..AddOptions::default() };
    add(&catalog, &names, &options).unwrap();
    let made = Collection::open(&url, "plates", &OpenOptions::default()).unwrap();
    (directory, made)
}

/// All of a result, in which NaN and -0.0 are told apart.
fn rows(query: &CollectionQuery) -> String {
    let batches = query.batches(1000).unwrap();
    batches.map(|b| format!("{:?}\n", b.unwrap().columns())).collect()
}

/// The same collection in another process, which has no catalog.
fn elsewhere() -> Collection {
    Collection::without_catalog("plates", &OpenOptions::default())
}

/// The query, answered by tasks of drawn ranges, some of which are run without the catalog.
fn in_parts(
    collection: &Collection,
    query: &CollectionQuery,
    kind: TaskKind,
    draw: &mut Draw,
) -> CollectionQuery {
    let objects = query.objects().count() as u64;
    let mut ends: Vec<u64> = (0..draw.below(7)).map(|_| draw.below(objects + 1)).collect();
    ends.extend([0, objects]);
    ends.sort_unstable();
    let options = QueryOptions { threads: Some(1 + draw.below(2) as usize), ..QueryOptions::default() };
    let mut parts: Vec<CollectionPartial> = ends
        .windows(2)
        .map(|w| {
            let task = query.task(kind, w[0]..w[1]).unwrap();
            let sent = CollectionTask::from_bytes(&task.to_bytes().unwrap()).unwrap();
            assert_eq!(sent, task);
            if draw.below(2) == 0 {
                let sent = query.carrying(&task).unwrap().to_bytes().unwrap();
                return elsewhere().run_task(&CollectionTask::from_bytes(&sent).unwrap(), &options).unwrap();
            }
            collection.run_task(&sent, &options).unwrap()
        })
        .collect();
    while parts.len() > 1 {
        let mut one = parts.swap_remove(draw.below(parts.len() as u64) as usize);
        let other = parts.swap_remove(draw.below(parts.len() as u64) as usize);
        one.merge(CollectionPartial::from_bytes(&other.to_bytes().unwrap()).unwrap()).unwrap();
        parts.push(one);
    }
    query.finish(parts.pop().unwrap()).unwrap()
}

#[test]
fn parts_in_any_order_are_the_whole() {
    let (directory, collection) = collection("whole");
    let (options, mut draw) = (QueryOptions::default(), Draw(99));
    for text in [
        "SELECT object, count(flux), sum(flux), stddev(ivar) GROUP BY object",
        "SELECT band, avg(flux), min(ivar), max(flux), median(flux) WHERE flux <> ivar GROUP BY band",
        "SELECT count(*), sum(flux) WHERE flux > 1e301",
        "SELECT fiber % 3, quantile(flux, 0.1), histogram(flux, 5, -10, 10) WHERE flux > fiber GROUP BY 1 \
         HAVING count(*) > 2 ORDER BY 1 DESC LIMIT 2",
        "SELECT object, source, flux, fiber + 1 WHERE flux > 100 OR flux IS NULL",
        "SELECT ivar WHERE ivar < 0 LIMIT 9 OFFSET 4",
    ] {
        let whole = collection.sql(text, &options).unwrap();
        for _ in 0..6 {
            let found = in_parts(&collection, &whole, whole.usual_kind(), &mut draw);
            assert_eq!(found.count().unwrap(), whole.count().unwrap(), "{text}");
            assert_eq!(found.stats().sources_opened, 0, "{text}");
            assert_eq!(rows(&found), rows(&whole), "{text}");
            if !whole.is_grouped() {
                let counted = in_parts(&collection, &whole, TaskKind::Count, &mut draw);
                assert_eq!(counted.count().unwrap(), whole.count().unwrap(), "{text}");
            }
        }
    }
    fs::remove_dir_all(directory).unwrap();
}

/// Bits of the values at hits of a selection, `None` where they are missing.
fn values(hits: &CollectionSelection, value: &str, which: Range<u64>) -> Vec<Option<u64>> {
    let mut all = Vec::new();
    let take = |column: Column| {
        let Data::F64(values) = &column.data else { panic!("{:?}", column.dtype()) };
        let bits = values.iter().enumerate().map(|(i, x)| (column.valid.as_ref(), i, x.to_bits()));
        all.extend(bits.map(|(valid, i, bits)| valid.is_none_or(|v| v.get(i)).then_some(bits)));
        Ok(())
    };
    hits.read(value, which, &Arc::default(), take).unwrap();
    all
}

/// Bits of the first column of a query's rows.
fn column(query: &CollectionQuery) -> Vec<Option<u64>> {
    let batches = query.batches(7).unwrap();
    let columns = batches.map(|b| b.unwrap().column(0).as_primitive::<Float64Type>().clone());
    columns.flat_map(|c| c.iter().map(|x| x.map(f64::to_bits)).collect::<Vec<_>>()).collect()
}

#[test]
fn hits_are_shared_out_and_sent() {
    let (directory, collection) = collection("hits");
    let (options, mut draw, elsewhere) = (QueryOptions::default(), Draw(5), elsewhere());
    for text in [
        "SELECT flux WHERE flux > 100",
        "SELECT flux WHERE ivar < 0 OR flux IS NULL",
        "SELECT flux WHERE flux > fiber * 10 AND band = 'u'",
        "SELECT flux WHERE flux > 1e301 AND flux < 1e302",
    ] {
        let whole = collection.sql(text, &options).unwrap();
        let expected = column(&whole);
        let found = in_parts(&collection, &whole, TaskKind::Selection, &mut draw);
        for hits in [whole.selection().unwrap(), found.selection().unwrap()] {
            let n = hits.len();
            assert_eq!(values(&hits, "flux", 0..n), expected, "{text}");
            assert_eq!(hits.positions(0).count() as u64, n);
            assert_eq!(hits.objects().map(|o| o.found.len()).sum::<u64>(), n);
            assert!(hits.objects().all(|o| !o.found.is_empty()));
            for _ in 0..4 {
                let (a, b) = (draw.below(n + 1), draw.below(n + 1));
                let (a, b) = (a.min(b), a.max(b));
                let part = hits.part(a, b - a);
                let bytes = part.to_bytes_carrying().unwrap();
                let plan = whole.logical_plan().unwrap();
                let sent = CollectionSelection::from_bytes(&elsewhere, &plan, &bytes, &options).unwrap();
                // What was carried is kept.
                assert_eq!(sent.to_bytes().unwrap(), bytes);
                assert_eq!(
                    values(&sent, "flux", 0..b - a),
                    expected[a as usize..b as usize],
                    "{text} {a}..{b}"
                );
                let half = (b - a) / 2;
                assert_eq!(
                    sent.positions(half).collect::<Vec<_>>(),
                    hits.positions(a + half).take((b - a - half) as usize).collect::<Vec<_>>()
                );
                let numbers = |s: &CollectionSelection| s.objects().map(|o| o.number).collect::<Vec<_>>();
                assert_eq!(numbers(&sent), numbers(&part));
            }
            let e = hits.read("none", 0..0, &Arc::default(), |_| Ok(())).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::UnknownArray, "{e}");
            let e = hits.read("flux", 0..n + 1, &Arc::default(), |_| Ok(())).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidValue, "{e}");
        }
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn damaged_selections_and_those_of_other_plans_are_refused() {
    let (directory, collection) = collection("damage");
    let options = QueryOptions::default();
    let query = collection.sql("SELECT flux WHERE flux > 100 AND fiber < 3", &options).unwrap();
    let (plan, bytes) = (query.logical_plan().unwrap(), query.selection().unwrap().to_bytes().unwrap());
    let read = |plan: &Plan, bytes: &[u8]| {
        CollectionSelection::from_bytes(&collection, plan, bytes, &options).map(|s| s.len())
    };
    assert_eq!(read(&plan, &bytes).unwrap(), query.count().unwrap());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x21;
        assert_eq!(read(&plan, &damaged).unwrap_err().kind(), ErrorKind::CorruptFile, "byte {at}");
        assert_eq!(read(&plan, &bytes[..at]).unwrap_err().kind(), ErrorKind::CorruptFile, "{at} bytes");
    }
    let other = collection.sql("SELECT flux WHERE flux > 101", &options).unwrap().logical_plan().unwrap();
    assert_eq!(read(&other, &bytes).unwrap_err().kind(), ErrorKind::InvalidValue);
    // What has no catalog says so.
    let e = elsewhere().sql("SELECT flux", &options).map(|_| ()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Unsupported, "{e}");
    // Positions of a file that was changed are told.
    let hits = query.selection().unwrap();
    let zgroup = directory.join("plate0.zarr/f1/flux/0");
    let mut data = fs::read(&zgroup).unwrap();
    data.push(0);
    fs::write(&zgroup, data).unwrap();
    let e = hits.read("flux", 0..hits.len(), &Arc::default(), |_| Ok(())).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::StaleSource | ErrorKind::CorruptFile), "{e}");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn sources_are_shared_out_whole_and_changed_ones_refused() {
    let (directory, collection) = collection("shared");
    let options = QueryOptions::default();
    let query = collection.sql("SELECT band, count(flux) GROUP BY band", &options).unwrap();
    let tasks = query.tasks(2).unwrap();
    assert_eq!(tasks.iter().map(|t| t.objects().count()).sum::<usize>(), 20);
    assert!(tasks.len() <= 2 && tasks.iter().all(|t| t.object_count() == 20));
    assert_eq!(query.tasks(0).unwrap_err().kind(), ErrorKind::InvalidValue);
    assert_eq!(query.task(TaskKind::Groups, 5..21).unwrap_err().kind(), ErrorKind::InvalidValue);
    assert_eq!(query.task(TaskKind::Count, 0..1).unwrap_err().kind(), ErrorKind::Unsupported);
    let bytes = tasks[0].to_bytes().unwrap();
    for at in 0..bytes.len() {
        let mut hurt = bytes.clone();
        hurt[at] ^= 1 << (at % 8);
        assert_eq!(CollectionTask::from_bytes(&hurt).unwrap_err().kind(), ErrorKind::InvalidValue);
        assert_eq!(CollectionTask::from_bytes(&bytes[..at]).unwrap_err().kind(), ErrorKind::InvalidValue);
    }
    // A plate is written anew with fewer groups.
    let plate = directory.join("plate0.zarr");
    fs::remove_dir_all(&plate).unwrap();
    write_plate(&plate, 0, 11, &mut Draw(5));
    let e = collection.run_task(&tasks[0], &options).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::StaleSource, "{e}");
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn who_is_told_the_states_of_the_sources_opens_none_to_cut_and_finish() {
    let (directory, first) = collection("listing");
    let url = format!("sqlite:{}", directory.join("catalog.sqlite").display());
    let another = || Collection::open(&url, "plates", &OpenOptions::default()).unwrap();
    let (options, sql) =
        (QueryOptions::default(), "SELECT band, count(*), max(flux) WHERE flux > -500 GROUP BY band");
    let query = first.sql(sql, &options).unwrap();
    let listing = query.listing_bytes().unwrap().unwrap();
    assert!(first.traffic().0 >= 3);
    let told = another();
    let own = told.sql(sql, &options).unwrap();
    let before = told.traffic().0;
    own.take_listing(&listing).unwrap();
    assert_eq!(own.state().unwrap(), query.state().unwrap());
    let mut whole: Option<CollectionPartial> = None;
    for (task, same) in own.tasks(3).unwrap().iter().zip(query.tasks(3).unwrap()) {
        assert_eq!(*task, same);
        // Somebody else runs it.
        let part = first.run_task(task, &options).unwrap();
        match &mut whole {
            Some(whole) => whole.merge(part).unwrap(),
            None => whole = Some(part),
        }
    }
    let finished = own.finish(whole.unwrap()).unwrap();
    assert_eq!(rows(&finished), rows(&query));
    // What knows the answer is bound to an object of one source, as any query.
    assert!(told.traffic().0 <= before + 1);
    // Of other objects, cut off, or changed.
    let other = told.sql("SELECT flux WHERE fiber > 4", &options).unwrap();
    assert_eq!(other.take_listing(&listing).unwrap_err().kind(), ErrorKind::StaleSource);
    let fresh = another().sql(sql, &options).unwrap();
    for n in 0..listing.len() {
        let mut changed = listing.clone();
        changed[n] ^= 1;
        for bad in [&listing[..n], &changed[..]] {
            let e = fresh.take_listing(bad).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidValue, "{n}");
        }
    }
    // What is run by another plan lists for itself.
    assert!(first.sql("SELECT flux WHERE flux IN ()", &options).unwrap().listing_bytes().unwrap().is_none());
    fs::remove_dir_all(directory).unwrap();
}
