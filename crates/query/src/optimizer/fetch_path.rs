//! How the values of the result are fetched, and of which arrays: those that nothing asks for are not read.

use crate::bind::{Body, Value};
use crate::exec::{Execution, FetchWay};

use super::ReplicaPath;

/// The way in which the values of an array are fetched at selected positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// Whole, once, whichever of its values are wanted.
    Whole,
    /// From the replica that gave the rows.
    Replica,
    /// The chunks that have some of them.
    Chunks,
    /// Run by run, across gaps of at most so many bytes.
    Runs(u64),
    /// Box by box.
    Boxes,
    /// Tile by tile, while the condition is evaluated.
    Tiles,
}

/// An array of the result.
#[derive(Clone, Debug)]
pub(crate) struct FetchPath {
    /// The number of the bound array.
    pub(crate) array: usize,
    pub(crate) way: Fetched,
}

impl Execution {
    /// The arrays that the result reads, in the order in which they are first named, and how each is fetched.
    pub(super) fn fetch_paths(&self, replica: Option<&ReplicaPath>) -> Vec<FetchPath> {
        let mut arrays = Vec::new();
        let by_tiles = matches!(self.bound.body, Body::Groups { .. }) && !self.reduces_in_order();
        self.result_values().for_each(|value| {
            value.walk(&mut |v| {
                if let Value::Array { array, .. } | Value::Date(_, array) = v
                    && !arrays.contains(array)
                {
                    arrays.push(*array);
                }
            });
        });
        let path = |array| {
            let way = if by_tiles { Fetched::Tiles } else { self.fetched(array, replica) };
            FetchPath { array, way }
        };
        arrays.into_iter().map(path).collect()
    }

    /// The values that the result is made of, those of conditions left out.
    pub(super) fn result_values(&self) -> Box<dyn Iterator<Item = &Value> + '_> {
        match &self.bound.body {
            Body::Groups { keys, aggregates, .. } => {
                Box::new(keys.iter().chain(aggregates.iter().filter_map(|(_, v)| v.as_ref())))
            }
            Body::Rows => {
                let order = self.bound.order_by.iter().map(|key| &key.value);
                Box::new(self.bound.outputs.iter().map(|o| &o.value).chain(order))
            }
        }
    }

    pub(super) fn fetched(&self, array: usize, replica: Option<&ReplicaPath>) -> Fetched {
        let index = self.bound.arrays[array].index;
        let shape = &self.source.schema().arrays[index].shape;
        let auto = self.options.fetch == FetchWay::Auto;
        if auto && replica.is_some_and(|r| r.replica.columns.contains_key(&index)) {
            return Fetched::Replica;
        }
        if auto && self.is_small(array, shape) {
            return Fetched::Whole;
        }
        match (self.readers[array].layout().is_chunked(), &self.flat[array]) {
            (true, _) => Fetched::Chunks,
            (false, Some(_)) => Fetched::Runs(match self.options.fetch {
                FetchWay::Auto => self.indexes.costs.direct.gap(),
                FetchWay::Direct => 0,
                FetchWay::Block => crate::exec::MAX_SPAN_BYTES,
            }),
            (false, None) => Fetched::Boxes,
        }
    }
}
