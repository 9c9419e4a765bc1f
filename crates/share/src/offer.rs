//! Steps that a program has in memory: what is asked of them is made from there while it waits, and no file is on the way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use sieva::{Error, ErrorKind, Learn, MemoryArrays, OpenOptions, Result, Source, printable};
use sieva_store::name_of;

use crate::clock::millis;
use crate::group::Group;
use crate::names;
use crate::pass::Pass;
use crate::produce::{Produced, Producer, ProducerOptions};
use crate::record::{self, Step};
use crate::scan;
use crate::steps::{Found, Place};

/// Characters of the name of a step.
const MOST_NAME: usize = 200;

impl Producer {
    /// Says that a producer offers its steps from memory. What was said of it before is replaced; results stay.
    ///
    /// # Errors
    /// `invalid-value` for what is no name, and while another process of this machine is the producer; those of the store.
    pub fn register_memory(group: &Group, name: &str) -> Result<Self> {
        Self::registered(group, name, Vec::new())
    }

    /// Makes and puts all that is asked for, of a step in memory. It is asked for once: nothing of it is left to a later pass, and
    /// what cannot be made of it now is answered by an error. The memory is not read any more when this returns.
    ///
    /// A step of the name of an earlier one takes its place.
    ///
    /// # Errors
    /// `invalid-value` for what is no name, arrays that are not whole, and while another process of this machine is the
    /// producer; those of the store, after which it may be offered again; `cancelled`.
    pub fn offer(&self, step: &str, arrays: &MemoryArrays, options: &ProducerOptions) -> Result<Produced> {
        if step.is_empty() || step.chars().count() > MOST_NAME || step.contains(['/', '\0', '\n']) {
            let message = format!("'{}' is no name of a step", printable(step));
            return Err(Error::new(ErrorKind::InvalidValue, message)
                .hint(format!("take up to {MOST_NAME} characters without slashes, as of a file")));
        }
        let _alone = self.alone()?;
        let size = arrays.bytes();
        let id = id(step);
        let (reader, _loan) = arrays.clone().source(step, &id)?;
        let reach = scan::reaching(&[], &self.session, &options.cancel);
        // What scans learn of it is of no use to later steps.
        let reach = OpenOptions { learn: Learn { share: 0.0, from: 0 }, ..reach };
        let found = Found {
            place: Place::Memory(Source::from_reader(Arc::new(reader), step, &reach)),
            step: Step { name: step.to_owned(), id, size },
            settled: true,
            modified: SystemTime::now(),
        };
        // Nobody waits for a next pass, so that nobody takes the time of others away by not doing so.
        self.run(Pass::begin(self, options, Some(found))?, None, &options.progress)
    }

    /// Says that no step comes any more, until the producer is registered again.
    ///
    /// # Errors
    /// As [`Producer::register_memory`].
    pub fn end(&self) -> Result<()> {
        let _alone = self.alone()?;
        let Some(mut record) = self.group.producer(&self.name)? else { return Ok(()) };
        record.over = true;
        record::write(&*self.group.objects, &names::producer(&self.name), &record)
    }
}

impl Group {
    /// Whether a producer, or each that there is, has said that no step comes any more. Without any, more is to come.
    ///
    /// # Errors
    /// Those of the store.
    pub fn is_over(&self, producer: Option<&str>) -> Result<bool> {
        let names = match producer {
            Some(name) => {
                names::check("a producer", name)?;
                vec![name.to_owned()]
            }
            None => self.producers()?,
        };
        for name in &names {
            if !self.producer(name)?.is_some_and(|record| record.over) {
                return Ok(false);
            }
        }
        Ok(!names.is_empty())
    }
}

/// Another one for each step that is offered, though it has the name of another.
fn id(step: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    name_of(format!("{step}\0{}\0{}\0{count}", millis(), std::process::id()).as_bytes())
}
