//! Code of asks: what it makes is what is given; who fails, gets the data, and the others what they asked for.

use std::time::Duration;

use sieva_share::{Asking, Config, Group, GroupOptions, Producer, ProducerOptions};

use crate::memory::Memory;
use crate::world::{Scratch, ask, files, follow, options, produce};

const CSV: Asking<'_> = Asking { sql: "SELECT v WHERE v < 1004", format: "csv", only_new: false };

fn group(scratch: &Scratch, strict_code: bool) -> Group {
    let options = GroupOptions { strict_code, ..GroupOptions::default() };
    let group = Group::create(&scratch.0.join("group").display().to_string(), &options).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    scratch.step("a.nc", 1000);
    group
}

/// What a user has of an ask, by lines.
fn lines(scratch: &Scratch, user: &str, name: &str) -> Vec<String> {
    let found = files(&scratch.folder(user));
    let bytes = found.get(&format!("{name}/a.csv")).unwrap_or_else(|| panic!("{:?}", found.keys())).clone();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn code_is_run_on_what_was_asked() {
    let scratch = Scratch::new();
    let group = group(&scratch, false);
    let codes = [
        ("map", "double map(double v) { return v / 2; }", vec!["v", "500.0", "500.5", "501.0", "501.5"]),
        ("filter", "int filter(int v) { return v % 2; }", vec!["v", "1001", "1003"]),
        ("sum", "long s; void step(int v) { s += v; } long finish() { return s; }", vec!["v", "4006"]),
        (
            "figure",
            "int i; double sum = 0; for (i = 0; i < input.count; i = i + 1) { sum = sum + input.vals[i]; } return sum;",
            vec!["v", "4006.0"],
        ),
        ("none", "int filter(int v) { return 0; }", vec!["v"]),
        ("array", "int output[]; resize(2); output[1] = input.v[3];", vec!["v", "0", "1003"]),
    ];
    for (name, code, _) in &codes {
        group.ask_code("ada", name, &CSV, code.as_bytes()).unwrap();
    }
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.entries, done.failed, done.objects), (6, 0, 6));
    let followed = follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!((followed.files.len(), followed.failures.len()), (6, 0));
    for (name, _, expected) in codes {
        assert_eq!(lines(&scratch, "ada", name), expected, "{name}");
    }
}

#[test]
fn equal_questions_with_equal_code_are_one_and_others_are_not() {
    let scratch = Scratch::new();
    let group = group(&scratch, false);
    let twice = b"long map(int v) { return 2L * v; }";
    group.ask_code("ada", "x", &CSV, twice).unwrap();
    group.ask_code("bob", "x", &CSV, twice).unwrap();
    group.ask_code("bob", "y", &CSV, b"long map(int v) { return 3L * v; }").unwrap();
    group.ask("bob", "plain", &CSV).unwrap();
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.entries, done.objects), (4, 3));
    // Another code by the same name is another question; the same again is none.
    group.ask_code("bob", "x", &CSV, twice).unwrap();
    assert_eq!(produce(&group, "model").unwrap().entries, 0);
    group.ask_code("bob", "x", &CSV, b"long map(int v) { return 4L * v; }").unwrap();
    assert_eq!(produce(&group, "model").unwrap().entries, 1);
    follow(&group, "bob", &scratch.folder("bob")).unwrap();
    assert_eq!(lines(&scratch, "bob", "x"), ["v", "4000", "4004", "4008", "4012"]);
    assert_eq!(lines(&scratch, "bob", "y"), ["v", "3000", "3003", "3006", "3009"]);
    assert_eq!(lines(&scratch, "bob", "plain"), ["v", "1000", "1001", "1002", "1003"]);
}

#[test]
fn who_fails_gets_the_data_and_is_told_and_the_others_get_what_they_asked_for() {
    let scratch = Scratch::new();
    let group = group(&scratch, false);
    group.ask_code("eve", "zero", &CSV, b"int map(int v) { return 1 / (v - v); }").unwrap();
    group.ask_code("eve", "columns", &CSV, b"double map(double a, double b) { return a; }").unwrap();
    group
        .ask_code("eve", "deep", &CSV, b"int f(int n) { return f(n) + 1; } int map(int v) { return f(v); }")
        .unwrap();
    group.ask_code("ada", "half", &CSV, b"double map(double v) { return v / 2; }").unwrap();
    ask(&group, "ada", "plain", CSV.sql).unwrap();
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.entries, done.failed), (5, 3));
    let followed = follow(&group, "eve", &scratch.folder("eve")).unwrap();
    let told: Vec<String> =
        followed.failures.iter().map(|e| e.failure.as_ref().unwrap().message.clone()).collect();
    assert_eq!((followed.files.len(), told.len()), (3, 3));
    let start = "the code failed, and these are the data that it was asked of: line 1, column ";
    assert!(told.iter().all(|text| text.starts_with(start)), "{told:?}");
    for name in ["zero", "columns", "deep"] {
        assert_eq!(lines(&scratch, "eve", name), ["v", "1000", "1001", "1002", "1003"]);
    }
    let followed = follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!((followed.files.len(), followed.failures.len()), (2, 0));
    assert_eq!(lines(&scratch, "ada", "half"), ["v", "500.0", "500.5", "501.0", "501.5"]);
}

#[test]
fn a_strict_group_answers_code_that_fails_by_an_error() {
    let scratch = Scratch::new();
    let strict = group(&scratch, true);
    strict.ask_code("eve", "zero", &CSV, b"int map(int v) { return 1 / (v - v); }").unwrap();
    let done = produce(&strict, "model").unwrap();
    assert_eq!((done.entries, done.failed, done.objects), (1, 1, 0));
    let followed = follow(&strict, "eve", &scratch.folder("eve")).unwrap();
    assert_eq!((followed.files.len(), followed.failures.len()), (0, 1));
    let failure = followed.failures[0].failure.as_ref().unwrap();
    assert_eq!(
        (&*failure.code, &*failure.message),
        ("invalid-value", "line 1, column 27: an integer is divided by zero")
    );
    // Opened again it is as strict; made again otherwise, refused.
    let place = scratch.0.join("group").display().to_string();
    Group::create(&place, &GroupOptions { strict_code: true, ..GroupOptions::default() }).unwrap();
    let e = Group::create(&place, &GroupOptions::default()).unwrap_err();
    assert!(
        e.message().ends_with("code that fails is an error, not answered by the data that it was asked of"),
        "{e}"
    );
}

#[test]
fn code_that_is_none_is_refused_when_it_is_asked() {
    let scratch = Scratch::new();
    let group = group(&scratch, false);
    let refused = |code: &[u8]| group.ask_code("eve", "x", &CSV, code).unwrap_err().to_string();
    assert_eq!(
        refused(b"double map(double x) { return x }"),
        "line 1, column 33: ';' is expected, found '}'"
    );
    assert_eq!(refused(&vec![b' '; 70_000]), "code of 70000 bytes: at most 65536");
    assert_eq!(refused(&vec![0; 2 << 20]), "code of 2097152 bytes: at most 1048576");
    assert!(refused(b"\0asm\x01\0\0\0\x05").starts_with("the WebAssembly module is not valid"));
    assert_eq!(refused(b"\0asm\x01\0\0\0"), "the module does not export its memory as 'memory'");
    assert_eq!(
        refused(b"void map(double x) { }"),
        "line 1, column 1: 'map' returns a value of each row, not void"
    );
    assert!(group.asks("eve").unwrap().is_empty());
}

#[test]
fn code_of_a_document_is_run_on_its_variable() {
    let scratch = Scratch::new();
    let group = group(&scratch, false);
    produce(&group, "model").unwrap();
    let xml = r#"<rd type="8" name="v" cod="int i;\n\ndouble sum = 0.0;\n\nfor(i = 0; i&lt;input.count; i= i+1) {\n sum = sum + input.vals[i];\n}\n\nreturn sum;\n"/>"#;
    let document = Config::from_xml(&format!("<adios-config>{xml}</adios-config>")).unwrap();
    let asks = group.ask_all("ada", &document, "csv", false).unwrap();
    assert_eq!((asks.len(), &*asks[0].name, &*asks[0].sql), (1, "code-v", "SELECT v"));
    assert_eq!(produce(&group, "model").unwrap().failed, 0);
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!(lines(&scratch, "ada", "code-v"), ["v", "1499500.0"]);
}

#[test]
fn missing_values_and_all_formats_go_through() {
    let scratch = Scratch::new();
    let group = group(&scratch, false);
    // Where v is odd it is missing; an int8 has to find a value that says so.
    let sql = "SELECT nullif(v, 1001) AS w WHERE v < 1004";
    for format in ["netcdf", "hdf5", "arrow", "parquet", "csv", "json"] {
        let asking = Asking { sql, format, only_new: false };
        group.ask_code("ada", format, &asking, b"char map(long w) { return (char)(w - 1128); }").unwrap();
    }
    let done = produce(&group, "model").unwrap();
    assert_eq!((done.entries, done.failed), (6, 0), "{:?}", done.troubles.len());
    let followed = follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!((followed.files.len(), followed.failures.len()), (6, 0));
    assert_eq!(lines(&scratch, "ada", "csv"), ["w", "-128", "\"\"", "-126", "-125"]);
}

#[test]
fn a_damaged_module_of_an_ask_is_the_matter_of_whom_it_is_of() {
    let scratch = Scratch::new();
    let memory = std::sync::Arc::new(Memory::new("code"));
    let group = Group::create_in(memory, &GroupOptions::default()).unwrap();
    Producer::register(&group, "model", &[scratch.steps()]).unwrap();
    scratch.step("a.nc", 1000);
    group.ask_code("eve", "x", &CSV, b"int map(int v) { return v; }").unwrap();
    ask(&group, "ada", "plain", CSV.sql).unwrap();
    let key = "group/members/eve.json";
    let bytes = group.objects().get(key, 1 << 20).unwrap().unwrap();
    let text = String::from_utf8(bytes).unwrap().replace("int map(int v) { return v; }", "wasm:!!!");
    group.objects().put(key, &text.into_bytes()).unwrap();
    let done = Producer::open(&group, "model").unwrap().pass(&options()).unwrap();
    assert_eq!((done.entries, done.failed), (2, 1));
}

#[test]
fn limits_of_an_ask_bound_its_code() {
    let scratch = Scratch::new();
    let group = group(&scratch, false);
    group.ask_code("eve", "endless", &CSV, b"int map(int v) { while (1) { } return v; }").unwrap();
    let hog = b"double output[]; resize(1000000); output[0] = 1;";
    group.ask_code("eve", "hog", &CSV, hog).unwrap();
    group.ask_code("ada", "half", &CSV, b"double map(double v) { return v / 2; }").unwrap();
    let limited = ProducerOptions {
        ask_time: Some(Duration::from_secs(2)),
        ask_memory: Some(4 << 20),
        memory: Some(64 << 20),
        ..options()
    };
    let done = Producer::open(&group, "model").unwrap().pass(&limited).unwrap();
    assert_eq!((done.entries, done.failed, done.deferred), (3, 2, 0));
    let followed = follow(&group, "eve", &scratch.folder("eve")).unwrap();
    let told: Vec<String> =
        followed.failures.iter().map(|e| e.failure.as_ref().unwrap().message.clone()).collect();
    assert!(told[0].contains("the code ran for more than 1 s"), "{told:?}");
    assert!(told[1].contains("the code needs more than the 4194304 bytes of memory"), "{told:?}");
    for name in ["endless", "hog"] {
        assert_eq!(lines(&scratch, "eve", name), ["v", "1000", "1001", "1002", "1003"]);
    }
    follow(&group, "ada", &scratch.folder("ada")).unwrap();
    assert_eq!(lines(&scratch, "ada", "half"), ["v", "500.0", "500.5", "501.0", "501.5"]);
}
