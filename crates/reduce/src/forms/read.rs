//! Nodes to reductions.

use sieva_plan::{CompareOp, Literal};
use sieva_types::{Error, Result};

use super::node::{Field, Node, short};
use super::write::{NUMBERED, SIMPLE};
use crate::reduction::{Condition, DatePart, Dim, Function, Key, Operand, Reduction, Select};

/// Other words for operators, which XML need not escape.
const OPERATORS: [(&str, CompareOp); 8] = [
    ("eq", CompareOp::Eq),
    ("==", CompareOp::Eq),
    ("ne", CompareOp::NotEq),
    ("!=", CompareOp::NotEq),
    ("lt", CompareOp::Lt),
    ("le", CompareOp::LtEq),
    ("gt", CompareOp::Gt),
    ("ge", CompareOp::GtEq),
];

/// The reduction of a node, which is checked.
pub(super) fn reduction(node: Node) -> Result<Reduction> {
    let place = node.place.clone();
    let found = unchecked(node)?;
    found.check().map_err(|e| e.at(place))?;
    Ok(found)
}

fn unchecked(mut node: Node) -> Result<Reduction> {
    let word = type_of(&mut node)?;
    if word == "sql" {
        let text = node.needed_text("text")?;
        node.finish()?;
        return Ok(Reduction::Sql(text));
    }
    let variable = node.needed_text("name")?;
    if word == "code" {
        let source = node.needed_text("cod")?;
        node.finish()?;
        return Ok(Reduction::code(&variable, &source));
    }
    let mut select = typed(&mut node, &word, variable)?;
    for (name, child) in std::mem::take(&mut node.children) {
        match name.as_str() {
            "where" => {
                let (mut child, own) = (child, select.variable.clone());
                let word = type_of(&mut child)?;
                let of = child.take_text("name")?.unwrap_or(own);
                let found = condition(&mut child, &word, &of)?;
                select.conditions.extend(found.ok_or_else(|| no_type(&child, &word))?);
                child.finish()?;
            }
            "by" => select.by.push(key(child)?),
            other => {
                return Err(node.wrong(format!("'{other}' has no place below it, 'where' and 'by' have")));
            }
        }
    }
    node.finish()?;
    Ok(Reduction::Select(select))
}

/// The word of the type; without one the whole variable is asked for.
fn type_of(node: &mut Node) -> Result<String> {
    let numbered = |n: i128| match n {
        0 => Some("whole"),
        n => usize::try_from(n - 1).ok().and_then(|n| NUMBERED.get(n)).copied(),
    };
    let (given, found) = match node.fields.remove("type") {
        None => return Ok("whole".to_owned()),
        Some(Field::Literal(Literal::Int(n))) => (n.to_string(), numbered(n)),
        Some(Field::Written(text) | Field::Text(text)) => match text.parse() {
            Ok(n) => (text, numbered(n)),
            Err(_) => return Ok(text),
        },
        Some(_) => return Err(node.wrong("'type' is a number from 1 to 8, or a word")),
    };
    found.map(str::to_owned).ok_or_else(|| no_type(node, &given))
}

fn no_type(node: &Node, given: &str) -> Error {
    let words: Vec<&str> =
        NUMBERED.iter().copied().chain(SIMPLE[4..].iter().map(|(word, _)| *word)).collect();
    let more = "whole, quantile, histogram, block-mean, first, last, sql";
    node.wrong(format!("no type '{}' here", short(given)))
        .hint(format!("there are 1 to 8 of Table I, {}, {more}", words.join(", ")))
}

/// What the type says.
fn typed(node: &mut Node, word: &str, variable: String) -> Result<Select> {
    let mut select = Select { variable, function: Function::Values, conditions: Vec::new(), by: Vec::new() };
    if let Some((_, function)) = SIMPLE.iter().find(|(simple, _)| *simple == word) {
        select.function = *function;
        return Ok(select);
    }
    match word {
        "quantile" => select.function = Function::Quantile(node.needed_float("q")?),
        "histogram" => select.function = histogram(node)?,
        "block-mean" => {
            select.function = Function::Mean;
            select.by.push(Key::Blocks(node.needed_numbers("factors")?));
        }
        "by-other" => {
            let variable = node.needed_text("variable1")?;
            select.conditions.push(between(node, variable)?);
        }
        _ => {
            let found = condition(node, word, &select.variable)?;
            select.conditions = found.ok_or_else(|| no_type(node, word))?;
        }
    }
    Ok(select)
}

fn histogram(node: &mut Node) -> Result<Function> {
    let bins = u32::try_from(node.needed_number("bins")?).unwrap_or(u32::MAX);
    let range = match (node.take_float("low")?, node.take_float("high")?) {
        (Some(low), Some(high)) => Some((low, high)),
        (None, None) => None,
        _ => return Err(node.wrong("'low' and 'high' of a histogram go together")),
    };
    Ok(Function::Histogram { bins, range })
}

/// The conditions that a type says of a variable; none where it is no such type.
fn condition(node: &mut Node, word: &str, of: &str) -> Result<Option<Vec<Condition>>> {
    Ok(Some(match word {
        "range" => vec![range(node)?],
        "first" => vec![Condition::First(node.needed_dim("dimension")?)],
        "last" => vec![Condition::Last(node.needed_dim("dimension")?)],
        "between" => vec![between(node, of.to_owned())?],
        "compare" => {
            let mut all = vec![compare(node, "", of)?];
            if ["op2", "value2", "function2"].iter().any(|key| node.has(key)) {
                all.push(compare(node, "2", of)?);
            }
            all
        }
        _ => return Ok(None),
    }))
}

/// Positions as we write them, or as Table I does.
fn range(node: &mut Node) -> Result<Condition> {
    let ours = ["dimension", "start", "end"].iter().any(|k| node.has(k));
    let theirs = ["dimensions", "start_pos", "end_pos"].iter().any(|k| node.has(k));
    if ours && theirs {
        let message = "a range is said by 'dimension', 'start' and 'end', or by 'dimensions', 'start_pos' and 'end_pos'";
        return Err(node
            .wrong(message)
            .hint("the former count from 0 and leave out the end, the latter do not"));
    }
    if !theirs {
        let dimension = node.needed_dim("dimension")?;
        return Ok(Condition::Range {
            dimension,
            start: node.needed_number("start")?,
            end: node.needed_number("end")?,
        });
    }
    let dimension = match node.needed_dim("dimensions")? {
        Dim::Position(place) => Dim::Position(
            place.checked_sub(1).ok_or_else(|| node.wrong("'dimensions' counts from 1, got 0"))?,
        ),
        name => name,
    };
    let start = node.needed_number("start_pos")?;
    let last = node.needed_number("end_pos")?;
    let end = last.checked_add(1).ok_or_else(|| node.wrong(format!("'end_pos' is too great: {last}")))?;
    Ok(Condition::Range { dimension, start, end })
}

fn between(node: &mut Node, variable: String) -> Result<Condition> {
    let above = node.needed_literal("threshold1")?;
    Ok(Condition::Between { variable, above, below: node.needed_literal("threshold2")? })
}

/// A bound: `number` is behind its attributes.
fn compare(node: &mut Node, number: &str, of: &str) -> Result<Condition> {
    let key = |word: &str| format!("{word}{number}");
    let op = match node.take_text(&key("op"))? {
        // As in the example of Table I.
        None if number.is_empty() => CompareOp::GtEq,
        None => return Err(node.missing(&key("op"))),
        Some(text) => operator(node, &text)?,
    };
    let value = node.take_literal(&key("value"))?;
    let function = node.take_text(&key("function"))?;
    let below = if number.is_empty() { take_with(node)? } else { None };
    let with = match (value, function, below) {
        (Some(value), None, None) => Operand::Literal(value),
        (None, Some(word), None) => {
            let other = node.take_text(&key("of"))?.unwrap_or_else(|| of.to_owned());
            Operand::from(simple(node, &word, &other)?)
        }
        (None, None, Some(reduction)) => Operand::from(reduction),
        _ => {
            let (value, function) = (key("value"), key("function"));
            return Err(node
                .wrong(format!("values are compared with one of '{value}', '{function}' and 'with' below")));
        }
    };
    Ok(Condition::Compare { variable: of.to_owned(), op, with })
}

fn operator(node: &Node, text: &str) -> Result<CompareOp> {
    let text = text.trim();
    let ours = CompareOp::ALL.iter().map(|op| (op.symbol(), *op));
    let found = ours.chain(OPERATORS).find(|(symbol, _)| *symbol == text);
    found.map(|(_, op)| op).ok_or_else(|| {
        node.wrong(format!("no operator '{}'", short(text)))
            .hint("there are = <> < <= > >=, and eq ne lt le gt ge")
    })
}

/// A function of Table I by its number, or another one by its word.
fn simple(node: &Node, word: &str, of: &str) -> Result<Reduction> {
    let word = match word.trim() {
        "1" => "max",
        "2" => "min",
        "3" => "mean",
        other => other,
    };
    match SIMPLE[1..].iter().find(|(simple, _)| *simple == word) {
        Some((_, function)) => Ok(Reduction::of(of, *function)),
        None => {
            let words: Vec<&str> = SIMPLE[1..].iter().map(|(word, _)| *word).collect();
            Err(node
                .wrong(format!("no function '{}' to compare with", short(word)))
                .hint(format!("there are {}; others stand in 'with'", words.join(", "))))
        }
    }
}

fn take_with(node: &mut Node) -> Result<Option<Reduction>> {
    let Some(place) = node.children.iter().position(|(name, _)| name == "with") else { return Ok(None) };
    let (_, child) = node.children.remove(place);
    unchecked(child).map(Some)
}

fn key(mut node: Node) -> Result<Key> {
    let key = if node.has("factors") {
        Key::Blocks(node.needed_numbers("factors")?)
    } else if node.has("dimension") {
        let dimension = node.needed_dim("dimension")?;
        Key::Block { dimension, factor: node.needed_number("factor")? }
    } else {
        let variable = node.needed_text("name")?;
        match (node.take_text("part")?, node.take_float("band")?) {
            (None, None) => Key::Value(variable),
            (Some(word), None) => Key::Part { part: part(&node, &word)?, variable },
            (None, Some(width)) => Key::Band { variable, width },
            _ => return Err(node.wrong("a key is a 'part' of a date or a 'band', not both")),
        }
    };
    node.finish()?;
    Ok(key)
}

fn part(node: &Node, word: &str) -> Result<DatePart> {
    DatePart::ALL.iter().copied().find(|p| p.name() == word.trim()).ok_or_else(|| {
        let words: Vec<&str> = DatePart::ALL.iter().map(|p| p.name()).collect();
        node.wrong(format!("no part '{}' of a date", short(word)))
            .hint(format!("there are {}", words.join(", ")))
    })
}
