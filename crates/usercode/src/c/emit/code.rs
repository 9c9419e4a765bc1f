//! Instructions of a function as they are put together, with the places of the text that may fail.

use wasm_encoder::{Function, Instruction, MemArg, ValType};

use crate::c::lex::Pos;
use crate::element::Element;

pub(super) type Op = Instruction<'static>;

/// Why an instruction may end the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Index,
    NoReturn,
    Resize,
    Divide,
    Convert,
    Stack,
    Call,
}

/// An instruction that may fail: its offset in the function's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub offset: usize,
    pub pos: Pos,
    pub why: Why,
}

pub(super) struct Code {
    ops: Vec<Op>,
    /// Done first, once what it has to be is known.
    prologue: Vec<Op>,
    marks: Vec<(usize, Pos, Why)>,
    params: u32,
    locals: Vec<ValType>,
    /// Blocks that are open.
    pub depth: u32,
    /// Instructions that were repeated so far.
    repeated: usize,
}

/// Instructions of a loop's body that are worth repeating it.
const SMALL_BODY: usize = 80;
/// How often a body is repeated at most.
pub(super) const MOST_COPIES: usize = 8;
/// Instructions that a function grows by at most.
const MOST_REPEATED: usize = 8_000;

impl Code {
    pub fn new(params: usize) -> Self {
        let params = u32::try_from(params).unwrap_or(u32::MAX);
        Self {
            ops: Vec::new(),
            prologue: Vec::new(),
            marks: Vec::new(),
            params,
            locals: Vec::new(),
            depth: 0,
            repeated: 0,
        }
    }

    /// How many instructions there are.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// How often a loop's body that begins at an instruction is repeated before the loop begins again. Each beginning looks at
    /// the clock and may call the host, so that no register is kept across it: a body of few instructions would do little else.
    pub fn copies(&mut self, from: usize) -> usize {
        let body = &self.ops[from..];
        let is_plain = !body.iter().any(|op| matches!(op, Op::Loop(_) | Op::Call(_)));
        if !is_plain || body.len() > SMALL_BODY || self.repeated > MOST_REPEATED {
            return 0;
        }
        let copies = MOST_COPIES - 1;
        self.repeated += copies * body.len();
        copies
    }

    /// Where it is, to come back to; locals stay.
    pub fn here(&self) -> (usize, usize, u32) {
        (self.ops.len(), self.marks.len(), self.depth)
    }

    /// Forgets what was added since.
    pub fn go_back(&mut self, (ops, marks, depth): (usize, usize, u32)) {
        self.ops.truncate(ops);
        self.marks.truncate(marks);
        self.depth = depth;
    }

    pub fn local(&mut self, of: ValType) -> u32 {
        self.locals.push(of);
        self.params + u32::try_from(self.locals.len() - 1).unwrap_or(u32::MAX)
    }

    pub fn op(&mut self, op: Op) {
        match op {
            Op::Block(_) | Op::Loop(_) | Op::If(_) => self.depth += 1,
            Op::End => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.ops.push(op);
    }

    pub fn ops(&mut self, ops: impl IntoIterator<Item = Op>) {
        ops.into_iter().for_each(|op| self.op(op));
    }

    /// An instruction that may fail.
    pub fn may_fail(&mut self, op: Op, pos: Pos, why: Why) {
        self.marks.push((self.ops.len(), pos, why));
        self.op(op);
    }

    pub fn first(&mut self, ops: impl IntoIterator<Item = Op>) {
        self.prologue.extend(ops);
    }

    /// The function, and what of it may fail.
    pub fn finish(self) -> (Function, Vec<Mark>) {
        let mut function = Function::new_with_locals_types(self.locals);
        self.prologue.iter().for_each(|op| {
            function.instruction(op);
        });
        let (mut marks, mut next) = (Vec::new(), self.marks.iter().peekable());
        for (at, op) in self.ops.iter().enumerate() {
            while let Some((_, pos, why)) = next.next_if(|(of, ..)| *of == at) {
                marks.push(Mark { offset: function.byte_len(), pos: *pos, why: *why });
            }
            function.instruction(op);
        }
        function.instruction(&Op::End);
        (function, marks)
    }
}

/// The WebAssembly type that holds values of a type.
pub(super) fn val_type(of: Element) -> ValType {
    match of {
        Element::I64 | Element::U64 => ValType::I64,
        Element::F32 => ValType::F32,
        Element::F64 => ValType::F64,
        _ => ValType::I32,
    }
}

pub(super) fn at(offset: u32, element: Element) -> MemArg {
    MemArg { offset: u64::from(offset), align: element.size().trailing_zeros(), memory_index: 0 }
}

pub(super) fn load(element: Element, offset: u32) -> Op {
    let at = at(offset, element);
    match element {
        Element::I8 => Op::I32Load8S(at),
        Element::U8 => Op::I32Load8U(at),
        Element::I16 => Op::I32Load16S(at),
        Element::U16 => Op::I32Load16U(at),
        Element::I32 | Element::U32 => Op::I32Load(at),
        Element::I64 | Element::U64 => Op::I64Load(at),
        Element::F32 => Op::F32Load(at),
        Element::F64 => Op::F64Load(at),
    }
}

pub(super) fn store(element: Element, offset: u32) -> Op {
    let at = at(offset, element);
    match element {
        Element::I8 | Element::U8 => Op::I32Store8(at),
        Element::I16 | Element::U16 => Op::I32Store16(at),
        Element::I32 | Element::U32 => Op::I32Store(at),
        Element::I64 | Element::U64 => Op::I64Store(at),
        Element::F32 => Op::F32Store(at),
        Element::F64 => Op::F64Store(at),
    }
}
