//! Expressions in JSON: literals as they are, `{"column": 3}`, and lists that begin with an operator's symbol.

use serde_json::{Value, json};
use sieva_types::{Error, Result};

use super::{Members, from_value, shown, to_value, wrong};
use crate::expr::{BinaryOp, ColumnId, CompareOp, Expr, Literal};

pub(super) fn literal_to(literal: &Literal) -> Value {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(v) => json!(v),
        Literal::Int(v) => match (i64::try_from(*v), u64::try_from(*v)) {
            (Ok(v), _) => json!(v),
            (_, Ok(v)) => json!(v),
            _ => json!({ "int": v.to_string() }),
        },
        Literal::Float(v) if v.is_finite() => json!(v),
        Literal::Float(v) if v.is_nan() => json!({ "float": "nan" }),
        Literal::Float(v) => json!({ "float": if *v > 0.0 { "inf" } else { "-inf" } }),
        Literal::Text(v) => json!(v),
    }
}

pub(super) fn literal_of(value: &Value) -> Result<Literal> {
    Ok(match value {
        Value::Null => Literal::Null,
        Value::Bool(v) => Literal::Bool(*v),
        Value::String(v) => Literal::Text(v.clone()),
        Value::Number(n) => match (n.as_i64(), n.as_u64(), n.as_f64()) {
            (Some(v), _, _) => Literal::Int(v.into()),
            (_, Some(v), _) => Literal::Int(v.into()),
            (_, _, Some(v)) => Literal::Float(v),
            _ => return Err(wrong(format!("{n} is no number of ours"))),
        },
        Value::Object(map) if map.contains_key("int") => {
            let mut m = Members::new("an integer", value)?;
            let text = m.text("int")?;
            m.finish()?;
            Literal::Int(text.parse().map_err(|_| wrong(format!("'{text}' is no integer of 128 bits")))?)
        }
        Value::Object(map) if map.contains_key("float") => {
            let mut m = Members::new("a float", value)?;
            let text = m.text("float")?;
            m.finish()?;
            Literal::Float(match text.as_str() {
                "nan" => f64::NAN,
                "inf" => f64::INFINITY,
                "-inf" => f64::NEG_INFINITY,
                other => return Err(wrong(format!("'float' is one of nan, inf, -inf, not '{other}'"))),
            })
        }
        other => return Err(wrong(format!("a literal is wanted, not {}", shown(other)))),
    })
}

pub(super) fn json_of(expr: &Expr) -> Value {
    let list = |head: &str, parts: &[&Expr]| {
        std::iter::once(json!(head)).chain(parts.iter().map(|p| json_of(p))).collect::<Value>()
    };
    match expr {
        Expr::Literal(literal) => literal_to(literal),
        Expr::Column(id) => json!({ "column": id.0 }),
        Expr::Subquery(plan) => json!({ "subquery": to_value(plan) }),
        Expr::Negate(a) => list("negate", &[a]),
        Expr::Binary(op, a, b) => list(op.symbol(), &[a, b]),
        Expr::Compare(op, a, b) => list(op.symbol(), &[a, b]),
        Expr::IsNull(a) => list("is null", &[a]),
        Expr::Not(a) => list("not", &[a]),
        Expr::And(parts) => list("and", &parts.iter().collect::<Vec<_>>()),
        Expr::Or(parts) => list("or", &parts.iter().collect::<Vec<_>>()),
        Expr::Like(a, pattern) => json!(["like", json_of(a), pattern]),
        Expr::In(a, of) => json!(["in", json_of(a), of.iter().map(literal_to).collect::<Vec<_>>()]),
        Expr::Call(function, args) => {
            let args: Vec<Value> = args.iter().map(json_of).collect();
            json!({ "call": function, "arguments": args })
        }
    }
}

pub(super) fn expr_of(value: &Value) -> Result<Expr> {
    match value {
        Value::Array(list) => operation(value, list),
        Value::Object(map) if map.contains_key("column") => {
            let mut m = Members::new("a column", value)?;
            let id = m.value("column")?;
            m.finish()?;
            let number = id.as_u64().and_then(|n| u32::try_from(n).ok());
            number
                .map(|n| Expr::Column(ColumnId(n)))
                .ok_or_else(|| wrong(format!("{} is no column", shown(&id))))
        }
        Value::Object(map) if map.contains_key("subquery") => {
            let mut m = Members::new("a subquery", value)?;
            let plan = from_value(&m.value("subquery")?)?;
            m.finish()?;
            Ok(Expr::Subquery(Box::new(plan)))
        }
        Value::Object(map) if map.contains_key("call") => {
            let mut m = Members::new("a call", value)?;
            let function = m.text("call")?;
            let args = m.list("arguments", expr_of)?;
            m.finish()?;
            Ok(Expr::Call(function, args))
        }
        literal => literal_of(literal).map(Expr::Literal),
    }
}

/// A list that begins with an operator.
fn operation(value: &Value, list: &[Value]) -> Result<Expr> {
    let Some((Value::String(head), operands)) = list.split_first() else {
        return Err(wrong(format!("an expression begins with an operator: {}", shown(value))));
    };
    let parts = || operands.iter().map(expr_of).collect::<Result<Vec<_>>>();
    match head.as_str() {
        "and" => return parts().map(Expr::And),
        "or" => return parts().map(Expr::Or),
        _ => {}
    }
    let of = |symbol: &str| symbol == head;
    let binary = BinaryOp::ALL.iter().copied().find(|op| of(op.symbol()));
    let compare = CompareOp::ALL.iter().copied().find(|op| of(op.symbol()));
    let one = |e: &Value| expr_of(e).map(Box::new);
    Ok(match (head.as_str(), operands) {
        ("negate", [a]) => Expr::Negate(one(a)?),
        ("is null", [a]) => Expr::IsNull(one(a)?),
        ("not", [a]) => Expr::Not(one(a)?),
        ("like", [a, Value::String(pattern)]) => Expr::Like(one(a)?, pattern.clone()),
        ("in", [a, Value::Array(list)]) => {
            Expr::In(one(a)?, list.iter().map(literal_of).collect::<Result<_>>()?)
        }
        (_, [a, b]) => match (binary, compare) {
            (Some(op), _) => Expr::binary(op, expr_of(a)?, expr_of(b)?),
            (_, Some(op)) => Expr::compare(op, expr_of(a)?, expr_of(b)?),
            _ => return Err(no_operator(head, value)),
        },
        _ => return Err(no_operator(head, value)),
    })
}

fn no_operator(head: &str, value: &Value) -> Error {
    wrong(format!("there is no operator '{head}' of such operands: {}", shown(value)))
}
