//! What there is in a group, for people.

use serde::Serialize;
use sieva::Result;

use crate::group::Group;
use crate::record::{Ask, Entry, Step, is_of_record};

/// A group.
#[derive(Clone, Debug, Serialize)]
pub struct GroupStatus {
    /// Its producers.
    pub producers: Vec<ProducerStatus>,
    /// What its members ask for, in order of users and names.
    pub asks: Vec<AskStatus>,
    /// Members who ask for nothing.
    pub silent: Vec<String>,
    /// What is wrong with records of producers and members.
    pub wrong: Vec<String>,
    /// Objects with results, and their bytes.
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
            wrong: Vec::new(),
            objects: (0, 0),
        };
        for name in self.producers()? {
            match self.producer(&name) {
                Err(e) if is_of_record(&e) => status.wrong.push(e.to_string()),
                record => status.producers.extend(record?.map(|record| {
                    let (sources, steps) = (record.sources, record.steps);
                    ProducerStatus { name, sources, steps }
                })),
            }
        }
        for user in self.members()? {
            let names = self.ask_names(&user)?;
            for name in &names {
                let one = self.asked(&user, name).and_then(|ask| {
                    ask.map(|ask| self.ask_status(&user, ask, &status.producers)).transpose()
                });
                match one {
                    Err(e) if is_of_record(&e) => status.wrong.push(e.to_string()),
                    one => status.asks.extend(one?),
                }
            }
            if names.is_empty() {
                status.silent.push(user);
            }
        }
        for entry in self.objects().list("data/")? {
            status.objects.0 += 1;
            status.objects.1 += entry.size;
        }
        Ok(status)
    }

    fn ask_status(&self, user: &str, ask: Ask, producers: &[ProducerStatus]) -> Result<AskStatus> {
        let taken = self.taken(user, &ask.name)?;
        let (mut answered, mut waiting) = (0, Vec::new());
        for producer in producers {
            let index = self.index(user, &ask.name, &producer.name)?;
            let Some(index) = index.filter(|index| index.ask_id == ask.id()) else { continue };
            answered += index.served.len() as u64;
            let through = index.through(&producer.name, &taken.through);
            waiting.extend(index.entries.into_iter().filter(|e| e.serial >= through));
        }
        Ok(AskStatus { user: user.to_owned(), ask, answered, waiting })
    }
}
