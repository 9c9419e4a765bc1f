//! CSV: a header line, quoting as RFC 4180 says, lines that end in a line feed; missing values are empty.
//! Where there is one column only, a missing one is `""`: readers skip empty lines.
//!
//! Floats are the shortest text that reads back to the same value of their own width, times are ISO 8601, histograms
//! JSON.

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use sieva::Result;

use crate::cells::{Style, TEXT_BYTES, cells, odd};
use crate::spool::failed;
use crate::writer::{Making, Out, ResultWriter, RowSink};

/// The format.
pub(crate) struct Csv;

impl ResultWriter for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &["csv"]
    }

    fn making(&self) -> Making {
        Making::Rows(begin)
    }
}

struct Lines<'a> {
    out: Out<'a>,
    style: Style,
    text: Vec<u8>,
}

fn begin<'a>(schema: &Schema, out: Out<'a>) -> Result<Box<dyn RowSink + 'a>> {
    let missing = if schema.fields().len() == 1 { "\"\"" } else { "" };
    let style = Style { missing, text: quoted, histogram: quoted, odd, quote: "" };
    let mut text = Vec::new();
    for (i, field) in schema.fields().iter().enumerate() {
        if i > 0 {
            text.push(b',');
        }
        quoted(field.name(), &mut text);
    }
    text.push(b'\n');
    Ok(Box::new(Lines { out, style, text }))
}

impl Lines<'_> {
    fn hand_on(&mut self) -> Result<()> {
        self.out.to.write_all(&self.text).map_err(|e| failed(&e))?;
        self.text.clear();
        Ok(())
    }
}

impl RowSink for Lines<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = batch.columns().iter().map(|c| cells(c, self.style)).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            for (i, put) in columns.iter().enumerate() {
                if i > 0 {
                    self.text.push(b',');
                }
                put(row, &mut self.text);
            }
            self.text.push(b'\n');
            if self.text.len() >= TEXT_BYTES {
                self.hand_on()?;
            }
        }
        self.hand_on()
    }

    fn finish(mut self: Box<Self>, _stats: Option<&str>) -> Result<()> {
        // The header line, where there was no batch.
        self.hand_on()?;
        self.out.to.flush().map_err(|e| failed(&e))
    }
}

/// A text, in double quotes where it needs them; an empty one does, or it would be missing.
fn quoted(text: &str, out: &mut Vec<u8>) {
    if !text.is_empty() && !text.contains(['"', ',', '\r', '\n']) {
        return out.extend(text.as_bytes());
    }
    out.push(b'"');
    out.extend(text.replace('"', "\"\"").as_bytes());
    out.push(b'"');
}
