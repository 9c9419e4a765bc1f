//! The tree of a query: what the text and the Python expressions are both turned into.
//!
//! A tree is pure syntax: its names are bound to arrays, and its types are checked, later. Trees made by
//! [`crate::parse`] are no deeper than [`MAX_DEPTH`], so that walking, printing, cloning and dropping one by
//! recursion is safe, and are in normal form: an [`Expr::And`] or [`Expr::Or`] has at least two parts and none
//! of its own kind. [`Expr::and`] and [`Expr::or`] keep that form for trees built by hand.

mod display;
mod division;
mod select;
mod shared;

pub use division::split_path_as_division;
pub(crate) use division::{MAX_SLASHES, slashes};
pub use select::{OrderBy, Projection, Select, SelectItem};
pub use shared::{Junction, Shared};
pub use sieva_plan::{BinaryOp, CompareOp};

use std::hash::{Hash, Hasher};

/// How deep a tree, or the nesting of operands in its text, may be.
///
/// Printing may add some nesting, so that the printed form of a tree near the limit may be refused.
pub const MAX_DEPTH: usize = 200;

/// A range of bytes in the text of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte.
    pub end: usize,
}

/// The name of an array, a dimension or a compound member, by its path.
///
/// Two names are equal if their text and quoting are; where they stand does not matter.
#[derive(Clone, Debug)]
pub struct Name {
    /// The path, without quotes.
    pub text: String,
    /// Whether it was quoted; a quoted name is never read as anything but a name.
    pub quoted: bool,
    /// Where it stands in the text.
    pub span: Span,
}

impl Name {
    /// A quoted name that stands in no text.
    pub fn quoted(text: impl Into<String>) -> Self {
        Self { text: text.into(), quoted: true, span: Span::default() }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.quoted == other.quoted
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
        self.quoted.hash(state);
    }
}

/// A constant.
///
/// Floats are equal if their bits are or if both are NaN, so that equal trees are those of equal text.
#[derive(Clone, Debug)]
pub enum Literal {
    /// `NULL`
    Null,
    /// `TRUE`, `FALSE`
    Bool(bool),
    /// An integer, exactly.
    Int(i128),
    /// A number with a fraction or an exponent, `inf` or `nan`.
    Float(f64),
    /// A string.
    Str(String),
    /// `DATE '...'` or `TIMESTAMP '...'`, as written: what is a valid date depends on the calendar.
    Date(String),
}

impl From<&sieva_plan::Literal> for Literal {
    fn from(literal: &sieva_plan::Literal) -> Self {
        use sieva_plan::Literal as Planned;
        match literal {
            Planned::Null => Self::Null,
            Planned::Bool(v) => Self::Bool(*v),
            Planned::Int(v) => Self::Int(*v),
            Planned::Float(v) => Self::Float(*v),
            Planned::Text(v) => Self::Str(v.clone()),
        }
    }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => canonical_bits(*a) == canonical_bits(*b),
            (Self::Str(a), Self::Str(b)) | (Self::Date(a), Self::Date(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Literal {}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null => {}
            Self::Bool(v) => v.hash(state),
            Self::Int(v) => v.hash(state),
            Self::Float(v) => canonical_bits(*v).hash(state),
            Self::Str(v) | Self::Date(v) => v.hash(state),
        }
    }
}

fn canonical_bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Neg,
}

/// An expression: a value or a condition.
///
/// Its `Display` form is query text that parses back to the same tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A constant.
    Literal(Literal),
    /// An array, a dimension or a member.
    Name(Name),
    /// An operator before its operand.
    Unary {
        /// The operator.
        op: UnaryOp,
        /// What it is applied to.
        expr: Box<Expr>,
    },
    /// Arithmetic.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// A comparison.
    Compare {
        /// The operator.
        op: CompareOp,
        /// Left operand.
        left: Box<Expr>,
        /// Right operand.
        right: Box<Expr>,
    },
    /// `expr [NOT] BETWEEN low AND high`, both ends included.
    Between {
        /// The value that is tested.
        expr: Box<Expr>,
        /// Lower end.
        low: Box<Expr>,
        /// Upper end.
        high: Box<Expr>,
        /// Whether `NOT` was written.
        negated: bool,
    },
    /// `expr [NOT] IN (list)`; the list is never empty.
    InList {
        /// The value that is tested.
        expr: Box<Expr>,
        /// The values it is compared with.
        list: Vec<Expr>,
        /// Whether `NOT` was written.
        negated: bool,
    },
    /// `expr IS [NOT] NULL`
    IsNull {
        /// The value that is tested.
        expr: Box<Expr>,
        /// Whether `NOT` was written.
        negated: bool,
    },
    /// `expr [NOT] LIKE pattern`
    Like {
        /// The value that is tested.
        expr: Box<Expr>,
        /// The pattern, with `%` and `_`.
        pattern: Box<Expr>,
        /// Whether `NOT` was written.
        negated: bool,
    },
    /// All of them.
    And(Vec<Expr>),
    /// Any of them.
    Or(Vec<Expr>),
    /// The opposite.
    Not(Box<Expr>),
    /// A function or an aggregate.
    Call {
        /// Its name in lower case.
        function: String,
        /// The arguments; none if `star`.
        args: Vec<Expr>,
        /// Whether `DISTINCT` stands before the arguments.
        distinct: bool,
        /// Whether it is `function(*)`.
        star: bool,
    },
    /// `(SELECT ...)` used as one value.
    Subquery(Box<Select>),
}

impl Expr {
    /// A quoted name that stands in no text.
    pub fn name(text: impl Into<String>) -> Self {
        Self::Name(Name::quoted(text))
    }

    /// All of `parts`: `TRUE` of none, the part itself of one, and flat.
    ///
    /// The vector of a junction that comes first is reused, so that a long one is made in linear time.
    pub fn and(parts: impl IntoIterator<Item = Expr>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::And(inner) if flat.is_empty() => flat = inner,
                Self::And(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::one_or(flat, true, Self::And)
    }

    /// Any of `parts`: `FALSE` of none, the part itself of one, and flat.
    pub fn or(parts: impl IntoIterator<Item = Expr>) -> Self {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::Or(inner) if flat.is_empty() => flat = inner,
                Self::Or(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        Self::one_or(flat, false, Self::Or)
    }

    fn one_or(mut flat: Vec<Expr>, of_none: bool, of_many: fn(Vec<Expr>) -> Expr) -> Self {
        match flat.pop() {
            None => Self::Literal(Literal::Bool(of_none)),
            Some(only) if flat.is_empty() => only,
            Some(last) => {
                flat.push(last);
                of_many(flat)
            }
        }
    }

    /// The expressions directly below this one, in the order of the text.
    ///
    /// A subquery has none: its names belong to another scope.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_) | Self::Name(_) | Self::Subquery(_) => Vec::new(),
            Self::Unary { expr, .. } | Self::IsNull { expr, .. } | Self::Not(expr) => vec![expr.as_ref()],
            Self::Binary { left, right, .. } | Self::Compare { left, right, .. } => {
                vec![left.as_ref(), right.as_ref()]
            }
            Self::Like { expr, pattern, .. } => vec![expr.as_ref(), pattern.as_ref()],
            Self::Between { expr, low, high, .. } => vec![expr.as_ref(), low.as_ref(), high.as_ref()],
            Self::InList { expr, list, .. } => std::iter::once(expr.as_ref()).chain(list).collect(),
            Self::And(parts) | Self::Or(parts) | Self::Call { args: parts, .. } => parts.iter().collect(),
        }
    }

    /// The same expression with each child replaced by what `f` makes of it.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn try_map_children<E>(mut self, f: &mut impl FnMut(&Expr) -> Result<Expr, E>) -> Result<Self, E> {
        for child in self.children_mut() {
            *child = f(child)?;
        }
        Ok(self)
    }

    fn children_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Self::Literal(_) | Self::Name(_) | Self::Subquery(_) => Vec::new(),
            Self::Unary { expr, .. } | Self::IsNull { expr, .. } | Self::Not(expr) => vec![expr.as_mut()],
            Self::Binary { left, right, .. } | Self::Compare { left, right, .. } => {
                vec![left.as_mut(), right.as_mut()]
            }
            Self::Like { expr, pattern, .. } => vec![expr.as_mut(), pattern.as_mut()],
            Self::Between { expr, low, high, .. } => vec![expr.as_mut(), low.as_mut(), high.as_mut()],
            Self::InList { expr, list, .. } => std::iter::once(expr.as_mut()).chain(list).collect(),
            Self::And(parts) | Self::Or(parts) | Self::Call { args: parts, .. } => parts.iter_mut().collect(),
        }
    }

    /// Visits this expression and all below it, a parent before its children; not into subqueries.
    pub fn walk<'e>(&'e self, visit: &mut impl FnMut(&'e Expr)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
    }

    /// The number of its levels: 1 of a name or a constant.
    pub fn depth(&self) -> usize {
        1 + self.children().into_iter().map(Self::depth).max().unwrap_or(0)
    }

    pub(crate) fn precedence(&self) -> Precedence {
        match self {
            Self::Or(_) => Precedence::Or,
            Self::And(_) => Precedence::And,
            Self::Not(_) => Precedence::Not,
            Self::Compare { .. }
            | Self::Between { .. }
            | Self::InList { .. }
            | Self::IsNull { .. }
            | Self::Like { .. } => Precedence::Compare,
            Self::Binary { op, .. } => Precedence::of(*op),
            Self::Unary { .. } => Precedence::Sign,
            Self::Literal(Literal::Int(v)) if *v < 0 => Precedence::Sign,
            Self::Literal(Literal::Float(v)) if v.is_sign_negative() && !v.is_nan() => Precedence::Sign,
            Self::Literal(_) | Self::Name(_) | Self::Call { .. } | Self::Subquery(_) => Precedence::Primary,
        }
    }
}

/// How tightly operators bind, from the loosest; the parser and the printer share it.
///
/// As in Python a power binds tighter than the sign to its left (`-x ^ 2` is `-(x ^ 2)`) and groups to the right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precedence {
    Or,
    And,
    Not,
    Compare,
    /// Python's `|`, of conditions.
    BitOr,
    /// Python's `&`, of conditions.
    BitAnd,
    Sum,
    Product,
    Sign,
    Power,
    Primary,
}

impl Precedence {
    pub(crate) fn of(op: BinaryOp) -> Self {
        match op {
            BinaryOp::Add | BinaryOp::Sub => Self::Sum,
            BinaryOp::Mul | BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Rem => Self::Product,
            BinaryOp::Pow => Self::Power,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conjunctions_stay_flat() {
        let name = |n: &str| Expr::name(n);
        let inner = Expr::and([name("a"), name("b")]);
        assert_eq!(Expr::and([inner.clone(), name("c")]), Expr::And(vec![name("a"), name("b"), name("c")]));
        assert_eq!(Expr::or([inner.clone(), name("c")]), Expr::Or(vec![inner, name("c")]));
        assert_eq!(Expr::and([name("a")]), name("a"));
        assert_eq!(Expr::and([]), Expr::Literal(Literal::Bool(true)));
        assert_eq!(Expr::or([]), Expr::Literal(Literal::Bool(false)));
    }

    #[test]
    fn floats_are_equal_by_representation() {
        assert_eq!(Literal::Float(f64::NAN), Literal::Float(-f64::NAN));
        assert_ne!(Literal::Float(0.0), Literal::Float(-0.0));
        assert_ne!(Literal::Float(1.0), Literal::Int(1));
        assert_ne!(Literal::Str("a".into()), Literal::Date("a".into()));
    }

    #[test]
    fn walk_visits_parents_first_and_in_order() {
        let expr = crate::parse::parse_condition("f(a, b) BETWEEN c AND d OR NOT e IN (g, h)").unwrap();
        let mut names = Vec::new();
        expr.walk(&mut |e| {
            if let Expr::Name(n) = e {
                names.push(n.text.as_str());
            }
        });
        assert_eq!(names, ["a", "b", "c", "d", "e", "g", "h"]);
    }
}
