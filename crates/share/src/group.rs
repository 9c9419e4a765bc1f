//! A group: where it is, and who belongs to it.

use std::sync::Arc;

use sieva::{Error, ErrorKind, Result};
use sieva_store::objects::{Objects, open_objects};

use crate::clock::now;
use crate::key::GroupKey;
use crate::names;
use crate::record::{self, ENCRYPTED, GroupRecord, IndexRecord, ProducerRecord, TakenRecord, VERSION};
use crate::sealed::Sealed;

/// The longest schema that is read.
const MOST_SCHEMA: u64 = 256 << 20;

/// How a group is made.
#[derive(Clone, Debug, Default)]
pub struct GroupOptions {
    /// Seconds after which results are deleted that nobody took; `None`: never.
    pub expires: Option<u64>,
    /// Whether code that fails is an error; else its consumer gets the data that it was asked of, and is told.
    pub strict_code: bool,
    /// Encrypts all that is put, but for the names of objects.
    pub key: Option<GroupKey>,
}

/// This key, or the one of the environment.
fn given(key: Option<&GroupKey>) -> Result<Option<GroupKey>> {
    key.map_or_else(GroupKey::of_environment, |key| Ok(Some(key.clone())))
}

/// A group in a store. Cheap to clone.
#[derive(Clone)]
pub struct Group {
    pub(crate) objects: Arc<dyn Objects>,
    pub(crate) expires: Option<u64>,
    pub(crate) strict_code: bool,
    is_encrypted: bool,
}

impl std::fmt::Debug for Group {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Group({})", self.objects.name())
    }
}

impl Group {
    /// Makes a group at a path or an address; one that is there already is taken as it is. Without a key among the options the
    /// environment may have one: `SIEVA_SHARE_KEY`.
    ///
    /// # Errors
    /// `invalid-value` for a group with other options, or another key; `permission-denied` for an encrypted one without a key;
    /// those of the key and of the store.
    pub fn create(place: &str, options: &GroupOptions) -> Result<Self> {
        let objects = open_objects(place)?;
        let options = GroupOptions { key: given(options.key.as_ref())?, ..options.clone() };
        Self::create_in(objects, &options)
    }

    /// The same in a store that is open, by the key of the options alone.
    ///
    /// # Errors
    /// As [`Group::create`].
    pub fn create_in(objects: Arc<dyn Objects>, options: &GroupOptions) -> Result<Self> {
        let key = options.key.as_ref();
        let mut new = GroupRecord {
            version: if key.is_some() { ENCRYPTED } else { VERSION },
            created: now(),
            expires: options.expires,
            strict_code: options.strict_code,
            encrypted: None,
        };
        new.encrypted = key.map(|key| key.check(&new.words()));
        if !objects.create(names::GROUP, &record::bytes(&new)?)? {
            let there = Self::open_in(objects, key)?;
            let seconds = |e: Option<u64>| e.map_or("never".to_owned(), |s| format!("after {s} seconds"));
            if there.expires != options.expires {
                return Err(there.differs(
                    "its results expire",
                    &seconds(there.expires),
                    &seconds(options.expires),
                ));
            }
            let code =
                |strict: bool| if strict { "an error" } else { "answered by the data that it was asked of" };
            if there.strict_code != options.strict_code {
                let (is, asked) = (code(there.strict_code), code(options.strict_code));
                return Err(there.differs("code that fails is", is, asked));
            }
            return Ok(there);
        }
        Ok(Self::of(objects, &new, key))
    }

    /// The error for a group that is there and is not as it was asked for.
    fn differs(&self, what: &str, is: &str, asked: &str) -> Error {
        let message = format!("the group at '{}' is there, and {what} {is}, not {asked}", self.name());
        Error::new(ErrorKind::InvalidValue, message).hint("make one at another place")
    }

    /// The group at a path or an address, by this key, or the one of the environment (`SIEVA_SHARE_KEY`), if it is encrypted.
    ///
    /// # Errors
    /// `file-not-found` where there is none; `permission-denied` for an encrypted one without a key, `invalid-value` for another
    /// key, and for a key of a group that is not encrypted.
    pub fn open(place: &str, key: Option<&GroupKey>) -> Result<Self> {
        let objects = open_objects(place)?;
        Self::open_in(objects, given(key)?.as_ref())
    }

    /// The same in a store that is open, by this key alone.
    ///
    /// # Errors
    /// As [`Group::open`].
    pub fn open_in(objects: Arc<dyn Objects>, key: Option<&GroupKey>) -> Result<Self> {
        let Some(group) = record::read::<GroupRecord>(&*objects, names::GROUP)? else {
            let message = format!("there is no group at '{}'", objects.name());
            return Err(Error::new(ErrorKind::FileNotFound, message)
                .hint("its producer makes it: sieva share create PLACE SOURCE"));
        };
        let place = objects.name();
        match (key, &group.encrypted) {
            (None, None) => {}
            (Some(key), Some(check)) if key.is_checked(&group.words(), check) => {}
            (Some(_), Some(_)) => {
                let message = format!(
                    "the key is not the one of the group at '{place}', or the group's record was changed"
                );
                return Err(Error::new(ErrorKind::InvalidValue, message)
                    .hint("ask who made the group for its key: nothing was read or written"));
            }
            (None, Some(_)) => {
                let message = format!("the group at '{place}' is encrypted");
                return Err(Error::new(ErrorKind::PermissionDenied, message)
                    .hint("say where its key is: --key FILE, or SIEVA_SHARE_KEY"));
            }
            // Whoever has a key expects that nobody else reads what is put.
            (Some(_), None) => {
                let message = format!("the group at '{place}' is not encrypted, and a key is given");
                return Err(Error::new(ErrorKind::InvalidValue, message).hint(
                    "leave --key out and unset SIEVA_SHARE_KEY, if everybody may read what is put there",
                ));
            }
        }
        Ok(Self::of(objects, &group, key))
    }

    fn of(objects: Arc<dyn Objects>, record: &GroupRecord, key: Option<&GroupKey>) -> Self {
        let objects: Arc<dyn Objects> = match key {
            Some(key) => Arc::new(Sealed::new(objects, key.clone())),
            None => objects,
        };
        let is_encrypted = key.is_some();
        Self { objects, expires: record.expires, strict_code: record.strict_code, is_encrypted }
    }

    /// Bytes from which on what is put carries zone maps: in an encrypted group nothing does, as nobody can query an object there
    /// where it is.
    pub(crate) fn zone_maps_from(&self, from: Option<u64>) -> Option<u64> {
        from.filter(|_| !self.is_encrypted)
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
