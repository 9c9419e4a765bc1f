//! What the text says, before names and types are known.

use crate::c::lex::Pos;
use crate::c::types::Ty;

pub(crate) struct Program {
    pub functions: Vec<Function>,
    /// Variables of the file.
    pub variables: Vec<Variable>,
    /// The type of what is put out, where the text says it: `float output[];`
    pub output: Option<(Pos, Ty)>,
}

pub(crate) struct Function {
    pub pos: Pos,
    /// None: that of what it returns (code without a function around it).
    pub result: Option<Ty>,
    pub name: String,
    pub params: Vec<Param>,
    /// What the function calls its input.
    pub input: Option<String>,
    pub body: Vec<Stmt>,
}

pub(crate) struct Param {
    pub pos: Pos,
    pub ty: Ty,
    pub name: String,
}

pub(crate) struct Variable {
    pub pos: Pos,
    pub ty: Ty,
    pub name: String,
    /// Of an array.
    pub lengths: Vec<Expr>,
    pub initial: Option<Initial>,
    pub is_const: bool,
}

pub(crate) enum Initial {
    Value(Expr),
    List(Vec<Expr>),
}

pub(crate) struct Stmt {
    pub pos: Pos,
    pub kind: StmtKind,
}

pub(crate) enum StmtKind {
    Empty,
    Expr(Expr),
    Variables(Vec<Variable>),
    Block(Vec<Stmt>),
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    For { first: Box<Stmt>, before: Option<Expr>, step: Option<Expr>, body: Box<Stmt> },
    While(Expr, Box<Stmt>),
    DoWhile(Box<Stmt>, Expr),
    Break,
    Continue,
    Return(Option<Expr>),
}

pub(crate) struct Expr {
    pub pos: Pos,
    /// How deep it is nested.
    pub depth: u32,
    pub kind: ExprKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    Shl,
    Shr,
    BitAnd,
    BitOr,
    BitXor,
    Lt,
    Gt,
    LtEq,
    GtEq,
    Eq,
    NotEq,
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unary {
    Minus,
    Plus,
    Not,
    BitNot,
}

pub(crate) enum ExprKind {
    Int {
        value: u64,
        unsigned: bool,
        long: bool,
        decimal: bool,
    },
    Float {
        value: f64,
        single: bool,
    },
    Name(String),
    Field(Box<Expr>, String),
    Index(Box<Expr>, Box<Expr>),
    Call(String, Vec<Expr>),
    Unary(Unary, Box<Expr>),
    Binary(Binary, Box<Expr>, Box<Expr>),
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    Assign(Option<Binary>, Box<Expr>, Box<Expr>),
    /// `++` and `--`: by how much, and whether the value is that before it.
    Step {
        by: i64,
        after: bool,
        of: Box<Expr>,
    },
    Cast(Ty, Box<Expr>),
    Comma(Box<Expr>, Box<Expr>),
}
