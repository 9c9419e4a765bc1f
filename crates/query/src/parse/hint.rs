//! What to do about typical mistakes.

use super::Parser;
use super::token::{Keyword, Symbol, TokenKind};

const NO_JOIN: &str = "one query reads one source; joins and windows are left to DuckDB and Polars, which read sieva as a \
                       pyarrow dataset";
const LATE_CROSS: &str = "CROSS stands once, before WHERE: SELECT ... FROM source CROSS WHERE ...; of a condition alone the \
                          product is asked for by cross=True or --cross";
const READ_ONLY: &str = "sieva only reads: a query begins with SELECT";

impl Parser<'_> {
    /// What could help whoever wrote the current, unexpected token.
    pub(super) fn hint(&self) -> Option<String> {
        let token = self.current();
        let hint = match &token.kind {
            _ if self.previous_is(Symbol::Semicolon) => "give one query at a time",
            TokenKind::End => return self.unclosed_hint(),
            TokenKind::Word => return self.word_hint(),
            TokenKind::Keyword(keyword) => return self.keyword_hint(*keyword),
            TokenKind::Symbol(Symbol::RightParen) if self.open.is_empty() => "there is no '(' for this ')'",
            TokenKind::Symbol(Symbol::Comma) => return self.comma_hint(),
            TokenKind::Symbol(Symbol::Semicolon) => "give one query at a time",
            TokenKind::Symbol(Symbol::LeftParen) if self.after_keyword(Keyword::From) => {
                "FROM takes the name of a source; a subquery is a single value, as in x > (SELECT avg(x))"
            }
            TokenKind::Symbol(Symbol::Star) if self.previous_is(Symbol::Comma) => {
                "* stands alone for all columns"
            }
            TokenKind::Symbol(Symbol::Minus) if self.after_limit() => "leave LIMIT out to get all rows",
            TokenKind::Symbol(_) if self.is_second_test() => "put one of the comparisons in parentheses",
            TokenKind::Str(_) if self.after_keyword(Keyword::As) => "put the column name in double quotes",
            _ => return None,
        };
        Some(hint.to_owned())
    }

    fn after_keyword(&self, keyword: Keyword) -> bool {
        self.previous().is_some_and(|token| token.kind == TokenKind::Keyword(keyword))
    }

    fn after_limit(&self) -> bool {
        self.after_keyword(Keyword::Limit) || self.after_keyword(Keyword::Offset)
    }

    fn previous_is(&self, symbol: Symbol) -> bool {
        self.previous().is_some_and(|token| token.kind == TokenKind::Symbol(symbol))
    }

    /// Whether the current token is an operator directly behind a value, where none could follow.
    fn is_second_test(&self) -> bool {
        let is_operator = match self.current().kind {
            TokenKind::Symbol(symbol) => {
                !matches!(symbol, Symbol::Comma | Symbol::LeftParen | Symbol::RightParen | Symbol::Semicolon)
            }
            TokenKind::Keyword(Keyword::Between | Keyword::In | Keyword::Is | Keyword::Like) => true,
            _ => false,
        };
        is_operator && self.previous().is_some_and(|token| token.kind.ends_value())
    }

    fn unclosed_hint(&self) -> Option<String> {
        self.open.last().map(|&offset| format!("the '(' at {} is not closed", self.place(offset)))
    }

    fn comma_hint(&self) -> Option<String> {
        let is_source =
            self.index >= 2 && self.tokens[self.index - 2].kind == TokenKind::Keyword(Keyword::From);
        let after_limit =
            self.index >= 2 && self.tokens[self.index - 2].kind == TokenKind::Keyword(Keyword::Limit);
        if is_source {
            Some(format!("{NO_JOIN}; many files that make one data set are given by a glob or a list"))
        } else if after_limit {
            Some("write LIMIT n OFFSET m".to_owned())
        } else {
            None
        }
    }

    fn keyword_hint(&self, keyword: Keyword) -> Option<String> {
        let is_start = self.index == 0;
        let hint = match keyword {
            Keyword::Select if is_start => {
                "a condition is only what stands behind WHERE; give a whole query to sql()"
            }
            Keyword::Where if is_start => "leave WHERE out",
            Keyword::Select if self.after_open_of_in() || self.after_keyword(Keyword::Not) => {
                "a subquery is a single value, as in x > (SELECT avg(x))"
            }
            Keyword::Select => "put a subquery in parentheses",
            Keyword::Not => "put NOT and its condition in parentheses",
            Keyword::Is | Keyword::In | Keyword::Like | Keyword::Between if self.is_second_test() => {
                "put one of the comparisons in parentheses"
            }
            _ if self.previous_is(Symbol::Comma) => "there is a comma too many, or a value missing behind it",
            _ if keyword.starts_clause() && self.previous().is_some_and(|t| t.kind.ends_value()) => {
                "each clause may come once, in the order SELECT, FROM, CROSS, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET"
            }
            _ if keyword.starts_clause() => return None,
            _ => return Some(format!("to name an array {0}, write \"{0}\"", self.source(self.current()))),
        };
        Some(hint.to_owned())
    }

    fn after_open_of_in(&self) -> bool {
        self.previous_is(Symbol::LeftParen)
            && self.index >= 2
            && self.tokens[self.index - 2].kind == TokenKind::Keyword(Keyword::In)
    }

    fn word_hint(&self) -> Option<String> {
        let word = self.source(self.current());
        if word.eq_ignore_ascii_case("cross") {
            let next = self.tokens.get(self.index + 1).map(|token| self.source(token));
            let is_join = next.is_some_and(|next| next.eq_ignore_ascii_case("join"));
            return Some(if is_join { NO_JOIN } else { LATE_CROSS }.to_owned());
        }
        if let Some(hint) = foreign_word(&word.to_ascii_uppercase()) {
            return Some(hint.to_owned());
        }
        if self.after_keyword(Keyword::Is) && word == "None" {
            return Some("write IS NULL".to_owned());
        }
        if self.after_keyword(Keyword::Group) || self.after_keyword(Keyword::Order) {
            return Some("write GROUP BY or ORDER BY".to_owned());
        }
        if self.index == 0 {
            return Some("a query is SELECT ... FROM ... WHERE ...".to_owned());
        }
        let after_value = self.previous().is_some_and(|token| token.kind.ends_value());
        after_value.then(|| {
            "put an operator or a comma between two names, AS before a column name, and double quotes around a name \
             that holds spaces"
                .to_owned()
        })
    }
}

/// What to do instead of using a word of other dialects.
fn foreign_word(word: &str) -> Option<&'static str> {
    Some(match word {
        "JOIN" | "INNER" | "LEFT" | "RIGHT" | "FULL" | "NATURAL" | "ON" | "USING" | "OVER" | "WINDOW"
        | "PARTITION" | "QUALIFY" => NO_JOIN,
        "INSERT" | "UPDATE" | "DELETE" | "CREATE" | "DROP" | "ALTER" | "COPY" | "REPLACE" | "TRUNCATE" => {
            READ_ONLY
        }
        "UNION" | "INTERSECT" | "EXCEPT" => "combine conditions with AND, OR and NOT in one query",
        "WITH" => "write the query without WITH; a subquery may be used as a single value",
        "EXPLAIN" => "use `sieva explain` or explain() to see the plan of a query",
        "CASE" | "WHEN" | "CAST" | "EXISTS" | "INTERVAL" => "this part of SQL is left to DuckDB and Polars",
        "ILIKE" | "REGEXP" | "SIMILAR" => "patterns are matched by LIKE, with % and _",
        "ESCAPE" => "LIKE takes no ESCAPE",
        "XOR" => "write (a AND NOT b) OR (NOT a AND b)",
        "TOP" | "FETCH" => "write LIMIT n",
        _ => return None,
    })
}
