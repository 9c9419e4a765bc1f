//! Text of a file, a name or a server as it is shown to people: nothing in it commands their terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// `text` with all characters escaped that a terminal takes for commands, that begin a line, or that turn the direction
/// of what follows: `\u{1b}` for an escape, `\n` for a line feed.
///
/// ```
/// assert_eq!(sieva_types::printable("a\u{1b}]0;b\u{7}\n"), "a\\u{1b}]0;b\\u{7}\\n");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_command)
}

/// The same for texts of many lines: line feeds and tabs stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_command(c) && !matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, goes: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&goes) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !goes(c) => out.push(c),
            '\n' | '\r' | '\t' => out.extend(c.escape_default()),
            // Writing to a string does not fail.
            c => _ = write!(out, "{}", c.escape_unicode()),
        }
    }
    Cow::Owned(out)
}

/// Control characters of both sets, separators of lines, and marks of direction (Unicode TR 36, section 2.5).
fn is_command(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_commands_a_terminal_is_escaped() {
        for (text, shown) in [
            ("TEMP, größer als 5 °C\u{200d}", "TEMP, größer als 5 °C\u{200d}"),
            ("\u{1b}[2J\u{9b}31m\u{7f}\0", "\\u{1b}[2J\\u{9b}31m\\u{7f}\\u{0}"),
            ("a\r\nb\tc", "a\\r\\nb\\tc"),
            ("\u{202e}cn.a\u{2066}\u{2028}", "\\u{202e}cn.a\\u{2066}\\u{2028}"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert_eq!(printable_lines("a\tb\n\u{1b}c\r"), "a\tb\n\\u{1b}c\\r");
    }
}
