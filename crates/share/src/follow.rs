//! The consumer's side: a folder that is kept current.
//!
//! A file is fetched beside its name, compared with its checksum and put there; then the folder's own state says so; then
//! the group is told. Killed in between, the next pass fetches again what the state does not name yet: a few files.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sieva::{Error, ErrorKind, Result, local};
use sieva_encode::Format;
use xxhash_rust::xxh3::Xxh3;

use crate::ahead::Ahead;
use crate::followers::{self, Seen};
use crate::group::Group;
use crate::left::Left;
use crate::lock::Lock;
use crate::made::{PIECE, digest};
use crate::names;
use crate::progress::{Meter, OnProgress};
use crate::record::{self, Answers, Entry, MemberRecord, ObjectRef};
use crate::state::{Have, State, remove_earlier};

/// Files, and bytes of them, after which the state of a folder is kept while more are fetched.
const MOST_UNKEPT: (usize, u64) = (32, 64 << 20);

/// Makes something else of the files that come, for consumers who want them in a format that no object has.
pub trait Convert: Send + Sync {
    /// What the names end with of what it makes, without the point.
    fn suffix(&self) -> &str;

    /// Makes at `to` what `from` holds: a file, or a directory, which is there when all of it is there, in place of what was
    /// there.
    ///
    /// # Errors
    /// What it cannot make, which is told and tried again by the next pass.
    fn convert(&self, from: &Path, to: &Path) -> Result<()>;
}

/// How a pass is made.
#[derive(Clone, Default)]
pub struct FollowOptions {
    /// Who is told of the bytes that are here, of those that are new.
    pub progress: OnProgress,
    /// What is made of the files; `None`: they are kept as they come.
    pub convert: Option<Arc<dyn Convert>>,
    /// Stops the pass when it is set.
    pub cancel: Arc<AtomicBool>,
}

impl FollowOptions {
    /// What names of files end with that are kept otherwise than they come.
    pub(crate) fn kept_as(&self) -> Option<&str> {
        self.convert.as_deref().map(Convert::suffix)
    }
}

/// What a pass did.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// Files that were put into the folder.
    pub files: Vec<PathBuf>,
    /// Bytes that were fetched for them. What was fetched by one request for several asks counts for one of these.
    pub bytes: u64,
    /// Answers that are errors.
    pub failures: Vec<Entry>,
    /// What could not be fetched this time, and is tried again by the next pass.
    pub troubles: Vec<Error>,
}

/// Keeps a folder current with the answers to an ask: a file of each step. One process at a time does.
pub struct Follower {
    group: Group,
    user: String,
    pub(crate) ask: String,
    folder: PathBuf,
}

impl Follower {
    /// A follower of what a user asks for by a name, into a folder, which is made.
    ///
    /// # Errors
    /// `file-not-found` for who is no member, and what is not asked; `invalid-value` for a folder that is another's.
    pub fn new(group: &Group, user: &str, ask: &str, folder: impl AsRef<Path>) -> Result<Self> {
        Self::of(group, &group.expect_member(user)?, user, ask, folder.as_ref())
    }

    /// The same, of a member whose record is known.
    pub(crate) fn of(
        group: &Group,
        member: &MemberRecord,
        user: &str,
        ask: &str,
        folder: &Path,
    ) -> Result<Self> {
        names::check("an ask", ask)?;
        group.expect_ask(member, user, ask)?;
        let folder = folder.to_path_buf();
        local::told("making", &folder, std::fs::create_dir_all(&folder))?;
        State::load(&folder, &group.name(), user, ask)?;
        Ok(Self { group: group.clone(), user: user.to_owned(), ask: ask.to_owned(), folder })
    }

    /// Fetches what is new.
    ///
    /// # Errors
    /// Those of the store and of the folder; `invalid-value` while another process keeps the folder; `cancelled`. What was
    /// fetched until then stays.
    pub fn pass(&self, options: &FollowOptions) -> Result<Followed> {
        let mut done = followers::pass(&self.group, &self.user, std::slice::from_ref(self), options)?;
        done.pop().ok_or_else(|| Error::new(ErrorKind::Internal, "a pass did nothing"))
    }

    /// Takes the folder for this process, and reads its state; one that is kept in another way is refused.
    pub(crate) fn enter(&self, options: &FollowOptions) -> Result<(Lock, State)> {
        let alone = Lock::take(&self.folder.join(".sieva-follow.lock"), || {
            let message = format!("another process keeps '{}' current", self.folder.display());
            Error::new(ErrorKind::InvalidValue, message).hint("wait for it")
        })?;
        let mut state = State::load(&self.folder, &self.group.name(), &self.user, &self.ask)?;
        state.keep_as(&self.folder, options.kept_as())?;
        Ok((alone, state))
    }

    /// Takes what all producers put, and keeps the state whatever happens.
    pub(crate) fn take_all(
        &self,
        seen: &Seen,
        state: &mut State,
        done: &mut Followed,
        fetching: &Fetching<'_>,
    ) -> Result<()> {
        let mut taking = Taking { state, done, fetching, unkept: (0, 0) };
        let taken = seen.producers().try_for_each(|producer| {
            match self.take(producer, seen, &mut taking) {
                // What one producer put wrongly does not keep from what others put.
                Err(e) if record::is_of_record(&e) => {
                    taking.done.troubles.push(e);
                    Ok(())
                }
                taken => taken,
            }
        });
        taking.keep(&self.folder)?;
        taken
    }

    /// What a producer put for the ask and is not here yet, in order; none where it has nothing for what is asked now.
    pub(crate) fn new_of<'s>(
        &self,
        producer: &str,
        seen: &'s Seen,
        state: &State,
    ) -> Result<Option<(&'s Answers, Vec<&'s Entry>)>> {
        let answers = seen.answers(producer, &self.ask)?;
        // Answers to what was asked by this name before are not wanted any more.
        let Some(answers) = answers.filter(|a| seen.ask_id(&self.ask).as_deref() == Some(&*a.ask_id)) else {
            return Ok(None);
        };
        let through = answers.through(producer, &state.through);
        let mut entries: Vec<&Entry> = answers.entries.iter().filter(|e| e.serial >= through).collect();
        entries.sort_by_key(|e| e.serial);
        Ok(Some((answers, entries)))
    }

    /// Takes what a producer put, in order, as far as it can be had.
    fn take(&self, producer: &str, seen: &Seen, taking: &mut Taking<'_>) -> Result<()> {
        if seen.answers(producer, &self.ask)?.is_none() {
            taking.unkept.0 += usize::from(taking.state.through.remove(producer).is_some());
        }
        let Some((answers, entries)) = self.new_of(producer, seen, taking.state)? else { return Ok(()) };
        for entry in entries {
            if taking.fetching.options.cancel.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Cancelled, "the pass was interrupted"));
            }
            match self.entry(producer, entry, taking)? {
                Took::Done => {
                    let next = (answers.epoch, entry.serial.saturating_add(1));
                    taking.state.through.insert(producer.to_owned(), next);
                    taking.noted(entry.object.as_ref().map_or(0, |object| object.size), &self.folder)?;
                }
                Took::Later => break,
            }
        }
        Ok(())
    }

    fn entry(&self, producer: &str, entry: &Entry, taking: &mut Taking<'_>) -> Result<Took> {
        let Taking { state, done, fetching, .. } = taking;
        let Some(object) = &entry.object else {
            done.failures.push(entry.clone());
            return Ok(Took::Done);
        };
        let name = file_name(producer, entry, state, fetching.options);
        let there = state.files.get(&name).is_some_and(|have| have.checksum == object.checksum);
        let path = self.folder.join(&name);
        if there && path.exists() {
            fetching.meter.add(object.size);
            remove_earlier(&self.folder, state, producer, &entry.step.name, &name);
            done.failures.extend(entry.failure.is_some().then(|| entry.clone()));
            return Ok(Took::Done);
        }
        match self.fetch(object, &path, fetching) {
            Ok(Some((moved, Ok(())))) => done.bytes += moved,
            Ok(Some((_, Err(e)))) if e.kind() == ErrorKind::Cancelled => return Err(e),
            Ok(Some((_, Err(e)))) => {
                done.troubles.push(e);
                return Ok(Took::Later);
            }
            // Replaced by a later state, or withdrawn, between the index and this: the next pass sees that.
            Ok(None) => {
                let place = self.group.objects.location(&object.key);
                let message = format!("'{place}' is gone: it was replaced meanwhile, or somebody deleted it");
                done.troubles.push(Error::new(ErrorKind::FileNotFound, message));
                return Ok(Took::Later);
            }
            Err(e) if e.kind() == ErrorKind::CorruptFile => {
                done.troubles.push(e);
                return Ok(Took::Later);
            }
            Err(e) => return Err(e),
        }
        // The data in place of what code makes of them.
        done.failures.extend(entry.failure.is_some().then(|| entry.clone()));
        done.files.push(path);
        remove_earlier(&self.folder, state, producer, &entry.step.name, &name);
        let (producer, step) = (producer.to_owned(), entry.step.name.clone());
        state.files.insert(name, Have { producer, step, checksum: object.checksum.clone() });
        Ok(Took::Done)
    }

    /// Puts a result's bytes, or what is made of them, under a name when they are there and right; how many were moved, and whether
    /// something was made of them, or none where the object is gone.
    fn fetch(
        &self,
        object: &ObjectRef,
        path: &Path,
        fetching: &Fetching<'_>,
    ) -> Result<Option<(u64, Result<()>)>> {
        let Fetching { options, ahead, meter, left } = fetching;
        object.check(&*self.group.objects)?;
        let folder = path.parent().unwrap_or(&self.folder);
        local::told("making", folder, std::fs::create_dir_all(folder))?;
        left.remove(path);
        if options.convert.is_none() {
            // What is made of a file may be a directory, and takes the place of one.
            local::replaceable(path)?;
        }
        let mut aside = local::told("writing", path, local::Aside::new(path, 0o666))?;
        let mut sum = Xxh3::new();
        let mut put = |bytes: &[u8]| {
            sum.update(bytes);
            local::told("writing", path, aside.file().and_then(|file| file.write_all(bytes)))
        };
        let moved = if let Some(bytes) = ahead.part(object) {
            put(bytes)?;
            meter.add(object.size);
            ahead.moved()
        } else {
            let mut at = 0;
            let mut piece = vec![0; PIECE.min(usize::try_from(object.size).unwrap_or(PIECE))];
            while at < object.size {
                let n = usize::try_from(object.size - at).map_or(piece.len(), |left| left.min(piece.len()));
                if !object.read(&*self.group.objects, at, &mut piece[..n])? {
                    return Ok(None);
                }
                put(&piece[..n])?;
                meter.add(n as u64);
                at += n as u64;
            }
            object.size
        };
        if digest(&sum) != object.checksum {
            let place = self.group.objects.location(&object.key);
            let message = format!("'{place}' is damaged: its checksum is not the one that was put");
            return Err(Error::new(ErrorKind::CorruptFile, message));
        }
        if let Some(convert) = &options.convert {
            local::told("writing", path, aside.file().and_then(|file| file.flush()))?;
            // What came goes when `aside` does.
            return Ok(Some((moved, convert.convert(&aside.path(), path))));
        }
        // The state is in the folder, and waits for the names that were given in it before.
        let published = if folder == self.folder { aside.publish_bytes() } else { aside.publish(true) };
        local::told("writing", path, published)?;
        Ok(Some((moved, Ok(()))))
    }
}

/// How what a pass wants is fetched.
pub(crate) struct Fetching<'f> {
    pub options: &'f FollowOptions,
    pub ahead: Ahead<'f>,
    pub meter: &'f Meter,
    pub left: &'f Left,
}

/// What a pass of a follower is doing.
struct Taking<'t> {
    state: &'t mut State,
    done: &'t mut Followed,
    fetching: &'t Fetching<'t>,
    /// Files, and bytes of them, that the state was not kept for.
    unkept: (usize, u64),
}

impl Taking<'_> {
    /// Notes a file of so many bytes, and keeps the state from time to time.
    fn noted(&mut self, bytes: u64, folder: &Path) -> Result<()> {
        self.unkept = (self.unkept.0 + 1, self.unkept.1.saturating_add(bytes));
        if self.unkept.0 >= MOST_UNKEPT.0 || self.unkept.1 >= MOST_UNKEPT.1 {
            self.keep(folder)?;
        }
        Ok(())
    }

    fn keep(&mut self, folder: &Path) -> Result<()> {
        match std::mem::take(&mut self.unkept) {
            (0, _) => Ok(()),
            _ => self.state.save(folder),
        }
    }
}

/// What became of an entry.
enum Took {
    Done,
    Later,
}

/// The name of an answer in the folder: its own, which that of another producer or step never takes.
fn file_name(producer: &str, entry: &Entry, state: &State, options: &FollowOptions) -> String {
    let own = || Format::named(&entry.format).ok().and_then(|f| f.suffixes().first().copied());
    let suffix = options.kept_as().or_else(own).unwrap_or("bin");
    let step = names::of_file(&entry.step.name);
    let stem = step.strip_suffix(".nc").or_else(|| step.strip_suffix(".h5")).unwrap_or(&step);
    let of_producer = format!("{step}-{producer}");
    let numbered = (2..).map(|n| format!("{of_producer}-{n}"));
    let stems = [stem.to_owned(), step.clone(), of_producer.clone()].into_iter().chain(numbered);
    let is_own = |name: &String| {
        let have = state.files.get(name);
        have.is_none_or(|have| have.producer == producer && have.step == entry.step.name)
    };
    let mut names = stems.map(|stem| format!("{stem}.{suffix}"));
    names.find(is_own).unwrap_or_else(|| format!("{of_producer}.{suffix}"))
}
