//! Plans over a small schema: of texts, in their one form, and such as no text gives.

use sieva_format::cf::TimeUnits;
use sieva_format::decoding::Decoding;
use sieva_format::schema::{ArrayInfo, AttrValue, Dimension, Naming, Schema, StorageInfo};
use sieva_plan::{ColumnId, CompareOp, Expr, Literal, Plan, Step};
use sieva_types::{DType, ErrorKind, Result};

use super::{Answer, LowerOptions, lower, misfit};
use crate::bind::{BindOptions, Bound, Condition, Value};
use crate::code::Functions;
use crate::logical::plan_select;
use crate::parse::parse_select;
use crate::values::{Scalar, ValueType};

fn array(path: &str, dtype: DType, dims: &[usize], shape: &[u64]) -> ArrayInfo {
    ArrayInfo {
        path: path.into(),
        dtype,
        dims: dims.to_vec(),
        shape: shape.to_vec(),
        attrs: Vec::new(),
        enum_names: Vec::new(),
        decoding: Decoding::none(dtype),
        storage: StorageInfo::default(),
        coordinates: Vec::new(),
    }
}

fn schema() -> Schema {
    let dim = |name: &str, len| Dimension {
        name: name.into(),
        path: name.into(),
        len,
        unlimited: false,
        naming: Naming::File,
        coordinate: None,
    };
    let mut time = array("t", DType::F64, &[0], &[3]);
    time.attrs.push(("units".into(), AttrValue::Text("days since 2000-01-01".into())));
    let arrays = vec![
        array("a", DType::F32, &[0, 1], &[3, 4]),
        array("b", DType::F64, &[1, 0], &[4, 3]),
        array("u", DType::U64, &[0], &[3]),
        array("flag", DType::Bool, &[0], &[3]),
        array("word", DType::Str, &[0], &[3]),
        time,
    ];
    Schema { dims: vec![dim("x", 3), dim("y", 4)], arrays, ..Schema::default() }
}

fn plan(text: &str) -> Plan {
    let subqueries = |_: &_| Ok((Plan::default(), Some(ValueType::F64)));
    let functions = &Functions::default();
    let options = BindOptions { valid_range: false, cross: false, subqueries: &subqueries, functions };
    plan_select(&schema(), &parse_select(text).unwrap(), &options).unwrap().0
}

fn lowered(plan: &Plan, answer: Answer) -> Result<Bound> {
    let subqueries = |_: &Plan| Ok(answer.clone());
    let functions = &Functions::default();
    lower(
        &schema(),
        plan,
        &LowerOptions { valid_range: false, subqueries: &subqueries, constants: &[], functions },
    )
}

fn of(text: &str) -> Bound {
    lowered(&plan(text), Answer::Unknown(Some(ValueType::F64))).unwrap()
}

fn shown(bound: &Bound) -> String {
    format!("{:?} {:?} {:?}", bound.rows.names, bound.condition, bound.outputs)
}

#[test]
fn equal_questions_are_lowered_alike() {
    for (one, other) in [
        ("a > 1.7", "NOT a <= 1.7"),
        ("a BETWEEN 1 AND 2", "a >= 1 AND a <= 2"),
        ("a NOT BETWEEN 1 AND 2", "a < 1 OR a > 2"),
        ("a IN (1, 2, 3)", "a = 1 OR a = 2 OR a = 3.0"),
        ("a IN (9, 8, 7, 6, 5, 4, 3, 2, 1, 0)", "NOT a NOT IN (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)"),
        ("a = 1 AND (a = 1 OR a IS NULL)", "a = 1"),
        ("flag AND NOT flag", "a = 1 AND a = 2"),
        ("t > '2000-01-03' AND a > 0", "t > 2 AND a > 0"),
        ("idx(x) IN (0, 1) AND a > 0", "idx(x) < 2 AND a > 0"),
        ("a > 0 OR u = 18446744073709551616", "a > 0"),
        ("u < 18446744073709551616 AND u > 18446744073709551614", "u = 18446744073709551615"),
        ("a > 2 + 3", "a > 5"),
        ("NULL AND a > 0", "FALSE AND a > 0"),
    ] {
        let [one, other] =
            [one, other].map(|c| format!("{:?}", of(&format!("SELECT a, u, t WHERE {c}")).condition));
        assert_eq!(one, other);
    }
}

#[test]
fn the_one_form_asks_the_same() {
    for text in [
        "SELECT a, b WHERE a > 1 AND b < 5",
        "SELECT b, a WHERE b < 5 AND a > 1 AND word = 'x'",
        "SELECT a WHERE a IN (1, NULL) OR raw(a) > 3",
        "SELECT u + 1, if(a > 1, u, 3), month(t) WHERE word LIKE '%x'",
        "SELECT 18446744073709551615 - 18446744073709551614 AS one, u WHERE NOT flag",
    ] {
        let plan = plan(text);
        let canonical = plan.canonical();
        assert_eq!(misfit(&schema(), &canonical, false, false).unwrap(), None, "{text}");
        let unknown = Answer::Unknown(None);
        let (asked, one_form) =
            (lowered(&plan, unknown.clone()).unwrap(), lowered(&canonical, unknown).unwrap());
        assert_eq!(asked.rows, one_form.rows, "{text}");
        for (a, b) in asked.outputs.iter().zip(&one_form.outputs) {
            assert_eq!(asked.type_of(&a.value), one_form.type_of(&b.value), "{text}");
        }
    }
    let types: Vec<_> = ["u + 1", "u - a", "18446744073709551615 - 18446744073709551614"]
        .map(|e| of(&format!("SELECT {e} AS v, u")))
        .iter()
        .map(|b| b.type_of(&b.outputs[0].value))
        .collect();
    assert_eq!(types, [ValueType::U64, ValueType::F64, ValueType::U64].map(Some));
}

#[test]
fn subqueries_are_values_once_they_are_known() {
    let asked = plan("SELECT a, (SELECT 1) AS s WHERE a > (SELECT 1) + 1");
    let unknown = lowered(&asked, Answer::Unknown(Some(ValueType::F64))).unwrap();
    assert!(matches!(&unknown.condition, Condition::Computed(_)), "{unknown:?}");
    let known = |value| lowered(&asked, Answer::Known(value, Some(ValueType::F64))).unwrap();
    assert_eq!(
        format!("{:?}", known(Scalar::F64(4.0)).condition),
        format!("{:?}", of("SELECT a WHERE a > 5").condition)
    );
    let missing = known(Scalar::Null);
    assert!(matches!(missing.condition, Condition::Never), "{}", shown(&missing));
    for bound in [&unknown, &missing] {
        assert_eq!(bound.type_of(&bound.outputs[1].value), Some(ValueType::F64));
    }
}

#[test]
fn plans_of_other_arrays_are_told_apart() {
    let asked = plan("SELECT a WHERE b > 1").canonical();
    let change = |f: &dyn Fn(&mut Plan)| {
        let mut plan = asked.clone();
        f(&mut plan);
        (misfit(&schema(), &plan, false, false), lowered(&plan, Answer::Unknown(None)))
    };
    let (fits, bound) = change(&|_| {});
    assert!(fits.unwrap().is_none() && bound.is_ok());
    let (fits, bound) = change(&|p| p.scan.columns[0].value_type = sieva_plan::Type::Int64);
    assert_eq!(fits.unwrap().unwrap(), "'a' is int64 there, and float64 here");
    assert_eq!(bound.unwrap_err().kind(), ErrorKind::InvalidValue);
    let (fits, bound) = change(&|p| p.scan.columns[0].dims.reverse());
    assert_eq!(fits.unwrap().unwrap(), "'a' is along (y, x) there, and (x, y) here");
    assert_eq!(bound.unwrap_err().kind(), ErrorKind::InvalidValue);
    let (fits, bound) = change(&|p| p.scan.columns[0].path = "z".into());
    assert_eq!(fits.unwrap_err().kind(), ErrorKind::UnknownArray);
    assert_eq!(bound.unwrap_err().kind(), ErrorKind::InvalidValue);
    let (fits, bound) = change(&|p| p.scan.rows.push("z".into()));
    assert!(fits.unwrap().is_some() && bound.is_err());
}

#[test]
fn expressions_that_no_text_gives_are_refused() {
    let with = |e: Expr| {
        let mut plan = plan("SELECT a, word, u");
        plan.steps.insert(0, Step::Filter(e));
        lowered(&plan, Answer::Unknown(None)).unwrap_err().kind()
    };
    let column = |id| Expr::Column(ColumnId(id));
    let one = || Expr::Literal(Literal::Int(1));
    let call = |name: &str, args| Expr::Call(name.into(), args);
    for e in [
        column(0),
        Expr::And(vec![column(0), column(0)]),
        Expr::compare(CompareOp::Eq, column(1), one()),
        Expr::Like(Box::new(column(0)), "x".into()),
        call("month", vec![column(0)]),
        call("month", Vec::new()),
        Expr::In(Box::new(column(0)), vec![Literal::Text("x".into())]),
    ] {
        assert_eq!(with(e.clone()), ErrorKind::TypeMismatch, "{e:?}");
    }
    assert_eq!(with(Expr::IsNull(Box::new(Expr::Or(Vec::new())))), ErrorKind::InvalidValue);
    assert_eq!(
        with(Expr::compare(CompareOp::Eq, call("nothing", vec![one()]), one())),
        ErrorKind::UnknownFunction
    );
    assert_eq!(with(column(9)), ErrorKind::InvalidValue);
}

#[test]
fn dates_are_those_of_the_arrays_calendar() {
    let bound = of("SELECT month(t) AS m");
    assert!(matches!(bound.outputs[0].value, Value::Date(_, 0)));
    assert!(bound.arrays[0].time.as_deref().is_some_and(|t: &TimeUnits| t.to_datetime(0.0).is_some()));
}
