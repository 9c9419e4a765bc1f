//! A reduction that came as code, for arguments of known types: an aggregate.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_plan::written_name;
use sieva_types::{Error, ErrorKind, Result};
use sieva_usercode::{Element, Function, Limits, Reduce, Slice, States};

use super::called::{ROWS, widest};
use super::columns::{Argument, Collected};
use crate::values::{ValueType, Vector};

/// Groups between which somebody looks whether the query was stopped.
const GROUPS: usize = 1 << 10;

/// An aggregate of values. Rows of which an argument is missing are left out; each group's others come in their order.
pub struct Reducer {
    identity: Arc<str>,
    reduce: Reduce,
    elements: Vec<Element>,
    result: ValueType,
}

impl fmt::Debug for Reducer {
    // What queries are told apart by.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.identity, self.elements)
    }
}

impl Reducer {
    /// # Errors
    /// `unsupported` for code that is no reduction, and what it fails of without a row.
    pub(super) fn new(
        identity: Arc<str>,
        function: &Function,
        elements: Vec<Element>,
        limits: &Limits,
    ) -> Result<Self> {
        let reduce = Reduce::new(function, limits)?;
        let result = widest(reduce.element());
        Ok(Self { identity, reduce, elements, result })
    }

    /// Its name in plans.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The type of its value.
    pub fn result_type(&self) -> ValueType {
        self.result
    }

    /// Begins it, of no groups, for which there is so much room. `cancel` ends it from outside.
    ///
    /// # Errors
    /// What the code fails of without a row.
    pub fn begin(&self, room: u64, cancel: &Arc<AtomicBool>) -> Result<Reduction> {
        let states = self.reduce.begin(room, cancel).map_err(|e| told(&self.identity, e))?;
        let arguments = self.elements.iter().map(|&e| Argument::new(e)).collect();
        let (identity, result) = (Arc::clone(&self.identity), self.result);
        Ok(Reduction { identity, result, states, arguments, cancel: Arc::clone(cancel) })
    }
}

/// Which rows belong to which groups.
pub enum Rows<'r> {
    /// All to this one.
    One(usize),
    /// Those of a range to the group of its number; ranges follow one another.
    Ranges(&'r [(usize, Range<usize>)]),
}

/// A reduction of groups of rows, under way. After an error nothing more may be asked of it.
pub struct Reduction {
    identity: Arc<str>,
    result: ValueType,
    states: States,
    /// The arguments of the rows at hand.
    arguments: Vec<Argument>,
    cancel: Arc<AtomicBool>,
}

impl Reduction {
    /// Bytes that its groups take once there are so many.
    pub fn bytes_of(&self, groups: usize) -> u64 {
        let more = groups.saturating_sub(self.states.len());
        self.states.memory_bytes().saturating_add(self.states.growth(more))
    }

    /// Makes states of no rows, up to so many in all.
    ///
    /// # Errors
    /// `unsupported` where there may not be so many; what the code fails of without a row.
    pub fn resize(&mut self, groups: usize) -> Result<()> {
        self.states.resize(groups).map_err(|e| told(&self.identity, e))
    }

    /// Takes the next `n` rows of each group in.
    ///
    /// # Errors
    /// `arithmetic-overflow` where the code fails; `cancelled`, `memory-limit`.
    pub fn push(&mut self, n: usize, rows: &Rows<'_>, arguments: &[Vector]) -> Result<()> {
        for (buffer, argument) in self.arguments.iter_mut().zip(arguments) {
            buffer.fill(argument, 0, n)?;
        }
        match rows {
            Rows::One(group) => self.part(*group, 0..n),
            Rows::Ranges(ranges) => {
                ranges.iter().try_for_each(|(group, range)| self.part(*group, range.clone()))
            }
        }
    }

    fn part(&mut self, group: usize, rows: Range<usize>) -> Result<()> {
        for from in rows.clone().step_by(ROWS) {
            let to = rows.end.min(from + ROWS);
            let slices: Vec<Slice<'_>> = self.arguments.iter().map(|a| a.part(from..to)).collect();
            self.states.push(group, &slices).map_err(|e| told(&self.identity, of_rows(e)))?;
        }
        Ok(())
    }

    /// The values of all groups.
    ///
    /// # Errors
    /// As [`Reduction::push`].
    pub fn finish(mut self) -> Result<Vector> {
        let mut collected = Collected::new(self.result, self.states.len());
        for group in 0..self.states.len() {
            if group.is_multiple_of(GROUPS) {
                crate::exec::check(&self.cancel)?;
            }
            let value = self.states.value(group).map_err(|e| told(&self.identity, of_rows(e)))?;
            collected.extend(&value)?;
        }
        let (values, valid) = collected.finish();
        Vector::new(values, valid)
    }
}

/// What code fails of on its rows: a value that there is not, as of a function of each row.
fn of_rows(e: Error) -> Error {
    if e.kind() != ErrorKind::InvalidValue {
        return e;
    }
    let failed = Error::new(ErrorKind::Overflow, e.message());
    match e.hint_text() {
        Some(hint) => failed.hint(hint),
        None => failed,
    }
}

/// What went wrong, with the name of the function.
fn told(identity: &str, e: Error) -> Error {
    e.at(format!("{}()", written_name(identity)))
}

#[cfg(test)]
mod tests {
    use super::super::Functions;
    use super::*;
    use crate::values::Scalar;
    use crate::values::testing::*;

    const LAST_TIMES_COUNT: &str = "double last; long n; void step(double x, long k) { last = x + k; n++; }
        double finish() { return last * n; }";

    fn begun(code: &str, elements: &[Element]) -> Reduction {
        let given = Functions::new([("f", code.as_bytes().to_vec())]).unwrap();
        let reducer = given.reducer("f", || Ok(elements.to_vec())).unwrap().unwrap();
        reducer.begin(1 << 20, &Arc::default()).unwrap()
    }

    fn finished(reduction: Reduction) -> Vec<Scalar> {
        let values = reduction.finish().unwrap();
        (0..values.len()).map(|i| values.scalar(i)).collect()
    }

    #[test]
    fn rows_go_into_their_groups_in_order_and_those_with_a_missing_value_nowhere() {
        let mut of = begun(LAST_TIMES_COUNT, &[Element::F64, Element::I64]);
        of.resize(3).unwrap();
        let x = floats(&[1.0, f64::NAN, 3.0, -0.0, f64::INFINITY]);
        let k = without(ints(&[1, 2, 3, 4, 5]), &[3]);
        of.push(5, &Rows::Ranges(&[(2, 0..3), (0, 3..5)]), &[x, k]).unwrap();
        let (x, k) = (floats(&[7.0]), constant(Scalar::I64(1)));
        of.push(1, &Rows::One(2), &[x, k]).unwrap();
        let expected = [f64::INFINITY, 0.0, 8.0 * 3.0].map(Scalar::F64);
        assert_eq!(finished(of), expected);
    }

    #[test]
    fn values_come_in_the_widest_type_of_their_kind_and_a_nan_is_missing() {
        let of = |finish: &str| {
            let code = format!("int n; void step(double x) {{ n++; }} {finish}");
            let mut of = begun(&code, &[Element::F64]);
            of.resize(1).unwrap();
            of.push(2, &Rows::One(0), &[floats(&[1.0, 2.0])]).unwrap();
            finished(of).remove(0)
        };
        assert_eq!(of("short finish() { return -n; }"), Scalar::I64(-2));
        assert_eq!(of("unsigned long finish() { return -1; }"), Scalar::U64(u64::MAX));
        assert_eq!(of("float finish() { return n / 4.0; }"), Scalar::F64(0.5));
        assert_eq!(of("double finish() { return NAN; }"), Scalar::Null);
    }

    #[test]
    fn what_fails_is_told_with_the_name() {
        let mut of = begun(
            "int n; void step(double x) { n = 1 / (x > 0); } int finish() { return 1 / n; }",
            &[Element::F64],
        );
        of.resize(2).unwrap();
        of.push(1, &Rows::One(0), &[floats(&[1.0])]).unwrap();
        let e = of.push(1, &Rows::One(1), &[floats(&[-1.0])]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Overflow);
        assert!(e.message().contains("f()") && e.message().contains("divided by zero"), "{e}");
        let mut of =
            begun("int n; void step(double x) { n++; } int finish() { return 1 / n; }", &[Element::F64]);
        of.resize(1).unwrap();
        assert_eq!(of.finish().unwrap_err().kind(), ErrorKind::Overflow);
    }
}
