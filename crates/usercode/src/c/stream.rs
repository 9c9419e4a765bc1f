//! A `proc` that goes once through its rows, from the first to the last, as a reduction: what stands before its loop begins it,
//! the body is done for each row, what stands behind gives the value. The result is the same, and not all rows have to be in
//! memory. Its variables become such of the file, as they are kept from piece to piece.

use super::ast::Binary;
use super::tree::{Array, Base, Form, Function, Kind, Place, Program, Step, Value};
use super::types::Ty;
use crate::element::Element;

/// Bytes that a variable takes in the state.
const SLOT: u32 = 8;

/// The program as a reduction, where it is one; else as it was.
pub(super) fn streamed(mut program: Program) -> Program {
    let Form::Proc { function: number, rows: false, result: true } = program.form else { return program };
    let flat = flattened(std::mem::take(&mut program.functions[number as usize].body));
    let found = (!sees_all(&program, number)).then(|| the_loop(&flat)).flatten();
    let Some(at) = found else {
        program.functions[number as usize].body = flat;
        return program;
    };
    cut(program, number, flat, at)
}

/// Steps without the blocks that only end names.
fn flattened(steps: Vec<Step>) -> Vec<Step> {
    let mut flat = Vec::with_capacity(steps.len());
    for step in steps {
        match step {
            Step::Block(inner) => flat.extend(flattened(inner)),
            other => flat.push(other),
        }
    }
    flat
}

/// Whether what a function calls looks at rows, or whether values are put out.
fn sees_all(program: &Program, number: u32) -> bool {
    let own = &program.functions[number as usize];
    let (mut open, mut known) = (own.called.clone(), vec![false; program.functions.len()]);
    while let Some(called) = open.pop() {
        if std::mem::replace(&mut known[called as usize], true) {
            continue;
        }
        let function = &program.functions[called as usize];
        if function.uses.input || function.uses.output || called == number {
            return true;
        }
        open.extend(&function.called);
    }
    own.uses.output || own.uses.resize
}

/// The loop over all rows.
fn the_loop(flat: &[Step]) -> Option<usize> {
    let at = flat.iter().position(|step| matches!(step, Step::Loop { .. }) && any_of(step, &reads_input))?;
    let (before, behind) = (&flat[..at], &flat[at + 1..]);
    let Step::Loop { before: Some(condition), body, step: Some(step), after: None } = &flat[at] else {
        return None;
    };
    let counter = counted(condition)?;
    let begins = matches!(before.last(), Some(Step::Do(first)) if is_written(first, counter, &|v| matches!(v.kind, Kind::Int(0))));
    // Before the loop nobody knows how many rows there are; behind it all do.
    let is_early = |v: &Value| reads_input(v) || matches!(v.kind, Kind::Count);
    let fits = begins
        && is_next(step, counter)
        && !before.iter().any(|step| any_of(step, &is_early) || returns(step))
        && !behind.iter().any(|step| any_of(step, &reads_input) || clears(step))
        && !body.iter().any(|step| any_of(step, &|v| !is_of_row(v, counter)) || leaves(step, false));
    fits.then_some(at)
}

/// The variable that a condition compares with the number of rows.
fn counted(condition: &Value) -> Option<u32> {
    let Kind::Binary(Binary::Lt, a, b) = &condition.kind else { return None };
    match (&a.kind, a.ty, &unconverted(b).kind) {
        (Kind::Read(Place::Local(counter)), Ty::Of(Element::I32 | Element::I64), Kind::Count) => {
            Some(*counter)
        }
        _ => None,
    }
}

fn unconverted(of: &Value) -> &Value {
    match &of.kind {
        Kind::Convert(inner) => unconverted(inner),
        _ => of,
    }
}

/// Whether a value is that which is written to a variable.
fn is_written(of: &Value, variable: u32, value: &dyn Fn(&Value) -> bool) -> bool {
    matches!(&of.kind, Kind::Write(Place::Local(to), written) if *to == variable && value(unconverted(written)))
}

/// Whether a variable grows by one, and nothing else is done that could be seen.
fn is_next(of: &Value, counter: u32) -> bool {
    let is_counter = |v: &Value| matches!(unconverted(v).kind, Kind::Read(Place::Local(n)) if n == counter);
    let is_more = |v: &Value| match &v.kind {
        Kind::Binary(Binary::Add, a, b) => is_counter(a) && matches!(unconverted(b).kind, Kind::Int(1)),
        _ => false,
    };
    match &of.kind {
        Kind::Then(first, last) => {
            let is_kept =
                |v: &Value| matches!(&v.kind, Kind::Write(Place::Local(_), value) if is_counter(value));
            let (steps, kept): (Vec<&Value>, Vec<&Value>) =
                first.iter().partition(|v| is_written(v, counter, &is_more));
            steps.len() == 1
                && kept.into_iter().all(is_kept)
                && matches!(last.kind, Kind::Read(Place::Local(_)))
        }
        _ => is_written(of, counter, &is_more),
    }
}

fn reads_input(of: &Value) -> bool {
    match &of.kind {
        Kind::Read(Place::Element(array, _)) => matches!(array.base, Base::Input(_)),
        Kind::Missing(..) => true,
        _ => false,
    }
}

/// Whether a value of a row needs that row alone. Values below it are asked by themselves.
fn is_of_row(of: &Value, counter: u32) -> bool {
    match &of.kind {
        Kind::Count | Kind::Missing(..) => false,
        Kind::Write(Place::Local(to), _) => *to != counter,
        Kind::Read(Place::Element(Array { base: Base::Input(_), .. }, index)) => {
            matches!(index.kind, Kind::Read(Place::Local(n)) if n == counter)
        }
        _ => true,
    }
}

/// Whether a value in a step, or below one, is such.
fn any_of(step: &Step, is: &dyn Fn(&Value) -> bool) -> bool {
    let any = |steps: &[Step]| steps.iter().any(|step| any_of(step, is));
    let within = |value: &Value| any_within(value, is);
    match step {
        Step::Do(value) | Step::Return(Some(value)) => within(value),
        Step::If(condition, then, other) => within(condition) || any(then) || any(other),
        Step::Loop { before, body, step, after } => {
            [before, step, after].into_iter().flatten().any(within) || any(body)
        }
        Step::Block(steps) => any(steps),
        Step::Clear(_) | Step::Break | Step::Continue | Step::Return(None) => false,
    }
}

fn any_within(of: &Value, is: &dyn Fn(&Value) -> bool) -> bool {
    if is(of) {
        return true;
    }
    let within = |value: &Value| any_within(value, is);
    match &of.kind {
        Kind::Int(_) | Kind::Float(_) | Kind::Count | Kind::OutputCount => false,
        Kind::Read(place) => place_within(place, is),
        Kind::Write(place, value) => place_within(place, is) || within(value),
        Kind::Binary(_, a, b) => within(a) || within(b),
        Kind::Cond(a, b, c) => within(a) || within(b) || within(c),
        Kind::Then(first, value) => first.iter().any(within) || within(value),
        Kind::Call(_, arguments) | Kind::Builtin(_, arguments) => arguments.iter().any(within),
        Kind::Missing(_, a)
        | Kind::Negate(a)
        | Kind::Not(a)
        | Kind::Convert(a)
        | Kind::Within(a, _)
        | Kind::Resize(a) => within(a),
    }
}

fn place_within(place: &Place, is: &dyn Fn(&Value) -> bool) -> bool {
    matches!(place, Place::Element(_, index) if any_within(index, is))
}

fn returns(step: &Step) -> bool {
    leaves(step, true)
}

/// Whether a step may return, clears an array, or leaves a loop that is not `inside` of it.
fn leaves(step: &Step, inside: bool) -> bool {
    let any = |steps: &[Step], inside| steps.iter().any(|step| leaves(step, inside));
    match step {
        Step::Return(_) => true,
        Step::Break | Step::Continue => !inside,
        Step::Clear(_) => !inside,
        Step::If(_, then, other) => any(then, inside) || any(other, inside),
        Step::Block(steps) => any(steps, inside),
        Step::Loop { body, .. } => any(body, true) || body.iter().any(clears),
        Step::Do(_) => false,
    }
}

fn clears(step: &Step) -> bool {
    match step {
        Step::Clear(_) => true,
        Step::If(_, then, other) => then.iter().chain(other).any(clears),
        Step::Block(steps) | Step::Loop { body: steps, .. } => steps.iter().any(clears),
        _ => false,
    }
}

/// The program with three functions in place of one.
fn cut(mut program: Program, number: u32, flat: Vec<Step>, at: usize) -> Program {
    let own = &program.functions[number as usize];
    let locals = u32::try_from(own.locals.len()).unwrap_or(u32::MAX);
    let (state, frame) = (State { first: program.file.next_multiple_of(16), locals }, own.frame);
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    let mut body = Vec::new();
    for (place, step) in flat.into_iter().enumerate() {
        match step {
            // The state is zero when it begins.
            Step::Clear(_) if place < at => {}
            Step::Loop { body: of_row, step, .. } if place == at => {
                body = of_row.into_iter().map(|step| state.step(step)).collect();
                body.extend(step.map(|value| Step::Do(state.value(value))));
            }
            step if place < at => before.push(state.step(step)),
            step => behind.push(state.step(step)),
        }
    }
    let made = |own: &Function, params: Vec<Element>, result: Ty, body: Vec<Step>| Function {
        name: own.name.clone(),
        pos: own.pos,
        locals: params.clone(),
        params,
        result,
        frame: 0,
        body,
        uses: super::tree::Uses { file: true, ..super::tree::Uses::default() },
        is_prelude: false,
        called: own.called.clone(),
        is_reached: true,
    };
    let result = own.result;
    let init = made(own, Vec::new(), Ty::Void, before);
    let finish = made(own, Vec::new(), result, behind);
    let step = made(own, program.inputs.clone(), Ty::Void, body);
    let next = u32::try_from(program.functions.len()).unwrap_or(u32::MAX);
    program.functions[number as usize] = step;
    program.functions.extend([init, finish]);
    program.file = state.frame() + frame;
    program.form = Form::Stream { init: next, step: number, finish: next + 1 };
    program
}

/// Where the variables of the function are in the state.
struct State {
    first: u32,
    locals: u32,
}

impl State {
    /// Where its arrays begin.
    fn frame(&self) -> u32 {
        (self.first + SLOT * self.locals).next_multiple_of(16)
    }

    fn steps(&self, steps: Vec<Step>) -> Vec<Step> {
        steps.into_iter().map(|step| self.step(step)).collect()
    }

    fn step(&self, step: Step) -> Step {
        match step {
            Step::Do(value) => Step::Do(self.value(value)),
            Step::If(condition, then, other) => {
                Step::If(self.value(condition), self.steps(then), self.steps(other))
            }
            Step::Loop { before, body, step, after } => Step::Loop {
                before: before.map(|value| self.value(value)),
                body: self.steps(body),
                step: step.map(|value| self.value(value)),
                after: after.map(|value| self.value(value)),
            },
            Step::Block(steps) => Step::Block(self.steps(steps)),
            Step::Return(value) => Step::Return(value.map(|value| self.value(value))),
            Step::Clear(_) | Step::Break | Step::Continue => step,
        }
    }

    fn value(&self, of: Value) -> Value {
        let boxed = |value: Box<Value>| Box::new(self.value(*value));
        let each = |values: Vec<Value>| values.into_iter().map(|value| self.value(value)).collect();
        let kind = match of.kind {
            Kind::Read(place) => Kind::Read(self.place(place)),
            Kind::Write(place, value) => Kind::Write(self.place(place), boxed(value)),
            Kind::Missing(column, index) => Kind::Missing(column, boxed(index)),
            Kind::Binary(operator, a, b) => Kind::Binary(operator, boxed(a), boxed(b)),
            Kind::Negate(a) => Kind::Negate(boxed(a)),
            Kind::Not(a) => Kind::Not(boxed(a)),
            Kind::Convert(a) => Kind::Convert(boxed(a)),
            Kind::Within(a, length) => Kind::Within(boxed(a), length),
            Kind::Resize(a) => Kind::Resize(boxed(a)),
            Kind::Cond(a, b, c) => Kind::Cond(boxed(a), boxed(b), boxed(c)),
            Kind::Then(first, value) => Kind::Then(each(first), boxed(value)),
            Kind::Call(number, arguments) => Kind::Call(number, each(arguments)),
            Kind::Builtin(builtin, arguments) => Kind::Builtin(builtin, each(arguments)),
            Kind::Int(_) | Kind::Float(_) | Kind::Count | Kind::OutputCount => of.kind,
        };
        Value { kind, ..of }
    }

    fn place(&self, place: Place) -> Place {
        match place {
            Place::Local(local) => Place::File { offset: self.first + SLOT * local, other: false },
            // The value of the row is a parameter.
            Place::Element(Array { base: Base::Input(column), .. }, _) => Place::Local(column),
            Place::Element(array, index) => {
                let base = match array.base {
                    Base::Frame(offset) => Base::File { offset: self.frame() + offset, other: false },
                    base => base,
                };
                Place::Element(Array { base, ..array }, Box::new(self.value(*index)))
            }
            Place::File { .. } => place,
        }
    }
}
