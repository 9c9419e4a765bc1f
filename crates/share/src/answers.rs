//! What a pass makes of a step, and puts.

use std::time::Instant;

use sieva::{Error, ErrorKind, Result};
use sieva_store::objects::Body;

use crate::at_once;
use crate::clock::now;
use crate::made::Made;
use crate::names;
use crate::pass::{Pass, Wanted};
use crate::produce::{Produced, Trouble};
use crate::record::{Ask, Entry, Failure, ObjectRef, Step};
use crate::scan::{self, Scan, Unit};
use crate::steps::Found;
use crate::turns::{Turns, in_turn};

/// Characters of an error that are kept.
const MOST_MESSAGE: usize = 2000;

/// What a question comes to.
type Answer = std::result::Result<ObjectRef, Error>;

impl Pass<'_> {
    /// Makes what is wanted of a step, and puts it; then the indexes name it.
    pub fn step(&mut self, found: &Found, turns: &mut Turns, done: &mut Produced) -> Result<()> {
        self.limits.check()?;
        let wanting = self.wanting(&found.step);
        if wanting.is_empty() {
            return Ok(());
        }
        let source = match scan::open(&found.path, &self.producer.session, &self.limits) {
            Ok(source) => source,
            Err(error) => {
                self.limits.check()?;
                done.troubles.push(Trouble { step: found.step.name.clone(), error });
                return Ok(());
            }
        };
        let mut scan = Scan::of(&source, &self.asks(&wanting), &self.limits)?;
        scan.run(&self.producer.session, &self.limits, &|number| self.is_slow(wanting[number]))?;
        done.steps += 1;
        for (number, error) in &scan.refused {
            self.answer(wanting[*number], &found.step, Err(error.clone()), done)?;
        }
        let members = |unit: &Unit| unit.asks.iter().map(|&n| wanting[n].member).collect::<Vec<_>>();
        let firsts: Vec<usize> = scan.units.iter().filter_map(|u| members(u).first().copied()).collect();
        let ordered = in_turn(&firsts).into_iter().filter_map(|number| scan.units.get(number));
        // What was evaluated together first: it is made in no time.
        let (together, alone): (Vec<&Unit>, Vec<&Unit>) = ordered.partition(|unit| scan.is_known(unit));
        for units in [together, alone] {
            for units in units.chunks(self.producer.group.objects.at_once().max(1)) {
                let may = |unit: &&Unit| turns.may(&members(unit));
                let (units, later): (Vec<&Unit>, Vec<&Unit>) = units.iter().copied().partition(may);
                done.deferred += later.iter().map(|unit| unit.asks.len() as u64).sum::<u64>();
                let answers = self.put(&scan, &units, &members, turns, done)?;
                for (unit, answer) in units.iter().zip(answers) {
                    match answer {
                        Err(error) if is_passing(&error) => {
                            done.troubles.push(Trouble { step: found.step.name.clone(), error });
                        }
                        answer => {
                            for &number in &unit.asks {
                                self.answer(wanting[number], &found.step, answer.clone(), done)?;
                            }
                        }
                    }
                }
                if units.iter().any(|unit| !scan.is_known(unit)) {
                    self.put_indexes()?;
                }
            }
        }
        self.put_indexes()
    }

    fn answer(&mut self, wanted: Wanted, step: &Step, answer: Answer, done: &mut Produced) -> Result<()> {
        let failed = answer.is_err();
        let entry = entry(self.of(wanted).1, step, answer);
        if self.add(wanted, entry)? {
            done.entries += 1;
            done.failed += u64::from(failed);
        }
        Ok(())
    }

    /// Makes results, one after the other, and puts them side by side. The outer error is the store's, or that of being
    /// stopped.
    fn put(
        &self,
        scan: &Scan,
        units: &[&Unit],
        members: &dyn Fn(&Unit) -> Vec<usize>,
        turns: &mut Turns,
        done: &mut Produced,
    ) -> Result<Vec<Answer>> {
        let mut made = Vec::new();
        for unit in units {
            let begun = Instant::now();
            let one = scan.make(unit, &self.options.spool, &self.limits);
            if one.is_err() {
                self.limits.check()?;
            }
            turns.charge(&members(unit), begun.elapsed());
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
}

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
