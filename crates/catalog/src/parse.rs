//! The text of a filter: words, and the grammar over them.

use sieva_types::{Error, ErrorKind, Result};

use crate::filter::{Comparison, Filter, MAX_DEPTH, MAX_TESTS};
use crate::value::Value;

/// Bytes of a filter's text.
const MAX_TEXT: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A bare name or a word of the grammar.
    Word(String),
    /// A name in double quotes.
    Quoted(String),
    Literal(Value),
    Symbol(&'static str),
    End,
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

/// An error at a byte of the text, with the line and a caret under it.
fn error(text: &str, at: usize, message: &str) -> Error {
    let before = &text[..at];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    let column = before[line_start..].chars().count();
    // A window of a long line.
    let skip = column.saturating_sub(40);
    let line: String = text[line_start..].lines().next().unwrap_or("").chars().skip(skip).take(80).collect();
    let caret = " ".repeat(column - skip);
    let place = before.chars().count() + 1;
    Error::of_lines(ErrorKind::Syntax, format!("{message}, at character {place}\n  {line}\n  {caret}^"))
}

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The next token and where it begins.
    fn next(&mut self) -> Result<(Token, usize)> {
        let blank = self.rest().len() - self.rest().trim_start().len();
        self.at += blank;
        let start = self.at;
        let Some(c) = self.rest().chars().next() else { return Ok((Token::End, start)) };
        for symbol in ["!=", "<>", "<=", ">=", "==", "=", "<", ">", "(", ")", ","] {
            if self.rest().starts_with(symbol) {
                self.at += symbol.len();
                return Ok((Token::Symbol(symbol), start));
            }
        }
        let signed = matches!(c, '-' | '+' | '.')
            && self.rest()[1..].starts_with(|d: char| d.is_ascii_digit() || d == '.');
        let token = match c {
            '\'' => Token::Literal(Value::Text(self.quoted('\'')?)),
            '"' => Token::Quoted(self.quoted('"')?),
            c if c.is_ascii_digit() || signed => Token::Literal(self.number()?),
            c if c.is_alphabetic() || c == '_' => {
                let len = self.rest().find(|c: char| !(c.is_alphanumeric() || "_.:".contains(c)));
                let len = len.unwrap_or(self.rest().len());
                let word = self.rest()[..len].to_owned();
                self.at += len;
                Token::Word(word)
            }
            c => {
                let hint = "put keys with other signs into double quotes, texts into single quotes";
                return Err(error(self.text, start, &format!("unexpected '{}'", c.escape_debug())).hint(hint));
            }
        };
        Ok((token, start))
    }

    /// What stands between quotes; two of them are one.
    fn quoted(&mut self, quote: char) -> Result<String> {
        let start = self.at;
        let mut found = String::new();
        self.at += 1;
        while let Some(len) = self.rest().find(quote) {
            found.push_str(&self.rest()[..len]);
            self.at += len + 1;
            if !self.rest().starts_with(quote) {
                return Ok(found);
            }
            found.push(quote);
            self.at += 1;
        }
        let hint = format!("end it with {quote}; write {quote}{quote} for one within");
        Err(error(self.text, start, "a quote that does not end").hint(hint))
    }

    fn number(&mut self) -> Result<Value> {
        let start = self.at;
        let rest = self.rest();
        let mut end = usize::from(rest.starts_with(['-', '+']));
        let mut exponent = false;
        for c in rest[end..].chars() {
            let sign = exponent && (c == '-' || c == '+') && rest[..end].ends_with(['e', 'E']);
            if !(c.is_alphanumeric() || c == '.' || c == '_' || sign) {
                break;
            }
            exponent |= c == 'e' || c == 'E';
            end += c.len_utf8();
        }
        let word = rest[..end].to_owned();
        self.at += end;
        if word.bytes().all(|b| b.is_ascii_digit() || b == b'-' || b == b'+') {
            let integer = word.parse().map(Value::Int).or_else(|_| word.parse().map(Value::UInt));
            return integer.map_err(|_| self.overflow(start, &word, "beyond the integers of 64 bits"));
        }
        match word.parse::<f64>() {
            Ok(x) if x.is_finite() => Ok(Value::Float(x)),
            Ok(_) => Err(self.overflow(start, &word, "beyond the floats of 64 bits")),
            Err(_) => Err(error(self.text, start, &format!("'{word}' is not a number"))
                .hint("put texts into single quotes")),
        }
    }

    fn overflow(&self, start: usize, word: &str, why: &str) -> Error {
        let place = error(self.text, start, &format!("{word} is {why}"));
        Error::new(ErrorKind::Overflow, place.message()).hint("write a great number as a float: 1e20")
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    token: Token,
    start: usize,
    tests: usize,
}

/// The filter that a text says.
pub(crate) fn parse(text: &str) -> Result<Filter> {
    if text.len() > MAX_TEXT {
        let message = format!("the text of a filter has {} bytes; at most {MAX_TEXT} are taken", text.len());
        return Err(Error::new(ErrorKind::Syntax, message).hint("split it into several ones"));
    }
    let mut parser = Parser { lexer: Lexer { text, at: 0 }, token: Token::End, start: 0, tests: 0 };
    parser.advance()?;
    let filter = parser.any(0)?;
    match parser.token {
        Token::End => Ok(filter),
        _ => Err(parser.expected("AND, OR or the end")),
    }
}

impl Parser<'_> {
    fn advance(&mut self) -> Result<Token> {
        let (next, start) = self.lexer.next()?;
        self.start = start;
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn expected(&self, what: &str) -> Error {
        let got = match &self.token {
            Token::End => "the end".to_owned(),
            Token::Symbol(s) => format!("'{s}'"),
            Token::Word(w) => format!("'{}'", w.chars().take(40).collect::<String>()),
            Token::Quoted(_) => "a name in quotes".to_owned(),
            Token::Literal(_) => "a value".to_owned(),
        };
        let hint = "write KEY = VALUE, with AND, OR, NOT between; texts in single quotes: object = 'M31'";
        error(self.lexer.text, self.start, &format!("expected {what}, got {got}")).hint(hint)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(w) if w.eq_ignore_ascii_case(word))
    }

    /// Goes on if the next word is this one.
    fn accept(&mut self, word: &str) -> Result<bool> {
        let found = self.is_word(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn demand_symbol(&mut self, symbol: &'static str) -> Result<()> {
        if self.token != Token::Symbol(symbol) {
            return Err(self.expected(&format!("'{symbol}'")));
        }
        self.advance().map(|_| ())
    }

    fn any(&mut self, depth: usize) -> Result<Filter> {
        let mut parts = vec![self.all(depth)?];
        while self.accept("or")? {
            parts.push(self.all(depth)?);
        }
        Ok(one_or(parts, Filter::Or))
    }

    fn all(&mut self, depth: usize) -> Result<Filter> {
        let mut parts = vec![self.single(depth)?];
        while self.accept("and")? {
            parts.push(self.single(depth)?);
        }
        Ok(one_or(parts, Filter::And))
    }

    fn single(&mut self, depth: usize) -> Result<Filter> {
        self.tests += 1;
        // Each parenthesis may make two levels of the filter: one of OR, one of AND.
        if depth > MAX_DEPTH / 3 || self.tests > MAX_TESTS {
            let what = format!("a filter has more than {} levels or {MAX_TESTS} comparisons", MAX_DEPTH / 3);
            return Err(error(self.lexer.text, self.start, &what).hint("split it into several ones"));
        }
        if self.accept("not")? {
            return Ok(Filter::Not(Box::new(self.single(depth + 1)?)));
        }
        if self.accept("exists")? {
            return Ok(Filter::Exists(self.key()?));
        }
        if self.token == Token::Symbol("(") {
            self.advance()?;
            let inner = self.any(depth + 1)?;
            self.demand_symbol(")")?;
            return Ok(inner);
        }
        match self.token {
            Token::Literal(_) => self.turned(),
            _ => self.condition(),
        }
    }

    fn key(&mut self) -> Result<String> {
        const RESERVED: [&str; 14] = [
            "and", "or", "not", "exists", "between", "in", "like", "glob", "is", "null", "true", "false",
            "all", "any",
        ];
        match &self.token {
            Token::Word(w) if RESERVED.iter().any(|r| w.eq_ignore_ascii_case(r)) => {
                Err(self.expected("a key"))
            }
            Token::Word(_) | Token::Quoted(_) => match self.advance()? {
                Token::Word(key) | Token::Quoted(key) => Ok(key),
                _ => Err(self.expected("a key")),
            },
            _ => Err(self.expected("a key")),
        }
    }

    fn value(&mut self) -> Result<Value> {
        for (word, value) in [("true", true), ("false", false)] {
            if self.accept(word)? {
                return Ok(Value::Bool(value));
            }
        }
        if matches!(self.token, Token::Literal(_))
            && let Token::Literal(value) = self.advance()?
        {
            return Ok(value);
        }
        Err(self.expected("a number, a text in single quotes, TRUE or FALSE"))
    }

    fn comparison(&mut self) -> Result<Comparison> {
        let found = match self.token {
            Token::Symbol("=" | "==") => Comparison::Eq,
            Token::Symbol("!=" | "<>") => Comparison::Ne,
            Token::Symbol("<") => Comparison::Lt,
            Token::Symbol("<=") => Comparison::Le,
            Token::Symbol(">") => Comparison::Gt,
            Token::Symbol(">=") => Comparison::Ge,
            _ => return Err(self.expected("one of = != < <= > >= BETWEEN IN LIKE GLOB IS")),
        };
        self.advance()?;
        Ok(found)
    }

    /// `VALUE < KEY`.
    fn turned(&mut self) -> Result<Filter> {
        let value = self.value()?;
        let comparison = match self.comparison()? {
            Comparison::Lt => Comparison::Gt,
            Comparison::Le => Comparison::Ge,
            Comparison::Gt => Comparison::Lt,
            Comparison::Ge => Comparison::Le,
            same => same,
        };
        Ok(Filter::Compare(self.key()?, comparison, value))
    }

    fn condition(&mut self) -> Result<Filter> {
        let key = self.key()?;
        if self.accept("is")? {
            let not = self.accept("not")?;
            if !self.accept("null")? {
                return Err(self.expected("NULL"));
            }
            return Ok(negated(Filter::IsNull(key), not));
        }
        let not = self.accept("not")?;
        if self.accept("between")? {
            let low = self.value()?;
            if !self.accept("and")? {
                return Err(self.expected("AND and the upper bound"));
            }
            return Ok(negated(Filter::Between(key, low, self.value()?), not));
        }
        if self.accept("in")? {
            return Ok(negated(Filter::In(key, self.list()?), not));
        }
        if self.is_word("like") || self.is_word("glob") {
            let is_like = self.accept("like")?;
            if !is_like {
                self.advance()?;
            }
            let Token::Literal(Value::Text(_)) = self.token else {
                return Err(self.expected("a pattern in single quotes"));
            };
            let Value::Text(text) = self.value()? else {
                return Err(self.expected("a pattern in single quotes"));
            };
            return Ok(negated(if is_like { Filter::Like(key, text) } else { Filter::Glob(key, text) }, not));
        }
        if not {
            return Err(self.expected("BETWEEN, IN, LIKE or GLOB"));
        }
        let comparison = self.comparison()?;
        Ok(Filter::Compare(key, comparison, self.value()?))
    }

    fn list(&mut self) -> Result<Vec<Value>> {
        self.demand_symbol("(")?;
        let mut values = vec![self.value()?];
        while self.token == Token::Symbol(",") {
            self.advance()?;
            values.push(self.value()?);
        }
        self.demand_symbol(")")?;
        Ok(values)
    }
}

fn one_or(mut parts: Vec<Filter>, many: fn(Vec<Filter>) -> Filter) -> Filter {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            many(parts)
        }
        None => Filter::All,
    }
}

fn negated(filter: Filter, not: bool) -> Filter {
    if not { Filter::Not(Box::new(filter)) } else { filter }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
