//! A function that came as code, for arguments of known types.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sieva_plan::written_name;
use sieva_types::{Error, ErrorKind, Result};
use sieva_usercode::{Each, Element, Function, Limits, Slice, Wrong};

use super::columns::{Argument, Collected};
use crate::values::{Failed, Shape, ValueType, Vector};

/// Rows that are handed over at once, each time with as much time: what is made of them stays in the processor's cache.
pub(super) const ROWS: usize = 1 << 14;

/// The widest type of the kind of one that code gives.
pub(super) fn widest(element: Element) -> ValueType {
    match element {
        Element::F32 | Element::F64 => ValueType::F64,
        Element::U64 => ValueType::U64,
        _ => ValueType::I64,
    }
}

/// A function of values. Its result is missing where an argument is; a row for which it fails is one whose value cannot be
/// represented.
pub struct Called {
    identity: Arc<str>,
    each: Each,
    elements: Vec<Element>,
    result: ValueType,
}

impl fmt::Debug for Called {
    // What queries are told apart by.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {:?}", self.identity, self.elements)
    }
}

impl PartialEq for Called {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity && self.elements == other.elements
    }
}

impl Called {
    /// # Errors
    /// `unsupported` for code that is no function of each row, and what it fails of without a row.
    pub(super) fn new(
        identity: Arc<str>,
        function: &Function,
        elements: Vec<Element>,
        limits: &Limits,
    ) -> Result<Self> {
        let each = Each::new(function, limits)?;
        let result = if function.selects() { ValueType::Bool } else { widest(each.element()) };
        Ok(Self { identity, each, elements, result })
    }

    /// Its name in plans.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// The type of its values.
    pub fn result_type(&self) -> ValueType {
        self.result
    }

    /// Its values for these arguments, row by row. `cancel` ends it from outside.
    ///
    /// # Errors
    /// `cancelled`, `memory-limit`, and `invalid-value` where some rows take longer than they may. Rows for which it fails
    /// do so with `arithmetic-overflow`: see [`Vector::sound`].
    pub fn apply(&self, arguments: &[&Vector], cancel: &Arc<AtomicBool>) -> Result<Vector> {
        let shape = Shape::common(arguments)?;
        let rows = shape.len();
        let mut buffers: Vec<Argument> = self.elements.iter().map(|&e| Argument::new(e)).collect();
        let mut collected = Collected::new(self.result, rows);
        let mut failed = FailedRows { rows: Vec::new(), first: None, unknown: None };
        for from in (0..rows).step_by(ROWS) {
            let to = rows.min(from + ROWS);
            for (buffer, argument) in buffers.iter_mut().zip(arguments) {
                buffer.fill(argument, from, to)?;
            }
            let slices: Vec<Slice<'_>> = buffers.iter().map(Argument::slice).collect();
            let (values, wrong) = self.each.values(&slices, cancel).map_err(|e| self.told(&e, ""))?;
            collected.extend(&values)?;
            if let Some(wrong) = wrong {
                self.note(wrong, from, to, arguments, &mut failed);
            }
            if failed.unknown.is_some() {
                collected.missing(rows - to);
                break;
            }
        }
        let failed = failed.first.map(|e| {
            let is_missing = |i: usize| arguments.iter().any(|a| !a.is_valid(i));
            let mut known = failed.rows.into_iter().peekable();
            Failed::find(rows, |i| {
                let is_unknown = failed.unknown.is_some_and(|first| i >= first) && !is_missing(i);
                (known.next_if_eq(&i).is_some() || is_unknown).then(|| e.clone())
            })
        });
        let (values, valid) = collected.finish();
        Ok(Vector::from_parts(values, valid, shape).failing(failed.flatten()).after(arguments))
    }

    /// Notes for which of the rows `from..to` it failed.
    fn note(&self, wrong: Wrong, from: usize, to: usize, arguments: &[&Vector], failed: &mut FailedRows) {
        failed.rows.extend(wrong.rows.iter().map(|row| from + row));
        let row = wrong.rows.first().copied().unwrap_or(wrong.unknown_from);
        if failed.first.is_none() && row < to - from {
            let shown: Vec<String> = arguments.iter().map(|a| a.scalar(from + row).to_string()).collect();
            failed.first = Some(self.told(&wrong.first, &shown.join(", ")));
        }
        if wrong.unknown_from < to - from {
            failed.unknown = Some(from + wrong.unknown_from);
        }
    }

    /// What went wrong, with the name of the function.
    fn told(&self, e: &Error, arguments: &str) -> Error {
        let of_a_row = !arguments.is_empty();
        let kind = if of_a_row { ErrorKind::Overflow } else { e.kind() };
        let name = written_name(&self.identity);
        let told = Error::new(kind, format!("{name}({arguments}): {}", e.message()));
        match e.hint_text() {
            Some(hint) => told.hint(hint),
            None => told,
        }
    }
}

/// Rows for which a function failed.
struct FailedRows {
    /// Ascending.
    rows: Vec<usize>,
    /// What the first of them failed of.
    first: Option<Error>,
    /// The row from which on nothing is known, as too many failed before it.
    unknown: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::super::Functions;
    use super::*;
    use crate::values::testing::*;
    use crate::values::{Scalar, Values};

    fn called(code: &str, elements: &[Element]) -> Called {
        let given = Functions::new([("f", code.as_bytes().to_vec())]).unwrap();
        given.called("f", || Ok(elements.to_vec())).unwrap().unwrap()
    }

    fn applied(code: &str, elements: &[Element], arguments: &[&Vector]) -> Vector {
        called(code, elements).apply(arguments, &Arc::default()).unwrap()
    }

    #[test]
    fn values_come_in_the_widest_type_of_their_kind() {
        let of = |code: &str| applied(code, &[Element::F64], &[&floats(&[1.5, -2.5])]);
        assert_eq!(of("double map(double x) { return -x; }"), floats(&[-1.5, 2.5]));
        assert_eq!(of("float map(double x) { return x / 3; }").scalar(0), Scalar::F64(f64::from(0.5_f32)));
        assert_eq!(of("char map(double x) { return (char)x; }"), ints(&[1, -2]));
        assert_eq!(of("unsigned char map(double x) { return x < 0; }"), ints(&[0, 1]));
        assert_eq!(of("short map(double x) { return -7; }"), ints(&[-7, -7]));
        assert_eq!(of("unsigned int map(double x) { return 4294967295u; }"), ints(&[4_294_967_295; 2]));
        let huge = of("unsigned long map(double x) { return 0xffffffffffffffff; }");
        assert_eq!(huge.values, Values::U64(vec![u64::MAX; 2]));
        assert_eq!(of("int filter(double x) { return x > 0; }"), bools(&[Some(true), Some(false)]));
    }

    #[test]
    fn missing_values_stay_missing_and_a_nan_is_one() {
        let x = floats(&[4.0, f64::NAN, -1.0, -0.0]);
        let root = applied("double map(double x) { return sqrt(x); }", &[Element::F64], &[&x]);
        let got: Vec<Scalar> = (0..4).map(|i| root.scalar(i)).collect();
        assert_eq!(got, [Scalar::F64(2.0), Scalar::Null, Scalar::Null, Scalar::F64(-0.0)]);
        let (n, both) = (without(ints(&[1, 2, 3, 4]), &[0]), "int filter(double x, long n) { return 1; }");
        let kept = applied(both, &[Element::F64, Element::I64], &[&x, &n]);
        assert_eq!(kept, bools(&[None, None, Some(true), Some(true)]));
        let null = constant(Scalar::Null);
        let of_null = applied("int map(int x) { return 1; }", &[Element::I8], &[&null]);
        assert_eq!((of_null.scalar(5), of_null.is_constant()), (Scalar::Null, true));
    }

    #[test]
    fn stored_types_are_seen_as_they_are() {
        for (element, values) in [
            (Element::I8, [-128, 127]),
            (Element::U8, [0, 255]),
            (Element::I16, [-32_768, 32_767]),
            (Element::U16, [0, 65_535]),
            (Element::I32, [i64::from(i32::MIN), i64::from(i32::MAX)]),
            (Element::U32, [0, i64::from(u32::MAX)]),
            (Element::I64, [i64::MIN, i64::MAX]),
        ] {
            assert_eq!(
                applied("long map(long x) { return x; }", &[element], &[&ints(&values)]),
                ints(&values)
            );
        }
        let single =
            applied("float map(float x) { return x; }", &[Element::F32], &[&floats(&[0.1_f32.into()])]);
        assert_eq!(single, floats(&[0.1_f32.into()]));
        let of_unsigned = applied(
            "unsigned long map(unsigned long x) { return x; }",
            &[Element::U64],
            &[&unsigned(&[u64::MAX])],
        );
        assert_eq!(of_unsigned, unsigned(&[u64::MAX]));
        assert_eq!(
            applied("int map(int x) { return 1 - x; }", &[Element::U8], &[&bools(&[Some(true), None])])
                .scalar(0),
            Scalar::I64(0)
        );
    }

    #[test]
    fn columns_longer_than_a_piece_and_constants_beside_them() {
        let n = 3 * ROWS + 5;
        let x: Vec<i64> = (0..n as i64).collect();
        let missing: Vec<usize> = (0..n).step_by(ROWS - 1).collect();
        let sum = applied(
            "long map(long x, int k) { return x + k; }",
            &[Element::I64, Element::I32],
            &[&without(ints(&x), &missing), &constant(Scalar::I64(7))],
        );
        let expected = without(ints(&x.iter().map(|x| x + 7).collect::<Vec<_>>()), &missing);
        assert_eq!((0..n).find(|i| sum.scalar(*i) != expected.scalar(*i)), None);
        assert_eq!(sum.len(), n);
        let none = applied("long map(long x) { return x; }", &[Element::I64], &[&ints(&[])]);
        assert_eq!(none, ints(&[]));
    }

    #[test]
    fn rows_fail_one_by_one() {
        let x: Vec<i64> = (0..2 * ROWS as i64).collect();
        let fails = |i: usize| i % 1000 == 3;
        let of =
            applied("long map(long x) { return 1000 / ((x - 3) % 1000); }", &[Element::I64], &[&ints(&x)]);
        for (i, &x) in x.iter().enumerate() {
            let expected = if fails(i) { Scalar::Null } else { Scalar::I64(1000 / ((x - 3) % 1000)) };
            assert_eq!((of.is_failed(i), of.scalar(i)), (fails(i), expected), "{i}");
        }
        let e = of.sound().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Overflow);
        assert_eq!(e.message(), "f(3): line 1, column 32: an integer is divided by zero");
    }

    #[test]
    fn where_most_rows_fail_the_others_have_their_values() {
        let x: Vec<i64> = (0..2 * ROWS as i64).collect();
        let some = without(ints(&x), &[300, 2 * ROWS - 1]);
        let of = applied("long map(long x) { return 7 / (x % 700 == 5); }", &[Element::I64], &[&some]);
        for (i, x) in x.iter().enumerate() {
            let (is_there, is_five) = (some.is_valid(i), x % 700 == 5);
            let expected = if is_there && is_five { Scalar::I64(7) } else { Scalar::Null };
            assert_eq!((of.scalar(i), of.is_failed(i)), (expected, is_there && !is_five), "{i}");
        }
        assert_eq!(of.len(), x.len());
    }

    #[test]
    fn what_takes_too_long_or_too_much_ends_the_query() {
        let mut given = Functions::new([
            ("endless", b"double map(double x) { for (;;) x += 1; return x; }".to_vec()),
            ("deep", b"int f(int n) { return f(n + 1) + 1; } int map(double x) { return f(0); }".to_vec()),
        ])
        .unwrap();
        given.limits.time = std::time::Duration::from_millis(30);
        let of = |name: &str| given.called(name, || Ok(vec![Element::F64])).unwrap().unwrap();
        let x = floats(&[1.0, 2.0]);
        let e = of("endless").apply(&[&x], &Arc::default()).unwrap_err();
        assert_eq!(e.message(), "endless(): the code ran for more than 0.03 s of the processor's time");
        let e = of("endless").apply(&[&x], &Arc::new(AtomicBool::new(true))).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Cancelled);
        let e = of("deep").apply(&[&x], &Arc::default()).unwrap().sound().unwrap_err();
        assert!(e.message().starts_with("deep(1.0): ") && e.message().ends_with("too deep"), "{e}");
        // Where looking for them takes too long all behind count as failed, in what is asked next, too.
        let (deep, many) = (of("deep"), floats(&vec![1.0; 4000]));
        for _ in 0..2 {
            let of = deep.apply(&[&many], &Arc::default()).unwrap();
            assert!((0..of.len()).all(|i| of.is_failed(i)));
        }
        let small = given.within(1 << 16).called("endless", || Ok(vec![Element::F64])).err().unwrap();
        assert_eq!(small.kind(), ErrorKind::MemoryLimit);
    }

    #[test]
    fn many_threads_ask_one_function() {
        let of = called("double map(double x) { return x * x; }", &[Element::F64]);
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let of = &of;
                scope.spawn(move || {
                    let x: Vec<f64> = (0..40_000).map(|i| f64::from(i) + f64::from(thread)).collect();
                    let expected: Vec<f64> = x.iter().map(|x| x * x).collect();
                    for _ in 0..5 {
                        assert_eq!(of.apply(&[&floats(&x)], &Arc::default()).unwrap(), floats(&expected));
                    }
                });
            }
        });
    }
}
