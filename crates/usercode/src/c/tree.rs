//! A checked program: every value has its type, every name its place.

use crate::c::ast::Binary;
use crate::c::builtin::Builtin;
use crate::c::lex::Pos;
use crate::c::types::Ty;
use crate::element::Element;

/// A value; one of type void is there for what it does.
pub(crate) struct Value {
    pub pos: Pos,
    pub ty: Ty,
    pub kind: Kind,
}

pub(crate) enum Kind {
    Int(i64),
    Float(f64),
    Read(Place),
    /// `input.count`.
    Count,
    /// `output.count`.
    OutputCount,
    /// Whether a value of a column is missing.
    Missing(u32, Box<Value>),
    /// Of two operands of one type, which is also the result's but for comparisons.
    Binary(Binary, Box<Value>, Box<Value>),
    Negate(Box<Value>),
    /// Whether it is zero.
    Not(Box<Value>),
    Convert(Box<Value>),
    Cond(Box<Value>, Box<Value>, Box<Value>),
    /// The value is that which was written.
    Write(Place, Box<Value>),
    /// What is done first, and the value.
    Then(Vec<Value>, Box<Value>),
    Call(u32, Vec<Value>),
    Builtin(Builtin, Vec<Value>),
    /// An index of one dimension of several, below its length.
    Within(Box<Value>, u32),
    /// `resize(n)`: how many values are put out.
    Resize(Box<Value>),
}

/// Where a value is kept.
pub(crate) enum Place {
    Local(u32),
    /// A variable of the file, by its offset among them; of the other state where states are merged.
    File {
        offset: u32,
        other: bool,
    },
    Element(Array, Box<Value>),
}

/// An array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Array {
    pub base: Base,
    pub element: Element,
    /// Of one whose length is known.
    pub length: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// In the frame of the function, at an offset.
    Frame(u32),
    File {
        offset: u32,
        other: bool,
    },
    Input(u32),
    Output,
}

pub(crate) enum Step {
    Do(Value),
    /// Makes a local array zero.
    Clear(Array),
    If(Value, Vec<Step>, Vec<Step>),
    Loop {
        before: Option<Value>,
        body: Vec<Step>,
        step: Option<Value>,
        after: Option<Value>,
    },
    /// In braces, so that names end.
    Block(Vec<Step>),
    Break,
    Continue,
    Return(Option<Value>),
}

/// What a function reaches besides its own variables.
#[derive(Clone, Copy, Default)]
pub(crate) struct Uses {
    pub input: bool,
    pub output: bool,
    pub resize: bool,
    pub file: bool,
}

pub(crate) struct Function {
    pub name: String,
    pub pos: Pos,
    pub params: Vec<Element>,
    /// The parameters first.
    pub locals: Vec<Element>,
    pub result: Ty,
    /// Bytes of its arrays.
    pub frame: u32,
    pub body: Vec<Step>,
    pub uses: Uses,
    pub is_prelude: bool,
    /// The functions that it calls.
    pub called: Vec<u32>,
    pub is_reached: bool,
}

/// A variable of the file as it begins: where, and its bytes.
pub(crate) struct Initial {
    pub offset: u32,
    pub bytes: Vec<u8>,
}

pub(crate) struct Program {
    pub functions: Vec<Function>,
    pub form: Form,
    /// Bytes of the variables of the file.
    pub file: u32,
    pub initial: Vec<Initial>,
    pub inputs: Vec<Element>,
    pub output: Element,
}

/// What the host calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Map(u32),
    Filter(u32),
    Proc {
        function: u32,
        rows: bool,
        result: bool,
    },
    Reduce {
        init: Option<u32>,
        step: u32,
        merge: Option<u32>,
        finish: u32,
    },
    /// A `proc` that goes once through its rows: see `stream`.
    Stream {
        init: u32,
        step: u32,
        finish: u32,
    },
}
