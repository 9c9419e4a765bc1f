//! Text: LIKE, case and length.

use super::{Scalar, Shape, ValueType, Values, Vector};
use sieva_types::{Error, ErrorKind, Result, Texts};

/// A LIKE pattern: `%` stands for any text, `_` for any one character; everything else for itself, case included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LikePattern {
    /// What stands between the `%`: the first begins the text and the last ends it.
    pieces: Vec<Piece>,
    text: String,
}

/// Characters in a row; `None` stands for any one.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// All of them given, the common case, found by substring search.
    Literal(String),
    /// Some of them any.
    Wild(Vec<Option<char>>),
}

impl LikePattern {
    /// The pattern as it was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads a pattern; a character behind `escape` stands for itself.
    ///
    /// # Errors
    /// `InvalidValue` if nothing follows an `escape`.
    pub fn new(pattern: &str, escape: Option<char>) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut piece = Vec::new();
        let mut chars = pattern.chars();
        while let Some(c) = chars.next() {
            match c {
                _ if Some(c) == escape => match chars.next() {
                    Some(literal) => piece.push(Some(literal)),
                    None => {
                        let message = format!("nothing follows the escape {c:?} in the pattern {pattern:?}");
                        return Err(Error::new(ErrorKind::InvalidValue, message));
                    }
                },
                '%' => pieces.push(Piece::new(std::mem::take(&mut piece))),
                '_' => piece.push(None),
                _ => piece.push(Some(c)),
            }
        }
        pieces.push(Piece::new(piece));
        Ok(Self { pieces, text: pattern.to_owned() })
    }

    /// Whether the whole of `text` is of this form.
    ///
    /// Each piece is taken at its first place behind the one before, and never again looked for: a later place
    /// would leave less text for the rest. So the time is linear in the text (times the longest piece with `_`).
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.pieces.split_first() else { return text.is_empty() };
        let Some(mut text) = first.strip_prefix(text) else { return false };
        let Some((last, middle)) = rest.split_last() else { return text.is_empty() };
        for piece in middle {
            match piece.find(text) {
                Some(behind) => text = behind,
                None => return false,
            }
        }
        last.is_suffix_of(text)
    }
}

impl Piece {
    fn new(chars: Vec<Option<char>>) -> Self {
        match chars.iter().copied().collect::<Option<String>>() {
            Some(literal) => Self::Literal(literal),
            None => Self::Wild(chars),
        }
    }

    /// What stands in `text` behind this piece at its beginning.
    fn strip_prefix<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self {
            Self::Literal(literal) => text.strip_prefix(literal.as_str()),
            Self::Wild(chars) => {
                let mut rest = text.chars();
                chars.iter().all(|c| fits(*c, rest.next())).then_some(rest.as_str())
            }
        }
    }

    /// What stands in `text` behind the first place of this piece.
    fn find<'a>(&self, text: &'a str) -> Option<&'a str> {
        match self {
            Self::Literal(literal) => text.find(literal.as_str()).map(|at| &text[at + literal.len()..]),
            Self::Wild(_) => text.char_indices().find_map(|(at, _)| self.strip_prefix(&text[at..])),
        }
    }

    fn is_suffix_of(&self, text: &str) -> bool {
        match self {
            Self::Literal(literal) => text.ends_with(literal.as_str()),
            Self::Wild(chars) => {
                let mut rest = text.chars().rev();
                chars.iter().rev().all(|c| fits(*c, rest.next()))
            }
        }
    }
}

fn fits(wanted: Option<char>, got: Option<char>) -> bool {
    got.is_some() && (wanted.is_none() || wanted == got)
}

/// `text LIKE pattern`, row by row; missing where either is.
///
/// # Errors
/// `TypeMismatch` if `text` or the pattern is not text, `Unsupported` if the pattern is not a constant.
pub fn like(text: &Vector, pattern: &Vector) -> Result<Vector> {
    let shape = Shape::of(text);
    let pattern = match pattern.scalar(0) {
        _ if !pattern.is_constant() => {
            let message = "the pattern of LIKE must be a constant, not a column";
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Scalar::Null => return Ok(Vector::missing(ValueType::Bool, shape)),
        Scalar::Str(pattern) => LikePattern::new(&pattern, None)?,
        other => {
            let message = format!("the pattern of LIKE must be text, got {other}");
            return Err(Error::new(ErrorKind::TypeMismatch, message));
        }
    };
    map_text(text, ValueType::Bool, |v| Values::Bool(v.iter().map(|t| pattern.matches(t)).collect()))
}

/// In lower case, by Unicode's rules.
pub(super) fn lower(text: &Vector) -> Result<Vector> {
    map_text(text, ValueType::Str, |v| Values::Str(v.iter().map(|t| t.to_lowercase()).collect()))
}

/// In upper case, by Unicode's rules.
pub(super) fn upper(text: &Vector) -> Result<Vector> {
    map_text(text, ValueType::Str, |v| Values::Str(v.iter().map(|t| t.to_uppercase()).collect()))
}

/// The number of characters.
pub(super) fn length(text: &Vector) -> Result<Vector> {
    let count = |t: &str| i64::try_from(t.chars().count()).unwrap_or(i64::MAX);
    map_text(text, ValueType::I64, |v| Values::I64(v.iter().map(count).collect()))
}

fn map_text(text: &Vector, result: ValueType, f: impl Fn(&Texts) -> Values) -> Result<Vector> {
    let shape = Shape::of(text);
    if text.value_type().is_none() {
        return Ok(Vector::missing(result, shape));
    }
    let Values::Str(values) = &text.values else {
        let message = format!("expected text, got {}", text.values.value_type());
        return Err(Error::new(ErrorKind::TypeMismatch, message));
    };
    Ok(Vector::from_parts(f(values), text.valid.clone(), shape))
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        LikePattern::new(pattern, None).unwrap().matches(text)
    }

    #[test]
    fn patterns() {
        for (pattern, yes, no) in [
            ("", "", "a"),
            ("%", "", ""),
            ("abc", "abc", "abcd"),
            ("abc", "abc", "ABC"),
            ("a%", "a", "ba"),
            ("%a", "bca", "ab"),
            ("a%a", "aa", "a"),
            ("%b%d%", "abcde", "adcbe"),
            ("a_c", "aéc", "ac"),
            ("_%_", "ab", "a"),
            ("%_b", "ab", "b"),
            ("%a_c%x_z", "..abc..abcxyz", "abxyz"),
            ("%aab", "aaab", "aaba"),
            ("%%a%%", "xax", "xx"),
        ] {
            assert!(matches(pattern, yes), "{yes:?} LIKE {pattern:?}");
            assert!(pattern == "%" || !matches(pattern, no), "{no:?} NOT LIKE {pattern:?}");
        }
    }

    #[test]
    fn escaped_characters_stand_for_themselves() {
        let pattern = LikePattern::new(r"100\%\_%", Some('\\')).unwrap();
        assert!(pattern.matches("100%_x"));
        assert!(!pattern.matches("1000_x"));
        let e = LikePattern::new("a!", Some('!')).unwrap_err();
        assert_eq!(e.message(), "nothing follows the escape '!' in the pattern \"a!\"");
    }

    #[test]
    fn hostile_patterns_do_not_backtrack() {
        let pattern = "%a".repeat(200) + "b";
        assert!(!matches(&pattern, &"a".repeat(100_000)));
    }

    #[test]
    fn like_of_missing_is_missing() {
        let text = without(texts(&["ab", "b", ""]), &[2]);
        let pattern = constant(Scalar::Str("a%".into()));
        assert_eq!(like(&text, &pattern).unwrap(), bools(&[Some(true), Some(false), None]));
        assert!(!like(&text, &constant(Scalar::Null)).unwrap().is_valid(0));
        let e = like(&ints(&[1]), &pattern).unwrap_err();
        assert_eq!((e.kind(), e.message()), (ErrorKind::TypeMismatch, "expected text, got int64"));
    }

    #[test]
    fn case_and_length_count_characters() {
        assert_eq!(upper(&texts(&["éa"])).unwrap(), texts(&["ÉA"]));
        assert_eq!(lower(&texts(&["ÉA"])).unwrap(), texts(&["éa"]));
        assert_eq!(length(&texts(&["éa", ""])).unwrap(), ints(&[2, 0]));
    }

    mod laws {
        use super::*;
        use proptest::prelude::*;

        /// The definition, by recursion.
        fn naive(pattern: &[char], text: &[char]) -> bool {
            match pattern.split_first() {
                None => text.is_empty(),
                Some(('%', rest)) => (0..=text.len()).any(|i| naive(rest, &text[i..])),
                Some((p, rest)) => {
                    text.split_first().is_some_and(|(c, text)| (*p == '_' || p == c) && naive(rest, text))
                }
            }
        }

        proptest! {
            #[test]
            fn like_follows_its_definition(pattern in "[abé_%]{0,8}", text in "[abé]{0,10}") {
                let (p, t): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
                prop_assert_eq!(matches(&pattern, &text), naive(&p, &t));
            }
        }
    }
}
