//! Many objects under one root, by key: a directory, a bucket's prefix, a web server's folder.

use std::io::Read;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use sieva_types::{Error, ErrorKind, Result};

use crate::{Counters, FileStore, RangedRead};

/// Which bytes of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// All.
    All,
    /// Those from `start` to before `end`.
    Range(Range<u64>),
    /// The last so many; all of an object that has fewer.
    Last(u64),
}

/// Bytes of an object that are about to be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The object.
    pub key: String,
    /// Its bytes.
    pub span: Span,
}

/// One object of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key, relative to the tree's root: `a/b/c`.
    pub key: String,
    /// Its length in bytes.
    pub size: u64,
    /// What changes when the object does; empty where nothing is known.
    pub version: String,
}

/// Objects under a root, readable from many threads at once. Keys are relative, with `/` between parts.
pub trait ObjectTree: Send + Sync {
    /// Puts bytes of an object into `out`, which is cleared first; false where there is no such object.
    ///
    /// # Errors
    /// `io-error` where the system or the network fails, `permission-denied`, `link-refused` for a key that leads out
    /// of the root, `corrupt-file` for a range past the end.
    fn get(&self, key: &str, span: &Span, out: &mut Vec<u8>) -> Result<bool>;

    /// All objects whose keys begin with `prefix`, in order of their keys; `None` where they cannot be listed (a plain
    /// web server).
    ///
    /// # Errors
    /// As [`ObjectTree::get`].
    fn list(&self, prefix: &str) -> Result<Option<Vec<Entry>>>;

    /// Opens one object; `None` where there is none.
    ///
    /// # Errors
    /// As [`ObjectTree::get`].
    fn open(&self, key: &str) -> Result<Option<Box<dyn RangedRead>>>;

    /// Says that these bytes are about to be asked for; see [`RangedRead::will_need`].
    fn will_need(&self, wants: &[Want]) {
        let _ = wants;
    }

    /// Whether a network lies between.
    fn is_remote(&self) -> bool {
        false
    }

    /// The local directory that it is, where it is one.
    fn local_path(&self) -> Option<&Path> {
        None
    }

    /// How messages name the root.
    fn name(&self) -> &str;

    /// Counters of the tree's traffic.
    fn counters(&self) -> &Counters;
}

/// A local directory.
#[derive(Debug)]
pub struct DirTree {
    root: PathBuf,
    name: String,
    counters: Counters,
}

impl DirTree {
    /// The tree of the directory `root`.
    ///
    /// # Errors
    /// `file-not-found`, `permission-denied`; `unknown-format` where it is no directory.
    pub fn open(root: &Path) -> Result<Self> {
        let name = root.display().to_string();
        let meta = std::fs::metadata(root).map_err(|e| Error::io(format!("cannot open '{name}'"), &e))?;
        if !meta.is_dir() {
            return Err(Error::new(ErrorKind::UnknownFormat, format!("'{name}' is not a directory")));
        }
        Ok(Self { root: root.to_path_buf(), name, counters: Counters::default() })
    }

    /// The path of a key, which may not lead out of the root.
    fn path(&self, key: &str) -> Result<PathBuf> {
        let inside = Path::new(key).components().all(|c| matches!(c, Component::Normal(_)));
        if !inside || key.contains('\0') {
            let message = format!("key '{key}' leads out of '{}'", self.name);
            return Err(Error::new(ErrorKind::LinkRefused, message));
        }
        Ok(self.root.join(key))
    }

    fn walk(&self, prefix: &str, dir: &str, found: &mut Vec<Entry>) -> Result<()> {
        let path = if dir.is_empty() { self.root.clone() } else { self.path(dir)? };
        let context = |e: &std::io::Error| Error::io(format!("cannot list '{}'", path.display()), e);
        let entries = match std::fs::read_dir(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(|e| context(&e))?,
        };
        for entry in entries {
            let entry = entry.map_err(|e| context(&e))?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let key = if dir.is_empty() { name } else { format!("{dir}/{name}") };
            let near = key.starts_with(prefix) || prefix.starts_with(&format!("{key}/"));
            // Of the entry itself: a link to a directory could lead out, or around.
            let kind = entry.file_type().map_err(|e| context(&e))?;
            if kind.is_dir() && near {
                self.walk(prefix, &key, found)?;
            } else if kind.is_file() && key.starts_with(prefix) {
                let meta = entry.metadata().map_err(|e| context(&e))?;
                found.push(Entry { key, size: meta.len(), version: version(&meta) });
            }
        }
        Ok(())
    }
}

fn version(meta: &std::fs::Metadata) -> String {
    let since = meta.modified().ok().and_then(|t| t.duration_since(std::time::SystemTime::UNIX_EPOCH).ok());
    since.map_or_else(String::new, |t| format!("{} ns", t.as_nanos()))
}

impl ObjectTree for DirTree {
    fn get(&self, key: &str, span: &Span, out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        if *span == Span::All {
            let path = self.path(key)?;
            let context = |e: &std::io::Error| Error::io(format!("cannot read '{}'", path.display()), e);
            let mut file = match std::fs::File::open(&path) {
                Err(e) if is_absent(&e) => return Ok(false),
                file => file.map_err(|e| context(&e))?,
            };
            file.read_to_end(out).map_err(|e| context(&e))?;
            self.counters.add_request(out.len() as u64);
            return Ok(true);
        }
        let Some(object) = self.open(key)? else { return Ok(false) };
        let range = match span {
            Span::All => 0..object.len(),
            Span::Range(range) => range.clone(),
            Span::Last(n) => object.len().saturating_sub(*n)..object.len(),
        };
        if range.start > range.end || range.end > object.len() {
            let len = object.len();
            return Err(Error::corrupt(format!("'{}' is cut off: {range:?} of {len} bytes", object.name())));
        }
        out.resize((range.end - range.start) as usize, 0);
        object.read_exact_at(range.start, out)?;
        self.counters.add_request(out.len() as u64);
        Ok(true)
    }

    fn list(&self, prefix: &str) -> Result<Option<Vec<Entry>>> {
        let mut found = Vec::new();
        self.walk(prefix, "", &mut found)?;
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(Some(found))
    }

    fn open(&self, key: &str) -> Result<Option<Box<dyn RangedRead>>> {
        let path = self.path(key)?;
        match std::fs::metadata(&path) {
            Err(e) if is_absent(&e) => Ok(None),
            Ok(meta) if meta.is_dir() => Ok(None),
            _ => Ok(Some(Box::new(FileStore::open(&path)?))),
        }
    }

    fn local_path(&self) -> Option<&Path> {
        Some(&self.root)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }
}

/// Whether there is nothing: neither the object nor, maybe, the directories that its key names.
fn is_absent(e: &std::io::Error) -> bool {
    matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str) -> (PathBuf, DirTree) {
        let root = std::env::temp_dir().join(format!("sieva-tree-{name}-{}", std::process::id()));
        std::fs::create_dir_all(root.join("a/c")).unwrap();
        std::fs::write(root.join("a/c/0.0"), b"0123456789").unwrap();
        std::fs::write(root.join("a/.zarray"), b"{}").unwrap();
        std::fs::write(root.join("ab"), b"x").unwrap();
        let tree = DirTree::open(&root).unwrap();
        (root, tree)
    }

    #[test]
    fn spans_of_objects_and_objects_that_are_not_there() {
        let (root, tree) = tree("spans");
        let mut out = vec![9];
        let mut get =
            |key: &str, span: Span| tree.get(key, &span, &mut out).map(|there| (there, out.clone()));
        assert_eq!(get("a/c/0.0", Span::Range(2..5)).unwrap(), (true, b"234".to_vec()));
        assert_eq!(get("a/c/0.0", Span::Last(3)).unwrap(), (true, b"789".to_vec()));
        assert_eq!(get("a/c/0.0", Span::Last(30)).unwrap(), (true, b"0123456789".to_vec()));
        assert_eq!(get("ab", Span::All).unwrap(), (true, b"x".to_vec()));
        for absent in ["a/c/0.1", "ab/c", "nothing/at/all"] {
            assert!(!get(absent, Span::All).unwrap().0 && !get(absent, Span::Last(1)).unwrap().0, "{absent}");
        }
        assert_eq!(get("ab", Span::Range(0..2)).unwrap_err().kind(), ErrorKind::CorruptFile);
        for out_of_root in ["../x", "/etc/passwd", "a/../../x"] {
            assert_eq!(get(out_of_root, Span::All).unwrap_err().kind(), ErrorKind::LinkRefused);
        }
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_listing_is_in_order_and_of_a_prefix() {
        let (root, tree) = tree("list");
        let keys = |prefix: &str| -> Vec<(String, u64)> {
            tree.list(prefix).unwrap().unwrap().into_iter().map(|e| (e.key, e.size)).collect()
        };
        assert_eq!(keys(""), [("a/.zarray".into(), 2), ("a/c/0.0".into(), 10), ("ab".into(), 1)]);
        assert_eq!(keys("a/c/"), [("a/c/0.0".into(), 10)]);
        assert_eq!(keys("b"), []);
        std::fs::remove_dir_all(root).unwrap();
    }
}
