//! Whether a reduction makes sense by itself, without the source.

use sieva_plan::Literal;
use sieva_types::{Error, ErrorKind, Result};

use super::{Condition, Dim, Function, Key, Operand, Reduction, Select};

/// Bytes of the longest name.
pub const MAX_NAME: usize = 4096;
/// Bytes of the longest text of a threshold, of code and of SQL.
pub const MAX_CODE: usize = 1 << 16;
/// The most conditions of a reduction, keys of it, and factors of a key.
pub const MAX_PARTS: usize = 256;
/// How deep reductions may be in one another's conditions.
pub const MAX_NESTED: usize = 16;
/// The most bins of a histogram, as in SQL.
const MAX_BINS: u32 = 1 << 20;

impl Reduction {
    /// Makes sure that names and numbers are possible, and that what values are compared with is one value.
    ///
    /// # Errors
    /// `invalid-value`, `type-mismatch` or `unsupported`, with what was given and what is expected.
    pub fn check(&self) -> Result<()> {
        self.check_within(MAX_NESTED)
    }

    fn check_within(&self, depth: usize) -> Result<()> {
        match self {
            Self::Select(select) => {
                select.check(depth).map_err(|e| e.at(format!("the reduction of '{}'", select.variable)))
            }
            Self::Code(code) => {
                check_name(&code.variable, "variable")?;
                check_text(&code.source, "the code of a function")
            }
            Self::Sql(text) => check_text(text, "the text of a query"),
        }
    }

    /// Makes sure that it is one value, as far as that can be seen.
    fn check_single(&self) -> Result<()> {
        let what = match self {
            Self::Sql(_) => return Ok(()),
            Self::Code(_) => {
                let message = "values are compared with a function of the user's own";
                return Err(Error::new(ErrorKind::Unsupported, message)
                    .hint("compare with a number, max, min, mean and the like, or SQL"));
            }
            Self::Select(s) if !s.by.is_empty() => "one value for each group",
            Self::Select(s) => match s.function {
                Function::Values => "all values",
                Function::Histogram { .. } => "a histogram",
                _ => return Ok(()),
            },
        };
        let message = format!("values are compared with one value, not with {what}");
        Err(Error::new(ErrorKind::TypeMismatch, message))
    }
}

impl Select {
    fn check(&self, depth: usize) -> Result<()> {
        check_name(&self.variable, "variable")?;
        at_most(self.conditions.len(), "conditions")?;
        at_most(self.by.len(), "keys")?;
        self.function.check()?;
        if self.function == Function::Values && !self.by.is_empty() {
            let message = "values themselves are not grouped: a key goes with max, min, mean and the like";
            return Err(Error::new(ErrorKind::InvalidValue, message));
        }
        self.by.iter().try_for_each(Key::check)?;
        self.conditions.iter().try_for_each(|c| c.check(depth))
    }
}

impl Function {
    fn check(&self) -> Result<()> {
        match *self {
            Self::Quantile(q) if !(0.0..=1.0).contains(&q) => {
                Err(wrong(format!("a quantile is of a share from 0 to 1, got {q:?}")))
            }
            Self::Histogram { bins, .. } if !(1..=MAX_BINS).contains(&bins) => {
                Err(wrong(format!("a histogram has 1 to {MAX_BINS} bins, got {bins}")))
            }
            Self::Histogram { range: Some((low, high)), .. }
                if !(low.is_finite() && high.is_finite() && low < high) =>
            {
                Err(wrong(format!(
                    "the range of a histogram goes up from one finite number to another, got {low:?} to {high:?}"
                )))
            }
            _ => Ok(()),
        }
    }
}

impl Condition {
    fn check(&self, depth: usize) -> Result<()> {
        match self {
            Self::Range { dimension, start, end } => {
                dimension.check()?;
                if start > end {
                    return Err(wrong(format!(
                        "a range goes up, from its first position to the one behind its last; got {start} to {end}"
                    )));
                }
                Ok(())
            }
            Self::First(dimension) | Self::Last(dimension) => dimension.check(),
            Self::Between { variable, above, below } => {
                check_name(variable, "variable")?;
                check_threshold(above)?;
                check_threshold(below)?;
                if matches!(above, Literal::Text(_)) != matches!(below, Literal::Text(_)) {
                    let message = "thresholds are two numbers, or two texts";
                    return Err(Error::new(ErrorKind::TypeMismatch, message));
                }
                Ok(())
            }
            Self::Compare { variable, with, .. } => {
                check_name(variable, "variable")?;
                match with {
                    Operand::Literal(Literal::Bool(_)) => Ok(()),
                    Operand::Literal(literal) => check_threshold(literal),
                    Operand::Reduction(other) => {
                        let depth = depth.checked_sub(1).ok_or_else(|| {
                            wrong(format!("reductions are nested deeper than {MAX_NESTED}"))
                        })?;
                        other.check_single()?;
                        other.check_within(depth)
                    }
                }
            }
        }
    }
}

impl Key {
    fn check(&self) -> Result<()> {
        match self {
            Self::Value(variable) | Self::Part { variable, .. } => check_name(variable, "variable"),
            Self::Band { variable, width } => {
                check_name(variable, "variable")?;
                if width.is_finite() && *width > 0.0 {
                    return Ok(());
                }
                Err(wrong(format!("the width of a band is a number above 0, got {width:?}")))
            }
            Self::Block { dimension, factor } => {
                dimension.check()?;
                check_factor(*factor)
            }
            Self::Blocks(factors) => {
                at_most(factors.len(), "factors")?;
                factors.iter().try_for_each(|&f| check_factor(f))
            }
        }
    }
}

impl Dim {
    fn check(&self) -> Result<()> {
        match self {
            Self::Position(_) => Ok(()),
            Self::Name(name) => check_name(name, "dimension"),
        }
    }
}

fn check_factor(factor: u64) -> Result<()> {
    if (1..=i64::MAX as u64).contains(&factor) {
        return Ok(());
    }
    Err(wrong(format!("a block has 1 to {} positions along a dimension, got {factor}", i64::MAX)))
}

fn check_name(name: &str, of: &str) -> Result<()> {
    let what = if name.is_empty() {
        "no name"
    } else if name.len() > MAX_NAME {
        "a name that is too long"
    } else if name.contains(char::is_control) {
        "a name with a control character"
    } else {
        return Ok(());
    };
    let message =
        format!("{what} of a {of}: 1 to {MAX_NAME} bytes are expected, without line feeds and the like");
    Err(wrong(message))
}

fn check_text(text: &str, what: &str) -> Result<()> {
    if text.trim().is_empty() || text.len() > MAX_CODE {
        return Err(wrong(format!("{what} has {} bytes, 1 to {MAX_CODE} are expected", text.len())));
    }
    Ok(())
}

fn check_threshold(literal: &Literal) -> Result<()> {
    match literal {
        Literal::Int(_) => Ok(()),
        Literal::Float(f) if !f.is_nan() => Ok(()),
        Literal::Text(text) if text.len() <= MAX_CODE && !text.contains('\0') => Ok(()),
        Literal::Text(text) => {
            let n = text.len();
            Err(wrong(format!(
                "the text of a threshold has at most {MAX_CODE} bytes, none of them 0; got {n} bytes"
            )))
        }
        _ => Err(wrong("a threshold is a number or a text, not NaN, NULL or a truth value")),
    }
}

fn at_most(n: usize, what: &str) -> Result<()> {
    if n > MAX_PARTS {
        return Err(wrong(format!("{n} {what}, at most {MAX_PARTS} are possible")));
    }
    Ok(())
}

fn wrong(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidValue, message)
}
