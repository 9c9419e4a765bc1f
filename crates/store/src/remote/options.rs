//! The limits of remote storage.

use std::path::PathBuf;
use std::time::Duration;

use sieva_types::{Error, ErrorKind, Result};

/// How remote objects are fetched and what of them is kept.
///
/// ```
/// let patient = sieva_store::RemoteOptions { retries: 12, ..Default::default() };
/// assert!(patient.deadline > patient.read_timeout);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteOptions {
    /// Bytes of an object's beginning that opening it fetches.
    pub first_bytes: u64,
    /// Time to establish a connection, TLS included.
    pub connect_timeout: Duration,
    /// Time without a single byte after which a request counts as lost.
    pub read_timeout: Duration,
    /// How often a request is repeated after a failure that may pass.
    pub retries: u32,
    /// Time from the first attempt of a request to giving it up; so much for each 8 MiB of longer ones.
    pub deadline: Duration,
    /// Time for which an object that answered counts as unchanged, before it is asked again.
    pub fresh: Duration,
    /// Requests under way at once to one server.
    pub parallel: usize,
    /// Bytes kept in memory, all objects of the process together. The object opened last decides.
    pub cache_bytes: u64,
    /// Directory in which fetched bytes are kept on disk; none: nowhere.
    pub cache_dir: Option<PathBuf>,
    /// Bytes kept in `cache_dir`.
    pub disk_bytes: u64,
    /// Whether hosts are refused that are no public ones: private, loopback and link-local addresses, whatever name leads
    /// there. For servers, which are inside of networks that those who ask are not in.
    pub public_only: bool,
}

impl Default for RemoteOptions {
    fn default() -> Self {
        Self {
            first_bytes: 64 << 10,
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(30),
            retries: 6,
            deadline: Duration::from_secs(120),
            fresh: Duration::from_secs(1),
            parallel: 16,
            cache_bytes: 256 << 20,
            cache_dir: None,
            disk_bytes: 8 << 30,
            public_only: false,
        }
    }
}

/// What an option's value is, and where it goes.
#[derive(Clone, Copy)]
enum Place {
    Seconds(fn(&mut RemoteOptions) -> &mut Duration),
    Repeats(fn(&mut RemoteOptions) -> &mut u32),
    Requests(fn(&mut RemoteOptions) -> &mut usize),
    Bytes(fn(&mut RemoteOptions) -> &mut u64),
    Directory(fn(&mut RemoteOptions) -> &mut Option<PathBuf>),
    Flag(fn(&mut RemoteOptions) -> &mut bool),
}

/// A value that somebody gives for an option.
#[derive(Clone, Debug, PartialEq)]
pub enum RemoteValue {
    /// A number of seconds.
    Seconds(f64),
    /// A count, or a number of bytes.
    Whole(u64),
    /// A directory.
    Directory(PathBuf),
    /// Yes or no.
    Flag(bool),
}

/// An option of remote storage that users may give: the list by which Python and the command line read theirs.
pub struct RemoteOption {
    /// Its name, everywhere.
    pub name: &'static str,
    /// What holds where it is not given, in words.
    pub default: &'static str,
    /// What it does, in a few words.
    pub means: &'static str,
    place: Place,
}

impl RemoteOption {
    /// All options, in the order in which they are listed.
    ///
    /// ```
    /// assert!(sieva_store::RemoteOption::ALL.iter().any(|option| option.name == "retries"));
    /// ```
    pub const ALL: [Self; 9] = [
        Self::of(
            "retries",
            "6",
            "repeats of a request after a failure that may pass",
            Place::Repeats(|o| &mut o.retries),
        ),
        Self::of(
            "deadline",
            "120",
            "seconds until a request is given up",
            Place::Seconds(|o| &mut o.deadline),
        ),
        Self::of("connect_timeout", "10", "seconds to connect", Place::Seconds(|o| &mut o.connect_timeout)),
        Self::of("read_timeout", "30", "seconds without a byte", Place::Seconds(|o| &mut o.read_timeout)),
        Self::of("parallel", "16", "requests at once to one server", Place::Requests(|o| &mut o.parallel)),
        Self::of(
            "cache_bytes",
            "256 MiB",
            "kept in memory, all objects together",
            Place::Bytes(|o| &mut o.cache_bytes),
        ),
        Self::of(
            "cache_dir",
            "none",
            "directory in which fetched bytes are kept",
            Place::Directory(|o| &mut o.cache_dir),
        ),
        Self::of("disk_bytes", "8 GiB", "kept in that directory", Place::Bytes(|o| &mut o.disk_bytes)),
        Self::of(
            "public_only",
            "false",
            "refuses hosts with private, loopback and link-local addresses, by whatever name or redirect: for servers",
            Place::Flag(|o| &mut o.public_only),
        ),
    ];

    const fn of(name: &'static str, default: &'static str, means: &'static str, place: Place) -> Self {
        Self { name, default, means, place }
    }

    /// The option of a name.
    ///
    /// # Errors
    /// `invalid-value`, with the names in the hint.
    pub fn named(name: &str) -> Result<&'static Self> {
        static ALL: [RemoteOption; 9] = RemoteOption::ALL;
        ALL.iter().find(|option| option.name == name).ok_or_else(|| {
            let names: Vec<&str> = ALL.iter().map(|option| option.name).collect();
            Error::new(ErrorKind::InvalidValue, format!("'{name}' is no option of remote storage"))
                .hint(format!("there are {}", names.join(", ")))
        })
    }

    /// What its value is: `seconds`, `count`, `bytes`, `directory` or `flag`.
    pub fn kind(&self) -> &'static str {
        match self.place {
            Place::Seconds(_) => "seconds",
            Place::Repeats(_) | Place::Requests(_) => "count",
            Place::Bytes(_) => "bytes",
            Place::Directory(_) => "directory",
            Place::Flag(_) => "flag",
        }
    }

    /// Sets it.
    ///
    /// # Errors
    /// `invalid-value` for a value of another kind, a count that is too large, seconds that are negative or no number.
    pub fn set(&self, options: &mut RemoteOptions, value: RemoteValue) -> Result<()> {
        let invalid = |message: String| Err(Error::new(ErrorKind::InvalidValue, message));
        let large =
            |n: u64| format!("{} is a whole number, not negative and not too large, got {n}", self.name);
        match (self.place, value) {
            (Place::Seconds(place), RemoteValue::Seconds(seconds)) => {
                match Duration::try_from_secs_f64(seconds) {
                    Ok(duration) => *place(options) = duration,
                    Err(_) => return invalid(format!("{} is a number of seconds, got {seconds}", self.name)),
                }
            }
            (Place::Repeats(place), RemoteValue::Whole(n)) => match n.try_into() {
                Ok(n) => *place(options) = n,
                Err(_) => return invalid(large(n)),
            },
            (Place::Requests(place), RemoteValue::Whole(n)) => match n.try_into() {
                Ok(n) => *place(options) = n,
                Err(_) => return invalid(large(n)),
            },
            (Place::Bytes(place), RemoteValue::Whole(n)) => *place(options) = n,
            (Place::Directory(place), RemoteValue::Directory(path)) => *place(options) = Some(path),
            (Place::Flag(place), RemoteValue::Flag(flag)) => *place(options) = flag,
            (_, value) => return invalid(format!("{} is of kind {}, got {value:?}", self.name, self.kind())),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_sets_its_own_field() {
        let set = |name: &str, value: RemoteValue| {
            let mut options = RemoteOptions::default();
            RemoteOption::named(name).unwrap().set(&mut options, value).map(|()| options)
        };
        let of = |change: fn(&mut RemoteOptions)| {
            let mut options = RemoteOptions::default();
            change(&mut options);
            options
        };
        let (seconds, whole) = (RemoteValue::Seconds(1.5), RemoteValue::Whole(7));
        let wanted = [
            ("retries", whole.clone(), of(|o| o.retries = 7)),
            ("deadline", seconds.clone(), of(|o| o.deadline = Duration::from_millis(1500))),
            ("connect_timeout", seconds.clone(), of(|o| o.connect_timeout = Duration::from_millis(1500))),
            ("read_timeout", seconds, of(|o| o.read_timeout = Duration::from_millis(1500))),
            ("parallel", whole.clone(), of(|o| o.parallel = 7)),
            ("cache_bytes", whole.clone(), of(|o| o.cache_bytes = 7)),
            ("cache_dir", RemoteValue::Directory("/c".into()), of(|o| o.cache_dir = Some("/c".into()))),
            ("disk_bytes", whole, of(|o| o.disk_bytes = 7)),
            ("public_only", RemoteValue::Flag(true), of(|o| o.public_only = true)),
        ];
        assert_eq!(wanted.each_ref().map(|w| w.0), RemoteOption::ALL.each_ref().map(|o| o.name));
        for (name, value, options) in wanted {
            assert_eq!(set(name, value).unwrap(), options, "{name}");
        }
        let said = |name: &str, value| set(name, value).unwrap_err().message().to_owned();
        assert_eq!(said("deadline", RemoteValue::Seconds(-1.0)), "deadline is a number of seconds, got -1");
        assert_eq!(
            said("retries", RemoteValue::Whole(1 << 32)),
            "retries is a whole number, not negative and not too large, got 4294967296"
        );
        assert_eq!(said("public_only", RemoteValue::Whole(1)), "public_only is of kind flag, got Whole(1)");
    }

    #[test]
    fn an_unknown_option_is_told_with_those_that_there_are() {
        let e = RemoteOption::named("retry").err().unwrap();
        assert_eq!(e.message(), "'retry' is no option of remote storage");
        assert!(e.hint_text().unwrap().starts_with("there are retries, deadline"), "{e}");
    }
}
