//! Plans drawn at random.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use sieva_plan::{
    BinaryOp, Call, Column, ColumnId, ColumnKind, CompareOp, Expr, Literal, Output, Plan, Scan, SortKey,
    SourceRef, Step, Type,
};

pub fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Bool),
        (-3_i128..4).prop_map(Literal::Int),
        any::<i128>().prop_map(Literal::Int),
        prop_oneof![
            Just(0.0),
            Just(-0.0),
            Just(1.0),
            Just(f64::NAN),
            Just(f64::NEG_INFINITY),
            Just(2_f64.powi(127)),
            Just(-(2_f64.powi(127))),
            Just(5e-324),
            any::<f64>()
        ]
        .prop_map(Literal::Float),
        "[a-z'\"\\\\\u{e9}\n]{0,4}".prop_map(Literal::Text),
    ]
}

fn one_of<T: Copy + std::fmt::Debug + 'static>(all: &'static [T]) -> impl Strategy<Value = T> {
    (0..all.len()).prop_map(|i| all[i])
}

/// An expression over `ids`.
pub fn expr(ids: std::ops::Range<u32>) -> impl Strategy<Value = Expr> {
    let column = if ids.is_empty() {
        Just(Expr::Literal(Literal::Null)).boxed()
    } else {
        ids.prop_map(|i| Expr::Column(ColumnId(i))).boxed()
    };
    let leaf = prop_oneof![3 => column, 1 => literal().prop_map(Expr::Literal)];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            boxed.clone().prop_map(Expr::Negate),
            (one_of(BinaryOp::ALL), inner.clone(), inner.clone()).prop_map(|(o, a, b)| Expr::binary(o, a, b)),
            (one_of(CompareOp::ALL), inner.clone(), inner.clone())
                .prop_map(|(o, a, b)| Expr::compare(o, a, b)),
            (boxed.clone(), vec(literal(), 0..4)).prop_map(|(a, l)| Expr::In(a, l)),
            boxed.clone().prop_map(Expr::IsNull),
            (boxed.clone(), "[a%_]{0,3}").prop_map(|(a, p)| Expr::Like(a, p)),
            vec(inner.clone(), 0..4).prop_map(Expr::And),
            vec(inner.clone(), 0..4).prop_map(Expr::Or),
            boxed.prop_map(Expr::Not),
            ("[a-z]{1,4}", vec(inner, 0..3)).prop_map(|(f, args)| Expr::Call(f, args)),
        ]
    })
}

fn scan() -> impl Strategy<Value = Scan> {
    let source = prop_oneof![
        Just(SourceRef::Given),
        "[a-z/ *]{1,6}".prop_map(SourceRef::Path),
        "[a-z]{1,6}".prop_map(SourceRef::Collection),
    ];
    let dims = vec("[abc]{1,2}", 0..3);
    let column = ("[TSx]{1,2}", one_of(ColumnKind::ALL), one_of(Type::ALL), dims)
        .prop_map(|(path, kind, value_type, dims)| Column { path, kind, value_type, dims });
    (source, any::<bool>(), vec(column, 0..4)).prop_map(|(source, cross, columns)| {
        let mut rows: Vec<String> = columns.iter().flat_map(|c| c.dims.clone()).collect();
        rows.sort();
        rows.dedup();
        Scan { source, rows, cross, columns }
    })
}

fn outputs(ids: std::ops::Range<u32>) -> impl Strategy<Value = Vec<Output>> {
    vec(("[a-z\"]{1,3}", expr(ids)).prop_map(|(name, value)| Output { name, value }), 1..4)
}

fn keys(ids: std::ops::Range<u32>) -> impl Strategy<Value = Vec<SortKey>> {
    let key = (expr(ids), any::<bool>(), any::<bool>());
    vec(key.prop_map(|(value, descending, nulls_first)| SortKey { value, descending, nulls_first }), 0..3)
}

/// What comes behind the groups, or the rows.
fn rest(ids: std::ops::Range<u32>) -> impl Strategy<Value = Vec<Step>> {
    let limit = (option::of(0_u64..9), 0_u64..3).prop_map(|(count, offset)| Step::Limit { count, offset });
    let (sort, project) = (keys(ids.clone()), outputs(ids));
    (option::of(sort), project, any::<bool>(), option::of(limit)).prop_map(
        |(sort, project, distinct, limit)| {
            let mut steps: Vec<Step> = sort.into_iter().map(Step::Sort).collect();
            steps.push(Step::Project(project));
            steps.extend(distinct.then_some(Step::Distinct));
            steps.extend(limit);
            steps
        },
    )
}

/// A plan that passes its check.
pub fn plan() -> impl Strategy<Value = Plan> {
    let with_scan = |scan: Scan| {
        let n = scan.columns.len() as u32;
        let call = ("[a-z]{1,4}", option::of(expr(0..n)), any::<bool>(), vec(literal(), 0..2)).prop_map(
            |(function, argument, distinct, parameters)| Call { function, argument, distinct, parameters },
        );
        let groups = option::of((vec(expr(0..n), 0..3), vec(call, 1..3), option::of(expr(0..1))));
        (Just(scan), option::of(expr(0..n)), groups)
    };
    let with_groups = |(scan, filter, groups): (Scan, Option<Expr>, _)| {
        let n = scan.columns.len() as u32;
        let mut steps: Vec<Step> = filter.into_iter().map(Step::Filter).collect();
        let mut ids = 0..n;
        if let Some((keys, calls, having)) = groups {
            let (keys, calls): (Vec<Expr>, Vec<Call>) = (keys, calls);
            ids = n..n + (keys.len() + calls.len()) as u32;
            let having: Option<Expr> = having;
            let first = ids.start;
            steps.push(Step::Aggregate { keys, calls });
            steps.extend(having.map(|h| Step::Having(h.map_columns(&|_| ColumnId(first)))));
        }
        (Just(scan), Just(steps), rest(ids))
    };
    scan().prop_flat_map(with_scan).prop_flat_map(with_groups).prop_map(|(scan, mut steps, rest)| {
        steps.extend(rest);
        Plan { scan, steps }
    })
}
