//! Rows whose value cannot be represented, such as a sum of integers beyond 64 bits.
//!
//! Such a row is neither there nor missing. It becomes an error only where the answer depends on it, so that the
//! outcome of a query does not depend on what was looked at first: `x OR y` is true where one of them is,
//! whatever became of the other; `if` looks at the branch that it takes, `coalesce` at nothing behind the first
//! value that is there. All other operations hand a failed operand on, unless another one is missing.

use super::{Shape, Vector};
use crate::mask::Mask;
use sieva_types::{Error, Result};

/// Which rows of a vector failed, at least one of them.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    rows: Vec<bool>,
    /// The error of the first of them.
    first: Error,
}

impl Failed {
    /// The rows for which `error` gives one; `None` if there is none.
    pub(crate) fn find(len: usize, mut error: impl FnMut(usize) -> Option<Error>) -> Option<Self> {
        let mut failed: Option<Self> = None;
        for i in 0..len {
            if let Some(first) = error(i) {
                failed.get_or_insert_with(|| Self { rows: vec![false; len], first }).rows[i] = true;
            }
        }
        failed
    }

    pub(super) fn filtered(&self, keep: &[bool]) -> Option<Self> {
        let rows = super::filtered(&self.rows, keep);
        rows.contains(&true).then(|| Self { rows, first: self.first.clone() })
    }

    pub(super) fn repeated(self, rows: usize) -> Option<Self> {
        let rows: Vec<bool> = self.rows.into_iter().cycle().take(rows).collect();
        rows.contains(&true).then_some(Self { rows, first: self.first })
    }
}

impl Vector {
    /// Whether no value of a row could be represented.
    pub(crate) fn is_failed(&self, row: usize) -> bool {
        let i = if self.is_constant() { 0 } else { row };
        self.failed.as_ref().is_some_and(|f| f.rows.get(i) == Some(&true))
    }

    /// Whether the value of a row is NULL.
    pub(super) fn is_missing(&self, row: usize) -> bool {
        !self.is_valid(row) && !self.is_failed(row)
    }

    /// The rows that failed, one for a constant; `None` if none did.
    pub(crate) fn failed_rows(&self) -> Option<&[bool]> {
        self.failed.as_ref().map(|f| &f.rows[..])
    }

    /// The vector, of which every row is needed.
    ///
    /// # Errors
    /// That of the first row whose value could not be represented.
    pub fn sound(self) -> Result<Self> {
        match self.failed {
            Some(failed) => Err(failed.first),
            None => Ok(self),
        }
    }

    /// The vector, of which no row that failed is needed.
    pub(crate) fn settled(self) -> Self {
        Self { failed: None, ..self }
    }

    /// The same with rows that failed, besides those that have.
    pub(crate) fn failing(mut self, failed: Option<Failed>) -> Self {
        let Some(mut failed) = failed else { return self };
        let n = self.len();
        self.valid.get_or_insert_with(|| Mask::ones(n)).and_not(&Mask::from(&failed.rows[..]));
        if let Some(known) = self.failed.take() {
            let first = |rows: &[bool]| rows.iter().position(|&f| f);
            if first(&known.rows) < first(&failed.rows) {
                failed.first = known.first;
            }
            failed.rows.iter_mut().zip(&known.rows).for_each(|(f, k)| *f |= k);
        }
        self.failed = Some(Box::new(failed));
        self
    }

    /// The same with the rows failed of which an operand did, unless another operand is missing there.
    pub(crate) fn after(self, operands: &[&Vector]) -> Self {
        if operands.iter().all(|o| o.failed.is_none()) {
            return self;
        }
        let failed = Failed::find(self.len(), |i| {
            if operands.iter().any(|o| o.is_missing(i)) {
                return None;
            }
            error_of(operands, i)
        });
        self.failing(failed)
    }

    /// Rows of a shape that fail where `by` names the operand that failed.
    pub(super) fn after_each<'a>(self, shape: Shape, by: impl Fn(usize) -> Option<&'a Vector>) -> Self {
        let failed = Failed::find(shape.len(), |i| by(i).and_then(|o| error_of(&[o], i)));
        self.failing(failed)
    }
}

/// The error of the first operand that failed in a row: exactly that of the row if it is the operand's first one.
fn error_of(operands: &[&Vector], row: usize) -> Option<Error> {
    let failed = operands.iter().find(|o| o.is_failed(row))?;
    failed.failed.as_ref().map(|f| f.first.clone())
}

#[cfg(test)]
mod tests {
    use super::super::{Function, Scalar, arithmetic, compare, logic, testing::*};
    use super::*;
    use crate::ast::{BinaryOp, CompareOp};
    use sieva_types::ErrorKind;

    /// 1, missing, and one that cannot be represented.
    fn one_missing_failed() -> Vector {
        let x = without(ints(&[0, 0, i64::MAX]), &[1]);
        arithmetic(BinaryOp::Add, &x, &constant(Scalar::I64(1))).unwrap()
    }

    /// `v` for a value, `-` for missing, `!` for failed.
    fn outcome(v: &Vector) -> String {
        let of = |i| match (v.is_valid(i), v.is_failed(i)) {
            (true, false) => 'v',
            (false, true) => '!',
            (false, false) => '-',
            (true, true) => '?',
        };
        (0..v.len()).map(of).collect()
    }

    fn call(name: &str, args: &[&Vector]) -> Vector {
        Function::from_name(name).unwrap().apply(args).unwrap()
    }

    #[test]
    fn the_first_row_that_failed_is_the_error() {
        let x = one_missing_failed();
        assert_eq!(outcome(&x), "v-!");
        let e = x.clone().sound().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Overflow);
        assert_eq!(e.message(), "9223372036854775807 + 1 is out of the range of its integer type");
        assert_eq!(x.filter(&[true, true, false]).unwrap().sound().unwrap(), without(ints(&[1, 0]), &[1]));
        assert!(x.filter(&[false, false, true]).unwrap().sound().is_err());
    }

    #[test]
    fn what_failed_is_handed_on_but_not_beside_what_is_missing() {
        let x = one_missing_failed();
        for y in [
            arithmetic(BinaryOp::Mul, &x, &constant(Scalar::I64(0))).unwrap(),
            arithmetic(BinaryOp::Div, &constant(Scalar::F64(2.0)), &x).unwrap(),
            compare(CompareOp::Gt, &x, &ints(&[5, 5, 5])).unwrap(),
            logic::not(&compare(CompareOp::Gt, &x, &ints(&[5, 5, 5])).unwrap()).unwrap(),
            call("sqrt", &[&x]),
            call("abs", &[&x]),
            call("float64", &[&x]),
        ] {
            assert_eq!(outcome(&y), "v-!");
        }
        let missing = without(ints(&[1, 1, 1]), &[2]);
        assert_eq!(outcome(&arithmetic(BinaryOp::Add, &x, &missing).unwrap()), "v--");
        assert_eq!(outcome(&logic::is_null(&x)), "vv!");
        assert_eq!(outcome(&call("least", &[&x, &constant(Scalar::I64(7))])), "vv!");
        assert_eq!(outcome(&call("nullif", &[&x, &constant(Scalar::I64(7))])), "v-!");
        assert_eq!(outcome(&call("nullif", &[&missing, &x])), "-v-");
    }

    #[test]
    fn guards_look_at_what_they_take() {
        let (x, seven) = (one_missing_failed(), constant(Scalar::I64(7)));
        let is_last = bools(&[Some(false), Some(false), Some(true)]);
        assert_eq!(call("if", &[&is_last, &seven, &x]), without(ints(&[1, 0, 7]), &[1]));
        assert_eq!(outcome(&call("if", &[&is_last, &seven, &x])), "v-v");
        assert_eq!(outcome(&call("if", &[&is_last, &x, &seven])), "vv!");
        let condition = compare(CompareOp::Gt, &x, &seven).unwrap();
        assert_eq!(outcome(&call("if", &[&condition, &seven, &seven])), "vv!");
        assert_eq!(outcome(&call("coalesce", &[&x, &seven])), "vv!");
        assert_eq!(outcome(&call("coalesce", &[&ints(&[1, 1, 1]), &x])), "vvv");
        // Unsigned numbers beside signed ones count only where they are taken.
        let large = unsigned(&[1, 2, u64::MAX]);
        assert_eq!(outcome(&call("if", &[&is_last, &seven, &large])), "vvv");
        assert_eq!(outcome(&call("coalesce", &[&large, &seven])), "vv!");
        assert_eq!(outcome(&call("greatest", &[&large, &seven])), "vv!");
    }

    #[test]
    fn one_side_decides_whatever_became_of_the_other() {
        let e = compare(CompareOp::Gt, &one_missing_failed(), &constant(Scalar::I64(7))).unwrap();
        let e = e.filter(&[false, false, true]).unwrap();
        for (other, and, or) in [(Some(true), "!", "v"), (Some(false), "v", "!"), (None, "!", "!")] {
            let other = bools(&[other]);
            for (a, b) in [(&e, &other), (&other, &e)] {
                assert_eq!(outcome(&logic::and(a, b).unwrap()), and);
                assert_eq!(outcome(&logic::or(a, b).unwrap()), or);
            }
        }
        assert_eq!(outcome(&logic::or(&e, &e).unwrap()), "!");
    }
}
