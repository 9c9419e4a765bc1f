//! Comparisons of numbers that are known: of two constants, and of positions with one.

use sieva_format::decoding::Number;

use crate::ast::CompareOp;
use crate::bind::Condition;
use crate::raw::{Comparison, compare_exact};

/// The positions below `n` that satisfy a comparison, as half-open ranges.
pub(super) fn positions(op: Comparison, literal: Number, n: u64) -> Vec<(u64, u64)> {
    use std::cmp::Ordering::{Greater, Less};
    let order = |p: u64| compare_exact(Number::Int(p.into()), literal);
    if order(0).is_none() {
        return Vec::new();
    }
    let first = |past: &dyn Fn(std::cmp::Ordering) -> bool| {
        let (mut a, mut b) = (0, n);
        while a < b {
            let middle = a + (b - a) / 2;
            if order(middle).is_some_and(past) { b = middle } else { a = middle + 1 }
        }
        a
    };
    let (equal, after) = (first(&|o| o != Less), first(&|o| o == Greater));
    let ranges = match op {
        Comparison::Less => vec![(0, equal)],
        Comparison::LessEqual => vec![(0, after)],
        Comparison::Equal => vec![(equal, after)],
        Comparison::NotEqual => vec![(0, equal), (after, n)],
        Comparison::GreaterEqual => vec![(equal, n)],
        Comparison::Greater => vec![(after, n)],
    };
    ranges.into_iter().filter(|(a, b)| a < b).collect()
}

pub(super) fn decided(op: Comparison, a: Number, b: Number) -> Condition {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let holds = compare_exact(a, b).is_some_and(|o| match op {
        Comparison::Less => o == Less,
        Comparison::LessEqual => o != Greater,
        Comparison::Equal => o == Equal,
        Comparison::NotEqual => o != Equal,
        Comparison::GreaterEqual => o != Less,
        Comparison::Greater => o == Greater,
    });
    if holds { Condition::Always } else { Condition::Never }
}

pub(super) fn comparison(op: CompareOp) -> Comparison {
    match op {
        CompareOp::Eq => Comparison::Equal,
        CompareOp::NotEq => Comparison::NotEqual,
        CompareOp::Lt => Comparison::Less,
        CompareOp::LtEq => Comparison::LessEqual,
        CompareOp::Gt => Comparison::Greater,
        CompareOp::GtEq => Comparison::GreaterEqual,
    }
}

pub(super) fn compare_op(op: Comparison) -> CompareOp {
    match op {
        Comparison::Equal => CompareOp::Eq,
        Comparison::NotEqual => CompareOp::NotEq,
        Comparison::Less => CompareOp::Lt,
        Comparison::LessEqual => CompareOp::LtEq,
        Comparison::Greater => CompareOp::Gt,
        Comparison::GreaterEqual => CompareOp::GtEq,
    }
}
