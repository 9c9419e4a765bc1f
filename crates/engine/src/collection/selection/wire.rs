//! Selections of collections as bytes, framed as tasks are (docs/reference/tasks.md).

use std::sync::{Arc, OnceLock};

use sieva_plan::Plan;
use sieva_types::wire::{Reader, Subject, Writer};
use sieva_types::{Error, ErrorKind, Result, Selection};

use super::super::Collection;
use super::super::objects::SourceObjects;
use super::super::tasks::wire::{read_class, read_source, write_classes, write_source};
use super::{All, CollectionSelection, ends};
use crate::frame::{framed, opened};
use crate::query::QueryOptions;
use crate::tasks::wire::PARTIAL_MEMORY;

const SELECTION: [u8; 4] = *b"SVCS";
const SUBJECT: Subject = Subject {
    name: "selection of a collection",
    kind: ErrorKind::CorruptFile,
    hint: "send it again: what it was sent through has changed or cut it off",
};

impl CollectionSelection {
    /// Its hits as bytes, with the objects that they lie in. The plan that they answer has to be sent beside them.
    ///
    /// # Errors
    /// As [`Plan::id`]; `invalid-value` for dimensions with names of more than 64 KiB.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.bytes_of(self.own_sources())
    }

    /// The same with what opening the sources needs, as of [`CollectionQuery::carrying`](super::CollectionQuery::carrying).
    ///
    /// # Errors
    /// As [`CollectionSelection::to_bytes`]; those of the catalog.
    pub fn to_bytes_carrying(&self) -> Result<Vec<u8>> {
        let mut sources = self.own_sources();
        self.all.collection.carry(&mut sources)?;
        self.bytes_of(sources)
    }

    fn bytes_of(&self, sources: Vec<SourceObjects>) -> Result<Vec<u8>> {
        let mut w = Writer::default();
        w.text(&self.all.plan.id()?);
        write_classes(&mut w, &self.all.classes);
        write_source(&mut w, &self.all.example);
        w.list(&sources, write_source);
        for object in self.objects() {
            let mut bytes = Vec::new();
            object.found.write_to(&mut bytes)?;
            w.uint(object.number);
            w.blob(&bytes);
        }
        Ok(framed(SELECTION, w))
    }

    /// Its sources, with the objects that it has hits in.
    fn own_sources(&self) -> Vec<SourceObjects> {
        let ((first, last), mut before, mut own) = (self.places(), 0, Vec::new());
        for source in &self.all.sources {
            let n = source.objects.len();
            let within = |place: usize| place.saturating_sub(before).min(n);
            let objects = source.objects[within(first)..within(last)].to_vec();
            before += n;
            if !objects.is_empty() {
                let (location, pinned) = (source.location.clone(), source.pinned.clone());
                own.push(SourceObjects { location, objects, pinned });
            }
        }
        own
    }

    /// The selection that [`CollectionSelection::to_bytes`] wrote, of the rows of a plan of a collection. Values are read with
    /// `options`. It may take 1 GiB.
    ///
    /// # Errors
    /// `corrupt-file` for bytes that are no selection of a collection, damaged, or of another version; `invalid-value` for one of
    /// another plan.
    pub fn from_bytes(
        collection: &Collection,
        plan: &Plan,
        bytes: &[u8],
        options: &QueryOptions,
    ) -> Result<Self> {
        let mut r = opened(SELECTION, "SVCS", &SUBJECT, bytes, PARTIAL_MEMORY)?;
        if r.text()? != plan.id()? {
            let message = "the selection is of another query of the collection";
            return Err(Error::new(ErrorKind::InvalidValue, message)
                .hint("give a query of the plan of the one that made it"));
        }
        let classes = r.list(read_class)?;
        let example = read_source(&mut r, &classes)?;
        let sources = r.list(|r| read_source(r, &classes))?;
        let objects: usize = sources.iter().map(|s: &SourceObjects| s.objects.len()).sum();
        let found = read_found(&mut r, objects)?;
        r.finish()?;
        Ok(Self::of(All {
            collection: collection.clone(),
            options: options.clone(),
            plan: plan.clone(),
            classes,
            example,
            sources,
            ends: ends(&found),
            found,
            query: OnceLock::new(),
        }))
    }
}

/// The hits of so many objects, each with its number.
fn read_found(r: &mut Reader<'_>, objects: usize) -> Result<Vec<(u64, Arc<Selection>)>> {
    let mut all: Vec<(u64, Arc<Selection>)> = Vec::new();
    for _ in 0..objects {
        let (number, mut left) = (r.uint()?, r.blob()?);
        let found = Selection::read_from(&mut left).map_err(|e| r.damaged(e.message()))?;
        if found.is_empty() || !left.is_empty() || all.last().is_some_and(|(last, _)| *last >= number) {
            return Err(r.damaged(format!("{found:?} of object {number}")));
        }
        r.charge(usize::try_from(found.memory_bytes()).unwrap_or(usize::MAX))?;
        all.push((number, Arc::new(found)));
    }
    if all.iter().try_fold(0_u64, |n, (_, found)| n.checked_add(found.len())).is_none() {
        return Err(r.damaged("more hits than can be counted"));
    }
    Ok(all)
}
