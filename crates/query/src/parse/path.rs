//! Reads unquoted names, which are paths: `Step#0/Energy`, `/grp1/U`, `particles/00001/x`, `table.member`.

use super::number::{has_signed_exponent, number_literal};
use super::token::Keyword;
use crate::ast::{MAX_SLASHES, Name, Span, slashes};

/// Tells whether a path names an array, a dimension or whatever else is not to be read as a division.
pub type IsKnown<'a> = &'a dyn Fn(&Name) -> bool;

/// Whether `c` may begin an unquoted name.
pub(super) fn is_name_start(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Whether `c` may stand in an unquoted name.
pub(super) fn is_name_char(c: char) -> bool {
    is_name_start(c) || c.is_ascii_digit()
}

/// Whether `text` needs no quotes where a name is expected.
pub(crate) fn is_bare_name(text: &str) -> bool {
    path_len(text) == Some(text.len())
        && special_float(text).is_none()
        && Keyword::of(text).is_none_or(Keyword::is_soft)
}

/// `inf` and `nan` in any case.
pub(super) fn special_float(word: &str) -> Option<f64> {
    if word.eq_ignore_ascii_case("inf") {
        Some(f64::INFINITY)
    } else if word.eq_ignore_ascii_case("nan") {
        Some(f64::NAN)
    } else {
        None
    }
}

/// The length of the path at the start of `text`, if there is one.
///
/// A path may begin with a slash; its names are joined by `/`, `.`, `#`, `:` or `::` without white space.
pub(super) fn path_len(text: &str) -> Option<usize> {
    let root = usize::from(text.starts_with('/'));
    let first = text[root..].chars().next()?;
    // Behind a leading slash a number is as good as a name: there is nothing to divide.
    if !(is_name_start(first) || (root > 0 && is_name_char(first))) {
        return None;
    }
    let mut len = root + name_len(&text[root..]);
    loop {
        let rest = &text[len..];
        let connector = connector_len(rest);
        let name = name_len(&rest[connector..]);
        // `x/1e-5` can only be meant as a division.
        if connector == 0 || name == 0 || (rest.starts_with('/') && has_signed_exponent(&rest[1..])) {
            break;
        }
        len += connector + name;
    }
    Some(without_function(text, len))
}

/// `a/sqrt(b)` is a division by a call: what is before parentheses is the name of a function.
fn without_function(text: &str, len: usize) -> usize {
    let is_called = text[len..].trim_start().starts_with('(');
    match slashes(&text[..len]).next_back() {
        Some(last_slash) if is_called => last_slash,
        _ => len,
    }
}

fn name_len(text: &str) -> usize {
    text.chars().take_while(|&c| is_name_char(c)).map(char::len_utf8).sum()
}

fn connector_len(text: &str) -> usize {
    if text.starts_with("::") { 2 } else { usize::from(text.starts_with(['/', '.', '#', ':'])) }
}

/// A part of a path that is read as a division.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A name.
    Name(Span),
    /// A number.
    Number(Span),
    /// The slash between two parts.
    Slash(Span),
}

/// Divides a path into the longest known names, and numbers; what is not known stays together.
///
/// `path` stands at `offset` of the text, as the spans returned do.
pub(super) fn divide(path: &str, offset: usize, is_known: IsKnown<'_>) -> Vec<Part> {
    let span = |start: usize, end: usize| Span { start: offset + start, end: offset + end };
    let mut parts = Vec::new();
    let mut ends: Vec<usize> = slashes(path).collect();
    if ends.len() > MAX_SLASHES {
        return vec![Part::Name(span(0, path.len()))];
    }
    ends.push(path.len());
    let mut start = 0;
    while start < path.len() {
        let following = ends.iter().copied().filter(|&end| end > start);
        let is_numeric = start > 0 && path[start..].starts_with(|c: char| c.is_ascii_digit());
        let end = if is_numeric {
            following.clone().next().filter(|&end| number_literal(&path[start..end]).is_some())
        } else {
            let name =
                |end| Name { text: path[start..end].to_owned(), quoted: false, span: span(start, end) };
            following.rev().find(|&end| is_known(&name(end))).or(Some(path.len()))
        };
        // What begins with a digit and is no number is part of a name, but of none that is known.
        let Some(end) = end else { return vec![Part::Name(span(0, path.len()))] };
        parts.push(if is_numeric { Part::Number(span(start, end)) } else { Part::Name(span(start, end)) });
        if end < path.len() {
            parts.push(Part::Slash(span(end, end + 1)));
        }
        start = end + 1;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Option<&str> {
        path_len(text).map(|len| &text[..len])
    }

    #[test]
    fn paths_are_read_whole() {
        for text in [
            "TEMP",
            "Step#0/Energy",
            "grp1/U",
            "data/00001/particles/position/x",
            "group/table.member",
            "/abs/path",
            "a::b",
            "a:b",
            "_x1",
            "größe/ΔT",
            "hdu1/x",
        ] {
            assert_eq!(path(text), Some(text));
            assert!(is_bare_name(text), "{text}");
        }
    }

    #[test]
    fn paths_end_where_no_name_follows() {
        for (text, expected) in [
            ("a / b", "a"),
            ("a/ b", "a"),
            ("a //b", "a"),
            ("a//b", "a"),
            ("a/(b)", "a"),
            ("a/sqrt(b)", "a"),
            ("a/b/sqrt (c)", "a/b"),
            ("f(x)", "f"),
            ("x/1e-5", "x"),
            ("x/1e5", "x/1e5"),
            ("x/2.5e+3", "x"),
            ("x.", "x"),
            ("a-b", "a"),
        ] {
            assert_eq!(path(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn other_text_is_no_path() {
        for text in ["", "/", "//a", "1a", "²", "-a", "/ a"] {
            assert_eq!(path(text), None, "{text}");
        }
        for text in ["and", "NULL", "inf", "NaN", "a b", "x/1e-5", "a/"] {
            assert!(!is_bare_name(text), "{text}");
        }
    }

    fn divided(path: &str, known: &[&str]) -> String {
        let parts = divide(path, 0, &|name| known.contains(&name.text.as_str()));
        let text = |span: &Span| path[span.start..span.end].to_owned();
        let words = parts.iter().map(|part| match part {
            Part::Name(span) => text(span),
            Part::Number(span) => format!("#{}", text(span)),
            Part::Slash(_) => " ".into(),
        });
        words.collect()
    }

    #[test]
    fn paths_divide_into_the_longest_known_names() {
        assert_eq!(divided("g/a/b", &["g/a/b", "g/a", "b"]), "g/a/b");
        assert_eq!(divided("g/a/b", &["g/a", "b"]), "g/a b");
        assert_eq!(divided("g/a/g/b", &["g/a", "g/b"]), "g/a g/b");
        assert_eq!(divided("/g/a/2", &["/g/a"]), "/g/a #2");
        assert_eq!(divided("a/2/b", &["a", "b"]), "a #2 b");
        assert_eq!(divided("a/2/b", &["a/2/b"]), "a/2/b");
        assert_eq!(divided("x/y/z", &[]), "x/y/z");
        assert_eq!(divided("a/y/z", &["a"]), "a y/z");
        assert_eq!(divided("a/2x", &["a", "2x"]), "a/2x");
    }
}
