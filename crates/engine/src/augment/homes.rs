//! Where the stores of a source are, who is believed of each, and who may read what is made there.
//!
//! A store beside a file is believed of the file's owner, of root and of the user of this process: anybody else who may
//! write to the directory could have put it there. Where that is not so, and for files of other users, this user's own
//! store is used, in the cache directory.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sieva_index::store::{Home, locations};
use sieva_store::local::{Trust, user};

use crate::manifest_cache;
use crate::open::OpenOptions;

/// Directories of stores of one source.
pub(crate) struct Homes {
    /// Where augmentations are looked for, best first.
    pub read: Vec<Home>,
    /// Where new ones go.
    pub write: Home,
    /// What is there and not believed, and why.
    pub refused: Vec<String>,
}

/// The directories of stores of the source at `path`.
pub(crate) fn homes(path: &Path, options: &OpenOptions) -> Homes {
    let given = options.store_dir_of(path);
    let places = locations(path, given.as_deref());
    let is_remote = path.to_str().is_some_and(sieva_store::is_url);
    let owner = if is_remote { None } else { std::fs::metadata(path).ok().map(|meta| meta.uid()) };
    let trust = owner.map_or_else(Trust::default, |owner| Trust::default().and(owner));
    let mut read: Vec<Home> = Vec::new();
    for place in &places.read {
        let is_given = given.as_deref().is_some_and(|dir| place.starts_with(dir));
        read.push(match &given {
            Some(dir) if is_given && (is_remote || cached().as_ref() == Some(dir)) => own(place.clone()),
            Some(dir) if is_given => {
                // Who names a directory believes its owner.
                let above = std::fs::metadata(dir).ok().map(|meta| meta.uid());
                let trust = above.map_or_else(|| trust.clone(), |above| trust.clone().and(above));
                Home::new(place.clone(), trust).apart_from(path)
            }
            _ => Home::new(place.clone(), trust.clone()).beside(path),
        });
    }
    let mut refused = Vec::new();
    read.retain(|home| match home.check() {
        Ok(()) => true,
        Err(e) => {
            refused.push(format!("{}: not used", e.message()));
            false
        }
    });
    let mut write = read.iter().find(|home| home.path() == places.write).cloned();
    let is_others = owner.is_some_and(|owner| owner != user() && user() != 0);
    if given.is_none()
        && (write.is_none() || is_others)
        && let Some(dir) = cached()
    {
        let mine = own(locations(path, Some(&dir)).write);
        if mine.check().is_ok() {
            // Before what others made: whoever builds here means it.
            read.insert(0, mine.clone());
            write = Some(mine);
        }
    }
    // Where nothing is believed nothing is written either, and whoever tries is told why.
    let fallback = || Home::new(places.write.clone(), trust).beside(path);
    Homes { write: write.unwrap_or_else(fallback), read, refused }
}

/// A directory that is this user's alone.
fn own(place: PathBuf) -> Home {
    Home::new(place, Trust::default()).private()
}

/// The directory in which this user's own stores are.
pub(super) fn cached() -> Option<PathBuf> {
    manifest_cache::cache_dir().map(|cache| cache.join("stores"))
}

/// How long a query waits for somebody's lock: nothing depends on what it would write.
pub(super) const SHORT: Duration = Duration::from_millis(200);
