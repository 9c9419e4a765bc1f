//! `x IN (...)` of many constants: one list in the plan in place of as many comparisons.

use std::collections::HashSet;
use std::sync::Arc;

use sieva_types::Result;

use super::condition::exact_number;
use super::{Binder, Value};
use crate::ast::Expr;
use crate::values::{Constants, Scalar, ValueType};

/// So many are written as comparisons.
const FEW: usize = 8;

impl Binder<'_> {
    /// The list; `None` where comparisons do, or say better what is wrong.
    pub(super) fn one_of(&mut self, expr: &Expr, list: &[Expr]) -> Result<Option<Value>> {
        if list.len() <= FEW {
            return Ok(None);
        }
        let value = self.value(expr)?;
        if let Value::Constant(_) | Value::Position { .. } = &value {
            return Ok(None);
        }
        let constants = match self.type_of(&value)? {
            None => return Ok(None),
            Some(ValueType::Str) => self.texts(list)?.map(Constants::Texts),
            Some(_) => self.numbers(list)?,
        };
        Ok(constants.map(|c| Value::OneOf(Box::new(value), Arc::new(c))))
    }

    fn texts(&mut self, list: &[Expr]) -> Result<Option<HashSet<String>>> {
        let mut texts = HashSet::with_capacity(list.len());
        for item in list {
            let Value::Constant(v) = self.value(item)? else { return Ok(None) };
            let Scalar::Str(text) = v.scalar(0) else { return Ok(None) };
            texts.insert(text);
        }
        Ok(Some(texts))
    }

    fn numbers(&mut self, list: &[Expr]) -> Result<Option<Constants>> {
        let mut numbers = Vec::with_capacity(list.len());
        for item in list {
            let value = self.value(item)?;
            let Some(number) = exact_number(item, &value) else { return Ok(None) };
            numbers.push(number);
        }
        Ok(Some(Constants::of_numbers(numbers)))
    }
}
