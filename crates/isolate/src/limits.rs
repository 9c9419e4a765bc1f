//! What a worker may take.

use std::io;
use std::time::Duration;

use sieva_types::{Error, Result};

/// The limits of one worker process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Bytes of address space, all that the process maps included.
    pub memory: u64,
    /// Seconds of processor time that one request may take.
    pub cpu_seconds: u64,
    /// Time from a request to its answer, starting the process included.
    pub wall: Duration,
    /// Bytes of the longest answer; also about what decoding a manifest may take here.
    pub answer: usize,
}

impl Default for WorkerLimits {
    fn default() -> Self {
        Self { memory: 2 << 30, cpu_seconds: 30, wall: Duration::from_secs(30), answer: 256 << 20 }
    }
}

/// Gives up, for ever, what a parser does not need: memory beyond the limit, core dumps, writing files, privileges
/// by way of set-user-id programs, being looked into, and every open file but the standard ones.
pub(crate) fn confine(limits: &WorkerLimits) -> Result<()> {
    // Before the limits, so that what the host left open is not open under them.
    // SAFETY: closes descriptors that nothing of ours in this process uses; the call touches no memory.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) };
    if closed != 0 {
        close_one_by_one();
    }
    // What is printed while nobody reads is lost, rather than waited for.
    // SAFETY: sets a flag of a standard descriptor, whatever that is.
    unsafe { libc::fcntl(2, libc::F_SETFL, libc::fcntl(2, libc::F_GETFL) | libc::O_NONBLOCK) };
    limit(libc::RLIMIT_CORE, 0)?;
    limit(libc::RLIMIT_FSIZE, 0)?;
    limit(libc::RLIMIT_AS, limits.memory)?;
    // SAFETY: both take integers and change attributes of this process only.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
    };
    if done { Ok(()) } else { Err(Error::io("cannot give up privileges", &io::Error::last_os_error())) }
}

/// For kernels before 5.9, which have no close_range.
fn close_one_by_one() {
    for fd in 3..1024 {
        // SAFETY: as in `confine`; closing what is not open fails and does nothing.
        unsafe { libc::close(fd) };
    }
}

/// Grants `seconds` more of processor time than this process has used.
pub(crate) fn grant_cpu(seconds: u64) -> Result<()> {
    // SAFETY: an all-zero rusage is a valid one, and the call fills it in.
    let used = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
    };
    // The soft limit only: SIGXCPU ends the process, and a later request may raise it again. One more, since the
    // seconds that were used are rounded down.
    let most = (used as u64).saturating_add(seconds).saturating_add(1);
    set(libc::RLIMIT_CPU, most, libc::RLIM_INFINITY)
}

fn limit(which: libc::__rlimit_resource_t, most: u64) -> Result<()> {
    set(which, most, most)
}

fn set(which: libc::__rlimit_resource_t, soft: u64, hard: u64) -> Result<()> {
    let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the call fills in the structure that it is given.
    unsafe { libc::getrlimit(which, &mut now) };
    // A limit that is lower already stays.
    let wanted = libc::rlimit { rlim_cur: soft.min(now.rlim_max), rlim_max: hard.min(now.rlim_max) };
    // SAFETY: the call reads the structure that it is given.
    if unsafe { libc::setrlimit(which, &wanted) } == 0 {
        return Ok(());
    }
    Err(Error::io("cannot set a limit of the process", &io::Error::last_os_error()))
}
