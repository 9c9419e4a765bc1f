//! Consecutive positions of an array, read as the boxes that they make up.

use std::ops::Range;

use sieva_format::read::{BlockReader, Workspace};
use sieva_types::{Buffer, Bx, Result};

use crate::exec::Execution;
use crate::exec::fetch::runs::MAX_SPAN_BYTES;
use crate::exec::pool::{Flow, in_order};

/// Reads the elements at consecutive C-order positions of an array of shape `shape`, by its reader, or by its flat one
/// where it has one, into `out`, which is given the room.
pub(in crate::exec) fn read_boxes(
    execution: &Execution,
    (reader, flat): (&BlockReader, Option<&BlockReader>),
    (shape, size): (&[u64], usize),
    positions: Range<u64>,
    threads: usize,
    out: &mut Buffer,
) -> Result<()> {
    let n = positions.end - positions.start;
    if let (Some(flat), 1) = (flat, threads) {
        return flat.read_run(positions.start, n as usize, out, &mut Workspace::default());
    }
    let piece = (MAX_SPAN_BYTES / size.max(1) as u64).max(1);
    let boxes = if flat.is_some() { Vec::new() } else { boxes_of(positions.clone(), shape) };
    if let ([only], None) = (&boxes[..], flat) {
        return reader.read(only, out, &mut Workspace::default());
    }
    let jobs = if flat.is_some() { n.div_ceil(piece) as usize } else { boxes.len() };
    let fetch = |ws: &mut Workspace, job: usize| {
        let mut block = Buffer::default();
        match flat {
            Some(flat) => {
                let start = positions.start + job as u64 * piece;
                flat.read_run(start, piece.min(positions.end - start) as usize, &mut block, ws)?;
            }
            None => reader.read(&boxes[job], &mut block, ws)?,
        }
        Ok(block)
    };
    out.resize(n as usize * size);
    let (target, mut at) = (out.bytes_mut(), 0);
    in_order(jobs, threads, &execution.options.cancel, Default::default, fetch, |block: Buffer| {
        target[at..at + block.bytes().len()].copy_from_slice(block.bytes());
        at += block.bytes().len();
        Ok(Flow::Continue(()))
    })
}

/// Whether the given C-order positions make up one box.
pub(in crate::exec) fn is_box(positions: Range<u64>, shape: &[u64]) -> bool {
    boxes_of(positions, shape).len() <= 1
}

/// Boxes that have the given C-order positions, each as many of them as possible, in their order.
fn boxes_of(positions: Range<u64>, shape: &[u64]) -> Vec<Bx> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d];
    }
    let (mut boxes, mut at) = (Vec::new(), positions.start);
    while at < positions.end {
        let left = positions.end - at;
        // The outermost dimension of which whole steps fit; the innermost always does.
        let fits = |d: &usize| at.is_multiple_of(strides[*d]) && left >= strides[*d];
        let Some(d) = (0..shape.len()).find(fits) else {
            boxes.push(Bx::whole(shape));
            break;
        };
        let mut start: Vec<u64> = (0..shape.len()).map(|k| at / strides[k] % shape[k]).collect();
        let steps = (left / strides[d]).min(shape[d] - start[d]);
        start[d + 1..].fill(0);
        let mut extent = vec![1; shape.len()];
        extent[d] = steps;
        extent[d + 1..].copy_from_slice(&shape[d + 1..]);
        boxes.push(Bx::new(start, extent));
        at += steps * strides[d];
    }
    boxes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_make_up_the_positions() {
        let shape = [3, 4, 5];
        for (start, end) in (0..60).flat_map(|s| (s..=60).map(move |e| (s, e))) {
            let mut at = start;
            for bx in boxes_of(start..end, &shape) {
                for i in 0..bx.len() {
                    let (k, j, l) =
                        (i / (bx.shape[1] * bx.shape[2]), i / bx.shape[2] % bx.shape[1], i % bx.shape[2]);
                    let p = ((bx.start[0] + k) * 4 + bx.start[1] + j) * 5 + bx.start[2] + l;
                    assert_eq!(p, at);
                    at += 1;
                }
            }
            assert_eq!(at, end);
        }
        assert_eq!(boxes_of(0..60, &shape), [Bx::whole(&shape)]);
        assert_eq!(boxes_of(0..1, &[]), [Bx::whole(&[])]);
        assert!(boxes_of(7..59, &shape).len() <= 5);
    }
}
