//! openPMD: axes of meshes by `axisLabels`, particles of one species along one dimension.

use std::collections::HashSet;

use sieva_format::schema::{AttrValue, GroupInfo, Naming, attr};

use super::{Contents, Names, axis_name, parent, set, texts};

/// Names the axes of mesh records, of the whole file, and those of particle records, of their species.
pub(super) fn name(contents: &Contents<'_>, names: &mut Names) {
    let Some(root) = contents.group("").filter(|g| attr(&g.attrs, "openPMD").is_some()) else { return };
    let folder = |name: &str| {
        let said = attr(&root.attrs, name).and_then(AttrValue::as_text).unwrap_or_default();
        said.trim_matches('/').to_owned()
    };
    let (meshes, particles) = (folder("meshesPath"), folder("particlesPath"));
    let alone = alone(contents, &particles);
    for (i, d) in contents.datasets.iter().enumerate() {
        let path = d.found.path.as_str();
        let labels = mesh_labels(contents, i);
        if let (Some(labels), true) = (labels, within(path, &meshes).is_some()) {
            // Of what an array has before the axes of its mesh (the modes of thetaMode) nothing is said.
            let Some(before) = names[i].len().checked_sub(labels.len()) else { continue };
            for (axis, label) in names[i][before..].iter_mut().zip(&labels) {
                set(axis, axis_name("", label, Naming::OpenPmd));
            }
        } else if let (Some(species), [axis]) = (within(path, &particles), &mut names[i][..]) {
            let folder = parent(species);
            let species = if alone.contains(folder) { folder } else { species };
            let patches = format!("{species}/particlePatches");
            let is_patch = path.starts_with(&format!("{patches}/"));
            let (scope, name) = if is_patch { (patches.as_str(), "patch") } else { (species, "particle") };
            set(axis, axis_name(scope, name, Naming::OpenPmd));
        }
    }
}

/// Folders of particles that are one species themselves, with its records right below: the position is a record of every
/// species.
fn alone<'p>(contents: &Contents<'p>, particles: &str) -> HashSet<&'p str> {
    let records = contents.datasets.iter().filter_map(|d| within(&d.found.path, particles));
    records.filter(|record| record.ends_with("/position")).map(parent).collect()
}

/// The labels of a mesh record's axes, outermost first: the attribute stands at the dataset, or at the group of its
/// components.
fn mesh_labels(contents: &Contents<'_>, dataset: usize) -> Option<Vec<String>> {
    let d = &contents.datasets[dataset];
    let own = &d.attributes.shown;
    let attrs = match contents.group(parent(&d.found.path)) {
        Some(GroupInfo { attrs, .. }) if attr(own, "axisLabels").is_none() => attrs,
        _ => own,
    };
    let mut labels = texts(attr(attrs, "axisLabels")?);
    if attr(attrs, "dataOrder").and_then(AttrValue::as_text) == Some("F") {
        labels.reverse();
    }
    (!labels.is_empty()).then_some(labels)
}

/// The path of the record or species that `path` lies in or is, where it is one of the folder: `data/5/meshes/E`.
fn within<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    if folder.is_empty() {
        return None;
    }
    let head = format!("{folder}/");
    let inner = format!("/{folder}/");
    let start = if path.starts_with(&head) { head.len() } else { path.find(&inner)? + inner.len() };
    let end = path[start..].find('/').map_or(path.len(), |n| start + n);
    Some(&path[..end])
}

#[cfg(test)]
mod tests {
    use super::within;

    #[test]
    fn records_lie_in_their_folder() {
        assert_eq!(within("data/5/meshes/E/x", "meshes"), Some("data/5/meshes/E"));
        assert_eq!(within("data/5/meshes/rho", "meshes"), Some("data/5/meshes/rho"));
        assert_eq!(within("meshes/rho", "meshes"), Some("meshes/rho"));
        assert_eq!(within("data/5/particles/e/position/x", "particles"), Some("data/5/particles/e"));
        assert_eq!(within("data/5/other/x", "particles"), None);
        assert_eq!(within("data/5/x", ""), None);
    }
}
