//! BeeGFS: chunk size and targets of a file, by two questions to its client module (`beegfs_ioctl.h`).

use std::os::fd::BorrowedFd;

use rustix::ioctl::Opcode;

use super::ioctl::{self, Question, opcode};
use super::{Striping, Turns};

/// What `statfs` gives.
pub(super) const FILE_SYSTEM: u32 = 0x1983_0326;

const RAID0: u32 = 1;
const RAID10: u32 = 2;
const MIRRORED: u32 = 3;

/// `BEEGFS_IOC_GET_STRIPEINFO`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct StripeInfo {
    pattern: u32,
    chunk_size: u32,
    targets: u16,
    reserved: u16,
}

// SAFETY: the request encodes the struct's size; all its fields are numbers.
unsafe impl Question for StripeInfo {
    const OPCODE: Opcode = opcode(false, b'f', 25, size_of::<Self>());
}

/// `BEEGFS_IOC_GET_STRIPETARGET`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct StripeTarget {
    index: u16,
    target: u16,
    node: u16,
    node_name: [u8; 256],
}

// SAFETY: the request encodes the struct's size; all its fields are numbers.
unsafe impl Question for StripeTarget {
    const OPCODE: Opcode = opcode(false, b'f', 26, size_of::<Self>());
}

/// The striping of a file on BeeGFS, or why there is none, in words.
pub(super) fn ask(file: BorrowedFd<'_>) -> Result<Striping, String> {
    let mut info = StripeInfo::default();
    ioctl::ask(file, &mut info).map_err(|e| e.to_string())?;
    let mut targets = Vec::with_capacity(info.targets.into());
    for index in 0..info.targets {
        let mut target = StripeTarget { index, target: 0, node: 0, node_name: [0; 256] };
        ioctl::ask(file, &mut target).map_err(|e| e.to_string())?;
        targets.push(target.target.into());
    }
    striping(info.pattern, info.chunk_size, targets)
}

/// What the answers say.
pub(super) fn striping(pattern: u32, chunk_size: u32, targets: Vec<u32>) -> Result<Striping, String> {
    if !matches!(pattern, RAID0 | RAID10 | MIRRORED) {
        return Err(format!("pattern {pattern}"));
    }
    let turns = Turns { from: 0, unit: chunk_size.into(), on: targets };
    let found = Striping::by_turns(vec![turns], "target", Vec::new(), "BeeGFS".into());
    found.map_err(|e| e.message().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_go_to_targets_by_turns() {
        let found = striping(RAID0, 512 << 10, vec![301, 102]).unwrap();
        assert_eq!(found.to_string(), "stripe_size=512KiB,on=301+102");
        assert_eq!((found.servers(), found.server_name(1)), (2, "target 301".to_string()));
        let servers: Vec<u32> = found.pieces(0..3 << 19).map(|p| p.server).collect();
        assert_eq!(servers, [1, 0, 1]);
    }

    #[test]
    fn impossible_answers_are_told() {
        assert_eq!(striping(7, 1, vec![1]).unwrap_err(), "pattern 7");
        for (size, targets) in [(0, vec![1]), (1, vec![])] {
            assert!(striping(RAID0, size, targets).unwrap_err().contains("at least one of each"));
        }
    }

    #[test]
    fn requests_are_those_of_the_header() {
        // _IOR('f', 25, 12 bytes) and _IOR('f', 26, 262 bytes).
        assert_eq!((StripeInfo::OPCODE, StripeTarget::OPCODE), (0x800c_6619, 0x8106_661a));
    }
}
