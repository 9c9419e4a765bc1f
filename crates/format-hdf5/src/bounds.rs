//! What opening a file may take: memory for the list of what is in it, and time until somebody has had enough.
//!
//! Names, attributes and arrays are as many as the file has bytes for them, and their paths repeat: groups within groups, or
//! many arrays below a long name, take far more here than there. So what is kept is counted while it grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sieva_format::schema::{Attr, AttrValue};
use sieva_types::{Error, ErrorKind, Result};

/// Bytes that an entry of a list takes beside its texts, with the places where it is looked up: about.
pub(crate) const ENTRY: usize = 256;
/// Bytes that a dataset takes beside its path and attributes, and that each of its arrays takes.
pub(crate) const DATASET: usize = 1024;
/// Less than this is never the limit.
const LEAST: u64 = 1 << 20;

/// The memory that listing may take and has taken, and whether to go on.
#[derive(Debug)]
pub(crate) struct Bounds {
    limit: u64,
    taken: AtomicU64,
    cancel: Arc<AtomicBool>,
}

impl Bounds {
    /// A limit in bytes, and a flag that ends the work.
    pub(crate) fn new(limit: u64, cancel: &Arc<AtomicBool>) -> Self {
        Self { limit: limit.max(LEAST), taken: AtomicU64::new(0), cancel: Arc::clone(cancel) }
    }

    /// Counts bytes that are kept.
    pub(crate) fn take(&self, bytes: usize) {
        self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes that are no longer kept.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Whether there is an end to it.
    pub(crate) fn is_over(&self) -> bool {
        self.cancel.load(Ordering::Relaxed) || self.taken.load(Ordering::Relaxed) > self.limit
    }

    /// Whether work may go on: asked at every object, since what fails at one is left out only.
    ///
    /// # Errors
    /// `cancelled`; `memory-limit`.
    pub(crate) fn check(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "opening was interrupted"));
        }
        if self.is_over() {
            let what =
                format!("the list of what is in the file takes more than the limit of {} bytes", self.limit);
            return Err(Error::new(ErrorKind::MemoryLimit, what)
                .hint("open it with more: memory= in Python, OpenOptions::memory in Rust"));
        }
        Ok(())
    }
}

/// Bytes that attributes take.
pub(crate) fn size_of_attrs(attrs: &[Attr]) -> usize {
    attrs.iter().map(|(name, value)| size_of_attr(name, value)).sum()
}

/// Bytes that an attribute takes.
pub(crate) fn size_of_attr(name: &str, value: &AttrValue) -> usize {
    let text = |text: &String| text.len() + size_of::<String>();
    let held = match value {
        AttrValue::Ints(_, items) => size_of_val(&items[..]),
        AttrValue::Floats(_, items) => size_of_val(&items[..]),
        AttrValue::Text(one) | AttrValue::Other(one) => text(one),
        AttrValue::Texts(all) => all.iter().map(text).sum(),
    };
    size_of::<Attr>() + name.len() + held
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_and_given_back_is_counted() {
        let cancel = Arc::default();
        let bounds = Bounds::new(2 << 20, &cancel);
        bounds.take(2 << 20);
        assert!(bounds.check().is_ok());
        bounds.take(1);
        assert_eq!(bounds.check().unwrap_err().kind(), ErrorKind::MemoryLimit);
        bounds.give_back(1);
        assert!(bounds.check().is_ok());
        cancel.store(true, Ordering::Relaxed);
        assert_eq!(bounds.check().unwrap_err().kind(), ErrorKind::Cancelled);
    }

    #[test]
    fn texts_are_the_most_of_an_attribute() {
        let texts = AttrValue::Texts(vec!["a".repeat(1000); 50]);
        assert!(size_of_attr("name", &texts) > 50_000);
        assert!(size_of_attrs(&[("a".into(), AttrValue::Text(String::new()))]) < 200);
    }
}
