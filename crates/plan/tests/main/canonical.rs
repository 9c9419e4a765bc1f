//! Equal questions are equal plans, and the one form means what was asked.

use std::cmp::Ordering;

use proptest::prelude::*;
use sieva_plan::{
    BinaryOp, Call, Column, ColumnId, CompareOp, Expr, Literal, Output, Plan, Scan, Step, Type,
};

/// Three columns of integers and a filter.
fn plan(filter: Expr) -> Plan {
    let column = |path: &str| Column::of_array(path, Type::Int64, &["x"]);
    Plan {
        scan: Scan::given(vec![column("a"), column("b"), column("c")], &["x"]),
        steps: vec![Step::Filter(filter), Step::Project(vec![Output::new("a", Expr::Column(ColumnId(0)))])],
    }
}

/// A condition over three columns of small integers.
fn condition() -> impl Strategy<Value = Expr> {
    let number = prop_oneof![
        3 => (0_u32..3).prop_map(|i| Expr::Column(ColumnId(i))),
        1 => (-2_i128..3).prop_map(|v| Expr::Literal(Literal::Int(v))),
        1 => prop_oneof![Just(0.5), Just(-0.0), Just(1.0), Just(f64::NAN)].prop_map(|v| Expr::Literal(Literal::Float(v))),
    ];
    let number = number.prop_recursive(2, 6, 2, |n| {
        prop_oneof![
            (n.clone(), n.clone()).prop_map(|(a, b)| Expr::binary(BinaryOp::Add, a, b)),
            (n.clone(), n.clone()).prop_map(|(a, b)| Expr::binary(BinaryOp::Sub, a, b)),
            n.prop_map(|a| Expr::Negate(Box::new(a))),
        ]
    });
    let literal = prop_oneof![
        Just(Literal::Null),
        (-2_i128..3).prop_map(Literal::Int),
        Just(Literal::Float(1.0)),
        Just(Literal::Float(0.5))
    ];
    let op = (0..CompareOp::ALL.len()).prop_map(|i| CompareOp::ALL[i]);
    let leaf = prop_oneof![
        4 => (op, number.clone(), number.clone()).prop_map(|(o, a, b)| Expr::compare(o, a, b)),
        2 => (number.clone(), proptest::collection::vec(literal, 0..4)).prop_map(|(a, l)| Expr::In(Box::new(a), l)),
        1 => number.prop_map(|a| Expr::IsNull(Box::new(a))),
        1 => prop_oneof![Just(Literal::Null), any::<bool>().prop_map(Literal::Bool)].prop_map(Expr::Literal),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Expr::And),
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Expr::Or),
            inner.prop_map(Expr::not),
        ]
    })
}

/// What an expression is at a row: a number, or missing.
fn number(e: &Expr, row: &[Option<f64>; 3]) -> Option<f64> {
    match e {
        Expr::Column(id) => row[id.0 as usize],
        Expr::Literal(Literal::Int(v)) => Some(*v as f64),
        Expr::Literal(Literal::Float(v)) => Some(*v).filter(|v| !v.is_nan()),
        Expr::Negate(a) => number(a, row).map(|v| -v),
        Expr::Binary(BinaryOp::Add, a, b) => Some(number(a, row)? + number(b, row)?),
        Expr::Binary(BinaryOp::Sub, a, b) => Some(number(a, row)? - number(b, row)?),
        Expr::Literal(Literal::Null) => None,
        other => panic!("{other:?}"),
    }
}

/// Whether a condition holds at a row, in three-valued logic as SQL defines it.
fn holds(e: &Expr, row: &[Option<f64>; 3]) -> Option<bool> {
    match e {
        Expr::Literal(Literal::Bool(b)) => Some(*b),
        Expr::Literal(Literal::Null) => None,
        Expr::Compare(op, a, b) => {
            Some(op.holds(number(a, row)?.partial_cmp(&number(b, row)?).unwrap_or(Ordering::Equal)))
        }
        Expr::In(a, list) => {
            let each: Vec<Expr> = list
                .iter()
                .map(|l| Expr::compare(CompareOp::Eq, (**a).clone(), Expr::Literal(l.clone())))
                .collect();
            holds(&Expr::Or(each), row)
        }
        Expr::IsNull(a) => Some(number(a, row).is_none()),
        Expr::Not(a) => holds(a, row).map(|b| !b),
        Expr::And(parts) => {
            let each: Vec<_> = parts.iter().map(|p| holds(p, row)).collect();
            if each.contains(&Some(false)) {
                Some(false)
            } else {
                each.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
            }
        }
        Expr::Or(parts) => {
            let each: Vec<_> = parts.iter().map(|p| holds(p, row).map(|b| !b)).collect();
            if each.contains(&Some(false)) {
                Some(true)
            } else {
                each.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
            }
        }
        other => panic!("{other:?}"),
    }
}

/// The same condition, said in another way.
fn reworded(e: &Expr, coin: &mut impl FnMut() -> bool) -> Expr {
    let twice = coin();
    let new = match e {
        Expr::Compare(op, a, b) if coin() => Expr::compare(op.mirrored(), (**b).clone(), (**a).clone()),
        Expr::Compare(op, a, b) if coin() => {
            Expr::not(Expr::compare(op.negated(), (**a).clone(), (**b).clone()))
        }
        Expr::In(a, list) if !list.is_empty() && coin() => {
            let equal = |l: &Literal| Expr::compare(CompareOp::Eq, (**a).clone(), Expr::Literal(l.clone()));
            Expr::Or(list.iter().rev().map(equal).collect())
        }
        Expr::Not(a) => Expr::not(reworded(a, coin)),
        Expr::And(parts) => {
            let mut parts: Vec<Expr> = parts.iter().rev().map(|p| reworded(p, coin)).collect();
            match (coin(), parts.first().cloned()) {
                (true, Some(first)) => parts.push(first),
                _ => parts.push(Expr::And(Vec::new())),
            }
            if coin() {
                Expr::not(Expr::Or(parts.into_iter().map(Expr::not).collect()))
            } else {
                Expr::And(parts)
            }
        }
        Expr::Or(parts) => {
            let rest = parts.iter().rev().map(|p| reworded(p, coin)).collect();
            if coin() { Expr::Or(vec![Expr::Or(rest)]) } else { Expr::Or(rest) }
        }
        other => other.clone(),
    };
    if twice { Expr::not(Expr::not(new)) } else { new }
}

fn filter(plan: &Plan) -> Expr {
    match plan.steps.first() {
        Some(Step::Filter(e)) => e.clone(),
        _ => Expr::Literal(Literal::Bool(true)),
    }
}

proptest! {
    #[test]
    fn the_one_form_means_the_same(e in condition(), rows in proptest::collection::vec(proptest::array::uniform3(proptest::option::of((-2_i32..3).prop_map(f64::from))), 8)) {
        let plan = plan(e.clone());
        let one = filter(&plan.canonical());
        for row in &rows {
            // A row is kept where the condition is true.
            prop_assert_eq!(holds(&one, row) == Some(true), holds(&e, row) == Some(true), "{:?} at {:?}", one, row);
        }
        // Below NOT missing and false are two: an output shows them apart.
        let value = Plan { steps: vec![Step::Project(vec![Output::new("v", Expr::not(e.clone()))])], ..plan };
        let one = &value.canonical().outputs()[0].value.clone();
        for row in &rows {
            prop_assert_eq!(holds(one, row), holds(&e, row).map(|b| !b), "{:?} at {:?}", one, row);
        }
    }

    #[test]
    fn other_words_give_the_same_bytes(e in condition(), coins in proptest::collection::vec(any::<bool>(), 64)) {
        let mut coins = coins.into_iter().cycle();
        let other = reworded(&e, &mut || coins.next().unwrap());
        prop_assert_eq!(plan(e).to_bytes().unwrap(), plan(other).to_bytes().unwrap());
    }
}

#[test]
fn columns_and_aggregates_have_one_order() {
    let column = |path: &str| Column::of_array(path, Type::Int64, &["x"]);
    let call = |function: &str, id: u32| Call {
        function: function.into(),
        argument: Some(Expr::Column(ColumnId(id))),
        distinct: false,
        parameters: Vec::new(),
    };
    let output = |name: &str, id| Output::new(name, Expr::Column(ColumnId(id)));
    // max(b), min(a) by a; and the same with everything the other way round, and some of it twice.
    let one = Plan {
        scan: Scan::given(vec![column("a"), column("b")], &["x"]),
        steps: vec![
            Step::Aggregate {
                keys: vec![Expr::Column(ColumnId(0))],
                calls: vec![call("max", 1), call("min", 0)],
            },
            Step::Project(vec![output("m", 3), output("n", 4)]),
        ],
    };
    let key = Expr::Column(ColumnId(1));
    let other = Plan {
        scan: Scan::given(vec![column("b"), column("a"), column("b")], &["x"]),
        steps: vec![
            Step::Aggregate {
                keys: vec![key.clone(), key],
                calls: vec![call("min", 1), call("max", 2), call("max", 0)],
            },
            Step::Project(vec![output("m", 7), output("n", 5)]),
            Step::Limit { count: None, offset: 0 },
        ],
    };
    assert_eq!(one.to_bytes().unwrap(), other.to_bytes().unwrap());
    assert_eq!(one.id().unwrap().len(), 32);
}

#[test]
fn different_questions_differ() {
    let a = |op, v| plan(Expr::compare(op, Expr::Column(ColumnId(0)), Expr::Literal(v)));
    let plans = [
        a(CompareOp::Gt, Literal::Int(1)),
        a(CompareOp::GtEq, Literal::Int(1)),
        a(CompareOp::Gt, Literal::Float(1.5)),
        a(CompareOp::Gt, Literal::Int(1 << 70)),
        a(CompareOp::Gt, Literal::Float(f64::INFINITY)),
        plan(Expr::Literal(Literal::Null)),
        plan(Expr::Literal(Literal::Bool(true))),
    ];
    let ids: std::collections::HashSet<String> = plans.iter().map(|p| p.id().unwrap()).collect();
    assert_eq!(ids.len(), plans.len());
    // One number, and a missing one.
    let same = |x: Literal, y: Literal| {
        assert_eq!(a(CompareOp::Lt, x).id().unwrap(), a(CompareOp::Lt, y).id().unwrap());
    };
    same(Literal::Int(1), Literal::Float(1.0));
    same(Literal::Int(0), Literal::Float(-0.0));
    same(Literal::Int(i128::MIN), Literal::Float(-(2_f64.powi(127))));
    same(Literal::Float(f64::NAN), Literal::Null);
}
