//! The plan of a batch: what of the storage its tasks touch, each once, in the order of the layout.
//!
//! Everything is cut along units of the layout: chunks, blocks of plain bytes, cells of what a library reads. A unit is
//! read once, by one thread, for all tasks that touch it; so no byte belongs to two units, and no unit to two waves.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::chunk::Wanted;
use super::numbers;
use super::task::Task;
use super::{REQUEST, cells, planned};
use crate::layout::Placement;
use crate::read::BlockReader;
use crate::read::chunks::Piece;

/// That a task touches a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Touch {
    group: u32,
    number: u64,
    task: u32,
}

/// What a unit is.
#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// A chunk.
    Chunk(Wanted),
    /// A range of plain bytes.
    Plain(Range<u64>),
    /// A cell of what a library reads.
    Cell(u64),
}

/// A unit, and the tasks that touch it: a range of [`Wave::tasks`].
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) kind: Kind,
    pub(super) tasks: Range<usize>,
}

impl Unit {
    /// Where it lies; what does not lie in the source's object keeps its order.
    fn place(&self) -> u64 {
        match &self.kind {
            Kind::Chunk(wanted) => wanted.stored().map_or(wanted.number, |range| range.start),
            Kind::Plain(range) => range.start,
            Kind::Cell(number) => *number,
        }
    }

    /// Bytes that it has in the store, at most, where that is known.
    pub(super) fn stored(&self) -> Option<Range<u64>> {
        match &self.kind {
            Kind::Chunk(wanted) => wanted.stored(),
            Kind::Plain(range) => Some(range.clone()),
            Kind::Cell(_) => None,
        }
    }

    /// How many these are.
    pub(super) fn stored_bytes(&self) -> u64 {
        self.stored().map_or(0, |range| range.end - range.start)
    }
}

/// Units that are read one after another and side by side, before those of the next wave.
#[derive(Debug, Default)]
pub(super) struct Wave {
    /// In the order of the layout.
    pub(super) units: Vec<Unit>,
    /// Numbers of the units' tasks.
    pub(super) tasks: Vec<u32>,
}

/// Where units have numbers of their own.
struct Group {
    /// The tasks, of one or of several arrays.
    tasks: Vec<u32>,
    is_plain: bool,
}

/// What tells groups apart: the source, and what of an array's layout its units depend on.
#[derive(PartialEq, Eq, Hash)]
enum GroupKey {
    /// All plain arrays of a source, by the bytes of its store.
    Plain(usize),
    /// Arrays whose chunks may be the same: members of a compound.
    Chunks(usize, u64, u64, Vec<u64>),
    /// The chunks or cells of one array.
    Own(usize, usize),
}

fn key_of(reader: &BlockReader) -> GroupKey {
    let source = Arc::as_ptr(&reader.source).cast::<()>() as usize;
    let layout = &*reader.layout;
    match &layout.placement {
        Placement::Direct { .. } => GroupKey::Plain(source),
        Placement::Chunks(_) => {
            // A member that is an array itself has more dimensions, of one chunk each.
            let mut grid = layout.grid();
            grid.truncate(grid.iter().rposition(|&n| n != 1).map_or(0, |last| last + 1));
            GroupKey::Chunks(source, reader.coding, layout.chunk_bytes, grid)
        }
        _ => GroupKey::Own(source, reader.array),
    }
}

/// Whether a task's bytes are cut into units: not those in memory, nowhere, or in other files.
fn is_read_in_units(placement: &Placement) -> bool {
    !matches!(placement, Placement::Inline(_) | Placement::Unallocated | Placement::Parts(_))
}

/// The groups of tasks, in the order of their first ones.
fn groups_of(tasks: &[Task<'_>]) -> Vec<Group> {
    let (mut known, mut groups) = (HashMap::new(), Vec::<Group>::new());
    // Tasks of one reader follow one another, mostly.
    let mut last: Option<(*const BlockReader, usize)> = None;
    for (i, task) in tasks.iter().enumerate() {
        if !is_read_in_units(&task.reader.layout.placement) {
            continue;
        }
        let reader: *const BlockReader = task.reader;
        let group = match last {
            Some((same, group)) if std::ptr::eq(same, reader) => group,
            _ => *known.entry(key_of(task.reader)).or_insert_with(|| {
                let is_plain = matches!(task.reader.layout.placement, Placement::Direct { .. });
                groups.push(Group { tasks: Vec::new(), is_plain });
                groups.len() - 1
            }),
        };
        last = Some((reader, group));
        groups[group].tasks.push(i as u32);
    }
    groups
}

/// Hands on the numbers of a task's units in a range.
fn numbers_of(task: &Task<'_>, range: &Range<u64>, emit: &mut dyn FnMut(u64)) {
    let layout = &*task.reader.layout;
    match &layout.placement {
        Placement::Direct { offset } => {
            let first = task.reader.place_in_store(*offset, &task.bx.start);
            numbers::of_store(task, first, REQUEST, range, emit);
        }
        Placement::Chunks(_) | Placement::Objects => {
            numbers::of_grid(task, &layout.chunk_shape, range, emit);
        }
        _ => numbers::of_grid(task, &cells::shape(layout), range, emit),
    }
}

/// Plans a batch: calls `run` for each wave, of which none has more than `most` touches unless one unit has.
pub(super) fn each_wave(tasks: &[Task<'_>], most: usize, mut run: impl FnMut(Wave)) {
    let of = tasks.first().map(|task| task.reader);
    let is_wanted = || tasks.iter().any(|task| task.sink.is_wanted());
    let (groups, whole) = planned(of, || {
        let groups = groups_of(tasks);
        let mut touches = Vec::new();
        let fits = |(g, group)| collect(tasks, g, group, &(0..u64::MAX), most, &mut touches);
        let fit = groups.iter().enumerate().all(fits);
        let whole = fit.then(|| wave_of(tasks, &groups, touches));
        (groups, whole)
    });
    if let Some(whole) = whole {
        return run(whole);
    }
    let mut touches = Vec::new();
    for (g, group) in groups.iter().enumerate() {
        let mut ranges: Vec<Range<u64>> = std::iter::once(0..1 << 63).collect();
        while let Some(range) = ranges.pop().filter(|_| is_wanted()) {
            touches.clear();
            let fits = planned(of, || collect(tasks, g, group, &range, most, &mut touches));
            if !fits && range.end - range.start > 1 {
                let middle = range.start + (range.end - range.start) / 2;
                ranges.extend([middle..range.end, range.start..middle]);
            } else if !touches.is_empty() {
                let wave = planned(of, || wave_of(tasks, &groups, std::mem::take(&mut touches)));
                run(wave);
            }
        }
    }
}

/// Adds what a group's tasks that are wanted touch in a range of numbers; false where that are more than `most`, of which some may be left
/// out unless it is one number.
fn collect(
    tasks: &[Task<'_>],
    g: usize,
    group: &Group,
    range: &Range<u64>,
    most: usize,
    touches: &mut Vec<Touch>,
) -> bool {
    let is_one = range.end - range.start <= 1;
    for &task in group.tasks.iter().filter(|&&task| tasks[task as usize].sink.is_wanted()) {
        let add = &mut |number| touches.push(Touch { group: g as u32, number, task });
        numbers_of(&tasks[task as usize], range, add);
        if touches.len() > most && !is_one {
            return false;
        }
    }
    true
}

/// The units of what is touched, in the order of the layout.
fn wave_of(tasks: &[Task<'_>], groups: &[Group], mut touches: Vec<Touch>) -> Wave {
    sort(&mut touches);
    let mut units = Vec::new();
    let mut at = 0;
    while at < touches.len() {
        let Touch { group, number, .. } = touches[at];
        let same = touches[at..].iter().take_while(|t| (t.group, t.number) == (group, number)).count();
        if groups[group as usize].is_plain {
            let from = number.saturating_mul(REQUEST);
            units.push(Unit { kind: Kind::Plain(from..from.saturating_add(REQUEST)), tasks: at..at + same });
        } else {
            add_units(tasks, number, at..at + same, &touches, &mut units);
        }
        at += same;
    }
    units.sort_by_key(Unit::place);
    Wave { units, tasks: touches.into_iter().map(|touch| touch.task).collect() }
}

/// Sorts what is touched by group, unit and task. Groups, and tasks of one, come in their order; units are mostly few beside what
/// touches them, and are counted then.
fn sort(touches: &mut [Touch]) {
    let mut as_it_came = Vec::new();
    for of_group in touches.chunk_by_mut(|a, b| a.group == b.group) {
        let numbers = || of_group.iter().map(|touch| touch.number);
        let (least, most) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
        if most - least > 4 * of_group.len() as u64 {
            of_group.sort_unstable();
            continue;
        }
        let mut places = vec![0; (most - least) as usize + 2];
        numbers().for_each(|number| places[(number - least) as usize + 1] += 1);
        (1..places.len()).for_each(|i| places[i] += places[i - 1]);
        as_it_came.clear();
        as_it_came.extend_from_slice(of_group);
        for touch in &as_it_came {
            let place: &mut usize = &mut places[(touch.number - least) as usize];
            of_group[*place] = *touch;
            *place += 1;
        }
    }
}

/// The units of one number: one, but for damaged files, in which arrays of one grid have different chunks.
fn add_units(tasks: &[Task<'_>], number: u64, range: Range<usize>, touches: &[Touch], units: &mut Vec<Unit>) {
    let mut last: Option<(*const BlockReader, Option<Piece>)> = None;
    let begin = units.len();
    for i in range {
        let reader = tasks[touches[i].task as usize].reader;
        if let Some((same, _)) = last
            && std::ptr::eq(same, reader)
            && let Some(unit) = units.last_mut()
        {
            unit.tasks.end = i + 1;
            continue;
        }
        let piece = match &reader.layout.placement {
            Placement::Chunks(index) => index.get(number).map(Piece::In),
            Placement::Objects => Some(Piece::Object(number)),
            _ => {
                units.push(Unit { kind: Kind::Cell(number), tasks: i..i + 1 });
                last = Some((reader, None));
                continue;
            }
        };
        match last {
            Some((_, known)) if known == piece && units.len() > begin => {
                if let Some(unit) = units.last_mut() {
                    unit.tasks.end = i + 1;
                }
            }
            _ => units.push(Unit { kind: Kind::Chunk(Wanted { number, piece }), tasks: i..i + 1 }),
        }
        last = Some((reader, piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touches_are_sorted_whether_units_are_counted_or_not() {
        let mut seed = 5_u64;
        let mut draw = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        for round in 0..200 {
            let numbers = [1, 7, 300, 1 << 40][round % 4];
            let mut touches = Vec::new();
            for group in 0..draw(4) as u32 {
                let tasks = draw(30) as u32;
                for task in 0..tasks {
                    let base = u64::MAX - numbers;
                    for _ in 0..draw(5) {
                        touches.push(Touch { group, number: base + draw(numbers), task });
                    }
                }
            }
            let mut want = touches.clone();
            want.sort();
            sort(&mut touches);
            assert_eq!(touches, want, "round {round}");
        }
    }
}
