//! A source as its files are now: what changed, came or went is taken up, and nothing else is opened again.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use sieva_store::guard::Purpose;
use sieva_types::{Error, ErrorKind, Result};

use super::{Files, Many, OPENING, expanded};
use crate::open::{OpenOptions, Source};

/// What is known of the files of an earlier source.
pub(super) struct Before<'m> {
    pub many: &'m Many,
    /// Of each file which one of the earlier source it is, if that has not changed since.
    pub same: Vec<Option<usize>>,
}

impl Before<'_> {
    /// The files that the earlier source holds open, by their numbers now.
    pub fn recent(&self) -> VecDeque<(usize, Source)> {
        let now: HashMap<usize, usize> =
            self.same.iter().enumerate().filter_map(|(now, old)| Some(((*old)?, now))).collect();
        let held = self.many.files.held();
        held.into_iter().filter_map(|(old, source)| Some((*now.get(&old)?, source))).collect()
    }

    /// Notes which versions the outlines are of that are taken over.
    pub fn note_versions(&self, versions: &[OnceLock<String>]) {
        for (version, old) in versions.iter().zip(&self.same) {
            if let Some(old) = old {
                let _ = version.set(self.many.joined.state_of(*old).1.to_owned());
            }
        }
    }
}

impl Source {
    /// The source as it is now: the files that its paths and globs lead to, each as it is. `None` where that is what it was. Of many
    /// files only those are opened that changed or are new, and one of each kind.
    ///
    /// This source and its queries stay what they were: they answer from the files as these were, and a file that changed is told.
    ///
    /// # Errors
    /// Those of opening; `unsupported` for what was not opened by its name.
    pub fn refreshed(&self) -> Result<Option<Self>> {
        let Some(asked) = self.asked() else {
            let message =
                format!("'{}' was not opened by its name: it cannot be looked at again", self.name());
            return Err(Error::new(ErrorKind::Unsupported, message).hint("open it anew"));
        };
        let files = expanded(asked, self.options())?;
        let is_joined = files.len() != 1 || self.options().join.is_some();
        let before = match self.many() {
            Some(many) if is_joined => {
                let same = same(many, &files);
                if files == many.files.names() && same.iter().all(Option::is_some) {
                    return Ok(None);
                }
                Some(Before { many, same })
            }
            None if !is_joined && self.is_unchanged(&files[0]) => return Ok(None),
            _ => None,
        };
        let source = Self::joined(asked, files, self.options(), before)?;
        Ok(Some(source.asked_as(asked.clone())))
    }

    /// Whether the one file that this source is of is the file of a name, in the state that it has now.
    fn is_unchanged(&self, name: &str) -> bool {
        let store = self.reader().store();
        let state = (store.len(), store.version());
        // Of a hierarchy nothing tells but reading it, nor of what a file leads to.
        self.options().external_roots.is_empty()
            && self.path() == Path::new(name)
            && store.check_unchanged().is_ok()
            && state_now(name, self.options()) == Some(state)
    }
}

/// Of each file its number in an earlier source, if it is there and has not changed since.
fn same(many: &Many, files: &[String]) -> Vec<Option<usize>> {
    if !many.files.options().external_roots.is_empty() {
        return vec![None; files.len()];
    }
    let numbers: HashMap<&str, usize> =
        many.files.names().iter().enumerate().map(|(number, name)| (name.as_str(), number)).collect();
    let held: HashMap<usize, Source> = many.files.held().into_iter().collect();
    each(files, |name| {
        let number = *numbers.get(name.as_str())?;
        let (len, version) = many.joined.state_of(number);
        let is_same = state_now(name, many.files.options()) == Some((len, version.to_owned()))
            // What it leads to may have changed.
            && held.get(&number).is_none_or(|source| source.reader().store().check_unchanged().is_ok());
        is_same.then_some(number)
    })
}

/// The length and the version of a file or an object now; none of what is no single one, or has no version.
fn state_now(name: &str, options: &OpenOptions) -> Option<(u64, String)> {
    let store = sieva_store::open_within(name, &options.remote, &options.gate, Purpose::Source).ok()?;
    Some((store.len(), store.version())).filter(|(_, version)| !version.is_empty())
}

/// What `f` gives of each name, in their order, by several threads: they wait for the disk, or the network.
fn each<T: Send>(names: &[String], f: impl Fn(&String) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(name) = names.get(number) else { return done };
            done.push((number, f(name)));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let threads =
            (1..OPENING.min(names.len())).map(|_| std::thread::Builder::new().spawn_scoped(scope, work));
        let others: Vec<_> = threads.filter_map(std::result::Result::ok).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_unstable_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, found)| found).collect()
}

impl Files {
    /// The options by which each file is opened.
    fn options(&self) -> &OpenOptions {
        &self.options
    }

    /// Those that are held open, by their numbers.
    fn held(&self) -> VecDeque<(usize, Source)> {
        self.recent.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}
