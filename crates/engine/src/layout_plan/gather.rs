//! The byte ranges that reading boxes asks of files.

use std::ops::Range;
use std::sync::Arc;

use sieva_format::ArraySource;
use sieva_format::layout::{Layout, Placement};
use sieva_format::read::{BlockReader, ChunkCache, Wants};
use sieva_query::optimizer::Touched;
use sieva_types::{Bx, Result};

use super::merge::{Limits, merged};
use super::{FileTouched, LayoutPlan};
use crate::open::Source;

/// Most ranges that are kept of all files together, 16 bytes each.
const MOST_RANGES: usize = 1 << 20;
/// Most files that are looked into: each is opened for it.
const MOST_FILES: usize = 64;

/// Ranges by file.
#[derive(Default)]
pub(super) struct Gathered {
    files: Vec<File>,
    ranges: usize,
    objects: u64,
    notes: Vec<String>,
}

struct File {
    /// Its number in a source of many; 0 of one alone.
    number: u32,
    source: Arc<dyn ArraySource>,
    ranges: Vec<Range<u64>>,
}

impl Gathered {
    /// Adds what is read of an array of a source.
    pub(super) fn add(&mut self, source: &Source, touched: &Touched, limits: &Limits<'_>) -> Result<()> {
        if touched.boxes.is_empty() {
            return Ok(());
        }
        let reader = source.reader();
        let layout = reader.layout(touched.array)?;
        let path = reader.schema().arrays[touched.array].path.clone();
        if touched.is_cut {
            self.note(format!("'{path}' is read in too many boxes to tell them apart: all of it is counted"));
        }
        let Placement::Parts(parts) = &layout.placement else {
            return self.add_boxes((0, reader, touched.array), &layout, touched.boxes.iter(), limits);
        };
        for (piece, part) in touched.boxes.iter().flat_map(|bx| parts.cut(bx)) {
            let opened = reader.needs_parts(touched.array)?.part(touched.array, piece)?;
            let is_new = self.files.iter().all(|f| f.number != opened.file);
            if is_new && self.files.len() >= MOST_FILES {
                self.note(format!("the first {MOST_FILES} files alone"));
                return Ok(());
            }
            let own = opened.source.layout(opened.array)?;
            let own_box = parts.within(piece, &part);
            let array = (opened.file, &opened.source, opened.array);
            self.add_boxes(array, &own, std::iter::once(&own_box), limits)?;
        }
        Ok(())
    }

    fn add_boxes<'b>(
        &mut self,
        (number, source, array): (u32, &Arc<dyn ArraySource>, usize),
        layout: &Layout,
        boxes: impl Iterator<Item = &'b Bx>,
        limits: &Limits<'_>,
    ) -> Result<()> {
        let path = &source.schema().arrays[array].path;
        match &layout.placement {
            Placement::Library(why) | Placement::Foreign(why) => {
                self.note(format!(
                    "'{path}' is read by the format's own reader, box by box ({why}): not in it"
                ));
                return Ok(());
            }
            // Nothing is read of the file.
            Placement::Unallocated | Placement::Inline(_) => return Ok(()),
            _ => {}
        }
        // What is in memory already counts, too: this is about the file.
        let cache = Arc::new(ChunkCache::new(0));
        let reader = BlockReader::new(Arc::clone(source), array, cache, u64::MAX)?;
        let at = match self.files.iter().position(|f| f.number == number) {
            Some(at) => at,
            None => {
                self.files.push(File { number, source: Arc::clone(source), ranges: Vec::new() });
                self.files.len() - 1
            }
        };
        for bx in boxes {
            limits.check()?;
            let mut wants = Wants::default();
            reader.wants(&with_characters(layout, bx), &mut wants);
            self.objects += wants.objects() as u64;
            self.ranges += wants.ranges().len();
            if self.ranges > MOST_RANGES {
                self.note(format!("the first {MOST_RANGES} ranges alone"));
                return Ok(());
            }
            self.files[at].ranges.extend(wants.ranges());
        }
        Ok(())
    }

    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// The plan that they make.
    ///
    /// # Errors
    /// `memory-limit`, `cancelled`.
    pub(super) fn merged(self, source: &Source, limits: &Limits<'_>) -> Result<LayoutPlan> {
        let share = limits.memory / self.files.len().max(1) as u64;
        let limits = Limits { memory: share, ..*limits };
        let files = self.files.into_iter().map(|file| {
            let store = &**file.source.store();
            let striping = match file.number {
                0 => source.striping().clone(),
                _ => source.striping_of(store),
            };
            let stripes = merged(&striping, &file.ranges, &limits)?;
            Ok(FileTouched { name: store.name().to_owned(), length: store.len(), striping, stripes })
        });
        let files = files.collect::<Result<_>>()?;
        Ok(LayoutPlan { files, objects: self.objects, notes: self.notes })
    }
}

/// The box with all characters of its texts.
fn with_characters(layout: &Layout, bx: &Bx) -> Bx {
    let mut bx = bx.clone();
    if layout.char_dim {
        bx.start.push(0);
        bx.shape.push(layout.extent.last().copied().unwrap_or(0));
    }
    bx
}
