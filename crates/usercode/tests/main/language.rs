//! Each feature of the C subset, against the values that C defines.

use sieva_usercode::{Code, Element, Function};

use crate::given::{doubles_of, error, input, of_doubles, value};

#[test]
fn arithmetic_has_the_types_of_c() {
    let cases: [(&str, f64); 34] = [
        ("return 7 / 2;", 3.0),
        ("return -7 / 2;", -3.0),
        ("return -7 % 3;", -1.0),
        ("return 7 / 2.0;", 3.5),
        ("return 1 + 2 * 3 - 4;", 3.0),
        ("return (1 + 2) * 3;", 9.0),
        ("return 2147483647 + 1;", -2_147_483_648.0),
        ("return 2147483647 + 1L;", 2_147_483_648.0),
        ("return 4294967295U + 1U;", 0.0),
        ("return -1 < 1U;", 0.0),
        ("return -1L < 1U;", 1.0),
        ("return 0xff;", 255.0),
        ("return 010;", 8.0),
        ("return 'a';", 97.0),
        ("return 1 << 10;", 1024.0),
        ("return -8 >> 1;", -4.0),
        ("return 0x80000000 >> 31;", 1.0),
        ("return 6 & 3 | 8 ^ 12;", 6.0),
        ("return ~5;", -6.0),
        ("return !5 + !0;", 1.0),
        ("return -(-3);", 3.0),
        ("return 1.5f + 1;", 2.5),
        ("return 0.1f;", 0.100_000_001_490_116_12),
        ("return 0.1f == 0.1;", 0.0),
        ("return 1e400 > 1;", 1.0),
        ("return (int)3.99 + (int)-3.99;", 0.0),
        ("return (char)300;", 44.0),
        ("return (unsigned char)-1;", 255.0),
        ("return (short)65535;", -1.0),
        ("return (unsigned long)-1 > 1e19;", 1.0),
        ("return (float)16777217;", 16_777_216.0),
        ("return 1 ? 2 : 3.5;", 2.0),
        ("return 0 ? 2 : 3 ? 4 : 5;", 4.0),
        ("return (1, 2, 3);", 3.0),
    ];
    for (body, expected) in cases {
        assert_eq!(value(body).to_bits(), expected.to_bits(), "{body} gave {}", value(body));
    }
}

#[test]
fn statements_do_what_they_do_in_c() {
    let cases: [(&str, f64); 24] = [
        (
            "int i, n = 0; for (i = 0; i < 10; i++) { if (i == 3) continue; if (i == 6) break; n += i; } return n;",
            12.0,
        ),
        ("int n = 0; while (n < 5) n++; return n;", 5.0),
        ("int n = 0; do { n += 2; } while (n < 5); return n;", 6.0),
        ("int n = 0; do { n++; if (n < 3) continue; } while (n < 5); return n;", 5.0),
        ("int n = 0; for (;;) { if (n > 7) break; n++; } return n;", 8.0),
        (
            "int n = 0; for (int i = 0; i < 3; i++) for (int j = 0; j < 3; ++j) { if (j == 1) break; n++; } return n;",
            3.0,
        ),
        ("int x = 1; { int x = 2; x++; } return x;", 1.0),
        ("int a = 5; int b = a++ * 2 + a; return b * 100 + a;", 1606.0),
        ("int a = 5; return ++a * 10 + a--;", 66.0),
        (
            "int a = 1; a += 2; a *= 5; a -= 1; a /= 2; a %= 4; a <<= 3; a |= 1; a ^= 3; a &= 0xfe; a >>= 1; return a;",
            13.0,
        ),
        ("double a; int b; return a + b;", 0.0),
        ("double a[3]; return a[0] + a[1] + a[2];", 0.0),
        ("int a[4] = {1, 2, 3}; return a[0] * 1000 + a[1] * 100 + a[2] * 10 + a[3];", 1230.0),
        (
            "int a[2][3]; for (int i = 0; i < 2; i++) for (int j = 0; j < 3; j++) a[i][j] = 10 * i + j; return a[1][2] * 100 + a[0][1];",
            1201.0,
        ),
        (
            "int a[3] = {7, 7, 7}; int i = 0; a[i++] += 5; a[i++] = i; return a[0] * 100 + a[1] * 10 + i;",
            1222.0,
        ),
        ("unsigned char c[2]; c[0] = 200; c[0] += 100; return c[0];", 44.0),
        ("int n = 0; int a = 0 && n++; int b = 1 || n++; return n * 10 + a + b;", 1.0),
        ("int a, b; a = b = 4; return a + b;", 8.0),
        ("int i = 0; return i++ < 1 ? i : 9;", 1.0),
        ("int i = 0; int both = (i = 2) && i; return both * 10 + i;", 12.0),
        ("char c = 127; c++; return c;", -128.0),
        ("if (input.count == 3) { return input.vals[1]; } else return 0;", -1.5),
        ("const int k = 4; return k * input->vals[2];", 32.0),
        ("long n = 0; for (long i = 0; i < input.count; i++) n += (long)input.vals[i]; return n;", 10.0),
    ];
    for (body, expected) in cases {
        assert_eq!(value(body), expected, "{body}");
    }
}

#[test]
fn functions_call_one_another_in_any_order() {
    let text = "
        double proc() { return fact(10) + twice(input.vals[0]) + even(7); }
        long fact(int n) { return n < 2 ? 1 : n * fact(n - 1); }
        double twice(float x) { return 2 * x; }
        int even(int n) { return n == 0 ? 1 : odd(n - 1); }
        int odd(int n) { return n == 0 ? 0 : even(n - 1); }
        double never() { return exp(1); }";
    assert_eq!(doubles_of(text, &[0.5]), [3_628_801.0]);
}

#[test]
fn code_of_figure_2_runs_and_has_the_type_of_what_it_returns() {
    let text = "int i;\n\ndouble sum = 0.0;\n\nfor(i = 0; i<input.count; i= i+1) {\n sum = sum + input.vals[i];\n}\n\nreturn sum;\n";
    assert_eq!(doubles_of(text, &[1.0, 2.0, 4.0]), [7.0]);
    let out = of_doubles("int n = 0; if (input.count > 1) return n; return 2.5f;", &[1.0]).unwrap();
    assert_eq!((out[0].element, &*out[0].data), (Element::F32, &2.5_f32.to_le_bytes()[..]));
    let out = of_doubles("char c = 7; return c;", &[1.0]).unwrap();
    assert_eq!((out[0].element, &*out[0].data), (Element::I32, &7_i32.to_le_bytes()[..]));
}

#[test]
fn an_output_has_the_type_that_is_said_wherever_it_is_said() {
    // A function before the declaration and one after it write the same type.
    let texts = [
        "void put(int i, double v) { output[i] = v; } float output[]; void proc() { resize(2); put(0, 1.5); output[1] = 2.25; }",
        "void proc() { resize(2); put(0, 1.5); output.vals[1] = 2.25; } void put(int i, double v) { output[i] = v; } float output[];",
    ];
    for text in texts {
        let out = of_doubles(text, &[0.0]).unwrap();
        let expected = [1.5_f32, 2.25].map(f32::to_le_bytes).concat();
        assert_eq!((out[0].element, &out[0].data), (Element::F32, &expected), "{text}");
    }
    assert_eq!(doubles_of("resize(3); output[1] = 4; resize(2); resize(4);", &[0.0]), [0.0, 4.0, 0.0, 0.0]);
    let grow = "for (int i = 0; i < 5000; i++) { resize(i + 1); output[i] = i; }";
    assert_eq!(doubles_of(grow, &[0.0]), (0..5000).map(f64::from).collect::<Vec<_>>());
    assert_eq!(doubles_of("resize(0);", &[0.0]), [0.0; 0]);
}

#[test]
fn wrong_text_is_refused_with_its_place() {
    let cases = [
        (
            "double map(double x) { return x + ; }",
            "syntax-error: line 1, column 35: a value is expected, found ';'",
        ),
        (
            "double map(double x) {\n  return y;\n}",
            "syntax-error: line 2, column 10: there is no variable 'y'",
        ),
        (
            "double map(double x) { return foo(x); }",
            "syntax-error: line 1, column 31: there is no function 'foo'",
        ),
        ("double map(double x) { return x }", "syntax-error: line 1, column 33: ';' is expected, found '}'"),
        (
            "double map(double x) { return x;",
            "syntax-error: line 1, column 33: '}' is expected, found the end of the code",
        ),
        (
            "double map(double x) { double *p; }",
            "syntax-error: line 1, column 31: there are no pointers: take an array, as double a[10]",
        ),
        (
            "double map(int x) { return x; }",
            "type-mismatch: line 1, column 1: values of 'x' are of type float64, which int does not hold",
        ),
        (
            "double map(double x, double y) { return x; }",
            "type-mismatch: line 1, column 1: 'map' has 2 parameters, and it is asked of 1 columns",
        ),
        (
            "double map(double x) { return input.vals[0]; }",
            "type-mismatch: line 1, column 1: 'map' sees its parameters, not 'input' and 'output'",
        ),
        (
            "int n; double map(double x) { n++; return n; }",
            "syntax-error: line 1, column 5: 'n' would be kept from row to row, and 'map' has no order: make it const, or write 'proc'",
        ),
        (
            "void map(double x) { }",
            "type-mismatch: line 1, column 1: 'map' returns a value of each row, not void",
        ),
        (
            "double map(double x) { return x; } int filter(double x) { return 1; }",
            "syntax-error: line 1, column 36: 'map' and 'filter' are two forms of code: write one of them",
        ),
        ("double f(double x) { return x; }", "syntax-error: the code has no function that can be called"),
        (
            "double exp(double x) { return x; } return exp(1);",
            "syntax-error: line 1, column 1: 'exp' is a function that is there already",
        ),
        (
            "return 1.5 % 2;",
            "type-mismatch: line 1, column 12: this operator is for integers: the remainder of floats is fmod(x, y)",
        ),
        ("return input.vals[1.0];", "type-mismatch: line 1, column 19: an index is an integer, not double"),
        (
            "input.vals[0] = 1; return 1;",
            "syntax-error: line 1, column 1: this cannot be written to: it is const, or what comes in",
        ),
        (
            "const int k = 1; k = 2; return k;",
            "syntax-error: line 1, column 18: this cannot be written to: it is const, or what comes in",
        ),
        (
            "int a[0]; return 1;",
            "syntax-error: line 1, column 7: the length of an array is an integer from 1 that is known here",
        ),
        ("return input.salt[0];", "syntax-error: line 1, column 8: the input has no column 'salt'"),
        ("break; return 1;", "syntax-error: line 1, column 1: 'break' outside of a loop"),
        (
            "int a; int a; return a;",
            "syntax-error: line 1, column 12: there are two variables 'a' in this block",
        ),
        (
            "return 1; resize(2);",
            "type-mismatch: line 1, column 1: it returns a value and writes to 'output': do one of them",
        ),
        ("int a = 1;", "syntax-error: the code has no function that can be called"),
        (
            "int a; a = 1;",
            "syntax-error: line 1, column 1: nothing comes of it: return a value, or write to 'output'",
        ),
        ("/* no end", "syntax-error: line 1, column 1: a comment without its end: '*/' is expected"),
        (
            "#define N 3\nreturn N;",
            "syntax-error: line 1, column 1: there is no preprocessor: of '#' lines only '#include <math.h>' and the like are passed over",
        ),
        ("switch (1) { }", "syntax-error: line 1, column 1: a name is expected, found 'switch'"),
        ("return sqrt(1, 2);", "type-mismatch: line 1, column 8: 'sqrt' takes 1 arguments, and gets 2"),
        ("return abs(1.5);", "type-mismatch: line 1, column 12: abs is for integers: take fabs(x)"),
        (
            "unsigned double x; return x;",
            "syntax-error: line 1, column 1: 'unsigned double' is no type: there are char, short, int, long, unsigned ones of these, float and double",
        ),
        (
            "return 99999999999999999999;",
            "syntax-error: line 1, column 8: '99999999999999999999' is no number",
        ),
        ("return 3 @ 4;", "syntax-error: line 1, column 10: '@' is no character of the language"),
        ("void step(double x) { }", "syntax-error: a reduction needs a function 'finish' beside 'step'"),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn what_c_leaves_undefined_is_an_error_of_its_line() {
    let cases = [
        ("int z = 0;\nreturn 1 / z;", "invalid-value: line 2, column 10: an integer is divided by zero"),
        ("long z = 0;\n\nreturn 1 % z;", "invalid-value: line 3, column 10: an integer is divided by zero"),
        (
            "int m = -2147483647 - 1, o = -1; return m / o;",
            "invalid-value: line 1, column 43: an integer leaves its range by a division",
        ),
        (
            "double big = 1e10; return (int)big;",
            "invalid-value: line 1, column 32: a number that no integer of the type holds",
        ),
        ("double no = NAN; return (long)no;", "invalid-value: line 1, column 31: a NaN becomes no integer"),
        (
            "int i = 3;\nreturn input.vals[i];",
            "invalid-value: line 2, column 8: an index beyond the end of its array",
        ),
        (
            "int i = -1; return input.vals[i];",
            "invalid-value: line 1, column 20: an index beyond the end of its array",
        ),
        (
            "int a[4]; int i = 4; a[i] = 1; return a[0];",
            "invalid-value: line 1, column 22: an index beyond the end of its array",
        ),
        (
            "int a[2][3]; int j = 3; return a[0][j];",
            "invalid-value: line 1, column 37: an index beyond the end of its array",
        ),
        (
            "long i = 4294967296L; return input.vals[i];",
            "invalid-value: line 1, column 30: an index beyond the end of its array",
        ),
        (
            "double f(double x) { if (x > 0) return x; }\nreturn f(-1);",
            "invalid-value: line 1, column 1: a function ends without 'return'",
        ),
        ("output[0] = 1;", "invalid-value: line 1, column 1: an index beyond the end of its array"),
        (
            "resize(-1);",
            "memory-limit: line 1, column 1: the code needs more than the 268435456 bytes of memory that it may have",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn loops_end_where_they_say_however_many_times_they_go_round() {
    // Small bodies are repeated by the compiler: all remainders, and each way out at each place.
    for n in 0..40_i32 {
        let expected =
            |of: fn(i32, i32) -> bool, end: i32| (0..end).filter(|i| of(*i, n)).map(f64::from).sum::<f64>();
        let cases = [
            (
                format!("long s = 0; for (int i = 0; i < {n}; i++) s += i; return s;"),
                expected(|_, _| true, n),
            ),
            (
                format!("long s = 0; int i = 0; while (i < {n}) {{ s += i; i++; }} return s;"),
                expected(|_, _| true, n),
            ),
            (
                format!("long s = 0; int i = 0; do {{ s += i; i++; }} while (i < {n}); return s;"),
                expected(|_, _| true, n.max(1)),
            ),
            (
                format!("long s = 0; for (int i = 0; ; i++) {{ if (i == {n}) break; s += i; }} return s;"),
                expected(|_, _| true, n),
            ),
            (
                format!(
                    "long s = 0; for (int i = 0; i < 40; i++) {{ if (i == {n}) continue; s += i; }} return s;"
                ),
                expected(|i, n| i != n, 40),
            ),
            (
                format!(
                    "long s = 0; for (int i = 0; i < 40; i++) {{ if (i == {n}) return s; s += i; }} return -1;"
                ),
                expected(|_, _| true, n),
            ),
        ];
        for (body, expected) in cases {
            assert_eq!(value(&body), expected, "{body}");
        }
        let text = format!("resize({n}); for (int i = 0; i <= {n}; i++) output[i] = 1;");
        let told = error(&text);
        assert!(told.ends_with("an index beyond the end of its array"), "{text}: {told}");
    }
}

#[test]
fn what_no_column_could_mend_is_told_before_columns_are_known() {
    let map = |body: &str| format!("int map(int v) {{ {body} return v; }}");
    for (text, said) in [
        (
            "int map(int v) { return v; } int map(int v) { return v; }".to_owned(),
            "there are two functions 'map'",
        ),
        ("int map(int v) { return v; } int filter(int v) { return v; }".to_owned(), "two forms of code"),
        ("double half(double x) { return x / 2; }".to_owned(), "no function that can be called"),
        ("void map(int v) { }".to_owned(), "'map' returns a value of each row, not void"),
        ("int map() { return 1; }".to_owned(), "'map' has 0 parameters"),
        ("int step(int v) { return v; }".to_owned(), "a reduction needs a function 'finish'"),
        (map("int a[-1];"), "line 1, column"),
        (map("int a[0];"), "line 1, column"),
        (map("int a[1073741824];"), "line 1, column"),
        (map("int b = none;"), "'none'"),
        (format!("const int a = 1 / 0; {}", map("")), "line 1, column"),
        (format!("const int a[1073741824] = {{1}}; {}", map("")), "line 1, column"),
        // Of all rows: whatever the columns are.
        ("int a[-1]; return 1;".to_owned(), "line 1, column"),
        ("return input.vals[none];".to_owned(), "'none'"),
        ("void proc() { double x = input.vals[0]; }".to_owned(), "nothing comes of it"),
    ] {
        let e = Code::C(&text).check().expect_err(&text);
        assert!(e.message().contains(said), "{text}: {e}");
        // Of columns that would do it is the same.
        let known = Function::compile(Code::C(&text), &[input("v", Element::I32)]).unwrap_err();
        assert!(text.contains("map()") || known.message() == e.message(), "{text}: {known}");
    }
    // What some columns would do with is taken.
    for text in [
        "return input.a[input.b[0]];",
        "return input.count % 3;",
        "return input.a[0] % 2 + sqrt(input.b[0]);",
        "double map(double a, float b, long c) { return a + b + c; }",
        "long n; void step(int v, double w) { n += v; } long finish() { return n; }",
        "resize(input.count); for (int i = 0; i < input.count; i++) output[i] = input.TEMP[i];",
        "int proc(cod_exec_context ec, input_type *input, int k, int m) { return input.vals[k]; }",
    ] {
        Code::C(text).check().unwrap_or_else(|e| panic!("{text}: {e}"));
    }
}
