//! The header says what the library has: every prototype is compared with the Rust function of that name.

use std::collections::BTreeMap;
use std::process::Command;

use crate::toolchain::{C99, has, header, libraries, root, run, scratch};

/// Names of types in Rust and in C; the longer first where one is the head of another.
const NAMES: [(&str, &str); 43] = [
    ("SessionHandle", "sieva_session"),
    ("SessionGiven", "sieva_session_options"),
    ("SessionDid", "sieva_session_stats"),
    ("SourceHandle", "sieva_source"),
    ("QueryHandle", "sieva_query"),
    ("PlanHandle", "sieva_plan"),
    ("TasksHandle", "sieva_tasks"),
    ("MergeHandle", "sieva_merge"),
    ("SelectionHandle", "sieva_selection"),
    ("RequestHandle", "sieva_request"),
    ("ResultHandle", "sieva_result"),
    ("StreamHandle", "sieva_stream"),
    ("StopHandle", "sieva_stop"),
    ("ResultOptions", "sieva_result_options"),
    ("CatalogHandle", "sieva_catalog"),
    ("ObjectsHandle", "sieva_objects"),
    ("SearchHandle", "sieva_search"),
    ("GroupHandle", "sieva_group"),
    ("StepHandle", "sieva_step"),
    ("ProduceOptions", "sieva_produce_options"),
    ("Produced", "sieva_produced"),
    ("Followed", "sieva_followed"),
    ("Added", "sieva_added"),
    ("Object", "sieva_object"),
    ("IndexJobHandle", "sieva_index_job"),
    ("IndexResultHandle", "sieva_index_result"),
    ("IndexOptions", "sieva_index_options"),
    ("IndexReport", "sieva_index_report"),
    ("Options", "sieva_options"),
    ("Stats", "sieva_stats"),
    ("Price", "sieva_price"),
    ("Part", "sieva_part"),
    ("Array", "sieva_array"),
    ("Dim", "sieva_dimension"),
    ("Described", "sieva_attribute"),
    ("c_char", "char"),
    ("c_void", "void"),
    ("i32", "int32_t"),
    ("u32", "uint32_t"),
    ("i64", "int64_t"),
    ("u64", "uint64_t"),
    ("u8", "uint8_t"),
    ("f64", "double"),
];

/// A Rust type as C writes it.
fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(inner) = rust.strip_prefix("*mut ") {
        return format!("{} *", c_type(inner)).replace("* *", "**");
    }
    if let Some(inner) = rust.strip_prefix("*const ") {
        let inner = c_type(inner);
        let of = if inner.ends_with('*') { format!("{inner}const") } else { format!("const {inner}") };
        return format!("{of} *");
    }
    let known = NAMES.iter().find(|(name, _)| *name == rust);
    known.unwrap_or_else(|| panic!("no C type for {rust}")).1.to_string()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `name -> prototype` of every exported function, from the sources.
fn in_rust() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for file in std::fs::read_dir(root().join("src")).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        for (at, _) in text.match_indices("extern \"C\" fn ") {
            let rest = &text[at + "extern \"C\" fn ".len()..];
            let (name, rest) = rest.split_once('(').unwrap();
            let (args, rest) = rest.split_once(')').unwrap();
            let result = rest.split_once('{').unwrap().0.trim().trim_start_matches("->").trim();
            let result = if result.is_empty() { "void".into() } else { c_type(result) };
            let args: Vec<String> =
                args.split(',').map(one_line).filter(|a| !a.is_empty()).map(c_argument).collect();
            let args = if args.is_empty() { "void".into() } else { args.join(", ") };
            found.insert(name.to_string(), format!("{result} {name}({args})").replace("* ", "*"));
        }
    }
    found
}

fn c_argument(rust: String) -> String {
    let (name, of) = rust.split_once(':').unwrap();
    format!("{} {}", c_type(of), name.trim_start_matches("r#"))
}

/// The header without its comments.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let mut out = parts.next().unwrap().to_string();
    for part in parts {
        out.push_str(part.split_once("*/").expect("an open comment").1);
    }
    out
}

/// `name -> prototype` of every function in the header.
fn in_header() -> BTreeMap<String, String> {
    let text = without_comments(&header());
    let prototypes = text.split(';').filter_map(|s| s.split_once("SIEVA_API ").map(|(_, p)| one_line(p)));
    let named = prototypes.filter(|p| p.contains('(')).map(|p| {
        let name = p.split('(').next().unwrap().rsplit([' ', '*']).next().unwrap().to_string();
        (name, p.replace("* ", "*"))
    });
    named.collect()
}

#[test]
fn prototypes_are_those_of_the_functions() {
    let (rust, header) = (in_rust(), in_header());
    assert!(rust.len() > 40, "{} functions found", rust.len());
    for (name, prototype) in &rust {
        assert_eq!(header.get(name), Some(prototype), "{name}");
    }
    assert_eq!(header.keys().collect::<Vec<_>>(), rust.keys().collect::<Vec<_>>());
}

#[test]
fn every_function_has_a_comment() {
    let text = header();
    let mut before = "";
    for line in text.lines().filter(|l| !l.is_empty()) {
        if line.starts_with("SIEVA_API ") {
            // Functions of one comment follow each other.
            assert!(before.ends_with("*/") || before.starts_with("SIEVA_API "), "no comment: {line}");
        }
        before = line;
    }
}

#[test]
fn the_shared_library_exports_the_interface_alone() {
    if !has("nm") {
        return;
    }
    let listed =
        run(Command::new("nm").args(["-D", "--defined-only"]).arg(libraries().join("libsieva_c.so")));
    let exported: Vec<&str> = listed.lines().filter_map(|l| l.rsplit(' ').next()).collect();
    let declared = in_header();
    assert_eq!(exported, declared.keys().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn the_header_is_c99_and_cpp98() {
    let dir = scratch("header");
    let program = "#include <sieva.h>\nint main(void) { sieva_options o = SIEVA_OPTIONS_INIT; \
                   sieva_stats s = SIEVA_STATS_INIT; \
                   sieva_result_options r = SIEVA_RESULT_OPTIONS_INIT; \
                   return (int)(o.threads + s.requests + r.spool_limit); }\n";
    let include = root().join("include");
    std::fs::write(dir.join("use.c"), program).unwrap();
    run(Command::new("cc").args(C99).arg("-fsyntax-only").arg("-I").arg(&include).arg(dir.join("use.c")));
    if has("c++") {
        for standard in ["-std=c++98", "-std=c++17"] {
            let mut cpp = Command::new("c++");
            cpp.args([
                "-x",
                "c++",
                standard,
                "-Wall",
                "-Wextra",
                "-Werror",
                "-pedantic",
                "-fsyntax-only",
                "-I",
            ]);
            run(cpp.arg(&include).arg(dir.join("use.c")));
        }
    }
}
