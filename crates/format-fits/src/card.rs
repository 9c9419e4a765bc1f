//! Header cards: 80 bytes that hold a keyword and its value (FITS standard 4.0, section 4).

use sieva_format::schema::AttrValue;
use sieva_types::DType;

/// Bytes of a card.
pub(crate) const CARD: usize = 80;

/// The value of a keyword.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A character string without its trailing spaces.
    Text(String),
    /// `T` or `F`.
    Logical(bool),
    /// An integer; `BZERO` of unsigned 64-bit data takes more than 63 bits.
    Int(i128),
    /// A real number.
    Float(f64),
    /// The keyword has no value.
    Undefined,
    /// What is none of these (a complex number, a damaged value), as it is written.
    Other(String),
}

impl Value {
    /// The value as an attribute.
    pub(crate) fn to_attr(&self) -> AttrValue {
        match self {
            Self::Text(s) => AttrValue::Text(s.clone()),
            Self::Logical(b) => AttrValue::Ints(DType::Bool, vec![i128::from(*b)]),
            Self::Int(i) => {
                let dtype = if i64::try_from(*i).is_ok() { DType::I64 } else { DType::U64 };
                AttrValue::Ints(dtype, vec![*i])
            }
            Self::Float(f) => AttrValue::Floats(DType::F64, vec![*f]),
            Self::Undefined => AttrValue::Other("undefined".into()),
            Self::Other(text) => AttrValue::Other(text.clone()),
        }
    }
}

/// What a card says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Card {
    /// A keyword and its value.
    Keyword(String, Value),
    /// The next piece of the text before it.
    Continue(String),
    /// A line of commentary under `COMMENT`, `HISTORY` or no keyword.
    Commentary(String, String),
    /// The header ends here.
    End,
}

/// Parses one card. Bytes beyond ASCII are taken as Latin-1.
pub(crate) fn parse(card: &[u8]) -> Card {
    let text: String = card.iter().map(|&b| char::from(b)).collect();
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(i, _)| i);
    let (keyword, rest) = text.split_at(at(8));
    let keyword = keyword.trim_end();
    if keyword == "END" && rest.trim().is_empty() {
        return Card::End;
    }
    if keyword == "CONTINUE" {
        return match value(rest) {
            Value::Text(piece) => Card::Continue(piece),
            _ => Card::Commentary(keyword.into(), rest.trim_end().into()),
        };
    }
    if matches!(keyword, "COMMENT" | "HISTORY" | "") {
        return Card::Commentary(keyword.into(), rest.trim_end().into());
    }
    if keyword == "HIERARCH" && !rest.starts_with("= ") {
        return match rest.split_once('=') {
            Some((name, text)) if !name.trim().is_empty() => {
                Card::Keyword(name.trim().to_uppercase(), value(text))
            }
            _ => Card::Commentary(keyword.into(), rest.trim_end().into()),
        };
    }
    match rest.strip_prefix('=') {
        Some(text) => Card::Keyword(keyword.to_uppercase(), value(text)),
        None => Card::Commentary(keyword.into(), rest.trim_end().into()),
    }
}

/// The value in what follows a value indicator, without its comment.
fn value(text: &str) -> Value {
    let text = text.trim_start();
    if let Some(quoted) = text.strip_prefix('\'') {
        return Value::Text(unquote(quoted));
    }
    let token = text.split('/').next().unwrap_or_default().trim();
    match token {
        "" => Value::Undefined,
        "T" => Value::Logical(true),
        "F" => Value::Logical(false),
        _ => number(token).unwrap_or_else(|| Value::Other(token.to_owned())),
    }
}

/// The text up to its closing quote; a quote within is written twice.
fn unquote(quoted: &str) -> String {
    let mut text = String::new();
    let mut chars = quoted.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\'' {
            if chars.peek() != Some(&'\'') {
                break;
            }
            chars.next();
        }
        text.push(c);
    }
    text.truncate(text.trim_end_matches(' ').len());
    text
}

/// A number as FITS writes it: an exponent may be a `D`.
fn number(token: &str) -> Option<Value> {
    if let Ok(i) = token.parse::<i128>() {
        return Some(Value::Int(i));
    }
    real(token).map(Value::Float)
}

/// A real number in the notation of Fortran, `None` where it is none. Words as `inf` are none.
pub(crate) fn real(token: &str) -> Option<f64> {
    let plausible = |b: u8| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E' | b'd' | b'D');
    if !token.bytes().all(plausible) {
        return None;
    }
    token.replace(['D', 'd'], "e").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Card {
        parse(format!("{text:<80}").as_bytes())
    }

    fn key(name: &str, value: Value) -> Card {
        Card::Keyword(name.into(), value)
    }

    #[test]
    fn values_of_all_types() {
        assert_eq!(one("BITPIX  =                  -32 / bits"), key("BITPIX", Value::Int(-32)));
        assert_eq!(one("SIMPLE  =                    T"), key("SIMPLE", Value::Logical(true)));
        assert_eq!(one("BZERO   = 9223372036854775808"), key("BZERO", Value::Int(1 << 63)));
        assert_eq!(one("EXPTIME = 1.5D2 / s"), key("EXPTIME", Value::Float(150.0)));
        assert_eq!(one("EMPTY   =  / nothing"), key("EMPTY", Value::Undefined));
        assert_eq!(one("C       = (1, 2)"), key("C", Value::Other("(1, 2)".into())));
        assert_eq!(one("N       = inf"), key("N", Value::Other("inf".into())));
    }

    #[test]
    fn texts_keep_quotes_and_lose_trailing_spaces() {
        assert_eq!(one("OBSERVER= 'O''Hara / x  ' / who"), key("OBSERVER", Value::Text("O'Hara / x".into())));
        assert_eq!(one("A       = '  b'"), key("A", Value::Text("  b".into())));
        assert_eq!(one("A       = 'open"), key("A", Value::Text("open".into())));
        assert_eq!(one("CONTINUE  'more&'"), Card::Continue("more&".into()));
    }

    #[test]
    fn long_names_and_commentary() {
        assert_eq!(one("HIERARCH ESO INS = 'X'"), key("ESO INS", Value::Text("X".into())));
        assert_eq!(one("HISTORY  made = by us"), Card::Commentary("HISTORY".into(), " made = by us".into()));
        assert_eq!(one("END"), Card::End);
        assert!(matches!(parse(&[0xff; 80]), Card::Commentary(..)));
    }
}
