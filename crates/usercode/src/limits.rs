//! What code may take.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What a run of code may take, whatever the code says.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of its memory, what it is given and what it puts out included.
    pub memory: u64,
    /// Time of the processor in the code; reading its data does not count.
    pub time: Duration,
    /// The same by the clock on the wall, which goes on while others have the processor.
    pub elapsed: Duration,
    /// Bytes that come out.
    pub output: u64,
    /// Ends a run from outside.
    pub cancel: Arc<AtomicBool>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            time: Duration::from_secs(10),
            elapsed: Duration::MAX,
            output: 256 << 20,
            cancel: Arc::default(),
        }
    }
}
