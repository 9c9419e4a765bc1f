//! The one error type of the project and its stable codes.

use std::borrow::Cow;
use std::fmt;

use crate::{printable, printable_lines};

/// `Result` with the project's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, as a closed list with one stable kebab-case code each.
///
/// Codes are append-only: Rust, Python (`e.kind`), the CLI and every other side show the same word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The named file, directory or object does not exist.
    FileNotFound,
    /// The operating system refused access.
    PermissionDenied,
    /// The file is not of a format that can be read here.
    UnknownFormat,
    /// The bytes contradict the format: damaged, truncated or hostile.
    CorruptFile,
    /// Reading or writing failed.
    Io,
    /// No array of that name.
    UnknownArray,
    /// No dimension of that name.
    UnknownDimension,
    /// No attribute of that name.
    UnknownAttribute,
    /// No function of that name.
    UnknownFunction,
    /// A bare leaf name that several arrays share.
    AmbiguousName,
    /// The text of the query does not follow the grammar.
    Syntax,
    /// Operands whose types do not go together.
    TypeMismatch,
    /// A value outside of what is allowed.
    InvalidValue,
    /// Arrays whose dimensions cannot be lined up.
    DimensionMismatch,
    /// Data encoded with a filter that is not available.
    FilterUnavailable,
    /// A legal feature that is not supported.
    Unsupported,
    /// A link out of the file that is not allowed.
    LinkRefused,
    /// The work does not fit into the stated memory limit.
    MemoryLimit,
    /// Integer arithmetic left its range.
    Overflow,
    /// Interrupted by the caller.
    Cancelled,
    /// The source was changed since it was opened.
    StaleSource,
    /// No augmentation of the kind that the forced access needs.
    NoIndex,
    /// A damaged augmentation; answers do not depend on it.
    CorruptIndex,
    /// A broken invariant of ours.
    Internal,
    /// Arrays of a query that do not line up: their product was not asked for.
    UnalignedDimensions,
}

impl ErrorKind {
    /// All kinds, in the order of their definition.
    pub const ALL: [ErrorKind; 25] = [
        Self::FileNotFound,
        Self::PermissionDenied,
        Self::UnknownFormat,
        Self::CorruptFile,
        Self::Io,
        Self::UnknownArray,
        Self::UnknownDimension,
        Self::UnknownAttribute,
        Self::UnknownFunction,
        Self::AmbiguousName,
        Self::Syntax,
        Self::TypeMismatch,
        Self::InvalidValue,
        Self::DimensionMismatch,
        Self::FilterUnavailable,
        Self::Unsupported,
        Self::LinkRefused,
        Self::MemoryLimit,
        Self::Overflow,
        Self::Cancelled,
        Self::StaleSource,
        Self::NoIndex,
        Self::CorruptIndex,
        Self::Internal,
        Self::UnalignedDimensions,
    ];

    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::FileNotFound => "file-not-found",
            Self::PermissionDenied => "permission-denied",
            Self::UnknownFormat => "unknown-format",
            Self::CorruptFile => "corrupt-file",
            Self::Io => "io-error",
            Self::UnknownArray => "unknown-array",
            Self::UnknownDimension => "unknown-dimension",
            Self::UnknownAttribute => "unknown-attribute",
            Self::UnknownFunction => "unknown-function",
            Self::AmbiguousName => "ambiguous-name",
            Self::Syntax => "syntax-error",
            Self::TypeMismatch => "type-mismatch",
            Self::InvalidValue => "invalid-value",
            Self::DimensionMismatch => "dimension-mismatch",
            Self::FilterUnavailable => "filter-unavailable",
            Self::Unsupported => "unsupported",
            Self::LinkRefused => "link-refused",
            Self::MemoryLimit => "memory-limit",
            Self::Overflow => "arithmetic-overflow",
            Self::Cancelled => "cancelled",
            Self::StaleSource => "stale-source",
            Self::NoIndex => "no-index",
            Self::CorruptIndex => "corrupt-index",
            Self::Internal => "internal-error",
            Self::UnalignedDimensions => "unaligned-dimensions",
        }
    }
}

/// An error: its kind, what was given and expected, and where there is one, what to do about it.
///
/// The message names the place (file, array, chunk); it is lower case and ends without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

impl Error {
    /// A new error of `kind`. The message is shown to people: what in its names commands a terminal is escaped.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: shown(message.into(), printable), hint: None }))
    }

    /// A new error of `kind` whose message has several lines of ours.
    pub fn of_lines(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { kind, message: shown(message.into(), printable_lines), hint: None }))
    }

    /// A damaged file; the caller adds the path with [`Error::at`].
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::CorruptFile, message)
    }

    /// An operating system error met while doing `what`.
    pub fn io(what: impl fmt::Display, e: &std::io::Error) -> Self {
        let kind = match e.kind() {
            std::io::ErrorKind::NotFound => ErrorKind::FileNotFound,
            std::io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
            _ => ErrorKind::Io,
        };
        // The number of the error says nothing to people that its text does not.
        let text = e.to_string();
        let text = text.split(" (os error ").next().unwrap_or_default();
        Self::new(kind, format!("{what}: {text}"))
    }

    /// Adds (or replaces) what the user can do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(shown(hint.into(), printable_lines));
        self
    }

    /// Puts the place where it happened before the message: `place: message`.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.0.message = format!("{}: {}", printable(&place.to_string()), self.0.message);
        self
    }

    /// The kind.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message without the hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the user can do, where there is something.
    pub fn hint_text(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

/// The text as `escaped` has it; itself where that changes nothing.
/// Bytes of the longest message.
const LONGEST: usize = 8000;

fn shown(mut text: String, escaped: fn(&str) -> Cow<'_, str>) -> String {
    // Names of files and of queries have any length; nobody reads so much.
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    match escaped(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(changed) => changed,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_kebab_case() {
        let mut seen = std::collections::HashSet::new();
        for kind in ErrorKind::ALL {
            let code = kind.code();
            assert!(seen.insert(code), "{code} twice");
            assert!(code.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{code}");
        }
    }

    #[test]
    fn names_command_no_terminal() {
        let e = Error::new(ErrorKind::UnknownArray, "no array 'a\u{1b}[2J\nhint: b'").at("c\u{7}.nc");
        assert_eq!(e.message(), "c\\u{7}.nc: no array 'a\\u{1b}[2J\\nhint: b'");
        let e = Error::of_lines(ErrorKind::Syntax, "a\n  \u{9b}^").hint("d\u{1b}");
        assert_eq!((e.message(), e.hint_text()), ("a\n  \\u{9b}^", Some("d\\u{1b}")));
    }

    #[test]
    fn place_comes_before_the_message() {
        let e = Error::corrupt("chunk (0, 3) is cut off").at("TEMP").at("pop.nc").hint("copy it again");
        assert_eq!(e.to_string(), "pop.nc: TEMP: chunk (0, 3) is cut off");
        assert_eq!(e.hint_text(), Some("copy it again"));
    }
}
