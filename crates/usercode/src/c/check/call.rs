//! Calls of functions, of the text and of those that are there.

use sieva_types::Result;

use super::{Checker, mismatch};
use crate::c::ast::Expr;
use crate::c::builtin::{self, PRELUDE_NAMES};
use crate::c::lex::Pos;
use crate::c::parse::BODY;
use crate::c::tree::{Base, Kind, Value};
use crate::c::types::Ty;
use crate::element::Element;

impl Checker<'_> {
    pub(super) fn call(&mut self, pos: Pos, name: &str, arguments: &[Expr]) -> Result<Value> {
        let value = |element, kind| Ok(Value { pos, ty: Ty::Of(element), kind });
        if name == "resize" {
            self.count(pos, name, arguments, 1)?;
            self.uses.output = true;
            self.uses.resize = true;
            let count = self.value(&arguments[0])?;
            if self.element(&count)?.is_float() {
                return Err(mismatch(count.pos, "the number of values is an integer"));
            }
            let count = self.converted(count, Element::I64)?;
            return Ok(Value { pos, ty: Ty::Void, kind: Kind::Resize(Box::new(count)) });
        }
        if name == "missing" {
            self.count(pos, name, arguments, 2)?;
            let (array, _) = self.array(&arguments[0])?;
            let Base::Input(column) = array.base else {
                return Err(mismatch(arguments[0].pos, "a column of the input is expected, as input.vals"));
            };
            let index = self.value(&arguments[1])?;
            if self.element(&index)?.is_float() {
                return Err(mismatch(index.pos, "an index is an integer"));
            }
            let promoted = self.element(&index)?.promoted();
            let index = self.converted(index, promoted)?;
            return value(Element::I32, Kind::Missing(column, Box::new(index)));
        }
        if let Some(&number) = self.scope.by_name.get(name) {
            return self.call_of(pos, name, number, arguments);
        }
        if let Some(signature) = builtin::of_name(name, self.in_prelude) {
            self.count(pos, name, arguments, signature.arguments)?;
            let mut given = Vec::new();
            for argument in arguments {
                let argument = self.value(argument)?;
                if name == "abs" && self.element(&argument)?.is_float() {
                    return Err(mismatch(argument.pos, "abs is for integers: take fabs(x)"));
                }
                given.push(self.converted(argument, signature.argument)?);
            }
            return value(signature.result, Kind::Builtin(signature.builtin, given));
        }
        // Last, as a function of the text may be called "absf".
        if let Some(base) = builtin::of_float(name) {
            let called = self.call(pos, base, arguments)?;
            return self.converted(called, Element::F32);
        }
        let own: Vec<&str> =
            self.scope.by_name.keys().map(|n| &**n).filter(|n| !n.starts_with('_')).collect();
        let mut known: Vec<&str> = own.into_iter().filter(|n| !PRELUDE_NAMES.contains(n)).collect();
        known.sort_unstable();
        let here = if known.is_empty() { String::new() } else { format!("{}, and ", known.join(", ")) };
        Err(pos.wrong(format!("there is no function '{name}'")).hint(format!(
            "there is {here}sqrt, fabs, floor, ceil, fmin, fmax, {}",
            PRELUDE_NAMES.join(", ")
        )))
    }

    fn call_of(&mut self, pos: Pos, name: &str, number: u32, arguments: &[Expr]) -> Result<Value> {
        let signature = &self.scope.signatures[number as usize];
        if self.of.name == BODY || !matches!(name, "proc") {
            self.count(pos, name, arguments, signature.params.len())?;
        } else {
            return Err(pos.wrong("'proc' cannot be called"));
        }
        let mut given = Vec::new();
        for (argument, param) in arguments.iter().zip(&signature.params) {
            let argument = self.value(argument)?;
            given.push(self.converted(argument, *param)?);
        }
        self.called.push(number);
        Ok(Value { pos, ty: signature.result, kind: Kind::Call(number, given) })
    }

    fn count(&self, pos: Pos, name: &str, arguments: &[Expr], expected: usize) -> Result<()> {
        if arguments.len() == expected {
            return Ok(());
        }
        Err(mismatch(pos, format!("'{name}' takes {expected} arguments, and gets {}", arguments.len())))
    }
}
