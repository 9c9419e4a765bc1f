//! The index of attributes: for each key, intervals of objects with the value that holds there.
//!
//! An object without a key of its own has that of the nearest object above it. Where attributes are registered, the
//! interval of an object is cut by those of objects under it that have the key too, so that the intervals of one key
//! are apart and a question needs no walk through trees.

use std::collections::BTreeMap;

use sieva_types::Result;

use crate::backend::{Cell, Session};
use crate::packed::{self, Entry};
use crate::value::{SortKey, Value};

/// One row of the index.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Term {
    pub key: i64,
    pub value: SortKey,
    pub first: i64,
    pub last: i64,
}

/// An object as the index sees it.
pub(crate) struct Holder {
    pub id: i64,
    pub last: i64,
    pub entries: Vec<Entry>,
}

/// The rows of the index of one source's objects, which are in the order of its tree. `only`: of one key.
pub(crate) fn of(holders: &[Holder], only: Option<i64>) -> Vec<Term> {
    let mut by_key: BTreeMap<i64, Vec<(i64, i64, &Value)>> = BTreeMap::new();
    for holder in holders {
        for (key, _, _) in &holder.entries {
            let list = by_key.entry(*key).or_default();
            let is_new = list.last().is_none_or(|held| held.0 != holder.id);
            if is_new && only.is_none_or(|k| k == *key) {
                list.extend(packed::value_of(&holder.entries, *key).map(|v| (holder.id, holder.last, v)));
            }
        }
    }
    let mut terms = Vec::new();
    for (key, held) in by_key {
        cut(&held, |first, last, value| terms.push(Term { key, value: value.sort_key(), first, last }));
    }
    terms
}

/// Hands over the parts of nested intervals in which each is the innermost one.
fn cut<'a>(held: &[(i64, i64, &'a Value)], mut part: impl FnMut(i64, i64, &'a Value)) {
    let mut open: Vec<(i64, &Value)> = Vec::new();
    let mut from = 0;
    for &(first, last, value) in held {
        close(&mut open, &mut from, first, &mut part);
        if let Some((_, outer)) = open.last()
            && from < first
        {
            part(from, first - 1, outer);
        }
        from = first;
        open.push((last, value));
    }
    close(&mut open, &mut from, i64::MAX, &mut part);
}

/// Ends the intervals that end before `next`.
fn close<'a>(
    open: &mut Vec<(i64, &'a Value)>,
    from: &mut i64,
    next: i64,
    part: &mut impl FnMut(i64, i64, &'a Value),
) {
    while let Some(&(last, value)) = open.last().filter(|(last, _)| *last < next) {
        if *from <= last {
            part(*from, last, value);
            *from = last + 1;
        }
        open.pop();
    }
}

/// A row for the table `terms`.
pub(crate) fn row(term: &Term) -> Vec<Cell> {
    let rest = (!term.value.rest.is_empty()).then(|| term.value.rest.clone());
    let span = term.last - term.first;
    vec![term.key.into(), term.value.head.clone().into(), term.first.into(), span.into(), rest.into()]
}

/// Removes rows.
pub(crate) fn remove(session: &mut dyn Session, terms: &[Term]) -> Result<()> {
    for term in terms {
        let sql = "DELETE FROM terms WHERE key = $1 AND value = $2 AND first = $3";
        session.run(sql, &[term.key.into(), term.value.head.clone().into(), term.first.into()])?;
    }
    Ok(())
}

/// The objects with numbers from `first` to `last`, as the index sees them.
pub(crate) fn holders(session: &mut dyn Session, first: i64, last: i64) -> Result<Vec<Holder>> {
    let sql = "SELECT id, last, attributes FROM objects WHERE id BETWEEN $1 AND $2 ORDER BY id";
    crate::backend::collect(session, sql, &[first.into(), last.into()], |row| {
        Ok(Holder { id: row.int(0)?, last: row.int(1)?, entries: packed::read_entries(row.blob(2)?)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_value_holds() {
        // A root 1..10 with a group 3..7 that holds 5, and another array 9.
        let entry = |v: i64| vec![(1, false, Value::Int(v))];
        let holder = |id, last, entries| Holder { id, last, entries };
        let tagged =
            vec![(1, false, Value::Int(30)), (1, true, Value::Int(31)), (2, false, Value::Bool(true))];
        let holders = [
            holder(1, 10, entry(0)),
            holder(3, 7, tagged),
            holder(4, 4, vec![]),
            holder(5, 5, entry(50)),
            holder(10, 10, entry(100)),
        ];
        let got: Vec<_> = of(&holders, None).into_iter().map(|t| (t.key, t.first, t.last, t.value)).collect();
        let row = |first, last, v: i64| (1, first, last, Value::Int(v).sort_key());
        let bools = (2, 3, 7, Value::Bool(true).sort_key());
        assert_eq!(
            got,
            [
                row(1, 2, 0),
                row(3, 4, 31),
                row(5, 5, 50),
                row(6, 7, 31),
                row(8, 9, 0),
                row(10, 10, 100),
                bools
            ]
        );
    }
}
