//! What the metadata of one source may take in memory.

use sieva_types::{Error, ErrorKind, Result};

/// The limit where nobody gave one.
const DEFAULT: u64 = 1 << 30;

/// Memory that metadata may take, and what they hold of it.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    held: u64,
}

impl Budget {
    /// Nothing held of `limit` bytes; `None`: of 1 GiB.
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self { limit: limit.unwrap_or(DEFAULT), held: 0 }
    }

    /// Counts what stays.
    ///
    /// # Errors
    /// `memory-limit` where it does not fit.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<()> {
        self.check(bytes as u64)?;
        self.held += bytes as u64;
        Ok(())
    }

    /// Refuses what does not fit beside what is held.
    ///
    /// # Errors
    /// `memory-limit`.
    pub(crate) fn check(&self, bytes: u64) -> Result<()> {
        if self.held.saturating_add(bytes) <= self.limit {
            return Ok(());
        }
        let message =
            format!("the metadata of groups and arrays take more than {} bytes of memory", self.limit);
        Err(Error::new(ErrorKind::MemoryLimit, message).hint(
            "open the source with more memory (memory= in Python), or one of its groups or arrays alone",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_before_it_is_held() {
        let mut budget = Budget::new(Some(100));
        budget.hold(60).unwrap();
        budget.check(40).unwrap();
        assert_eq!(budget.hold(41).unwrap_err().kind(), ErrorKind::MemoryLimit);
        budget.hold(40).unwrap();
        assert!(budget.check(u64::MAX).is_err() && budget.check(0).is_ok());
    }
}
