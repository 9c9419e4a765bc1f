//! What is in a group by its name: as a file here, or as an address for those without a key.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sieva::{Error, ErrorKind, Result, printable};
use sieva_store::objects::Link;

use crate::group::Group;
use crate::names;
use crate::partial::Partial;
use crate::progress::OnProgress;
use crate::record::{Entry, ObjectRef};

/// How often something that is replaced while it is fetched is looked for again.
const CHANGES: usize = 5;

/// How something is fetched.
#[derive(Clone, Debug, Default)]
pub struct FetchOptions {
    /// Who is told of the bytes that are here.
    pub progress: OnProgress,
    /// Stops it when it is set; the next one goes on.
    pub cancel: Arc<AtomicBool>,
}

/// What was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// Bytes of the file.
    pub size: u64,
    /// Of these, what came now: the rest was here since a time before.
    pub came: u64,
}

/// An object with a name, and what it may hold.
#[derive(PartialEq, Eq)]
struct Named {
    /// What may be there, the likeliest first.
    objects: Vec<ObjectRef>,
}

impl Group {
    /// Puts what a name leads to at `path`, when all of it is here and right. Asked again after it was stopped, it goes on.
    ///
    /// A name is that of something that is published (`NAME`, or `USER/NAME`), or of a result (`USER/ASK/FILE`, the file being the
    /// producer's).
    ///
    /// # Errors
    /// `file-not-found` for what is not there; `invalid-value` for what is no name, or one that two users published;
    /// `corrupt-file`; those of the store and of the file.
    pub fn fetch(&self, name: &str, path: impl AsRef<Path>, options: &FetchOptions) -> Result<Fetched> {
        let mut named = self.find(name)?;
        let mut partial = Partial::open(path.as_ref())?;
        for _ in 0..CHANGES {
            let mut failed = None;
            for object in &named.objects {
                match self.fill(&mut partial, object, options) {
                    Ok(came) => {
                        partial.publish()?;
                        return Ok(Fetched { size: object.size, came });
                    }
                    Err(e) if !may_be_other(&e) => return Err(e),
                    Err(e) => failed = failed.or(Some(e)),
                }
            }
            // Wrong is what is wrong twice: it may have been replaced between its record and this.
            let now = self.find(name)?;
            if now == named {
                partial.discard();
                return Err(failed.unwrap_or_else(|| self.nothing(name, None)));
            }
            named = now;
        }
        partial.discard();
        let message = format!("'{}' is replaced again and again", printable(name));
        Err(Error::new(ErrorKind::Io, message).hint("fetch it when its publisher rests"))
    }

    /// An address by which who has no key can read what a name leads to, as in [`Group::fetch`], for so long.
    ///
    /// # Errors
    /// As [`Group::fetch`]; `unsupported` for a result that shares an object with others, and stores that have no such
    /// addresses; `permission-denied`.
    pub fn link(&self, name: &str, expires: Duration) -> Result<Link> {
        let named = self.find(name)?;
        let Some(object) = named.objects.first() else { return Err(self.nothing(name, None)) };
        if object.key.ends_with(".parts") {
            let message = format!("'{}' lies in one object with others", printable(name));
            return Err(Error::new(ErrorKind::Unsupported, message)
                .hint("fetch it, and publish the file: sieva share publish PLACE FILE"));
        }
        self.objects.link(&object.key, expires)
    }

    /// What a name leads to.
    fn find(&self, name: &str) -> Result<Named> {
        let mut parts = name.splitn(3, '/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(user), Some(ask), Some(step)) => Ok(Named { objects: vec![self.result(user, ask, step)?] }),
            (Some(user), Some(name), None) => self.published_object(Some(user), name),
            _ => self.published_object(None, name),
        }
    }

    fn published_object(&self, user: Option<&str>, name: &str) -> Result<Named> {
        let (user, record) = self.find_published(user, name)?;
        let key = names::published_data(&user, name);
        let object = |state: crate::PublishedState| ObjectRef {
            key: key.clone(),
            offset: 0,
            size: state.size,
            checksum: state.checksum,
            rows: state.rows.unwrap_or_default(),
            ranges: Vec::new(),
        };
        Ok(Named { objects: record.states.into_iter().rev().map(object).collect() })
    }

    /// The result that a producer put for an ask, of one of its files.
    fn result(&self, user: &str, ask: &str, step: &str) -> Result<ObjectRef> {
        names::check("a user", user)?;
        names::check("an ask", ask)?;
        let mut known = Vec::new();
        for producer in self.producers()? {
            let index = self.index(user, &producer)?;
            let answers = index.and_then(|mut index| index.asks.remove(ask));
            known.extend(answers.into_iter().flat_map(|answers| answers.entries));
        }
        let name = format!("{user}/{ask}/{step}");
        let newest = known.iter().filter(|entry| entry.step.name == step).max_by_key(|entry| entry.made);
        let Some(entry) = newest else { return Err(self.nothing(&name, Some(&known))) };
        match (&entry.object, &entry.failure) {
            (Some(object), _) => object.check(&*self.objects).map(|()| object.clone()),
            (None, failure) => {
                let why = failure.as_ref().map_or("", |failure| &*failure.message);
                let message = format!("'{}' is an error: {}", printable(&name), printable(why));
                Err(Error::new(ErrorKind::FileNotFound, message).hint("ask for something else"))
            }
        }
    }

    fn fill(&self, partial: &mut Partial, object: &ObjectRef, options: &FetchOptions) -> Result<u64> {
        let place = self.objects.location(&object.key);
        let meter = options.progress.begin(object.size);
        let mut more = |at: u64, out: &mut [u8]| {
            // What was here since a time before counts, too.
            meter.reach(at);
            if options.cancel.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Cancelled, "fetching was interrupted"));
            }
            match object.read(&*self.objects, at, out)? {
                true => Ok(()),
                false => Err(Error::new(ErrorKind::FileNotFound, format!("'{place}' is not there"))
                    .hint("it was deleted meanwhile, or its publisher was stopped before it was put: have it published again")),
            }
        };
        match partial.fill(object.size, &object.checksum, &mut more) {
            Err(e) if e.kind() == ErrorKind::CorruptFile => {
                let message = format!("'{place}' is damaged: {}", e.message());
                Err(Error::new(ErrorKind::CorruptFile, message).hint("have it published again"))
            }
            Err(e) => Err(e),
            Ok(moved) => {
                meter.reach(object.size);
                Ok(moved)
            }
        }
    }

    fn nothing(&self, name: &str, known: Option<&[Entry]>) -> Error {
        let message = format!("there is no '{}' at '{}'", printable(name), self.name());
        let known: Vec<&str> = known.unwrap_or_default().iter().map(|e| &*e.step.name).take(20).collect();
        let hint = match &known[..] {
            [] => "what was taken or not made yet is not there: sieva share status PLACE".to_owned(),
            known => format!("of that ask there is {}", printable(&known.join(", "))),
        };
        Error::new(ErrorKind::FileNotFound, message).hint(hint)
    }
}

/// Whether something else may be there than was thought.
fn may_be_other(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::CorruptFile | ErrorKind::FileNotFound | ErrorKind::StaleSource)
}
