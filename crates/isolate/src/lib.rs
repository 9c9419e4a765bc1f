//! Foreign bytes parsed in a process of their own, under limits: a crash of a C library is an error, not an outage.
//!
//! [`IsolatedSource::open`] starts a worker process, which opens the file and hands back a manifest
//! ([`sieva_format::manifest`]): what it says is checked as if the file itself had written it. Data of ordinary arrays
//! are then read by this process, through the block reader; only what needs the format's own library is asked of the
//! worker again. A worker that crashes, hangs or eats memory is killed and becomes an error of kind `corrupt-file`;
//! the next request starts a new one.
//!
//! [`serve`] is the worker's side. `docs/understanding/hostile-files.md` says what this guards against, and what not.
//!
//! The crate knows no format: who starts the worker gives it the readers. So it lies above `format` and below the
//! engine, which opens sources with it.

mod channel;
mod end;
mod limits;
mod message;
mod opened;
mod process;
mod remote;
mod source;
mod worker;

pub use limits::WorkerLimits;
pub use message::OpenRequest;
pub use source::{IsolateOptions, IsolatedSource};
pub use worker::serve;
