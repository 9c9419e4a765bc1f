//! Aggregates that keep the same: medians and quantiles of one argument are found of one state.

use sieva_types::Result;

use super::hashed::Kind;
use crate::aggregate::{Accumulator, Aggregate, Finished};
use crate::bind::Value;
use crate::exec::Execution;

/// The states of some aggregates.
pub(in crate::exec) struct Shared<'a> {
    aggregates: &'a [(Aggregate, Option<Value>)],
    /// For each state the aggregates that it is of, by their numbers.
    states: Vec<Vec<usize>>,
}

impl<'a> Shared<'a> {
    /// A state for each.
    pub(in crate::exec) fn alone(aggregates: &'a [(Aggregate, Option<Value>)]) -> Self {
        Self { aggregates, states: (0..aggregates.len()).map(|i| vec![i]).collect() }
    }

    /// One for those that keep the same of the same argument.
    pub(in crate::exec) fn of(aggregates: &'a [(Aggregate, Option<Value>)]) -> Self {
        let (mut states, mut known) = (Vec::<Vec<usize>>::new(), Vec::<(String, usize)>::new());
        for (i, (aggregate, value)) in aggregates.iter().enumerate() {
            let argument = aggregate.shares().then(|| format!("{value:?}"));
            let same = known.iter().find(|(of, _)| argument.as_ref() == Some(of));
            match (same, argument) {
                (Some((_, state)), _) => states[*state].push(i),
                (None, argument) => {
                    known.extend(argument.map(|of| (of, states.len())));
                    states.push(vec![i]);
                }
            }
        }
        Self { aggregates, states }
    }

    /// An aggregate of each state.
    pub(in crate::exec) fn first(&self) -> Vec<(Aggregate, Option<Value>)> {
        self.states.iter().filter_map(|of| self.aggregates.get(*of.first()?).cloned()).collect()
    }

    /// All aggregates with the types of what they take in.
    pub(super) fn kinds(&self, execution: &Execution) -> Vec<Kind> {
        execution.kinds_of(self.aggregates)
    }

    /// How many aggregates have no state of their own.
    pub(in crate::exec) fn others(&self) -> usize {
        self.aggregates.len() - self.states.len()
    }

    /// What the aggregates of the state of a number come to, with their numbers.
    ///
    /// # Errors
    /// As [`Accumulator::finish`].
    pub(super) fn finish(
        &self,
        number: usize,
        state: &mut dyn Accumulator,
        order: &[usize],
        threads: usize,
    ) -> Result<Vec<(usize, Finished)>> {
        let of = self.states.get(number).map_or(&[][..], Vec::as_slice);
        if let [one] = of {
            return Ok(vec![(*one, state.finish(order, threads)?)]);
        }
        let each: Vec<Aggregate> = of.iter().map(|&i| self.aggregates[i].0).collect();
        Ok(of.iter().copied().zip(state.finish_each(&each, order, threads)?).collect())
    }
}
