//! A query's share of its session: taken by the first of its callers, given back by the last.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use sieva_types::Result;

use super::admission::Working;
use super::{Permit, Session};

/// Where the callers of a query come in. Clones are of one query.
#[derive(Clone)]
pub(crate) struct Turn {
    session: Session,
    memory: u64,
    cancel: Arc<AtomicBool>,
    /// Callers that run, and what they have together.
    state: Arc<Mutex<(usize, Option<Permit>)>>,
}

/// That a caller of a query runs.
pub(crate) struct Entered {
    turn: Turn,
    _working: Working,
}

impl Turn {
    pub(crate) fn new(session: &Session, memory: u64, cancel: &Arc<AtomicBool>) -> Self {
        Self { session: session.clone(), memory, cancel: Arc::clone(cancel), state: Arc::default() }
    }

    /// Waits for the share, unless another caller of the query has it already.
    ///
    /// # Errors
    /// `memory-limit` where there is never so much; `cancelled`.
    pub(crate) fn enter(&self) -> Result<Entered> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.1.is_none() {
            state.1 = Some(self.session.admit(self.memory, &self.cancel)?);
        }
        state.0 += 1;
        drop(state);
        Ok(Entered { turn: self.clone(), _working: Working::begin() })
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let mut state = self.turn.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 -= 1;
        if state.0 == 0 {
            state.1 = None;
        }
    }
}
