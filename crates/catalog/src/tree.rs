//! The objects of a source in the order of their tree, each with the interval of what lies under it.

use sieva_types::{Error, ErrorKind, Result};

use crate::record::ObjectRecord;

/// One object in its tree. Numbers count from the root, which is 0.
#[derive(Debug, PartialEq)]
pub(crate) struct Node<'a> {
    pub path: String,
    /// `None`: a group that was only implied by a path below it.
    pub record: Option<&'a ObjectRecord>,
    /// The root is its own parent.
    pub parent: usize,
    /// The last object under it; its own number where there is none.
    pub last: usize,
}

/// The path without its last part.
fn parent_path(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The last part of a path.
pub(crate) fn leaf(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, leaf)| leaf)
}

/// The order of the tree: what is under an object comes right after it. Paths hold no zero byte.
pub(crate) fn order(a: &str, b: &str) -> std::cmp::Ordering {
    match a.bytes().zip(b.bytes()).find(|(x, y)| x != y) {
        Some((b'/', _)) => std::cmp::Ordering::Less,
        Some((_, b'/')) => std::cmp::Ordering::Greater,
        Some((x, y)) => x.cmp(&y),
        None => a.len().cmp(&b.len()),
    }
}

/// The tree of objects in any order, with the groups that are only implied.
pub(crate) fn build(objects: &[ObjectRecord]) -> Result<Vec<Node<'_>>> {
    let mut sorted: Vec<&ObjectRecord> = objects.iter().collect();
    sorted.sort_by(|a, b| order(&a.path, &b.path));
    let mut nodes: Vec<Node<'_>> = Vec::with_capacity(objects.len() + 1);
    let mut open: Vec<usize> = Vec::new();
    if sorted.first().is_none_or(|o| !o.path.is_empty()) {
        push(&mut nodes, &mut open, "", None);
    }
    for object in sorted {
        if nodes.last().is_some_and(|n| n.path == object.path) {
            let message = format!("object '{}' is there twice", object.path);
            return Err(
                Error::new(ErrorKind::InvalidValue, message).hint("hand over each path of a source once")
            );
        }
        let mut implied = Vec::new();
        let mut above = parent_path(&object.path);
        while !object.path.is_empty() && !open.iter().any(|&i| nodes[i].path == above) {
            implied.push(above);
            above = parent_path(above);
        }
        for path in implied.into_iter().rev() {
            push(&mut nodes, &mut open, path, None);
        }
        push(&mut nodes, &mut open, &object.path, Some(object));
    }
    for i in (1..nodes.len()).rev() {
        let (parent, last) = (nodes[i].parent, nodes[i].last);
        nodes[parent].last = nodes[parent].last.max(last);
    }
    Ok(nodes)
}

/// Adds the next object; `open` are the objects above the one before it, and that one.
fn push<'a>(nodes: &mut Vec<Node<'a>>, open: &mut Vec<usize>, path: &str, record: Option<&'a ObjectRecord>) {
    let number = nodes.len();
    if number > 0 {
        let above = parent_path(path);
        while open.last().is_some_and(|&i| nodes[i].path != above) {
            open.pop();
        }
    }
    let parent = open.last().copied().unwrap_or(0);
    nodes.push(Node { path: path.to_owned(), record, parent, last: number });
    open.push(number);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ObjectRecord;

    #[test]
    fn what_is_under_an_object_follows_it() {
        let paths = ["a-b", "a/b/c", "a", "a/b/c/d", "z/y", "a.x", "a/c", "/odd", "z//w"];
        let records: Vec<_> = paths.iter().map(|p| ObjectRecord::group(*p)).collect();
        let nodes = build(&records).unwrap();
        let got: Vec<_> = nodes.iter().map(|n| (n.path.as_str(), n.record.is_some())).collect();
        for path in paths {
            assert!(got.contains(&(path, true)), "{path}");
        }
        for implied in ["", "a/b", "z", "z/"] {
            assert!(got.contains(&(implied, false)), "{implied}");
        }
        assert_eq!(nodes.len(), paths.len() + 4);
        for (i, node) in nodes.iter().enumerate() {
            let under =
                |path: &str| i == 0 || path == node.path || path.starts_with(&format!("{}/", node.path));
            for (j, other) in nodes.iter().enumerate() {
                assert_eq!(i <= j && j <= node.last, under(&other.path), "{} {}", node.path, other.path);
            }
            assert_eq!(nodes[node.parent].path, parent_path(&node.path));
        }
        assert!(nodes.windows(2).all(|w| order(&w[0].path, &w[1].path).is_lt()));
    }

    #[test]
    fn a_path_twice_is_refused() {
        let records = [ObjectRecord::group("a/b"), ObjectRecord::group("a/c"), ObjectRecord::group("a/b")];
        assert_eq!(build(&records).unwrap_err().message(), "object 'a/b' is there twice");
    }
}
