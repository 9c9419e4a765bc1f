//! Conventions that name dimensions where HDF5 itself does not: GPM, HDF-EOS5, openPMD, NeXus.

mod hdfeos;
mod nexus;
mod openpmd;

use std::collections::HashMap;

use sieva_format::schema::{AttrValue, GroupInfo, Naming, attr, leaf};

use crate::dataset::{Dataset, Storage};
use crate::memory::fixed_text;
use crate::types::Kind;
use crate::walk::Tree;
use crate::{leaves, library};

/// Longest part of the structural metadata of HDF-EOS5 that is read; the format writes 32000 bytes.
const METADATA_LIMIT: u64 = 1 << 20;
/// Most parts of it.
const METADATA_PARTS: usize = 16;

/// A name that a convention gives to an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AxisName {
    /// The group within which the name means one dimension; empty for the whole file.
    pub(crate) scope: String,
    pub(crate) name: String,
    pub(crate) naming: Naming,
}

/// For each dataset, the names of its axes as far as a convention says them.
pub(crate) type Names = Vec<Vec<Option<AxisName>>>;

/// What conventions look at.
struct Contents<'a> {
    datasets: &'a [Dataset],
    groups: &'a [GroupInfo],
    /// Groups by path. A hostile file has as many names as it has bytes, so that nothing is searched for.
    group_at: HashMap<&'a str, usize>,
    /// Datasets by path, other links to them included.
    by_path: HashMap<&'a str, usize>,
    /// The names in each group with their datasets, in order.
    members: HashMap<&'a str, Vec<(&'a str, usize)>>,
}

impl<'a> Contents<'a> {
    fn of(
        datasets: &'a [Dataset],
        groups: &'a [GroupInfo],
        paths: impl Iterator<Item = (&'a str, usize)>,
    ) -> Self {
        let (mut by_path, mut members) = (HashMap::new(), HashMap::<_, Vec<_>>::new());
        for (path, i) in paths {
            by_path.entry(path).or_insert(i);
            members.entry(parent(path)).or_default().push((leaf(path), i));
        }
        members.values_mut().for_each(|names| names.sort_unstable());
        let group_at = groups.iter().enumerate().map(|(i, g)| (g.path.as_str(), i)).collect();
        Self { datasets, groups, group_at, by_path, members }
    }

    fn group(&self, path: &str) -> Option<&'a GroupInfo> {
        self.group_at.get(path).map(|&i| &self.groups[i])
    }
}

/// The names that conventions give to the axes of all datasets. `number_of` is the number of each dataset of the tree.
pub(crate) fn names(
    tree: &Tree,
    datasets: &[Dataset],
    number_of: &[Option<usize>],
    groups: &[GroupInfo],
) -> Names {
    let own = datasets.iter().enumerate().map(|(i, d)| (d.found.path.as_str(), i));
    let links = tree.aliases.iter().filter_map(|(path, found)| Some((path.as_str(), number_of[*found]?)));
    let contents = Contents::of(datasets, groups, own.chain(links));
    let mut names: Names = datasets.iter().map(dimension_names).collect();
    let metadata = structural_metadata(tree, &contents);
    hdfeos::name(&contents, &metadata, &mut names);
    openpmd::name(&contents, &mut names);
    nexus::name(&contents, &mut names);
    names
}

/// The attribute `DimensionNames` of GPM: one name for each axis, of the whole file.
fn dimension_names(d: &Dataset) -> Vec<Option<AxisName>> {
    let said = attr(&d.attributes.shown, "DimensionNames").map(texts).unwrap_or_default();
    let said: Vec<&str> = said.iter().flat_map(|s| s.split(',')).map(str::trim).collect();
    let mut axes = vec![None; d.shape.len()];
    if said.len() == axes.len() {
        for (axis, name) in axes.iter_mut().zip(said) {
            *axis = axis_name("", name, Naming::DimensionNames);
        }
    }
    axes
}

/// A name for an axis, if it is one.
fn axis_name(scope: &str, name: &str, naming: Naming) -> Option<AxisName> {
    let is_name = !name.is_empty() && name != "." && !name.contains('/');
    is_name.then(|| AxisName { scope: scope.to_owned(), name: name.to_owned(), naming })
}

/// Sets what is not said yet.
fn set(axis: &mut Option<AxisName>, name: Option<AxisName>) {
    if axis.is_none() {
        *axis = name;
    }
}

/// The texts of an attribute.
fn texts(value: &AttrValue) -> Vec<String> {
    match value {
        AttrValue::Text(text) => vec![text.clone()],
        AttrValue::Texts(texts) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Name of the group that a path lies in.
fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(group, _)| group)
}

/// The text of `StructMetadata.0`, `.1` ... of HDF-EOS5; empty where it is none.
fn structural_metadata(tree: &Tree, contents: &Contents<'_>) -> String {
    let mut all = String::new();
    for part in 0..METADATA_PARTS {
        let path = format!("HDFEOS INFORMATION/StructMetadata.{part}");
        let Some(text) =
            contents.by_path.get(path.as_str()).and_then(|&i| scalar_text(tree, &contents.datasets[i]))
        else {
            break;
        };
        all.push_str(&text);
    }
    all
}

fn scalar_text(tree: &Tree, d: &Dataset) -> Option<String> {
    let is_own = matches!(d.storage, Storage::Contiguous | Storage::Compact) && d.refused.is_none();
    let is_text = matches!(d.info.kind, Kind::Text { .. }) && d.info.size <= METADATA_LIMIT;
    if !is_own || !is_text || d.shape.iter().any(|&n| n != 1) {
        return None;
    }
    let text = leaves::leaves(&d.info).0.into_iter().next()?;
    let mut bytes = vec![0; d.info.size as usize];
    library::read(tree, d, &text, &sieva_types::Bx::whole(&d.shape), &mut bytes).ok()?;
    Some(fixed_text(&bytes, true))
}
