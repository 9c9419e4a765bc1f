//! Memory that the next query by a replica takes over: the system clears what it gives, page by page, which takes longer than
//! sorting it.

use std::sync::Mutex;

use sieva_types::Buffer;

use crate::exec::threads::lock;

/// Bytes that are kept at most.
const MOST_BYTES: usize = 16 << 20;

/// Buffers that nobody uses.
#[derive(Default)]
pub struct Spare(Mutex<Vec<Buffer>>);

impl Spare {
    /// One of so many bytes, which say nothing.
    pub fn take(&self, bytes: usize) -> Buffer {
        let mut spare = lock(&self.0);
        let fits = |b: &Buffer| b.capacity() >= bytes && b.capacity() / 2 <= bytes;
        let found = spare.iter().position(fits).map(|i| spare.swap_remove(i));
        drop(spare);
        let Some(mut buffer) = found else { return Buffer::zeros(bytes) };
        buffer.resize(bytes);
        buffer
    }

    /// Gives one back. What was kept longest goes where there is no room.
    pub fn give(&self, buffer: Buffer) {
        let mut spare = lock(&self.0);
        spare.push(buffer);
        let mut bytes: usize = spare.iter().map(Buffer::capacity).sum();
        while bytes > MOST_BYTES {
            bytes -= spare.remove(0).capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_that_fit_are_used_again_and_the_others_go() {
        let spare = Spare::default();
        let count = || lock(&spare.0).len();
        spare.give(Buffer::zeros(1000));
        assert_eq!((spare.take(1001).bytes().len(), count()), (1001, 1));
        assert_eq!((spare.take(400).bytes().len(), count()), (400, 1));
        assert_eq!((spare.take(900).bytes().len(), count()), (900, 0));
        for _ in 0..40 {
            spare.give(Buffer::zeros(1 << 20));
        }
        assert_eq!(count(), 16);
        spare.give(Buffer::zeros(MOST_BYTES + 8));
        assert_eq!(count(), 0);
    }
}
