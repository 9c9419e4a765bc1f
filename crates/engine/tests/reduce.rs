//! Reductions as queries, beside what they mean; and values in place of subqueries, which change nothing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use sieva::{Error, OpenOptions, Plan, QueryOptions, Scalar, Source, ValueType};
use sieva_plan::{CompareOp, Literal, Type};
use sieva_reduce::merge::stages::{Stages, Value};
use sieva_reduce::{Condition, DatePart, Function, Key, Reduction};

const SHAPE: [usize; 3] = [5, 4, 7];
const FILL: f64 = -999.0;

/// An array of a Zarr 2 group.
fn put<T>(
    path: &Path,
    name: &str,
    dims: &[(&str, usize)],
    dtype: &str,
    more: &str,
    values: &[T],
    bytes: fn(&T) -> Vec<u8>,
) {
    let directory = path.join(name);
    fs::create_dir_all(&directory).unwrap();
    let shape: Vec<String> = dims.iter().map(|d| d.1.to_string()).collect();
    let names: Vec<String> = dims.iter().map(|d| format!("{:?}", d.0)).collect();
    let (shape, names) = (shape.join(","), names.join(","));
    let fill = if dtype == ">f8" { FILL.to_string() } else { "0".to_owned() };
    let head = format!(
        r#"{{"zarr_format": 2, "shape": [{shape}], "chunks": [{shape}], "dtype": "{dtype}", "compressor": null,
        "fill_value": {fill}, "order": "C", "filters": null}}"#
    );
    fs::write(directory.join(".zarray"), head).unwrap();
    fs::write(directory.join(".zattrs"), format!(r#"{{"_ARRAY_DIMENSIONS": [{names}]{more}}}"#)).unwrap();
    let chunk = vec!["0"; dims.len()].join(".");
    fs::write(directory.join(chunk), values.iter().flat_map(bytes).collect::<Vec<u8>>()).unwrap();
}

/// Values of `T`: some missing, some special.
fn temperatures() -> Vec<f64> {
    let special = [f64::NAN, -0.0, 0.0, FILL, 1e300, -1e300, 5e-324];
    let value = |i: usize| match i * 7 % 11 {
        3 => special[i % special.len()],
        _ => ((i * 37) % 101) as f64 / 4.0 - 12.0,
    };
    (0..SHAPE.iter().product()).map(value).collect()
}

/// `T` (f8), `u` (u8, beyond 2^63 and small), `i` (i4), `select` (f8, whole numbers) over time, lat, lon, with coordinates.
fn source(name: &str) -> Source {
    let path =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("reduce-{name}-{}.zarr", std::process::id()));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join(".zgroup"), r#"{"zarr_format": 2}"#).unwrap();
    let dims = [("time", SHAPE[0]), ("lat", SHAPE[1]), ("lon", SHAPE[2])];
    let n: usize = SHAPE.iter().product();
    put(&path, "T", &dims, ">f8", "", &temperatures(), |v| v.to_be_bytes().to_vec());
    let wholes: Vec<f64> = (0..n).map(|i| (i * i % 64) as f64).collect();
    put(&path, "select", &dims, ">f8", "", &wholes, |v| v.to_be_bytes().to_vec());
    let unsigned: Vec<u64> = (0..n as u64).map(|i| if i % 5 == 0 { u64::MAX - i } else { i + 1 }).collect();
    put(&path, "u", &dims, ">u8", "", &unsigned, |v| v.to_be_bytes().to_vec());
    let signed: Vec<i32> = (0..n as i32).map(|i| i * 31 % 17 - 8).collect();
    put(&path, "i", &dims, "<i4", "", &signed, |v| v.to_le_bytes().to_vec());
    let days: Vec<f64> = (0..SHAPE[0]).map(|t| 20.0 * t as f64 + 0.5).collect();
    let units = r#", "units": "days since 2000-01-01", "standard_name": "time""#;
    put(&path, "time", &dims[..1], ">f8", units, &days, |v| v.to_be_bytes().to_vec());
    let lats: Vec<f64> = (0..SHAPE[1]).map(|y| 25.0 * y as f64 - 30.0).collect();
    put(&path, "lat", &dims[1..2], ">f8", "", &lats, |v| v.to_be_bytes().to_vec());
    Source::open(&path, &OpenOptions::default()).unwrap()
}

fn dims_of(name: &str) -> sieva::Result<Vec<String>> {
    let all = ["time", "lat", "lon"].map(str::to_owned);
    Ok(match name {
        "time" => all[..1].to_vec(),
        "lat" => all[1..2].to_vec(),
        _ => all.to_vec(),
    })
}

fn rows(source: &Source, of: &Reduction) -> Vec<RecordBatch> {
    let sql = of.to_sql(&dims_of).unwrap();
    let query = source.sql(&sql, &QueryOptions::default()).unwrap_or_else(|e| panic!("{sql}: {e}"));
    query.batches(1000).unwrap().map(|b| b.unwrap_or_else(|e| panic!("{sql}: {e}"))).collect()
}

/// The last column as floats; NaN where it is missing.
fn floats(source: &Source, of: &Reduction) -> Vec<f64> {
    let column = |b: RecordBatch| {
        let last = b.column(b.num_columns() - 1).as_primitive::<Float64Type>().clone();
        (0..last.len()).map(|i| if last.is_null(i) { f64::NAN } else { last.value(i) }).collect::<Vec<_>>()
    };
    rows(source, of).into_iter().flat_map(column).collect()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() }).collect()
}

/// Values of `T` with their places, where missing ones are NaN.
fn places() -> Vec<([usize; 3], f64)> {
    let at = |i: usize| [i / SHAPE[2] / SHAPE[1], i / SHAPE[2] % SHAPE[1], i % SHAPE[2]];
    temperatures()
        .into_iter()
        .enumerate()
        .map(|(i, v)| (at(i), if v == FILL { f64::NAN } else { v }))
        .collect()
}

#[test]
fn values_that_are_selected_are_those_that_brute_force_finds() {
    let source = source("selected");
    let all = places();
    let kept = |keep: &dyn Fn(&[usize; 3], f64) -> bool| -> Vec<f64> {
        all.iter().filter(|(at, v)| keep(at, *v)).map(|(_, v)| *v).collect()
    };
    let least = all.iter().map(|p| p.1).filter(|v| *v > -100.0).fold(f64::INFINITY, f64::min);
    let number = |v: f64| Literal::Float(v);
    let days = |t: usize| 20.0 * t as f64 + 0.5;
    let whole = |at: &[usize; 3]| ((at[0] * SHAPE[1] + at[1]) * SHAPE[2] + at[2]).pow(2) % 64;
    let date = |text: &str| Literal::Text(text.to_owned());
    for (reduction, expected) in [
        (Reduction::whole("T"), kept(&|_, _| true)),
        (Reduction::range("T", 1, 1, 3), kept(&|at, _| (1..3).contains(&at[1]))),
        (Reduction::range("T", "lon", 6, 1000), kept(&|at, _| at[2] == 6)),
        (Reduction::range("T", "lon", 3, 3), Vec::new()),
        (Reduction::first("T", 0), kept(&|at, _| at[0] == 0)),
        (Reduction::last("T", "time"), kept(&|at, _| at[0] == SHAPE[0] - 1)),
        (Reduction::between("T", Literal::Int(-3), number(0.0)), kept(&|_, v| v > -3.0 && v < 0.0)),
        (
            Reduction::between("T", number(f64::NEG_INFINITY), number(f64::INFINITY)),
            kept(&|_, v| v.is_finite()),
        ),
        (
            Reduction::by_other("T", "time", date("2000-01-10"), date("2000-02-20")),
            kept(&|at, _| days(at[0]) > 9.0 && days(at[0]) < 50.0),
        ),
        (
            Reduction::by_other("T", "select", Literal::Int(10), Literal::Int(40)),
            kept(&|at, _| (11..40).contains(&whole(at))),
        ),
        (
            Reduction::compare(
                "T",
                CompareOp::GtEq,
                Reduction::min("T").within(Condition::compare("T", CompareOp::Gt, Literal::Int(-100))),
            ),
            kept(&|_, v| v >= least),
        ),
        (
            Reduction::compare("T", CompareOp::LtEq, Reduction::max("T").within(Condition::range(0, 0, 1))),
            kept(&|_, v| v <= all.iter().filter(|(at, _)| at[0] == 0).map(|p| p.1).fold(f64::NAN, f64::max)),
        ),
        (
            Reduction::compare(
                "T",
                CompareOp::Gt,
                Reduction::Sql("SELECT min(lat) -- of the coordinate".to_owned()),
            ),
            kept(&|_, v| v > -30.0),
        ),
    ] {
        assert_eq!(
            bits(&floats(&source, &reduction)),
            bits(&expected),
            "{}",
            reduction.to_sql(&dims_of).unwrap()
        );
    }
}

#[test]
fn functions_and_groups_are_those_of_brute_force() {
    let source = source("groups");
    let at = |t: usize, y: usize, x: usize| (((t * SHAPE[1] + y) * SHAPE[2] + x).pow(2) % 64) as f64;
    let each =
        || (0..SHAPE[0]).flat_map(|t| (0..SHAPE[1]).flat_map(move |y| (0..SHAPE[2]).map(move |x| [t, y, x])));
    // Means of whole numbers by groups, in the order of keys.
    let means = |key: &dyn Fn([usize; 3]) -> Vec<i64>| -> Vec<f64> {
        let mut groups: std::collections::BTreeMap<Vec<i64>, (f64, f64)> = Default::default();
        for [t, y, x] in each() {
            let group = groups.entry(key([t, y, x])).or_default();
            *group = (group.0 + at(t, y, x), group.1 + 1.0);
        }
        groups.into_values().map(|(sum, n)| sum / n).collect()
    };
    let i = |v: usize| v as i64;
    for (reduction, expected) in [
        (Reduction::mean("select"), means(&|_| vec![])),
        (Reduction::block_mean("select", &[2, 1, 3]), means(&|[t, y, x]| vec![i(t / 2), i(y), i(x / 3)])),
        (Reduction::block_mean("select", &[100, 100, 100]), means(&|_| vec![])),
        (
            Reduction::mean("select").by(Key::Block { dimension: "lon".into(), factor: 2 }),
            means(&|[_, _, x]| vec![i(x / 2)]),
        ),
        (
            Reduction::mean("select").by(Key::part(DatePart::Month, "time")).by(Key::value("lat")),
            means(&|[t, y, _]| {
                vec![
                    if t < 2 {
                        1
                    } else if t < 3 {
                        2
                    } else {
                        3
                    },
                    i(y),
                ]
            }),
        ),
        (
            Reduction::mean("select").by(Key::Band { variable: "lat".to_owned(), width: 40.0 }),
            means(&|[_, y, _]| vec![i(y * 25).saturating_sub(30).div_euclid(40)]),
        ),
    ] {
        assert_eq!(
            bits(&floats(&source, &reduction)),
            bits(&expected),
            "{}",
            reduction.to_sql(&dims_of).unwrap()
        );
    }
    let wholes: Vec<f64> = each().map(|[t, y, x]| at(t, y, x)).collect();
    let (n, sum) = (wholes.len() as f64, wholes.iter().sum::<f64>());
    assert_eq!(floats(&source, &Reduction::sum("select")), [sum]);
    let variance = wholes.iter().map(|v| (v - sum / n).powi(2)).sum::<f64>() / n;
    for (function, expected) in [
        (Function::Variance, variance),
        (Function::SampleVariance, variance * n / (n - 1.0)),
        (Function::StdDev, variance.sqrt()),
        (Function::SampleStdDev, (variance * n / (n - 1.0)).sqrt()),
    ] {
        let got = floats(&source, &Reduction::of("select", function))[0];
        assert!((got - expected).abs() < 1e-9 * expected, "{function:?}: {got} {expected}");
    }
    let mut sorted = wholes.clone();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(floats(&source, &Reduction::quantile("select", 1.0)), [sorted[sorted.len() - 1]]);
    assert_eq!(floats(&source, &Reduction::max("select")), [sorted[sorted.len() - 1]]);
    assert_eq!(floats(&source, &Reduction::min("select")), [sorted[0]]);
    let count = &rows(&source, &Reduction::count("T"))[0];
    let expected = places().iter().filter(|p| !p.1.is_nan()).count() as i64;
    assert_eq!(count.column(0).as_primitive::<Int64Type>().value(0), expected);
    let histogram = rows(&source, &Reduction::histogram("select", 4, Some((0.0, 64.0))));
    assert_eq!(histogram[0].num_rows(), 1);
}

/// What the value of a unit is in plans.
fn value((value, value_type): (Scalar, Option<ValueType>)) -> Value {
    match value {
        Scalar::Null => Value::Missing(value_type.map(|t| match t {
            ValueType::Bool => Type::Bool,
            ValueType::I64 => Type::Int64,
            ValueType::U64 => Type::UInt64,
            ValueType::F64 => Type::Float64,
            ValueType::Str => Type::Text,
        })),
        Scalar::Bool(v) => Value::Bool(v),
        Scalar::I64(v) => Value::Int(v),
        Scalar::U64(v) => Value::UInt(v),
        Scalar::F64(v) => Value::Float(v),
        Scalar::Str(v) => Value::Text(v),
        Scalar::Histogram { .. } => panic!("a histogram is no value"),
    }
}

/// The rows of a plan that is run by itself.
fn run(source: &Source, plan: &Plan) -> Result<Vec<RecordBatch>, Error> {
    source.query_plan(plan, &QueryOptions::default())?.batches(1000)?.collect()
}

/// The rows of a query by its stages.
fn staged(source: &Source, text: &str) -> Result<(usize, Vec<RecordBatch>), Error> {
    let plan = source.sql(text, &QueryOptions::default())?.logical_plan()?;
    let stages = Stages::of(&[(0, plan)])?;
    let mut values = HashMap::new();
    let mut last = Vec::new();
    for &unit in stages.stages.iter().flatten() {
        let plan = stages.ready(unit, &|n| values.get(&n).cloned())?;
        if stages.units[unit].is_value {
            values.insert(unit, value(source.query_plan(&plan, &QueryOptions::default())?.scalar()?));
        } else {
            last = run(source, &plan)?;
        }
    }
    Ok((stages.units.len(), last))
}

#[test]
fn values_in_place_of_subqueries_change_nothing() {
    let source = source("stages");
    // Of each type, there and missing: small and great unsigned, signed zeros, infinities, dates, texts, truth values.
    let inner = [
        "SELECT avg(T)",
        "SELECT max(T)",
        "SELECT min(T) WHERE T = 0",
        "SELECT max(T) WHERE T > 1e307",
        "SELECT ln(0) * max(i) WHERE i > 0",
        "SELECT max(u)",
        "SELECT min(u)",
        "SELECT min(u) WHERE u < 0",
        "SELECT min(i)",
        "SELECT max(i) WHERE i > 100",
        "SELECT count(T)",
        "SELECT max(time) WHERE T > 2",
        "SELECT max(i) > 3",
        "SELECT max(i) > 3 WHERE i > 100",
        "SELECT u WHERE u > 5 LIMIT 1",
        "SELECT sum(i) + 1 WHERE T > (SELECT avg(T) WHERE T > (SELECT min(T)))",
        "SELECT T LIMIT 2",
        "SELECT max('a') WHERE i > 0",
        "SELECT NULL WHERE i > 0 LIMIT 1",
    ];
    let outer = [
        "SELECT T WHERE T > (S)",
        "SELECT T WHERE NOT (u <= (S) OR T > 5)",
        "SELECT u, i WHERE (S) <> u AND i = i",
        "SELECT u WHERE u % 10 + (S) > 12",
        "SELECT i + (S), u + (S), T * (S) LIMIT 20",
        "SELECT u // (S), u % (S), - (S), i LIMIT 20",
        "SELECT coalesce((S), u), coalesce(i, (S)), least(u, (S)), if(T > 0, u, (S)) LIMIT 20",
        "SELECT nullif(u, (S)), nullif((S), u), (S) IS NULL, i LIMIT 20",
        "SELECT i WHERE (S) IS NULL",
        "SELECT T WHERE (S) AND T > 3",
        "SELECT i, count(*) GROUP BY i HAVING max(T) > (S)",
        "SELECT sum(u % 7 + (S)), avg(i) WHERE u % 2 = 1",
        "SELECT i WHERE T > 3 ORDER BY u % 5 + (S), i LIMIT 9",
        "SELECT lat WHERE lat > (S) - 100 AND T IN (1, 2, 3, 4)",
        "SELECT i WHERE u BETWEEN 0 AND (S)",
        "SELECT (S) LIKE 'a%', i LIMIT 3",
        "SELECT time WHERE time < (S)",
        "SELECT DISTINCT (S) + 0, i",
        "SELECT idx(lon) WHERE idx(lon) < (S)",
    ];
    let (mut same, mut failed) = (0, 0);
    for outer in outer {
        for inner in inner {
            let text = outer.replace("(S)", &format!("({inner})"));
            let whole = source.sql(&text, &QueryOptions::default());
            let whole = whole.and_then(|q| q.batches(1000)?.collect::<Result<Vec<_>, _>>());
            match (whole, staged(&source, &text)) {
                (Ok(whole), Ok((units, parts))) => {
                    assert!(units >= 2, "{text}");
                    assert_eq!(whole, parts, "{text}");
                    same += 1;
                }
                (Err(whole), Err(parts)) => {
                    assert_eq!(whole.kind(), parts.kind(), "{text}: {whole}, {parts}");
                    failed += 1;
                }
                (whole, parts) => panic!("{text}: {whole:?}\nby stages: {parts:?}"),
            }
        }
    }
    assert!(same > 180 && failed > 20, "{same} gave rows, {failed} failed");
}

#[test]
fn a_mean_that_one_compares_with_and_another_asks_for_is_one_unit() {
    let source = source("one");
    let plan = |r: Reduction| {
        let sql = r.to_sql(&dims_of).unwrap();
        source.sql(&sql, &QueryOptions::default()).unwrap().logical_plan().unwrap()
    };
    let warm = Reduction::compare("T", CompareOp::GtEq, Reduction::mean("T"));
    let asked = [(1, plan(warm.clone())), (2, plan(Reduction::mean("T"))), (3, plan(warm))];
    let stages = Stages::of(&asked).unwrap();
    assert_eq!(stages.stages, [vec![0], vec![1]]);
    assert_eq!((stages.units[0].who.as_slice(), stages.units[1].who.as_slice()), (&[2][..], &[1, 3][..]));
    assert!(stages.units[0].is_value);
    let single =
        source.query_plan(&stages.units[0].plan, &QueryOptions::default()).unwrap().scalar().unwrap();
    assert_eq!(single.1, Some(ValueType::F64));
    // More rows or columns are no value.
    let kind = |text: &str| source.sql(text, &QueryOptions::default()).unwrap().scalar().unwrap_err().kind();
    assert_eq!(kind("SELECT T"), sieva::ErrorKind::InvalidValue);
    assert_eq!(kind("SELECT T, i"), sieva::ErrorKind::TypeMismatch);
}
