//! Text to tokens.

use super::error::printable;
use super::number::scan_number;
use super::path::{IsKnown, Part, divide, is_name_start, path_len, special_float};
use super::token::{BadToken, Keyword, SYMBOLS, Symbol, Token, TokenKind};
use crate::ast::Span;

/// All tokens of `text`, the last of them [`TokenKind::End`].
///
/// What is no token becomes [`TokenKind::Bad`], and nothing behind it is read. Paths that `is_known` does not
/// know are divided at their slashes into parts that it does.
pub(super) fn tokenize(text: &str, is_known: Option<IsKnown<'_>>) -> Vec<Token> {
    let mut lexer = Lexer { text, pos: 0, tokens: Vec::new(), is_known };
    while lexer.token() {}
    lexer.push(TokenKind::End, 0);
    lexer.tokens
}

struct Lexer<'a> {
    text: &'a str,
    pos: usize,
    tokens: Vec<Token>,
    is_known: Option<IsKnown<'a>>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.pos..]
    }

    fn push(&mut self, kind: TokenKind, len: usize) {
        let span = Span { start: self.pos, end: self.pos + len };
        self.tokens.push(Token { kind, span });
        self.pos = span.end;
    }

    /// Adds a bad token; the answer is that there is nothing more to read.
    fn bad(&mut self, message: impl Into<String>, hint: Option<&str>) -> bool {
        let bad = BadToken { message: message.into(), hint: hint.map(str::to_owned) };
        self.push(TokenKind::Bad(Box::new(bad)), 0);
        false
    }

    fn after_value(&self) -> bool {
        self.tokens.last().is_some_and(|token| token.kind.ends_value())
    }

    /// Reads one token or comment; false at the end and after a bad token.
    fn token(&mut self) -> bool {
        self.pos = self.text.len() - self.rest().trim_start().len();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return false };
        match first {
            '\'' => self.quoted('\'', "string", TokenKind::Str),
            '"' | '`' => self.quoted(first, "quoted name", TokenKind::Quoted),
            '-' if rest.starts_with("--") => self.line_comment(),
            '/' if rest.starts_with("/*") => self.block_comment(),
            '/' if !self.after_value() && path_len(rest).is_some() => self.path(),
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number(),
            _ if first.is_ascii_digit() => self.number(),
            _ if is_name_start(first) => self.path(),
            _ => self.symbol(first),
        }
    }

    fn number(&mut self) -> bool {
        let (kind, len) = scan_number(self.rest());
        let is_good = !matches!(kind, TokenKind::Bad(_));
        self.push(kind, len);
        is_good
    }

    fn path(&mut self) -> bool {
        let path = &self.rest()[..path_len(self.rest()).unwrap_or(0)];
        if let Some(is_known) = self.is_known.filter(|_| path.contains('/')) {
            for part in divide(path, self.pos, is_known) {
                self.part(&part);
            }
        } else {
            self.word(path);
        }
        true
    }

    /// Reads a name, which may be another word's.
    fn word(&mut self, text: &str) {
        let kind = match (special_float(text), Keyword::of(text)) {
            (Some(value), _) => TokenKind::Float(value),
            (None, Some(keyword)) => TokenKind::Keyword(keyword),
            (None, None) => TokenKind::Word,
        };
        self.push(kind, text.len());
    }

    fn part(&mut self, part: &Part) {
        match part {
            // `x/nan` divides by a number.
            Part::Name(span) => self.word(&self.text[span.start..span.end]),
            Part::Slash(span) => self.push(TokenKind::Symbol(Symbol::Slash), span.end - span.start),
            Part::Number(span) => {
                self.push(scan_number(&self.text[span.start..span.end]).0, span.end - span.start)
            }
        }
    }

    /// Reads text between quotes; a doubled quote stands for one.
    fn quoted(&mut self, quote: char, what: &str, kind: fn(String) -> TokenKind) -> bool {
        let mut content = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c != quote {
                content.push(c);
            } else if chars.next_if(|&(_, next)| next == quote).is_some() {
                content.push(quote);
            } else if content.is_empty() && quote != '\'' {
                return self.bad("a quoted name must not be empty", None);
            } else {
                self.push(kind(content), at + 1);
                return true;
            }
        }
        let hint = format!("add the closing {quote}; inside, {quote} itself is written {quote}{quote}");
        self.bad(format!("{what} is not closed"), Some(&hint))
    }

    fn line_comment(&mut self) -> bool {
        let is_glued =
            self.tokens.last().is_some_and(|token| token.span.end == self.pos) && self.after_value();
        let operand = |c: char| is_name_start(c) || c.is_ascii_digit() || c == '(' || c == '.';
        if is_glued && self.rest()[2..].starts_with(operand) {
            let hint =
                "write a - -b to subtract a negative value, or put a space before -- to begin a comment";
            return self.bad("'--' between two values begins a comment", Some(hint));
        }
        self.pos += self.rest().find('\n').unwrap_or(self.rest().len());
        true
    }

    fn block_comment(&mut self) -> bool {
        let Some(len) = self.rest()[2..].find("*/") else {
            return self.bad("comment is not closed", Some("add the closing */"));
        };
        self.pos += 2 + len + 2;
        true
    }

    fn symbol(&mut self, first: char) -> bool {
        if let Some((message, hint)) = mistaken_symbol(self.rest()) {
            return self.bad(message, Some(hint));
        }
        match SYMBOLS.iter().find(|(text, _)| self.rest().starts_with(text)) {
            Some((text, symbol)) => {
                self.push(TokenKind::Symbol(*symbol), text.len());
                true
            }
            None => self.bad(format!("unexpected character {}", printable(first)), character_hint(first)),
        }
    }
}

/// Operators of other languages.
fn mistaken_symbol(text: &str) -> Option<(String, &'static str)> {
    const MISTAKEN: [(&str, &str); 7] = [
        ("&&", "write AND"),
        ("||", "write OR"),
        ("===", "write ="),
        ("=<", "write <="),
        ("=>", "write >="),
        ("!==", "write <>"),
        ("<=>", "write = or IS NULL"),
    ];
    let (symbol, hint) = MISTAKEN.iter().find(|(symbol, _)| text.starts_with(symbol))?;
    Some((format!("unknown operator '{symbol}'"), hint))
}

/// What to type instead of a character.
fn character_hint(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "type an ASCII minus: -",
        '\u{2018}' | '\u{2019}' | '\u{201A}' | '\u{201B}' | '\u{2032}' | '\u{00B4}' => {
            "type an ASCII quote: '"
        }
        '\u{201C}'..='\u{201F}' | '\u{2033}' | '\u{00AB}' | '\u{00BB}' => "type an ASCII double quote: \"",
        '\u{00D7}' | '\u{22C5}' | '\u{00B7}' => "type an asterisk: *",
        '\u{00F7}' | '\u{2044}' | '\u{2215}' => "type a slash: /",
        '\u{2264}' | '\u{2A7D}' => "type <=",
        '\u{2265}' | '\u{2A7E}' => "type >=",
        '\u{2260}' => "type <>",
        '\u{2227}' => "type AND",
        '\u{2228}' => "type OR",
        '\u{00AC}' | '!' => "type NOT",
        '\u{00B2}' => "type ^2",
        '\u{00B3}' => "type ^3",
        '\u{221E}' => "type inf",
        '[' | ']' => {
            "lists are written IN (1, 2, 3), ranges BETWEEN 1 AND 3, and positions along a dimension idx(name) = 0"
        }
        '{' | '}' => "use parentheses: ( )",
        '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{FEFF}' => "delete this invisible character",
        '@' | '#' | '.' | ':' | '$' | '\\' => {
            "put names with other than letters, digits and _ in double quotes"
        }
        '\u{0300}'..='\u{036F}' => "put the name in double quotes",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        tokenize(text, None).into_iter().map(|token| token.kind).collect()
    }

    fn texts(text: &str) -> Vec<&str> {
        tokenize(text, None).iter().map(|token| &text[token.span.start..token.span.end]).collect()
    }

    #[test]
    fn a_slash_is_a_division_behind_a_value_and_a_root_elsewhere() {
        assert_eq!(texts("a /b"), ["a", "/", "b", ""]);
        assert_eq!(texts("(a)/b"), ["(", "a", ")", "/", "b", ""]);
        assert_eq!(texts("1/2"), ["1", "/", "2", ""]);
        assert_eq!(texts("/a/b > /c"), ["/a/b", ">", "/c", ""]);
        assert_eq!(texts("a AND /b"), ["a", "AND", "/b", ""]);
        assert_eq!(texts("NULL /b"), ["NULL", "/", "b", ""]);
        assert_eq!(texts("x/1e-5"), ["x", "/", "1e-5", ""]);
        assert_eq!(texts("a//b"), ["a", "//", "b", ""]);
    }

    #[test]
    fn comments_and_any_white_space_are_skipped() {
        assert_eq!(texts("a -- b\n\u{a0}/* ' */ c--"), ["a", "c", ""]);
        assert_eq!(texts("a - -2"), ["a", "-", "-", "2", ""]);
        assert!(matches!(&kinds("5--2")[1], TokenKind::Bad(bad) if bad.message.contains("begins a comment")));
    }

    #[test]
    fn quotes_are_doubled_inside() {
        assert_eq!(kinds("'it''s'")[0], TokenKind::Str("it's".into()));
        assert_eq!(kinds("''")[0], TokenKind::Str(String::new()));
        assert_eq!(kinds(r#""a ""b""""#)[0], TokenKind::Quoted("a \"b\"".into()));
        assert_eq!(kinds("`a b`")[0], TokenKind::Quoted("a b".into()));
    }

    #[test]
    fn known_paths_stay_whole_and_others_are_divided() {
        let tokens = tokenize("1/g/x/2 + g/y", Some(&|name| name.text == "g/x"));
        let texts: Vec<_> = tokens.iter().map(|t| &"1/g/x/2 + g/y"[t.span.start..t.span.end]).collect();
        assert_eq!(texts, ["1", "/", "g/x", "/", "2", "+", "g/y", ""]);
        assert_eq!(tokens[4].kind, TokenKind::Int(2));
    }
}
