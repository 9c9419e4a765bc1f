//! Operands: signs and NOT, literals, names, calls, groups.

use super::expr::{Form, Node};
use super::token::{Keyword, Symbol, Token, TokenKind};
use super::{Parser, number, path};
use crate::ast::{Expr, Literal, Name, Precedence, UnaryOp};
use sieva_types::{Error, Result};

impl Parser<'_> {
    /// An expression up to its first infix operator.
    pub(super) fn prefix(&mut self, least: Precedence) -> Result<Node> {
        match self.current().kind {
            TokenKind::Keyword(Keyword::Not) if least <= Precedence::Not => {
                self.advance();
                let node = self.binding(Precedence::Not)?;
                self.node(Expr::Not(Box::new(node.expr)), node.height, Form::Logic)
            }
            TokenKind::Symbol(Symbol::Tilde) => self.complement(),
            TokenKind::Symbol(Symbol::Minus) => self.negative(),
            TokenKind::Symbol(Symbol::Plus) => {
                self.advance();
                let node = self.binding(Precedence::Sign)?;
                Ok(Node { form: Form::Arithmetic, ..self.value(node)? })
            }
            _ => self.primary(),
        }
    }

    fn complement(&mut self) -> Result<Node> {
        let at = self.current().span.start;
        self.advance();
        let node = self.binding(Precedence::Sign)?;
        self.bit_operand(&node, at)?;
        self.node(Expr::Not(Box::new(node.expr)), node.height, Form::Bits(at))
    }

    /// A negative literal, or the negative of an expression.
    fn negative(&mut self) -> Result<Node> {
        self.advance();
        // A power binds tighter than the sign: -2^2 is -(2^2).
        let is_base = self.peek(1).kind == TokenKind::Symbol(Symbol::Power);
        let literal = match self.current().kind {
            _ if is_base => None,
            TokenKind::Int(magnitude) => Some(Literal::Int(0_i128.wrapping_sub_unsigned(magnitude))),
            TokenKind::Float(value) => Some(Literal::Float(-value)),
            _ => None,
        };
        if let Some(literal) = literal {
            self.advance();
            return self.leaf(Expr::Literal(literal));
        }
        let node = self.binding(Precedence::Sign)?;
        let node = self.value(node)?;
        let expr = Expr::Unary { op: UnaryOp::Neg, expr: Box::new(node.expr) };
        self.node(expr, node.height, Form::Arithmetic)
    }

    fn primary(&mut self) -> Result<Node> {
        let token = self.current().clone();
        let literal = match token.kind {
            TokenKind::Int(magnitude) => match i128::try_from(magnitude) {
                Ok(value) => Literal::Int(value),
                Err(_) => return Err(self.too_great(&token)),
            },
            TokenKind::Float(value) => Literal::Float(value),
            TokenKind::Str(text) => Literal::Str(text),
            TokenKind::Keyword(Keyword::Null) => Literal::Null,
            TokenKind::Keyword(Keyword::True) => Literal::Bool(true),
            TokenKind::Keyword(Keyword::False) => Literal::Bool(false),
            TokenKind::Quoted(text) => {
                self.advance();
                return self.leaf(Expr::Name(Name { text, quoted: true, span: token.span }));
            }
            TokenKind::Word => return self.word(),
            TokenKind::Keyword(keyword) if self.is_name(keyword) => return self.word(),
            TokenKind::Symbol(Symbol::LeftParen) => return self.group(),
            _ => return Err(self.expected("a value")),
        };
        self.advance();
        self.leaf(Expr::Literal(literal))
    }

    /// The error of 2^127, which is an integer only behind a sign.
    fn too_great(&self, token: &Token) -> Error {
        let bad = number::too_great(self.source(token));
        self.error_at(token.span.start, &bad.message, bad.hint.as_deref())
    }

    /// Whether the current token, a keyword, is the name of an array here.
    fn is_name(&self, keyword: Keyword) -> bool {
        match self.peek(1).kind {
            TokenKind::Keyword(Keyword::By) => false,
            TokenKind::Int(_) => false,
            _ => keyword.is_soft(),
        }
    }

    /// A name, a call or a date.
    fn word(&mut self) -> Result<Node> {
        let span = self.current().span;
        let text = self.source(self.current());
        match &self.peek(1).kind {
            TokenKind::Symbol(Symbol::LeftParen) => return self.call(),
            TokenKind::Word | TokenKind::Quoted(_) if self.at_word("exists") && !self.ends_key_of_order() => {
                return self.exists();
            }
            TokenKind::Str(date) if is_date_word(text) => {
                let literal = Literal::Date(date.clone());
                self.advance();
                self.advance();
                return self.leaf(Expr::Literal(literal));
            }
            _ => {}
        }
        let name = Name { text: text.to_owned(), quoted: false, span };
        self.advance();
        self.leaf(Expr::Name(name))
    }

    /// Whether the next word goes on with a key of ORDER BY, or with FROM, and is no name.
    fn ends_key_of_order(&self) -> bool {
        let next = self.peek(1);
        let words = ["asc", "desc", "nulls", "cross"];
        next.kind == TokenKind::Word && words.iter().any(|w| self.source(next).eq_ignore_ascii_case(w))
    }

    /// `EXISTS key`, which is another way to write `exists(key)`.
    fn exists(&mut self) -> Result<Node> {
        self.advance();
        let token = self.current().clone();
        let name = match token.kind {
            TokenKind::Quoted(text) => Name { text, quoted: true, span: token.span },
            _ => Name { text: self.source(&token).to_owned(), quoted: false, span: token.span },
        };
        self.advance();
        let (function, args) = ("exists".to_owned(), vec![Expr::Name(name)]);
        self.node(Expr::Call { function, args, distinct: false, star: false }, 1, Form::Primary)
    }

    fn call(&mut self) -> Result<Node> {
        let name = self.source(self.current());
        if !name.chars().all(path::is_name_char) {
            let plain = name.rsplit(|c| !path::is_name_char(c)).next().unwrap_or(name);
            let hint = format!("write {plain}(...)");
            let message = format!("'{name}' is not the name of a function");
            return Err(self.error_at(self.current().span.start, &message, Some(&hint)));
        }
        let function = name.to_lowercase();
        self.advance();
        self.open_paren();
        let star = self.accept(Symbol::Star);
        let distinct = !star && self.accept_keyword(Keyword::Distinct);
        let (args, height) = if star || (!distinct && self.at(Symbol::RightParen)) {
            (Vec::new(), 0)
        } else {
            self.expressions()?
        };
        self.close_paren(if star { "nothing else" } else { "an operator, ','" })?;
        self.node(Expr::Call { function, args, distinct, star }, height, Form::Primary)
    }

    /// An expression or a subquery in parentheses.
    fn group(&mut self) -> Result<Node> {
        self.open_paren();
        if self.at_keyword(Keyword::Select) {
            let parsed = self.select()?;
            let expected = parsed.expected_next("");
            self.close_paren(&expected)?;
            return self.node(Expr::Subquery(Box::new(parsed.select)), parsed.height, Form::Primary);
        }
        let inner = self.expression()?;
        self.close_paren("an operator")?;
        Ok(Node { form: Form::Primary, ..inner })
    }
}

fn is_date_word(word: &str) -> bool {
    word.eq_ignore_ascii_case("date") || word.eq_ignore_ascii_case("timestamp")
}
