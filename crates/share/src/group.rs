//! A group: who belongs to it, and what each asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use sieva::{Error, ErrorKind, Result, printable};
use sieva_encode::Format;
use sieva_store::objects::{Objects, open_objects};

use crate::at_once;
use crate::clock::{millis, now};
use crate::code;
use crate::names;
use crate::record::{
    self, Ask, GroupRecord, IndexRecord, MemberRecord, ProducerRecord, TakenRecord, VERSION,
};

/// The longest text of a question.
const MOST_TEXT: usize = 1 << 16;
/// The longest schema that is read.
const MOST_SCHEMA: u64 = 256 << 20;
/// Formats in which a group keeps results: those that are the same bytes for everybody.
const FORMATS: [&str; 6] = ["netcdf", "hdf5", "arrow", "parquet", "csv", "json"];

/// How a group is made.
#[derive(Clone, Debug, Default)]
pub struct GroupOptions {
    /// Seconds after which results are deleted that nobody took; `None`: never.
    pub expires: Option<u64>,
    /// Whether code that fails is an error; else its consumer gets the data that it was asked of, and is told.
    pub strict_code: bool,
}

/// What a user asks for.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// A SELECT without FROM: the producer's steps are what it is asked of.
    pub sql: &'a str,
    /// The format of the results; `""`: netCDF.
    pub format: &'a str,
    /// Whether only steps count that the producer did not have yet.
    pub only_new: bool,
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

    /// Makes a user a member; one who is stays. Who asks for something becomes one.
    ///
    /// # Errors
    /// `invalid-value` for what is no name.
    pub fn join(&self, user: &str) -> Result<()> {
        names::check("a user", user)?;
        let new = MemberRecord { version: VERSION, joined: now() };
        self.objects.create(&names::member(user), &record::bytes(&new)?).map(drop)
    }

    /// Ends a membership: what was put for the user is deleted by the producers' next passes.
    ///
    /// # Errors
    /// `file-not-found` for who is no member.
    pub fn leave(&self, user: &str) -> Result<()> {
        self.check_member(user)?;
        // Membership first: whoever looks in between finds asks of nobody, and makes nothing for them.
        self.objects.delete(&names::member(user))?;
        let mut names: BTreeSet<String> = self.ask_names(user)?.into_iter().collect();
        // A listing may be late: producers know what they answered.
        for producer in self.producers()? {
            let given = self.producer(&producer)?.map(|record| record.given).unwrap_or_default();
            names.extend(given.into_iter().filter(|(of, _)| of == user).map(|(_, ask)| ask));
        }
        names.iter().try_for_each(|name| self.objects.delete(&names::ask(user, name)))
    }

    /// Asks for something of every step, in place of what was asked by that name. A new question is answered of all steps that the
    /// producers have, unless it says otherwise; the same question again changes nothing.
    ///
    /// # Errors
    /// `invalid-value` for what is no name, a format that a group has not; `syntax-error`, also for one with FROM.
    pub fn ask(&self, user: &str, name: &str, asking: &Asking<'_>) -> Result<Ask> {
        self.ask_kept(user, name, asking, None)
    }

    /// The same with code that the result of the SELECT is handed to: a file of the C subset, or a WebAssembly module.
    ///
    /// # Errors
    /// As [`Group::ask`]; those of code that is none.
    pub fn ask_code(&self, user: &str, name: &str, asking: &Asking<'_>, code: &[u8]) -> Result<Ask> {
        self.ask_kept(user, name, asking, Some(code::kept(code)?))
    }

    pub(crate) fn ask_kept(
        &self,
        user: &str,
        name: &str,
        asking: &Asking<'_>,
        code: Option<String>,
    ) -> Result<Ask> {
        names::check("a user", user)?;
        names::check("an ask", name)?;
        let ask = Ask {
            version: VERSION,
            name: name.to_owned(),
            sql: checked(asking.sql)?,
            format: format_name(asking.format)?,
            only_new: asking.only_new,
            code,
            asked: millis(),
        };
        let there = match self.asked(user, name) {
            // A damaged one is replaced.
            Err(e) if e.kind() == ErrorKind::CorruptFile => None,
            there => there?,
        };
        if let Some(there) = there.filter(|there| there.is_same(&ask)) {
            self.join(user)?;
            return Ok(there);
        }
        // The ask first: a producer that looks in between finds one of nobody.
        record::write(&*self.objects, &names::ask(user, name), &ask)?;
        self.join(user)?;
        Ok(ask)
    }

    /// Asks for something no longer.
    ///
    /// # Errors
    /// `file-not-found` where it was not asked for.
    pub fn withdraw(&self, user: &str, name: &str) -> Result<()> {
        names::check("an ask", name)?;
        self.check_member(user)?;
        match self.expect_asked(user, name) {
            // A damaged one can be deleted all the same.
            Err(e) if e.kind() != ErrorKind::CorruptFile => return Err(e),
            _ => {}
        }
        self.objects.delete(&names::ask(user, name))
    }

    /// What a user asks for, in order of the names.
    ///
    /// # Errors
    /// Those of the store; `corrupt-file`.
    pub fn asks(&self, user: &str) -> Result<Vec<Ask>> {
        names::check("a user", user)?;
        let names = self.ask_names(user)?;
        let asks = at_once::map(self.objects.at_once(), &names, |name| self.asked(user, name))?;
        Ok(asks.into_iter().flatten().collect())
    }

    /// The names of what a user asks for, as far as they are listed.
    pub(crate) fn ask_names(&self, user: &str) -> Result<Vec<String>> {
        self.named(&names::asks(user))
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

    /// One ask, as it is now.
    pub(crate) fn asked(&self, user: &str, name: &str) -> Result<Option<Ask>> {
        let ask = record::read::<Ask>(&*self.objects, &names::ask(user, name))?;
        Ok(ask.filter(|ask| ask.name == name))
    }

    /// One ask, which has to be there.
    pub(crate) fn expect_asked(&self, user: &str, name: &str) -> Result<Ask> {
        if let Some(ask) = self.asked(user, name)? {
            return Ok(ask);
        }
        let known: Vec<String> = self.asks(user)?.into_iter().map(|a| a.name).collect();
        let message = format!("{user} asks for nothing by the name '{}'", printable(name));
        let hint = match &known[..] {
            [] => "ask first: sieva share ask PLACE NAME SQL".to_owned(),
            known => format!("there is {}", known.join(", ")),
        };
        Err(Error::new(ErrorKind::FileNotFound, message).hint(hint))
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

    pub(crate) fn is_member(&self, user: &str) -> Result<bool> {
        Ok(record::read::<MemberRecord>(&*self.objects, &names::member(user))?.is_some())
    }

    pub(crate) fn producer(&self, name: &str) -> Result<Option<ProducerRecord>> {
        record::read(&*self.objects, &names::producer(name))
    }

    pub(crate) fn index(&self, user: &str, ask: &str, producer: &str) -> Result<Option<IndexRecord>> {
        record::read(&*self.objects, &names::index(user, ask, producer))
    }

    pub(crate) fn taken(&self, user: &str, ask: &str) -> Result<TakenRecord> {
        let none = TakenRecord { version: VERSION, ..TakenRecord::default() };
        Ok(record::read(&*self.objects, &names::taken(user, ask))?.unwrap_or(none))
    }

    pub(crate) fn check_member(&self, user: &str) -> Result<()> {
        names::check("a user", user)?;
        if self.is_member(user)? {
            return Ok(());
        }
        let message = format!("'{user}' is no member of the group at '{}'", self.name());
        Err(Error::new(ErrorKind::FileNotFound, message).hint("join it first: sieva share join PLACE"))
    }
}

/// Refuses an ask that no [`Group::ask`] made.
pub(crate) fn check_ask(ask: &Ask) -> Result<()> {
    checked(&ask.sql)?;
    format_name(&ask.format).map(drop)
}

/// A question, if it can be one of a group.
pub(crate) fn checked(sql: &str) -> Result<String> {
    let sql = sql.trim();
    if sql.len() > MOST_TEXT {
        let message = format!("a question of {} bytes: at most {MOST_TEXT}", sql.len());
        return Err(Error::new(ErrorKind::InvalidValue, message));
    }
    let select = sieva::parse::parse_select(sql)?;
    if let Some(from) = select.from.as_ref().or(select.collection.as_ref()) {
        let message = format!("FROM '{}' in a question to a group", printable(from));
        return Err(Error::new(ErrorKind::Syntax, message)
            .hint("leave FROM out: it is asked of each step of the group"));
    }
    Ok(sql.to_owned())
}

/// The name of a format in which results are kept.
fn format_name(format: &str) -> Result<String> {
    if format.is_empty() {
        return Ok(FORMATS[0].to_owned());
    }
    let name = Format::of_name_or_suffix(format).map(Format::name).ok();
    match name.filter(|name| FORMATS.contains(name)) {
        Some(name) => Ok(name.to_owned()),
        None => {
            let message = format!("'{}' is no format of results in a group", printable(format));
            Err(Error::new(ErrorKind::InvalidValue, message).hint(format!("take {}", FORMATS.join(", "))))
        }
    }
}
