//! Names and constants as they are written in SQL, and constants read again.

use sieva_plan::Literal;

/// Words that are quoted to be names: those of the grammar in any place, and values.
const RESERVED: [&str; 26] = [
    "SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "BY", "HAVING", "ORDER", "LIMIT", "OFFSET", "AND", "OR",
    "NOT", "BETWEEN", "IN", "IS", "NULL", "LIKE", "AS", "TRUE", "FALSE", "CROSS", "GLOB", "EXISTS", "INF",
    "NAN",
];

/// A name as SQL has it: in double quotes, unless it is a plain word. A quoted name is never taken for anything else.
pub(crate) fn name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_word =
        text.chars().all(plain) && !text.starts_with(|c: char| c.is_ascii_digit()) && !text.is_empty();
    if is_word && !RESERVED.iter().any(|w| w.eq_ignore_ascii_case(text)) {
        return text.to_owned();
    }
    quoted(text, '"')
}

/// A constant as SQL has it, exactly.
pub(crate) fn literal(value: &Literal) -> String {
    match value {
        Literal::Null => "NULL".to_owned(),
        Literal::Bool(b) => if *b { "TRUE" } else { "FALSE" }.to_owned(),
        Literal::Int(i) => i.to_string(),
        Literal::Float(f) => float(*f),
        Literal::Text(text) => quoted(text, '\''),
    }
}

/// A float, with as many digits as give it back, so that it never looks like an integer.
pub(crate) fn float(f: f64) -> String {
    if f.is_nan() { "nan".to_owned() } else { format!("{f:?}") }
}

/// What [`literal`] writes, but for NULL and NaN; a sign may be a plus, too. None for other texts.
pub(crate) fn read_literal(text: &str) -> Option<Literal> {
    let text = text.trim();
    if let Some(inner) = unquoted(text, '\'') {
        return Some(Literal::Text(inner));
    }
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return Some(Literal::Bool(text.eq_ignore_ascii_case("true")));
    }
    let digits = text.trim_start_matches(['+', '-']);
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().map(Literal::Int);
    }
    if digits.eq_ignore_ascii_case("inf") {
        return text.parse().ok().map(Literal::Float);
    }
    // Of the words that the standard library takes for numbers, `infinity` and `nan` are none here.
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|f: &f64| is_number && f.is_finite()).map(Literal::Float)
}

/// A text between quotes; a quote in it is doubled.
pub(crate) fn quoted(text: &str, quote: char) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push(quote);
    for c in text.chars() {
        out.push(c);
        if c == quote {
            out.push(c);
        }
    }
    out.push(quote);
    out
}

/// The text that [`quoted`] had; none where it is not between quotes, or a quote in it is not doubled.
pub(crate) fn unquoted(text: &str, quote: char) -> Option<String> {
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c == quote && chars.next() != Some(quote) {
            return None;
        }
        out.push(c);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_where_they_could_be_taken_for_something_else() {
        for plain in ["TEMP", "_x1", "month"] {
            assert_eq!(name(plain), plain);
        }
        for (given, written) in [
            ("a/b", "\"a/b\""),
            ("1D", "\"1D\""),
            ("where", "\"where\""),
            ("Inf", "\"Inf\""),
            ("a\"b", "\"a\"\"b\""),
            ("größe", "\"größe\""),
            ("", "\"\""),
        ] {
            assert_eq!(name(given), written);
        }
    }

    #[test]
    fn constants_are_read_as_they_are_written() {
        for value in [
            Literal::Int(i128::MIN),
            Literal::Int(i128::MAX),
            Literal::Float(-0.0),
            Literal::Float(1e300),
            Literal::Float(5e-324),
            Literal::Float(f64::NEG_INFINITY),
            Literal::Text("it's 'x'".to_owned()),
            Literal::Text(String::new()),
            Literal::Bool(false),
        ] {
            assert_eq!(read_literal(&literal(&value)), Some(value));
        }
        assert_eq!(read_literal(" +7 "), Some(Literal::Int(7)));
        assert_eq!(read_literal(".5"), Some(Literal::Float(0.5)));
        for text in ["", "nan", "NULL", "infinity", "2000-01-01", "'a'b'", "'", "1e999", "--1", "0x10"] {
            assert_eq!(read_literal(text), None, "{text}");
        }
    }
}
