//! Whether a query's rows are a product that nobody asked for.

use sieva_format::schema::Schema;
use sieva_types::{Error, ErrorKind, Result};

use super::align::{Item, What};
use super::suggest;

/// Makes sure that the items of a query, each along `aligned` dimensions of its rows, belong together.
///
/// A dimension without a name must stand with each other one in an item of the query: nothing else says that they
/// have to do with each other. Named ones hang together through the items of the query or through arrays of the file.
/// Dimensions of length 1 multiply nothing and are free.
///
/// # Errors
/// `unaligned-dimensions`.
pub(super) fn check(schema: &Schema, items: &[Item], aligned: &[Vec<usize>]) -> Result<()> {
    let all = Together { schema, items, aligned };
    let mut dims: Vec<usize> =
        aligned.iter().flatten().copied().filter(|&d| schema.dims[d].len != 1).collect();
    dims.sort_unstable();
    dims.dedup();
    for (n, &a) in dims.iter().enumerate() {
        for &b in &dims[n + 1..] {
            let named = schema.dims[a].is_named() && schema.dims[b].is_named();
            if !named && !aligned.iter().any(|own| own.contains(&a) && own.contains(&b)) {
                return Err(all.apart(a, b));
            }
        }
    }
    match parts(schema, &dims, aligned)[..] {
        [] | [_] => Ok(()),
        [a, b, ..] => Err(all.apart(a, b)),
    }
}

/// A dimension of each part of the row space that nothing connects with the others.
fn parts(schema: &Schema, dims: &[usize], aligned: &[Vec<usize>]) -> Vec<usize> {
    let mut part: Vec<usize> = (0..dims.len()).collect();
    let of_file = schema.arrays.iter().map(|a| &a.dims);
    for own in aligned.iter().chain(of_file) {
        let mut places = own.iter().filter_map(|d| dims.binary_search(d).ok());
        let Some(first) = places.next() else { continue };
        for place in places {
            let (from, to) = (part[place], part[first]);
            part.iter_mut().filter(|p| **p == from).for_each(|p| *p = to);
        }
    }
    let mut seen = Vec::new();
    let mut firsts = Vec::new();
    for (n, p) in part.into_iter().enumerate() {
        if !seen.contains(&p) {
            seen.push(p);
            firsts.push(dims[n]);
        }
    }
    firsts
}

struct Together<'a> {
    schema: &'a Schema,
    items: &'a [Item],
    aligned: &'a [Vec<usize>],
}

impl Together<'_> {
    /// The error of two dimensions that have nothing to do with each other.
    fn apart(&self, a: usize, b: usize) -> Error {
        let with = |dim: usize| self.aligned.iter().position(|own| own.contains(&dim)).unwrap_or_default();
        let (first, second) = (with(a).min(with(b)), with(a).max(with(b)));
        let item = |i: usize| Item { what: self.items[i].what, dims: self.aligned[i].clone() };
        let (one, other) = match (item(first), item(second)) {
            (array, other) if matches!(other.what, What::Array(_)) => (array, other),
            (array, other) => (other, array),
        };
        let describe = |item: &Item| suggest::describe(self.schema, item);
        let message = format!(
            "{} and {} do not line up: nothing says which positions along '{}' and '{}' belong together",
            describe(&one),
            describe(&other),
            self.schema.dims[a].path,
            self.schema.dims[b].path
        );
        let in_file = suggest::names_in_file(self.schema, [&self.items[first], &self.items[second]]);
        let hint = in_file.unwrap_or_else(|| suggest::names_for(self.schema, &one, &other));
        Error::new(ErrorKind::UnalignedDimensions, message).hint(hint)
    }
}
