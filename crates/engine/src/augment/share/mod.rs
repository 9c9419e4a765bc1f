//! Building by many processes: a job is cut into tasks, which run in any process that can open the sources.
//!
//! The process that asks makes an [`IndexJob`] and hands out its tasks, as bytes; those of one stage in any order and at the
//! same time, stage after stage. No task reads what another reads, so that each byte is read and each region is built once
//! (SDS, section III.A). What a task has built of zone maps and bitmaps it publishes itself: should others fail, that stays,
//! and the next job leaves it out. A sorted replica is published in the end, by the process that asks.

mod price;
mod regions;
mod replica;
mod wire;

use std::collections::VecDeque;
use std::time::Instant;

use sieva_index::store::Home;
use sieva_types::{Error, ErrorKind, Result};

use super::build::{BuildOptions, BuildReport, IndexKind};
use super::check_state;
use super::regions::tidy;
use super::told::Rate;
use crate::open::Source;
pub use price::BuildPrice;
use regions::Regions;
use replica::ReplicaJob;
use wire::{Done, Step};

/// What is to be built, by whoever runs its tasks.
///
/// ```no_run
/// # fn main() -> sieva::Result<()> {
/// let source = sieva::Source::open("pop.nc", &sieva::OpenOptions::default())?;
/// let options = sieva::BuildOptions::default();
/// let mut job = source.index_job(&["TEMP".to_string()], &options)?;
/// loop {
///     let tasks = job.tasks(8)?;
///     if tasks.is_empty() {
///         break;
///     }
///     // Anywhere, at the same time: another process opens the source, and gets and gives back bytes.
///     let run = |task: &sieva::IndexTask| source.run_index_task(task, &options);
///     let done = tasks.iter().map(run).collect::<sieva::Result<Vec<_>>>()?;
///     job.take(&done)?;
/// }
/// println!("{} regions", job.finish()?.built);
/// # Ok(())
/// # }
/// ```
pub struct IndexJob {
    source: Source,
    options: BuildOptions,
    stages: VecDeque<Stage>,
    /// How many tasks of the first stage were given out.
    out: Option<usize>,
    /// Stores that are written to.
    homes: Vec<Home>,
    /// Of a source of many files, those that are built.
    files: Vec<usize>,
    started: Instant,
    report: BuildReport,
}

/// What can be done at the same time.
enum Stage {
    Regions(Vec<Regions>),
    Replica(Box<ReplicaJob>),
}

/// A part of the work of an [`IndexJob`], which takes one source.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexTask {
    /// The path of the source.
    source: String,
    state: [u64; 3],
    step: Step,
}

impl Source {
    /// What builds augmentations of arrays (none named: of all numeric arrays), as far as they are not there yet, in parts
    /// that other processes may run.
    ///
    /// # Errors
    /// As [`Source::build_index`].
    pub fn index_job(&self, arrays: &[String], options: &BuildOptions) -> Result<IndexJob> {
        let mut job = IndexJob {
            source: self.clone(),
            options: options.clone(),
            stages: VecDeque::new(),
            out: None,
            homes: Vec::new(),
            files: Vec::new(),
            started: Instant::now(),
            report: BuildReport::default(),
        };
        if options.kinds.iter().any(|kind| *kind != IndexKind::Sorted) {
            let mut all = Vec::new();
            match self.many() {
                Some(many) => {
                    for (file, names) in many.holding(self, arrays)? {
                        job.files.push(file);
                        job.add_regions(&many.files.file(file)?, &names, &mut all)?;
                    }
                }
                None => job.add_regions(self, arrays, &mut all)?,
            }
            job.stages.push_back(Stage::Regions(all));
        }
        if options.kinds.contains(&IndexKind::Sorted) {
            job.add_replicas(arrays)?;
        }
        Ok(job)
    }

    /// Runs a task of a job that builds augmentations, wherever it was made; of the options, `jobs`, `memory`,
    /// `lock_timeout`, `progress` and `cancel` count. A task that is run again finds what it did. One of a file that this source
    /// joins with others is run on that file.
    ///
    /// # Errors
    /// `stale-source` where the source is in another state than that of which the task was made; as [`Source::build_index`].
    pub fn run_index_task(&self, task: &IndexTask, options: &BuildOptions) -> Result<Vec<u8>> {
        if let Some(many) = self.many()
            && let Some(file) = many.files.names().iter().position(|name| *name == task.source)
        {
            return many.files.file(file)?.run_index_task(task, options);
        }
        check_state(self, task.state)?;
        let done = match &task.step {
            Step::Regions(part) => self.build_regions(part, options)?,
            Step::Replica(part) => self.build_replica(part, options)?,
        };
        Ok(done.to_bytes())
    }
}

impl IndexJob {
    /// Notes the replicas that are to be built.
    fn add_replicas(&mut self, names: &[String]) -> Result<()> {
        let source = self.source.clone();
        if let Some(many) = source.many() {
            many.check_kinds(&self.options)?;
        }
        let keys = source.indexable(names)?;
        // What there is now, not what there was when the store was last looked at.
        source.reader().store().check_unchanged()?;
        source.augmented().forget();
        source.check_is_used()?;
        for key in keys {
            let job = ReplicaJob::new(&source, key, &self.options)?;
            self.stages.extend(job.map(|job| Stage::Replica(Box::new(job))));
        }
        Ok(())
    }

    /// The tasks that may run now, about `n`; none where all is done. What they give is to be [taken](IndexJob::take)
    /// before there are more.
    ///
    /// # Errors
    /// `invalid-value` where `n` is 0, or the last tasks are not done; reading errors.
    pub fn tasks(&mut self, n: usize) -> Result<Vec<IndexTask>> {
        if n == 0 || self.out.is_some() {
            let what = if n == 0 { "work in 0 parts" } else { "tasks before those given out are done" };
            return Err(Error::new(ErrorKind::InvalidValue, what).hint("take() what the tasks gave first"));
        }
        while let Some(stage) = self.stages.front_mut() {
            let tasks = match stage {
                Stage::Regions(of) => regions::cut(of, n, &self.options),
                Stage::Replica(job) => job.tasks(n, &self.options)?,
            };
            if !tasks.is_empty() {
                self.out = Some(tasks.len());
                return Ok(tasks);
            }
            self.stages.pop_front();
        }
        Ok(Vec::new())
    }

    /// Takes in what the tasks gave, each once, in their order.
    ///
    /// # Errors
    /// `invalid-value` for damaged bytes, or those of other tasks.
    pub fn take(&mut self, done: &[Vec<u8>]) -> Result<()> {
        if self.out != Some(done.len()) {
            let out = self.out.unwrap_or(0);
            let message = format!("results of {} tasks, of {out} that were given out", done.len());
            return Err(Error::new(ErrorKind::InvalidValue, message).hint("give what each task gave, once"));
        }
        let done = done.iter().map(|bytes| Done::from_bytes(bytes)).collect::<Result<Vec<_>>>()?;
        let is_over = match self.stages.front_mut() {
            Some(Stage::Regions(_)) => {
                for done in done {
                    self.report.add_done(done.regions()?);
                }
                true
            }
            Some(Stage::Replica(job)) => {
                let is_over = job.take(done, &self.options)?;
                self.report.replicas += u64::from(is_over);
                is_over
            }
            None => false,
        };
        if is_over {
            self.stages.pop_front();
        }
        self.out = None;
        Ok(())
    }

    /// Tells the catalog of the files that were built.
    fn tell(&mut self) -> Result<()> {
        let seconds = self.started.elapsed().as_secs_f64();
        match self.source.many() {
            None => {
                let rate = Rate::of(&self.source, &self.source.indexable(&[])?, seconds);
                self.report.notes.extend(self.source.tell_catalog(rate));
            }
            Some(many) => {
                for &file in &self.files {
                    let file = many.files.file(file)?;
                    file.augmented().forget();
                    let note = file.tell_catalog(Rate::default());
                    self.report.notes.extend(note.filter(|note| !self.report.notes.contains(note)));
                }
            }
        }
        Ok(())
    }

    /// What was done, once there are no more tasks.
    ///
    /// # Errors
    /// `invalid-value` where there are.
    pub fn finish(mut self) -> Result<BuildReport> {
        if !self.stages.is_empty() {
            return Err(Error::new(ErrorKind::InvalidValue, "there are tasks that were not done"));
        }
        self.source.augmented().forget();
        self.homes.iter().for_each(tidy);
        self.tell()?;
        Ok(self.report)
    }
}
