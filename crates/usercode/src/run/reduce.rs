//! Reductions of many groups of rows.
//!
//! A text has one instance for all groups: the variables of its file are the state, which is put in before the rows of a
//! group come, and taken out after them. Where a module keeps its state nobody knows: it has an instance for each group.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_types::{Error, ErrorKind, Result};

use super::engine::Ticker;
use super::rows::Run;
use super::values::{Slice, Values};
use crate::code::Function;
use crate::element::Element;
use crate::limits::Limits;
use crate::module::Form;

/// The most groups of a module.
const MOST_INSTANCES: usize = 256;

/// A reduction that can be begun any number of times.
pub struct Reduce {
    function: Function,
    limits: Limits,
    element: Element,
    /// Bytes of a group.
    of_group: usize,
    /// Where the state of a text lies.
    place: Option<Range<usize>>,
}

impl Reduce {
    /// A reduction under limits; the time is that of the rows that are handed over at once.
    ///
    /// # Errors
    /// `unsupported` for code that is no reduction; what it fails of without a row.
    pub fn new(function: &Function, limits: &Limits) -> Result<Self> {
        let emitted = function.0.emitted.as_ref();
        // A `proc` that is run like one has more than its state.
        let has_state = emitted.is_none_or(|emitted| emitted.state.is_some());
        if !has_state || !matches!(function.0.form, Form::Reduce { .. }) {
            let message = "the code is no reduction";
            return Err(Error::new(ErrorKind::Unsupported, message)
                .hint("a reduction has the functions step and finish: void step(double x) { ... }"));
        }
        let mut run = function.start(0, limits)?;
        let place = emitted.and_then(|emitted| emitted.state.clone());
        let (element, of_group) = match (emitted, &place) {
            (Some(emitted), Some(place)) => (emitted.output, place.len()),
            _ => (one_value(run.value()?)?.element, run.size()),
        };
        Ok(Self { function: function.clone(), limits: limits.clone(), element, of_group, place })
    }

    /// The type of its value.
    pub fn element(&self) -> Element {
        self.element
    }

    /// States of no groups; instances of groups may have `most` bytes together. `cancel` ends what they run from outside.
    ///
    /// # Errors
    /// What the code fails of without a row.
    pub fn begin(&self, most: u64, cancel: &Arc<AtomicBool>) -> Result<States> {
        let limits = Limits { cancel: Arc::clone(cancel), ..self.limits.clone() };
        let ticker = Ticker::start(self.function.0.module.engine())?;
        let kept = match self.place.clone() {
            None => Kept::Instances(Vec::new()),
            Some(place) => {
                let mut run = Run::ticking(&self.function, 0, &limits, Arc::clone(&ticker))?;
                let fresh = read(&mut run, &place)?.to_vec();
                Kept::Bytes { run: Box::new(run), place, fresh, all: Vec::new(), inside: None }
            }
        };
        let (function, of_group) = (self.function.clone(), self.of_group);
        let element = self.element;
        Ok(States { function, limits, ticker, element, of_group, groups: 0, kept, most, held: 0 })
    }
}

/// The states of a reduction, one for each group of rows.
pub struct States {
    function: Function,
    limits: Limits,
    ticker: Arc<Ticker>,
    element: Element,
    of_group: usize,
    groups: usize,
    kept: Kept,
    /// Bytes that instances of groups may have, and have.
    most: u64,
    held: u64,
}

/// Where states are.
enum Kept {
    /// One after the other; that of the group `inside` is in the instance.
    Bytes { run: Box<Run>, place: Range<usize>, fresh: Vec<u8>, all: Vec<u8>, inside: Option<usize> },
    /// Each in an instance of its own.
    Instances(Vec<Run>),
}

impl States {
    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.groups
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.groups == 0
    }

    /// Bytes that so many groups more take.
    pub fn growth(&self, groups: usize) -> u64 {
        (self.of_group as u64).saturating_mul(groups as u64)
    }

    /// Bytes that they take, besides one instance.
    pub fn memory_bytes(&self) -> u64 {
        match &self.kept {
            Kept::Bytes { fresh, all, .. } => (fresh.len() + all.capacity()) as u64,
            Kept::Instances(_) => self.held,
        }
    }

    /// Makes states of no rows, up to so many in all.
    ///
    /// # Errors
    /// `unsupported` for more groups of a module than it may have; what the code fails of without a row.
    pub fn resize(&mut self, groups: usize) -> Result<()> {
        let Some(more) = groups.checked_sub(self.groups) else { return Ok(()) };
        match &mut self.kept {
            Kept::Bytes { fresh, all, .. } => {
                all.reserve_exact(more * fresh.len());
                (0..more).for_each(|_| all.extend_from_slice(fresh));
            }
            Kept::Instances(_) if groups > MOST_INSTANCES => {
                let message = format!("more than {MOST_INSTANCES} groups of a module, each an instance");
                return Err(Error::new(ErrorKind::Unsupported, message).hint(
                    "make fewer groups, or write it in C, of which a group takes its variables alone",
                ));
            }
            Kept::Instances(runs) => {
                for _ in 0..more {
                    let run = Run::ticking(&self.function, 0, &self.limits, Arc::clone(&self.ticker))?;
                    self.held += run.size() as u64;
                    runs.push(run);
                }
            }
        }
        self.groups = groups;
        Ok(())
    }

    /// Hands the next rows of a group over: of each column as many values.
    ///
    /// # Errors
    /// What the code fails of; `cancelled`, `memory-limit`; `internal-error` for a group that there is not.
    pub fn push(&mut self, group: usize, columns: &[Slice<'_>]) -> Result<()> {
        let run = self.of(group)?;
        let before = run.size();
        run.push(columns)?;
        let more = run.size() - before;
        if let Kept::Instances(_) = self.kept {
            self.held += more as u64;
            self.check_held()?;
        }
        Ok(())
    }

    fn check_held(&self) -> Result<()> {
        if self.held <= self.most {
            return Ok(());
        }
        let (n, most) = (self.groups, self.most);
        let message = format!("{n} instances of a module, one for each group, need more than {most} bytes");
        Err(Error::new(ErrorKind::MemoryLimit, message)
            .hint("make fewer groups, or raise the limit with --memory (memory= in Python)"))
    }

    /// The value of a group: one row.
    ///
    /// # Errors
    /// As [`States::push`]; `invalid-value` where no value comes out, or several.
    pub fn value(&mut self, group: usize) -> Result<Values> {
        let (element, value) = (self.element, one_value(self.of(group)?.value()?)?);
        if value.element == element {
            return Ok(value);
        }
        let (before, now) = (element.name(), value.element.name());
        let message = format!("the code gives a value of type {now}, and gave {before} before");
        Err(Error::new(ErrorKind::TypeMismatch, message))
    }

    /// The instance, with the state of a group in it, and all of its time.
    fn of(&mut self, group: usize) -> Result<&mut Run> {
        let none = || Error::new(ErrorKind::Internal, "a group of a reduction that there is not");
        if group >= self.groups {
            return Err(none());
        }
        let run = match &mut self.kept {
            Kept::Instances(runs) => runs.get_mut(group).ok_or_else(none)?,
            Kept::Bytes { run, place, all, inside, .. } => {
                let bytes = |group: usize| group * place.len()..(group + 1) * place.len();
                if *inside != Some(group) {
                    if let Some(before) = inside.take() {
                        all[bytes(before)].copy_from_slice(read(run, place)?);
                    }
                    run.guest().write(place.start, &all[bytes(group)])?;
                    *inside = Some(group);
                }
                run
            }
        };
        run.guest().rewind();
        Ok(run)
    }
}

/// The state that is in an instance of a text.
fn read<'r>(run: &'r mut Run, place: &Range<usize>) -> Result<&'r [u8]> {
    let bytes = run.guest().bytes(place.start, place.len());
    bytes.ok_or_else(|| Error::new(ErrorKind::Internal, "the state of code is beyond its memory"))
}

/// What came out of a reduction, which is one value.
fn one_value(values: Values) -> Result<Values> {
    if values.rows() == 1 {
        return Ok(values);
    }
    let message = format!("{} values come out of the reduction, and one is expected", values.rows());
    Err(Error::new(ErrorKind::InvalidValue, message).hint("'sieva_finish' gives a column of one value"))
}
