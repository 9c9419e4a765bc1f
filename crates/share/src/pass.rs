//! A pass of a producer: what there is, who asks, what is over, what is to be made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sieva::{Error, ErrorKind, Result};
use sieva_store::objects::Body;

use crate::at_once;
use crate::clock::now;
use crate::collect::{Member, Numbers};
use crate::made::Made;
use crate::names;
use crate::produce::{Produced, Producer, ProducerOptions, Trouble};
use crate::record::{self, Ask, Entry, Failure, IndexRecord, ObjectRef, ProducerRecord, Step};
use crate::scan::{self, Limits, Scan, Unit};
use crate::steps::{self, Found};

/// Characters of an error that are kept.
const MOST_MESSAGE: usize = 2000;

/// An ask of a member, by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    member: usize,
    ask: usize,
}

/// A pass.
pub(crate) struct Pass<'p> {
    producer: &'p Producer,
    options: &'p ProducerOptions,
    pub limits: Limits,
    /// The producer's record, and as it is put.
    record: ProducerRecord,
    put: Vec<u8>,
    /// Steps that are complete, by name.
    pub ready: BTreeMap<String, Found>,
    pub waiting: u64,
    members: Vec<Member>,
    /// Who was a member once and is no longer.
    gone: Vec<String>,
    /// Members of whom a record is wrong: nothing is made for them.
    pub troubles: Vec<Trouble>,
    /// What was made for these before.
    kept: Vec<IndexRecord>,
}

impl<'p> Pass<'p> {
    /// Looks what there is and who asks. Nothing is written.
    pub fn begin(producer: &'p Producer, options: &'p ProducerOptions) -> Result<Self> {
        let (group, name) = (&producer.group, &*producer.name);
        let mut record = group.producer(name)?.ok_or_else(|| {
            Error::new(ErrorKind::FileNotFound, format!("the producer '{name}' is registered no longer"))
        })?;
        let put = record::bytes(&record)?;
        let found = steps::find(&record.sources, options.settle)?;
        let waiting = found.iter().filter(|f| !f.settled).count() as u64;
        record.number(found.iter().map(|f| f.step.id.as_str()));
        let settled = found.iter().filter(|f| f.settled);
        let ready = settled.filter_map(|f| record.numbers.get(&f.step.id).copied()).collect();
        let numbers = Numbers { numbering: record.numbering, ready };
        // A listing may be late: those that something was put for are asked for by name.
        let mut users = record.given.clone();
        users.extend(group.members()?);
        let users: Vec<String> = users.into_iter().collect();
        let known = at_once::map(group.objects.at_once(), &users, |user| {
            match Member::of(group, name, user, &numbers) {
                // One wrong record is the matter of whom it is of.
                Err(e) if record::is_of_record(&e) => Ok(Err(e)),
                known => known.map(Ok),
            }
        })?;
        let (mut troubles, mut kept) = (Vec::new(), Vec::new());
        let (mut members, mut gone) = (Vec::new(), Vec::new());
        for (user, member) in users.into_iter().zip(known) {
            match member {
                Ok(None) => gone.push(user),
                Ok(Some(member)) => members.push(member),
                Err(error) => {
                    kept.extend(group.index(&user, name).ok().flatten());
                    troubles.push(Trouble { step: user, error });
                }
            }
        }
        let limits =
            Limits { memory: options.memory, threads: options.threads, cancel: Arc::clone(&options.cancel) };
        let ready = found.into_iter().filter(|f| f.settled).map(|f| (f.step.name.clone(), f)).collect();
        Ok(Self { producer, options, limits, record, put, ready, waiting, members, gone, troubles, kept })
    }

    /// Says what there is (metadata come first), and for whom something will be put.
    pub fn register(&mut self) -> Result<()> {
        let (group, name) = (&self.producer.group, &self.producer.name);
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
        let asking = self.members.iter().filter(|member| !member.asks.is_empty());
        self.record.given.extend(asking.map(|member| member.user.clone()));
        for user in &self.gone {
            group.objects.delete(&names::index(user, name))?;
            group.objects.delete(&names::taken(user))?;
            self.record.given.remove(user);
        }
        if record::bytes(&self.record)? != self.put {
            record::write(&*group.objects, &names::producer(name), &self.record)?;
        }
        Ok(())
    }

    /// What is put for somebody still.
    pub fn indexes(&self) -> impl Iterator<Item = &IndexRecord> {
        self.members.iter().map(|member| &member.index).chain(&self.kept)
    }

    pub fn put_indexes(&mut self) -> Result<()> {
        let (group, name) = (&self.producer.group, &self.producer.name);
        let changed: Vec<&Member> = self.members.iter().filter(|member| member.is_changed()).collect();
        at_once::map(group.objects.at_once(), &changed, |member| member.write(group, name))?;
        self.members.iter_mut().for_each(Member::written);
        Ok(())
    }

    /// The asks that have nothing of a step yet.
    pub fn wanting(&self, step: &Step) -> Vec<Wanted> {
        let Some(&number) = self.record.numbers.get(&step.id) else { return Vec::new() };
        let of = |(member, known): (usize, &Member)| {
            let wants = (0..known.asks.len()).filter(|&ask| known.wants(ask, number));
            wants.map(move |ask| Wanted { member, ask }).collect::<Vec<_>>()
        };
        self.members.iter().enumerate().flat_map(of).collect()
    }

    /// The ask, and whose it is.
    fn of(&self, wanted: Wanted) -> (&Member, &Ask) {
        let member = &self.members[wanted.member];
        (member, &member.asks[wanted.ask])
    }

    pub fn asks(&self, wanting: &[Wanted]) -> Vec<&Ask> {
        wanting.iter().map(|&wanted| self.of(wanted).1).collect()
    }

    /// The user, and the name of the ask.
    pub fn who(&self, wanted: Wanted) -> (String, String) {
        let (member, ask) = self.of(wanted);
        (member.user.clone(), ask.name.clone())
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
        let step = self.record.numbers.get(&found.step.id).copied().unwrap_or_default();
        for (number, answer) in answers {
            let wanted = wanting[number];
            let failed = answer.is_err();
            let entry = entry(self.of(wanted).1, &found.step, answer);
            if self.members[wanted.member].add(wanted.ask, step, entry)? {
                done.entries += 1;
                done.failed += u64::from(failed);
            }
        }
        self.put_indexes()
    }

    /// Makes results, one after the other, and puts them side by side. The outer error is the store's, or that of being
    /// stopped.
    fn put(&self, scan: &Scan, units: &[Unit], done: &mut Produced) -> Result<Vec<Answer>> {
        let mut made = Vec::new();
        for unit in units {
            let one = scan.query(unit).and_then(|query| Made::new(query, unit.format, &self.options.spool));
            if one.is_err() {
                self.check()?;
            }
            made.push((unit, one));
        }
        let objects = &self.producer.group.objects;
        let answers = at_once::map(objects.at_once(), &made, |(unit, made)| match made {
            Err(e) => Ok(Err(e.clone())),
            Ok(made) => {
                let object = self.object(unit, made);
                match objects.put(&object.key, made) {
                    // Larger than an object of this store may be: no fault of the others.
                    Err(e) if e.kind() == ErrorKind::Unsupported => Ok(Err(e)),
                    put => put.map(|()| Ok(object)),
                }
            }
        })?;
        for object in answers.iter().flatten() {
            done.objects += 1;
            done.bytes += object.size;
        }
        Ok(answers)
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

/// What a question comes to.
type Answer = std::result::Result<ObjectRef, Error>;

/// Whether it may go better the next time, and says nothing of the question.
fn is_passing(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Io | ErrorKind::StaleSource | ErrorKind::FileNotFound)
}

fn entry(ask: &Ask, step: &Step, answer: Answer) -> Entry {
    let (object, failure) = match answer {
        Ok(object) => (Some(object), None),
        Err(e) => {
            let message = match e.hint_text() {
                Some(hint) => format!("{} ({hint})", e.message()),
                None => e.message().to_owned(),
            };
            // It is kept for every file, and may quote the whole question.
            let message = message.chars().take(MOST_MESSAGE).collect();
            (None, Some(Failure { code: e.kind().code().to_owned(), message }))
        }
    };
    Entry { serial: 0, step: step.clone(), format: ask.format.clone(), made: now(), object, failure }
}
