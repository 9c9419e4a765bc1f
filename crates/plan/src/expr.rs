//! Expressions over columns that have ids.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::Plan;

/// How deep an expression may be, so that walking and dropping one by recursion is safe.
pub const MAX_DEPTH: usize = 256;

/// The number of a column: those of the scan first, then the keys and the calls of an aggregation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub u32);

/// A constant.
///
/// Floats are equal if their bits are or if both are NaN.
#[derive(Clone, Debug)]
pub enum Literal {
    /// A missing value without a type.
    Null,
    /// True or false.
    Bool(bool),
    /// An integer, exactly.
    Int(i128),
    /// A binary64 number.
    Float(f64),
    /// A text.
    Text(String),
}

impl Literal {
    /// The number that a comparison takes it for, written in one way: a float without a fraction is an integer, both
    /// zeros are one, and NaN is missing.
    pub(crate) fn compared(self) -> Self {
        match self {
            Self::Float(v) if v.is_nan() => Self::Null,
            // In the range of the type the conversion is exact.
            Self::Float(v) if v.fract() == 0.0 && (i128::MIN as f64..2_f64.powi(127)).contains(&v) => {
                Self::Int(v as i128)
            }
            other => other,
        }
    }

    /// How two numbers, or two texts, compare: exactly. None for what does not, or is missing.
    pub(crate) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => a.partial_cmp(b),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Float(b)) => int_beside_float(*a, *b),
            (Self::Float(a), Self::Int(b)) => int_beside_float(*b, *a).map(Ordering::reverse),
            _ => None,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Bool(_) => 1,
            Self::Int(_) => 2,
            Self::Float(_) => 3,
            Self::Text(_) => 4,
        }
    }
}

fn int_beside_float(a: i128, b: f64) -> Option<Ordering> {
    if !(i128::MIN as f64..2_f64.powi(127)).contains(&b) {
        // Beyond every integer, or NaN.
        return 0.0.partial_cmp(&b);
    }
    let whole = b.trunc();
    Some(a.cmp(&(whole as i128)).then_with(|| whole.total_cmp(&b)))
}

/// The bits of a float; of every NaN the same.
pub(crate) fn canonical_bits(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

impl PartialEq for Literal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Literal {}

impl PartialOrd for Literal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An order of literals as such, which tells nothing of the numbers that they mean.
impl Ord for Literal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Int(a), Self::Int(b)) => a.cmp(b),
            (Self::Float(a), Self::Float(b)) => canonical_bits(*a).cmp(&canonical_bits(*b)),
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl Hash for Literal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rank().hash(state);
        match self {
            Self::Null => {}
            Self::Bool(v) => v.hash(state),
            Self::Int(v) => v.hash(state),
            Self::Float(v) => canonical_bits(*v).hash(state),
            Self::Text(v) => v.hash(state),
        }
    }
}

/// Defines operators with their symbols.
macro_rules! operators {
    ($(#[doc = $doc:literal] $name:ident { $(#[doc = $what:literal] $variant:ident $symbol:literal;)+ })+) => {
        $(
            #[doc = $doc]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum $name {
                $(#[doc = $what] $variant,)+
            }

            impl $name {
                /// All of them, in the order of their codes in bytes.
                pub const ALL: &[Self] = &[$(Self::$variant,)+];

                /// The operator in texts.
                pub fn symbol(self) -> &'static str {
                    match self {
                        $(Self::$variant => $symbol,)+
                    }
                }
            }
        )+
    };
}

operators! {
    /// An arithmetic operator with two operands.
    BinaryOp {
        /// `+`
        Add "+";
        /// `-`
        Sub "-";
        /// `*`
        Mul "*";
        /// `/`
        Div "/";
        /// `//`
        FloorDiv "//";
        /// `%`
        Rem "%";
        /// `^` or `**`
        Pow "^";
    }
    /// A comparison.
    CompareOp {
        /// `=` or `==`
        Eq "=";
        /// `<>` or `!=`
        NotEq "<>";
        /// `<`
        Lt "<";
        /// `<=`
        LtEq "<=";
        /// `>`
        Gt ">";
        /// `>=`
        GtEq ">=";
    }
}

impl CompareOp {
    /// The comparison that says the same with its operands exchanged.
    pub fn mirrored(self) -> Self {
        match self {
            Self::Lt => Self::Gt,
            Self::LtEq => Self::GtEq,
            Self::Gt => Self::Lt,
            Self::GtEq => Self::LtEq,
            Self::Eq | Self::NotEq => self,
        }
    }

    /// The comparison that holds of two values that are there exactly where this one does not.
    pub fn negated(self) -> Self {
        match self {
            Self::Eq => Self::NotEq,
            Self::NotEq => Self::Eq,
            Self::Lt => Self::GtEq,
            Self::LtEq => Self::Gt,
            Self::Gt => Self::LtEq,
            Self::GtEq => Self::Lt,
        }
    }

    /// Whether it holds of operands in this order.
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Eq => order.is_eq(),
            Self::NotEq => order.is_ne(),
            Self::Lt => order.is_lt(),
            Self::LtEq => order.is_le(),
            Self::Gt => order.is_gt(),
            Self::GtEq => order.is_ge(),
        }
    }
}

/// A value of each row, or a condition on it (three-valued, as in SQL).
///
/// The order of expressions is one to write them in, and means nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Expr {
    /// A constant.
    Literal(Literal),
    /// A column.
    Column(ColumnId),
    /// The value with its sign changed.
    Negate(Box<Expr>),
    /// Arithmetic.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A comparison of two numbers, exactly, or of two texts.
    Compare(CompareOp, Box<Expr>, Box<Expr>),
    /// Whether it is one of these.
    In(Box<Expr>, Vec<Literal>),
    /// Whether it is missing.
    IsNull(Box<Expr>),
    /// Whether a text has a form: `%` stands for any number of characters, `_` for one.
    Like(Box<Expr>, String),
    /// All of them.
    And(Vec<Expr>),
    /// Any of them.
    Or(Vec<Expr>),
    /// The opposite.
    Not(Box<Expr>),
    /// A function by its name.
    Call(String, Vec<Expr>),
    /// The one value that another plan gives, missing if it gives no row.
    Subquery(Box<Plan>),
}

impl Expr {
    /// `left op right`
    pub fn compare(op: CompareOp, left: Self, right: Self) -> Self {
        Self::Compare(op, Box::new(left), Box::new(right))
    }

    /// `left op right`
    pub fn binary(op: BinaryOp, left: Self, right: Self) -> Self {
        Self::Binary(op, Box::new(left), Box::new(right))
    }

    /// The opposite of `expr`.
    #[allow(clippy::should_implement_trait)] // the word of the language
    pub fn not(expr: Self) -> Self {
        Self::Not(Box::new(expr))
    }

    /// The expressions directly below this one; of a subquery none.
    pub fn children(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_) | Self::Column(_) | Self::Subquery(_) => Vec::new(),
            Self::Negate(a) | Self::In(a, _) | Self::IsNull(a) | Self::Like(a, _) | Self::Not(a) => vec![a],
            Self::Binary(_, a, b) | Self::Compare(_, a, b) => vec![a, b],
            Self::And(parts) | Self::Or(parts) | Self::Call(_, parts) => parts.iter().collect(),
        }
    }

    /// The same with each column replaced by what `f` makes of it; subqueries have columns of their own.
    #[must_use]
    pub fn map_columns(self, f: &impl Fn(ColumnId) -> ColumnId) -> Self {
        let boxed = |e: Box<Self>| Box::new(e.map_columns(f));
        let each = |parts: Vec<Self>| parts.into_iter().map(|p| p.map_columns(f)).collect();
        match self {
            Self::Column(id) => Self::Column(f(id)),
            Self::Literal(_) | Self::Subquery(_) => self,
            Self::Negate(a) => Self::Negate(boxed(a)),
            Self::In(a, list) => Self::In(boxed(a), list),
            Self::IsNull(a) => Self::IsNull(boxed(a)),
            Self::Like(a, pattern) => Self::Like(boxed(a), pattern),
            Self::Not(a) => Self::Not(boxed(a)),
            Self::Binary(op, a, b) => Self::Binary(op, boxed(a), boxed(b)),
            Self::Compare(op, a, b) => Self::Compare(op, boxed(a), boxed(b)),
            Self::And(parts) => Self::And(each(parts)),
            Self::Or(parts) => Self::Or(each(parts)),
            Self::Call(function, parts) => Self::Call(function, each(parts)),
        }
    }
}
