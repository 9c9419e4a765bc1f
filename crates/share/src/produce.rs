//! The producer's side: a pass over the steps that it has, for all who ask.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use sieva::{Error, ErrorKind, Result, Session};
use sieva_reduce::merge::cost::Prices;

use crate::clock::millis;
use crate::collect::sweep;
use crate::group::Group;
use crate::lock::{self, Lock};
use crate::names;
use crate::pack::{Model, Packing};
use crate::pass::{Pass, Wanted};
use crate::progress::OnProgress;
use crate::record::{self, ProducerRecord, VERSION};
use crate::scan::{self, PlannedStep, Scan};
use crate::steps::{self, Found};
use crate::turns::Turns;
use crate::watch::Limits;
use crate::zones;

/// What Amazon S3 took for each gigabyte: storage, transfer into it, out of it (Scibox, section V.A).
const STORAGE: f64 = 0.095;
const INTO: f64 = 0.0;
const OUT: f64 = 0.012;

/// How a pass is made.
#[derive(Clone, Debug)]
pub struct ProducerOptions {
    /// How long a file has to be left alone until it counts as complete.
    pub settle: Duration,
    /// Bytes that evaluating may take; `None`: as a query of the session.
    pub memory: Option<u64>,
    /// Bytes of these that one ask may take; `None`: all.
    pub ask_memory: Option<u64>,
    /// How long one ask of a step may take, where it is evaluated by itself; `None`: as long as it takes. What takes longer
    /// is answered by an error, and so is what goes beyond the other limits of an ask.
    pub ask_time: Option<Duration>,
    /// Bytes of a result; `None`: any.
    pub result_size: Option<u64>,
    /// In which objects results are put.
    pub packing: Packing,
    /// What the store takes, for the size of objects; `None`: as Amazon S3 in the paper.
    pub prices: Option<Prices>,
    /// Bytes of an object, where several results share one; `None`: what the store moves best, by [`crate::calibrate()`].
    pub object_size: Option<u64>,
    /// Bytes from which on a result that has an object of its own carries zone maps, if it is a netCDF or HDF5 file; `None`: none
    /// does.
    pub zone_maps_from: Option<u64>,
    /// Threads; `None`: one for each core.
    pub threads: Option<usize>,
    /// The command of a worker process for BP files, as [`sieva::OpenOptions::isolated`]: a damaged one stops this process
    /// otherwise, and the answers of all. Empty: none.
    pub bp_worker: Vec<OsString>,
    /// Where results are kept until they are put.
    pub spool: PathBuf,
    /// Who is told of the answers that are there, of all that the pass has to give.
    pub progress: OnProgress,
    /// Stops the pass when it is set.
    pub cancel: Arc<AtomicBool>,
}

impl ProducerOptions {
    pub(crate) fn limits(&self) -> Result<Limits> {
        if self.ask_time.is_some_and(|time| time.is_zero()) {
            return Err(Error::new(
                ErrorKind::InvalidValue,
                "an ask may take 0 s: nothing would be answered",
            )
            .hint("allow a time above 0, or leave the limit out"));
        }
        if let (Some(ask), Some(all)) = (self.ask_memory, self.memory)
            && ask > all
        {
            let message = format!("an ask may take {ask} bytes of {all}");
            return Err(Error::new(ErrorKind::InvalidValue, message).hint("allow one ask at most the whole"));
        }
        Ok(Limits {
            memory: self.memory,
            ask_memory: self.ask_memory,
            threads: self.threads,
            bp_worker: self.bp_worker.clone(),
            time: self.ask_time,
            size: self.result_size,
            cancel: Arc::clone(&self.cancel),
        })
    }

    pub(crate) fn model(&self, group: &Group) -> Result<Model> {
        let prices = self.prices.map_or_else(|| Prices::new(STORAGE, INTO, OUT), Ok)?;
        Model::new(&group.name(), self.packing, prices, self.object_size, group.objects.at_once())
    }
}

impl Default for ProducerOptions {
    fn default() -> Self {
        Self {
            settle: Duration::from_secs(2),
            memory: None,
            ask_memory: None,
            ask_time: None,
            result_size: None,
            packing: Packing::Files,
            prices: None,
            object_size: None,
            zone_maps_from: Some(zones::FROM),
            threads: None,
            bp_worker: Vec::new(),
            spool: std::env::temp_dir(),
            progress: OnProgress::default(),
            cancel: Arc::default(),
        }
    }
}

/// What a pass did.
#[derive(Clone, Debug, Default)]
pub struct Produced {
    /// Steps that something was made of.
    pub steps: u64,
    /// Asks that were answered, by a result or by an error.
    pub entries: u64,
    /// Of these, by an error.
    pub failed: u64,
    /// Objects that were put for them, and their bytes.
    pub objects: u64,
    /// Bytes of these objects, and of the zone maps beside them.
    pub bytes: u64,
    /// Objects that nobody needs any more, which were deleted.
    pub deleted: u64,
    /// Files that are not complete yet.
    pub waiting: u64,
    /// Asks that are left to the next pass, as others of the same member took the time of an ask together already.
    pub deferred: u64,
    /// What could not be done this time, and is tried again by the next pass.
    pub troubles: Vec<Trouble>,
}

/// What could not be done with a step, or for a member.
#[derive(Clone, Debug)]
pub struct Trouble {
    /// The step, or the user.
    pub step: String,
    /// Why.
    pub error: Error,
}

/// Who has data and makes what is asked for of them. One process at a time is a producer.
pub struct Producer {
    pub(crate) group: Group,
    pub(crate) name: String,
    pub(crate) session: Session,
}

impl Producer {
    /// Says what a producer has: files, directories, patterns. What was said before is replaced; results stay.
    ///
    /// # Errors
    /// `invalid-value` for what is no name, and sources that cannot be; `file-not-found`; those of the store.
    pub fn register<S: AsRef<str>>(group: &Group, name: &str, sources: &[S]) -> Result<Self> {
        let sources = checked(sources)?;
        let absolute = |source: &String| {
            let path = std::path::absolute(source);
            path.map(|p| p.to_string_lossy().into_owned()).map_err(|e| Error::io(format!("'{source}'"), &e))
        };
        Self::registered(group, name, sources.iter().map(absolute).collect::<Result<Vec<_>>>()?)
    }

    /// A producer of these sources, of none where its steps come from memory.
    pub(crate) fn registered(group: &Group, name: &str, sources: Vec<String>) -> Result<Self> {
        names::check("a producer", name)?;
        let producer = Self::new(group, name);
        let _alone = producer.alone()?;
        let known = group.producer(name)?;
        let is_new = known.is_none();
        let mut record = known.unwrap_or_else(|| ProducerRecord {
            version: VERSION,
            sources: Vec::new(),
            steps: Vec::new(),
            described: None,
            given: BTreeSet::new(),
            numbers: BTreeMap::new(),
            next: 0,
            numbering: millis(),
            over: false,
        });
        if is_new || record.sources != sources || record.over {
            (record.sources, record.over) = (sources, false);
            record::write(&*group.objects, &names::producer(name), &record)?;
        }
        Ok(producer)
    }

    /// Makes sure that these can be what a producer has, before anything is made for it.
    ///
    /// # Errors
    /// As [`Producer::register`].
    pub fn check_sources<S: AsRef<str>>(sources: &[S]) -> Result<()> {
        checked(sources).map(drop)
    }

    /// A producer that is registered.
    ///
    /// # Errors
    /// `file-not-found` where there is none of that name.
    pub fn open(group: &Group, name: &str) -> Result<Self> {
        names::check("a producer", name)?;
        if group.producer(name)?.is_none() {
            let message = format!("the group at '{}' has no producer '{name}'", group.name());
            let known = group.producers()?;
            let hint = match &known[..] {
                [] => "register one: sieva share create PLACE SOURCE".to_owned(),
                known => format!("there is {}", known.join(", ")),
            };
            return Err(Error::new(ErrorKind::FileNotFound, message).hint(hint));
        }
        Ok(Self::new(group, name))
    }

    fn new(group: &Group, name: &str) -> Self {
        Self { group: group.clone(), name: name.to_owned(), session: Session::default() }
    }

    /// What a pass would make, and what that takes. Coordinates are read, and no data.
    ///
    /// # Errors
    /// Those of the store and of prices.
    pub fn plan(&self, options: &ProducerOptions) -> Result<Vec<PlannedStep>> {
        let pass = Pass::begin(self, options, None)?;
        let mut planned = Vec::new();
        for found in pass.ready.values() {
            let wanting = pass.wanting(&found.step);
            if !wanting.is_empty() {
                planned.push(self.plan_step(&pass, found, &wanting)?);
            }
        }
        Ok(planned)
    }

    fn plan_step(&self, pass: &Pass<'_>, found: &Found, wanting: &[Wanted]) -> Result<PlannedStep> {
        let who: Vec<(String, String)> = wanting.iter().map(|&wanted| pass.who(wanted)).collect();
        let source = match scan::open(&found.place, &self.session, &pass.limits) {
            Ok(source) => source,
            Err(e) => {
                let refused = who.into_iter().map(|(user, ask)| (user, ask, e.clone())).collect();
                return Ok(PlannedStep { step: found.step.clone(), units: Vec::new(), refused });
            }
        };
        let scan = Scan::of(&source, &pass.asks(wanting), &pass.limits)?;
        PlannedStep::of(found.step.clone(), &scan, &who, &pass.limits)
    }

    /// Makes and puts all that is asked for and not there yet, and deletes what nobody needs any more. Asked again after it was
    /// stopped anywhere, it goes on.
    ///
    /// # Errors
    /// `invalid-value` while another process of this machine is the producer; those of the store; `cancelled`.
    pub fn pass(&self, options: &ProducerOptions) -> Result<Produced> {
        let _alone = self.alone()?;
        self.run(Pass::begin(self, options, None)?, options.ask_time, &options.progress)
    }

    /// A pass that was begun, in which a member has so much time until the others have their turns.
    pub(crate) fn run(
        &self,
        mut pass: Pass<'_>,
        turn: Option<Duration>,
        progress: &OnProgress,
    ) -> Result<Produced> {
        let troubles = std::mem::take(&mut pass.troubles);
        let mut done = Produced { waiting: pass.waiting, troubles, ..Produced::default() };
        pass.register()?;
        pass.put_indexes()?;
        if !pass.is_blind {
            done.deleted = sweep(&self.group, &self.name, pass.indexes())? + self.group.sweep_published()?;
        }
        let mut turns = Turns::new(turn, pass.member_count());
        let ready = std::mem::take(&mut pass.ready);
        if progress.is_wanted() {
            let wanted = |found: &Found| pass.wanting(&found.step).len() as u64;
            pass.meter = progress.begin(ready.values().map(wanted).sum());
        }
        for found in ready.into_values() {
            pass.step(&found, &mut turns, &mut done)?;
        }
        Ok(done)
    }

    pub(crate) fn alone(&self) -> Result<Lock> {
        Lock::take(&lock::path_of(&[&self.group.name(), &self.name])?, || {
            let message = format!("another process is the producer '{}' of this group", self.name);
            Error::new(ErrorKind::InvalidValue, message).hint("wait for it, or be another one: --as NAME")
        })
    }
}

fn checked<S: AsRef<str>>(sources: &[S]) -> Result<Vec<String>> {
    let sources: Vec<String> = sources.iter().map(|s| s.as_ref().to_owned()).collect();
    steps::check(&sources)?;
    Ok(sources)
}
