//! Arrays of many files: a box is cut along the joined dimension, and each piece is read by a reader of its file.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use sieva_types::{Bx, PlacedTexts, Result, Texts, try_zeros};

use super::strided::{self, Side};
use super::wants::Wants;
use super::{BlockReader, Workspace};
use crate::ArraySource;
use crate::buffer::Buffer;
use crate::join::Unpack;
use crate::layout::{Parts, c_strides};

/// Readers of pieces that a reader keeps: each may hold a file open.
pub(super) const KEPT: usize = 64;

/// Threads that open files of a network side by side: what they do is wait.
const OPENERS: usize = 8;

/// One piece of an array of many files.
pub struct Part {
    /// The file.
    pub source: Arc<dyn ArraySource>,
    /// The array in it.
    pub array: usize,
    /// How its stored values become those of the whole, where files differ in it.
    pub unpack: Option<Unpack>,
    /// A number of the file of its own, from 1 on.
    pub file: u32,
}

/// A reader of a piece.
pub(super) struct PieceReader {
    pub(super) reader: BlockReader,
    pub(super) unpack: Option<Unpack>,
}

/// The readers of pieces that were used last, the latest at the end.
#[derive(Default)]
pub(super) struct Pieces {
    kept: Mutex<VecDeque<(usize, Arc<PieceReader>)>>,
}

impl BlockReader {
    /// Reads the box `bx` of an array of many files into a dense block.
    pub(super) fn read_parts(
        &self,
        parts: &Parts,
        bx: &Bx,
        out: &mut [u8],
        ws: &mut Workspace,
    ) -> Result<()> {
        let size = self.layout.element_size;
        let strides = c_strides(&bx.shape, size as u64);
        for (piece, part) in parts.cut(bx) {
            let reader = self.piece(piece)?;
            let own = parts.within(piece, &part);
            let first = ((part.start.get(parts.axis).copied().unwrap_or(0)
                - bx.start.get(parts.axis).copied().unwrap_or(0))
                * strides.get(parts.axis).copied().unwrap_or(0)) as usize;
            let bytes = part.len() as usize * size;
            if bx.shape.iter().take(parts.axis).all(|&n| n == 1) {
                reader.read(&own, &mut out[first..first + bytes], ws)?;
                continue;
            }
            let mut block = try_zeros(bytes)?;
            reader.read(&own, &mut block, ws)?;
            let from = c_strides(&part.shape, size as u64);
            let (from, to) = (Side { base: 0, strides: &from }, Side { base: first, strides: &strides });
            strided::copy(&part.shape, size, &block, from, out, to);
        }
        Ok(())
    }

    /// The texts of a box of an array of many files, in C order.
    pub(super) fn read_part_texts(&self, parts: &Parts, bx: &Bx, ws: &mut Workspace) -> Result<Texts> {
        let mut out = PlacedTexts::new(bx.len() as usize);
        let strides = c_strides(&bx.shape, 1);
        for (piece, part) in parts.cut(bx) {
            let texts = self.piece(piece)?.reader.read_texts(&parts.within(piece, &part), ws)?;
            for (i, text) in texts.iter().enumerate() {
                let (mut rest, mut at) = (i as u64, 0);
                for d in (0..part.rank()).rev() {
                    at += (part.start[d] - bx.start[d] + rest % part.shape[d]) * strides[d];
                    rest /= part.shape[d];
                }
                out.put(at as usize, text);
            }
        }
        Ok(out.finish(""))
    }

    /// Opens the files of boxes that are about to be read, some at a time, and has their storage bring them.
    pub(super) fn will_need_pieces(&self, wants: &Wants) {
        let boxes: Vec<(usize, &[Bx])> = wants.boxes.iter().map(|(&piece, of)| (piece, &**of)).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some(&(piece, boxes)) = boxes.get(next.fetch_add(1, Relaxed)) {
                // What cannot be opened is told when it is read.
                let Ok(found) = self.piece(piece) else { return };
                let mut own = Wants::default();
                boxes.iter().for_each(|bx| found.reader.wants(bx, &mut own));
                found.reader.will_need(&own);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..boxes.len().min(OPENERS) {
                scope.spawn(work);
            }
            work();
        });
    }

    /// The reader of a piece.
    pub(super) fn piece(&self, piece: usize) -> Result<Arc<PieceReader>> {
        let mut kept = self.pieces.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(n, _)| *n == piece)
            && let Some(found) = kept.remove(at)
        {
            let reader = Arc::clone(&found.1);
            kept.push_back(found);
            return Ok(reader);
        }
        drop(kept);
        let part = self.source.needs_parts(self.array)?.part(self.array, piece)?;
        let cache = Arc::clone(&self.cache);
        let mut reader = BlockReader::new(part.source, part.array, cache, self.memory)?;
        reader.file = part.file;
        let reader = Arc::new(PieceReader { reader, unpack: part.unpack });
        let mut kept = self.pieces.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((piece, Arc::clone(&reader)));
        Ok(reader)
    }
}

impl PieceReader {
    /// Fills `out` with the elements of `bx` as the whole has them, in native byte order.
    fn read(&self, bx: &Bx, out: &mut [u8], ws: &mut Workspace) -> Result<()> {
        let Some(unpack) = &self.unpack else { return self.reader.read_native(bx, out, ws) };
        let mut stored = Buffer::default();
        self.reader.read(bx, &mut stored, ws)?;
        unpack.apply(self.reader.element_dtype(), &stored, out);
        Ok(())
    }
}
