//! The steps that a producer has: files that are complete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sieva::{Error, ErrorKind, Result, Source, local};
use sieva_store::name_of;

use crate::record::Step;

/// The most files of one producer.
const MOST: usize = 1 << 20;

/// Where a step is.
#[derive(Clone)]
pub(crate) enum Place {
    File(PathBuf),
    /// In the memory of a program, which waits for the end of the pass.
    Memory(Source),
}

/// A step and where it is.
#[derive(Clone)]
pub(crate) struct Found {
    pub place: Place,
    pub step: Step,
    /// Whether it was left alone for so long that it is taken to be complete.
    pub settled: bool,
    /// When it was changed last.
    pub modified: SystemTime,
}

impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}, settled {}", self.step, self.settled)
    }
}

/// What a file looks like from the outside; of a hierarchy all of its files together.
#[derive(Clone, Copy)]
struct Looks {
    size: u64,
    modified: SystemTime,
    files: u64,
}

/// The files that patterns, directories and paths lead to, in order of their names. Hidden files, and those that somebody is
/// writing under another name (`.part`, `.tmp`), are none; nor are the stores of indexes beside them.
///
/// # Errors
/// `invalid-value` for two files of one name, or too many; `file-not-found` for a path that leads nowhere. A pattern may
/// match nothing yet.
pub(crate) fn find(sources: &[String], settle: Duration) -> Result<Vec<Found>> {
    let mut found = BTreeMap::new();
    for source in sources {
        for path in paths(source)? {
            let Some(looks) = looked(&path)? else { continue };
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let step = Step { id: id(&name, &looks), size: looks.size, name: name.clone() };
            let settled = is_settled(looks.modified, settle);
            let new = Found { place: Place::File(path.clone()), step, settled, modified: looks.modified };
            if let Some(Found { place: Place::File(old), .. }) = found.insert(name.clone(), new)
                && old != path
            {
                let message =
                    format!("two files are called '{name}': '{}' and '{}'", old.display(), path.display());
                return Err(Error::new(ErrorKind::InvalidValue, message)
                    .hint("share them as two producers: sieva share create --as NAME"));
            }
            if found.len() > MOST {
                let message = format!("more than {MOST} files in '{}'", sources.join("', '"));
                return Err(Error::new(ErrorKind::InvalidValue, message).hint("share fewer at once"));
            }
        }
    }
    Ok(found.into_values().collect())
}

/// Whether a step is what it was when it was found: who writes to a file goes on with it.
pub(crate) fn is_still(found: &Found) -> bool {
    let Place::File(path) = &found.place else { return true };
    let looks = looked(path).ok().flatten();
    looks.is_some_and(|looks| id(&found.step.name, &looks) == found.step.id)
}

/// Makes sure that each source is one that can have files.
pub(crate) fn check(sources: &[String]) -> Result<()> {
    if sources.is_empty() {
        return Err(Error::new(ErrorKind::InvalidValue, "a producer of nothing")
            .hint("name files, a directory or a pattern"));
    }
    let mut seen = BTreeSet::new();
    for source in sources {
        if sieva_store::is_url(source) {
            let message = format!("'{}' is no path", sieva_store::redacted(source));
            return Err(Error::new(ErrorKind::Unsupported, message)
                .hint("files are shared by the machine that has them: name a path"));
        }
        if !seen.insert(source) {
            return Err(Error::new(ErrorKind::InvalidValue, format!("'{source}' is named twice")));
        }
        if !is_pattern(source) && !Path::new(source).exists() {
            return Err(Error::new(ErrorKind::FileNotFound, format!("there is no '{source}'")));
        }
    }
    Ok(())
}

fn is_pattern(source: &str) -> bool {
    source.contains(['*', '?', '[']) && !Path::new(source).exists()
}

fn paths(source: &str) -> Result<Vec<PathBuf>> {
    if is_pattern(source) {
        return match sieva::expand(source) {
            Ok(files) => Ok(files.into_iter().map(PathBuf::from).filter(|path| !is_part(path)).collect()),
            Err(e) if e.kind() == ErrorKind::FileNotFound => Ok(Vec::new()),
            Err(e) => Err(e),
        };
    }
    let path = PathBuf::from(source);
    if !path.is_dir() || is_tree(&path) {
        return Ok(vec![path]);
    }
    let mut files = Vec::new();
    for entry in local::told("listing", &path, fs::read_dir(&path))? {
        files.push(local::told("listing", &path, entry)?.path());
    }
    files.retain(|p| p.is_file() || is_tree(p));
    Ok(files)
}

/// Whether a directory is one data set: of Zarr, or of ADIOS2.
fn is_tree(path: &Path) -> bool {
    ["zarr.json", ".zgroup", ".zarray", ".zmetadata", "md.idx"].iter().any(|name| path.join(name).exists())
}

/// Whether a directory holds the data of a BP3 file beside it, `x.bp.dir` those of `x.bp`: no data set of its own.
fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let of = name.and_then(|name| name.strip_suffix(".dir")).filter(|of| of.ends_with(".bp"));
    of.is_some_and(|of| path.is_dir() && path.with_file_name(of).is_file())
}

/// What a file looks like, if it may be a step.
fn looked(path: &Path) -> Result<Option<Looks>> {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let writing = [".part", ".tmp", ".sieva"].iter().any(|end| name.ends_with(end));
    if name.starts_with('.') || writing {
        return Ok(None);
    }
    let looks =
        fs::metadata(path).and_then(|meta| if meta.is_dir() { of_tree(path) } else { of_file(&meta) });
    match looks {
        Ok(looks) => Ok(Some(looks)),
        // Removed since it was listed.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(local::error("looking at", path, &e)),
    }
}

fn of_file(meta: &Metadata) -> std::io::Result<Looks> {
    Ok(Looks { size: meta.len(), modified: meta.modified()?, files: 1 })
}

/// Chunks are put below a hierarchy's directory, whose own time does not tell of them.
fn of_tree(root: &Path) -> std::io::Result<Looks> {
    let mut all = Looks { size: 0, modified: fs::metadata(root)?.modified()?, files: 0 };
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            all.modified = all.modified.max(meta.modified()?);
            if meta.is_dir() {
                open.push(entry.path());
            } else {
                (all.size, all.files) = (all.size + meta.len(), all.files + 1);
            }
        }
    }
    Ok(all)
}

/// Which state of a file it is.
fn id(name: &str, looks: &Looks) -> String {
    let since = looks.modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    let state = format!("{name}\0{}\0{}\0{}", looks.size, looks.files, since.as_nanos());
    name_of(state.as_bytes())
}

fn is_settled(modified: SystemTime, settle: Duration) -> bool {
    // A time to come is that of another clock: it says nothing, and the file would never be shared.
    SystemTime::now().duration_since(modified).map_or(true, |age| age >= settle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("sieva-steps-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        dir
    }

    fn names(sources: &[&Path]) -> Vec<String> {
        let sources: Vec<String> = sources.iter().map(|p| p.display().to_string()).collect();
        find(&sources, Duration::ZERO).unwrap().into_iter().map(|f| f.step.name).collect()
    }

    #[test]
    fn files_of_directories_and_patterns_are_steps_and_unfinished_ones_are_not() {
        let dir = scratch("names");
        for name in ["b.nc", "a.nc", ".hidden.nc", "c.nc.part", "d.tmp", "e.txt"] {
            fs::write(dir.join(name), b"x").unwrap();
        }
        for tree in ["a.nc.sieva", "z.zarr", "plain", "s.bp"] {
            fs::create_dir(dir.join(tree)).unwrap();
        }
        fs::write(dir.join("z.zarr/zarr.json"), b"{}").unwrap();
        fs::write(dir.join("s.bp/md.idx"), b"x").unwrap();
        assert_eq!(names(&[&dir]), ["a.nc", "b.nc", "e.txt", "s.bp", "z.zarr"]);
        assert_eq!(names(&[&dir.join("s.bp")]), ["s.bp"]);
        assert_eq!(names(&[&dir.join("*.nc")]), ["a.nc", "b.nc"]);
        assert_eq!(names(&[&dir.join("*.none")]), [""; 0]);
        assert_eq!(names(&[&dir, &dir.join("*.nc")]).len(), 5);
        // The data of a BP3 file are beside it; a directory that is only called so is one.
        fs::create_dir(dir.join("b3.bp.dir")).unwrap();
        assert_eq!(names(&[&dir.join("b3*")]), ["b3.bp.dir"]);
        fs::write(dir.join("b3.bp"), b"x").unwrap();
        assert_eq!(names(&[&dir.join("b3*")]), ["b3.bp"]);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_that_was_changed_is_another_step_and_a_young_one_has_not_settled() {
        let dir = scratch("states");
        let path = dir.join("a.nc");
        let source = [dir.display().to_string()];
        fs::write(&path, b"one").unwrap();
        let [before] = &find(&source, Duration::from_secs(3600)).unwrap()[..] else { panic!("one file") };
        assert!(!before.settled);
        fs::write(&path, b"longer").unwrap();
        let [after] = &find(&source, Duration::ZERO).unwrap()[..] else { panic!("one file") };
        assert!(after.settled && after.step.id != before.step.id);
        assert!(is_still(after) && !is_still(before));
        let to_come = SystemTime::now() + Duration::from_secs(86400);
        fs::File::options().write(true).open(&path).unwrap().set_modified(to_come).unwrap();
        assert!(find(&source, Duration::from_secs(3600)).unwrap()[0].settled);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_hierarchy_is_as_young_as_its_youngest_chunk() {
        let dir = scratch("tree");
        let tree = dir.join("z.zarr");
        fs::create_dir_all(tree.join("T")).unwrap();
        fs::write(tree.join("zarr.json"), b"{}").unwrap();
        let source = [dir.display().to_string()];
        let before = find(&source, Duration::ZERO).unwrap().remove(0).step;
        fs::write(tree.join("T/0"), b"chunk").unwrap();
        let after = find(&source, Duration::from_secs(3600)).unwrap().remove(0);
        assert!(!after.settled && after.step.id != before.id);
        assert_eq!(after.step.size, 7);
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn two_files_of_one_name_and_sources_that_are_none_are_refused() {
        let dir = scratch("twice");
        for folder in ["x", "y"] {
            fs::create_dir(dir.join(folder)).unwrap();
            fs::write(dir.join(folder).join("a.nc"), folder).unwrap();
        }
        let both = [dir.join("x"), dir.join("y")].map(|p| p.display().to_string());
        assert_eq!(find(&both, Duration::ZERO).unwrap_err().kind(), ErrorKind::InvalidValue);
        let none = dir.join("none").display().to_string();
        assert_eq!(check(&[none]).unwrap_err().kind(), ErrorKind::FileNotFound);
        assert_eq!(check(&[]).unwrap_err().kind(), ErrorKind::InvalidValue);
        assert_eq!(check(&["s3://b/k".into()]).unwrap_err().kind(), ErrorKind::Unsupported);
        fs::remove_dir_all(dir).unwrap();
    }
}
