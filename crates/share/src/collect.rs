//! What a producer put for a consumer, and its end: taken, withdrawn, expired, or nobody is there for it.
//!
//! An index is shortened before what it named is deleted, and what is made is put before an index names it: at every
//! moment all that an index names is there. What was put and is named by no index is found by the next listing.

use std::collections::BTreeSet;

use sieva::{ErrorKind, Result};

use crate::at_once;
use crate::clock::{millis, now};
use crate::group::Group;
use crate::names;
use crate::record::{self, Ask, Entry, IndexRecord, Step, VERSION};

/// An ask, as a producer sees it.
pub(crate) struct Consumer {
    pub user: String,
    pub ask: Ask,
    pub index: IndexRecord,
    /// Whether the index differs from the one that is put.
    changed: bool,
}

impl Consumer {
    /// What is known of an ask; `None` where it is withdrawn, or of no member.
    pub fn of(group: &Group, producer: &str, user: &str, ask: &str, steps: &[Step]) -> Result<Option<Self>> {
        let Some(ask) = group.asked(user, ask)? else { return Ok(None) };
        let there = match group.index(user, &ask.name, producer) {
            // Nobody else writes it: it is made anew.
            Err(e) if e.kind() == ErrorKind::CorruptFile => None,
            there => there?,
        };
        // Serials that begin anew are of another epoch, whatever the clock says.
        let epoch = there.as_ref().map_or(0, |index| index.epoch.saturating_add(1)).max(millis());
        // Another question by the same name has nothing yet.
        let there = there.filter(|index| index.ask_id == ask.id());
        let changed = there.is_none();
        let index = there.unwrap_or_else(|| {
            // Who wants new steps alone has had what is there.
            let had = steps.iter().filter(|_| ask.only_new).map(|step| step.id.clone());
            IndexRecord {
                version: VERSION,
                epoch,
                ask_id: ask.id(),
                served: had.collect(),
                ..IndexRecord::default()
            }
        });
        Ok(Some(Self { user: user.to_owned(), ask, index, changed }))
    }

    /// Drops what is over: what was taken, what expired, and the memory of steps that are gone.
    pub fn prune(&mut self, group: &Group, producer: &str, steps: &BTreeSet<&str>) -> Result<()> {
        let through = self.index.through(producer, &group.taken(&self.user, &self.ask.name)?.through);
        let oldest = group.expires.map_or(0, |after| now().saturating_sub(after));
        let before = (self.index.entries.len(), self.index.served.len());
        self.index.entries.retain(|e| e.serial >= through && e.made >= oldest);
        // None at all is a directory that is not mounted, rather than one without files.
        self.index.served.retain(|step| steps.is_empty() || steps.contains(step.as_str()));
        self.changed |= before != (self.index.entries.len(), self.index.served.len());
        Ok(())
    }

    /// Whether it has nothing of a step yet.
    pub fn wants(&self, step: &Step) -> bool {
        !self.index.served.contains(&step.id)
    }

    /// Adds what was made of a step, in place of what an earlier state of the file gave.
    pub fn add(&mut self, mut entry: Entry) {
        entry.serial = self.index.next;
        self.index.next = self.index.next.saturating_add(1);
        self.index.served.insert(entry.step.id.clone());
        self.index.entries.retain(|old| old.step.name != entry.step.name);
        self.index.entries.push(entry);
        self.changed = true;
    }

    /// Whether the index differs from the one that is put.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// Puts the index.
    pub fn write(&self, group: &Group, producer: &str) -> Result<()> {
        record::write(&*group.objects, &names::index(&self.user, &self.ask.name, producer), &self.index)
    }

    /// Notes that it is put.
    pub fn written(&mut self) {
        self.changed = false;
    }
}

/// Deletes the results of a producer that none of the indexes names; says how many.
pub(crate) fn sweep<'i>(
    group: &Group,
    producer: &str,
    indexes: impl Iterator<Item = &'i IndexRecord>,
) -> Result<u64> {
    let entries = indexes.flat_map(|index| &index.entries);
    let named: BTreeSet<&str> = entries.filter_map(|e| Some(e.object.as_ref()?.key.as_str())).collect();
    let mut over = group.objects.list(&names::data(producer))?;
    over.retain(|listed| !named.contains(listed.key.as_str()));
    at_once::map(group.objects.at_once(), &over, |listed| group.objects.delete(&listed.key))?;
    // What cannot be tidied is another's, and in nobody's way.
    let _ = group.objects.tidy("");
    Ok(over.len() as u64)
}
