//! What ended a run, in words.

use std::time::Duration;

use sieva_types::{Error, ErrorKind};
use wasmtime::{Trap, WasmBacktrace};

use crate::c::lex::Pos;
use crate::c::{Emitted, Why, place};

/// What the owner of an instance knows of it.
pub(super) struct Known<'a> {
    pub limits: &'a crate::limits::Limits,
    /// More memory was asked for than there may be.
    pub refused: bool,
    /// Where the instructions of a compiled text come from.
    pub emitted: Option<&'a Emitted>,
}

/// Ended by us, from within the code.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ended {
    Time,
    Elapsed,
    Cancelled,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Time | Self::Elapsed => "out of time",
            Self::Cancelled => "cancelled",
        })
    }
}

impl std::error::Error for Ended {}

/// The error of a call that did not come back.
pub(super) fn of(e: &wasmtime::Error, known: &Known<'_>) -> Error {
    let too_long = |time: Duration, of: &str| {
        let message = format!("the code ran for more than {} s{of}", time.as_secs_f64());
        Error::new(ErrorKind::InvalidValue, message)
            .hint("look for a loop that does not end, or ask for fewer values")
    };
    match e.downcast_ref::<Ended>() {
        Some(Ended::Time) => return too_long(known.limits.time, " of the processor's time"),
        Some(Ended::Elapsed) => return too_long(known.limits.elapsed, ""),
        Some(Ended::Cancelled) => return Error::new(ErrorKind::Cancelled, "the code was interrupted"),
        None => {}
    }
    let (place, trap) = (place_of(e, known.emitted), e.downcast_ref::<Trap>());
    let wrong = |message: &str| at(place.map(|(pos, _)| pos), ErrorKind::InvalidValue, message);
    let memory = || {
        let message =
            format!("the code needs more than the {} bytes of memory that it may have", known.limits.memory);
        at(place.map(|(pos, _)| pos), ErrorKind::MemoryLimit, &message)
    };
    match (trap, place.map(|(_, why)| why)) {
        (Some(Trap::UnreachableCodeReached), Some(Why::Resize)) => memory(),
        (Some(Trap::UnreachableCodeReached), Some(Why::Index)) => {
            wrong("an index beyond the end of its array")
        }
        (Some(Trap::UnreachableCodeReached), Some(Why::NoReturn)) => {
            wrong("a function ends without 'return'")
        }
        (Some(Trap::UnreachableCodeReached), Some(Why::Stack)) | (Some(Trap::StackOverflow), _) => {
            wrong("functions call each other too deep")
        }
        // After what is known by its place: memory that was refused need not be what ended it.
        (Some(Trap::UnreachableCodeReached), _) if known.refused => memory(),
        (Some(Trap::IntegerDivisionByZero), _) => wrong("an integer is divided by zero"),
        (Some(Trap::IntegerOverflow), Some(Why::Convert)) => {
            wrong("a number that no integer of the type holds")
        }
        (Some(Trap::IntegerOverflow), _) => wrong("an integer leaves its range by a division"),
        (Some(Trap::BadConversionToInteger), _) => wrong("a NaN becomes no integer"),
        (Some(Trap::MemoryOutOfBounds), _) => wrong("the code reads or writes outside of its memory"),
        (Some(Trap::UnreachableCodeReached), _) => wrong("the code gave up (unreachable)"),
        (Some(trap), _) => wrong(&format!("the code failed: {trap}")),
        (None, _) if known.refused => memory(),
        (None, _) => wrong(&format!("the code cannot be run: {e:#}")),
    }
}

fn at(pos: Option<Pos>, kind: ErrorKind, message: &str) -> Error {
    match pos {
        Some(pos) if pos.line > 0 => pos.error(kind, message),
        _ => Error::new(kind, message),
    }
}

/// The innermost place of the text that was being run.
fn place_of(e: &wasmtime::Error, emitted: Option<&Emitted>) -> Option<(Pos, Why)> {
    let (trace, emitted) = (e.downcast_ref::<WasmBacktrace>()?, emitted?);
    let mut innermost: Option<(Pos, Why)> = None;
    for frame in trace.frames().iter().take(64) {
        let marks = emitted.marks.get(frame.func_index() as usize)?;
        let Some((pos, why)) = frame.func_offset().and_then(|offset| place(marks, offset)) else { continue };
        // What a function of ours says is why; where the text called it is the place.
        let why = innermost.map_or(why, |(_, why)| why);
        if pos.line > 0 {
            return Some((pos, why));
        }
        innermost = Some((pos, why));
    }
    innermost
}
