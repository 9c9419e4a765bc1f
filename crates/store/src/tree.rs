//! Many objects under one root, by key: a directory, a bucket's prefix, a web server's folder.

use std::fs::File;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use sieva_types::{Error, ErrorKind, Result};

use crate::guard::{AllowList, Gate, Purpose};
use crate::local::Dir;
use crate::{Counters, FileStore, RangedRead, local};

/// The longest object that is read whole where nobody says how long it may be.
const MOST_WHOLE: u64 = 1 << 30;

/// The most directories within one another: groups and, for each dimension, one level of chunks.
const MOST_LEVELS: usize = 256;

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

    /// Fails where an object that is open was changed or replaced since; see [`RangedRead::check_unchanged`].
    ///
    /// # Errors
    /// `stale-source`.
    fn check_unchanged(&self) -> Result<()> {
        Ok(())
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
    /// Objects are opened from it.
    dir: Dir,
    /// Asked for each object: a link may lead anywhere.
    gate: Gate,
    /// Asked for those whose links lead out of the directory.
    links: Gate,
    counters: Counters,
}

impl DirTree {
    /// The tree of the directory `root`.
    ///
    /// # Errors
    /// `file-not-found`, `permission-denied`; `unknown-format` where it is no directory.
    pub fn open(root: &Path) -> Result<Self> {
        Self::open_within(root, &Gate::default(), Purpose::Source)
    }

    /// The tree of the directory `root`, if `gate` lets it; each of its objects is asked for, too.
    ///
    /// # Errors
    /// As [`DirTree::open`]; the gate's refusal.
    pub fn open_within(root: &Path, gate: &Gate, purpose: Purpose) -> Result<Self> {
        let name = root.display().to_string();
        gate.look(root, purpose)?;
        let meta = std::fs::metadata(root).map_err(|e| Error::io(format!("cannot open '{name}'"), &e))?;
        if !meta.is_dir() {
            return Err(Error::new(ErrorKind::UnknownFormat, format!("'{name}' is not a directory")));
        }
        let dir = Dir::handle(root).map_err(|e| Error::io(format!("cannot open '{name}'"), &e))?;
        let links = links(root, gate, &[]);
        let (root, gate) = (root.to_path_buf(), gate.clone());
        Ok(Self { root, name, dir, gate, links, counters: Counters::default() })
    }

    /// The same; links may lead out of it to what lies in these directories. By default they lead nowhere: they are not what
    /// who opens a directory has named.
    #[must_use]
    pub fn linking_to(self, directories: &[PathBuf]) -> Self {
        let links = links(&self.root, &self.gate, directories);
        Self { links, ..self }
    }

    /// Opens the object of a key.
    ///
    /// # Errors
    /// `link-refused` where its links lead out of what is allowed; the gate's refusal. Within: those of the system.
    fn member(&self, key: &str) -> Result<std::io::Result<File>> {
        let path = self.path(key)?;
        if !self.gate.is_open() {
            return self.links.open_regular(&path, Purpose::Member);
        }
        match self.dir.open_inside(Path::new(key)) {
            Err(e) if leads_out(&e) => self.links.open_regular(&path, Purpose::Member),
            file => Ok(file),
        }
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
        if dir.split('/').count() > MOST_LEVELS {
            let message = format!("'{}' has directories in more than {MOST_LEVELS} levels", self.name);
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        let context = |e: &std::io::Error| Error::io(format!("cannot list '{}'", path.display()), e);
        if !self.gate.is_open() {
            self.gate.look(&path, Purpose::Member)?;
        }
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
            let file = match self.member(key)? {
                Err(e) if is_absent(&e) => return Ok(false),
                file => local::told("cannot read", &path, file)?,
            };
            *out = local::told("cannot read", &path, local::read_file(&file, MOST_WHOLE))?;
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
        sieva_types::try_resize(out, (range.end - range.start) as usize)?;
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
        let file = match self.member(key)? {
            Err(e) if is_absent(&e) => return Ok(None),
            // Metadata and chunks may be directories of another array's.
            Err(e) if e.kind() == std::io::ErrorKind::InvalidData && path.is_dir() => return Ok(None),
            file => FileStore::told(file, &path)?,
        };
        Ok(Some(Box::new(FileStore::of(file, &path)?)))
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

/// The gate of what the objects of a directory may be: what lies in it, or in one of `more`.
fn links(root: &Path, gate: &Gate, more: &[PathBuf]) -> Gate {
    let mut inside = AllowList::default();
    inside.add_path(root);
    more.iter().for_each(|dir| inside.add_path(dir));
    gate.and(Arc::new(inside.with_hint(
        "a link leads out of the directory: name where it leads with --external (external= in Python) if you trust it",
    )))
}

/// Whether the system would not say where a link leads, as it leads out, or cannot.
fn leads_out(e: &std::io::Error) -> bool {
    matches!(e.kind(), std::io::ErrorKind::CrossesDevices | std::io::ErrorKind::Unsupported)
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
    fn what_is_no_regular_file_is_refused_and_not_waited_for() {
        let (root, tree) = tree("pipe");
        let made = std::process::Command::new("mkfifo").arg(root.join("a/pipe")).status().unwrap();
        assert!(made.success());
        let _socket = std::os::unix::net::UnixListener::bind(root.join("a/socket")).unwrap();
        for span in [Span::All, Span::Last(3), Span::Range(0..1)] {
            for key in ["a/pipe", "a/socket"] {
                let e = tree.get(key, &span, &mut Vec::new()).unwrap_err();
                assert_eq!(e.kind(), ErrorKind::UnknownFormat, "{key}: {e}");
                assert!(e.message().contains("not a regular file"), "{e}");
            }
        }
        assert_eq!(FileStore::open(&root.join("a/socket")).unwrap_err().kind(), ErrorKind::UnknownFormat);
        assert_eq!(FileStore::open(&root.join("a/pipe")).unwrap_err().kind(), ErrorKind::UnknownFormat);
        assert!(tree.list("a/p").unwrap().unwrap().is_empty());
        // A file that takes no room, and declares much.
        let long = std::fs::File::create(root.join("long")).unwrap();
        long.set_len(MOST_WHOLE + 1).unwrap();
        let e = tree.get("long", &Span::All, &mut Vec::new()).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::MemoryLimit);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn directories_without_end_are_refused() {
        let (root, tree) = tree("deep");
        let levels = |n: usize| root.join("a/".repeat(n));
        std::fs::create_dir_all(levels(MOST_LEVELS)).unwrap();
        assert_eq!(tree.list("").unwrap().unwrap().len(), 3);
        std::fs::create_dir_all(levels(MOST_LEVELS + 1)).unwrap();
        assert_eq!(tree.list("").unwrap_err().kind(), ErrorKind::Unsupported);
        std::fs::remove_dir_all(root).unwrap();
    }

    /// A link within the directory is followed; one that leads out is not, unless where it leads is named.
    #[test]
    fn links_of_objects_stay_inside() {
        let (root, tree) = tree("links");
        let outside = root.with_extension("outside");
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("secret"), b"secret").unwrap();
        let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        link(Path::new("c/0.0"), "a/relative");
        link(&root.join("ab"), "a/absolute");
        link(&outside.join("secret"), "a/out");
        link(&outside, "folder");
        link(Path::new("/proc/self/environ"), "a/environ");
        let get = |tree: &DirTree, key: &str, span: &Span| {
            let mut out = Vec::new();
            tree.get(key, span, &mut out).map(|there| (there, out))
        };
        let allowing = DirTree::open(&root).unwrap().linking_to(std::slice::from_ref(&outside));
        for span in [Span::All, Span::Last(100)] {
            assert_eq!(get(&tree, "a/relative", &span).unwrap().1, b"0123456789");
            assert_eq!(get(&tree, "a/absolute", &span).unwrap().1, b"x");
            for key in ["a/out", "folder/secret", "a/environ", "folder/none"] {
                let e = get(&tree, key, &span).unwrap_err();
                assert_eq!(e.kind(), ErrorKind::LinkRefused, "{key}: {e}");
                assert!(e.hint_text().unwrap().contains("--external"), "{e}");
            }
            assert_eq!(get(&allowing, "a/out", &span).unwrap().1, b"secret");
            assert_eq!(get(&allowing, "folder/secret", &span).unwrap().1, b"secret");
            assert!(!get(&allowing, "folder/none", &span).unwrap().0);
            assert!(get(&allowing, "a/environ", &span).is_err());
        }
        std::fs::remove_dir_all(root).unwrap();
        std::fs::remove_dir_all(outside).unwrap();
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
