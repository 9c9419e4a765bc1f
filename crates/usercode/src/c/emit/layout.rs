//! Where things are in the memory of a compiled program, and its globals.

use crate::c::tree::Program;

/// The description of what comes out: type, address, validity, length.
pub(super) const RESULT: u32 = 16;
/// A value that comes out.
pub(super) const CELL: u32 = 32;
const FILE: u32 = 48;
/// Bytes for local arrays, calls in calls included.
const STACK: u32 = 512 << 10;

pub(super) const SP: u32 = 0;
pub(super) const HEAP: u32 = 1;
pub(super) const OUT: u32 = 2;
pub(super) const OUT_COUNT: u32 = 3;
pub(super) const OUT_BYTES: u32 = 4;
pub(super) const COUNT: u32 = 5;
/// The row that a function of each row has come to.
pub(super) const ROW: u32 = 6;
const INPUTS: u32 = 7;

/// The global with the address of a column.
pub(super) fn data(column: u32) -> u32 {
    INPUTS + 2 * column
}

/// That with the address of its validity.
pub(super) fn validity(column: u32) -> u32 {
    INPUTS + 2 * column + 1
}

pub(super) struct Layout {
    pub file: u32,
    pub other: u32,
    pub stack_low: u32,
    pub stack_high: u32,
}

impl Layout {
    pub fn of(program: &Program) -> Self {
        let size = program.file.next_multiple_of(16);
        let other = FILE + size;
        let stack_low = other + size;
        let has_frames = program.functions.iter().any(|f| f.frame > 0 && f.is_reached);
        let stack_high = stack_low + if has_frames { STACK } else { 0 };
        Self { file: FILE, other, stack_low, stack_high }
    }

    /// The address of a variable of the file.
    pub fn variable(&self, offset: u32, other: bool) -> u32 {
        offset + if other { self.other } else { self.file }
    }
}
