//! The numbers of `sieva.h` for element types, operators and kinds of access.

use std::ffi::{c_char, c_void};

use sieva::ast::{CompareOp, Literal};
use sieva::{Access, DType, FetchWay, Result};

use crate::given;
use crate::status::invalid;

/// Element types by their numbers (`sieva_type`).
pub const TYPES: [(DType, i32); 13] = [
    (DType::Bool, 1),
    (DType::I8, 2),
    (DType::I16, 3),
    (DType::I32, 4),
    (DType::I64, 5),
    (DType::U8, 6),
    (DType::U16, 7),
    (DType::U32, 8),
    (DType::U64, 9),
    (DType::F16, 10),
    (DType::F32, 11),
    (DType::F64, 12),
    (DType::Str, 13),
];

/// Comparisons by their numbers (`sieva_op`).
pub const OPERATORS: [(CompareOp, i32); 6] = [
    (CompareOp::Gt, 1),
    (CompareOp::GtEq, 2),
    (CompareOp::Lt, 3),
    (CompareOp::LtEq, 4),
    (CompareOp::Eq, 5),
    (CompareOp::NotEq, 6),
];

/// Kinds of access by their numbers (`sieva_access`).
pub const ACCESS: [(Access, i32); 5] =
    [(Access::Auto, 0), (Access::Scan, 1), (Access::ZoneMap, 2), (Access::Bitmap, 3), (Access::Sorted, 4)];

/// Ways of fetching by their numbers (`sieva_fetch`).
pub const FETCH: [(FetchWay, i32); 3] = [(FetchWay::Auto, 0), (FetchWay::Direct, 1), (FetchWay::Block, 2)];

/// The number of an element type.
pub fn number_of(dtype: DType) -> i32 {
    TYPES.iter().find(|(d, _)| *d == dtype).map_or(0, |t| t.1)
}

/// The element type of a number.
///
/// # Errors
/// `invalid-value`, naming the range.
pub fn dtype_of(number: i32) -> Result<DType> {
    find(&TYPES, number, "type, which are SIEVA_BOOL (1) to SIEVA_STR (13)")
}

/// The comparison of a number.
///
/// # Errors
/// `invalid-value`, naming the range.
pub fn operator_of(number: i32) -> Result<CompareOp> {
    find(&OPERATORS, number, "operator, which are SIEVA_GT (1) to SIEVA_NE (6)")
}

/// The kind of access of a number.
///
/// # Errors
/// `invalid-value`, naming the range.
pub fn access_of(number: i32) -> Result<Access> {
    find(&ACCESS, number, "access, which are SIEVA_ACCESS_AUTO (0) to SIEVA_ACCESS_SORTED (4)")
}

/// The way of fetching of a number.
///
/// # Errors
/// `invalid-value`, naming the range.
pub fn fetch_of(number: i32) -> Result<FetchWay> {
    find(&FETCH, number, "fetch, which are SIEVA_FETCH_AUTO (0) to SIEVA_FETCH_BLOCK (2)")
}

fn find<T: Copy>(table: &[(T, i32)], number: i32, what: &str) -> Result<T> {
    let found = table.iter().find(|entry| entry.1 == number);
    found.map(|entry| entry.0).ok_or_else(|| invalid(format!("{number} is no {what}")))
}

/// The constant that a value of the caller is: exactly, also where it has more than 53 bits.
///
/// # Errors
/// `invalid-value` for NULL, a text that is not UTF-8, and types that C has no values of.
///
/// # Safety
/// `value` must lead to a value of that type (of text: to its first byte).
pub unsafe fn literal(dtype: DType, value: *const c_void) -> Result<Literal> {
    if value.is_null() {
        return Err(invalid("value is NULL"));
    }
    macro_rules! read {
        ($t:ty) => {
            // SAFETY: the caller's promise; at any alignment.
            unsafe { value.cast::<$t>().read_unaligned() }
        };
    }
    Ok(match dtype {
        DType::Bool => Literal::Bool(read!(u8) != 0),
        DType::I8 => Literal::Int(read!(i8).into()),
        DType::I16 => Literal::Int(read!(i16).into()),
        DType::I32 => Literal::Int(read!(i32).into()),
        DType::I64 => Literal::Int(read!(i64).into()),
        DType::U8 => Literal::Int(read!(u8).into()),
        DType::U16 => Literal::Int(read!(u16).into()),
        DType::U32 => Literal::Int(read!(u32).into()),
        DType::U64 => Literal::Int(read!(u64).into()),
        DType::F32 => Literal::Float(read!(f32).into()),
        DType::F64 => Literal::Float(read!(f64)),
        // SAFETY: the caller's promise.
        DType::Str => Literal::Str(unsafe { given::text(value.cast::<c_char>(), "value") }?.to_string()),
        DType::F16 => return Err(invalid("a value of type SIEVA_F16 has no C type: give it as SIEVA_F32")),
    })
}
