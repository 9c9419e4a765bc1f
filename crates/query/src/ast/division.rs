//! Reads a path as a division.

use super::{BinaryOp, Expr, Name, Span};
use crate::parse::number_literal;

/// Reads an unquoted path as what it also could have meant: `a/b/2` as `a / b / 2`.
///
/// `None` if the name is quoted, has no slash behind its first character, or has a part that is neither a
/// name nor a number.
///
/// Putting the result in the place of the name is right only where the name is the whole expression or its
/// leftmost operand: in `1/a/b` and `a/b^2` the parts belong to the operators beside them. To read an
/// expression whose arrays are known, parse its text with [`crate::parse::parse_condition_with`] or one of
/// its siblings, which groups the parts as if they had been written with spaces.
pub fn split_path_as_division(name: &Name) -> Option<Expr> {
    if name.quoted || !(1..=MAX_SLASHES).contains(&slashes(&name.text).count()) {
        return None;
    }
    let mut start = 0;
    let mut quotient: Option<Expr> = None;
    for end in slashes(&name.text).chain([name.text.len()]) {
        let part = &name.text[start..end];
        let at = name.span.start.saturating_add(start);
        let span = Span { start: at, end: at.saturating_add(part.len()) };
        let divisor = read_part(part, span)?;
        quotient = Some(match quotient {
            None => divisor,
            Some(left) => Expr::Binary { op: BinaryOp::Div, left: Box::new(left), right: Box::new(divisor) },
        });
        start = end + 1;
    }
    quotient
}

/// The most slashes of a path that can be divided; groups are not nested so deeply, and a tree must not be.
pub(crate) const MAX_SLASHES: usize = 64;

/// Where a path can be divided: at its slashes, but for a leading one.
pub(crate) fn slashes(path: &str) -> impl DoubleEndedIterator<Item = usize> + '_ {
    path.match_indices('/').map(|(i, _)| i).filter(|&i| i > 0)
}

fn read_part(part: &str, span: Span) -> Option<Expr> {
    if part.starts_with(|c: char| c.is_ascii_digit()) {
        return number_literal(part).map(Expr::Literal);
    }
    let is_empty = part.is_empty() || part == "/";
    (!is_empty).then(|| Expr::Name(Name { text: part.to_owned(), quoted: false, span }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Option<String> {
        let span = Span { start: 10, end: 10 + text.len() };
        let name = Name { text: text.into(), quoted: false, span };
        split_path_as_division(&name).map(|e| e.to_string())
    }

    #[test]
    fn paths_split_at_slashes() {
        for (path, division) in [
            ("a/b", "a / b"),
            ("a/b/c", "a / b / c"),
            ("TEMP/2", "TEMP / 2"),
            ("TEMP/2.5", "TEMP / 2.5"),
            ("TEMP/1e3", "TEMP / 1000.0"),
            ("/g/x.y", "/g / x.y"),
            ("é/ü", "é / ü"),
        ] {
            assert_eq!(split(path).as_deref(), Some(division), "{path}");
        }
    }

    #[test]
    fn other_names_do_not_split() {
        for path in ["a", "/a", "a/2x", "a//b", "a/"] {
            assert_eq!(split(path), None, "{path}");
        }
        assert_eq!(split(&"a/".repeat(100_000)), None);
        assert_eq!(split_path_as_division(&Name::quoted("a/b")), None);
    }

    #[test]
    fn parts_know_where_they_stand() {
        let name = Name { text: "ab/c".into(), quoted: false, span: Span { start: 10, end: 14 } };
        let Some(Expr::Binary { right, .. }) = split_path_as_division(&name) else { panic!("no division") };
        let Expr::Name(right) = *right else { panic!("no name") };
        assert_eq!(right.span, Span { start: 13, end: 14 });
    }
}
