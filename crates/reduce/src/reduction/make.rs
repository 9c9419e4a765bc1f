//! Makes reductions by the names of Table I, and of what is beyond it.

use sieva_plan::{CompareOp, Literal};

use super::{Code, Condition, DatePart, Dim, Function, Key, Operand, Reduction, Select};

/// Functions of one variable without parameters.
macro_rules! simple {
    ($($(#[doc = $doc:literal])+ $name:ident $function:ident;)+) => {
        $(
            $(#[doc = $doc])+
            pub fn $name(variable: &str) -> Self {
                Self::of(variable, Function::$function)
            }
        )+
    };
}

impl Reduction {
    /// A function of a variable, everywhere.
    pub fn of(variable: &str, function: Function) -> Self {
        Self::Select(Select {
            variable: variable.to_owned(),
            function,
            conditions: Vec::new(),
            by: Vec::new(),
        })
    }

    simple! {
        /// The whole variable: what is shared where no function is given (section III).
        whole Values;
        /// DR1.
        max Max;
        /// DR2.
        min Min;
        /// DR3.
        mean Mean;
        /// How many values are not missing.
        count Count;
        /// The sum.
        sum Sum;
        /// The variance, divisor n.
        variance Variance;
        /// The standard deviation, divisor n.
        std_dev StdDev;
    }

    /// The quantile of a share from 0 to 1.
    pub fn quantile(variable: &str, share: f64) -> Self {
        Self::of(variable, Function::Quantile(share))
    }

    /// A histogram; without a range from the least to the greatest value.
    pub fn histogram(variable: &str, bins: u32, range: Option<(f64, f64)>) -> Self {
        Self::of(variable, Function::Histogram { bins, range })
    }

    /// DR4: positions along a dimension, from `start` to below `end`.
    pub fn range(variable: &str, dimension: impl Into<Dim>, start: u64, end: u64) -> Self {
        Self::whole(variable).within(Condition::range(dimension, start, end))
    }

    /// DR5: values in the open interval of two thresholds.
    pub fn between(variable: &str, above: Literal, below: Literal) -> Self {
        Self::whole(variable).within(Condition::between(variable, above, below))
    }

    /// DR6: values compared with what another reduction gives. A second bound is one more [`Condition::compare`].
    ///
    /// ```
    /// use sieva_reduce::{CompareOp, Condition, Reduction};
    ///
    /// let upper = Reduction::compare("T", CompareOp::GtEq, Reduction::mean("T"))
    ///     .within(Condition::compare("T", CompareOp::Lt, Reduction::quantile("T", 0.9)));
    /// let sql = upper.to_sql(&|_| Ok(vec!["x".to_owned()]))?;
    /// assert_eq!(sql, "SELECT T WHERE T >= (SELECT avg(T)) AND T < (SELECT quantile(T, 0.9))");
    /// # Ok::<(), sieva_types::Error>(())
    /// ```
    pub fn compare(variable: &str, op: CompareOp, with: impl Into<Operand>) -> Self {
        Self::whole(variable).within(Condition::compare(variable, op, with))
    }

    /// DR7: values of `variable` where `other` is in the open interval of two thresholds.
    ///
    /// Table I calls `other` variable1, and `variable` variable2.
    pub fn by_other(variable: &str, other: &str, above: Literal, below: Literal) -> Self {
        Self::whole(variable).within(Condition::between(other, above, below))
    }

    /// DR8: a function of the user's own.
    pub fn code(variable: &str, source: &str) -> Self {
        Self::Code(Code { variable: variable.to_owned(), source: source.to_owned() })
    }

    /// The means of blocks of so many positions along each dimension, outermost first.
    pub fn block_mean(variable: &str, factors: &[u64]) -> Self {
        Self::mean(variable).by(Key::Blocks(factors.to_vec()))
    }

    /// The values at the first position along a dimension.
    pub fn first(variable: &str, dimension: impl Into<Dim>) -> Self {
        Self::whole(variable).within(Condition::First(dimension.into()))
    }

    /// The values at the last position along a dimension.
    pub fn last(variable: &str, dimension: impl Into<Dim>) -> Self {
        Self::whole(variable).within(Condition::Last(dimension.into()))
    }

    /// The same where `condition` holds as well. Code and SQL stay as they are.
    #[must_use]
    pub fn within(mut self, condition: Condition) -> Self {
        if let Self::Select(select) = &mut self {
            select.conditions.push(condition);
        }
        self
    }

    /// The same of each group of one more key. Code and SQL stay as they are.
    #[must_use]
    pub fn by(mut self, key: Key) -> Self {
        if let Self::Select(select) = &mut self {
            select.by.push(key);
        }
        self
    }

    /// The variable that is asked for; none of SQL.
    pub fn variable(&self) -> Option<&str> {
        match self {
            Self::Select(select) => Some(&select.variable),
            Self::Code(code) => Some(&code.variable),
            Self::Sql(_) => None,
        }
    }
}

impl Condition {
    /// Positions along a dimension, from `start` to below `end`.
    pub fn range(dimension: impl Into<Dim>, start: u64, end: u64) -> Self {
        Self::Range { dimension: dimension.into(), start, end }
    }

    /// Values of a variable in the open interval of two thresholds.
    pub fn between(variable: &str, above: Literal, below: Literal) -> Self {
        Self::Between { variable: variable.to_owned(), above, below }
    }

    /// Values of a variable compared with a constant, or with what a reduction gives.
    pub fn compare(variable: &str, op: CompareOp, with: impl Into<Operand>) -> Self {
        Self::Compare { variable: variable.to_owned(), op, with: with.into() }
    }
}

impl Key {
    /// The value of a variable.
    pub fn value(variable: &str) -> Self {
        Self::Value(variable.to_owned())
    }

    /// A part of the date of a time coordinate.
    pub fn part(part: DatePart, variable: &str) -> Self {
        Self::Part { part, variable: variable.to_owned() }
    }
}
