//! Tasks of building and what they give, as bytes (docs/reference/tasks.md).

use std::ops::Range;
use std::sync::Arc;

use sieva_index::sorted::{Pivot, Runs};
use sieva_types::wire::{Reader, Subject, Writer};
use sieva_types::{Error, ErrorKind, Result};

use super::IndexTask;
use crate::frame::{framed, opened};

const TASK: [u8; 4] = *b"SVIT";
const DONE: [u8; 4] = *b"SVIR";
/// What reading either may take.
const MEMORY: u64 = 1 << 30;
/// More than any build has.
const MOST_BUCKETS: usize = 1 << 16;

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
    Replica(ReplicaPart),
}

/// Regions whose zone maps and bitmaps are to be built.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RegionsPart {
    pub precision: u32,
    pub strict: bool,
    pub arrays: Vec<ArrayPart>,
}

/// Regions of one array.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ArrayPart {
    pub path: String,
    /// The shape that all tasks give them: what others have published meanwhile decides nothing.
    pub region: Vec<u64>,
    /// Whether they get bitmaps, besides zone maps.
    pub bitmaps: bool,
    /// Numbers of regions.
    pub ranges: Vec<Range<u64>>,
}

/// A part of a sorted replica.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReplicaPart {
    /// Paths of arrays, the key first.
    pub columns: Vec<String>,
    pub step: SortStep,
}

/// What is done of a replica; `draft` is the name of the directory that it is built in.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SortStep {
    /// Samples, for so many buckets, of some of the segments that are read for them.
    Sample { buckets: usize, some: Range<usize> },
    /// Segments are partitioned into spill files.
    Partition { draft: String, pivots: Arc<Vec<Pivot>>, segments: Range<usize> },
    /// A span of rows is sorted out of all that was partitioned.
    Sort { draft: String, runs: Arc<Vec<Runs>>, span: Range<u64> },
}

/// What a task gave.
#[derive(Debug)]
pub(super) enum Done {
    Regions(RegionsDone),
    /// Of so many buckets.
    Sampled(usize, Vec<Pivot>),
    Partitioned(usize, Runs),
    /// The first keys of chunks.
    Sorted(Vec<u8>),
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
                let ranges = part.arrays.iter().flat_map(|of| &of.ranges);
                format!("{} regions", ranges.map(|range| range.end - range.start).sum::<u64>())
            }
            Step::Replica(ReplicaPart { columns, step }) => {
                let key = columns.first().map(String::as_str).unwrap_or_default();
                match step {
                    SortStep::Sample { some, .. } => format!("samples {some:?} of '{key}'"),
                    SortStep::Partition { segments, .. } => format!("partition {segments:?} by '{key}'"),
                    SortStep::Sort { span, .. } => format!("rows {span:?} sorted by '{key}'"),
                }
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
                w.byte(2);
                part.write(&mut w);
            }
            Step::Replica(part) => {
                w.byte(1);
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
            1 => Step::Replica(ReplicaPart::read(&mut r)?),
            2 => Step::Regions(RegionsPart::read(&mut r)?),
            code => return Err(r.damaged(format!("{code} is nothing that is done"))),
        };
        r.finish()?;
        Ok(Self { source, state, step })
    }
}

impl RegionsPart {
    fn write(&self, w: &mut Writer) {
        w.uint(self.precision.into());
        w.flag(self.strict);
        w.list(&self.arrays, |w, of| {
            w.text(&of.path);
            w.uints(&of.region);
            w.flag(of.bitmaps);
            w.list(&of.ranges, write_range);
        });
    }

    fn read(r: &mut Reader<'_>) -> Result<Self> {
        let precision = match r.uint()? {
            digits @ 1..=17 => digits as u32,
            digits => return Err(r.damaged(format!("a precision of {digits} digits"))),
        };
        let strict = r.flag()?;
        let arrays = r.list(|r| {
            let (path, region, bitmaps) = (r.text()?, r.uints()?, r.flag()?);
            Ok(ArrayPart { path, region, bitmaps, ranges: r.list(read_range)? })
        })?;
        Ok(Self { precision, strict, arrays })
    }
}

impl ReplicaPart {
    fn write(&self, w: &mut Writer) {
        w.list(&self.columns, |w, name| w.text(name));
        match &self.step {
            SortStep::Sample { buckets, some } => {
                w.byte(0);
                w.uint(*buckets as u64);
                write_range(w, &(some.start as u64..some.end as u64));
            }
            SortStep::Partition { draft, pivots, segments } => {
                w.byte(1);
                w.text(draft);
                w.list(pivots, write_pivot);
                write_range(w, &(segments.start as u64..segments.end as u64));
            }
            SortStep::Sort { draft, runs, span } => {
                w.byte(2);
                w.text(draft);
                w.uint(runs.iter().map(Runs::buckets).max().unwrap_or(1) as u64);
                w.list(runs, |w, runs| runs.encode(w));
                write_range(w, span);
            }
        }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self> {
        let columns = r.list(|r| r.text())?;
        let step = match r.byte()? {
            0 => SortStep::Sample { buckets: read_buckets(r)?, some: read_indices(r)? },
            1 => {
                let (draft, pivots) = (r.text()?, Arc::new(r.list(read_pivot)?));
                if !pivots.is_sorted() {
                    return Err(r.damaged("pivots that do not ascend"));
                }
                SortStep::Partition { draft, pivots, segments: read_indices(r)? }
            }
            2 => {
                let (draft, buckets) = (r.text()?, read_buckets(r)?);
                let runs = Arc::new(r.list(|r| Runs::decode(r, buckets))?);
                SortStep::Sort { draft, runs, span: r.uint()?..r.uint()? }
            }
            code => return Err(r.damaged(format!("{code} is no step of sorting"))),
        };
        Ok(Self { columns, step })
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
            Self::Sampled(buckets, samples) => {
                w.byte(1);
                w.uint(*buckets as u64);
                w.list(samples, write_pivot);
            }
            Self::Partitioned(buckets, runs) => {
                w.byte(2);
                w.uint(*buckets as u64);
                runs.encode(&mut w);
            }
            Self::Sorted(fences) => {
                w.byte(3);
                w.blob(fences);
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
            1 => Self::Sampled(read_buckets(&mut r)?, r.list(read_pivot)?),
            2 => {
                let buckets = read_buckets(&mut r)?;
                Self::Partitioned(buckets, Runs::decode(&mut r, buckets)?)
            }
            3 => Self::Sorted(r.blob()?.to_vec()),
            code => return Err(r.damaged(format!("{code} is nothing that is given"))),
        };
        r.finish()?;
        Ok(done)
    }

    /// That of a task that builds regions.
    pub fn regions(self) -> Result<RegionsDone> {
        match self {
            Self::Regions(done) => Ok(done),
            other => Err(other.of_another()),
        }
    }

    /// That of a task that takes samples: the number of buckets, samples.
    pub fn sampled(self) -> Result<(usize, Vec<Pivot>)> {
        match self {
            Self::Sampled(buckets, samples) => Ok((buckets, samples)),
            other => Err(other.of_another()),
        }
    }

    /// That of a task that partitions.
    pub fn partitioned(self) -> Result<Runs> {
        match self {
            Self::Partitioned(_, runs) => Ok(runs),
            other => Err(other.of_another()),
        }
    }

    /// That of a task that sorts: first keys of chunks.
    pub fn sorted(self) -> Result<Vec<u8>> {
        match self {
            Self::Sorted(fences) => Ok(fences),
            other => Err(other.of_another()),
        }
    }

    fn of_another(&self) -> Error {
        let what = match self {
            Self::Regions(_) => "regions",
            Self::Sampled(..) => "samples",
            Self::Partitioned(..) => "a partition",
            Self::Sorted(_) => "sorted rows",
        };
        let message = format!("{what} were given for tasks of another stage");
        Error::new(ErrorKind::InvalidValue, message).hint("give what each task gave, once, in their order")
    }
}

fn write_pivot(w: &mut Writer, pivot: &Pivot) {
    w.uint(pivot.0);
    w.uint(pivot.1);
}

fn read_pivot(r: &mut Reader<'_>) -> Result<Pivot> {
    Ok((r.uint()?, r.uint()?))
}

/// Number of buckets, which no table has more of.
fn read_buckets(r: &mut Reader<'_>) -> Result<usize> {
    match r.index()? {
        buckets @ 1..=MOST_BUCKETS => Ok(buckets),
        buckets => Err(r.damaged(format!("{buckets} buckets"))),
    }
}

fn read_indices(r: &mut Reader<'_>) -> Result<Range<usize>> {
    let range = r.index()?..r.index()?;
    if range.start <= range.end { Ok(range) } else { Err(r.damaged(format!("the range {range:?}"))) }
}

fn write_range(w: &mut Writer, range: &Range<u64>) {
    w.uint(range.start);
    w.uint(range.end);
}

fn read_range(r: &mut Reader<'_>) -> Result<Range<u64>> {
    let range = r.uint()?..r.uint()?;
    if range.start < range.end { Ok(range) } else { Err(r.damaged(format!("the range {range:?}"))) }
}
