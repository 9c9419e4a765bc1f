//! Names for sources whose arrays have paths and shapes, and nothing else: groups, dimensions, and whose an attribute is.

use std::collections::{BTreeMap, BTreeSet};

use crate::schema::{Dimension, Naming};

/// The groups that a path implies, without the root.
pub fn groups_of(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(end, _)| &path[..end])
}

/// Of the arrays and groups `owners`, the one whose path is the longest beginning of an attribute's; the root's is empty.
pub fn owner_of<'a>(path: &'a str, owners: &BTreeSet<&str>) -> &'a str {
    let mut owner = path;
    while let Some((before, _)) = owner.rsplit_once('/') {
        owner = before;
        if owners.contains(owner) {
            return owner;
        }
    }
    ""
}

/// The dimensions of a source, by their paths.
#[derive(Debug, Default)]
pub struct Places {
    dims: Vec<Dimension>,
    known: BTreeMap<String, usize>,
}

impl Places {
    /// The number of the dimension of this path, which is added where it is new.
    pub fn place(&mut self, path: String, len: u64, naming: Naming) -> usize {
        *self.known.entry(path).or_insert_with_key(|path| {
            let name = path.rsplit('/').next().unwrap_or_default().to_string();
            let unlimited = false;
            self.dims.push(Dimension { name, path: path.clone(), len, unlimited, naming, coordinate: None });
            self.dims.len() - 1
        })
    }

    /// The dimension that steps make: as [`Places::place`], and it may grow.
    pub fn steps(&mut self, path: String, len: u64) -> usize {
        let place = self.place(path, len, Naming::File);
        self.dims[place].unlimited = true;
        place
    }

    /// Dimensions for an array of this path and shape whose own have no names: arrays of one group share them by length, an
    /// array's own of one length are told apart by their order.
    pub fn by_length(&mut self, path: &str, shape: &[u64]) -> Vec<usize> {
        let prefix = path.rsplit_once('/').map_or(String::new(), |(group, _)| format!("{group}/"));
        let mut own = Vec::with_capacity(shape.len());
        for (d, &len) in shape.iter().enumerate() {
            let twins = shape[..d].iter().filter(|&&other| other == len).count();
            let twin = if twins == 0 { String::new() } else { format!("_{twins}") };
            own.push(self.place(format!("{prefix}dim_{len}{twin}"), len, Naming::Length));
        }
        own
    }

    /// The length of a dimension.
    pub fn len_of(&self, place: usize) -> u64 {
        self.dims[place].len
    }

    /// All of them.
    pub fn into_dims(self) -> Vec<Dimension> {
        self.dims
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_shared_by_length_within_a_group() {
        let mut places = Places::default();
        assert_eq!(places.by_length("a", &[4, 4, 3]), [0, 1, 2]);
        assert_eq!(places.by_length("b", &[3, 4]), [2, 0]);
        assert_eq!(places.by_length("g/c", &[4]), [3]);
        assert_eq!(places.steps("step".into(), 9), 4);
        let dims = places.into_dims();
        let paths: Vec<&str> = dims.iter().map(|d| d.path.as_str()).collect();
        assert_eq!(paths, ["dim_4", "dim_4_1", "dim_3", "g/dim_4", "step"]);
        assert!(dims[4].unlimited && dims[3].name == "dim_4" && !dims[3].is_named());
    }

    #[test]
    fn an_attribute_is_of_the_longest_path_that_it_begins_with() {
        let owners = BTreeSet::from(["", "g", "g/T"]);
        assert_eq!(owner_of("g/T/units", &owners), "g/T");
        assert_eq!(owner_of("g/U/units", &owners), "g");
        assert_eq!(owner_of("title", &owners), "");
        assert_eq!(groups_of("a/b/c").collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
