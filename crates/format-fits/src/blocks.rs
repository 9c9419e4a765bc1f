//! Plain data that are not handed out as they are: columns of tables, integers whose sign bit is flipped,
//! logicals, bits, numbers as texts. They are read in blocks of rows, which the block reader sees as chunks.
//!
//! A column could be read by its stride, element by element. Reading whole rows costs bytes and saves calls, of
//! which there would be one for each cell.

use std::cell::Cell;

use sieva_store::RangedRead;
use sieva_types::Result;

use crate::ascii::Field;

/// Bytes that one block spans in the file.
const SPAN: u64 = 256 << 10;
/// Elements of a block.
const MAX_ROWS: u64 = 64 << 10;

thread_local! {
    /// Rows as they were read: new memory for each block would cost as much as reading it.
    static SPAN_BYTES: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What is done to stored items.
#[derive(Clone, Debug)]
pub(crate) enum Transform {
    /// Nothing.
    Keep,
    /// The highest bit of each big-endian integer of so many bytes is flipped.
    FlipSign(usize),
    /// `T` is true, anything else is not.
    Logical,
    /// So many bits of each item, the highest bit of the first byte first.
    Bits(usize),
    /// A number as text.
    Number(Field),
}

/// An array's data, as rows at a stride.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// Offset of the first row's item.
    pub(crate) start: u64,
    /// Bytes from row to row.
    pub(crate) stride: u64,
    /// Bytes of an item.
    pub(crate) item: u64,
    /// Number of rows, of each index of the dimensions before them.
    pub(crate) rows: u64,
    /// Rows of a block.
    pub(crate) rows_per_block: u64,
    /// Bytes of a decoded block.
    pub(crate) block_bytes: u64,
    /// What is done to items.
    pub(crate) transform: Transform,
}

/// The rows of a block where a row takes `stride` bytes.
pub(crate) fn rows_per_block(stride: u64, rows: u64) -> u64 {
    (SPAN / stride.max(1)).clamp(1, MAX_ROWS).min(rows.max(1))
}

impl Blocks {
    /// The bytes of the file that hold block `number`, and the number of its rows.
    pub(crate) fn place(&self, number: u64) -> (std::ops::Range<u64>, u64) {
        let per_outer = self.rows.div_ceil(self.rows_per_block).max(1);
        let (outer, block) = (number / per_outer, number % per_outer);
        let first = block.saturating_mul(self.rows_per_block);
        let rows = self.rows_per_block.min(self.rows.saturating_sub(first));
        let row = outer.saturating_mul(self.rows).saturating_add(first);
        let start = self.start.saturating_add(row.saturating_mul(self.stride));
        let span = rows.saturating_sub(1).saturating_mul(self.stride).saturating_add(self.item);
        (start..start.saturating_add(if rows == 0 { 0 } else { span }), rows)
    }

    /// Puts block `number` into `out`, filled up with zeros to a whole block.
    pub(crate) fn fetch(&self, store: &dyn RangedRead, number: u64, out: &mut Vec<u8>) -> Result<()> {
        let (range, rows) = self.place(number);
        let len = range.end - range.start;
        if range.end > store.len() {
            let message = format!("data end at offset {}, the file at {}", range.end, store.len());
            return Err(sieva_types::Error::corrupt(message).hint("the file was cut off: copy it again"));
        }
        let in_place = self.stride == self.item || rows <= 1;
        let plain = matches!(self.transform, Transform::Keep | Transform::FlipSign(_) | Transform::Logical);
        if in_place && plain {
            out.resize(len as usize, 0);
            store.read_exact_at(range.start, out)?;
        } else {
            let mut span = SPAN_BYTES.take();
            span.resize(len as usize, 0);
            let read = store.read_exact_at(range.start, &mut span);
            let read = read.and_then(|()| self.gather(&span, rows as usize, out));
            if span.capacity() <= 2 * SPAN as usize {
                SPAN_BYTES.set(span);
            }
            read?;
        }
        match self.transform {
            Transform::FlipSign(size) => out.chunks_exact_mut(size).for_each(|e| e[0] ^= 0x80),
            Transform::Logical => out.iter_mut().for_each(|b| *b = u8::from(*b == b'T')),
            _ => {}
        }
        out.resize(self.block_bytes as usize, 0);
        Ok(())
    }

    /// Puts the items of the rows in `span` together. The last row is cut off after its item.
    fn gather(&self, span: &[u8], rows: usize, out: &mut Vec<u8>) -> Result<()> {
        let (stride, item) = (self.stride.max(1) as usize, self.item as usize);
        let items = || span.chunks(stride).filter_map(|row| row.get(..item));
        out.clear();
        match &self.transform {
            Transform::Bits(n) => {
                for item in items() {
                    out.extend((0..*n).map(|bit| item.get(bit / 8).map_or(0, |b| b >> (7 - bit % 8) & 1)));
                }
            }
            Transform::Number(field) => {
                for item in items() {
                    out.extend_from_slice(&field.parse(item)?);
                }
            }
            _ => {
                out.resize(rows.saturating_mul(item), 0);
                match item {
                    1 => copy::<1>(span, stride, out),
                    2 => copy::<2>(span, stride, out),
                    4 => copy::<4>(span, stride, out),
                    8 => copy::<8>(span, stride, out),
                    _ => {
                        let slots = out.chunks_exact_mut(item.max(1));
                        slots.zip(items()).for_each(|(slot, item)| slot.copy_from_slice(item));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Copies items of `N` bytes: of a length that the compiler knows, each is one move.
fn copy<const N: usize>(span: &[u8], stride: usize, out: &mut [u8]) {
    for (slot, row) in out.chunks_exact_mut(N).zip(span.chunks(stride)) {
        if let Some(item) = row.first_chunk::<N>() {
            slot.copy_from_slice(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use sieva_store::MemoryStore;

    use super::*;

    fn blocks(rows: u64, per: u64, stride: u64, item: u64, transform: Transform) -> Blocks {
        let out = if let Transform::Bits(n) = transform { n as u64 } else { item };
        Blocks { start: 2, stride, item, rows, rows_per_block: per, block_bytes: per * out, transform }
    }

    #[test]
    fn items_are_gathered_and_the_last_block_filled_up() {
        let store = MemoryStore::new("m", (0..32).collect::<Vec<u8>>());
        let column = blocks(3, 2, 10, 2, Transform::FlipSign(2));
        let mut out = Vec::new();
        column.fetch(&store, 0, &mut out).unwrap();
        assert_eq!(out, [0x82, 3, 0x8c, 13]);
        column.fetch(&store, 1, &mut out).unwrap();
        assert_eq!(out, [0x80 | 22, 23, 0, 0]);
    }

    #[test]
    fn blocks_begin_anew_with_each_outer_index() {
        let image = blocks(3, 2, 4, 4, Transform::Keep);
        assert_eq!(image.place(0), (2..10, 2));
        assert_eq!(image.place(1), (10..14, 1));
        assert_eq!(image.place(2), (14..22, 2));
    }

    #[test]
    fn bits_and_logicals() {
        let store = MemoryStore::new("m", vec![0, 0, 0b1010_0000, 0b0100_0000, b'T', b'F', 0]);
        let mut out = Vec::new();
        blocks(1, 1, 2, 2, Transform::Bits(10)).fetch(&store, 0, &mut out).unwrap();
        assert_eq!(out, [1, 0, 1, 0, 0, 0, 0, 0, 0, 1]);
        let logical = Blocks { start: 4, ..blocks(3, 3, 1, 1, Transform::Logical) };
        logical.fetch(&store, 0, &mut out).unwrap();
        assert_eq!(out, [1, 0, 0]);
    }

    #[test]
    fn data_past_the_end_are_an_error() {
        let store = MemoryStore::new("m", vec![0; 4]);
        let e = blocks(3, 3, 4, 4, Transform::Keep).fetch(&store, 0, &mut Vec::new()).unwrap_err();
        assert_eq!(e.to_string(), "data end at offset 14, the file at 4");
    }
}
