//! The metadata documents of one source: read within limits, kept as they were read, and parsed one at a time. Parsed they
//! would take ten times as much.

use std::ops::Range;

use serde_json::{Map, Value};
use sieva_format::json::parsed_size;
use sieva_store::{ObjectTree, Span};
use sieva_types::{Error, ErrorKind, Result};

use crate::budget::Budget;
use crate::json;
use crate::scan;

/// The longest metadata document that is read.
const MAX_BYTES: u64 = 64 << 20;
/// The most that all documents of one source may take together.
const MAX_TOTAL: usize = 256 << 20;

/// The part of a document's object that is asked for: all of it, and one byte more of one that is too long.
pub(crate) const SPAN: Span = Span::Last(MAX_BYTES + 1);

/// Where a value of JSON is in all documents.
pub(crate) type Text = Range<usize>;
/// Names of an object's members, and where their values are.
type Members = Vec<(String, Text)>;

/// The documents that were read, in order.
#[derive(Debug)]
pub(crate) struct Documents {
    /// Their keys and where each begins in `bytes`.
    pub(crate) keys: Vec<(String, usize)>,
    /// All of them, one after the other.
    pub(crate) bytes: Vec<u8>,
    pub(crate) budget: Budget,
}

impl Documents {
    /// None yet.
    pub(crate) fn new(budget: Budget) -> Self {
        Self { keys: Vec::new(), bytes: Vec::new(), budget }
    }

    /// Reads the document `key`; `None` where there is none.
    pub(crate) fn read(&mut self, tree: &dyn ObjectTree, key: &str) -> Result<Option<Text>> {
        let mut bytes = Vec::new();
        if !tree.get(key, &SPAN, &mut bytes)? {
            return Ok(None);
        }
        if bytes.len() as u64 > MAX_BYTES || self.bytes.len().saturating_add(bytes.len()) > MAX_TOTAL {
            let message = format!("'{key}': metadata of more than {MAX_BYTES} bytes, or too many documents");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        self.budget.hold(bytes.len() + key.len() + size_of::<(String, usize)>())?;
        let start = self.bytes.len();
        self.keys.push((key.to_owned(), start));
        self.bytes.extend_from_slice(&bytes);
        Ok(Some(start..self.bytes.len()))
    }

    /// Parses a value.
    pub(crate) fn parse(&self, text: &Text) -> Result<Value> {
        let bytes = &self.bytes[text.clone()];
        self.budget.check(parsed_size(bytes))?;
        json::parse(self.key_of(text), bytes)
    }

    /// Parses a document without the object that lies at `path` in it, and tells the members of that object; it
    /// can be as long as all other documents together.
    pub(crate) fn parse_around(&self, text: &Text, path: &[&str]) -> Result<(Value, Option<Members>)> {
        let Some(inner) = scan::value_at(&self.bytes, text, path) else {
            return Ok((self.parse(text)?, None));
        };
        let mut members = Vec::new();
        let mut size = 0;
        let whole = scan::each_member(&self.bytes, &inner, &mut |key, value| {
            size += key.len() + size_of::<(Text, Text)>();
            members.push((key, value));
            self.budget.check(size as u64)
        });
        let whole = whole?;
        if !whole {
            return Ok((self.parse(text)?, None));
        }
        let around = [&self.bytes[text.start..inner.start], b"{}", &self.bytes[inner.end..text.end]].concat();
        self.budget.check(parsed_size(&around))?;
        let document = json::parse(self.key_of(text), &around)?;
        let named = |(key, value): (Text, Text)| match self.parse(&key)? {
            Value::String(name) => Ok((name, value)),
            other => Err(json::wrong("a member's name", "text", &other)),
        };
        Ok((document, Some(members.into_iter().map(named).collect::<Result<_>>()?)))
    }

    /// Where the member `name` of an object is.
    pub(crate) fn member(&self, text: &Text, name: &str) -> Option<Text> {
        scan::value_at(&self.bytes, text, &[name])
    }

    /// Parses attributes; none where that is no object.
    pub(crate) fn attributes(&self, text: Option<&Text>) -> Result<Map<String, Value>> {
        Ok(match text.map(|text| self.parse(text)).transpose()? {
            Some(Value::Object(attrs)) => attrs,
            _ => Map::new(),
        })
    }

    /// The key of the document in which a value lies.
    fn key_of(&self, text: &Text) -> &str {
        let after = self.keys.partition_point(|(_, start)| *start <= text.start);
        after.checked_sub(1).map_or("", |i| self.keys[i].0.as_str())
    }

    /// The `i`th document.
    pub(crate) fn get(&self, i: usize) -> Option<(&str, &[u8])> {
        let (key, start) = self.keys.get(i)?;
        let end = self.keys.get(i + 1).map_or(self.bytes.len(), |next| next.1);
        Some((key, self.bytes.get(*start..end)?))
    }
}
