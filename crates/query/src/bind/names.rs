//! What a name means: an array, a dimension, or a mistake that deserves a good answer.

use sieva_format::schema::{Schema, leaf};
use sieva_types::{Error, ErrorKind, Result};

use crate::ast::Name;

/// What a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// An array (index in [`Schema::arrays`]).
    Array(usize),
    /// A dimension without a coordinate array: its positions.
    Dimension(usize),
}

/// The meaning of `text` in `schema`: the array of that path; else the dimension, which means its
/// coordinate array; else the one array whose path ends so.
///
/// # Errors
/// `unknown-array` with the nearest names, `ambiguous-name` with all the paths it could mean.
pub fn resolve(schema: &Schema, text: &str) -> Result<Meaning> {
    let path = text.trim_start_matches('/').to_string();
    // `table::member` is another way to write `table.member`, unless a name has the colons itself.
    let member = path.replace("::", ".");
    for path in [&path, &member] {
        if let Some(found) = schema.array(path).or_else(|| alias(schema, path)) {
            return Ok(Meaning::Array(found));
        }
    }
    if let Some(d) = dimension(schema, &path)? {
        return Ok(schema.dims[d].coordinate.map_or(Meaning::Dimension(d), Meaning::Array));
    }
    let mut found: Vec<usize> =
        (0..schema.arrays.len()).filter(|&i| ends_with(&schema.arrays[i].path, &path)).collect();
    if found.is_empty() {
        found.extend(schema.aliases.iter().filter(|(alias, _)| ends_with(alias, &path)).map(|&(_, i)| i));
        found.dedup();
    }
    match found[..] {
        [one] => Ok(Meaning::Array(one)),
        [] => match complex_part(&path) {
            Some((part, other)) if resolve(schema, &other).is_ok() => resolve(schema, &part),
            _ => Err(left_out(schema, &path).unwrap_or_else(|| unknown(schema, text))),
        },
        _ => Err(ambiguous("array", text, found.iter().map(|&i| schema.arrays[i].path.as_str()))),
    }
}

/// The dimension called `text`, `None` if there is none.
pub fn dimension(schema: &Schema, text: &str) -> Result<Option<usize>> {
    let path = text.trim_start_matches('/');
    if let Some(d) = schema.dims.iter().position(|d| d.path == path) {
        return Ok(Some(d));
    }
    let found: Vec<usize> = (0..schema.dims.len()).filter(|&d| schema.dims[d].name == path).collect();
    match found[..] {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        _ => Err(ambiguous("dimension", text, found.iter().map(|&d| schema.dims[d].path.as_str()))),
    }
}

/// What `z.real` and `z.imag` are called where the parts of complex numbers are `z.r` and `z.i`, with the name of the
/// other part: there are numbers only where both are.
fn complex_part(path: &str) -> Option<(String, String)> {
    let part = |stem: &str, name: char| format!("{stem}.{name}");
    let real = path.strip_suffix(".real").map(|stem| (part(stem, 'r'), part(stem, 'i')));
    real.or_else(|| path.strip_suffix(".imag").map(|stem| (part(stem, 'i'), part(stem, 'r'))))
}

fn alias(schema: &Schema, path: &str) -> Option<usize> {
    schema.aliases.iter().find(|(a, _)| a == path).map(|&(_, i)| i)
}

/// Why something of this name is there but cannot be used.
fn left_out(schema: &Schema, path: &str) -> Option<Error> {
    let (found, e) = schema.left_out.iter().find(|(p, _)| ends_with(p.trim_start_matches('/'), path))?;
    Some(e.clone().at(format!("'{found}'")))
}

/// Whether `path` ends in `tail` at a boundary: `group/name` in `name`, `group/table.member` in `table.member`
/// and in `member`.
fn ends_with(path: &str, tail: &str) -> bool {
    path.strip_suffix(tail).is_some_and(|head| {
        head.is_empty() || head.ends_with('/') || (head.ends_with('.') && !tail.contains('/'))
    })
}

fn ambiguous<'s>(what: &str, text: &str, paths: impl Iterator<Item = &'s str>) -> Error {
    let paths: Vec<String> = paths.map(|p| format!("'{p}'")).collect();
    let shown = paths.iter().take(12).cloned().collect::<Vec<_>>().join(", ");
    let more = paths.len().saturating_sub(12);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Error::new(ErrorKind::AmbiguousName, format!("{what} '{text}' could be any of {shown}{more}"))
        .hint("write the path that you mean, in double quotes")
}

fn unknown(schema: &Schema, text: &str) -> Error {
    let e = Error::new(ErrorKind::UnknownArray, format!("no array or dimension '{text}'"));
    let near = nearest(schema, text);
    if !near.is_empty() {
        return e.hint(format!("did you mean {}?", near.join(" or ")));
    }
    let names: Vec<&str> = schema.arrays.iter().take(20).map(|a| a.path.as_str()).collect();
    match (names.len(), schema.arrays.len()) {
        (0, _) => e.hint("the source has no array of numbers or text"),
        (shown, all) if shown < all => {
            e.hint(format!("the source has {all} arrays: {} ...", names.join(", ")))
        }
        _ => e.hint(format!("the source has {}", names.join(", "))),
    }
}

/// Up to three names that differ little.
fn nearest(schema: &Schema, text: &str) -> Vec<String> {
    let wanted = text.to_lowercase();
    let wanted_leaf = leaf(&wanted);
    let names =
        schema.arrays.iter().map(|a| a.path.as_str()).chain(schema.dims.iter().map(|d| d.path.as_str()));
    let mut scored: Vec<(usize, &str)> = names
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let distance =
                strsim::levenshtein(&lower, &wanted).min(strsim::levenshtein(leaf(&lower), wanted_leaf));
            (distance <= 1 + wanted_leaf.len() / 4).then_some((distance, name))
        })
        .collect();
    scored.sort_unstable();
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.iter().take(3).map(|(_, n)| format!("'{n}'")).collect()
}

/// The error of a name as it stands in the query's text.
pub fn located(e: Error, name: &Name) -> Error {
    if name.span.end > name.span.start {
        e.at(format!("query, character {}", name.span.start + 1))
    } else {
        e
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_match_at_boundaries_only() {
        assert!(ends_with("a/b/TEMP", "TEMP") && ends_with("a/b/TEMP", "b/TEMP"));
        assert!(!ends_with("a/b/MYTEMP", "TEMP"));
        assert!(ends_with("g/table.mean", "table.mean") && ends_with("g/table.mean", "mean"));
    }
}
