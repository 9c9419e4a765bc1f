//! Which queries are of one source.

use std::sync::Arc;

use crate::open::Source;
use crate::query::Query;

/// The numbers of the queries of each source, in the order of the first of them.
pub(super) fn same_source(queries: &[&Query]) -> Vec<Vec<usize>> {
    let mut sets: Vec<(&Source, Vec<usize>)> = Vec::new();
    for (number, query) in queries.iter().enumerate() {
        match sets.iter_mut().find(|(known, _)| is_same(known, query.source())) {
            Some((_, set)) => set.push(number),
            None => sets.push((query.source(), vec![number])),
        }
    }
    sets.into_iter().map(|(_, set)| set).collect()
}

/// Whether both are one source: the same reader, or files that are surely in one state and understood in one way.
fn is_same(a: &Source, b: &Source) -> bool {
    Arc::ptr_eq(a.reader(), b.reader())
        || a.path() == b.path() && {
            let arrays: Vec<usize> = (0..a.schema().arrays.len()).collect();
            let session = a.session();
            let number = |source: &Source| session.number_of(source, &arrays);
            number(a).is_some_and(|n| number(b) == Some(n))
        }
}
