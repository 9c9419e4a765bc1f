//! A pass of a producer: what there is, who asks, what is over.

use std::collections::BTreeMap;

use sieva::{Error, ErrorKind, Result};

use crate::at_once;
use crate::collect::{Member, Numbers};
use crate::names;
use crate::pack::Model;
use crate::produce::{Producer, ProducerOptions, Trouble};
use crate::progress::Meter;
use crate::record::{self, Ask, Entry, IndexRecord, ProducerRecord, Step};
use crate::scan;
use crate::steps::{self, Found};
use crate::watch::Limits;

/// An ask of a member, by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    pub member: usize,
    ask: usize,
}

/// A pass.
pub(crate) struct Pass<'p> {
    pub producer: &'p Producer,
    pub options: &'p ProducerOptions,
    pub limits: Limits,
    pub model: Model,
    /// The producer's record, and as it is put.
    record: ProducerRecord,
    put: Vec<u8>,
    /// Steps that are complete, by name.
    pub ready: BTreeMap<String, Found>,
    pub waiting: u64,
    members: Vec<Member>,
    /// Who was a member once and is no longer.
    gone: Vec<String>,
    /// Members of whom a record is wrong, or cannot be opened: nothing is made for them.
    pub troubles: Vec<Trouble>,
    /// What was made for these before.
    kept: Vec<IndexRecord>,
    /// Whether a record could not be opened: what it names is not known, and nothing is deleted.
    pub is_blind: bool,
    /// The answers of the pass.
    pub meter: Meter,
}

impl<'p> Pass<'p> {
    /// Looks what there is, or takes what is offered in its place, and who asks. Nothing is written.
    pub fn begin(
        producer: &'p Producer,
        options: &'p ProducerOptions,
        offered: Option<Found>,
    ) -> Result<Self> {
        let (group, name) = (&producer.group, &*producer.name);
        let mut record = group.producer(name)?.ok_or_else(|| {
            Error::new(ErrorKind::FileNotFound, format!("the producer '{name}' is registered no longer"))
        })?;
        let put = record::bytes(&record)?;
        let is_offered = offered.is_some();
        let found =
            offered.map_or_else(|| steps::find(&record.sources, options.settle), |one| Ok(vec![one]))?;
        let waiting = found.iter().filter(|f| !f.settled).count() as u64;
        record.number(found.iter().map(|f| f.step.id.as_str()));
        // What is offered was not there before for anybody.
        let settled = found.iter().filter(|f| f.settled && !is_offered);
        let ready = settled.filter_map(|f| record.numbers.get(&f.step.id).copied()).collect();
        let numbers = Numbers { numbering: record.numbering, ready };
        // A listing may be late: those that something was put for are asked for by name.
        let mut users = record.given.clone();
        users.extend(group.members()?);
        let users: Vec<String> = users.into_iter().collect();
        let known = at_once::map(group.objects.at_once(), &users, |user| {
            match Member::of(group, name, user, &numbers) {
                // One wrong record is the matter of whom it is of.
                Err(e) if record::is_of_record(&e) || record::cannot_be_opened(&e) => Ok(Err(e)),
                known => known.map(Ok),
            }
        })?;
        let (mut troubles, mut kept) = (Vec::new(), Vec::new());
        let (mut members, mut gone, mut is_blind) = (Vec::new(), Vec::new(), false);
        for (user, member) in users.into_iter().zip(known) {
            match member {
                Ok(None) => gone.push(user),
                Ok(Some(member)) => members.push(member),
                Err(error) => {
                    is_blind |= record::cannot_be_opened(&error);
                    kept.extend(group.index(&user, name).ok().flatten());
                    troubles.push(Trouble { step: user, error });
                }
            }
        }
        let (limits, model) = (options.limits()?, options.model(group)?);
        let ready = found.into_iter().filter(|f| f.settled).map(|f| (f.step.name.clone(), f)).collect();
        Ok(Self {
            producer,
            options,
            limits,
            model,
            record,
            put,
            ready,
            waiting,
            members,
            gone,
            troubles,
            kept,
            is_blind,
            meter: Meter::default(),
        })
    }

    /// Says what there is (metadata come first), and for whom something will be put.
    pub fn register(&mut self) -> Result<()> {
        let (group, name) = (&self.producer.group, &self.producer.name);
        if let Some(newest) = self.ready.values().max_by_key(|found| found.modified)
            && self.record.described.as_ref() != Some(&newest.step.id)
            && let Ok(source) = scan::open(&newest.place, &self.producer.session, &self.limits)
            // What cannot be described can be asked all the same.
            && let Ok(schema) = source.schema_json()
        {
            group.objects.put(&names::schema(name), &schema.into_bytes())?;
            self.record.described = Some(newest.step.id.clone());
        }
        // Between two steps from memory there is none, and the last one is still the newest.
        if !self.ready.is_empty() || !self.record.sources.is_empty() {
            self.record.steps = self.ready.values().map(|f| f.step.clone()).collect();
        }
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
    pub fn of(&self, wanted: Wanted) -> (&Member, &Ask) {
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

    /// Whether the last answer to an ask took longer than one may: the next is evaluated by itself at once.
    pub fn is_slow(&self, wanted: Wanted) -> bool {
        self.members[wanted.member].is_slow(wanted.ask)
    }

    /// Adds an answer; false where there is no room for it.
    pub fn add(&mut self, wanted: Wanted, entry: Entry) -> Result<bool> {
        let step = self.record.numbers.get(&entry.step.id).copied().unwrap_or_default();
        self.members[wanted.member].add(wanted.ask, step, entry)
    }

    /// How many members there are.
    pub fn member_count(&self) -> usize {
        self.members.len()
    }
}
