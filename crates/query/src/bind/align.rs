//! Which axes of a query's arrays are one dimension of its rows.
//!
//! Dimensions that something names are one where they are the same. Axes without a name have their length alone: those
//! of one length share as few dimensions as they can, and if there is more than one way to do so, it is an error. The
//! whole query is looked at for each length, so that the order of its arrays makes no difference.

use sieva_format::schema::Schema;
use sieva_types::{Error, ErrorKind, Result};

use super::suggest;

/// Something in a query that has dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) what: What,
    /// Its dimensions in the schema.
    pub(super) dims: Vec<usize>,
}

/// What an [`Item`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The rows of an earlier query.
    Base,
    /// An array, by its index in the schema.
    Array(usize),
    /// A dimension named by itself.
    Position(usize),
}

/// The dimension of the rows of each axis of each item: a dimension of the schema that stands for all that are one.
///
/// # Errors
/// `unaligned-dimensions` where there is more than one way.
pub(super) fn align(schema: &Schema, items: &[Item]) -> Result<Vec<Vec<usize>>> {
    let mut aligned: Vec<Vec<usize>> = items.iter().map(|i| i.dims.clone()).collect();
    let unnamed = items.iter().flat_map(|i| &i.dims).filter(|&&d| !schema.dims[d].is_named());
    let mut lens: Vec<u64> = unnamed.map(|&d| schema.dims[d].len).collect();
    lens.sort_unstable();
    lens.dedup();
    for len in lens {
        OfLength::new(schema, items, len).assign(&mut aligned)?;
    }
    Ok(aligned)
}

/// All dimensions of one length in a query.
struct OfLength<'a> {
    schema: &'a Schema,
    items: &'a [Item],
    len: u64,
    /// Those that have a name.
    named: Vec<usize>,
    /// How many there are at least.
    count: usize,
}

impl<'a> OfLength<'a> {
    fn new(schema: &'a Schema, items: &'a [Item], len: u64) -> Self {
        let mut this = Self { schema, items, len, named: Vec::new(), count: 0 };
        // Along one position, or none, it makes no difference what lines up with what.
        if len > 1 {
            this.named = items.iter().flat_map(|i| this.named_of(i)).collect();
            this.named.sort_unstable();
            this.named.dedup();
        }
        let most = items.iter().map(|i| this.named_of(i).len() + this.unnamed_axes(i).len()).max();
        this.count = this.named.len().max(most.unwrap_or_default());
        this
    }

    fn is_unnamed(&self, dim: usize) -> bool {
        self.schema.dims[dim].len == self.len && !self.schema.dims[dim].is_named()
    }

    fn unnamed_axes(&self, item: &Item) -> Vec<usize> {
        (0..item.dims.len()).filter(|&k| self.is_unnamed(item.dims[k])).collect()
    }

    /// The item's named dimensions of this length, in its order.
    fn named_of(&self, item: &Item) -> Vec<usize> {
        let is_named = |&&d: &&usize| {
            self.len > 1 && self.schema.dims[d].len == self.len && self.schema.dims[d].is_named()
        };
        item.dims.iter().filter(is_named).copied().collect()
    }

    /// The items with axes of this length that nothing names.
    fn open(&self) -> impl Iterator<Item = (usize, &'a Item)> {
        self.items.iter().enumerate().filter(|(_, item)| item.dims.iter().any(|&d| self.is_unnamed(d)))
    }

    fn assign(&self, aligned: &mut [Vec<usize>]) -> Result<()> {
        let phony = self.phony();
        for (i, item) in self.open() {
            let axes = self.unnamed_axes(item);
            let places = if self.len > 1 { self.places(item, &axes, &phony)? } else { phony.clone() };
            for (axis, place) in axes.into_iter().zip(places) {
                aligned[i][axis] = place;
            }
        }
        Ok(())
    }

    /// Dimensions that stand for those without a name, as many as there can be: of the rows of an earlier query, then
    /// of the item whose own have the least numbers.
    fn phony(&self) -> Vec<usize> {
        let own = |item: &Item| -> Vec<usize> {
            self.unnamed_axes(item).into_iter().map(|k| item.dims[k]).collect()
        };
        let most = self.open().map(|(_, item)| own(item).len()).max().unwrap_or_default();
        let longest = self.open().map(|(_, item)| own(item)).filter(|l| l.len() == most).min();
        let base = self.open().find(|(_, item)| item.what == What::Base);
        let mut phony = base.map(|(_, item)| own(item)).unwrap_or_default();
        for dim in longest.unwrap_or_default() {
            if phony.len() < most && !phony.contains(&dim) {
                phony.push(dim);
            }
        }
        phony
    }

    /// The dimensions of the rows that the item's unnamed axes are.
    fn places(&self, item: &Item, axes: &[usize], phony: &[usize]) -> Result<Vec<usize>> {
        let own = self.named_of(item);
        // It has to have all that there are: else it could lack one or another of them.
        if own.len() + axes.len() != self.count {
            return Err(self.ambiguous(item));
        }
        if axes.len() > 1 {
            self.check_order(item)?;
        }
        if self.named.len() < self.count {
            // Its own are all that have names; what is left has none anywhere.
            return if own.len() == self.named.len() {
                Ok(phony.to_vec())
            } else {
                Err(self.ambiguous(item))
            };
        }
        let lacking = |d: &usize| !own.contains(d);
        if axes.len() == 1 {
            return Ok(self.named.iter().copied().filter(lacking).collect());
        }
        let order = self.order_of_named().ok_or_else(|| self.ambiguous(item))?;
        Ok(order.into_iter().filter(lacking).collect())
    }

    /// Axes of one length lie in their order, which is safe to say only of arrays that have the lengths that they share
    /// in the same order.
    fn check_order(&self, item: &Item) -> Result<()> {
        let lens = |item: &Item| -> Vec<u64> {
            item.dims.iter().map(|&d| self.schema.dims[d].len).filter(|&n| n > 1).collect()
        };
        let own = lens(item);
        for other in self.items {
            let others = lens(other);
            if others.iter().filter(|&&n| n == self.len).count() < 2 {
                continue;
            }
            if !own.iter().filter(|n| others.contains(n)).eq(others.iter().filter(|n| own.contains(n))) {
                return Err(self.ambiguous(item));
            }
        }
        Ok(())
    }

    /// The named dimensions in the order of an item that has all of them; `None` where others have another order.
    fn order_of_named(&self) -> Option<Vec<usize>> {
        let lists: Vec<Vec<usize>> = self.items.iter().map(|i| self.named_of(i)).collect();
        let whole = lists.iter().find(|l| l.len() == self.named.len())?.clone();
        let agrees = |l: &Vec<usize>| l.iter().eq(whole.iter().filter(|d| l.contains(d)));
        lists.iter().all(agrees).then_some(whole)
    }

    fn ambiguous(&self, item: &Item) -> Error {
        let (what, own) = (suggest::describe(self.schema, item), self.unnamed_axes(item).len());
        let dimensions = if own == 1 { "a dimension" } else { "dimensions" };
        let named = match &self.named[..] {
            [] => String::new(),
            some => format!(" ({})", suggest::paths(self.schema, some)),
        };
        let message = format!(
            "{what} has {dimensions} of length {} without a name, and the arrays of the query have {} of that length{named}: \
             there is more than one way to line them up",
            self.len, self.count
        );
        let e = Error::new(ErrorKind::UnalignedDimensions, message);
        e.hint(suggest::names_of_all(self.schema, self.items))
    }
}
