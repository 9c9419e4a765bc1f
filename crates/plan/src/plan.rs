//! The plan itself: what is scanned, and what is done with the rows.

use crate::{ColumnId, Expr, Literal};

/// The type that the values of a column have in expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// True or false.
    Bool,
    /// Signed 64-bit integer, and all stored integers that fit.
    Int64,
    /// Unsigned 64-bit integer.
    UInt64,
    /// IEEE 754 binary64, and all stored floats.
    Float64,
    /// Text in UTF-8.
    Text,
    /// What each object of a collection, or the catalog, has there.
    Any,
}

impl Type {
    /// All of them, in the order of their codes in bytes.
    pub const ALL: &[Self] = &[Self::Bool, Self::Int64, Self::UInt64, Self::Float64, Self::Text, Self::Any];

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int64 => "int64",
            Self::UInt64 => "uint64",
            Self::Float64 => "float64",
            Self::Text => "text",
            Self::Any => "any",
        }
    }
}

/// What a column of a scan holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ColumnKind {
    /// An array's values, decoded.
    Value,
    /// An array's values as they are stored, `raw(name)`.
    Stored,
    /// The position along a dimension, `idx(name)`.
    Position,
    /// A key of the catalog: an attribute or a tag of each object.
    Key,
    /// The path of each object of a collection, `object`.
    Object,
    /// The location of the source that each object of a collection is in, `source`.
    Source,
}

impl ColumnKind {
    /// All of them, in the order of their codes in bytes.
    pub const ALL: &[Self] =
        &[Self::Value, Self::Stored, Self::Position, Self::Key, Self::Object, Self::Source];

    /// Whether it is one value for each object of a collection.
    pub fn is_of_object(self) -> bool {
        matches!(self, Self::Key | Self::Object | Self::Source)
    }

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Value => "value",
            Self::Stored => "stored",
            Self::Position => "position",
            Self::Key => "key",
            Self::Object => "object",
            Self::Source => "source",
        }
    }
}

/// A column of a scan.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Column {
    /// Path of the array, of the dimension for [`ColumnKind::Position`], or the key; paths of a collection's arrays are
    /// those within each object.
    pub path: String,
    /// What of it.
    pub kind: ColumnKind,
    /// The type of its values.
    pub value_type: Type,
    /// Paths of the dimensions that it varies along, outermost first.
    pub dims: Vec<String>,
}

impl Column {
    /// The decoded values of an array.
    pub fn of_array(path: &str, value_type: Type, dims: &[&str]) -> Self {
        let dims = dims.iter().map(|&d| d.to_owned()).collect();
        Self { path: path.to_owned(), kind: ColumnKind::Value, value_type, dims }
    }

    /// What each object of a collection has by a name: its type and dimensions are the object's.
    pub fn of_object(path: &str, kind: ColumnKind) -> Self {
        Self { path: path.to_owned(), kind, value_type: Type::Any, dims: Vec::new() }
    }
}

/// Where the rows come from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SourceRef {
    /// From the source that is given by whoever runs the plan.
    #[default]
    Given,
    /// From a path, a glob, a URL or a name in the catalog.
    Path(String),
    /// From the objects of a collection of the catalog.
    Collection(String),
}

/// The rows that a plan begins with: the points of its dimensions, with a value of each column at each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scan {
    /// The source.
    pub source: SourceRef,
    /// Paths of the rows' dimensions, outermost first: rows are in C order.
    pub rows: Vec<String>,
    /// Whether a product of arrays that do not line up was asked for.
    pub cross: bool,
    /// The columns; those that nothing asks for count as well, as the rows have their dimensions.
    pub columns: Vec<Column>,
}

impl Scan {
    /// A scan of the source that is given when the plan is run.
    pub fn given(columns: Vec<Column>, rows: &[&str]) -> Self {
        Self { rows: rows.iter().map(|&d| d.to_owned()).collect(), columns, ..Self::default() }
    }
}

/// A column of the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Expr,
}

impl Output {
    /// A column called `name`.
    pub fn new(name: impl Into<String>, value: Expr) -> Self {
        Self { name: name.into(), value }
    }
}

/// A key to sort by.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SortKey {
    /// What is sorted by.
    pub value: Expr,
    /// Largest first.
    pub descending: bool,
    /// Missing values first.
    pub nulls_first: bool,
}

/// An aggregate of each group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Call {
    /// Its canonical name.
    pub function: String,
    /// What is aggregated; none for `count(*)`.
    pub argument: Option<Expr>,
    /// Whether each value counts once.
    pub distinct: bool,
    /// Its parameters: the probability of a quantile, the bins and the range of a histogram.
    pub parameters: Vec<Literal>,
}

/// One thing that is done with all rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// Keeps the rows where the condition is true.
    Filter(Expr),
    /// Makes one row of each group: its keys, then its aggregates. Without keys there is one group.
    Aggregate {
        /// What rows of a group have in common.
        keys: Vec<Expr>,
        /// The aggregates.
        calls: Vec<Call>,
    },
    /// Keeps the groups where the condition is true.
    Having(Expr),
    /// Puts rows in order; what is equal stays as it was.
    Sort(Vec<SortKey>),
    /// Makes the columns of the result.
    Project(Vec<Output>),
    /// Keeps the first of equal rows of the result.
    Distinct,
    /// Leaves out the first `offset` rows and gives at most `count`.
    Limit {
        /// The most rows; none for all.
        count: Option<u64>,
        /// Rows left out first.
        offset: u64,
    },
}

impl Step {
    /// Its expressions, in their order, not those within them.
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Self::Filter(e) | Self::Having(e) => vec![e],
            Self::Aggregate { keys, calls } => {
                keys.iter().chain(calls.iter().filter_map(|c| c.argument.as_ref())).collect()
            }
            Self::Sort(keys) => keys.iter().map(|k| &k.value).collect(),
            Self::Project(outputs) => outputs.iter().map(|o| &o.value).collect(),
            Self::Distinct | Self::Limit { .. } => Vec::new(),
        }
    }

    /// The name in texts, and the place in the order of steps.
    pub(crate) fn place(&self) -> (&'static str, u8) {
        match self {
            Self::Filter(_) => ("filter", 0),
            Self::Aggregate { .. } => ("aggregate", 1),
            Self::Having(_) => ("having", 2),
            Self::Sort(_) => ("sort", 3),
            Self::Project(_) => ("project", 4),
            Self::Distinct => ("distinct", 5),
            Self::Limit { .. } => ("limit", 6),
        }
    }
}

/// A question about a source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Plan {
    /// What it begins with.
    pub scan: Scan,
    /// What is done, in order: filter, aggregate, having, sort, project, distinct, limit; each at most once.
    pub steps: Vec<Step>,
}

impl Plan {
    /// The columns that come out.
    pub fn outputs(&self) -> &[Output] {
        let project = self.steps.iter().find_map(|s| if let Step::Project(o) = s { Some(o) } else { None });
        project.map_or(&[], Vec::as_slice)
    }

    /// The id of the first column that an aggregation makes.
    pub fn first_group_column(&self) -> ColumnId {
        ColumnId(u32::try_from(self.scan.columns.len()).unwrap_or(u32::MAX))
    }
}
