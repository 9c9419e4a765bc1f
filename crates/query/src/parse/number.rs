//! Reads numbers.

use super::path::is_name_char;
use super::token::{BadToken, TokenKind};
use crate::ast::Literal;

/// The magnitude of the least `i128`; one more than that of the greatest.
const MAX_MAGNITUDE: u128 = 1 << 127;

/// The literal that is the whole of `text`, if `text` is an unsigned number.
pub(crate) fn number_literal(text: &str) -> Option<Literal> {
    match scan_number(text) {
        (TokenKind::Int(v), len) if len == text.len() => i128::try_from(v).ok().map(Literal::Int),
        (TokenKind::Float(v), len) if len == text.len() => Some(Literal::Float(v)),
        _ => None,
    }
}

/// The number at the start of `text`, which begins with a digit, or a point and a digit, and its length.
pub(super) fn scan_number(text: &str) -> (TokenKind, usize) {
    let (len, is_integer) = extent(text);
    let glued: usize =
        text[len..].chars().take_while(|&c| is_name_char(c) || c == '.').map(char::len_utf8).sum();
    if glued > 0 {
        return (malformed(&text[..len + glued]), len + glued);
    }
    (if is_integer { integer(&text[..len]) } else { float(&text[..len]) }, len)
}

/// The length of a number's digits, point and exponent, and whether it is an integer.
fn extent(text: &str) -> (usize, bool) {
    if let Some(hex) = hex_digits(text) {
        let digits = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 0 {
            return (2 + digits, true);
        }
    }
    let mut len = digits(text);
    let mut is_integer = true;
    if text[len..].starts_with('.') {
        len += 1 + digits(&text[len + 1..]);
        is_integer = false;
    }
    if let Some(exponent) = exponent(&text[len..]) {
        len += exponent;
        is_integer = false;
    }
    (len, is_integer)
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn hex_digits(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// The length of the exponent at the start of `text`.
fn exponent(text: &str) -> Option<usize> {
    let rest = text.strip_prefix(['e', 'E'])?;
    let sign = usize::from(rest.starts_with(['+', '-']));
    let digits = digits(&rest[sign..]);
    (digits > 0).then_some(1 + sign + digits)
}

/// Whether `text` begins with a number whose exponent has a sign, such as `1e-5`.
pub(super) fn has_signed_exponent(text: &str) -> bool {
    let integer = digits(text);
    let mut len = integer;
    if integer > 0 && text[len..].starts_with('.') {
        len += 1 + digits(&text[len + 1..]);
    }
    let signed = text[len..].get(1..).is_some_and(|rest| rest.starts_with(['+', '-']));
    integer > 0 && signed && exponent(&text[len..]).is_some()
}

fn integer(text: &str) -> TokenKind {
    let value = match hex_digits(text) {
        Some(hex) => u128::from_str_radix(hex, 16),
        None => text.parse(),
    };
    match value {
        Ok(v) if v <= MAX_MAGNITUDE => TokenKind::Int(v),
        _ => TokenKind::Bad(Box::new(too_great(text))),
    }
}

/// What is wrong with an integer beyond 128 bits.
pub(super) fn too_great(text: &str) -> BadToken {
    BadToken {
        message: format!("integer {} does not fit into 128 bits", shorten(text)),
        hint: Some("write it with an exponent, such as 1e40, to make it a float".to_owned()),
    }
}

fn float(text: &str) -> TokenKind {
    match text.parse::<f64>() {
        Ok(v) if v.is_finite() => TokenKind::Float(v),
        _ => bad(
            format!("number {} is beyond the range of a 64-bit float", shorten(text)),
            "the greatest is about 1.8e308; infinity is written inf",
        ),
    }
}

fn malformed(text: &str) -> TokenKind {
    let hint = if text.contains('_') && text.bytes().all(|b| b.is_ascii_digit() || b == b'_') {
        format!("write digits without underscores: {}", shorten(&text.replace('_', "")))
    } else {
        "put an operator between a number and a name; put a name that begins with a digit in double quotes"
            .to_owned()
    };
    bad(format!("malformed number '{}'", shorten(text)), hint)
}

fn bad(message: String, hint: impl Into<String>) -> TokenKind {
    TokenKind::Bad(Box::new(BadToken { message, hint: Some(hint.into()) }))
}

fn shorten(text: &str) -> String {
    super::error::shorten(text, 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read() {
        for (text, value) in [
            ("0", Literal::Int(0)),
            ("007", Literal::Int(7)),
            ("0xff", Literal::Int(255)),
            ("170141183460469231731687303715884105727", Literal::Int(i128::MAX)),
            ("1.5", Literal::Float(1.5)),
            (".5", Literal::Float(0.5)),
            ("5.", Literal::Float(5.0)),
            ("5.e2", Literal::Float(500.0)),
            ("1e3", Literal::Float(1000.0)),
            ("1E-3", Literal::Float(0.001)),
            ("9007199254740993", Literal::Int(9_007_199_254_740_993)),
        ] {
            assert_eq!(number_literal(text), Some(value), "{text}");
        }
    }

    #[test]
    fn other_text_is_no_number() {
        for text in ["0x", "1e", "1e+", "1_000", "1.2.3", "2x", "1e400", "1 "] {
            assert_eq!(number_literal(text), None, "{text}");
        }
        // Only a sign makes this one fit.
        assert_eq!(number_literal("170141183460469231731687303715884105728"), None);
    }

    #[test]
    fn signed_exponents_are_seen() {
        for (text, signed) in [
            ("1e-5", true),
            ("1.5E+3x", true),
            ("2.e-1", true),
            ("1e5", false),
            ("1-5", false),
            ("e-5", false),
        ] {
            assert_eq!(has_signed_exponent(text), signed, "{text}");
        }
    }
}
