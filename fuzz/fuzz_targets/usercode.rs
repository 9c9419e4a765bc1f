//! Code of any text, or a module of any bytes: an error, or values that are the same again, and in pieces.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use sieva_fuzz::check_error;
use sieva_usercode::{Code, Element, Function, Input, Limits, Slice, Values};

fn run(function: &Function, columns: &[(&[u8], &[u8])], cut: usize) -> Result<Vec<Values>, sieva_types::Error> {
    let limits =
        Limits { memory: 8 << 20, time: Duration::from_millis(50), output: 1 << 20, ..Limits::default() };
    let rows = columns[0].1.len();
    let mut run = function.start(rows as u64, &limits)?;
    for (from, to) in [(0, cut), (cut, rows)] {
        let slices: Vec<Slice<'_>> = columns
            .iter()
            .map(|(data, valid)| {
                let size = data.len() / rows;
                Slice { data: &data[from * size..to * size], valid: Some(&valid[from..to]) }
            })
            .collect();
        run.push(&slices)?;
    }
    run.finish(0)
}

fuzz_target!(|bytes: &[u8]| {
    let inputs = [
        Input { name: "x".to_owned(), element: Element::F64 },
        Input { name: "n".to_owned(), element: Element::I16 },
    ];
    let code = match Code::of_bytes(bytes) {
        Ok(code) => code,
        Err(e) => return check_error(&e),
    };
    let doubles: Vec<u8> = [0.0, -0.0, f64::NAN, f64::INFINITY, 1.5, -1e300].iter().flat_map(|v: &f64| v.to_le_bytes()).collect();
    let shorts: Vec<u8> = [0_i16, -1, 7, i16::MIN, i16::MAX, 3].iter().flat_map(|v| v.to_le_bytes()).collect();
    let (all, some) = ([1; 6], [1, 1, 0, 1, 1, 1]);
    for count in [1, 2] {
        match Function::compile(code, &inputs[..count]) {
            Err(e) => check_error(&e),
            Ok(function) => {
                let columns = [(&*doubles, &some[..]), (&*shorts, &all[..])];
                match run(&function, &columns[..count], 6) {
                    Err(e) => check_error(&e),
                    Ok(whole) => {
                        // What ran for nearly as long as it may could be too slow the next time. A module may count how often
                        // it is called; text cannot.
                        let cuts = if matches!(code, Code::C(_)) { &[6, 2][..] } else { &[6] };
                        for &cut in cuts {
                            match run(&function, &columns[..count], cut) {
                                Ok(again) => assert_eq!(again, whole, "cut at {cut}"),
                                Err(e) => assert!(e.message().contains("processor's time"), "{e}"),
                            }
                        }
                    }
                }
            }
        }
    }
});
