//! Results that have rows in common, put into one object: what two have is stored once.
//!
//! Rows of a result are positions of the array, and ranges of them that two results have (DR4) are the same bytes of both files where
//! the columns are the same. Whether they are is not concluded but seen: the bytes are compared.

use std::collections::BTreeMap;

use sieva::{Query, Result};
use sieva_encode::ColumnPlace;
use sieva_plan::Step;
use sieva_store::name_of;
use sieva_store::objects::Body;

use crate::made::Made;

/// The most runs of positions of a result: of more, each is too short to pay.
const MOST_RUNS: usize = 1024;
/// Bytes from which on a range is stored once: each takes some of an index, and of those who fetch a request, in the time of which a
/// store moves about so many.
const LEAST: u64 = 256 << 10;
/// The most ranges of a column that are taken from what others have: each takes some of an index.
const MOST_SHARED: usize = 64;
/// Bytes that are compared at once.
const PIECE: u64 = 1 << 20;

/// Which rows of an array a result has, one behind the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowsAt {
    /// The dimensions of the rows, and their lengths.
    space: (Vec<String>, Vec<u64>),
    /// Positions in that space: first ones, and how many.
    runs: Vec<(u64, u64)>,
}

impl RowsAt {
    /// Those of a query whose rows are positions in their order; none of groups, of rows in another order, and of scattered ones.
    ///
    /// # Errors
    /// Those of the query.
    pub fn of(query: &Query) -> Result<Option<Self>> {
        let plan = query.logical_plan()?;
        if !plan.steps.iter().all(|step| matches!(step, Step::Filter(_) | Step::Project(_))) {
            return Ok(None);
        }
        let selection = query.selection()?;
        let runs: Vec<(u64, u64)> = selection.runs().take(MOST_RUNS + 1).collect();
        let space = (selection.dims().to_vec(), selection.shape().to_vec());
        Ok((runs.len() <= MOST_RUNS).then_some(Self { space, runs }))
    }
}

/// Bytes of results that are put together because they have rows in common: some stores take no longer objects than 5 GB.
const MOST_CLUSTER: u64 = 1 << 30;

/// The numbers of results, those together that have rows in common.
pub(crate) fn clusters(made: &[&Made]) -> Vec<Vec<usize>> {
    let mut clusters: Vec<(u64, Vec<usize>)> = Vec::new();
    for (number, one) in made.iter().enumerate() {
        let overlaps = |(size, of): &&mut (u64, Vec<usize>)| {
            *size + one.size() <= MOST_CLUSTER && of.iter().any(|&other| overlap(one, made[other]))
        };
        match clusters.iter_mut().find(|cluster| overlaps(cluster)) {
            Some((size, of)) => {
                *size += one.size();
                of.push(number);
            }
            None => clusters.push((one.size(), vec![number])),
        }
    }
    clusters.into_iter().map(|(_, of)| of).collect()
}

/// Whether two results have a range of rows in common that pays.
fn overlap(one: &Made, other: &Made) -> bool {
    let (Some(ours), Some(theirs)) = (&one.rows_at, &other.rows_at) else { return false };
    let shares =
        |place: &ColumnPlace| other.places.iter().any(|p| (&p.name, p.width) == (&place.name, place.width));
    let width = one.places.iter().filter(|place| shares(place)).map(|place| place.width).max();
    let Some(width) = width.filter(|_| ours.space == theirs.space) else { return false };
    let (mut a, mut b) = (ours.runs.iter().peekable(), theirs.runs.iter().peekable());
    while let (Some(&&(x, n)), Some(&&(y, m))) = (a.peek(), b.peek()) {
        let common = (x + n).min(y + m).saturating_sub(x.max(y));
        if common.saturating_mul(width) >= LEAST {
            return true;
        }
        if x + n <= y + m {
            a.next()
        } else {
            b.next()
        };
    }
    false
}

/// A range of a result's file, and where its bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    /// The number of the result in whose file it is stored, and the first byte there.
    from: usize,
    begin: u64,
    len: u64,
}

/// Results one behind the other, without what an earlier one has.
pub(crate) struct Stored<'m> {
    made: Vec<&'m Made>,
    /// What is stored: in order, with the offset of each in the object.
    kept: Vec<(u64, Segment)>,
    size: u64,
    /// Of each result the ranges of the object that are its file.
    ranges: Vec<Vec<(u64, u64)>>,
}

impl<'m> Stored<'m> {
    /// Each result whole.
    pub fn apart(made: Vec<&'m Made>) -> Self {
        let segments = (0..made.len()).map(|n| vec![whole(n, made[n].size())]).collect();
        Self::of(made, segments)
    }

    /// What several have once.
    ///
    /// # Errors
    /// Those of reading the results again.
    pub fn together(made: Vec<&'m Made>) -> Result<Self> {
        let mut known = Known::default();
        let segments = (0..made.len()).map(|n| known.segments(&made, n)).collect::<Result<Vec<_>>>()?;
        Ok(Self::of(made, segments))
    }

    fn of(made: Vec<&'m Made>, segments: Vec<Vec<Segment>>) -> Self {
        let (mut kept, mut size) = (Vec::new(), 0);
        // Where a byte of a result's file is in the object, by the range that it is in.
        let mut placed: Vec<BTreeMap<u64, u64>> = vec![BTreeMap::new(); made.len()];
        let mut ranges = Vec::new();
        for (number, segments) in segments.into_iter().enumerate() {
            let mut own: Vec<(u64, u64)> = Vec::new();
            for segment in segments.into_iter().filter(|segment| segment.len > 0) {
                if segment.from == number {
                    placed[number].insert(segment.begin, size);
                    kept.push((size, segment));
                    size += segment.len;
                }
                // It lies within a range that is stored: what is stored of others is known by such.
                let within = placed[segment.from].range(..=segment.begin).next_back();
                let at = within.map_or(0, |(begin, at)| at + segment.begin - begin);
                match own.last_mut() {
                    Some((begin, len)) if *begin + *len == at => *len += segment.len,
                    _ => own.push((at, segment.len)),
                }
            }
            ranges.push(own);
        }
        Self { made, kept, size, ranges }
    }

    /// The ranges of the object that are a result's file.
    pub fn ranges(&self, number: usize) -> &[(u64, u64)] {
        &self.ranges[number]
    }

    /// The first of the results, where it is the only one.
    pub fn only(&self) -> Option<&'m Made> {
        if let [one] = self.made[..] { Some(one) } else { None }
    }

    /// The same results, stored in the same way, have the same name.
    pub fn name(&self) -> String {
        let results = self.made.iter().map(|one| format!("{}\0{}", one.id, one.checksum));
        let segments = self.kept.iter().map(|(_, s)| format!("{} {} {}", s.from, s.begin, s.len));
        name_of(results.chain(segments).collect::<Vec<_>>().join("\0").as_bytes())
    }
}

fn whole(from: usize, len: u64) -> Segment {
    Segment { from, begin: 0, len }
}

impl Body for Stored<'_> {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < out.len() {
            let at = offset + done as u64;
            let next = self.kept.partition_point(|(begin, _)| *begin <= at);
            let found = next.checked_sub(1).map(|n| self.kept[n]).filter(|(begin, s)| at < begin + s.len);
            let Some((begin, segment)) = found else {
                let message = "results end before what is to be put of them";
                return Err(sieva::Error::new(sieva::ErrorKind::Internal, message));
            };
            let (into, left) = (at - begin, segment.len - (at - begin));
            let n = usize::try_from(left).map_or(out.len() - done, |left| left.min(out.len() - done));
            self.made[segment.from].read_exact_at(segment.begin + into, &mut out[done..done + n])?;
            done += n;
        }
        Ok(())
    }
}

/// A column of rows: the space that they are positions of, its name and the bytes of a value.
type Column<'m> = (&'m (Vec<String>, Vec<u64>), &'m str, u64);

/// What is stored of columns: by the first position of each range the position behind it, and the segment of its values.
#[derive(Default)]
struct Known<'m>(BTreeMap<Column<'m>, BTreeMap<u64, (u64, Segment)>>);

impl<'m> Known<'m> {
    /// The ranges of a result's file, each where it is stored; what is not yet is stored with it.
    fn segments(&mut self, made: &[&'m Made], number: usize) -> Result<Vec<Segment>> {
        let one = made[number];
        let Some(rows) = &one.rows_at else { return Ok(vec![whole(number, one.size())]) };
        let (mut segments, mut at) = (Vec::new(), 0);
        let own = |begin: u64, end: u64| Segment { from: number, begin, len: end - begin };
        for place in &one.places {
            let column: Column<'m> = (&rows.space, place.name.as_str(), place.width);
            let known = self.0.entry(column).or_default();
            let shared = shared(known, rows, place, number, made)?;
            for (begin, segment) in shared {
                segments.push(own(at, begin));
                segments.push(segment);
                at = begin + segment.len;
            }
            note(known, rows, place, number);
        }
        segments.push(own(at, one.size()));
        Ok(segments)
    }
}

/// The ranges of a column's values that are stored already, by their first byte in the file.
fn shared(
    known: &BTreeMap<u64, (u64, Segment)>,
    rows: &RowsAt,
    place: &ColumnPlace,
    number: usize,
    made: &[&Made],
) -> Result<Vec<(u64, Segment)>> {
    let (mut found, mut row) = (Vec::new(), 0);
    for &(first, count) in &rows.runs {
        let end = first + count;
        let before = known.range(..=first).next_back();
        let within = known.range(first + 1..end);
        for (&begin, &(stop, segment)) in before.into_iter().chain(within) {
            let (from, to) = (begin.max(first), stop.min(end));
            let len = to.saturating_sub(from) * place.width;
            if len < LEAST || found.len() >= MOST_SHARED {
                continue;
            }
            let there = Segment { begin: segment.begin + (from - begin) * place.width, len, ..segment };
            let here = place.begin + (row + from - first) * place.width;
            if is_same(made[number], here, made[there.from], there.begin, len)? {
                found.push((here, there));
            }
        }
        row += count;
    }
    Ok(found)
}

/// Notes the values of a column that are stored with a result: those of rows that nothing was known of, in runs that are long
/// enough for others to share. Short ones would cut longer ones of others into pieces.
fn note(known: &mut BTreeMap<u64, (u64, Segment)>, rows: &RowsAt, place: &ColumnPlace, number: usize) {
    let mut row = 0;
    for &(first, count) in &rows.runs {
        let end = first + count;
        let mut position = if count * place.width < LEAST { end } else { first };
        while position < end {
            let covering = known.range(..=position).next_back().filter(|(_, (stop, _))| position < *stop);
            if let Some((_, &(stop, _))) = covering {
                position = stop;
                continue;
            }
            let stop = known.range(position..end).next().map_or(end, |(&begin, _)| begin);
            let begin = place.begin + (row + position - first) * place.width;
            let segment = Segment { from: number, begin, len: (stop - position) * place.width };
            known.insert(position, (stop, segment));
            position = stop;
        }
        row += count;
    }
}

/// Whether two results have the same bytes there.
fn is_same(one: &Made, at: u64, other: &Made, there: u64, len: u64) -> Result<bool> {
    let size = len.min(PIECE) as usize;
    let (mut ours, mut theirs) = (vec![0; size], vec![0; size]);
    let mut done = 0;
    while done < len {
        let n = (len - done).min(PIECE) as usize;
        one.read_exact_at(at + done, &mut ours[..n])?;
        other.read_exact_at(there + done, &mut theirs[..n])?;
        if ours[..n] != theirs[..n] {
            return Ok(false);
        }
        done += n as u64;
    }
    Ok(true)
}
