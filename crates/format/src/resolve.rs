//! Names that refer to other arrays: coordinate variables and CF `coordinates`, for every format alike.

use std::collections::HashMap;

use sieva_types::{DType, Error, ErrorKind, Result};

use crate::decoding::Decoding;
use crate::schema::{AttrValue, Dimension, Naming, Schema, attr, leaf};

impl Schema {
    /// Fills in what follows from dimensions and attributes: each array's decoding, each dimension's
    /// coordinate array, each array's auxiliary coordinates. A reader calls it once its lists stand.
    pub fn resolve(&mut self) {
        for i in 0..self.arrays.len() {
            let mut said = Vec::new();
            let array = &self.arrays[i];
            let decoding = Decoding::from_attrs(array.dtype, &array.attrs, &mut said);
            let path = array.path.clone();
            self.warnings.extend(said.into_iter().map(|w| format!("{path}: {w}")));
            self.arrays[i].decoding = decoding;
        }
        // Looked up by path once: a hostile file has as many names as it has bytes.
        let paths: HashMap<String, usize> =
            self.arrays.iter().enumerate().rev().map(|(i, a)| (a.path.clone(), i)).collect();
        self.find_coordinate_arrays(&paths);
        for i in 0..self.arrays.len() {
            self.arrays[i].coordinates = self.auxiliary_coordinates(i, &paths);
        }
    }

    /// Gives an array's dimensions the names that a user wants; arrays given one name line up along it.
    ///
    /// # Errors
    /// `unknown-array`, or `dimension-mismatch` where the number of names or a length does not fit.
    pub fn name_dims(&mut self, path: &str, names: &[String]) -> Result<()> {
        let path = path.trim_start_matches('/');
        let unknown = || {
            Error::new(
                ErrorKind::UnknownArray,
                format!("dimension names given for '{path}', which is no array of the file"),
            )
        };
        let array = self.array(path).ok_or_else(unknown)?;
        let shape = self.arrays[array].shape.clone();
        if shape.len() != names.len() {
            let message = format!(
                "'{path}' has {} dimensions, {} names were given: {}",
                shape.len(),
                names.len(),
                names.join(", ")
            );
            return Err(Error::new(ErrorKind::DimensionMismatch, message));
        }
        for (axis, (name, &len)) in names.iter().zip(&shape).enumerate() {
            let known = self.dims.iter().position(|d| d.path == *name);
            if let Some(other) = known.map(|d| self.dims[d].len).filter(|&n| n != len) {
                let message =
                    format!("dimension '{name}' of '{path}' has length {len}, elsewhere it has {other}");
                return Err(Error::new(ErrorKind::DimensionMismatch, message));
            }
            self.arrays[array].dims[axis] = known.unwrap_or_else(|| {
                let (name, path) = (name.clone(), name.clone());
                self.dims.push(Dimension {
                    name,
                    path,
                    len,
                    unlimited: false,
                    naming: Naming::Caller,
                    coordinate: None,
                });
                self.dims.len() - 1
            });
        }
        Ok(())
    }

    /// A 1-D array along a dimension and of its path is the dimension's coordinate (NUG 2.3.1).
    fn find_coordinate_arrays(&mut self, paths: &HashMap<String, usize>) {
        for d in 0..self.dims.len() {
            if self.dims[d].coordinate.is_none() && self.dims[d].is_named() {
                let found = paths.get(&self.dims[d].path).copied();
                let is_coordinate =
                    |&i: &usize| self.arrays[i].dims == [d] && self.arrays[i].dtype != DType::Str;
                self.dims[d].coordinate = found.filter(is_coordinate);
            }
        }
    }

    /// The arrays that the CF `coordinates` attribute of array `i` names, looked up from its group outwards.
    fn auxiliary_coordinates(&self, i: usize, paths: &HashMap<String, usize>) -> Vec<usize> {
        let array = &self.arrays[i];
        let Some(names) = attr(&array.attrs, "coordinates").and_then(AttrValue::as_text) else {
            return Vec::new();
        };
        let group = array.path.strip_suffix(leaf(&array.path)).unwrap_or("").trim_end_matches('/');
        let mut found: Vec<usize> =
            names.split_whitespace().filter_map(|name| lookup(paths, group, name)).collect();
        found.retain(|&c| c != i && self.arrays[c].dims.iter().all(|d| array.dims.contains(d)));
        let mut seen = std::collections::HashSet::new();
        found.retain(|&c| seen.insert(c));
        found
    }
}

/// The array `name` as seen from `group`: there, then in each enclosing group (CF 2.7).
fn lookup(paths: &HashMap<String, usize>, group: &str, name: &str) -> Option<usize> {
    let name = name.trim_start_matches('/');
    let mut group = group;
    loop {
        let found = if group.is_empty() { paths.get(name) } else { paths.get(&format!("{group}/{name}")) };
        if found.is_some() || group.is_empty() {
            return found.copied();
        }
        group = group.rsplit_once('/').map_or("", |(outer, _)| outer);
    }
}
