//! Which groups and arrays there are: from consolidated metadata, else by listing the tree.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sieva_store::{Entry, ObjectTree, Want};
use sieva_types::{Error, ErrorKind, Result};

use crate::json::{self, Documents, SPAN, member};

/// The most groups and arrays of one source.
const MAX_NODES: usize = 200_000;
/// The deepest nesting of groups.
const MAX_DEPTH: usize = 64;

/// A version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V2,
    V3,
}

/// The metadata of one group or array.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The array's document: `.zarray`, or `zarr.json` of an array.
    pub(crate) array: Option<Value>,
    /// The attributes.
    pub(crate) attrs: Map<String, Value>,
}

/// What there is.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) version: Version,
    /// By path, the root's is empty: a group comes before what is in it.
    pub(crate) nodes: BTreeMap<String, Node>,
    /// Paths that are left alone, with the reason.
    pub(crate) left_out: Vec<(String, Error)>,
    /// The documents that were read.
    pub(crate) documents: Documents,
    /// The tree's objects, where they were listed.
    pub(crate) listing: Option<Vec<Entry>>,
}

/// Whether a Zarr group or array of either version is at the root of `tree`.
///
/// # Errors
/// What reading an object says.
pub fn is_zarr(tree: &dyn ObjectTree) -> Result<bool> {
    announce(tree, ROOTS.map(str::to_owned).as_slice());
    let mut bytes = Vec::new();
    for key in ROOTS {
        if tree.get(key, &SPAN, &mut bytes)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The documents that make a directory Zarr.
const ROOTS: [&str; 4] = ["zarr.json", ".zmetadata", ".zgroup", ".zarray"];

/// Finds all groups and arrays of `tree`.
pub(crate) fn discover(tree: &dyn ObjectTree) -> Result<Found> {
    announce(tree, ROOTS.map(str::to_owned).as_slice());
    let mut documents = Documents::default();
    let is_v3 = documents.read(tree, "zarr.json")?;
    let version = if is_v3.is_some() { Version::V3 } else { Version::V2 };
    let listing = if tree.is_remote() { None } else { tree.list("")? };
    let (nodes, left_out) = (BTreeMap::new(), Vec::new());
    let mut found = Found { version, nodes, left_out, documents, listing };
    match is_v3 {
        Some(root) => found.version_3(tree, root)?,
        None => found.version_2(tree)?,
    }
    found.add_outer_groups();
    Ok(found)
}

/// Says that these documents are about to be read.
fn announce(tree: &dyn ObjectTree, keys: &[String]) {
    if tree.is_remote() {
        let wants: Vec<Want> = keys.iter().map(|key| Want { key: key.clone(), span: SPAN }).collect();
        tree.will_need(&wants);
    }
}

impl Found {
    fn version_3(&mut self, tree: &dyn ObjectTree, root: Value) -> Result<()> {
        let consolidated = member(member(&root, "consolidated_metadata"), "metadata").as_object().cloned();
        let is_array = member(&root, "node_type") == "array";
        self.add_v3(String::new(), root)?;
        if is_array {
            return Ok(());
        }
        if let Some(documents) = consolidated {
            return documents.into_iter().try_for_each(|(path, document)| self.add_v3(path, document));
        }
        let keys = self.list(tree, &["zarr.json"])?;
        for key in &keys {
            let path = key.strip_suffix("/zarr.json").unwrap_or_default();
            match self.documents.read(tree, key) {
                Ok(Some(document)) => self.add_v3(path.to_owned(), document)?,
                Ok(None) => {}
                Err(e) => self.leave_out(path, e)?,
            }
        }
        Ok(())
    }

    fn add_v3(&mut self, path: String, mut document: Value) -> Result<()> {
        let attrs = member(&document, "attributes").as_object().cloned().unwrap_or_default();
        let node_type = member(&document, "node_type").as_str().map(str::to_owned);
        if member(&document, "zarr_format").as_u64() != Some(3) {
            let given = json::shown(member(&document, "zarr_format"));
            let e = Error::new(ErrorKind::Unsupported, format!("zarr_format is {given}, expected 3"));
            return self.leave_out(&path, e);
        }
        match node_type.as_deref() {
            Some("group") => self.add(path, |node| node.attrs = attrs),
            Some("array") => {
                if let Some(map) = document.as_object_mut() {
                    map.remove("attributes");
                }
                self.add(path, |node| (node.array, node.attrs) = (Some(document), attrs))
            }
            other => {
                let e = Error::corrupt(format!("node_type is {other:?}, expected \"group\" or \"array\""));
                self.leave_out(&path, e)
            }
        }
    }

    fn version_2(&mut self, tree: &dyn ObjectTree) -> Result<()> {
        if let Some(document) = self.documents.read(tree, ".zmetadata")? {
            if document.get("record_size").is_some() {
                let message = "chunks are references into other files, kept in Parquet";
                return Err(Error::new(ErrorKind::Unsupported, message)
                    .hint("import the references as a manifest, or open the original files"));
            }
            let metadata = json::object(member(&document, "metadata"), "'metadata' in '.zmetadata'")?;
            return metadata.iter().try_for_each(|(key, document)| self.add_v2(key, document.clone()));
        }
        if let Some(array) = self.documents.read(tree, ".zarray")? {
            self.add_v2(".zarray", array)?;
            if let Some(attrs) = self.documents.read(tree, ".zattrs")? {
                self.add_v2(".zattrs", attrs)?;
            }
            return Ok(());
        }
        if self.documents.read(tree, ".zgroup")?.is_none() {
            let message = format!("'{}' holds no Zarr group or array", tree.name());
            return Err(Error::new(ErrorKind::UnknownFormat, message)
                .hint("expected is one of zarr.json, .zmetadata, .zgroup, .zarray at the root"));
        }
        self.nodes.entry(String::new()).or_default();
        for key in self.list(tree, &[".zgroup", ".zarray", ".zattrs"])? {
            match self.documents.read(tree, &key) {
                Ok(Some(document)) => self.add_v2(&key, document)?,
                Ok(None) => {}
                Err(e) => self.leave_out(key.rsplit_once('/').map_or("", |(path, _)| path), e)?,
            }
        }
        Ok(())
    }

    /// Adds what the document `key` says: of a group, an array or attributes.
    fn add_v2(&mut self, key: &str, document: Value) -> Result<()> {
        let (path, name) = key.rsplit_once('/').unwrap_or(("", key));
        match name {
            ".zgroup" => self.add(path.to_owned(), |_| {}),
            ".zarray" => self.add(path.to_owned(), |node| node.array = Some(document)),
            ".zattrs" => match document {
                Value::Object(attrs) => self.add(path.to_owned(), |node| node.attrs = attrs),
                other => self.leave_out(path, json::wrong(".zattrs", "an object", &other)),
            },
            _ => Ok(()),
        }
    }

    fn add(&mut self, path: String, change: impl FnOnce(&mut Node)) -> Result<()> {
        if let Err(e) = check_path(&path) {
            return self.leave_out(&path, e);
        }
        if self.nodes.len() >= MAX_NODES {
            return Err(too_many());
        }
        change(self.nodes.entry(path).or_default());
        Ok(())
    }

    fn leave_out(&mut self, path: &str, e: Error) -> Result<()> {
        if path.is_empty() {
            return Err(e);
        }
        if self.left_out.len() >= MAX_NODES {
            return Err(too_many());
        }
        self.left_out.push((path.to_owned(), e));
        Ok(())
    }

    /// The keys of documents of these names below the root.
    fn list(&mut self, tree: &dyn ObjectTree, names: &[&str]) -> Result<Vec<String>> {
        if self.listing.is_none() {
            self.listing = tree.list("")?;
        }
        let Some(listing) = &self.listing else {
            let message = format!("'{}' cannot be listed and has no consolidated metadata", tree.name());
            return Err(Error::new(ErrorKind::Unsupported, message).hint(
                "consolidate it (zarr.consolidate_metadata), or open one of its arrays by its own URL",
            ));
        };
        let is_wanted = |key: &&str| {
            key.rsplit_once('/')
                .map_or(names.contains(key) && **key != *"zarr.json", |(_, name)| names.contains(&name))
        };
        let keys: Vec<String> =
            listing.iter().map(|e| e.key.as_str()).filter(is_wanted).map(str::to_owned).collect();
        if keys.len() > MAX_NODES {
            return Err(too_many());
        }
        announce(tree, &keys);
        Ok(keys)
    }

    /// Groups that only follow from the paths of what is in them.
    fn add_outer_groups(&mut self) {
        let paths: Vec<String> = self.nodes.keys().cloned().collect();
        for path in paths {
            let mut path = path.as_str();
            while let Some((outer, _)) = path.rsplit_once('/') {
                if self.nodes.contains_key(outer) {
                    break;
                }
                self.nodes.insert(outer.to_owned(), Node::default());
                path = outer;
            }
        }
        self.nodes.entry(String::new()).or_default();
    }
}

fn too_many() -> Error {
    Error::new(ErrorKind::Unsupported, format!("more than {MAX_NODES} groups and arrays"))
}

/// Refuses paths that could lead out of the tree.
fn check_path(path: &str) -> Result<()> {
    let parts = || path.split('/');
    let is_bad = |part: &str| part.is_empty() || part == "." || part == ".." || part.contains(['\0', '\\']);
    if !path.is_empty() && (parts().any(is_bad) || parts().count() > MAX_DEPTH) {
        let message = format!("'{path}' is no path of a group or array within the source");
        return Err(Error::new(ErrorKind::LinkRefused, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_out_are_refused() {
        for bad in ["..", "a/../b", "/a", "a//b", "a/", ".", "a\0b", "..\\x"] {
            assert_eq!(check_path(bad).unwrap_err().kind(), ErrorKind::LinkRefused, "{bad}");
        }
        for good in ["", "a", "a/b.c", "a b/ü", "...x"] {
            assert!(check_path(good).is_ok(), "{good}");
        }
    }
}
