//! Paths within an object and in its source.

use sieva_format::schema::Schema;
use sieva_types::{Error, ErrorKind, Result};

use super::names::relative;

/// The path of what has the path `relative` in a group.
pub(super) fn within(group: &str, relative: &str) -> String {
    if group.is_empty() { relative.to_string() } else { format!("{group}/{relative}") }
}

/// The full path of an object's array; `None` where the object lacks it.
pub(super) fn array_of(schema: &Schema, group: &str, name: &str) -> Result<Option<String>> {
    let path = within(group, name);
    if schema.array(&path).is_some() || schema.aliases.iter().any(|(alias, _)| *alias == path) {
        return Ok(Some(path));
    }
    // A member of a compound in the group, by its own name alone.
    let of_group = |p: &str| match group {
        "" => !p.contains('/'),
        _ => p.strip_prefix(group).and_then(|r| r.strip_prefix('/')).is_some_and(|r| !r.contains('/')),
    };
    let mut members = schema
        .arrays
        .iter()
        .map(|a| a.path.as_str())
        .filter(|p| of_group(p) && relative(p, name).is_some_and(|r| r != name));
    match (members.next(), members.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => Ok(Some(one.to_string())),
        (Some(one), Some(other)) => Err(Error::new(
            ErrorKind::AmbiguousName,
            format!("'{name}' of the object '{group}' could mean '{one}' and '{other}'"),
        )
        .hint("write the dataset, too: \"table.member\"")),
    }
}
