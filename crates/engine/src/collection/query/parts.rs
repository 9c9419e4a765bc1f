//! What tasks need of a query of a collection: its objects, given or found, and what each of them gives.

use std::collections::HashMap;

use sieva_types::Selection;

use super::*;

/// The objects of a query, and what is known of them.
pub(in crate::collection) struct Given {
    pub sources: Vec<SourceObjects>,
    /// Types of the keys whose values the objects have.
    pub classes: Vec<Class>,
    /// An object that has all arrays, in case that none of these has.
    pub example: Option<SourceObjects>,
    pub known: Known,
}

/// The hits in an object, with the state of its source as far as that is known without reading.
type PinnedHits = ([u64; 2], Arc<Selection>);

/// What was found of a query elsewhere.
pub(in crate::collection) enum Known {
    Nothing,
    /// The number of its rows, before OFFSET and LIMIT.
    Count(u64),
    /// The positions in the objects that have all arrays, by their numbers.
    Rows(HashMap<usize, Arc<Selection>>),
}

impl Given {
    /// What the catalog leaves.
    pub(super) fn found(collection: &Collection, shape: &Shape) -> Result<Self> {
        let find = Find::new(shape.filter.clone()).collection(collection.name());
        let sources = objects::find(collection.catalog()?, find, shape)?;
        let class = |(i, key): (usize, &String)| match class_of(&sources, i, key)? {
            Some(class) => Ok(class),
            None => class_elsewhere(collection, shape, (i, key)),
        };
        let classes = shape.keys.iter().enumerate().map(class).collect::<Result<Vec<_>>>()?;
        Ok(Self { sources, classes, example: None, known: Known::Nothing })
    }
}

/// The type of a key that none of a query's objects has: that of others of the collection, a number where none has it or
/// they differ.
fn class_elsewhere(collection: &Collection, shape: &Shape, (number, key): (usize, &str)) -> Result<Class> {
    let any = Find::new(Filter::Exists(key.to_owned())).collection(collection.name()).limit(TRIED);
    let others = objects::find(collection.catalog()?, any, shape)?;
    Ok(class_of(&others, number, key).ok().flatten().unwrap_or(Class::Float))
}

impl Collection {
    /// The query of a plan of this collection, of given objects; no catalog is asked.
    pub(in crate::collection) fn query_given(
        &self,
        plan: &Plan,
        options: &QueryOptions,
        given: Given,
    ) -> Result<CollectionQuery> {
        CollectionQuery::made(self, &Names::of_plan(), self.select_of(plan)?, options, Some(given))
    }
}

impl CollectionQuery {
    /// The same query of given objects.
    pub(in crate::collection) fn given(&self, given: Given, options: &QueryOptions) -> Result<Self> {
        let Inner { collection, select, .. } = &*self.inner;
        let names = collection.names()?;
        let made = Self::made(collection, &names, select.clone(), options, Some(given))?;
        if let Some(known) = self.inner.listing.get() {
            let _ = made.inner.listing.set(Arc::clone(known));
        }
        Ok(made)
    }

    /// The query of its plan in its one form, where that has other keys, arrays, conditions or aggregates: a condition that
    /// folds (`flux IN ()`) leaves no names, and is answered by the catalog; two names of an aggregate (avg, mean) are one;
    /// parts of HAVING stand in another order, and so do the aggregates in it. Tasks are run by their plans, so that they
    /// are made of them, too: whoever runs one takes it that its objects satisfy the conditions on keys.
    pub(in crate::collection) fn planned_otherwise(&self) -> Result<Option<Self>> {
        let Inner { collection, options, shape: own, .. } = &*self.inner;
        let plan = self.logical_plan()?;
        let other = Shape::of(&collection.names()?, &collection.select_of(&plan)?)?;
        let pushed = |shape: &Shape| plan::pushed_of(collection.name(), shape, options);
        let groups = |shape: &Shape| (shape.by.clone(), shape.calls.clone());
        let are_same = other.rest.is_some() == own.rest.is_some()
            && (&other.keys, &other.arrays) == (&own.keys, &own.arrays)
            && pushed(&other)?.canonical() == pushed(own)?.canonical();
        if are_same && groups(&other) == groups(own) {
            return Ok(None);
        }
        collection.query_plan(&plan, options).map(Some)
    }

    /// The same query, run with other options. What was found of it is not known to it.
    ///
    /// # Errors
    /// As [`Collection::sql`].
    pub fn run_with(&self, options: &QueryOptions) -> Result<Self> {
        let Inner { sources, classes, example, .. } = &*self.inner;
        let (sources, classes) = (sources.clone(), classes.clone());
        let given = Given { sources, classes, example: Some(example.clone()), known: Known::Nothing };
        self.given(given, options)
    }

    /// The number of threads that it is run with.
    pub fn threads(&self) -> usize {
        self.inner.threads()
    }

    /// What it is run with.
    pub(in crate::collection) fn options(&self) -> &QueryOptions {
        &self.inner.options
    }

    /// The collection that it is of.
    pub fn collection(&self) -> &Collection {
        &self.inner.collection
    }

    /// An object that has all its arrays.
    pub(in crate::collection) fn example(&self) -> &SourceObjects {
        &self.inner.example
    }

    /// Whether LIMIT may want no row behind one whose value cannot be represented.
    pub(in crate::collection) fn may_end_early(&self) -> bool {
        self.inner.shape.limit.is_some() && !self.inner.shape.grouped
    }

    /// What was found of it elsewhere.
    pub(in crate::collection) fn known(&self) -> &Known {
        &self.inner.known
    }

    /// The whole query, bound to one object.
    pub(in crate::collection) fn template(&self) -> &Query {
        &self.inner.template
    }

    /// Its objects, by source.
    pub(in crate::collection) fn found(&self) -> &[SourceObjects] {
        &self.inner.sources
    }

    /// Types of the keys whose values its objects have.
    pub(in crate::collection) fn classes(&self) -> &[Class] {
        &self.inner.classes
    }

    /// Paths of its arrays within an object.
    pub(in crate::collection) fn arrays(&self) -> &[String] {
        &self.inner.shape.arrays
    }

    /// Bytes that what is found of it may take.
    pub fn memory(&self) -> u64 {
        self.inner.memory()
    }

    pub(in crate::collection) fn setting(&self) -> Setting<'_> {
        self.inner.setting(&self.cancel)
    }

    /// What `list` tells of its objects, which is kept.
    pub(in crate::collection) fn listed_by(
        &self,
        list: impl FnOnce() -> Result<Listing>,
    ) -> Result<Arc<Listing>> {
        if let Some(known) = self.inner.listing.get() {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(list()?);
        Ok(Arc::clone(self.inner.listing.get_or_init(|| made)))
    }

    /// Hands on the number of rows of each object, and how many of them are hits; `None` of one that lacks an array.
    pub(in crate::collection) fn count_each(
        &self,
        take: &mut dyn FnMut(Option<(u64, u64)>) -> Result<()>,
    ) -> Result<()> {
        let options = self.inner.object_options(&self.cancel);
        let work = |at: At<'_>| {
            let Some(query) = self.inner.query_at(at, &options)? else { return Ok(None) };
            Ok(Some((query.bound().rows.len(), query.count()?)))
        };
        self.inner.each_found(&self.cancel, &work, take)
    }

    /// The same with the positions of the hits.
    pub(in crate::collection) fn select_each(
        &self,
        take: &mut dyn FnMut(Option<(u64, Arc<Selection>)>) -> Result<()>,
    ) -> Result<()> {
        let options = self.inner.object_options(&self.cancel);
        let work = |at: At<'_>| {
            let Some(query) = self.inner.query_at(at, &options)? else { return Ok(None) };
            Ok(Some((query.bound().rows.len(), query.selection()?)))
        };
        self.inner.each_found(&self.cancel, &work, take)
    }

    /// The positions of the hits in each object that has all arrays, with the state of its source as far as that is known
    /// without reading; `None` of one that lacks an array.
    pub(in crate::collection) fn pin_each(
        &self,
        take: &mut dyn FnMut(Option<PinnedHits>) -> Result<()>,
    ) -> Result<()> {
        let options = self.inner.object_options(&self.cancel);
        let work = |at: At<'_>| {
            let Some(query) = self.inner.query_at(at, &options)? else { return Ok(None) };
            Ok(Some((opener::state_unread(at.source)?, query.selection()?)))
        };
        self.inner.each_found(&self.cancel, &work, take)
    }

    /// The groups of all objects before HAVING; `note` is told how many rows each has, `None` of one that lacks an array.
    pub(in crate::collection) fn gather(
        &self,
        note: &mut dyn FnMut(Option<u64>) -> Result<()>,
    ) -> Result<Groups> {
        self.inner.gather(&self.cancel, note)
    }

    /// Finishes groups that were put together elsewhere: they are those of all objects.
    pub(in crate::collection) fn set_groups(&self, groups: Groups) -> Result<()> {
        let template = &self.inner.template;
        template.set_groups(finish_groups(template.execution()?, groups)?);
        *self.inner.grouped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        Ok(())
    }

    /// Notes what others evaluated of it.
    pub(in crate::collection) fn note_seen(&self, evaluated: u64, lacking: u64) {
        let mut stats = self.inner.lock_stats();
        (stats.evaluated, stats.lacking) = (evaluated, lacking);
    }
}
