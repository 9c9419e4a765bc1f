//! Functions of each row, asked of pieces in any order and from any thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sieva_types::{Error, ErrorKind, Result};

use super::engine::Ticker;
use super::rows::Run;
use super::values::{Slice, Values};
use crate::c::ROWS_TOGETHER;
use crate::code::{Function, Language};
use crate::element::Element;
use crate::limits::Limits;
use crate::module::Form;

/// Rows of a piece that are looked for where a module fails; all behind them count as failed.
const MOST_WRONG: usize = 256;
/// Rows that are asked at once where some fail.
const WINDOW: usize = 512;

/// A map or a filter, of which each piece of rows is asked by itself. Instances are kept for the next piece.
pub struct Each {
    function: Function,
    limits: Limits,
    element: Element,
    waiting: Mutex<Waiting>,
    /// What looking for rows that fail took so far, of all pieces, in nanoseconds.
    searching: AtomicU64,
}

/// What no piece has at the moment.
#[derive(Default)]
struct Waiting {
    ticker: Option<Arc<Ticker>>,
    runs: Vec<Run>,
}

/// Rows for which the code failed, ascending.
#[derive(Clone, Debug)]
pub struct Wrong {
    /// Their numbers.
    pub rows: Vec<usize>,
    /// What the first of them failed with.
    pub first: Error,
    /// From this row on nothing is known, as too many failed before it, or took too long; beyond all rows: all is known.
    pub unknown_from: usize,
}

impl Each {
    /// A function at work. The time of its limits is that of one piece; looking for rows that fail takes as much of all pieces
    /// together.
    ///
    /// # Errors
    /// `unsupported` for code that is no function of each row; of modules what they fail of without a row.
    pub fn new(function: &Function, limits: &Limits) -> Result<Self> {
        if !matches!(function.0.form, Form::Map | Form::Filter) {
            let message = "the code is no function of each row";
            return Err(Error::new(ErrorKind::Unsupported, message).hint(
                "a function in SQL is a map or a filter: double map(double x) { ... }, \
                     or an aggregate: void step(double x) { ... } double finish() { ... }",
            ));
        }
        let (function, limits) = (function.clone(), limits.clone());
        let (waiting, searching) = (Mutex::default(), AtomicU64::new(0));
        let mut new = Self { function, limits, element: Element::U8, waiting, searching };
        if new.function.0.form == Form::Map {
            let none = vec![Slice { data: &[], valid: None }; new.function.0.inputs.len()];
            let mut run = new.take()?;
            new.element = run.each(&none, &new.limits.cancel)?.element;
            new.lock().runs.push(run);
        }
        Ok(new)
    }

    /// The type of the values: of a filter bytes, 0 for rows that go.
    pub fn element(&self) -> Element {
        self.element
    }

    /// The values of some rows, and the rows for which the code failed, which count as missing. `cancel` ends it from outside.
    ///
    /// # Errors
    /// `cancelled`, `memory-limit`, and `invalid-value` for a piece that takes longer than it may.
    pub fn values(&self, columns: &[Slice<'_>], cancel: &Arc<AtomicBool>) -> Result<(Values, Option<Wrong>)> {
        let rows = self.rows_of(columns);
        let mut run = self.take()?;
        match run.each(columns, cancel) {
            Ok(values) => {
                self.lock().runs.push(run);
                Ok((values, None))
            }
            Err(e) if run.is_out_of_time() || is_of_all(&e) || rows == 0 => Err(e),
            Err(_) => {
                let mut search = Search { each: self, columns, cancel, out: self.none(), wrong: None };
                match self.function.0.language {
                    Language::C => search.by_rows(rows)?,
                    Language::Wasm => search.by_halves(rows)?,
                }
                Ok((search.out, search.wrong))
            }
        }
    }

    /// Whether looking for rows that fail has taken as long as it may.
    fn has_searched_enough(&self) -> bool {
        Duration::from_nanos(self.searching.load(Ordering::Relaxed)) >= self.limits.time
    }

    fn none(&self) -> Values {
        Values { element: self.element, data: Vec::new(), valid: None }
    }

    fn rows_of(&self, columns: &[Slice<'_>]) -> usize {
        let size = self.function.0.inputs.first().map_or(1, |input| input.element.size());
        columns.first().map_or(0, |column| column.data.len()) / size
    }

    /// An instance that nobody has: one that waits, or a new one.
    fn take(&self) -> Result<Run> {
        let mut waiting = self.lock();
        let known = waiting.ticker.take_if(|ticker| ticker.is_here());
        let ticker = match known {
            Some(ticker) => ticker,
            None => {
                // Instances of another process have its clock.
                waiting.runs.clear();
                Ticker::start(self.function.0.module.engine())?
            }
        };
        waiting.ticker = Some(Arc::clone(&ticker));
        if let Some(run) = waiting.runs.pop() {
            return Ok(run);
        }
        drop(waiting);
        Run::ticking(&self.function, 0, &self.limits, ticker)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The search for the rows for which the code failed.
struct Search<'a> {
    each: &'a Each,
    columns: &'a [Slice<'a>],
    cancel: &'a Arc<AtomicBool>,
    out: Values,
    wrong: Option<Wrong>,
}

/// What rows failed with, and the one that was reached, where that is known.
type Failed = (Error, Option<usize>);

impl Search<'_> {
    /// A text says how far it came.
    fn by_rows(&mut self, rows: usize) -> Result<()> {
        let mut from = 0;
        while from < rows {
            let to = rows.min(from + WINDOW);
            let Err((e, reached)) = self.part(from, to)? else {
                from = to;
                continue;
            };
            let row = from + reached.unwrap_or(0).min(to - from - 1);
            if row > from
                && let Err((e, _)) = self.part(from, row)?
            {
                return Err(e);
            }
            if self.each.has_searched_enough() {
                self.unknown_from(row, rows, e);
                return Ok(());
            }
            if to - row == 1 {
                self.failed(row, e);
            } else {
                self.one_by_one(row, to.min(row + ROWS_TOGETHER))?;
            }
            from = to.min(row + ROWS_TOGETHER);
        }
        Ok(())
    }

    fn one_by_one(&mut self, from: usize, to: usize) -> Result<()> {
        for row in from..to {
            if let Err((e, _)) = self.part(row, row + 1)? {
                self.failed(row, e);
            }
        }
        Ok(())
    }

    /// Of a module nobody knows: halves of what fails are asked until it is one row.
    fn by_halves(&mut self, rows: usize) -> Result<()> {
        // Ranges that are open, the first one last.
        let mut open = vec![(0, rows)];
        while let Some((from, to)) = open.pop() {
            match self.part(from, to)? {
                Ok(()) => {}
                Err((e, _)) if to - from == 1 => self.failed(from, e),
                Err(_) => {
                    let middle = from + (to - from) / 2;
                    open.extend([(middle, to), (from, middle)]);
                }
            }
            let is_enough = |wrong: &&mut Wrong| wrong.rows.len() == MOST_WRONG;
            if let Some(wrong) = self.wrong.as_mut().filter(is_enough) {
                let first = wrong.first.clone();
                self.unknown_from(to, rows, first);
                break;
            }
        }
        Ok(())
    }

    /// Nothing is known from a row on, as others failed before it.
    fn unknown_from(&mut self, from: usize, rows: usize, e: Error) {
        let none = vec![0; (rows - from) * self.out.element.size()];
        self.out.extend(&none, Some(&vec![0; rows - from]), 0);
        let none_before = || Wrong { rows: Vec::new(), first: e, unknown_from: usize::MAX };
        self.wrong.get_or_insert_with(none_before).unknown_from = from;
    }

    /// Appends the values of some of the rows, or tells what one of them failed with.
    fn part(&mut self, from: usize, to: usize) -> Result<std::result::Result<(), Failed>> {
        let mut run = self.each.take()?;
        let inputs = &self.each.function.0.inputs;
        let cut = self.columns.iter().zip(inputs).map(|(c, i)| c.cut(i.element.size(), from, to));
        let begun = Instant::now();
        match run.each(&cut.collect::<Vec<_>>(), self.cancel) {
            Err(e) if run.is_out_of_time() || is_of_all(&e) => Err(e),
            Err(e) => {
                let took = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
                self.each.searching.fetch_add(took, Ordering::Relaxed);
                let reached = run.row_reached();
                if self.each.function.0.language == Language::C {
                    // It keeps nothing from call to call.
                    self.each.lock().runs.push(run);
                }
                Ok(Err((e, reached)))
            }
            Ok(values) => {
                self.each.lock().runs.push(run);
                self.out.extend(&values.data, values.valid.as_deref(), 0);
                Ok(Ok(()))
            }
        }
    }

    fn failed(&mut self, row: usize, e: Error) {
        self.out.extend(&vec![0; self.out.element.size()], Some(&[0]), 0);
        match &mut self.wrong {
            Some(wrong) => wrong.rows.push(row),
            none => *none = Some(Wrong { rows: vec![row], first: e, unknown_from: usize::MAX }),
        }
    }
}

/// Whether an error is not of one row alone.
fn is_of_all(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Cancelled | ErrorKind::MemoryLimit | ErrorKind::Internal)
}
