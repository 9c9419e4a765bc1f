//! Which groups and arrays there are: from consolidated metadata, else by listing the tree.

use std::collections::BTreeMap;
use std::time::Instant;

use serde_json::{Map, Value};
use sieva_store::{ObjectTree, Want};
use sieva_types::{Error, ErrorKind, Result};

use crate::budget::Budget;
use crate::documents::{Documents, SPAN, Text};
use crate::json::{self, member};
use crate::store::{Listed, version_of};

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

/// Where the metadata of one group or array are.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The array's document: `.zarray`, or `zarr.json` of an array.
    pub(crate) array: Option<Text>,
    /// The attributes.
    pub(crate) attrs: Option<Text>,
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
    /// What the listing of the tree's objects tells, where they were listed.
    listing: Option<Listing>,
}

/// A listing of which only that is kept which is needed: there may be a million chunks.
#[derive(Debug)]
struct Listing {
    listed: Listed,
    /// The keys of metadata documents.
    documents: Vec<String>,
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
pub(crate) fn discover(tree: &dyn ObjectTree, budget: Budget) -> Result<Found> {
    announce(tree, ROOTS.map(str::to_owned).as_slice());
    let mut documents = Documents::new(budget);
    let is_v3 = documents.read(tree, "zarr.json")?;
    let version = if is_v3.is_some() { Version::V3 } else { Version::V2 };
    let (nodes, left_out) = (BTreeMap::new(), Vec::new());
    let mut found = Found { version, nodes, left_out, documents, listing: None };
    if !tree.is_remote() {
        found.list(tree)?;
    }
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

/// What documents of version 2 are called, and what those of version 3.
const NAMES_V2: [&str; 3] = [".zgroup", ".zarray", ".zattrs"];
const NAME_V3: &str = "zarr.json";

impl Found {
    /// What listing the tree told, where it was listed.
    pub(crate) fn listed(&self) -> Option<Listed> {
        self.listing.as_ref().map(|l| l.listed.clone())
    }

    fn version_3(&mut self, tree: &dyn ObjectTree, root: Text) -> Result<()> {
        let path = ["consolidated_metadata", "metadata"];
        let (document, consolidated) = self.documents.parse_around(&root, &path)?;
        let is_array = member(&document, "node_type") == "array";
        self.add_v3(String::new(), root, &document)?;
        if is_array {
            return Ok(());
        }
        if let Some(parts) = consolidated {
            return parts.into_iter().try_for_each(|(path, text)| {
                let document = self.documents.parse(&text)?;
                self.add_v3(path, text, &document)
            });
        }
        for key in self.listed_documents(tree)? {
            let path = key.strip_suffix("/zarr.json").unwrap_or_default();
            match self.read(tree, &key) {
                Ok(Some((text, document))) => self.add_v3(path.to_owned(), text, &document)?,
                Ok(None) => {}
                Err(e) => self.leave_out(path, e)?,
            }
        }
        Ok(())
    }

    /// Reads a document, and parses it to see whether it is one.
    fn read(&mut self, tree: &dyn ObjectTree, key: &str) -> Result<Option<(Text, Value)>> {
        let Some(text) = self.documents.read(tree, key)? else { return Ok(None) };
        let document = self.documents.parse(&text)?;
        Ok(Some((text, document)))
    }

    fn add_v3(&mut self, path: String, text: Text, document: &Value) -> Result<()> {
        if member(document, "zarr_format").as_u64() != Some(3) {
            let given = json::shown(member(document, "zarr_format"));
            let e = Error::new(ErrorKind::Unsupported, format!("zarr_format is {given}, expected 3"));
            return self.leave_out(&path, e);
        }
        let attrs = self.documents.member(&text, "attributes");
        match member(document, "node_type").as_str() {
            Some("group") => self.add(path, |node| node.attrs = attrs),
            Some("array") => self.add(path, |node| (node.array, node.attrs) = (Some(text), attrs)),
            other => {
                let e = Error::corrupt(format!("node_type is {other:?}, expected \"group\" or \"array\""));
                self.leave_out(&path, e)
            }
        }
    }

    fn version_2(&mut self, tree: &dyn ObjectTree) -> Result<()> {
        if let Some(text) = self.documents.read(tree, ".zmetadata")? {
            let (document, parts) = self.documents.parse_around(&text, &["metadata"])?;
            if document.get("record_size").is_some() {
                let message = "chunks are references into other files, kept in Parquet";
                return Err(Error::new(ErrorKind::Unsupported, message)
                    .hint("import the references as a manifest, or open the original files"));
            }
            let Some(parts) = parts else {
                json::object(member(&document, "metadata"), "'metadata' in '.zmetadata'")?;
                return Err(Error::corrupt(
                    "'metadata' in '.zmetadata' has no members that can be told apart",
                ));
            };
            return parts.into_iter().try_for_each(|(key, text)| {
                let document = self.documents.parse(&text)?;
                self.add_v2(&key, text, &document)
            });
        }
        if let Some((text, array)) = self.read(tree, ".zarray")? {
            self.add_v2(".zarray", text, &array)?;
            if let Some((text, attrs)) = self.read(tree, ".zattrs")? {
                self.add_v2(".zattrs", text, &attrs)?;
            }
            return Ok(());
        }
        if self.read(tree, ".zgroup")?.is_none() {
            let message = format!("'{}' holds no Zarr group or array", tree.name());
            return Err(Error::new(ErrorKind::UnknownFormat, message)
                .hint("expected is one of zarr.json, .zmetadata, .zgroup, .zarray at the root"));
        }
        self.nodes.entry(String::new()).or_default();
        for key in self.listed_documents(tree)? {
            match self.read(tree, &key) {
                Ok(Some((text, document))) => self.add_v2(&key, text, &document)?,
                Ok(None) => {}
                Err(e) => self.leave_out(key.rsplit_once('/').map_or("", |(path, _)| path), e)?,
            }
        }
        Ok(())
    }

    /// Adds what the document `key` says: of a group, an array or attributes.
    fn add_v2(&mut self, key: &str, text: Text, document: &Value) -> Result<()> {
        let (path, name) = key.rsplit_once('/').unwrap_or(("", key));
        match name {
            ".zgroup" => self.add(path.to_owned(), |_| {}),
            ".zarray" => self.add(path.to_owned(), |node| node.array = Some(text)),
            ".zattrs" if document.is_object() => self.add(path.to_owned(), |node| node.attrs = Some(text)),
            ".zattrs" => self.leave_out(path, json::wrong(".zattrs", "an object", document)),
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
        self.documents.budget.hold(path.len() + NODE)?;
        change(self.nodes.entry(path).or_default());
        Ok(())
    }

    fn leave_out(&mut self, path: &str, e: Error) -> Result<()> {
        // Of what is too large there is more to come.
        if path.is_empty() || e.kind() == ErrorKind::MemoryLimit {
            return Err(e);
        }
        if self.left_out.len() >= MAX_NODES {
            return Err(too_many());
        }
        self.documents.budget.hold(path.len() + e.message().len() + NODE)?;
        self.left_out.push((path.to_owned(), e));
        Ok(())
    }

    /// Lists the tree, where it can be listed.
    fn list(&mut self, tree: &dyn ObjectTree) -> Result<()> {
        let started = Instant::now();
        let Some(entries) = tree.list("")? else { return Ok(()) };
        let listed = Listed { version: version_of(&entries), at: Instant::now(), took: started.elapsed() };
        let names: &[&str] = if self.version == Version::V3 { &[NAME_V3] } else { &NAMES_V2 };
        let is_wanted = |key: &str| {
            key.rsplit_once('/')
                .map_or(names.contains(&key) && key != NAME_V3, |(_, name)| names.contains(&name))
        };
        let documents: Vec<String> =
            entries.into_iter().map(|e| e.key).filter(|key| is_wanted(key)).collect();
        self.documents.budget.hold(documents.iter().map(|key| key.len() + NODE).sum())?;
        self.listing = Some(Listing { listed, documents });
        Ok(())
    }

    /// The keys of all documents below the root.
    fn listed_documents(&mut self, tree: &dyn ObjectTree) -> Result<Vec<String>> {
        if self.listing.is_none() {
            self.list(tree)?;
        }
        let Some(listing) = &mut self.listing else {
            let message = format!("'{}' cannot be listed and has no consolidated metadata", tree.name());
            return Err(Error::new(ErrorKind::Unsupported, message).hint(
                "consolidate it (zarr.consolidate_metadata), or open one of its arrays by its own URL",
            ));
        };
        let keys = std::mem::take(&mut listing.documents);
        if keys.len() > MAX_NODES {
            return Err(too_many());
        }
        announce(tree, &keys);
        Ok(keys)
    }

    /// The document of an array and its attributes; those of a group where it is none.
    pub(crate) fn parse(&self, node: &Node) -> Result<(Option<Value>, Map<String, Value>)> {
        let document = node.array.as_ref().map(|text| self.documents.parse(text)).transpose()?;
        Ok((document, self.documents.attributes(node.attrs.as_ref())?))
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

/// About what one entry of a map or list takes, with what it is made of.
const NODE: usize = 128;

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
