//! Statements.

use sieva_types::Result;

use super::{Checker, MOST_FRAME, Variable, check_name, lengths, mismatch};
use crate::c::ast::{Expr, Initial, Stmt, StmtKind, Variable as Given};
use crate::c::lex::Pos;
use crate::c::tree::{Array, Base, Kind, Place, Step, Value};
use crate::c::types::Ty;
use crate::element::Element;

impl Checker<'_> {
    /// Statements of a block, of which the names end with it.
    pub(super) fn statements(&mut self, of: &[Stmt]) -> Result<Vec<Step>> {
        let from = self.names.len();
        let mut steps = Vec::new();
        for stmt in of {
            self.statement(stmt, &mut steps, from)?;
        }
        self.names.truncate(from);
        Ok(steps)
    }

    fn statement(&mut self, of: &Stmt, steps: &mut Vec<Step>, from: usize) -> Result<()> {
        match &of.kind {
            StmtKind::Empty => {}
            StmtKind::Expr(value) => {
                let value = self.value(value)?;
                steps.push(Step::Do(value));
            }
            StmtKind::Variables(variables) => {
                for variable in variables {
                    self.variable(variable, steps, from)?;
                }
            }
            StmtKind::Block(body) => steps.push(Step::Block(self.statements(body)?)),
            StmtKind::If(condition, then, other) => {
                let condition = self.truth(condition)?;
                let then = self.one(then)?;
                let other = other.as_deref().map_or(Ok(Vec::new()), |other| self.one(other))?;
                steps.push(Step::If(condition, then, other));
            }
            StmtKind::For { first, before, step, body } => {
                let names = self.names.len();
                let mut outer = Vec::new();
                self.statement(first, &mut outer, names)?;
                let before = before.as_ref().map(|e| self.truth(e)).transpose()?;
                let step = step.as_ref().map(|e| self.value(e)).transpose()?;
                let body = self.body(body)?;
                outer.push(Step::Loop { before, body, step, after: None });
                self.names.truncate(names);
                steps.push(Step::Block(outer));
            }
            StmtKind::While(condition, body) => {
                let before = Some(self.truth(condition)?);
                let body = self.body(body)?;
                steps.push(Step::Loop { before, body, step: None, after: None });
            }
            StmtKind::DoWhile(body, condition) => {
                let body = self.body(body)?;
                let after = Some(self.truth(condition)?);
                steps.push(Step::Loop { before: None, body, step: None, after });
            }
            StmtKind::Break | StmtKind::Continue => {
                let is_break = matches!(of.kind, StmtKind::Break);
                if self.loops == 0 {
                    let word = if is_break { "break" } else { "continue" };
                    return Err(of.pos.wrong(format!("'{word}' outside of a loop")));
                }
                steps.push(if is_break { Step::Break } else { Step::Continue });
            }
            StmtKind::Return(value) => steps.push(Step::Return(self.returned(of.pos, value.as_ref())?)),
        }
        Ok(())
    }

    fn one(&mut self, of: &Stmt) -> Result<Vec<Step>> {
        let names = self.names.len();
        let mut steps = Vec::new();
        self.statement(of, &mut steps, names)?;
        self.names.truncate(names);
        Ok(steps)
    }

    fn body(&mut self, of: &Stmt) -> Result<Vec<Step>> {
        self.loops += 1;
        let steps = self.one(of)?;
        self.loops -= 1;
        Ok(steps)
    }

    fn returned(&mut self, pos: Pos, value: Option<&Expr>) -> Result<Option<Value>> {
        let value = value.map(|e| self.value(e)).transpose()?;
        if let Some(returned) = &mut self.returned {
            returned.push(value.as_ref().map_or(Ty::Void, |v| v.ty));
            return Ok(None);
        }
        match (self.result, value) {
            (Ty::Void, None) => Ok(None),
            (Ty::Void, Some(value)) => {
                Err(mismatch(value.pos, format!("'{}' is void, and returns a value here", self.of.name)))
            }
            (Ty::Of(element), Some(value)) => self.converted(value, element).map(Some),
            (Ty::Of(element), None) => Err(mismatch(
                pos,
                format!("'{}' returns {}, and nothing here", self.of.name, element.c_name()),
            )),
        }
    }

    fn variable(&mut self, of: &Given, steps: &mut Vec<Step>, from: usize) -> Result<()> {
        check_name(of.pos, &of.name)?;
        let Ty::Of(element) = of.ty else { return Ok(()) };
        if of.lengths.is_empty() {
            return self.scalar(of, element, steps, from);
        }
        let (lengths, length) = lengths(of, &self.scope.file, MOST_FRAME)?;
        let offset = self.frame.next_multiple_of(16);
        self.frame = offset + element.size() as u64 * u64::from(length);
        if self.frame > MOST_FRAME {
            let message = format!("the arrays of '{}' take more than {MOST_FRAME} bytes", self.of.name);
            return Err(of.pos.error(sieva_types::ErrorKind::MemoryLimit, message));
        }
        let base = Base::Frame(u32::try_from(offset).unwrap_or(u32::MAX));
        let array = Array { base, element, length };
        steps.push(Step::Clear(array));
        match &of.initial {
            None => {}
            Some(Initial::Value(e)) => {
                return Err(e.pos.wrong("'{' is expected, with the values of the array"));
            }
            Some(Initial::List(list)) if list.len() > length as usize => {
                return Err(of.pos.wrong(format!("{} values for an array of {length}", list.len())));
            }
            Some(Initial::List(list)) => {
                for (at, e) in (0..).zip(list) {
                    let value = self.value(e)?;
                    let value = self.converted(value, element)?;
                    let at = Value { pos: e.pos, ty: Ty::Of(Element::I32), kind: Kind::Int(at) };
                    let place = Place::Element(array, Box::new(at));
                    steps.push(Step::Do(write(place, value)));
                }
            }
        }
        let variable = Variable::Array { array, lengths, is_const: of.is_const };
        self.declare(of.pos, &of.name, variable, from)
    }

    fn scalar(&mut self, of: &Given, element: Element, steps: &mut Vec<Step>, from: usize) -> Result<()> {
        let value = match &of.initial {
            // What C leaves undefined is zero.
            None => Value { pos: of.pos, ty: Ty::Of(element), kind: zero(element) },
            Some(Initial::Value(e)) => {
                let value = self.value(e)?;
                self.converted(value, element)?
            }
            Some(Initial::List(_)) => return Err(of.pos.wrong(format!("'{}' is no array", of.name))),
        };
        let local = self.local(element, of.pos)?;
        self.declare(of.pos, &of.name, Variable::Local(local, element, of.is_const), from)?;
        steps.push(Step::Do(write(Place::Local(local), value)));
        Ok(())
    }
}

/// Zero of a type.
pub(super) fn zero(element: Element) -> Kind {
    if element.is_float() { Kind::Float(0.0) } else { Kind::Int(0) }
}

/// A value written to a place.
pub(super) fn write(place: Place, value: Value) -> Value {
    Value { pos: value.pos, ty: value.ty, kind: Kind::Write(place, Box::new(value)) }
}
