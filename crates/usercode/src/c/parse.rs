//! Tokens to declarations and statements. Expressions are in `expression.rs`.

use sieva_types::Result;

use crate::c::ast::{Function, Initial, Param, Program, Stmt, StmtKind, Variable};
use crate::c::lex::{Pos, Tok, Token, tokens};
use crate::c::types::{Ty, is_type_word, of_words};

/// How deep statements and expressions may be nested.
pub(crate) const MOST_DEPTH: u32 = 100;
const MOST_FUNCTIONS: usize = 64;
const MOST_PARAMS: usize = 32;
/// The name of code without a function around it.
pub(crate) const BODY: &str = "the code";

pub(crate) struct Parser {
    tokens: Vec<Token>,
    at: usize,
    pub(super) depth: u32,
}

/// Reads a text.
pub(crate) fn parse(text: &str) -> Result<Program> {
    Parser { tokens: tokens(text)?, at: 0, depth: 0 }.program()
}

impl Parser {
    pub(super) fn tok(&self) -> &Tok {
        self.tokens.get(self.at).map_or(&Tok::End, |t| &t.tok)
    }

    fn tok_after(&self, n: usize) -> &Tok {
        self.tokens.get(self.at + n).map_or(&Tok::End, |t| &t.tok)
    }

    pub(super) fn pos(&self) -> Pos {
        self.tokens.get(self.at.min(self.tokens.len() - 1)).map_or_else(Pos::default, |t| t.pos)
    }

    pub(super) fn next(&mut self) {
        self.at += 1;
    }

    pub(super) fn is(&self, sign: &str) -> bool {
        matches!(self.tok(), Tok::Sign(s) if *s == sign)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self.tok(), Tok::Name(w) if w == word)
    }

    pub(super) fn take(&mut self, sign: &str) -> bool {
        let is = self.is(sign);
        self.at += usize::from(is);
        is
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }

    pub(super) fn expected<T>(&self, what: &str) -> Result<T> {
        Err(self.pos().wrong(format!("{what} is expected, found {}", self.tok())))
    }

    pub(super) fn expect(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) { Ok(()) } else { self.expected(&format!("'{sign}'")) }
    }

    pub(super) fn name(&mut self) -> Result<String> {
        match self.tok() {
            Tok::Name(name) if !is_reserved(name) => {
                let name = name.clone();
                self.next();
                Ok(name)
            }
            _ => self.expected("a name"),
        }
    }

    /// Goes one level down; the caller comes up again by `depth -= 1`.
    pub(super) fn deeper(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(self.pos().wrong(format!("nested more than {MOST_DEPTH} deep")));
        }
        Ok(())
    }

    fn program(mut self) -> Result<Program> {
        let mut program = Program { functions: Vec::new(), variables: Vec::new(), output: None };
        let (mut loose, mut is_body) = (Vec::new(), false);
        let start = self.pos();
        while *self.tok() != Tok::End {
            if !self.is_type() {
                is_body = true;
                loose.push(self.statement()?);
                continue;
            }
            let pos = self.pos();
            let (ty, is_const) = self.type_words()?;
            let named = matches!(self.tok(), Tok::Name(_));
            let after = self.tok_after(1).clone();
            if named && after == Tok::Sign("(") {
                if program.functions.len() == MOST_FUNCTIONS {
                    return Err(pos.wrong(format!("more than {MOST_FUNCTIONS} functions")));
                }
                let function = self.function(pos, ty)?;
                program.functions.push(function);
            } else if self.is_word("output") && *self.tok_after(2) == Tok::Sign("]") {
                self.output_type(&mut program, pos, ty)?;
            } else {
                let variables = self.variables(ty, is_const)?;
                loose.push(Stmt { pos, kind: StmtKind::Variables(variables) });
            }
        }
        if is_body {
            let body = Function {
                pos: start,
                result: None,
                name: BODY.to_owned(),
                params: Vec::new(),
                input: None,
                body: loose,
            };
            program.functions.push(body);
        } else {
            for stmt in loose {
                if let StmtKind::Variables(variables) = stmt.kind {
                    program.variables.extend(variables);
                }
            }
        }
        Ok(program)
    }

    /// `float output[];`
    fn output_type(&mut self, program: &mut Program, pos: Pos, ty: Ty) -> Result<()> {
        self.next();
        self.expect("[")?;
        self.expect("]")?;
        self.expect(";")?;
        if program.output.is_some() {
            return Err(pos.wrong("the type of 'output' is said twice"));
        }
        if ty == Ty::Void {
            return Err(pos.wrong("'output' has values, and 'void' has none"));
        }
        program.output = Some((pos, ty));
        Ok(())
    }

    pub(super) fn is_type(&self) -> bool {
        matches!(self.tok(), Tok::Name(word) if is_type_word(word))
    }

    /// The words of a type, and whether `const` is one of them.
    pub(super) fn type_words(&mut self) -> Result<(Ty, bool)> {
        let pos = self.pos();
        let (mut words, mut is_const) = (Vec::new(), false);
        while let Tok::Name(word) = self.tok() {
            if !is_type_word(word) {
                break;
            }
            match &**word {
                "const" => is_const = true,
                "static" => {}
                _ => words.push(word.clone()),
            }
            self.next();
        }
        match of_words(&words) {
            Some(ty) => Ok((ty, is_const)),
            None => Err(pos.wrong(format!(
                "'{}' is no type: there are char, short, int, long, unsigned ones of these, float and double",
                words.join(" ")
            ))),
        }
    }

    fn function(&mut self, pos: Pos, result: Ty) -> Result<Function> {
        let name = self.name()?;
        self.expect("(")?;
        let (mut params, mut input) = (Vec::new(), None);
        let nothing = self.is_word("void") && *self.tok_after(1) == Tok::Sign(")");
        if nothing {
            self.next();
        }
        while !self.is(")") {
            let pos = self.pos();
            if self.is_word("cod_exec_context") {
                self.next();
                self.name()?;
            } else if self.is_word("input_type") {
                self.next();
                self.expect("*")?;
                input = Some(self.name()?);
            } else if self.is_type() {
                let (ty, _) = self.type_words()?;
                if self.is("*") {
                    return Err(self.pos().wrong("there are no pointers: functions see 'input' by its name"));
                }
                let name = self.name()?;
                if ty == Ty::Void {
                    return Err(pos.wrong(format!("'{name}' cannot be void")));
                }
                params.push(Param { pos, ty, name });
            } else {
                return self.expected("the type of a parameter");
            }
            if params.len() > MOST_PARAMS {
                return Err(pos.wrong(format!("more than {MOST_PARAMS} parameters")));
            }
            if !self.take(",") {
                break;
            }
        }
        self.expect(")")?;
        if !self.is("{") {
            return self.expected("'{'");
        }
        let body = self.block()?;
        Ok(Function { pos, result: Some(result), name, params, input, body })
    }

    /// What follows the type of a declaration, to the semicolon.
    fn variables(&mut self, ty: Ty, is_const: bool) -> Result<Vec<Variable>> {
        let mut variables = Vec::new();
        loop {
            let pos = self.pos();
            if self.is("*") {
                return Err(pos.wrong("there are no pointers: take an array, as double a[10]"));
            }
            let name = self.name()?;
            if ty == Ty::Void {
                return Err(pos.wrong(format!("'{name}' cannot be void")));
            }
            let mut lengths = Vec::new();
            while self.take("[") {
                lengths.push(self.conditional()?);
                self.expect("]")?;
            }
            let initial = if self.take("=") { Some(self.initial()?) } else { None };
            variables.push(Variable { pos, ty, name, lengths, initial, is_const });
            if !self.take(",") {
                break;
            }
        }
        self.expect(";")?;
        Ok(variables)
    }

    fn initial(&mut self) -> Result<Initial> {
        if !self.take("{") {
            return Ok(Initial::Value(self.assignment()?));
        }
        let mut list = Vec::new();
        while !self.is("}") {
            list.push(self.assignment()?);
            if !self.take(",") {
                break;
            }
        }
        self.expect("}")?;
        Ok(Initial::List(list))
    }

    fn block(&mut self) -> Result<Vec<Stmt>> {
        self.expect("{")?;
        let mut body = Vec::new();
        while !self.is("}") {
            if *self.tok() == Tok::End {
                return self.expected("'}'");
            }
            body.push(self.statement()?);
        }
        self.next();
        Ok(body)
    }

    fn statement(&mut self) -> Result<Stmt> {
        self.deeper()?;
        let pos = self.pos();
        let kind = self.statement_kind()?;
        self.depth -= 1;
        Ok(Stmt { pos, kind })
    }

    fn statement_kind(&mut self) -> Result<StmtKind> {
        if self.take(";") {
            return Ok(StmtKind::Empty);
        }
        if self.is("{") {
            return Ok(StmtKind::Block(self.block()?));
        }
        if self.is_type() {
            let (ty, is_const) = self.type_words()?;
            return Ok(StmtKind::Variables(self.variables(ty, is_const)?));
        }
        if self.take_word("if") {
            let condition = self.in_parentheses()?;
            let then = Box::new(self.statement()?);
            let other = if self.take_word("else") { Some(Box::new(self.statement()?)) } else { None };
            return Ok(StmtKind::If(condition, then, other));
        }
        if self.take_word("while") {
            let condition = self.in_parentheses()?;
            return Ok(StmtKind::While(condition, Box::new(self.statement()?)));
        }
        if self.take_word("do") {
            let body = Box::new(self.statement()?);
            if !self.take_word("while") {
                return self.expected("'while'");
            }
            let condition = self.in_parentheses()?;
            self.expect(";")?;
            return Ok(StmtKind::DoWhile(body, condition));
        }
        if self.take_word("for") {
            return self.for_loop();
        }
        for (word, kind) in [("break", StmtKind::Break), ("continue", StmtKind::Continue)] {
            if self.take_word(word) {
                self.expect(";")?;
                return Ok(kind);
            }
        }
        if self.take_word("return") {
            let value = if self.is(";") { None } else { Some(self.expression()?) };
            self.expect(";")?;
            return Ok(StmtKind::Return(value));
        }
        let value = self.expression()?;
        self.expect(";")?;
        Ok(StmtKind::Expr(value))
    }

    fn for_loop(&mut self) -> Result<StmtKind> {
        self.expect("(")?;
        let pos = self.pos();
        let kind = if self.take(";") {
            StmtKind::Empty
        } else if self.is_type() {
            let (ty, is_const) = self.type_words()?;
            StmtKind::Variables(self.variables(ty, is_const)?)
        } else {
            let value = self.expression()?;
            self.expect(";")?;
            StmtKind::Expr(value)
        };
        let first = Box::new(Stmt { pos, kind });
        let before = if self.is(";") { None } else { Some(self.expression()?) };
        self.expect(";")?;
        let step = if self.is(")") { None } else { Some(self.expression()?) };
        self.expect(")")?;
        Ok(StmtKind::For { first, before, step, body: Box::new(self.statement()?) })
    }

    fn in_parentheses(&mut self) -> Result<crate::c::ast::Expr> {
        self.expect("(")?;
        let value = self.expression()?;
        self.expect(")")?;
        Ok(value)
    }
}

/// Words of C that are no names, those that are not supported included: whoever writes `switch` is told so.
fn is_reserved(word: &str) -> bool {
    const WORDS: [&str; 20] = [
        "if", "else", "for", "while", "do", "break", "continue", "return", "switch", "case", "default",
        "goto", "struct", "union", "enum", "typedef", "sizeof", "extern", "volatile", "register",
    ];
    WORDS.contains(&word) || is_type_word(word)
}
