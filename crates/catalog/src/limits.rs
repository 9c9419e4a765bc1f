//! What names and values may be: bounds that keep a hostile file from filling a catalog or breaking its indexes.

use sieva_types::{Error, ErrorKind, Result};

use crate::value::Value;

/// Bytes of a location, and of a path. PostgreSQL's index entries hold at most 2700.
pub(crate) const MAX_PATH: usize = 2000;
/// Bytes of a key, of a name of a collection, and of other short names.
pub(crate) const MAX_NAME: usize = 512;
/// Levels of a path.
pub(crate) const MAX_DEPTH: usize = 256;
/// Bytes of a text that is the value of an attribute.
pub(crate) const MAX_TEXT: usize = 1 << 20;
/// Bytes of all texts of one object's attributes.
pub(crate) const MAX_TEXTS: usize = 16 << 20;
/// Bytes of a manifest.
pub const MAX_MANIFEST: usize = 64 << 20;
/// Attributes of one object.
pub(crate) const MAX_ATTRIBUTES: usize = 65_536;

fn bounded(what: &str, text: &str, max: usize) -> Result<()> {
    let shown: String = text.chars().take(40).collect::<String>().escape_debug().to_string();
    if text.len() > max {
        let message = format!("{what} '{shown}...' has {} bytes; at most {max} are kept", text.len());
        return Err(Error::new(ErrorKind::InvalidValue, message).hint("shorten it, or leave it out"));
    }
    if text.contains('\0') {
        let message = format!("{what} '{shown}' holds a zero byte");
        return Err(Error::new(ErrorKind::InvalidValue, message).hint("leave it out"));
    }
    Ok(())
}

/// Checks a location.
pub(crate) fn location(text: &str) -> Result<()> {
    if text.is_empty() {
        return Err(Error::new(ErrorKind::InvalidValue, "a source's location is empty"));
    }
    bounded("location", text, MAX_PATH)
}

/// Checks a path in a source.
pub(crate) fn path(text: &str) -> Result<()> {
    bounded("path", text, MAX_PATH)?;
    let depth = text.split('/').count();
    if depth > MAX_DEPTH {
        let message = format!("a path has {depth} levels; at most {MAX_DEPTH} are kept");
        return Err(Error::new(ErrorKind::InvalidValue, message).hint("leave it out"));
    }
    Ok(())
}

/// Checks a key or another short name: `what` says of what.
pub(crate) fn name(what: &str, text: &str) -> Result<()> {
    bounded(what, text, MAX_NAME)
}

/// Checks a longer text that is not searched.
pub(crate) fn text(what: &str, text: &str) -> Result<()> {
    bounded(what, text, MAX_TEXT)
}

/// Checks a value.
pub(crate) fn value(key: &str, value: &Value) -> Result<()> {
    match value {
        Value::Text(s) if s.len() > MAX_TEXT => {
            let message = format!("the text of '{key}' has {} bytes; at most {MAX_TEXT} are kept", s.len());
            Err(Error::new(ErrorKind::InvalidValue, message).hint("shorten it, or leave it out"))
        }
        _ => Ok(()),
    }
}

/// Checks a manifest.
pub(crate) fn manifest(bytes: &[u8]) -> Result<()> {
    if bytes.len() <= MAX_MANIFEST {
        return Ok(());
    }
    let message = format!("a manifest has {} bytes; at most {MAX_MANIFEST} are kept", bytes.len());
    Err(Error::new(ErrorKind::MemoryLimit, message).hint("register the source without it"))
}

/// A size as the database keeps it.
pub(crate) fn signed(what: &str, n: u64) -> Result<i64> {
    i64::try_from(n)
        .map_err(|_| Error::new(ErrorKind::Overflow, format!("{what} is {n}: more than 2^63 - 1")))
}
