//! The memory of a compiled program: `sieva_alloc` gives parts of it, and never takes one back; `resize` makes room for what
//! comes out.

use wasm_encoder::{BlockType, ValType};

use super::code::{Code, Op, Why};
use super::layout;
use crate::c::lex::Pos;

/// `sieva_alloc(bytes)`: an address that 16 divides, or 0.
pub(super) fn alloc() -> Code {
    let mut code = Code::new(1);
    let (start, end) = (code.local(ValType::I64), code.local(ValType::I64));
    code.ops([
        Op::GlobalGet(layout::HEAP),
        Op::I64ExtendI32U,
        Op::I64Const(15),
        Op::I64Add,
        Op::I64Const(-16),
        Op::I64And,
        Op::LocalTee(start),
        Op::LocalGet(0),
        Op::I64ExtendI32U,
        Op::I64Add,
        Op::LocalTee(end),
    ]);
    // Addresses have 32 bits.
    code.ops([
        Op::I64Const(0xffff_0000),
        Op::I64GtU,
        Op::If(BlockType::Empty),
        Op::I32Const(0),
        Op::Return,
        Op::End,
    ]);
    code.ops([
        Op::LocalGet(end),
        Op::MemorySize(0),
        Op::I64ExtendI32U,
        Op::I64Const(16),
        Op::I64Shl,
        Op::I64GtU,
        Op::If(BlockType::Empty),
        Op::LocalGet(end),
        Op::I64Const(0xffff),
        Op::I64Add,
        Op::I64Const(16),
        Op::I64ShrU,
        Op::I32WrapI64,
        Op::MemorySize(0),
        Op::I32Sub,
        Op::MemoryGrow(0),
        Op::I32Const(-1),
        Op::I32Eq,
        Op::If(BlockType::Empty),
        Op::I32Const(0),
        Op::Return,
        Op::End,
        Op::End,
    ]);
    code.ops([
        Op::LocalGet(end),
        Op::I32WrapI64,
        Op::GlobalSet(layout::HEAP),
        Op::LocalGet(start),
        Op::I32WrapI64,
    ]);
    code
}

/// `resize(count)`: room for as many values; those that are new are zero.
pub(super) fn resize(alloc: u32, value_bytes: u32) -> Code {
    let mut code = Code::new(1);
    let (bytes, used) = (code.local(ValType::I32), code.local(ValType::I32));
    let (fresh, taken) = (code.local(ValType::I32), code.local(ValType::I32));
    let most = i64::from(1_u32 << 31) / i64::from(value_bytes);
    code.ops([Op::LocalGet(0), Op::I64Const(most), Op::I64GtU, Op::If(BlockType::Empty)]);
    code.may_fail(Op::Unreachable, Pos::default(), Why::Resize);
    code.ops([
        Op::End,
        Op::LocalGet(0),
        Op::I32WrapI64,
        Op::I32Const(value_bytes.cast_signed()),
        Op::I32Mul,
        Op::LocalSet(bytes),
        Op::GlobalGet(layout::OUT_COUNT),
        Op::I32Const(value_bytes.cast_signed()),
        Op::I32Mul,
        Op::LocalSet(used),
    ]);
    code.ops([Op::LocalGet(bytes), Op::GlobalGet(layout::OUT_BYTES), Op::I32GtU, Op::If(BlockType::Empty)]);
    // Twice as many as there were, so that one more each time does not copy all each time; what is wanted where that is too much.
    let twice = [Op::GlobalGet(layout::OUT_BYTES), Op::I32Const(1), Op::I32Shl, Op::LocalTee(taken)];
    code.op(Op::LocalGet(bytes));
    code.ops(twice);
    code.ops([Op::LocalGet(bytes), Op::LocalGet(taken), Op::I32GtU, Op::Select, Op::LocalTee(taken)]);
    code.ops([Op::Call(alloc), Op::LocalTee(fresh), Op::I32Eqz, Op::If(BlockType::Empty)]);
    code.ops([Op::LocalGet(bytes), Op::LocalTee(taken), Op::Call(alloc), Op::LocalTee(fresh), Op::I32Eqz]);
    code.op(Op::If(BlockType::Empty));
    code.may_fail(Op::Unreachable, Pos::default(), Why::Resize);
    code.ops([
        Op::End,
        Op::End,
        Op::LocalGet(fresh),
        Op::GlobalGet(layout::OUT),
        Op::LocalGet(used),
        Op::MemoryCopy { src_mem: 0, dst_mem: 0 },
        Op::LocalGet(fresh),
        Op::GlobalSet(layout::OUT),
        Op::LocalGet(taken),
        Op::GlobalSet(layout::OUT_BYTES),
        Op::End,
    ]);
    code.ops([
        Op::LocalGet(bytes),
        Op::LocalGet(used),
        Op::I32GtU,
        Op::If(BlockType::Empty),
        Op::GlobalGet(layout::OUT),
        Op::LocalGet(used),
        Op::I32Add,
        Op::I32Const(0),
        Op::LocalGet(bytes),
        Op::LocalGet(used),
        Op::I32Sub,
        Op::MemoryFill(0),
        Op::End,
        Op::LocalGet(0),
        Op::I32WrapI64,
        Op::GlobalSet(layout::OUT_COUNT),
    ]);
    code
}
