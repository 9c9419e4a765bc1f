//! Times code beside the same function compiled natively by `cc -O2`, on 64 MiB: equal answers first, then medians.
//!
//! `cargo run --release -p sieva-usercode --example beside_native [REPETITIONS]`

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use sieva_usercode::{Code, Element, Function, Input, Limits, Slice};

const ROWS: usize = 8 << 20;

/// A function as text of the subset, and as the loop that a C programmer writes for the same: from `x` of `n` values to `out`,
/// of which it returns the number.
struct Case {
    name: &'static str,
    code: &'static str,
    native: &'static str,
}

const CASES: [Case; 7] = [
    Case {
        name: "map x * 1.8 + 32",
        code: "double map(double x) { return x * 1.8 + 32; }",
        native: "for (long i = 0; i < n; i++) out[i] = x[i] * 1.8 + 32; return n;",
    },
    Case {
        name: "map sqrt, division, branch",
        code: "double map(double x) { if (x > 50) return sqrt(x) / (x + 1); return x * x - 3 * x; }",
        native: "for (long i = 0; i < n; i++) out[i] = x[i] > 50 ? sqrt(x[i]) / (x[i] + 1) : x[i] * x[i] - 3 * x[i]; return n;",
    },
    Case {
        name: "filter 25 < x < 75",
        code: "int filter(double x) { return x > 25 && x < 75; }",
        native: "long m = 0; for (long i = 0; i < n; i++) if (x[i] > 25 && x[i] < 75) out[m++] = x[i]; return m;",
    },
    Case {
        name: "reduce sum and count",
        code: "double s; long n; void step(double x) { s += x; n++; } double finish() { return s / n; }",
        native: "double s = 0; long c = 0; for (long i = 0; i < n; i++) { s += x[i]; c++; } out[0] = s / c; return 1;",
    },
    Case {
        name: "reduce histogram of 100",
        code: "long bins[100]; void step(double x) { bins[(int)x]++; } double finish() { double s = 0; for (int i = 0; i < 100; i++) s += bins[i] * (double)i * i; return s; }",
        native: "long bins[100] = {0}; for (long i = 0; i < n; i++) bins[(int)x[i]]++; double s = 0; for (int i = 0; i < 100; i++) s += bins[i] * (double)i * i; out[0] = s; return 1;",
    },
    Case {
        name: "proc stencil of 3",
        code: "resize(input.count); for (int i = 1; i < input.count - 1; i++) output[i] = 0.25 * input.vals[i - 1] + 0.5 * input.vals[i] + 0.25 * input.vals[i + 1];",
        native: "out[0] = out[n - 1] = 0; for (long i = 1; i < n - 1; i++) out[i] = 0.25 * x[i - 1] + 0.5 * x[i] + 0.25 * x[i + 1]; return n;",
    },
    Case {
        name: "proc sum (Figure 2)",
        code: "int i; double sum = 0.0; for (i = 0; i < input.count; i = i + 1) { sum = sum + input.vals[i]; } return sum;",
        native: "double s = 0; for (long i = 0; i < n; i++) s = s + x[i]; out[0] = s; return 1;",
    },
];

/// Values from 0 to 100 that both sides make.
fn values() -> Vec<u8> {
    let mut state = 1_u64;
    let mut bytes = Vec::with_capacity(ROWS * 8);
    for _ in 0..ROWS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let value = (state >> 40) as f64 * (100.0 / 16_777_216.0);
        bytes.extend(value.to_le_bytes());
    }
    bytes
}

/// A sum of the bits, which both sides have.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.chunks_exact(8).fold(0, |sum: u64, b| {
        let mut word = [0; 8];
        word.copy_from_slice(b);
        sum.rotate_left(1).wrapping_add(u64::from_le_bytes(word))
    })
}

/// The program that runs a case natively once, by its number: it prints a checksum of the answer and the milliseconds.
fn program(folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let mut text = String::from(
        "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n\
         static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec * 1e-6; }\n",
    );
    for (number, case) in CASES.iter().enumerate() {
        writeln!(
            text,
            "__attribute__((noinline)) long f{number}(const double *x, double *out, long n) {{ {} }}",
            case.native
        )?;
    }
    writeln!(
        text,
        "typedef long (*function)(const double *, double *, long);\nint main(int argc, char **argv) {{"
    )?;
    writeln!(text, "long n = {ROWS}; double *x = malloc(n * 8); unsigned long s = 1; (void)argc;")?;
    text.push_str("for (long i = 0; i < n; i++) { s = s * 6364136223846793005UL + 1442695040888963407UL; x[i] = (double)(s >> 40) * (100.0 / 16777216.0); }\n");
    let names: Vec<String> = (0..CASES.len()).map(|n| format!("f{n}")).collect();
    writeln!(text, "function all[] = {{{}}};", names.join(","))?;
    text.push_str(
        "double start = now(); double *out = malloc(n * 8); long m = all[atoi(argv[1])](x, out, n); double took = now() - start;\n\
         unsigned long sum = 0; for (long i = 0; i < m; i++) { unsigned long b; memcpy(&b, out + i, 8); sum = (sum << 1 | sum >> 63) + b; }\n\
         printf(\"%lu %f\\n\", sum, took); return 0; }\n",
    );
    let (source, program) = (folder.join("native.c"), folder.join("native"));
    std::fs::write(&source, text)?;
    let flags = ["-O2", "-ffp-contract=off", "-o"];
    let made = Command::new("cc").args(flags).arg(&program).arg(&source).arg("-lm").status()?;
    if !made.success() {
        return Err("cc failed".into());
    }
    Ok(program)
}

/// The checksum of a case, and its milliseconds, natively.
fn native(program: &Path, case: usize) -> Result<(u64, f64), Box<dyn Error>> {
    let printed = String::from_utf8(Command::new(program).arg(case.to_string()).output()?.stdout)?;
    let (sum, took) = printed.trim().split_once(' ').ok_or("a line of two words")?;
    Ok((sum.parse()?, took.parse()?))
}

fn median(times: &mut [f64]) -> (f64, f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0], times[times.len() - 1])
}

fn main() -> Result<(), Box<dyn Error>> {
    let repetitions = std::env::args().nth(1).map_or(Ok(9), |text| text.parse())?;
    let folder = std::env::temp_dir().join(format!("sieva-beside-native-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let compared = compared(&folder, repetitions);
    std::fs::remove_dir_all(&folder)?;
    compared
}

fn compared(folder: &Path, repetitions: usize) -> Result<(), Box<dyn Error>> {
    let program = program(folder)?;
    let (data, inputs) = (values(), [Input { name: "x".to_owned(), element: Element::F64 }]);
    println!("| function | compile, ms | sieva, ms (least to most) | cc -O2, ms (least to most) | ratio |");
    println!("|---|---|---|---|---|");
    for (number, case) in CASES.iter().enumerate() {
        let (mut compiles, mut times, mut other) = (Vec::new(), Vec::new(), Vec::new());
        // By turns, so that what else the machine does meets both.
        for _ in 0..repetitions {
            let (sum, took) = native(&program, number)?;
            other.push(took);
            let start = Instant::now();
            let function = Function::compile(Code::C(case.code), &inputs)?;
            compiles.push(start.elapsed().as_secs_f64() * 1e3);
            let start = Instant::now();
            let mut run = function.start(ROWS as u64, &Limits::default())?;
            run.push(&[Slice { data: &data, valid: None }])?;
            let out = run.finish(0)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            if checksum(&out[0].data) != sum {
                return Err(format!("{}: the answers differ", case.name).into());
            }
        }
        let (compile, ..) = median(&mut compiles);
        let ((ours, least, most), (theirs, low, high)) = (median(&mut times), median(&mut other));
        println!(
            "| {} | {compile:.1} | {ours:.1} ({least:.1} to {most:.1}) | {theirs:.1} ({low:.1} to {high:.1}) | {:.2} |",
            case.name,
            ours / theirs
        );
    }
    Ok(())
}
