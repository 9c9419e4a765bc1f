//! Syntax errors that show the place.

use sieva_types::{Error, ErrorKind};

/// The most characters of a line that are shown.
const SHOWN_WIDTH: usize = 100;

/// An error at byte `offset` of `text`: the place, what is wrong, the line and a caret below it.
pub(super) fn syntax_error(text: &str, offset: usize, what: &str) -> Error {
    let (line, column) = position(text, offset);
    let shown = excerpt(text, offset);
    let what = sieva_types::printable(what);
    Error::of_lines(
        ErrorKind::Syntax,
        format!("syntax error at line {line}, column {column}: {what}\n{shown}"),
    )
}

/// The line and the column of byte `offset`, in characters and from one.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// The line that holds byte `offset`, cut to a bearable width, and the caret line.
fn excerpt(text: &str, offset: usize) -> String {
    let start = text[..offset].rfind('\n').map_or(0, |i| i + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |i| offset + i);
    let column = text[start..offset].chars().count();
    let skipped = if column < SHOWN_WIDTH { 0 } else { column - SHOWN_WIDTH / 2 };
    let mut chars = text[start..end].chars().skip(skipped);
    let mut shown: String = if skipped > 0 { "...".into() } else { String::new() };
    let indent = shown.len() + column - skipped;
    shown.extend(chars.by_ref().take(SHOWN_WIDTH).map(|c| if c.is_control() { ' ' } else { c }));
    if chars.next().is_some() {
        shown.push_str("...");
    }
    format!("  {}\n  {:indent$}^", shown.trim_end(), "")
}

/// A character as it is shown in a message.
pub(super) fn printable(c: char) -> String {
    if c.is_alphanumeric() || c.is_ascii_graphic() {
        format!("'{c}'")
    } else if c.is_control()
        || c.is_whitespace()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}')
    {
        format!("U+{:04X}", u32::from(c))
    } else {
        format!("'{c}' (U+{:04X})", u32::from(c))
    }
}

/// The first `width` characters of `text`, on one line.
pub(super) fn shorten(text: &str, width: usize) -> String {
    let mut chars = text.chars();
    let mut short: String =
        chars.by_ref().take(width).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if chars.next().is_some() {
        short.push_str("...");
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_is_below_the_place() {
        let e = syntax_error("a >\n\tb ? c", 7, "unexpected character '?'");
        assert_eq!(
            e.message(),
            "syntax error at line 2, column 4: unexpected character '?'\n   b ? c\n     ^"
        );
        assert_eq!(e.kind(), ErrorKind::Syntax);
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let text = format!("{}?{}", "a".repeat(1000), "b".repeat(1000));
        let message = syntax_error(&text, 1000, "x").message().to_owned();
        let lines: Vec<_> = message.lines().collect();
        assert_eq!(lines[1], format!("  ...{}?{}...", "a".repeat(50), "b".repeat(49)));
        assert_eq!(lines[2].find('^'), lines[1].find('?'));
    }
}
