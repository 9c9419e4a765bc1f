//! A manifest as a reference set.

use std::collections::BTreeSet;
use std::sync::Arc;

use sieva_types::{Error, ErrorKind, Result};

use super::data::{Fit, Grid};
use super::{Reference, References, zarr};
use crate::decoding::Number;
use crate::layout::Layout;
use crate::manifest::Manifest;
use crate::schema::{ArrayInfo, Schema};

const GROUP: &str = "{\"zarr_format\":2}";

/// A reference set, and what is not, or not quite, in it.
#[derive(Clone, Debug, Default)]
pub struct Exported {
    /// The set.
    pub references: References,
    /// Arrays that are left out, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// What readers of the set will see otherwise than readers of the file, in words.
    pub warnings: Vec<String>,
}

/// The reference set of a manifest whose object is at `url`. Shapes, types, values and attributes are those of the
/// file; attributes without a plain value and those by which libraries keep house are not in it.
///
/// # Errors
/// `unsupported` where no layout is known at all: the manifest was taken without.
pub fn export(manifest: &Manifest, url: &str) -> Result<Exported> {
    let schema = manifest.schema();
    let url: Arc<str> = Arc::from(url);
    let mut out = Exported::default();
    for path in group_paths(schema) {
        let attrs = schema.groups.iter().find(|g| g.path == path).map_or(&[][..], |g| &g.attrs);
        out.put(&path, ".zgroup", GROUP.into());
        out.put(&path, ".zattrs", zarr::group_attrs(attrs));
    }
    let mut known = 0;
    for (i, array) in schema.arrays.iter().enumerate() {
        let found = match manifest.layout(i) {
            Ok(Some(layout)) => {
                known += 1;
                out.add(schema, array, &layout, &url)
            }
            Ok(None) => Err("the manifest does not tell where it lies".into()),
            Err(e) => Err(e.message().to_owned()),
        };
        if let Err(why) = found {
            out.left_out.push((array.path.clone(), why));
        }
    }
    if known == 0
        && !schema.arrays.is_empty()
        && out.left_out.iter().all(|(_, why)| why.starts_with("the manifest"))
    {
        return Err(Error::new(ErrorKind::Unsupported, "the manifest has no layouts to make references of")
            .hint("take it with the layouts of all arrays"));
    }
    Ok(out)
}

/// The paths of all groups, those included that only stand above others.
fn group_paths(schema: &Schema) -> BTreeSet<String> {
    let mut paths = BTreeSet::from([String::new()]);
    let arrays = schema.arrays.iter().filter_map(|a| a.path.rsplit_once('/')).map(|(group, _)| group);
    for path in schema.groups.iter().map(|g| g.path.as_str()).chain(arrays) {
        paths.extend(path.match_indices('/').map(|(end, _)| path[..end].to_owned()));
        paths.insert(path.to_owned());
    }
    paths
}

impl Exported {
    fn put(&mut self, path: &str, leaf: &str, text: String) {
        let key = if path.is_empty() { leaf.to_owned() } else { format!("{path}/{leaf}") };
        self.references.entries.insert(key, Reference::Inline(text.into_bytes()));
    }

    fn add(&mut self, schema: &Schema, array: &ArrayInfo, layout: &Layout, url: &Arc<str>) -> Fit<()> {
        let grid = Grid::new(array, layout)?;
        let mut codecs = Vec::new();
        for filter in &layout.pipeline.filters {
            let none = || format!("numcodecs has no codec for the filter '{}'", filter.name());
            codecs.push(zarr::codec(filter).ok_or_else(none)?);
        }
        let (chunks, absent) = grid.references(url)?;
        let fill = self.fill(array, layout, &grid, absent)?;
        let dtype = zarr::dtype(layout, grid.size);
        let zarray = zarr::array(&grid.shape, &grid.zarr_chunks(), &dtype, fill.as_deref(), &codecs);
        self.put(&array.path, ".zarray", zarray);
        self.put(&array.path, ".zattrs", zarr::array_attrs(schema, array, fill.is_some()));
        for (key, reference) in chunks {
            self.references.entries.insert(format!("{}/{key}", array.path), reference);
        }
        Ok(())
    }

    /// What `.zarray` says of the fill value. Readers take it for what is missing, so that it may only be what the
    /// file declares, or what stands where nothing was written.
    fn fill(&mut self, array: &ArrayInfo, layout: &Layout, grid: &Grid, absent: bool) -> Fit<Option<String>> {
        let declared = zarr::declared_fill(array);
        if !absent {
            return Ok(declared.map(|(text, _)| text));
        }
        let stored = zarr::fill(layout, grid.size).filter(|_| grid.has_fill());
        let Some(stored) = stored else { return Err("parts of it were never written".into()) };
        match declared {
            Some((_, number)) if same(number, &stored) => {}
            Some((text, _)) => {
                return Err(format!("what was never written is {stored} in it, its _FillValue is {text}"));
            }
            None => self.warnings.push(format!(
                "'{}': parts were never written and are {stored}; xarray takes every {stored} for missing",
                array.path
            )),
        }
        Ok(Some(stored))
    }
}

fn same(declared: Number, stored: &str) -> bool {
    match declared {
        Number::Int(i) => i.to_string() == stored,
        Number::Float(f) => zarr::float_text(f) == stored,
    }
}
