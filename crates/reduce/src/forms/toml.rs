//! Nodes from and to TOML. What XML calls by a name of ADIOS has a plain word here.

use sieva_plan::Literal;
use sieva_types::{Error, ErrorKind, Result};
use toml::{Table, Value};

use super::node::{Field, Node, short};
use super::{MAX_ELEMENTS, MAX_TEXT};
use crate::reduction::Dim;

/// Names of elements of XML, and of tables.
const TABLES: [(&str, &str); 4] =
    [("adios-group", "group"), ("var", "variable"), ("rd", "reduction"), ("global-bounds", "bounds")];
/// What is one table where it is below another, not a list of them.
const SINGLE: [&str; 2] = ["with", "bounds"];
/// An integer that TOML does not have.
const INTEGER: &str = "integer";

/// The table of a text.
pub(super) fn read(text: &str) -> Result<Node> {
    if text.len() > MAX_TEXT {
        let message = format!("TOML of {} bytes, at most {MAX_TEXT} are read", text.len());
        return Err(Error::new(ErrorKind::InvalidValue, message));
    }
    let table: Table = text.parse().map_err(|e: toml::de::Error| {
        Error::of_lines(ErrorKind::InvalidValue, format!("not TOML: {}", e.to_string().trim_end()))
    })?;
    node(table, "TOML".to_owned(), &mut 0)
}

/// A table; the parser limits how deep they are.
fn node(table: Table, place: String, tables: &mut usize) -> Result<Node> {
    let mut node = Node::new(place);
    *tables += 1;
    if *tables > MAX_ELEMENTS {
        return Err(node.wrong(format!("more than {MAX_ELEMENTS} tables")));
    }
    for (key, value) in table {
        let place = |number: usize| format!("{}, {} {number}", node.place, short(&key));
        match value {
            Value::Table(mut table) if table.len() == 1 && table.contains_key(INTEGER) => {
                let text = table.remove(INTEGER);
                let number = text.as_ref().and_then(Value::as_str).and_then(|t| t.parse().ok());
                let number = number
                    .ok_or_else(|| node.wrong(format!("'{}' has an integer that is none", short(&key))))?;
                node.fields.insert(key, Field::Literal(Literal::Int(number)));
            }
            Value::Table(table) => {
                let child = self::node(table, place(1), tables)?;
                node.children.push((element(&key), child));
            }
            Value::Array(list) if list.first().is_some_and(Value::is_table) => {
                for (number, value) in list.into_iter().enumerate() {
                    let Value::Table(table) = value else {
                        return Err(node.wrong(format!("'{}' is a list of tables", short(&key))));
                    };
                    let child = self::node(table, place(number + 1), tables)?;
                    node.children.push((element(&key), child));
                }
            }
            other => {
                let field = field(other).ok_or_else(|| {
                    node.wrong(format!("'{}' is a list of numbers or of texts", short(&key)))
                })?;
                node.fields.insert(key, field);
            }
        }
    }
    Ok(node)
}

fn field(value: Value) -> Option<Field> {
    Some(match value {
        Value::String(text) => Field::Text(text),
        Value::Integer(i) => Field::Literal(Literal::Int(i.into())),
        Value::Float(f) => Field::Literal(Literal::Float(f)),
        Value::Boolean(b) => Field::Literal(Literal::Bool(b)),
        // A date of TOML is one of ours.
        Value::Datetime(date) => Field::Text(date.to_string()),
        Value::Array(list) => {
            let number = |v: &Value| v.as_integer().and_then(|i| u64::try_from(i).ok());
            match list.iter().map(number).collect() {
                Some(numbers) => Field::Numbers(numbers),
                None => Field::Names(list.into_iter().map(name).collect::<Option<_>>()?),
            }
        }
        Value::Table(_) => return None,
    })
}

/// A name of a list, in which lengths may stand beside names.
fn name(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Integer(i) => Some(i.to_string()),
        _ => None,
    }
}

fn element(key: &str) -> String {
    TABLES.iter().find(|(_, table)| *table == key).map_or(key, |(element, _)| element).to_owned()
}

/// A node as a text.
pub(super) fn write(node: &Node) -> String {
    table(node).to_string()
}

fn table(node: &Node) -> Table {
    let mut table = Table::new();
    for (key, field) in &node.fields {
        table.insert(key.clone(), value(field));
    }
    for (name, child) in &node.children {
        let key = TABLES.iter().find(|(element, _)| element == name).map_or(name.as_str(), |(_, t)| t);
        let child = Value::Table(self::table(child));
        if SINGLE.contains(&key) {
            table.insert(key.to_owned(), child);
        } else if let Some(Value::Array(list)) = table.get_mut(key) {
            list.push(child);
        } else {
            table.insert(key.to_owned(), Value::Array(vec![child]));
        }
    }
    table
}

fn value(field: &Field) -> Value {
    match field {
        Field::Text(text) | Field::Written(text) => Value::String(text.clone()),
        Field::Literal(literal) => match literal {
            Literal::Int(i) => match i64::try_from(*i) {
                Ok(i) => Value::Integer(i),
                Err(_) => {
                    let mut big = Table::new();
                    big.insert(INTEGER.to_owned(), Value::String(i.to_string()));
                    Value::Table(big)
                }
            },
            Literal::Float(f) => Value::Float(*f),
            Literal::Bool(b) => Value::Boolean(*b),
            Literal::Text(text) => Value::String(text.clone()),
            Literal::Null => Value::String(String::new()),
        },
        Field::Names(list) => Value::Array(list.iter().cloned().map(Value::String).collect()),
        Field::Numbers(list) => {
            // Factors were checked to be in the range.
            Value::Array(list.iter().map(|&n| Value::Integer(n.try_into().unwrap_or(i64::MAX))).collect())
        }
        Field::Dim(Dim::Position(place)) => value(&Field::Literal(Literal::Int(*place as i128))),
        Field::Dim(Dim::Name(name)) => Value::String(name.clone()),
    }
}
