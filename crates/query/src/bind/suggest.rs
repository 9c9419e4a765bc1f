//! What to say of arrays that do not line up, and the `dims=` that would mend it.

use std::collections::HashSet;

use sieva_format::schema::Schema;

use super::align::{Item, What};

/// How to ask for a product.
pub(super) const CROSS: &str = "cross=True (--cross, CROSS behind FROM) asks for each position with each";

/// The item with its dimensions: `'a' (x: 3, phony_dim_0: 4)`.
pub(super) fn describe(schema: &Schema, item: &Item) -> String {
    let each = |&d: &usize| format!("{}: {}", schema.dims[d].name, schema.dims[d].len);
    let dims = item.dims.iter().map(each).collect::<Vec<_>>().join(", ");
    match item.what {
        What::Base => format!("the query's rows ({dims})"),
        What::Array(index) => format!("'{}' ({dims})", schema.arrays[index].path),
        What::Position(dim) => {
            format!("dimension '{}' of length {}", schema.dims[dim].path, schema.dims[dim].len)
        }
    }
}

/// Paths of dimensions.
pub(super) fn paths(schema: &Schema, dims: &[usize]) -> String {
    dims.iter().map(|&d| schema.dims[d].path.as_str()).collect::<Vec<_>>().join(", ")
}

/// Names for the dimensions of all arrays that have some without, where those of one length are taken for one in the
/// order in which they come.
pub(super) fn names_of_all(schema: &Schema, items: &[Item]) -> String {
    let mut made: Vec<(u64, Vec<String>)> = Vec::new();
    for item in items {
        for &d in &item.dims {
            let dim = &schema.dims[d];
            let at = made.iter().position(|(len, _)| *len == dim.len).unwrap_or_else(|| {
                made.push((dim.len, Vec::new()));
                made.len() - 1
            });
            if dim.is_named() && !made[at].1.contains(&dim.path) {
                made[at].1.push(dim.path.clone());
            }
        }
    }
    let mut next = 0;
    let mut given = Vec::new();
    for item in items {
        let What::Array(index) = item.what else { continue };
        if item.dims.iter().all(|&d| schema.dims[d].is_named()) {
            continue;
        }
        let own = |d: &&usize| schema.dims[**d].is_named();
        let mut used: Vec<String> =
            item.dims.iter().filter(own).map(|&d| schema.dims[d].path.clone()).collect();
        let names = item.dims.iter().map(|&d| {
            let dim = &schema.dims[d];
            if dim.is_named() {
                return dim.path.clone();
            }
            let known = made.iter_mut().find(|(len, _)| *len == dim.len);
            let free =
                known.as_ref().and_then(|(_, names)| names.iter().find(|n| !used.contains(n)).cloned());
            let name = free.unwrap_or_else(|| {
                let name = fresh(schema, &mut next);
                known.into_iter().for_each(|(_, names)| names.push(name.clone()));
                name
            });
            used.push(name.clone());
            name
        });
        given.push((schema.arrays[index].path.clone(), names.collect()));
    }
    format!("say which are one, as by {}", option(&given))
}

/// Names for the dimensions of `other` that line it up with `one`, where lengths allow it.
pub(super) fn names_for(schema: &Schema, one: &Item, other: &Item) -> String {
    let What::Array(index) = other.what else { return CROSS.into() };
    let mut used: Vec<usize> = other.dims.clone();
    let mut differs = false;
    let names: Vec<String> = other
        .dims
        .iter()
        .map(|&d| {
            let fits = |&&o: &&usize| schema.dims[o].len == schema.dims[d].len && schema.dims[o].is_named();
            let found = one.dims.iter().filter(fits).find(|o| !used.contains(o) && !one.dims.contains(&d));
            let taken = found.copied().unwrap_or(d);
            differs |= taken != d;
            used.push(taken);
            schema.dims[taken].path.clone()
        })
        .collect();
    if differs {
        let named = option(&[(schema.arrays[index].path.clone(), names)]);
        format!("if they are one, say so by {named}; {CROSS}")
    } else {
        format!("no names given by dims= can line up dimensions of different lengths; {CROSS}")
    }
}

/// The names that the file has for the lengths of two items that share nothing, where there is one each and an array of the
/// file has them all: what the items' axes may be, though nothing says so.
pub(super) fn names_in_file(schema: &Schema, items: [&Item; 2]) -> Option<String> {
    let mut given = Vec::new();
    let mut along = Vec::new();
    for item in items {
        let dims = item.dims.iter().map(|&d| only_named(schema, d)).collect::<Option<Vec<usize>>>()?;
        if let (What::Array(index), true) = (item.what, dims != item.dims) {
            given.push((schema.arrays[index].path.clone(), dims.iter().map(|&d| path(schema, d)).collect()));
        }
        along.extend(dims);
    }
    let distinct: HashSet<usize> = along.iter().copied().collect();
    let is_whole = |own: &Vec<usize>| along.iter().all(|d| own.contains(d));
    if given.is_empty() || distinct.len() < along.len() || !schema.arrays.iter().any(|a| is_whole(&a.dims)) {
        return None;
    }
    let names = along.iter().map(|&d| path(schema, d)).collect::<Vec<_>>().join(" and ");
    Some(format!("if they run along {names}, say so by {}; {CROSS}", option(&given)))
}

/// The dimension itself where it has a name, else the only one of its length that has.
fn only_named(schema: &Schema, dim: usize) -> Option<usize> {
    if schema.dims[dim].is_named() {
        return Some(dim);
    }
    let of_length = |&d: &usize| schema.dims[d].is_named() && schema.dims[d].len == schema.dims[dim].len;
    let mut named = (0..schema.dims.len()).filter(of_length);
    named.next().filter(|_| named.next().is_none())
}

fn path(schema: &Schema, dim: usize) -> String {
    schema.dims[dim].path.clone()
}

/// A name that no dimension has.
fn fresh(schema: &Schema, next: &mut usize) -> String {
    loop {
        let name = format!("axis{next}");
        *next += 1;
        if schema.dims.iter().all(|d| d.path != name) {
            return name;
        }
    }
}

/// The option as it is written in Python and on the command line.
fn option(given: &[(String, Vec<String>)]) -> String {
    let quoted = |names: &[String]| names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(", ");
    let python =
        given.iter().map(|(array, names)| format!("{array:?}: [{}]", quoted(names))).collect::<Vec<_>>();
    let shell = given
        .iter()
        .map(|(array, names)| format!("--dims '{array}={}'", names.join(",")))
        .collect::<Vec<_>>();
    format!("dims={{{}}} ({})", python.join(", "), shell.join(" "))
}
