//! Dimensions: from netCDF-4's bookkeeping, dimension scales, labels, conventions, and, where a file names none, made up
//! by length.
//!
//! A scale names the axes that it is attached to, and no other: that an axis is as long as a scale of its group, from
//! which the netCDF library takes its name, says nothing of what lies along it. Queries line such axes up themselves.

use std::collections::{HashMap, HashSet};

use sieva_format::schema::{AttrValue, Dimension, Naming, leaf};

use crate::conventions::{AxisName, Names};
use crate::dataset::Dataset;
use crate::ffi::Token;
use crate::leaves;
use crate::walk::{FileNumber, Group};

/// What the `NAME` of a scale says that netCDF wrote for a dimension without a variable.
const NOT_A_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable";
/// What netCDF puts before the name of a variable that is named like a dimension but not its coordinate.
const NON_COORDINATE: &str = "_nc4_non_coord_";

/// The dimensions of a file as they are found.
#[derive(Debug, Default)]
pub(crate) struct Dims {
    pub(crate) list: Vec<Dimension>,
    /// For each dataset, the dimension of each axis.
    pub(crate) axes: Vec<Vec<usize>>,
    /// The dataset that is the scale of each dimension.
    pub(crate) scale: HashMap<usize, usize>,
    /// Dimensions that stand for a second axis along another, or for one of another length.
    variants: HashMap<(usize, usize, u64), usize>,
    /// Dimensions of a group that nothing names, by length and whether they may grow.
    phony: HashMap<(usize, u64, bool), Vec<usize>>,
    /// Dimensions of a group by name and length.
    by_name: HashMap<(usize, String, u64), usize>,
    paths: HashSet<String>,
    /// The number to try next behind a path that is taken, from a first one on: each is taken once.
    next: HashMap<(String, u64), u64>,
    /// How many the netCDF library would have made so far: it numbers phony dimensions on from there.
    counted: usize,
}

/// Whether the dataset only stands for a dimension and is no array.
pub(crate) fn is_only_dimension(dataset: &Dataset) -> bool {
    dataset.attributes.is_scale()
        && dataset.attributes.text("NAME").is_some_and(|name| name.starts_with(NOT_A_VARIABLE))
}

/// Whether the dataset has anything that is listed; others must not use up the numbers of phony dimensions.
fn has_arrays(dataset: &Dataset) -> bool {
    !is_only_dimension(dataset) && !leaves::leaves(&dataset.info).0.is_empty()
}

/// The path of the array, without what netCDF puts before a name.
pub(crate) fn array_path(path: &str) -> String {
    let name = leaf(path);
    match name.strip_prefix(NON_COORDINATE) {
        Some(rest) if !rest.is_empty() => format!("{}{rest}", &path[..path.len() - name.len()]),
        _ => path.to_owned(),
    }
}

/// Finds the dimensions of all datasets.
pub(crate) fn assign(datasets: &[Dataset], groups: &[Group], said: &Names, is_netcdf: bool) -> Dims {
    let mut dims = Dims::default();
    let (by_object, by_id) = dims.add_scales(datasets);
    let mut named: Vec<_> = datasets.iter().map(|d| dims.named_axes(d, &by_object, &by_id, groups)).collect();
    let group_at: HashMap<&str, usize> =
        groups.iter().enumerate().map(|(i, g)| (g.path.as_str(), i)).collect();
    for ((d, axes), said) in datasets.iter().zip(&mut named).zip(said) {
        for (k, name) in said.iter().enumerate().filter_map(|(k, name)| Some((k, name.as_ref()?))) {
            if axes[k].is_none() {
                axes[k] = Some(dims.conventional(name, d, k, &group_at));
            }
        }
    }
    if is_netcdf {
        dims.grow_unlimited(datasets, &named);
    }
    let mut axes: Vec<Vec<Option<usize>>> = Vec::with_capacity(datasets.len());
    for (dataset, named) in datasets.iter().zip(named) {
        axes.push(dims.settle(dataset, &named, is_netcdf));
    }
    for i in in_post_order(datasets, groups).into_iter().filter(|&i| has_arrays(&datasets[i])) {
        dims.fill_phony(&datasets[i], &mut axes[i], groups);
    }
    dims.axes = axes.into_iter().map(|a| a.into_iter().flatten().collect()).collect();
    dims
}

type ByObject = HashMap<(FileNumber, Token), usize>;
/// netCDF numbers the dimensions of each file.
type ById = HashMap<(FileNumber, i128), usize>;

impl Dims {
    fn add(&mut self, dimension: Dimension, group: usize) -> usize {
        let number = self.list.len();
        if dimension.is_named() {
            self.by_name.entry((group, dimension.name.clone(), dimension.len)).or_insert(number);
        } else {
            self.phony.entry((group, dimension.len, dimension.unlimited)).or_default().push(number);
        }
        self.paths.insert(dimension.path.clone());
        self.list.push(dimension);
        number
    }

    /// A dimension for each scale, known by object and by netCDF's number.
    fn add_scales(&mut self, datasets: &[Dataset]) -> (ByObject, ById) {
        let (mut by_object, mut by_id) = (HashMap::new(), HashMap::new());
        for (i, d) in datasets.iter().enumerate() {
            let (true, Some(&len)) = (d.attributes.is_scale(), d.shape.first()) else { continue };
            let path = d.found.path.clone();
            let dimension = Dimension {
                name: leaf(&path).to_owned(),
                path,
                len,
                unlimited: d.unlimited[0],
                naming: Naming::File,
                coordinate: None,
            };
            let number = self.add(dimension, d.found.group);
            self.counted += 1;
            self.scale.insert(number, i);
            by_object.insert((d.found.file, d.found.token), number);
            if let Some(&[id]) = d.attributes.ints("_Netcdf4Dimid") {
                by_id.insert((d.found.file, id), number);
            }
        }
        (by_object, by_id)
    }

    /// The dimensions that the file names for a dataset's axes.
    fn named_axes(
        &mut self,
        d: &Dataset,
        by_object: &ByObject,
        by_id: &ById,
        groups: &[Group],
    ) -> Vec<Option<usize>> {
        let rank = d.shape.len();
        if let Some(ids) = d.attributes.ints("_Netcdf4Coordinates").filter(|ids| ids.len() == rank) {
            return ids.iter().map(|&id| by_id.get(&(d.found.file, id)).copied()).collect();
        }
        let mut axes = vec![None; rank];
        if d.attributes.is_scale() {
            if let Some(first) = axes.first_mut() {
                *first = by_object.get(&(d.found.file, d.found.token)).copied();
            }
            return axes;
        }
        for (axis, scale) in axes.iter_mut().zip(&d.attributes.scales) {
            *axis = scale.and_then(|token| by_object.get(&(d.found.file, token)).copied());
        }
        let labels = match d.attributes.own.get("DIMENSION_LABELS") {
            Some(AttrValue::Texts(labels)) => labels.clone(),
            Some(AttrValue::Text(label)) => vec![label.clone()],
            _ => Vec::new(),
        };
        for (k, label) in labels.iter().enumerate().take(rank) {
            if axes[k].is_none() && !label.is_empty() {
                axes[k] = Some(self.labelled(label, d, k, &groups[d.found.group].path));
            }
        }
        axes
    }

    /// The dimension that a label means: one per group, label and length.
    fn labelled(&mut self, label: &str, d: &Dataset, k: usize, group_path: &str) -> usize {
        let (group, len, unlimited) = (d.found.group, d.shape[k], d.unlimited[k]);
        let known = self.by_name.get(&(group, label.to_owned(), len)).copied();
        known.unwrap_or_else(|| {
            let path = self.free_path(group_path, label);
            let dimension = Dimension {
                name: label.to_owned(),
                path,
                len,
                unlimited,
                naming: Naming::File,
                coordinate: None,
            };
            self.add(dimension, group)
        })
    }

    /// The dimension that a convention's name means: one per scope, name and length.
    fn conventional(
        &mut self,
        said: &AxisName,
        d: &Dataset,
        k: usize,
        group_at: &HashMap<&str, usize>,
    ) -> usize {
        let (name, len, unlimited) = (&said.name, d.shape[k], d.unlimited[k]);
        let group = group_at.get(said.scope.as_str()).copied().unwrap_or_default();
        let known = self.by_name.get(&(group, name.clone(), len)).copied();
        known.unwrap_or_else(|| {
            let (name, path, naming) = (name.clone(), self.free_path(&said.scope, name), said.naming);
            self.add(Dimension { name, path, len, unlimited, naming, coordinate: None }, group)
        })
    }

    /// `group/name`, or the first `group/name_1`, `group/name_2` ... that no dimension has yet.
    fn free_path(&mut self, group: &str, name: &str) -> String {
        let full = if group.is_empty() { name.to_owned() } else { format!("{group}/{name}") };
        if self.paths.contains(&full) { self.numbered(full, 1) } else { full }
    }

    /// The first `path_n` from `first` on that no dimension has yet.
    fn numbered(&mut self, path: String, first: u64) -> String {
        let mut n = self.next.get(&(path.clone(), first)).copied().unwrap_or(first);
        let mut free = format!("{path}_{n}");
        while self.paths.contains(&free) {
            n += 1;
            free = format!("{path}_{n}");
        }
        self.next.insert((path, first), n);
        free
    }

    /// In netCDF the length of an unlimited dimension is that of its longest array.
    fn grow_unlimited(&mut self, datasets: &[Dataset], named: &[Vec<Option<usize>>]) {
        for (d, axes) in datasets.iter().zip(named) {
            for (&axis, &len) in axes.iter().zip(&d.shape) {
                if let Some(dimension) = axis.map(|i| &mut self.list[i]).filter(|dim| dim.unlimited) {
                    dimension.len = dimension.len.max(len);
                }
            }
        }
    }

    /// Gives a second axis along one dimension, and an axis of another length, a dimension of its own.
    fn settle(&mut self, d: &Dataset, named: &[Option<usize>], is_netcdf: bool) -> Vec<Option<usize>> {
        let mut out: Vec<Option<usize>> = Vec::with_capacity(named.len());
        for (k, &axis) in named.iter().enumerate() {
            let Some(dimension) = axis else {
                out.push(None);
                continue;
            };
            let before = named[..k].iter().filter(|&&other| other == axis).count();
            let have = &self.list[dimension];
            let fits = have.len == d.shape[k] || (is_netcdf && have.unlimited);
            let len = if fits { have.len } else { d.shape[k] };
            out.push(Some(if fits && before == 0 {
                dimension
            } else {
                self.variant(dimension, before, len)
            }));
        }
        out
    }

    fn variant(&mut self, of: usize, occurrence: usize, len: u64) -> usize {
        if let Some(&known) = self.variants.get(&(of, occurrence, len)) {
            return known;
        }
        let base = self.list[of].clone();
        let path = self.numbered(base.path.clone(), occurrence.max(1) as u64);
        let dimension = Dimension { name: leaf(&path).to_owned(), path, len, coordinate: None, ..base };
        let number = self.list.len();
        self.paths.insert(dimension.path.clone());
        self.list.push(dimension);
        self.variants.insert((of, occurrence, len), number);
        number
    }

    /// Gives each axis that nothing names a dimension of its length, which the array does not use yet.
    fn fill_phony(&mut self, d: &Dataset, axes: &mut [Option<usize>], groups: &[Group]) {
        for k in 0..axes.len() {
            if axes[k].is_none() {
                let key = (d.found.group, d.shape[k], d.unlimited[k]);
                axes[k] = Some(self.of_length(key, axes, groups));
            }
        }
    }

    /// Dimensions for the axes within an item (a compound's array member): phony ones of the group.
    pub(crate) fn inner(
        &mut self,
        d: &Dataset,
        axes: &[usize],
        lens: &[u64],
        groups: &[Group],
    ) -> Vec<usize> {
        let mut used: Vec<Option<usize>> = axes.iter().copied().map(Some).collect();
        for &len in lens {
            let number = self.of_length((d.found.group, len, false), &used, groups);
            used.push(Some(number));
        }
        used.into_iter().skip(axes.len()).flatten().collect()
    }

    /// The dimension without a name of this group, length and growth that is not used yet.
    fn of_length(&mut self, key: (usize, u64, bool), used: &[Option<usize>], groups: &[Group]) -> usize {
        let candidates = self.phony.get(&key).map_or(&[][..], Vec::as_slice);
        let known = candidates.iter().copied().find(|&i| !used.contains(&Some(i)));
        known.unwrap_or_else(|| {
            let (group, len, unlimited) = key;
            let name = format!("phony_dim_{}", self.counted);
            self.counted += 1;
            let path = self.free_path(&groups[group].path, &name);
            self.add(
                Dimension { name, path, len, unlimited, naming: Naming::Length, coordinate: None },
                group,
            )
        })
    }

    /// The dimension of this name for all arrays alike, as the user asked; an existing one of the root group
    /// where the length agrees.
    pub(crate) fn global(&mut self, name: &str, len: u64) -> Result<usize, u64> {
        match self.list.iter().position(|d| d.path == name) {
            Some(known) if self.list[known].len == len => Ok(known),
            Some(known) => Err(self.list[known].len),
            None => Ok(self.add(
                Dimension {
                    name: name.to_owned(),
                    path: name.to_owned(),
                    len,
                    unlimited: false,
                    naming: Naming::Caller,
                    coordinate: None,
                },
                0,
            )),
        }
    }

    /// The dimension for the `occurrence`-th further axis along `of`.
    pub(crate) fn again(&mut self, of: usize, occurrence: usize) -> usize {
        if occurrence == 0 { of } else { self.variant(of, occurrence, self.list[of].len) }
    }
}

/// The datasets in the order in which the netCDF library makes phony dimensions: those of inner groups first.
fn in_post_order(datasets: &[Dataset], groups: &[Group]) -> Vec<usize> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
    for (i, group) in groups.iter().enumerate().skip(1) {
        children[group.parent].push(i);
    }
    let mut of_group: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
    for (i, d) in datasets.iter().enumerate() {
        of_group[d.found.group].push(i);
    }
    let mut out = Vec::with_capacity(datasets.len());
    let mut todo = if groups.is_empty() { Vec::new() } else { vec![(0, false)] };
    while let Some((group, is_done)) = todo.pop() {
        if is_done {
            out.append(&mut of_group[group]);
        } else {
            todo.push((group, true));
            todo.extend(children[group].iter().rev().map(|&child| (child, false)));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn netcdf_prefix_is_taken_off_the_leaf_only() {
        assert_eq!(array_path("g/_nc4_non_coord_x"), "g/x");
        assert_eq!(array_path("_nc4_non_coord_/x"), "_nc4_non_coord_/x");
        assert_eq!(array_path("x"), "x");
    }

    #[test]
    fn a_second_axis_gets_the_next_free_name() {
        let mut dims = Dims::default();
        let n = dims.global("n", 4).unwrap();
        assert_eq!(dims.global("n", 4), Ok(n));
        assert_eq!(dims.global("n", 5), Err(4));
        let again = dims.again(n, 1);
        assert_eq!(dims.list[again].name, "n_1");
        assert_eq!(dims.again(n, 1), again);
    }
}
