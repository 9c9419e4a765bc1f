//! What a filter says, and the form in which it is evaluated.

use sieva_types::{Error, ErrorKind, Result};

use crate::limits;
use crate::pattern::Pattern;
use crate::value::{BOOL, NAN, NUMBER, SortKey, TEXT, Value};

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

/// A condition on the attributes and tags of objects.
///
/// An object has the keys of its own and those of all groups above it up to the source; of a key that is there several
/// times the nearest holds, and on one object its tag. A comparison with a key that is not there, that is NaN
/// or that has a value of another class (number, text, bool) is unknown, as with NULL in SQL: neither it nor its
/// negation is satisfied.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// Every object.
    All,
    /// A key's value against another one.
    Compare(String, Comparison, Value),
    /// A key's value within closed bounds.
    Between(String, Value, Value),
    /// A key's value is one of these.
    In(String, Vec<Value>),
    /// SQL's LIKE: `%` any text, `_` one character, `\` takes the next one as it is. Upper and lower case differ.
    Like(String, String),
    /// A shell's pattern: `*`, `?`, `[a-z]`, `[!a-z]`. `*` also matches `/`.
    Glob(String, String),
    /// The key is not there, or is NaN.
    IsNull(String),
    /// The key is there, NaN or not.
    Exists(String),
    /// All of them; of none: every object.
    And(Vec<Filter>),
    /// At least one of them; of none: no object.
    Or(Vec<Filter>),
    /// Not this.
    Not(Box<Filter>),
}

impl Filter {
    /// A comparison.
    pub fn compare(key: impl Into<String>, comparison: Comparison, value: impl Into<Value>) -> Self {
        Self::Compare(key.into(), comparison, value.into())
    }

    /// `key = value`.
    pub fn equal(key: impl Into<String>, value: impl Into<Value>) -> Self {
        Self::compare(key, Comparison::Eq, value)
    }
}

/// Levels of NOT, AND, OR and parentheses.
pub(crate) const MAX_DEPTH: usize = 64;
/// Comparisons of one filter.
pub(crate) const MAX_TESTS: usize = 10_000;

/// Values of one class between two ends, which both may be open.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Range {
    pub low: SortKey,
    pub low_open: bool,
    pub high: SortKey,
    pub high_open: bool,
}

impl Range {
    fn end(class: u8) -> SortKey {
        SortKey { head: vec![class], rest: Vec::new() }
    }

    fn point(key: SortKey) -> Self {
        Self { low: key.clone(), low_open: false, high: key, high_open: false }
    }

    fn below(key: SortKey, open: bool) -> Self {
        // The class's own byte alone sorts before all of its values.
        Self { low: Self::end(key.head[0]), low_open: false, high: key, high_open: open }
    }

    fn above(key: SortKey, open: bool) -> Self {
        let after = Self::end(key.head[0] + 1);
        Self { low: key, low_open: open, high: after, high_open: true }
    }

    /// Whether it is one value.
    pub(crate) fn is_point(&self) -> bool {
        self.low == self.high && !self.low_open && !self.high_open
    }

    /// Whether a value is in it.
    pub(crate) fn holds(&self, key: &SortKey) -> bool {
        let above = if self.low_open { *key > self.low } else { *key >= self.low };
        above && if self.high_open { *key < self.high } else { *key <= self.high }
    }
}

/// What one key's value has to be.
#[derive(Clone, Debug)]
pub(crate) enum Test {
    Ranges(Vec<Range>),
    Pattern(Pattern, bool),
    Null,
    NotNull,
    Exists,
    Missing,
}

/// A filter without NOT.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    All,
    Nothing,
    Leaf(String, Test),
    And(Vec<Plan>),
    Or(Vec<Plan>),
}

/// The plan of a filter. NOT goes down to the comparisons, which is right in three-valued logic too (Kleene).
pub(crate) fn plan(filter: &Filter) -> Result<Plan> {
    let mut tests = 0;
    build(filter, false, 0, &mut tests)
}

fn build(filter: &Filter, not: bool, depth: usize, tests: &mut usize) -> Result<Plan> {
    *tests += if let Filter::In(_, values) = filter { values.len().max(1) } else { 1 };
    if depth > MAX_DEPTH || *tests > MAX_TESTS {
        let message = format!("a filter has more than {MAX_DEPTH} levels or {MAX_TESTS} comparisons");
        return Err(Error::new(ErrorKind::InvalidValue, message).hint("split it into several ones"));
    }
    let leaf = |key: &str, test| {
        limits::name("key", key)?;
        Ok(Plan::Leaf(key.to_owned(), test))
    };
    match filter {
        Filter::All if not => Ok(Plan::Nothing),
        Filter::All => Ok(Plan::All),
        Filter::Compare(key, comparison, value) => compare(key, *comparison, value, not),
        Filter::Between(key, low, high) => {
            let low = compare(key, Comparison::Ge, low, not)?;
            let high = compare(key, Comparison::Le, high, not)?;
            Ok(if not { Plan::Or(vec![low, high]) } else { between(low, high) })
        }
        Filter::In(key, values) if not => {
            let parts: Result<Vec<_>> =
                values.iter().map(|v| compare(key, Comparison::Ne, v, false)).collect();
            Ok(Plan::And(parts?))
        }
        Filter::In(key, values) => {
            let values = values.iter().filter(|v| !v.is_nan());
            let mut keys: Vec<SortKey> = values.map(Value::sort_key).collect();
            keys.sort();
            keys.dedup();
            leaf(key, Test::Ranges(keys.into_iter().map(Range::point).collect()))
        }
        Filter::Like(key, text) => leaf(key, Test::Pattern(Pattern::like(text)?, not)),
        Filter::Glob(key, text) => leaf(key, Test::Pattern(Pattern::glob(text)?, not)),
        Filter::IsNull(key) => leaf(key, if not { Test::NotNull } else { Test::Null }),
        Filter::Exists(key) => leaf(key, if not { Test::Missing } else { Test::Exists }),
        Filter::Not(inner) => build(inner, !not, depth + 1, tests),
        Filter::And(parts) | Filter::Or(parts) => {
            let built: Result<Vec<_>> = parts.iter().map(|part| build(part, not, depth + 1, tests)).collect();
            let all = matches!(filter, Filter::And(_)) != not;
            Ok(if all { Plan::And(built?) } else { Plan::Or(built?) })
        }
    }
}

/// One range where both ends are of one class, so that the index is read once.
fn between(low: Plan, high: Plan) -> Plan {
    if let (Plan::Leaf(key, Test::Ranges(a)), Plan::Leaf(_, Test::Ranges(b))) = (&low, &high)
        && let ([a], [b]) = (a.as_slice(), b.as_slice())
        && a.low.head[0] == b.high.head[0]
    {
        let range = Range { low: a.low.clone(), low_open: false, high: b.high.clone(), high_open: false };
        let ranges = if range.low <= range.high { vec![range] } else { Vec::new() };
        return Plan::Leaf(key.clone(), Test::Ranges(ranges));
    }
    Plan::And(vec![low, high])
}

fn compare(key: &str, comparison: Comparison, value: &Value, not: bool) -> Result<Plan> {
    limits::name("key", key)?;
    if value.is_nan() {
        return Ok(Plan::Nothing);
    }
    let comparison = if not { opposite(comparison) } else { comparison };
    let at = value.sort_key();
    let ranges = match comparison {
        Comparison::Eq => vec![Range::point(at)],
        Comparison::Ne => vec![Range::below(at.clone(), true), Range::above(at, true)],
        Comparison::Lt => vec![Range::below(at, true)],
        Comparison::Le => vec![Range::below(at, false)],
        Comparison::Gt => vec![Range::above(at, true)],
        Comparison::Ge => vec![Range::above(at, false)],
    };
    Ok(Plan::Leaf(key.to_owned(), Test::Ranges(ranges)))
}

fn opposite(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Eq => Comparison::Ne,
        Comparison::Ne => Comparison::Eq,
        Comparison::Lt => Comparison::Ge,
        Comparison::Le => Comparison::Gt,
        Comparison::Gt => Comparison::Le,
        Comparison::Ge => Comparison::Lt,
    }
}

impl Test {
    /// The ranges of the index that hold what satisfies it; for [`Test::Null`] and [`Test::Missing`] what does not.
    pub(crate) fn ranges(&self) -> Vec<Range> {
        let whole = |from: u8, to: u8| Range {
            low: Range::end(from),
            low_open: false,
            high: Range::end(to),
            high_open: true,
        };
        match self {
            Self::Ranges(ranges) => ranges.clone(),
            Self::Pattern(pattern, false) => {
                let mut low = Value::Text(pattern.prefix().to_owned()).sort_key();
                low.rest.clear();
                vec![Range { low, low_open: false, high: Range::end(TEXT + 1), high_open: true }]
            }
            Self::Pattern(..) => vec![whole(TEXT, TEXT + 1)],
            Self::Null | Self::NotNull => vec![whole(BOOL, NAN)],
            Self::Exists | Self::Missing => vec![whole(BOOL, NAN + 1)],
        }
    }

    /// Whether a value satisfies it; `None`: the key is not there.
    pub(crate) fn accepts(&self, value: Option<&Value>) -> bool {
        match self {
            Self::Ranges(ranges) => value.is_some_and(|v| ranges.iter().any(|r| r.holds(&v.sort_key()))),
            Self::Pattern(pattern, not) => match value {
                Some(Value::Text(text)) => pattern.matches(text) != *not,
                _ => false,
            },
            Self::Null => value.is_none_or(Value::is_nan),
            Self::NotNull => value.is_some_and(|v| !v.is_nan()),
            Self::Exists => value.is_some(),
            Self::Missing => value.is_none(),
        }
    }
}

const _: () = assert!(BOOL < NUMBER && NUMBER < TEXT && TEXT < NAN);
