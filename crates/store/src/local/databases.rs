//! Database files that this process has open, and that it must not open as anything else: when a descriptor of a file is
//! closed, the system drops all locks that the process has on it (fcntl(2)), whoever took them. Other processes would take
//! the database for one that nobody uses, and remove what is written ahead of it.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What SQLite appends to the name of a database for the files beside it.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// A file: its device, and its number there.
type Id = (u64, u64);

static OPEN: Mutex<Vec<(Id, PathBuf)>> = Mutex::new(Vec::new());
/// How many there are: most processes have none, and ask nothing more.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn open() -> MutexGuard<'static, Vec<(Id, PathBuf)>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn id_of(meta: &Metadata) -> Id {
    (meta.dev(), meta.ino())
}

/// That a database is open. It is to be dropped after the database was closed.
#[derive(Debug)]
pub struct OpenDatabase(Id, PathBuf);

impl OpenDatabase {
    /// Notes that the database at `path` is open, or about to be.
    ///
    /// # Errors
    /// Those of the system: it has to be there.
    pub fn new(path: &Path) -> io::Result<Self> {
        let (id, real) = (id_of(&std::fs::metadata(path)?), std::fs::canonicalize(path)?);
        open().push((id, real.clone()));
        COUNT.fetch_add(1, SeqCst);
        Ok(Self(id, real))
    }
}

impl Drop for OpenDatabase {
    fn drop(&mut self) {
        let mut open = open();
        if let Some(at) = open.iter().position(|(id, real)| (id, real) == (&self.0, &self.1)) {
            open.swap_remove(at);
            COUNT.fetch_sub(1, SeqCst);
        }
    }
}

/// Whether a file is a database that this process has open, or one of the files beside it. Nothing is opened for it.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// use sieva_store::local::{OpenDatabase, is_open_database};
/// let path = std::env::temp_dir().join(format!("sieva-database-{}", std::process::id()));
/// std::fs::write(&path, "data")?;
/// let database = OpenDatabase::new(&path)?;
/// assert!(is_open_database(&path));
/// drop(database);
/// assert!(!is_open_database(&path));
/// # std::fs::remove_file(path)
/// # }
/// ```
pub fn is_open_database(path: &Path) -> bool {
    COUNT.load(SeqCst) > 0 && std::fs::metadata(path).is_ok_and(|meta| is_one(id_of(&meta)))
}

fn is_one(id: Id) -> bool {
    let mut near: Vec<PathBuf> = Vec::new();
    for (other, path) in open().iter() {
        if *other == id {
            return true;
        }
        // Files beside it come and go: they are told by what has their names now.
        if other.0 == id.0 && !near.contains(path) {
            near.push(path.clone());
        }
    }
    let beside = near.iter().flat_map(|path| {
        BESIDE.iter().map(move |end| {
            let mut name = path.clone().into_os_string();
            name.push(end);
            name
        })
    });
    beside.into_iter().any(|name| std::fs::metadata(name).is_ok_and(|meta| id_of(&meta) == id))
}

/// Refuses what [`is_open_database`] tells.
///
/// # Errors
/// `ResourceBusy`.
pub(super) fn refuse(path: &Path) -> io::Result<()> {
    refuse_file(|| std::fs::metadata(path).ok().map(|meta| id_of(&meta)))
}

/// The same of a file that `find` finds, where it is one.
///
/// # Errors
/// `ResourceBusy`.
pub(super) fn refuse_file(find: impl FnOnce() -> Option<Id>) -> io::Result<()> {
    if COUNT.load(SeqCst) > 0 && find().is_some_and(is_one) {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, REFUSED));
    }
    Ok(())
}

const REFUSED: &str = "a catalog that is open, or a file of it: read as data, it would lose its locks";

#[cfg(test)]
mod tests {
    use super::super::{Dir, open_regular};
    use super::*;

    #[test]
    fn an_open_database_and_what_is_beside_it_are_refused_under_every_name() {
        let dir = std::env::temp_dir().join(format!("sieva-databases-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = |name: &str| dir.join(name);
        for name in ["a.db", "a.db-wal", "b.db", "b.db-wal"] {
            std::fs::write(path(name), "SQLite format 3").unwrap();
        }
        std::fs::hard_link(path("a.db"), path("hard")).unwrap();
        std::os::unix::fs::symlink(path("a.db"), path("soft")).unwrap();
        let refused = |name: &str| {
            let by_path = open_regular(&path(name)).err().map(|e| e.kind());
            let of_dir = Dir::open(&dir).unwrap();
            let inside = of_dir.open_inside(Path::new(name)).err().map(|e| e.kind());
            // A link that leads out by its whole path is refused before.
            assert!(name == "soft" || inside == by_path, "{name}: {inside:?}, {by_path:?}");
            let regular = of_dir.open_regular(Path::new(name)).err().map(|e| e.kind());
            assert!(name == "soft" || regular == by_path);
            by_path == Some(io::ErrorKind::ResourceBusy)
        };
        let names = ["a.db", "a.db-wal", "hard", "soft", "b.db", "b.db-wal"];
        assert_eq!(names.map(refused), [false; 6]);
        let (first, second) =
            (OpenDatabase::new(&path("a.db")).unwrap(), OpenDatabase::new(&path("soft")).unwrap());
        drop(first);
        assert_eq!(names.map(refused), [true, true, true, true, false, false]);
        // A log that was made anew is another file.
        std::fs::remove_file(path("a.db-wal")).unwrap();
        std::fs::write(path("a.db-wal"), "new").unwrap();
        assert!(is_open_database(&path("a.db-wal")) && !is_open_database(&path("missing")));
        drop(second);
        assert_eq!(names.map(refused), [false; 6]);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
