//! Places in a tree that no text can name.

use std::fmt::{Display, Formatter, Result};

use super::Name;
use crate::values::ValueType;

/// What a program put into a tree in the place of an expression. The parser makes none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// What stands there.
    pub of: SlotOf,
    /// How it is shown in messages.
    pub text: String,
}

/// What stands in a [`Slot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SlotOf {
    /// The group's key of this number.
    Key(usize),
    /// The group's aggregate of this number.
    Aggregate(usize),
    /// Constant number so and so of a type, whose value is not known yet.
    Constant(ValueType, usize),
    /// A name that its program has resolved, of this kind; it is replaced before the tree is bound.
    Resolved(u8),
}

impl Display for Slot {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        Name { text: self.text.clone(), quoted: false, span: Default::default() }.fmt(f)
    }
}
