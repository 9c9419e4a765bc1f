//! Many files as one source: which they are, and what is known of each.

mod index;
mod paths;
mod refresh;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use sieva_format::ArraySource;
use sieva_format::join::{JoinOptions, JoinedSource, Opener};
use sieva_types::{Error, ErrorKind, Result};

use crate::catalog::known::KnownFiles;
use crate::open::{OpenOptions, Source};
pub use paths::{expand, expand_within};
use refresh::Before;

/// Files that are held open together with what is known of them.
const RECENT: usize = 128;
/// Threads that open files: they wait for the disk, or the network, more than they work.
const OPENING: usize = 8;

/// The files of a source.
pub(crate) struct Files {
    names: Vec<String>,
    options: OpenOptions,
    /// What the catalog knows of them.
    known: Option<KnownFiles>,
    /// Of each the version that its outline was taken of.
    versions: Vec<OnceLock<String>>,
    /// Those used last, the latest at the end.
    recent: Mutex<VecDeque<(usize, Source)>>,
}

impl Files {
    /// As they were given.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// File `n` as a source of its own, with its own augmentations.
    pub(crate) fn file(&self, n: usize) -> Result<Source> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = recent.iter().position(|(file, _)| *file == n)
            && let Some(found) = recent.remove(at)
        {
            let source = found.1.clone();
            recent.push_back(found);
            return Ok(source);
        }
        drop(recent);
        let source = self.open(n)?;
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        // What falls out saves what was learnt of it: not while others wait.
        let old = (recent.len() >= RECENT).then(|| recent.pop_front());
        recent.push_back((n, source.clone()));
        drop(recent);
        drop(old);
        Ok(source)
    }

    /// Opens file `n`, by what is known of it if anything is.
    fn open(&self, n: usize) -> Result<Source> {
        let (started, name) = (Instant::now(), &self.names[n]);
        match self.known.as_ref().and_then(|known| known.open(n, name, &self.options)) {
            Some(reader) => Ok(Source::from_parts(reader, name.into(), &self.options, None, started)),
            None => Source::open(name, &self.options),
        }
    }

    /// What tells the outline of file `n`: without opening it, if it is known.
    fn outline(&self, n: usize) -> Result<Arc<dyn ArraySource>> {
        let reader = match self.known.as_ref().and_then(|k| k.outline(n, &self.names[n], &self.options)) {
            Some(reader) => reader,
            None => Arc::clone(self.file(n)?.reader()),
        };
        let _ = self.versions[n].set(reader.store().version());
        Ok(reader)
    }

    /// File `n` in the state that its outline was taken of; `None` where it has changed since.
    fn unchanged(&self, n: usize) -> Option<Source> {
        let source = self.file(n).ok()?;
        let version = source.reader().store().version();
        self.versions[n].get().is_none_or(|then| *then == version).then_some(source)
    }

    /// Forgets all that is held.
    pub(crate) fn forget(&self) {
        let held = std::mem::take(&mut *self.recent.lock().unwrap_or_else(PoisonError::into_inner));
        drop(held);
    }
}

/// A source of many files, behind [`Source`].
#[derive(Clone)]
pub(crate) struct Many {
    pub(crate) files: Arc<Files>,
    pub(crate) joined: Arc<JoinedSource>,
}

/// The files of paths and globs.
fn expanded(names: &[String], options: &OpenOptions) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for name in names {
        sieva_store::check_name(name.as_ref(), "the name of a source")?;
        files.extend(expand_within(name, &options.gate)?);
    }
    Ok(files)
}

/// Names as messages and schemas have them.
fn shown_names(names: &[String]) -> Vec<String> {
    names.iter().map(|name| sieva_store::redacted(name)).collect()
}

impl Source {
    /// Opens several files as one source: joined along a dimension, by coordinate values where there are any, or put
    /// together where they hold different arrays. `names` are paths and globs; one file is opened as it is.
    ///
    /// # Errors
    /// Those of [`Source::open`] with the file's name; `dimension-mismatch` naming files, arrays and what differs.
    pub fn open_many<S: AsRef<str>>(names: &[S], options: &OpenOptions) -> Result<Self> {
        let asked: Arc<[String]> = names.iter().map(|name| name.as_ref().to_owned()).collect();
        let files = expanded(&asked, options)?;
        Self::joined(&asked, files, options, None).map(|source| source.asked_as(asked))
    }

    /// The source of these files, which paths and globs were expanded to; by what is known of those of an earlier one.
    fn joined(
        names: &[String],
        files: Vec<String>,
        options: &OpenOptions,
        before: Option<Before<'_>>,
    ) -> Result<Self> {
        let started = Instant::now();
        if let [one] = &files[..]
            && options.join.is_none()
        {
            return Self::open(one, options);
        }
        if options.manifest.is_some() {
            let message = format!("a manifest is of one file, and these are {}, joined", files.len());
            return Err(Error::new(ErrorKind::InvalidValue, message).hint("open them without manifest="));
        }
        let shown = match names {
            [one] => one.clone(),
            _ => format!("{} and {} other files", sieva_store::redacted(&files[0]), files.len() - 1),
        };
        let known = KnownFiles::of(&files, options);
        // Files are asked one by one for what is known of them here; nothing else looks for it again.
        let told = options.told.clone().or_else(|| options.catalog.clone());
        let each = OpenOptions { join: None, catalog: None, told, beside: false, ..options.clone() };
        let versions: Vec<OnceLock<String>> = files.iter().map(|_| OnceLock::new()).collect();
        let recent = before.as_ref().map(Before::recent).unwrap_or_default();
        if let Some(before) = &before {
            before.note_versions(&versions);
        }
        let recent = Mutex::new(recent);
        let files = Arc::new(Files { names: files, options: each, known, versions, recent });
        let (opening, is_open) = (Arc::clone(&files), Arc::new(AtomicBool::new(false)));
        let planned = Arc::clone(&is_open);
        let opener: Opener = Arc::new(move |n| match planned.load(Relaxed) {
            true => Ok(Arc::clone(opening.file(n)?.reader())),
            false => opening.outline(n),
        });
        let how =
            JoinOptions { dim: options.join.clone(), valid_range: options.valid_range, threads: OPENING };
        let shown_names = shown_names(&files.names);
        let joined = Arc::new(match &before {
            Some(Before { many, same }) => many.joined.renewed(shown_names, opener, &how, same)?,
            None => JoinedSource::open(shown_names, opener, &how)?,
        });
        is_open.store(true, Relaxed);
        let inner: Arc<dyn ArraySource> = Arc::clone(&joined) as Arc<dyn ArraySource>;
        Ok(Self::from_parts(inner, PathBuf::from(shown), options, Some(Many { files, joined }), started))
    }

    /// The files that the source is made of.
    pub fn files(&self) -> Vec<String> {
        match self.many() {
            Some(many) => many.files.names.clone(),
            None => vec![self.path().display().to_string()],
        }
    }

    /// Which file holds which part of an array: file, first position along the joined dimension, and number of positions.
    pub fn pieces_of(&self, array: usize) -> Vec<(String, u64, u64)> {
        let Some(many) = self.many() else { return Vec::new() };
        let Ok(layout) = self.reader().layout(array) else { return Vec::new() };
        let sieva_format::layout::Placement::Parts(parts) = &layout.placement else { return Vec::new() };
        let names = many.joined.names();
        let pieces = many.joined.pieces(array).iter().zip(parts.starts.windows(2));
        pieces.map(|(&(file, _), s)| (names[file as usize].clone(), s[0], s[1] - s[0])).collect()
    }
}
