//! Objects as files of a directory.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sieva_types::{Error, ErrorKind, Result};

use super::{Body, Objects, check_key};
use crate::Entry;
use crate::local::{self, Aside, Dir};

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;
/// A file that is written for longer than this is taken for one whose writer was killed.
const ABANDONED: Duration = Duration::from_secs(3600);
/// The most directories within one another that are listed.
const MOST_LEVELS: usize = 16;
/// Permissions of files, less what the process' umask takes: who may read is the matter of the directory.
const MODE: u32 = 0o666;

/// The files of a directory. They are put under their names when they are complete and on the disk; nothing is followed out of
/// the directory.
#[derive(Debug)]
pub struct DirObjects {
    root: PathBuf,
}

impl DirObjects {
    /// The objects under a directory, which is made with the first of them.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    fn path(&self, key: &str) -> Result<PathBuf> {
        check_key(key, &self.root.to_string_lossy())?;
        Ok(self.root.join(key))
    }

    fn open(&self, key: &str) -> Result<Option<File>> {
        let path = self.path(key)?;
        match Dir::open(&self.root).and_then(|dir| dir.open_regular(Path::new(key))) {
            Ok(file) => Ok(Some(file)),
            Err(e) if is_absent(&e) => Ok(None),
            Err(e) => Err(local::error("opening", &path, &e)),
        }
    }

    /// A new file for an object, with its directories.
    fn aside(&self, path: &Path) -> Result<Aside> {
        let made = path.parent().map_or(Ok(()), fs::create_dir_all);
        local::told("writing", path, made.and_then(|()| Aside::new(path, MODE)))
    }
}

impl Objects for DirObjects {
    fn put(&self, key: &str, body: &dyn Body) -> Result<()> {
        let path = self.path(key)?;
        let mut aside = self.aside(&path)?;
        copy(body, &mut aside, &path)?;
        local::told("writing", &path, aside.publish(true))
    }

    fn create(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        let path = self.path(key)?;
        let mut aside = self.aside(&path)?;
        copy(bytes, &mut aside, &path)?;
        local::told("writing", &path, aside.publish_new(true))
    }

    fn get(&self, key: &str, most: u64) -> Result<Option<Vec<u8>>> {
        let Some(file) = self.open(key)? else { return Ok(None) };
        let path = self.root.join(key);
        local::read_file(&file, most).map(Some).map_err(|e| match local::error("reading", &path, &e) {
            e if e.kind() == ErrorKind::MemoryLimit => {
                Error::corrupt(format!("'{}' has more than {most} bytes", path.display()))
            }
            e => e,
        })
    }

    fn get_range(&self, key: &str, offset: u64, out: &mut [u8]) -> Result<bool> {
        let Some(file) = self.open(key)? else { return Ok(false) };
        match file.read_exact_at(out, offset) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                let end = offset + out.len() as u64;
                let message = format!("'{}' ends before byte {end}", self.root.join(key).display());
                Err(Error::new(ErrorKind::CorruptFile, message))
            }
            Err(e) => Err(local::error("reading", &self.root.join(key), &e)),
        }
    }

    fn delete(&self, key: &str) -> Result<()> {
        let path = self.path(key)?;
        match fs::remove_file(&path) {
            Err(e) if !is_absent(&e) => return Err(local::error("deleting", &path, &e)),
            _ => {}
        }
        // Directories that are empty now; one that somebody puts a file into meanwhile stays.
        let mut folder = path.parent();
        while let Some(empty) = folder.filter(|f| *f != self.root && f.starts_with(&self.root)) {
            if fs::remove_dir(empty).is_err() {
                break;
            }
            folder = empty.parent();
        }
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        self.walk(prefix, &mut |key, path, meta| {
            if check_key(&key, "").is_ok() && key.starts_with(prefix) {
                let _ = path;
                found.push(Entry { key, size: meta.len(), version: String::new() });
            }
            Ok(())
        })?;
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    fn tidy(&self, prefix: &str) -> Result<()> {
        // By the clock of the file system: that of another machine may have written the file.
        let Ok(now) = self.now() else { return Ok(()) };
        self.walk(prefix, &mut |key, path, meta| {
            let name = key.rsplit('/').next().unwrap_or_default();
            let part = name.starts_with('.') && name.ends_with(".part");
            let old = meta.modified().ok().and_then(|at| now.duration_since(at).ok());
            if part && old.is_some_and(|age| age > ABANDONED) {
                match fs::remove_file(path) {
                    Err(e) if !is_absent(&e) => return Err(local::error("deleting", path, &e)),
                    _ => {}
                }
            }
            Ok(())
        })
    }

    fn location(&self, key: &str) -> String {
        self.root.join(key).to_string_lossy().into_owned()
    }

    fn name(&self) -> String {
        self.root.display().to_string()
    }
}

impl DirObjects {
    /// Calls `each` for all regular files below the directory that `prefix` is in.
    fn walk(
        &self,
        prefix: &str,
        each: &mut dyn FnMut(String, &Path, &fs::Metadata) -> Result<()>,
    ) -> Result<()> {
        let below = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        if !below.is_empty() {
            check_key(below, &self.root.to_string_lossy())?;
        }
        let mut open = vec![(self.root.join(below), below.to_owned(), 0)];
        while let Some((folder, key, level)) = open.pop() {
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(e) if is_absent(&e) => continue,
                Err(e) => return Err(local::error("listing", &folder, &e)),
            };
            for entry in entries {
                let entry = local::told("listing", &folder, entry)?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let key = if key.is_empty() { name } else { format!("{key}/{name}") };
                // Not followed: what a link leads to is no object of this root.
                let Ok(meta) = entry.metadata() else { continue };
                if meta.is_dir() && level < MOST_LEVELS {
                    open.push((entry.path(), key, level + 1));
                } else if meta.is_file() {
                    each(key, &entry.path(), &meta)?;
                }
            }
        }
        Ok(())
    }

    /// The time by the clock of the file system.
    fn now(&self) -> io::Result<std::time::SystemTime> {
        Aside::new(&self.root.join("now"), MODE)?.file()?.metadata()?.modified()
    }
}

fn copy(body: &(impl Body + ?Sized), aside: &mut Aside, path: &Path) -> Result<()> {
    let size = body.size();
    let mut piece = vec![0; PIECE.min(usize::try_from(size).unwrap_or(PIECE))];
    let mut at = 0;
    while at < size {
        let n = usize::try_from(size - at).map_or(piece.len(), |left| left.min(piece.len()));
        body.read_exact_at(at, &mut piece[..n])?;
        let written = aside.file().and_then(|file| file.write_all(&piece[..n]));
        local::told("writing", path, written)?;
        at += n as u64;
    }
    Ok(())
}

fn is_absent(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("sieva-objects-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    #[test]
    fn objects_are_put_read_listed_and_deleted() {
        let root = scratch("all");
        let objects = DirObjects::new(&root);
        assert_eq!(objects.list("").unwrap(), []);
        assert_eq!(objects.get("a/b", 10).unwrap(), None);
        objects.put("a/b", &b"one".to_vec()).unwrap();
        objects.put("a/b", &b"three".to_vec()).unwrap();
        assert!(objects.create("a/c", b"new").unwrap());
        assert!(!objects.create("a/c", b"other").unwrap());
        assert_eq!(objects.get("a/c", 3).unwrap().unwrap(), b"new");
        assert_eq!(objects.get("a/c", 2).unwrap_err().kind(), ErrorKind::CorruptFile);
        let mut two = [0; 2];
        assert!(objects.get_range("a/b", 3, &mut two).unwrap());
        assert_eq!(&two, b"ee");
        assert_eq!(objects.get_range("a/b", 4, &mut two).unwrap_err().kind(), ErrorKind::CorruptFile);
        assert!(!objects.get_range("a/x", 0, &mut two).unwrap());
        let keys = |prefix: &str| -> Vec<String> {
            objects.list(prefix).unwrap().into_iter().map(|e| e.key).collect()
        };
        assert_eq!(keys(""), ["a/b", "a/c"]);
        assert_eq!(keys("a/c"), ["a/c"]);
        objects.delete("a/b").unwrap();
        objects.delete("a/b").unwrap();
        objects.delete("a/c").unwrap();
        assert!(root.exists() && !root.join("a").exists());
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn keys_stay_below_the_root_and_links_are_not_followed() {
        let root = scratch("links");
        let objects = DirObjects::new(&root);
        for key in ["", "..", "../a", "/a", "a//b", "a/./b", ".a", "a\0", "a b", "a/-b"] {
            let e = objects.put(key, &b"x".to_vec()).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::LinkRefused, "{key:?}");
        }
        objects.put("a", &b"x".to_vec()).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("b")).unwrap();
        assert!(objects.get("b", 10).is_err());
        assert_eq!(objects.list("").unwrap().len(), 1);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_a_killed_writer_left_is_removed_when_it_is_old() {
        let root = scratch("tidy");
        let objects = DirObjects::new(&root);
        objects.put("a/b", &b"x".to_vec()).unwrap();
        let (old, young) = (root.join("a/.b.1.part"), root.join("a/.b.2.part"));
        for path in [&old, &young] {
            fs::write(path, b"half").unwrap();
        }
        let past = std::time::SystemTime::now() - 2 * ABANDONED;
        File::options().write(true).open(&old).unwrap().set_modified(past).unwrap();
        assert_eq!(objects.list("").unwrap().len(), 1);
        objects.tidy("a/").unwrap();
        assert!(!old.exists() && young.exists() && root.join("a/b").exists());
        fs::remove_dir_all(root).unwrap();
    }
}
