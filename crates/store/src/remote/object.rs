//! A remote object that a reader of a format sees as one file.

use std::ops::Range;
use std::sync::Arc;

use sieva_types::{Error, Result};

use super::attempt::{Ask, Fetched};
use super::runtime;
use super::target::Target;
use super::transport::Transport;
use super::validator::Validator;
use crate::cache::Cache;
use crate::{Counters, RangedRead, Span};

/// A file behind HTTP.
#[derive(Debug)]
pub(crate) struct RemoteObject {
    target: Arc<Target>,
    len: u64,
}

impl RemoteObject {
    /// Opens an object by fetching its first block: the one request tells its length and version as well. There is no
    /// HEAD, which signed addresses and some servers refuse.
    pub(crate) fn open(transport: &Arc<Transport>, key: &str) -> Result<Self> {
        runtime::check_process()?;
        let counters = Arc::new(Counters::default());
        let first = first_block(transport, key, &counters)?;
        Cache::lock().set_limit(transport.options.cache_bytes);
        let len = first.version.len;
        Ok(Self { target: Arc::new(Target::opened(transport, key, counters, first)), len })
    }
}

fn first_block(transport: &Arc<Transport>, key: &str, counters: &Arc<Counters>) -> Result<Fetched> {
    let (transport, counters, key) = (Arc::clone(transport), Arc::clone(counters), key.to_owned());
    runtime::wait_for(async move {
        let span = Span::Range(0..transport.options.first_bytes.max(1));
        let ask = Ask { key: &key, query: &[], span, version: None, most: None };
        transport.fetch(&ask, &counters).await
    })
}

impl RangedRead for RemoteObject {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_exact_at(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let end = offset.checked_add(out.len() as u64).filter(|&end| end <= self.len);
        if end.is_none() {
            return Err(Error::corrupt(format!(
                "'{}' is cut off: {} bytes at offset {offset} asked for, the object has {}",
                self.target.name,
                out.len(),
                self.len
            )));
        }
        self.target.read(offset, out, true)
    }

    fn check_unchanged(&self) -> Result<()> {
        if self.target.is_fresh() {
            return Ok(());
        }
        let target = Arc::clone(&self.target);
        runtime::wait_for(async move {
            let span = Span::Range(0..1);
            let ask =
                Ask { key: &target.key, query: &[], span, version: target.version().cloned(), most: None };
            let answered = target.transport.fetch(&ask, &target.counters).await?;
            target.pin(&answered.version)
        })
    }

    fn version(&self) -> String {
        self.target.version().map(ToString::to_string).unwrap_or_default()
    }

    fn modified(&self) -> Option<u64> {
        self.target.version().and_then(Validator::modified_at)
    }

    fn will_need(&self, ranges: &[Range<u64>]) {
        // What cannot be fetched is told when it is read.
        let _ = self.target.will_need(ranges);
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        &self.target.name
    }

    fn counters(&self) -> &Counters {
        &self.target.counters
    }
}
