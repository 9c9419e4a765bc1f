//! What a pass makes of a step, and puts.

use std::time::Instant;

use sieva::{Error, ErrorKind, Result};
use sieva_store::objects::Body;

use crate::at_once;
use crate::clock::now;
use crate::made::Made;
use crate::names;
use crate::overlap::{Stored, clusters};
use crate::pack::{Packing, Wanted as Wanting};
use crate::pass::{Pass, Wanted};
use crate::produce::{Produced, Trouble};
use crate::record::{Ask, Entry, Failure, ObjectRef, Step};
use crate::scan::{self, Making, Scan, Unit};
use crate::steps::{self, Found, Place};
use crate::turns::{Turns, in_turn};

/// Characters of an error that are kept.
const MOST_MESSAGE: usize = 2000;

/// What a question comes to: a result, and why it is not what was asked for, where it is not.
type Answer = std::result::Result<(ObjectRef, Option<Error>), Error>;

/// A result that was tried to make.
type Attempt<'u> = (&'u Unit, Result<Made>);
/// The numbers of the members who want a result.
type Members<'f> = dyn Fn(&Unit) -> Vec<usize> + 'f;

impl Pass<'_> {
    /// Makes what is wanted of a step, and puts it; then the indexes name it.
    pub fn step(&mut self, found: &Found, turns: &mut Turns, done: &mut Produced) -> Result<()> {
        self.limits.check()?;
        let wanting = self.wanting(&found.step);
        if wanting.is_empty() {
            return Ok(());
        }
        let source = match scan::open(&found.place, &self.producer.session, &self.limits) {
            Ok(source) => source,
            Err(error) => {
                self.limits.check()?;
                done.troubles.push(Trouble { step: found.step.name.clone(), error });
                return Ok(());
            }
        };
        if !steps::is_still(found) {
            // What is open is another state than the one that was complete: it is for a later pass to say that it is.
            done.waiting += 1;
            return Ok(());
        }
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
            let mut rest = &units[..];
            while !rest.is_empty() {
                let (made, begun) = self.make(&scan, rest, &members, turns, done)?;
                rest = &rest[begun..];
                let answers = self.put(&made, &members, done)?;
                for ((unit, _), answer) in made.iter().zip(answers) {
                    match answer {
                        // What is in memory now is not there for the next pass.
                        Err(error) if is_passing(&error) && matches!(found.place, Place::File(_)) => {
                            done.troubles.push(Trouble { step: found.step.name.clone(), error });
                        }
                        answer => {
                            for &number in &unit.asks {
                                self.answer(wanting[number], &found.step, answer.clone(), done)?;
                            }
                        }
                    }
                }
                if made.iter().any(|(unit, _)| !scan.is_known(unit)) {
                    self.put_indexes()?;
                }
            }
        }
        self.put_indexes()
    }

    fn answer(&mut self, wanted: Wanted, step: &Step, answer: Answer, done: &mut Produced) -> Result<()> {
        let failed = !matches!(answer, Ok((_, None)));
        let entry = entry(self.of(wanted).1, step, answer);
        if self.add(wanted, entry)? {
            done.entries += 1;
            done.failed += u64::from(failed);
        }
        self.meter.add(1);
        Ok(())
    }

    /// Makes results, one after the other, as many as are put at once, of members who have time left. How many were begun,
    /// with those that are left to the next pass.
    fn make<'u>(
        &self,
        scan: &Scan,
        units: &[&'u Unit],
        members: &Members<'_>,
        turns: &mut Turns,
        done: &mut Produced,
    ) -> Result<(Vec<Attempt<'u>>, usize)> {
        let at_once = self.producer.group.objects.at_once().max(1);
        let (mut made, mut bytes) = (Vec::new(), 0_u64);
        for (number, &unit) in units.iter().enumerate() {
            if self.model.is_enough(made.len(), bytes, at_once) {
                return Ok((made, number));
            }
            let members = members(unit);
            if !turns.may(&members) {
                done.deferred += unit.asks.len() as u64;
                continue;
            }
            let begun = Instant::now();
            let (strict_code, packing) = (self.producer.group.strict_code, self.options.packing);
            let making = Making { strict_code, knows_rows: packing == Packing::Partial };
            let one =
                scan.make(unit, &self.options.spool, making, &self.limits).and_then(|one| self.carrying(one));
            if one.is_err() {
                self.limits.check()?;
            }
            turns.charge(&members, begun.elapsed());
            bytes = bytes.saturating_add(one.as_ref().map_or(0, |one| one.size()));
            made.push((unit, one));
        }
        Ok((made, units.len()))
    }

    /// A result with its zone maps, where somebody can ask its object for some of it: those that share one have no address.
    fn carrying(&self, one: Made) -> Result<Made> {
        let from = self.options.zone_maps_from.filter(|_| self.options.packing == Packing::Files);
        let from = self.producer.group.zone_maps_from(from);
        one.with_zone_maps(from, &self.options.spool, &self.limits)
    }

    /// Puts results side by side. The outer error is the store's.
    fn put(&self, made: &[Attempt<'_>], members: &Members<'_>, done: &mut Produced) -> Result<Vec<Answer>> {
        let good: Vec<(usize, &Unit, &Made)> = made
            .iter()
            .enumerate()
            .filter_map(|(number, (unit, one))| Some((number, *unit, one.as_ref().ok()?)))
            .collect();
        let is_partial = self.options.packing == Packing::Partial;
        let results: Vec<&Made> = good.iter().map(|(_, _, one)| *one).collect();
        // Those that have rows in common are not taken apart.
        let clusters =
            if is_partial { clusters(&results) } else { (0..good.len()).map(|n| vec![n]).collect() };
        let wanted = |cluster: &Vec<usize>| -> Wanting {
            let size = cluster.iter().map(|&part| results[part].size()).fold(0, u64::saturating_add);
            (size, cluster.iter().flat_map(|&part| members(good[part].1)).collect())
        };
        let packs = self.model.packs(&clusters.iter().map(wanted).collect::<Vec<_>>());
        let whole = |pack: &Vec<usize>| -> Vec<usize> {
            pack.iter().flat_map(|&number| clusters[number].iter().copied()).collect()
        };
        let packs: Vec<Vec<usize>> = packs.iter().map(whole).collect();
        let objects = &self.producer.group.objects;
        let put = at_once::map(objects.at_once(), &packs, |pack| {
            let parts: Vec<&Made> = pack.iter().map(|&part| results[part]).collect();
            let parts = if is_partial { Stored::together(parts)? } else { Stored::apart(parts) };
            let key = self.key(&parts, good[pack[0]].1);
            let version = match objects.put_version(&key, &parts) {
                // Larger than an object of this store may be: no fault of the others.
                Err(e) if e.kind() == ErrorKind::Unsupported => return Ok(Err(e)),
                // Smaller ones may have room, and be of others: this one is tried again by the next pass.
                Err(e) if has_no_room(&e) => return Ok(Err(e)),
                put => put?,
            };
            let zone_maps = parts.only().and_then(|one| one.zone_maps.as_ref());
            // Before an index names it: who finds the one finds the other.
            let beside = match (version, zone_maps) {
                (Some(version), Some(zone_maps)) => zone_maps.put(&**objects, &key, &version)?,
                _ => 0,
            };
            let places = (0..pack.len()).map(|part| parts.ranges(part).to_vec()).collect::<Vec<_>>();
            Ok(Ok((key, places, parts.size() + beside)))
        })?;
        let lost = || Error::new(ErrorKind::Internal, "a result was not put");
        let failed = |one: &Result<Made>| one.as_ref().err().cloned().unwrap_or_else(lost);
        let mut answers: Vec<Answer> = made.iter().map(|(_, one)| Err(failed(one))).collect();
        for (pack, put) in packs.iter().zip(put) {
            match put {
                Err(e) => pack.iter().for_each(|&part| answers[good[part].0] = Err(e.clone())),
                Ok((key, places, bytes)) => {
                    for (&part, ranges) in pack.iter().zip(places) {
                        let (number, _, one) = good[part];
                        let object = ObjectRef::new(&key, ranges, one);
                        answers[number] = Ok((object, one.told.clone()));
                    }
                    done.objects += 1;
                    done.bytes += bytes;
                }
            }
        }
        Ok(answers)
    }

    /// The key of an object: named by what it holds, so that it can be put again.
    fn key(&self, parts: &Stored<'_>, unit: &Unit) -> String {
        let folder = names::data(&self.producer.name);
        match parts.only() {
            Some(one) => {
                let suffix = unit.format.suffixes().first().copied().unwrap_or("bin");
                let sum = one.checksum.get(..8).unwrap_or(&one.checksum);
                format!("{folder}{}-{sum}.{suffix}", one.id)
            }
            None => format!("{folder}{}.parts", parts.name()),
        }
    }
}

/// Whether it may go better the next time, and says nothing of the question.
fn is_passing(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::Io | ErrorKind::StaleSource | ErrorKind::FileNotFound)
}

/// Whether a store has no room for what was to be put, by the words of the system or the status of a server.
fn has_no_room(e: &Error) -> bool {
    // Not the number of a status alone: names of objects are full of digits.
    const WORDS: [&str; 5] = [
        "No space left on device",
        "Disk quota exceeded",
        "File too large",
        "507 Insufficient Storage",
        "QuotaExceeded",
    ];
    e.kind() == ErrorKind::Io && WORDS.iter().any(|words| e.message().contains(words))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_without_room_is_told_from_one_that_fails() {
        for number in [27, 28, 122] {
            assert!(has_no_room(&Error::io("writing 'x'", &std::io::Error::from_raw_os_error(number))));
        }
        let answers = |said: &str| Error::new(ErrorKind::Io, format!("putting 's3://b/data/507a': {said}"));
        assert!(has_no_room(&answers(
            "the server answers 507 Insufficient Storage; gave up after 4 attempts in 9.0 s"
        )));
        assert!(!has_no_room(&answers(
            "the server answers 503 Service Unavailable; gave up after 4 attempts in 9.0 s"
        )));
        assert!(!has_no_room(&Error::io("writing 'x'", &std::io::Error::from_raw_os_error(5))));
    }
}
