//! Tests of what both databases are asked.

use super::schema::migrate;
use super::*;

fn place(name: &str) -> (std::path::PathBuf, sqlite::Place) {
    let dir = std::env::temp_dir().join(format!("sieva-backend-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("a.db").display().to_string();
    (dir, sqlite::Place::new(&path))
}

#[test]
fn a_full_disk_is_told_and_changes_nothing() {
    let (dir, place) = place("full");
    let (mut session, _) = place.open(false).unwrap();
    let pages = first(session.as_mut(), "PRAGMA page_count", &[], |row| row.int(0)).unwrap().unwrap();
    session.script(&format!("PRAGMA max_page_count = {}", pages + 3)).unwrap();
    session.begin(true).unwrap();
    let mut rows = (0..10_000i64).map(|i| vec![i.into(), Cell::Null, Cell::Blob(vec![0; 100])]);
    let e = session.insert(&tables::STATS, &mut rows).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io);
    assert!(e.message().contains("the disk is full; nothing was changed"), "{e}");
    session.end(false).unwrap();
    session.begin(false).unwrap();
    let left = first(session.as_mut(), "SELECT count(*) FROM stats", &[], |row| row.int(0)).unwrap();
    session.end(false).unwrap();
    assert_eq!(left, Some(0));
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn an_older_catalog_is_brought_forward_once() {
    let (dir, place) = place("forward");
    let (mut session, _) = place.open(false).unwrap();
    for column in ["store", "data_bytes", "fingerprint", "state"] {
        session.script(&format!("ALTER TABLE augmentations DROP COLUMN {column}")).unwrap();
    }
    let older =
        "ALTER TABLE usage DROP COLUMN asked_by; UPDATE meta SET value = 1 WHERE name = 'catalog_version'";
    session.script(older).unwrap();
    drop(session);
    let (mut session, _) = place.open(false).unwrap();
    session.script("SELECT asked_by FROM usage; SELECT state FROM augmentations").unwrap();
    let [first, second, third] = super::schema::MIGRATIONS;
    let steps = [first, second, third, "CREATE TABLE more (id {id}, x {real})"];
    for _ in 0..2 {
        session.begin(true).unwrap();
        migrate(session.as_mut(), "a.db", &steps).unwrap();
        session.end(true).unwrap();
    }
    assert!(session.table_names().unwrap().iter().any(|t| t == "more"));
    drop(session);
    let e = place.open(false).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::Unsupported);
    assert!(e.message().contains("of version 4, newer than 3"), "{e}");
    std::fs::remove_dir_all(dir).unwrap();
}

/// A statement that never ends, and a wait for a lock: both end soon after the flag is set.
#[test]
fn what_runs_ends_when_it_is_cancelled() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use crate::until::until;

    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)";
    let path = std::env::temp_dir().join(format!("sieva-cancel-{}.db", std::process::id()));
    let url = path.display().to_string();
    let (pool, other) = (Pool::open(&url, false).unwrap(), Pool::open(&url, false).unwrap());
    let cancelled = |work: &mut dyn FnMut() -> Result<()>| {
        let flag = Arc::new(AtomicBool::new(false));
        let started = Instant::now();
        let e = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(100));
                flag.store(true, Ordering::Relaxed);
            });
            until(&flag, work).unwrap_err()
        });
        assert_eq!(e.kind(), ErrorKind::Cancelled, "{e}");
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    };
    let ask = |sql: &str| pool.read(|s| collect(s, sql, &[], |row| row.int(0)).map(drop));
    cancelled(&mut || ask(&format!("{endless} SELECT count(*) FROM c")));
    cancelled(&mut || pool.read(|s| s.each(&format!("{endless} SELECT x FROM c"), &[], &mut |_| Ok(true))));
    other
        .write(|_| {
            cancelled(&mut || pool.write(|_| Ok(())));
            Ok(())
        })
        .unwrap();
    // The sessions are of use again.
    ask("SELECT 1").unwrap();
    pool.write(|_| Ok(())).unwrap();
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{url}{end}"));
    }
}
