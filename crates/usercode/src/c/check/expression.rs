//! Expressions.

use sieva_types::Result;

use super::{Checker, Variable, mismatch};
use crate::c::ast::{Binary, Expr, ExprKind, Unary};
use crate::c::builtin;
use crate::c::check::statement::{write, zero};
use crate::c::lex::Pos;
use crate::c::tree::{Array, Base, Kind, Place, Value};
use crate::c::types::Ty;
use crate::element::Element;

fn int(pos: Pos, element: Element, value: i64) -> Value {
    let kind = if element.is_float() { Kind::Float(value as f64) } else { Kind::Int(value) };
    Value { pos, ty: Ty::Of(element), kind }
}

impl Checker<'_> {
    /// A value, or a call of a void function.
    pub(super) fn value(&mut self, of: &Expr) -> Result<Value> {
        let pos = of.pos;
        let of_kind = |element, kind| Ok(Value { pos, ty: Ty::Of(element), kind });
        match &of.kind {
            ExprKind::Int { value, unsigned, long, decimal } => {
                let element = int_type(*value, *unsigned, *long, *decimal)
                    .ok_or_else(|| pos.wrong(format!("{value} is no value of type long: write {value}UL")))?;
                of_kind(element, Kind::Int(value.cast_signed()))
            }
            ExprKind::Float { value, single } => {
                of_kind(if *single { Element::F32 } else { Element::F64 }, Kind::Float(*value))
            }
            ExprKind::Name(_) | ExprKind::Index(..) | ExprKind::Field(..) => self.read(of),
            ExprKind::Call(name, arguments) => self.call(pos, name, arguments),
            ExprKind::Unary(operator, inner) => self.unary(pos, *operator, inner),
            ExprKind::Binary(Binary::And, a, b) => {
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                let no = int(pos, Element::I32, 0);
                of_kind(Element::I32, Kind::Cond(Box::new(a), Box::new(b), Box::new(no)))
            }
            ExprKind::Binary(Binary::Or, a, b) => {
                let (a, b) = (self.truth(a)?, self.truth(b)?);
                let yes = int(pos, Element::I32, 1);
                of_kind(Element::I32, Kind::Cond(Box::new(a), Box::new(yes), Box::new(b)))
            }
            ExprKind::Binary(operator, a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                self.binary(pos, *operator, a, b)
            }
            ExprKind::Cond(condition, a, b) => {
                let (condition, a, b) = (self.truth(condition)?, self.value(a)?, self.value(b)?);
                let common = self.element(&a)?.common(self.element(&b)?);
                let (a, b) = (self.converted(a, common)?, self.converted(b, common)?);
                of_kind(common, Kind::Cond(Box::new(condition), Box::new(a), Box::new(b)))
            }
            ExprKind::Assign(operator, to, value) => self.assign(pos, *operator, to, value),
            ExprKind::Step { by, after, of } => self.step(pos, *by, *after, of),
            ExprKind::Cast(Ty::Of(element), inner) => {
                let value = self.value(inner)?;
                self.converted(value, *element)
            }
            ExprKind::Cast(Ty::Void, _) => Err(mismatch(pos, "a value cannot be made void")),
            ExprKind::Comma(a, b) => {
                let (a, b) = (self.value(a)?, self.value(b)?);
                Ok(Value { pos, ty: b.ty, kind: Kind::Then(vec![a], Box::new(b)) })
            }
        }
    }

    /// The type of a value, which void is none.
    pub(super) fn element(&self, of: &Value) -> Result<Element> {
        match of.ty {
            Ty::Of(element) => Ok(element),
            Ty::Void => Err(mismatch(of.pos, "a value is expected, and the function is void")),
        }
    }

    /// A value as one of another type.
    pub(super) fn converted(&self, of: Value, element: Element) -> Result<Value> {
        let from = self.element(&of)?;
        if from == element {
            return Ok(of);
        }
        let (pos, ty) = (of.pos, Ty::Of(element));
        // Numbers of the text are converted here, so that `2 * x` costs nothing for it.
        let kind = match of.kind {
            Kind::Int(v) if element == Element::F64 && from == Element::U64 => {
                Kind::Float(v.cast_unsigned() as f64)
            }
            Kind::Int(v) if element == Element::F64 => Kind::Float(v as f64),
            _ => Kind::Convert(Box::new(of)),
        };
        Ok(Value { pos, ty, kind })
    }

    /// A condition: 0 or 1.
    pub(super) fn truth(&mut self, of: &Expr) -> Result<Value> {
        let value = self.value(of)?;
        let element = self.element(&value)?;
        let is_truth = match &value.kind {
            Kind::Binary(operator, ..) => is_comparison(*operator),
            Kind::Not(_) => true,
            Kind::Cond(..) => matches!(of.kind, ExprKind::Binary(Binary::And | Binary::Or, ..)),
            _ => false,
        };
        if is_truth {
            return Ok(value);
        }
        let promoted = element.promoted();
        let (pos, value) = (value.pos, self.converted(value, promoted)?);
        let zero = Value { pos, ty: Ty::Of(promoted), kind: zero(promoted) };
        let kind = Kind::Binary(Binary::NotEq, Box::new(value), Box::new(zero));
        Ok(Value { pos, ty: Ty::Of(Element::I32), kind })
    }

    fn unary(&mut self, pos: Pos, operator: Unary, inner: &Expr) -> Result<Value> {
        if operator == Unary::Not {
            let truth = self.truth(inner)?;
            return Ok(Value { pos, ty: Ty::Of(Element::I32), kind: Kind::Not(Box::new(truth)) });
        }
        let value = self.value(inner)?;
        let element = self.element(&value)?.promoted();
        let value = self.converted(value, element)?;
        match operator {
            Unary::Plus => Ok(value),
            Unary::BitNot if element.is_float() => Err(mismatch(pos, "'~' is for integers")),
            Unary::BitNot => {
                let ones = Value { pos, ty: Ty::Of(element), kind: Kind::Int(-1) };
                let kind = Kind::Binary(Binary::BitXor, Box::new(value), Box::new(ones));
                Ok(Value { pos, ty: Ty::Of(element), kind })
            }
            _ => Ok(Value { pos, ty: Ty::Of(element), kind: Kind::Negate(Box::new(value)) }),
        }
    }

    fn binary(&mut self, pos: Pos, operator: Binary, a: Value, b: Value) -> Result<Value> {
        let (left, right) = (self.element(&a)?, self.element(&b)?);
        let is_shift = matches!(operator, Binary::Shl | Binary::Shr);
        let common = if is_shift { left.promoted() } else { left.common(right) };
        let is_of_integers =
            matches!(operator, Binary::Rem | Binary::BitAnd | Binary::BitOr | Binary::BitXor);
        if (is_of_integers || is_shift) && (left.is_float() || right.is_float()) {
            let message = "this operator is for integers: the remainder of floats is fmod(x, y)";
            return Err(mismatch(pos, message));
        }
        let (a, b) = (self.converted(a, common)?, self.converted(b, common)?);
        let element = if is_comparison(operator) { Element::I32 } else { common };
        Ok(Value { pos, ty: Ty::Of(element), kind: Kind::Binary(operator, Box::new(a), Box::new(b)) })
    }

    fn assign(&mut self, pos: Pos, operator: Option<Binary>, to: &Expr, value: &Expr) -> Result<Value> {
        let (mut before, place, element) = self.place(to)?;
        let value = self.value(value)?;
        let value = match operator {
            None => value,
            Some(operator) => {
                let old = Value { pos: to.pos, ty: Ty::Of(element), kind: Kind::Read(again(&place)) };
                self.binary(pos, operator, old, value)?
            }
        };
        let mut value = self.converted(value, element)?;
        value.pos = to.pos;
        let written = write(place, value);
        Ok(match before.take() {
            None => written,
            Some(before) => Value { pos, ty: written.ty, kind: Kind::Then(vec![before], Box::new(written)) },
        })
    }

    fn step(&mut self, pos: Pos, by: i64, after: bool, of: &Expr) -> Result<Value> {
        let (before, place, element) = self.place(of)?;
        let old = |place: &Place| Value { pos, ty: Ty::Of(element), kind: Kind::Read(again(place)) };
        let mut first: Vec<Value> = before.into_iter().collect();
        let kept = if after {
            let local = self.local(element, pos)?;
            first.push(write(Place::Local(local), old(&place)));
            Some(local)
        } else {
            None
        };
        let new = self.binary(pos, Binary::Add, old(&place), int(pos, Element::I32, by))?;
        let new = self.converted(new, element)?;
        let written = write(place, new);
        Ok(match kept {
            Some(local) => {
                first.push(written);
                let value = Value { pos, ty: Ty::Of(element), kind: Kind::Read(Place::Local(local)) };
                Value { pos, ty: value.ty, kind: Kind::Then(first, Box::new(value)) }
            }
            None if first.is_empty() => written,
            None => Value { pos, ty: written.ty, kind: Kind::Then(first, Box::new(written)) },
        })
    }

    /// A place that is written to: what is done first, so that its index is evaluated once.
    fn place(&mut self, of: &Expr) -> Result<(Option<Value>, Place, Element)> {
        let read = self.read(of)?;
        let element = self.element(&read)?;
        let Kind::Read(place) = read.kind else {
            return Err(of.pos.wrong("this cannot be written to"));
        };
        if self.is_fixed(of) {
            return Err(of.pos.wrong("this cannot be written to: it is const, or what comes in"));
        }
        match place {
            Place::Element(array, index) if !matches!(index.kind, Kind::Int(_)) => {
                let Ty::Of(of_index) = index.ty else { return Err(of.pos.wrong("an index is an integer")) };
                let (pos, local) = (index.pos, self.local(of_index, index.pos)?);
                let before = write(Place::Local(local), *index);
                let index = Value { pos, ty: Ty::Of(of_index), kind: Kind::Read(Place::Local(local)) };
                Ok((Some(before), Place::Element(array, Box::new(index)), element))
            }
            place => Ok((None, place, element)),
        }
    }

    /// Whether what is named may not be written to.
    fn is_fixed(&self, of: &Expr) -> bool {
        match &of.kind {
            ExprKind::Index(inner, _) => self.is_fixed(inner),
            ExprKind::Field(inner, _) => {
                matches!(&inner.kind, ExprKind::Name(name) if self.is_input(name) || name == "other")
            }
            ExprKind::Name(name) => match self.find(name) {
                Some(Variable::Local(_, _, is_const) | Variable::Array { is_const, .. }) => is_const,
                Some(Variable::File { is_const, .. }) => is_const,
                Some(Variable::Constant(..)) => true,
                None => name != "output",
            },
            _ => true,
        }
    }

    fn read(&mut self, of: &Expr) -> Result<Value> {
        let pos = of.pos;
        if let ExprKind::Index(..) = of.kind {
            return self.indexed(of);
        }
        if let ExprKind::Field(inner, field) = &of.kind {
            return self.field(pos, inner, field);
        }
        let ExprKind::Name(name) = &of.kind else { return Err(pos.wrong("a name is expected")) };
        let value = |element, kind| Ok(Value { pos, ty: Ty::Of(element), kind });
        match self.find(name) {
            Some(Variable::Local(local, element, _)) => value(element, Kind::Read(Place::Local(local))),
            Some(Variable::File { offset, element, .. }) => {
                self.uses.file = true;
                value(element, Kind::Read(Place::File { offset, other: false }))
            }
            Some(Variable::Constant(element, number)) => value(element, number.kind()),
            Some(Variable::Array { .. }) => {
                Err(mismatch(pos, format!("'{name}' is an array: it takes an index")))
            }
            None => match builtin::constant(name) {
                Some(number) => value(Element::F64, Kind::Float(number)),
                None => Err(pos.wrong(format!("there is no variable '{name}'"))),
            },
        }
    }

    fn field(&mut self, pos: Pos, of: &Expr, field: &str) -> Result<Value> {
        let ExprKind::Name(name) = &of.kind else {
            return Err(pos.wrong("only 'input' and 'output' have parts"));
        };
        let value = |element, kind| Ok(Value { pos, ty: Ty::Of(element), kind });
        if self.is_input(name) && field == "count" {
            self.uses.input = true;
            return value(Element::I32, Kind::Count);
        }
        if name == "output" && field == "count" {
            self.uses.output = true;
            return value(Element::I32, Kind::OutputCount);
        }
        if name == "other" && self.scope.is_reduce {
            self.uses.file = true;
            return match self.scope.file.get(field) {
                Some(Variable::File { offset, element, .. }) => {
                    value(*element, Kind::Read(Place::File { offset: *offset, other: true }))
                }
                Some(Variable::Array { .. }) => {
                    Err(mismatch(pos, format!("'{field}' is an array: it takes an index")))
                }
                _ => Err(pos.wrong(format!("the state has no variable '{field}'"))),
            };
        }
        if self.is_input(name) || name == "output" {
            return Err(mismatch(pos, format!("'{name}.{field}' is an array: it takes an index")));
        }
        Err(pos.wrong(format!("'{name}' has no parts: there are input.vals and input.count")))
    }

    /// An element of an array, with as many indexes as it has dimensions.
    fn indexed(&mut self, of: &Expr) -> Result<Value> {
        let (mut indexes, mut at) = (Vec::new(), of);
        while let ExprKind::Index(inner, index) = &at.kind {
            indexes.push(&**index);
            at = inner;
        }
        indexes.reverse();
        let (array, lengths) = self.array(at)?;
        if indexes.len() != lengths.len().max(1) {
            let message = format!("{} indexes, of {} dimensions", indexes.len(), lengths.len().max(1));
            return Err(mismatch(of.pos, message));
        }
        let mut index = self.index(indexes[0], lengths.first().filter(|_| lengths.len() > 1).copied())?;
        for (next, length) in indexes.iter().zip(&lengths).skip(1) {
            let next = self.index(next, Some(*length))?;
            let length = int(next.pos, Element::I32, i64::from(*length));
            let scaled = self.binary(next.pos, Binary::Mul, index, length)?;
            index = self.binary(next.pos, Binary::Add, scaled, next)?;
        }
        let kind = Kind::Read(Place::Element(array, Box::new(index)));
        Ok(Value { pos: of.pos, ty: Ty::Of(array.element), kind })
    }

    /// An index; of one dimension of several it is compared with the length of that.
    fn index(&mut self, of: &Expr, length: Option<u32>) -> Result<Value> {
        let value = self.value(of)?;
        let element = self.element(&value)?;
        if element.is_float() {
            return Err(mismatch(of.pos, format!("an index is an integer, not {}", element.c_name())));
        }
        let value = self.converted(value, element.promoted())?;
        Ok(match length {
            None => value,
            Some(length) => {
                Value { pos: value.pos, ty: value.ty, kind: Kind::Within(Box::new(value), length) }
            }
        })
    }

    /// The array that a name or a part of `input` is, and its lengths where it has several dimensions.
    pub(super) fn array(&mut self, of: &Expr) -> Result<(Array, Vec<u32>)> {
        if let ExprKind::Field(inner, field) = &of.kind
            && let ExprKind::Name(name) = &inner.kind
        {
            if self.is_input(name) {
                let (column, element) = self.column(of.pos, field)?;
                return Ok((Array { base: Base::Input(column), element, length: 0 }, Vec::new()));
            }
            if name == "output" && matches!(&**field, "vals" | "tmpbuf") {
                return Ok((self.output(), Vec::new()));
            }
            if name == "other"
                && self.scope.is_reduce
                && let Some(Variable::Array { array, lengths, .. }) = self.scope.file.get(field)
                && let Base::File { offset, .. } = array.base
            {
                self.uses.file = true;
                return Ok((Array { base: Base::File { offset, other: true }, ..*array }, lengths.clone()));
            }
        }
        let ExprKind::Name(name) = &of.kind else { return Err(of.pos.wrong("an array is expected")) };
        match self.find(name) {
            Some(Variable::Array { array, lengths, .. }) => {
                self.uses.file |= matches!(array.base, Base::File { .. });
                Ok((array, lengths))
            }
            None if name == "output" => Ok((self.output(), Vec::new())),
            Some(_) => Err(mismatch(of.pos, format!("'{name}' is no array"))),
            None => Err(of.pos.wrong(format!("there is no array '{name}'"))),
        }
    }

    fn output(&mut self) -> Array {
        self.uses.output = true;
        Array { base: Base::Output, element: self.scope.output, length: 0 }
    }

    /// The number of a column, by `vals` the first.
    fn column(&mut self, pos: Pos, field: &str) -> Result<(u32, Element)> {
        self.uses.input = true;
        let inputs = self.scope.inputs;
        let named = (0..).zip(inputs).find(|(_, input)| input.name == field);
        let first = (0..).zip(inputs).next().filter(|_| matches!(field, "vals" | "tmpbuf"));
        if let Some((number, input)) = named.or(first) {
            return Ok((number, input.element));
        }
        let known: Vec<&str> = inputs.iter().take(20).map(|i| &*i.name).collect();
        Err(pos
            .wrong(format!("the input has no column '{field}'"))
            .hint(format!("there is input.vals, the first one, and {}", known.join(", "))))
    }
}

fn is_comparison(operator: Binary) -> bool {
    use Binary::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(operator, Lt | Gt | LtEq | GtEq | Eq | NotEq)
}

/// The type of an integer of the text.
fn int_type(value: u64, unsigned: bool, long: bool, decimal: bool) -> Option<Element> {
    let fits = |most: u64| value <= most;
    let signed = !unsigned;
    if signed && !long && fits(i32::MAX as u64) {
        Some(Element::I32)
    } else if (unsigned || !decimal) && !long && fits(u64::from(u32::MAX)) {
        Some(Element::U32)
    } else if signed && fits(i64::MAX as u64) {
        Some(Element::I64)
    } else if unsigned || !decimal {
        Some(Element::U64)
    } else {
        None
    }
}

/// The same place: its index, if it has one, is a number or a variable by now.
fn again(place: &Place) -> Place {
    match place {
        Place::Local(local) => Place::Local(*local),
        Place::File { offset, other } => Place::File { offset: *offset, other: *other },
        Place::Element(array, index) => {
            let kind = match &index.kind {
                Kind::Read(Place::Local(local)) => Kind::Read(Place::Local(*local)),
                Kind::Int(at) => Kind::Int(*at),
                _ => Kind::Int(-1),
            };
            Place::Element(*array, Box::new(Value { pos: index.pos, ty: index.ty, kind }))
        }
    }
}
