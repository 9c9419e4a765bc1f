//! Aggregates: states that are fed piece by piece, merged, and finished into one value.
//!
//! Missing values are passed over, as in SQL; of no values at all an aggregate is NULL, a count 0. Whatever way
//! the rows are cut into pieces, and in whatever order the pieces are merged, the results are bit for bit the same.

mod accumulator;
mod counts;
mod distinct;
mod extremes;
mod histogram;
mod kept;
mod moments;
mod pairs;
mod quantile;
mod registry;
mod sums;
#[cfg(test)]
mod tests;
mod variances;
pub(crate) mod wire;
#[cfg(test)]
mod wire_tests;

pub use accumulator::{Accumulator, Finished, NO_GROUP, Piece, Present, Target, feed, with_piece};
pub use registry::accumulator;

pub use wire::Encoded;

use crate::ast::Literal;
use crate::values::ValueType;
use sieva_types::{Error, ErrorKind, Result};

/// The most bins that a histogram may have.
pub const MAX_BINS: usize = 1 << 20;

/// An aggregate function with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aggregate {
    /// `count(*)`: rows.
    Count,
    /// `count(x)`: values that are not missing.
    CountValues,
    /// `count(DISTINCT x)`: different values; both zeros are one.
    CountDistinct,
    /// The least value; -0.0 is below 0.0.
    Min,
    /// The greatest value; 0.0 is above -0.0.
    Max,
    /// The sum, of integers exact, of floats the exact sum rounded once.
    Sum,
    /// The sum divided by the count.
    Avg,
    /// Standard deviation with divisor n - 1, missing of less than 2 values.
    StddevSamp,
    /// Standard deviation with divisor n.
    StddevPop,
    /// Variance with divisor n - 1, missing of less than 2 values.
    VarSamp,
    /// Variance with divisor n.
    VarPop,
    /// The quantile of this probability, interpolated as numpy's default method (`linear`) does.
    Quantile(f64),
    /// The middle value, or the mean of the two middle ones, as numpy's `median`.
    Median,
    /// Counts in bins of equal width, as numpy's `histogram`.
    Histogram {
        /// How many bins.
        bins: usize,
        /// The outer edges; none: the least and greatest value, to be found first.
        range: Option<(f64, f64)>,
    },
    /// A reduction that came as code, which stands with its arguments where others have theirs. Its rows are taken in in their
    /// order, and it has no accumulator.
    Reduction,
}

/// What plans call [`Aggregate::Reduction`]; its argument is the call of the function.
pub(crate) const REDUCTION: &str = "reduce";

impl Aggregate {
    /// The names in queries, for messages.
    ///
    /// `stddev` and `var` are SQL's, with divisor n - 1; `std` is numpy's, with divisor n.
    pub const NAMES: &[&str] = &[
        "count",
        "min",
        "max",
        "sum",
        "avg",
        "mean",
        "stddev",
        "stddev_samp",
        "stddev_pop",
        "std",
        "var",
        "variance",
        "var_samp",
        "var_pop",
        "quantile",
        "median",
        "histogram",
    ];

    /// Whether a function of this name (in lower case) is an aggregate.
    pub fn is_name(name: &str) -> bool {
        Self::NAMES.contains(&name)
    }

    /// The aggregate that a call asks for: `parameters` are what stands behind the aggregated argument.
    ///
    /// # Errors
    /// `UnknownFunction` if there is no such aggregate, `InvalidValue` for wrong parameters, `Unsupported` for
    /// `DISTINCT` where it would need all values to be kept.
    pub fn from_call(name: &str, star: bool, distinct: bool, parameters: &[Literal]) -> Result<Self> {
        if star && name != "count" {
            let message = format!("{name}(*) has no meaning: only count(*) does");
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        let simple = match name {
            "count" if star => Self::Count,
            "count" if distinct => Self::CountDistinct,
            "count" => Self::CountValues,
            "min" => Self::Min,
            "max" => Self::Max,
            "sum" => Self::Sum,
            "avg" | "mean" => Self::Avg,
            "stddev" | "stddev_samp" => Self::StddevSamp,
            "stddev_pop" | "std" => Self::StddevPop,
            "var" | "variance" | "var_samp" => Self::VarSamp,
            "var_pop" => Self::VarPop,
            "median" => Self::Median,
            "quantile" => quantile(parameters)?,
            "histogram" => histogram(parameters)?,
            _ => {
                let message = format!("no aggregate {name}, there are {}", Self::NAMES.join(", "));
                return Err(Error::new(ErrorKind::UnknownFunction, message));
            }
        };
        // Repeated values change neither of the extremes.
        if distinct && !matches!(simple, Self::CountDistinct | Self::Min | Self::Max) {
            let message = format!("{name}(DISTINCT ...) is not supported, only count(DISTINCT x) is");
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        if !matches!(simple, Self::Quantile(_) | Self::Histogram { .. }) && !parameters.is_empty() {
            let message = format!("{name} takes 1 argument, got {}", parameters.len() + 1);
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        Ok(simple)
    }

    /// The canonical name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Count | Self::CountValues | Self::CountDistinct => "count",
            Self::Min => "min",
            Self::Max => "max",
            Self::Sum => "sum",
            Self::Avg => "avg",
            Self::StddevSamp => "stddev_samp",
            Self::StddevPop => "stddev_pop",
            Self::VarSamp => "var_samp",
            Self::VarPop => "var_pop",
            Self::Quantile(_) => "quantile",
            Self::Median => "median",
            Self::Histogram { .. } => "histogram",
            Self::Reduction => REDUCTION,
        }
    }

    /// The type of the result for an argument of this type (`None`: the untyped NULL, or no argument); none for
    /// histograms, which are not of one value.
    ///
    /// # Errors
    /// `TypeMismatch` if the aggregate needs numbers and the argument is text.
    pub fn result_type(&self, input: Option<ValueType>) -> Result<Option<ValueType>> {
        let input = input.unwrap_or(ValueType::F64);
        match self {
            Self::Count | Self::CountValues | Self::CountDistinct => return Ok(Some(ValueType::I64)),
            Self::Min | Self::Max | Self::Reduction => return Ok(Some(input)),
            _ => {}
        }
        match (self, input) {
            (_, ValueType::Str) => {
                let message = format!("{} needs numbers, got {input}", self.name());
                Err(Error::new(ErrorKind::TypeMismatch, message))
            }
            (Self::Histogram { .. }, _) => Ok(None),
            (Self::Sum, ValueType::Bool) => Ok(Some(ValueType::I64)),
            (Self::Sum, number) => Ok(Some(number)),
            _ => Ok(Some(ValueType::F64)),
        }
    }

    /// What a state of no values takes with what its value will take, and what each value of a row may add.
    pub fn expected_bytes(&self) -> (u64, u64) {
        match self {
            // Counts, once more in the column of the result; all have the same edges.
            Self::Histogram { bins, .. } => (16 * *bins as u64, 0),
            Self::Quantile(_) | Self::Median => (16, 16),
            Self::CountDistinct => (16, 64),
            Self::StddevSamp | Self::StddevPop | Self::VarSamp | Self::VarPop => (80, 0),
            _ => (48, 0),
        }
    }

    /// Whether it keeps the same of an argument as all others that do: these may share one state.
    pub fn shares(&self) -> bool {
        matches!(self, Self::Quantile(_) | Self::Median)
    }

    /// Whether the least and the greatest value have to be found, and given to [`Aggregate::with_range`], before
    /// a state can be made.
    pub fn needs_range(&self) -> bool {
        matches!(self, Self::Histogram { range: None, .. })
    }

    /// The histogram between the least and the greatest value; `None` if there are no values, which gives
    /// numpy's range for them, 0 to 1. Other aggregates stay as they are.
    ///
    /// # Errors
    /// `InvalidValue` if one of them is infinite.
    pub fn with_range(self, extremes: Option<(f64, f64)>) -> Result<Self> {
        match self {
            Self::Histogram { bins, range: None } => {
                let (low, high) = extremes.unwrap_or((0.0, 1.0));
                let range = histogram::check_range(low, high)
                    .map_err(|e| e.hint("give the range: histogram(x, bins, low, high)"))?;
                Ok(Self::Histogram { bins, range: Some(range) })
            }
            other => Ok(other),
        }
    }
}

fn quantile(parameters: &[Literal]) -> Result<Aggregate> {
    let [q] = parameters else {
        let message = format!("quantile takes 2 arguments, quantile(x, q), got {}", parameters.len() + 1);
        return Err(Error::new(ErrorKind::InvalidValue, message));
    };
    match number(q) {
        Some(q) if (0.0..=1.0).contains(&q) => Ok(Aggregate::Quantile(q)),
        _ => {
            let message = format!("the probability of a quantile is a number from 0 to 1, got {q}");
            Err(Error::new(ErrorKind::InvalidValue, message))
        }
    }
}

fn histogram(parameters: &[Literal]) -> Result<Aggregate> {
    let (bins, range) = match parameters {
        [bins] => (bins, None),
        [bins, low, high] => (bins, Some((low, high))),
        _ => {
            let message = format!(
                "histogram takes 2 or 4 arguments, histogram(x, bins) or histogram(x, bins, low, high), got {}",
                parameters.len() + 1
            );
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
    };
    let count = match bins {
        Literal::Int(n) => usize::try_from(*n).ok().filter(|n| (1..=MAX_BINS).contains(n)),
        _ => None,
    };
    let Some(bins) = count else {
        let message = format!("the number of bins is an integer from 1 to {MAX_BINS}, got {bins}");
        return Err(Error::new(ErrorKind::InvalidValue, message));
    };
    let range = match range {
        None => None,
        Some((low, high)) => match (number(low), number(high)) {
            (Some(low), Some(high)) => Some(histogram::check_range(low, high)?),
            _ => {
                let message = format!("the range of a histogram is two numbers, got {low} and {high}");
                return Err(Error::new(ErrorKind::InvalidValue, message));
            }
        },
    };
    Ok(Aggregate::Histogram { bins, range })
}

fn number(literal: &Literal) -> Option<f64> {
    match literal {
        Literal::Int(v) => Some(*v as f64),
        Literal::Float(v) => Some(*v),
        _ => None,
    }
}

#[cfg(test)]
mod call_tests {
    use super::*;

    fn call(name: &str, parameters: &[Literal]) -> Result<Aggregate> {
        Aggregate::from_call(name, false, false, parameters)
    }

    fn error(name: &str, parameters: &[Literal]) -> String {
        call(name, parameters).unwrap_err().message().to_owned()
    }

    #[test]
    fn calls_are_read() {
        assert_eq!(Aggregate::from_call("count", true, false, &[]).unwrap(), Aggregate::Count);
        assert_eq!(Aggregate::from_call("count", false, true, &[]).unwrap(), Aggregate::CountDistinct);
        assert_eq!(Aggregate::from_call("max", false, true, &[]).unwrap(), Aggregate::Max);
        assert_eq!(call("std", &[]).unwrap(), Aggregate::StddevPop);
        assert_eq!(call("stddev", &[]).unwrap(), Aggregate::StddevSamp);
        assert_eq!(call("quantile", &[Literal::Float(0.25)]).unwrap(), Aggregate::Quantile(0.25));
        let histogram = call("histogram", &[Literal::Int(4), Literal::Int(0), Literal::Float(2.0)]).unwrap();
        assert_eq!(histogram, Aggregate::Histogram { bins: 4, range: Some((0.0, 2.0)) });
        for name in Aggregate::NAMES.iter().filter(|n| !["quantile", "histogram"].contains(n)) {
            assert!(call(name, &[]).is_ok(), "{name}");
        }
    }

    #[test]
    fn wrong_calls_are_refused_with_a_reason() {
        assert_eq!(error("sum", &[Literal::Int(1)]), "sum takes 1 argument, got 2");
        assert_eq!(error("quantile", &[]), "quantile takes 2 arguments, quantile(x, q), got 1");
        let huge = Literal::Int(1 << 100);
        assert!(
            error("histogram", &[huge]).starts_with("the number of bins is an integer from 1 to 1048576")
        );
        assert!(error("quantile", &[Literal::Float(1.5)]).starts_with("the probability of a quantile"));
        assert!(error("mode", &[]).starts_with("no aggregate mode, there are count, min"));
        let e = Aggregate::from_call("sum", false, true, &[]).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(Aggregate::from_call("sum", true, false, &[]).is_err());
    }

    #[test]
    fn result_types() {
        assert_eq!(Aggregate::Sum.result_type(Some(ValueType::U64)).unwrap(), Some(ValueType::U64));
        assert_eq!(Aggregate::Sum.result_type(Some(ValueType::Bool)).unwrap(), Some(ValueType::I64));
        assert_eq!(Aggregate::Min.result_type(Some(ValueType::Str)).unwrap(), Some(ValueType::Str));
        let e = Aggregate::Avg.result_type(Some(ValueType::Str)).unwrap_err();
        assert_eq!((e.kind(), e.message()), (ErrorKind::TypeMismatch, "avg needs numbers, got str"));
    }

    #[test]
    fn ranges_come_from_the_extremes() {
        let open = Aggregate::Histogram { bins: 2, range: None };
        assert!(open.needs_range());
        let range = |extremes| match open.with_range(extremes) {
            Ok(Aggregate::Histogram { range, .. }) => range,
            _ => None,
        };
        assert_eq!(range(Some((1.0, 3.0))), Some((1.0, 3.0)));
        assert_eq!(range(Some((2.0, 2.0))), Some((1.5, 2.5)));
        assert_eq!(range(None), Some((0.0, 1.0)));
        let e = open.with_range(Some((0.0, f64::INFINITY))).unwrap_err();
        assert_eq!(e.message(), "the range of a histogram is finite, got 0.0 to inf");
    }
}
