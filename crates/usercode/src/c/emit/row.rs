//! Loops over rows around the function of a row.

use wasm_encoder::{BlockType, ValType};

use super::code::{MOST_COPIES, Op, Why, load, store};
use super::entry::{Rows, address, zero};
use super::function::{Emit, Returns};
use super::layout;
use super::operator;
use crate::c::tree::Function;
use crate::element::Element;

/// Locals that say where rows are.
pub(super) struct Lies {
    /// Addresses of the columns.
    pub columns: Vec<u32>,
    /// Address of the validity, 0: no value is missing.
    pub valid: u32,
    /// The number of the row, and how many there are.
    pub row: u32,
    pub count: u32,
    /// Address of what comes out.
    pub out: u32,
}

/// A row in a loop over rows.
pub(super) struct Row<'a> {
    of: &'a Function,
    what: Rows,
    /// The type of its value, and the local that holds it.
    result: Option<(Element, u32)>,
    params: Vec<u32>,
    lies: Lies,
    /// Locals with the addresses of the row's values, and of what comes out of it.
    at: Vec<u32>,
    out_at: u32,
}

impl<'a> Row<'a> {
    pub fn new(
        emit: &mut Emit<'_>,
        of: &'a Function,
        what: Rows,
        result: Option<(Element, u32)>,
        params: Vec<u32>,
        lies: Lies,
    ) -> Self {
        let at = lies.columns.iter().map(|_| emit.code.local(ValType::I32)).collect();
        let out_at = emit.code.local(ValType::I32);
        Self { of, what, result, params, lies, at, out_at }
    }

    /// Rows of which no value is missing, several at once as long as there are as many: where a row is a few instructions, most of
    /// the time would go into asking whether it is there. Larger ones are left to [`Row::one_by_one`].
    pub fn together(&self, emit: &mut Emit<'_>) {
        let (before, rows) = (emit.code.here(), MOST_COPIES as u32);
        let Lies { valid, row, count, .. } = self.lies;
        emit.code.op(Op::Block(BlockType::Empty));
        let leave = emit.code.depth;
        if self.what != Rows::Stream {
            emit.code.op(Op::LocalGet(valid));
            emit.branch_if(leave);
        }
        emit.code.op(Op::Loop(BlockType::Empty));
        let again = emit.code.depth;
        emit.code.ops([Op::LocalGet(count), Op::LocalGet(row), Op::I32Sub]);
        emit.code.ops([Op::I32Const(rows.cast_signed()), Op::I32LtU]);
        emit.branch_if(leave);
        self.come_to(emit);
        self.point(emit);
        let from = emit.code.len();
        self.emit(emit, 0, false);
        if emit.code.copies(from) == 0 {
            emit.code.go_back(before);
            return;
        }
        (1..rows).for_each(|behind| self.emit(emit, behind, false));
        self.go_on(emit, rows);
        emit.branch(again);
        emit.code.ops([Op::End, Op::End]);
    }

    /// All rows that are left.
    pub fn one_by_one(&self, emit: &mut Emit<'_>) {
        emit.code.ops([Op::Block(BlockType::Empty), Op::Loop(BlockType::Empty)]);
        let again = emit.code.depth;
        let from = emit.code.len();
        self.one(emit, again - 1);
        for _ in 0..emit.code.copies(from) {
            self.one(emit, again - 1);
        }
        emit.branch(again);
        emit.code.ops([Op::End, Op::End]);
    }

    /// The next row; there is none where a block is left that was opened at a depth.
    fn one(&self, emit: &mut Emit<'_>, leave: u32) {
        emit.code.ops([Op::LocalGet(self.lies.row), Op::LocalGet(self.lies.count), Op::I32GeU]);
        emit.branch_if(leave);
        self.come_to(emit);
        self.point(emit);
        self.emit(emit, 0, true);
        self.go_on(emit, 1);
    }

    /// Notes the row, for who wants to know which one failed: it, or one of those that are done together with it.
    fn come_to(&self, emit: &mut Emit<'_>) {
        if self.puts_out().is_some() {
            emit.code.ops([Op::LocalGet(self.lies.row), Op::GlobalSet(layout::ROW)]);
        }
    }

    /// Takes the addresses of the row's values.
    fn point(&self, emit: &mut Emit<'_>) {
        let Lies { row, out, .. } = self.lies;
        let elements = &emit.module.program.inputs;
        for ((column, at), element) in self.lies.columns.iter().zip(&self.at).zip(elements) {
            address(&mut emit.code, *column, row, *element);
            emit.code.op(Op::LocalSet(*at));
        }
        if let Some(element) = self.puts_out() {
            address(&mut emit.code, out, row, element);
            emit.code.op(Op::LocalSet(self.out_at));
        }
    }

    fn go_on(&self, emit: &mut Emit<'_>, rows: u32) {
        let row = self.lies.row;
        emit.code.ops([Op::LocalGet(row), Op::I32Const(rows.cast_signed()), Op::I32Add, Op::LocalSet(row)]);
    }

    /// The type of what comes out of a row.
    fn puts_out(&self) -> Option<Element> {
        match self.what {
            Rows::Map => self.result.map(|(element, _)| element),
            Rows::Filter => Some(Element::U8),
            Rows::Step | Rows::Stream => None,
        }
    }

    /// The row that lies so many behind the one that was pointed at, looking first whether its values are there.
    fn emit(&self, emit: &mut Emit<'_>, behind: u32, looks: bool) {
        let Self { of, result, .. } = *self;
        emit.code.op(Op::Block(BlockType::Empty));
        let depth = emit.code.depth;
        emit.returns = Returns::Inside { value: result.map(|(_, local)| local), depth };
        if looks && self.what != Rows::Stream {
            self.skip_missing(emit, depth);
        }
        let types = emit.module.program.inputs.iter().zip(&of.params);
        for ((at, param), (from, to)) in self.at.iter().zip(&self.params).zip(types) {
            emit.code.ops([Op::LocalGet(*at), load(*from, behind * size(*from))]);
            emit.convert(of.pos, *from, *to);
            emit.code.op(Op::LocalSet(*param));
        }
        emit.steps(&of.body);
        if result.is_some() {
            emit.code.may_fail(Op::Unreachable, of.pos, Why::NoReturn);
        }
        emit.code.op(Op::End);
        let (Some(to), Some((element, local))) = (self.puts_out(), result) else { return };
        emit.code.ops([Op::LocalGet(self.out_at), Op::LocalGet(local)]);
        if self.what == Rows::Map {
            emit.one_nan(element);
        } else {
            let is_true = operator::binary(crate::c::ast::Binary::NotEq, element);
            emit.code.ops([zero(element), is_true]);
        }
        emit.code.op(store(to, behind * size(to)));
    }

    /// Leaves the block of a row whose value is missing; its result is zero.
    fn skip_missing(&self, emit: &mut Emit<'_>, depth: u32) {
        let Lies { valid, row, .. } = self.lies;
        emit.code.ops([Op::LocalGet(valid), Op::If(BlockType::Empty)]);
        emit.code.ops([Op::LocalGet(valid), Op::LocalGet(row), Op::I32Add, load(Element::U8, 0), Op::I32Eqz]);
        emit.code.op(Op::If(BlockType::Empty));
        if let Some((element, local)) = self.result {
            emit.code.ops([zero(element), Op::LocalSet(local)]);
        }
        emit.branch(depth);
        emit.code.ops([Op::End, Op::End]);
    }
}

fn size(element: Element) -> u32 {
    u32::try_from(element.size()).unwrap_or(8)
}
