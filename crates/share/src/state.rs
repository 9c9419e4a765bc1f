//! What a follower knows of its folder, kept in it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sieva::{Error, ErrorKind, Result, local};
use xxhash_rust::xxh3::Xxh3;

use crate::made::digest;
use crate::partial::hash;
use crate::record::Through;

/// Of the state.
const VERSION: u32 = 1;
const NAME: &str = ".sieva-follow.json";
/// The longest state that is read.
const MOST: u64 = 256 << 20;

/// The state of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct State {
    version: u32,
    /// The group, as it was named.
    pub group: String,
    /// For whom it is kept.
    pub user: String,
    /// Which of the user's asks.
    pub ask: String,
    /// What the names of its files end with, where these are not kept as they come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept_as: Option<String>,
    /// Of each producer the epoch of its index, and the first serial that is not here.
    pub through: Through,
    /// The files, by their names in the folder.
    pub files: BTreeMap<String, Have>,
}

/// A file of the folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Have {
    pub producer: String,
    /// The file of the producer that it is the answer to.
    pub step: String,
    pub checksum: String,
}

impl State {
    /// The state of a folder, which begins empty.
    ///
    /// # Errors
    /// `invalid-value` for the folder of another group or user; `corrupt-file`.
    pub fn load(folder: &Path, group: &str, user: &str, ask: &str) -> Result<Self> {
        let path = path(folder);
        let [of, by, called] = [group, user, ask].map(str::to_owned);
        let new = Self { version: VERSION, group: of, user: by, ask: called, ..Self::default() };
        let bytes = match local::read(&path, MOST) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(new),
            Err(e) => return Err(local::error("reading", &path, &e)),
        };
        let state: Self = serde_json::from_slice(&bytes).map_err(|e| {
            let message = format!("'{}' is damaged: {e}", path.display());
            Error::new(ErrorKind::CorruptFile, message)
                .hint("move it away to begin anew: what is in the group still is fetched again")
        })?;
        if state.version != VERSION {
            let message = format!("'{}' is of version {}, not {VERSION}", path.display(), state.version);
            return Err(Error::new(ErrorKind::Unsupported, message).hint("it takes a later sieva"));
        }
        if (&*state.group, &*state.user, &*state.ask) != (group, user, ask) {
            let State { group, user, ask, .. } = state;
            let message =
                format!("'{}' is kept for '{ask}' of {user}, in the group at '{group}'", folder.display());
            return Err(Error::new(ErrorKind::InvalidValue, message).hint("take another folder"));
        }
        Ok(state)
    }

    /// Has the folder kept as files (or directories) whose names end so, as its first pass had it.
    ///
    /// # Errors
    /// `invalid-value` for a folder that is kept otherwise: files of before would stay beside what takes their place.
    pub fn keep_as(&mut self, folder: &Path, suffix: Option<&str>) -> Result<()> {
        let is_new = self.through.is_empty() && self.files.is_empty();
        if is_new || self.kept_as.as_deref() == suffix {
            self.kept_as = suffix.map(str::to_owned);
            return Ok(());
        }
        let said = |suffix: Option<&str>| suffix.map_or("as they come".to_owned(), |s| format!("as '.{s}'"));
        let (is, asked) = (said(self.kept_as.as_deref()), said(suffix));
        let message = format!("the files of '{}' are kept {is}, not {asked}", folder.display());
        Err(Error::new(ErrorKind::InvalidValue, message).hint("take another folder, for an ask of its own"))
    }

    /// Keeps it.
    ///
    /// # Errors
    /// `io-error`; what was kept before is there then.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let bytes = serde_json::to_vec(self)
            .map_err(|e| Error::new(ErrorKind::Internal, format!("the state of a folder: {e}")))?;
        let path = path(folder);
        let saved = local::Aside::new(&path, 0o666).and_then(|mut aside| {
            aside.file()?.write_all(&bytes)?;
            aside.publish(true)
        });
        local::told("writing", &path, saved)
    }
}

/// Removes the other files of a step: answers to what was asked by the same name before, in another format. One that somebody
/// changed stays, and is not this folder's any longer.
pub(crate) fn remove_earlier(folder: &Path, state: &mut State, producer: &str, step: &str, name: &str) {
    state.files.retain(|file, have| {
        let is_earlier = file != name && have.producer == producer && have.step == step;
        if is_earlier {
            // What cannot be removed is no matter of the new one.
            let _ = remove_unchanged(folder, file, &have.checksum);
        }
        !is_earlier
    });
}

fn remove_unchanged(folder: &Path, file: &str, checksum: &str) -> io::Result<()> {
    let (dir, file) = (local::Dir::open(folder)?, Path::new(file));
    let mut sum = Xxh3::new();
    hash(&mut dir.open_regular(file)?, &mut sum)?;
    if digest(&sum) == checksum { dir.remove_file(file) } else { Ok(()) }
}

fn path(folder: &Path) -> PathBuf {
    folder.join(NAME)
}
