//! What a text is: a function of each row, of all rows, or of one after the other, by the names of its functions.

use std::collections::BTreeSet;

use sieva_types::{Error, ErrorKind, Result};

use super::{Input, mismatch};
use crate::c::ast;
use crate::c::parse::BODY;
use crate::c::tree::{Form, Function};
use crate::c::types::Ty;
use crate::element::Element;

/// The form that the names ask for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Map,
    Filter,
    Proc,
    Body,
    Reduce,
}

impl Asked {
    pub fn of(functions: &[ast::Function], names: &[&str]) -> Result<Self> {
        let all = [
            (Self::Map, "map"),
            (Self::Filter, "filter"),
            (Self::Proc, "proc"),
            (Self::Body, BODY),
            (Self::Reduce, "step"),
        ];
        let found: Vec<(Self, &str)> = all.into_iter().filter(|(_, name)| names.contains(name)).collect();
        match found[..] {
            [(form, _)] => Ok(form),
            [] => {
                let message = "the code has no function that can be called";
                Err(Error::new(ErrorKind::Syntax, message).hint(
                    "name it map, filter or proc, or write init, step, merge and finish, or statements alone",
                ))
            }
            [(_, one), (_, two), ..] => {
                let pos = functions.iter().find(|f| f.name == two).map(|f| f.pos).unwrap_or_default();
                Err(pos.wrong(format!("'{one}' and '{two}' are two forms of code: write one of them")))
            }
        }
    }

    /// The function that gets the columns as its parameters, row by row.
    pub fn of_rows(self) -> Option<&'static str> {
        match self {
            Self::Map => Some("map"),
            Self::Filter => Some("filter"),
            Self::Reduce => Some("step"),
            Self::Proc | Self::Body => None,
        }
    }

    pub fn is_reduce(self) -> bool {
        self == Self::Reduce
    }

    pub fn resolve(self, functions: &[Function], inputs: &[Input], file: &[ast::Variable]) -> Result<Form> {
        let find = |name: &str| {
            let at = functions.iter().position(|f| f.name == name && !f.is_prelude)?;
            Some((u32::try_from(at).unwrap_or(u32::MAX), &functions[at]))
        };
        let needed = |name: &str| {
            find(name).ok_or_else(|| {
                let message = format!("a reduction needs a function '{name}' beside 'step'");
                Error::new(ErrorKind::Syntax, message)
            })
        };
        match self {
            Self::Map | Self::Filter => {
                let name = if self == Self::Map { "map" } else { "filter" };
                let (number, function) = needed(name)?;
                of_rows(function, inputs)?;
                if function.result == Ty::Void {
                    return Err(mismatch(
                        function.pos,
                        format!("'{name}' returns a value of each row, not void"),
                    ));
                }
                if let Some(variable) = file.iter().find(|v| !v.is_const) {
                    let message = format!(
                        "'{}' would be kept from row to row, and '{name}' has no order",
                        variable.name
                    );
                    return Err(variable.pos.wrong(format!("{message}: make it const, or write 'proc'")));
                }
                Ok(if self == Self::Map { Form::Map(number) } else { Form::Filter(number) })
            }
            Self::Proc | Self::Body => {
                let (number, function) = needed(if self == Self::Proc { "proc" } else { BODY })?;
                let rows = match function.params[..] {
                    [] => false,
                    [Element::I32 | Element::I64, Element::I32 | Element::I64] => true,
                    _ => {
                        let message = "'proc' has no parameters but those of Scibox: \
                                       (cod_exec_context ec, input_type *input, int k, int m)";
                        return Err(mismatch(function.pos, message));
                    }
                };
                let puts_out = functions.iter().any(|f| f.uses.output);
                let result = function.result != Ty::Void;
                if result && puts_out {
                    let message = "it returns a value and writes to 'output': do one of them";
                    return Err(mismatch(function.pos, message));
                }
                if rows && !result {
                    return Err(mismatch(function.pos, "with rows (k, m), a value of each row is returned"));
                }
                if !result && !puts_out {
                    let message = "nothing comes of it: return a value, or write to 'output'";
                    return Err(function.pos.wrong(message));
                }
                Ok(Form::Proc { function: number, rows, result })
            }
            Self::Reduce => {
                let (step, function) = needed("step")?;
                of_rows(function, inputs)?;
                let (finish, function) = needed("finish")?;
                if function.result == Ty::Void || !function.params.is_empty() {
                    return Err(mismatch(function.pos, "'finish' has no parameters and returns the value"));
                }
                let mut plain = [None, None];
                for (slot, name) in plain.iter_mut().zip(["init", "merge"]) {
                    if let Some((number, function)) = find(name) {
                        if function.result != Ty::Void || !function.params.is_empty() {
                            return Err(mismatch(function.pos, format!("'{name}' is void {name}()")));
                        }
                        *slot = Some(number);
                    }
                }
                Ok(Form::Reduce { init: plain[0], step, merge: plain[1], finish })
            }
        }
    }
}

/// Whether a function of rows fits the columns.
fn of_rows(function: &Function, inputs: &[Input]) -> Result<()> {
    if function.params.len() != inputs.len() {
        let message = format!(
            "'{}' has {} parameters, and it is asked of {} columns",
            function.name,
            function.params.len(),
            inputs.len()
        );
        return Err(mismatch(function.pos, message));
    }
    for (param, input) in function.params.iter().zip(inputs) {
        let is_narrow = !param.is_float()
            && (input.element.is_float()
                || param.size() < input.element.size()
                || (param.size() == input.element.size() && *param != input.element)
                || (param.is_unsigned() && !input.element.is_unsigned()));
        if is_narrow {
            let message = format!(
                "values of '{}' are of type {}, which {} does not hold",
                input.name,
                input.element.name(),
                param.c_name()
            );
            let wide = if input.element.is_float() { "double" } else { input.element.c_name() };
            return Err(mismatch(function.pos, message).hint(format!("make the parameter {wide}")));
        }
    }
    if function.uses.input || function.uses.output {
        let message = format!("'{}' sees its parameters, not 'input' and 'output'", function.name);
        return Err(mismatch(function.pos, message));
    }
    Ok(())
}

/// The type of code without a function around it: that which holds all that it returns.
pub(super) fn common(function: &ast::Function, returned: &[Ty]) -> Result<Ty> {
    let mut common: Option<Ty> = None;
    for &ty in returned {
        common = Some(match (common, ty) {
            (None, Ty::Of(element)) => Ty::Of(element.promoted()),
            (Some(Ty::Of(a)), Ty::Of(b)) => Ty::Of(a.common(b)),
            (None | Some(Ty::Void), Ty::Void) => Ty::Void,
            _ => return Err(mismatch(function.pos, "it returns a value here, and nothing there")),
        });
    }
    Ok(common.unwrap_or(Ty::Void))
}

/// The type of what comes out.
pub(super) fn output(form: &Form, functions: &[Function], output: Element) -> Element {
    let result = |number: u32| match functions[number as usize].result {
        Ty::Of(element) => element,
        Ty::Void => output,
    };
    match *form {
        Form::Map(number) => result(number),
        Form::Filter(_) => Element::U8,
        Form::Proc { function, .. } => result(function),
        Form::Reduce { finish, .. } | Form::Stream { finish, .. } => result(finish),
    }
}

/// The functions, those that are not called without their bodies: of the prelude only what is needed is compiled.
pub(super) fn reached(mut functions: Vec<Function>, form: &Form) -> Vec<Function> {
    let mut open: Vec<u32> = match *form {
        Form::Map(number) | Form::Filter(number) | Form::Proc { function: number, .. } => vec![number],
        Form::Stream { init, step, finish } => vec![init, step, finish],
        Form::Reduce { init, step, merge, finish } => {
            [init, Some(step), merge, Some(finish)].into_iter().flatten().collect()
        }
    };
    let mut known: BTreeSet<u32> = open.iter().copied().collect();
    while let Some(number) = open.pop() {
        for &called in &functions[number as usize].called {
            if known.insert(called) {
                open.push(called);
            }
        }
    }
    for (number, function) in (0..).zip(&mut functions) {
        if !known.contains(&number) {
            function.is_reached = false;
            function.body.clear();
        }
    }
    functions
}
