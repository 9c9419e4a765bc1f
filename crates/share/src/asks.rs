//! The consumers' side: members, and what each asks for.
//!
//! A member's record is read, changed and put by one process at a time of a machine. Members are read by producers alone
//! otherwise, so that nothing else has to be locked.

use sieva::{Error, ErrorKind, Result, printable};
use sieva_encode::Format;

use crate::clock::{millis, now};
use crate::code;
use crate::group::Group;
use crate::lock::{self, Lock};
use crate::names;
use crate::record::{self, Ask, MOST_ASKS, MemberRecord, VERSION};

/// The longest text of a question.
const MOST_TEXT: usize = 1 << 16;
/// Formats in which a group keeps results: those that are the same bytes for everybody.
const FORMATS: [&str; 6] = ["netcdf", "hdf5", "arrow", "parquet", "csv", "json"];

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

impl Group {
    /// Makes a user a member; one who is stays. Who asks for something becomes one.
    ///
    /// # Errors
    /// `invalid-value` for what is no name.
    pub fn join(&self, user: &str) -> Result<()> {
        names::check("a user", user)?;
        let _alone = self.lock_member(user)?;
        if self.member(user)?.is_some() {
            return Ok(());
        }
        record::write(&*self.objects, &names::member(user), &new_member())
    }

    /// Ends a membership: what was asked is withdrawn, what was put for the user is deleted by the producers' next passes.
    ///
    /// # Errors
    /// `file-not-found` for who is no member.
    pub fn leave(&self, user: &str) -> Result<()> {
        names::check("a user", user)?;
        let _alone = self.lock_member(user)?;
        match self.expect_member(user) {
            // A wrong record can be deleted all the same.
            Err(e) if !record::is_of_record(&e) => return Err(e),
            _ => {}
        }
        self.objects.delete(&names::member(user))
    }

    /// Asks for something of every step, in place of what was asked by that name. A new question is answered of all steps that the
    /// producers have, unless it says otherwise; the same question again changes nothing.
    ///
    /// # Errors
    /// `invalid-value` for what is no name, a format that a group has not; `syntax-error`, also for one with FROM.
    pub fn ask(&self, user: &str, name: &str, asking: &Asking<'_>) -> Result<Ask> {
        one(self.ask_kept(user, vec![(name, *asking, None)])?)
    }

    /// The same with code that the result of the SELECT is handed to: a file of the C subset, or a WebAssembly module.
    ///
    /// # Errors
    /// As [`Group::ask`]; those of code that is none.
    pub fn ask_code(&self, user: &str, name: &str, asking: &Asking<'_>, code: &[u8]) -> Result<Ask> {
        one(self.ask_kept(user, vec![(name, *asking, Some(code::kept(code)?))])?)
    }

    /// Asks for many things at once, each by a name, as [`Group::ask`] does: all of them or none, by one put.
    ///
    /// # Errors
    /// As [`Group::ask`]; `invalid-value` for one name twice, and more than a member may ask for.
    pub fn ask_many(&self, user: &str, askings: &[(&str, Asking<'_>)]) -> Result<Vec<Ask>> {
        self.ask_kept(user, askings.iter().map(|&(name, asking)| (name, asking, None)).collect())
    }

    /// The same with code as [`code::kept`] has it.
    pub(crate) fn ask_kept(
        &self,
        user: &str,
        askings: Vec<(&str, Asking<'_>, Option<String>)>,
    ) -> Result<Vec<Ask>> {
        names::check("a user", user)?;
        let mut asked = millis();
        let mut asks = Vec::with_capacity(askings.len());
        for (name, asking, code) in askings {
            asks.push(new_ask(name, &asking, code, asked)?);
        }
        check_different(&asks)?;
        let _alone = self.lock_member(user)?;
        let there = match self.member(user) {
            // A damaged one is replaced.
            Err(e) if e.kind() == ErrorKind::CorruptFile => None,
            there => there?,
        };
        let is_new = there.is_none();
        let mut record = there.unwrap_or_else(new_member);
        // Whatever the clock says: what was withdrawn and is asked again is another ask.
        asked = asked.max(record.asks.iter().map(|ask| ask.asked.saturating_add(1)).max().unwrap_or(0));
        let mut is_changed = is_new;
        for ask in &mut asks {
            match record.ask(&ask.name).filter(|there| there.is_same(ask)) {
                Some(there) => *ask = there.clone(),
                None => {
                    ask.asked = asked;
                    record.set(ask.clone());
                    is_changed = true;
                }
            }
        }
        if record.asks.len() > MOST_ASKS {
            let message =
                format!("{user} would ask for {} things, and {MOST_ASKS} are the most", record.asks.len());
            return Err(Error::new(ErrorKind::InvalidValue, message)
                .hint("withdraw some: sieva share withdraw PLACE NAME"));
        }
        if is_changed {
            record::write(&*self.objects, &names::member(user), &record)?;
        }
        Ok(asks)
    }

    /// Asks for something no longer.
    ///
    /// # Errors
    /// `file-not-found` where it was not asked for.
    pub fn withdraw(&self, user: &str, name: &str) -> Result<()> {
        names::check("a user", user)?;
        names::check("an ask", name)?;
        let _alone = self.lock_member(user)?;
        let mut record = self.expect_member(user)?;
        self.expect_ask(&record, user, name)?;
        record.asks.retain(|ask| ask.name != name);
        record::write(&*self.objects, &names::member(user), &record)
    }

    /// What a user asks for, in order of the names.
    ///
    /// # Errors
    /// Those of the store; `corrupt-file`.
    pub fn asks(&self, user: &str) -> Result<Vec<Ask>> {
        names::check("a user", user)?;
        Ok(self.member(user)?.map(|record| record.asks).unwrap_or_default())
    }

    pub(crate) fn member(&self, user: &str) -> Result<Option<MemberRecord>> {
        record::read(&*self.objects, &names::member(user))
    }

    /// The record of a user, who has to be a member.
    pub(crate) fn expect_member(&self, user: &str) -> Result<MemberRecord> {
        names::check("a user", user)?;
        self.member(user)?.ok_or_else(|| {
            let message = format!("'{user}' is no member of the group at '{}'", self.name());
            Error::new(ErrorKind::FileNotFound, message).hint("join it first: sieva share join PLACE")
        })
    }

    /// One ask of a member, which has to be there.
    pub(crate) fn expect_ask<'r>(&self, record: &'r MemberRecord, user: &str, name: &str) -> Result<&'r Ask> {
        record.ask(name).ok_or_else(|| {
            let message = format!("{user} asks for nothing by the name '{}'", printable(name));
            let known: Vec<&str> = record.asks.iter().take(20).map(|ask| &*ask.name).collect();
            let hint = match &known[..] {
                [] => "ask first: sieva share ask PLACE NAME SQL".to_owned(),
                known => format!("there is {}", known.join(", ")),
            };
            Error::new(ErrorKind::FileNotFound, message).hint(hint)
        })
    }

    /// Waits until no other process of this machine changes what a user asks for.
    fn lock_member(&self, user: &str) -> Result<Lock> {
        Lock::wait(&lock::path_of(&["member", &self.name(), user])?)
    }
}

fn new_member() -> MemberRecord {
    MemberRecord { version: VERSION, joined: now(), asks: Vec::new() }
}

fn new_ask(name: &str, asking: &Asking<'_>, code: Option<String>, asked: u64) -> Result<Ask> {
    names::check("an ask", name)?;
    let (sql, format) = (checked(asking.sql)?, format_name(asking.format)?);
    Ok(Ask { name: name.to_owned(), sql, format, only_new: asking.only_new, code, asked })
}

/// The one that was asked.
fn one(mut asks: Vec<Ask>) -> Result<Ask> {
    asks.pop().ok_or_else(|| Error::new(ErrorKind::Internal, "an ask was not kept"))
}

fn check_different(asks: &[Ask]) -> Result<()> {
    let mut sorted: Vec<&str> = asks.iter().map(|ask| &*ask.name).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|two| two[0] == two[1]) {
        None => Ok(()),
        Some(two) => {
            let message = format!("two questions by the name '{}'", two[0]);
            Err(Error::new(ErrorKind::InvalidValue, message).hint("give each a name of its own"))
        }
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
