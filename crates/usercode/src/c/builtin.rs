//! Functions that are there without being written: instructions, and those of `prelude.c`.

use crate::element::Element;

/// An instruction or a few, as a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Sqrt,
    Abs,
    Floor,
    Ceil,
    Trunc,
    Nearest,
    Min,
    Max,
    CopySign,
    IsNan,
    IsInf,
    IsFinite,
    /// Of integers.
    IntAbs,
    /// The bits of a double as a long, and back: for the prelude alone, as NaNs have bits that nobody may see.
    Bits,
    OfBits,
}

/// How a function of `math.h` is called: its arguments are converted to `argument`.
#[derive(Clone, Copy)]
pub(crate) struct Signature {
    pub builtin: Builtin,
    pub arguments: usize,
    pub argument: Element,
    pub result: Element,
}

/// The builtin of a name.
pub(crate) fn of_name(name: &str, in_prelude: bool) -> Option<Signature> {
    let (builtin, arguments) = match name {
        "sqrt" => (Builtin::Sqrt, 1),
        "fabs" => (Builtin::Abs, 1),
        "floor" => (Builtin::Floor, 1),
        "ceil" => (Builtin::Ceil, 1),
        "trunc" => (Builtin::Trunc, 1),
        "rint" | "nearbyint" => (Builtin::Nearest, 1),
        "fmin" => (Builtin::Min, 2),
        "fmax" => (Builtin::Max, 2),
        "copysign" => (Builtin::CopySign, 2),
        "isnan" => (Builtin::IsNan, 1),
        "isinf" => (Builtin::IsInf, 1),
        "isfinite" => (Builtin::IsFinite, 1),
        "abs" => (Builtin::IntAbs, 1),
        "labs" | "llabs" => (Builtin::IntAbs, 1),
        "__bits" if in_prelude => (Builtin::Bits, 1),
        "__of_bits" if in_prelude => (Builtin::OfBits, 1),
        _ => return None,
    };
    let (argument, result) = match builtin {
        Builtin::IsNan | Builtin::IsInf | Builtin::IsFinite => (Element::F64, Element::I32),
        Builtin::IntAbs if name == "abs" => (Element::I32, Element::I32),
        Builtin::IntAbs => (Element::I64, Element::I64),
        Builtin::Bits => (Element::F64, Element::I64),
        Builtin::OfBits => (Element::I64, Element::F64),
        _ => (Element::F64, Element::F64),
    };
    Some(Signature { builtin, arguments, argument, result })
}

/// Functions that are written in the subset itself.
pub(crate) const PRELUDE: &str = include_str!("prelude.c");

/// Their names, for messages and to know when they are needed.
pub(crate) const PRELUDE_NAMES: [&str; 24] = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sin", "cos", "tan", "asin", "acos",
    "atan", "atan2", "sinh", "cosh", "tanh", "cbrt", "hypot", "fmod", "round", "fdim", "exp10",
];

/// A function of doubles by its name for floats: `expf` is `exp`, rounded to a float.
pub(crate) fn of_float(name: &str) -> Option<&str> {
    let base = name.strip_suffix('f')?;
    let is_float = |s: Signature| s.argument == Element::F64 && s.result == Element::F64;
    let known = PRELUDE_NAMES.contains(&base) || of_name(base, false).is_some_and(is_float);
    known.then_some(base)
}

/// A constant of `math.h`.
pub(crate) fn constant(name: &str) -> Option<f64> {
    use std::f64::consts;
    Some(match name {
        "M_PI" => consts::PI,
        "M_PI_2" => consts::FRAC_PI_2,
        "M_PI_4" => consts::FRAC_PI_4,
        "M_E" => consts::E,
        "M_LN2" => consts::LN_2,
        "M_LN10" => consts::LN_10,
        "M_SQRT2" => consts::SQRT_2,
        "INFINITY" | "HUGE_VAL" => f64::INFINITY,
        "NAN" => f64::NAN,
        _ => return None,
    })
}
