//! Metadata fetched ahead of libhdf5, for files behind a network.
//!
//! libhdf5 asks for metadata piece by piece, each after it has understood the one before, and holds its one lock while
//! it waits. A scout goes the same way first, without the lock and level by level: all pieces of a level are asked for
//! at once ([`RangedRead::will_need`](sieva_store::RangedRead::will_need)), so that a file takes a few rounds over the
//! network. The store keeps the bytes, and libhdf5 finds them there.
//!
//! A scout only says what will be read. Nothing that it understands, or fails to, changes an answer: where bytes make
//! no sense to it, it leaves them to libhdf5. Structures are those of the HDF5 File Format Specification 3.0, whose
//! sections are named where they are read.

mod chunks;
mod fields;
mod groups;
mod objects;
mod trees;

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use sieva_types::{Error, ErrorKind, Result};

use crate::bytes::FileBytes;
use crate::heaps;
use fields::Sizes;

/// Bytes at a file's beginning that are asked for at once: the superblock, and most often the root group and the
/// first objects. More would make the opening of small things slow, less would cost a round.
pub const HEAD: u64 = 512 << 10;
/// Most bytes, and most pieces, that are fetched ahead for one purpose; what is left is read when it is needed.
const BYTES_LIMIT: u64 = 64 << 20;
const PIECES_LIMIT: usize = 1 << 17;
/// Most bytes that are fetched ahead for one file: structures that overlap could ask for ever more.
const ALL_BYTES_LIMIT: u64 = 512 << 20;
/// Most rounds, far above any depth that files have.
const ROUNDS_LIMIT: usize = 64;
/// Longest piece; none that is understood is longer, and others are not worth it.
const PIECE_LIMIT: u64 = 16 << 20;

/// Who fetches the metadata of one file ahead.
#[derive(Debug)]
pub(crate) struct Scout {
    sizes: Sizes,
    /// Pieces of objects that were fetched before.
    seen: Mutex<HashSet<(u64, u64)>>,
    /// Bytes that were fetched for any purpose.
    spent: AtomicU64,
}

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// Groups, headers and attributes.
    Objects,
    /// The indexes of datasets' chunks.
    Index,
    /// Messages of fill values.
    Fill,
    /// Where data are, or what leads to them.
    Data,
}

/// Bytes to fetch, and what they are.
#[derive(Clone, Debug)]
struct Piece {
    at: u64,
    len: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Bytes that lead nowhere.
    Leaf,
    Header,
    Continuation(objects::Messages),
    GroupNode,
    SymbolNode,
    LocalHeap,
    GlobalHeap,
    FractalHeap,
    HeapBlocks(trees::Blocks),
    Tree,
    TreeNode(trees::Node),
    ChunkNode(usize),
    FixedArray,
    Extensible,
    ExtensibleBlock(chunks::Extensible),
    ExtensibleSuper(chunks::Extensible, u32),
}

/// One search: the pieces of the next round, and what may still be fetched.
struct Search<'a> {
    sizes: &'a Sizes,
    goal: Goal,
    next: Vec<Piece>,
    leaves: Vec<Range<u64>>,
    fills: Vec<FillMessage>,
    data: Vec<DataPlace>,
    /// Whether something made no sense, or was more than is followed.
    is_lost: bool,
    bytes: u64,
    pieces: usize,
}

/// A message of a fill value as it stands in a header (IV.A.2.e, IV.A.2.f).
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FillMessage {
    /// The value's bytes.
    Value(Vec<u8>),
    /// It is kept elsewhere.
    Shared,
}

/// What the layout in a header leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataPlace {
    /// The mappings of virtual data: an object of a global heap collection.
    Mappings { heap: u64, index: u64 },
    /// A version 1 tree of chunks, with keys of so many bytes.
    OldTree { root: u64, key: u64 },
    /// The header of a newer index.
    Index { at: u64, chunks: ChunkForm },
    /// The table of messages that objects share.
    SharedMessages,
}

/// What the entries of an index say of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkForm {
    /// Its dimensions.
    pub(crate) dims: u64,
    /// Bytes of the length of a filtered one.
    pub(crate) len_width: u64,
}

impl Scout {
    /// Asks for the file's beginning, without waiting for it.
    pub(crate) fn announce_head(bytes: &FileBytes) {
        if bytes.store().is_remote() && bytes.len() > 0 {
            bytes.will_need(std::slice::from_ref(&(0..bytes.len().min(HEAD))));
        }
    }

    /// Fetches what opening a file reads, from the superblock at `start` on; `None` where it pays not, or the
    /// superblock is of no known kind.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn fetch_metadata(bytes: &FileBytes, start: u64) -> Result<Option<Self>> {
        if !bytes.store().is_remote() {
            return Ok(None);
        }
        let mut head = vec![0; bytes.len().saturating_sub(start).min(256) as usize];
        bytes.read(start, &mut head)?;
        let Some((mut sizes, superblock)) = objects::superblock(&head, start) else { return Ok(None) };
        if let Some(extension) = superblock.extension {
            let mut header = vec![0; bytes.len().saturating_sub(extension).min(1024) as usize];
            bytes.read(extension, &mut header)?;
            objects::extension(&header, &mut sizes);
            bytes.set_page(sizes.page);
        }
        let scout = Self { sizes, seen: Mutex::default(), spent: AtomicU64::new(0) };
        scout.fetch(bytes, Goal::Objects, &[superblock.root])?;
        Ok(Some(scout))
    }

    /// Fetches the objects whose headers have these addresses, and what they lead to.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn fetch_objects(&self, bytes: &FileBytes, headers: &[u64]) -> Result<()> {
        let headers: Vec<u64> = headers.iter().filter_map(|&a| self.sizes.absolute(a)).collect();
        self.fetch(bytes, Goal::Objects, &headers)
    }

    /// Fetches the indexes of the chunks of the datasets whose headers have these addresses.
    ///
    /// # Errors
    /// Those of the storage.
    pub(crate) fn fetch_indexes(&self, bytes: &FileBytes, headers: &[u64]) -> Result<()> {
        let headers: Vec<u64> = headers.iter().filter_map(|&a| self.sizes.absolute(a)).collect();
        self.fetch(bytes, Goal::Index, &headers)
    }

    fn fetch(&self, bytes: &FileBytes, goal: Goal, headers: &[u64]) -> Result<()> {
        let mut search = Search::new(&self.sizes, goal);
        for &header in headers {
            search.push(header, objects::HEADER_GUESS, Kind::Header);
        }
        let mut own = HashSet::new();
        for _ in 0..ROUNDS_LIMIT {
            let mut round = std::mem::take(&mut search.next);
            let is_new = |piece: &Piece, seen: &mut HashSet<(u64, u64)>| seen.insert((piece.at, piece.len));
            match goal {
                Goal::Objects => {
                    let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                    round.retain(|piece| is_new(piece, &mut seen));
                }
                Goal::Index | Goal::Fill | Goal::Data => round.retain(|piece| is_new(piece, &mut own)),
            }
            if round.is_empty() || !search.afford(&round) {
                break;
            }
            let cost = round.iter().map(|piece| piece.len).sum::<u64>();
            if self.spent.fetch_add(cost, Ordering::Relaxed) > ALL_BYTES_LIMIT {
                break;
            }
            search.round(bytes, round)?;
        }
        search.wait(bytes)
    }
}

/// The fill values in the header of the object at `header`, which counts from the superblock at `start`.
///
/// # Errors
/// `unsupported` for a header that is not understood, or in more pieces than are followed; those of the storage.
pub(crate) fn fill_messages(bytes: &FileBytes, start: u64, header: u64) -> Result<Vec<FillMessage>> {
    let mut head = vec![0; bytes.len().saturating_sub(start).min(256) as usize];
    bytes.read(start, &mut head)?;
    let lost = || Error::new(ErrorKind::Unsupported, "its header cannot be looked at for a fill value");
    let (sizes, _) = objects::superblock(&head, start).ok_or_else(lost)?;
    let mut search = Search::new(&sizes, Goal::Fill);
    let mut seen = HashSet::new();
    search.push(sizes.absolute(header).unwrap_or(u64::MAX), objects::HEADER_GUESS, Kind::Header);
    while !search.next.is_empty() {
        let mut round = std::mem::take(&mut search.next);
        round.retain(|piece| seen.insert((piece.at, piece.len)));
        if !search.afford(&round) {
            return Err(lost());
        }
        search.round(bytes, round)?;
    }
    if search.is_lost { Err(lost()) } else { Ok(search.fills) }
}

/// What the layout in the header at `header` leads to; nothing where there is none. Addresses count from where `sizes`
/// begin, but for that of the header.
///
/// # Errors
/// `corrupt-file` for a header in more pieces than are followed; those of the storage.
pub(crate) fn data_places(bytes: &FileBytes, sizes: heaps::Sizes, header: u64) -> Result<Vec<DataPlace>> {
    let heaps::Sizes { start, address, length } = sizes;
    let sizes =
        Sizes { base: start, address, length, symbols: 4, group_children: 16, chunk_children: 32, page: 0 };
    let mut search = Search::new(&sizes, Goal::Data);
    let mut seen = HashSet::new();
    search.push(header, objects::HEADER_GUESS, Kind::Header);
    while !search.next.is_empty() {
        let mut round = std::mem::take(&mut search.next);
        round.retain(|piece| seen.insert((piece.at, piece.len)));
        if !search.afford(&round) {
            return Err(Error::corrupt("a header in more pieces than are followed"));
        }
        search.round(bytes, round)?;
    }
    Ok(search.data)
}

impl<'a> Search<'a> {
    fn new(sizes: &'a Sizes, goal: Goal) -> Self {
        let (next, leaves, fills, data) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { sizes, goal, next, leaves, fills, data, is_lost: false, bytes: 0, pieces: 0 }
    }

    fn push(&mut self, at: u64, len: u64, kind: Kind) {
        if len > 0 && len <= PIECE_LIMIT {
            self.next.push(Piece { at, len, kind });
        } else {
            self.is_lost = true;
        }
    }

    /// Takes a round from what may be fetched; false where that is used up.
    fn afford(&mut self, round: &[Piece]) -> bool {
        self.pieces = self.pieces.saturating_add(round.len());
        self.bytes = round.iter().fold(self.bytes, |n, piece| n.saturating_add(piece.len));
        self.pieces <= PIECES_LIMIT && self.bytes <= BYTES_LIMIT
    }

    /// Fetches the pieces of one round and finds those of the next.
    fn round(&mut self, bytes: &FileBytes, mut round: Vec<Piece>) -> Result<()> {
        let len = bytes.len();
        round.retain(|piece| piece.at < len);
        round.sort_by_key(|piece| piece.at);
        let range = |piece: &Piece| piece.at..piece.at.saturating_add(piece.len).min(len);
        bytes.will_need(&bytes.whole_pages(round.iter().map(range)));
        let mut held = Vec::new();
        for piece in round {
            let range = range(&piece);
            if matches!(piece.kind, Kind::Leaf) {
                self.leaves.push(range);
                continue;
            }
            held.resize((range.end - range.start) as usize, 0);
            bytes.read(range.start, &mut held)?;
            // What makes no sense leads nowhere.
            self.is_lost |= self.understand(&piece, &held).is_none();
        }
        Ok(())
    }

    /// Waits for what leads nowhere, so that libhdf5 need not.
    fn wait(self, bytes: &FileBytes) -> Result<()> {
        let mut held = Vec::new();
        for range in self.leaves {
            held.resize((range.end - range.start) as usize, 0);
            bytes.read(range.start, &mut held)?;
        }
        Ok(())
    }

    fn understand(&mut self, piece: &Piece, held: &[u8]) -> Option<()> {
        match &piece.kind {
            Kind::Leaf => Some(()),
            Kind::Header => self.header(piece, held),
            Kind::Continuation(messages) => self.messages(*messages, held),
            Kind::GroupNode => self.group_node(held),
            Kind::SymbolNode => self.symbol_node(held),
            Kind::LocalHeap => self.local_heap(held),
            Kind::GlobalHeap => self.global_heap(piece, held),
            Kind::FractalHeap => self.fractal_heap(held),
            Kind::HeapBlocks(blocks) => self.heap_blocks(*blocks, held),
            Kind::Tree => self.tree(held),
            Kind::TreeNode(node) => self.tree_node(node, held),
            Kind::ChunkNode(key) => self.chunk_node(*key, held),
            Kind::FixedArray => self.fixed_array(held),
            Kind::Extensible => self.extensible(held),
            Kind::ExtensibleBlock(array) => self.extensible_block(*array, held),
            Kind::ExtensibleSuper(array, number) => self.extensible_super(*array, *number, held),
        }
    }
}
