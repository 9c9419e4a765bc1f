//! A group: where it is, and who belongs to it.

use std::sync::Arc;

use sieva::{Error, ErrorKind, Result};
use sieva_store::objects::{Objects, open_objects};

use crate::clock::now;
use crate::names;
use crate::record::{self, GroupRecord, IndexRecord, ProducerRecord, TakenRecord, VERSION};

/// The longest schema that is read.
const MOST_SCHEMA: u64 = 256 << 20;

/// How a group is made.
#[derive(Clone, Debug, Default)]
pub struct GroupOptions {
    /// Seconds after which results are deleted that nobody took; `None`: never.
    pub expires: Option<u64>,
    /// Whether code that fails is an error; else its consumer gets the data that it was asked of, and is told.
    pub strict_code: bool,
}

/// A group in a store. Cheap to clone.
#[derive(Clone)]
pub struct Group {
    pub(crate) objects: Arc<dyn Objects>,
    pub(crate) expires: Option<u64>,
    pub(crate) strict_code: bool,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Group({})", self.objects.name())
    }
}

impl Group {
    /// Makes a group at a path or an address; one that is there already is taken as it is.
    ///
    /// # Errors
    /// `invalid-value` for a group with other options; those of the store.
    pub fn create(place: &str, options: &GroupOptions) -> Result<Self> {
        Self::create_in(open_objects(place)?, options)
    }

    /// The same in a store that is open.
    ///
    /// # Errors
    /// As [`Group::create`].
    pub fn create_in(objects: Arc<dyn Objects>, options: &GroupOptions) -> Result<Self> {
        let new = GroupRecord {
            version: VERSION,
            created: now(),
            expires: options.expires,
            strict_code: options.strict_code,
        };
        if !objects.create(names::GROUP, &record::bytes(&new)?)? {
            let there = Self::open_in(objects)?;
            if there.expires != options.expires {
                let words = |e: Option<u64>| e.map_or("never".to_owned(), |s| format!("after {s} seconds"));
                let message = format!(
                    "the group at '{}' is there, and its results expire {}, not {}",
                    there.name(),
                    words(there.expires),
                    words(options.expires)
                );
                return Err(Error::new(ErrorKind::InvalidValue, message).hint("make one at another place"));
            }
            if there.strict_code != options.strict_code {
                let words = |strict: bool| {
                    if strict { "an error" } else { "answered by the data that it was asked of" }
                };
                let message = format!(
                    "the group at '{}' is there, and code that fails is {}, not {}",
                    there.name(),
                    words(there.strict_code),
                    words(options.strict_code)
                );
                return Err(Error::new(ErrorKind::InvalidValue, message).hint("make one at another place"));
            }
            return Ok(there);
        }
        Ok(Self { objects, expires: options.expires, strict_code: options.strict_code })
    }

    /// The group at a path or an address.
    ///
    /// # Errors
    /// `file-not-found` where there is none.
    pub fn open(place: &str) -> Result<Self> {
        Self::open_in(open_objects(place)?)
    }

    /// The same in a store that is open.
    ///
    /// # Errors
    /// As [`Group::open`].
    pub fn open_in(objects: Arc<dyn Objects>) -> Result<Self> {
        let Some(group) = record::read::<GroupRecord>(&*objects, names::GROUP)? else {
            let message = format!("there is no group at '{}'", objects.name());
            return Err(Error::new(ErrorKind::FileNotFound, message)
                .hint("its producer makes it: sieva share create PLACE SOURCE"));
        };
        Ok(Self { objects, expires: group.expires, strict_code: group.strict_code })
    }

    /// How messages name the place.
    pub fn name(&self) -> String {
        self.objects.name()
    }

    /// The store that it is in.
    pub fn objects(&self) -> &Arc<dyn Objects> {
        &self.objects
    }

    /// What a producer's newest step holds, in the JSON of [`sieva::Source::schema_json`]; `None` before its first pass.
    ///
    /// # Errors
    /// `invalid-value` for what is no name; those of the store.
    pub fn schema(&self, producer: &str) -> Result<Option<String>> {
        names::check("a producer", producer)?;
        let bytes = self.objects.get(&names::schema(producer), MOST_SCHEMA)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The members, in order of their names.
    ///
    /// # Errors
    /// Those of the store.
    pub fn members(&self) -> Result<Vec<String>> {
        self.named(names::MEMBERS)
    }

    /// The producers, in order of their names.
    ///
    /// # Errors
    /// Those of the store.
    pub fn producers(&self) -> Result<Vec<String>> {
        self.named(names::PRODUCERS)
    }

    fn named(&self, prefix: &str) -> Result<Vec<String>> {
        let listed = self.objects.list(prefix)?;
        Ok(listed.iter().filter_map(|e| names::of_key(&e.key, prefix)).map(str::to_owned).collect())
    }

    pub(crate) fn producer(&self, name: &str) -> Result<Option<ProducerRecord>> {
        record::read(&*self.objects, &names::producer(name))
    }

    pub(crate) fn index(&self, user: &str, producer: &str) -> Result<Option<IndexRecord>> {
        record::read(&*self.objects, &names::index(user, producer))
    }

    pub(crate) fn taken(&self, user: &str) -> Result<TakenRecord> {
        let none = TakenRecord { version: VERSION, ..TakenRecord::default() };
        Ok(record::read(&*self.objects, &names::taken(user))?.unwrap_or(none))
    }
}
