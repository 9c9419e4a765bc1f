//! Bytes and JSON.

use proptest::prelude::*;
use sieva_plan::{
    Call, Column, ColumnId, CompareOp, Expr, Literal, MAX_DEPTH, Output, Plan, Scan, Step, Type,
};
use sieva_types::ErrorKind;

use crate::drawn;

fn warm() -> Plan {
    let temp = Column::of_array("TEMP", Type::Float64, &["z", "y"]);
    let literal = Expr::Literal(Literal::Float(5.5));
    let warm = Expr::compare(CompareOp::Gt, Expr::Column(ColumnId(0)), literal);
    Plan {
        scan: Scan::given(vec![temp], &["z", "y"]),
        steps: vec![Step::Filter(warm), Step::Project(vec![Output::new("TEMP", Expr::Column(ColumnId(0)))])],
    }
}

proptest! {
    #[test]
    fn bytes_give_the_one_form_back(plan in drawn::plan()) {
        plan.check().unwrap();
        let one = plan.canonical();
        one.check().unwrap();
        prop_assert_eq!(one.canonical(), one.clone());
        let bytes = plan.to_bytes().unwrap();
        prop_assert_eq!(&one.to_bytes().unwrap(), &bytes);
        prop_assert_eq!(Plan::from_bytes(&bytes).unwrap(), one.clone());
        prop_assert_eq!(plan.id().unwrap(), one.id().unwrap());
    }

    #[test]
    fn json_gives_the_plan_back(plan in drawn::plan()) {
        prop_assert_eq!(Plan::from_json(&plan.to_json()).unwrap(), plan);
    }

    #[test]
    fn changed_bytes_are_an_error(plan in drawn::plan(), at in any::<prop::sample::Index>(), by in 1_u8..) {
        let mut bytes = plan.to_bytes().unwrap();
        let at = at.index(bytes.len());
        bytes[at] = bytes[at].wrapping_add(by);
        prop_assert_eq!(Plan::from_bytes(&bytes).unwrap_err().kind(), ErrorKind::InvalidValue);
        prop_assert!(Plan::from_bytes(&bytes[..at]).is_err());
    }

    /// With a checksum that fits: what comes is a plan, or an error, and nothing else.
    #[test]
    fn bytes_that_nobody_vouches_for(plan in drawn::plan(), at in any::<prop::sample::Index>(), by in 1_u8..) {
        let mut bytes = plan.to_bytes().unwrap();
        let at = 13 + at.index(bytes.len() - 13);
        bytes[at] = bytes[at].wrapping_add(by);
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[13..]).to_le_bytes();
        bytes[5..13].copy_from_slice(&sum);
        match Plan::from_bytes(&bytes) {
            Ok(found) => prop_assert_eq!(Plan::from_bytes(&found.to_bytes().unwrap()).unwrap(), found),
            Err(e) => prop_assert_eq!(e.kind(), ErrorKind::InvalidValue),
        }
    }

    #[test]
    fn text_that_nobody_vouches_for(plan in drawn::plan(), at in any::<prop::sample::Index>(), c in "[\\[\\]{}\",:0-9a-z-]") {
        let mut text: Vec<char> = plan.to_json().chars().collect();
        let at = at.index(text.len());
        text.splice(at..=at, c.chars());
        if let Err(e) = Plan::from_json(&text.into_iter().collect::<String>()) {
            prop_assert_eq!(e.kind(), ErrorKind::InvalidValue);
        }
    }
}

/// Bytes are kept by others: this form may not change without another version.
#[test]
fn the_bytes_are_these() {
    let bytes = warm().to_bytes().unwrap();
    let hex: String = bytes[13..].iter().map(|b| format!("{b:02x}")).collect();
    let source = "00".to_owned() /* given */;
    let rows = "0201 7a 01 79".replace(' ', "") + "00" /* no product */;
    let columns = "01 04 54454d50 00 03 02 017a 0179".replace(' ', "");
    let filter = "00 04 04 0100 00 04 0000000000001640".replace(' ', "");
    let project = "04 01 04 54454d50 0100".replace(' ', "");
    assert_eq!(hex, source + &rows + &columns + "02" + &filter + &project);
    assert_eq!(&bytes[..5], b"SVPL\x01");
}

#[test]
fn json_is_for_people() {
    let json = warm().to_json();
    let flat: String = json.split_whitespace().collect();
    assert!(flat.contains(r#"{"filter":[">",{"column":0},5.5]}"#), "{flat}");
    assert!(flat.contains(r#""rows":["z","y"]"#), "{flat}");
}

#[test]
fn what_is_wrong_is_named() {
    let json = warm().to_json();
    for (from, to, message) in [
        ("\">\"", "\"~\"", "there is no operator '~'"),
        ("\"column\": 0", "\"column\": 7", "there is no column 7; there are those from 0 to below 1"),
        (
            "\"float64\"",
            "\"float\"",
            "'type' of a column is one of bool, int64, uint64, float64, text, any, not 'float'",
        ),
        ("\"cross\"", "\"crass\"", "the plan lacks 'cross'"),
        ("\"filter\"", "\"sieve\"", "there is no step 'sieve'"),
        ("\"sieva_plan\": 1", "\"sieva_plan\": 9", "its version is 9, this program knows 1"),
    ] {
        assert!(json.contains(from), "{json}");
        let e = Plan::from_json(&json.replacen(from, to, 1)).unwrap_err();
        assert!(e.message().contains(message), "{e}");
    }
    for (bytes, message) in [
        (&b"SVP"[..], "4 bytes wanted"),
        (b"SVMF\x01", "it does not begin with SVPL"),
        (b"SVPL\x07", "its version is 7, this program knows 1"),
        (b"SVPL\x01\0\0\0\0\0\0\0\0body", "its checksum is another"),
    ] {
        assert!(Plan::from_bytes(bytes).unwrap_err().message().contains(message));
    }
}

#[test]
fn a_function_has_a_name_that_a_text_can_say() {
    let call = |name: &str| Step::Filter(Expr::Call(name.into(), vec![]));
    let count = |name: &str| Step::Aggregate {
        keys: vec![],
        calls: vec![Call { function: name.into(), argument: None, distinct: false, parameters: vec![] }],
    };
    for (step, of) in [(&call as &dyn Fn(&str) -> Step, "call"), (&count, "aggregate")] {
        for name in ["", "\nz", "a b", "1st", "été", "f("] {
            let plan = Plan { steps: vec![step(name)], ..Plan::default() };
            assert_eq!(plan.check().unwrap_err().kind(), ErrorKind::InvalidValue, "{of} {name:?}");
        }
        for name in ["z", "_z", "time_of_day2"] {
            assert!(Plan { steps: vec![step(name)], ..Plan::default() }.check().is_ok(), "{of} {name:?}");
        }
    }
}

#[test]
fn a_column_without_a_name_is_refused() {
    let mut plan = warm();
    plan.steps = vec![Step::Project(vec![Output::new("", Expr::Column(ColumnId(0)))])];
    let e = plan.check().unwrap_err();
    assert_eq!(
        (e.kind(), e.message()),
        (ErrorKind::InvalidValue, "not a plan: a column of the result has no name")
    );
    assert_eq!(Plan::from_json(&plan.to_json()).unwrap_err().kind(), ErrorKind::InvalidValue);
}

#[test]
fn what_is_nested_too_deep_is_refused() {
    let nested = |n: usize| {
        let mut plan = warm();
        let e = (0..n).fold(Expr::Column(ColumnId(0)), |e, _| Expr::Call("f".into(), vec![e]));
        plan.steps = vec![Step::Project(vec![Output::new("x", e)])];
        plan
    };
    let deep = nested(MAX_DEPTH - 1);
    assert_eq!(Plan::from_bytes(&deep.to_bytes().unwrap()).unwrap(), deep);
    assert_eq!(Plan::from_json(&deep.to_json()).unwrap(), deep);
    let deeper = nested(MAX_DEPTH);
    assert!(deeper.to_bytes().unwrap_err().message().contains("nested deeper than"));
    assert!(Plan::from_json(&deeper.to_json()).unwrap_err().message().contains("nested deeper than"));
    // `x <> 1 AND x <> 2` is NOT and a list in its one form, a level more: what cannot be read is not written.
    let unequal = |n: usize| {
        let value = (0..n).fold(Expr::Column(ColumnId(0)), |e, _| Expr::Call("f".into(), vec![e]));
        let not = |k| Expr::compare(CompareOp::NotEq, value.clone(), Expr::Literal(Literal::Int(k)));
        let mut plan = warm();
        let none = Expr::IsNull(Box::new(Expr::Column(ColumnId(0))));
        plan.steps = vec![Step::Filter(Expr::And(vec![not(1), not(2), none]))];
        plan
    };
    let fits = unequal(MAX_DEPTH - 4);
    assert_eq!(Plan::from_bytes(&fits.to_bytes().unwrap()).unwrap(), fits.canonical());
    let grows = unequal(MAX_DEPTH - 3);
    grows.check().unwrap();
    assert!(grows.to_bytes().unwrap_err().message().contains("nested deeper than"));
    let text = "[".repeat(1 << 20);
    assert!(Plan::from_json(&text).unwrap_err().message().contains("nested deeper than"));
}
