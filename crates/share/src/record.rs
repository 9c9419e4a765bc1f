//! What is kept in a group: small objects of JSON, each written by one alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sieva::{Error, ErrorKind, Result};
use sieva_store::name_of;
use sieva_store::objects::Objects;

/// Of the records; readers refuse those of later ones.
pub(crate) const VERSION: u32 = 1;
/// The longest record that is read or written: the files of a producer, what waits for an ask.
const MOST: u64 = 64 << 20;
/// The longest record of a user.
const MOST_OF_USER: u64 = 256 << 10;

/// A record of a kind.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// How messages call it.
    const WHAT: &'static str;
    /// Its bytes, at most.
    const MOST: u64;
    /// The version that it was written with.
    fn version(&self) -> u32;
}

macro_rules! record {
    ($type:ty, $what:literal, $most:expr) => {
        impl Record for $type {
            const WHAT: &'static str = $what;
            const MOST: u64 = $most;
            fn version(&self) -> u32 {
                self.version
            }
        }
    };
}

/// The group itself, which never changes: the root of the index (the super file of Scibox, Figure 3).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct GroupRecord {
    pub version: u32,
    pub created: u64,
    /// Seconds after which results are deleted that nobody took; none: never.
    pub expires: Option<u64>,
    /// Whether code that fails is an error, rather than the data that it was asked of.
    #[serde(default)]
    pub strict_code: bool,
}
record!(GroupRecord, "the group", MOST_OF_USER);

/// A consumer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MemberRecord {
    pub version: u32,
    pub joined: u64,
}
record!(MemberRecord, "a member", MOST_OF_USER);

/// What a consumer asks for of every step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    /// Of the record.
    pub(crate) version: u32,
    /// Its name among those of the user.
    pub name: String,
    /// The question: a SELECT without FROM.
    pub sql: String,
    /// The format of the results.
    pub format: String,
    /// Whether only steps count that the producer did not have yet when it saw this.
    pub only_new: bool,
    /// Code that the result is handed to: text of C, or a module as `wasm:` and base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Milliseconds since 1970.
    pub asked: u64,
}
record!(Ask, "an ask", MOST_OF_USER);

impl Ask {
    /// This ask, in a word of 32 hexadecimal digits: what was withdrawn and is asked again is another one.
    pub fn id(&self) -> String {
        let plain = format!("{}\0{}\0{}\0{}", self.sql, self.format, self.only_new, self.asked);
        // Without code as it was before there was any.
        let code = self.code.as_ref().map_or(String::new(), |code| format!("\0{code}"));
        name_of((plain + &code).as_bytes())
    }

    /// Whether the same is asked, whenever that was.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.sql, &self.format, self.only_new, &self.code)
            == (&other.sql, &other.format, other.only_new, &other.code)
    }
}

/// A file, or a state of one, of which everything that is asked for is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The file's name.
    pub name: String,
    /// Which state of it: a file that was changed is another step.
    pub id: String,
    /// Its bytes.
    pub size: u64,
}

/// A producer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProducerRecord {
    pub version: u32,
    /// Paths, directories and patterns, where it is.
    pub sources: Vec<String>,
    /// The steps that it has.
    pub steps: Vec<Step>,
    /// The step that its schema was taken of.
    pub described: Option<String>,
    /// Whom it put something for, users and names of asks: named here before that, so that no listing decides what may be
    /// deleted.
    pub given: BTreeSet<(String, String)>,
}
record!(ProducerRecord, "a producer", MOST);

/// An object with a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Its key in the group.
    pub key: String,
    /// Its bytes.
    pub size: u64,
    /// Of all bytes, XXH3 of 128 bits in 32 hexadecimal digits.
    pub checksum: String,
    /// Rows of the result.
    pub rows: u64,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The code of the error.
    pub code: String,
    /// What it says.
    pub message: String,
}

/// What a producer has for an ask: the result of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// In the order in which they were put, from 0.
    pub serial: u64,
    /// Of which step.
    pub step: Step,
    /// The format of the result.
    pub format: String,
    /// Seconds since 1970.
    pub made: u64,
    /// The result.
    pub object: Option<ObjectRef>,
    /// Why there is none; or with one why it is the data of an ask, and not what its code makes of them.
    pub failure: Option<Failure>,
}

/// What a producer put for an ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexRecord {
    pub version: u32,
    /// Another one where serials begin again.
    pub epoch: u64,
    /// What is asked.
    pub ask_id: String,
    /// The serial of the next entry.
    pub next: u64,
    /// Those that were not taken yet.
    pub entries: Vec<Entry>,
    /// The steps that were answered, or are not wanted; of those that the producer has.
    pub served: BTreeSet<String>,
}
record!(IndexRecord, "an index", MOST);

impl IndexRecord {
    /// Of a producer's serials the first that was not taken.
    pub fn through(&self, producer: &str, through: &BTreeMap<String, (u64, u64)>) -> u64 {
        match through.get(producer) {
            Some((epoch, through)) if *epoch == self.epoch => *through,
            _ => 0,
        }
    }
}

/// How far the answers to an ask were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakenRecord {
    pub version: u32,
    /// Of each producer the epoch of its index, and the first serial that was not taken.
    pub through: BTreeMap<String, (u64, u64)>,
}
record!(TakenRecord, "what was taken", MOST_OF_USER);

/// Reads a record; `None` where there is none.
pub(crate) fn read<R: Record>(objects: &dyn Objects, key: &str) -> Result<Option<R>> {
    let Some(bytes) = objects.get(key, R::MOST)? else { return Ok(None) };
    let place = || objects.location(key);
    let record: R = serde_json::from_slice(&bytes).map_err(|e| {
        let message = format!("'{}' is damaged: no record of {}: {e}", place(), R::WHAT);
        Error::new(ErrorKind::CorruptFile, message)
    })?;
    if record.version() != VERSION {
        let message = format!("'{}' is of version {}, not {VERSION}", place(), record.version());
        return Err(Error::new(ErrorKind::Unsupported, message).hint("it takes a later sieva"));
    }
    Ok(Some(record))
}

/// The bytes of a record.
pub(crate) fn bytes<R: Record>(record: &R) -> Result<Vec<u8>> {
    let failed = |e: serde_json::Error| Error::new(ErrorKind::Internal, format!("a record: {e}"));
    serde_json::to_vec(record).map_err(failed)
}

/// Puts a record in place of what is there.
pub(crate) fn write<R: Record>(objects: &dyn Objects, key: &str, record: &R) -> Result<()> {
    let bytes = bytes(record)?;
    if bytes.len() as u64 > R::MOST {
        let (place, size, most) = (objects.location(key), bytes.len(), R::MOST);
        let message = format!("'{place}' would have {size} bytes, and {most} are read at most");
        return Err(Error::new(ErrorKind::InvalidValue, message).hint(
            "share fewer files in one group, or have results expire: sieva share create --expires 7d",
        ));
    }
    objects.put(key, &bytes)
}

/// Whether a record is wrong, rather than the store.
pub(crate) fn is_of_record(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::CorruptFile | ErrorKind::LinkRefused | ErrorKind::Unsupported)
}
