//! What XML and TOML have in common: names with values, and nodes below.

use std::collections::BTreeMap;

use sieva_plan::Literal;
use sieva_types::{Error, ErrorKind, Result};

use crate::reduction::{Dim, words};

/// A value of a form.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Field {
    /// As an attribute of XML has it, where only the reader knows what it is.
    Written(String),
    /// A name, a word, or code.
    Text(String),
    /// A number, or a threshold.
    Literal(Literal),
    /// A list of names.
    Names(Vec<String>),
    /// A list of numbers.
    Numbers(Vec<u64>),
    /// A dimension.
    Dim(Dim),
}

/// An element of XML, a table of TOML.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    /// What it is, for messages.
    pub(super) place: String,
    pub(super) fields: BTreeMap<String, Field>,
    /// Nodes below it, with their names.
    pub(super) children: Vec<(String, Node)>,
}

impl Node {
    pub(super) fn new(place: impl Into<String>) -> Self {
        Self { place: place.into(), ..Self::default() }
    }

    #[must_use]
    pub(super) fn with(mut self, key: &str, field: Field) -> Self {
        self.fields.insert(key.to_owned(), field);
        self
    }

    #[must_use]
    pub(super) fn text(self, key: &str, text: &str) -> Self {
        self.with(key, Field::Text(text.to_owned()))
    }

    #[must_use]
    pub(super) fn text_if(self, key: &str, text: Option<&String>) -> Self {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }

    #[must_use]
    pub(super) fn number(self, key: &str, number: u64) -> Self {
        self.with(key, Field::Literal(Literal::Int(number.into())))
    }

    #[must_use]
    pub(super) fn float(self, key: &str, float: f64) -> Self {
        self.with(key, Field::Literal(Literal::Float(float)))
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.fields.contains_key(key)
    }

    pub(super) fn wrong(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidValue, message).at(&self.place)
    }

    /// A text that may be left out.
    pub(super) fn take_text(&mut self, key: &str) -> Result<Option<String>> {
        match self.fields.remove(key) {
            None => Ok(None),
            Some(Field::Written(text) | Field::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.not_of(key, "a text", &other)),
        }
    }

    pub(super) fn needed_text(&mut self, key: &str) -> Result<String> {
        self.take_text(key)?.ok_or_else(|| self.missing(key))
    }

    /// A constant that may be left out.
    pub(super) fn take_literal(&mut self, key: &str) -> Result<Option<Literal>> {
        match self.fields.remove(key) {
            None => Ok(None),
            Some(Field::Literal(literal)) => Ok(Some(literal)),
            Some(Field::Text(text)) => Ok(Some(Literal::Text(text))),
            Some(Field::Written(text)) => match words::read_literal(&text) {
                Some(literal) => Ok(Some(literal)),
                None => Err(self
                    .wrong(format!("'{key}' is no number and no text in single quotes: {}", short(&text)))
                    .hint("dates are texts, too: '2000-01-01'")),
            },
            Some(other) => Err(self.not_of(key, "a number or a text", &other)),
        }
    }

    pub(super) fn needed_literal(&mut self, key: &str) -> Result<Literal> {
        self.take_literal(key)?.ok_or_else(|| self.missing(key))
    }

    /// A whole number that is not negative.
    pub(super) fn needed_number(&mut self, key: &str) -> Result<u64> {
        match self.needed_literal(key)? {
            Literal::Int(i) if u64::try_from(i).is_ok() => Ok(i as u64),
            other => {
                let other = words::literal(&other);
                Err(self.wrong(format!("'{key}' is a whole number from 0, got {}", short(&other))))
            }
        }
    }

    /// A number as a float.
    pub(super) fn take_float(&mut self, key: &str) -> Result<Option<f64>> {
        match self.take_literal(key)? {
            None => Ok(None),
            Some(Literal::Float(f)) => Ok(Some(f)),
            // Whole numbers up to here are floats exactly.
            Some(Literal::Int(i)) if i.unsigned_abs() <= 1 << 53 => Ok(Some(i as f64)),
            Some(other) => {
                let other = words::literal(&other);
                Err(self.wrong(format!("'{key}' is a number, got {}", short(&other))))
            }
        }
    }

    pub(super) fn needed_float(&mut self, key: &str) -> Result<f64> {
        self.take_float(key)?.ok_or_else(|| self.missing(key))
    }

    /// A dimension: a place from 0, or a name; in XML a name of digits alone is in single quotes.
    pub(super) fn needed_dim(&mut self, key: &str) -> Result<Dim> {
        let place = |i: i128| usize::try_from(i).ok().map(Dim::Position);
        let found = match self.fields.remove(key) {
            None => return Err(self.missing(key)),
            Some(Field::Dim(dim)) => Some(dim),
            Some(Field::Text(name)) => Some(Dim::Name(name)),
            Some(Field::Literal(Literal::Int(i))) => place(i),
            Some(Field::Written(text)) if text.starts_with('\'') => {
                words::unquoted(&text, '\'').map(Dim::Name)
            }
            Some(Field::Written(text)) if text.bytes().all(|b| b.is_ascii_digit()) => {
                text.parse().ok().and_then(place)
            }
            Some(Field::Written(text)) => Some(Dim::Name(text)),
            Some(_) => None,
        };
        found.ok_or_else(|| self.wrong(format!("'{key}' is a dimension: its place from 0, or its name")))
    }

    /// A list of whole numbers.
    pub(super) fn needed_numbers(&mut self, key: &str) -> Result<Vec<u64>> {
        let found = match self.fields.remove(key) {
            None => return Err(self.missing(key)),
            Some(Field::Numbers(list)) => Some(list),
            Some(Field::Names(list)) if list.is_empty() => Some(Vec::new()),
            Some(Field::Written(text)) => split(&text).iter().map(|t| t.parse().ok()).collect(),
            Some(_) => None,
        };
        found.ok_or_else(|| self.wrong(format!("'{key}' is a list of whole numbers from 0")))
    }

    /// A list of names; none if it is left out.
    pub(super) fn take_names(&mut self, key: &str) -> Result<Vec<String>> {
        match self.fields.remove(key) {
            None => Ok(Vec::new()),
            Some(Field::Names(list)) => Ok(list),
            Some(Field::Numbers(list)) => Ok(list.iter().map(u64::to_string).collect()),
            Some(Field::Written(text)) => Ok(split(&text)),
            Some(other) => Err(self.not_of(key, "a list of names", &other)),
        }
    }

    /// Makes sure that nothing is left that nobody asked for.
    pub(super) fn finish(&self) -> Result<()> {
        if let Some(key) = self.fields.keys().next() {
            return Err(self.wrong(format!("'{key}' means nothing here")));
        }
        match self.children.first() {
            Some((name, _)) => Err(self.wrong(format!("'{name}' has no place below it"))),
            None => Ok(()),
        }
    }

    pub(super) fn missing(&self, key: &str) -> Error {
        self.wrong(format!("'{key}' is missing"))
    }

    fn not_of(&self, key: &str, wanted: &str, got: &Field) -> Error {
        let got = match got {
            Field::Written(_) | Field::Text(_) => "a text",
            Field::Literal(_) => "a number",
            Field::Names(_) | Field::Numbers(_) => "a list",
            Field::Dim(_) => "a dimension",
        };
        self.wrong(format!("'{key}' is {wanted}, got {got}"))
    }
}

/// The beginning of a text, for messages.
pub(super) fn short(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A list with commas.
fn split(text: &str) -> Vec<String> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    text.split(',').map(|t| t.trim().to_owned()).collect()
}
