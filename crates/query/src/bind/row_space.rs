//! The row space: the union of the dimensions of all arrays that a query names, in C order.

use sieva_format::schema::Schema;
use sieva_types::{Error, ErrorKind, Result, checked_len};

use super::align::{self, Item, What};
use super::{suggest, together};

/// The dimensions of a query's rows, outermost first.
#[derive(Clone, Debug, Default)]
pub struct RowSpace {
    /// Indices in [`Schema::dims`]; of those that are lined up, one stands for all.
    pub dims: Vec<usize>,
    /// Names: the leaf, or the path where two dimensions share a leaf name.
    pub names: Vec<String>,
    /// Lengths.
    pub shape: Vec<u64>,
    /// Dimensions that the query names by themselves, with the one that stands for them.
    named: Vec<(usize, usize)>,
}

impl PartialEq for RowSpace {
    fn eq(&self, other: &Self) -> bool {
        // The rest follows, but for what the query names.
        self.dims == other.dims && self.shape == other.shape
    }
}

/// What of a query has dimensions.
pub(crate) struct Parts<'a> {
    /// Dimensions that come first, in this order, whatever the arrays have.
    pub(crate) base: &'a [usize],
    /// Arrays, as indices in the schema.
    pub(crate) arrays: &'a [usize],
    /// Dimensions named by themselves.
    pub(crate) dims: &'a [usize],
    /// Whether a product of what does not line up is wanted.
    pub(crate) cross: bool,
}

impl RowSpace {
    /// The row space, and its axis of each dimension of each array. The array of the highest rank gives the order, of
    /// several the one that is named first; a dimension that it lacks is put next to its neighbour in the array that has it.
    ///
    /// # Errors
    /// `unaligned-dimensions`.
    pub(crate) fn of(schema: &Schema, parts: &Parts<'_>) -> Result<(Self, Vec<Vec<usize>>)> {
        let items = items(schema, parts);
        let aligned = align::align(schema, &items)?;
        if !parts.cross {
            together::check(schema, &items, &aligned)?;
        }
        let first = usize::from(!parts.base.is_empty());
        let (arrays, alone) = aligned[first..].split_at(parts.arrays.len());
        let order = order_of(parts.base, arrays, alone);
        let named = named_alone(schema, parts.dims, &items, &aligned)?;
        let rows = Self::given(schema, order, named)?;
        let axes = arrays.iter().map(|own| own.iter().filter_map(|&d| rows.axis(d)).collect()).collect();
        Ok((rows, axes))
    }

    /// RowSpace along these dimensions; `named` are others that are one with one of them.
    pub(crate) fn given(schema: &Schema, dims: Vec<usize>, named: Vec<(usize, usize)>) -> Result<Self> {
        let shape: Vec<u64> = dims.iter().map(|&d| schema.dims[d].len).collect();
        checked_len(&shape).map_err(|e| e.at("the rows of this query"))?;
        let names = dims.iter().map(|&d| dim_name(schema, &dims, d)).collect();
        Ok(Self { dims, names, shape, named })
    }

    /// The axis of a dimension of the schema.
    pub fn axis(&self, dim: usize) -> Option<usize> {
        let place = |dim: usize| self.dims.iter().position(|&d| d == dim);
        let other = || self.named.iter().find(|(named, _)| *named == dim).and_then(|&(_, row)| place(row));
        place(dim).or_else(other)
    }

    /// Number of positions.
    pub fn len(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Whether there is no position.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }
}

/// What has to line up: the base, the arrays, and dimensions that none of them has.
fn items(schema: &Schema, parts: &Parts<'_>) -> Vec<Item> {
    let mut items = Vec::new();
    if !parts.base.is_empty() {
        items.push(Item { what: What::Base, dims: parts.base.to_vec() });
    }
    let array = |&index: &usize| Item { what: What::Array(index), dims: schema.arrays[index].dims.clone() };
    items.extend(parts.arrays.iter().map(array));
    let had: Vec<usize> = items.iter().flat_map(|i| i.dims.iter().copied()).collect();
    let alone = parts.dims.iter().filter(|d| !had.contains(d));
    items.extend(alone.map(|&dim| Item { what: What::Position(dim), dims: vec![dim] }));
    items
}

/// The dimension of the rows that each dimension named by itself is.
fn named_alone(
    schema: &Schema,
    dims: &[usize],
    items: &[Item],
    aligned: &[Vec<usize>],
) -> Result<Vec<(usize, usize)>> {
    let mut named = Vec::with_capacity(dims.len());
    for &dim in dims {
        let axes = items.iter().zip(aligned).flat_map(|(item, own)| item.dims.iter().zip(own));
        let mut meant: Vec<usize> = axes.filter(|(d, _)| **d == dim).map(|(_, &row)| row).collect();
        meant.sort_unstable();
        meant.dedup();
        match meant[..] {
            [one] => named.push((dim, one)),
            _ if meant.contains(&dim) => named.push((dim, dim)),
            _ => {
                let (path, all) = (&schema.dims[dim].path, suggest::paths(schema, &meant));
                let message = format!("dimension '{path}' is in this query any of {all}");
                return Err(Error::new(ErrorKind::UnalignedDimensions, message)
                    .hint(suggest::names_of_all(schema, items)));
            }
        }
    }
    Ok(named)
}

/// The dimensions of the rows of arrays in the order of their names, and of dimensions that none of them has.
pub(crate) fn order_of(base: &[usize], arrays: &[Vec<usize>], alone: &[Vec<usize>]) -> Vec<usize> {
    let mut lists: Vec<&Vec<usize>> = arrays.iter().collect();
    lists.sort_by_key(|l| std::cmp::Reverse(l.len()));
    let mut order = base.to_vec();
    lists.into_iter().chain(alone).for_each(|list| insert(&mut order, list));
    order
}

fn insert(order: &mut Vec<usize>, list: &[usize]) {
    for (i, dim) in list.iter().enumerate() {
        if order.contains(dim) {
            continue;
        }
        let place = |d: &usize| order.iter().position(|o| o == d);
        let after = list[..i].iter().rev().find_map(place).map(|p| p + 1);
        let before = || list[i + 1..].iter().find_map(place);
        let at = after.or_else(before).unwrap_or(order.len());
        order.insert(at, *dim);
    }
}

fn dim_name(schema: &Schema, all: &[usize], dim: usize) -> String {
    let d = &schema.dims[dim];
    let shared = all.iter().any(|&other| other != dim && schema.dims[other].name == d.name);
    if shared { d.path.clone() } else { d.name.clone() }
}

#[cfg(test)]
#[path = "row_space_tests.rs"]
mod tests;
