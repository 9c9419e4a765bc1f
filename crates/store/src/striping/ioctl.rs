//! Questions to the driver behind an open file, with answers of a fixed size: the one place of this crate that is `unsafe`.

use std::ffi::c_void;
use std::os::fd::BorrowedFd;

use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl};

/// A struct of the kernel that a driver reads and fills.
///
/// # Safety
/// `OPCODE` must make a driver write nothing but bytes of the struct, and any bytes must be a value of it.
pub(super) unsafe trait Question {
    /// The request.
    const OPCODE: Opcode;
}

/// The opcode of a struct of `size` bytes (`asm-generic/ioctl.h`): `_IOR`, or `_IOWR` where the driver reads it, too.
pub(super) const fn opcode(is_read: bool, kind: u8, number: u8, size: usize) -> Opcode {
    let direction: u32 = if is_read { 3 } else { 2 };
    (direction << 30 | (size as u32) << 16 | (kind as u32) << 8 | number as u32) as Opcode
}

/// Has the driver fill a struct.
///
/// # Errors
/// Those of the system, `ENOTTY` where the driver knows no such question.
pub(super) fn ask<Q: Question>(file: BorrowedFd<'_>, question: &mut Q) -> rustix::io::Result<()> {
    // SAFETY: the promise of `Question` about its opcode and its bytes.
    unsafe { ioctl(file, Asking(question)) }
}

struct Asking<'a, Q>(&'a mut Q);

// SAFETY: the pointer leads to the struct that the opcode is of, by the promise of `Question`.
unsafe impl<Q: Question> Ioctl for Asking<'_, Q> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        Q::OPCODE
    }

    fn as_ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(self.0).cast()
    }

    // SAFETY: nothing is read of the pointer.
    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> rustix::io::Result<()> {
        Ok(())
    }
}
