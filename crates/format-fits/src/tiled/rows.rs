//! The table behind a tile-compressed image: a row for each tile, and the heap that the rows point into.

use std::ops::Range;
use std::sync::OnceLock;

use sieva_store::RangedRead;
use sieva_types::{DType, Error, Result};

use super::spec::{Descriptor, PerTile};

/// Tables up to this many bytes are read at once and kept; of larger ones each row is read when it is asked for.
const KEPT: u64 = 16 << 20;

/// The rows and the heap.
#[derive(Debug)]
pub(super) struct Rows {
    start: u64,
    row_bytes: u64,
    rows: u64,
    heap: Range<u64>,
    kept: OnceLock<Vec<u8>>,
}

impl Rows {
    /// A table at `start` whose heap is the given part of the file.
    pub(super) fn new(start: u64, row_bytes: u64, rows: u64, heap: Range<u64>) -> Self {
        Self { start, row_bytes, rows, heap, kept: OnceLock::new() }
    }

    /// The bytes of a row.
    pub(super) fn row(&self, store: &dyn RangedRead, number: u64) -> Result<Vec<u8>> {
        if number >= self.rows {
            let message = format!("tile {number} asked for, the table has {} rows", self.rows);
            return Err(Error::corrupt(message));
        }
        let len = self.rows.saturating_mul(self.row_bytes);
        let end = self.start.saturating_add(len);
        if end > store.len() {
            let message = format!("the table of tiles ends at offset {end}, the file at {}", store.len());
            return Err(Error::corrupt(message).hint("the file was cut off: copy it again"));
        }
        if len > KEPT {
            let mut row = vec![0; self.row_bytes as usize];
            store.read_exact_at(self.start + number * self.row_bytes, &mut row)?;
            return Ok(row);
        }
        let kept = match self.kept.get() {
            Some(kept) => kept,
            None => {
                let mut table = vec![0; len as usize];
                store.read_exact_at(self.start, &mut table)?;
                self.kept.get_or_init(|| table)
            }
        };
        let at = (number * self.row_bytes) as usize;
        let row = kept.get(at..at + self.row_bytes as usize);
        row.map(<[u8]>::to_vec).ok_or_else(|| Error::corrupt("the table of tiles is cut off"))
    }

    /// The bytes of the file that a row's descriptor points at, which lie in the heap; empty where it points at none.
    pub(super) fn place(&self, row: &[u8], descriptor: Descriptor) -> Result<Range<u64>> {
        let at = descriptor.offset as usize;
        let number = |i: usize| -> Option<u64> {
            if descriptor.wide {
                let bytes: [u8; 8] = row.get(at + 8 * i..at + 8 * i + 8)?.try_into().ok()?;
                return u64::try_from(i64::from_be_bytes(bytes)).ok();
            }
            // Heaps of 2 to 4 GiB are told in what the standard calls signed numbers.
            let bytes: [u8; 4] = row.get(at + 4 * i..at + 4 * i + 4)?.try_into().ok()?;
            Some(u32::from_be_bytes(bytes).into())
        };
        let (count, offset) = (number(0), number(1));
        if count == Some(0) {
            return Ok(self.heap.start..self.heap.start);
        }
        let place = count.zip(offset).and_then(|(count, offset)| {
            let start = self.heap.start.checked_add(offset)?;
            Some(start..start.checked_add(count.checked_mul(descriptor.size)?)?)
        });
        place.filter(|p| p.end <= self.heap.end).ok_or_else(|| {
            let heap = self.heap.end - self.heap.start;
            Error::corrupt(format!("a tile of {count:?} elements at {offset:?}, the heap has {heap} bytes"))
        })
    }

    /// The stored bytes of a place.
    pub(super) fn read(&self, store: &dyn RangedRead, place: Range<u64>) -> Result<Vec<u8>> {
        if place.end > store.len() {
            let message = format!("a tile ends at offset {}, the file at {}", place.end, store.len());
            return Err(Error::corrupt(message).hint("the file was cut off: copy it again"));
        }
        let mut bytes = vec![0; (place.end - place.start) as usize];
        store.read_exact_at(place.start, &mut bytes)?;
        Ok(bytes)
    }
}

/// A number of a row.
pub(super) fn number(row: &[u8], of: PerTile) -> Option<f64> {
    let PerTile::Column(offset, dtype) = of else {
        return if let PerTile::Fixed(number) = of { Some(number) } else { None };
    };
    let bytes = row.get(offset as usize..)?.get(..dtype.size())?;
    Some(match dtype {
        DType::U8 => bytes[0].into(),
        DType::I16 => i16::from_be_bytes(bytes.try_into().ok()?).into(),
        DType::I32 => i32::from_be_bytes(bytes.try_into().ok()?).into(),
        DType::I64 => i64::from_be_bytes(bytes.try_into().ok()?) as f64,
        DType::F32 => f32::from_be_bytes(bytes.try_into().ok()?).into(),
        DType::F64 => f64::from_be_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use sieva_store::MemoryStore;

    use super::*;

    #[test]
    fn places_lie_in_the_heap() {
        let rows = Rows::new(0, 8, 2, 16..32);
        let descriptor = Descriptor { offset: 0, wide: false, size: 2 };
        let place = |count: u32, offset: u32| {
            let row: Vec<u8> = [count, offset].iter().flat_map(|n| n.to_be_bytes()).collect();
            rows.place(&row, descriptor)
        };
        assert_eq!(place(3, 4).unwrap(), 20..26);
        assert!(place(0, u32::MAX).unwrap().is_empty());
        for (count, offset) in [(9, 0), (1, 15), (u32::MAX, 0), (1, u32::MAX)] {
            assert!(place(count, offset).is_err(), "{count} {offset}");
        }
        let store = MemoryStore::new("m", vec![0; 32]);
        assert!(rows.row(&store, 1).is_ok() && rows.row(&store, 2).is_err());
    }
}
