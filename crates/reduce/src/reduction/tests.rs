//! What reductions are as SQL, and what is refused.

use sieva_plan::{CompareOp, Literal};
use sieva_types::{Error, ErrorKind, Result};

use super::{Condition, DatePart, Dim, Function, Key, MAX_NAME, MAX_NESTED, Reduction};

fn dims_of(variable: &str) -> Result<Vec<String>> {
    Ok(match variable {
        "v" => ["time", "grid/y", "grid/x"].map(str::to_owned).to_vec(),
        "both" => ["a/x", "b/x"].map(str::to_owned).to_vec(),
        "square" => ["n", "n"].map(str::to_owned).to_vec(),
        "scalar" => Vec::new(),
        other => return Err(Error::new(ErrorKind::UnknownArray, format!("no array '{other}'"))),
    })
}

fn sql(reduction: &Reduction) -> String {
    reduction.to_sql(&dims_of).unwrap()
}

fn number(n: i128) -> Literal {
    Literal::Int(n)
}

#[test]
fn functions_of_table_one_are_queries() {
    for (reduction, expected) in [
        (Reduction::whole("v"), "SELECT v"),
        (Reduction::max("v"), "SELECT max(v)"),
        (Reduction::min("a b"), "SELECT min(\"a b\")"),
        (Reduction::mean("v"), "SELECT avg(v)"),
        (Reduction::range("v", 0, 100, 1000), "SELECT v WHERE idx(time) >= 100 AND idx(time) < 1000"),
        (Reduction::range("v", "x", 0, 0), "SELECT v WHERE idx(\"grid/x\") >= 0 AND idx(\"grid/x\") < 0"),
        (Reduction::between("v", number(-1), Literal::Float(2.0)), "SELECT v WHERE v > -1 AND v < 2.0"),
        (
            Reduction::compare("v", CompareOp::GtEq, Reduction::mean("v")),
            "SELECT v WHERE v >= (SELECT avg(v))",
        ),
        (
            Reduction::compare("v", CompareOp::NotEq, number(i128::MIN)),
            "SELECT v WHERE v <> -170141183460469231731687303715884105728",
        ),
        (Reduction::by_other("v", "w", number(1), number(2)), "SELECT v WHERE w > 1 AND w < 2"),
    ] {
        assert_eq!(sql(&reduction), expected);
    }
    let e = Reduction::code("v", "return 1;").to_sql(&dims_of).unwrap_err();
    assert_eq!(
        (e.kind(), e.message()),
        (ErrorKind::Unsupported, "the function of 'v' is the user's own code, which is no SQL")
    );
}

#[test]
fn functions_beyond_it_are_queries_too() {
    let by = |key| Reduction::mean("v").by(key);
    for (reduction, expected) in [
        (Reduction::count("v"), "SELECT count(v)"),
        (Reduction::sum("v"), "SELECT sum(v)"),
        (Reduction::variance("v"), "SELECT var_pop(v)"),
        (Reduction::of("v", Function::SampleVariance), "SELECT var_samp(v)"),
        (Reduction::std_dev("v"), "SELECT stddev_pop(v)"),
        (Reduction::of("v", Function::SampleStdDev), "SELECT stddev_samp(v)"),
        (Reduction::quantile("v", 0.1), "SELECT quantile(v, 0.1)"),
        (Reduction::histogram("v", 16, None), "SELECT histogram(v, 16)"),
        (Reduction::histogram("v", 16, Some((-1.5, 1e300))), "SELECT histogram(v, 16, -1.5, 1e300)"),
        (
            Reduction::block_mean("v", &[1, 2, 3]),
            "SELECT idx(time), idx(\"grid/y\") // 2, idx(\"grid/x\") // 3, avg(v) \
             GROUP BY idx(time), idx(\"grid/y\") // 2, idx(\"grid/x\") // 3",
        ),
        (Reduction::block_mean("scalar", &[]), "SELECT avg(scalar)"),
        (by(Key::part(DatePart::Month, "t")), "SELECT month(t), avg(v) GROUP BY month(t)"),
        (by(Key::value("lat")), "SELECT lat, avg(v) GROUP BY lat"),
        (
            by(Key::Band { variable: "lat".to_owned(), width: 10.0 }),
            "SELECT floor(lat / 10.0) * 10.0, avg(v) GROUP BY floor(lat / 10.0) * 10.0",
        ),
        (
            by(Key::Block { dimension: Dim::Position(0), factor: 7 }),
            "SELECT idx(time) // 7, avg(v) GROUP BY idx(time) // 7",
        ),
        (Reduction::first("v", "time"), "SELECT v WHERE idx(time) = 0"),
        (Reduction::last("v", 0), "SELECT v WHERE idx(time) = (SELECT max(idx(time)))"),
        (Reduction::Sql(" SELECT 1 ; ".to_owned()), "SELECT 1 "),
        (
            Reduction::compare("v", CompareOp::Lt, Reduction::Sql("SELECT 1 -- one".to_owned())),
            "SELECT v WHERE v < (SELECT 1 -- one\n)",
        ),
        (
            Reduction::max("v").within(Condition::range("y", 1, 2)).within(Condition::compare(
                "w",
                CompareOp::Eq,
                Literal::Text("it's".to_owned()),
            )),
            "SELECT max(v) WHERE idx(\"grid/y\") >= 1 AND idx(\"grid/y\") < 2 AND w = 'it''s'",
        ),
    ] {
        assert_eq!(sql(&reduction), expected);
    }
}

#[test]
fn dimensions_are_those_of_the_variable() {
    let error = |r: Reduction| {
        let e = r.to_sql(&dims_of).unwrap_err();
        (e.kind(), e.message().to_owned())
    };
    let told = |kind, text: &str| (kind, text.to_owned());
    assert_eq!(
        error(Reduction::first("v", 3)),
        told(ErrorKind::InvalidValue, "no dimension 3, counted from 0, of 'v' (time, grid/y, grid/x)")
    );
    assert_eq!(
        error(Reduction::first("v", "z")),
        told(ErrorKind::UnknownDimension, "no dimension 'z' of 'v' (time, grid/y, grid/x)")
    );
    assert_eq!(error(Reduction::last("both", "x")).0, ErrorKind::AmbiguousName);
    assert_eq!(sql(&Reduction::first("both", "/b/x")), "SELECT both WHERE idx(\"b/x\") = 0");
    assert_eq!(error(Reduction::first("square", 0)).0, ErrorKind::Unsupported);
    assert_eq!(
        error(Reduction::block_mean("v", &[2, 2])),
        told(
            ErrorKind::DimensionMismatch,
            "2 factors of blocks of 'v' (time, grid/y, grid/x): one for each dimension is expected"
        )
    );
    assert_eq!(error(Reduction::first("none", 0)), told(ErrorKind::UnknownArray, "no array 'none'"));
}

#[test]
fn what_makes_no_sense_is_refused() {
    use ErrorKind::{InvalidValue, TypeMismatch, Unsupported};
    let within = |c| Reduction::whole("v").within(c);
    let mut nested = Reduction::mean("v");
    for _ in 0..=MAX_NESTED {
        nested = Reduction::mean("v").within(Condition::compare("v", CompareOp::Gt, nested));
    }
    for (reduction, kind, part) in [
        (Reduction::max(""), InvalidValue, "no name"),
        (Reduction::max("a\nb"), InvalidValue, "control character"),
        (Reduction::max(&"x".repeat(MAX_NAME + 1)), InvalidValue, "too long"),
        (Reduction::quantile("v", 1.5), InvalidValue, "from 0 to 1, got 1.5"),
        (Reduction::quantile("v", f64::NAN), InvalidValue, "got NaN"),
        (Reduction::histogram("v", 0, None), InvalidValue, "got 0"),
        (Reduction::histogram("v", 2, Some((1.0, 1.0))), InvalidValue, "got 1.0 to 1.0"),
        (Reduction::histogram("v", 2, Some((0.0, f64::INFINITY))), InvalidValue, "got 0.0 to inf"),
        (Reduction::range("v", 0, 9, 5), InvalidValue, "got 9 to 5"),
        (Reduction::between("v", Literal::Float(f64::NAN), number(1)), InvalidValue, "NaN"),
        (
            Reduction::between("v", Literal::Text("a".to_owned()), number(1)),
            TypeMismatch,
            "two numbers, or two texts",
        ),
        (Reduction::compare("v", CompareOp::Eq, Literal::Null), InvalidValue, "NULL"),
        (Reduction::compare("v", CompareOp::Eq, Reduction::whole("v")), TypeMismatch, "not with all values"),
        (
            Reduction::compare("v", CompareOp::Eq, Reduction::histogram("v", 2, None)),
            TypeMismatch,
            "a histogram",
        ),
        (
            Reduction::compare("v", CompareOp::Eq, Reduction::block_mean("v", &[2])),
            TypeMismatch,
            "each group",
        ),
        (Reduction::compare("v", CompareOp::Eq, Reduction::code("v", "x")), Unsupported, "user's own"),
        (Reduction::compare("v", CompareOp::Eq, Reduction::quantile("v", 2.0)), InvalidValue, "got 2.0"),
        (Reduction::block_mean("v", &[2, 0, 2]), InvalidValue, "got 0"),
        (
            Reduction::mean("v").by(Key::Band { variable: "v".to_owned(), width: 0.0 }),
            InvalidValue,
            "above 0",
        ),
        (Reduction::whole("v").by(Key::value("lat")), InvalidValue, "not grouped"),
        (within(Condition::First("".into())), InvalidValue, "no name of a dimension"),
        (Reduction::Sql("  ".to_owned()), InvalidValue, "has 2 bytes"),
        (Reduction::code("v", ""), InvalidValue, "has 0 bytes"),
        (nested, InvalidValue, "nested deeper than 16"),
    ] {
        let e = reduction.to_sql(&dims_of).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.message().contains(part), "{e}");
    }
}
