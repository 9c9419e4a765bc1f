//! Checksums of HDF5's metadata, made to fit: else nothing behind a changed byte is ever looked at.
//!
//! Structures are those of the HDF5 File Format Specification 3.0. Headers are found by their signatures, what they lead
//! to by their fields; what makes no sense is left as it is. `fuzz/checksums.py` does the same by the file before it is
//! changed.

use sieva_types::lookup3;

/// Nodes and blocks of one index that are followed.
const MOST_BLOCKS: usize = 1 << 12;

/// Writes checksums that fit into all structures that are understood.
pub fn repair(file: &mut [u8]) {
    let Some(start) = (0..)
        .map(|n| if n == 0 { 0 } else { 256 << n })
        .take(5)
        .find(|&at| file.get(at..at + 4).is_some_and(|signature| signature == b"\x89HDF"))
    else {
        return;
    };
    let Some(&version) = file.get(start + 8) else { return };
    let widths = start + if version < 2 { 13 } else { 9 };
    let Some(&[address, length]) = file.get(widths..widths + 2) else { return };
    if !(2..=8).contains(&address) || !(2..=8).contains(&length) {
        return;
    }
    let (address, length) = (usize::from(address), usize::from(length));
    let mut metadata = Metadata { file, base: start, address, length, left: MOST_BLOCKS };
    if version >= 2 {
        metadata.sign(start, start + 12 + 4 * address);
    }
    for at in 0..metadata.file.len().saturating_sub(4) {
        let signature: [u8; 4] = [0, 1, 2, 3].map(|i| metadata.file[at + i]);
        metadata.left = MOST_BLOCKS;
        // What is cut off is left.
        let _ = match &signature {
            b"OHDR" => metadata.header(at),
            b"BTHD" => metadata.tree(at),
            b"FRHP" => metadata.heap(at),
            b"FAHD" => metadata.fixed_array(at),
            b"EAHD" => metadata.extensible_array(at),
            b"GCOL" => metadata.collection(at),
            _ => None,
        };
    }
}

struct Metadata<'a> {
    file: &'a mut [u8],
    base: usize,
    address: usize,
    length: usize,
    left: usize,
}

/// The nodes of a tree: their length, that of a record, and the most records of a leaf.
#[derive(Clone, Copy)]
struct Nodes {
    len: usize,
    record: usize,
    leaf: usize,
}

/// The doubling table of a fractal heap.
#[derive(Clone, Copy)]
struct Table {
    prefix: usize,
    width: usize,
    first: usize,
    most: usize,
    is_signed: bool,
}

impl Metadata<'_> {
    fn sign(&mut self, from: usize, to: usize) {
        self.sign_at(from, to, to);
    }

    /// Puts the checksum of a range at a place, which counts as zeros where it lies in it.
    fn sign_at(&mut self, from: usize, to: usize, at: usize) {
        if from < to && to <= self.file.len() && at.checked_add(4).is_some_and(|end| end <= self.file.len()) {
            self.file[at..at + 4].fill(0);
            let sum = lookup3(&self.file[from..to], 0);
            self.file[at..at + 4].copy_from_slice(&sum.to_le_bytes());
        }
    }

    fn number(&self, at: usize, width: usize) -> Option<usize> {
        let mut number = [0; 8];
        number.get_mut(..width)?.copy_from_slice(self.file.get(at..at.checked_add(width)?)?);
        usize::try_from(u64::from_le_bytes(number)).ok()
    }

    /// A place in the file; none where nothing is, or too much was followed.
    fn place(&mut self, at: usize) -> Option<Option<usize>> {
        let address = self.number(at, self.address)?;
        self.left = self.left.checked_sub(1)?;
        Some(self.base.checked_add(address).filter(|&at| at < self.file.len()))
    }

    fn header(&mut self, at: usize) -> Option<()> {
        let flags = self.number(at + 5, 1)?;
        let width = 1 << (flags & 3);
        let size = at + 6 + if flags & 0x20 != 0 { 16 } else { 0 } + if flags & 0x10 != 0 { 4 } else { 0 };
        let (from, len) = (size + width, self.number(size, width)?);
        let to = from.checked_add(len)?;
        self.messages(from, to, flags)?;
        self.sign(at, to);
        Some(())
    }

    /// Finds further blocks of a header in these messages.
    fn messages(&mut self, mut at: usize, to: usize, flags: usize) -> Option<()> {
        let head = if flags & 4 != 0 { 6 } else { 4 };
        while at + head <= to {
            let (kind, len) = (self.number(at, 1)?, self.number(at + 1, 2)?);
            if kind == 0x10 {
                let len = self.number(at + head + self.address, self.length)?;
                if let Some(block) = self.place(at + head)? {
                    let end = block.checked_add(len)?.checked_sub(4)?;
                    self.messages(block + 4, end, flags);
                    self.sign(block, end);
                }
            }
            at += head + len;
        }
        Some(())
    }

    fn tree(&mut self, at: usize) -> Option<()> {
        let (len, record, depth) =
            (self.number(at + 6, 4)?, self.number(at + 10, 2)?, self.number(at + 12, 2)?);
        let root = at + 16;
        self.sign(at, root + self.address + 2 + self.length);
        let records = self.number(root + self.address, 2)?;
        let nodes = Nodes { len, record, leaf: len.checked_sub(10)? / record.max(1) };
        let root = self.place(root)??;
        self.node(root, records, depth.min(8), nodes)
    }

    fn node(&mut self, at: usize, records: usize, depth: usize, nodes: Nodes) -> Option<()> {
        let end = at.checked_add(6 + records * nodes.record)?;
        if depth == 0 {
            self.sign(at, end);
            return Some(());
        }
        let (count, total) =
            (bytes_of(nodes.leaf), if depth > 1 { self.total_width(depth - 1, nodes)? } else { 0 });
        let step = self.address + count + total;
        for child in 0..=records {
            let below = self.number(end + child * step + self.address, count)?;
            if let Some(place) = self.place(end + child * step)? {
                self.node(place, below, depth - 1, nodes);
            }
        }
        self.sign(at, end + (records + 1) * step);
        Some(())
    }

    /// Bytes that count all records below a node of this depth.
    fn total_width(&self, depth: usize, nodes: Nodes) -> Option<usize> {
        let (mut most, mut width) = (nodes.leaf, 0);
        for _ in 0..depth {
            let pointer = self.address + bytes_of(nodes.leaf) + width;
            let own = nodes.len.checked_sub(10 + pointer)? / (nodes.record + pointer);
            most = (own + 1).checked_mul(most)?.checked_add(own)?;
            width = bytes_of(most);
        }
        Some(width)
    }

    fn heap(&mut self, at: usize) -> Option<()> {
        let (filters, flags) = (self.number(at + 7, 2)?, self.number(at + 9, 1)?);
        let table = at + 14 + 10 * self.length + 2 * self.address;
        let width = self.number(table, 2)?;
        let (first, most) =
            (self.number(table + 2, self.length)?, self.number(table + 2 + self.length, self.length)?);
        let rest = table + 2 + 2 * self.length;
        let (bits, rows) = (self.number(rest, 2)?, self.number(rest + 4 + self.address, 2)?);
        let end = rest + 6 + self.address;
        self.sign(at, if filters > 0 { end + self.length + 4 + filters } else { end });
        let root = self.place(rest + 4)??;
        if filters > 0 || bits > 64 {
            return None;
        }
        let prefix = 5 + self.address + bits.div_ceil(8);
        let table = Table { prefix, width, first, most, is_signed: flags & 2 != 0 };
        if rows == 0 { self.heap_block(root, first, table) } else { self.heap_table(root, rows, table) }
    }

    fn heap_block(&mut self, at: usize, len: usize, table: Table) -> Option<()> {
        if table.is_signed {
            self.sign_at(at, at.checked_add(len)?, at + table.prefix);
        }
        Some(())
    }

    fn heap_table(&mut self, at: usize, rows: usize, table: Table) -> Option<()> {
        let entries = table.width.checked_mul(rows)?;
        for entry in 0..entries {
            let len = table.first.checked_shl((entry / table.width).saturating_sub(1) as u32)?;
            let Some(place) = self.place(at + table.prefix + entry * self.address)? else { continue };
            if len <= table.most {
                self.heap_block(place, len, table);
            } else {
                let below = (len / table.first.checked_mul(table.width)?.max(1)).max(1).ilog2() as usize + 1;
                if below < rows {
                    self.heap_table(place, below, table);
                }
            }
        }
        self.sign(at, at + table.prefix + entries * self.address);
        Some(())
    }

    /// The mappings of virtual data, which end with their checksum: other objects are changed by that, too.
    fn collection(&mut self, at: usize) -> Option<()> {
        let head = (8 + self.length).next_multiple_of(8);
        let end = at.checked_add(self.number(at + 8, self.length)?)?;
        let mut object = at + head;
        while object + head <= end && self.number(object, 2)? > 0 {
            let len = self.number(object + 8, self.length)?;
            // A version and a number of mappings that is not absurd: texts begin otherwise.
            let (version, count) =
                (self.number(object + head, 1)?, self.number(object + head + 1, self.length)?);
            if len > 40 && version < 2 && count < len / 8 {
                self.sign(object + head, object.checked_add(head + len)? - 4);
            }
            object = object.checked_add(head + len.checked_next_multiple_of(8)?)?;
        }
        Some(())
    }

    fn fixed_array(&mut self, at: usize) -> Option<()> {
        let (element, bits) = (self.number(at + 6, 1)?, self.number(at + 7, 1)?);
        let elements = self.number(at + 8, self.length)?;
        let end = at + 8 + self.length + self.address;
        self.sign(at, end);
        let block = self.place(end - self.address)??;
        let page = 1_usize.checked_shl(bits as u32)?;
        let from = block + 6 + self.address;
        if elements <= page {
            self.sign(block, from.checked_add(elements * element)?);
            return Some(());
        }
        let pages = elements.div_ceil(page);
        let mut next = from.checked_add(pages.div_ceil(8))?;
        self.sign(block, next);
        next += 4;
        for number in 0..pages.min(MOST_BLOCKS) {
            let to = next.checked_add(page.min(elements - number * page).checked_mul(element)?)?;
            self.sign(next, to);
            next = to + 4;
        }
        Some(())
    }

    fn extensible_array(&mut self, at: usize) -> Option<()> {
        let mut settings = [0; 6];
        settings.copy_from_slice(self.file.get(at + 6..at + 12)?);
        let [element, bits, inside, least, pointers, page_bits] = settings.map(usize::from);
        let index = at + 12 + 6 * self.length;
        self.sign(at, index + self.address);
        let block = self.place(index)??;
        let direct = 2 * pointers.max(1).ilog2() as usize;
        let supers = (bits + 1).checked_sub(least.max(1).ilog2() as usize)?.min(64);
        let blocks = 2 * pointers.checked_sub(1)?;
        let places = block + 6 + self.address + inside * element;
        let prefix = 6 + self.address + bits.div_ceil(8);
        self.sign(block, places + (blocks + supers.saturating_sub(direct)) * self.address);
        let mut seen = 0;
        for number in 0..supers {
            let (count, items) = (1_usize << (number / 2), least.checked_shl(number.div_ceil(2) as u32)?);
            let data = prefix.checked_add(items.checked_mul(element)?)?;
            if seen < blocks {
                for child in seen..seen + count {
                    let place = self.place(places + child * self.address)?;
                    self.data_block(place, prefix, data);
                }
                seen += count;
                continue;
            }
            let Some(outer) = self.place(places + (blocks + number - direct) * self.address)? else {
                continue;
            };
            let is_paged = items > 1_usize.checked_shl(page_bits as u32)?;
            let first = outer + prefix + if is_paged { count * (items >> page_bits).div_ceil(8) } else { 0 };
            for child in 0..count {
                let place = self.place(first + child * self.address)?;
                self.data_block(place, prefix, data);
            }
            self.sign(outer, first + count * self.address);
        }
        Some(())
    }

    fn data_block(&mut self, at: Option<usize>, prefix: usize, len: usize) {
        let Some(at) = at else { return };
        if self.file.get(at..at + 4).is_some_and(|signature| signature == b"EADB") {
            // Of one in pages the head alone; its pages are left.
            self.sign(at, if len > 1 << 16 { at + prefix } else { at + len });
        }
    }
}

/// Bytes that numbers up to `most` take.
fn bytes_of(most: usize) -> usize {
    most.max(1).ilog2() as usize / 8 + 1
}
