//! What a run holds stays within its limit: the memory of the code, which is in no allocator, and what lies beside it, which is.
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use sieva_types::{ErrorKind, Result};
use sieva_usercode::{Code, Element, Function, Input, Limits, Slice, Values};

/// Counts what is held, and the most that was.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn more(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: all is the system's.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // What is large grows where it is, or its pages are moved: it is not there twice.
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        more(size);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ROWS: usize = 1 << 20;
const MIB: usize = 1 << 20;
/// What is kept of an instance besides its memory.
const INSTANCE: usize = 256 << 10;

/// What comes of a text of doubles that come in pieces, and the most that was held in the allocator meanwhile.
fn measured(text: &str, memory: usize, announced: u64) -> (Result<Vec<Values>>, usize) {
    let piece: Vec<u8> = (0..1 << 14).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    let inputs = [Input { name: "x".to_owned(), element: Element::F64 }];
    let function = Function::compile(Code::C(text), &inputs).unwrap();
    let limits = Limits { memory: memory as u64, ..Limits::default() };
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let ran = function.start(announced, &limits).and_then(|mut run| {
        for _ in 0..ROWS >> 14 {
            run.push(&[Slice { data: &piece, valid: None }])?;
        }
        run.finish(0)
    });
    (ran, MOST.load(Ordering::Relaxed) - before)
}

#[test]
fn what_is_held_stays_within_the_limit() {
    // Eight MiB go in. Of each: text, whether the rows are announced, MiB that the code itself has at least, MiB that do and do not do.
    let cases = [
        ("double map(double x) { return x + 1; }", false, 0, 14, 6),
        ("double map(double x) { return x + 1; }", true, 0, 14, 6),
        ("int filter(double x) { return x >= 0; }", false, 0, 14, 6),
        ("void step(double x) { } double finish() { return 1; }", false, 0, 2, 0),
        ("double s; for (int i = 0; i < input.count; i++) s += input.vals[i]; return s;", true, 0, 2, 0),
        (
            "resize(input.count); for (int i = 0; i < input.count; i++) output[i] = input.vals[i];",
            true,
            16,
            28,
            20,
        ),
        ("double s; for (int i = 1; i < input.count; i++) s += input.vals[i - 1]; return s;", true, 8, 12, 8),
    ];
    for (text, is_announced, own, does, does_not) in cases {
        let announced = if is_announced { ROWS as u64 } else { 0 };
        let (ran, most) = measured(text, does * MIB, announced);
        assert!(ran.is_ok(), "{text}: {}", ran.unwrap_err());
        assert!(most <= (does - own) * MIB + INSTANCE, "{text}: {most} bytes beside {own} MiB of {does}");
        let (ran, most) = measured(text, does_not * MIB, announced);
        assert_eq!(ran.unwrap_err().kind(), ErrorKind::MemoryLimit, "{text}");
        assert!(most <= does_not * MIB + INSTANCE, "{text}: {most} bytes of {does_not} MiB");
    }
}
