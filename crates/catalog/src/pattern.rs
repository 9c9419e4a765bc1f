//! LIKE and shell patterns, matched without going back more than to the last star.

use sieva_types::{Error, ErrorKind, Result};

/// Characters of a pattern.
const MAX_PATTERN: usize = 4096;

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Char(char),
    Any,
    Star,
    /// One character within these ranges, or outside of them.
    Set(Vec<(char, char)>, bool),
}

/// A pattern for a whole text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
    prefix: String,
}

impl Pattern {
    fn new(parts: Vec<Part>) -> Result<Self> {
        if parts.len() > MAX_PATTERN {
            let message =
                format!("a pattern has {} characters; at most {MAX_PATTERN} are taken", parts.len());
            return Err(Error::new(ErrorKind::InvalidValue, message).hint("shorten it"));
        }
        let prefix =
            parts.iter().map_while(|p| if let Part::Char(c) = p { Some(*c) } else { None }).collect();
        Ok(Self { parts, prefix })
    }

    /// A pattern of SQL's LIKE.
    pub(crate) fn like(text: &str) -> Result<Self> {
        let mut parts = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            parts.push(match c {
                '%' => Part::Star,
                '_' => Part::Any,
                '\\' => Part::Char(chars.next().unwrap_or('\\')),
                c => Part::Char(c),
            });
        }
        Self::new(parts)
    }

    /// A pattern of a shell. A `[` without end is a character.
    pub(crate) fn glob(text: &str) -> Result<Self> {
        let chars: Vec<char> = text.chars().collect();
        let (mut parts, mut i) = (Vec::new(), 0);
        while let Some(&c) = chars.get(i) {
            i += 1;
            parts.push(match c {
                '*' => Part::Star,
                '?' => Part::Any,
                '[' => match set(&chars[i..]) {
                    Some((part, len)) => {
                        i += len;
                        part
                    }
                    None => Part::Char('['),
                },
                c => Part::Char(c),
            });
        }
        Self::new(parts)
    }

    /// The characters that every match begins with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether the whole text matches, in time of text times pattern.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let mut chars = text.chars();
        let mut at = 0;
        let mut back: Option<(usize, std::str::Chars<'_>)> = None;
        loop {
            if let Some(Part::Star) = self.parts.get(at) {
                at += 1;
                back = Some((at, chars.clone()));
                continue;
            }
            let here = chars.clone().next();
            let fits = match (self.parts.get(at), here) {
                (None, None) => return true,
                (Some(part), Some(c)) => part.fits(c),
                _ => false,
            };
            if fits {
                at += 1;
                chars.next();
                continue;
            }
            // The last star takes one character more.
            let Some((after, from)) = &mut back else { return false };
            if from.next().is_none() {
                return false;
            }
            at = *after;
            chars = from.clone();
        }
    }
}

impl Part {
    fn fits(&self, c: char) -> bool {
        match self {
            Self::Char(own) => *own == c,
            Self::Any => true,
            Self::Star => false,
            Self::Set(ranges, not) => ranges.iter().any(|&(a, b)| a <= c && c <= b) != *not,
        }
    }
}

/// The set after a `[`, and its length with the `]`.
fn set(chars: &[char]) -> Option<(Part, usize)> {
    let not = matches!(chars.first(), Some('!' | '^'));
    let start = usize::from(not);
    // A `]` that comes first is one of the set.
    let end = start + 1 + chars.get(start + 1..)?.iter().position(|&c| c == ']')?;
    let (mut ranges, mut i) = (Vec::new(), start);
    while i < end {
        if i + 2 < end && chars[i + 1] == '-' {
            ranges.push((chars[i], chars[i + 2]));
            i += 3;
        } else {
            ranges.push((chars[i], chars[i]));
            i += 1;
        }
    }
    Some((Part::Set(ranges, not), end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Oracle: tries everything.
    fn slow(parts: &[Part], text: &[char]) -> bool {
        match (parts.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((Part::Star, rest)), _) => (0..=text.len()).any(|n| slow(rest, &text[n..])),
            (Some((part, rest)), Some((c, more))) => part.fits(*c) && slow(rest, more),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matches_what_trying_everything_matches(pattern in "[ab*?é]{0,8}", text in "[abé]{0,8}") {
            let pattern = Pattern::glob(&pattern).unwrap();
            let chars: Vec<char> = text.chars().collect();
            prop_assert_eq!(pattern.matches(&text), slow(&pattern.parts, &chars));
        }
    }

    #[test]
    fn patterns_of_both_kinds() {
        let like = |p: &str, t: &str| Pattern::like(p).unwrap().matches(t);
        assert!(like("a%_c", "axbc") && like("100\\%", "100%") && !like("100\\%", "1000") && !like("a", "A"));
        assert!(like("%", "") && !like("_", "") && like("%é_", "caféx"));
        let glob = |p: &str, t: &str| Pattern::glob(p).unwrap().matches(t);
        assert!(glob("a[b-d]*", "ac/x") && !glob("a[!b-d]", "ac") && glob("[]x]", "]") && glob("a[", "a["));
        assert!(glob("[a-]", "-") && !glob("[!a]", "a"));
        assert_eq!(Pattern::like("2014-%x").unwrap().prefix(), "2014-");
    }

    #[test]
    fn many_stars_end() {
        let text = "a".repeat(20_000);
        assert!(!Pattern::glob(&("*a".repeat(500) + "b")).unwrap().matches(&text));
    }
}
