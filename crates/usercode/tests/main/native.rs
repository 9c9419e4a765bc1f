//! Expressions and loops that are drawn, against the same C by the compiler of this machine.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use crate::given::doubles_of;

const VALUES: [f64; 8] = [0.0, 1.0, -2.5, 3.75, 100.0, -0.125, 7.0, -33.0];

/// Expressions of `x` (a double), `i` (an int), `u` (an unsigned) and `l` (a long), whose value C defines: numbers stay small,
/// divisors are not zero, shifts are short.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("x".to_owned()),
        Just("i".to_owned()),
        Just("u".to_owned()),
        Just("l".to_owned()),
        (-20..20_i32).prop_map(|n| format!("({n})")),
        (0..40_u32).prop_map(|n| format!("{}.25f", n)),
        (0..40_u32).prop_map(|n| format!("{n}U")),
        Just("0.1".to_owned()),
        Just("2L".to_owned()),
    ];
    leaf.prop_recursive(4, 40, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            (two.clone(), prop::sample::select(vec!["+", "-", "<", ">", "<=", ">=", "==", "!=", "&&", "||"]))
                .prop_map(|((a, b), op)| format!("({a} {op} {b})")),
            two.clone().prop_map(|(a, b)| format!("((double)({a}) * ({b}))")),
            two.clone().prop_map(|(a, b)| format!("({a} / (fabs({b}) + 1))")),
            two.clone().prop_map(|(a, b)| format!("(small({a}) / (small({b}) * small({b}) + 1))")),
            two.clone().prop_map(|(a, b)| format!("(small({a}) % (small({b}) * small({b}) + 1))")),
            (two.clone(), prop::sample::select(vec!["&", "|", "^"]))
                .prop_map(|((a, b), op)| format!("(small({a}) {op} small({b}))")),
            (inner.clone(), 0..5_u32).prop_map(|(a, n)| format!("((unsigned)small({a}) << {n})")),
            (inner.clone(), 0..5_u32).prop_map(|(a, n)| format!("(small({a}) >> {n})")),
            (inner.clone(), prop::sample::select(vec!["-", "!", "+"]))
                .prop_map(|(a, op)| format!("({op}({a}))")),
            inner.clone().prop_map(|a| format!("(~small({a}))")),
            (
                inner.clone(),
                prop::sample::select(vec!["int8", "short", "unsigned char", "float", "double", "long"])
            )
                .prop_map(|(a, to)| {
                    let to = if to == "int8" { "signed char" } else { to };
                    format!("(({to})small({a}))")
                }),
            (inner.clone(), inner.clone(), inner.clone()).prop_map(|(c, a, b)| format!("({c} ? {a} : {b})")),
            (inner, prop::sample::select(vec!["sqrt(fabs(", "floor((", "ceil((", "trunc(("]))
                .prop_map(|(a, f)| format!("{f}{a}))")),
        ]
    })
}

/// What expressions call: a small int of any number.
const SMALL: &str =
    "int small(double v) { return v != v ? 1 : v > 1000 ? 1000 : v < -1000 ? -1000 : (int)v; }\n";

struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("sieva-usercode-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What the C compiler of the machine makes of functions `f0`, `f1`, ...; `None` where there is no compiler.
fn native(functions: &[String]) -> Option<Vec<f64>> {
    let scratch = Scratch::new();
    let (source, program) = (scratch.0.join("drawn.c"), scratch.0.join("drawn"));
    let mut text = format!("#include <math.h>\n#include <stdio.h>\n{SMALL}");
    let mut main = String::from("int main(void) { double v[] = {");
    VALUES.iter().for_each(|v| write!(main, "{v:?},").unwrap());
    main.push_str("}; for (int k = 0; k < 8; k++) {");
    for (number, body) in functions.iter().enumerate() {
        writeln!(text, "double f{number}(double x) {{ {body} }}").unwrap();
        write!(main, " printf(\"%a\\n\", f{number}(v[k]));").unwrap();
    }
    main.push_str(" } return 0; }\n");
    std::fs::write(&source, text + &main).unwrap();
    let made = Command::new("cc")
        .args(["-O1", "-w", "-ffp-contract=off", "-fwrapv", "-o"])
        .arg(&program)
        .arg(&source)
        .arg("-lm")
        .output();
    let made = match made {
        Ok(made) => made,
        Err(_) => return None,
    };
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let printed = Command::new(&program).output().unwrap();
    Some(String::from_utf8(printed.stdout).unwrap().lines().map(of_hex).collect())
}

/// A number as `%a` prints it.
fn of_hex(text: &str) -> f64 {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text),
    };
    if rest.contains("nan") {
        return f64::NAN;
    }
    if rest.contains("inf") {
        return sign * f64::INFINITY;
    }
    let (digits, exponent) = rest.trim_start_matches("0x").split_once('p').unwrap();
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mantissa = u64::from_str_radix(&format!("{whole}{fraction}"), 16).unwrap();
    let exponent = exponent.parse::<i32>().unwrap() - 4 * i32::try_from(fraction.len()).unwrap();
    let mantissa = mantissa as f64;
    sign * mantissa * 2_f64.powi(exponent)
}

#[test]
fn drawn_code_gives_what_native_code_gives() {
    let mut runner = TestRunner::new(Config { rng_seed: RngSeed::Fixed(8), ..Config::default() });
    let names = "int i = small(x) + 3; unsigned u = (unsigned)i * 7U; long l = (long)i * 1000L;";
    let mut bodies = Vec::new();
    for number in 0..200 {
        let drawn = expression().new_tree(&mut runner).unwrap().current();
        let other = expression().new_tree(&mut runner).unwrap().current();
        bodies.push(match number % 4 {
            0 => format!("{names} return {drawn};"),
            1 => format!(
                "{names} double s = 0; for (int k = 0; k < 6; k++) {{ i += k; if ({other}) continue; s += {drawn}; }} return s;"
            ),
            2 => format!(
                "{names} double a[4] = {{1, 2}}; int n = 0; while (n < 4) {{ a[n] += {drawn}; n++; l--; }} return a[0] - a[1] + a[3];"
            ),
            _ => format!("{names} float r = {drawn}; if ({other}) {{ r *= 2; u++; }} else r -= u; return r;"),
        });
    }
    let Some(expected) = native(&bodies) else {
        eprintln!("skipped: there is no C compiler 'cc' to compare with");
        return;
    };
    for (number, body) in bodies.iter().enumerate() {
        let got = doubles_of(&format!("{SMALL} double map(double x) {{ {body} }}"), &VALUES);
        for (row, got) in got.iter().enumerate() {
            let expected = expected[row * bodies.len() + number];
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "of {} gave {got:?}, natively {expected:?}: {body}", VALUES[row]);
        }
    }
}
