//! A reduction whose states merge: counts of the values from 0 to 16 in bins of width 1.
//!
//! rustc --target wasm32-unknown-unknown --edition 2024 -O -C strip=symbols --crate-type cdylib -o histogram.wasm histogram.rs
#![no_std]

use core::cell::UnsafeCell;

const BINS: usize = 16;
const INT64: u32 = 7;
const UINT8: u32 = 2;
const FLOAT64: u32 = 10;

/// A column as the host describes it: docs/reference/user-code.md.
#[repr(C)]
pub struct Column {
    kind: u32,
    data: u32,
    valid: u32,
    count: u32,
}

/// What there is one of: there are no threads here.
struct Only<T>(UnsafeCell<T>);

unsafe impl<T> Sync for Only<T> {}

static COUNTS: Only<[u64; BINS]> = Only(UnsafeCell::new([0; BINS]));
static RESULT: Only<Column> = Only(UnsafeCell::new(Column { kind: 0, data: 0, valid: 0, count: 0 }));
static NEXT: Only<usize> = Only(UnsafeCell::new(0));

unsafe extern "C" {
    static __heap_base: u8;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    core::arch::wasm32::unreachable()
}

/// Memory is given from the end of the data on, one piece after the other.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_alloc(bytes: usize) -> usize {
    let next = unsafe { &mut *NEXT.0.get() };
    if *next == 0 {
        *next = &raw const __heap_base as usize;
    }
    let at = next.next_multiple_of(16);
    let Some(end) = at.checked_add(bytes) else { return 0 };
    let there = core::arch::wasm32::memory_size(0) << 16;
    if end > there && core::arch::wasm32::memory_grow(0, (end - there).div_ceil(1 << 16)) == usize::MAX {
        return 0;
    }
    *next = end;
    at
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_init() {
    unsafe { *COUNTS.0.get() = [0; BINS] }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_step(columns: *const Column, count: u32) {
    let (column, counts) = unsafe { (&*columns, &mut *COUNTS.0.get()) };
    assert!(count == 1 && column.kind == FLOAT64);
    let rows = column.count as usize;
    let values = unsafe { core::slice::from_raw_parts(column.data as *const f64, rows) };
    let valid = (column.valid != 0)
        .then(|| unsafe { core::slice::from_raw_parts(column.valid as *const u8, rows) });
    for (row, value) in values.iter().enumerate() {
        let is_there = valid.is_none_or(|valid| valid[row] != 0);
        if is_there && (0.0..BINS as f64).contains(value) {
            counts[*value as usize] += 1;
        }
    }
}

/// The counts: a value of each bin.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_finish() -> *const Column {
    unsafe { described(INT64, BINS) }
}

/// The same as bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_save() -> *const Column {
    unsafe { described(UINT8, 8 * BINS) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn sieva_merge(address: usize, bytes: usize) {
    assert!(bytes == 8 * BINS);
    let (others, counts) = unsafe { (&*(address as *const [u64; BINS]), &mut *COUNTS.0.get()) };
    counts.iter_mut().zip(others).for_each(|(count, other)| *count += other);
}

unsafe fn described(kind: u32, count: usize) -> *const Column {
    let result = RESULT.0.get();
    unsafe { *result = Column { kind, data: COUNTS.0.get() as u32, valid: 0, count: count as u32 } };
    result
}
