//! What was never written: told without reading, however much of it there is.

use sieva_types::{Buffer, Bx, DType, Endian};

use super::BlockReader;
use crate::buffer::{swap_bytes, widen_f16};
use crate::layout::Placement;

impl BlockReader {
    /// Whether it is known without reading that nothing of the box `bx` was ever written: all of it is the fill value. That
    /// it is not known says nothing.
    pub fn is_unwritten(&self, bx: &Bx) -> bool {
        let layout = &*self.layout;
        let index = match &layout.placement {
            Placement::Unallocated => return true,
            Placement::Library(_) => {
                let library = self.source.library();
                return library.is_some_and(|library| library.is_unwritten(self.array, bx));
            }
            Placement::Chunks(index) => index,
            _ => return false,
        };
        let mut stored = bx.clone();
        if layout.char_dim {
            stored.start.push(0);
            stored.shape.push(layout.extent.last().copied().unwrap_or(0));
        }
        let bx = &stored;
        if bx.rank() != layout.extent.len() {
            return false;
        }
        // What lies beyond the stored extent is fill value.
        let Some(inside) = bx.intersect(&Bx::whole(&layout.extent)) else { return true };
        let grid = layout.grid();
        let number = |position: &dyn Fn(usize) -> u64| {
            let chunk = |d: usize| position(d) / layout.chunk_shape[d].max(1);
            (0..grid.len()).fold(0_u64, |n, d| n.saturating_mul(grid[d]).saturating_add(chunk(d)))
        };
        // Those of the corners: between them lie others as well, which are then taken for the box's own.
        !index.any_in(number(&|d| inside.start[d]), number(&|d| inside.end(d) - 1))
    }

    /// The fill value as [`BlockReader::read`] delivers elements; `None` of texts.
    pub fn fill_element(&self) -> Option<Buffer> {
        let layout = &*self.layout;
        if layout.dtype == DType::Str || layout.fill.len() != layout.element_size {
            return None;
        }
        let mut out = Buffer::default();
        out.resize(layout.element_size);
        out.bytes_mut().copy_from_slice(&layout.fill);
        if layout.endian != Endian::NATIVE {
            swap_bytes(out.bytes_mut(), layout.element_size);
        }
        match layout.dtype {
            DType::F16 => {
                let wide = widen_f16(*out.as_slice::<u16>().first()?);
                out.resize(size_of::<f32>());
                out.as_mut_slice::<f32>().fill(wide);
            }
            DType::Bool => out.bytes_mut().iter_mut().for_each(|b| *b = u8::from(*b != 0)),
            _ => {}
        }
        Some(out)
    }
}
