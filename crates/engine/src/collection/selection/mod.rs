//! The positions of a query's hits in the objects of a collection: to be counted, shared out, sent, and read at.
//!
//! Each object has rows of its own, so that a hit is an object and a position in its rows. Hits have numbers: they come by
//! source, object and position.

mod read;
mod wire;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use sieva_plan::Plan;
use sieva_types::{Error, ErrorKind, Result, Selection};

use super::Collection;
use super::keys::Class;
use super::objects::{Pinned, SourceObjects};
use super::query::{CollectionQuery, Known};
use crate::query::QueryOptions;

/// Hits of a query of a collection, or some of them that follow one another. Cheap to clone.
///
/// ```no_run
/// # fn main() -> sieva::Result<()> {
/// let stars = sieva::Collection::open("boss.sqlite", "h5boss", &sieva::OpenOptions::default())?;
/// let query = stars.sql("SELECT flux WHERE plate > 4000 AND flux > 20", &sieva::QueryOptions::default())?;
/// let hits = query.selection()?;
/// for object in hits.objects() {
///     println!("{} {}: {} hits", object.source, object.path, object.found.len());
/// }
/// let half = hits.part(0, hits.len() / 2);
/// half.read("ivar", 0..half.len(), &Default::default(), |column| {
///     println!("{} values", column.len());
///     Ok(())
/// })?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CollectionSelection {
    all: Arc<All>,
    /// The numbers of its hits among all of these.
    hits: Range<u64>,
}

/// All hits that were found.
struct All {
    collection: Collection,
    options: QueryOptions,
    plan: Plan,
    classes: Vec<Class>,
    /// An object that has all arrays.
    example: SourceObjects,
    /// The objects with hits, of sources that are pinned.
    sources: Vec<SourceObjects>,
    /// For each of them its number among all objects of the query, and its hits.
    found: Vec<(u64, Arc<Selection>)>,
    /// For each of them the number of the first hit behind its own.
    ends: Vec<u64>,
    /// The query of these objects, once values were wanted.
    query: OnceLock<CollectionQuery>,
}

/// An object of a selection.
pub struct SelectedObject<'a> {
    /// Its number among all objects of the query.
    pub number: u64,
    /// Location of its source.
    pub source: &'a str,
    /// Its path there.
    pub path: &'a str,
    /// Its hits that are in the selection, as positions of its own rows.
    pub found: Arc<Selection>,
}

impl CollectionQuery {
    /// The positions of its rows, before OFFSET and LIMIT; of groups those of the rows that they are made of.
    ///
    /// # Errors
    /// As [`CollectionQuery::count`]; `memory-limit` where they do not fit.
    pub fn selection(&self) -> Result<CollectionSelection> {
        if let Some(other) = self.planned_otherwise()? {
            // It is read at by its plan.
            return other.selection();
        }
        let mut made = Made::default();
        match self.known() {
            Known::Rows(rows) => {
                let mut known: Vec<_> =
                    rows.iter().map(|(&n, found)| (n as u64, Arc::clone(found))).collect();
                known.sort_unstable_by_key(|(n, _)| *n);
                let pins = self.found().iter().map(|s| s.pinned.clone()).collect();
                made.add_all(known, self)?;
                made.finish(self, pins)
            }
            Known::Nothing | Known::Count(_) => {
                let (mut number, mut pins) = (0, vec![None; self.found().len()]);
                let places = places(self.found());
                self.pin_each(&mut |found| {
                    if let Some((state, found)) = found {
                        let source: usize = places.partition_point(|&end| end <= number);
                        pins[source].get_or_insert(Pinned { state, content: None, manifest: None });
                        made.add((number, found), self)?;
                    }
                    number += 1;
                    Ok(())
                })?;
                made.finish(self, pins)
            }
        }
    }
}

/// For each source the number of the first object behind its own.
fn places(sources: &[SourceObjects]) -> Vec<u64> {
    let ends = sources.iter().scan(0, |end, s| {
        *end += s.objects.len() as u64;
        Some(*end)
    });
    ends.collect()
}

/// A selection that is being made.
#[derive(Default)]
struct Made {
    found: Vec<(u64, Arc<Selection>)>,
    bytes: u64,
}

impl Made {
    fn add_all(&mut self, all: Vec<(u64, Arc<Selection>)>, query: &CollectionQuery) -> Result<()> {
        all.into_iter().try_for_each(|one| self.add(one, query))
    }

    /// Adds the hits of an object, if it has any.
    fn add(&mut self, (number, found): (u64, Arc<Selection>), query: &CollectionQuery) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(found.memory_bytes());
        self.found.push((number, found));
        let limit = query.memory();
        if self.bytes <= limit {
            return Ok(());
        }
        let (bytes, n) = (self.bytes, self.found.len());
        let message = format!("the positions of {n} objects take {bytes} bytes, the limit is {limit}");
        Err(Error::new(ErrorKind::MemoryLimit, message)
            .hint("ask for the count or for groups, or allow more memory"))
    }

    /// Keeps the objects with hits, of sources in these states.
    fn finish(self, query: &CollectionQuery, pins: Vec<Option<Pinned>>) -> Result<CollectionSelection> {
        let (mut sources, mut found) = (Vec::new(), self.found.iter().peekable());
        let mut before = 0;
        for (source, pinned) in query.found().iter().zip(pins) {
            let end = before + source.objects.len() as u64;
            let mut objects = Vec::new();
            while let Some((number, _)) = found.next_if(|(number, _)| *number < end) {
                objects.push(source.objects[(number - before) as usize].clone());
            }
            if !objects.is_empty() {
                sources.push(SourceObjects { location: source.location.clone(), objects, pinned });
            }
            before = end;
        }
        let (collection, options) = (query.collection().clone(), query.options().clone());
        let (plan, classes, example) =
            (query.logical_plan()?, query.classes().to_vec(), query.example().clone());
        Ok(CollectionSelection::of(All {
            collection,
            options,
            plan,
            classes,
            example,
            sources,
            ends: ends(&self.found),
            found: self.found,
            query: OnceLock::new(),
        }))
    }
}

fn ends(found: &[(u64, Arc<Selection>)]) -> Vec<u64> {
    let ends = found.iter().scan(0_u64, |end, (_, found)| {
        *end = end.saturating_add(found.len());
        Some(*end)
    });
    ends.collect()
}

impl CollectionSelection {
    fn of(all: All) -> Self {
        let hits = 0..all.ends.last().copied().unwrap_or(0);
        Self { all: Arc::new(all), hits }
    }

    /// The number of hits.
    pub fn len(&self) -> u64 {
        self.hits.end - self.hits.start
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.hits.is_empty()
    }

    /// The hits from number `first` on, at most `count` of them.
    #[must_use]
    pub fn part(&self, first: u64, count: u64) -> Self {
        let start = self.hits.start.saturating_add(first).min(self.hits.end);
        Self { all: Arc::clone(&self.all), hits: start..start.saturating_add(count).min(self.hits.end) }
    }

    /// Its objects, in their order.
    pub fn objects(&self) -> impl Iterator<Item = SelectedObject<'_>> {
        let named = self.all.sources.iter().flat_map(|s| s.objects.iter().map(move |o| (s, o)));
        let (first, last) = self.places();
        let parts = self.parts();
        let own = named.zip(&self.all.found).skip(first).take(last - first).zip(parts);
        own.map(|(((source, object), (number, _)), found)| SelectedObject {
            number: *number,
            source: &source.location,
            path: &object.group,
            found,
        })
    }

    /// How many objects it has hits in.
    pub fn object_count(&self) -> usize {
        let (first, last) = self.places();
        last - first
    }

    /// The first of its objects among all, and the one behind its last.
    fn places(&self) -> (usize, usize) {
        if self.is_empty() {
            return (0, 0);
        }
        let of = |hit: u64| self.all.ends.partition_point(|&end| end <= hit);
        (of(self.hits.start), of(self.hits.end - 1) + 1)
    }

    /// Its hits in each of its objects.
    fn parts(&self) -> impl Iterator<Item = Arc<Selection>> + '_ {
        let (first, last) = self.places();
        (first..last).map(|n| {
            let found = &self.all.found[n].1;
            let start = self.all.ends[n] - found.len();
            let (from, upto) = (self.hits.start.max(start), self.hits.end.min(self.all.ends[n]));
            match upto - from == found.len() {
                true => Arc::clone(found),
                false => Arc::new(found.slice(from - start, upto - from)),
            }
        })
    }

    /// Positions of the hits from number `first` on, each in the rows of its object.
    pub fn positions(&self, first: u64) -> impl Iterator<Item = u64> + '_ {
        let rest = self.part(first, u64::MAX);
        let parts: Vec<Arc<Selection>> = rest.parts().collect();
        parts.into_iter().flat_map(|part| {
            let all: Vec<u64> = part.iter_from(0).collect();
            all
        })
    }

    /// What reads its values, and what that is run with.
    pub fn options(&self) -> &QueryOptions {
        &self.all.options
    }

    /// The collection that it is of.
    pub fn collection(&self) -> &Collection {
        &self.all.collection
    }
}
