//! Texts: fixed-length strings, char arrays, and variable-length strings by the format's own reader.

use sieva_types::{Bx, PlacedTexts, Result, Texts, try_zeros};

use super::chunks::advance;
use super::{BlockReader, Workspace};
use crate::layout::{Layout, Placement};

/// Bytes that a block of texts may take whatever the limit.
const LEAST: u64 = 1 << 20;

impl BlockReader {
    /// The texts of box `bx` (of the array's rank, without a char array's last dimension), in C order.
    ///
    /// # Errors
    /// As [`BlockReader::read`].
    pub fn read_texts(&self, bx: &Bx, ws: &mut Workspace) -> Result<Texts> {
        let layout = &*self.layout;
        // Of a text of any length only its offset is known.
        if bx.len().saturating_mul(size_of::<i32>() as u64) > self.memory.max(LEAST) {
            return Err(self.too_big(bx.len()));
        }
        if let Placement::Parts(parts) = &layout.placement {
            return self.read_part_texts(parts, bx, ws);
        }
        if matches!(layout.placement, Placement::Library(_) | Placement::Foreign(_))
            && layout.element_size == 0
        {
            return self.read_library_texts(bx).map_err(|e| self.locate(e));
        }
        if layout.element_size == 0 && matches!(layout.placement, Placement::Unallocated) {
            return Ok(Texts::repeated(&fill_of_any_length(layout), bx.len() as usize));
        }
        let Some(stored) = self.text_box(bx) else { return Ok(Texts::repeated("", bx.len() as usize)) };
        let bx = stored;
        self.check_stored(&bx)?;
        let bytes = bx.len().saturating_mul(layout.element_size as u64);
        let Some(bytes) = usize::try_from(bytes).ok().filter(|_| bytes <= self.memory.max(LEAST)) else {
            return Err(self.too_big(bx.len()));
        };
        let mut block = try_zeros(bytes)?;
        self.read_stored(&bx, &mut block, ws).map_err(|e| self.locate(e))?;
        Ok(self.texts_of(&block))
    }

    /// The box of the layout in which the texts of a box are stored, each of one length; `None` where all are empty.
    pub fn text_box(&self, bx: &Bx) -> Option<Bx> {
        let mut bx = bx.clone();
        if self.layout.char_dim {
            bx.start.push(0);
            bx.shape.push(self.text_width() as u64);
        }
        (self.text_width() > 0).then_some(bx)
    }

    /// The stored bytes of texts of one length as texts.
    pub fn texts_of(&self, stored: &[u8]) -> Texts {
        let width = self.text_width().max(1);
        let each = || stored.chunks_exact(width).map(|b| unpadded(b, self.layout.space_padded));
        let mut out = Texts::with_room(stored.len() / width, each().map(<[u8]>::len).sum());
        each().for_each(|b| out.push_bytes(b));
        out
    }

    /// Bytes of each text as stored.
    fn text_width(&self) -> usize {
        let layout = &*self.layout;
        if layout.char_dim {
            layout.extent.last().map_or(0, |chars| *chars as usize)
        } else {
            layout.element_size
        }
    }
}

impl BlockReader {
    /// Texts of variable length, of a box that may reach beyond the stored extent.
    fn read_library_texts(&self, bx: &Bx) -> Result<Texts> {
        let layout = &*self.layout;
        if bx.is_empty() {
            return Ok(Texts::new());
        }
        let library = self.source.needs_library(self.array)?;
        let inside = bx.intersect(&Bx::whole(&layout.extent));
        if inside.as_ref() == Some(bx) {
            return library.read_library_strings(self.array, bx);
        }
        let fill = fill_of_any_length(layout);
        let Some(inside) = inside else { return Ok(Texts::repeated(&fill, bx.len() as usize)) };
        let mut out = PlacedTexts::new(bx.len() as usize);
        let mut at = inside.start.clone();
        let last: Vec<u64> = (0..inside.rank()).map(|d| inside.end(d) - 1).collect();
        for text in library.read_library_strings(self.array, &inside)?.iter() {
            let place = (0..bx.rank()).fold(0, |n, d| n * bx.shape[d] + at[d] - bx.start[d]);
            out.put(place as usize, text);
            advance(&mut at, &inside.start, &last);
        }
        Ok(out.finish(&fill))
    }
}

/// The text that stands where none of any length was written.
fn fill_of_any_length(layout: &Layout) -> String {
    String::from_utf8_lossy(&layout.fill).into_owned()
}

/// A stored text without its padding.
fn unpadded(bytes: &[u8], space_padded: bool) -> &[u8] {
    let end = bytes.iter().rposition(|&b| b != 0 && !(space_padded && b == b' ')).map_or(0, |i| i + 1);
    &bytes[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_cut() {
        assert_eq!(unpadded(b"ab\0\0", false), b"ab");
        assert_eq!(unpadded(b"ab  ", false), b"ab  ");
        assert_eq!(unpadded(b"ab  ", true), b"ab");
        assert_eq!(unpadded(b"\0\0", true), b"");
    }
}
