//! Values to instructions.

use wasm_encoder::{BlockType, ValType};

use super::code::{Op, Why, load, store, val_type};
use super::function::Emit;
use super::layout;
use crate::c::ast::Binary;
use crate::c::builtin::Builtin;
use crate::c::emit::operator;
use crate::c::lex::Pos;
use crate::c::tree::{Array, Base, Kind, Place, Value};
use crate::c::types::Ty;
use crate::element::Element;

/// Values in a row that are computed whether they are needed or not, rather than branched around.
const PLAIN: u32 = 8;

impl Emit<'_> {
    /// A value that nobody wants: for what is done.
    pub fn done(&mut self, of: &Value) {
        match &of.kind {
            Kind::Write(place, value) => self.write(place, value, false),
            Kind::Then(first, last) => {
                first.iter().for_each(|value| self.done(value));
                self.done(last);
            }
            Kind::Read(Place::Local(_)) | Kind::Int(_) | Kind::Float(_) => {}
            _ => {
                self.value(of);
                if of.ty != Ty::Void {
                    self.code.op(Op::Drop);
                }
            }
        }
    }

    /// Leaves a value on the stack.
    pub fn value(&mut self, of: &Value) {
        let element = element(of);
        match &of.kind {
            Kind::Int(v) => self.code.op(match val_type(element) {
                ValType::I64 => Op::I64Const(*v),
                _ => Op::I32Const(*v as i32),
            }),
            Kind::Float(v) => self.code.op(operator::float(*v, element)),
            Kind::Read(place) => self.read(place, of.pos, element),
            Kind::Count => {
                let count = self.count();
                self.code.op(Op::LocalGet(count));
            }
            Kind::OutputCount => {
                let (_, count) = self.output();
                self.code.op(Op::LocalGet(count));
            }
            Kind::Missing(column, index) => self.missing(*column, index),
            Kind::Binary(operator, a, b) => self.binary(of.pos, *operator, a, b),
            Kind::Negate(inner) => self.negate(inner, element),
            Kind::Not(inner) => {
                self.value(inner);
                self.code.op(Op::I32Eqz);
            }
            Kind::Convert(inner) => {
                self.value(inner);
                self.convert(of.pos, super::value::element(inner), element);
            }
            Kind::Cond(condition, a, b) => self.cond(condition, a, b, element),
            Kind::Write(place, value) => self.write(place, value, true),
            Kind::Then(first, last) => {
                first.iter().for_each(|value| self.done(value));
                self.value(last);
            }
            Kind::Call(number, arguments) => {
                arguments.iter().for_each(|value| self.value(value));
                self.code.may_fail(Op::Call(*number), of.pos, Why::Call);
                self.reload_output();
            }
            Kind::Builtin(builtin, arguments) => self.builtin(*builtin, arguments),
            Kind::Within(index, length) => {
                let local = self.index_local(index);
                self.beyond(local, element, &[Op::I32Const(length.cast_signed())]);
                self.fail_if(of.pos, Why::Index);
                self.code.op(Op::LocalGet(local));
            }
            Kind::Resize(count) => {
                self.value(count);
                self.code.may_fail(Op::Call(self.module.resize), of.pos, Why::Resize);
                self.reload_output();
            }
        }
    }

    fn read(&mut self, place: &Place, pos: Pos, element: Element) {
        match place {
            Place::Local(local) => self.code.op(Op::LocalGet(self.locals[*local as usize])),
            Place::File { offset, other } => {
                let kept = if *other { None } else { self.kept(*offset, element) };
                match kept {
                    Some(local) => self.code.op(Op::LocalGet(local)),
                    None => {
                        let address = self.module.layout.variable(*offset, *other);
                        self.code.ops([Op::I32Const(0), load(element, address)]);
                    }
                }
            }
            Place::Element(array, index) => {
                let offset = self.address(*array, index, pos);
                self.code.op(load(element, offset));
            }
        }
    }

    fn write(&mut self, place: &Place, value: &Value, is_wanted: bool) {
        let element = element(value);
        match place {
            Place::Local(local) => {
                let local = self.locals[*local as usize];
                self.value(value);
                self.code.op(if is_wanted { Op::LocalTee(local) } else { Op::LocalSet(local) });
            }
            Place::File { offset, other } => {
                let kept = if *other { None } else { self.kept(*offset, element) };
                if let Some(local) = kept {
                    self.value(value);
                    self.code.op(if is_wanted { Op::LocalTee(local) } else { Op::LocalSet(local) });
                    return;
                }
                let address = self.module.layout.variable(*offset, *other);
                self.code.op(Op::I32Const(0));
                self.value(value);
                let again = self.tee_if(is_wanted, element);
                self.code.op(store(element, address));
                self.get(again);
            }
            // A call in the value may move the output: the value comes first, then the address.
            Place::Element(array, index) => {
                self.value(value);
                if array.base == Base::Output {
                    self.one_nan(element);
                }
                let local = self.code.local(val_type(element));
                self.code.op(Op::LocalSet(local));
                let offset = self.address(*array, index, value.pos);
                self.code.ops([Op::LocalGet(local), store(element, offset)]);
                self.get(is_wanted.then_some(local));
            }
        }
    }

    fn tee_if(&mut self, is_wanted: bool, element: Element) -> Option<u32> {
        let local = is_wanted.then(|| self.code.local(val_type(element)))?;
        self.code.op(Op::LocalTee(local));
        Some(local)
    }

    fn get(&mut self, local: Option<u32>) {
        if let Some(local) = local {
            self.code.op(Op::LocalGet(local));
        }
    }

    /// The value on the stack, and where it is a NaN the one that all machines have.
    pub fn one_nan(&mut self, element: Element) {
        if !element.is_float() {
            return;
        }
        let local = self.code.local(val_type(element));
        self.code.ops([
            Op::LocalTee(local),
            operator::float(f64::NAN, element),
            Op::LocalGet(local),
            Op::LocalGet(local),
            if element == Element::F32 { Op::F32Eq } else { Op::F64Eq },
            Op::Select,
        ]);
    }

    /// An index in a local.
    fn index_local(&mut self, index: &Value) -> u32 {
        if let Kind::Read(Place::Local(local)) = index.kind {
            return self.locals[local as usize];
        }
        self.value(index);
        let local = self.code.local(val_type(element(index)));
        self.code.op(Op::LocalSet(local));
        local
    }

    /// Whether an index is below zero or not below a length.
    fn beyond(&mut self, index: u32, of: Element, length: &[Op]) {
        self.code.op(Op::LocalGet(index));
        self.code.ops(length.iter().cloned());
        if val_type(of) == ValType::I64 {
            self.code.ops([Op::I64ExtendI32U, Op::I64GeU]);
        } else {
            self.code.op(Op::I32GeU);
        }
    }

    /// Leaves the address of an element on the stack, without the offset that is returned.
    fn address(&mut self, array: Array, index: &Value, pos: Pos) -> u32 {
        let (base, offset, length) = match array.base {
            Base::Frame(offset) => (Some(self.frame()), offset, Op::I32Const(array.length.cast_signed())),
            Base::File { offset, other } => {
                let address = self.module.layout.variable(offset, other);
                (None, address, Op::I32Const(array.length.cast_signed()))
            }
            Base::Input(column) => (Some(self.input(column)), 0, Op::LocalGet(self.count())),
            Base::Output => {
                let (data, count) = self.output();
                (Some(data), 0, Op::LocalGet(count))
            }
        };
        let local = self.index_local(index);
        self.beyond(local, element(index), &[length]);
        self.fail_if(pos, Why::Index);
        self.code.op(Op::LocalGet(local));
        if val_type(element(index)) == ValType::I64 {
            self.code.op(Op::I32WrapI64);
        }
        let shift = array.element.size().trailing_zeros();
        if shift > 0 {
            self.code.ops([Op::I32Const(shift.cast_signed()), Op::I32Shl]);
        }
        if let Some(base) = base {
            self.code.ops([Op::LocalGet(base), Op::I32Add]);
        }
        offset
    }

    /// Whether a value of a column is missing: its byte is 0, where there are bytes.
    fn missing(&mut self, column: u32, index: &Value) {
        let (count, local) = (self.count(), self.index_local(index));
        self.beyond(local, element(index), &[Op::LocalGet(count)]);
        self.fail_if(index.pos, Why::Index);
        self.code.ops([
            Op::GlobalGet(layout::validity(column)),
            Op::If(BlockType::Result(ValType::I32)),
            Op::LocalGet(local),
        ]);
        if val_type(element(index)) == ValType::I64 {
            self.code.op(Op::I32WrapI64);
        }
        self.code.ops([
            Op::GlobalGet(layout::validity(column)),
            Op::I32Add,
            load(Element::U8, 0),
            Op::I32Eqz,
            Op::Else,
            Op::I32Const(0),
            Op::End,
        ]);
    }

    fn binary(&mut self, pos: Pos, operator: Binary, a: &Value, b: &Value) {
        let of = element(a);
        self.value(a);
        self.value(b);
        let op = operator::binary(operator, of);
        if matches!(operator, Binary::Div | Binary::Rem) && !of.is_float() {
            self.code.may_fail(op, pos, Why::Divide);
        } else {
            self.code.op(op);
        }
    }

    fn negate(&mut self, inner: &Value, element: Element) {
        match val_type(element) {
            ValType::F32 | ValType::F64 => {
                self.value(inner);
                self.code.op(if element == Element::F32 { Op::F32Neg } else { Op::F64Neg });
            }
            ValType::I64 => {
                self.code.op(Op::I64Const(0));
                self.value(inner);
                self.code.op(Op::I64Sub);
            }
            _ => {
                self.code.op(Op::I32Const(0));
                self.value(inner);
                self.code.op(Op::I32Sub);
            }
        }
    }

    fn cond(&mut self, condition: &Value, a: &Value, b: &Value, element: Element) {
        let mut left = PLAIN;
        // Both are computed before the condition, which must not change what they see.
        if is_plain(a, &mut left) && is_plain(b, &mut left) && does_nothing(condition) {
            self.value(a);
            self.value(b);
            self.value(condition);
            self.code.op(Op::Select);
            return;
        }
        self.value(condition);
        self.code.op(Op::If(BlockType::Result(val_type(element))));
        self.value(a);
        self.code.op(Op::Else);
        self.value(b);
        self.code.op(Op::End);
    }

    fn builtin(&mut self, builtin: Builtin, arguments: &[Value]) {
        arguments.iter().for_each(|value| self.value(value));
        match builtin {
            Builtin::Min | Builtin::Max => {
                let (a, b) = (self.code.local(ValType::F64), self.code.local(ValType::F64));
                let compare = if builtin == Builtin::Min { Op::F64Lt } else { Op::F64Gt };
                self.code.ops([
                    Op::LocalSet(b),
                    Op::LocalTee(a),
                    Op::LocalGet(b),
                    Op::LocalGet(a),
                    Op::LocalGet(b),
                ]);
                self.code.ops([compare, Op::LocalGet(b), Op::LocalGet(b), Op::F64Ne, Op::I32Or, Op::Select]);
            }
            // The sign of a NaN is one that nobody may see.
            Builtin::CopySign => {
                self.one_nan(Element::F64);
                self.code.op(Op::F64Copysign);
            }
            Builtin::IsNan => {
                let local = self.code.local(ValType::F64);
                self.code.ops([Op::LocalTee(local), Op::LocalGet(local), Op::F64Ne]);
            }
            Builtin::IntAbs => self.int_abs(element(&arguments[0])),
            _ => self.code.ops(operator::builtin(builtin)),
        }
    }

    fn int_abs(&mut self, element: Element) {
        let local = self.code.local(val_type(element));
        let is_long = val_type(element) == ValType::I64;
        let zero = if is_long { Op::I64Const(0) } else { Op::I32Const(0) };
        let (sub, less) = if is_long { (Op::I64Sub, Op::I64LtS) } else { (Op::I32Sub, Op::I32LtS) };
        self.code.ops([Op::LocalSet(local), zero.clone(), Op::LocalGet(local), sub]);
        self.code.ops([Op::LocalGet(local), Op::LocalGet(local), zero, less, Op::Select]);
    }

    /// The value on the stack as one of another type.
    pub fn convert(&mut self, pos: Pos, from: Element, to: Element) {
        let may_fail = from.is_float() && !to.is_float();
        for op in operator::convert(from, to) {
            if may_fail {
                self.code.may_fail(op, pos, Why::Convert);
            } else {
                self.code.op(op);
            }
        }
    }
}

/// The type of a value; of what is void any.
pub(super) fn element(of: &Value) -> Element {
    match of.ty {
        Ty::Of(element) => element,
        Ty::Void => Element::I32,
    }
}

/// Whether a value costs little, does nothing and cannot fail.
fn is_plain(of: &Value, left: &mut u32) -> bool {
    if *left == 0 {
        return false;
    }
    *left -= 1;
    match &of.kind {
        Kind::Int(_) | Kind::Float(_) | Kind::Read(Place::Local(_)) => true,
        Kind::Binary(Binary::Div | Binary::Rem, a, _) if !element(a).is_float() => false,
        Kind::Binary(_, a, b) => is_plain(a, left) && is_plain(b, left),
        Kind::Negate(a) | Kind::Not(a) => is_plain(a, left),
        Kind::Convert(a) => !element(a).is_float() && is_plain(a, left),
        _ => false,
    }
}

/// Whether nothing is written by a value.
fn does_nothing(of: &Value) -> bool {
    match &of.kind {
        Kind::Write(..) | Kind::Then(..) | Kind::Call(..) | Kind::Resize(_) => false,
        Kind::Int(_) | Kind::Float(_) | Kind::Count | Kind::OutputCount => true,
        Kind::Read(Place::Element(_, index)) | Kind::Missing(_, index) => does_nothing(index),
        Kind::Read(_) => true,
        Kind::Binary(_, a, b) => does_nothing(a) && does_nothing(b),
        Kind::Negate(a) | Kind::Not(a) | Kind::Convert(a) | Kind::Within(a, _) => does_nothing(a),
        Kind::Cond(a, b, c) => does_nothing(a) && does_nothing(b) && does_nothing(c),
        Kind::Builtin(_, arguments) => arguments.iter().all(does_nothing),
    }
}
