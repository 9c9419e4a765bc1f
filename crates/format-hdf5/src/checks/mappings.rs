//! The mappings of virtual datasets, which lie in the global heap. libhdf5 takes memory for as many as they say that
//! they are before it looks at one, and writes past the end of it where that number is multiplied beyond 64 bits.

use sieva_types::lookup3;

use super::{Cursor, Look};

/// Bytes of the shortest mapping: two names, of which each is a NUL or a flag, and two selections.
const LEAST: u64 = 34;
/// The most bytes of mappings that are looked at.
const MOST: u64 = 256 << 20;

/// What is wrong with the mappings in object `index` of the heap at `heap`, if anything is.
pub(super) fn wrong(look: &mut Look<'_>, heap: u64, index: u64) -> Option<&'static str> {
    let Some((at, size)) = object(look, heap, index) else {
        // Refused by libhdf5 itself.
        return None;
    };
    if size > MOST {
        return Some("the mappings of virtual data take more than 256 MiB");
    }
    let Some(block) = look.window.bytes(at, size) else {
        return Some("the mappings of virtual data reach past the end of the file");
    };
    let width = look.sizes.length;
    let Some((content, sum)) = block.split_last_chunk::<4>() else {
        return Some("the mappings of virtual data are cut off");
    };
    if lookup3(content, 0) != u32::from_le_bytes(*sum) {
        return Some("the mappings of virtual data do not have their checksum");
    }
    let mut reader = Reader { rest: content, width };
    match reader.mappings() {
        Some(()) if reader.rest.is_empty() => None,
        _ => Some("the mappings of virtual data are not as many, or not as long, as they say"),
    }
}

/// Where object `index` of the global heap collection at `heap` lies, and its bytes.
pub(super) fn object(look: &mut Look<'_>, heap: u64, index: u64) -> Option<(u64, u64)> {
    let header = (8 + look.sizes.length as u64).next_multiple_of(8);
    let end = heap.checked_add(look.length(heap.checked_add(8)?)?)?;
    let mut at = heap.checked_add(header)?;
    while at.checked_add(header)? <= end {
        let mut fields = Cursor { look, at };
        let number = fields.number(2)?;
        fields.skip(6);
        let size = fields.length()?;
        if number == index {
            return Some((at + header, size));
        }
        // The free space, which is last, counts its header.
        let step = if number == 0 { size } else { size.checked_next_multiple_of(8)?.checked_add(header)? };
        at = at.checked_add(step).filter(|_| step > 0)?;
    }
    None
}

/// The fields of mappings.
struct Reader<'a> {
    rest: &'a [u8],
    width: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self, width: usize) -> Option<u64> {
        let mut number = [0; 8];
        number.get_mut(..width)?.copy_from_slice(self.take(width)?);
        Some(u64::from_le_bytes(number))
    }

    fn mappings(&mut self) -> Option<()> {
        let version = self.number(1)?;
        let count = self.number(self.width)?;
        if version > 1 || count > self.rest.len() as u64 / LEAST {
            return None;
        }
        for number in 0..count {
            // Bits: the names of file and dataset are those of another mapping; the file is this one.
            let flags = if version == 1 { self.number(1)? } else { 0 };
            if flags & 4 == 0 {
                self.name(flags & 1 != 0, number)?;
            }
            self.name(flags & 2 != 0, number)?;
            self.selection()?;
            self.selection()?;
        }
        Some(())
    }

    /// A name, or the number of an earlier mapping that has it.
    fn name(&mut self, is_shared: bool, number: u64) -> Option<()> {
        if is_shared {
            return (self.number(self.width)? < number).then_some(());
        }
        let end = self.rest.iter().position(|&byte| byte == 0)?;
        self.take(end + 1).map(|_| ())
    }

    /// A selection (section VIII.A): all, nothing, points or blocks.
    fn selection(&mut self) -> Option<()> {
        let (kind, version) = (self.number(4)?, self.number(4)?);
        match (kind, version) {
            (0 | 3, _) => self.take(8).map(|_| ()),
            (2, 1) => {
                self.take(8)?;
                self.blocks(4)
            }
            (2, 2) => {
                let flags = self.number(1)?;
                self.take(4)?;
                if flags & 1 == 0 { self.blocks(8) } else { self.regular(8) }
            }
            (2, 3) => {
                let (flags, width) = (self.number(1)?, self.number(1)? as usize);
                if flags & 1 == 0 { self.blocks(width) } else { self.regular(width) }
            }
            // Points are not mapped.
            _ => None,
        }
    }

    /// The number of dimensions.
    fn rank(&mut self) -> Option<usize> {
        let rank = self.number(4)?;
        (1..=32).contains(&rank).then_some(rank as usize)
    }

    fn regular(&mut self, width: usize) -> Option<()> {
        let rank = self.rank()?;
        self.take(4 * rank * width).map(|_| ())
    }

    fn blocks(&mut self, width: usize) -> Option<()> {
        let rank = self.rank()?;
        let count = usize::try_from(self.number(width)?).ok()?;
        self.take(count.checked_mul(2 * rank * width)?).map(|_| ())
    }
}
