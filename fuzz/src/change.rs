//! Changes to the bytes of a file.

use arbitrary::Arbitrary;

/// Bytes that a file has at most after its changes.
const LONGEST: usize = 1 << 20;

/// A change; places count round the length of the file, so that each hits something.
#[derive(Arbitrary, Clone, Debug)]
#[allow(missing_docs)] // the fields name themselves
pub enum Change {
    Byte { at: u32, to: u8 },
    Flip { at: u32, bit: u8 },
    Half { at: u32, to: u32 },
    Word { at: u32, to: u64 },
    Extreme { at: u32, bits: u8 },
    Cut { len: u32 },
    Append { bytes: Vec<u8> },
    Insert { at: u32, bytes: Vec<u8> },
    Remove { at: u32, len: u8 },
    Copy { from: u32, to: u32, len: u16 },
    Replace { bytes: Vec<u8> },
}

impl Change {
    /// Applies it.
    pub fn apply(&self, file: &mut Vec<u8>) {
        let before = file.len();
        let place = |at: u32| at as usize % before.max(1);
        match self {
            Self::Byte { at, to } => put(file, place(*at), &[*to]),
            Self::Flip { at, bit } => {
                let at = place(*at);
                if let Some(byte) = file.get_mut(at) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Self::Half { at, to } => put(file, place(*at), &to.to_le_bytes()),
            Self::Word { at, to } => put(file, place(*at), &to.to_le_bytes()),
            Self::Extreme { at, bits } => {
                let word = u64::MAX.checked_shr((*bits).into()).unwrap_or(0);
                put(file, place(*at), &word.to_le_bytes());
            }
            Self::Cut { len } => file.truncate(place(*len)),
            Self::Append { bytes } => file.extend_from_slice(bytes),
            Self::Insert { at, bytes } => {
                let at = place(*at);
                file.splice(at..at, bytes.iter().copied());
            }
            Self::Remove { at, len } => {
                let at = place(*at);
                file.drain(at..file.len().min(at + usize::from(*len)));
            }
            Self::Copy { from, to, len } => {
                let (from, to) = (place(*from), place(*to));
                let part = file[from..file.len().min(from + usize::from(*len))].to_vec();
                put(file, to, &part);
            }
            Self::Replace { bytes } => file.clone_from(bytes),
        }
        file.truncate(LONGEST);
    }
}

/// Overwrites what is there; never makes the file longer.
fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    file.iter_mut().skip(at).zip(bytes).for_each(|(old, &new)| *old = new);
}
