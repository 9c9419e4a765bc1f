//! Files and names that mean no good.

use sieva_catalog::{Catalog, Filter, Find, ObjectRecord, SourceRecord};
use sieva_types::ErrorKind;

use crate::Dir;

fn small(location: &str) -> SourceRecord {
    let array = ObjectRecord::array("x", "<f4", &[1]).attribute("k", 1i64);
    SourceRecord::new(location, "HDF5", 1, "1").object(array)
}

/// The arrays whose `k` is one.
fn ones() -> Find {
    Find::new(Filter::equal("k", 1i64)).limit(1000)
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
    assert!(catalog.find(&Find::new(Filter::Exists("a".into())).limit(10)).unwrap().is_empty());
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
    let texts = (0..20).fold(object(), |o, i| o.attribute(format!("k{i}"), "v".repeat(1 << 20)));
    refused(with(texts), "20 attributes with 20971520 bytes of text");
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
    assert!(e.message().contains("of version 99, newer than 3"), "{e}");
}

/// Spellings that are none of an address, and would be a path: all of them have the password "pw".
#[test]
fn a_password_is_in_no_message() {
    for address in [
        "postgresql:/me:pw@h/db",
        "postgresql:me:pw@h/db",
        "Postgresql://me:pw@h/db",
        "postgresql%3A//me:pw@h/db",
        "//me:pw@h/db",
        "postgresql:me:pw@h",
        "me:pw@h/db",
        "host=h user=me password=pw",
        "host=h password = 'pw pw' user=me",
        "sqlite:postgresql://me:pw@h/db",
        "postgresql://me:p?pw@h/db",
        "postgresql://me:p/pw@h/db",
        "postgresql://me:p#pw@h/db",
        "postgresql://me:pw@h:port/db",
        "postgresql://me:p@pw@127.0.0.1:1/db",
        "postgresql://me:pw@127.0.0.1:1/db?pw=1",
        "postgresql://me:pw@127.0.0.1:1/db?sslmode=pw",
    ] {
        for e in [opened(address), Catalog::open_read_only(address).unwrap_err()] {
            let said =
                format!("{e} {} {e:?}", e.hint_text().unwrap_or_default()).replace("in a password", "");
            assert!(!said.contains("pw"), "{address}: {said}");
        }
    }
}

/// A database may hold what no catalog keeps, and what the limit of who asks does not allow.
#[test]
fn manifests_that_do_not_fit_are_not_fetched() {
    let dir = Dir::new("manifests");
    let path = dir.file("a.db");
    let catalog = Catalog::open(&path).unwrap();
    let sources: Vec<SourceRecord> = ["/a", "/b", "/c"].map(small).to_vec();
    catalog.ingest(&sources).unwrap();
    for (location, bytes) in [("/a", 1000), ("/b", 500)] {
        catalog.set_manifest(location, "1", Some(&vec![7; bytes])).unwrap();
    }
    let too_long = vec![0; sieva_catalog::MAX_MANIFEST + 1];
    let e = catalog.set_manifest("/c", "1", Some(&too_long)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::MemoryLimit);
    let lengths = |most: u64| {
        let known = catalog.known(&["/a", "/b", "/c"], Some(most)).unwrap();
        ["/a", "/b", "/c"].map(|l| known[l].manifest.as_ref().map(Vec::len))
    };
    assert_eq!(lengths(1500), [Some(1000), Some(500), None]);
    assert_eq!(lengths(1499), [Some(1000), None, None]);
    assert_eq!(lengths(600), [None, Some(500), None]);
    let other = rusqlite::Connection::open(&path).unwrap();
    let sql = "INSERT INTO manifests SELECT id, zeroblob(200000000) FROM sources WHERE location = '/c'";
    other.execute(sql, []).unwrap();
    drop(other);
    assert_eq!(lengths(u64::MAX), [Some(1000), Some(500), None]);
    assert!(catalog.known(&["/c"], None).unwrap()["/c"].manifest.is_none());
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
            c.find(&ones())?;
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
    assert_eq!(read_only.find(&ones()).unwrap().len(), 1);
    assert_eq!(read_only.ingest(&[small("/b")]).unwrap_err().kind(), ErrorKind::PermissionDenied);
}

#[test]
fn a_source_with_damaged_attributes_is_replaced() {
    let dir = Dir::new("attributes");
    let path = dir.file("a.db");
    let catalog = Catalog::open(&path).unwrap();
    catalog.ingest(&[small("/a"), small("/b")]).unwrap();
    let damage = "UPDATE objects SET attributes = x'ff' WHERE source = 1";
    assert_eq!(rusqlite::Connection::open(&path).unwrap().execute(damage, []).unwrap(), 2);
    let e = catalog.show("/a").unwrap_err();
    assert_eq!((e.kind(), e.hint_text()), (ErrorKind::CorruptFile, Some("register its source anew")));
    let mut changed = small("/a");
    changed.version = "2".into();
    catalog.ingest(&[changed]).unwrap();
    assert_eq!(catalog.find(&ones()).unwrap().len(), 2);
    let rows = rusqlite::Connection::open(&path).unwrap();
    let rows = rows.query_row("SELECT count(*) FROM terms", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(rows, 2, "rows of the damaged source are gone");
}

/// What a user finds who may read a catalog and write nothing near it.
fn read_where_nothing_can_be_written(path: &str) {
    let catalog = Catalog::open(path).unwrap();
    assert!(catalog.is_read_only());
    assert_eq!(catalog.find(&ones()).unwrap().len(), 1);
    assert_eq!(catalog.ingest(&[small("/b")]).unwrap_err().kind(), ErrorKind::PermissionDenied);
    drop(catalog);
    // What a log holds must not be missed.
    let e = opened(&path.replace("a.db", "left.db"));
    assert_eq!(e.kind(), ErrorKind::PermissionDenied);
    assert!(e.message().contains("was not closed"), "{e}");
}

#[test]
fn a_directory_that_may_not_be_written() {
    const PATH: &str = "SIEVA_TEST_CATALOG";
    if let Ok(path) = std::env::var(PATH) {
        return read_where_nothing_can_be_written(&path);
    }
    let dir = Dir::new("unwritable");
    let path = dir.file("a.db");
    Catalog::open(&path).unwrap().ingest(&[small("/a")]).unwrap();
    std::fs::copy(&path, dir.file("left.db")).unwrap();
    std::fs::write(dir.file("left.db-wal"), "what a killed process left").unwrap();
    for file in ["a.db", "left.db", "left.db-wal", "."] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(if file == "." { 0o555 } else { 0o444 });
        std::fs::set_permissions(dir.file(file), mode).unwrap();
    }
    let is_root = std::fs::metadata(&path).is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if is_root {
        // The superuser may write everywhere: nobody asks instead.
        let mut ask = std::process::Command::new("setpriv");
        ask.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(std::env::current_exe().unwrap());
        ask.args(["--exact", "hostile::a_directory_that_may_not_be_written", "--nocapture"]).env(PATH, &path);
        match ask.output() {
            Ok(out) if out.status.code().is_some_and(|code| code == 126 || code == 127) => {
                println!("skipped: nobody may not run this test: {}", String::from_utf8_lossy(&out.stderr));
            }
            Ok(out) => {
                let said = String::from_utf8_lossy(&out.stdout);
                let cause = String::from_utf8_lossy(&out.stderr);
                assert!(out.status.success() && said.contains("1 passed"), "{said}{cause}");
            }
            Err(e) => println!("skipped: setpriv does not run: {e}"),
        }
    } else {
        read_where_nothing_can_be_written(&path);
    }
    std::fs::set_permissions(&dir.0, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}
