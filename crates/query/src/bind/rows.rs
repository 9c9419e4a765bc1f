//! The row space: the union of the dimensions of all arrays that a query names, in C order.

use sieva_format::schema::Schema;
use sieva_types::{Result, checked_len};

use super::BoundArray;

/// The dimensions of a query's rows, outermost first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows {
    /// Indices in [`Schema::dims`].
    pub dims: Vec<usize>,
    /// Names: the leaf, or the path where two dimensions share a leaf name.
    pub names: Vec<String>,
    /// Lengths.
    pub shape: Vec<u64>,
}

impl Rows {
    /// The row space of `arrays` and of dimensions named by themselves. The array of the highest rank
    /// gives the order; a dimension that it lacks is put next to its neighbour in the array that has it.
    ///
    /// `base` are dimensions that come first, in this order, whatever the arrays have.
    pub(super) fn of(schema: &Schema, base: &[usize], arrays: &[BoundArray], dims: &[usize]) -> Result<Self> {
        let mut lists: Vec<&[usize]> =
            arrays.iter().map(|a| schema.arrays[a.index].dims.as_slice()).collect();
        lists.sort_by_key(|l| std::cmp::Reverse(l.len()));
        let alone: Vec<[usize; 1]> = dims.iter().map(|&d| [d]).collect();
        lists.extend(alone.iter().map(|d| d.as_slice()));
        let mut order: Vec<usize> = base.to_vec();
        for list in lists {
            insert(&mut order, list);
        }
        let shape: Vec<u64> = order.iter().map(|&d| schema.dims[d].len).collect();
        checked_len(&shape).map_err(|e| e.at("the rows of this query"))?;
        let names = order.iter().map(|&d| dim_name(schema, &order, d)).collect();
        Ok(Self { dims: order, names, shape })
    }

    /// The axis of a dimension of the schema.
    pub fn axis(&self, dim: usize) -> Option<usize> {
        self.dims.iter().position(|&d| d == dim)
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
mod tests {
    use super::insert;

    fn merged(lists: &[&[usize]]) -> Vec<usize> {
        let mut order = Vec::new();
        lists.iter().for_each(|l| insert(&mut order, l));
        order
    }

    #[test]
    fn a_missing_dimension_goes_next_to_its_neighbour() {
        assert_eq!(merged(&[&[0, 1, 2, 3], &[2, 3], &[1]]), [0, 1, 2, 3]);
        assert_eq!(merged(&[&[1, 2], &[0, 1]]), [0, 1, 2]);
        assert_eq!(merged(&[&[0, 1], &[1, 5]]), [0, 1, 5]);
        assert_eq!(merged(&[&[0], &[7]]), [0, 7]);
        assert_eq!(merged(&[&[0, 1], &[1, 0]]), [0, 1]);
    }
}
