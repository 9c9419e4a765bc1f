//! XML: elements with attributes, nothing else.

mod read;
#[cfg(test)]
mod tests;
mod write;

pub(super) use read::read;
pub(super) use write::write;

/// Whether XML 1.0 can have a character at all.
fn is_possible(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..)
}

/// The attribute whose line feeds are written as in Figure 2.
const CODE: &str = "cod";

/// Line feeds, tabs, carriage returns and backslashes of code, by the letters behind a backslash.
const ESCAPES: [(char, char); 4] = [('\n', 'n'), ('\t', 't'), ('\r', 'r'), ('\\', '\\')];
