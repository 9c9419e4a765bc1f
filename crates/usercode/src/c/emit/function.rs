//! Statements to instructions.

use std::collections::BTreeMap;

use wasm_encoder::{BlockType, ValType};

use super::code::{Code, Op, Why, load, store, val_type};
use super::layout::{self, Layout};
use crate::c::lex::Pos;
use crate::c::tree::{Base, Function, Program, Step, Value};
use crate::element::Element;

/// What all functions of a module know.
pub(super) struct Module<'a> {
    pub program: &'a Program,
    pub layout: &'a Layout,
    /// The number of `resize` among the functions.
    pub resize: u32,
}

/// How a function ends where it returns.
#[derive(Clone, Copy)]
pub(super) enum Returns {
    /// As a function of its own.
    Itself,
    /// Inside of a loop over rows: the value is put in a local, and a block is left that was opened at a depth.
    Inside { value: Option<u32>, depth: u32 },
}

/// Instructions of a function in the making.
pub(super) struct Emit<'a> {
    pub module: &'a Module<'a>,
    pub of: &'a Function,
    pub code: Code,
    /// Of each variable the local that holds it.
    pub locals: Vec<u32>,
    pub returns: Returns,
    /// Of each loop the depths of the blocks that `break` and `continue` leave.
    loops: Vec<(u32, u32)>,
    frame: Option<u32>,
    inputs: BTreeMap<u32, u32>,
    count: Option<u32>,
    output: Option<(u32, u32)>,
    /// Variables of the file that are kept in locals while a loop over rows runs; `None` where that may not be.
    pub kept: Option<BTreeMap<u32, (u32, Element)>>,
}

/// A function of the text as one of the module.
pub(super) fn function(module: &Module<'_>, of: &Function) -> Code {
    let mut emit = Emit::new(module, of, Code::new(of.params.len()), Returns::Itself);
    emit.locals = (0..).take(of.params.len()).collect();
    emit.declare(of.params.len());
    emit.open_frame();
    emit.steps(&of.body);
    emit.end();
    emit.code
}

impl<'a> Emit<'a> {
    pub fn new(module: &'a Module<'a>, of: &'a Function, code: Code, returns: Returns) -> Self {
        Self {
            module,
            of,
            code,
            locals: Vec::new(),
            returns,
            loops: Vec::new(),
            frame: None,
            inputs: BTreeMap::new(),
            count: None,
            output: None,
            kept: None,
        }
    }

    /// Locals for the variables from a number on.
    pub fn declare(&mut self, from: usize) {
        for element in self.of.locals.iter().skip(from) {
            let local = self.code.local(val_type(*element));
            self.locals.push(local);
        }
        if self.of.frame > 0 {
            let frame = self.code.local(ValType::I32);
            self.frame = Some(frame);
        }
    }

    /// Room for the arrays, first of all.
    pub fn open_frame(&mut self) {
        let (Some(frame), size) = (self.frame, self.of.frame) else { return };
        let low = self.module.layout.stack_low + size;
        self.code.ops([
            Op::GlobalGet(layout::SP),
            Op::I32Const(low.cast_signed()),
            Op::I32LtU,
            Op::If(BlockType::Empty),
        ]);
        self.code.may_fail(Op::Unreachable, self.of.pos, Why::Stack);
        self.code.ops([
            Op::End,
            Op::GlobalGet(layout::SP),
            Op::I32Const(size.cast_signed()),
            Op::I32Sub,
            Op::LocalTee(frame),
            Op::GlobalSet(layout::SP),
        ]);
    }

    pub fn close_frame(&mut self) {
        let (Some(frame), size) = (self.frame, self.of.frame) else { return };
        self.code.ops([
            Op::LocalGet(frame),
            Op::I32Const(size.cast_signed()),
            Op::I32Add,
            Op::GlobalSet(layout::SP),
        ]);
    }

    /// The end of a function of its own.
    fn end(&mut self) {
        if self.of.result == crate::c::types::Ty::Void {
            self.close_frame();
        } else {
            self.code.may_fail(Op::Unreachable, self.of.pos, Why::NoReturn);
        }
    }

    pub fn steps(&mut self, steps: &[Step]) {
        steps.iter().for_each(|step| self.step(step));
    }

    fn step(&mut self, of: &Step) {
        match of {
            Step::Do(value) => self.done(value),
            Step::Clear(array) => {
                if let (Base::Frame(offset), Some(frame)) = (array.base, self.frame) {
                    let bytes = array.length * u32::try_from(array.element.size()).unwrap_or(8);
                    self.code.ops([
                        Op::LocalGet(frame),
                        Op::I32Const(offset.cast_signed()),
                        Op::I32Add,
                        Op::I32Const(0),
                        Op::I32Const(bytes.cast_signed()),
                        Op::MemoryFill(0),
                    ]);
                }
            }
            Step::Block(steps) => self.steps(steps),
            Step::If(condition, then, other) => {
                self.value(condition);
                self.code.op(Op::If(BlockType::Empty));
                self.steps(then);
                if !other.is_empty() {
                    self.code.op(Op::Else);
                    self.steps(other);
                }
                self.code.op(Op::End);
            }
            Step::Loop { before, body, step, after } => {
                self.repeat(before.as_ref(), body, step.as_ref(), after.as_ref());
            }
            Step::Break | Step::Continue => {
                if let Some(&(leave, next)) = self.loops.last() {
                    self.branch(if matches!(of, Step::Break) { leave } else { next });
                }
            }
            Step::Return(value) => self.step_return(value.as_ref()),
        }
    }

    /// A loop: its condition, body and step, and those a few times more where they are few instructions.
    fn repeat(&mut self, before: Option<&Value>, body: &[Step], step: Option<&Value>, after: Option<&Value>) {
        self.code.op(Op::Block(BlockType::Empty));
        let leave = self.code.depth;
        self.code.op(Op::Loop(BlockType::Empty));
        let (again, from) = (self.code.depth, self.code.len());
        self.once(leave, before, body, step);
        for _ in 0..self.code.copies(from) {
            if let Some(condition) = after {
                self.leave_unless(condition, leave);
            }
            self.once(leave, before, body, step);
        }
        match after {
            Some(condition) => {
                self.value(condition);
                self.branch_if(again);
            }
            None => self.branch(again),
        }
        self.code.ops([Op::End, Op::End]);
    }

    fn once(&mut self, leave: u32, before: Option<&Value>, body: &[Step], step: Option<&Value>) {
        if let Some(condition) = before {
            self.leave_unless(condition, leave);
        }
        self.code.op(Op::Block(BlockType::Empty));
        self.loops.push((leave, self.code.depth));
        self.steps(body);
        self.loops.pop();
        self.code.op(Op::End);
        if let Some(step) = step {
            self.done(step);
        }
    }

    fn leave_unless(&mut self, condition: &Value, leave: u32) {
        self.value(condition);
        self.code.op(Op::I32Eqz);
        self.branch_if(leave);
    }

    fn step_return(&mut self, value: Option<&Value>) {
        if let Some(value) = value {
            self.value(value);
        }
        match self.returns {
            Returns::Itself => {
                self.close_frame();
                self.code.op(Op::Return);
            }
            Returns::Inside { value, depth } => {
                if let Some(local) = value {
                    self.code.op(Op::LocalSet(local));
                }
                self.branch(depth);
            }
        }
    }

    /// Goes to the end of a block, or the start of a loop, that was opened at a depth.
    pub fn branch(&mut self, depth: u32) {
        self.code.op(Op::Br(self.code.depth - depth));
    }

    pub fn branch_if(&mut self, depth: u32) {
        self.code.op(Op::BrIf(self.code.depth - depth));
    }

    pub fn frame(&self) -> u32 {
        self.frame.unwrap_or(0)
    }

    /// The local with the address of a column.
    pub fn input(&mut self, column: u32) -> u32 {
        if let Some(local) = self.inputs.get(&column) {
            return *local;
        }
        let local = self.code.local(ValType::I32);
        self.code.first([Op::GlobalGet(layout::data(column)), Op::LocalSet(local)]);
        self.inputs.insert(column, local);
        local
    }

    /// The local with the number of rows.
    pub fn count(&mut self) -> u32 {
        if let Some(local) = self.count {
            return local;
        }
        let local = self.code.local(ValType::I32);
        self.code.first([Op::GlobalGet(layout::COUNT), Op::LocalSet(local)]);
        self.count = Some(local);
        local
    }

    /// The locals with the address and the length of the output.
    pub fn output(&mut self) -> (u32, u32) {
        if let Some(locals) = self.output {
            return locals;
        }
        let locals = (self.code.local(ValType::I32), self.code.local(ValType::I32));
        self.code.first(reload(locals));
        self.output = Some(locals);
        locals
    }

    /// After what may have moved the output.
    pub fn reload_output(&mut self) {
        if self.of.uses.output {
            let locals = self.output();
            self.code.ops(reload(locals));
        }
    }

    /// The local that holds a variable of the file while a loop runs, if that may be.
    pub fn kept(&mut self, offset: u32, element: Element) -> Option<u32> {
        let known = self.kept.as_ref()?.get(&offset).map(|(local, _)| *local);
        if known.is_some() {
            return known;
        }
        let local = self.code.local(val_type(element));
        let address = self.module.layout.variable(offset, false);
        self.code.first([Op::I32Const(0), load(element, address), Op::LocalSet(local)]);
        self.kept.as_mut()?.insert(offset, (local, element));
        Some(local)
    }

    /// Writes the variables back that were kept in locals.
    pub fn write_back(&mut self) {
        for (offset, (local, element)) in self.kept.take().unwrap_or_default() {
            let address = self.module.layout.variable(offset, false);
            self.code.ops([Op::I32Const(0), Op::LocalGet(local), store(element, address)]);
        }
    }

    /// Ends the run where the condition on the stack holds.
    pub fn fail_if(&mut self, pos: Pos, why: Why) {
        self.code.op(Op::If(BlockType::Empty));
        self.code.may_fail(Op::Unreachable, pos, why);
        self.code.op(Op::End);
    }
}

fn reload((data, count): (u32, u32)) -> [Op; 4] {
    [Op::GlobalGet(layout::OUT), Op::LocalSet(data), Op::GlobalGet(layout::OUT_COUNT), Op::LocalSet(count)]
}
