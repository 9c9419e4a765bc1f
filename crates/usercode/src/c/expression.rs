//! Tokens to expressions, by precedence.

use sieva_types::Result;

use crate::c::ast::{Binary, Expr, ExprKind, Unary};
use crate::c::lex::{Pos, Tok};
use crate::c::parse::{MOST_DEPTH, Parser};

const MOST_ARGUMENTS: usize = 32;

/// Operators of two operands, and how strongly they bind.
const BINARY: [(&str, Binary, u8); 18] = [
    ("||", Binary::Or, 1),
    ("&&", Binary::And, 2),
    ("|", Binary::BitOr, 3),
    ("^", Binary::BitXor, 4),
    ("&", Binary::BitAnd, 5),
    ("==", Binary::Eq, 6),
    ("!=", Binary::NotEq, 6),
    ("<", Binary::Lt, 7),
    (">", Binary::Gt, 7),
    ("<=", Binary::LtEq, 7),
    (">=", Binary::GtEq, 7),
    ("<<", Binary::Shl, 8),
    (">>", Binary::Shr, 8),
    ("+", Binary::Add, 9),
    ("-", Binary::Sub, 9),
    ("*", Binary::Mul, 10),
    ("/", Binary::Div, 10),
    ("%", Binary::Rem, 10),
];

impl Parser {
    pub(super) fn expression(&mut self) -> Result<Expr> {
        let mut left = self.assignment()?;
        while self.is(",") {
            let pos = self.pos();
            self.next();
            let right = self.assignment()?;
            left = node(pos, [left.depth, right.depth, 0], ExprKind::Comma(Box::new(left), Box::new(right)))?;
        }
        Ok(left)
    }

    pub(super) fn assignment(&mut self) -> Result<Expr> {
        let left = self.conditional()?;
        let Tok::Sign(sign) = *self.tok() else { return Ok(left) };
        let operator = match sign.strip_suffix('=') {
            Some("") => None,
            Some(_) if matches!(sign, "==" | "<=" | ">=" | "!=") => return Ok(left),
            Some(of) => BINARY.iter().find(|(s, ..)| *s == of).map(|(_, binary, _)| *binary),
            None => return Ok(left),
        };
        let pos = self.pos();
        self.next();
        self.deeper()?;
        let right = self.assignment()?;
        self.depth -= 1;
        let depths = [left.depth, right.depth, 0];
        node(pos, depths, ExprKind::Assign(operator, Box::new(left), Box::new(right)))
    }

    pub(super) fn conditional(&mut self) -> Result<Expr> {
        let condition = self.binary(1)?;
        if !self.is("?") {
            return Ok(condition);
        }
        let pos = self.pos();
        self.next();
        self.deeper()?;
        let then = self.expression()?;
        self.expect(":")?;
        let other = self.conditional()?;
        self.depth -= 1;
        let depths = [condition.depth, then.depth, other.depth];
        node(pos, depths, ExprKind::Cond(Box::new(condition), Box::new(then), Box::new(other)))
    }

    fn binary(&mut self, least: u8) -> Result<Expr> {
        self.deeper()?;
        let mut left = self.unary()?;
        while let Tok::Sign(sign) = *self.tok() {
            let Some(&(_, operator, binds)) = BINARY.iter().find(|(s, ..)| *s == sign) else { break };
            if binds < least {
                break;
            }
            let pos = self.pos();
            self.next();
            let right = self.binary(binds + 1)?;
            let depths = [left.depth, right.depth, 0];
            left = node(pos, depths, ExprKind::Binary(operator, Box::new(left), Box::new(right)))?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr> {
        self.deeper()?;
        let value = self.unary_of()?;
        self.depth -= 1;
        Ok(value)
    }

    fn unary_of(&mut self) -> Result<Expr> {
        let pos = self.pos();
        for (sign, operator) in
            [("-", Unary::Minus), ("+", Unary::Plus), ("!", Unary::Not), ("~", Unary::BitNot)]
        {
            if self.take(sign) {
                let of = self.unary()?;
                return node(pos, [of.depth, 0, 0], ExprKind::Unary(operator, Box::new(of)));
            }
        }
        for (sign, by) in [("++", 1), ("--", -1)] {
            if self.take(sign) {
                let of = Box::new(self.unary()?);
                return node(pos, [of.depth, 0, 0], ExprKind::Step { by, after: false, of });
            }
        }
        if self.is("&") || self.is("*") {
            return Err(pos.wrong("there are no pointers: name the array, with an index"));
        }
        if self.is("(") {
            self.next();
            if self.is_type() {
                let (ty, _) = self.type_words()?;
                self.expect(")")?;
                let of = self.unary()?;
                return node(pos, [of.depth, 0, 0], ExprKind::Cast(ty, Box::new(of)));
            }
            let inner = self.expression()?;
            self.expect(")")?;
            return self.suffixes(inner);
        }
        let first = self.primary(pos)?;
        self.suffixes(first)
    }

    fn primary(&mut self, pos: Pos) -> Result<Expr> {
        let kind = match *self.tok() {
            Tok::Int { value, unsigned, long, decimal } => ExprKind::Int { value, unsigned, long, decimal },
            Tok::Float { value, single } => ExprKind::Float { value, single },
            Tok::Name(_) => {
                let name = self.name()?;
                if self.take("(") { self.call(name)? } else { ExprKind::Name(name) }
            }
            _ => return self.expected("a value"),
        };
        if matches!(kind, ExprKind::Int { .. } | ExprKind::Float { .. }) {
            self.next();
        }
        let depth = match &kind {
            ExprKind::Call(_, arguments) => arguments.iter().map(|a| a.depth).max().unwrap_or(0),
            _ => 0,
        };
        node(pos, [depth, 0, 0], kind)
    }

    fn call(&mut self, name: String) -> Result<ExprKind> {
        let mut arguments = Vec::new();
        while !self.is(")") {
            arguments.push(self.assignment()?);
            if arguments.len() > MOST_ARGUMENTS {
                return Err(self.pos().wrong(format!("more than {MOST_ARGUMENTS} arguments")));
            }
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        Ok(ExprKind::Call(name, arguments))
    }

    fn suffixes(&mut self, mut of: Expr) -> Result<Expr> {
        loop {
            let (pos, depth) = (of.pos, of.depth);
            if self.take("[") {
                let index = self.expression()?;
                self.expect("]")?;
                let depths = [depth, index.depth, 0];
                of = node(pos, depths, ExprKind::Index(Box::new(of), Box::new(index)))?;
            } else if self.take(".") || self.take("->") {
                let field = self.name()?;
                of = node(pos, [depth, 0, 0], ExprKind::Field(Box::new(of), field))?;
            } else if self.take("++") {
                of = node(pos, [depth, 0, 0], ExprKind::Step { by: 1, after: true, of: Box::new(of) })?;
            } else if self.take("--") {
                of = node(pos, [depth, 0, 0], ExprKind::Step { by: -1, after: true, of: Box::new(of) })?;
            } else {
                return Ok(of);
            }
        }
    }
}

/// An expression of others. Chains as `a + a + ...` nest without the parser going deeper, so it is counted here.
fn node(pos: Pos, depths: [u32; 3], kind: ExprKind) -> Result<Expr> {
    let depth = depths.into_iter().max().unwrap_or(0) + 1;
    if depth > MOST_DEPTH {
        return Err(pos.wrong(format!("an expression of more than {MOST_DEPTH} operators in a row")));
    }
    Ok(Expr { pos, depth, kind })
}
