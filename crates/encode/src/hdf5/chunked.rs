//! HDF5 whose values lie in deflated chunks; with a dimension scale it is netCDF-4.
//!
//! How many chunks there are is known before a value is read, and so is the length of the head, but not what it says of
//! their places: it is made when all of them are there.
//!
//! ```text
//! superblock, root group, [scale of the rows, references to it], object header of each data set
//! B-tree of version 1 over the chunks of each data set (III.A.1)
//! chunks of the first data set, of the second, ..., one right behind the other
//! ```

use sieva::{Attr, Error, ErrorKind, Result};

use super::message::Header;
use super::{ALIGNMENT, SUPERBLOCK_LEN, UNDEFINED, scale, superblock};
use crate::variable::{Kind, OBS, Variable};

/// Bytes of a chunk's values: what is compressed at once, by one thread.
const CHUNK_BYTES: u64 = 1 << 20;
/// Children of a node: twice what the superblock of version 2 takes for granted.
const CHILDREN: usize = 64;
/// Bytes of a key: of a chunk its size, filters left out, and where it begins (row, byte).
const KEY: usize = 4 + 4 + 8 + 8;
const NODE: usize = 24 + CHILDREN * 8 + (CHILDREN + 1) * KEY;
/// Filters that are left out of a chunk, as bits: all.
const NO_FILTERS: u32 = u32::MAX;

/// A chunk as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stored {
    pub bytes: u32,
    /// Whether it was compressed: what does not become smaller is not.
    pub deflated: bool,
}

/// The chunks of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    /// Rows of each; the last has fewer values, and fill values behind them.
    pub rows: u64,
    pub count: u64,
}

/// The layout of a file.
#[derive(Clone, Debug)]
pub(crate) struct Chunked {
    pub rows: u64,
    /// Of each variable.
    pub chunks: Vec<Chunks>,
    /// Bytes before the first chunk.
    pub head: u64,
    level: u32,
    /// Whether it is netCDF-4.
    scaled: bool,
}

/// Where things lie in the head.
struct Places {
    /// The dimension scale, and the references to it.
    scale: u64,
    heap: u64,
    headers: Vec<u64>,
    trees: Vec<u64>,
    end: u64,
}

impl Chunked {
    /// The layout of a file of `rows` rows, deflated at `level`.
    ///
    /// # Errors
    /// `unsupported` where a value is too long for a chunk, or netCDF-4 has too many columns.
    pub fn new(variables: &[Variable], rows: u64, attrs: &[Attr], level: u32, scaled: bool) -> Result<Self> {
        let each = variables.iter().map(|variable| {
            let width = variable.width() as u64;
            if width > u32::MAX.into() {
                let message =
                    format!("texts of {width} bytes in column '{}': a chunk has 4 GiB", variable.name);
                return Err(Error::new(ErrorKind::Unsupported, message).hint("leave deflate out"));
            }
            let most = if rows == 0 { CHUNK_BYTES } else { rows };
            let each = (CHUNK_BYTES / width).clamp(1, most);
            Ok(Chunks { rows: each, count: rows.div_ceil(each) })
        });
        let mut plan = Self { rows, chunks: each.collect::<Result<_>>()?, head: 0, level, scaled };
        plan.head = plan.places(variables, attrs)?.end;
        Ok(plan)
    }

    /// The compression level.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// The head of the file whose chunks are stored so, in the order of the file.
    ///
    /// # Errors
    /// None that [`Chunked::new`] did not have.
    pub fn head(&self, variables: &[Variable], attrs: &[Attr], stored: &[Stored]) -> Result<Vec<u8>> {
        let places = self.places(variables, attrs)?;
        let end = self.head + stored.iter().map(|s| u64::from(s.bytes)).sum::<u64>();
        let mut out = superblock(end);
        out.extend(self.root(variables, attrs, &places));
        if self.scaled {
            out.extend(scale::scale(self.rows));
            out.resize(places.heap as usize, 0);
            out.extend(scale::references(variables.len(), places.scale)?);
        }
        for (i, variable) in variables.iter().enumerate() {
            out.extend(self.data_set(i, variable, &places));
        }
        let (mut first, mut at) = (0, self.head);
        for (chunks, tree) in self.chunks.iter().zip(&places.trees) {
            let here = &stored[first..first + chunks.count as usize];
            if chunks.count > 0 {
                out.resize(*tree as usize, 0);
                out.extend(b_tree(*tree, chunks.rows, here, at));
            }
            first += here.len();
            at += here.iter().map(|s| u64::from(s.bytes)).sum::<u64>();
        }
        out.resize(self.head as usize, 0);
        Ok(out)
    }

    /// Addresses take the same room whatever they are.
    fn places(&self, variables: &[Variable], attrs: &[Attr]) -> Result<Places> {
        let n = variables.len();
        let mut places = Places { scale: 0, heap: 0, headers: vec![0; n], trees: vec![0; n], end: 0 };
        let mut at = SUPERBLOCK_LEN + self.root(variables, attrs, &places).len() as u64;
        if self.scaled {
            places.scale = at;
            places.heap = (at + scale::scale(self.rows).len() as u64).next_multiple_of(ALIGNMENT);
            at = places.heap + scale::references(n, 0)?.len() as u64;
        }
        for (i, variable) in variables.iter().enumerate() {
            places.headers[i] = at;
            at += self.data_set(i, variable, &places).len() as u64;
        }
        for (i, chunks) in self.chunks.iter().enumerate() {
            places.trees[i] = UNDEFINED;
            if chunks.count > 0 {
                places.trees[i] = at.next_multiple_of(ALIGNMENT);
                at = places.trees[i] + (levels(chunks.count).iter().sum::<u64>() * NODE as u64);
            }
        }
        places.end = at;
        Ok(places)
    }

    fn root(&self, variables: &[Variable], attrs: &[Attr], places: &Places) -> Vec<u8> {
        let mut header = Header::default();
        let names = variables.iter().map(|v| v.name.as_str());
        let mut links: Vec<(&str, u64)> = names.zip(places.headers.iter().copied()).collect();
        if self.scaled {
            links.insert(0, (OBS, places.scale));
        }
        header.ordered_group(links.len() as u64);
        for (number, (name, address)) in links.into_iter().enumerate() {
            header.ordered_link(number as u64, name, address);
        }
        attrs.iter().for_each(|attr| header.attribute(attr));
        header.finish()
    }

    fn data_set(&self, index: usize, variable: &Variable, places: &Places) -> Vec<u8> {
        let mut header = Header::default();
        if self.rows == 0 {
            header.no_rows()
        } else {
            header.rows(self.rows)
        }
        header.datatype(variable.kind);
        header.fill_value(variable.kind, variable.fill);
        header.chunked(places.trees[index], self.chunks[index].rows as u32, variable.width() as u32);
        header.filters(is_shuffled(variable).then_some(variable.width() as u32), self.level);
        if self.scaled {
            header.dimension_list(places.heap, index as u32 + 1);
        }
        // That texts are UTF-8 is said by their type.
        variable.attrs.iter().filter(|(name, _)| name != "_Encoding").for_each(|attr| header.attribute(attr));
        header.finish()
    }
}

/// Whether the bytes of a variable's values are brought together by their places before they are compressed.
pub(crate) fn is_shuffled(variable: &Variable) -> bool {
    matches!(variable.kind, Kind::Number(_)) && variable.width() > 1
}

/// Nodes of each level of a tree over so many chunks, the leaves first.
fn levels(chunks: u64) -> Vec<u64> {
    let mut all = vec![chunks.div_ceil(CHILDREN as u64)];
    while let Some(&below) = all.last().filter(|&&n| n > 1) {
        all.push(below.div_ceil(CHILDREN as u64));
    }
    all
}

/// A child of a node: the chunk that it begins with, and its address.
struct Child {
    first: u64,
    stored: Stored,
    address: u64,
}

/// The tree over the chunks of a data set, its root first: `rows` of each, those that are stored lie from `at` on.
fn b_tree(begin: u64, rows: u64, stored: &[Stored], mut at: u64) -> Vec<u8> {
    let count = stored.len() as u64;
    let mut children: Vec<Child> = Vec::with_capacity(stored.len());
    for (number, &stored) in stored.iter().enumerate() {
        children.push(Child { first: number as u64, stored, address: at });
        at += u64::from(stored.bytes);
    }
    let mut nodes_of_levels = Vec::new();
    let all = levels(count);
    for (level, nodes) in all.iter().enumerate() {
        // Levels above lie before it.
        let first = begin + all[level + 1..].iter().sum::<u64>() * NODE as u64;
        let address = |node: u64| if node < *nodes { first + node * NODE as u64 } else { UNDEFINED };
        let (mut out, mut above) = (Vec::new(), Vec::new());
        for (number, part) in children.chunks(CHILDREN).enumerate() {
            let number = number as u64;
            let next = (number + 1) * CHILDREN as u64;
            let end = children.get(next as usize).map_or(count, |child| child.first);
            let siblings = [address(number.wrapping_sub(1)), address(number + 1)];
            node(&mut out, level as u8, part, siblings, (rows, end));
            above.push(Child { first: part[0].first, stored: part[0].stored, address: address(number) });
        }
        nodes_of_levels.push(out);
        children = above;
    }
    nodes_of_levels.into_iter().rev().flatten().collect()
}

fn node(out: &mut Vec<u8>, level: u8, children: &[Child], siblings: [u64; 2], (rows, end): (u64, u64)) {
    let begin = out.len();
    out.extend(b"TREE\x01");
    out.push(level);
    out.extend((children.len() as u16).to_le_bytes());
    siblings.iter().for_each(|address| out.extend(address.to_le_bytes()));
    for child in children {
        key(out, child.stored, child.first * rows);
        out.extend(child.address.to_le_bytes());
    }
    key(out, Stored { bytes: 0, deflated: true }, end * rows);
    out.resize(begin + NODE, 0);
}

fn key(out: &mut Vec<u8>, stored: Stored, row: u64) {
    out.extend(stored.bytes.to_le_bytes());
    out.extend(if stored.deflated { 0 } else { NO_FILTERS }.to_le_bytes());
    out.extend(row.to_le_bytes());
    out.extend(0_u64.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_have_a_root_and_room_for_all() {
        assert_eq!(levels(1), [1]);
        assert_eq!(levels(64), [1]);
        assert_eq!(levels(65), [2, 1]);
        assert_eq!(levels(64 * 64 + 1), [65, 2, 1]);
        let stored = vec![Stored { bytes: 3, deflated: true }; 64 * 64 + 1];
        assert_eq!(b_tree(0, 10, &stored, 0).len(), 68 * NODE);
    }
}
