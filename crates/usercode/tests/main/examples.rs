//! The modules in `examples/modules`: compiled where their compiler is at hand, and held against what they are to give.

use std::path::Path;
use std::process::Command;

use sieva_usercode::{Code, Element, Function, Limits, Slice};

use crate::given::{bytes, doubles, input, of_bytes, run};

/// The module that a compiler makes of an example; none where the compiler, or its target, is not installed.
fn compiled(source: &str, program: &str, flags: &[&str]) -> Option<Vec<u8>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source);
    std::fs::create_dir_all(&folder).unwrap();
    let (from, to) = (
        Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/modules").join(source),
        folder.join("module.wasm"),
    );
    let made = Command::new(program).args(flags).arg("-o").arg(&to).arg(&from).output();
    let why = match made {
        Ok(made) if made.status.success() => return Some(std::fs::read(&to).unwrap()),
        Ok(made) => String::from_utf8_lossy(&made.stderr).into_owned(),
        Err(e) => e.to_string(),
    };
    // What is not installed is not asked; an example that does not compile is wrong.
    let absent = ["No such file", "target may not be installed", "can't find crate", "unable to execute"];
    assert!(absent.iter().any(|text| why.contains(text)), "{source}: {why}");
    eprintln!("{source} is not compiled here: {why}");
    None
}

#[test]
fn a_map_in_c_gives_the_speed_of_a_wind() {
    let flags = ["--target=wasm32", "-O3", "-nostdlib", "-Wl,--no-entry"];
    let Some(module) = compiled("speed.c", "clang", &flags) else { return };
    let rows = 100_000;
    let u: Vec<f32> = (0..rows).map(|i| (i % 77) as f32 - 30.5).collect();
    let v: Vec<f64> = (0..rows).map(|i| f64::from(i % 91) / 3.0).collect();
    let valid: Vec<u8> = (0..rows).map(|i| u8::from(i % 10 != 3)).collect();
    let of_u: Vec<u8> = u.iter().flat_map(|x| x.to_le_bytes()).collect();
    let of_v = bytes(&v);
    let columns = [Slice { data: &of_u, valid: None }, Slice { data: &of_v, valid: Some(&valid) }];
    let inputs = [input("u", Element::F32), input("v", Element::F64)];
    let out = run(Code::Wasm(&module), &inputs, &columns, &Limits::default()).unwrap();
    let expected = u.iter().zip(&v).zip(&valid).map(|((u, v), valid)| {
        let u = f64::from(*u);
        if *valid == 0 { 0.0 } else { (u * u + v * v).sqrt() }
    });
    assert_eq!(of_bytes(&out[0].data), expected.collect::<Vec<_>>());
    assert_eq!((out[0].element, out[0].valid.as_ref()), (Element::F64, Some(&valid)));
    let whole = [input("u", Element::I32), input("v", Element::F64)];
    let wrong = [Slice { data: &[0; 4], valid: None }, Slice { data: &[0; 8], valid: None }];
    let e = run(Code::Wasm(&module), &whole, &wrong, &Limits::default()).unwrap_err();
    assert_eq!(e.message(), "the code gave up (unreachable)");
}

#[test]
fn a_reduction_in_rust_counts_and_merges() {
    let flags = [
        "--target",
        "wasm32-unknown-unknown",
        "--edition",
        "2024",
        "-O",
        "-C",
        "strip=symbols",
        "--crate-type",
        "cdylib",
    ];
    let Some(module) = compiled("histogram.rs", "rustc", &flags) else { return };
    let values: Vec<f64> = (0..90_000)
        .map(|i| if i % 100 == 7 { f64::NAN } else { f64::from(i * 31 % 2000) / 100.0 - 2.0 })
        .collect();
    let valid: Vec<u8> = (0..values.len()).map(|i| u8::from(i % 9 != 0)).collect();
    let mut expected = [0_i64; 16];
    for (value, _) in values.iter().zip(&valid).filter(|(x, valid)| (0.0..16.0).contains(*x) && **valid != 0)
    {
        expected[*value as usize] += 1;
    }
    let expected: Vec<u8> = expected.iter().flat_map(|n| n.to_le_bytes()).collect();
    let data = bytes(&values);
    let function = Function::compile(Code::Wasm(&module), &doubles()).unwrap();
    assert!(function.merges());
    let mut all = function.start(0, &Limits::default()).unwrap();
    all.push(&[Slice { data: &data, valid: Some(&valid) }]).unwrap();
    let all = all.finish(0).unwrap();
    assert_eq!((all[0].element, &all[0].data), (Element::I64, &expected));
    // Two runs, of which one takes the other in.
    let mut parts = [0, 1].map(|half| {
        let (from, to) = (half * 45_000, (half + 1) * 45_000);
        let mut run = function.start(0, &Limits::default()).unwrap();
        run.push(&[Slice { data: &data[8 * from..8 * to], valid: Some(&valid[from..to]) }]).unwrap();
        run
    });
    let state = parts[1].save().unwrap();
    let [mut first, _] = parts;
    first.merge(&state).unwrap();
    assert_eq!(first.finish(0).unwrap()[0].data, expected);
}

#[test]
fn a_filter_in_assembly_script_keeps_outliers() {
    let flags = ["-O3", "--runtime", "stub", "--use", "abort="];
    let Some(module) = compiled("outliers.ts", "asc", &flags) else { return };
    let values: Vec<f64> = (0..70_000).map(|i| f64::from(i % 1300) / 100.0 - 6.5).collect();
    let valid: Vec<u8> = (0..values.len()).map(|i| u8::from(i % 4 != 1)).collect();
    let data = bytes(&values);
    let column = [Slice { data: &data, valid: Some(&valid) }];
    let out = run(Code::Wasm(&module), &doubles(), &column, &Limits::default()).unwrap();
    let kept = values.iter().zip(&valid).filter(|(x, valid)| x.abs() > 3.0 && **valid != 0);
    assert_eq!(of_bytes(&out[0].data), kept.map(|(x, _)| *x).collect::<Vec<_>>());
    assert_eq!(out[0].valid, None);
}
