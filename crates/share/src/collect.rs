//! What a producer put for a member, and its end: taken, withdrawn, expired, or nobody is there for it.
//!
//! An index is shortened before what it named is deleted, and what is made is put before an index names it: at every
//! moment all that an index names is there. What was put and is named by no index is found by the next listing.

use std::collections::{BTreeMap, BTreeSet};

use sieva::{ErrorKind, Result};

use crate::at_once;
use crate::clock::{millis, now};
use crate::group::Group;
use crate::names;
use crate::ranges::Ranges;
use crate::record::{self, Answers, Ask, Entry, Failure, IndexRecord, TakenRecord, VERSION, WITH_RANGES};
use crate::zones;

/// Bytes of an index beyond which nothing more is made for a member, until something was taken.
const MOST_WAITING: usize = 48 << 20;
/// Bytes of an index beyond which nothing is added: less than a record of the group may have.
const MOST_INDEX: usize = 60 << 20;

/// A member, as a producer sees it.
pub(crate) struct Member {
    pub user: String,
    pub asks: Vec<Ask>,
    pub index: IndexRecord,
    /// Whether the index differs from the one that is put.
    changed: bool,
    /// Bytes of the index, about.
    size: usize,
}

/// The steps of a producer, by their numbers.
pub(crate) struct Numbers {
    /// Of the producer's record.
    pub numbering: u64,
    /// Those that are complete.
    pub ready: Vec<u64>,
}

impl Member {
    /// What is known of a member, without what is over: taken, withdrawn, expired; `None` for who is none.
    ///
    /// # Errors
    /// Those of the store, and of records that are wrong.
    pub fn of(group: &Group, producer: &str, user: &str, steps: &Numbers) -> Result<Option<Self>> {
        let Some(record) = group.member(user)? else { return Ok(None) };
        let there = match group.index(user, producer) {
            // Nobody else writes it: it is made anew.
            Err(e) if e.kind() == ErrorKind::CorruptFile => None,
            there => there?,
        };
        let is_new = there.is_none();
        let mut index = there.clone().unwrap_or_else(|| IndexRecord {
            version: VERSION,
            numbering: steps.numbering,
            epoch: millis(),
            ..IndexRecord::default()
        });
        let is_renumbered = index.numbering != steps.numbering;
        index.numbering = steps.numbering;
        let mut known = std::mem::take(&mut index.asks);
        for ask in &record.asks {
            // Another question by the same name has nothing yet.
            let there = known.remove(&ask.name).filter(|answers| answers.ask_id == ask.id());
            let mut answers = there.unwrap_or_else(|| begin(&mut index.epoch, ask, &steps.ready));
            if is_renumbered {
                answers.served = had(ask, &steps.ready);
            }
            index.asks.insert(ask.name.clone(), answers);
        }
        prune(&mut index.asks, producer, &group.taken(user)?, group.expires);
        let changed = if is_new { !index.asks.is_empty() } else { there.as_ref() != Some(&index) };
        let size = record::bytes(&index)?.len();
        Ok(Some(Self { user: user.to_owned(), asks: record.asks, index, changed, size }))
    }

    /// Whether one of its asks has nothing of a step yet.
    pub fn wants(&self, ask: usize, step: u64) -> bool {
        let answers = self.asks.get(ask).and_then(|ask| self.index.asks.get(&ask.name));
        !self.is_full() && answers.is_some_and(|answers| !answers.served.contains(step))
    }

    /// Whether so much waits for it that nothing is added.
    pub fn is_full(&self) -> bool {
        self.size > MOST_WAITING
    }

    /// Adds what was made of a step for an ask, in place of what an earlier state of the file gave; false where there is no room.
    ///
    /// # Errors
    /// `internal` for what is no JSON.
    pub fn add(&mut self, ask: usize, number: u64, mut entry: Entry) -> Result<bool> {
        let size = self.size.saturating_add(entry.size()?);
        let answers = self.asks.get(ask).and_then(|ask| self.index.asks.get_mut(&ask.name));
        let Some(answers) = answers.filter(|_| size <= MOST_INDEX) else { return Ok(false) };
        entry.serial = answers.next;
        answers.next = answers.next.saturating_add(1);
        answers.served.insert(number);
        // Nothing else is stopped, but for the whole pass, of which nothing is told.
        let stopped = |failure: &Failure| failure.code == ErrorKind::Cancelled.code();
        answers.slow = entry.failure.as_ref().is_some_and(stopped);
        answers.entries.retain(|old| old.step.name != entry.step.name);
        if entry.object.as_ref().is_some_and(|object| !object.ranges.is_empty()) {
            self.index.version = WITH_RANGES;
        }
        answers.entries.push(entry);
        (self.size, self.changed) = (size, true);
        Ok(true)
    }

    /// Whether the last answer to an ask took longer than one may.
    pub fn is_slow(&self, ask: usize) -> bool {
        let answers = self.asks.get(ask).and_then(|ask| self.index.asks.get(&ask.name));
        answers.is_some_and(|answers| answers.slow)
    }

    /// Whether the index differs from the one that is put.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// Puts the index.
    pub fn write(&self, group: &Group, producer: &str) -> Result<()> {
        record::write(&*group.objects, &names::index(&self.user, producer), &self.index)
    }

    /// Notes that it is put.
    pub fn written(&mut self) {
        self.changed = false;
    }
}

/// The answers to a new question. Serials that begin anew are of another epoch, whatever the clock says.
fn begin(epoch: &mut u64, ask: &Ask, ready: &[u64]) -> Answers {
    *epoch = epoch.saturating_add(1).max(millis());
    Answers { epoch: *epoch, ask_id: ask.id(), served: had(ask, ready), ..Answers::default() }
}

/// The steps that a new question leaves out: who wants new ones alone has had what is there.
fn had(ask: &Ask, ready: &[u64]) -> Ranges {
    let mut served = Ranges::default();
    ready.iter().filter(|_| ask.only_new).for_each(|&step| served.insert(step));
    served
}

/// Drops what was taken and what expired.
fn prune(asks: &mut BTreeMap<String, Answers>, producer: &str, taken: &TakenRecord, expires: Option<u64>) {
    let oldest = expires.map_or(0, |after| now().saturating_sub(after));
    for (name, answers) in asks {
        let through = answers.through(producer, taken.through(name));
        answers.entries.retain(|e| e.serial >= through && e.made >= oldest);
    }
}

/// Deletes the results of a producer that none of the indexes names; says how many.
pub(crate) fn sweep<'i>(
    group: &Group,
    producer: &str,
    indexes: impl Iterator<Item = &'i IndexRecord>,
) -> Result<u64> {
    let named: BTreeSet<&str> = indexes.flat_map(IndexRecord::keys).collect();
    let mut over = group.objects.list(&names::data(producer))?;
    // What lies beside a result goes with it.
    over.retain(|listed| !named.contains(zones::carrier(&listed.key)));
    at_once::map(group.objects.at_once(), &over, |listed| group.objects.delete(&listed.key))?;
    // What cannot be tidied is another's, and in nobody's way.
    let _ = group.objects.tidy("");
    Ok(over.iter().filter(|listed| !zones::is_beside(&listed.key)).count() as u64)
}
