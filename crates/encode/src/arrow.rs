//! Arrow IPC: the file format, which can be mapped; to a pipe the stream format.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::Schema;
use sieva::Result;

use crate::writer::{Making, Out, ResultWriter, RowSink, of_arrow};

/// The format.
pub(crate) struct Arrow;

impl ResultWriter for Arrow {
    fn name(&self) -> &'static str {
        "arrow"
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &["arrow", "feather"]
    }

    fn making(&self) -> Making {
        Making::Rows(begin)
    }
}

type To<'a> = Box<dyn Write + Send + 'a>;

fn begin<'a>(schema: &Schema, out: Out<'a>) -> Result<Box<dyn RowSink + 'a>> {
    Ok(match out.is_pipe {
        true => Box::new(Stream(StreamWriter::try_new(out.to, schema).map_err(of_arrow)?)),
        false => Box::new(File(FileWriter::try_new(out.to, schema).map_err(of_arrow)?)),
    })
}

struct File<'a>(FileWriter<To<'a>>);

impl RowSink for File<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(of_arrow)
    }

    fn finish(mut self: Box<Self>, _stats: Option<&str>) -> Result<()> {
        self.0.finish().and_then(|()| self.0.flush()).map_err(of_arrow)
    }
}

struct Stream<'a>(StreamWriter<To<'a>>);

impl RowSink for Stream<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch).map_err(of_arrow)
    }

    fn finish(mut self: Box<Self>, _stats: Option<&str>) -> Result<()> {
        self.0.finish().and_then(|()| self.0.flush()).map_err(of_arrow)
    }
}
