//! Data that are not encoded: read straight from their place, in as few and as small ranges as pays.

use sieva_types::Result;

use super::strided::{self, Side};
use super::{BlockReader, Workspace, dot, span_bytes};

/// The most that is read at once when wanted elements lie among unwanted ones.
pub(crate) const MAX_SPAN: u64 = 1 << 20;
/// Below this a span is read whole whatever is wanted of it: a page costs as much as a byte.
const FREE_SPAN: u64 = 16 << 10;
/// Above it at least this share (1/8) of the bytes must be wanted.
pub(crate) const MIN_DENSITY: u64 = 8;

impl BlockReader {
    /// The box `start`, `shape` of elements that lie at `offset + base + Σ index·stride`, into `out` at `to`.
    pub(super) fn read_direct(
        &self,
        offset: u64,
        start: &[u64],
        shape: &[u64],
        out: &mut [u8],
        to: Side,
        ws: &mut Workspace,
    ) -> Result<()> {
        let layout = &*self.layout;
        let first = offset.saturating_add(layout.base).saturating_add(dot(start, &layout.strides));
        self.read_spans(first, shape, &layout.strides, out, to, ws)
    }

    fn read_spans(
        &self,
        first: u64,
        shape: &[u64],
        strides: &[u64],
        out: &mut [u8],
        to: Side,
        ws: &mut Workspace,
    ) -> Result<()> {
        let size = self.layout.element_size;
        let span = span_bytes(shape, strides, size);
        let wanted = shape.iter().product::<u64>() * size as u64;
        if span == wanted && span_bytes(shape, to.strides, size) == wanted {
            return self.source.store().read_exact_at(first, &mut out[to.base..to.base + wanted as usize]);
        }
        if span <= MAX_SPAN && is_dense(span, wanted) {
            ws.span.resize(span as usize, 0);
            self.source.store().read_exact_at(first, &mut ws.span)?;
            strided::copy(shape, size, &ws.span, Side { base: 0, strides }, out, to);
            return Ok(());
        }
        self.split(first, shape, strides, out, to, ws)
    }

    /// Reads the block in parts along its outermost dimension: as many rows at once as one span may take.
    fn split(
        &self,
        first: u64,
        shape: &[u64],
        strides: &[u64],
        out: &mut [u8],
        to: Side,
        ws: &mut Workspace,
    ) -> Result<()> {
        let (n, stride, to_stride) = (shape[0], strides[0], to.strides[0] as usize);
        if n == 1 {
            let to = Side { base: to.base, strides: &to.strides[1..] };
            return self.read_spans(first, &shape[1..], &strides[1..], out, to, ws);
        }
        let rows = rows_of_span(shape, strides, self.layout.element_size);
        let mut part = shape.to_vec();
        let mut row = 0;
        while row < n {
            ws.check()?;
            part[0] = rows.min(n - row);
            let to = Side { base: to.base + row as usize * to_stride, strides: to.strides };
            self.read_spans(first + row * stride, &part, strides, out, to, ws)?;
            row += part[0];
        }
        Ok(())
    }
}

/// Whether `span` bytes of which `wanted` are wanted are read at once.
pub(super) fn is_dense(span: u64, wanted: u64) -> bool {
    span == wanted || span <= MAX_SPAN && (span <= FREE_SPAN || wanted.saturating_mul(MIN_DENSITY) >= span)
}

/// The rows (indices of the outermost of several dimensions) of a block that are read at once where not all are.
pub(super) fn rows_of_span(shape: &[u64], strides: &[u64], size: usize) -> u64 {
    let wanted = shape.iter().product::<u64>() * size as u64;
    let is_dense = span_bytes(shape, strides, size) <= MIN_DENSITY * wanted;
    if is_dense { (MAX_SPAN / strides[0].max(1)).clamp(1, (shape[0] - 1).max(1)) } else { 1 }
}
