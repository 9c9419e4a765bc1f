//! The options of opening, of running and of building indexes, as data: what each is called, what it means, and in which forms there is one.
//!
//! [`OpenOptions`](crate::OpenOptions) and [`QueryOptions`](crate::QueryOptions) are what the engine works with. Python,
//! the command line and C make theirs of what this table says, or are compared with it by a test; a new option is a field
//! there, and a row here.

mod table;

use sieva_types::{Error, ErrorKind, Result};

pub use sieva_types::parse_size;
pub use table::OPTIONS;

/// What an option is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Opening a source: a field of [`OpenOptions`](crate::OpenOptions).
    Opening,
    /// Running a query: a field of [`QueryOptions`](crate::QueryOptions).
    Running,
    /// Building indexes: a field of [`BuildOptions`](crate::BuildOptions).
    Building,
}

/// What values an option has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Yes or no.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A number of bytes, or text such as `512MiB`; 0 is none where `zero` says that there is such a thing.
    Size {
        /// Whether it may be 0.
        zero: bool,
    },
    /// A whole number, at least 1.
    Count,
    /// Text.
    Text,
    /// The path of a directory.
    Directory,
    /// Names of arrays.
    Names,
    /// Words of a list.
    Words(&'static [&'static str]),
    /// Seconds.
    Seconds,
    /// Directories, or places of which some may be URLs.
    Places,
    /// Names of the dimensions of arrays, by array.
    Dimensions,
    /// The options of remote storage, by name.
    Remote,
    /// Functions that come as code, by name.
    Functions,
    /// A catalog, or where it is.
    Catalog,
    /// Where the bytes of a file lie ([`sieva_store::Striping`]).
    Striping,
    /// An object of the program: a flag, a session, an identity.
    Object,
}

impl ValueKind {
    /// Its name, as tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Word(_) => "word",
            Self::Size { .. } => "bytes",
            Self::Count => "number",
            Self::Text => "text",
            Self::Directory => "directory",
            Self::Names => "names",
            Self::Words(_) => "words",
            Self::Seconds => "seconds",
            Self::Places => "places",
            Self::Dimensions => "dimensions by array",
            Self::Remote => "options by name",
            Self::Functions => "code by name",
            Self::Catalog => "catalog",
            Self::Striping => "striping",
            Self::Object => "object",
        }
    }
}

/// What an option is called in one language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// By these names: an argument, an option of the command line, fields of `sieva_options`.
    Named(&'static [&'static str]),
    /// There is none, and why.
    None(&'static str),
}

impl Form {
    /// The names; empty where there is none.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            Self::Named(names) => names,
            Self::None(_) => &[],
        }
    }
}

/// What takes options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Opening files.
    Open,
    /// Opening a reference set in Parquet tables.
    OpenTables,
    /// Opening what a program of Python reads.
    OpenForeign,
    /// Opening a collection.
    OpenCollection,
    /// A query of a source.
    Query,
    /// Running a task of a query.
    RunTask,
    /// A query of a collection.
    QueryCollection,
    /// Building indexes of a source.
    BuildIndex,
}

impl Call {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Open,
        Self::OpenTables,
        Self::OpenForeign,
        Self::OpenCollection,
        Self::Query,
        Self::RunTask,
        Self::QueryCollection,
        Self::BuildIndex,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::OpenTables => "open_tables",
            Self::OpenForeign => "open_foreign",
            Self::OpenCollection => "collection",
            Self::Query => "query",
            Self::RunTask => "run_task",
            Self::QueryCollection => "collection_query",
            Self::BuildIndex => "build_index",
        }
    }

    /// The call of a name.
    ///
    /// # Errors
    /// `invalid-value`, listing the names.
    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::new(ErrorKind::InvalidValue, format!("call '{name}' is not one of {names}"))
        })
    }

    /// What its options are of.
    pub fn stage(self) -> Stage {
        match self {
            Self::Open | Self::OpenTables | Self::OpenForeign | Self::OpenCollection => Stage::Opening,
            Self::Query | Self::RunTask | Self::QueryCollection => Stage::Running,
            Self::BuildIndex => Stage::Building,
        }
    }

    /// The options that it takes, in the order of the table.
    pub fn options(self) -> impl Iterator<Item = &'static OptionSpec> {
        OPTIONS.iter().filter(move |o| o.is_of(self))
    }

    /// The option of this name.
    ///
    /// # Errors
    /// `invalid-value` where it takes none of the name: why, or which is near, or which there are.
    pub fn option(self, name: &str) -> Result<&'static OptionSpec> {
        if let Some(found) = self.options().find(|o| o.name == name) {
            return Ok(found);
        }
        let e = Error::new(ErrorKind::InvalidValue, format!("'{name}' is no option of {}()", self.name()));
        let of_others = OPTIONS.iter().find(|o| o.name == name && o.stage == self.stage());
        let why = of_others.and_then(|o| o.not_of.iter().find(|n| n.0 == self));
        if let Some((_, why)) = why {
            return Err(e.hint(*why));
        }
        let known: Vec<&str> = self.options().map(|o| o.name).collect();
        let near = |known: &&str| strsim::levenshtein(known, &name.to_lowercase());
        Err(match known.iter().copied().min_by_key(near) {
            Some(nearest) if near(&nearest) <= 1 + nearest.len() / 3 => {
                e.hint(format!("did you mean '{nearest}'? There are {}", known.join(", ")))
            }
            _ => e.hint(format!("there are {}", known.join(", "))),
        })
    }
}

/// An option.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Its name in Python, or that of the field where Python has none.
    pub name: &'static str,
    /// What it is of.
    pub stage: Stage,
    /// The field of [`OpenOptions`](crate::OpenOptions) or [`QueryOptions`](crate::QueryOptions).
    pub field: &'static str,
    /// What values it has.
    pub kind: ValueKind,
    /// What holds where it is not given.
    pub default: &'static str,
    /// What it means, in one sentence.
    pub means: &'static str,
    /// Arguments of Python.
    pub python: Form,
    /// Options of the command line.
    pub command_line: Form,
    /// Fields of `sieva_options`.
    pub c: Form,
    /// The calls of its stage that do not take it, and why.
    pub not_of: &'static [(Call, &'static str)],
}

impl OptionSpec {
    /// Whether a call of Python takes it.
    pub fn is_of(&self, call: Call) -> bool {
        let has_form = !self.python.names().is_empty();
        has_form && self.stage == call.stage() && self.not_of.iter().all(|n| n.0 != call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Access, BuildOptions, FetchWay, OpenOptions, QueryOptions};

    /// The names of all fields; a field more or less does not compile.
    macro_rules! fields {
        ($name:ident { $($field:ident),* }) => {{
            let $name { $($field: _),* } = $name::default();
            [$(stringify!($field)),*]
        }};
    }

    #[test]
    fn every_field_has_a_row() {
        let opening = fields!(OpenOptions {
            dims,
            external_roots,
            valid_range,
            store,
            learn,
            join,
            remote,
            remember,
            beside,
            isolated,
            limits,
            catalog,
            told,
            manifest,
            striping,
            memory,
            cancel,
            identity,
            session,
            gate
        });
        let building = fields!(BuildOptions {
            kinds,
            jobs,
            memory,
            precision,
            region_size,
            columns,
            lock_timeout,
            progress,
            cancel
        });
        let running =
            fields!(QueryOptions { access, fetch, memory, spill, threads, cancel, cross, functions });
        let of = |stage, field: &str| OPTIONS.iter().filter(|o| o.stage == stage && o.field == field).count();
        // The row of `catalog` is that of `told`, too: both are given as the catalog.
        let rows = opening.map(|field| of(Stage::Opening, if field == "told" { "catalog" } else { field }));
        assert_eq!(rows, [1; 20], "{opening:?}");
        assert_eq!(running.map(|field| of(Stage::Running, field)), [1; 8], "{running:?}");
        assert_eq!(building.map(|field| of(Stage::Building, field)), [1; 9], "{building:?}");
        assert_eq!(OPTIONS.len(), 19 + 8 + 9);
    }

    #[test]
    fn words_are_those_that_are_parsed() {
        let words = |name| match OPTIONS.iter().find(|o| o.name == name).unwrap().kind {
            ValueKind::Word(words) => words.to_vec(),
            other => panic!("{other:?}"),
        };
        assert_eq!(words("access"), Access::NAMED.map(|(name, _)| name));
        assert_eq!(words("fetch"), FetchWay::NAMED.map(|(name, _)| name));
    }

    #[test]
    fn rows_say_what_they_have_to() {
        for o in OPTIONS {
            assert!(o.means.ends_with('.') && o.means.len() < 110, "{}: {}", o.name, o.means);
            assert!(!o.default.is_empty(), "{}", o.name);
            for form in [o.python, o.command_line, o.c] {
                match form {
                    Form::Named(names) => assert!(!names.is_empty(), "{}", o.name),
                    Form::None(why) => assert!(!why.is_empty(), "{}", o.name),
                }
            }
            if let Form::Named(names) = o.python {
                assert_eq!(names, [o.name]);
            }
            for (call, why) in o.not_of {
                assert!(call.stage() == o.stage && !why.is_empty(), "{}", o.name);
            }
            if let ValueKind::Word(words) = o.kind {
                assert!(words.contains(&o.default), "{}", o.name);
            }
        }
    }

    #[test]
    fn unknown_options_are_told_with_what_is_near() {
        let hint = |call: Call, name| call.option(name).unwrap_err().hint_text().unwrap().to_string();
        assert!(hint(Call::Query, "memry").starts_with("did you mean 'memory'? There are access, fetch"));
        assert!(hint(Call::Query, "Access").starts_with("did you mean 'access'?"));
        assert!(hint(Call::Query, "nothing_like_it").starts_with("there are access, "));
        assert!(hint(Call::OpenCollection, "dims").contains("object"));
        assert!(hint(Call::Query, "dims").starts_with("there are "));
        assert!(hint(Call::Open, "identity").contains("there are dims"));
        assert_eq!(Call::Open.option("memory").unwrap().stage, Stage::Opening);
        assert_eq!(Call::Query.option("memory").unwrap().stage, Stage::Running);
        for call in Call::ALL {
            assert_eq!(Call::parse(call.name()).unwrap(), call);
        }
        assert!(Call::parse("close").is_err());
    }
}
