//! What is kept in a group: small objects of JSON, each written by one alone.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sieva::{Error, ErrorKind, Result, printable};
use sieva_store::name_of;
use sieva_store::objects::{Body, Objects};

use crate::made::Made;
use crate::names;
use crate::ranges::Ranges;

/// Of the records; readers refuse others.
pub(crate) const VERSION: u32 = 2;
/// Of an encrypted group: those who know nothing of that refuse it, where they would put records in plain.
pub(crate) const ENCRYPTED: u32 = 3;
/// Of an index with results in several ranges: those who do not know of such refuse it.
pub(crate) const WITH_RANGES: u32 = 3;
/// The longest record that is read or written: the files of a producer, what waits for a member.
const MOST: u64 = 64 << 20;
/// The longest record of a member.
const MOST_OF_MEMBER: u64 = 8 << 20;
/// The longest record of a group.
const MOST_OF_GROUP: u64 = 64 << 10;
/// The most asks of a member.
pub(crate) const MOST_ASKS: usize = 10_000;

/// A record of a kind.
pub(crate) trait Record: Serialize + DeserializeOwned {
    /// How messages call it.
    const WHAT: &'static str;
    /// Its bytes, at most.
    const MOST: u64;
    /// The latest version that is read.
    const LATEST: u32 = VERSION;
    /// What is wrong with it, though it has the right form: others may have written it.
    fn fault(&self) -> Option<String> {
        None
    }
}

macro_rules! record {
    ($type:ty, $what:literal, $most:expr $(, $fault:path)?) => {
        impl $crate::record::Record for $type {
            const WHAT: &'static str = $what;
            const MOST: u64 = $most;
            $(fn fault(&self) -> Option<String> {
                $fault(self)
            })?
        }
    };
}
pub(crate) use record;

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
    /// Of a group whose other objects are encrypted: what tells that a key is the one of the group, and that the rest of this was said
    /// by who has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<String>,
}

impl Record for GroupRecord {
    const WHAT: &'static str = "the group";
    const MOST: u64 = MOST_OF_GROUP;
    const LATEST: u32 = ENCRYPTED;
}

impl GroupRecord {
    /// What [`GroupRecord::encrypted`] is the check of.
    pub fn words(&self) -> String {
        format!("{} {} {:?} {}", self.version, self.created, self.expires, self.strict_code)
    }
}

/// A consumer, with all that it asks for: one object, however much that is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MemberRecord {
    pub version: u32,
    pub joined: u64,
    /// In order of their names.
    pub asks: Vec<Ask>,
}
record!(MemberRecord, "a member", MOST_OF_MEMBER, MemberRecord::fault_of);

impl MemberRecord {
    fn fault_of(&self) -> Option<String> {
        if self.asks.len() > MOST_ASKS {
            return Some(format!("{} asks, of {MOST_ASKS} at most", self.asks.len()));
        }
        let wrong = self.asks.iter().find(|ask| names::check("an ask", &ask.name).is_err());
        if let Some(wrong) = wrong {
            return Some(format!("'{}' is no name of an ask", printable(&wrong.name)));
        }
        let unordered = self.asks.windows(2).find(|two| two[0].name >= two[1].name);
        unordered.map(|two| format!("'{}' after '{}'", two[1].name, two[0].name))
    }

    /// What is asked by a name.
    pub fn ask(&self, name: &str) -> Option<&Ask> {
        let at = self.asks.binary_search_by(|ask| ask.name.as_str().cmp(name)).ok()?;
        self.asks.get(at)
    }

    /// Asks by a name, in place of what was asked by it.
    pub fn set(&mut self, ask: Ask) {
        match self.asks.binary_search_by(|there| there.name.cmp(&ask.name)) {
            Ok(at) => self.asks[at] = ask,
            Err(at) => self.asks.insert(at, ask),
        }
    }
}

/// What a consumer asks for of every step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
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
    /// The members that it put something for: named here before that, so that no listing decides what may be deleted.
    pub given: BTreeSet<String>,
    /// The number of each step, by its id: indexes say by it what was answered. Never given twice.
    pub numbers: BTreeMap<String, u64>,
    /// The next number.
    pub next: u64,
    /// Another one where numbers begin again.
    pub numbering: u64,
    /// Whether no step comes any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over: bool,
}
record!(ProducerRecord, "a producer", MOST);

impl ProducerRecord {
    /// Numbers the steps that there are, and forgets those of the others.
    pub fn number<'s>(&mut self, ids: impl Iterator<Item = &'s str>) {
        let mut numbers = BTreeMap::new();
        for id in ids {
            let number = self.numbers.get(id).copied().unwrap_or_else(|| {
                self.next = self.next.saturating_add(1);
                self.next - 1
            });
            numbers.insert(id.to_owned(), number);
        }
        // None at all is a directory that is not mounted, rather than one without files.
        if !numbers.is_empty() {
            self.numbers = numbers;
        }
    }
}

/// A result in an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRef {
    /// Its key in the group.
    pub key: String,
    /// Where it begins in the object, which may hold others, too.
    #[serde(default)]
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
    /// Of these bytes, XXH3 of 128 bits in 32 hexadecimal digits.
    pub checksum: String,
    /// Rows of the result.
    pub rows: u64,
    /// Where the bytes are, if they are in several ranges of the object: first bytes and lengths, in the order of the file. What
    /// several results have is stored once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<(u64, u64)>,
}

impl ObjectRef {
    /// A result that is in these ranges of an object.
    pub(crate) fn new(key: &str, ranges: Vec<(u64, u64)>, of: &Made) -> Self {
        let (size, checksum, rows) = (of.size(), of.checksum.clone(), of.rows);
        let offset = ranges.first().map_or(0, |(offset, _)| *offset);
        let ranges = if ranges.len() > 1 { ranges } else { Vec::new() };
        Self { key: key.to_owned(), offset, size, checksum, rows, ranges }
    }

    /// Refuses what cannot be: others may have written it.
    ///
    /// # Errors
    /// `corrupt-file`.
    pub(crate) fn check(&self, objects: &dyn Objects) -> Result<()> {
        let is_within =
            |offset: u64, size: u64| offset.checked_add(size).is_some_and(|end| i64::try_from(end).is_ok());
        let (place, size, begin) = (objects.location(&self.key), self.size, self.offset);
        if !is_within(begin, size) || !self.ranges.iter().all(|(offset, len)| is_within(*offset, *len)) {
            let message = format!("{size} bytes of '{place}' from byte {begin} on cannot be");
            return Err(Error::new(ErrorKind::CorruptFile, message));
        }
        let together = self.ranges.iter().map(|(_, len)| *len).fold(0, u64::saturating_add);
        if !self.ranges.is_empty() && together != size {
            let message = format!("ranges of {together} bytes of '{place}' are no file of {size}");
            return Err(Error::new(ErrorKind::CorruptFile, message));
        }
        Ok(())
    }

    /// Fills `out` with its bytes from `at` on; false where there is no such object. It was checked.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) fn read(&self, objects: &dyn Objects, at: u64, out: &mut [u8]) -> Result<bool> {
        if self.ranges.is_empty() {
            return objects.get_range(&self.key, self.offset + at, out);
        }
        let (mut begin, mut done) = (0, 0);
        for &(offset, len) in &self.ranges {
            let (end, from) = (begin + len, at + done as u64);
            if from < end && done < out.len() {
                let n = usize::try_from(end - from).map_or(out.len() - done, |n| n.min(out.len() - done));
                if !objects.get_range(&self.key, offset + (from - begin), &mut out[done..done + n])? {
                    return Ok(false);
                }
                done += n;
            }
            begin = end;
        }
        // An empty one is there, or is not.
        if out.is_empty() { objects.get_range(&self.key, self.offset, out) } else { Ok(true) }
    }
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

impl Entry {
    /// Bytes that it takes in an index.
    pub(crate) fn size(&self) -> Result<usize> {
        serde_json::to_vec(self).map(|bytes| bytes.len() + 1).map_err(unprintable)
    }
}

/// What a producer put for a member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexRecord {
    pub version: u32,
    /// Of the producer's numbers of steps.
    pub numbering: u64,
    /// The last epoch of an ask.
    pub epoch: u64,
    /// What it put for each ask, by the name.
    pub asks: BTreeMap<String, Answers>,
}

impl Record for IndexRecord {
    const WHAT: &'static str = "an index";
    const MOST: u64 = MOST;
    const LATEST: u32 = WITH_RANGES;
    fn fault(&self) -> Option<String> {
        self.fault_of()
    }
}

impl IndexRecord {
    fn fault_of(&self) -> Option<String> {
        let wrong = self.asks.iter().find(|(_, answers)| !answers.served.is_valid());
        wrong.map(|(name, _)| format!("the steps of '{}' are in no order", printable(name)))
    }

    /// The results that it names.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let entries = self.asks.values().flat_map(|answers| &answers.entries);
        entries.filter_map(|e| Some(e.object.as_ref()?.key.as_str()))
    }
}

/// What a producer put for an ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answers {
    /// Another one where serials begin again.
    pub epoch: u64,
    /// What is asked.
    pub ask_id: String,
    /// The serial of the next entry.
    pub next: u64,
    /// Those that were not taken yet.
    pub entries: Vec<Entry>,
    /// The numbers of the steps that were answered, or are not wanted.
    pub served: Ranges,
    /// Whether the last answer took longer than one may.
    #[serde(default)]
    pub slow: bool,
}

impl Answers {
    /// Of a producer's serials the first that was not taken.
    pub fn through(&self, producer: &str, through: &Through) -> u64 {
        match through.get(producer) {
            Some((epoch, through)) if *epoch == self.epoch => *through,
            _ => 0,
        }
    }
}

/// Of each producer the epoch of its answers to an ask, and the first serial that was not taken.
pub(crate) type Through = BTreeMap<String, (u64, u64)>;

/// How far a member has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TakenRecord {
    pub version: u32,
    /// By the names of asks.
    pub asks: BTreeMap<String, Through>,
}
record!(TakenRecord, "what was taken", MOST_OF_MEMBER);

impl TakenRecord {
    /// How far the answers to an ask were taken.
    pub fn through(&self, ask: &str) -> &Through {
        static NONE: Through = BTreeMap::new();
        self.asks.get(ask).unwrap_or(&NONE)
    }
}

/// What every record has, whatever its version.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Reads a record; `None` where there is none.
pub(crate) fn read<R: Record>(objects: &dyn Objects, key: &str) -> Result<Option<R>> {
    let Some(bytes) = objects.get(key, R::MOST)? else { return Ok(None) };
    let place = || objects.location(key);
    let damaged = |what: String| {
        let message = format!("'{}' is damaged: no record of {}: {what}", place(), R::WHAT);
        Error::new(ErrorKind::CorruptFile, message)
    };
    // First: another version may have another form.
    let of: Versioned = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
    if !(VERSION..=R::LATEST).contains(&of.version) {
        let message = format!("'{}' is of version {}, not {VERSION}", place(), of.version);
        let hint = match of.version < VERSION {
            true => {
                "an earlier sieva wrote it: make a group at another place and ask there, \
                     sieva share create PLACE SOURCE"
            }
            false => "it takes a later sieva",
        };
        return Err(Error::new(ErrorKind::Unsupported, message).hint(hint));
    }
    let record: R = serde_json::from_slice(&bytes).map_err(|e| damaged(e.to_string()))?;
    match record.fault() {
        Some(fault) => Err(damaged(fault)),
        None => Ok(Some(record)),
    }
}

/// The bytes of a record.
pub(crate) fn bytes<R: Record>(record: &R) -> Result<Vec<u8>> {
    serde_json::to_vec(record).map_err(unprintable)
}

fn unprintable(e: serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, format!("a record: {e}"))
}

/// Puts a record in place of what is there.
pub(crate) fn write<R: Record>(objects: &dyn Objects, key: &str, record: &R) -> Result<()> {
    let bytes = bytes(record)?;
    if bytes.len() as u64 > R::MOST {
        let (place, size, most) = (objects.location(key), bytes.len(), R::MOST);
        let message = format!("'{place}' would have {size} bytes, and {most} are read at most");
        return Err(Error::new(ErrorKind::InvalidValue, message).hint(
            "ask for less, share fewer files in one group, or have results expire: sieva share create --expires 7d",
        ));
    }
    objects.put(key, &bytes)
}

/// Whether a record is there and cannot be opened: what it says is not known. Of a folder that is shared this is one file with the
/// rights of whom it is of, or something else in its place.
pub(crate) fn cannot_be_opened(e: &Error) -> bool {
    e.kind() == ErrorKind::PermissionDenied || e.message().ends_with("not a regular file")
}

/// Whether a record is wrong, rather than the store.
pub(crate) fn is_of_record(e: &Error) -> bool {
    matches!(e.kind(), ErrorKind::CorruptFile | ErrorKind::LinkRefused | ErrorKind::Unsupported)
}
