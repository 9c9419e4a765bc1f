//! Nodes to XML.

use std::fmt::Write;

use sieva_types::{Error, ErrorKind, Result};

use super::super::node::{Field, Node, short};
use super::super::write::NUMBERED;
use super::{CODE, ESCAPES, is_possible};
use crate::reduction::{Dim, words};

/// Elements whose type is one of Table I.
const TYPED: [&str; 3] = ["rd", "where", "with"];

/// An element as text, with so many levels above it.
pub(in super::super) fn write(name: &str, node: &Node, level: usize) -> Result<String> {
    let mut out = String::new();
    element(&mut out, name, node, level)?;
    Ok(out)
}

fn element(out: &mut String, name: &str, node: &Node, level: usize) -> Result<()> {
    let indent = "  ".repeat(level);
    let _ = write!(out, "{indent}<{name}");
    // What it is stands first.
    let order = |key: &str| ["type", "name"].iter().position(|k| *k == key).unwrap_or(2);
    let mut fields: Vec<_> = node.fields.iter().collect();
    fields.sort_by_key(|(key, _)| order(key));
    for (key, field) in fields {
        let value = escaped(&written(name, key, field)).map_err(|e| e.at(format!("'{}'", short(key))))?;
        let _ = write!(out, " {key}=\"{value}\"");
    }
    if node.children.is_empty() {
        out.push_str("/>\n");
        return Ok(());
    }
    out.push_str(">\n");
    for (name, child) in &node.children {
        element(out, name, child, level + 1)?;
    }
    let _ = writeln!(out, "{indent}</{name}>");
    Ok(())
}

fn written(element: &str, key: &str, field: &Field) -> String {
    match field {
        Field::Text(text) if key == CODE => code(text),
        Field::Text(text) if key == "type" && TYPED.contains(&element) => {
            // The paper's types by their numbers.
            let number = NUMBERED.iter().position(|word| word == text);
            number.map_or_else(|| text.clone(), |n| (n + 1).to_string())
        }
        Field::Text(text) | Field::Written(text) => text.clone(),
        Field::Literal(literal) => words::literal(literal),
        Field::Names(list) => list.join(", "),
        Field::Numbers(list) => list.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
        Field::Dim(Dim::Position(place)) => place.to_string(),
        Field::Dim(Dim::Name(name)) => {
            let is_doubtful = name.starts_with('\'') || name.bytes().all(|b| b.is_ascii_digit());
            if is_doubtful { words::quoted(name, '\'') } else { name.clone() }
        }
    }
}

fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match ESCAPES.iter().find(|(meant, _)| *meant == c) {
            Some((_, letter)) => out.extend(['\\', *letter]),
            None => out.push(c),
        }
    }
    out
}

fn escaped(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' | '\r' => {
                let _ = write!(out, "&#{};", c as u32);
            }
            c if is_possible(c) => out.push(c),
            c => {
                let message = format!("XML has no character {c:?}");
                return Err(Error::new(ErrorKind::InvalidValue, message).hint("write it as TOML"));
            }
        }
    }
    Ok(out)
}
