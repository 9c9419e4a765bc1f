//! Text to tokens, each with its place.

use sieva_types::{Error, ErrorKind, Result};

/// The longest text.
pub(crate) const MOST_TEXT: usize = 64 << 10;
/// The most tokens.
const MOST_TOKENS: usize = 16_384;

/// A place in the text, both from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pos {
    pub line: u32,
    pub column: u32,
}

impl Pos {
    /// An error at this place.
    pub fn error(self, kind: ErrorKind, message: impl std::fmt::Display) -> Error {
        Error::new(kind, format!("line {}, column {}: {message}", self.line, self.column))
    }

    /// A text that is not of the language.
    pub fn wrong(self, message: impl std::fmt::Display) -> Error {
        self.error(ErrorKind::Syntax, message)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tok {
    Name(String),
    Int { value: u64, unsigned: bool, long: bool, decimal: bool },
    Float { value: f64, single: bool },
    Sign(&'static str),
    End,
}

impl std::fmt::Display for Tok {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "'{name}'"),
            Self::Int { value, .. } => write!(f, "'{value}'"),
            Self::Float { value, .. } => write!(f, "'{value}'"),
            Self::Sign(sign) => write!(f, "'{sign}'"),
            Self::End => f.write_str("the end of the code"),
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Token {
    pub tok: Tok,
    pub pos: Pos,
}

/// Longer ones first.
const SIGNS: [&str; 46] = [
    "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=",
    "%=", "&=", "|=", "^=", "+", "-", "*", "/", "%", "<", ">", "=", "!", "~", "&", "|", "^", "?", ":", ";",
    ",", ".", "(", ")", "[", "]", "{", "}", "#",
];

/// Cuts a text into tokens; the last one is the end.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>> {
    if text.len() > MOST_TEXT {
        let message = format!("code of {} bytes: at most {MOST_TEXT}", text.len());
        return Err(Error::new(ErrorKind::InvalidValue, message));
    }
    let mut lexer = Lexer { text, at: 0, pos: Pos { line: 1, column: 1 } };
    let mut tokens = Vec::new();
    loop {
        lexer.skip()?;
        let pos = lexer.pos;
        let tok = lexer.token()?;
        let is_end = tok == Tok::End;
        tokens.push(Token { tok, pos });
        if is_end {
            return Ok(tokens);
        }
        if tokens.len() > MOST_TOKENS {
            return Err(pos.wrong(format!("the code has more than {MOST_TOKENS} tokens")));
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    pos: Pos,
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn step(&mut self) {
        let Some(c) = self.peek() else { return };
        self.at += c.len_utf8();
        match c {
            '\n' => self.pos = Pos { line: self.pos.line + 1, column: 1 },
            _ => self.pos.column += 1,
        }
    }

    fn steps(&mut self, n: usize) {
        (0..n).for_each(|_| self.step());
    }

    /// Passes over blanks, comments, and the headers that C would need.
    fn skip(&mut self) -> Result<()> {
        loop {
            let rest = self.rest();
            if rest.starts_with("//") {
                self.line();
            } else if rest.starts_with("/*") {
                let start = self.pos;
                let Some(end) = rest.get(2..).and_then(|r| r.find("*/")) else {
                    return Err(start.wrong("a comment without its end: '*/' is expected"));
                };
                let count = rest.get(..end + 4).map_or(0, |r| r.chars().count());
                self.steps(count);
            } else if rest.starts_with('#') {
                self.header()?;
            } else if self.peek().is_some_and(|c| c.is_ascii_whitespace()) {
                self.step();
            } else {
                return Ok(());
            }
        }
    }

    fn line(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.step();
        }
    }

    fn header(&mut self) -> Result<()> {
        let pos = self.pos;
        let line = self.rest().lines().next().unwrap_or_default().to_owned();
        let name = line.trim_start_matches('#').trim_start().strip_prefix("include").map(str::trim);
        match name {
            Some("<math.h>" | "<stdint.h>" | "<stdlib.h>" | "<stddef.h>") => {
                self.line();
                Ok(())
            }
            _ => Err(pos.wrong(
                "there is no preprocessor: of '#' lines only '#include <math.h>' and the like are passed over",
            )),
        }
    }

    fn token(&mut self) -> Result<Tok> {
        let Some(c) = self.peek() else { return Ok(Tok::End) };
        let next = self.rest().chars().nth(1);
        if c.is_ascii_alphabetic() || c == '_' {
            let name: String =
                self.rest().chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            self.steps(name.len());
            return Ok(Tok::Name(name));
        }
        if c.is_ascii_digit() || (c == '.' && next.is_some_and(|c| c.is_ascii_digit())) {
            return self.number();
        }
        if c == '\'' {
            return self.character();
        }
        let sign = SIGNS.into_iter().find(|sign| self.rest().starts_with(sign));
        let Some(sign) = sign else {
            return Err(self.pos.wrong(format!("'{}' is no character of the language", c.escape_debug())));
        };
        self.steps(sign.len());
        Ok(Tok::Sign(sign))
    }

    fn character(&mut self) -> Result<Tok> {
        let pos = self.pos;
        let chars: Vec<char> = self.rest().chars().take(4).collect();
        let (value, length) = match chars[..] {
            ['\'', '\\', c, '\''] => {
                let value = match c {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '0' => '\0',
                    '\\' | '\'' | '"' => c,
                    _ => return Err(pos.wrong(format!("'\\{c}' is no character of the language"))),
                };
                (value, 4)
            }
            ['\'', c, '\'', ..] if c.is_ascii() && c != '\\' && c != '\'' => (c, 3),
            _ => return Err(pos.wrong("a character in single quotes is expected, as 'a'")),
        };
        self.steps(length);
        Ok(Tok::Int { value: u64::from(u32::from(value)), unsigned: false, long: false, decimal: true })
    }

    fn number(&mut self) -> Result<Tok> {
        let pos = self.pos;
        let rest = self.rest();
        let hex = rest.starts_with("0x") || rest.starts_with("0X");
        let mut length = 0;
        let mut before = ' ';
        for c in rest.chars() {
            let sign = !hex && matches!(before, 'e' | 'E') && matches!(c, '+' | '-');
            if !(c.is_ascii_alphanumeric() || c == '.' || sign) {
                break;
            }
            before = c;
            length += 1;
        }
        let word = rest.get(..length).unwrap_or_default().to_owned();
        self.steps(length);
        let lower = word.to_ascii_lowercase();
        let is_float = !hex && lower.contains(['.', 'e']);
        let wrong = || pos.wrong(format!("'{word}' is no number"));
        if is_float {
            let (digits, single) = match lower.strip_suffix('f') {
                Some(digits) => (digits, true),
                None => (&*lower, false),
            };
            // Rust reads "inf" and "nan", which begin with no digit, and cannot come here.
            let value: f64 = match single {
                true => f64::from(digits.parse::<f32>().map_err(|_| wrong())?),
                false => digits.parse().map_err(|_| wrong())?,
            };
            return Ok(Tok::Float { value, single });
        }
        let digits = lower.trim_end_matches(['u', 'l']);
        let suffix = lower.get(digits.len()..).unwrap_or_default();
        if !matches!(suffix, "" | "u" | "l" | "ul" | "lu" | "ll" | "ull" | "llu") {
            return Err(wrong());
        }
        let value = match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8),
            None => digits.parse(),
        };
        let value = value.map_err(|_| wrong())?;
        Ok(Tok::Int { value, unsigned: suffix.contains('u'), long: suffix.contains('l'), decimal: !hex })
    }
}
