//! Code that means harm: it ends with an error, soon, and takes no more than it may have.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sieva_types::ErrorKind;
use sieva_usercode::{Code, Element, Function, Limits, Slice};

use crate::given::{bytes, doubles, doubles_of, error, input, of_doubles, run};

fn limited(text: &str, limits: &Limits) -> (ErrorKind, String) {
    let data = bytes(&[1.0, 2.0]);
    let e = run(Code::C(text), &doubles(), &[Slice { data: &data, valid: None }], limits).unwrap_err();
    (e.kind(), e.message().to_owned())
}

#[test]
fn an_endless_loop_ends() {
    let limits = Limits { time: Duration::from_millis(50), ..Limits::default() };
    let expected =
        (ErrorKind::InvalidValue, "the code ran for more than 0.05 s of the processor's time".to_owned());
    for text in [
        "for (;;) { } return 1;",
        "double map(double x) { while (1) x += 1; return x; }",
        "int filter(double x) { do { } while (x > 0); return 1; }",
        "void step(double x) { } double finish() { for (;;); return 1; }",
        "int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); } return f(60);",
        "resize(20000000); for (;;) { resize(0); resize(20000000); }",
    ] {
        assert_eq!(limited(text, &limits), expected, "{text}");
    }
    // By the clock on the wall: a busy machine gives code less of the processor.
    let limits = Limits { elapsed: Duration::from_millis(50), ..Limits::default() };
    let expected = (ErrorKind::InvalidValue, "the code ran for more than 0.05 s".to_owned());
    assert_eq!(limited("double map(double x) { while (1) x += 1; return x; }", &limits), expected);
    // The others go on.
    assert_eq!(doubles_of("double map(double x) { return x; }", &[4.0]), [4.0]);
}

#[test]
fn a_run_is_cancelled_from_outside() {
    let limits = Limits { cancel: Arc::new(AtomicBool::new(true)), ..Limits::default() };
    assert_eq!(
        limited("for (;;) { } return 1;", &limits),
        (ErrorKind::Cancelled, "the code was interrupted".to_owned())
    );
}

#[test]
fn memory_is_bounded() {
    let limits = Limits { memory: 4 << 20, ..Limits::default() };
    for text in ["resize(1000000);", "for (long i = 1000; ; i *= 2) resize(i);", "resize(2147483647);"] {
        let (kind, message) = limited(text, &limits);
        assert_eq!(kind, ErrorKind::MemoryLimit, "{text}: {message}");
        assert!(message.contains("the code needs more than the 4194304 bytes"), "{message}");
    }
    let limits = Limits { output: 1000, ..Limits::default() };
    assert_eq!(
        limited("resize(1000);", &limits),
        (ErrorKind::MemoryLimit, "more than 1000 bytes come out of the code".to_owned())
    );
    let function = Function::compile(Code::C("return input.count;"), &doubles()).unwrap();
    let e = function.start(u64::MAX, &Limits::default()).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::MemoryLimit);
    let e = function.start(100 << 20, &Limits::default()).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::MemoryLimit);
}

#[test]
fn deep_recursion_ends() {
    assert_eq!(
        error("int f(int n) { return f(n + 1) + 1; } return f(0);").split(": ").last(),
        Some("functions call each other too deep")
    );
    let arrays = "int f(int n) { double a[4000]; a[0] = n; return f(n + 1) + (int)a[0]; } return f(0);";
    assert_eq!(error(arrays).split(": ").last(), Some("functions call each other too deep"));
}

#[test]
fn texts_that_would_be_long_to_compile_are_refused() {
    let refused = |text: &str| error(text);
    let deep = format!("return {}1{};", "(".repeat(5000), ")".repeat(5000));
    assert!(refused(&deep).ends_with("nested more than 100 deep"));
    let minus = format!("return {}1;", "- ".repeat(10_000));
    assert!(refused(&minus).ends_with("nested more than 100 deep"));
    let blocks = format!("{} return 1; {}", "{".repeat(5000), "}".repeat(5000));
    assert!(refused(&blocks).ends_with("nested more than 100 deep"));
    let ifs = format!("{} return 1;", "if (1) ".repeat(3000));
    assert!(refused(&ifs).ends_with("nested more than 100 deep"));
    let elses = format!("{} return 1;", "if (0) ; else ".repeat(2000));
    assert!(refused(&elses).ends_with("nested more than 100 deep"));
    let sum = format!("return {}1;", "1 + ".repeat(5000));
    assert!(refused(&sum).ends_with("an expression of more than 100 operators in a row"));
    let indexes = format!("int a[1]; return a{};", "[0]".repeat(5000));
    assert!(refused(&indexes).ends_with("an expression of more than 100 operators in a row"));
    let long = format!("return {};", "1".repeat(70_000));
    assert!(refused(&long).ends_with("code of 70008 bytes: at most 65536"));
    assert!(refused(&"a;".repeat(20_000)).ends_with("the code has more than 16384 tokens"));
    let functions: String = (0..100).map(|i| format!("int f{i}() {{ return 1; }}")).collect();
    assert!(refused(&format!("{functions} return 1;")).ends_with("more than 64 functions"));
    let locals: String = (0..1500).map(|i| format!("int v{i};")).collect();
    assert!(
        refused(&format!("{locals} return 1;")).ends_with("more than 1000 variables and values in between")
    );
    assert!(
        refused("double a[40000]; return 1;")
            .ends_with("'a' takes more than the 262144 bytes that are allowed")
    );
    assert!(refused("int a[65536][65536]; return 1;").contains("takes more than"));
    let many = "void step(double x) { } long s[200000]; int finish() { return 1; }";
    assert!(refused(many).ends_with("'s' takes more than the 1048576 bytes that are allowed"));
    let planes = "double a[4194304], b[4194305]; double proc() { return 1; }";
    assert!(refused(planes).ends_with("the variables take more than 67108864 bytes"));
}

#[test]
fn what_a_whole_array_is_turned_in_may_be_large() {
    // Two planes of 1024 x 1024, as a Fourier transform of an image takes.
    let text = "double re[1024][1024], im[1024][1024];
        double proc() {
            for (int i = 0; i < 1024; i++) { re[i][1023 - i] = input.vals[0]; im[1023][i] = i; }
            return re[1023][0] + re[7][7] + im[1023][1023];
        }";
    assert_eq!(doubles_of(text, &[2.5]), [1025.5]);
    let (kind, message) = limited(text, &Limits { memory: 8 << 20, ..Limits::default() });
    assert_eq!(kind, ErrorKind::MemoryLimit, "{message}");
}

#[test]
fn the_longest_texts_compile() {
    // As long as texts may be: what is compiled is bounded with them.
    let line = "x = x * 1.0000001 + a[i & 7]; a[i & 7] = x; i++;";
    let text = format!("double a[8]; int i; double x = 1; {} return x;", line.repeat(450));
    let function = Function::compile(Code::C(&text), &doubles()).unwrap();
    let mut run = function.start(0, &Limits::default()).unwrap();
    run.push(&[Slice { data: &[], valid: None }]).unwrap();
    assert_eq!(run.finish(0).unwrap()[0].rows(), 1);
}

#[test]
fn columns_are_bounded() {
    let many: Vec<_> = (0..33).map(|i| input(&format!("c{i}"), Element::F64)).collect();
    let e = Function::compile(Code::C("return 1;"), &many).unwrap_err();
    assert_eq!(e.message(), "code of 33 columns: 1 to 32");
    assert!(Function::compile(Code::C("return 1;"), &[]).is_err());
}

#[test]
fn nans_and_infinities_do_no_harm() {
    let values = [f64::NAN, f64::INFINITY, -f64::INFINITY, -0.0];
    let out = of_doubles("int filter(double x) { return x == x; }", &values).unwrap();
    assert_eq!(out[0].rows(), 3);
    assert_eq!(
        error("double b = NAN; return input.vals[(int)b];"),
        "invalid-value: line 1, column 40: a NaN becomes no integer"
    );
    assert_eq!(
        error("for (int i = 0; i < 1e9; i++) if (input.vals[0] / 0.0 > i) resize((long)INFINITY);")
            .split(": ")
            .last(),
        Some("a number that no integer of the type holds")
    );
}
