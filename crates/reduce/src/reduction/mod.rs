//! What is asked of a source, as data: a function of a variable, where, and of which groups.

mod check;
mod make;
mod sql;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use sieva_plan::{CompareOp, Literal};
use sieva_types::Result;

pub use check::{MAX_CODE, MAX_NAME, MAX_NESTED, MAX_PARTS};

/// Tells the dimensions of a variable, outermost first, by their paths or names.
pub type DimsOf<'a> = &'a dyn Fn(&str) -> Result<Vec<String>>;

/// What a consumer asks for: a DR-function (section IV), or any SELECT.
///
/// DR1 to DR7 are [`Reduction::Select`]; the functions of the same names as here make them ([`Reduction::max`],
/// [`Reduction::between`], ...), [`Reduction::within`] and [`Reduction::by`] put them together.
#[derive(Clone, Debug, PartialEq)]
pub enum Reduction {
    /// A function of a variable.
    Select(Select),
    /// DR8: a function of the user's own.
    Code(Code),
    /// A SELECT of this product, as its text.
    Sql(String),
}

/// A function of a variable, where conditions hold, one value for each group of positions.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// The variable.
    pub variable: String,
    /// What is made of its values.
    pub function: Function,
    /// Where: all of them hold. None of them: everywhere.
    pub conditions: Vec<Condition>,
    /// What positions of a group have in common. None: one group of all.
    pub by: Vec<Key>,
}

/// DR8: source text in the C subset of Table I and Figure 2, kept as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// The variable that is its input.
    pub variable: String,
    /// The body of the function (`cod`).
    pub source: String,
}

/// What is made of the values of a variable. Missing values are passed over, as in SQL.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    /// The values themselves, missing ones too, in C order.
    Values,
    /// DR1: the greatest.
    Max,
    /// DR2: the least.
    Min,
    /// DR3: the mean.
    Mean,
    /// How many are not missing.
    Count,
    /// The sum.
    Sum,
    /// The variance, divisor n, as numpy's `var`.
    Variance,
    /// The variance, divisor n - 1.
    SampleVariance,
    /// The standard deviation, divisor n, as numpy's `std`.
    StdDev,
    /// The standard deviation, divisor n - 1.
    SampleStdDev,
    /// The value below which a share of the others is, from 0 to 1, as numpy's `quantile`.
    Quantile(f64),
    /// Counts of values in bins of one width.
    Histogram {
        /// How many bins.
        bins: u32,
        /// Where the first one begins and the last one ends; none: at the extremes.
        range: Option<(f64, f64)>,
    },
}

/// A dimension of the variable that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// By its place, from 0 for the outermost.
    Position(usize),
    /// By its path, or by its name where that is of one.
    Name(String),
}

/// Where: holds or not at each position.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// DR4: positions along a dimension, from `start` to below `end`. Those that the dimension does not have select nothing.
    Range {
        /// The dimension.
        dimension: Dim,
        /// The first position, from 0.
        start: u64,
        /// The position behind the last.
        end: u64,
    },
    /// The first position along a dimension.
    First(Dim),
    /// The last position along a dimension, however long it is when it is asked.
    Last(Dim),
    /// DR5, and DR7 where the variable is another one: values between two thresholds, which are not among them.
    Between {
        /// The variable that is looked at.
        variable: String,
        /// What values are greater than: a number, a date, or a text.
        above: Literal,
        /// What values are less than.
        below: Literal,
    },
    /// DR6: values compared with what another reduction gives.
    Compare {
        /// The variable that is looked at.
        variable: String,
        /// How it compares.
        op: CompareOp,
        /// With what.
        with: Operand,
    },
}

/// What values are compared with.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A constant.
    Literal(Literal),
    /// The one value of another reduction.
    Reduction(Box<Reduction>),
}

/// What the positions of a group have in common.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// The value of a variable, such as a coordinate: `lat`.
    Value(String),
    /// A part of the date of a time coordinate: `month(time)`.
    Part {
        /// Which part.
        part: DatePart,
        /// The time coordinate.
        variable: String,
    },
    /// Bands of values of one width from 0, told by where they begin: `floor(lat / 10) * 10`.
    Band {
        /// The variable.
        variable: String,
        /// How wide.
        width: f64,
    },
    /// So many neighbouring positions along a dimension, told by their number from 0.
    Block {
        /// The dimension.
        dimension: Dim,
        /// How many.
        factor: u64,
    },
    /// Blocks along all dimensions of the variable, outermost first: coarsening. The last ones may be smaller.
    Blocks(Vec<u64>),
}

/// Defines the parts of dates with their names.
macro_rules! parts {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal;)+) => {
        /// A part of a date, an integer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DatePart {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl DatePart {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name of the function in SQL.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

parts! {
    /// The year.
    Year "year";
    /// 1 to 12.
    Month "month";
    /// Day of the month.
    Day "day";
    /// 0 to 23.
    Hour "hour";
    /// 0 to 59.
    Minute "minute";
    /// 0 to 59.
    Second "second";
    /// From 1.
    DayOfYear "dayofyear";
    /// 1 to 4.
    Quarter "quarter";
    /// 1: December to February, 2: March to May, and so on.
    Season "season";
}

impl From<&str> for Dim {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<usize> for Dim {
    fn from(position: usize) -> Self {
        Self::Position(position)
    }
}

impl From<Reduction> for Operand {
    fn from(reduction: Reduction) -> Self {
        Self::Reduction(Box::new(reduction))
    }
}

impl From<Literal> for Operand {
    fn from(literal: Literal) -> Self {
        Self::Literal(literal)
    }
}
