//! Prints reductions as SQL of this product.

use sieva_types::{Error, ErrorKind, Result};

use super::words::{float, literal, name};
use super::{Condition, Dim, DimsOf, Function, Key, Operand, Reduction, Select};

impl Reduction {
    /// The reduction as a SELECT without FROM. `dims_of` tells the dimensions of a variable, outermost first; it is asked
    /// where a dimension is named, or stands for its place.
    ///
    /// Columns of the result are the keys, then the function. Constants are written exactly.
    ///
    /// # Errors
    /// Those of [`Reduction::check`] and of `dims_of`; `unknown-dimension`, `ambiguous-name` or `invalid-value` for
    /// dimensions that the variable does not have; `dimension-mismatch` for blocks of other dimensions; `unsupported` for a
    /// function of the user's own (DR8), which is no SQL.
    pub fn to_sql(&self, dims_of: DimsOf<'_>) -> Result<String> {
        self.check()?;
        self.sql(dims_of)
    }

    fn sql(&self, dims_of: DimsOf<'_>) -> Result<String> {
        match self {
            Self::Select(select) => select.sql(dims_of),
            Self::Code(code) => {
                let message =
                    format!("the function of '{}' is the user's own code, which is no SQL", code.variable);
                Err(Error::new(ErrorKind::Unsupported, message))
            }
            Self::Sql(text) => Ok(text.trim().trim_end_matches(';').to_owned()),
        }
    }
}

impl Select {
    fn sql(&self, dims_of: DimsOf<'_>) -> Result<String> {
        let dims = Dims { variable: &self.variable, dims_of };
        let mut keys = Vec::new();
        for key in &self.by {
            key.sql(&dims, &mut keys)?;
        }
        let mut columns = keys.clone();
        columns.push(self.function.sql(&name(&self.variable)));
        let mut text = format!("SELECT {}", columns.join(", "));
        let conditions = self.conditions.iter().map(|c| c.sql(&dims)).collect::<Result<Vec<_>>>()?;
        if !conditions.is_empty() {
            text += " WHERE ";
            text += &conditions.join(" AND ");
        }
        if !keys.is_empty() {
            text += " GROUP BY ";
            text += &keys.join(", ");
        }
        Ok(text)
    }
}

impl Function {
    fn sql(&self, of: &str) -> String {
        match *self {
            Self::Values => of.to_owned(),
            Self::Max => format!("max({of})"),
            Self::Min => format!("min({of})"),
            Self::Mean => format!("avg({of})"),
            Self::Count => format!("count({of})"),
            Self::Sum => format!("sum({of})"),
            Self::Variance => format!("var_pop({of})"),
            Self::SampleVariance => format!("var_samp({of})"),
            Self::StdDev => format!("stddev_pop({of})"),
            Self::SampleStdDev => format!("stddev_samp({of})"),
            Self::Quantile(share) => format!("quantile({of}, {})", float(share)),
            Self::Histogram { bins, range: None } => format!("histogram({of}, {bins})"),
            Self::Histogram { bins, range: Some((low, high)) } => {
                format!("histogram({of}, {bins}, {}, {})", float(low), float(high))
            }
        }
    }
}

impl Condition {
    fn sql(&self, dims: &Dims<'_>) -> Result<String> {
        Ok(match self {
            Self::Range { dimension, start, end } => {
                let idx = dims.idx(dimension)?;
                format!("{idx} >= {start} AND {idx} < {end}")
            }
            Self::First(dimension) => format!("{} = 0", dims.idx(dimension)?),
            Self::Last(dimension) => {
                let idx = dims.idx(dimension)?;
                format!("{idx} = (SELECT max({idx}))")
            }
            Self::Between { variable, above, below } => {
                let variable = name(variable);
                format!("{variable} > {} AND {variable} < {}", literal(above), literal(below))
            }
            Self::Compare { variable, op, with } => {
                let with = match with {
                    Operand::Literal(value) => literal(value),
                    // Behind a comment to the end of its line.
                    Operand::Reduction(other) if matches!(**other, Reduction::Sql(_)) => {
                        format!("({}\n)", other.sql(dims.dims_of)?)
                    }
                    Operand::Reduction(other) => format!("({})", other.sql(dims.dims_of)?),
                };
                format!("{} {} {with}", name(variable), op.symbol())
            }
        })
    }
}

impl Key {
    /// Adds what is grouped by.
    fn sql(&self, dims: &Dims<'_>, keys: &mut Vec<String>) -> Result<()> {
        let block = |idx: String, factor: u64| if factor == 1 { idx } else { format!("{idx} // {factor}") };
        match self {
            Self::Value(variable) => keys.push(name(variable)),
            Self::Part { part, variable } => keys.push(format!("{}({})", part.name(), name(variable))),
            Self::Band { variable, width } => {
                let width = float(*width);
                keys.push(format!("floor({} / {width}) * {width}", name(variable)));
            }
            Self::Block { dimension, factor } => keys.push(block(dims.idx(dimension)?, *factor)),
            Self::Blocks(factors) => {
                let all = dims.all()?;
                if all.len() != factors.len() {
                    let (given, wanted) = (factors.len(), dims.shown(&all));
                    let message =
                        format!("{given} factors of blocks of {wanted}: one for each dimension is expected");
                    return Err(Error::new(ErrorKind::DimensionMismatch, message));
                }
                for (place, &factor) in factors.iter().enumerate() {
                    keys.push(block(dims.idx(&Dim::Position(place))?, factor));
                }
            }
        }
        Ok(())
    }
}

/// The dimensions of the variable that is asked for.
struct Dims<'a> {
    variable: &'a str,
    dims_of: DimsOf<'a>,
}

impl Dims<'_> {
    fn all(&self) -> Result<Vec<String>> {
        (self.dims_of)(self.variable)
    }

    /// The position along a dimension.
    fn idx(&self, dim: &Dim) -> Result<String> {
        let all = self.all()?;
        let found = match dim {
            Dim::Position(place) => all.get(*place).ok_or_else(|| {
                let message = format!("no dimension {place}, counted from 0, of {}", self.shown(&all));
                Error::new(ErrorKind::InvalidValue, message)
            })?,
            Dim::Name(given) => self.named(given, &all)?,
        };
        if all.iter().filter(|d| *d == found).count() > 1 {
            let message = format!("dimension '{found}' is there twice, of {}", self.shown(&all));
            return Err(Error::new(ErrorKind::Unsupported, message));
        }
        Ok(format!("idx({})", name(found)))
    }

    /// The dimension of this path, or the one of this name.
    fn named<'d>(&self, given: &str, all: &'d [String]) -> Result<&'d String> {
        let path = given.trim_start_matches('/');
        if let Some(same) = all.iter().find(|d| d.trim_start_matches('/') == path) {
            return Ok(same);
        }
        let leaf = |d: &&String| d.rsplit('/').next() == Some(path);
        let mut found = all.iter().filter(leaf);
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => {
                let message = format!("dimension '{given}' could be several of {}", self.shown(all));
                Err(Error::new(ErrorKind::AmbiguousName, message).hint("write its path, or its place from 0"))
            }
            (None, _) => {
                let message = format!("no dimension '{given}' of {}", self.shown(all));
                Err(Error::new(ErrorKind::UnknownDimension, message))
            }
        }
    }

    fn shown(&self, all: &[String]) -> String {
        format!("'{}' ({})", self.variable, all.join(", "))
    }
}
