//! From names to arrays: a query's tree resolved with the schema of one source, and what a bound query is.
//!
//! Resolving reads no array data and runs nothing. It finds what each name means, lines up dimensions into the row
//! space, checks types, and turns dates into numbers of the file's calendar. What comes of it is made into a plan
//! ([`crate::logical`]): each condition is a value as it was asked, subqueries are plans. A plan is made ready to be run by
//! [`crate::lower`].

mod aggregates;
mod align;
pub(crate) mod beyond;
mod code;
mod condition;
mod dates;
mod names;
mod one_of;
mod row_space;
mod select;
mod suggest;
mod together;
mod value;

use std::sync::Arc;

use sieva_format::cf::TimeUnits;
use sieva_format::decoding::Decoding;
use sieva_format::schema::{ArrayInfo, Schema};
use sieva_plan::Plan;
use sieva_types::Result;

use crate::aggregate::Aggregate;
use crate::ast::{BinaryOp, CompareOp, Expr, Select};
use crate::code::{Called, Functions, Reducer};
use crate::raw::{KeySet, StoredDomain};
use crate::values::{Constants, Function, LikePattern, ValueType, Vector};
pub(crate) use code::{call_of_code, reduction_of_code};
pub(crate) use condition::attribute;
pub use dates::part_of;
pub(crate) use dates::{date_number, date_part, no_time, time_units};
pub use names::{Meaning, resolve};
pub use row_space::RowSpace;
pub(crate) use row_space::{Parts, order_of};
pub use select::column_name;
pub(crate) use select::no_rows;
pub(crate) use value::{
    as_unsigned, constant, constant_number, enumerated, misplaced_aggregate, not_if, type_of,
    unknown_function, unsigned_arguments,
};

/// How a query is bound.
pub struct BindOptions<'a> {
    /// Whether values outside of `valid_range` are missing.
    pub valid_range: bool,
    /// Whether arrays that do not line up are to make a product.
    pub cross: bool,
    /// The plan of a scalar subquery, and the type of its value.
    pub subqueries: &'a dyn Fn(&Select) -> Result<Planned>,
    /// Functions that came as code.
    pub functions: &'a Functions,
}

/// A plan, and the type of the first column of its result (`None`: it has none).
pub type Planned = (Plan, Option<ValueType>);

/// An array that a query uses.
#[derive(Clone, Debug)]
pub struct BoundArray {
    /// Index in [`Schema::arrays`].
    pub index: usize,
    /// The row space's axis of each of its dimensions.
    pub axes: Vec<usize>,
    /// Its stored values and what they mean.
    pub domain: StoredDomain,
    /// The same without decoding, for `raw(name)`.
    pub raw_domain: StoredDomain,
    /// Its units and calendar where it is a time coordinate.
    pub time: Option<Arc<TimeUnits>>,
}

/// A part of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the parts name themselves
pub enum DatePart {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    DayOfYear,
    Quarter,
    Season,
}

impl DatePart {
    /// The name of the function that gives it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Year => "year",
            Self::Month => "month",
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Minute => "minute",
            Self::Second => "second",
            Self::DayOfYear => "dayofyear",
            Self::Quarter => "quarter",
            Self::Season => "season",
        }
    }
}

/// A value per position, bound. Arrays are numbers in [`Bound::arrays`].
#[derive(Clone, Debug)]
pub enum Value {
    /// One value for all.
    Constant(Vector),
    /// An array's value: decoded, or as stored.
    Array {
        /// Number in [`Bound::arrays`].
        array: usize,
        /// As stored.
        raw: bool,
    },
    /// The position along an axis of the row space.
    Position {
        /// Index in [`Schema::dims`].
        dim: usize,
    },
    /// Arithmetic.
    Arithmetic(BinaryOp, Box<Value>, Box<Value>),
    /// The value with its sign changed.
    Negate(Box<Value>),
    /// A comparison.
    Compare(CompareOp, Box<Value>, Box<Value>),
    /// All of them (three-valued).
    And(Vec<Value>),
    /// Any of them (three-valued).
    Or(Vec<Value>),
    /// The opposite (three-valued).
    Not(Box<Value>),
    /// Whether it is missing.
    IsNull(Box<Value>),
    /// SQL LIKE with a constant pattern.
    Like(Box<Value>, LikePattern),
    /// Whether it is one of many constants.
    OneOf(Box<Value>, Arc<Constants>),
    /// A function of values.
    Call(Function, Vec<Value>),
    /// A function that came as code, of values.
    Code(Arc<Called>, Vec<Value>),
    /// What a reduction that came as code takes in: stands in an aggregate alone.
    Reduced(Arc<Reducer>, Vec<Value>),
    /// A part of the date that a time coordinate's value means.
    Date(DatePart, usize),
    /// The one value of a subquery that was not answered yet, and its type.
    Subquery(Arc<Plan>, Option<ValueType>),
    /// One value for all, of this type and not known yet: that of a key, which each object of a collection has by itself.
    Unknown(ValueType),
    /// The group's key of this number.
    Key(usize),
    /// The group's aggregate of this number.
    Aggregated(usize),
}

impl Value {
    /// The values directly below.
    pub fn children(&self) -> Vec<&Value> {
        match self {
            Self::Arithmetic(_, a, b) | Self::Compare(_, a, b) => vec![a, b],
            Self::Negate(a) | Self::Not(a) | Self::IsNull(a) | Self::Like(a, _) | Self::OneOf(a, _) => {
                vec![a]
            }
            Self::And(v) | Self::Or(v) => v.iter().collect(),
            Self::Call(_, v) | Self::Code(_, v) | Self::Reduced(_, v) => v.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Whether another is computed from the same arrays in the same way; false where that is not certain.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Array { array, raw }, Self::Array { array: a, raw: r }) => (array, raw) == (a, r),
            (Self::Position { dim }, Self::Position { dim: d }) => dim == d,
            // As text, by which -0.0 is another number than 0.0.
            (Self::Constant(a), Self::Constant(b)) => format!("{a:?}") == format!("{b:?}"),
            (Self::Date(part, array), Self::Date(p, a)) => (part, array) == (p, a),
            (Self::Negate(a), Self::Negate(b)) => a.is_same(b),
            (Self::Arithmetic(op, a, b), Self::Arithmetic(o, c, d)) => {
                op == o && a.is_same(c) && b.is_same(d)
            }
            (Self::Call(f, a), Self::Call(g, b)) => {
                f == g && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b))
            }
            (Self::Code(f, a), Self::Code(g, b)) => {
                f == g && a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b))
            }
            _ => false,
        }
    }

    /// Visits this value and all below it.
    pub fn walk(&self, visit: &mut impl FnMut(&Value)) {
        visit(self);
        for child in self.children() {
            child.walk(visit);
        }
    }
}

/// A condition in negation normal form: the positions where it is true.
#[derive(Clone, Debug)]
pub enum Condition {
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
    /// Where all hold.
    All(Vec<Condition>),
    /// Where any holds.
    Any(Vec<Condition>),
    /// Where the array's stored value belongs to the set.
    Stored {
        /// Number in [`Bound::arrays`].
        array: usize,
        /// Whether the set is of undecoded values (which makes no difference to the test).
        raw: bool,
        /// The stored values that satisfy it.
        set: KeySet,
    },
    /// Where the position along a dimension lies in one of the half-open ranges.
    Position {
        /// Index in [`Schema::dims`].
        dim: usize,
        /// Half-open ranges, ascending.
        ranges: Vec<(u64, u64)>,
    },
    /// Where the computed value is true.
    Computed(Value),
}

/// A column of the result.
#[derive(Clone, Debug)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// What is computed.
    pub value: Value,
}

/// A key of ORDER BY.
#[derive(Clone, Debug)]
pub struct OrderKey {
    /// What is sorted by.
    pub value: Value,
    /// Largest first.
    pub descending: bool,
    /// Missing values first.
    pub nulls_first: bool,
}

/// What comes out: positions, or groups of them.
#[derive(Clone, Debug)]
pub enum Body {
    /// A row per selected position.
    Rows,
    /// A row per group (one group if there are no keys).
    Groups {
        /// The keys.
        keys: Vec<Value>,
        /// The aggregates with their argument (`None`: `count(*)`).
        aggregates: Vec<(Aggregate, Option<Value>)>,
        /// Which groups are kept.
        having: Option<Value>,
    },
}

/// A bound query.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The row space.
    pub rows: RowSpace,
    /// The arrays in use.
    pub arrays: Vec<BoundArray>,
    /// Which positions are selected.
    pub condition: Condition,
    /// What comes out of them.
    pub body: Body,
    /// The columns.
    pub outputs: Vec<Output>,
    /// Duplicate rows are dropped.
    pub distinct: bool,
    /// The order.
    pub order_by: Vec<OrderKey>,
    /// At most this many rows.
    pub limit: Option<u64>,
    /// Rows skipped first.
    pub offset: u64,
    /// Types of the groups' keys.
    pub key_types: Vec<Option<ValueType>>,
    /// Types of the aggregates.
    pub aggregate_types: Vec<Option<ValueType>>,
}

impl Bound {
    /// How many of the first rows in the final order decide the result; `None`: all.
    pub fn rows_wanted(&self) -> Option<u64> {
        self.limit.filter(|_| !self.distinct).map(|limit| limit.saturating_add(self.offset))
    }

    /// The type of a value; `None` is NULL (binding has refused what has no type).
    pub fn type_of(&self, value: &Value) -> Option<ValueType> {
        value::type_of(value, &self.arrays, &self.key_types, &self.aggregate_types).ok().flatten()
    }

    /// The axes of the row space that a value varies along, ascending.
    pub fn axes_of(&self, value: &Value) -> Vec<usize> {
        let mut axes = Vec::new();
        value.walk(&mut |v| match v {
            Value::Array { array, .. } | Value::Date(_, array) => axes.extend(&self.arrays[*array].axes),
            Value::Position { dim } => axes.extend(self.rows.axis(*dim)),
            _ => {}
        });
        axes.sort_unstable();
        axes.dedup();
        axes
    }

    /// The axes of the row space that a condition varies along, ascending.
    pub fn condition_axes(&self, condition: &Condition) -> Vec<usize> {
        let mut axes = match condition {
            Condition::Always | Condition::Never => Vec::new(),
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().flat_map(|p| self.condition_axes(p)).collect()
            }
            Condition::Stored { array, .. } => self.arrays[*array].axes.clone(),
            Condition::Position { dim, .. } => self.rows.axis(*dim).into_iter().collect(),
            Condition::Computed(value) => self.axes_of(value),
        };
        axes.sort_unstable();
        axes.dedup();
        axes
    }
}

/// Resolves trees with a schema; keeps the list of arrays and dimensions in use.
pub(crate) struct Binder<'a> {
    schema: &'a Schema,
    options: &'a BindOptions<'a>,
    arrays: Vec<BoundArray>,
    dims: Vec<usize>,
    /// Dimensions that the rows have anyway.
    base: Vec<usize>,
    /// Whether a product is wanted.
    cross: bool,
    /// The groups whose keys and aggregates stand in what is bound; none while it is of rows.
    groups: Option<aggregates::Extractor>,
    /// Types of [`Value::Key`] and [`Value::Aggregated`].
    key_types: Vec<Option<ValueType>>,
    aggregate_types: Vec<Option<ValueType>>,
}

impl<'a> Binder<'a> {
    fn new(schema: &'a Schema, options: &'a BindOptions<'a>) -> Self {
        let (key_types, aggregate_types) = (Vec::new(), Vec::new());
        Self {
            schema,
            options,
            arrays: Vec::new(),
            dims: Vec::new(),
            base: Vec::new(),
            cross: options.cross,
            groups: None,
            key_types,
            aggregate_types,
        }
    }

    /// The number in [`Bound::arrays`] of array `index` of the schema, added if need be.
    fn array(&mut self, index: usize) -> Result<usize> {
        if let Some(known) = self.arrays.iter().position(|a| a.index == index) {
            return Ok(known);
        }
        self.arrays.push(bound_array(self.schema, index, self.options.valid_range)?);
        Ok(self.arrays.len() - 1)
    }

    /// Ends the binding of a query's parts: the row space and each array's axes in it.
    fn rows(&mut self) -> Result<RowSpace> {
        let indices: Vec<usize> = self.arrays.iter().map(|a| a.index).collect();
        let parts = Parts { base: &self.base, arrays: &indices, dims: &self.dims, cross: self.cross };
        let (rows, axes) = RowSpace::of(self.schema, &parts)?;
        for (array, axes) in self.arrays.iter_mut().zip(axes) {
            array.axes = axes;
        }
        Ok(rows)
    }
}

/// Array `index` of the schema as one that a query uses, before its axes are known.
pub(crate) fn bound_array(schema: &Schema, index: usize, valid_range: bool) -> Result<BoundArray> {
    let info = &schema.arrays[index];
    Ok(BoundArray {
        index,
        axes: Vec::new(),
        domain: stored_domain(info, false, valid_range)?,
        raw_domain: stored_domain(info, true, false)?,
        time: dates::time_units(info),
    })
}

/// The stored values of an array and what they mean; `raw`: nothing but themselves.
///
/// # Errors
/// `invalid-value` where the packing attributes make no sense.
pub fn stored_domain(info: &ArrayInfo, raw: bool, valid_range: bool) -> Result<StoredDomain> {
    let plain = Decoding::none(info.dtype);
    StoredDomain::new(if raw { &plain } else { &info.decoding }, valid_range)
        .map_err(|e| e.at(format!("array '{}'", info.path)))
}

/// Whether an array is a time coordinate whose units and calendar are understood.
pub fn is_time(info: &ArrayInfo) -> bool {
    dates::time_units(info).is_some()
}

/// Resolves a condition and what is read of its rows (`None`: the coordinates, then the arrays in the condition). The rows
/// have at least the dimensions `base`, in this order.
///
/// # Errors
/// `unknown-array`, `ambiguous-name`, `type-mismatch` and the like, listing what would have been valid;
/// `unaligned-dimensions` for arrays that do not line up.
pub(crate) fn resolve_rows(
    schema: &Schema,
    base: &[usize],
    condition: Option<&Expr>,
    select: Option<&[Expr]>,
    options: &BindOptions<'_>,
) -> Result<Bound> {
    let mut binder = Binder::new(schema, options);
    binder.base = base.to_vec();
    binder.resolve_rows(condition, select)
}

/// Resolves a whole SELECT.
///
/// # Errors
/// As [`resolve_rows`].
pub(crate) fn resolve_select(schema: &Schema, select: &Select, options: &BindOptions<'_>) -> Result<Bound> {
    let mut binder = Binder::new(schema, options);
    binder.cross |= select.cross;
    binder.resolve_select(select)
}
