//! Dimensions: names that arrays give belong to the group of the outermost array that uses them with one length.
//!
//! xarray looks at one group at a time, and a group inherits the coordinates of those around it; so a name means
//! the dimension of an enclosing group where its length is the same, and else one of the array's own group. Axes
//! without a name get phony dimensions by length, those of a group shared among its arrays, as netCDF has it.

use std::collections::{HashMap, HashSet};

use sieva_format::schema::{Dimension, Naming};

use crate::array::DimName;

/// The dimensions so far.
#[derive(Debug, Default)]
pub(crate) struct Dims {
    pub(crate) list: Vec<Dimension>,
    /// By group, name and length.
    by_name: HashMap<(String, String, u64), usize>,
    /// Phony ones by group and length, in the order in which one array uses them.
    by_length: HashMap<(String, u64), Vec<usize>>,
    /// Those of further uses of a dimension by one array.
    again: HashMap<(usize, usize), usize>,
    paths: HashSet<String>,
    phony: usize,
}

impl Dims {
    /// The dimensions of an array of `group` with these names and lengths. Arrays of outer groups are to come first.
    pub(crate) fn assign(&mut self, group: &str, names: &[DimName], shape: &[u64]) -> Vec<usize> {
        let mut used: Vec<usize> = Vec::with_capacity(shape.len());
        let mut uses: HashMap<usize, usize> = HashMap::new();
        for (name, &len) in names.iter().zip(shape) {
            let found = match name {
                DimName::Unnamed => self.phony(group, len, &used),
                DimName::Name(name) => self.visible(group, name, len),
                DimName::Path(group, name) => self.named(group, name, len),
            };
            let nth = uses.entry(found).and_modify(|n| *n += 1).or_insert(0);
            let dim = if *nth == 0 { found } else { self.another(found, *nth) };
            used.push(dim);
        }
        used
    }

    /// Dimensions within an item: those of a compound's member that is itself an array.
    pub(crate) fn inner(&mut self, group: &str, shape: &[u64], outer: &[usize]) -> Vec<usize> {
        let mut used = outer.to_vec();
        for &len in shape {
            let dim = self.phony(group, len, &used);
            used.push(dim);
        }
        used.split_off(outer.len())
    }

    fn visible(&mut self, group: &str, name: &str, len: u64) -> usize {
        let mut outer = group;
        while let Some((parent, _)) =
            outer.rsplit_once('/').or_else(|| (!outer.is_empty()).then_some(("", "")))
        {
            outer = parent;
            if let Some(&known) = self.by_name.get(&(outer.to_owned(), name.to_owned(), len)) {
                return known;
            }
        }
        self.named(group, name, len)
    }

    fn named(&mut self, group: &str, name: &str, len: u64) -> usize {
        let key = (group.to_owned(), name.to_owned(), len);
        if let Some(&known) = self.by_name.get(&key) {
            return known;
        }
        let number = self.add(group, name, len, Naming::File);
        self.by_name.insert(key, number);
        number
    }

    fn phony(&mut self, group: &str, len: u64, used: &[usize]) -> usize {
        let key = (group.to_owned(), len);
        let known = self.by_length.get(&key).and_then(|c| c.iter().copied().find(|d| !used.contains(d)));
        known.unwrap_or_else(|| {
            let name = format!("phony_dim_{}", self.phony);
            self.phony += 1;
            let number = self.add(group, &name, len, Naming::Length);
            self.by_length.entry(key).or_default().push(number);
            number
        })
    }

    /// The dimension of the `nth` further axis of an array along `of`.
    fn another(&mut self, of: usize, nth: usize) -> usize {
        if let Some(&known) = self.again.get(&(of, nth)) {
            return known;
        }
        let Dimension { path, name, len, .. } = self.list[of].clone();
        let group = path.strip_suffix(&name).unwrap_or_default().trim_end_matches('/').to_owned();
        let number = self.add(&group, &format!("{name}_{nth}"), len, Naming::File);
        self.again.insert((of, nth), number);
        number
    }

    /// Adds a dimension, under another name where an array of the group has one of another length.
    fn add(&mut self, group: &str, name: &str, len: u64, naming: Naming) -> usize {
        let prefix = if group.is_empty() { String::new() } else { format!("{group}/") };
        let mut own = name.to_owned();
        let mut n = 1;
        while !self.paths.insert(format!("{prefix}{own}")) {
            own = format!("{name}_{n}");
            n += 1;
        }
        let path = format!("{prefix}{own}");
        self.list.push(Dimension { name: own, path, len, unlimited: false, naming, coordinate: None });
        self.list.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(n: &str) -> DimName {
        DimName::Name(n.into())
    }

    #[test]
    fn a_name_means_the_enclosing_groups_dimension_of_that_length() {
        let mut dims = Dims::default();
        let x = dims.assign("", &[name("x")], &[4]);
        assert_eq!(dims.assign("g", &[name("x")], &[4]), x);
        assert_eq!(dims.assign("g/h", &[name("x")], &[4]), x);
        let other = dims.assign("g", &[name("x")], &[5]);
        assert_eq!(dims.list[other[0]].path, "g/x");
        assert_eq!(dims.assign("g/h", &[name("x")], &[5]), other);
    }

    #[test]
    fn two_lengths_in_one_group_are_two_dimensions() {
        let mut dims = Dims::default();
        dims.assign("", &[name("x")], &[4]);
        let other = dims.assign("", &[name("x")], &[5]);
        assert_eq!(dims.list[other[0]].path, "x_1");
    }

    #[test]
    fn a_matrix_has_two_dimensions() {
        let mut dims = Dims::default();
        let ids = dims.assign("g", &[name("n"), name("n")], &[3, 3]);
        assert_eq!(ids.iter().map(|&d| dims.list[d].path.as_str()).collect::<Vec<_>>(), ["g/n", "g/n_1"]);
        assert_eq!(dims.assign("g", &[name("n"), name("n")], &[3, 3]), ids);
    }

    #[test]
    fn axes_without_a_name_share_by_length() {
        let mut dims = Dims::default();
        let unnamed = [DimName::Unnamed, DimName::Unnamed];
        let square = dims.assign("", &unnamed, &[3, 3]);
        assert_ne!(square[0], square[1]);
        assert_eq!(dims.assign("", &unnamed, &[3, 7])[0], square[0]);
        assert_ne!(dims.assign("g", &unnamed[..1], &[3])[0], square[0]);
        assert!(!dims.list[square[0]].is_named());
    }
}
