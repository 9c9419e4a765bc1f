//! Names to places, types to values. All signatures, the variables of the file and the type of the output are known before
//! the first body is looked at, so that the order of functions in the text does not matter.

mod call;
mod constant;
mod expression;
mod form;
mod look;
mod statement;

use std::collections::HashMap;

use sieva_types::{Error, ErrorKind, Result};

use crate::c::ast::{self, Expr, Initial as Given};
use crate::c::builtin::{self, PRELUDE, PRELUDE_NAMES};
use crate::c::lex::Pos;
use crate::c::parse::{BODY, parse};
use crate::c::tree::{Array, Base, Function, Initial, Program, Uses};
use crate::c::types::Ty;
use crate::element::Element;

pub(crate) use look::look;

/// Bytes of the variables of the file, at most.
const MOST_FILE: u64 = 64 << 20;
/// Those of a reduction, which are its state: when it is merged, it goes from process to process.
const MOST_STATE: u64 = 1 << 20;
/// Bytes of the arrays of a function.
const MOST_FRAME: u64 = 256 << 10;
const MOST_LOCALS: usize = 1000;

/// A column as code sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// The type of its values.
    pub element: Element,
}

/// What the functions of a program have in common.
pub(super) struct Scope<'a> {
    inputs: &'a [Input],
    output: Element,
    signatures: Vec<Signature>,
    by_name: HashMap<String, u32>,
    file: HashMap<String, Variable>,
    is_reduce: bool,
}

struct Signature {
    params: Vec<Element>,
    result: Ty,
}

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Variable {
    Local(u32, Element, bool),
    File { offset: u32, element: Element, is_const: bool },
    Constant(Element, constant::Number),
    Array { array: Array, lengths: Vec<u32>, is_const: bool },
}

/// Checks a text against the columns that it gets.
pub(crate) fn check(text: &str, inputs: &[Input]) -> Result<Program> {
    let program = parse(text)?;
    let mut functions = program.functions;
    let own = functions.len();
    if calls_prelude(text) {
        functions.extend(parse(PRELUDE)?.functions);
    }
    let names: Vec<&str> = functions.iter().take(own).map(|f| &*f.name).collect();
    let form = form::Asked::of(&functions[..own], &names)?;
    let mut placed = Placed { size: 0, most: if form.is_reduce() { MOST_STATE } else { MOST_FILE } };
    let mut initial = Vec::new();
    let file = file_variables(&program.variables, &mut initial, &mut placed)?;
    let output = match program.output {
        Some((_, Ty::Of(element))) => element,
        _ => Element::F64,
    };
    let (signatures, by_name) = signatures(&functions, own)?;
    let mut scope = Scope { inputs, output, signatures, by_name, file, is_reduce: form.is_reduce() };
    let mut checked = Vec::new();
    for (number, function) in functions.iter().enumerate() {
        let is_prelude = number >= own;
        if function.result.is_none() {
            // Once to learn what it returns, and once more with that.
            let mut returned = Vec::new();
            function_of(&scope, function, Ty::Void, is_prelude, Some(&mut returned))?;
            scope.signatures[number].result = form::common(function, &returned)?;
        }
        let result = scope.signatures[number].result;
        checked.push(function_of(&scope, function, result, is_prelude, None)?);
    }
    let form = form.resolve(&checked, inputs, &program.variables)?;
    let output = form::output(&form, &checked, output);
    let inputs = inputs.iter().map(|i| i.element).collect();
    Ok(Program { functions: form::reached(checked, &form), form, file: placed.size, initial, inputs, output })
}

/// Whether a word of the text is a function of the prelude.
fn calls_prelude(text: &str) -> bool {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.into_iter().any(|w| PRELUDE_NAMES.contains(&w) || PRELUDE_NAMES.contains(&w.trim_end_matches('f')))
}

fn signatures(functions: &[ast::Function], own: usize) -> Result<(Vec<Signature>, HashMap<String, u32>)> {
    let (mut signatures, mut by_name) = (Vec::new(), HashMap::new());
    for (number, function) in functions.iter().enumerate() {
        let is_own = number < own;
        let taken = PRELUDE_NAMES.contains(&&*function.name)
            || builtin::of_name(&function.name, false).is_some()
            || builtin::of_float(&function.name).is_some()
            || matches!(&*function.name, "resize" | "missing");
        if is_own && taken {
            return Err(function
                .pos
                .wrong(format!("'{}' is a function that is there already", function.name)));
        }
        let params = function.params.iter().filter_map(|p| match p.ty {
            Ty::Of(element) => Some(element),
            Ty::Void => None,
        });
        let result = function.result.unwrap_or(Ty::Void);
        signatures.push(Signature { params: params.collect(), result });
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        if function.name != BODY && by_name.insert(function.name.clone(), number).is_some() {
            return Err(function.pos.wrong(format!("there are two functions '{}'", function.name)));
        }
    }
    Ok((signatures, by_name))
}

fn file_variables(
    variables: &[ast::Variable],
    initial: &mut Vec<Initial>,
    placed: &mut Placed,
) -> Result<HashMap<String, Variable>> {
    let mut file = HashMap::new();
    for variable in variables {
        let Ty::Of(element) = variable.ty else { continue };
        check_name(variable.pos, &variable.name)?;
        let of = |e: &Expr| constant::value(e, &file)?.converted(element, e.pos);
        let (entry, bytes) = match (&variable.lengths[..], &variable.initial) {
            ([], Some(Given::Value(value))) if variable.is_const => {
                (Variable::Constant(element, of(value)?), Vec::new())
            }
            ([], given) => {
                let bytes = match given {
                    None => Vec::new(),
                    Some(Given::Value(value)) => of(value)?.bytes(element),
                    Some(Given::List(_)) => {
                        return Err(variable.pos.wrong(format!("'{}' is no array", variable.name)));
                    }
                };
                let offset = placed.place(element, 1, variable.pos)?;
                (Variable::File { offset, element, is_const: variable.is_const }, bytes)
            }
            (_, given) => {
                let (lengths, length) = lengths(variable, &file, placed.most)?;
                let list: &[Expr] = match given {
                    Some(Given::List(list)) => list,
                    None => &[],
                    Some(Given::Value(e)) => return Err(e.pos.wrong("'{' is expected, with the values")),
                };
                if list.len() > length as usize {
                    return Err(variable.pos.wrong(format!("{} values for {length}", list.len())));
                }
                let mut bytes = Vec::new();
                for value in list {
                    bytes.extend(of(value)?.bytes(element));
                }
                let offset = placed.place(element, length, variable.pos)?;
                let array = Array { base: Base::File { offset, other: false }, element, length };
                (Variable::Array { array, lengths, is_const: variable.is_const }, bytes)
            }
        };
        if let Variable::File { offset, .. }
        | Variable::Array { array: Array { base: Base::File { offset, .. }, .. }, .. } = entry
            && bytes.iter().any(|b| *b != 0)
        {
            initial.push(Initial { offset, bytes });
        }
        if file.insert(variable.name.clone(), entry).is_some() {
            return Err(variable.pos.wrong(format!("there are two variables '{}'", variable.name)));
        }
    }
    Ok(file)
}

/// The variables of the file that have a place.
struct Placed {
    /// Bytes of all of them.
    size: u32,
    /// How many there may be.
    most: u64,
}

impl Placed {
    /// A place for values behind the others, aligned.
    fn place(&mut self, element: Element, length: u32, pos: Pos) -> Result<u32> {
        let bytes = element.size() as u64;
        let offset = u64::from(self.size).next_multiple_of(bytes);
        let end = offset + bytes * u64::from(length);
        if end > self.most {
            let message = format!("the variables take more than {} bytes", self.most);
            return Err(pos.error(ErrorKind::MemoryLimit, message));
        }
        self.size = u32::try_from(end).unwrap_or(u32::MAX);
        Ok(u32::try_from(offset).unwrap_or(u32::MAX))
    }
}

/// The lengths of an array, and their product.
fn lengths(
    variable: &ast::Variable,
    file: &HashMap<String, Variable>,
    most_bytes: u64,
) -> Result<(Vec<u32>, u32)> {
    let Ty::Of(element) = variable.ty else { return Err(variable.pos.wrong("an array has values")) };
    let (mut lengths, mut product) = (Vec::new(), 1_u64);
    for length in &variable.lengths {
        let value = constant::value(length, file)?.integer().filter(|n| *n > 0);
        let value = value.and_then(|n| u32::try_from(n).ok());
        let Some(value) = value else {
            return Err(length.pos.wrong("the length of an array is an integer from 1 that is known here"));
        };
        product = product.saturating_mul(u64::from(value));
        lengths.push(value);
    }
    if product.saturating_mul(element.size() as u64) > most_bytes {
        let message = format!("'{}' takes more than the {most_bytes} bytes that are allowed", variable.name);
        return Err(variable.pos.error(ErrorKind::MemoryLimit, message));
    }
    Ok((lengths, u32::try_from(product).unwrap_or(u32::MAX)))
}

fn check_name(pos: Pos, name: &str) -> Result<()> {
    match name {
        "input" | "output" | "other" => Err(pos.wrong(format!("'{name}' has its own meaning here"))),
        _ => Ok(()),
    }
}

/// A function that is being checked.
pub(super) struct Checker<'a> {
    scope: &'a Scope<'a>,
    of: &'a ast::Function,
    in_prelude: bool,
    names: Vec<(String, Variable)>,
    locals: Vec<Element>,
    frame: u64,
    loops: u32,
    uses: Uses,
    called: Vec<u32>,
    result: Ty,
    /// The types of what is returned, where that is asked.
    returned: Option<&'a mut Vec<Ty>>,
}

fn function_of<'a>(
    scope: &'a Scope<'a>,
    of: &'a ast::Function,
    result: Ty,
    is_prelude: bool,
    returned: Option<&'a mut Vec<Ty>>,
) -> Result<Function> {
    let mut checker = Checker {
        scope,
        of,
        in_prelude: is_prelude,
        names: Vec::new(),
        locals: Vec::new(),
        frame: 0,
        loops: 0,
        uses: Uses::default(),
        called: Vec::new(),
        result,
        returned,
    };
    let mut params = Vec::new();
    for param in &of.params {
        let Ty::Of(element) = param.ty else { continue };
        check_name(param.pos, &param.name)?;
        params.push(element);
        let local = checker.local(element, param.pos)?;
        checker.declare(param.pos, &param.name, Variable::Local(local, element, false), 0)?;
    }
    let body = checker.statements(&of.body)?;
    Ok(Function {
        name: of.name.clone(),
        pos: of.pos,
        params,
        locals: checker.locals,
        result,
        frame: u32::try_from(checker.frame.next_multiple_of(16)).unwrap_or(u32::MAX),
        body,
        uses: checker.uses,
        is_prelude,
        called: checker.called,
        is_reached: true,
    })
}

impl Checker<'_> {
    fn local(&mut self, element: Element, pos: Pos) -> Result<u32> {
        if self.locals.len() == MOST_LOCALS {
            return Err(pos.wrong(format!("more than {MOST_LOCALS} variables and values in between")));
        }
        self.locals.push(element);
        Ok(u32::try_from(self.locals.len() - 1).unwrap_or(u32::MAX))
    }

    /// Makes a name known; `from` is where the names of this block begin.
    fn declare(&mut self, pos: Pos, name: &str, variable: Variable, from: usize) -> Result<()> {
        if self.names.iter().skip(from).any(|(n, _)| n == name) {
            return Err(pos.wrong(format!("there are two variables '{name}' in this block")));
        }
        self.names.push((name.to_owned(), variable));
        Ok(())
    }

    fn find(&self, name: &str) -> Option<Variable> {
        let own = self.names.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v);
        own.or_else(|| self.scope.file.get(name).filter(|_| !self.in_prelude)).cloned()
    }

    fn is_input(&self, name: &str) -> bool {
        self.of.input.as_deref().unwrap_or("input") == name
    }
}

/// A type that does not fit.
fn mismatch(pos: Pos, message: impl std::fmt::Display) -> Error {
    pos.error(ErrorKind::TypeMismatch, message)
}
