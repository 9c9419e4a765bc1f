//! Trees: of version 1 (section III.A.1), whose nodes libhdf5 follows without looking at their levels, and of version 2
//! (III.A.2), of which it believes how many records each node has.

use std::collections::{HashMap, HashSet};

use super::{CUT_OFF, Cursor, Look, width_of};
use crate::scout::ChunkForm;

/// Bytes of a version 2 node beside records and pointers: signature, version, type, checksum.
const NODE_PREFIX: u64 = 10;
/// The most records of a node: libhdf5 counts them in two bytes.
const MOST_RECORDS: u64 = 0xffff;
/// The type of version 1 trees of chunks; the other is that of groups.
const CHUNKS: u64 = 1;

/// What is known of the version 1 trees of a file.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// Bytes of a key of the trees of chunks, by their root.
    roots: HashMap<u64, u64>,
    /// Nodes that were read, and their levels.
    read: HashMap<u64, u64>,
    /// Nodes that others lead to.
    children: HashMap<u64, Child>,
    /// What newer indexes are of, by the places of their headers.
    indexes: HashMap<u64, ChunkForm>,
    /// Whether objects of the file may share messages.
    shares_messages: bool,
}

/// What a node says of one below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Child {
    parent: u64,
    number: u64,
    level: u64,
    key: u64,
}

impl Trees {
    /// Notes that at `root` a tree of chunks begins, whose keys have so many bytes.
    pub(super) fn expect_root(&mut self, root: u64, key: u64) {
        self.roots.insert(root, key);
    }

    /// Notes that the header of an index of such chunks is at `at`.
    pub(super) fn expect_index(&mut self, at: u64, chunks: ChunkForm) {
        self.indexes.insert(at, chunks);
    }

    /// The chunks that the index at `at` is of, if it is known.
    pub(super) fn index(&self, at: u64) -> Option<ChunkForm> {
        self.indexes.get(&at).copied()
    }

    /// Notes that the file has a table of shared messages.
    pub(super) fn share_messages(&mut self) {
        self.shares_messages = true;
    }

    /// What is wrong with the version 1 node at `address`, if anything is.
    pub(super) fn node(&mut self, look: &mut Look<'_>, address: u64) -> Option<&'static str> {
        let kind = look.number(address + 4, 1)?;
        let level = look.number(address + 5, 1)?;
        let count = look.number(address + 6, 2)?;
        let own = self.children.get(&address).copied();
        if own.is_some_and(|own| own.level != level) {
            return Some("a node of a tree is not of the level below its parent's");
        }
        self.read.insert(address, level);
        if level == 0 {
            return None;
        }
        let key = match kind {
            0 => look.sizes.length as u64,
            CHUNKS => own.map(|own| own.key).or_else(|| self.roots.get(&address).copied())?,
            _ => return None,
        };
        let width = look.sizes.address as u64;
        let first = address + 8 + 2 * width + key;
        for number in 0..count {
            let place = look.place(first + number * (key + width))?;
            let Some(place) = place else { continue };
            let child = Child { parent: address, number, level: level - 1, key };
            let known = *self.children.entry(place).or_insert(child);
            let is_its_own = known == child && (own.is_some() || self.read.get(&place) != Some(&level));
            if !is_its_own || place == address {
                return Some("two nodes of a tree lead to the same one");
            }
        }
        None
    }
}

/// What the header of a version 2 tree says.
struct Header {
    /// Whether the records are of attributes that cannot be shared.
    is_unshared: bool,
    node: u64,
    record: u64,
    depth: u64,
    root: Option<u64>,
    records: u64,
    total: u64,
}

/// A node to be looked at: its records, and those of all below it.
struct Node {
    at: u64,
    level: usize,
    records: u64,
    total: u64,
}

/// What is wrong with the version 2 tree whose header is at `address`, if anything is.
pub(super) fn new_tree(look: &mut Look<'_>, address: u64, known: &Trees) -> Option<&'static str> {
    wrong(look, address, known).unwrap_or(Some(CUT_OFF))
}

fn wrong(look: &mut Look<'_>, address: u64, known: &Trees) -> Option<Option<&'static str>> {
    let (len, width) = (look.len(), look.sizes.address);
    let mut fields = Cursor { look, at: address };
    fields.skip(5);
    let kind = fields.number(1)?;
    let (node, record, depth) = (fields.number(4)?, fields.number(2)?, fields.number(2)?);
    fields.skip(2);
    let (root, records, total) = (fields.place()?, fields.number(2)?, fields.length()?);
    let is_unshared = (kind == 8 || kind == 9) && !known.shares_messages;
    let header = Header { is_unshared, node, record, depth, root, records, total };
    if !is_record(kind, record, width as u64, look.sizes.length as u64, known.index(address)) {
        return Some(Some("the records of a tree are not as long as those of its type"));
    }
    if node > len {
        return Some(Some("the nodes of a tree are longer than the file"));
    }
    let Some(levels) = levels(&header, width) else {
        return Some(Some("the nodes of a tree hold no records, or more than can be counted"));
    };
    walk(look, &header, &levels)
}

/// The most records of a node of each level, and the bytes that count those below one.
fn levels(header: &Header, width: usize) -> Option<Vec<(u64, usize)>> {
    let within = |pointer: u64| {
        let most = header.node.checked_sub(NODE_PREFIX + pointer)? / (header.record + pointer);
        (1..=MOST_RECORDS).contains(&most).then_some(most)
    };
    let leaf = within(0)?;
    let (mut below, mut out) = (leaf, vec![(leaf, 0)]);
    for level in 1..=header.depth {
        let counted = if level > 1 { width_of(below) } else { 0 };
        let most = within((width + width_of(leaf) + counted) as u64)?;
        below = (most + 1).checked_mul(below)?.checked_add(most)?;
        out.push((most, counted));
    }
    Some(out)
}

/// Goes through the nodes: each once, with no more records than fit, and as many as were counted. Leaves are read
/// for attributes alone.
fn walk(look: &mut Look<'_>, header: &Header, levels: &[(u64, usize)]) -> Option<Option<&'static str>> {
    let Some(root) = header.root else { return Some(None) };
    let depth = header.depth as usize;
    let mut todo = vec![Node { at: root, level: depth, records: header.records, total: header.total }];
    let mut seen = HashSet::new();
    while let Some(node) = todo.pop() {
        let (most, counted) = levels[node.level];
        if node.records > most {
            return Some(Some("a node of a tree has more records than fit into it"));
        }
        if !seen.insert(node.at) {
            return Some(Some("two nodes of a tree lead to the same one"));
        }
        if header.is_unshared && has_shared(look, &node, header.record)? {
            return Some(Some("an attribute is shared in a file that shares none"));
        }
        if node.level == 0 {
            if node.records != node.total {
                return Some(Some("a tree has other records than were counted"));
            }
            continue;
        }
        let mut fields = Cursor { look, at: node.at };
        fields.skip(6 + node.records * header.record);
        let mut total = node.records;
        for _ in 0..=node.records {
            let place = fields.place()?;
            let records = fields.number(width_of(levels[0].0))?;
            let below = if counted > 0 { fields.number(counted)? } else { records };
            total = total.saturating_add(below);
            if let Some(at) = place {
                todo.push(Node { at, level: node.level - 1, records, total: below });
            }
        }
        if total != node.total {
            return Some(Some("a tree has other records than were counted"));
        }
    }
    Some(None)
}

/// Whether one of a node's records is of a shared attribute: its flags come after 8 bytes that lead to the heap. libhdf5 would
/// look for it in a heap that it did not open.
fn has_shared(look: &mut Look<'_>, node: &Node, record: u64) -> Option<bool> {
    for number in 0..node.records {
        if look.number(node.at.checked_add(6 + number * record + 8)?, 1)? & 2 != 0 {
            return Some(true);
        }
    }
    Some(false)
}

/// Whether records of a tree of this type have so many bytes.
fn is_record(kind: u64, record: u64, address: u64, length: u64, chunks: Option<ChunkForm>) -> bool {
    let place = |beside: u64| match chunks {
        Some(chunks) => record == address + beside + 8 * chunks.dims,
        None => record > address + beside && record <= address + beside + 8 * 32,
    };
    match kind {
        1 => record == address + 2 * length,
        2 => record == address + 4 + 3 * length,
        3 => record == address + length,
        4 => record == address + 2 * length + 4,
        5 => record == 11,
        6 => record == 15,
        7 => record == 5 + 12.max(4 + address),
        8 => record == 17,
        9 => record == 13,
        // Chunks by their place; filtered ones have a length and a mask, too.
        10 => place(0),
        11 => place(chunks.map_or(5, |chunks| chunks.len_width + 4)),
        // That of libhdf5's own tests, and unknown ones.
        _ => false,
    }
}
