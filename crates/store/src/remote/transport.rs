//! One server: its connections, the limit of requests at once, and the loop that repeats failed requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderValue;
use reqwest::Client;
use reqwest::redirect::Policy;
use sieva_types::{Error, ErrorKind, Result};
use tokio::sync::Semaphore;

use super::RemoteOptions;
use super::address::PublicOnly;
use super::attempt::{Ask, Attempt, Fetched};
use super::coalesce::{LONGEST, SEGMENT};
use super::failure::{Failure, Outcome, gave_up};
use super::landing::Landing;
use super::retry;
use super::service::Service;
use crate::guard::{Gate, Purpose};
use crate::{Counters, Span};

/// A request that may be made several times.
pub(crate) trait Tried: Send {
    /// What comes of it.
    type Brought: Send;

    /// Makes it once.
    fn run(&mut self) -> impl Future<Output = Outcome<Self::Brought>> + Send;

    /// Bytes that came in all runs so far, and need not come again.
    fn brought(&self) -> u64 {
        0
    }

    /// The token that the last run was sent with.
    fn token(&self) -> Option<&HeaderValue>;

    /// What cannot be done, where it fails: "cannot read 'address'".
    fn what(&self) -> String;
}

/// A server and how it is talked to.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) service: Box<dyn Service>,
    pub(crate) options: RemoteOptions,
    /// Who is asked before a request is sent, and what for.
    pub(crate) gate: Gate,
    purpose: Purpose,
    client: Client,
    permits: Arc<Semaphore>,
}

impl Transport {
    pub(crate) fn new(
        service: Box<dyn Service>,
        options: &RemoteOptions,
        gate: &Gate,
        purpose: Purpose,
    ) -> Result<Arc<Self>> {
        let client = client(options, Some(options.read_timeout))?;
        let permits = permits(service.authority(), options.parallel.clamp(1, 1024));
        Ok(Arc::new(Self { service, options: options.clone(), gate: gate.clone(), purpose, client, permits }))
    }

    /// Whether the object at `key`, or those whose keys begin with it, may be asked for.
    pub(crate) fn check(&self, key: &str) -> Result<()> {
        if self.gate.is_open() {
            return Ok(());
        }
        self.gate.check_parsed(&self.service.place(key)?, self.purpose)
    }

    /// The longest body that is read without having been asked for by its length.
    pub(crate) fn longest_body(&self) -> u64 {
        self.options.cache_bytes
    }

    /// Does a request until it succeeds, will not, or the time is up.
    pub(crate) async fn fetch(&self, ask: &Ask<'_>, counters: &Counters) -> Result<Fetched> {
        self.fetch_into(ask, counters, None).await
    }

    /// The same; segments of a range go to `landing` as they come, and are not in what is returned.
    pub(crate) async fn fetch_into(
        &self,
        ask: &Ask<'_>,
        counters: &Counters,
        landing: Option<&mut Landing>,
    ) -> Result<Fetched> {
        // A page of a listing was asked for by its prefix.
        if ask.query.is_empty() {
            self.check(ask.key)?;
        }
        let name = self.service.name(ask.key);
        let len = match &ask.span {
            Span::Range(range) => range.end.saturating_sub(range.start),
            Span::All | Span::Last(_) => 0,
        };
        self.repeat(&mut Attempt::new(self, &self.client, ask, &name, counters, landing), len, counters).await
    }

    /// Makes a request of `len` bytes, either way, until it succeeds, will not, or the time is up; when it is its turn.
    pub(crate) async fn repeat<T: Tried>(
        &self,
        attempt: &mut T,
        len: u64,
        counters: &Counters,
    ) -> Result<T::Brought> {
        let closed = |_| Error::new(ErrorKind::Internal, "the network was closed");
        let _permit = self.permits.acquire().await.map_err(closed)?;
        let started = Instant::now();
        let deadline = self.deadline(len);
        let (mut attempts, mut is_renewed) = (0, false);
        loop {
            attempts += 1;
            let before = attempt.brought();
            let left = deadline.saturating_sub(started.elapsed());
            let (cause, after) = match tokio::time::timeout(left, attempt.run()).await {
                Ok(Ok(brought)) => return Ok(brought),
                Ok(Err(Failure::Final(e))) => return Err(e),
                Ok(Err(Failure::Unauthorized(e))) => {
                    if is_renewed || !self.service.renew(attempt.token()).await {
                        return Err(e);
                    }
                    is_renewed = true;
                    counters.add_retry();
                    continue;
                }
                Ok(Err(Failure::Again { cause, after })) => (cause, after),
                Err(_) => (format!("no answer within {deadline:?}"), None),
            };
            if attempt.brought() >= before + SEGMENT {
                // A line that breaks from time to time, not one that is down.
                attempts = 1;
            }
            let wait = retry::wait(attempts, after);
            let elapsed = started.elapsed();
            if attempts > self.options.retries || elapsed + wait >= deadline {
                return Err(gave_up(&attempt.what(), attempts, &cause, elapsed.as_secs_f64()));
            }
            counters.add_retry();
            tokio::time::sleep(wait).await;
        }
    }

    /// The connections for what is sent: there, waiting for an answer is limited by who sends, who knows whether the body moves.
    pub(crate) fn sender(&self) -> Result<Client> {
        client(&self.options, None)
    }

    /// The connections for what is read.
    pub(crate) fn reader(&self) -> &Client {
        &self.client
    }

    /// The time for a request: that of the options for each [`LONGEST`] bytes that it brings, the rate that they stand for.
    fn deadline(&self, len: u64) -> Duration {
        let times = u32::try_from(len.div_ceil(LONGEST).max(1)).unwrap_or(u32::MAX);
        self.options.deadline.saturating_mul(times)
    }
}

/// The connections of the process, by what distinguishes them.
fn client(options: &RemoteOptions, read_timeout: Option<Duration>) -> Result<Client> {
    type Key = (Duration, Option<Duration>, bool);
    static CLIENTS: Mutex<BTreeMap<Key, Client>> = Mutex::new(BTreeMap::new());
    let key = (options.connect_timeout, read_timeout, options.public_only);
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(client) = clients.get(&key) {
        return Ok(client.clone());
    }
    // An error says that another has been installed, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Redirects are followed by hand, where each is looked at; the address never goes to another host.
    let mut builder = Client::builder()
        .connect_timeout(options.connect_timeout)
        .redirect(Policy::none())
        .referer(false)
        .user_agent(concat!("sieva/", env!("CARGO_PKG_VERSION")));
    if let Some(timeout) = read_timeout {
        builder = builder.read_timeout(timeout);
    }
    if options.public_only {
        // A proxy would look the names up itself.
        builder = builder.dns_resolver(Arc::new(PublicOnly)).no_proxy();
    }
    let client = builder
        .build()
        .map_err(|e| Error::new(ErrorKind::Io, format!("cannot set up HTTP: {}", e.without_url())))?;
    clients.insert(key, client.clone());
    Ok(client)
}

/// The right to send requests to a server, shared by all who talk to it.
fn permits(authority: String, parallel: usize) -> Arc<Semaphore> {
    static SERVERS: Mutex<BTreeMap<(String, usize), Arc<Semaphore>>> = Mutex::new(BTreeMap::new());
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let server = servers.entry((authority, parallel)).or_insert_with(|| Arc::new(Semaphore::new(parallel)));
    Arc::clone(server)
}
