//! A checked program to the bytes of a WebAssembly module with the columnar interface.

mod code;
mod entry;
mod function;
mod layout;
mod memory;
mod operator;
mod row;
mod value;

use std::collections::HashMap;
use std::ops::Range;

use wasm_encoder::{
    CodeSection, ConstExpr, DataSection, ExportKind, ExportSection, FunctionSection, GlobalSection,
    GlobalType, MemorySection, MemoryType, TypeSection, ValType,
};

pub(crate) use code::Why;
use code::{Code, Mark, Op, val_type};
use entry::Rows;
use function::Module;
use layout::Layout;

use crate::c::lex::Pos;
use crate::c::tree::{Form, Function, Program};
use crate::c::types::Ty;
use crate::element::Element;

const PAGE: u64 = 1 << 16;
/// The global with the row that a function of each row has come to.
pub(crate) const ROW_REACHED: &str = "sieva_row";
/// So many rows from there on may be done together.
pub(crate) const ROWS_TOGETHER: usize = code::MOST_COPIES;

/// A module, and which places of the text its instructions come from.
pub(crate) struct Emitted {
    pub bytes: Vec<u8>,
    /// Of each function its marks, by offsets in its body.
    pub marks: Vec<Vec<Mark>>,
    /// Of a reduction, where its state lies: the variables of the file.
    pub state: Option<Range<usize>>,
    /// The type of what comes out.
    pub output: Element,
}

/// Compiles a program.
pub(crate) fn emit(program: &Program) -> Emitted {
    let layout = Layout::of(program);
    let own = u32::try_from(program.functions.len()).unwrap_or(u32::MAX);
    let (alloc, resize) = (own, own + 1);
    let module = Module { program, layout: &layout, resize };
    let mut out = Sections::default();
    for (number, function) in (0..).zip(&program.functions) {
        let params: Vec<ValType> = function.params.iter().map(|p| val_type(*p)).collect();
        let result: Vec<ValType> = match function.result {
            Ty::Of(element) => vec![val_type(element)],
            Ty::Void => Vec::new(),
        };
        out.function(params, result, code_of(&module, number, function));
    }
    let size = u32::try_from(program.output.size()).unwrap_or(8);
    // What a filter puts out is a byte of each row.
    out.function(vec![ValType::I32], vec![ValType::I32], memory::alloc());
    out.function(vec![ValType::I64], Vec::new(), memory::resize(alloc, size));
    out.exports.export("memory", ExportKind::Memory, 0);
    out.exports.export("sieva_alloc", ExportKind::Func, alloc);
    entries(&module, &mut out);
    if matches!(program.form, Form::Map(_) | Form::Filter(_)) {
        out.exports.export(ROW_REACHED, ExportKind::Global, layout::ROW);
    }
    out.finish(program, &layout)
}

/// A function of the text; those that nobody calls are empty.
fn code_of(module: &Module<'_>, number: u32, of: &Function) -> Code {
    let program = module.program;
    let is_called = |by: &Function| by.is_reached && by.called.contains(&number);
    let is_inside = match program.form {
        Form::Map(n) | Form::Filter(n) => n == number,
        Form::Reduce { step, .. } | Form::Stream { step, .. } => step == number,
        Form::Proc { .. } => false,
    };
    if !of.is_reached || (is_inside && !program.functions.iter().any(is_called)) {
        let mut code = Code::new(of.params.len());
        code.op(Op::Unreachable);
        return code;
    }
    function::function(module, of)
}

fn entries(module: &Module<'_>, out: &mut Sections) {
    let i32s = |n: usize| vec![ValType::I32; n];
    let of = |number: u32| &module.program.functions[number as usize];
    match module.program.form {
        Form::Map(n) => out.entry("sieva_map", i32s(2), i32s(1), entry::rows(module, of(n), Rows::Map)),
        Form::Filter(n) => {
            out.entry("sieva_filter", i32s(2), i32s(1), entry::rows(module, of(n), Rows::Filter))
        }
        Form::Proc { function, rows, result } => {
            let code = entry::proc(module, function, of(function), rows, result);
            out.entry("sieva_proc", i32s(3), i32s(1), code);
        }
        Form::Stream { init, step, finish } => {
            let mut code = Code::new(0);
            code.may_fail(Op::Call(init), of(init).pos, Why::Call);
            out.entry("sieva_init", Vec::new(), Vec::new(), code);
            out.entry("sieva_step", i32s(2), Vec::new(), entry::rows(module, of(step), Rows::Stream));
            out.entry("sieva_finish", Vec::new(), i32s(1), entry::finish(module, finish, of(finish)));
        }
        Form::Reduce { init, step, merge, finish } => {
            let mut code = Code::new(0);
            if let Some(init) = init {
                code.may_fail(Op::Call(init), of(init).pos, Why::Call);
            }
            out.entry("sieva_init", Vec::new(), Vec::new(), code);
            out.entry("sieva_step", i32s(2), Vec::new(), entry::rows(module, of(step), Rows::Step));
            out.entry("sieva_finish", Vec::new(), i32s(1), entry::finish(module, finish, of(finish)));
            if let Some(merge) = merge {
                out.entry("sieva_save", Vec::new(), i32s(1), entry::save(module));
                out.entry("sieva_merge", i32s(2), Vec::new(), entry::merge(module, merge));
            }
        }
    }
}

#[derive(Default)]
struct Sections {
    types: TypeSection,
    known: HashMap<(Vec<ValType>, Vec<ValType>), u32>,
    functions: FunctionSection,
    count: u32,
    exports: ExportSection,
    code: CodeSection,
    marks: Vec<Vec<Mark>>,
}

impl Sections {
    fn function(&mut self, params: Vec<ValType>, results: Vec<ValType>, code: Code) -> u32 {
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        let key = (params, results);
        let number = match self.known.get(&key) {
            Some(number) => *number,
            None => {
                self.types.ty().function(key.0.iter().copied(), key.1.iter().copied());
                self.known.insert(key, next);
                next
            }
        };
        self.functions.function(number);
        let (function, marks) = code.finish();
        self.code.function(&function);
        self.marks.push(marks);
        self.count += 1;
        self.count - 1
    }

    fn entry(&mut self, name: &str, params: Vec<ValType>, results: Vec<ValType>, code: Code) {
        let number = self.function(params, results, code);
        self.exports.export(name, ExportKind::Func, number);
    }

    fn finish(self, program: &Program, layout: &Layout) -> Emitted {
        let pages = u64::from(layout.stack_high).div_ceil(PAGE);
        let mut memories = MemorySection::new();
        memories.memory(MemoryType {
            minimum: pages,
            maximum: None,
            memory64: false,
            shared: false,
            page_size_log2: None,
        });
        let mut globals = GlobalSection::new();
        let top = layout.stack_high.cast_signed();
        let columns = 2 * program.inputs.len();
        for value in [top, top].into_iter().chain(std::iter::repeat_n(0, 5 + columns)) {
            let of = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
            globals.global(of, &ConstExpr::i32_const(value));
        }
        let mut data = DataSection::new();
        for initial in &program.initial {
            let address = layout.variable(initial.offset, false).cast_signed();
            data.active(0, &ConstExpr::i32_const(address), initial.bytes.iter().copied());
        }
        let mut module = wasm_encoder::Module::new();
        module.section(&self.types).section(&self.functions).section(&memories).section(&globals);
        module.section(&self.exports).section(&self.code).section(&data);
        let of_file = layout.file as usize..(layout.file + program.file) as usize;
        let state = matches!(program.form, Form::Reduce { .. }).then_some(of_file);
        Emitted { bytes: module.finish(), marks: self.marks, state, output: program.output }
    }
}

/// Where and why a compiled function ended the run, by the offset in its body.
pub(crate) fn place(marks: &[Mark], offset: usize) -> Option<(Pos, Why)> {
    let mark = marks.iter().rev().find(|m| m.offset <= offset)?;
    Some((mark.pos, mark.why))
}
