//! The scalar functions: their names, arguments and types.
//!
//! Mathematical functions compute in `float64` by the C library, as numpy does where it has no vector routines of
//! its own (on x86 with AVX-512 it has, and many of its results then differ by one unit in the last place);
//! `sqrt` and `cbrt` are the nearest `float64` (std's `cbrt` is not the C library's);
//! outside of their domain the result is NaN, which is missing. Where numpy and SQL dialects disagree, numpy is followed, since the
//! answers are held against it: `log` is the natural logarithm (as also in MySQL, SQL Server and ClickHouse;
//! in PostgreSQL and DuckDB it is of base 10: write `ln` or `log10` to be clear), and `round` rounds halves to
//! even. `floor`, `ceil`, `trunc`, `round`, `abs` and `sign` of integers are integers.
//!
//! Missing arguments give missing results, except that `least` and `greatest` pass over them (as PostgreSQL,
//! DuckDB and numpy's `fmin` do), and that `coalesce` and `if` are there to handle them.

use super::{Shape, ValueType, Vector, arithmetic, choice, math, text};
use crate::ast::BinaryOp;
use sieva_types::{Error, ErrorKind, Result};

/// Defines the functions, each with its name and its least and greatest number of arguments.
macro_rules! functions {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $least:literal..=$most:expr;)+) => {
        /// A scalar function.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Function {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Function {
            /// All of them.
            pub const ALL: &[Function] = &[$(Function::$variant,)+];

            /// The name in queries.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            /// The least and the greatest number of arguments.
            pub fn arity(self) -> (usize, usize) {
                match self {
                    $(Self::$variant => ($least, $most),)+
                }
            }
        }
    };
}

functions! {
    /// Absolute value.
    Abs "abs" 1..=1;
    /// -1, 0 or 1.
    Sign "sign" 1..=1;
    /// Toward negative infinity.
    Floor "floor" 1..=1;
    /// Toward positive infinity.
    Ceil "ceil" 1..=1;
    /// Toward zero.
    Trunc "trunc" 1..=1;
    /// To a whole number, or to so many decimal digits; halves to even.
    Round "round" 1..=2;
    /// Square root.
    Sqrt "sqrt" 1..=1;
    /// Cube root.
    Cbrt "cbrt" 1..=1;
    /// e to the power of x.
    Exp "exp" 1..=1;
    /// 2 to the power of x.
    Exp2 "exp2" 1..=1;
    /// exp(x) - 1, exact near 0.
    Expm1 "expm1" 1..=1;
    /// Natural logarithm.
    Ln "ln" 1..=1;
    /// ln(1 + x), exact near 0.
    Log1p "log1p" 1..=1;
    /// Logarithm of base 2.
    Log2 "log2" 1..=1;
    /// Logarithm of base 10.
    Log10 "log10" 1..=1;
    /// Sine of an angle in radians.
    Sin "sin" 1..=1;
    /// Cosine of an angle in radians.
    Cos "cos" 1..=1;
    /// Tangent of an angle in radians.
    Tan "tan" 1..=1;
    /// Inverse sine.
    Asin "asin" 1..=1;
    /// Inverse cosine.
    Acos "acos" 1..=1;
    /// Inverse tangent.
    Atan "atan" 1..=1;
    /// The angle of the point (x, y), called as `atan2(y, x)`.
    Atan2 "atan2" 2..=2;
    /// Hyperbolic sine.
    Sinh "sinh" 1..=1;
    /// Hyperbolic cosine.
    Cosh "cosh" 1..=1;
    /// Hyperbolic tangent.
    Tanh "tanh" 1..=1;
    /// From radians to degrees.
    Degrees "degrees" 1..=1;
    /// From degrees to radians.
    Radians "radians" 1..=1;
    /// x to the power of y, as `x ^ y`.
    Power "power" 2..=2;
    /// Remainder of the sign of the divisor, as `x % y`.
    Mod "mod" 2..=2;
    /// sqrt(x^2 + y^2) without overflow on the way.
    Hypot "hypot" 2..=2;
    /// Whether a number is finite.
    IsFinite "isfinite" 1..=1;
    /// Whether a number is infinite.
    IsInf "isinf" 1..=1;
    /// The least of those that are not missing.
    Least "least" 1..=usize::MAX;
    /// The greatest of those that are not missing.
    Greatest "greatest" 1..=usize::MAX;
    /// The first that is not missing.
    Coalesce "coalesce" 1..=usize::MAX;
    /// The first argument, missing where it equals the second.
    NullIf "nullif" 2..=2;
    /// The second argument where the condition is true, else the third.
    If "if" 3..=3;
    /// A number as `float64`, to the nearest.
    Float64 "float64" 1..=1;
    /// A number as `int64`, toward zero; an error if it does not fit.
    Int64 "int64" 1..=1;
    /// Text in lower case.
    Lower "lower" 1..=1;
    /// Text in upper case.
    Upper "upper" 1..=1;
    /// The number of characters of a text.
    Length "length" 1..=1;
}

impl Function {
    /// The function of a name in lower case. `log` is [`Function::Ln`], `pow` [`Function::Power`] and `ceiling`
    /// [`Function::Ceil`].
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "log" => Some(Self::Ln),
            "pow" => Some(Self::Power),
            "ceiling" => Some(Self::Ceil),
            _ => Self::ALL.iter().copied().find(|f| f.name() == name),
        }
    }

    /// The names, for messages.
    pub fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.iter().map(|f| f.name())
    }

    /// The type of the result for arguments of these types; `None` is the untyped NULL.
    ///
    /// # Errors
    /// `InvalidValue` if their number is wrong, `TypeMismatch` if a type is.
    pub fn result_type(self, args: &[Option<ValueType>]) -> Result<ValueType> {
        self.check_arity(args.len())?;
        match self {
            Self::Least | Self::Greatest | Self::Coalesce => self.common_type(args),
            Self::NullIf => self.common_type(args).map(|t| args[0].unwrap_or(t)),
            Self::If => match args[0] {
                None | Some(ValueType::Bool) => self.common_type(&args[1..]),
                Some(other) => Err(self.mismatch("a condition first", other)),
            },
            Self::Lower | Self::Upper | Self::Length => {
                self.check_all(args, "text", |t| t == ValueType::Str)?;
                Ok(if self == Self::Length { ValueType::I64 } else { ValueType::Str })
            }
            _ => {
                self.check_all(args, "a number", |t| t != ValueType::Str)?;
                self.numeric_type(args)
            }
        }
    }

    /// The result of a function of numbers.
    fn numeric_type(self, args: &[Option<ValueType>]) -> Result<ValueType> {
        match self {
            Self::Mod => arithmetic::arithmetic_type(BinaryOp::Rem, args[0], args[1]),
            Self::IsFinite | Self::IsInf => Ok(ValueType::Bool),
            Self::Int64 => Ok(ValueType::I64),
            Self::Round if args.get(1) == Some(&Some(ValueType::F64)) => {
                Err(self.mismatch("an integer number of digits", ValueType::F64))
            }
            Self::Abs | Self::Sign | Self::Floor | Self::Ceil | Self::Trunc | Self::Round => {
                Ok(match args[0] {
                    None => ValueType::F64,
                    Some(ValueType::Bool) => ValueType::I64,
                    Some(number) => number,
                })
            }
            _ => Ok(ValueType::F64),
        }
    }

    /// The result for these arguments, row by row.
    ///
    /// # Errors
    /// As [`Function::result_type`]. Rows whose integer does not fit fail with `Overflow`: see [`Vector::sound`].
    pub fn apply(self, args: &[&Vector]) -> Result<Vector> {
        let types: Vec<_> = args.iter().map(|a| a.value_type()).collect();
        let result = self.result_type(&types)?;
        match self {
            Self::Coalesce => return choice::coalesce(args, result),
            Self::Least => return choice::extreme(args, result, false),
            Self::Greatest => return choice::extreme(args, result, true),
            Self::If => return choice::if_else(args[0], args[1], args[2], result),
            Self::NullIf => return choice::null_if(args[0], args[1], result),
            _ => {}
        }
        if types.contains(&None) {
            return Ok(Vector::missing(result, Shape::common(args)?));
        }
        let computed = match self {
            Self::Lower => text::lower(args[0]),
            Self::Upper => text::upper(args[0]),
            Self::Length => text::length(args[0]),
            Self::Float64 => args[0].widen(ValueType::F64).map(|v| v.into_owned()),
            Self::Int64 => math::to_int64(args[0]),
            Self::Mod => arithmetic::arithmetic(BinaryOp::Rem, args[0], args[1]),
            Self::Power => arithmetic::arithmetic(BinaryOp::Pow, args[0], args[1]),
            Self::Round if args.len() == 2 => math::round(args[0], args[1], result),
            Self::Atan2 => math::binary(args[0], args[1], f64::atan2),
            Self::Hypot => math::binary(args[0], args[1], f64::hypot),
            Self::IsFinite => math::test(args[0], f64::is_finite),
            Self::IsInf => math::test(args[0], f64::is_infinite),
            _ if result != ValueType::F64 => math::of_integers(self, args[0], result),
            _ => math::of_floats(self, args[0]),
        };
        Ok(computed?.after(args))
    }

    fn check_arity(self, got: usize) -> Result<()> {
        let (least, most) = self.arity();
        if (least..=most).contains(&got) {
            return Ok(());
        }
        let expected = match (least, most) {
            (1, 1) => "1 argument".to_owned(),
            (n, usize::MAX) => format!("at least {n} argument"),
            (n, m) if n == m => format!("{n} arguments"),
            (n, m) => format!("{n} or {m} arguments"),
        };
        Err(Error::new(ErrorKind::InvalidValue, format!("{} takes {expected}, got {got}", self.name())))
    }

    fn check_all(
        self,
        args: &[Option<ValueType>],
        expected: &str,
        accepts: impl Fn(ValueType) -> bool,
    ) -> Result<()> {
        match args.iter().flatten().find(|t| !accepts(**t)) {
            Some(other) => Err(self.mismatch(expected, *other)),
            None => Ok(()),
        }
    }

    fn common_type(self, args: &[Option<ValueType>]) -> Result<ValueType> {
        let mut known = args.iter().flatten();
        let Some(&first) = known.next() else { return Ok(ValueType::F64) };
        known.try_fold(first, |a, &b| {
            a.common(b).ok_or_else(|| {
                let message = format!("{} needs values of one kind, got {a} and {b}", self.name());
                Error::new(ErrorKind::TypeMismatch, message)
            })
        })
    }

    fn mismatch(self, expected: &str, got: ValueType) -> Error {
        Error::new(ErrorKind::TypeMismatch, format!("{} needs {expected}, got {got}", self.name()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Scalar, testing::*};
    use super::*;

    fn call(name: &str, args: &[&Vector]) -> Result<Vector> {
        Function::from_name(name).unwrap().apply(args)
    }

    fn error(name: &str, args: &[&Vector]) -> String {
        call(name, args).unwrap_err().message().to_owned()
    }

    #[test]
    fn names_lead_to_their_functions() {
        for &f in Function::ALL {
            assert_eq!(Function::from_name(f.name()), Some(f));
        }
        assert_eq!(Function::from_name("log"), Some(Function::Ln));
        assert_eq!(Function::from_name("isnan"), None);
    }

    #[test]
    fn wrong_arguments_are_named() {
        let (x, t) = (floats(&[1.0]), texts(&["a"]));
        assert_eq!(error("sqrt", &[&x, &x]), "sqrt takes 1 argument, got 2");
        assert_eq!(error("round", &[]), "round takes 1 or 2 arguments, got 0");
        assert_eq!(error("least", &[]), "least takes at least 1 argument, got 0");
        assert_eq!(error("sqrt", &[&t]), "sqrt needs a number, got str");
        assert_eq!(error("lower", &[&x]), "lower needs text, got float64");
        assert_eq!(error("coalesce", &[&x, &t]), "coalesce needs values of one kind, got float64 and str");
        assert_eq!(error("if", &[&x, &x, &x]), "if needs a condition first, got float64");
        assert_eq!(error("round", &[&x, &x]), "round needs an integer number of digits, got float64");
    }

    #[test]
    fn results_are_of_the_announced_type() {
        let samples = [bools(&[Some(true)]), ints(&[3]), unsigned(&[3]), floats(&[0.5]), texts(&["a"])];
        let samples: Vec<_> = samples.into_iter().chain([constant(Scalar::Null)]).collect();
        for &f in Function::ALL {
            for a in &samples {
                for b in &samples {
                    let args = &[a, b, a][..f.arity().0.max(f.arity().1.min(2))];
                    let types: Vec<_> = args.iter().map(|v| v.value_type()).collect();
                    if let Ok(expected) = f.result_type(&types) {
                        let got = f.apply(args).unwrap();
                        assert_eq!(got.value_type(), Some(expected), "{} of {types:?}", f.name());
                        assert_eq!(got.is_constant(), args.iter().all(|v| v.is_constant()));
                    }
                }
            }
        }
    }
}
