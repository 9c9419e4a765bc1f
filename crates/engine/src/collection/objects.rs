//! The objects that the catalog leaves, with the values of the keys that are needed of them.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use sieva_catalog::{Catalog, Find, ObjectInfo, ObjectKind, Value};
use sieva_types::Result;

use super::shape::Shape;

/// An object: the group that holds the arrays.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Object {
    /// Path of the group; empty for the root.
    pub group: String,
    /// Values of [`Shape::keys`].
    pub values: Vec<Option<Value>>,
}

/// The objects of one source.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SourceObjects {
    /// Path or URL.
    pub location: String,
    /// In the order of its tree.
    pub objects: Vec<Object>,
    /// The state that it has to be in; any where there is none.
    pub pinned: Option<Pinned>,
}

/// What somebody else learnt of a source.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pinned {
    /// Its length, and a hash of its version.
    pub state: [u64; 2],
    /// A hash of samples of its content, where they were looked at.
    pub content: Option<u64>,
    /// What its manifest says of the objects ([`Excerpt::to_bytes`](sieva_format::manifest::Excerpt::to_bytes)): with it nothing is
    /// parsed, and no catalog asked.
    pub manifest: Option<Arc<[u8]>>,
}

impl SourceObjects {
    /// Objects of a source in any state.
    pub(super) fn of(location: String, objects: Vec<Object>) -> Self {
        Self { location, objects, pinned: None }
    }

    /// The source without its objects, and without what is known of them.
    pub(super) fn outline(&self) -> Self {
        let pinned = self.pinned.as_ref().map(|p| Pinned { manifest: None, ..p.clone() });
        Self { location: self.location.clone(), objects: Vec::new(), pinned }
    }
}

impl Pinned {
    /// A source whose content was looked at.
    pub(super) fn whole([len, version, content]: [u64; 3]) -> Self {
        Self { state: [len, version], content: Some(content), manifest: None }
    }
}

/// The objects that satisfy `find`, in the order of the sources' names and of their trees.
pub(super) fn find(catalog: &Catalog, find: Find, shape: &Shape) -> Result<Vec<SourceObjects>> {
    let Some(first) = shape.arrays.first() else { return Ok(Vec::new()) };
    let leaf = first.rsplit('/').next().unwrap_or(first);
    let found = catalog.find(&find.kind(Some(ObjectKind::Array)).name(leaf))?;
    let mut sources: Vec<SourceObjects> = Vec::new();
    for array in found {
        let Some(group) = group_of(&array.path, first) else { continue };
        let object = Object { group: group.to_string(), values: Vec::new() };
        match sources.last_mut() {
            Some(last) if last.location == array.location => last.objects.push(object),
            _ => sources.push(SourceObjects::of(array.location, vec![object])),
        }
    }
    sources.sort_by(|a, b| by_name(&a.location, &b.location));
    if !shape.keys.is_empty() {
        for source in &mut sources {
            add_values(catalog, source, shape, first)?;
        }
    }
    Ok(sources)
}

/// The natural order of names: `run2` before `run10`. Runs of digits are compared as numbers, all else by code points;
/// of names that are equal so the one with fewer leading zeros comes first.
fn by_name(a: &str, b: &str) -> Ordering {
    let (mut rest, mut other) = (a, b);
    while let (Some(x), Some(y)) = (rest.chars().next(), other.chars().next()) {
        let order = if x.is_ascii_digit() && y.is_ascii_digit() {
            let ((n, behind), (m, other_behind)) = (number(rest), number(other));
            (rest, other) = (behind, other_behind);
            n.len().cmp(&m.len()).then(n.cmp(m))
        } else {
            (rest, other) = (&rest[x.len_utf8()..], &other[y.len_utf8()..]);
            x.cmp(&y)
        };
        if order.is_ne() {
            return order;
        }
    }
    rest.len().cmp(&other.len()).then_with(|| a.len().cmp(&b.len())).then_with(|| a.cmp(b))
}

/// The digits at the front of a text without leading zeros, and what is behind them.
fn number(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    (text[..end].trim_start_matches('0'), &text[end..])
}

/// The group in which an array has the path `relative`.
fn group_of<'p>(path: &'p str, relative: &str) -> Option<&'p str> {
    match path.strip_suffix(relative)? {
        "" => Some(""),
        front => front.strip_suffix('/'),
    }
}

fn add_values(catalog: &Catalog, source: &mut SourceObjects, shape: &Shape, first: &str) -> Result<()> {
    let infos = catalog.show(&source.location)?.map(|(_, infos)| infos).unwrap_or_default();
    let by_path: HashMap<&str, &ObjectInfo> = infos.iter().map(|i| (i.path.as_str(), i)).collect();
    for object in &mut source.objects {
        let array = super::paths::within(&object.group, first);
        object.values = shape.keys.iter().map(|key| value_of(&by_path, &array, key)).collect();
    }
    Ok(())
}

/// The nearest value of a key: of the array itself, else of the groups above it.
fn value_of(by_path: &HashMap<&str, &ObjectInfo>, array: &str, key: &str) -> Option<Value> {
    let mut path = array;
    loop {
        // On one object tags stand last, and hold.
        let here = by_path.get(path).and_then(|info| info.attributes.iter().rev().find(|(k, _, _)| k == key));
        if let Some((_, value, _)) = here {
            return Some(value.clone());
        }
        if path.is_empty() {
            return None;
        }
        path = path.rsplit_once('/').map_or("", |(above, _)| above);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_as_people_read_them() {
        let mut names = [
            "run10.h5",
            "run2.h5",
            "run02.h5",
            "Run3.h5",
            "run2a.h5",
            "run.h5",
            "b/run1.h5",
            "run2.h5",
            "é1",
            "run2",
        ];
        names.sort_by(|a, b| by_name(a, b));
        assert_eq!(
            names,
            [
                "Run3.h5",
                "b/run1.h5",
                "run.h5",
                "run2",
                "run2.h5",
                "run2.h5",
                "run02.h5",
                "run2a.h5",
                "run10.h5",
                "é1"
            ]
        );
        let long = "9".repeat(100);
        assert_eq!(by_name(&format!("a1{long}"), &format!("a{long}")), Ordering::Greater);
    }
}
