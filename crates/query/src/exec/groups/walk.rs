//! The rows of a tile, taken into groups that follow from their positions.

use std::sync::atomic::Ordering::Relaxed;

use sieva_types::{Bx, DType, Result};

use super::dense::{Dense, Numbering};
use super::feed::{Hits, at_hits};
use super::frame::Frame;
use super::stored::Decoder;
use super::tiles::{Tables, Wanted};
use crate::aggregate::{Piece, Target, with_piece};
use crate::bind::Value;
use crate::exec::tile::arrays::Leaves;
use crate::exec::tile::prepare::Node;
use crate::exec::{ExecStats, Execution};
use crate::values::ValueType;

/// Values that are taken into all aggregates of them before the next, so that they stay in the first-level cache.
const WINDOW: usize = 4096;
/// Runs of fewer rows are not worth a call each.
const SHORT: usize = 16;

/// The groups of a tile's rows: runs of equal length, in each of which they are one or follow each other.
pub(super) struct Runs {
    /// Rows of a run.
    len: usize,
    /// The group of each run's first row.
    first: Vec<usize>,
    /// Whether each further row's is the next one.
    is_rising: bool,
    /// The groups of all rows, where there are no runs.
    each: Option<Vec<u32>>,
}

impl Runs {
    pub(super) fn new(plan: &Numbering, frame: &Frame, bx: &Bx) -> Self {
        let inner = plan.parts.first().filter(|p| p.axes.last().is_some_and(|&a| a + 1 == bx.rank()));
        let deepest = plan.parts.first().and_then(|p| p.axes.last()).map_or(0, |&a| a + 1);
        let outer = if inner.is_some() { bx.rank() - 1 } else { deepest };
        let len = bx.shape[outer..].iter().product::<u64>() as usize;
        let is_rising = inner.is_some_and(|p| p.is_consecutive);
        let has_runs = len >= SHORT && (is_rising || inner.is_none());
        let mut runs = Self { len, first: Vec::new(), is_rising, each: (!has_runs).then(Vec::new) };
        each_position(bx, outer, |position| match (&mut runs.each, inner) {
            (None, _) => runs.first.push(plan.group_at(frame, position)),
            (Some(each), None) => {
                let group = plan.group_at(frame, position) as u32;
                each.extend(std::iter::repeat_n(group, len));
            }
            (Some(each), Some(_)) => {
                let others = plan.group_at(frame, position) - plan.innermost(frame, position);
                each.extend(plan.along(frame, position, len).map(|g| (others + g) as u32));
            }
        });
        match &runs.each {
            Some(each) => (runs.len, runs.first) = (each.len(), vec![0]),
            None => runs.join(),
        }
        runs
    }

    /// Makes one run of those that go on where the one before them ends, as far as all are then of one length.
    fn join(&mut self) {
        let step = if self.is_rising { self.len } else { 0 };
        let goes_on = |w: &[usize]| w[1] == w[0] + step;
        let n = 1 + self.first.windows(2).take_while(|w| goes_on(w)).count();
        if n > 1
            && self.first.len().is_multiple_of(n)
            && self.first.chunks(n).all(|runs| runs.windows(2).all(goes_on))
        {
            self.first = self.first.iter().step_by(n).copied().collect();
            self.len *= n;
        }
    }

    /// The groups of a part of a run.
    fn target(&self, run: usize, at: usize, n: usize) -> Target<'_> {
        match &self.each {
            Some(each) => Target::Each(&each[at..at + n]),
            None if self.is_rising => Target::From(self.first[run] + at),
            None => Target::One(self.first[run]),
        }
    }

    /// The groups of some rows.
    fn of(&self, rows: &[usize]) -> Vec<u32> {
        let of_run = |&i: &usize| {
            let further = if self.is_rising { i % self.len } else { 0 };
            (self.first[i / self.len] + further) as u32
        };
        match &self.each {
            Some(each) => rows.iter().map(|&i| each[i]).collect(),
            None => rows.iter().map(of_run).collect(),
        }
    }

    /// Notes that all groups of the tile have rows.
    fn see(&self, seen: &mut [bool]) {
        match &self.each {
            Some(each) => each.iter().for_each(|&g| seen[g as usize] = true),
            None if self.is_rising => self.first.iter().for_each(|&g| seen[g..g + self.len].fill(true)),
            None => self.first.iter().for_each(|&g| seen[g] = true),
        }
    }

    /// Calls `add` with the groups and the places of so many rows at most at a time.
    fn windows(
        &self,
        window: usize,
        mut piece: impl FnMut(usize, usize, &mut dyn FnMut(&Piece<'_>) -> Result<()>) -> Result<()>,
        mut add: impl FnMut(Target<'_>, &Piece<'_>) -> Result<()>,
    ) -> Result<()> {
        let (len, total) = (self.len, self.len * self.first.len());
        let whole = if len <= window { window / len.max(1) * len } else { len };
        for at in (0..total).step_by(whole.max(1)) {
            let all = whole.min(total - at);
            if len <= window {
                piece(at, all, &mut |piece| {
                    (0..all / len)
                        .try_for_each(|k| add(self.target(at / len + k, 0, len), &piece.part(k * len, len)))
                })?;
                continue;
            }
            for part in (0..len).step_by(window) {
                let n = window.min(len - part);
                piece(at + part, n, &mut |piece| add(self.target(at / len, part, n), piece))?;
            }
        }
        Ok(())
    }
}

/// Calls `f` with each position along the first `outer` dimensions of a box, in C order; the others are at their start.
fn each_position(bx: &Bx, outer: usize, mut f: impl FnMut(&[u64])) {
    let mut position = bx.start.clone();
    let runs = bx.shape[..outer].iter().product::<u64>();
    for _ in 0..runs {
        f(&position);
        for d in (0..outer).rev() {
            position[d] += 1;
            if position[d] < bx.end(d) {
                break;
            }
            position[d] = bx.start[d];
        }
    }
}

/// Takes the selected rows of a tile into their groups. `tables`: those whose growth is to be watched.
pub(super) fn add_tile<'e>(
    execution: &'e Execution,
    node: &Node,
    bx: &Bx,
    leaves: &mut Leaves<'e>,
    wanted: &Wanted<'_>,
    (plan, frame, tables): (&Numbering, &Frame, Option<&Tables>),
    table: &mut Dense,
) -> Result<ExecStats> {
    let (mask, mut did) = execution.tile_mask(node, bx, leaves)?;
    if mask.none() {
        return Ok(did);
    }
    if did.tiles_skipped == 1 && wanted.aggregates.iter().any(|(_, v)| v.is_some()) {
        (did.tiles_scanned, did.tiles_skipped) = (1, 0);
    }
    let before = table.grown();
    if let Some(tables) = tables {
        let growth = table.growth(mask.count());
        if growth > 0 {
            plan.check(execution, tables.count(), tables.grown.load(Relaxed).saturating_add(growth))?;
        }
    }
    let runs = Runs::new(plan, frame, bx);
    if mask.all() {
        add_all(execution, bx, leaves, wanted, &runs, table)?;
    } else if wanted.keys.is_empty() && wanted.aggregates.iter().all(|(_, v)| v.is_none()) {
        let rows = Piece::Rows(mask.count() as usize);
        table.states.iter_mut().try_for_each(|s| s.update(Target::One(0), &rows))?;
    } else {
        add_hits(execution, bx, leaves, wanted, &runs, &Hits::new(&mask), table)?;
    }
    if let Some(tables) = tables {
        tables.grown.fetch_add(table.grown().saturating_sub(before), Relaxed);
    }
    Ok(did)
}

/// Takes all rows of a tile in.
fn add_all<'e>(
    execution: &'e Execution,
    bx: &Bx,
    leaves: &mut Leaves<'e>,
    wanted: &Wanted<'_>,
    runs: &Runs,
    table: &mut Dense,
) -> Result<()> {
    if let Some(seen) = &mut table.seen {
        runs.see(seen);
    }
    let n = bx.len() as usize;
    let mut done = vec![false; wanted.aggregates.len()];
    for i in 0..done.len() {
        if done[i] {
            continue;
        }
        let value = wanted.aggregates[i].1.as_ref();
        // All aggregates of one array are fed together.
        let same: Vec<usize> =
            (i..done.len()).filter(|&k| k == i || is_same(value, wanted.aggregates[k].1.as_ref())).collect();
        same.iter().for_each(|&k| done[k] = true);
        let states = &mut table.states;
        let mut add = |target: Target<'_>, piece: &Piece<'_>| {
            same.iter().try_for_each(|&k| states[k].update(target, piece))
        };
        let Some(value) = value else {
            runs.windows(n, |_, n, f| f(&Piece::Rows(n)), &mut add)?;
            continue;
        };
        if let Some((array, raw)) = execution.as_stored(value, bx) {
            let bound = &execution.bound.arrays[array];
            let domain = if raw { &bound.raw_domain } else { &bound.domain };
            let mut decoder = Decoder::new(leaves.stored(array, bx)?, domain);
            runs.windows(WINDOW, |at, n, f| f(&decoder.piece(at, n)), &mut add)?;
            continue;
        }
        let vector = at_hits(execution, bx, leaves, value, &Hits::All(n))?;
        let input = wanted.kinds[i].1.unwrap_or(ValueType::F64);
        with_piece(&vector, input, n, |all| runs.windows(WINDOW, |at, n, f| f(&all.part(at, n)), &mut add))?;
    }
    Ok(())
}

/// Takes some rows of a tile in.
fn add_hits<'e>(
    execution: &'e Execution,
    bx: &Bx,
    leaves: &mut Leaves<'e>,
    wanted: &Wanted<'_>,
    runs: &Runs,
    hits: &Hits,
    table: &mut Dense,
) -> Result<()> {
    let n = hits.len();
    let groups = match hits {
        Hits::Some(rows) if !wanted.keys.is_empty() => Some(runs.of(rows)),
        _ => None,
    };
    if let Some(seen) = &mut table.seen {
        match &groups {
            Some(groups) => groups.iter().for_each(|&g| seen[g as usize] = true),
            None => seen[0] = true,
        }
    }
    let target = groups.as_deref().map_or(Target::One(0), Target::Each);
    for (i, (_, value)) in wanted.aggregates.iter().enumerate() {
        let state = &mut table.states[i];
        let Some(value) = value else {
            state.update(target, &Piece::Rows(n))?;
            continue;
        };
        let vector = at_hits(execution, bx, leaves, value, hits)?;
        let input = wanted.kinds[i].1.unwrap_or(ValueType::F64);
        with_piece(&vector, input, n, |all| state.update(target, all))?;
    }
    Ok(())
}

/// Whether two values are the same array's.
fn is_same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(Value::Array { array: a, raw: r }), Some(Value::Array { array: b, raw: s })) => {
            (a, r) == (b, s)
        }
        _ => false,
    }
}

impl Execution {
    /// The array that a value is, if it has an element of numbers for each row of a box.
    fn as_stored(&self, value: &Value, bx: &Bx) -> Option<(usize, bool)> {
        let Value::Array { array, raw } = *value else { return None };
        let bound = &self.bound.arrays[array];
        let is_text = self.source.schema().arrays[bound.index].dtype == DType::Str;
        (bound.axes.len() == bx.rank() && !is_text).then_some((array, raw))
    }
}
