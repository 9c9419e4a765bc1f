//! Expressions, by precedence climbing.

use super::Parser;
use super::token::{Keyword, Symbol, TokenKind};
use crate::ast::{BinaryOp, CompareOp, Expr, Literal, MAX_DEPTH, Precedence};
use sieva_types::{Error, Result};

/// A parsed expression and what its parents must know of it.
pub(super) struct Node {
    pub(super) expr: Expr,
    /// Levels of the tree.
    pub(super) height: usize,
    pub(super) form: Form,
}

/// How an expression was written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// A literal, name, call, or anything in parentheses.
    Primary,
    /// Arithmetic without parentheses around it.
    Arithmetic,
    /// A combination by `&`, `|` or `~`, the last of them at this offset.
    Bits(usize),
    /// A comparison, or any other test of values.
    Comparison,
    /// A combination by AND, OR or NOT.
    Logic,
}

/// An operator behind its first operand.
#[derive(Clone, Copy)]
enum Infix {
    Or,
    And,
    /// BETWEEN, IN, LIKE, GLOB, IS, maybe negated.
    Test,
    Compare,
    BitOr,
    BitAnd,
    Arithmetic(BinaryOp),
}

impl Infix {
    fn precedence(self) -> Precedence {
        match self {
            Self::Or => Precedence::Or,
            Self::And => Precedence::And,
            Self::Test | Self::Compare => Precedence::Compare,
            Self::BitOr => Precedence::BitOr,
            Self::BitAnd => Precedence::BitAnd,
            Self::Arithmetic(op) => Precedence::of(op),
        }
    }

    fn of_symbol(symbol: Symbol) -> Option<Self> {
        Some(match symbol {
            _ if compare_op(symbol).is_some() => Self::Compare,
            Symbol::Pipe => Self::BitOr,
            Symbol::Ampersand => Self::BitAnd,
            Symbol::Plus => Self::Arithmetic(BinaryOp::Add),
            Symbol::Minus => Self::Arithmetic(BinaryOp::Sub),
            Symbol::Star => Self::Arithmetic(BinaryOp::Mul),
            Symbol::Slash => Self::Arithmetic(BinaryOp::Div),
            Symbol::SlashSlash => Self::Arithmetic(BinaryOp::FloorDiv),
            Symbol::Percent => Self::Arithmetic(BinaryOp::Rem),
            Symbol::Power => Self::Arithmetic(BinaryOp::Pow),
            _ => return None,
        })
    }
}

fn compare_op(symbol: Symbol) -> Option<CompareOp> {
    Some(match symbol {
        Symbol::Eq => CompareOp::Eq,
        Symbol::NotEq => CompareOp::NotEq,
        Symbol::Lt => CompareOp::Lt,
        Symbol::LtEq => CompareOp::LtEq,
        Symbol::Gt => CompareOp::Gt,
        Symbol::GtEq => CompareOp::GtEq,
        _ => return None,
    })
}

/// Most parts of the middle of a chain that holds conditions.
const MAX_REPEATED: usize = 64;

const PARENTHESES_HINT: &str = "write (a > 5) & (b < 3), or a > 5 AND b < 3";

impl Parser<'_> {
    /// An expression of any kind.
    pub(super) fn expression(&mut self) -> Result<Node> {
        self.binding(Precedence::Or)
    }

    /// Expressions separated by commas, at least one, and the height of the highest.
    pub(super) fn expressions(&mut self) -> Result<(Vec<Expr>, usize)> {
        let mut all = Vec::new();
        let mut height = 0;
        loop {
            let node = self.expression()?;
            height = height.max(node.height);
            all.push(node.expr);
            if !self.accept(Symbol::Comma) {
                return Ok((all, height));
            }
        }
    }

    /// An expression of operators that bind at least as tightly as `least`.
    pub(super) fn binding(&mut self, least: Precedence) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.too_deep());
        }
        let mut left = self.prefix(least)?;
        while let Some(infix) = self.infix(left.form).filter(|infix| infix.precedence() >= least) {
            left = self.continued(left, infix)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    /// A node above children of the given height.
    pub(super) fn node(&self, expr: Expr, height: usize, form: Form) -> Result<Node> {
        if height >= MAX_DEPTH {
            return Err(self.too_deep());
        }
        Ok(Node { expr, height: height + 1, form })
    }

    pub(super) fn leaf(&self, expr: Expr) -> Result<Node> {
        self.node(expr, 0, Form::Primary)
    }

    /// The operator that the current token is, if it can follow an expression of this form.
    fn infix(&self, left: Form) -> Option<Infix> {
        let infix = match self.current().kind {
            TokenKind::Keyword(Keyword::Or) => Infix::Or,
            TokenKind::Keyword(Keyword::And) => Infix::And,
            TokenKind::Keyword(Keyword::Between | Keyword::In | Keyword::Is | Keyword::Like) => Infix::Test,
            TokenKind::Keyword(Keyword::Not) => match self.peek(1).kind {
                TokenKind::Keyword(Keyword::Between | Keyword::In | Keyword::Like) => Infix::Test,
                TokenKind::Word if self.is_word(self.peek(1), "glob") => Infix::Test,
                _ => return None,
            },
            TokenKind::Word if self.at_word("glob") => Infix::Test,
            TokenKind::Symbol(symbol) => Infix::of_symbol(symbol)?,
            _ => return None,
        };
        // `a < b IS NULL` and the like are left to parentheses; `a IS NULL & b` gets its own message.
        let is_test = matches!(infix, Infix::Test | Infix::Compare | Infix::Arithmetic(_));
        let is_closed = matches!(left, Form::Comparison | Form::Logic);
        if is_test && is_closed { None } else { Some(infix) }
    }

    fn continued(&mut self, left: Node, infix: Infix) -> Result<Node> {
        match infix {
            Infix::Or | Infix::And => self.junction(left, infix),
            Infix::Test => self.test(left),
            Infix::Compare => self.comparisons(left),
            Infix::BitOr | Infix::BitAnd => self.bits(left, infix),
            Infix::Arithmetic(op) => self.arithmetic(left, op),
        }
    }

    fn junction(&mut self, left: Node, infix: Infix) -> Result<Node> {
        self.advance();
        let right =
            self.binding(if matches!(infix, Infix::Or) { Precedence::And } else { Precedence::Not })?;
        self.joined(left, right, infix, Form::Logic)
    }

    /// Both as one flat junction, so that a chain of any length adds no height.
    fn joined(&self, left: Node, right: Node, infix: Infix, form: Form) -> Result<Node> {
        let is_or = matches!(infix, Infix::Or | Infix::BitOr);
        let below = |node: &Node| match &node.expr {
            Expr::Or(_) if is_or => node.height - 1,
            Expr::And(_) if !is_or => node.height - 1,
            _ => node.height,
        };
        let height = below(&left).max(below(&right));
        let parts = [left.expr, right.expr];
        let expr = if is_or { Expr::or(parts) } else { Expr::and(parts) };
        self.node(expr, height, form)
    }

    fn bits(&mut self, left: Node, infix: Infix) -> Result<Node> {
        let at = self.current().span.start;
        self.bit_operand(&left, at)?;
        self.advance();
        let tighter = if matches!(infix, Infix::BitOr) { Precedence::BitAnd } else { Precedence::Sum };
        let right = self.binding(tighter)?;
        self.bit_operand(&right, at)?;
        self.joined(left, right, infix, Form::Bits(at))
    }

    /// Refuses what one who does not know Python's precedence would not have expected to be the operand.
    pub(super) fn bit_operand(&self, node: &Node, at: usize) -> Result<()> {
        let is_value = matches!(
            node.expr,
            Expr::Literal(
                Literal::Int(_) | Literal::Float(_) | Literal::Str(_) | Literal::Date(_) | Literal::Null
            )
        );
        match node.form {
            Form::Bits(_) => Ok(()),
            Form::Primary if !is_value => Ok(()),
            _ => Err(self.bits_error(at)),
        }
    }

    fn bits_error(&self, at: usize) -> Error {
        let symbol = self.text[at..].chars().next().unwrap_or('&');
        let message = format!("'{symbol}' needs parentheses around the conditions that it joins");
        self.error_at(at, &message, Some(PARENTHESES_HINT))
    }

    /// Refuses a combination by `&`, `|` or `~` as the operand of a tighter or looser value operator.
    pub(super) fn value(&self, node: Node) -> Result<Node> {
        match node.form {
            Form::Bits(at) => Err(self.bits_error(at)),
            _ => Ok(node),
        }
    }

    /// The operand of a comparison behind its operator.
    fn compared(&mut self) -> Result<Node> {
        let node = self.binding(Precedence::BitOr)?;
        self.value(node)
    }

    fn arithmetic(&mut self, left: Node, op: BinaryOp) -> Result<Node> {
        let left = self.value(left)?;
        self.advance();
        let right = self.binding(match Precedence::of(op) {
            Precedence::Sum => Precedence::Product,
            _ => Precedence::Sign,
        })?;
        let right = self.value(right)?;
        let height = left.height.max(right.height);
        let expr = Expr::Binary { op, left: Box::new(left.expr), right: Box::new(right.expr) };
        self.node(expr, height, Form::Arithmetic)
    }

    /// One comparison, or a chain of them: `1 < x < 2` is `1 < x AND x < 2`.
    fn comparisons(&mut self, left: Node) -> Result<Node> {
        let mut left = self.value(left)?;
        let mut height = 0;
        let mut all = Vec::new();
        let mut next = self.current_comparison();
        while let Some(op) = next {
            let at = self.current().span.start;
            self.advance();
            let right = self.compared()?;
            self.no_null(&left.expr, &right.expr, at)?;
            height = height.max(left.height).max(right.height);
            next = self.current_comparison();
            let repeated = if next.is_some() {
                self.repeatable(&right.expr)?;
                Node { expr: right.expr.clone(), ..right }
            } else {
                Node { expr: Expr::Literal(Literal::Null), ..right }
            };
            all.push(Expr::Compare { op, left: Box::new(left.expr), right: Box::new(right.expr) });
            left = repeated;
        }
        let levels = usize::from(all.len() > 1);
        self.node(Expr::and(all), height + levels, Form::Comparison)
    }

    fn current_comparison(&self) -> Option<CompareOp> {
        match self.current().kind {
            TokenKind::Symbol(symbol) => compare_op(symbol),
            _ => None,
        }
    }

    /// Refuses a comparison with NULL, which SQL lets pass and which is never true.
    fn no_null(&self, left: &Expr, right: &Expr, at: usize) -> Result<()> {
        let null = Expr::Literal(Literal::Null);
        if *left != null && *right != null {
            return Ok(());
        }
        let hint = "write x IS NULL or x IS NOT NULL";
        Err(self.error_at(at, "nothing is equal to NULL, less or greater", Some(hint)))
    }

    /// Refuses a middle of a chain that is a condition or a subquery, or that holds conditions and is large: each level of
    /// such chains would double the tree.
    fn repeatable(&self, middle: &Expr) -> Result<()> {
        let is_condition = |e: &Expr| (Precedence::Or..=Precedence::Compare).contains(&e.precedence());
        let (mut parts, mut holds_condition, mut holds_subquery) = (0, false, false);
        middle.walk(&mut |e| {
            parts += 1;
            holds_condition |= is_condition(e);
            holds_subquery |= matches!(e, Expr::Subquery(_));
        });
        if !is_condition(middle) && !holds_subquery && (!holds_condition || parts <= MAX_REPEATED) {
            return Ok(());
        }
        let at = self.current().span.start;
        Err(self.error_at(
            at,
            if holds_subquery || is_condition(middle) {
                "a chain of comparisons cannot go on behind a condition or a subquery"
            } else {
                "a chain of comparisons cannot go on behind a large value that holds conditions"
            },
            Some("write each comparison on its own and join them with AND"),
        ))
    }

    /// BETWEEN, IN, LIKE, GLOB or IS, maybe negated.
    fn test(&mut self, left: Node) -> Result<Node> {
        let left = self.value(left)?;
        let negated = self.accept_keyword(Keyword::Not);
        let keyword = self.current().kind.clone();
        self.advance();
        match keyword {
            TokenKind::Keyword(Keyword::Between) => self.between(left, negated),
            TokenKind::Keyword(Keyword::In) => self.in_list(left, negated),
            TokenKind::Keyword(Keyword::Like) => {
                let pattern = self.compared()?;
                let height = left.height.max(pattern.height);
                let expr = Expr::Like { expr: Box::new(left.expr), pattern: Box::new(pattern.expr), negated };
                self.node(expr, height, Form::Comparison)
            }
            TokenKind::Word => self.glob(left, negated),
            _ => self.is_null(left),
        }
    }

    /// `expr GLOB pattern`, which is another way to write `glob(expr, pattern)`.
    fn glob(&mut self, left: Node, negated: bool) -> Result<Node> {
        let pattern = self.compared()?;
        let height = left.height.max(pattern.height);
        let (function, args) = ("glob".to_owned(), vec![left.expr, pattern.expr]);
        let call = Expr::Call { function, args, distinct: false, star: false };
        let call = self.node(call, height, Form::Comparison)?;
        if negated {
            self.node(Expr::Not(Box::new(call.expr)), call.height, Form::Comparison)
        } else {
            Ok(call)
        }
    }

    fn between(&mut self, left: Node, negated: bool) -> Result<Node> {
        let low = self.compared()?;
        self.expect_keyword(Keyword::And, "AND and the upper end of BETWEEN")?;
        let high = self.compared()?;
        let height = left.height.max(low.height).max(high.height);
        let (low, high) = (Box::new(low.expr), Box::new(high.expr));
        self.node(Expr::Between { expr: Box::new(left.expr), low, high, negated }, height, Form::Comparison)
    }

    fn in_list(&mut self, left: Node, negated: bool) -> Result<Node> {
        if !self.at(Symbol::LeftParen) {
            return Err(self.expected("'(' and a list of values"));
        }
        self.open_paren();
        // Nothing is one of no values: programs write such lists.
        let (list, height) = if self.at(Symbol::RightParen) { (Vec::new(), 0) } else { self.expressions()? };
        self.close_paren("','")?;
        let expr = Expr::InList { expr: Box::new(left.expr), list, negated };
        self.node(expr, height.max(left.height), Form::Comparison)
    }

    fn is_null(&mut self, left: Node) -> Result<Node> {
        let negated = self.accept_keyword(Keyword::Not);
        self.expect_keyword(Keyword::Null, if negated { "NULL" } else { "NULL or NOT NULL" })?;
        self.node(Expr::IsNull { expr: Box::new(left.expr), negated }, left.height, Form::Comparison)
    }
}
