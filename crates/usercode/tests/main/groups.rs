//! Reductions of many groups: states that are put in and taken out.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sieva_types::ErrorKind;
use sieva_usercode::{Code, Element, Function, Limits, Reduce, Slice, States};

use crate::given::{bytes, doubles};
use crate::modules::module;

const LAST: &str = "double sum; long n; double last[2] = {-1, 7};
void init() { n = 100; }
void step(double x) { sum += x; n++; last[0] = last[1]; last[1] = x; }
double finish() { return sum + 1000 * n + 1e6 * last[0]; }";

fn compiled(code: Code<'_>) -> Function {
    Function::compile(code, &doubles()).unwrap()
}

fn begun(code: &str, limits: &Limits) -> States {
    Reduce::new(&compiled(Code::C(code)), limits).unwrap().begin(1 << 24, &Arc::default()).unwrap()
}

fn push(states: &mut States, group: usize, values: &[f64]) -> sieva_types::Result<()> {
    states.push(group, &[Slice { data: &bytes(values), valid: None }])
}

fn value(states: &mut States, group: usize) -> f64 {
    let data = states.value(group).unwrap().data;
    f64::from_le_bytes(data.try_into().unwrap())
}

#[test]
fn each_group_has_a_state_of_its_own() {
    let mut states = begun(LAST, &Limits::default());
    states.resize(2).unwrap();
    push(&mut states, 0, &[1.0, 2.0]).unwrap();
    push(&mut states, 1, &[5.0]).unwrap();
    states.resize(300).unwrap();
    push(&mut states, 299, &[]).unwrap();
    push(&mut states, 0, &[4.0]).unwrap();
    let expected = |sum: f64, n: f64, last: f64| sum + 1000.0 * n + 1e6 * last;
    assert_eq!(value(&mut states, 0), expected(7.0, 103.0, 2.0));
    assert_eq!(value(&mut states, 1), expected(5.0, 101.0, 7.0));
    assert_eq!(value(&mut states, 299), expected(0.0, 100.0, -1.0));
    assert_eq!(value(&mut states, 17), expected(0.0, 100.0, -1.0));
    assert_eq!(states.growth(3), 3 * 32);
    assert!(states.memory_bytes() >= 300 * 32);
    assert_eq!(states.value(300).unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn rows_of_which_a_value_is_missing_are_left_out() {
    let mut states = begun(LAST, &Limits::default());
    states.resize(1).unwrap();
    let data = bytes(&[1.0, 2.0, 4.0]);
    states.push(0, &[Slice { data: &data, valid: Some(&[1, 0, 1]) }]).unwrap();
    assert_eq!(value(&mut states, 0), 5.0 + 102_000.0 + 1e6);
}

#[test]
fn what_is_no_reduction_is_refused() {
    let streamed = "double sum = 0; for (int i = 0; i < input.count; i++) sum += input.vals[i]; return sum;";
    for text in ["double map(double x) { return x; }", streamed] {
        let e = Reduce::new(&compiled(Code::C(text)), &Limits::default()).err().unwrap();
        assert_eq!((e.kind(), e.message()), (ErrorKind::Unsupported, "the code is no reduction"));
    }
    let is_reduction = |text| Code::C(text).is_reduction().unwrap();
    assert!(is_reduction(LAST) && !is_reduction("double map(double x) { return x; }"));
    assert!(!is_reduction("return input.count;"));
}

#[test]
fn what_fails_ends_it_and_time_is_of_each_call() {
    let divides = "int n; void step(double x) { n = 1 / (x > 0); } int finish() { return n; }";
    let mut states = begun(divides, &Limits::default());
    states.resize(1).unwrap();
    let e = push(&mut states, 0, &[1.0, -1.0]).unwrap_err();
    assert!(e.message().contains("divided by zero"), "{e}");
    let limits = Limits { time: Duration::from_millis(30), ..Limits::default() };
    let endless = "int n; void step(double x) { for (;;) n++; } int finish() { return n; }";
    let mut states = begun(endless, &limits);
    states.resize(1).unwrap();
    let e = push(&mut states, 0, &[1.0]).unwrap_err();
    assert!(e.message().contains("ran for more than 0.03 s"), "{e}");
    let of = compiled(Code::C(endless));
    let stopped = Arc::new(AtomicBool::new(false));
    let mut states = Reduce::new(&of, &Limits::default()).unwrap().begin(0, &stopped).unwrap();
    states.resize(1).unwrap();
    stopped.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(push(&mut states, 0, &[1.0]).unwrap_err().kind(), ErrorKind::Cancelled);
}

/// Counts rows at address 64, and gives two values where there are more than two.
const COUNTS: &str = r#"(func (export "sieva_init"))
  (func (export "sieva_step") (param i32 i32)
    (i64.store (i32.const 64)
      (i64.add (i64.load (i32.const 64)) (i64.extend_i32_u (i32.load offset=12 (local.get 0))))))
  (func (export "sieva_finish") (result i32)
    (i32.store (i32.const 16) (i32.const 7))
    (i32.store (i32.const 20) (i32.const 64))
    (i32.store (i32.const 24) (i32.const 0))
    (i32.store (i32.const 28)
      (select (i32.const 2) (i32.const 1) (i64.gt_u (i64.load (i32.const 64)) (i64.const 2))))
    (i32.const 16))"#;

#[test]
fn a_module_has_an_instance_for_each_group() {
    let module = module(COUNTS);
    let code = Code::Wasm(&module);
    assert!(code.is_reduction().unwrap());
    let reduce = Reduce::new(&compiled(code), &Limits::default()).unwrap();
    assert_eq!(reduce.element(), Element::I64);
    let mut states = reduce.begin(1 << 24, &Arc::default()).unwrap();
    states.resize(3).unwrap();
    push(&mut states, 0, &[1.0]).unwrap();
    push(&mut states, 2, &[1.0, 2.0]).unwrap();
    push(&mut states, 0, &[1.0]).unwrap();
    let counts: Vec<Vec<u8>> = (0..3).map(|g| states.value(g).unwrap().data).collect();
    assert_eq!(counts, [2_i64, 0, 2].map(|n| n.to_le_bytes().to_vec()));
    assert!(states.memory_bytes() >= 3 << 16);
    push(&mut states, 2, &[3.0]).unwrap();
    let e = states.value(2).unwrap_err();
    assert_eq!(e.message(), "2 values come out of the reduction, and one is expected");
    let held = states.memory_bytes();
    assert_eq!(states.resize(257).unwrap_err().kind(), ErrorKind::Unsupported);
    let mut small = reduce.begin(held - 1, &Arc::default()).unwrap();
    small.resize(3).unwrap();
    let e = push(&mut small, 0, &[1.0]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::MemoryLimit);
}
