//! Arrays of many files: what a batch wants of each file is read together, file by file or several side by side.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use sieva_types::{Bx, Result, Selection, try_zeros};

use super::selected::Selected;
use super::sink::Sink;
use super::task::{PIECE, Task};
use super::{Ask, Crew, OneOf, Wanted};
use crate::buffer::Buffer;
use crate::layout::{Parts, Placement, c_strides};
use crate::read::BlockReader;
use crate::read::parts::PieceReader;
use crate::read::strided::{self, Side};

/// What a task wants of one file: its part of the array, and where that goes.
struct Share<'a, 'b> {
    task: &'b Task<'a>,
    parts: &'b Parts,
    part: Bx,
}

/// Reads tasks of arrays of many files.
pub(super) fn run(tasks: &[Task<'_>], memory: u64, crew: &dyn Crew) {
    let mut files: BTreeMap<(usize, usize), Vec<Share<'_, '_>>> = BTreeMap::new();
    for task in tasks {
        let Placement::Parts(parts) = &task.reader.layout.placement else { continue };
        let source = Arc::as_ptr(&task.reader.source).cast::<()>() as usize;
        for (piece, part) in parts.cut(&task.bx) {
            files.entry((source, piece)).or_default().push(Share { task, parts, part });
        }
    }
    let files: Vec<(usize, Vec<Share<'_, '_>>)> = files.into_iter().map(|((_, n), of)| (n, of)).collect();
    let threads = crew.threads();
    if files.len() < threads {
        return files.iter().for_each(|(piece, shares)| file(*piece, shares, memory, crew));
    }
    let each = memory / threads as u64;
    crew.each(files.len(), threads, &|i| {
        let (piece, shares) = &files[i];
        file(*piece, shares, each, &OneOf(crew));
    });
}

/// Reads what is wanted of one file.
fn file(piece: usize, shares: &[Share<'_, '_>], memory: u64, crew: &dyn Crew) {
    let mut opened: Vec<(&BlockReader, Result<Arc<PieceReader>>)> = Vec::new();
    for share in shares.iter().filter(|share| share.task.sink.is_wanted()) {
        if !opened.iter().any(|(reader, _)| std::ptr::eq(*reader, share.task.reader)) {
            opened.push((share.task.reader, share.task.reader.piece(piece)));
        }
    }
    let mut found = Vec::new();
    for share in shares {
        match opened.iter().find(|(reader, _)| std::ptr::eq(*reader, share.task.reader)) {
            Some((_, Ok(of))) => found.push((share, &**of)),
            Some((_, Err(e))) => share.task.sink.fail(e.clone()),
            None => {}
        }
    }
    if found.iter().any(|(_, of)| of.unpack.is_some() || !of.reader.is_native()) {
        return converted(piece, &found, memory, crew);
    }
    let mut own = Vec::new();
    for (share, of) in found {
        let (bx, base, mut strides) = (
            share.parts.within(piece, &share.part),
            share.task.place_of(&share.part),
            share.task.strides.clone(),
        );
        if share.parts.is_new {
            strides.remove(share.parts.axis);
        }
        fill_selected(share, &of.reader.layout.fill);
        let Task { selection, sink, .. } = *share.task;
        own.extend(Task::stored(&of.reader, Cow::Owned(bx), base, strides, selection, sink));
    }
    super::run(&own, memory, crew);
}

/// The same, of a file whose elements are not those of the whole: read into memory of their own, and converted.
fn converted(piece: usize, shares: &[(&Share<'_, '_>, &PieceReader)], memory: u64, crew: &dyn Crew) {
    let mut wanted = Vec::new();
    for (share, of) in shares {
        let own = share.parts.within(piece, &share.part);
        wanted.push(match share.task.selection {
            None => Ok(Wanted::Box(Cow::Owned(own))),
            Some(selected) => positions(share, of, selected.selection).map(Wanted::Positions),
        });
    }
    let (mut asks, mut of_asks) = (Vec::new(), Vec::new());
    for ((share, of), wanted) in shares.iter().zip(wanted) {
        match wanted {
            Ok(wanted) => {
                asks.push(Ask { reader: &of.reader, wanted, cancel: share.task.sink.cancel() });
                of_asks.push((share, of));
            }
            Err(e) => share.task.sink.fail(e),
        }
    }
    for ((share, of), read) in of_asks.into_iter().zip(super::read_native(&asks, memory, crew)) {
        if !share.task.sink.is_wanted() {
            continue;
        }
        let done = read.and_then(|stored| of.convert(stored));
        match done {
            Ok(elements) => put(share, &elements),
            Err(e) => share.task.sink.fail(e),
        }
    }
}

/// The selected positions of a file, as positions of its array.
fn positions(share: &Share<'_, '_>, of: &PieceReader, selection: &Selection) -> Result<Arc<Selection>> {
    let (first, last) = elements(share);
    let info = &of.reader.source.schema().arrays[of.reader.array];
    let (rank, end) = (selection.rank(first), selection.rank(last));
    let dims = (0..info.shape.len()).map(|d| format!("{d}")).collect();
    let own = selection.iter_from(rank).take((end - rank) as usize).map(|p| p - first);
    Selection::from_positions(dims, info.shape.clone(), own).map(Arc::new)
}

/// The positions, in the whole array, of a file's elements.
fn elements(share: &Share<'_, '_>) -> (u64, u64) {
    let size = (share.task.size() as u64).max(1);
    let first = share.task.place_of(&share.part) / size;
    let rows = share.part.shape.first().copied().unwrap_or(1);
    (first, first + rows * share.task.strides.first().map_or(1, |s| s / size))
}

/// Fills the selected elements of a file with what stands there where it was never written: the memory has the value of the
/// whole array, which may be another one.
fn fill_selected(share: &Share<'_, '_>, fill: &[u8]) {
    let (task, size) = (share.task, share.task.size());
    let (Some(selected), true) = (task.selection, fill.len() == size && *fill != *task.reader.layout.fill)
    else {
        return;
    };
    let (first, last) = elements(share);
    let marks = selected.marks();
    let (rank, end) = (marks.rank(first) as usize, marks.rank(last) as usize);
    let mut sink = task.sink.lock();
    for piece in sink.bytes_mut()[rank * size..end * size].chunks_mut((PIECE / size).max(1) * size) {
        if !task.sink.is_wanted() {
            return;
        }
        strided::repeat(fill, piece);
    }
}

/// Copies converted elements to where they go.
fn put(share: &Share<'_, '_>, elements: &[u8]) {
    let (task, size) = (share.task, share.task.size());
    let to = task.place_of(&share.part) as usize;
    let mut sink = task.sink.lock();
    let out = sink.bytes_mut();
    if let Some(selected) = task.selection {
        let at = selected.marks().rank(self::elements(share).0) as usize * size;
        out[at..at + elements.len()].copy_from_slice(elements);
        return;
    }
    let from = c_strides(&share.part.shape, size as u64);
    let (from, to) = (Side { base: 0, strides: &from }, Side { base: to, strides: &task.strides });
    strided::copy(&share.part.shape, size, elements, from, out, to);
}

impl<'a> Task<'a> {
    /// A task for a box that may reach beyond what is stored, which is filled; `None` where nothing is stored of it.
    pub(super) fn stored(
        reader: &'a BlockReader,
        bx: Cow<'a, Bx>,
        base: u64,
        strides: Vec<u64>,
        selection: Option<&'a Selected<'a>>,
        sink: &'a Sink<'a>,
    ) -> Option<Self> {
        let task = Task { reader, bx, base, strides, selection, sink };
        if task.bx.is_empty() {
            return None;
        }
        if task.bx.is_within(&reader.layout.extent) {
            return Some(task);
        }
        task.fill(&task.bx);
        let inside = task.bx.intersect(&Bx::whole(&reader.layout.extent))?;
        Some(Task { base: task.place_of(&inside), bx: Cow::Owned(inside), ..task })
    }
}

impl PieceReader {
    /// The elements that were read of the file, in native byte order, as the whole has them.
    fn convert(&self, stored: Buffer) -> Result<Vec<u8>> {
        let Some(unpack) = &self.unpack else { return Ok(stored.bytes().to_vec()) };
        let n = stored.bytes().len() / self.reader.layout.element_size.max(1);
        let stored = self.reader.widened(stored)?;
        let mut out = try_zeros(n * size_of::<f64>())?;
        unpack.apply(self.reader.element_dtype(), &stored, &mut out);
        Ok(out)
    }
}
