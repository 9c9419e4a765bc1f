//! A `proc` that goes once through its rows is run in pieces: the answer is that of all rows at once.

use sieva_types::Result;
use sieva_usercode::{Code, Element, Function, Input, Limits, Slice, Values};

use crate::given::{bytes, doubles, error, input};

/// Values of several pieces, with what is odd among them.
fn odd() -> Vec<f64> {
    let mut values: Vec<f64> = (0..100_003).map(|i| f64::from(i * 37 % 1000) - 300.5).collect();
    for (at, value) in [(7, f64::NAN), (40_000, -0.0), (99_999, 1e300), (100_002, 5e-324)] {
        values[at] = value;
    }
    values
}

/// What comes of a text whose rows come in pieces of these lengths, and whether it wants all of them at once.
fn ran(text: &str, inputs: &[Input], columns: &[Slice<'_>], pieces: &[usize]) -> (Result<Vec<Values>>, bool) {
    let function = Function::compile(Code::C(text), inputs).unwrap_or_else(|e| panic!("{e}: {text}"));
    let rows = columns[0].data.len() / inputs[0].element.size();
    let result = || {
        let mut run = function.start(rows as u64, &Limits::default())?;
        let (mut from, mut piece) = (0, pieces.iter().cycle());
        while from < rows {
            let to = rows.min(from.saturating_add(*piece.next().unwrap()));
            let slices: Vec<Slice<'_>> = columns
                .iter()
                .zip(inputs)
                .map(|(column, input)| {
                    let size = input.element.size();
                    let (data, valid) = (&column.data[from * size..to * size], column.valid);
                    Slice { data, valid: valid.map(|valid| &valid[from..to]) }
                })
                .collect();
            run.push(&slices)?;
            from = to;
        }
        run.finish(0)
    };
    (result(), function.is_whole())
}

/// Texts in which `@` is the number of the row.
const ONCE: [&str; 12] = [
    "int i; double sum = 0.0; for (i = 0; i < input.count; i = i + 1) { sum = sum + input.vals[@]; } return sum;",
    "double proc() { double s = 0; for (int i = 0; i < input.count; i++) s += input.vals[@]; return s / input.count; }",
    "long n; for (long i = 0; i < input.count; ++i) if (input.vals[@] > 0) n++; else n -= 2; return n;",
    "float least = INFINITY; int at = -1; for (int i = 0; i < input.count; i++) if (input.vals[@] < least) { least = input.vals[@]; at = i; } return at * 1000.0 + least;",
    "int bins[100]; for (int i = 0; i < input.count; i += 1) { int b = (int)fmin(fmax(isnan(input.vals[@]) ? 0 : input.vals[@], 0), 99); bins[b]++; } long s; for (int i = 0; i < 100; i++) s = s * 31 + bins[i]; return s;",
    "double f(double x) { return sqrt(fabs(x)); } double proc() { double s = 1; for (int i = 0; i < input.count; i++) { double y = f(input.vals[@]); if (y == y) s = s * 0.999 + y; } return s; }",
    "double last; double seen; void note(double x) { last = x; seen += 1; } double proc() { for (int i = 0; i < input.count; i++) note(input.vals[@]); return last + seen; }",
    "double s; for (int i = 0; i < input.count; i++) { for (int k = 0; k < 3; k++) { if (k == 2) break; s += input.vals[@] * k; } } return s;",
    "int i = 5; double s; { i = 0; for (; i < input.count; i++) s += i * (input.vals[@] > 1); } return s + i;",
    "double first[3] = {1, 2, 3}; for (int i = 0; i < input.count; i++) { first[i % 3] += exp(-fabs(input.vals[@] == input.vals[@] ? input.vals[@] : 1)); } return first[0] * first[1] - first[2];",
    "double s = 1; for (int i = 0; i < input.count; i++) s = input.vals[@] > 0 ? s + 1 : s / 2; if (input.count > 3) { return s; } return -1;",
    "double a; double b; a = b = 2; for (int i = 0; i < input.count; i++) { a += input.vals[@]; b = a - b; } return b;",
];

#[test]
fn one_pass_gives_what_all_rows_at_once_give() {
    let (values, inputs) = (odd(), doubles());
    for text in ONCE {
        let (once, whole) = (text.replace('@', "i"), text.replace('@', "i + 0"));
        for rows in [values.len(), 70_000, 9, 8, 7, 1, 0] {
            let data = bytes(&values[..rows]);
            let column = [Slice { data: &data, valid: None }];
            let (expected, is_whole) = ran(&whole, &inputs, &column, &[rows.max(1)]);
            assert!(is_whole, "{whole}");
            for pieces in [&[usize::MAX / 2][..], &[1, 8, 30_000, 3], &[29_000]] {
                let (got, is_whole) = ran(&once, &inputs, &column, pieces);
                assert!(!is_whole, "{once}");
                assert_eq!(got.unwrap(), *expected.as_ref().unwrap(), "{rows} rows in {pieces:?}: {once}");
            }
        }
    }
}

#[test]
fn missing_values_and_several_columns_are_seen_as_all_at_once() {
    let inputs = [input("T", Element::F64), input("k", Element::I16)];
    let values = odd();
    let ks: Vec<u8> = (0..values.len()).flat_map(|i| ((i % 700) as i16 - 350).to_le_bytes()).collect();
    let valid: Vec<u8> = (0..values.len()).map(|i| u8::from(i % 5 != 0)).collect();
    let data: Vec<u8> =
        values.iter().zip(&valid).flat_map(|(v, valid)| (v * f64::from(*valid)).to_le_bytes()).collect();
    let columns = [Slice { data: &data, valid: Some(&valid) }, Slice { data: &ks, valid: None }];
    let text = "double s; for (int i = 0; i < input.count; i++) { s = s * 0.5 + (input.T[@] > input.k[@] ? input.k[@] : 1); } return s;";
    let (got, is_whole) = ran(&text.replace('@', "i"), &inputs, &columns, &[10_000, 5]);
    let (expected, was_whole) = ran(&text.replace('@', "i + 0"), &inputs, &columns, &[values.len()]);
    assert_eq!((got.unwrap(), is_whole, was_whole), (expected.unwrap(), false, true));
}

#[test]
fn what_needs_more_than_one_row_has_all_rows() {
    for text in [
        "double s; for (int i = 0; i < input.count - 1; i++) s += input.vals[i]; return s;",
        "double s; for (int i = 1; i < input.count; i++) s += input.vals[i - 1]; return s;",
        "double s; for (int i = 0; i < input.count; i += 2) s += input.vals[i]; return s;",
        "double s; for (int i = 0; i < input.count; i++) { s += input.vals[i]; if (s > 3) break; } return s;",
        "double s; for (int i = 0; i < input.count; i++) { s += input.vals[i]; if (s > 3) return s; } return s;",
        "double s; for (int i = 0; i < input.count; i++) { s += input.vals[i]; i++; } return s;",
        "double s; for (int i = 0; i < input.count; i++) s += input.vals[i] / input.count; return s;",
        "double s = input.count; for (int i = 0; i < input.count; i++) s += input.vals[i]; return s;",
        "double s = input.vals[0]; for (int i = 0; i < input.count; i++) s += input.vals[i]; return s;",
        "double s; for (int i = 0; i < input.count; i++) s += input.vals[i]; return s - input.vals[0];",
        "double s; for (int i = 0; i < input.count; i++) s += missing(input.vals, i); return s;",
        "double s; for (int i = 0; i < input.count; i++) { int a[2]; a[i % 2] += 1; s += a[0] + input.vals[i]; } return s;",
        "double g(int i) { return input.vals[i]; } double proc() { double s; for (int i = 0; i < input.count; i++) s += input.vals[i] + g(0); return s; }",
        "double s; for (int i = 0; i < input.count; i++) s += input.vals[i]; for (int i = 0; i < input.count; i++) s -= input.vals[i]; return s;",
        "for (int i = 0; i < input.count; i++) { resize(i + 1); output[i] = input.vals[i]; }",
        "double s; for (unsigned int i = 0; i < input.count; i++) s += input.vals[i]; return s;",
    ] {
        let function = Function::compile(Code::C(text), &doubles()).unwrap_or_else(|e| panic!("{e}: {text}"));
        assert!(function.is_whole(), "{text}");
    }
}

#[test]
fn what_fails_is_told_with_its_place() {
    let text = "int s; for (int i = 0; i < input.count; i++) s += 8 / (int)(input.vals[i] - 3); return s;";
    assert_eq!(error(text), "invalid-value: line 1, column 53: an integer is divided by zero");
    let text = "int a[2]; for (int i = 0; i < input.count; i++) a[i] += input.vals[i] > 0; return a[0];";
    assert_eq!(error(text), "invalid-value: line 1, column 49: an index beyond the end of its array");
}
