//! The forms: map, filter, reductions, functions of all rows; missing values and types of columns.

use sieva_usercode::{Code, Element, Function, Input, Limits, Slice, Values};

use crate::given::{bytes, doubles, doubles_of, input, of_bytes, of_doubles, run};

const HOSTILE: [f64; 12] = [
    f64::NAN,
    -0.0,
    0.0,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::MIN_POSITIVE,
    5e-324,
    f64::MAX,
    -f64::MAX,
    1.0,
    -1e-300,
    9_007_199_254_740_993.0,
];

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn a_map_gives_a_value_of_each_row() {
    let got = doubles_of("double map(double x) { return x * 2 + 1; }", &HOSTILE);
    assert_eq!(bits(&got), bits(&HOSTILE.map(|x| x * 2.0 + 1.0)));
    let got = doubles_of("double map(double x) { return x; }", &HOSTILE);
    assert_eq!(bits(&got), bits(&HOSTILE));
    let out =
        of_doubles("int map(double x) { if (x > 0) return 1; return x < 0 ? -1 : 0; }", &HOSTILE).unwrap();
    let expected: Vec<u8> = HOSTILE
        .iter()
        .flat_map(|x| {
            (if *x > 0.0 {
                1_i32
            } else if *x < 0.0 {
                -1
            } else {
                0
            })
            .to_le_bytes()
        })
        .collect();
    assert_eq!((out[0].element, &out[0].data), (Element::I32, &expected));
    // More than one piece, with variables and arrays of their own in each row.
    let many: Vec<f64> = (0..100_000).map(f64::from).collect();
    let text = "double map(double x) { double s; int a[3]; for (int i = 0; i < 3; i++) { a[i] += i; s += x + a[i]; } return s; }";
    assert_eq!(doubles_of(text, &many), many.iter().map(|x| x * 3.0 + 3.0).collect::<Vec<_>>());
}

#[test]
fn nans_leave_in_one_form() {
    let strange = [f64::from_bits(0x7ff0_0000_0000_0001), f64::from_bits(0xffff_ffff_ffff_ffff), -f64::NAN];
    for text in [
        "double map(double x) { return x; }",
        "double map(double x) { return -x + 1; }",
        "resize(3); for (int i = 0; i < 3; i++) output[i] = input.vals[i];",
        "double map(double x) { return x - INFINITY + INFINITY; }",
    ] {
        assert_eq!(bits(&doubles_of(text, &strange)), [f64::NAN.to_bits(); 3], "{text}");
    }
    assert_eq!(doubles_of("double map(double x) { return copysign(1, x); }", &strange), [1.0; 3]);
}

#[test]
fn a_filter_keeps_rows_as_they_are() {
    let out = of_doubles("int filter(double x) { return x > -1 && x < 2; }", &HOSTILE).unwrap();
    let expected: Vec<f64> = HOSTILE.into_iter().filter(|x| *x > -1.0 && *x < 2.0).collect();
    assert_eq!(bits(&of_bytes(&out[0].data)), bits(&expected));
    let strange = f64::from_bits(0x7ff0_0000_0000_0001);
    let out = of_doubles("double filter(double x) { return x; }", &[strange, 0.0, -0.0, 2.0]).unwrap();
    assert_eq!(bits(&of_bytes(&out[0].data)), bits(&[strange, 2.0]));
    let none = of_doubles("int filter(double x) { return 0; }", &HOSTILE).unwrap();
    assert_eq!(none, [Values { element: Element::F64, data: Vec::new(), valid: None }]);
}

#[test]
fn of_no_rows_comes_what_no_rows_give() {
    let empty: [f64; 0] = [];
    assert_eq!(doubles_of("double map(double x) { return x; }", &empty), empty);
    assert_eq!(of_doubles("int filter(double x) { return 1; }", &empty).unwrap()[0].rows(), 0);
    assert_eq!(doubles_of("return input.count + 0.5;", &empty), [0.5]);
    let sum = "double s; void step(double x) { s += x; } double finish() { return s; }";
    assert_eq!(doubles_of(sum, &empty), [0.0]);
    let rows = "double proc(cod_exec_context ec, input_type *input, int k, int m) { return m; }";
    assert_eq!(doubles_of(rows, &empty), empty);
}

#[test]
fn columns_of_all_types_are_seen_with_their_values() {
    let cases: [(Element, Vec<u8>, f64); 10] = [
        (Element::I8, vec![0x80], -128.0),
        (Element::U8, vec![0xff], 255.0),
        (Element::I16, (-300_i16).to_le_bytes().to_vec(), -300.0),
        (Element::U16, 65_000_u16.to_le_bytes().to_vec(), 65_000.0),
        (Element::I32, i32::MIN.to_le_bytes().to_vec(), f64::from(i32::MIN)),
        (Element::U32, u32::MAX.to_le_bytes().to_vec(), f64::from(u32::MAX)),
        (Element::I64, (-(1_i64 << 60)).to_le_bytes().to_vec(), -(2_f64.powi(60))),
        (Element::U64, (1_u64 << 63).to_le_bytes().to_vec(), 2_f64.powi(63)),
        (Element::F32, 0.1_f32.to_le_bytes().to_vec(), f64::from(0.1_f32)),
        (Element::F64, 0.1_f64.to_le_bytes().to_vec(), 0.1),
    ];
    for (element, data, expected) in cases {
        let inputs = [input("x", element)];
        for text in ["double map(double x) { return x; }", "return (double)input.x[0];"] {
            let out = run(Code::C(text), &inputs, &[Slice { data: &data, valid: None }], &Limits::default())
                .unwrap();
            assert_eq!(of_bytes(&out[0].data), [expected], "{element:?} {text}");
        }
        let text = format!("{} map({} x) {{ return x; }}", element.c_name(), element.c_name());
        let out =
            run(Code::C(&text), &inputs, &[Slice { data: &data, valid: None }], &Limits::default()).unwrap();
        assert_eq!((out[0].element, &out[0].data), (element, &data));
    }
}

#[test]
fn functions_of_rows_are_not_called_for_missing_values() {
    let inputs = [input("a", Element::I32), input("b", Element::I32)];
    let ints = |v: [i32; 4]| v.map(i32::to_le_bytes).concat();
    let (a, b) = (ints([10, 20, 30, 40]), ints([2, 0, 5, 0]));
    let columns =
        [Slice { data: &a, valid: Some(&[1, 1, 1, 0]) }, Slice { data: &b, valid: Some(&[1, 0, 1, 1]) }];
    // Where b is 0 a division would fail.
    let map = run(Code::C("int map(int a, int b) { return a / b; }"), &inputs, &columns, &Limits::default())
        .unwrap();
    assert_eq!(
        map,
        [Values { element: Element::I32, data: ints([5, 0, 6, 0]), valid: Some(vec![1, 0, 1, 0]) }]
    );
    let filter =
        run(Code::C("int filter(int a, int b) { return a / b > 5; }"), &inputs, &columns, &Limits::default());
    let filter = filter.unwrap();
    assert_eq!(
        [&filter[0].data, &filter[1].data],
        [&30_i32.to_le_bytes().to_vec(), &5_i32.to_le_bytes().to_vec()]
    );
    let text = "int s; void step(int a, int b) { s += a / b; } int finish() { return s; }";
    let sum = run(Code::C(text), &inputs, &columns, &Limits::default()).unwrap();
    assert_eq!(sum[0].data, 11_i32.to_le_bytes());
    let text = "int n; for (int i = 0; i < input.count; i++) n = n * 10 + missing(input.a, i) + 2 * missing(input.b, i); return n;";
    let seen = run(Code::C(text), &inputs, &columns, &Limits::default()).unwrap();
    assert_eq!(seen[0].data, 201_i32.to_le_bytes());
}

#[test]
fn a_missing_value_of_whole_columns_is_zero() {
    let inputs = [input("a", Element::F32), input("b", Element::U8)];
    let a: Vec<u8> = [10.0_f32, 1e20, f32::NAN, 13.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    let text =
        "double s; for (int i = 0; i < input.count; i++) s = s * 100 + input.vals[i] + input.b[i]; return s;";
    let function = Function::compile(Code::C(text), &inputs).unwrap();
    // At once, and in two pieces of which the first has no missing value.
    for cut in [0, 1] {
        let mut run = function.start(4, &Limits::default()).unwrap();
        for (from, to) in [(0, cut), (cut, 4)] {
            let columns = [
                Slice { data: &a[from * 4..to * 4], valid: Some(&[1, 0, 0, 1][from..to]) },
                Slice { data: &[1, 2, 255, 4][from..to], valid: Some(&[1, 1, 0, 1][from..to]) },
            ];
            run.push(&columns).unwrap();
        }
        let found = run.finish(0).unwrap();
        assert_eq!(of_bytes(&found[0].data), [11_020_017.0], "{cut}");
    }
}

#[test]
fn rows_in_pieces_are_the_same_rows() {
    let values: Vec<f64> = (0..50_000).map(|i| f64::from(i) * 0.5).collect();
    let data = bytes(&values);
    let mask: Vec<u8> = (0..50_000_u32).map(|i| u8::from(i % 7 != 3)).collect();
    for text in [
        "double map(double x) { return x * x; }",
        "int filter(double x) { return (long)x % 3 == 0; }",
        "long n; double s; void step(double x) { s += x; n++; } double finish() { return s / n; }",
        "double s; for (int i = 0; i < input.count; i++) if (!missing(input.vals, i)) s += input.vals[i]; return s;",
    ] {
        let function = Function::compile(Code::C(text), &doubles()).unwrap();
        let mut results = Vec::new();
        for cuts in [vec![50_000], vec![1, 7, 20_000, 20_000, 50_000], (1..=50).map(|i| i * 1000).collect()] {
            let mut run = function.start(50_000, &Limits::default()).unwrap();
            let mut from = 0;
            for to in cuts {
                // Those that have no missing value are handed over without a mask.
                let valid = Some(&mask[from..to]).filter(|mask| mask.contains(&0));
                run.push(&[Slice { data: &data[from * 8..to * 8], valid }]).unwrap();
                from = to;
            }
            results.push(run.finish(0).unwrap());
        }
        assert!(results.iter().all(|r| *r == results[0]), "{text}");
    }
}

#[test]
fn reductions_merge() {
    let text = "
        const int N = 4;
        long bins[N]; double sum; long n; int started = 3;
        void init() { started++; }
        void step(double x) { int i = (int)(x / 25); if (i >= 0 && i < N) bins[i]++; sum += x; n++; }
        void merge() { for (int i = 0; i < N; i++) bins[i] += other.bins[i]; sum += other.sum; n += other.n; }
        double finish() { return bins[0] * 1e6 + bins[3] * 1e3 + sum / n + started; }";
    let values: Vec<f64> = (0..100).map(f64::from).collect();
    let function = Function::compile(Code::C(text), &doubles()).unwrap();
    assert!(function.merges());
    let mut whole = function.start(0, &Limits::default()).unwrap();
    whole.push(&[Slice { data: &bytes(&values), valid: None }]).unwrap();
    let whole = of_bytes(&whole.finish(0).unwrap()[0].data);
    assert_eq!(whole, [25e6 + 25e3 + 49.5 + 4.0]);
    let mut total = function.start(0, &Limits::default()).unwrap();
    for part in values.chunks(30) {
        let mut run = function.start(0, &Limits::default()).unwrap();
        run.push(&[Slice { data: &bytes(part), valid: None }]).unwrap();
        total.merge(&run.save().unwrap()).unwrap();
    }
    assert_eq!(of_bytes(&total.finish(0).unwrap()[0].data), whole);
    let mut wrong = function.start(0, &Limits::default()).unwrap();
    assert!(wrong.merge(&[0; 3]).is_err());
    let plain = Function::compile(
        Code::C("double s; void step(double x) { s += x; } double finish() { return s; }"),
        &doubles(),
    );
    let plain = plain.unwrap();
    let e = plain.start(0, &Limits::default()).unwrap().save().unwrap_err();
    assert_eq!(e.message(), "the code has no function that merges states");
}

#[test]
fn a_state_that_helpers_see_is_the_same_state() {
    let text = "
        double s; int calls;
        void add(double x) { s += x; calls++; }
        void step(double x) { s += 1; add(x); s *= 2; }
        double finish() { return s + calls; }";
    let mut s = 0.0;
    let values = [1.0, 2.5, -4.0];
    values.iter().for_each(|x| s = (s + 1.0 + x) * 2.0);
    assert_eq!(doubles_of(text, &values), [s + 3.0]);
}

#[test]
fn table_1_has_a_value_of_each_row_of_a_matrix() {
    let text = "double proc(cod_exec_context ec, input_type *input, int k, int m) { int i;int j; double sum = 0.0; double average = 0.0;for(i = 0; i<m; i= i+1) sum = sum + input.tmpbuf[i+k*m]; average = sum / m;return average; }";
    let function = Function::compile(Code::C(text), &doubles()).unwrap();
    let data = bytes(&[1.0, 2.0, 3.0, 10.0, 20.0, 60.0]);
    for (length, expected) in
        [(3, vec![2.0, 30.0]), (6, vec![16.0]), (0, vec![16.0]), (2, vec![1.5, 6.5, 40.0])]
    {
        let mut run = function.start(6, &Limits::default()).unwrap();
        run.push(&[Slice { data: &data, valid: None }]).unwrap();
        assert_eq!(of_bytes(&run.finish(length).unwrap()[0].data), expected);
    }
    let mut run = function.start(6, &Limits::default()).unwrap();
    run.push(&[Slice { data: &data, valid: None }]).unwrap();
    assert_eq!(run.finish(4).unwrap_err().message(), "6 values are no rows of 4");
}

#[test]
fn columns_that_do_not_go_together_are_refused() {
    let inputs: Vec<Input> = vec![input("a", Element::F64), input("b", Element::I16)];
    let function =
        Function::compile(Code::C("double map(double a, int b) { return a * b; }"), &inputs).unwrap();
    let mut run = function.start(0, &Limits::default()).unwrap();
    let (a, b) = (bytes(&[1.0, 2.0]), [1, 0, 2, 0]);
    run.push(&[Slice { data: &a, valid: None }, Slice { data: &b, valid: None }]).unwrap();
    let e = run.push(&[Slice { data: &a, valid: None }, Slice { data: &b[..2], valid: None }]).unwrap_err();
    assert_eq!(e.message(), "the column 'b' has not as many values as the others");
    let e = run.push(&[Slice { data: &a, valid: Some(&[1]) }, Slice { data: &b, valid: None }]).unwrap_err();
    assert_eq!(e.message(), "the column 'a' has not as many values as the others");
    assert!(run.push(&[Slice { data: &a, valid: None }]).is_err());
    assert_eq!(of_bytes(&run.finish(0).unwrap()[0].data), [1.0, 4.0]);
}

#[test]
fn rows_that_are_missing_are_passed_over_in_columns_of_any_length() {
    for rows in 0..40_usize {
        let values: Vec<f64> = (0..rows).map(|row| row as f64).collect();
        let data = bytes(&values);
        for missing in 0..rows {
            let valid: Vec<u8> = (0..rows).map(|row| u8::from(row % 7 != missing % 7)).collect();
            let column = [Slice { data: &data, valid: Some(&valid) }];
            let of = |text| run(Code::C(text), &doubles(), &column, &Limits::default()).unwrap();
            let there: Vec<f64> =
                values.iter().zip(&valid).filter(|(_, valid)| **valid == 1).map(|(x, _)| *x).collect();
            let out = of("double map(double x) { return x + 1; }");
            assert_eq!(out[0].valid.as_deref(), Some(&*valid));
            let kept: Vec<f64> = of_bytes(&out[0].data)
                .into_iter()
                .zip(&valid)
                .filter(|(_, v)| **v == 1)
                .map(|(x, _)| x)
                .collect();
            assert_eq!(kept, there.iter().map(|x| x + 1.0).collect::<Vec<_>>());
            let out = of("int filter(double x) { return x > 3; }");
            assert_eq!(
                of_bytes(&out[0].data),
                there.iter().copied().filter(|x| *x > 3.0).collect::<Vec<_>>()
            );
            let out = of(
                "double s; long n; void step(double x) { s += x; n++; } double finish() { return s + 1000 * n; }",
            );
            assert_eq!(of_bytes(&out[0].data), [there.iter().sum::<f64>() + 1000.0 * there.len() as f64]);
        }
    }
}

#[test]
fn all_rows_at_once_and_what_comes_of_them_may_take_what_the_limit_says_and_no_more() {
    let rows = 600_000;
    let values: Vec<f64> = (0..rows).map(f64::from).collect();
    let data = bytes(&values);
    let column = [Slice { data: &data, valid: None }];
    let text = "resize(input.count); for (int i = 0; i < input.count; i++) output[i] = input.vals[i] * 2;";
    let of = |memory| {
        let limits = Limits { memory, ..Limits::default() };
        run(Code::C(text), &doubles(), &column, &limits)
    };
    let out = of(16 << 20).unwrap();
    assert_eq!(of_bytes(&out[0].data), values.iter().map(|x| x * 2.0).collect::<Vec<_>>());
    // What comes out is there twice: in the memory of the code, and as it was taken.
    for memory in [3 << 20, 6 << 20, 9 << 20, 12 << 20] {
        let e = of(memory).unwrap_err();
        assert_eq!(e.kind(), sieva_types::ErrorKind::MemoryLimit, "{memory}: {e}");
    }
}
