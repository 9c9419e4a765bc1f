//! What an administrator says: an augmentation that is always there, or never.

use sieva_catalog::{Catalog, Rule};
use sieva_types::{Error, ErrorKind, Result};

use super::{AdviseOptions, candidates, name_of};
use crate::augment::IndexKind;
use crate::catalog::place::location_or_absolute;

/// A rule by names.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedRule {
    /// Location of the source.
    pub location: String,
    /// Path of the array.
    pub path: String,
    /// The kind.
    pub kind: String,
    /// Whether it is pinned; else it is forbidden.
    pub pinned: bool,
}

/// Pins (`Some(true)`) or forbids (`Some(false)`) an augmentation that is named `SOURCE:ARRAY=KIND`, or takes that
/// back (`None`).
///
/// # Errors
/// `invalid-value` for a text of another form; `unknown-array` and those of opening the source, unless a rule is
/// taken back; those of the catalog.
pub fn set_rule(
    catalog: &Catalog,
    text: &str,
    pinned: Option<bool>,
    options: &AdviseOptions,
) -> Result<NamedRule> {
    let (source, array, kind) = parts(text)?;
    let location = location_or_absolute(source.as_ref());
    let path = match pinned {
        None => array.to_string(),
        Some(_) => {
            let source = candidates::open(&location, options)?;
            let index = source.resolve(array)?;
            source.array_header(index)?;
            source.schema().arrays[index].path.clone()
        }
    };
    let rule = pinned.map(|p| if p { Rule::Pinned } else { Rule::Forbidden });
    catalog.set_rule(&location, &path, name_of(kind), rule)?;
    Ok(NamedRule { location, path, kind: name_of(kind).into(), pinned: pinned == Some(true) })
}

/// The rules for sources within `prefix`.
///
/// # Errors
/// Those of the catalog.
pub fn rules(catalog: &Catalog, prefix: &str) -> Result<Vec<NamedRule>> {
    let prefix = if prefix.is_empty() { String::new() } else { location_or_absolute(prefix.as_ref()) };
    let all = catalog.rules(&prefix)?.into_iter();
    let within = all.filter(|(location, ..)| candidates::is_within(location, &prefix));
    let named = within.map(|(location, path, kind, rule)| NamedRule {
        location,
        path,
        kind,
        pinned: rule == Rule::Pinned,
    });
    Ok(named.collect())
}

fn parts(text: &str) -> Result<(&str, &str, IndexKind)> {
    let (place, kind) = text.rsplit_once('=').ok_or_else(|| bad(text))?;
    let (source, array) = place.rsplit_once(':').ok_or_else(|| bad(text))?;
    if source.is_empty() || array.is_empty() || array.starts_with("//") {
        return Err(bad(text));
    }
    Ok((source, array, IndexKind::parse(kind)?))
}

fn bad(text: &str) -> Error {
    let message = format!("'{text}' is not of the form SOURCE:ARRAY=KIND");
    Error::new(ErrorKind::InvalidValue, message)
        .hint("such as pop.nc:TEMP=bitmap; kinds are zonemap, bitmap, sorted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_source_array_and_kind() {
        assert_eq!(parts("/a/b.nc:g/TEMP=bitmap").unwrap(), ("/a/b.nc", "g/TEMP", IndexKind::Bitmap));
        assert_eq!(parts("s3://b/o.nc:TEMP=sorted").unwrap(), ("s3://b/o.nc", "TEMP", IndexKind::Sorted));
        for text in [
            "",
            "a.nc",
            "a.nc:TEMP",
            "a.nc=bitmap",
            ":TEMP=bitmap",
            "a.nc:=bitmap",
            "s3://b/o=bitmap",
            "a:b=tree",
        ] {
            assert_eq!(parts(text).unwrap_err().kind(), ErrorKind::InvalidValue, "{text}");
        }
    }
}
