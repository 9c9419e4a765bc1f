//! The functions that the host calls: loops over rows around the functions of the text.

use wasm_encoder::{BlockType, ValType};

use super::code::{Code, Op, Why, load, store, val_type};
use super::function::{Emit, Module, Returns};
use super::layout::{self, CELL, RESULT};
use super::operator;
use super::row::{Lies, Row};
use crate::c::lex::Pos;
use crate::c::tree::{Function, Program};
use crate::c::types::Ty;
use crate::element::Element;

/// What becomes of the value of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// It is put out.
    Map,
    /// Whether it is not zero.
    Filter,
    /// It has none: it is in the state.
    Step,
    /// The same, and no row is passed over.
    Stream,
}

impl Rows {
    fn puts_out(self) -> bool {
        matches!(self, Self::Map | Self::Filter)
    }
}

/// Bytes of the description of a column.
const COLUMN: u32 = 16;

/// A function of each row, as one of columns.
pub(super) fn rows(module: &Module<'_>, of: &Function, what: Rows) -> Code {
    let mut code = Code::new(2);
    let (count, valid) = (code.local(ValType::I32), code.local(ValType::I32));
    code.ops([Op::LocalGet(0), load(Element::U32, 12), Op::LocalSet(count)]);
    code.ops([Op::LocalGet(0), load(Element::U32, 8), Op::LocalSet(valid)]);
    let mut columns = Vec::new();
    for column in 0..u32::try_from(module.program.inputs.len()).unwrap_or(0) {
        let data = code.local(ValType::I32);
        code.ops([Op::LocalGet(0), load(Element::U32, column * COLUMN + 4), Op::LocalSet(data)]);
        columns.push(data);
    }
    let out = code.local(ValType::I32);
    if what.puts_out() {
        // What failed before may have left a frame.
        code.ops([Op::I32Const(module.layout.stack_high.cast_signed()), Op::GlobalSet(layout::SP)]);
    }
    if what == Rows::Stream {
        code.ops([
            Op::GlobalGet(layout::COUNT),
            Op::LocalGet(count),
            Op::I32Add,
            Op::GlobalSet(layout::COUNT),
        ]);
    }
    if what.puts_out() {
        code.ops([Op::LocalGet(count), Op::I64ExtendI32U]);
        code.may_fail(Op::Call(module.resize), of.pos, Why::Resize);
        code.ops([Op::GlobalGet(layout::OUT), Op::LocalSet(out)]);
    }
    let result = match of.result {
        Ty::Of(element) => Some((element, code.local(val_type(element)))),
        Ty::Void => None,
    };
    let row = code.local(ValType::I32);
    let returns = Returns::Inside { value: result.map(|(_, local)| local), depth: 0 };
    let mut emit = Emit::new(module, of, code, returns);
    if !what.puts_out() && !calls_state(module.program, of) {
        emit.kept = Some(std::collections::BTreeMap::new());
    }
    let params: Vec<u32> = of.params.iter().map(|p| emit.code.local(val_type(*p))).collect();
    emit.locals.clone_from(&params);
    emit.declare(params.len());
    emit.open_frame();
    let row_of = Row::new(&mut emit, of, what, result, params, Lies { columns, valid, row, count, out });
    row_of.together(&mut emit);
    row_of.one_by_one(&mut emit);
    emit.write_back();
    emit.close_frame();
    let mut code = emit.code;
    if what.puts_out() {
        let element = if what == Rows::Filter { Element::U8 } else { module.program.output };
        describe(&mut code, element, &[Op::LocalGet(out)], &[Op::LocalGet(count)]);
        code.op(Op::I32Const(RESULT.cast_signed()));
    }
    code
}

/// Whether a function calls others that see the state, which then has to be where they look for it.
fn calls_state(program: &Program, of: &Function) -> bool {
    let mut open = of.called.clone();
    let mut known = vec![false; program.functions.len()];
    while let Some(number) = open.pop() {
        let number = number as usize;
        if std::mem::replace(&mut known[number], true) {
            continue;
        }
        let function = &program.functions[number];
        if function.uses.file {
            return true;
        }
        open.extend(&function.called);
    }
    false
}

pub(super) fn zero(element: Element) -> Op {
    match val_type(element) {
        ValType::I64 => Op::I64Const(0),
        ValType::F32 | ValType::F64 => operator::float(0.0, element),
        _ => Op::I32Const(0),
    }
}

pub(super) fn address(code: &mut Code, base: u32, row: u32, element: Element) {
    code.ops([Op::LocalGet(base), Op::LocalGet(row)]);
    let shift = element.size().trailing_zeros();
    if shift > 0 {
        code.ops([Op::I32Const(shift.cast_signed()), Op::I32Shl]);
    }
    code.op(Op::I32Add);
}

/// Writes the description of what comes out.
pub(super) fn describe(code: &mut Code, element: Element, data: &[Op], count: &[Op]) {
    let fields: [(u32, &[Op]); 4] =
        [(0, &[Op::I32Const(element.code().cast_signed())]), (4, data), (8, &[Op::I32Const(0)]), (12, count)];
    for (offset, value) in fields {
        code.op(Op::I32Const(RESULT.cast_signed()));
        code.ops(value.iter().cloned());
        code.op(store(Element::U32, offset));
    }
}

/// A value on the stack as what comes out.
fn cell(emit: &mut Emit<'_>, element: Element) {
    emit.one_nan(element);
    let local = emit.code.local(val_type(element));
    emit.code.op(Op::LocalSet(local));
    emit.code.ops([Op::I32Const(CELL.cast_signed()), Op::LocalGet(local), store(element, 0)]);
    let (data, one) = (Op::I32Const(CELL.cast_signed()), Op::I32Const(1));
    describe(&mut emit.code, element, &[data], &[one]);
}

/// A function of all rows: `sieva_proc(columns, how many, values in a row)`.
pub(super) fn proc(module: &Module<'_>, number: u32, of: &Function, rows: bool, result: bool) -> Code {
    let mut emit = Emit::new(module, of, Code::new(3), Returns::Itself);
    emit.code.ops([Op::LocalGet(0), load(Element::U32, 12), Op::GlobalSet(layout::COUNT)]);
    for column in 0..u32::try_from(module.program.inputs.len()).unwrap_or(0) {
        let at = column * COLUMN;
        emit.code.ops([Op::LocalGet(0), load(Element::U32, at + 4), Op::GlobalSet(layout::data(column))]);
        emit.code.ops([Op::LocalGet(0), load(Element::U32, at + 8), Op::GlobalSet(layout::validity(column))]);
    }
    if rows {
        by_row(&mut emit, number, of);
    } else {
        emit.code.may_fail(Op::Call(number), of.pos, Why::Call);
    }
    let element = module.program.output;
    if result && !rows {
        cell(&mut emit, element);
    } else {
        let (data, count) = (Op::GlobalGet(layout::OUT), Op::GlobalGet(layout::OUT_COUNT));
        describe(&mut emit.code, element, &[data], &[count]);
    }
    emit.code.op(Op::I32Const(RESULT.cast_signed()));
    emit.code
}

/// A value of each row of `m` values, as `proc(ec, input, k, m)` of Table I.
fn by_row(emit: &mut Emit<'_>, number: u32, of: &Function) {
    let element = emit.module.program.output;
    let (row, many) = (emit.code.local(ValType::I32), emit.code.local(ValType::I32));
    emit.code.ops([Op::GlobalGet(layout::COUNT), Op::LocalGet(2), Op::I32DivU, Op::LocalTee(many)]);
    emit.code.op(Op::I64ExtendI32U);
    emit.code.may_fail(Op::Call(emit.module.resize), of.pos, Why::Resize);
    emit.code.ops([Op::Block(BlockType::Empty), Op::Loop(BlockType::Empty)]);
    let again = emit.code.depth;
    emit.code.ops([Op::LocalGet(row), Op::LocalGet(many), Op::I32GeU]);
    emit.branch_if(again - 1);
    for (param, local) in of.params.iter().zip([row, 2]) {
        emit.code.op(Op::LocalGet(local));
        if val_type(*param) == ValType::I64 {
            emit.code.op(Op::I64ExtendI32U);
        }
    }
    emit.code.may_fail(Op::Call(number), of.pos, Why::Call);
    emit.one_nan(element);
    let value = emit.code.local(val_type(element));
    let data = emit.code.local(ValType::I32);
    emit.code.ops([Op::LocalSet(value), Op::GlobalGet(layout::OUT), Op::LocalSet(data)]);
    address(&mut emit.code, data, row, element);
    emit.code.ops([Op::LocalGet(value), store(element, 0)]);
    emit.code.ops([Op::LocalGet(row), Op::I32Const(1), Op::I32Add, Op::LocalSet(row)]);
    emit.branch(again);
    emit.code.ops([Op::End, Op::End]);
}

/// The value of a state: `sieva_finish()`.
pub(super) fn finish(module: &Module<'_>, number: u32, of: &Function) -> Code {
    let mut emit = Emit::new(module, of, Code::new(0), Returns::Itself);
    emit.code.may_fail(Op::Call(number), of.pos, Why::Call);
    cell(&mut emit, module.program.output);
    emit.code.op(Op::I32Const(RESULT.cast_signed()));
    emit.code
}

/// The state as bytes: `sieva_save()`.
pub(super) fn save(module: &Module<'_>) -> Code {
    let mut code = Code::new(0);
    let (data, size) = (module.layout.file.cast_signed(), module.program.file.cast_signed());
    describe(&mut code, Element::U8, &[Op::I32Const(data)], &[Op::I32Const(size)]);
    code.op(Op::I32Const(RESULT.cast_signed()));
    code
}

/// Another state's bytes taken in: `sieva_merge(address, length)`.
pub(super) fn merge(module: &Module<'_>, number: u32) -> Code {
    let mut code = Code::new(2);
    let size = module.program.file.cast_signed();
    code.ops([Op::LocalGet(1), Op::I32Const(size), Op::I32Ne, Op::If(BlockType::Empty)]);
    code.may_fail(Op::Unreachable, Pos::default(), Why::Index);
    code.ops([
        Op::End,
        Op::I32Const(module.layout.other.cast_signed()),
        Op::LocalGet(0),
        Op::LocalGet(1),
        Op::MemoryCopy { src_mem: 0, dst_mem: 0 },
    ]);
    code.may_fail(Op::Call(number), Pos::default(), Why::Call);
    code
}
