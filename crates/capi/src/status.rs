//! Return codes, and what is known of the last failure in each thread.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use sieva::{Error, ErrorKind, Result};

/// Success.
pub const OK: i32 = 0;
/// Not an error: work goes on (`SIEVA_PENDING`).
pub const PENDING: i32 = -1;
/// The code of what no other code stands for.
const INTERNAL: i32 = 24;

/// Codes by the names of error kinds. Append-only: programs have the numbers compiled in.
pub const CODES: [(&CStr, i32); 25] = [
    (c"file-not-found", 1),
    (c"permission-denied", 2),
    (c"unknown-format", 3),
    (c"corrupt-file", 4),
    (c"io-error", 5),
    (c"unknown-array", 6),
    (c"unknown-dimension", 7),
    (c"unknown-attribute", 8),
    (c"unknown-function", 9),
    (c"ambiguous-name", 10),
    (c"syntax-error", 11),
    (c"type-mismatch", 12),
    (c"invalid-value", 13),
    (c"dimension-mismatch", 14),
    (c"filter-unavailable", 15),
    (c"unsupported", 16),
    (c"link-refused", 17),
    (c"memory-limit", 18),
    (c"arithmetic-overflow", 19),
    (c"cancelled", 20),
    (c"stale-source", 21),
    (c"no-index", 22),
    (c"corrupt-index", 23),
    (c"internal-error", INTERNAL),
    (c"unaligned-dimensions", 25),
];

/// The code of an error kind.
pub fn code_of(kind: ErrorKind) -> i32 {
    CODES.iter().find(|(name, _)| name.to_bytes() == kind.code().as_bytes()).map_or(INTERNAL, |c| c.1)
}

/// What a thread's last failing call said.
struct Last {
    code: i32,
    message: CString,
    hint: CString,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::new(Last { code: OK, message: CString::default(), hint: CString::default() });
}

/// Runs what a function does; an error or a panic becomes the calling thread's last failure, and its code.
pub fn guarded(work: impl FnOnce() -> Result<()>) -> i32 {
    match catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(of_panic(panic))) {
        Ok(()) => OK,
        Err(e) => failed(&e),
    }
}

/// An error that says what a panic said.
pub fn of_panic(panic: Box<dyn Any + Send>) -> Error {
    let said = panic.downcast_ref::<&str>().map(|s| (*s).to_string());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    // What drops a payload may panic again.
    std::mem::forget(panic);
    Error::new(ErrorKind::Internal, format!("a fault of sieva: {said}")).hint("please report it")
}

/// Keeps an error as the calling thread's last failure; gives its code.
pub fn failed(e: &Error) -> i32 {
    let code = code_of(e.kind());
    let hint = e.hint_text().unwrap_or_default();
    let shown =
        if hint.is_empty() { e.message().to_string() } else { format!("{}; hint: {hint}", e.message()) };
    let last = Last { code, message: text(&shown), hint: text(hint) };
    // While a thread ends there is nobody to ask for it.
    let _ = LAST.try_with(|slot| *slot.borrow_mut() = last);
    code
}

/// A text for C, to its first NUL.
pub fn text(s: &str) -> CString {
    let upto = s.split('\0').next().unwrap_or_default();
    CString::new(upto).unwrap_or_default()
}

/// The error of an argument.
pub fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidValue, message)
}

/// `sieva_error_code`
#[unsafe(no_mangle)]
pub extern "C" fn sieva_error_code() -> i32 {
    LAST.try_with(|slot| slot.borrow().code).unwrap_or(OK)
}

/// `sieva_error_message`
#[unsafe(no_mangle)]
pub extern "C" fn sieva_error_message() -> *const c_char {
    LAST.try_with(|slot| slot.borrow().message.as_ptr()).unwrap_or(c"".as_ptr())
}

/// `sieva_error_hint`
#[unsafe(no_mangle)]
pub extern "C" fn sieva_error_hint() -> *const c_char {
    LAST.try_with(|slot| slot.borrow().hint.as_ptr()).unwrap_or(c"".as_ptr())
}

/// `sieva_error_name`
#[unsafe(no_mangle)]
pub extern "C" fn sieva_error_name(code: i32) -> *const c_char {
    let known = CODES.iter().find(|c| c.1 == code).map(|c| c.0);
    let name = match code {
        OK => c"ok",
        PENDING => c"pending",
        _ => known.unwrap_or(c"unknown-code"),
    };
    name.as_ptr()
}

/// `sieva_version`
#[unsafe(no_mangle)]
pub extern "C" fn sieva_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_code_of_its_own() {
        let codes: Vec<i32> = ErrorKind::ALL.iter().map(|&k| code_of(k)).collect();
        let mut distinct = codes.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(
            distinct.len(),
            ErrorKind::ALL.len(),
            "add the new kinds to CODES and to sieva.h: {codes:?}"
        );
    }

    #[test]
    fn a_panic_is_a_code_and_a_message() {
        assert_eq!(guarded(|| panic!("lost {}", 7)), INTERNAL);
        assert_eq!(sieva_error_code(), INTERNAL);
        // SAFETY: the message lives until the thread's next failure.
        let said = unsafe { CStr::from_ptr(sieva_error_message()) };
        assert_eq!(said.to_str(), Ok("a fault of sieva: lost 7; hint: please report it"));
    }
}
