//! A local disk: the extents of a file, by `FS_IOC_FIEMAP` (Linux, *Documentation/filesystems/fiemap.rst*).
//!
//! They are an order, not a striping: one disk answers, and sooner if it is asked in the order in which it has the bytes.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::ioctl::Opcode;

use super::ioctl::{self, Question, opcode};

/// Extents asked for at once.
const AT_ONCE: usize = 64;
/// Most extents that are kept; a file of more lies so scattered that its order is not worth the table.
const MOST: usize = 1 << 12;

/// The last extent of the file; its place is not known; it is encoded, or lies within the metadata.
const LAST: u32 = 0x1;
const NO_PLACE: u32 = 0x2 | 0x4 | 0x8 | 0x80 | 0x200 | 0x400;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved: [u64; 2],
    flags: u32,
    reserved2: [u32; 3],
}

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; AT_ONCE],
}

// SAFETY: the request is of the 32 bytes of the head; the kernel fills at most `count` extents behind it, of which there are
// that many; all fields are numbers.
unsafe impl Question for Fiemap {
    const OPCODE: Opcode = opcode(true, b'f', 11, 32);
}

/// Where on its disk a file has its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DiskOrder {
    /// Bytes of the file and where the first of them lies, ascending in the file.
    extents: Arc<[(Range<u64>, u64)]>,
}

impl DiskOrder {
    /// What the system says of extents; those without a place are left out.
    fn new(extents: &[Extent]) -> Self {
        let has_place = |e: &&Extent| e.flags & NO_PLACE == 0 && e.length > 0;
        let range = |e: &Extent| (e.logical..e.logical.saturating_add(e.length), e.physical);
        Self { extents: extents.iter().filter(has_place).map(range).collect() }
    }

    /// Where a byte lies; `None` in a hole, and where the system does not know.
    pub(super) fn of(&self, offset: u64) -> Option<u64> {
        let at = self.extents.partition_point(|(bytes, _)| bytes.end <= offset);
        let (bytes, physical) = self.extents.get(at).filter(|(bytes, _)| bytes.contains(&offset))?;
        physical.checked_add(offset - bytes.start)
    }
}

/// The extents of an open file of `len` bytes, or why they are not known, in words.
pub(super) fn ask(file: BorrowedFd<'_>, len: u64) -> Result<DiskOrder, String> {
    let mut found: Vec<Extent> = Vec::new();
    let mut start = 0;
    while start < len {
        let mut map = Fiemap {
            start,
            length: len - start,
            flags: 0,
            mapped: 0,
            count: AT_ONCE as u32,
            reserved: 0,
            extents: [Extent::default(); AT_ONCE],
        };
        ioctl::ask(file, &mut map).map_err(|e| e.to_string())?;
        let extents = &map.extents[..AT_ONCE.min(map.mapped as usize)];
        found.extend(extents);
        let Some(last) = extents.last() else { break };
        let next = last.logical.saturating_add(last.length);
        if last.flags & LAST != 0 || next <= start {
            break;
        }
        if found.len() > MOST {
            return Err(format!("more than {MOST} of them"));
        }
        start = next;
    }
    match found.windows(2).all(|pair| pair[0].logical.saturating_add(pair[0].length) <= pair[1].logical) {
        true => Ok(DiskOrder::new(&found)),
        false => Err("they are out of order".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn places_are_those_of_the_extents() {
        let of = |logical, physical, length, flags| Extent {
            logical,
            physical,
            length,
            flags,
            ..Extent::default()
        };
        let disk = DiskOrder::new(&[of(0, 9000, 100, 0), of(200, 500, 50, LAST), of(250, 0, 50, 0x4)]);
        let places = [0, 99, 100, 199, 200, 249, 250, 400].map(|offset| disk.of(offset));
        assert_eq!(places, [Some(9000), Some(9099), None, None, Some(500), Some(549), None, None]);
        assert_eq!(DiskOrder::new(&[of(0, u64::MAX, 10, 0)]).of(5), None);
    }

    #[test]
    fn the_request_is_that_of_the_header() {
        assert_eq!(Fiemap::OPCODE, 0xc020_660b);
        assert_eq!((std::mem::offset_of!(Fiemap, extents), size_of::<Extent>()), (32, 56));
    }

    #[test]
    fn a_file_is_told_or_refused_in_words() {
        let path = std::env::temp_dir().join(format!("sieva-fiemap-{}", std::process::id()));
        std::fs::write(&path, vec![1; 1 << 16]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        match ask(file.as_fd(), 1 << 16) {
            // Places of one file are all different.
            Ok(disk) => assert!(disk.of(0) != disk.of(4096) || disk.of(0).is_none()),
            Err(why) => assert!(!why.is_empty()),
        }
        std::fs::remove_file(path).unwrap();
    }
}
