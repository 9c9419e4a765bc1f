//! `SELECT` and its clauses.

use super::Parser;
use super::token::{Keyword, Symbol, TokenKind};
use crate::ast::{Expr, MAX_DEPTH, OrderBy, Projection, Select, SelectItem};
use sieva_types::{Error, Result};

/// Columns that a query may have.
pub const MAX_COLUMNS: usize = 10_000;
/// Keys that GROUP BY and ORDER BY may have.
pub const MAX_KEYS: usize = 256;

/// The clauses behind the columns, in the order they must have.
const CLAUSES: [&str; 8] = ["FROM", "CROSS", "WHERE", "GROUP BY", "HAVING", "ORDER BY", "LIMIT", "OFFSET"];

/// A query and what the parser must know of it.
#[derive(Default)]
pub(super) struct ParsedSelect {
    pub(super) select: Select,
    /// Levels of its highest expression.
    pub(super) height: usize,
    /// How many of [`CLAUSES`] can no longer follow.
    passed: usize,
    /// Whether an expression is last, so that an operator could follow.
    is_open: bool,
}

impl ParsedSelect {
    /// What could have followed; `end` names the way the query ends, if it is to be listed.
    pub(super) fn expected_next(&self, end: &str) -> String {
        let mut choices = Vec::new();
        if self.is_open {
            choices.push("an operator");
        }
        if self.passed == 0 && self.is_open {
            choices.extend(["','", "AS"]);
        }
        choices.extend(&CLAUSES[self.passed..]);
        if !end.is_empty() {
            choices.push(end);
        }
        match choices.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, [only])) if !end.is_empty() => format!("{only} or {last}"),
            Some((last, rest)) if !end.is_empty() => format!("one of {} or {last}", rest.join(", ")),
            Some(_) => format!("one of {}", choices.join(", ")),
            None => "nothing else".to_owned(),
        }
    }

    fn passed(&mut self, clauses: usize, is_open: bool) {
        self.passed = clauses;
        self.is_open = is_open;
    }
}

impl Parser<'_> {
    /// A query, from SELECT on.
    pub(super) fn select(&mut self) -> Result<ParsedSelect> {
        self.expect_keyword(Keyword::Select, "SELECT")?;
        let mut parsed = ParsedSelect::default();
        parsed.select.distinct = self.accept_keyword(Keyword::Distinct);
        self.projection(&mut parsed)?;
        if self.accept_keyword(Keyword::From) {
            match self.collection_name()? {
                Some(name) => parsed.select.collection = Some(name),
                None => parsed.select.from = Some(self.source_name()?),
            }
            parsed.passed(1, false);
        }
        if self.accept_word("cross") {
            parsed.select.cross = true;
            parsed.passed(2, false);
        }
        if self.accept_keyword(Keyword::Where) {
            parsed.select.condition = Some(self.clause(&mut parsed, 3)?);
        }
        if self.accept_keyword(Keyword::Group) {
            self.expect_keyword(Keyword::By, "BY behind GROUP")?;
            let (group_by, height) = self.expressions()?;
            self.at_most(group_by.len(), MAX_KEYS, "keys of GROUP BY")?;
            parsed.height = parsed.height.max(height);
            parsed.select.group_by = group_by;
            parsed.passed(4, true);
        }
        if self.accept_keyword(Keyword::Having) {
            parsed.select.having = Some(self.clause(&mut parsed, 5)?);
        }
        if self.accept_keyword(Keyword::Order) {
            self.order_by(&mut parsed)?;
        }
        self.limits(&mut parsed)?;
        if parsed.height >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        Ok(parsed)
    }

    /// Refuses more of something than there may be.
    fn at_most(&self, n: usize, most: usize, what: &str) -> Result<()> {
        if n <= most {
            return Ok(());
        }
        let message = format!("more than {most} {what}");
        Err(self.error_at(self.current().span.start, &message, Some("ask in several queries")))
    }

    /// The expression of a clause that is one of the first `clauses`.
    fn clause(&mut self, parsed: &mut ParsedSelect, clauses: usize) -> Result<Expr> {
        let node = self.expression()?;
        parsed.height = parsed.height.max(node.height);
        parsed.passed(clauses, true);
        Ok(node.expr)
    }

    fn projection(&mut self, parsed: &mut ParsedSelect) -> Result<()> {
        if self.accept(Symbol::Star) {
            return Ok(());
        }
        let mut items = Vec::new();
        loop {
            let (item, height) = self.item()?;
            parsed.height = parsed.height.max(height);
            parsed.is_open = item.alias.is_none();
            items.push(item);
            if !self.accept(Symbol::Comma) {
                break;
            }
            self.at_most(items.len() + 1, MAX_COLUMNS, "columns")?;
        }
        parsed.select.projection = Projection::Items(items);
        Ok(())
    }

    fn item(&mut self) -> Result<(SelectItem, usize)> {
        let start = self.current().span.start;
        let node = self.expression()?;
        let end = self.previous().map_or(start, |token| token.span.end);
        let text = match &node.expr {
            Expr::Name(name) => name.text.clone(),
            _ => self.text[start..end].to_owned(),
        };
        let alias = if self.accept_keyword(Keyword::As) { Some(self.alias()?) } else { None };
        Ok((SelectItem { expr: node.expr, alias, text }, node.height))
    }

    fn alias(&mut self) -> Result<String> {
        let alias = match &self.current().kind {
            TokenKind::Quoted(text) => text.clone(),
            TokenKind::Word => self.source(self.current()).to_owned(),
            TokenKind::Keyword(keyword) if keyword.is_soft() => self.source(self.current()).to_owned(),
            _ => return Err(self.expected("a column name")),
        };
        self.advance();
        Ok(alias)
    }

    /// The name in `collection('name')` behind FROM; `None` where something else stands there.
    fn collection_name(&mut self) -> Result<Option<String>> {
        let is_call = self.current().kind == TokenKind::Word
            && self.source(self.current()).eq_ignore_ascii_case("collection")
            && self.peek(1).kind == TokenKind::Symbol(Symbol::LeftParen);
        if !is_call {
            return Ok(None);
        }
        self.advance();
        self.advance();
        let name = match &self.current().kind {
            TokenKind::Str(text) | TokenKind::Quoted(text) if !text.is_empty() => text.clone(),
            _ => return Err(self.expected("the name of a collection in quotes")),
        };
        self.advance();
        if !self.accept(Symbol::RightParen) {
            return Err(self.expected("')' behind the name of the collection"));
        }
        Ok(Some(name))
    }

    /// The source behind FROM.
    fn source_name(&mut self) -> Result<String> {
        let token = self.current();
        let name = match &token.kind {
            TokenKind::Str(text) | TokenKind::Quoted(text) if !text.is_empty() => text.clone(),
            TokenKind::Word if self.is_catalog_name() => self.source(token).to_owned(),
            _ => return Err(self.unquoted_source()),
        };
        self.advance();
        Ok(name)
    }

    /// Whether the current word is a name of its own, and not the beginning of a file name.
    fn is_catalog_name(&self) -> bool {
        let token = self.current();
        let is_plain = self.source(token).chars().all(super::path::is_name_char);
        let next = self.text[token.span.end..].chars().next();
        is_plain && next.is_none_or(|c| c.is_whitespace() || matches!(c, ')' | ';' | ','))
    }

    fn unquoted_source(&self) -> Error {
        let what = "the name of a file in quotes, or a catalog name";
        let start = self.current().span.start;
        let raw: &str =
            self.text[start..].split([' ', '\t', '\r', '\n', ')', ';', '\'', '"', '`']).next().unwrap_or("");
        let is_file = raw.len() > 1 && !matches!(self.current().kind, TokenKind::Keyword(_));
        if !is_file || self.text[start + raw.len()..].starts_with('(') || raw.contains('(') {
            return self.expected(what);
        }
        let raw = super::shorten(raw, 80);
        let message = format!("expected {what}, found {raw}");
        self.error_at(start, &message, Some(&format!("put the file name in quotes: FROM '{raw}'")))
    }

    fn order_by(&mut self, parsed: &mut ParsedSelect) -> Result<()> {
        self.expect_keyword(Keyword::By, "BY behind ORDER")?;
        loop {
            let expr = self.clause(parsed, 6)?;
            let descending = self.accept_word("desc");
            if !descending {
                self.accept_word("asc");
            }
            let nulls_first = self.nulls()?;
            parsed.select.order_by.push(OrderBy { expr, descending, nulls_first });
            if !self.accept(Symbol::Comma) {
                return Ok(());
            }
            self.at_most(parsed.select.order_by.len() + 1, MAX_KEYS, "keys of ORDER BY")?;
        }
    }

    fn nulls(&mut self) -> Result<Option<bool>> {
        if !self.accept_word("nulls") {
            return Ok(None);
        }
        if self.accept_word("first") {
            Ok(Some(true))
        } else if self.accept_word("last") {
            Ok(Some(false))
        } else {
            Err(self.expected("FIRST or LAST"))
        }
    }

    /// LIMIT and OFFSET, in either order.
    fn limits(&mut self, parsed: &mut ParsedSelect) -> Result<()> {
        let offset_first = self.at_keyword(Keyword::Offset);
        if offset_first {
            self.advance();
            parsed.select.offset = Some(self.row_count()?);
            parsed.passed(CLAUSES.len(), false);
        }
        if self.accept_keyword(Keyword::Limit) {
            parsed.select.limit = Some(self.row_count()?);
            parsed.passed(if offset_first { 8 } else { 7 }, false);
        }
        if !offset_first && self.accept_keyword(Keyword::Offset) {
            parsed.select.offset = Some(self.row_count()?);
            parsed.passed(CLAUSES.len(), false);
        }
        Ok(())
    }

    fn row_count(&mut self) -> Result<u64> {
        match self.current().kind {
            TokenKind::Int(value) => match u64::try_from(value) {
                Ok(count) => {
                    self.advance();
                    Ok(count)
                }
                Err(_) => {
                    let at = self.current().span.start;
                    Err(self.error_at(at, &format!("at most {} rows can be counted", u64::MAX), None))
                }
            },
            _ => Err(self.expected("a whole number of rows, 0 or more")),
        }
    }
}
