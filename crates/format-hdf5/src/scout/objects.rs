//! The superblock (section II.A) and object headers (IV.A).

use super::fields::{Fields, Sizes};
use super::{DataPlace, FillMessage, Goal, Kind, PIECE_LIMIT, Piece, Search, chunks};

/// Bytes that are read of a header before its length is known; libhdf5 takes as many.
pub(super) const HEADER_GUESS: u64 = 512;
/// Largest header that is followed.
const HEADER_LIMIT: u64 = 1 << 20;

/// Where the superblock leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) root: u64,
    pub(super) extension: Option<u64>,
}

/// How the messages of a header are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Messages {
    is_old: bool,
    /// Whether each has the number of its creation.
    is_numbered: bool,
}

/// Reads the superblock, which begins at `start`.
pub(super) fn superblock(bytes: &[u8], start: u64) -> Option<(Sizes, Superblock)> {
    let version = *bytes.get(8)?;
    let widths = if version < 2 { bytes.get(13..15)? } else { bytes.get(9..11)? };
    let (address, length) = (usize::from(widths[0]), usize::from(widths[1]));
    if !(2..=8).contains(&address) || !(2..=8).contains(&length) {
        return None;
    }
    let mut sizes =
        Sizes { base: start, address, length, symbols: 4, group_children: 16, chunk_children: 32, page: 0 };
    if version >= 2 {
        let copy = sizes;
        let mut fields = Fields::new(&copy, bytes.get(12..)?);
        fields.address()?;
        let extension = fields.address()?;
        fields.address()?;
        return Some((sizes, Superblock { root: fields.address()??, extension }));
    }
    let copy = sizes;
    let mut fields = Fields::new(&copy, bytes.get(16..)?);
    sizes.symbols = fields.number(2)?;
    sizes.group_children = fields.number(2)?;
    fields.skip(4)?;
    if version == 1 {
        sizes.chunk_children = fields.number(2)?;
        fields.skip(2)?;
    }
    // Base, free space, end of file, driver; then the root's name.
    fields.skip(5 * address)?;
    Some((sizes, Superblock { root: fields.address()??, extension: None }))
}

/// Takes from the header of the superblock's extension what changes sizes.
pub(super) fn extension(header: &[u8], sizes: &mut Sizes) {
    let copy = *sizes;
    let Some((messages, body)) = Search::new(&copy, Goal::Objects).prefix(header) else { return };
    each_message(&copy, messages, body.messages(), |message| {
        let mut fields = Fields::new(&copy, message.body);
        let _ = match message.kind {
            // B-tree K values (IV.A.2.t).
            0x13 => (|| {
                fields.skip(1)?;
                sizes.chunk_children = fields.number(2)?;
                sizes.group_children = fields.number(2)?;
                sizes.symbols = fields.number(2)?;
                Some(())
            })(),
            // File space info (IV.A.2.x): strategy 1 is that of pages.
            0x17 => (|| {
                fields.skip(1)?;
                let is_paged = fields.byte()? == 1;
                fields.skip(1)?;
                fields.length()?;
                let page = fields.length()?;
                if is_paged && (512..=1 << 30).contains(&page) {
                    sizes.page = page;
                }
                Some(())
            })(),
            _ => None,
        };
    });
}

/// One message of a header.
struct Message<'a> {
    kind: u64,
    is_shared: bool,
    body: &'a [u8],
}

/// The messages in `bytes`, until they make no sense any more; whether all were found, but for a gap too short for one.
fn each_message(sizes: &Sizes, how: Messages, bytes: &[u8], mut f: impl FnMut(Message)) -> bool {
    let head = if how.is_old { 8 } else { 4 + 2 * usize::from(how.is_numbered) };
    let mut fields = Fields::new(sizes, bytes);
    while fields.len() >= head {
        let Some(message) = next_message(&mut fields, how) else { return false };
        f(message);
    }
    true
}

fn next_message<'a>(fields: &mut Fields<'a>, how: Messages) -> Option<Message<'a>> {
    let kind = fields.number(if how.is_old { 2 } else { 1 })?;
    let len = fields.number(2)? as usize;
    let flags = fields.byte()?;
    if how.is_old {
        fields.skip(3)?;
    } else if how.is_numbered {
        fields.skip(2)?;
    }
    Some(Message { kind, is_shared: flags & 2 != 0, body: fields.take(len)? })
}

/// What the prefix of a header says of its first block: offset and length of its messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Body<'a> {
    pub(super) header: &'a [u8],
    pub(super) from: u64,
    pub(super) len: u64,
}

impl<'a> Body<'a> {
    /// The messages, as far as they are there.
    pub(super) fn messages(&self) -> &'a [u8] {
        let from = (self.from as usize).min(self.header.len());
        let to = self.from.saturating_add(self.len).min(self.header.len() as u64) as usize;
        &self.header[from..to]
    }
}

impl<'s> Search<'s> {
    /// Reads the beginning of a header.
    pub(super) fn prefix<'a>(&self, header: &'a [u8]) -> Option<(Messages, Body<'a>)> {
        let mut fields = Fields::new(self.sizes, header);
        if !header.starts_with(b"OHDR") {
            let is_first = fields.number(2)? == 1;
            fields.skip(6)?;
            let len = fields.number(4)?;
            let messages = Messages { is_old: true, is_numbered: false };
            return is_first.then_some((messages, Body { header, from: 16, len }));
        }
        fields.skip(5)?;
        let flags = fields.byte()?;
        let times = if flags & 0x20 != 0 { 16 } else { 0 };
        let phases = if flags & 0x10 != 0 { 4 } else { 0 };
        fields.skip(times + phases)?;
        let width = 1 << (flags & 3);
        let len = fields.number(width)?;
        let from = (6 + times + phases + width) as u64;
        Some((Messages { is_old: false, is_numbered: flags & 4 != 0 }, Body { header, from, len }))
    }

    pub(super) fn header(&mut self, piece: &Piece, held: &[u8]) -> Option<()> {
        let (how, body) = self.prefix(held)?;
        let whole = body.from.checked_add(body.len)?;
        // What is looked for in it must not be missed, however long it is.
        let must_see = matches!(self.goal, Goal::Fill | Goal::Data);
        let limit = if must_see { PIECE_LIMIT } else { HEADER_LIMIT };
        if whole > held.len() as u64 && piece.len < whole && whole <= limit {
            self.push(piece.at, whole, Kind::Header);
            return Some(());
        }
        self.is_lost |= whole > held.len() as u64;
        self.body(how, body.messages())
    }

    /// The messages of a further block of a header.
    pub(super) fn messages(&mut self, how: Messages, held: &[u8]) -> Option<()> {
        let body = if how.is_old { held } else { held.get(4..held.len().checked_sub(4)?)? };
        self.body(how, body)
    }

    fn body(&mut self, how: Messages, bytes: &[u8]) -> Option<()> {
        let sizes = self.sizes;
        let is_whole = each_message(sizes, how, bytes, |message| {
            // One that makes no sense does not hide the others.
            let understood = self.message(how, &message).is_some();
            self.is_lost |= !understood;
        });
        self.is_lost |= !is_whole;
        Some(())
    }

    fn message(&mut self, how: Messages, message: &Message) -> Option<()> {
        let mut fields = Fields::new(self.sizes, message.body);
        match (message.kind, self.goal) {
            (0x10, _) => {
                let (at, len) = (fields.address()??, fields.length()?);
                self.push(at, len, Kind::Continuation(how));
            }
            (0x08, Goal::Index) => return chunks::layout(self, &mut fields),
            (0x08, Goal::Data) => {
                let place = chunks::data_place(&mut fields)?;
                self.data.extend(place);
            }
            (0x0f, Goal::Data) => self.data.push(DataPlace::SharedMessages),
            (0x04 | 0x05, Goal::Fill) => return self.fill(message),
            (_, Goal::Index | Goal::Fill | Goal::Data) => {}
            (_, Goal::Objects) if message.is_shared => return self.shared(&mut fields),
            (0x02, _) => return self.dense(&mut fields, 8),
            (0x15, _) => return self.dense(&mut fields, 2),
            (0x06, _) => return self.link(&mut fields),
            (0x08, _) => return chunks::virtual_mapping(self, &mut fields),
            (0x0c, _) => return self.attribute(&mut fields),
            (0x11, _) => {
                let (tree, heap) = (fields.address()?, fields.address()?);
                if let Some(tree) = tree {
                    self.push(tree, self.group_node_len(), Kind::GroupNode);
                }
                self.push(heap?, super::groups::HEAP_GUESS, Kind::LocalHeap);
            }
            _ => {}
        }
        Some(())
    }

    /// A fill value, of the old kind (IV.A.2.e) or the new (IV.A.2.f).
    fn fill(&mut self, message: &Message) -> Option<()> {
        if message.is_shared {
            self.fills.push(FillMessage::Shared);
            return Some(());
        }
        let mut fields = Fields::new(self.sizes, message.body);
        if message.kind == 0x05 {
            let version = fields.byte()?;
            let is_defined = if version >= 3 {
                fields.byte()? & 0x20 != 0
            } else {
                fields.skip(2)?;
                fields.byte()? != 0 || version < 2
            };
            if !is_defined {
                return Some(());
            }
        }
        let len = fields.number(4)? as usize;
        self.fills.push(FillMessage::Value(fields.take(len)?.to_vec()));
        Some(())
    }

    /// A message that is kept elsewhere (IV.A.2.a): a committed datatype has a header of its own.
    fn shared(&mut self, fields: &mut Fields) -> Option<()> {
        let version = fields.byte()?;
        let kind = fields.byte()?;
        if version == 1 {
            fields.skip(6)?;
        } else if version == 3 && kind != 2 {
            return None;
        }
        self.push(fields.address()??, HEADER_GUESS, Kind::Header);
        Some(())
    }

    /// Links or attributes in a fractal heap with its trees (IV.A.2.c, IV.A.2.v).
    fn dense(&mut self, fields: &mut Fields, number: usize) -> Option<()> {
        fields.skip(1)?;
        let flags = fields.byte()?;
        if flags & 1 != 0 {
            fields.skip(number)?;
        }
        if let Some(heap) = fields.address()? {
            self.push(heap, super::trees::HEAP_LEN, Kind::FractalHeap);
        }
        for _ in 0..if flags & 2 != 0 { 2 } else { 1 } {
            if let Some(tree) = fields.address()? {
                self.push(tree, super::trees::TREE_LEN, Kind::Tree);
            }
        }
        Some(())
    }

    /// A link in the header itself (IV.A.2.g); only hard ones lead to an address.
    pub(super) fn link(&mut self, fields: &mut Fields) -> Option<()> {
        fields.skip(1)?;
        let flags = fields.byte()?;
        let kind = if flags & 8 != 0 { fields.byte()? } else { 0 };
        fields.skip(if flags & 4 != 0 { 8 } else { 0 })?;
        fields.skip(usize::from(flags & 0x10 != 0))?;
        let name = fields.number(1 << (flags & 3))?;
        fields.skip(usize::try_from(name).ok()?)?;
        if kind == 0 {
            self.push(fields.address()??, HEADER_GUESS, Kind::Header);
        }
        Some(())
    }

    /// An attribute (IV.A.2.m) of variable length keeps its values in the global heap.
    fn attribute(&mut self, fields: &mut Fields) -> Option<()> {
        let version = fields.byte()?;
        let flags = fields.byte()?;
        let mut len = || fields.number(2).map(|n| n as usize);
        let (name, datatype, space) = (len()?, len()?, len()?);
        fields.skip(usize::from(version == 3))?;
        let padded = |len: usize| if version == 1 { len.next_multiple_of(8) } else { len };
        fields.skip(padded(name))?;
        let class = fields.take(padded(datatype))?.first()? & 0x0f;
        fields.skip(padded(space))?;
        /// The class of variable-length datatypes.
        const VARIABLE: u8 = 9;
        if version >= 2 && flags & 1 != 0 || class != VARIABLE {
            return None;
        }
        while fields.number(4).is_some() {
            if let Some(heap) = fields.address()? {
                self.push(heap, super::groups::COLLECTION, Kind::GlobalHeap);
            }
            fields.skip(4)?;
        }
        Some(())
    }
}
