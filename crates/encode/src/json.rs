//! JSON: `{"columns": [...], "rows": [[...]], "stats": {...}}`, a row to a line.
//!
//! Missing values and NaN are null; JSON has no infinities, so they are the texts `"Infinity"` and `"-Infinity"`.
//! Integers keep all their digits, floats are the shortest text that reads back to the same value of their own width,
//! times are ISO 8601. `stats` is there where the caller says what the query did: it differs from run to run, and a
//! result that is sent in parts must not.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use sieva::Result;

use crate::cells::{Style, TEXT_BYTES, cells, plain};
use crate::spool::failed;
use crate::writer::{Making, Out, ResultWriter, RowSink};

const STYLE: Style = Style { missing: "null", text: quoted, histogram: plain, odd, quote: "\"" };

/// The format.
pub(crate) struct Json;

impl ResultWriter for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &["json"]
    }

    fn making(&self) -> Making {
        Making::Rows(begin)
    }
}

struct Rows<'a> {
    out: Out<'a>,
    text: Vec<u8>,
    /// Before the next row.
    separator: &'static str,
}

fn begin<'a>(schema: &Schema, out: Out<'a>) -> Result<Box<dyn RowSink + 'a>> {
    let mut text = b"{\"columns\": [".to_vec();
    for (i, field) in schema.fields().iter().enumerate() {
        if i > 0 {
            text.extend(b", ");
        }
        quoted(field.name(), &mut text);
    }
    text.extend(b"],\n\"rows\": [");
    Ok(Box::new(Rows { out, text, separator: "\n" }))
}

impl Rows<'_> {
    fn hand_on(&mut self) -> Result<()> {
        self.out.to.write_all(&self.text).map_err(|e| failed(&e))?;
        self.text.clear();
        Ok(())
    }
}

impl RowSink for Rows<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = batch.columns().iter().map(|c| cells(c, STYLE)).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            self.text.extend(self.separator.as_bytes());
            self.separator = ",\n";
            self.text.push(b'[');
            for (i, put) in columns.iter().enumerate() {
                if i > 0 {
                    self.text.extend(b", ");
                }
                put(row, &mut self.text);
            }
            self.text.push(b']');
            if self.text.len() >= TEXT_BYTES {
                self.hand_on()?;
            }
        }
        self.hand_on()
    }

    fn finish(mut self: Box<Self>, stats: Option<&str>) -> Result<()> {
        self.text.push(b']');
        if let Some(stats) = stats {
            self.text.extend(b",\n\"stats\": ");
            self.text.extend(stats.as_bytes());
        }
        self.text.extend(b"}\n");
        self.hand_on()?;
        self.out.to.flush().map_err(|e| failed(&e))
    }
}

/// A text in double quotes, with escapes for what JSON does not allow in it (RFC 8259, section 7).
fn quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for c in text.chars() {
        match c {
            '"' => out.extend(b"\\\""),
            '\\' => out.extend(b"\\\\"),
            '\n' => out.extend(b"\\n"),
            '\r' => out.extend(b"\\r"),
            '\t' => out.extend(b"\\t"),
            '\u{8}' => out.extend(b"\\b"),
            '\u{c}' => out.extend(b"\\f"),
            // Writing to a vector does not fail.
            c if c < ' ' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}

fn odd(value: f64) -> &'static str {
    match value {
        f64::INFINITY => "\"Infinity\"",
        f64::NEG_INFINITY => "\"-Infinity\"",
        _ => "null",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped() {
        let mut out = Vec::new();
        quoted("a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}ü\u{1f600}/", &mut out);
        let want = "\"a\\\"b\\\\c\\n\\r\\t\\b\\f\\u0001\\u001f\u{7f}ü\u{1f600}/\"";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }
}
