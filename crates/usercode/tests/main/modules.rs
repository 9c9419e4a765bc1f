//! Modules of others, by the columnar interface.

use std::time::Duration;

use sieva_types::{Error, ErrorKind};
use sieva_usercode::{Code, Element, Function, Input, Limits, Slice, Values};

use crate::given::{bytes, doubles, input, of_bytes, run};

/// A memory, an allocator that gives one part after the other, and what is added.
pub fn module(rest: &str) -> Vec<u8> {
    let text = format!(
        r#"(module
            (memory (export "memory") 1)
            (global $next (mut i32) (i32.const 1024))
            (func (export "sieva_alloc") (param $bytes i32) (result i32)
                (local $at i32)
                (local.set $at (global.get $next))
                (global.set $next
                    (i32.and (i32.add (i32.add (local.get $at) (local.get $bytes)) (i32.const 15)) (i32.const -16)))
                (block $fits
                    (loop $grow
                        (br_if $fits (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
                        (br_if $grow (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))
                        (return (i32.const 0))))
                (local.get $at))
            {rest})"#
    );
    wat::parse_str(&text).unwrap_or_else(|e| panic!("{e}"))
}

/// A result of so many values of a type, at an address.
fn describes(name: &str, params: &str, element: u32, data: &str, valid: &str, count: &str) -> String {
    format!(
        r#"(func (export "{name}") (param {params}) (result i32)
            (i32.store (i32.const 16) (i32.const {element}))
            (i32.store (i32.const 20) {data})
            (i32.store (i32.const 24) {valid})
            (i32.store (i32.const 28) {count})
            (i32.const 16))"#
    )
}

const DATA: &str = "(i32.load offset=4 (local.get 0))";
const VALID: &str = "(i32.load offset=8 (local.get 0))";
const COUNT: &str = "(i32.load offset=12 (local.get 0))";

fn of_doubles(module: &[u8], values: &[f64]) -> Result<Vec<Values>, Error> {
    let limits = Limits { time: Duration::from_millis(200), memory: 16 << 20, ..Limits::default() };
    run(Code::Wasm(module), &doubles(), &[Slice { data: &bytes(values), valid: None }], &limits)
}

fn refused(module: &[u8]) -> String {
    let e = of_doubles(module, &[1.0, 2.0]).unwrap_err();
    format!("{}: {e}", e.kind().code())
}

#[test]
fn a_module_gives_what_it_describes() {
    let same = module(&describes("sieva_map", "i32 i32", 10, DATA, VALID, COUNT));
    let values: Vec<f64> = (0..100_000).map(f64::from).collect();
    assert_eq!(of_bytes(&of_doubles(&same, &values).unwrap()[0].data), values);
    // The mask goes through, of each column its own.
    let data = bytes(&[1.0, 2.0, 3.0]);
    let slice = Slice { data: &data, valid: Some(&[1, 0, 1]) };
    let out = run(Code::Wasm(&same), &doubles(), &[slice], &Limits::default()).unwrap();
    assert_eq!((of_bytes(&out[0].data), &out[0].valid), (vec![1.0, 0.0, 3.0], &Some(vec![1, 0, 1])));
    let whole =
        module(&describes("sieva_proc", "i32 i32 i32", 6, "(i32.const 0)", "(i32.const 0)", "(i32.const 3)"));
    let out = of_doubles(&whole, &values).unwrap();
    assert_eq!((out[0].element, out[0].rows()), (Element::U32, 3));
}

#[test]
fn a_module_filters_and_reduces() {
    // Keeps rows by the lowest byte of each value.
    let bytes_of: Vec<Input> = vec![input("x", Element::U8)];
    let filter = module(&describes("sieva_filter", "i32 i32", 2, DATA, "(i32.const 0)", COUNT));
    let slice = Slice { data: &[0, 5, 0, 7], valid: None };
    let out = run(Code::Wasm(&filter), &bytes_of, &[slice], &Limits::default()).unwrap();
    assert_eq!(out[0].data, [5, 7]);
    let count = module(&format!(
        r#"(func (export "sieva_init") (i64.store (i32.const 64) (i64.const 0)))
           (func (export "sieva_step") (param i32 i32)
               (i64.store (i32.const 64) (i64.add (i64.load (i32.const 64)) (i64.extend_i32_u {COUNT}))))
           (func (export "sieva_merge") (param i32 i32)
               (i64.store (i32.const 64) (i64.add (i64.load (i32.const 64)) (i64.load (local.get 0)))))
           {} {}"#,
        describes("sieva_save", "", 2, "(i32.const 64)", "(i32.const 0)", "(i32.const 8)"),
        describes("sieva_finish", "", 7, "(i32.const 64)", "(i32.const 0)", "(i32.const 1)"),
    ));
    let function = Function::compile(Code::Wasm(&count), &bytes_of).unwrap();
    assert!(function.merges());
    let mut total = function.start(0, &Limits::default()).unwrap();
    total.push(&[slice]).unwrap();
    let mut other = function.start(0, &Limits::default()).unwrap();
    other.push(&[Slice { data: &[9; 70_000], valid: None }]).unwrap();
    total.merge(&other.save().unwrap()).unwrap();
    assert_eq!(total.finish(0).unwrap()[0].data, 70_004_i64.to_le_bytes());
}

#[test]
fn what_a_module_says_is_not_believed() {
    let map = |element, data: &str, valid: &str, count: &str| {
        refused(&module(&describes("sieva_map", "i32 i32", element, data, valid, count)))
    };
    let zero = "(i32.const 0)";
    assert_eq!(
        map(11, DATA, zero, COUNT),
        "invalid-value: the code gives values of type 11, which there is not"
    );
    assert_eq!(
        map(10, DATA, zero, "(i32.const -1)"),
        "invalid-value: the code gives 4294967295 values of type float64 outside of its memory"
    );
    assert_eq!(
        map(10, "(i32.const -8)", zero, COUNT),
        "invalid-value: the code gives 2 values of type float64 outside of its memory"
    );
    assert_eq!(
        map(10, DATA, "(i32.const -1)", COUNT),
        "invalid-value: the code gives 2 values of type float64 outside of its memory"
    );
    assert_eq!(map(10, DATA, zero, "(i32.const 3)"), "invalid-value: the code gives 3 values for 2 rows");
    let far = module(r#"(func (export "sieva_map") (param i32 i32) (result i32) (i32.const -4))"#);
    assert_eq!(
        refused(&far),
        "invalid-value: the code says that its result is described at 4294967292, outside of its memory"
    );
    let alloc = |body: &str| {
        let text = format!(
            r#"(module (memory (export "memory") 1) (func (export "sieva_alloc") (param i32) (result i32) {body})
               (func (export "sieva_map") (param i32 i32) (result i32) (i32.const 0)))"#
        );
        refused(&wat::parse_str(text).unwrap())
    };
    assert!(alloc("(i32.const 65520)").contains("'sieva_alloc' gave"));
    assert!(alloc("(i32.const 8)").contains("not aligned"));
    assert!(alloc("(i32.const 0)").starts_with("memory-limit: "));
    assert_eq!(alloc("unreachable"), "invalid-value: the code gave up (unreachable)");
}

#[test]
fn a_module_with_wrong_exports_is_refused() {
    let text = |rest: &str| refused(&wat::parse_str(format!("(module {rest})")).unwrap());
    assert_eq!(text(""), "type-mismatch: the module does not export its memory as 'memory'");
    assert_eq!(
        text(r#"(func (export "memory"))"#),
        "type-mismatch: 'memory' is exported, and is no memory of 32 bits"
    );
    assert_eq!(
        text(r#"(memory (export "memory") 1)"#),
        "type-mismatch: the module does not export 'sieva_alloc'"
    );
    assert_eq!(
        text(
            r#"(memory (export "memory") 1) (func (export "sieva_alloc") (param i64) (result i32) (i32.const 0))"#
        ),
        "type-mismatch: 'sieva_alloc' is exported, and is no function (i32) -> i32"
    );
    assert_eq!(
        text(r#"(memory (export "memory") 1) (global (export "sieva_alloc") i32 (i32.const 0))"#),
        "type-mismatch: 'sieva_alloc' is exported, and is no function (i32) -> i32"
    );
    assert_eq!(
        refused(&module("")),
        "type-mismatch: the module exports none of sieva_map, sieva_filter, sieva_proc, sieva_step"
    );
    assert_eq!(
        refused(&module(r#"(func (export "sieva_step") (param i32 i32))"#)),
        "type-mismatch: the module does not export 'sieva_init'"
    );
    assert_eq!(text(r#"(import "env" "now" (func))"#), "unsupported: the module imports 'env.now'");
}

#[test]
fn modules_that_mean_harm_end() {
    let map = |body: &str| {
        refused(&module(&format!(
            r#"(func (export "sieva_map") (param i32 i32) (result i32) {body} (i32.const 0))"#
        )))
    };
    let time = "invalid-value: the code ran for more than 0.2 s of the processor's time";
    assert_eq!(map("(loop $l (br $l))"), time);
    assert_eq!(map("(loop $l (memory.fill (i32.const 0) (i32.const 7) (i32.const 65536)) (br $l))"), time);
    let start = module(
        r#"(func $s (loop $l (br $l))) (start $s) (func (export "sieva_map") (param i32 i32) (result i32) (i32.const 0))"#,
    );
    assert_eq!(refused(&start), time);
    let deep = r#"(func $f (call $f)) (func (export "sieva_map") (param i32 i32) (result i32) (call $f) (i32.const 0))"#;
    assert_eq!(refused(&module(deep)), "invalid-value: functions call each other too deep");
    assert_eq!(
        map("(drop (i32.load (i32.const -4)))"),
        "invalid-value: the code reads or writes outside of its memory"
    );
    assert_eq!(
        map("(memory.fill (i32.const 0) (i32.const 7) (i32.const -1))"),
        "invalid-value: the code reads or writes outside of its memory"
    );
    assert_eq!(
        map("(drop (i32.div_u (i32.const 1) (i32.const 0)))"),
        "invalid-value: an integer is divided by zero"
    );
    assert_eq!(
        map("(if (i32.eq (memory.grow (i32.const 60000)) (i32.const -1)) (then unreachable))"),
        "memory-limit: the code needs more than the 16777216 bytes of memory that it may have"
    );
    let large = wat::parse_str(
        r#"(module (memory (export "memory") 30000)
        (func (export "sieva_alloc") (param i32) (result i32) (i32.const 0))
        (func (export "sieva_map") (param i32 i32) (result i32) (i32.const 0)))"#,
    )
    .unwrap();
    assert!(refused(&large).starts_with("memory-limit: "), "{}", refused(&large));
    let table = wat::parse_str(
        r#"(module (memory (export "memory") 1) (table 100000000 funcref)
        (func (export "sieva_alloc") (param i32) (result i32) (i32.const 0))
        (func (export "sieva_map") (param i32 i32) (result i32) (i32.const 0)))"#,
    )
    .unwrap();
    assert!(refused(&table).starts_with("invalid-value: the code cannot be run"), "{}", refused(&table));
}

#[test]
fn modules_that_would_be_long_to_compile_are_refused() {
    let large = vec![0; 100 << 20];
    assert_eq!(refused(&large), "invalid-value: a module of 104857600 bytes: at most 1048576");
    assert_eq!(Code::of_bytes(&large).unwrap_err().kind(), ErrorKind::InvalidValue);
    assert_eq!(refused(b"\x7fELF"), "unknown-format: the code is no WebAssembly module");
    assert!(
        refused(b"\0asm\x01\0\0\0\x05").starts_with("corrupt-file: the WebAssembly module is not valid: ")
    );
    let functions = "(func)".repeat(5000);
    assert_eq!(refused(&module(&functions)), "invalid-value: a module with 5001 functions: at most 4096");
    let long = format!("(func {})", "(drop (i32.const 1))".repeat(30_000));
    assert!(refused(&module(&long)).contains("a function of 90"), "{}", refused(&module(&long)));
    let locals = format!("(func (local {}))", "i64 ".repeat(3000));
    assert_eq!(refused(&module(&locals)), "invalid-value: a function of 3000 locals: at most 2000");
    for other in ["(memory i64 1)", "(memory 1) (memory 1)", "(memory 1 2 shared)", "(tag)"] {
        let of = wat::parse_str(format!("(module {other})")).unwrap();
        assert!(refused(&of).starts_with("corrupt-file: "), "{other}: {}", refused(&of));
    }
}

#[test]
fn a_file_of_code_is_known_by_its_first_bytes() {
    assert_eq!(Code::of_bytes(b"return 1;").unwrap(), Code::C("return 1;"));
    assert!(matches!(Code::of_bytes(b"\0asm\x01\0\0\0").unwrap(), Code::Wasm(_)));
    assert_eq!(
        Code::of_bytes(&[0xff, 0xfe]).unwrap_err().message(),
        "the code is no text and no WebAssembly module"
    );
}
