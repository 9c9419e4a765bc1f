//! Pointers as they come from C: checked before anything is done with them.

use std::ffi::{CStr, c_char};
use std::ptr::NonNull;

use sieva::Result;

use crate::status::invalid;

/// What a handle leads to.
///
/// # Errors
/// `invalid-value` for NULL, naming the argument.
///
/// # Safety
/// A pointer that is not NULL must be a live handle of that type.
pub unsafe fn handle<'a, T>(pointer: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| invalid(format!("{what} is NULL")))
}

/// A text of the caller.
///
/// # Errors
/// `invalid-value` for NULL and for bytes that are not UTF-8.
///
/// # Safety
/// A pointer that is not NULL must lead to bytes that end with a NUL.
pub unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(invalid(format!("{what} is NULL")));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(pointer) };
    bytes.to_str().map_err(|e| invalid(format!("{what} is not UTF-8: byte {} is wrong", e.valid_up_to())))
}

/// A struct of the caller that may have fewer fields than are known here, or more: `default` with the fields that it
/// has. Its first field says how many bytes it has.
///
/// # Errors
/// `invalid-value` where the size is impossible, or a newer program asks for what is not known here.
///
/// # Safety
/// A pointer that is not NULL must lead to as many bytes as its first field says. `T` must be a `repr(C)` struct whose
/// fields are valid whatever their bits are.
pub unsafe fn growing<T: Copy>(pointer: *const T, default: T, name: &str) -> Result<T> {
    let mut options = default;
    if pointer.is_null() {
        return Ok(options);
    }
    // SAFETY: the first field is there, by the caller's promise.
    let size = unsafe { pointer.cast::<u64>().read_unaligned() };
    if !(8..=4096).contains(&size) {
        let start = format!("{name} options = {}_INIT", name.to_uppercase());
        return Err(
            invalid(format!("options of {size} bytes")).hint(format!("set their first field: {start}"))
        );
    }
    let (size, known) = (size as usize, size_of::<T>());
    let bytes = pointer.cast::<u8>();
    // SAFETY: the caller's promise.
    let unknown = (known..size).any(|i| unsafe { bytes.add(i).read() } != 0);
    if unknown {
        return Err(invalid(format!("options of {size} bytes, of which {known} are known here"))
            .hint("this library is older than the header that the program was compiled with"));
    }
    // SAFETY: both are at least so long; every field is valid whatever its bits are.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes, (&raw mut options).cast::<u8>(), size.min(known));
    }
    Ok(options)
}

/// A text that may be NULL: `None`.
///
/// # Errors
/// `invalid-value` for bytes that are not UTF-8.
///
/// # Safety
/// As [`text`].
pub unsafe fn optional_text<'a>(pointer: *const c_char, what: &str) -> Result<Option<&'a str>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { text(pointer, what) }.map(Some)
}

/// A place for a result.
pub struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// A place that must be there.
    ///
    /// # Errors
    /// `invalid-value` for NULL.
    pub fn new(pointer: *mut T, what: &str) -> Result<Self> {
        NonNull::new(pointer)
            .map(Self)
            .ok_or_else(|| invalid(format!("{what} is NULL: no place for the result")))
    }

    /// Writes the result.
    ///
    /// # Safety
    /// The caller's pointer must be valid for writing a `T`, at any alignment.
    pub unsafe fn set(self, value: T) {
        // SAFETY: not NULL; the rest is the caller's promise.
        unsafe { self.0.as_ptr().write_unaligned(value) }
    }
}

impl<T> Out<Box<T>> {
    /// A place for a new handle.
    ///
    /// # Errors
    /// As [`Out::new`].
    pub fn handle(pointer: *mut *mut T, what: &str) -> Result<Self> {
        Self::new(pointer.cast(), what)
    }
}

/// `n` values of the caller.
///
/// # Errors
/// `invalid-value` for NULL where `n` is not 0, and for more than memory has.
///
/// # Safety
/// A pointer that is not NULL must lead to `n` values.
pub unsafe fn values<T: Copy>(pointer: *const T, n: u64, what: &str) -> Result<Vec<T>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    if pointer.is_null() {
        return Err(invalid(format!("{what} is NULL, {n} values are expected")));
    }
    let count = in_memory::<T>(n, what)?;
    // SAFETY: the caller's promise; read one by one, so that alignment does not matter.
    Ok((0..count).map(|i| unsafe { pointer.add(i).read_unaligned() }).collect())
}

/// `n` as a number of values that can lie in memory.
///
/// # Errors
/// `invalid-value` where they cannot.
pub fn in_memory<T>(n: u64, what: &str) -> Result<usize> {
    let bytes = n.checked_mul(size_of::<T>() as u64).filter(|&b| b <= isize::MAX as u64);
    bytes
        .map(|_| n as usize)
        .ok_or_else(|| invalid(format!("{what} of {n} values is more than memory can have")))
}

/// Copies values to the caller's memory; nothing where it has too little room.
///
/// # Errors
/// `invalid-value` with the number needed.
///
/// # Safety
/// The pointer must be valid for writing `capacity` values.
pub unsafe fn copy_out<T: Copy>(from: &[T], to: *mut T, capacity: u64, what: &str) -> Result<()> {
    check_room(from.len() as u64, capacity, to.is_null(), what)?;
    if !from.is_empty() {
        // SAFETY: there is room, by the caller's promise; bytes need no alignment.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr().cast::<u8>(), to.cast::<u8>(), size_of_val(from));
        }
    }
    Ok(())
}

/// Says how many bytes there are, and copies them where the caller has a place.
///
/// # Errors
/// `invalid-value` where there is too little room and the caller gave some.
///
/// # Safety
/// Both places must be valid for what they are said to hold.
pub unsafe fn put_bytes(made: &[u8], (to, capacity): (*mut u8, u64), needed: Out<u64>) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { needed.set(made.len() as u64) };
    if to.is_null() && capacity == 0 {
        return Ok(());
    }
    // SAFETY: as above.
    unsafe { copy_out(made, to, capacity, "bytes") }
}

/// Whether `needed` values fit into the caller's memory.
///
/// # Errors
/// `invalid-value` with the number needed.
pub fn check_room(needed: u64, capacity: u64, is_null: bool, what: &str) -> Result<()> {
    if needed > capacity {
        return Err(invalid(format!("{what} has room for {capacity} values, {needed} are needed")));
    }
    if needed > 0 && is_null {
        return Err(invalid(format!("{what} is NULL, room for {needed} values is needed")));
    }
    Ok(())
}

/// Copies a text with its NUL to the caller's memory and says how many bytes it needs; as `snprintf`, but
/// nothing is written where there is too little room.
///
/// # Errors
/// `invalid-value` where there is too little room and the caller gave some.
///
/// # Safety
/// `to` must be valid for writing `capacity` bytes, `needed` for a number; each may be NULL.
pub unsafe fn put_text(text: &str, to: *mut c_char, capacity: u64, needed: *mut u64) -> Result<()> {
    let text = crate::status::text(text);
    let bytes = text.as_bytes_with_nul();
    if let Some(place) = NonNull::new(needed) {
        // SAFETY: the caller's promise.
        unsafe { place.as_ptr().write_unaligned(bytes.len() as u64) };
        if to.is_null() {
            return Ok(());
        }
    }
    // SAFETY: the caller's promise.
    unsafe { copy_out(bytes, to.cast::<u8>(), capacity, "text") }
}

/// Frees a handle; NULL is none.
///
/// # Safety
/// The pointer must be NULL or a handle that was given out and not freed yet.
pub unsafe fn free<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: the caller's promise; handles are boxes.
        let handle = unsafe { Box::from_raw(pointer) };
        // Its end may do work (save what scans learnt), whose faults must not leave.
        crate::status::guarded(|| {
            drop(handle);
            Ok(())
        });
    }
}
