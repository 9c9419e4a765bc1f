//! The threads that carry the network's work, shared by the process, and the guard against forks.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{OnceLock, mpsc};

use sieva_types::{Error, ErrorKind, Result};
use tokio::runtime::{Builder, Runtime};

/// Few: they wait for sockets and copy bodies, which two threads do faster than a network delivers.
const THREADS: usize = 2;

static RUNTIME: OnceLock<std::result::Result<Runtime, String>> = OnceLock::new();
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Refuses to go on in a child made by `fork` after the parent used remote storage: threads are not inherited, so every
/// wait for them would be for ever.
pub(crate) fn check_process() -> Result<()> {
    let here = std::process::id();
    let owner = OWNER.compare_exchange(0, here, SeqCst, SeqCst).unwrap_or_else(|owner| owner);
    if owner == 0 || owner == here {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unsupported,
        format!("process {here} was forked from {owner}, which had used remote storage; its network threads are not here"),
    )
    .hint("start workers by 'spawn' or 'forkserver', or open remote sources first in the workers"))
}

fn runtime() -> Result<&'static Runtime> {
    check_process()?;
    let made = RUNTIME.get_or_init(|| {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).thread_name("sieva-net").enable_all();
        builder.build().map_err(|e| e.to_string())
    });
    made.as_ref().map_err(|e| Error::new(ErrorKind::Io, format!("cannot start network threads: {e}")))
}

/// Starts `work` without waiting for it.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) -> Result<()> {
    runtime()?.spawn(work);
    Ok(())
}

/// Does `work` on the network threads and waits for it. The waiting is the caller's thread's, so that it is no matter
/// whether that belongs to another runtime.
pub(crate) fn wait_for<T: Send + 'static>(
    work: impl Future<Output = Result<T>> + Send + 'static,
) -> Result<T> {
    let (send, receive) = mpsc::channel();
    spawn(async move {
        // Nobody waits any more: nothing to tell.
        let _ = send.send(work.await);
    })?;
    receive.recv().unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "a network task was lost")))
}
