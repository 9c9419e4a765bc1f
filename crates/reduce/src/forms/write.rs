//! Reductions to nodes.

use sieva_plan::{CompareOp, Literal};

use super::node::{Field, Node};
use crate::reduction::{Condition, Function, Key, Operand, Reduction, Select};

/// The words of the types, by their numbers in Table I where they have one.
pub(super) const NUMBERED: [&str; 8] =
    ["max", "min", "mean", "range", "between", "compare", "by-other", "code"];

/// The words of functions without attributes.
pub(super) const SIMPLE: [(&str, Function); 10] = [
    ("whole", Function::Values),
    ("max", Function::Max),
    ("min", Function::Min),
    ("mean", Function::Mean),
    ("count", Function::Count),
    ("sum", Function::Sum),
    ("variance", Function::Variance),
    ("sample-variance", Function::SampleVariance),
    ("std-dev", Function::StdDev),
    ("sample-std-dev", Function::SampleStdDev),
];

/// A reduction as a node.
pub(super) fn reduction(of: &Reduction) -> Node {
    match of {
        Reduction::Select(select) => self::select(select),
        Reduction::Code(code) => typed("code").text("name", &code.variable).text("cod", &code.source),
        Reduction::Sql(text) => typed("sql").text("text", text),
    }
}

fn typed(word: &str) -> Node {
    Node::new("rd").text("type", word)
}

fn select(select: &Select) -> Node {
    let (node, left_conditions, left_keys) = by_type(select);
    let mut node = node.text("name", &select.variable);
    node.children.extend(left_conditions.iter().map(|c| ("where".to_owned(), below(c, &select.variable))));
    node.children.extend(left_keys.iter().map(|k| ("by".to_owned(), key(k))));
    node
}

/// What the type says, and the conditions and keys that are left.
fn by_type(select: &Select) -> (Node, &[Condition], &[Key]) {
    let (conditions, keys) = (select.conditions.as_slice(), select.by.as_slice());
    match (select.function, conditions, keys) {
        (Function::Values, [_, ..], []) => match condition_by_type(conditions, &select.variable) {
            Some(node) => (node, &[], &[]),
            None => (typed("whole"), conditions, keys),
        },
        (Function::Mean, _, [Key::Blocks(factors)]) => {
            (typed("block-mean").with("factors", Field::Numbers(factors.clone())), conditions, &[])
        }
        (function, _, _) => (self::function(function), conditions, keys),
    }
}

fn function(function: Function) -> Node {
    match function {
        Function::Quantile(share) => typed("quantile").float("q", share),
        Function::Histogram { bins, range } => {
            let node = typed("histogram").number("bins", bins.into());
            match range {
                Some((low, high)) => node.float("low", low).float("high", high),
                None => node,
            }
        }
        simple => typed(SIMPLE.iter().find(|(_, f)| *f == simple).map_or("whole", |(word, _)| word)),
    }
}

/// Values under conditions that one type says; none where there is no such type.
fn condition_by_type(conditions: &[Condition], own: &str) -> Option<Node> {
    Some(match conditions {
        [Condition::Between { variable, above, below }] if variable != own => {
            thresholds(typed("by-other").text("variable1", variable), above, below)
        }
        [one] => condition(one, own).filter(|node| !node.has("name"))?,
        [
            Condition::Compare { variable: a, op, with },
            Condition::Compare { variable: b, op: op2, with: with2 },
        ] if a == own && b == own => {
            bound(bound(typed("compare"), "", own, *op, with)?, "2", own, *op2, with2)?
        }
        _ => return None,
    })
}

/// A condition by attributes; with a name where it looks at another variable than `own`. None if it needs a node below.
fn condition(condition: &Condition, own: &str) -> Option<Node> {
    let named = |node: Node, variable: &str| if variable == own { node } else { node.text("name", variable) };
    Some(match condition {
        Condition::Range { dimension, start, end } => {
            let node = typed("range").with("dimension", Field::Dim(dimension.clone()));
            node.number("start", *start).number("end", *end)
        }
        Condition::First(dimension) => typed("first").with("dimension", Field::Dim(dimension.clone())),
        Condition::Last(dimension) => typed("last").with("dimension", Field::Dim(dimension.clone())),
        Condition::Between { variable, above, below } => {
            thresholds(named(typed("between"), variable), above, below)
        }
        Condition::Compare { variable, op, with } => {
            bound(named(typed("compare"), variable), "", variable, *op, with)?
        }
    })
}

fn thresholds(node: Node, above: &Literal, below: &Literal) -> Node {
    node.with("threshold1", Field::Literal(above.clone())).with("threshold2", Field::Literal(below.clone()))
}

/// Adds a bound by attributes; none if it needs a node below.
fn bound(node: Node, number: &str, of: &str, op: CompareOp, with: &Operand) -> Option<Node> {
    let node = node.text(&format!("op{number}"), op.symbol());
    match with {
        Operand::Literal(value) => Some(node.with(&format!("value{number}"), Field::Literal(value.clone()))),
        Operand::Reduction(other) => match &**other {
            Reduction::Select(s) if s.conditions.is_empty() && s.by.is_empty() => {
                let (word, _) = SIMPLE.iter().find(|(_, f)| *f == s.function)?;
                let node = node.text(&format!("function{number}"), word);
                Some(if s.variable == of { node } else { node.text(&format!("of{number}"), &s.variable) })
            }
            _ => None,
        },
    }
}

/// A condition below its reduction.
fn below(of: &Condition, own: &str) -> Node {
    if let Some(node) = condition(of, own) {
        return node;
    }
    let Condition::Compare { variable, op, with: Operand::Reduction(other) } = of else {
        return Node::new("where");
    };
    let mut node = typed("compare").text("op", op.symbol());
    if variable != own {
        node = node.text("name", variable);
    }
    node.children.push(("with".to_owned(), reduction(other)));
    node
}

fn key(key: &Key) -> Node {
    let node = Node::new("by");
    match key {
        Key::Value(variable) => node.text("name", variable),
        Key::Part { part, variable } => node.text("part", part.name()).text("name", variable),
        Key::Band { variable, width } => node.float("band", *width).text("name", variable),
        Key::Block { dimension, factor } => {
            node.with("dimension", Field::Dim(dimension.clone())).number("factor", *factor)
        }
        Key::Blocks(factors) => node.with("factors", Field::Numbers(factors.clone())),
    }
}
