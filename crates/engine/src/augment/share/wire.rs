//! Tasks of building and what they give, as bytes (docs/reference/tasks.md).

use std::ops::Range;

use sieva_types::wire::{Reader, Subject, Writer};
use sieva_types::{ErrorKind, Result};

use super::IndexTask;
use crate::frame::{framed, opened};

const TASK: [u8; 4] = *b"SVIT";
const DONE: [u8; 4] = *b"SVIR";
/// What reading either may take.
const MEMORY: u64 = 1 << 30;

const TASK_SUBJECT: Subject = Subject {
    name: "task of building an index",
    kind: ErrorKind::InvalidValue,
    hint: "send it again, or make the job anew: what it was sent through has changed or cut it off",
};
const DONE_SUBJECT: Subject = Subject {
    name: "result of building a part of an index",
    kind: ErrorKind::InvalidValue,
    hint: "send it again, or run its task anew: what it was sent through has changed or cut it off",
};

/// What a task does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Regions(RegionsPart),
}

/// Regions whose zone maps and bitmaps are to be built.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RegionsPart {
    pub bitmaps: bool,
    pub precision: u32,
    pub strict: bool,
    /// Paths of arrays, and numbers of regions.
    pub arrays: Vec<(String, Vec<Range<u64>>)>,
}

/// What a task gave.
#[derive(Debug)]
pub(super) enum Done {
    Regions(RegionsDone),
}

/// What was done of regions; see [`BuildReport`](super::BuildReport).
#[derive(Debug)]
pub(super) struct RegionsDone {
    pub built: u64,
    pub renewed: u64,
    pub bytes: u64,
    pub unreadable: Vec<(String, String)>,
}

impl IndexTask {
    /// The path of the source, as it was opened where the job was made.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What it does, in few words.
    pub fn what(&self) -> String {
        match &self.step {
            Step::Regions(part) => {
                let ranges = part.arrays.iter().flat_map(|(_, ranges)| ranges);
                format!("{} regions", ranges.map(|range| range.end - range.start).sum::<u64>())
            }
        }
    }

    /// The task as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.text(&self.source);
        self.state.iter().for_each(|&n| w.uint(n));
        match &self.step {
            Step::Regions(part) => {
                w.byte(0);
                part.write(&mut w);
            }
        }
        framed(TASK, w)
    }

    /// The task that [`IndexTask::to_bytes`] wrote.
    ///
    /// # Errors
    /// `invalid-value` for bytes that are no task, damaged, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut r = opened(TASK, "SVIT", &TASK_SUBJECT, bytes, MEMORY)?;
        let source = r.text()?;
        let state = [r.uint()?, r.uint()?, r.uint()?];
        let step = match r.byte()? {
            0 => Step::Regions(RegionsPart::read(&mut r)?),
            code => return Err(r.damaged(format!("{code} is nothing that is done"))),
        };
        r.finish()?;
        Ok(Self { source, state, step })
    }
}

impl RegionsPart {
    fn write(&self, w: &mut Writer) {
        w.flag(self.bitmaps);
        w.uint(self.precision.into());
        w.flag(self.strict);
        w.list(&self.arrays, |w, (path, ranges)| {
            w.text(path);
            w.list(ranges, write_range);
        });
    }

    fn read(r: &mut Reader<'_>) -> Result<Self> {
        let bitmaps = r.flag()?;
        let precision = match r.uint()? {
            digits @ 1..=17 => digits as u32,
            digits => return Err(r.damaged(format!("a precision of {digits} digits"))),
        };
        let strict = r.flag()?;
        let arrays = r.list(|r| Ok((r.text()?, r.list(read_range)?)))?;
        Ok(Self { bitmaps, precision, strict, arrays })
    }
}

impl Done {
    /// What a task gave, as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::default();
        match self {
            Self::Regions(done) => {
                w.byte(0);
                [done.built, done.renewed, done.bytes].into_iter().for_each(|n| w.uint(n));
                w.list(&done.unreadable, |w, (path, why)| {
                    w.text(path);
                    w.text(why);
                });
            }
        }
        framed(DONE, w)
    }

    /// What [`Done::to_bytes`] wrote.
    ///
    /// # Errors
    /// `invalid-value` for bytes that are no result, damaged, or of another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut r = opened(DONE, "SVIR", &DONE_SUBJECT, bytes, MEMORY)?;
        let done = match r.byte()? {
            0 => {
                let (built, renewed, bytes) = (r.uint()?, r.uint()?, r.uint()?);
                let unreadable = r.list(|r| Ok((r.text()?, r.text()?)))?;
                Self::Regions(RegionsDone { built, renewed, bytes, unreadable })
            }
            code => return Err(r.damaged(format!("{code} is nothing that is given"))),
        };
        r.finish()?;
        Ok(done)
    }

    /// That of a task that builds regions.
    pub fn regions(self) -> Result<RegionsDone> {
        match self {
            Self::Regions(done) => Ok(done),
        }
    }
}

fn write_range(w: &mut Writer, range: &Range<u64>) {
    w.uint(range.start);
    w.uint(range.end);
}

fn read_range(r: &mut Reader<'_>) -> Result<Range<u64>> {
    let range = r.uint()?..r.uint()?;
    if range.start < range.end { Ok(range) } else { Err(r.damaged(format!("the range {range:?}"))) }
}
