//! What was published: whole files and results under names that people read, for those who have no sieva.
//!
//! Who publishes is the one who writes: an object and its record are named by the user. The record comes first and names all
//! that the object may hold, what is there and what will be; so a reader always knows the bytes that it gets, and an object
//! without a record cannot be. What is over is marked in the record, deleted, and its record after it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sieva::{Error, ErrorKind, Result, printable};
use sieva_store::objects::Body;

use crate::at_once;
use crate::clock::now;
use crate::group::Group;
use crate::lock::{self, Lock};
use crate::made::{PIECE, digest};
use crate::names;
use crate::record::{self, VERSION};
use crate::zones::{self, ZoneMaps};

/// Of one record: who is killed again and again while it publishes begins each with another state.
const MOST_STATES: usize = 16;
/// Seconds after which what is over is deleted by others than who published it: nobody publishes it anew at that moment.
const GRACE: u64 = 3600;

/// A state of a published object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedState {
    /// Its bytes.
    pub size: u64,
    /// Of these bytes, XXH3 of 128 bits in 32 hexadecimal digits.
    pub checksum: String,
    /// Seconds since 1970.
    pub made: u64,
    /// Seconds since 1970 at which it is over; none: never.
    pub until: Option<u64>,
    /// The question that it is the result of; none: a file as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// Rows of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Files of zone maps that may lie beside it: its own and, while it is put, those of what was there before.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub zone_maps: BTreeSet<String>,
}

impl PublishedState {
    fn is_over(&self, at: u64) -> bool {
        self.until.is_some_and(|until| until <= at)
    }
}

/// What is known of a published object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublishedRecord {
    pub version: u32,
    /// What it may hold, the newest last: one, but while it is put.
    pub states: Vec<PublishedState>,
}
record::record!(PublishedRecord, "what is published", 8 << 20, PublishedRecord::fault_of);

impl PublishedRecord {
    fn fault_of(&self) -> Option<String> {
        let count = self.states.len();
        if count == 0 || count > MOST_STATES {
            return Some(format!("{count} states, of 1 to {MOST_STATES}"));
        }
        let wrong = self.states.iter().find(|state| i64::try_from(state.size).is_err());
        wrong.map(|state| format!("{} bytes cannot be", state.size))
    }

    /// Whether it is over: what was put last decides.
    fn is_over(&self, at: u64) -> bool {
        self.states.last().is_some_and(|state| state.is_over(at))
    }
}

/// A published object, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Published {
    /// Who published it.
    pub user: String,
    /// Its name.
    pub name: String,
    /// Where it is: its path or address.
    pub location: String,
    /// What it holds, or will.
    #[serde(flatten)]
    pub state: PublishedState,
    /// False while it is put, and where whoever put it was stopped.
    pub complete: bool,
}

/// User, name and record; what is wrong with that is in its place.
type Listed = (String, String, Result<Option<PublishedRecord>>);

/// How something is published.
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// How long it is kept; `None`: until it is taken back.
    pub keep: Option<Duration>,
    /// Bytes from which on a file carries zone maps, if it is one of HDF5, netCDF or FITS; `None`: none does.
    pub zone_maps_from: Option<u64>,
    /// Stops it when it is set.
    pub cancel: Arc<AtomicBool>,
}

impl Default for PublishOptions {
    fn default() -> Self {
        Self { keep: None, zone_maps_from: Some(zones::FROM), cancel: Arc::default() }
    }
}

/// What is put, and what is said of it.
pub(crate) struct Publishing<'b> {
    pub body: &'b dyn Body,
    pub checksum: String,
    pub sql: Option<String>,
    pub rows: Option<u64>,
    pub zone_maps: Option<&'b ZoneMaps>,
}

impl Group {
    /// Puts bytes under a name of a user, in place of what is there.
    pub(crate) fn put_published(
        &self,
        user: &str,
        name: &str,
        new: Publishing<'_>,
        options: &PublishOptions,
    ) -> Result<Published> {
        let keep = options.keep.map(|keep| keep.as_secs());
        if keep == Some(0) {
            return Err(Error::new(ErrorKind::InvalidValue, format!("'{name}' kept for 0 s"))
                .hint("keep it for a second or longer, or leave the limit out"));
        }
        let _alone = self.lock_published(user)?;
        let made = now();
        let until = keep.map(|keep| made.saturating_add(keep));
        let size = new.body.size();
        let zone_maps = new.zone_maps.map(ZoneMaps::names).unwrap_or_default();
        let (checksum, sql, rows) = (new.checksum, new.sql, new.rows);
        let mut state = PublishedState { size, checksum, made, until, sql, rows, zone_maps };
        let key = names::published(user, name);
        let mut states = match self.published_record(user, name) {
            // Nobody else writes it: it is made anew.
            Err(e) if e.kind() == ErrorKind::CorruptFile => Vec::new(),
            there => there?.map(|there| there.states).unwrap_or_default(),
        };
        let before: BTreeSet<String> =
            states.iter().flat_map(|old| &old.zone_maps).cloned().chain(state.zone_maps).collect();
        state.zone_maps = before.clone();
        states.retain(|old| old.checksum != state.checksum);
        states.push(state.clone());
        let beyond = states.len().saturating_sub(MOST_STATES);
        states.drain(..beyond);
        record::write(&*self.objects, &key, &PublishedRecord { version: VERSION, states })?;
        let body = Stoppable { body: new.body, cancel: &options.cancel };
        let data = names::published_data(user, name);
        let version = self.objects.put_version(&data, &body)?;
        state.zone_maps = BTreeSet::new();
        // Where the store does not say what it is now, nothing could be told to be of it.
        if let (Some(version), Some(zone_maps)) = (version, new.zone_maps) {
            zone_maps.put(&*self.objects, &data, &version)?;
            state.zone_maps = zone_maps.names();
        }
        for old in before.difference(&state.zone_maps) {
            self.objects.delete(&zones::beside(&data, old))?;
        }
        let record = PublishedRecord { version: VERSION, states: vec![state] };
        record::write(&*self.objects, &key, &record)?;
        self.described(user, name, record)
            .ok_or_else(|| Error::new(ErrorKind::Internal, "what was published has no state"))
    }

    /// Takes back what a user published: it is there no longer.
    ///
    /// # Errors
    /// `file-not-found` where nothing is published by that name; those of the store.
    pub fn unpublish(&self, user: &str, name: &str) -> Result<()> {
        names::check("a user", user)?;
        names::check_object(name)?;
        let _alone = self.lock_published(user)?;
        match self.published_record(user, name) {
            Ok(None) => return Err(self.unpublished(name)?),
            // A wrong record can be deleted all the same.
            Err(e) if !record::is_of_record(&e) => return Err(e),
            _ => {}
        }
        self.end_published(user, name)
    }

    /// What is published and not over, in order of users and names, and what is wrong with records of others.
    ///
    /// # Errors
    /// Those of the store.
    pub fn published(&self) -> Result<(Vec<Published>, Vec<Error>)> {
        let (mut found, mut wrong) = (Vec::new(), Vec::new());
        for (user, name, record) in self.published_records()? {
            match record {
                Ok(Some(record)) if !record.is_over(now()) => {
                    found.extend(self.described(&user, &name, record))
                }
                Err(e) => wrong.push(e),
                _ => {}
            }
        }
        Ok((found, wrong))
    }

    /// Deletes what is over for long, whoever published it; says how many. Where its publisher is at work it is left to that.
    pub(crate) fn sweep_published(&self) -> Result<u64> {
        let mut deleted = 0;
        let oldest = now().saturating_sub(GRACE);
        for (user, name, record) in self.published_records()? {
            let is_over = |record: &PublishedRecord| record.is_over(oldest);
            if !matches!(&record, Ok(Some(record)) if is_over(record)) {
                continue;
            }
            let busy = || Error::new(ErrorKind::InvalidValue, "its publisher is at work");
            let Ok(_alone) = Lock::take(&self.published_lock(&user)?, busy) else { continue };
            // As it is now: it may have been published anew.
            if matches!(self.published_record(&user, &name), Ok(Some(record)) if is_over(&record)) {
                self.end_published(&user, &name)?;
                deleted += 1;
            }
        }
        Ok(deleted)
    }

    /// What is published under a name: of a user, or of the only one who published such a name.
    pub(crate) fn find_published(&self, user: Option<&str>, name: &str) -> Result<(String, PublishedRecord)> {
        names::check_object(name)?;
        let users = match user {
            Some(user) => {
                names::check("a user", user)?;
                vec![user.to_owned()]
            }
            None => {
                let all = self.published_names()?;
                all.into_iter().filter(|(_, other)| other == name).map(|(user, _)| user).collect()
            }
        };
        let mut found = Vec::new();
        for user in users {
            let record = self.published_record(&user, name)?;
            found.extend(record.filter(|record| !record.is_over(now())).map(|record| (user, record)));
        }
        match (found.pop(), found.pop()) {
            (Some(one), None) => Ok(one),
            (None, _) => Err(self.unpublished(name)?),
            (Some((first, _)), Some((second, _))) => {
                let message = format!("'{name}' was published by {second} and {first}");
                Err(Error::new(ErrorKind::InvalidValue, message)
                    .hint(format!("say whose: {second}/{name}, {first}/{name}")))
            }
        }
    }

    fn published_record(&self, user: &str, name: &str) -> Result<Option<PublishedRecord>> {
        record::read(&*self.objects, &names::published(user, name))
    }

    fn published_names(&self) -> Result<Vec<(String, String)>> {
        let listed = self.objects.list(names::PUBLISHED)?;
        Ok(listed.iter().filter_map(|e| names::of_published(&e.key)).collect())
    }

    /// All records.
    fn published_records(&self) -> Result<Vec<Listed>> {
        let listed = self.published_names()?;
        let records = at_once::map(self.objects.at_once(), &listed, |(user, name)| {
            match self.published_record(user, name) {
                Err(e) if !record::is_of_record(&e) => Err(e),
                read => Ok(read),
            }
        })?;
        let named = listed.into_iter().zip(records);
        Ok(named.map(|((user, name), record)| (user, name, record)).collect())
    }

    /// Marks it as over, so that nobody takes it for something that is there, deletes it with what lies beside it, and forgets it.
    fn end_published(&self, user: &str, name: &str) -> Result<()> {
        let (key, data) = (names::published(user, name), names::published_data(user, name));
        let zone_maps: BTreeSet<String> = match self.published_record(user, name) {
            Err(e) if !record::is_of_record(&e) => return Err(e),
            known => known.ok().flatten().into_iter().flat_map(|known| known.states),
        }
        .flat_map(|state| state.zone_maps)
        .collect();
        // Whoever asks a file in a directory may leave there what scans learnt.
        let mut beside: BTreeSet<String> =
            self.objects.list(&zones::beside(&data, ""))?.into_iter().map(|listed| listed.key).collect();
        beside.extend(zone_maps.iter().map(|name| zones::beside(&data, name)));
        let over = PublishedState {
            size: 0,
            checksum: String::new(),
            made: now(),
            until: Some(0),
            sql: None,
            rows: None,
            zone_maps,
        };
        record::write(&*self.objects, &key, &PublishedRecord { version: VERSION, states: vec![over] })?;
        self.objects.delete(&data)?;
        beside.iter().try_for_each(|key| self.objects.delete(key))?;
        self.objects.delete(&key)
    }

    fn described(&self, user: &str, name: &str, mut record: PublishedRecord) -> Option<Published> {
        let complete = record.states.len() == 1;
        let location = self.objects.location(&names::published_data(user, name));
        let state = record.states.pop()?;
        Some(Published { user: user.to_owned(), name: name.to_owned(), location, state, complete })
    }

    /// The error for a name that nothing has.
    fn unpublished(&self, name: &str) -> Result<Error> {
        let message = format!("nothing is published as '{}' at '{}'", printable(name), self.name());
        let known = self.published()?.0;
        let known: Vec<String> = known.iter().take(20).map(|p| format!("{}/{}", p.user, p.name)).collect();
        let hint = match &known[..] {
            [] => "nothing is: sieva share publish PLACE FILE".to_owned(),
            known => format!("there is {}", known.join(", ")),
        };
        Ok(Error::new(ErrorKind::FileNotFound, message).hint(hint))
    }

    fn published_lock(&self, user: &str) -> Result<std::path::PathBuf> {
        lock::path_of(&["published", &self.name(), user])
    }

    /// Waits until no other process of this machine publishes as a user.
    fn lock_published(&self, user: &str) -> Result<Lock> {
        Lock::wait(&self.published_lock(user)?)
    }
}

/// The checksum of a body, read piece by piece.
pub(crate) fn checksum(body: &dyn Body, cancel: &AtomicBool) -> Result<String> {
    let body = Stoppable { body, cancel };
    let size = body.size();
    let mut sum = xxhash_rust::xxh3::Xxh3::new();
    let mut piece = vec![0; PIECE.min(usize::try_from(size).unwrap_or(PIECE))];
    let mut at = 0;
    while at < size {
        let n = usize::try_from(size - at).map_or(piece.len(), |left| left.min(piece.len()));
        body.read_exact_at(at, &mut piece[..n])?;
        sum.update(&piece[..n]);
        at += n as u64;
    }
    Ok(digest(&sum))
}

/// Bytes that are put until somebody stops it.
struct Stoppable<'b> {
    body: &'b dyn Body,
    cancel: &'b AtomicBool,
}

impl Body for Stoppable<'_> {
    fn size(&self) -> u64 {
        self.body.size()
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "publishing was interrupted"));
        }
        self.body.read_exact_at(offset, out)
    }
}
