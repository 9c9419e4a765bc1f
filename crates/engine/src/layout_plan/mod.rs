//! Which servers and stripes a query touches, and how many requests reading them takes, as they come and put together.
//!
//! The boxes are those that the plan leaves after pruning ([`Execution::touched`]); what reading them asks of the file comes from
//! the block reader, which reads the same ranges; where those lie, from the file's [`Striping`]. No value is read.

mod gather;
mod merge;
mod text;

use std::ops::Range;

use sieva_store::Striping;
use sieva_types::{Result, printable_lines};

use crate::query::Query;
use gather::Gathered;
use merge::Limits;

/// The most bytes of a request of neighbours put together: what a disk or a server gives at its full speed.
pub(crate) const REQUEST_BYTES: u64 = 8 << 20;

/// Bytes between two ranges that are read along rather than asked for apart: as many as a local request's time is worth.
pub(crate) const GAP: u64 = 64 << 10;

/// Bytes, and the requests for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that are read.
    pub bytes: u64,
    /// Requests, none over the border of a stripe.
    pub requests: u64,
}

impl Traffic {
    fn add(&mut self, other: Self) {
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.requests = self.requests.saturating_add(other.requests);
    }
}

/// What a query reads of a stripe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripeTouched {
    /// The server that has it.
    pub server: u32,
    /// Its number.
    pub stripe: u64,
    /// What reading box by box takes: what two boxes or a condition and the result have in common counts twice.
    pub before: Traffic,
    /// The requests after overlaps were removed and neighbours were put together, in the order of the file.
    pub requests: Vec<Range<u64>>,
}

impl StripeTouched {
    /// What is left of it after overlaps were removed and neighbours were put together.
    pub fn after(&self) -> Traffic {
        let bytes = self.requests.iter().map(|r| r.end - r.start).sum();
        Traffic { bytes, requests: self.requests.len() as u64 }
    }
}

/// What a query reads of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTouched<'a> {
    /// Its number.
    pub server: u32,
    /// Its stripes that are touched, in the order of the file.
    pub stripes: &'a [StripeTouched],
    /// The sum of what reading box by box takes of them.
    pub before: Traffic,
    /// The sum of what is left after overlaps were removed and neighbours were put together.
    pub after: Traffic,
}

/// What a query reads of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTouched {
    /// The file, as messages name it.
    pub name: String,
    /// Its length in bytes.
    pub length: u64,
    /// Where its bytes lie.
    pub striping: Striping,
    /// The stripes that are touched, by server, then in the order of the file.
    pub stripes: Vec<StripeTouched>,
}

impl FileTouched {
    /// The servers that are touched, in ascending order.
    pub fn servers(&self) -> Vec<ServerTouched<'_>> {
        let each = self.stripes.chunk_by(|a, b| a.server == b.server).map(|stripes| {
            let (mut before, mut after) = (Traffic::default(), Traffic::default());
            for stripe in stripes {
                before.add(stripe.before);
                after.add(stripe.after());
            }
            ServerTouched { server: stripes[0].server, stripes, before, after }
        });
        each.collect()
    }
}

/// Which servers and stripes a query touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayoutPlan {
    /// The files, in the order in which they are first read.
    pub files: Vec<FileTouched>,
    /// Chunks that are objects of their own, which storage deals out as it likes.
    pub objects: u64,
    /// What is not in it, and why.
    pub notes: Vec<String>,
}

impl Query {
    /// Which servers and stripes the query touches, and how many requests that takes, before anything is run and without
    /// reading a value. Subqueries are not in it, nor what augmentations are read for.
    ///
    /// # Errors
    /// `cancelled`; `memory-limit` where stripes are so many that listing them takes more than the query may; those of
    /// opening the files of a source of many, whose metadata are read.
    pub fn layout_plan(&self) -> Result<LayoutPlan> {
        let touched = self.known().touched()?;
        let cancel = self.cancel_flag();
        let limits = Limits { memory: self.memory(), cancel: &cancel };
        let mut gathered = Gathered::default();
        for each in &touched {
            gathered.add(self.source(), each, &limits)?;
        }
        let mut plan = gathered.merged(self.source(), &limits)?;
        if self.has_open_subqueries() {
            plan.notes
                .push("subqueries were not answered yet: what they read, and spare, is not in it".into());
        }
        Ok(plan)
    }

    /// [`Query::layout_plan`] as text.
    ///
    /// # Errors
    /// The same.
    pub fn explain_layout(&self) -> Result<String> {
        Ok(printable_lines(&text::lines(&self.layout_plan()?)).into_owned())
    }

    /// [`Query::layout_plan`] as JSON text.
    ///
    /// # Errors
    /// The same.
    pub fn explain_layout_json(&self) -> Result<String> {
        Ok(text::json(&self.layout_plan()?).to_string())
    }
}
