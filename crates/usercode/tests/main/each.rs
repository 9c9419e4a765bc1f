//! Functions of each row, asked of pieces in any order.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sieva_types::ErrorKind;
use sieva_usercode::{Code, Each, Element, Function, Limits, Slice};

use crate::given::{bytes, doubles, of_bytes};
use crate::modules::module;

fn each(code: Code<'_>) -> Each {
    Each::new(&Function::compile(code, &doubles()).unwrap(), &Limits::default()).unwrap()
}

/// Rows in which every so-manieth value is negative.
fn some_negative(rows: usize, every: usize) -> Vec<f64> {
    (0..rows).map(|i| if i % every == every - 1 { -1.0 } else { i as f64 }).collect()
}

/// Of a function that fails for what is negative: the values, and the rows for which it does.
fn asked(of: &Each, values: &[f64]) -> (Vec<f64>, Vec<usize>, usize) {
    let data = bytes(values);
    let (out, wrong) = of.values(&[Slice { data: &data, valid: None }], &Arc::default()).unwrap();
    let rows = wrong.as_ref().map(|w| w.rows.clone()).unwrap_or_default();
    let valid = out.valid.unwrap_or_else(|| vec![1; values.len()]);
    let unknown = wrong.map_or(values.len(), |w| w.unknown_from.min(values.len()));
    for (row, valid) in valid.iter().enumerate() {
        assert_eq!(*valid == 0, rows.contains(&row) || row >= unknown, "{row}");
    }
    (of_bytes(&out.data), rows, unknown)
}

#[test]
fn rows_of_a_text_fail_by_themselves() {
    let of = each(Code::C("double map(double x) { int a[3]; a[x < 0 ? 3 : 2] = 1; return x + a[2]; }"));
    for (rows, every) in [(20_000, 997), (3000, 1), (3000, 2), (513, 512), (9, 8), (1, 1), (100, 1000)] {
        let values = some_negative(rows, every);
        let expected: Vec<f64> = values.iter().map(|x| if *x < 0.0 { 0.0 } else { x + 1.0 }).collect();
        let failed: Vec<usize> = (0..rows).filter(|i| values[*i] < 0.0).collect();
        assert_eq!(asked(&of, &values), (expected, failed, rows), "{rows} rows, every {every}");
    }
    // A filter says of each row whether it stays.
    let of = each(Code::C("int filter(double x) { return x < 0 ? 1 / (int)(x + 1) : x > 3; }"));
    assert_eq!(of.element(), Element::U8);
    let data = bytes(&[1.0, -1.0, 5.0]);
    let (out, wrong) = of.values(&[Slice { data: &data, valid: None }], &Arc::default()).unwrap();
    assert_eq!((out.data, out.valid), (vec![0, 0, 1], Some(vec![1, 0, 1])));
    let wrong = wrong.unwrap();
    assert_eq!(wrong.rows, [1]);
    assert_eq!(wrong.first.message(), "line 1, column 41: an integer is divided by zero");
}

#[test]
fn looking_for_rows_that_fail_ends_with_the_time_and_those_behind_count_as_failed() {
    let text = "int deep(int n) { return deep(n + 1) + 1; }
        double map(double x) { return x < 0 ? deep(0) : x; }";
    let function = Function::compile(Code::C(text), &doubles()).unwrap();
    let limits = Limits { time: Duration::from_millis(50), ..Limits::default() };
    let of = Each::new(&function, &limits).unwrap();
    let values = some_negative(50_000, 2);
    let (out, _, unknown) = asked(&of, &values);
    // The first that is not known is one that fails.
    assert!(unknown < values.len() && values[unknown] < 0.0);
    let expected = values.iter().take(unknown).map(|x| x.max(0.0));
    assert!(expected.eq(out.iter().take(unknown).copied()));
    // Of what is asked next only what comes before the first one is known.
    assert_eq!(asked(&of, &values), (vec![0.0; values.len()], vec![], 1));
}

#[test]
fn rows_of_a_module_are_found_by_halves_up_to_a_number() {
    let fails = module(
        r#"(func (export "sieva_map") (param i32 i32) (result i32) (local $at i32) (local $n i32)
            (local.set $at (i32.load offset=4 (local.get 0)))
            (local.set $n (i32.load offset=12 (local.get 0)))
            (block (loop
                (br_if 1 (i32.eqz (local.get $n)))
                (if (f64.lt (f64.load (local.get $at)) (f64.const 0)) (then unreachable))
                (local.set $at (i32.add (local.get $at) (i32.const 8)))
                (local.set $n (i32.sub (local.get $n) (i32.const 1)))
                (br 0)))
            (local.get 0))"#,
    );
    let of = each(Code::Wasm(&fails));
    let values = some_negative(20_000, 997);
    let expected: Vec<f64> = values.iter().map(|x| x.max(0.0)).collect();
    let failed: Vec<usize> = (0..values.len()).filter(|i| values[*i] < 0.0).collect();
    assert_eq!(asked(&of, &values), (expected, failed, values.len()));
    let (out, rows, unknown) = asked(&of, &some_negative(2000, 2));
    assert_eq!((rows.len(), unknown, out.len()), (256, 512, 2000));
    assert_eq!(out[510..514], [510.0, 0.0, 0.0, 0.0]);
}

#[test]
fn what_is_no_function_of_each_row_is_refused_and_others_end_when_they_are_told() {
    let function = Function::compile(Code::C("return input.count;"), &doubles()).unwrap();
    let e = Each::new(&function, &Limits::default()).err().unwrap();
    assert_eq!((e.kind(), e.message()), (ErrorKind::Unsupported, "the code is no function of each row"));
    let of = each(Code::C("double map(double x) { while (1) x++; return x; }"));
    let data = bytes(&[1.0]);
    let stopped = Arc::new(AtomicBool::new(true));
    let e = of.values(&[Slice { data: &data, valid: None }], &stopped).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Cancelled);
}
