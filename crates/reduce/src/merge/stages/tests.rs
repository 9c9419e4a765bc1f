//! Tests of stages and of values in place of subqueries, on plans made by hand.

use proptest::prelude::*;
use sieva_plan::{
    Call, Column, ColumnId, CompareOp, Expr, Literal, Output, Plan, Scan, SourceRef, Step, Type,
};

use super::{Stages, Value, substitute};
use sieva_types::ErrorKind;

fn scan() -> Scan {
    Scan::given(vec![Column::of_array("v", Type::Float64, &["x"])], &["x"])
}

fn column() -> Expr {
    Expr::Column(ColumnId(0))
}

/// `function(v)` of the rows where `filter` holds.
fn aggregate(function: &str, filter: Option<Expr>) -> Plan {
    let call = Call {
        function: function.to_owned(),
        argument: Some(column()),
        distinct: false,
        parameters: Vec::new(),
    };
    let mut steps: Vec<Step> = filter.into_iter().map(Step::Filter).collect();
    steps.push(Step::Aggregate { keys: Vec::new(), calls: vec![call] });
    steps.push(Step::Project(vec![Output::new(format!("{function}(v)"), Expr::Column(ColumnId(1)))]));
    Plan { scan: scan(), steps }
}

fn above(inner: Plan) -> Expr {
    Expr::compare(CompareOp::Gt, column(), Expr::Subquery(Box::new(inner)))
}

fn values(filter: Expr) -> Plan {
    let project = Step::Project(vec![Output::new("v", column())]);
    Plan { scan: scan(), steps: vec![Step::Filter(filter), project] }
}

#[test]
fn equal_plans_are_one_unit_whoever_asks_and_however_it_is_written() {
    let both = |a, b| Expr::And(vec![a, b]);
    let less = |n| Expr::compare(CompareOp::Lt, column(), Expr::Literal(Literal::Int(n)));
    let asked = [
        (3, values(both(less(4), less(9)))),
        (1, values(both(less(9), less(4)))),
        (3, values(both(less(4), less(9)))),
    ];
    let stages = Stages::of(&asked).unwrap();
    assert_eq!((stages.units.len(), stages.stages.as_slice()), (1, &[vec![0]][..]));
    assert_eq!((stages.units[0].who.as_slice(), stages.units[0].is_value), (&[1, 3][..], false));
}

#[test]
fn subqueries_of_any_depth_are_units_of_earlier_stages() {
    // max(v) where v > mean(v where v > min(v)), asked beside mean and min themselves.
    let mean = aggregate("avg", Some(above(aggregate("min", None))));
    let deep = aggregate("max", Some(above(mean.clone())));
    let asked = [(0, deep), (1, aggregate("min", None)), (2, mean), (3, aggregate("sum", None))];
    let stages = Stages::of(&asked).unwrap();
    let of = |who: u32| stages.units.iter().position(|u| u.who == [who]).unwrap();
    assert_eq!(stages.units.len(), 4);
    assert_eq!(stages.stages, [vec![of(1), of(3)], vec![of(2)], vec![of(0)]]);
    assert_eq!(
        (stages.units[of(0)].needs.as_slice(), stages.units[of(2)].needs.as_slice()),
        (&[of(2)][..], &[of(1)][..])
    );
    let used: Vec<bool> = [0, 1, 2, 3].map(|who| stages.units[of(who)].is_value).to_vec();
    assert_eq!(used, [false, true, true, false]);
}

#[test]
fn a_subquery_is_of_the_source_of_its_plan_unless_it_has_one() {
    let at = |mut plan: Plan, path: &str| {
        plan.scan.source = SourceRef::Path(path.to_owned());
        plan
    };
    let outer = at(values(above(aggregate("avg", None))), "a.nc");
    let foreign = at(values(above(at(aggregate("avg", None), "b.nc"))), "a.nc");
    let asked =
        [(0, outer), (1, at(aggregate("avg", None), "a.nc")), (2, foreign), (3, aggregate("avg", None))];
    let stages = Stages::of(&asked).unwrap();
    // The mean of a.nc (asked for, too), the values above it, the mean of b.nc, those above that, the mean of what is given.
    assert_eq!(stages.units.len(), 5);
    assert_eq!(stages.units[0].who, [1]);
    assert_eq!(stages.units[2].plan.scan.source, SourceRef::Path("b.nc".to_owned()));
    assert!(stages.units[2].who.is_empty() && stages.units[2].is_value);
}

#[test]
fn values_stand_where_subqueries_stood() {
    let plan = values(above(aggregate("avg", None)));
    let stages = Stages::of(&[(0, plan.clone())]).unwrap();
    let with = |value: Value| stages.ready(1, &|_| Some(value.clone())).unwrap();
    let expected = |l: Literal| values(Expr::compare(CompareOp::Gt, column(), Expr::Literal(l)));
    assert_eq!(with(Value::Float(2.5)), expected(Literal::Float(2.5)));
    assert_eq!(with(Value::UInt(7)), expected(Literal::Int(7)));
    assert_eq!(with(Value::UInt(u64::MAX)), expected(Literal::Int(u64::MAX.into())));
    assert_eq!(with(Value::Missing(Some(Type::Float64))), expected(Literal::Null));
    // What is not compared keeps its type.
    let sum =
        Expr::binary(sieva_plan::BinaryOp::Add, column(), Expr::Subquery(Box::new(aggregate("avg", None))));
    let plan = Plan { scan: scan(), steps: vec![Step::Project(vec![Output::new("s", sum)])] };
    let text = |value: Value| format!("{:?}", substitute(&plan, &mut |_| Ok(value.clone())).unwrap());
    assert!(text(Value::Missing(Some(Type::UInt64))).contains("nullif"));
    assert!(text(Value::UInt(7)).contains("Rem"));
    assert!(text(Value::Float(f64::NAN)).contains("nullif"));
    assert!(!text(Value::Float(-0.0)).contains("Subquery"));
}

#[test]
fn what_is_missing_or_no_plan_is_told() {
    let stages = Stages::of(&[(0, values(above(aggregate("avg", None))))]).unwrap();
    assert_eq!(stages.ready(0, &|_| None).unwrap(), stages.units[0].plan);
    assert_eq!(stages.ready(1, &|_| None).unwrap_err().kind(), ErrorKind::InvalidValue);
    assert_eq!(stages.ready(9, &|_| None).unwrap_err().message(), "no unit 9, there are 2");
    let wrong = Plan { scan: scan(), steps: vec![Step::Filter(Expr::Column(ColumnId(8)))] };
    assert_eq!(Stages::of(&[(0, wrong)]).unwrap_err().kind(), ErrorKind::InvalidValue);
    assert_eq!(Stages::of(&[]).unwrap(), Stages::default());
}

/// Plans with subqueries in one another, of a few functions.
fn drawn() -> impl Strategy<Value = Plan> {
    let function = || prop::sample::select(vec!["min", "max", "avg"]);
    let leaf = function().prop_map(|f| aggregate(f, None));
    leaf.prop_recursive(4, 16, 2, move |inner| {
        (function(), prop::collection::vec(inner, 1..3))
            .prop_map(|(f, inner)| aggregate(f, Some(Expr::And(inner.into_iter().map(above).collect()))))
    })
}

proptest! {
    #[test]
    fn units_are_different_and_stand_behind_what_they_need(plans in prop::collection::vec((0_u32..4, drawn()), 0..6)) {
        let stages = Stages::of(&plans).unwrap();
        for (number, unit) in stages.units.iter().enumerate() {
            prop_assert!(stages.stages[unit.stage].contains(&number));
            prop_assert!(stages.units[..number].iter().all(|u| u.id != unit.id && u.plan != unit.plan));
            let least = unit.needs.iter().map(|&n| stages.units[n].stage + 1).max().unwrap_or(0);
            prop_assert!(unit.needs.iter().all(|&n| n < number && stages.units[n].is_value));
            prop_assert_eq!(unit.stage, least);
            let ready = stages.ready(number, &|n| unit.needs.contains(&n).then_some(Value::Int(1))).unwrap();
            let text = format!("{ready:?}");
            prop_assert!(!text.contains("Subquery"));
            prop_assert!(ready.check().is_ok());
        }
        prop_assert_eq!(stages.stages.iter().map(Vec::len).sum::<usize>(), stages.units.len());
        for (who, plan) in &plans {
            let id = plan.id().unwrap();
            prop_assert!(stages.units.iter().any(|u| u.id == id && u.who.contains(who)));
        }
    }
}
