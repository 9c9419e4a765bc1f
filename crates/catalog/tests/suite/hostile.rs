//! Files and names that mean no good.

use sieva_catalog::{Catalog, Filter, ObjectRecord, SourceRecord};
use sieva_types::ErrorKind;

use crate::Dir;

fn small(location: &str) -> SourceRecord {
    let array = ObjectRecord::array("x", "<f4", &[1]).attribute("k", 1i64);
    SourceRecord::new(location, "HDF5", 1, "1").object(array)
}

/// Text of a user is only ever a parameter.
pub fn injection(url: &str) {
    let catalog = Catalog::open(url).unwrap();
    let evil = "'); DROP TABLE objects; --\"$1";
    let array = ObjectRecord::array(evil, evil, &[1]).attribute(evil, evil);
    let mut source = SourceRecord::new(evil, evil, 1, evil).object(array);
    source.collections.push(evil.into());
    catalog.ingest(&[source]).unwrap();
    catalog.tag(evil, evil, evil, evil).unwrap();
    let found = catalog.objects_of(evil, &Filter::equal(evil, evil), 10, None).unwrap();
    assert_eq!((found[0].location.as_str(), found[0].path.as_str()), (evil, evil));
    assert_eq!(catalog.list(evil, 10, None).unwrap().len(), 1);
    assert!(catalog.forget(evil).unwrap());
    assert!(catalog.find_text("EXISTS a", 10, None).unwrap().is_empty());
}

#[test]
fn sqlite_takes_no_injection() {
    injection("sqlite::memory:");
}

#[test]
fn names_are_bounded() {
    let catalog = Catalog::open("sqlite::memory:").unwrap();
    let refused = |source: SourceRecord, part: &str| {
        let e = catalog.ingest(&[source]).unwrap_err();
        assert!(matches!(e.kind(), ErrorKind::InvalidValue | ErrorKind::Overflow), "{e}");
        assert!(e.message().contains(part) && e.message().len() < 3000, "{e}");
    };
    let object = || ObjectRecord::array("x", "<f4", &[1]);
    let with = |object| SourceRecord::new("/a", "HDF5", 1, "1").object(object);
    refused(with(object().attribute("k".repeat(10 << 20), 1i64)), "has 10485760 bytes; at most 512 are kept");
    refused(with(object().attribute("a\0b", 1i64)), "zero byte");
    refused(with(object().attribute("k", "v".repeat(2 << 20))), "the text of 'k' has 2097152 bytes");
    refused(with(ObjectRecord::array("a/".repeat(900), "", &[])), "901 levels");
    refused(with(ObjectRecord::array("x", "", &[u64::MAX, 2])), "more than 2^63 - 1 elements");
    refused(SourceRecord::new("", "", 1, ""), "location is empty");
    refused(SourceRecord::new("/b", "", u64::MAX, ""), "more than 2^63 - 1");
    catalog.ingest(&[with(object().attribute("k", "a\0b"))]).unwrap();
    assert_eq!(catalog.find(&sieva_catalog::Find::new(Filter::equal("k", "a\0b"))).unwrap().len(), 1);
}

fn opened(path: &str) -> sieva_types::Error {
    Catalog::open(path).err().unwrap_or_else(|| panic!("{path} was opened"))
}

#[test]
fn what_is_no_catalog_is_refused() {
    let dir = Dir::new("foreign");
    let path = dir.file("text.db");
    std::fs::write(&path, "not a database at all, but long enough to be looked at as one").unwrap();
    assert_eq!(opened(&path).kind(), ErrorKind::CorruptFile);
    let path = dir.file("foreign.db");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE mine (x)").unwrap();
    let e = opened(&path);
    assert_eq!(e.kind(), ErrorKind::UnknownFormat);
    assert!(e.message().contains("not a catalog of sieva"), "{e}");
    assert_eq!(opened(&dir.file("no/such/dir.db")).kind(), ErrorKind::FileNotFound);
    assert_eq!(Catalog::open_read_only(&dir.file("none.db")).unwrap_err().kind(), ErrorKind::FileNotFound);
    assert_eq!(opened("mysql://h/d").kind(), ErrorKind::InvalidValue);
    let e = opened("postgresql://user:secret@h:port/d");
    assert!(!e.message().contains("secret"), "{e}");
    let path = dir.file("newer.db");
    drop(Catalog::open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().execute("UPDATE meta SET value = 99", []).unwrap();
    let e = opened(&path);
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.message().contains("of version 99, newer than 1"), "{e}");
}

#[test]
fn a_damaged_file_gives_errors_or_answers() {
    let dir = Dir::new("damaged");
    let path = dir.file("a.db");
    let catalog = Catalog::open(&path).unwrap();
    catalog.ingest(&(0..200).map(|i| small(&format!("/{i}"))).collect::<Vec<_>>()).unwrap();
    drop(catalog);
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let whole = std::fs::read(&path).unwrap();
    let (mut errors, copy) = (0, dir.file("b.db"));
    for seed in 0..60usize {
        let mut bytes = whole.clone();
        for i in 0..40 {
            let at = (seed * 7919 + i * 104_729) % bytes.len();
            bytes[at] ^= 1 << (i % 8);
        }
        if seed % 3 == 0 {
            bytes.truncate(bytes.len() * (seed + 1) / 61);
        }
        std::fs::write(&copy, bytes).unwrap();
        let asked = Catalog::open(&copy).and_then(|c| {
            c.find_text("k = 1", 1000, None)?;
            c.show("/7")?;
            c.ingest(&[small("/new")])
        });
        errors += u32::from(asked.is_err());
        for beside in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{copy}{beside}"));
        }
    }
    assert!(errors > 10, "{errors} of 60 damages were noticed");
}

#[test]
fn a_catalog_for_reading_is_not_changed() {
    let dir = Dir::new("reading");
    let path = dir.file("a.db");
    let catalog = Catalog::open(&path).unwrap();
    catalog.ingest(&[small("/a")]).unwrap();
    drop(catalog);
    let read_only = Catalog::open_read_only(&path).unwrap();
    assert!(read_only.is_read_only());
    assert_eq!(read_only.find_text("k = 1", 1, None).unwrap().len(), 1);
    assert_eq!(read_only.ingest(&[small("/b")]).unwrap_err().kind(), ErrorKind::PermissionDenied);
}
