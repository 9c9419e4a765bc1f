//! The schema: datasets and their dimensions as arrays.

use std::collections::HashMap;

use sieva_format::decoding::Decoding;
use sieva_format::schema::{ArrayInfo, Dimension, GroupInfo, Schema};
use sieva_types::{DType, Error, ErrorKind, Result};

use crate::attrs;
use crate::bounds::{Bounds, DATASET, size_of_attrs};
use crate::conventions;
use crate::dataset::Dataset;
use crate::dims::{self, Dims};
use crate::leaves::{self, Leaf};
use crate::links::Policy;
use crate::source::Hdf5Options;
use crate::types::Kind;
use crate::walk::Tree;

/// What an array of the schema is in the file.
#[derive(Debug)]
pub(crate) struct Array {
    pub(crate) dataset: usize,
    pub(crate) leaf: Leaf,
    /// Whether the last dimension is that of characters.
    pub(crate) char_dim: bool,
}

/// The schema and what stands behind it.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) tree: Tree,
    pub(crate) schema: Schema,
    pub(crate) datasets: Vec<Dataset>,
    pub(crate) arrays: Vec<Array>,
}

struct Lister<'a> {
    tree: &'a Tree,
    options: &'a Hdf5Options,
    bounds: &'a Bounds,
    is_netcdf: bool,
    schema: Schema,
    arrays: Vec<Array>,
    dims: Dims,
    /// Place of the first array of each dataset and the number of its arrays.
    of_dataset: Vec<(usize, usize)>,
}

/// Lists the arrays of a walked file.
pub(crate) fn list(tree: Tree, policy: &Policy, options: &Hdf5Options, bounds: &Bounds) -> Result<Listing> {
    let _guard = crate::ffi::lock();
    let (schema, datasets, arrays) = list_arrays(&tree, policy, options, bounds)?;
    Ok(Listing { tree, schema, datasets, arrays })
}

fn list_arrays(
    tree: &Tree,
    policy: &Policy,
    options: &Hdf5Options,
    bounds: &Bounds,
) -> Result<(Schema, Vec<Dataset>, Vec<Array>)> {
    let mut schema =
        Schema { warnings: tree.warnings.clone(), left_out: tree.left_out.clone(), ..Schema::default() };
    let mut is_netcdf = read_groups(tree, &mut schema, bounds)?;
    let (datasets, number_of) = describe(tree, policy, &mut schema, bounds)?;
    is_netcdf |= datasets.iter().any(is_of_netcdf);
    schema.format = if is_netcdf { "netCDF-4" } else { "HDF5" }.to_owned();
    let said = conventions::names(tree, &datasets, &number_of, &schema.groups);
    let dims = dims::assign(&datasets, &tree.groups, &said, is_netcdf);
    let mut lister =
        Lister { tree, options, bounds, is_netcdf, schema, arrays: Vec::new(), dims, of_dataset: Vec::new() };
    for (i, d) in datasets.iter().enumerate() {
        bounds.check()?;
        lister.add(i, d)?;
    }
    bounds.check()?;
    let Lister { mut schema, arrays, mut dims, of_dataset, .. } = lister;
    for (path, _) in &options.dims {
        if schema.array(path).is_none() && !datasets.iter().any(|d| d.found.path == *path) {
            let what = format!("dimension names given for '{path}', which is no array of the file");
            return Err(Error::new(ErrorKind::UnknownArray, what));
        }
    }
    set_coordinates(&mut dims, &of_dataset, &schema.arrays);
    schema.dims = dims.list;
    drop_unused(&mut schema);
    schema.aliases = aliases(tree, &number_of, &of_dataset, &arrays);
    schema.resolve();
    Ok((schema, datasets, arrays))
}

/// Lists the groups; tells whether the root says that netCDF wrote the file.
fn read_groups(tree: &Tree, schema: &mut Schema, bounds: &Bounds) -> Result<bool> {
    let mut is_netcdf = false;
    for (i, group) in tree.groups.iter().enumerate() {
        let file = &tree.files[group.file];
        let attributes = file.object(group.token).and_then(|handle| attrs::read(file, &handle, bounds));
        bounds.check()?;
        match attributes {
            Ok(attributes) => {
                is_netcdf |= i == 0
                    && ["_NCProperties", "_nc3_strict"].iter().any(|name| attributes.own.contains_key(*name));
                schema.groups.push(GroupInfo { path: group.path.clone(), attrs: attributes.shown });
            }
            Err(e) => {
                schema.warnings.push(format!("attributes of group '{}' left out: {e}", group.path));
                schema.groups.push(GroupInfo { path: group.path.clone(), attrs: Vec::new() });
            }
        }
    }
    Ok(is_netcdf)
}

fn is_of_netcdf(d: &Dataset) -> bool {
    ["_Netcdf4Dimid", "_Netcdf4Coordinates"].iter().any(|name| d.attributes.own.contains_key(*name))
        || dims::is_only_dimension(d)
}

/// Opens each dataset once; one that cannot be understood is left out and said. Also gives, for each dataset of
/// the tree, its number among those described.
fn describe(
    tree: &Tree,
    policy: &Policy,
    schema: &mut Schema,
    bounds: &Bounds,
) -> Result<(Vec<Dataset>, Vec<Option<usize>>)> {
    let mut datasets = Vec::with_capacity(tree.datasets.len());
    let mut number_of = vec![None; tree.datasets.len()];
    for (i, found) in tree.datasets.iter().enumerate() {
        let described = Dataset::describe(tree, found, policy, bounds);
        bounds.take(DATASET + found.path.len());
        bounds.check()?;
        match described {
            Ok(Some(dataset)) => {
                number_of[i] = Some(datasets.len());
                datasets.push(dataset);
            }
            Ok(None) => {
                let e = Error::new(ErrorKind::Unsupported, "it holds nothing (a null dataspace)");
                leave_out(schema, &found.path, e);
            }
            Err(e) => leave_out(schema, &found.path, e),
        }
    }
    Ok((datasets, number_of))
}

/// Says what is not listed, and why.
fn leave_out(schema: &mut Schema, path: &str, e: Error) {
    schema.warnings.push(format!("'{path}' left out: {e}"));
    schema.left_out.push((path.to_owned(), e));
}

impl Lister<'_> {
    /// Adds the arrays of dataset number `i`.
    fn add(&mut self, i: usize, d: &Dataset) -> Result<()> {
        let first = self.arrays.len();
        if !dims::is_only_dimension(d) {
            let (leaves, left_out) = leaves::leaves(&d.info);
            let path = dims::array_path(&d.found.path);
            for what in left_out {
                leave_out(&mut self.schema, &path, Error::new(ErrorKind::Unsupported, what));
            }
            for leaf in leaves {
                self.add_leaf(i, d, &path, leaf)?;
            }
        }
        self.of_dataset.push((first, self.arrays.len() - first));
        Ok(())
    }

    fn add_leaf(&mut self, i: usize, d: &Dataset, dataset_path: &str, leaf: Leaf) -> Result<()> {
        let path = format!("{dataset_path}{}", leaf.suffix);
        let Some(dtype) = leaf.dtype() else { return Ok(()) };
        let mut axes = self.dims.axes[i].clone();
        let inner: Vec<u64> = leaf.inner.iter().map(|&(len, _)| len).collect();
        axes.extend(self.dims.inner(d, &axes, &inner, &self.tree.groups));
        let stored: Vec<u64> = d.shape.iter().copied().chain(inner).collect();
        self.name_axes(&path, dataset_path, &stored, &mut axes)?;
        let mut shape: Vec<u64> = axes.iter().map(|&axis| self.dims.list[axis].len).collect();
        // netCDF's type for single characters: the last dimension runs along a text. A member's characters
        // are within the item.
        let is_char =
            self.is_netcdf && matches!(leaf.element.kind, Kind::Text { .. }) && leaf.element.size == 1;
        let char_dim = is_char && !axes.is_empty() && (leaf.steps.is_empty() || !leaf.inner.is_empty());
        if char_dim {
            axes.pop();
            shape.pop();
        }
        self.bounds.take(DATASET + 3 * path.len() + size_of_attrs(&d.attributes.shown));
        self.bounds.check()?;
        let mut storage = d.storage_info();
        storage.stored_type = leaf.numpy_name();
        self.schema.arrays.push(ArrayInfo {
            path,
            dtype,
            dims: axes,
            shape,
            attrs: d.attributes.shown.clone(),
            enum_names: if dtype == DType::Str { Vec::new() } else { leaf.element.enum_names.clone() },
            decoding: Decoding::none(dtype),
            storage,
            coordinates: Vec::new(),
        });
        self.arrays.push(Array { dataset: i, leaf, char_dim });
        Ok(())
    }

    /// Puts the names that the user gave in the place of the file's.
    fn name_axes(&mut self, path: &str, dataset_path: &str, shape: &[u64], axes: &mut [usize]) -> Result<()> {
        let given =
            |wanted: &str| self.options.dims.iter().find(|(p, _)| p.trim_start_matches('/') == wanted);
        let Some((_, names)) = given(path).or_else(|| given(dataset_path)) else { return Ok(()) };
        let outer = self.dims.axes.get(self.of_dataset.len()).map_or(0, Vec::len);
        if names.len() != shape.len() && names.len() != outer {
            let what =
                format!("{} dimension names {names:?} given for '{path}' of shape {shape:?}", names.len());
            return Err(Error::new(ErrorKind::InvalidValue, what));
        }
        for (k, name) in names.iter().enumerate() {
            let global = self.dims.global(name, shape[k]).map_err(|len| {
                let what = format!("dimension '{name}' is {len} long, but {} in '{path}'", shape[k]);
                Error::new(ErrorKind::DimensionMismatch, what)
            })?;
            let before = names[..k].iter().filter(|other| *other == name).count();
            axes[k] = self.dims.again(global, before);
        }
        Ok(())
    }
}

/// A 1-D dimension scale is the coordinate of its dimension, also where the names differ.
fn set_coordinates(dims: &mut Dims, of_dataset: &[(usize, usize)], arrays: &[ArrayInfo]) {
    for (&dimension, &dataset) in &dims.scale {
        let (first, count) = of_dataset[dataset];
        let is_coordinate = |a: &ArrayInfo| a.dims == [dimension] && a.dtype != DType::Str;
        if count == 1 && is_coordinate(&arrays[first]) {
            dims.list[dimension].coordinate = Some(first);
        }
    }
}

/// Takes out phony dimensions that no array is left to use (a char array's, or renamed ones).
fn drop_unused(schema: &mut Schema) {
    let mut used: Vec<bool> = schema.dims.iter().map(Dimension::is_named).collect();
    for array in &schema.arrays {
        for &axis in &array.dims {
            used[axis] = true;
        }
    }
    let mut place = vec![0; used.len()];
    let mut kept = 0;
    for (i, &is_used) in used.iter().enumerate() {
        place[i] = kept;
        kept += usize::from(is_used);
    }
    let mut i = 0;
    schema.dims.retain(|_| {
        i += 1;
        used[i - 1]
    });
    for array in &mut schema.arrays {
        for axis in &mut array.dims {
            *axis = place[*axis];
        }
    }
}

/// The other paths of arrays.
fn aliases(
    tree: &Tree,
    number_of: &[Option<usize>],
    of_dataset: &[(usize, usize)],
    arrays: &[Array],
) -> Vec<(String, usize)> {
    let mut seen = HashMap::new();
    let mut out = Vec::new();
    for (path, dataset) in &tree.aliases {
        let Some(number) = number_of[*dataset] else { continue };
        let (first, count) = of_dataset[number];
        for (i, array) in arrays.iter().enumerate().skip(first).take(count) {
            let full = format!("{path}{}", array.leaf.suffix);
            if seen.insert(full.clone(), ()).is_none() {
                out.push((full, i));
            }
        }
    }
    out
}
