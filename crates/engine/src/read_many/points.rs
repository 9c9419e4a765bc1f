//! What cannot be read with others: texts of any length, and positions of arrays that the file does not keep in their order.

use std::sync::Arc;

use sieva_format::read::{BlockReader, Workspace};
use sieva_query::ast::Expr;
use sieva_query::exec::{Column, Data};
use sieva_types::{Error, ErrorKind, Result, Selection};

use super::{Part, Request};
use crate::open::Source;
use crate::query::QueryOptions;

/// Positions that are fetched at once.
const PIECE: usize = 1 << 20;

impl Source {
    /// Reads a request by itself.
    pub(super) fn read_by_itself(
        &self,
        request: &Request,
        reader: &BlockReader,
        memory: u64,
    ) -> Result<Column> {
        match &request.part {
            Part::Box(bx) => {
                let mut workspace = Workspace::cancelled_by(&request.cancel);
                let texts = reader.read_texts(bx, &mut workspace)?;
                Ok(Column { data: Data::Str(texts), valid: None })
            }
            Part::Positions(selection) => self.read_positions(request, selection, memory),
        }
    }

    /// Values at positions, as a query fetches them.
    fn read_positions(&self, request: &Request, selection: &Selection, memory: u64) -> Result<Column> {
        let path = &self.schema().arrays[request.array].path;
        if request.raw {
            let message = format!("stored values of '{path}' at positions of a selection");
            return Err(Error::new(ErrorKind::Unsupported, message).hint("read boxes, or decoded values"));
        }
        let value = Expr::name(path.as_str());
        let options = QueryOptions { memory: Some(memory), ..QueryOptions::default() };
        let query = self.query_tree(None, Some(vec![value.clone()]), &options)?;
        let mut points = query.points(&value, &options, Arc::clone(&request.cancel))?;
        let mut positions = selection.iter();
        let mut whole: Option<Column> = None;
        loop {
            let piece: Vec<u64> = positions.by_ref().take(PIECE).collect();
            if piece.is_empty() && whole.is_some() {
                break;
            }
            let read = points.read(&piece)?;
            match &mut whole {
                Some(whole) => whole.append(read)?,
                None => whole = Some(read),
            }
        }
        whole.ok_or_else(|| Error::new(ErrorKind::Internal, "nothing was fetched"))
    }
}
