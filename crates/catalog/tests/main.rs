//! The catalog's public behaviour, the same on SQLite and PostgreSQL.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "suite/behaviour.rs"]
mod behaviour;
#[path = "suite/hostile.rs"]
mod hostile;
#[path = "suite/oracle.rs"]
mod oracle;
#[cfg(feature = "postgres")]
#[path = "suite/pg.rs"]
mod pg;

use std::path::PathBuf;

/// A directory that goes when it is dropped.
pub struct Dir(pub PathBuf);

impl Dir {
    /// A new one.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sieva-catalog-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn sqlite_behaves() {
    let dir = Dir::new("behaves");
    behaviour::all(&mut |name| dir.file(name));
}

#[test]
fn sqlite_finds_what_the_oracle_finds() {
    let dir = Dir::new("oracle");
    oracle::all(&dir.file("a.db"), 400);
}

#[test]
fn a_catalog_in_memory_finds_what_the_oracle_finds() {
    oracle::all("sqlite::memory:", 50);
}

#[cfg(feature = "postgres")]
#[test]
fn postgres_behaves_and_finds_what_the_oracle_finds() {
    match pg::Server::start("suite") {
        Err(reason) => println!("skipped: {reason}"),
        Ok(server) => {
            behaviour::all(&mut |name| server.database(name));
            oracle::all(&server.database("oracle"), 60);
            hostile::injection(&server.database("injection"));
        }
    }
}
