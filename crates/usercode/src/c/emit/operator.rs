//! Which instruction an operator is for a type.

use wasm_encoder::ValType;

use super::code::{Op, val_type};
use crate::c::ast::Binary;
use crate::c::builtin::Builtin;
use crate::element::Element;

/// A number of a floating-point type.
pub(super) fn float(value: f64, element: Element) -> Op {
    let value = if value.is_nan() { f64::NAN } else { value };
    if element == Element::F32 { Op::F32Const((value as f32).into()) } else { Op::F64Const(value.into()) }
}

/// An operator of two values of a type in which C computes.
pub(super) fn binary(operator: Binary, of: Element) -> Op {
    match val_type(of) {
        ValType::F64 => of_f64(operator),
        ValType::F32 => of_f32(operator),
        ValType::I64 => of_i64(operator, of.is_unsigned()),
        _ => of_i32(operator, of.is_unsigned()),
    }
}

fn of_f64(operator: Binary) -> Op {
    match operator {
        Binary::Add => Op::F64Add,
        Binary::Sub => Op::F64Sub,
        Binary::Mul => Op::F64Mul,
        Binary::Div => Op::F64Div,
        Binary::Lt => Op::F64Lt,
        Binary::Gt => Op::F64Gt,
        Binary::LtEq => Op::F64Le,
        Binary::GtEq => Op::F64Ge,
        Binary::Eq => Op::F64Eq,
        Binary::NotEq => Op::F64Ne,
        // The others are for integers, as was checked.
        _ => Op::Unreachable,
    }
}

fn of_f32(operator: Binary) -> Op {
    match operator {
        Binary::Add => Op::F32Add,
        Binary::Sub => Op::F32Sub,
        Binary::Mul => Op::F32Mul,
        Binary::Div => Op::F32Div,
        Binary::Lt => Op::F32Lt,
        Binary::Gt => Op::F32Gt,
        Binary::LtEq => Op::F32Le,
        Binary::GtEq => Op::F32Ge,
        Binary::Eq => Op::F32Eq,
        Binary::NotEq => Op::F32Ne,
        _ => Op::Unreachable,
    }
}

fn of_i32(operator: Binary, unsigned: bool) -> Op {
    match (operator, unsigned) {
        (Binary::Add, _) => Op::I32Add,
        (Binary::Sub, _) => Op::I32Sub,
        (Binary::Mul, _) => Op::I32Mul,
        (Binary::Div, false) => Op::I32DivS,
        (Binary::Div, true) => Op::I32DivU,
        (Binary::Rem, false) => Op::I32RemS,
        (Binary::Rem, true) => Op::I32RemU,
        (Binary::Shl, _) => Op::I32Shl,
        (Binary::Shr, false) => Op::I32ShrS,
        (Binary::Shr, true) => Op::I32ShrU,
        (Binary::BitAnd | Binary::And, _) => Op::I32And,
        (Binary::BitOr | Binary::Or, _) => Op::I32Or,
        (Binary::BitXor, _) => Op::I32Xor,
        (Binary::Lt, false) => Op::I32LtS,
        (Binary::Lt, true) => Op::I32LtU,
        (Binary::Gt, false) => Op::I32GtS,
        (Binary::Gt, true) => Op::I32GtU,
        (Binary::LtEq, false) => Op::I32LeS,
        (Binary::LtEq, true) => Op::I32LeU,
        (Binary::GtEq, false) => Op::I32GeS,
        (Binary::GtEq, true) => Op::I32GeU,
        (Binary::Eq, _) => Op::I32Eq,
        (Binary::NotEq, _) => Op::I32Ne,
    }
}

fn of_i64(operator: Binary, unsigned: bool) -> Op {
    match (operator, unsigned) {
        (Binary::Add, _) => Op::I64Add,
        (Binary::Sub, _) => Op::I64Sub,
        (Binary::Mul, _) => Op::I64Mul,
        (Binary::Div, false) => Op::I64DivS,
        (Binary::Div, true) => Op::I64DivU,
        (Binary::Rem, false) => Op::I64RemS,
        (Binary::Rem, true) => Op::I64RemU,
        (Binary::Shl, _) => Op::I64Shl,
        (Binary::Shr, false) => Op::I64ShrS,
        (Binary::Shr, true) => Op::I64ShrU,
        (Binary::BitAnd | Binary::And, _) => Op::I64And,
        (Binary::BitOr | Binary::Or, _) => Op::I64Or,
        (Binary::BitXor, _) => Op::I64Xor,
        (Binary::Lt, false) => Op::I64LtS,
        (Binary::Lt, true) => Op::I64LtU,
        (Binary::Gt, false) => Op::I64GtS,
        (Binary::Gt, true) => Op::I64GtU,
        (Binary::LtEq, false) => Op::I64LeS,
        (Binary::LtEq, true) => Op::I64LeU,
        (Binary::GtEq, false) => Op::I64GeS,
        (Binary::GtEq, true) => Op::I64GeU,
        (Binary::Eq, _) => Op::I64Eq,
        (Binary::NotEq, _) => Op::I64Ne,
    }
}

/// A function that is an instruction or a few.
pub(super) fn builtin(of: Builtin) -> Vec<Op> {
    match of {
        Builtin::Sqrt => vec![Op::F64Sqrt],
        Builtin::Abs => vec![Op::F64Abs],
        Builtin::Floor => vec![Op::F64Floor],
        Builtin::Ceil => vec![Op::F64Ceil],
        Builtin::Trunc => vec![Op::F64Trunc],
        Builtin::Nearest => vec![Op::F64Nearest],
        Builtin::IsInf => vec![Op::F64Abs, Op::F64Const(f64::INFINITY.into()), Op::F64Eq],
        Builtin::IsFinite => vec![Op::F64Abs, Op::F64Const(f64::INFINITY.into()), Op::F64Lt],
        Builtin::Bits => vec![Op::I64ReinterpretF64],
        Builtin::OfBits => vec![Op::F64ReinterpretI64],
        // Those that need a local are put together where they are called.
        Builtin::Min | Builtin::Max | Builtin::CopySign | Builtin::IsNan | Builtin::IntAbs => {
            vec![Op::Unreachable]
        }
    }
}

/// A conversion. Between integers C wraps; floats that no integer of the type is equal to, but for their fraction, fail.
pub(super) fn convert(from: Element, to: Element) -> Vec<Op> {
    let mut ops = Vec::new();
    match (val_type(from), val_type(to)) {
        (ValType::F32, ValType::F64) => ops.push(Op::F64PromoteF32),
        (ValType::F64, ValType::F32) => ops.push(Op::F32DemoteF64),
        (ValType::I32, ValType::I64) if from.is_unsigned() => ops.push(Op::I64ExtendI32U),
        (ValType::I32, ValType::I64) => ops.push(Op::I64ExtendI32S),
        (ValType::I64, ValType::I32) => ops.push(Op::I32WrapI64),
        (ValType::I32, ValType::F64) if from.is_unsigned() => ops.push(Op::F64ConvertI32U),
        (ValType::I32, ValType::F64) => ops.push(Op::F64ConvertI32S),
        (ValType::I64, ValType::F64) if from.is_unsigned() => ops.push(Op::F64ConvertI64U),
        (ValType::I64, ValType::F64) => ops.push(Op::F64ConvertI64S),
        (ValType::I32, ValType::F32) if from.is_unsigned() => ops.push(Op::F32ConvertI32U),
        (ValType::I32, ValType::F32) => ops.push(Op::F32ConvertI32S),
        (ValType::I64, ValType::F32) if from.is_unsigned() => ops.push(Op::F32ConvertI64U),
        (ValType::I64, ValType::F32) => ops.push(Op::F32ConvertI64S),
        (ValType::F64, ValType::I64) if to.is_unsigned() => ops.push(Op::I64TruncF64U),
        (ValType::F64, ValType::I64) => ops.push(Op::I64TruncF64S),
        (ValType::F32, ValType::I64) if to.is_unsigned() => ops.push(Op::I64TruncF32U),
        (ValType::F32, ValType::I64) => ops.push(Op::I64TruncF32S),
        (ValType::F64, ValType::I32) if to == Element::U32 => ops.push(Op::I32TruncF64U),
        (ValType::F64, ValType::I32) => ops.push(Op::I32TruncF64S),
        (ValType::F32, ValType::I32) if to == Element::U32 => ops.push(Op::I32TruncF32U),
        (ValType::F32, ValType::I32) => ops.push(Op::I32TruncF32S),
        _ => {}
    }
    match to {
        Element::I8 => ops.push(Op::I32Extend8S),
        Element::I16 => ops.push(Op::I32Extend16S),
        Element::U8 => ops.extend([Op::I32Const(0xff), Op::I32And]),
        Element::U16 => ops.extend([Op::I32Const(0xffff), Op::I32And]),
        _ => {}
    }
    ops
}
