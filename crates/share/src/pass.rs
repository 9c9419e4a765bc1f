//! A pass of a producer: what there is, who asks, what is over, what is to be made.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sieva::{Error, ErrorKind, Result};
use sieva_store::objects::Body;

use crate::at_once;
use crate::clock::now;
use crate::code::{self, Running};
use crate::collect::Consumer;
use crate::made::Made;
use crate::names;
use crate::produce::{Produced, Producer, ProducerOptions, Trouble};
use crate::record::{self, Ask, Entry, Failure, IndexRecord, ObjectRef, ProducerRecord, Step};
use crate::scan::{self, Limits, Scan, Unit};
use crate::steps::{self, Found};

/// Characters of an error that are kept.
const MOST_MESSAGE: usize = 2000;

/// A pass.
pub(crate) struct Pass<'p> {
    producer: &'p Producer,
    options: &'p ProducerOptions,
    pub limits: Limits,
    record: ProducerRecord,
    /// Steps that are complete, by name.
    pub ready: BTreeMap<String, Found>,
    pub waiting: u64,
    pub consumers: Vec<Consumer>,
    /// What was asked once and is no longer: users and names.
    gone: Vec<(String, String)>,
    /// Asks of which a record is wrong: nothing is made for them.
    pub troubles: Vec<Trouble>,
    /// What was made for these before.
    kept: Vec<IndexRecord>,
}

impl<'p> Pass<'p> {
    /// Looks what there is and who asks. Nothing is written.
    pub fn begin(producer: &'p Producer, options: &'p ProducerOptions) -> Result<Self> {
        let (group, name) = (&producer.group, &*producer.name);
        let record = group.producer(name)?.ok_or_else(|| {
            Error::new(ErrorKind::FileNotFound, format!("the producer '{name}' is registered no longer"))
        })?;
        let found = steps::find(&record.sources, options.settle)?;
        let waiting = found.iter().filter(|f| !f.settled).count() as u64;
        let ids: BTreeSet<&str> = found.iter().map(|f| f.step.id.as_str()).collect();
        let settled: Vec<Step> = found.iter().filter(|f| f.settled).map(|f| f.step.clone()).collect();
        let members: BTreeSet<String> = group.members()?.into_iter().collect();
        let mut pairs = record.given.clone();
        for user in &members {
            pairs.extend(group.ask_names(user)?.into_iter().map(|ask| (user.clone(), ask)));
        }
        let pairs: Vec<(String, String)> = pairs.into_iter().collect();
        let known = at_once::map(group.objects.at_once(), &pairs, |(user, ask)| {
            let consumer = || {
                // A listing may be late.
                if !members.contains(user) && !group.is_member(user)? {
                    return Ok(None);
                }
                let mut consumer = Consumer::of(group, name, user, ask, &settled)?;
                if let Some(consumer) = &mut consumer {
                    consumer.prune(group, name, &ids)?;
                }
                Ok(consumer)
            };
            match consumer() {
                // One wrong record is the matter of whom it is of.
                Err(e) if record::is_of_record(&e) => Ok(Err(e)),
                known => known.map(Ok),
            }
        })?;
        let (mut troubles, mut kept) = (Vec::new(), Vec::new());
        let (mut consumers, mut gone) = (Vec::new(), Vec::new());
        for (pair, consumer) in pairs.into_iter().zip(known) {
            match consumer {
                Ok(None) => gone.push(pair),
                Ok(Some(consumer)) => consumers.push(consumer),
                Err(error) => {
                    kept.extend(group.index(&pair.0, &pair.1, name).ok().flatten());
                    troubles.push(Trouble { step: format!("{}/{}", pair.0, pair.1), error });
                }
            }
        }
        drop(ids);
        let limits =
            Limits { memory: options.memory, threads: options.threads, cancel: Arc::clone(&options.cancel) };
        let ready = found.into_iter().filter(|f| f.settled).map(|f| (f.step.name.clone(), f)).collect();
        Ok(Self { producer, options, limits, record, ready, waiting, consumers, gone, troubles, kept })
    }

    /// Says what there is (metadata come first), and for whom something will be put.
    pub fn register(&mut self) -> Result<()> {
        let (group, name) = (&self.producer.group, &self.producer.name);
        let before = record::bytes(&self.record)?;
        if let Some(newest) = self.ready.values().max_by_key(|found| found.modified)
            && self.record.described.as_ref() != Some(&newest.step.id)
            && let Ok(source) = scan::open(&newest.path, &self.producer.session, &self.limits)
            // What cannot be described can be asked all the same.
            && let Ok(schema) = source.schema_json()
        {
            group.objects.put(&names::schema(name), &schema.into_bytes())?;
            self.record.described = Some(newest.step.id.clone());
        }
        self.record.steps = self.ready.values().map(|f| f.step.clone()).collect();
        self.record.given.extend(self.consumers.iter().map(|c| (c.user.clone(), c.ask.name.clone())));
        for (user, ask) in &self.gone {
            group.objects.delete(&names::index(user, ask, name))?;
            group.objects.delete(&names::taken(user, ask))?;
            self.record.given.remove(&(user.clone(), ask.clone()));
        }
        if record::bytes(&self.record)? != before {
            record::write(&*group.objects, &names::producer(name), &self.record)?;
        }
        Ok(())
    }

    /// What is put for somebody still.
    pub fn indexes(&self) -> impl Iterator<Item = &IndexRecord> {
        self.consumers.iter().map(|c| &c.index).chain(&self.kept)
    }

    pub fn put_indexes(&mut self) -> Result<()> {
        let (group, name) = (&self.producer.group, &self.producer.name);
        let changed: Vec<&Consumer> = self.consumers.iter().filter(|c| c.is_changed()).collect();
        at_once::map(group.objects.at_once(), &changed, |consumer| consumer.write(group, name))?;
        self.consumers.iter_mut().for_each(Consumer::written);
        Ok(())
    }

    /// The numbers of the asks that have nothing of a step yet.
    pub fn wanting(&self, step: &Step) -> Vec<usize> {
        self.consumers.iter().enumerate().filter(|(_, c)| c.wants(step)).map(|(number, _)| number).collect()
    }

    pub fn asks(&self, numbers: &[usize]) -> Vec<&Ask> {
        numbers.iter().map(|&number| &self.consumers[number].ask).collect()
    }

    /// Makes what is wanted of a step, and puts it; then the indexes name it.
    pub fn step(&mut self, found: &Found, done: &mut Produced) -> Result<()> {
        self.check()?;
        let wanting = self.wanting(&found.step);
        if wanting.is_empty() {
            return Ok(());
        }
        let trouble = |error: Error| Trouble { step: found.step.name.clone(), error };
        let source = match scan::open(&found.path, &self.producer.session, &self.limits) {
            Ok(source) => source,
            Err(e) => return self.noted(trouble(e), done),
        };
        let mut scan = Scan::of(&source, &self.asks(&wanting), &self.limits)?;
        scan.run(&self.producer.session, &self.limits)?;
        let mut answers: Vec<(usize, Answer)> =
            scan.refused.iter().map(|(number, e)| (*number, Err(e.clone()))).collect();
        for units in scan.units.chunks(self.producer.group.objects.at_once().max(1)) {
            for (unit, answer) in units.iter().zip(self.put(&scan, units, done)?) {
                match answer {
                    Err(e) if is_passing(&e) => done.troubles.push(trouble(e)),
                    answer => answers.extend(unit.asks.iter().map(|&number| (number, answer.clone()))),
                }
            }
        }
        answers.sort_by_key(|(number, _)| *number);
        done.steps += 1;
        for (number, answer) in answers {
            done.entries += 1;
            done.failed += u64::from(!matches!(answer, Ok((_, None))));
            let consumer = &mut self.consumers[wanting[number]];
            let entry = entry(&consumer.ask, &found.step, answer);
            consumer.add(entry);
        }
        self.put_indexes()
    }

    /// Makes results, one after the other, and puts them side by side. The outer error is the store's, or that of being
    /// stopped.
    fn put(&self, scan: &Scan, units: &[Unit], done: &mut Produced) -> Result<Vec<Answer>> {
        let mut made = Vec::new();
        for unit in units {
            let one = scan
                .query(unit)
                .and_then(|query| code::made(query, unit.format, unit.code.as_deref(), &self.running()));
            if one.is_err() {
                self.check()?;
            }
            made.push((unit, one));
        }
        let objects = &self.producer.group.objects;
        let answers = at_once::map(objects.at_once(), &made, |(unit, made)| match made {
            Err(e) => Ok(Err(e.clone())),
            Ok((made, told)) => {
                let object = self.object(unit, made);
                match objects.put(&object.key, made) {
                    // Larger than an object of this store may be: no fault of the others.
                    Err(e) if e.kind() == ErrorKind::Unsupported => Ok(Err(e)),
                    put => put.map(|()| Ok((object, told.clone()))),
                }
            }
        })?;
        for (object, _) in answers.iter().flatten() {
            done.objects += 1;
            done.bytes += object.size;
        }
        Ok(answers)
    }

    /// How code is run in this pass.
    fn running(&self) -> Running<'_> {
        let limits = sieva_usercode::Limits { cancel: Arc::clone(&self.limits.cancel), ..Default::default() };
        Running { strict: self.producer.group.strict_code, spool: &self.options.spool, limits }
    }

    /// The object of a result: named by what it holds, so that it can be put again.
    fn object(&self, unit: &Unit, made: &Made) -> ObjectRef {
        let suffix = unit.format.suffixes().first().copied().unwrap_or("bin");
        let (folder, sum) = (names::data(&self.producer.name), &made.checksum);
        let key = format!("{folder}{}-{}.{suffix}", made.id, sum.get(..8).unwrap_or(sum));
        ObjectRef { key, size: made.size(), checksum: sum.clone(), rows: made.rows }
    }

    fn noted(&self, trouble: Trouble, done: &mut Produced) -> Result<()> {
        self.check()?;
        done.troubles.push(trouble);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        match self.limits.cancel.load(Ordering::Relaxed) {
            true => Err(Error::new(ErrorKind::Cancelled, "the pass was interrupted")),
            false => Ok(()),
        }
    }
}

/// What a question comes to: an object, and why it is not what was asked for, where it is not.
type Answer = std::result::Result<(ObjectRef, Option<Error>), Error>;

/// Whether it may go better the next time, and says nothing of the question.
fn is_passing(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Io | ErrorKind::StaleSource | ErrorKind::FileNotFound)
}

fn failure(e: &Error) -> Failure {
    let message = match e.hint_text() {
        Some(hint) => format!("{} ({hint})", e.message()),
        None => e.message().to_owned(),
    };
    // It is kept for every file, and may quote the whole question.
    Failure { code: e.kind().code().to_owned(), message: message.chars().take(MOST_MESSAGE).collect() }
}

fn entry(ask: &Ask, step: &Step, answer: Answer) -> Entry {
    let (object, failure) = match answer {
        Ok((object, told)) => (Some(object), told.as_ref().map(failure)),
        Err(e) => (None, Some(failure(&e))),
    };
    Entry { serial: 0, step: step.clone(), format: ask.format.clone(), made: now(), object, failure }
}
