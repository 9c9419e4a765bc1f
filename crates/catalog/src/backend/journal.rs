//! How an SQLite file is changed so that a killed process leaves it whole: ahead of it (WAL), or with a rollback journal.
//!
//! A log ahead of the file is found by memory that processes share, which those of different machines do not
//! (sqlite.org/wal.html: "WAL does not work over a network filesystem"). A rollback journal needs locks of the file alone.

use std::time::Instant;

use rusqlite::Connection;
use sieva_types::{Error, ErrorKind, Result};

use super::sqlite::{NAP, PATIENCE, SqliteSession};

impl SqliteSession {
    /// Gives a catalog its journal, before anything else is asked of the connection. One on a network file system that is
    /// written ahead is brought to a rollback journal. One that has such a journal keeps it wherever it is: what is a
    /// local directory here may be one on the network for others.
    pub(super) fn settle_journal(&mut self, on_network: bool) -> Result<()> {
        // Two that make or change the same file at once meet here, and SQLite does not wait at this place.
        let start = Instant::now();
        loop {
            let settled = settle(&self.connection, on_network).map_err(self.failed());
            match settled {
                Err(e) if e.message().contains("locked") && start.elapsed() < PATIENCE => {
                    std::thread::sleep(NAP)
                }
                Err(e) => return Err(e),
                Ok(mode) if on_network && mode == "wal" => {
                    let message =
                        "the catalog is on a network file system and cannot be written ahead (WAL) there";
                    return Err(Error::new(ErrorKind::Io, message)
                        .hint("close it in all processes, then open it once where it may be written"));
                }
                Ok(_) => return Ok(()),
            }
        }
    }
}

/// The mode that is set.
fn settle(connection: &Connection, on_network: bool) -> rusqlite::Result<String> {
    let mode = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, String>(0));
    if on_network {
        // A connection that has the file for itself needs no shared memory to find what was written ahead.
        mode("PRAGMA locking_mode = EXCLUSIVE")?;
        let set = mode("PRAGMA journal_mode = DELETE");
        mode("PRAGMA locking_mode = NORMAL")?;
        // The lock is given back after the next statement that reads.
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
        connection.execute_batch("PRAGMA synchronous = FULL")?;
        return set;
    }
    let pages: i64 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    let found = mode("PRAGMA journal_mode")?;
    if pages > 0 && found != "wal" {
        return Ok(found);
    }
    // A log tells what is whole by itself; it is written to the disk when it is taken over into the file.
    connection.execute_batch("PRAGMA synchronous = NORMAL")?;
    mode("PRAGMA journal_mode = WAL")
}
