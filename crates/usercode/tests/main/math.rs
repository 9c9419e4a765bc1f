//! Functions of `math.h`: against those of Rust, within a few units in the last place, and exact where they have to be.

use crate::given::doubles_of;

/// How many doubles lie between two.
fn apart(a: f64, b: f64) -> u64 {
    if a.is_nan() && b.is_nan() || a == b {
        return 0;
    }
    let key = |x: f64| {
        let bits = x.to_bits().cast_signed();
        if bits < 0 { i64::MIN.wrapping_sub(bits) } else { bits }
    };
    key(a).abs_diff(key(b))
}

fn drawn(low: f64, high: f64) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let unit = (state >> 11) as f64 / 9_007_199_254_740_992.0;
        low + (high - low) * unit
    };
    (0..20_000).map(|_| next()).collect()
}

#[test]
fn functions_are_those_of_the_library_within_four_units() {
    type Case = (&'static str, fn(f64) -> f64, f64, f64);
    let cases: [Case; 22] = [
        ("exp", f64::exp, -745.0, 709.0),
        ("exp2", f64::exp2, -1070.0, 1023.0),
        ("expm1", f64::exp_m1, -2.0, 2.0),
        ("log", f64::ln, 0.0, 10.0),
        ("log", f64::ln, 0.0, 1e-310),
        ("log2", f64::log2, 0.0, 1e9),
        ("log10", f64::log10, 0.0, 1e9),
        ("log1p", f64::ln_1p, -0.9, 3.0),
        ("sin", f64::sin, -1e4, 1e4),
        ("sin", f64::sin, -1e300, 1e300),
        ("cos", f64::cos, -1e4, 1e4),
        ("cos", f64::cos, -1e12, 1e12),
        ("tan", f64::tan, -100.0, 100.0),
        ("asin", f64::asin, -1.0, 1.0),
        ("acos", f64::acos, -1.0, 1.0),
        ("atan", f64::atan, -50.0, 50.0),
        ("sinh", f64::sinh, -700.0, 700.0),
        ("cosh", f64::cosh, -700.0, 700.0),
        ("tanh", f64::tanh, -3.0, 3.0),
        ("cbrt", f64::cbrt, -1e9, 1e9),
        ("round", f64::round, -1e3, 1e3),
        ("rint", f64::round_ties_even, -1e3, 1e3),
    ];
    for (name, library, low, high) in cases {
        let values = drawn(low, high);
        let got = doubles_of(&format!("double map(double x) {{ return {name}(x); }}"), &values);
        for (x, got) in values.iter().zip(got) {
            assert!(
                apart(got, library(*x)) <= 4,
                "{name}({x:?}) is {got:?}, of the library {:?}",
                library(*x)
            );
        }
    }
}

#[test]
fn functions_of_two_numbers_are_those_of_the_library() {
    type Case = (&'static str, fn(f64, f64) -> f64, u64);
    let cases: [Case; 7] = [
        ("pow", f64::powf, 1),
        ("atan2", f64::atan2, 4),
        ("hypot", f64::hypot, 2),
        ("fmod", |a, b| a % b, 0),
        ("fmin", f64::min, 0),
        ("fmax", f64::max, 0),
        ("copysign", f64::copysign, 0),
    ];
    let specials = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        2.0,
        -3.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        5e-324,
        1e308,
        -1e22,
    ];
    for (name, library, most) in cases {
        let (mut xs, mut ys) = (drawn(-50.0, 50.0), drawn(-20.0, 19.0));
        for x in specials {
            for y in specials {
                xs.push(x);
                ys.push(y);
            }
        }
        let columns = [crate::given::bytes(&xs), crate::given::bytes(&ys)];
        let inputs = [
            crate::given::input("x", sieva_usercode::Element::F64),
            crate::given::input("y", sieva_usercode::Element::F64),
        ];
        let slices = columns.each_ref().map(|data| sieva_usercode::Slice { data, valid: None });
        let text = format!("double map(double x, double y) {{ return {name}(x, y); }}");
        let out =
            crate::given::run(sieva_usercode::Code::C(&text), &inputs, &slices, &Default::default()).unwrap();
        for ((x, y), got) in xs.iter().zip(&ys).zip(crate::given::of_bytes(&out[0].data)) {
            let expected = library(*x, *y);
            let same = apart(got, expected) <= most
                && (got.is_nan()
                    || got != 0.0
                    || name.starts_with("fm")
                    || got.is_sign_negative() == expected.is_sign_negative());
            assert!(same, "{name}({x:?}, {y:?}) is {got:?}, of the library {expected:?}");
        }
    }
}

#[test]
fn what_is_exact_stays_exact() {
    let tens: Vec<f64> = (0..23).map(|i| 10_f64.powi(i)).collect();
    assert_eq!(
        doubles_of("double map(double x) { return log10(x); }", &tens),
        (0..23).map(f64::from).collect::<Vec<_>>()
    );
    let twos: Vec<f64> = (-1000..1000).map(|i| 2_f64.powi(i)).collect();
    assert_eq!(
        doubles_of("double map(double x) { return log2(x); }", &twos),
        (-1000..1000).map(f64::from).collect::<Vec<_>>()
    );
    let whole: Vec<f64> = (-30..=30).map(f64::from).collect();
    assert_eq!(
        doubles_of("double map(double x) { return pow(x, 7); }", &whole),
        whole.iter().map(|x| x.powi(7)).collect::<Vec<_>>()
    );
    assert_eq!(doubles_of("double map(double x) { return expf(x) - (float)exp(x); }", &[0.3, 2.0]), [0.0; 2]);
    assert_eq!(
        doubles_of(
            "double map(double x) { return isnan(x) * 4 + isinf(x) * 2 + isfinite(x); }",
            &[f64::NAN, f64::INFINITY, -1.0]
        ),
        [4.0, 2.0, 1.0]
    );
    assert_eq!(
        doubles_of("double map(double x) { return abs((int)x) + labs((long)x) + fabs(x); }", &[-2.5, 3.0]),
        [6.5, 9.0]
    );
}
