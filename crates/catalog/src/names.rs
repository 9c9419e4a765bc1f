//! Keys and names of arrays as numbers. A number, once given, is never taken back.

use std::collections::{BTreeSet, HashMap};

use sieva_types::Result;

use crate::backend::{Cell, Session, collect, first};

/// Parameters of one statement with a list.
pub(crate) const LIST: usize = 256;

/// `$1, $2 ...`: a list of places for parameters, from number `from` on.
pub(crate) fn places(from: usize) -> String {
    let places: Vec<String> = (from..from + LIST).map(|i| format!("${i}")).collect();
    places.join(", ")
}

/// Parameters for [`places`]; a short list is filled with its last one, so that the statement stays the same.
pub(crate) fn fill(list: &[Cell]) -> Vec<Cell> {
    let last = list.last().cloned().unwrap_or(Cell::Null);
    list.iter().cloned().chain(std::iter::repeat(last)).take(LIST).collect()
}

/// The number of a name, where it has one.
pub(crate) fn find(session: &mut dyn Session, name: &str) -> Result<Option<i64>> {
    first(session, "SELECT id FROM names WHERE name = $1", &[name.into()], |row| row.int(0))
}

/// The numbers of names, given where they have none.
pub(crate) fn intern<'a>(
    session: &mut dyn Session,
    names: impl IntoIterator<Item = &'a str>,
) -> Result<HashMap<String, i64>> {
    let names: BTreeSet<&str> = names.into_iter().collect();
    let mut numbers = HashMap::with_capacity(names.len());
    let all: Vec<Cell> = names.iter().map(|&n| n.into()).collect();
    let sql = format!("SELECT name, id FROM names WHERE name IN ({})", places(1));
    for list in all.chunks(LIST) {
        numbers
            .extend(collect(session, &sql, &fill(list), |row| Ok((row.text(0)?.to_owned(), row.int(1)?)))?);
    }
    for name in names {
        if !numbers.contains_key(name) {
            let sql = "INSERT INTO names (name) VALUES ($1) RETURNING id";
            if let Some(id) = first(session, sql, &[name.into()], |row| row.int(0))? {
                numbers.insert(name.to_owned(), id);
            }
        }
    }
    Ok(numbers)
}

/// The names of numbers.
pub(crate) fn of_numbers(
    session: &mut dyn Session,
    numbers: impl IntoIterator<Item = i64>,
) -> Result<HashMap<i64, String>> {
    let numbers: BTreeSet<i64> = numbers.into_iter().collect();
    let all: Vec<Cell> = numbers.into_iter().map(Cell::Int).collect();
    let sql = format!("SELECT id, name FROM names WHERE id IN ({})", places(1));
    let mut names = HashMap::with_capacity(all.len());
    for list in all.chunks(LIST) {
        names.extend(collect(session, &sql, &fill(list), |row| Ok((row.int(0)?, row.text(1)?.to_owned())))?);
    }
    Ok(names)
}
