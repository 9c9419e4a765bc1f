//! The limits of remote storage.

use std::path::PathBuf;
use std::time::Duration;

/// How remote objects are fetched and what of them is kept.
///
/// ```
/// let patient = sieva_store::RemoteOptions { retries: 12, ..Default::default() };
/// assert!(patient.deadline > patient.read_timeout);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Bytes of an object's beginning that opening it fetches.
    pub first_bytes: u64,
    /// Time to establish a connection, TLS included.
    pub connect_timeout: Duration,
    /// Time without a single byte after which a request counts as lost.
    pub read_timeout: Duration,
    /// How often a request is repeated after a failure that may pass.
    pub retries: u32,
    /// Time from the first attempt of a request to giving it up; so much for each 8 MiB of longer ones.
    pub deadline: Duration,
    /// Time for which an object that answered counts as unchanged, before it is asked again.
    pub fresh: Duration,
    /// Requests under way at once to one server.
    pub parallel: usize,
    /// Bytes kept in memory, all objects of the process together. The object opened last decides.
    pub cache_bytes: u64,
    /// Directory in which fetched bytes are kept on disk; none: nowhere.
    pub cache_dir: Option<PathBuf>,
    /// Bytes kept in `cache_dir`.
    pub disk_bytes: u64,
    /// Whether hosts are refused that are no public ones: private, loopback and link-local addresses, whatever name leads
    /// there. For servers, which are inside of networks that those who ask are not in.
    pub public_only: bool,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            first_bytes: 64 << 10,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            retries: 6,
            deadline: Duration::from_secs(120),
            fresh: Duration::from_secs(1),
            parallel: 16,
            cache_bytes: 256 << 20,
            cache_dir: None,
            disk_bytes: 8 << 30,
            public_only: false,
        }
    }
}
