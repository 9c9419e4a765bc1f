//! What there is in a group, for people.

use serde::Serialize;
use sieva::Result;

use crate::collect::Numbers;
use crate::group::Group;
use crate::published::Published;
use crate::record::{Ask, Entry, Step, cannot_be_opened, is_of_record};
use crate::zones;

/// A group.
#[derive(Clone, Debug, Serialize)]
pub struct GroupStatus {
    /// Its producers.
    pub producers: Vec<ProducerStatus>,
    /// What its members ask for, in order of users and names.
    pub asks: Vec<AskStatus>,
    /// Members who ask for nothing.
    pub silent: Vec<String>,
    /// What is published.
    pub published: Vec<Published>,
    /// What is wrong with records of producers, members and of what is published.
    pub wrong: Vec<String>,
    /// Objects with results, and their bytes, with those of zone maps beside them.
    pub objects: (u64, u64),
}

/// A producer.
#[derive(Clone, Debug, Serialize)]
pub struct ProducerStatus {
    /// Its name.
    pub name: String,
    /// What it shares.
    pub sources: Vec<String>,
    /// The steps that it has.
    pub steps: Vec<Step>,
}

/// An ask.
#[derive(Clone, Debug, Serialize)]
pub struct AskStatus {
    /// Who asks.
    pub user: String,
    /// What.
    pub ask: Ask,
    /// Steps that were answered.
    pub answered: u64,
    /// Answers that were not taken yet, with the errors among them.
    pub waiting: Vec<Entry>,
}

impl Group {
    /// What there is in the group now.
    ///
    /// # Errors
    /// Those of the store.
    pub fn status(&self) -> Result<GroupStatus> {
        let mut status = GroupStatus {
            producers: Vec::new(),
            asks: Vec::new(),
            silent: Vec::new(),
            published: Vec::new(),
            wrong: Vec::new(),
            objects: (0, 0),
        };
        let mut producers = Vec::new();
        for name in self.producers()? {
            match self.producer(&name) {
                Err(e) if is_of_record(&e) => status.wrong.push(e.to_string()),
                record => {
                    let Some(record) = record? else { continue };
                    let ready =
                        record.steps.iter().filter_map(|s| record.numbers.get(&s.id).copied()).collect();
                    producers.push((name.clone(), Numbers { numbering: record.numbering, ready }));
                    let (sources, steps) = (record.sources, record.steps);
                    status.producers.push(ProducerStatus { name, sources, steps });
                }
            }
        }
        for user in self.members()? {
            match self.member_status(&user, &producers) {
                Err(e) if is_of_record(&e) || cannot_be_opened(&e) => status.wrong.push(e.to_string()),
                asks => match asks? {
                    asks if asks.is_empty() => status.silent.push(user),
                    asks => status.asks.extend(asks),
                },
            }
        }
        let (published, wrong) = self.published()?;
        status.published = published;
        status.wrong.extend(wrong.iter().map(ToString::to_string));
        for entry in self.objects().list("data/")? {
            status.objects.0 += u64::from(!zones::is_beside(&entry.key));
            status.objects.1 += entry.size;
        }
        Ok(status)
    }

    fn member_status(&self, user: &str, producers: &[(String, Numbers)]) -> Result<Vec<AskStatus>> {
        let asks = self.asks(user)?;
        let taken = self.taken(user)?;
        let mut found: Vec<AskStatus> = asks
            .into_iter()
            .map(|ask| AskStatus { user: user.to_owned(), ask, answered: 0, waiting: Vec::new() })
            .collect();
        for (producer, numbers) in producers {
            let Some(mut index) = self.index(user, producer)? else { continue };
            for status in &mut found {
                let answers = index.asks.remove(&status.ask.name);
                let Some(answers) = answers.filter(|a| a.ask_id == status.ask.id()) else { continue };
                let is_served =
                    |step: &&u64| index.numbering == numbers.numbering && answers.served.contains(**step);
                status.answered += numbers.ready.iter().filter(is_served).count() as u64;
                let through = answers.through(producer, taken.through(&status.ask.name));
                status.waiting.extend(answers.entries.into_iter().filter(|e| e.serial >= through));
            }
        }
        Ok(found)
    }
}
