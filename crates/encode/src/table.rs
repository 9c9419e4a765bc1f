//! A table for reading: aligned columns, numbers to the right, `-` for missing values. Widths are those of the first
//! rows.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use sieva::{Result, printable};

use crate::cells::{Cell, Style, TEXT_BYTES, cells, odd, plain, text_of};
use crate::spool::failed;
use crate::writer::{Making, Out, ResultWriter, RowSink};

/// Rows of the first batch that widths come from.
const WIDTH_ROWS: usize = 4096;

const STYLE: Style = Style {
    missing: "-",
    text: |text, out| plain(&printable(text), out),
    histogram: plain,
    odd: |value| if value.is_nan() { "-" } else { odd(value) },
    quote: "",
};

/// The format.
pub(crate) struct Table;

impl ResultWriter for Table {
    fn name(&self) -> &'static str {
        "table"
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &["txt"]
    }

    fn making(&self) -> Making {
        Making::Rows(begin)
    }
}

struct Column {
    name: String,
    /// Characters of its widest cell.
    width: usize,
    is_left: bool,
}

struct Aligned<'a> {
    out: Out<'a>,
    columns: Vec<Column>,
    has_head: bool,
    text: String,
}

fn begin<'a>(schema: &Schema, out: Out<'a>) -> Result<Box<dyn RowSink + 'a>> {
    let column = |field: &std::sync::Arc<arrow_schema::Field>| {
        let name = printable(field.name()).into_owned();
        let width = name.chars().count();
        let is_left = matches!(
            field.data_type(),
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Timestamp(..)
                | DataType::Boolean
                | DataType::Struct(_)
        );
        Column { name, width, is_left }
    };
    let columns = schema.fields().iter().map(column).collect();
    Ok(Box::new(Aligned { out, columns, has_head: false, text: String::new() }))
}

impl Aligned<'_> {
    /// Takes the widths from the first rows, and writes the names and a rule.
    fn head(&mut self, rows: usize, cells: &[Cell<'_>]) {
        for (column, put) in self.columns.iter_mut().zip(cells) {
            let widest = (0..rows.min(WIDTH_ROWS)).map(|row| text_of(put, row).chars().count()).max();
            column.width = column.width.max(widest.unwrap_or(0));
        }
        let names: Vec<String> = self.columns.iter().map(|c| c.name.clone()).collect();
        self.line(names);
        let rules = self.columns.iter().map(|c| "-".repeat(c.width)).collect();
        self.line(rules);
        self.has_head = true;
    }

    fn line(&mut self, texts: Vec<String>) {
        let start = self.text.len();
        for (i, (column, text)) in self.columns.iter().zip(texts).enumerate() {
            if i > 0 {
                self.text.push_str("  ");
            }
            let room = " ".repeat(column.width.saturating_sub(text.chars().count()));
            let (before, behind) = if column.is_left { ("", &*room) } else { (&*room, "") };
            self.text.extend([before, &text, behind]);
        }
        let length = self.text[start..].trim_end().len();
        self.text.truncate(start + length);
        self.text.push('\n');
    }

    fn hand_on(&mut self) -> Result<()> {
        self.out.to.write_all(self.text.as_bytes()).map_err(|e| failed(&e))?;
        self.text.clear();
        Ok(())
    }
}

impl RowSink for Aligned<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = batch.columns().iter().map(|c| cells(c, STYLE)).collect::<Result<Vec<_>>>()?;
        if !self.has_head {
            self.head(batch.num_rows(), &columns);
        }
        for row in 0..batch.num_rows() {
            let texts = columns.iter().map(|put| text_of(put, row)).collect();
            self.line(texts);
            if self.text.len() >= TEXT_BYTES {
                self.hand_on()?;
            }
        }
        self.hand_on()
    }

    fn finish(mut self: Box<Self>, _stats: Option<&str>) -> Result<()> {
        if !self.has_head {
            self.head(0, &[]);
        }
        self.hand_on()?;
        self.out.to.flush().map_err(|e| failed(&e))
    }
}
