//! Text to tree, by hand-written lexer and precedence climbing.
//!
//! ```text
//! select     = SELECT [DISTINCT] (* | item, ...) [FROM source] [CROSS] [WHERE expr] [GROUP BY expr, ...] [HAVING expr]
//!              [ORDER BY expr [ASC | DESC] [NULLS FIRST | NULLS LAST], ...] [LIMIT n] [OFFSET n] [;]
//! item       = expr [AS name]
//! source     = 'file, glob, URL or catalog name' | "the same" | catalog_name | collection('name')
//! expr       = expr OR expr | expr AND expr | NOT expr
//!            | expr (= | == | <> | != | < | <= | > | >=) expr ...      several: all of them hold, as in Python
//!            | expr [NOT] BETWEEN expr AND expr | expr [NOT] IN (expr, ...) | expr [NOT] LIKE expr
//!            | expr [NOT] GLOB expr | expr IS [NOT] NULL | EXISTS path      of keys of a catalog
//!            | condition & condition | condition '|' condition | ~ condition      each in parentheses
//!            | expr (+ | -) expr | expr (* | / | // | %) expr | - expr | expr (^ | **) expr
//!            | number | 'string' | DATE 'date' | TIMESTAMP 'date' | TRUE | FALSE | NULL | inf | nan
//!            | path | "name" | `name` | function([DISTINCT] expr, ...) | function(*) | (expr) | (select)
//! ```
//!
//! From the loosest: OR, AND, NOT, comparisons, `|`, `&`, sums, products, sign, power. `&` and `|` bind as in
//! Python, tighter than comparisons; as that surprises in `a > 5 & b < 3`, both of their sides must be in
//! parentheses (or be a name or a call), and then there is only one reading.
//!
//! A path holds slashes without spaces, so `a/b` is first of all one name. Where the arrays are known, the
//! functions ending in `_with` read a path that is none of them as a division, with the precedence of one.

mod error;
mod expr;
mod hint;
mod lex;
mod number;
mod operand;
mod path;
mod select;
mod token;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub(crate) use number::number_literal;
pub use path::IsKnown;
pub(crate) use path::is_bare_name;

use crate::ast::{Expr, MAX_DEPTH, Select};
use error::{position, shorten, syntax_error};
use sieva_types::{Error, ErrorKind, Result};
use token::{Keyword, Symbol, Token, TokenKind};

/// Parses a condition such as `TEMP > 5 AND z_t < 5000`.
///
/// # Errors
/// [`Syntax`](sieva_types::ErrorKind::Syntax), with the place and, for a typical mistake, a hint.
pub fn parse_condition(text: &str) -> Result<Expr> {
    Parser::new(text, None)?.whole_expression("a condition")
}

/// Parses any expression such as `TEMP * 1.8 + 32`.
///
/// # Errors
/// As [`parse_condition`].
pub fn parse_expression(text: &str) -> Result<Expr> {
    Parser::new(text, None)?.whole_expression("an expression")
}

/// Parses a query such as `SELECT TEMP FROM 'pop.nc' WHERE TEMP > 5`.
///
/// # Errors
/// As [`parse_condition`].
pub fn parse_select(text: &str) -> Result<Select> {
    Parser::new(text, None)?.whole_select()
}

/// [`parse_condition`] where the arrays are known: an unquoted path with slashes that `is_known` refuses is
/// divided into the longest names that it accepts, and numbers.
///
/// The span of the name tells where it stands, for names that mean different things in a subquery.
///
/// # Errors
/// As [`parse_condition`].
pub fn parse_condition_with(text: &str, is_known: IsKnown<'_>) -> Result<Expr> {
    Parser::new(text, Some(is_known))?.whole_expression("a condition")
}

/// [`parse_expression`] where the arrays are known, see [`parse_condition_with`].
///
/// # Errors
/// As [`parse_condition`].
pub fn parse_expression_with(text: &str, is_known: IsKnown<'_>) -> Result<Expr> {
    Parser::new(text, Some(is_known))?.whole_expression("an expression")
}

/// [`parse_select`] where the arrays are known, see [`parse_condition_with`].
///
/// # Errors
/// As [`parse_condition`].
pub fn parse_select_with(text: &str, is_known: IsKnown<'_>) -> Result<Select> {
    Parser::new(text, Some(is_known))?.whole_select()
}

/// Bytes that a query's text may have: a list of some hundred thousand values. Its tree takes about a hundred times as
/// many.
pub const MAX_TEXT: usize = 4 << 20;

/// The tokens and how far they are read.
struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// Index of the current token; the last one, the end, is never passed.
    index: usize,
    /// How many expressions are being parsed, each inside of the one before.
    depth: usize,
    /// Offsets of the parentheses that are open.
    open: Vec<usize>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, is_known: Option<IsKnown<'_>>) -> Result<Self> {
        if text.len() > MAX_TEXT {
            let message = format!("the text has {} bytes; a query has {MAX_TEXT} at most", text.len());
            return Err(Error::new(ErrorKind::Syntax, message)
                .hint("ask in several queries, or by ranges in place of single values"));
        }
        Ok(Self { text, tokens: lex::tokenize(text, is_known), index: 0, depth: 0, open: Vec::new() })
    }

    fn whole_expression(mut self, what: &str) -> Result<Expr> {
        if self.current().kind == TokenKind::End {
            return Err(self.expected(what));
        }
        let node = self.expression()?;
        if self.current().kind != TokenKind::End {
            return Err(self.expected("an operator, AND, OR or the end of the text"));
        }
        Ok(node.expr)
    }

    fn whole_select(mut self) -> Result<Select> {
        let parsed = self.select()?;
        let is_closed = self.accept(Symbol::Semicolon);
        match self.current().kind {
            TokenKind::End => Ok(parsed.select),
            _ if is_closed => Err(self.expected("the end of the text")),
            _ => Err(self.expected(&parsed.expected_next("the end of the text"))),
        }
    }

    /// The token `ahead` of the current one; the end, if there are not so many.
    fn peek(&self, ahead: usize) -> &Token {
        &self.tokens[(self.index + ahead).min(self.tokens.len() - 1)]
    }

    fn current(&self) -> &Token {
        self.peek(0)
    }

    fn previous(&self) -> Option<&Token> {
        self.index.checked_sub(1).map(|i| &self.tokens[i])
    }

    fn advance(&mut self) {
        self.index = (self.index + 1).min(self.tokens.len() - 1);
    }

    fn source(&self, token: &Token) -> &'a str {
        &self.text[token.span.start..token.span.end]
    }

    fn at(&self, symbol: Symbol) -> bool {
        self.current().kind == TokenKind::Symbol(symbol)
    }

    fn at_keyword(&self, keyword: Keyword) -> bool {
        self.current().kind == TokenKind::Keyword(keyword)
    }

    /// Whether the current token is `word`, which is no keyword elsewhere.
    fn at_word(&self, word: &str) -> bool {
        self.is_word(self.current(), word)
    }

    fn is_word(&self, token: &Token, word: &str) -> bool {
        token.kind == TokenKind::Word && self.source(token).eq_ignore_ascii_case(word)
    }

    fn accept(&mut self, symbol: Symbol) -> bool {
        let found = self.at(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn accept_keyword(&mut self, keyword: Keyword) -> bool {
        let found = self.at_keyword(keyword);
        if found {
            self.advance();
        }
        found
    }

    fn accept_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn expect_keyword(&mut self, keyword: Keyword, what: &str) -> Result<()> {
        if self.accept_keyword(keyword) { Ok(()) } else { Err(self.expected(what)) }
    }

    /// Passes the opening parenthesis, which is the current token.
    fn open_paren(&mut self) {
        self.open.push(self.current().span.start);
        self.advance();
    }

    /// Passes the closing parenthesis; `what` could also have come.
    fn close_paren(&mut self, what: &str) -> Result<()> {
        if !self.accept(Symbol::RightParen) {
            return Err(self.expected(&format!("{what} or ')'")));
        }
        self.open.pop();
        Ok(())
    }

    /// The error of a current token that is none of `what`.
    fn expected(&self, what: &str) -> Error {
        let token = self.current();
        if let TokenKind::Bad(bad) = &token.kind {
            return self.error_at(token.span.start, &bad.message, bad.hint.as_deref());
        }
        let message = format!("expected {what}, found {}", self.describe(token));
        self.error_at(token.span.start, &message, self.hint().as_deref())
    }

    fn error_at(&self, offset: usize, message: &str, hint: Option<&str>) -> Error {
        let error = syntax_error(self.text, offset, message);
        match hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }

    fn describe(&self, token: &Token) -> String {
        match token.kind {
            TokenKind::End => "the end of the text".into(),
            TokenKind::Keyword(_) => self.source(token).to_ascii_uppercase(),
            TokenKind::Str(_) => format!("the string {}", shorten(self.source(token), 40)),
            TokenKind::Quoted(_) => format!("the name {}", shorten(self.source(token), 40)),
            _ => format!("'{}'", shorten(self.source(token), 40)),
        }
    }

    fn too_deep(&self) -> Error {
        let message = format!("nested deeper than {MAX_DEPTH} levels");
        let hint = "AND, OR and IN (...) may be of any length; split long chains of other operators with parentheses";
        self.error_at(self.current().span.start, &message, Some(hint))
    }

    fn place(&self, offset: usize) -> String {
        let (line, column) = position(self.text, offset);
        format!("line {line}, column {column}")
    }
}
