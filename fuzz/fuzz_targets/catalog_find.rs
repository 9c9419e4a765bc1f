//! Any text as a filter of a small catalog: no panic, no error but of the text, one answer however it is asked for, and
//! nothing that satisfies both a filter and its opposite.
#![no_main]

use std::collections::BTreeSet;
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use sieva_catalog::{Catalog, Filter, Find, ObjectRecord, SourceRecord};
use sieva_fuzz::check_error;
use sieva_types::ErrorKind;

/// A catalog in a directory that ends with the process.
static CATALOG: LazyLock<(tempfile::TempDir, Catalog)> = LazyLock::new(|| {
    let dir = tempfile::tempdir().expect("a directory");
    let catalog = Catalog::open(dir.path().join("c.sqlite").to_str().expect("a path")).expect("a catalog");
    catalog.ingest(&sources()).expect("sources");
    catalog.tag("a.h5", "g/flux", "plate", 1234_i64).expect("a tag");
    catalog.tag("b.h5", "", "checked", true).expect("a tag");
    (dir, catalog)
});

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let filter = match sieva::catalog::parse_filter(text) {
        Ok(filter) => filter,
        Err(e) => {
            check_error(&e);
            let expected =
                [ErrorKind::Syntax, ErrorKind::Overflow, ErrorKind::TypeMismatch, ErrorKind::Unsupported];
            return assert!(expected.contains(&e.kind()), "{e}");
        }
    };
    let Some(found) = find(filter.clone()) else { return };
    let Some(others) = find(Filter::Not(Box::new(filter))) else { return };
    assert!(found.is_disjoint(&others), "{text}");
});

/// The objects that satisfy a filter, by number; none where it is too large to be asked.
fn find(filter: Filter) -> Option<BTreeSet<String>> {
    let find = Find::new(filter).kind(None);
    let found = CATALOG.1.find(&find).inspect_err(check_error).ok()?;
    assert_eq!(CATALOG.1.count(&find), Ok(found.len() as u64));
    let ids: BTreeSet<String> = found.iter().map(|o| format!("{o:?}")).collect();
    assert_eq!(ids.len(), found.len(), "an object comes twice");
    Some(ids)
}

fn sources() -> Vec<SourceRecord> {
    let array = |path: &str| ObjectRecord::array(path, "float32", &[10]);
    let source = |name: &str| SourceRecord::new(name, "HDF5", 100, "1");
    vec![
        source("a.h5")
            .object(ObjectRecord::group("").attribute("title", "night 1").attribute("RADEG", 153.17))
            .object(ObjectRecord::group("g").attribute("RADEG", 153_i64).attribute("big", u64::MAX))
            .object(array("g/flux").attribute("units", "K").attribute("n", i64::MIN).attribute("x", f64::NAN))
            .object(array("g/err").attribute("title", "").attribute("DECDEG", -0.0)),
        source("b.h5").object(array("flux").attribute("RADEG", 1e300).attribute("good", true)),
    ]
}
