//! Objects as files of a directory.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sieva_types::{Error, ErrorKind, Result};

use super::{Body, Link, Objects, check_key};
use crate::Entry;
use crate::file::version;
use crate::local::{self, Aside, Dir};
use crate::location::encoded;

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;
/// A file that is written for longer than this is taken for one whose writer was killed.
const ABANDONED: Duration = Duration::from_secs(3600);
/// The most directories within one another that are listed.
const MOST_LEVELS: usize = 16;
/// What is done with a file: its key, its directory and its name there.
type Each<'a> = dyn FnMut(String, &Dir, &Path, &fs::Metadata) -> Result<()> + 'a;

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

    /// The directory that an object is in, reached from the root without following a link, and the object's name there.
    fn folder<'k>(&self, key: &'k str) -> io::Result<(Dir, &'k Path)> {
        let root = Dir::open(&self.root)?;
        match key.rsplit_once('/') {
            Some((folder, name)) => Ok((root.open_dir(Path::new(folder))?, Path::new(name))),
            None => Ok((root, Path::new(key))),
        }
    }

    /// The same, made where it is not there.
    fn made_folder<'k>(&self, key: &'k str) -> io::Result<(Dir, &'k Path)> {
        fs::create_dir_all(&self.root)?;
        let mut dir = Dir::open(&self.root)?;
        let mut rest = key;
        while let Some((part, below)) = rest.split_once('/') {
            dir.make_shared_dir(Path::new(part))?;
            dir = dir.open_dir(Path::new(part))?;
            rest = below;
        }
        Ok((dir, Path::new(rest)))
    }

    fn open(&self, key: &str) -> Result<Option<File>> {
        let path = self.path(key)?;
        match self.folder(key).and_then(|(dir, name)| dir.open_regular(name)) {
            Ok(file) => Ok(Some(file)),
            Err(e) if is_absent(&e) => Ok(None),
            Err(e) => Err(local::error("opening", &path, &e)),
        }
    }

    /// A new file for an object, with its directories.
    fn aside(&self, key: &str, path: &Path) -> Result<Aside> {
        for _ in 0..10 {
            let made = self.made_folder(key).and_then(|(dir, name)| Aside::within(dir, name, MODE));
            match made {
                // Somebody deleted the last object of a directory meanwhile, and that with it.
                Err(e) if is_absent(&e) => {}
                made => return local::told("writing", path, made),
            }
        }
        let gone = io::Error::new(io::ErrorKind::NotFound, "its directory is deleted again and again");
        Err(local::error("writing", path, &gone))
    }
}

impl Objects for DirObjects {
    fn put(&self, key: &str, body: &dyn Body) -> Result<()> {
        self.put_version(key, body).map(drop)
    }

    fn put_version(&self, key: &str, body: &dyn Body) -> Result<Option<String>> {
        let path = self.path(key)?;
        let mut aside = self.aside(key, &path)?;
        copy(body, &mut aside, &path)?;
        let meta = local::told("writing", &path, aside.file().and_then(|file| file.metadata()))?;
        local::told("writing", &path, aside.publish(true))?;
        Ok(Some(version(&meta)).filter(|version| !version.is_empty()))
    }

    fn create(&self, key: &str, bytes: &[u8]) -> Result<bool> {
        let path = self.path(key)?;
        let mut aside = self.aside(key, &path)?;
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
        match self.folder(key).and_then(|(dir, name)| dir.remove_file(name)) {
            Err(e) if !is_absent(&e) => return Err(local::error("deleting", &path, &e)),
            _ => {}
        }
        // Directories that are empty now; one that somebody puts a file into meanwhile stays.
        let mut key = key;
        while let Some((folder, _)) = key.rsplit_once('/') {
            if self.folder(folder).and_then(|(dir, name)| dir.remove_dir(name)).is_err() {
                break;
            }
            key = folder;
        }
        Ok(())
    }

    fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        let mut found = Vec::new();
        self.walk(prefix, &mut |key, _, _, meta| {
            if check_key(&key, "").is_ok() && key.starts_with(prefix) {
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
        self.walk(prefix, &mut |_, dir, name, meta| {
            let text = name.to_string_lossy();
            let part = text.starts_with('.') && text.ends_with(".part");
            let old = meta.modified().ok().and_then(|at| now.duration_since(at).ok());
            if part && old.is_some_and(|age| age > ABANDONED) {
                match dir.remove_file(name) {
                    Err(e) if !is_absent(&e) => {
                        return Err(local::error("deleting", &dir.path().join(name), &e));
                    }
                    _ => {}
                }
            }
            Ok(())
        })
    }

    fn link(&self, key: &str, _expires: Duration) -> Result<Link> {
        let path = self.path(key)?;
        let path = local::told("looking for", &path, std::path::absolute(&path))?;
        let text = path.to_str().ok_or_else(|| {
            let message = format!("'{}' is no text, and no address can be made of it", path.display());
            Error::new(ErrorKind::Unsupported, message)
        })?;
        Ok(Link { url: format!("file://{}", encoded(text, '/')), expires: false })
    }

    fn location(&self, key: &str) -> String {
        self.root.join(key).to_string_lossy().into_owned()
    }

    fn name(&self) -> String {
        self.root.display().to_string()
    }
}

impl DirObjects {
    /// Calls `each` for all regular files below the directory that `prefix` is in; no link is followed.
    fn walk(&self, prefix: &str, each: &mut Each<'_>) -> Result<()> {
        let below = prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let root = Dir::open(&self.root);
        let first = match below {
            "" => root,
            below => {
                check_key(below, &self.root.to_string_lossy())?;
                root.and_then(|root| root.open_dir(Path::new(below)))
            }
        };
        let first = match first {
            Err(e) if is_absent(&e) => return Ok(()),
            first => local::told("listing", &self.root.join(below), first)?,
        };
        let mut open = vec![(first, below.to_owned(), 0)];
        while let Some((dir, key, level)) = open.pop() {
            let shown = dir.path().to_path_buf();
            for entry in local::told("listing", &shown, fs::read_dir(dir.through()))? {
                let entry = local::told("listing", &shown, entry)?;
                let name = entry.file_name();
                let shown_name = name.to_string_lossy();
                let key =
                    if key.is_empty() { shown_name.into_owned() } else { format!("{key}/{shown_name}") };
                // Of the entry itself, not of what it leads to.
                let Ok(meta) = entry.metadata() else { continue };
                if meta.is_dir() && level < MOST_LEVELS {
                    match dir.open_dir(Path::new(&name)) {
                        Ok(inner) => open.push((inner, key, level + 1)),
                        // Removed, or replaced by a link, since.
                        Err(e) if is_absent(&e) || local::is_link(&e) => {}
                        Err(e) => return Err(local::error("listing", &shown.join(&name), &e)),
                    }
                } else if meta.is_file() {
                    each(key, &dir, Path::new(&name), &meta)?;
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
    use crate::RangedRead;

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
        let version = objects.put_version("a/b", &b"three".to_vec()).unwrap();
        assert_eq!(version.unwrap(), crate::FileStore::open(&root.join("a/b")).unwrap().version());
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
        // A directory that somebody made a link of: nothing is put, listed or deleted behind it.
        let outside = scratch("outside");
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("theirs"), b"x").unwrap();
        fs::write(outside.join(".theirs.1.part"), b"x").unwrap();
        let past = std::time::SystemTime::now() - 2 * ABANDONED;
        File::options().write(true).open(outside.join(".theirs.1.part")).unwrap().set_modified(past).unwrap();
        std::os::unix::fs::symlink(&outside, root.join("link")).unwrap();
        assert!(objects.put("link/new", &b"x".to_vec()).is_err());
        assert!(objects.create("link/new", b"x").is_err());
        assert!(objects.get("link/theirs", 10).map_or(true, |found| found.is_none()));
        let _ = objects.delete("link/theirs");
        objects.tidy("").unwrap();
        assert!(objects.list("link/").map_or(true, |found| found.is_empty()));
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 2);
        fs::remove_dir_all(outside).unwrap();
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_link_is_an_address_of_the_path() {
        let root = scratch("a link");
        let objects = DirObjects::new(&root);
        objects.put("a/b.nc", &b"one".to_vec()).unwrap();
        let link = objects.link("a/b.nc", Duration::from_secs(1)).unwrap();
        assert!(link.url.starts_with("file:///") && link.url.ends_with("/a/b.nc"), "{}", link.url);
        assert!(link.url.contains("sieva-objects-a%20link-") && !link.expires);
        let mut read = [0; 3];
        crate::open(&link.url, &crate::RemoteOptions::default())
            .unwrap()
            .read_exact_at(0, &mut read)
            .unwrap();
        assert_eq!(&read, b"one");
        assert_eq!(objects.link("../a", Duration::ZERO).unwrap_err().kind(), ErrorKind::LinkRefused);
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
