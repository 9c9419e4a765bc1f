//! Groups with reductions that came as code.
//!
//! A reduction may depend on the order of its rows. They are selected first, then fetched in the order of their positions and
//! taken in one step after the other, so that the answer is the same whatever way they were found, and by however many threads.

use std::ops::Range;
use std::sync::Arc;

use sieva_types::{Error, ErrorKind, Result, Selection};

use super::columns::{numbered, taken};
use super::combined::Combined;
use super::hashed::Groups;
use super::table::{GroupTable, hashed_keys, hashed_order};
use super::tiles::groups_of;
use crate::aggregate::{Aggregate, Finished, Piece, Target, with_piece};
use crate::bind::{Body, Value};
use crate::code::{Reduction, Rows};
use crate::exec::Execution;
use crate::exec::fetch::Gatherer;
use crate::exec::fetch::rows::fetch_value;
use crate::values::ValueType;

/// Rows that are taken in together, where more need not be read at once: of one group, and of several, which are asked for by
/// themselves in each step.
const STEP: usize = 1 << 16;
const STEP_OF_GROUPS: usize = 1 << 20;

/// Whether one of some aggregates is a reduction that came as code.
pub(super) fn has_reduction(aggregates: &[(Aggregate, Option<Value>)]) -> bool {
    aggregates.iter().any(|(aggregate, _)| *aggregate == Aggregate::Reduction)
}

impl Execution {
    /// Whether rows are selected first, and then taken into groups in their order.
    pub fn reduces_in_order(&self) -> bool {
        matches!(&self.bound.body, Body::Groups { aggregates, .. } if has_reduction(aggregates))
    }

    /// Rows that are fetched and taken in at once by groups with reductions; what is read for them are `values`.
    pub(crate) fn rows_reduced<'v>(&self, values: impl Iterator<Item = &'v Value> + Clone) -> usize {
        // As much again as they are fetched in: by groups, and as bytes for the code.
        let most = (self.rows_fetched(values.clone()) / 2).max(1);
        let has_keys = matches!(&self.bound.body, Body::Groups { keys, .. } if !keys.is_empty());
        let step = if has_keys { STEP_OF_GROUPS } else { STEP };
        self.rows_in_step(values, step.min(most), most)
    }
}

/// The table of groups of the rows of a selection, before HAVING.
///
/// # Errors
/// Reading errors, `cancelled`, `memory-limit`; `arithmetic-overflow` where the code fails.
pub(super) fn reduced(
    execution: &Arc<Execution>,
    keys: &[Value],
    aggregates: &[(Aggregate, Option<Value>)],
    selection: &Selection,
) -> Result<GroupTable> {
    let mut all = Reduced::new(execution, keys, aggregates)?;
    all.take_selected(selection)?;
    all.finish(execution, keys, aggregates)
}

/// Groups under construction.
struct Reduced<'e> {
    execution: &'e Arc<Execution>,
    keys: &'e [Value],
    /// The groups with the aggregates that are no reductions, which are in `plain` with the types of what they take in.
    groups: Groups,
    plain: Vec<(Option<&'e Value>, ValueType)>,
    reductions: Vec<(&'e [Value], Reduction)>,
    gatherer: Gatherer,
}

impl<'e> Reduced<'e> {
    fn new(
        execution: &'e Arc<Execution>,
        keys: &'e [Value],
        aggregates: &'e [(Aggregate, Option<Value>)],
    ) -> Result<Self> {
        let (mut others, mut reductions) = (Vec::new(), Vec::new());
        for (aggregate, value) in aggregates {
            match value {
                Some(Value::Reduced(reducer, args)) => {
                    let room = execution.options.room().bytes;
                    reductions.push((args.as_slice(), reducer.begin(room, &execution.options.cancel)?));
                }
                _ => others.push((*aggregate, value.clone())),
            }
        }
        let kinds = execution.kinds_of(&others);
        let mut groups = Groups::new(keys.len(), &kinds, execution.options.room())?;
        if keys.is_empty() {
            groups.group(Vec::new())?;
        }
        let plain = aggregates.iter().filter(|(aggregate, _)| *aggregate != Aggregate::Reduction);
        let types = kinds.iter().map(|(_, input)| input.unwrap_or(ValueType::F64));
        let plain = plain.map(|(_, value)| value.as_ref()).zip(types).collect();
        let gatherer = Gatherer::new(Arc::clone(execution));
        let mut new = Self { execution, keys, groups, plain, reductions, gatherer };
        new.make_states()?;
        Ok(new)
    }

    /// Takes in the rows of a selection.
    fn take_selected(&mut self, selection: &Selection) -> Result<()> {
        let of_plain = self.plain.iter().filter_map(|(value, _)| *value);
        let arguments = self.reductions.iter().flat_map(|(args, _)| args.iter());
        let step = self.execution.rows_reduced(self.keys.iter().chain(of_plain).chain(arguments));
        let mut all = selection.iter_from(0);
        loop {
            self.execution.options.check_cancel()?;
            let positions: Vec<u64> = all.by_ref().take(step).collect();
            if positions.is_empty() {
                return Ok(());
            }
            self.take(&positions)?;
        }
    }

    /// Takes in the rows at some positions, behind all that were taken in before.
    fn take(&mut self, positions: &[u64]) -> Result<()> {
        let n = positions.len();
        let mut group_of = vec![0; n];
        if !self.keys.is_empty() {
            let mut combined = Combined::new(n);
            let mut columns = Vec::with_capacity(self.keys.len());
            for key in self.keys {
                let column = fetch_value(&mut self.gatherer, key, positions)?.into_vector()?;
                let (numbers, first) = numbered(&column, n);
                combined.by(&numbers, first.len());
                columns.push(column);
            }
            group_of = groups_of(&columns, combined, &mut self.groups)?;
        }
        self.groups.check_rows(n as u64)?;
        self.make_states()?;
        for (i, (value, input)) in self.plain.iter().enumerate() {
            let state = &mut self.groups.states_mut()[i];
            let target = Target::Each(&group_of);
            match value {
                None => state.update(target, &Piece::Rows(n))?,
                Some(value) => {
                    let column = fetch_value(&mut self.gatherer, value, positions)?.into_vector()?;
                    with_piece(&column, *input, n, |all| state.update(target, all))?;
                }
            }
        }
        let (places, ranges) = by_group(&group_of);
        for (args, reduction) in &mut self.reductions {
            let mut columns = Vec::with_capacity(args.len());
            for arg in *args {
                let column = fetch_value(&mut self.gatherer, arg, positions)?.into_vector()?;
                columns.push(match &places {
                    Some(places) => taken(&column, places)?,
                    None => column,
                });
            }
            match &ranges[..] {
                [(group, _)] => reduction.push(n, &Rows::One(*group), &columns)?,
                ranges => reduction.push(n, &Rows::Ranges(ranges), &columns)?,
            }
        }
        Ok(())
    }

    /// Makes the states of groups that are new, if there is room for them.
    fn make_states(&mut self) -> Result<()> {
        let n = self.groups.len();
        let held = self.reductions.iter().map(|(_, reduction)| reduction.bytes_of(n));
        let need = held.fold(self.groups.memory_bytes(), u64::saturating_add);
        let what = format_args!("{n} groups with {} reductions of yours", self.reductions.len());
        self.execution.options.room().check(need, what)?;
        self.reductions.iter_mut().try_for_each(|(_, reduction)| reduction.resize(n))
    }

    /// The table of the groups, sorted by their keys.
    fn finish(
        self,
        execution: &Execution,
        keys: &[Value],
        aggregates: &[(Aggregate, Option<Value>)],
    ) -> Result<GroupTable> {
        let order = hashed_order(execution, &self.groups)?;
        let mut found = Vec::with_capacity(self.reductions.len());
        for (_, reduction) in self.reductions {
            found.push(Finished::Values(taken(&reduction.finish()?, &order)?));
        }
        let (key_columns, states) = self.groups.into_parts();
        let keys = hashed_keys(execution, keys, key_columns, &order)?;
        let (mut found, mut states) = (found.into_iter(), states.into_iter());
        let mut all = Vec::with_capacity(aggregates.len());
        for (aggregate, _) in aggregates {
            let made = match aggregate {
                Aggregate::Reduction => found.next(),
                _ => {
                    let finish = |mut state: Box<dyn crate::aggregate::Accumulator>| {
                        state.finish(&order, execution.options.threads)
                    };
                    states.next().map(finish).transpose()?
                }
            };
            all.push(made.ok_or_else(|| Error::new(ErrorKind::Internal, "an aggregate without its state"))?);
        }
        Ok(GroupTable { len: order.len(), keys, aggregates: all })
    }
}

/// The places of the rows, group by group, those of a group in their order (`None`: as they are), and which of them each group
/// has.
#[allow(clippy::type_complexity)] // the two parts of an order by groups
fn by_group(group_of: &[u32]) -> (Option<Vec<usize>>, Vec<(usize, Range<usize>)>) {
    let ranges_of = |group: &dyn Fn(usize) -> u32| {
        let mut ranges: Vec<(usize, Range<usize>)> = Vec::new();
        for i in 0..group_of.len() {
            let group = group(i) as usize;
            match ranges.last_mut() {
                Some((last, range)) if *last == group => range.end = i + 1,
                _ => ranges.push((group, i..i + 1)),
            }
        }
        ranges
    };
    if group_of.is_sorted() {
        return (None, ranges_of(&|i| group_of[i]));
    }
    let places = in_order_of(group_of);
    let ranges = ranges_of(&|i| group_of[places[i]]);
    (Some(places), ranges)
}

/// The places of some numbers in ascending order, those of one number as they come.
fn in_order_of(numbers: &[u32]) -> Vec<usize> {
    let (n, below) = (numbers.len(), numbers.iter().max().map_or(0, |&most| most as usize + 1));
    if below > 4 * n {
        let mut places: Vec<usize> = (0..n).collect();
        places.sort_by_key(|&i| numbers[i]);
        return places;
    }
    // How many are less than each; then where the next of it goes.
    let mut next = vec![0; below + 1];
    numbers.iter().for_each(|&number| next[number as usize + 1] += 1);
    (1..next.len()).for_each(|i| next[i] += next[i - 1]);
    let mut places = vec![0; n];
    for (i, &number) in numbers.iter().enumerate() {
        let place = &mut next[number as usize];
        places[*place] = i;
        *place += 1;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_group_stay_in_their_order() {
        let (places, ranges) = by_group(&[0, 0, 1, 3]);
        assert_eq!((places, ranges), (None, vec![(0, 0..2), (1, 2..3), (3, 3..4)]));
        let (places, ranges) = by_group(&[2, 0, 2, 0, 1, 2]);
        assert_eq!(places, Some(vec![1, 3, 4, 0, 2, 5]));
        assert_eq!(ranges, [(0, 0..2), (1, 2..3), (2, 3..6)]);
        let (places, ranges) = by_group(&[900, 7, 900]);
        assert_eq!((places, ranges), (Some(vec![1, 0, 2]), vec![(7, 0..1), (900, 1..3)]));
        assert_eq!(by_group(&[]), (None, vec![]));
    }
}
