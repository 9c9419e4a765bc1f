//! Laws of parsing and printing, on drawn trees and texts.

use super::{parse_condition, parse_condition_with, parse_expression, parse_select};
use crate::ast::{
    BinaryOp, CompareOp, Expr, Literal, Name, OrderBy, Projection, Select, SelectItem, Span, UnaryOp,
};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        any::<bool>().prop_map(Literal::Bool),
        any::<i128>().prop_map(Literal::Int),
        (-3_i128..3).prop_map(Literal::Int),
        any::<f64>().prop_map(Literal::Float),
        select(vec![0.0, -0.0, 1e16, 5e-324, f64::NAN, f64::INFINITY, f64::NEG_INFINITY])
            .prop_map(Literal::Float),
        any::<String>().prop_map(Literal::Str),
        select(vec!["1999-01-01", "1999-01-01T00:00:00", "it's"]).prop_map(|d| Literal::Date(d.into())),
    ]
}

fn name() -> impl Strategy<Value = Name> {
    let bare = select(vec![
        "TEMP", "z_t", "g/U", "/g/U", "Step#0/E", "t.m", "a::b", "größe", "date", "limit", "order", "offset",
        "desc", "nulls", "join", "a/1", "group",
    ])
    .prop_map(|text| (text.to_owned(), false));
    let quoted = "[a-z \"'`/.&é]{1,8}|and|null|nan".prop_map(|text| (text, true));
    prop_oneof![bare, quoted].prop_map(|(text, quoted)| Name { text, quoted, span: Span::default() })
}

fn binary_op() -> impl Strategy<Value = BinaryOp> {
    use BinaryOp::{Add, Div, FloorDiv, Mul, Pow, Rem, Sub};
    select(vec![Add, Sub, Mul, Div, FloorDiv, Rem, Pow])
}

fn compare_op() -> impl Strategy<Value = CompareOp> {
    use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    select(vec![Eq, NotEq, Lt, LtEq, Gt, GtEq])
}

/// One tree above those drawn by `inner`.
fn above(inner: BoxedStrategy<Expr>) -> impl Strategy<Value = Expr> {
    let boxed = || inner.clone().prop_map(Box::new);
    let list = |least: usize| prop::collection::vec(inner.clone(), least..4);
    prop_oneof![
        boxed().prop_map(|expr| Expr::Unary { op: UnaryOp::Neg, expr }),
        (binary_op(), boxed(), boxed()).prop_map(|(op, left, right)| Expr::Binary { op, left, right }),
        (compare_op(), boxed(), boxed()).prop_map(|(op, left, right)| Expr::Compare { op, left, right }),
        (boxed(), boxed(), boxed(), any::<bool>()).prop_map(|(expr, low, high, negated)| Expr::Between {
            expr,
            low,
            high,
            negated
        }),
        (boxed(), list(1), any::<bool>()).prop_map(|(expr, list, negated)| Expr::InList {
            expr,
            list,
            negated
        }),
        (boxed(), any::<bool>()).prop_map(|(expr, negated)| Expr::IsNull { expr, negated }),
        (boxed(), boxed(), any::<bool>()).prop_map(|(expr, pattern, negated)| Expr::Like {
            expr,
            pattern,
            negated
        }),
        list(2).prop_map(Expr::and),
        list(2).prop_map(Expr::or),
        boxed().prop_map(Expr::Not),
        (select(vec!["sqrt", "count", "date", "left"]), list(0))
            .prop_map(|(function, args)| call(function, args)),
        list(1).prop_map(|args| Expr::Call { function: "count".into(), args, distinct: true, star: false }),
        Just(Expr::Call { function: "count".into(), args: Vec::new(), distinct: false, star: true }),
        query(inner.clone()).prop_map(|query| Expr::Subquery(Box::new(query))),
    ]
}

fn call(function: &str, args: Vec<Expr>) -> Expr {
    Expr::Call { function: function.into(), args, distinct: false, star: false }
}

fn query(inner: BoxedStrategy<Expr>) -> impl Strategy<Value = Select> {
    let item = (inner.clone(), option::of("[a-z \"]{1,4}")).prop_map(|(expr, alias)| SelectItem {
        expr,
        alias,
        text: String::new(),
    });
    let projection =
        prop_oneof![Just(Projection::All), prop::collection::vec(item, 1..3).prop_map(Projection::Items)];
    let order_by = (inner.clone(), any::<bool>(), any::<Option<bool>>())
        .prop_map(|(expr, descending, nulls_first)| OrderBy { expr, descending, nulls_first });
    (
        (
            projection,
            any::<bool>(),
            (option::of("[a-z/:.*' ]{1,9}"), any::<bool>()),
            option::of(inner.clone()),
        ),
        (
            prop::collection::vec(inner.clone(), 0..2),
            option::of(inner),
            prop::collection::vec(order_by, 0..2),
        ),
        (any::<Option<u64>>(), any::<Option<u64>>()),
    )
        .prop_map(
            |(
                (projection, distinct, (from, cross), condition),
                (group_by, having, order_by),
                (limit, offset),
            )| {
                Select {
                    projection,
                    distinct,
                    from,
                    collection: None,
                    cross,
                    condition,
                    group_by,
                    having,
                    order_by,
                    limit,
                    offset,
                }
            },
        )
}

fn tree() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![literal().prop_map(Expr::Literal), name().prop_map(Expr::Name)];
    leaf.prop_recursive(5, 40, 3, |inner| above(inner.boxed()))
}

/// Texts made of pieces of the language in any order.
fn pieces() -> impl Strategy<Value = String> {
    let piece = select(vec![
        "a", "g/b", "/c", "1", "2.5", "1e-3", "'s'", "\"q\"", "`", "'", "(", ")", ",", ";", "+", "-", "--",
        "*", "/", "//", "/*", "*/", "%", "^", "**", "=", "==", "<", ">=", "!=", "&", "|", "~", "and", "OR",
        "not", "between", "in", "is", "null", "like", "select", "from", "where", "group", "by", "order",
        "limit", "offset", "as", "date", "sqrt(", "count(*)", "nan", "-inf", "desc", "nulls", "\n", "é",
        "\u{2212}", "0x", "[", ".",
    ]);
    let space = select(vec![" ", " ", ""]);
    prop::collection::vec((piece, space), 0..30)
        .prop_map(|pieces| pieces.into_iter().flat_map(|(piece, space)| [piece, space]).collect())
}

/// Reads `text` in every way; what can be read must print to text that reads the same.
fn check(text: &str) -> Result<(), TestCaseError> {
    for tree in [parse_condition(text), parse_condition_with(text, &|name| name.text.len() == 1)]
        .into_iter()
        .flatten()
    {
        let printed = tree.to_string();
        prop_assert_eq!(parse_expression(&printed), Ok(tree), "{}", printed);
    }
    if let Ok(query) = parse_select(text) {
        let printed = query.to_string();
        prop_assert_eq!(parse_select(&printed), Ok(query), "{}", printed);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn printed_trees_read_back(tree in tree()) {
        let printed = tree.to_string();
        prop_assert_eq!(parse_expression(&printed), Ok(tree), "{}", printed);
    }

    #[test]
    fn printed_queries_read_back(query in query(tree().boxed())) {
        let printed = query.to_string();
        prop_assert_eq!(parse_select(&printed), Ok(query), "{}", printed);
    }

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn any_pieces_are_read_or_refused(text in pieces()) {
        check(&text)?;
        check(&format!("SELECT {text}"))?;
    }
}
